//! Which contract a path belongs to: each fixes the shape of its errors, and clients compare them.

use super::error::ApiError;
use super::files::FilesError;
use axum::response::{IntoResponse, Response};
use memloom_core::files::{Code, path};
use memloom_core::{Error, Resource};

/// A part of the API with errors of its own shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Conversations, and everything that belongs to nobody else.
    Conversations,
    /// Files, events and what is done with a whole user.
    Files,
}

const FILES: [&str; 4] = ["/v1/tenants/", "/v1/admin/reindex", "/v1/admin/jobs/", "/v1/users:forget"];

impl Surface {
    /// The surface of a path.
    pub fn of(path: &str) -> Self {
        let of_files = path == "/v1/tenants" || FILES.iter().any(|prefix| path.starts_with(prefix));
        if of_files { Self::Files } else { Self::Conversations }
    }

    /// An error in this surface's shape.
    pub fn answer(self, error: Error) -> Response {
        match self {
            Self::Conversations => ApiError(error).into_response(),
            Self::Files => FilesError(error).into_response(),
        }
    }
}

/// The answer for a path that leads nowhere.
pub fn no_such_route(path: &str) -> Response {
    let surface = Surface::of(path);
    let error = match surface {
        Surface::Files => empty_id(path),
        Surface::Conversations => None,
    };
    surface.answer(error.unwrap_or_else(|| Error::not_found(Resource::Route, path)))
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
    matches!(error, Error::Refused(refusal) if refusal.code == Code::InvalidPathSegment)
}
