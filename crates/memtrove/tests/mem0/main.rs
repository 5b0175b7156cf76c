//! The mem0 API, asked of the real binary over HTTP. What its own client makes of it, `scripts/mem0-client.sh` shows.
//!
//! One module per chapter. The tests share one server and stay independent because each of them brings its own tenant.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod adding;
mod changing;
mod deleting;
mod entities;
mod filters;
mod hostile;
mod principals;
mod published;
mod refusals;
mod search;
mod together;
