//! What handlers of the files surface read: the scope, the path, the query, the body.

use super::ApiError;
use crate::rest::App;
use crate::rest::extract::{header, is_json};
use crate::shell::access::Noted;
use crate::shell::request_id::RequestId;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use memtrove_core::files::{Code, FilePath, ScopedCaller, body, path};
use memtrove_core::identity::Principal;
use memtrove_core::{Error, Result, Timestamp};
use serde_json::{Map, Value};

/// Segments before the part of a path that differs: "", v1, tenants, {tenant}, users, {user}.
const BEFORE_OPERATION: usize = 6;

/// Somebody who may act on the scope of the path.
pub(in crate::rest) struct Scoped(pub ScopedCaller);

impl FromRequestParts<App> for Scoped {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        ScopedPrincipal::from_request_parts(parts, app).await.map(|ScopedPrincipal(caller, _)| Self(caller))
    }
}

/// Somebody who may act on the scope of the path, and with which credentials.
pub(in crate::rest) struct ScopedPrincipal(pub ScopedCaller, pub Principal);

impl FromRequestParts<App> for ScopedPrincipal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        // From the raw target: ids are decoded once, here, whatever the router does.
        let mut segments = parts.uri.path().split('/').skip(3);
        let (tenant, user) = (segments.next().unwrap_or_default(), segments.nth(1).unwrap_or_default());
        let authenticator = &app.0.authenticator;
        let tenant = match path::scope_id(tenant) {
            Ok(tenant) => tenant,
            Err(error) => {
                // Who is calling comes before what is wrong with the call.
                authenticator.authenticate(&parts.headers).await?;
                return Err(error.into());
            }
        };
        let principal = authenticator.authenticate_in(&parts.headers, &tenant).await?;
        let user = path::scope_id(user)?;
        let service_id = header(&parts.headers, "X-Service-Id")?;
        let request_id = RequestId::of(&parts.extensions);
        let caller = ScopedCaller::enter(&principal, user, service_id.as_deref(), request_id)?;
        let scope = &caller.scope;
        Noted::write(&parts.extensions, scope.tenant().as_str(), scope.user().as_str(), &caller.actor);
        Ok(Self(caller, principal))
    }
}

/// The file of a path: what comes after `/files/`, from the raw target.
pub(in crate::rest) struct Target(pub Result<FilePath>);

impl<S: Send + Sync> FromRequestParts<S> for Target {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let raw = parts.uri.path().splitn(BEFORE_OPERATION + 2, '/').nth(BEFORE_OPERATION + 1);
        // Kept for the handler, which asks for the role first.
        Ok(Self(FilePath::from_encoded(raw.unwrap_or_default())))
    }
}

/// The parameters of a query; a name may stand there more than once.
pub(in crate::rest) struct QueryParameters(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        // Bytes that are no text become replacement characters, which no rule below takes for anything else.
        Ok(Self(serde_urlencoded::from_str(query).unwrap_or_default()))
    }
}

impl QueryParameters {
    /// A parameter that may stand there once.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        let mut values = self.0.iter().filter(|(given, _)| given == name).map(|(_, value)| value);
        match (values.next(), values.next()) {
            (value, None) => Ok(value.cloned()),
            (_, Some(_)) => Err(Error::invalid(name, "was given more than once")),
        }
    }

    /// Refuses parameters of the contract that nothing is done about yet: a caller who sends one counts on it.
    pub fn refuse_unsupported(&self, names: &[&str]) -> Result<()> {
        match self.0.iter().find(|(given, _)| names.contains(&given.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!("'{name}' is not supported yet: leave it out");
                Err(Error::new(Code::InvalidRequest, message).with_text("field", name))
            }
        }
    }

    /// A whole number; whatever is wrong with it is an invalid limit.
    pub fn limit(&self, name: &str) -> Result<Option<i64>> {
        let wrong = || Error::new(Code::InvalidLimit, format!("'{name}' must be one whole number"));
        let text = self.text(name).map_err(|_| wrong())?;
        text.map(|text| text.parse().map_err(|_| wrong())).transpose()
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Result<Option<i64>> {
        let read = |text: String| text.parse().map_err(|_| Error::invalid(name, "must be a whole number"));
        self.text(name)?.map(read).transpose()
    }

    /// An instant.
    pub fn instant(&self, name: &str) -> Result<Option<Timestamp>> {
        let read = |text: String| {
            Timestamp::parse(&text)
                .ok_or_else(|| Error::invalid(name, "must be an RFC 3339 timestamp with an offset"))
        };
        self.text(name)?.filter(|text| !text.is_empty()).map(read).transpose()
    }
}

/// The bytes of a JSON body, or what is wrong with them: the handler asks once it has looked at all that comes before.
pub(in crate::rest) struct JsonBody(Result<Bytes>);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        Ok(Self(match Bytes::from_request(request, state).await {
            Ok(bytes) if bytes.is_empty() || is_json => Ok(bytes),
            Ok(_) => Err(Error::UNSUPPORTED_MEDIA_TYPE),
            // Whether the limit was hit is the shell's to know, and then it answers in our place.
            Err(_) => Err(Error::new(Code::InvalidJson, "the body could not be read to its end")),
        }))
    }
}

impl JsonBody {
    /// The body as a value.
    pub fn value(self) -> Result<Value> {
        body::parse(&self.0?)
    }

    /// The body as an object.
    pub fn object(self) -> Result<Map<String, Value>> {
        body::object(&self.0?)
    }

    /// The body as an object; an absent one has no members.
    pub fn optional_object(self) -> Result<Map<String, Value>> {
        let bytes = self.0?;
        if bytes.trim_ascii().is_empty() { Ok(Map::new()) } else { body::object(&bytes) }
    }
}
