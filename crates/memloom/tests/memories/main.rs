//! What the memories contract promises, asked of the real binary over HTTP.
//!
//! One module per chapter. The tests share one server and stay independent because each of them brings its own tenant;
//! those that stop, starve or configure a server start one of their own.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod access;
mod adding;
mod bulk;
mod checks;
mod cursors;
mod dedupe;
mod deleting;
mod durability;
mod facts;
mod filters;
mod hostile;
mod http;
mod idempotency;
mod identifiers;
mod introspection;
mod isolation;
mod joints;
mod kinds;
mod lifetimes;
mod listing;
mod merging;
mod metadata;
mod override_keys;
mod principals;
mod reading;
mod searching;
mod updating;
