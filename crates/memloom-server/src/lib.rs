//! Memloom over HTTP: REST, identity, telemetry, and the shell every request passes through.
//!
//! A handler here decodes, calls one function of `memloom-service` and encodes; what a request means is decided there.
//! [`shell`] is what all routes share (request ids, limits, timeouts, metrics, the server loop) and knows none of
//! them, so that it can be put around any router. To add a route: a handler in [`rest`], next to its siblings, with its
//! OpenAPI description; its errors are the domain's, rendered by [`rest::error`].

pub mod auth;
pub mod rest;
pub mod shell;
pub mod telemetry;
