//! What every request passes, and the documents about it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod documents;
mod oidc;
mod openapi;
mod shell;
mod slow_peers;
