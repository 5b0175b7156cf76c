//! What handlers read: the caller, ids in paths, queries and bodies. Whatever is wrong becomes the contract's error.

use super::App;
use super::error::ApiError;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use memtrove_core::identity::{Caller, Principal};
use memtrove_core::{ConversationId, EntryId, Error, Resource, Result, TransferId, parse_uuid};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

/// Whoever presented valid credentials; for admin and indexer endpoints.
pub(super) struct Authenticated(pub Principal);

impl FromRequestParts<App> for Authenticated {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self(app.0.authenticator.authenticate(&parts.headers).await?))
    }
}

/// A user, acting directly or through an agent; for user endpoints.
pub(super) struct User(pub Caller);

impl FromRequestParts<App> for User {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self(app.0.authenticator.authenticate(&parts.headers).await?.into_caller()?))
    }
}

/// The parameters of a path, decoded once. A path that cannot be decoded names nothing.
pub(super) struct Segments<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(_) => Err(Error::not_found(Resource::Route, parts.uri.path()).into()),
        }
    }
}

/// A conversation's id in a path.
pub(super) fn conversation_id(text: &str) -> Result<ConversationId> {
    in_path(Resource::Conversation, text).map(ConversationId)
}

/// An entry's id in a path.
pub(super) fn entry_id(text: &str) -> Result<EntryId> {
    in_path(Resource::Entry, text).map(EntryId)
}

/// A transfer's id in a path.
pub(super) fn transfer_id(text: &str) -> Result<TransferId> {
    in_path(Resource::Transfer, text).map(TransferId)
}

/// What is no UUID names nothing: 404, not 400.
fn in_path(resource: Resource, text: &str) -> Result<Uuid> {
    parse_uuid(text).ok_or_else(|| Error::not_found(resource, text))
}

/// The query of a request, as a struct of optional texts. Names that are not in it are ignored.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        serde_urlencoded::from_str(query).map(Self).map_err(|error| {
            ApiError(Error::invalid("query", format!("the query string is not usable: {error}")))
        })
    }
}

/// A text that counts as absent when it is empty; NUL is refused.
pub(super) fn given(field: &str, value: Option<String>) -> Result<Option<String>> {
    match value.filter(|value| !value.is_empty()) {
        Some(value) if value.contains('\0') => Err(Error::invalid(field, "must not contain NUL characters")),
        value => Ok(value),
    }
}

/// One cursor out of its aliases: they may repeat each other, not contradict.
pub(super) fn cursor(
    aliases: impl IntoIterator<Item = (&'static str, Option<String>)>,
) -> Result<Option<String>> {
    let mut chosen: Option<String> = None;
    for (name, value) in aliases {
        let Some(value) = given(name, value)? else { continue };
        match &chosen {
            Some(other) if *other != value => {
                return Err(Error::invalid(name, "two different cursors were given; send one"));
            }
            _ => chosen = Some(value),
        }
    }
    Ok(chosen)
}

/// A UUID in a query.
pub(super) fn uuid(field: &str, value: Option<String>) -> Result<Option<Uuid>> {
    given(field, value)?
        .map(|text| parse_uuid(&text).ok_or_else(|| Error::invalid(field, "must be a UUID")))
        .transpose()
}

/// A whole number in a query. The service knows its bounds.
pub(super) fn number(field: &str, value: Option<String>) -> Result<Option<i64>> {
    given(field, value)?
        .map(|text| text.parse().map_err(|_| Error::invalid(field, "must be a whole number")))
        .transpose()
}

/// A yes or no in a query.
pub(super) fn flag(field: &str, value: Option<String>) -> Result<bool> {
    match given(field, value)?.as_deref() {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(Error::invalid(field, "must be true or false")),
    }
}

/// A word of the API in a query.
pub(crate) fn word<T>(
    field: &str,
    value: Option<String>,
    parse: fn(&str) -> Option<T>,
    words: &[&str],
) -> Result<Option<T>> {
    given(field, value)?
        .map(|text| {
            parse(&text).ok_or_else(|| Error::invalid(field, format!("must be one of {}", words.join(", "))))
        })
        .transpose()
}

/// The bytes of a JSON body.
pub(super) struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        match Bytes::from_request(request, state).await {
            Ok(bytes) if bytes.is_empty() || is_json => Ok(Self(bytes)),
            Ok(_) => Err(Error::UNSUPPORTED_MEDIA_TYPE.into()),
            // Whether the limit was hit is the shell's to know, and then it answers in our place.
            Err(_) => Err(Error::bad_request("the body could not be read to its end").into()),
        }
    }
}

impl Body {
    /// The body, which must be a JSON object.
    pub fn object<T: DeserializeOwned>(&self) -> Result<T> {
        if self.0.is_empty() {
            return Err(Error::invalid("body", "a JSON body is required"));
        }
        read("body", &self.0, b'{', "an object")
    }

    /// The body, which may be missing or null.
    pub fn optional_object<T: DeserializeOwned + Default>(&self) -> Result<T> {
        match self.0.trim_ascii() {
            b"" | b"null" => Ok(T::default()),
            _ => self.object(),
        }
    }

    /// The body, which must be a JSON array of objects.
    pub fn objects<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        if self.0.is_empty() {
            return Err(Error::invalid("body", "a JSON body is required"));
        }
        let items: Vec<&RawValue> = read("body", &self.0, b'[', "an array")?;
        let object = |(at, item): (usize, &&RawValue)| {
            read(&format!("[{at}]"), item.get().as_bytes(), b'{', "an object")
        };
        items.iter().enumerate().map(object).collect()
    }
}

/// Reads JSON of one kind. A derived reader would also take an array for an object, member by member.
fn read<'a, T: Deserialize<'a>>(field: &str, json: &'a [u8], begins: u8, kind: &str) -> Result<T> {
    match serde_json::from_slice(json) {
        Err(error) if error.is_syntax() || error.is_eof() => {
            Err(Error::invalid(field, format!("is not valid JSON: {error}")))
        }
        _ if json.trim_ascii_start().first() != Some(&begins) => {
            Err(Error::invalid(field, format!("must be {kind}")))
        }
        Ok(value) => Ok(value),
        Err(error) => Err(Error::invalid(wrong_member::<T>(field, json), error.to_string())),
    }
}

/// Reads JSON again to find the member that is wrong: only a refused request pays for that.
fn wrong_member<'a, T: Deserialize<'a>>(field: &str, json: &'a [u8]) -> String {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let path = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => String::new(),
        Err(error) => error.path().to_string(),
    };
    match (field, path.as_str()) {
        (field, "" | ".") => field.to_owned(),
        ("body", path) => path.to_owned(),
        (field, path) => format!("{field}.{path}"),
    }
}

/// Whether a body is JSON by its media type; one without a type is taken to be.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json" || (essence.contains('/') && essence.ends_with("+json"))
}

/// Whether the caller would rather have events as they happen.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains("text/event-stream")))
}

/// The text of a header that may be sent once.
pub(crate) fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Error::invalid(name, "must be UTF-8")),
        },
        (Some(_), Some(_)) => Err(Error::invalid(name, "was sent more than once: send it once")),
    }
}
