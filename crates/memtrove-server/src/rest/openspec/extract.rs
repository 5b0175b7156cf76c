//! What handlers of the OpenSpec provider read.

use super::OpenSpecError;
use crate::rest::App;
use crate::rest::memories::extract::caller;
use axum::extract::FromRequestParts;
use http::request::Parts;
use memtrove_core::memories::MemoryCaller;

pub(super) use crate::rest::memories::extract::{Id, JsonBody, Parameters};

/// Whoever presented valid credentials, in the memories of its tenant.
pub(in crate::rest) struct Called(pub MemoryCaller);

impl FromRequestParts<App> for Called {
    type Rejection = OpenSpecError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, OpenSpecError> {
        Ok(Self(caller(&parts.headers, app).await?))
    }
}
