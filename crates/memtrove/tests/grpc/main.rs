//! The gRPC API from outside: that it does what REST does, the rules that are its own, and callers that mean no good.
//!
//! [`surface`] lets a test say once what it asks of both transports; [`parity`], [`refusals`] and [`walk`] compare what
//! comes of it. The other modules are about what only gRPC has.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod fields;
mod health;
mod identity;
mod parity;
mod refusals;
mod support;
mod surface;
mod transport;
mod walk;
mod wire;
mod world;
