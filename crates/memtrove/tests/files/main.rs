//! What the files contract promises, asked of the real binary over HTTP.
//!
//! One module per chapter. The tests of a module share one server and stay independent because each of them brings
//! its own tenant and its own user.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod assembly;
mod audit;
mod concurrency;
mod defects;
mod edits;
mod envelope;
mod etags;
mod events;
mod forget;
mod histories;
mod http;
mod idempotency;
mod identity;
mod jobs;
mod listing;
mod patches;
mod paths;
mod quotas;
mod removing;
mod retention;
mod telemetry;
