//! What the agent crate promises, asked of the real binary: files as texts, slots and turns, the session, the tools of a
//! model and Anthropic's memory tool.
//!
//! The tests share one server and stay independent because each of them brings its own tenant and its own user.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod files;
mod guide;
mod memory_tool;
mod session;
mod slots;
mod tools;
mod turn;
