//! `memtrove import` of what people have elsewhere, as they run it, read back through a server.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod broken_off;
mod chats;
mod files;
mod hostile;
mod memories;
