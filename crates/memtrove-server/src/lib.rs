//! Memtrove over HTTP: REST, gRPC, MCP, identity, telemetry, and the shell every request passes through.
//!
//! A handler decodes, calls one function of `memtrove-service`, which decides what the request means, and encodes.
//! [`shell`] is what all routes share (request ids, limits, timeouts, metrics, the server loop); it knows none of them, so
//! that it fits around any router. To add a route, write a handler in [`rest`] with its OpenAPI description; its errors are
//! the domain's, rendered by [`rest::error`]. A call of the gRPC API is a handler in [`grpc`], and its errors are rendered by
//! [`grpc::error`]. A tool for agents is a function in [`mcp`].

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

/// Routes that only read, though they are posted to: where there is no room for their answer, nothing was done.
pub const READING_ROUTES: &[&str] = &[
    "/v1/conversations/search",
    "/v1/admin/conversations/search",
    "/v1/tenants/{tenant_id}/users/{user_id}/context:assemble",
    "/v1/tenants/{tenant_id}/users/{user_id}/events:search",
    "/v1/tenants/{tenant_id}/users/{user_id}/audit:reconstruct",
    "/v1/memories:list",
    "/v1/memories:search",
    "/v1/facts:query",
    "/openspec/v1/knowledge/query",
    "/v3/memories/",
    "/v3/memories/search/",
    "/search",
    "/memory.v1.ConversationsService/ListConversations",
    "/memory.v1.ConversationsService/GetConversation",
    "/memory.v1.ConversationsService/ListForks",
    "/memory.v1.ConversationMembershipsService/ListMemberships",
    "/memory.v1.OwnershipTransfersService/ListOwnershipTransfers",
    "/memory.v1.OwnershipTransfersService/GetOwnershipTransfer",
    "/memory.v1.EntriesService/ListEntries",
    "/memory.v1.SearchService/SearchConversations",
    "/memory.v1.SearchService/ListUnindexedEntries",
];
