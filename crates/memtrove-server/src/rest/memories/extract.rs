//! What handlers of the memories surface read: the caller, ids in paths, query parameters. Bodies are read as those of files.

use super::ApiError;
use crate::rest::App;
use crate::shell::request_id::RequestId;
use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use http::{Extensions, HeaderMap};
use memtrove_core::Result;
use memtrove_core::memories::MemoryCaller;
use std::convert::Infallible;

pub(in crate::rest) use crate::rest::files::extract::JsonBody;

/// Whoever presented valid credentials, in the memories of its tenant.
pub(in crate::rest) struct Called(pub MemoryCaller);

impl FromRequestParts<App> for Called {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self(caller(&parts.headers, &parts.extensions, app).await?))
    }
}

/// Brings the sender of a request to the memories of its tenant.
pub(in crate::rest) async fn caller(
    headers: &HeaderMap,
    extensions: &Extensions,
    app: &App,
) -> Result<MemoryCaller> {
    let principal = app.0.authenticator.authenticate(headers).await?;
    Ok(app.0.services.memories.caller(&principal, RequestId::of(extensions)))
}

/// The id of an entry in a path. What cannot be decoded names nothing, as does everything else that is no UUID.
pub(in crate::rest) struct Id(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self(Path::from_request_parts(parts, state).await.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

/// The parameters of a query, decoded; a name may stand there more than once.
pub(in crate::rest) struct Parameters(pub Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(decoded(query)))
    }
}

/// The names and values of a query string. What is no text becomes a NUL, which every rule refuses: mended, it would name
/// something else.
fn decoded(query: &str) -> Vec<(String, String)> {
    let text = |part: &str| {
        let spaced = part.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&spaced).decode_utf8();
        decoded.map_or_else(|_| "\0".to_owned(), |text| text.into_owned())
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}
