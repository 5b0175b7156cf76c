//! What the conversations contract promises, asked of the real binary over HTTP.
//!
//! One module per chapter. The tests of a module share one server and stay independent because each of them brings
//! its own users, its own conversations and, where a list spans everybody, its own tenant.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod admin;
mod conversations;
mod deletion;
mod entries;
mod forks;
mod hosts;
mod idempotency;
mod identity;
mod limits;
mod listing;
mod members;
mod model;
mod pagination;
mod search;
mod semantic_search;
mod sharing;
mod shell;
mod sync;
mod tenants;
mod transfers;
