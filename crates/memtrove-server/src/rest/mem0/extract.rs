//! What handlers of the mem0 API read. Its clients send their API key as `Authorization: Token …`.

use super::ApiError;
use crate::auth::X_API_KEY;
use crate::rest::App;
use crate::rest::memories::extract::caller;
use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use memtrove_core::memories::MemoryCaller;
use memtrove_core::{Error, Result};
use std::borrow::Cow;

pub(super) use crate::rest::memories::extract::{Id, JsonBody, Parameters};

/// Whoever presented valid credentials, in the memories of its tenant.
pub(in crate::rest) struct Mem0Caller(pub MemoryCaller);

impl FromRequestParts<App> for Mem0Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let headers = with_key(&parts.headers)?;
        Ok(Self(caller(&headers, &parts.extensions, app).await?))
    }
}

/// The headers with a token of mem0 where API keys stand. Two keys that differ are none.
fn with_key(headers: &HeaderMap) -> Result<Cow<'_, HeaderMap>> {
    const SCHEME: &str = "token ";
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return Ok(Cow::Borrowed(headers)) };
    let Some((scheme, key)) = value.as_bytes().split_at_checked(SCHEME.len()) else {
        return Ok(Cow::Borrowed(headers));
    };
    if !scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) {
        return Ok(Cow::Borrowed(headers));
    }
    let key = HeaderValue::from_bytes(key.trim_ascii()).map_err(|_| Error::UNAUTHORIZED)?;
    if headers.get(X_API_KEY).is_some_and(|other| *other != key) {
        return Err(Error::UNAUTHORIZED);
    }
    let mut headers = headers.clone();
    headers.remove(AUTHORIZATION);
    headers.insert(X_API_KEY, key);
    Ok(Cow::Owned(headers))
}
