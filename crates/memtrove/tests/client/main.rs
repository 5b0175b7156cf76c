//! The Rust client against the real server: every operation, changes that contend, streams that break off, the examples
//! and the guide.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod admin;
mod attachments;
mod conversations;
mod files;
mod memories;
mod openspec;

mod concurrency;
mod every_operation;
mod examples;
mod guide;
mod streams;
