//! What the conversations contract promises of attachments, asked of the real binary over HTTP and gRPC.
//!
//! One module per chapter. The tests of a module share one server and stay independent because each of them brings its own
//! users and files and, where a list spans everybody, its own tenant.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod access;
mod admin;
mod calls;
mod deleting;
mod durability;
mod linking;
mod object_stores;
mod reading;
mod sealed;
mod signed;
mod sources;
mod uploading;
