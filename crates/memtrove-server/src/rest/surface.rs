//! Which contract a path belongs to: each fixes the shape of its errors, and clients compare them.

use super::error::{self, ApiError, RequestInfo};
use super::{files, mem0, memories, openspec};
use crate::{grpc, mcp};
use axum::response::{IntoResponse, Response};
use memtrove_core::files::{Code, path};
use memtrove_core::{Error, Resource};

/// A part of the API with errors of its own shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Conversations, and everything that belongs to nobody else.
    Conversations,
    /// Files, events and what is done with a whole user.
    Files,
    /// Memories, facts, the end of sessions, and the end of whatever is known of a user.
    Memories,
    /// The same memories in the words of the OpenSpec protocol.
    OpenSpec,
    /// The same memories in the words of mem0.
    Mem0,
    /// Conversations over gRPC.
    Grpc,
    /// All of it for agents.
    Mcp,
}

const FILES: [&str; 3] = ["/v1/tenants/", "/v1/admin/reindex", "/v1/admin/jobs/"];
const MEMORIES: [&str; 4] = ["/v1/memories", "/v1/facts", "/v1/sessions", "/v1/users"];
const OPENSPEC: &str = "/openspec/v1";

impl Surface {
    /// The surface of a path.
    pub fn of(path: &str) -> Self {
        if grpc::is_call(path) {
            Self::Grpc
        } else if path == "/v1/tenants" || FILES.iter().any(|prefix| path.starts_with(prefix)) {
            Self::Files
        } else if mem0::is_path(path) {
            Self::Mem0
        } else if MEMORIES.iter().any(|collection| is_of(collection, path)) {
            Self::Memories
        } else if is_of(OPENSPEC, path) {
            Self::OpenSpec
        } else if path == mcp::PATH {
            Self::Mcp
        } else {
            Self::Conversations
        }
    }

    /// An error in this surface's shape, for the request it belongs to.
    pub fn render(self, error: Error, request: RequestInfo<'_>) -> Response {
        if self != Self::Grpc {
            error::log(&error);
        }
        match self {
            Self::Conversations => error::render(error),
            Self::Files => files::error::render(error, request),
            Self::Memories => memories::error::render(error, request),
            Self::OpenSpec => openspec::error::render(error, request),
            Self::Mem0 => mem0::error::render(error, request),
            Self::Grpc => grpc::error::response(error),
            Self::Mcp => mcp::failure::response(error),
        }
    }

    /// Whether its errors are counted by operation.
    pub(crate) fn counts_operations(self) -> bool {
        matches!(self, Self::Memories | Self::OpenSpec | Self::Mem0)
    }
}

/// Whether a path is that of a collection, of a verb on it, or of something in it.
fn is_of(collection: &str, path: &str) -> bool {
    path.strip_prefix(collection).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
}

/// The answer for a path that leads nowhere.
pub fn no_such_route(path: &str) -> Response {
    let surface = Surface::of(path);
    let error = match surface {
        Surface::Files => empty_id(path),
        Surface::Grpc => return grpc::error::no_such_call(),
        Surface::Conversations | Surface::Memories | Surface::OpenSpec | Surface::Mem0 | Surface::Mcp => None,
    };
    ApiError(error.unwrap_or_else(|| Error::not_found(Resource::Route, path))).into_response()
}

/// Routes do not match an empty segment, so a path with an empty tenant or user ends up here.
fn empty_id(path: &str) -> Option<Error> {
    let mut segments = path.strip_prefix("/v1/tenants/")?.splitn(4, '/');
    let (tenant, users, user, _) = (segments.next()?, segments.next()?, segments.next()?, segments.next()?);
    if users != "users" {
        return None;
    }
    [tenant, user].into_iter().find_map(|id| path::scope_id(id).err().filter(is_segment_error))
}

fn is_segment_error(error: &Error) -> bool {
    error.code == Code::InvalidPathSegment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_alone_tells_the_surface() {
        for (path, surface) in [
            ("/v1/memories", Surface::Memories),
            ("/v1/memories:search", Surface::Memories),
            ("/v1/memories/0190b6c4/promote", Surface::Memories),
            ("/v1/memories/0190b6c4", Surface::Memories),
            ("/v1/memories/0190b6c4/", Surface::Mem0),
            ("/v1/memories/", Surface::Mem0),
            ("/memories", Surface::Mem0),
            ("/v3/memories/add/", Surface::Mem0),
            ("/v1/facts:query", Surface::Memories),
            ("/v1/sessions:end", Surface::Memories),
            ("/v1/sessions/s-1", Surface::Memories),
            ("/openspec/v1/knowledge/query", Surface::OpenSpec),
            ("/openspec/v1", Surface::OpenSpec),
            ("/openspec/v2/knowledge", Surface::Conversations),
            ("/v1/memoriesX", Surface::Conversations),
            ("/v1/conversations", Surface::Conversations),
            ("/memory.v1.EntriesService/AppendEntry", Surface::Grpc),
            ("/grpc.health.v1.Health/Check", Surface::Grpc),
            ("/v1/users:forget", Surface::Memories),
            ("/v1/tenants/t/users/u/memory", Surface::Files),
            ("/mcp", Surface::Mcp),
            ("/mcp/more", Surface::Conversations),
        ] {
            assert_eq!(Surface::of(path), surface, "{path}");
        }
    }
}
