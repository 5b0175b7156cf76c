//! What the client sends and what it makes of answers, against a server that does what it is told.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod answers;
mod headers;
mod retries;
mod streams;
mod table;
mod updates;
