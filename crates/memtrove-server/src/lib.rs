//! Memtrove over HTTP: REST, gRPC, MCP, identity, telemetry, and the shell every request passes through.
//!
//! A handler here decodes, calls one function of `memtrove-service` and encodes; what a request means is decided there.
//! [`shell`] is what all routes share (request ids, limits, timeouts, metrics, the server loop) and knows none of
//! them, so that it can be put around any router. To add a route: a handler in [`rest`], next to its siblings, with its
//! OpenAPI description; its errors are the domain's, rendered by [`rest::error`]. A call of the gRPC API is a handler in
//! [`grpc`], and its errors are rendered by [`grpc::error`]. A tool for agents is a function in [`mcp`].

pub mod auth;
pub mod forward;
pub mod grpc;
pub mod mcp;
pub mod rest;
pub mod shell;
pub mod telemetry;

/// Routes whose bodies come or go piece by piece, for as long as that takes.
pub const STREAMED_ROUTES: &[&str] = &[
    "/v1/attachments",
    "/memory.v1.ResponseRecorderService/Record",
    "/memory.v1.ResponseRecorderService/Replay",
    "/memory.v1.AttachmentsService/UploadAttachment",
    "/memory.v1.AttachmentsService/DownloadAttachment",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
