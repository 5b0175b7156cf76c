//! What can go wrong, and what the service says about it.

use crate::files::ETag;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

/// An error of somebody else, kept as the cause.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a call returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// This much of a body is kept for people to look at.
const RAW_BODY_CHARS: usize = 1024;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The service refused it, and says why.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// No answer came, or not all of it: the connection failed or it took too long. A change may or may not have happened.
    #[error("{operation}: no answer from the service: {}", chain(.source.as_ref()))]
    Transport {
        /// The operation that was called.
        operation: &'static str,
        /// What failed.
        source: BoxError,
    },
    /// An answer of success that is not what it should be: empty, or no JSON of this shape.
    #[error("{operation}: the answer could not be read: {source}")]
    Decode {
        /// The operation that was called.
        operation: &'static str,
        /// What is wrong with it.
        source: BoxError,
        /// The beginning of the answer.
        raw_body: String,
    },
    /// The call itself is wrong; nothing was sent.
    #[error("{0}")]
    InvalidInput(String),
    /// The function that was to make an update failed; nothing was written.
    #[error("the update was given up: {0}")]
    Update(#[source] BoxError),
}

impl Error {
    /// A call that cannot be sent, and why.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidInput(message.into())
    }

    /// What the function of an `update_with_retry` fails with when something of its own went wrong.
    pub fn update(cause: impl Into<BoxError>) -> Self {
        Self::Update(cause.into())
    }

    pub(crate) fn transport(operation: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Transport { operation, source: source.into() }
    }

    pub(crate) fn decode(operation: &'static str, source: impl Into<BoxError>, body: &[u8]) -> Self {
        Self::Decode { operation, source: source.into(), raw_body: beginning(&String::from_utf8_lossy(body)) }
    }

    /// What the service said, if it said something.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the service says that there is no such thing (404).
    pub fn is_not_found(&self) -> bool {
        self.api().is_some_and(ApiError::is_not_found)
    }

    /// Whether somebody else changed the file first (412 `ETAG_MISMATCH`).
    pub fn is_conflict(&self) -> bool {
        self.api().is_some_and(ApiError::is_conflict)
    }

    /// The version that the file is at, where a conflict says so.
    pub fn latest_etag(&self) -> Option<ETag> {
        self.api().and_then(ApiError::latest_etag)
    }
}

/// An error with its causes, which libraries do not say in their own texts.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// A refusal of the service. All four shapes that its surfaces have become this one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code} ({}): {message}", .status.as_u16())]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// The constant of the error catalogue; `HTTP_` and the status where the answer names none.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
    /// The request, as the service's log knows it.
    pub request_id: Option<String>,
    /// What else the service says about it.
    pub details: Map<String, Value>,
    /// The first 1024 characters of the answer.
    pub raw_body: String,
}

impl ApiError {
    /// Whether there is no such thing (404).
    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Whether somebody else changed the file first (412 `ETAG_MISMATCH`).
    pub fn is_conflict(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED && self.code == "ETAG_MISMATCH"
    }

    /// The version that the file is at, where a conflict says so.
    pub fn latest_etag(&self) -> Option<ETag> {
        self.details.get("latest_etag").and_then(Value::as_str).map(ETag::from)
    }

    /// Reads an answer that is no success.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let said = ErrorBody::read(body).unwrap_or_else(|| ErrorBody::nothing(status, &text));
        let header = || headers.get("x-request-id")?.to_str().ok().map(str::to_owned);
        Self {
            status,
            code: said.code,
            message: said.message,
            request_id: said.request_id.or_else(header),
            details: said.details,
            raw_body: beginning(&text),
        }
    }
}

/// What an error's body says, whichever surface it comes from.
struct ErrorBody {
    code: String,
    message: String,
    request_id: Option<String>,
    details: Map<String, Value>,
}

impl ErrorBody {
    fn read(body: &[u8]) -> Option<Self> {
        let Ok(Value::Object(mut body)) = serde_json::from_slice(body) else { return None };
        match body.remove("error")? {
            Value::Object(error) => Self::nested(error, &body),
            Value::String(sentence) => Self::flat(sentence, body),
            _ => None,
        }
    }

    /// Files, memories and the knowledge protocol: everything in `error`. The last has a number for a `code` and the
    /// constant in `name`.
    fn nested(mut error: Map<String, Value>, body: &Map<String, Value>) -> Option<Self> {
        let text = |members: &Map<String, Value>, name: &str| members.get(name)?.as_str().map(str::to_owned);
        let request_id = ["request_id", "requestId"];
        Some(Self {
            code: text(&error, "name").or_else(|| text(&error, "code"))?,
            message: text(&error, "message")?,
            request_id: request_id.iter().find_map(|name| text(&error, name).or_else(|| text(body, name))),
            details: object(error.remove("details")),
        })
    }

    /// Conversations: a sentence in `error`, a `code`, and in `details` what the sentence leaves out. A kind of search that
    /// is not there has its code in `error` and the sentence in `message`.
    fn flat(sentence: String, mut body: Map<String, Value>) -> Option<Self> {
        let Some(Value::String(code)) = body.remove("code") else {
            let Some(Value::String(message)) = body.remove("message") else { return None };
            return Some(Self { code: sentence, message, request_id: None, details: body });
        };
        let mut details = object(body.remove("details"));
        let message = match explanation(&details) {
            Some(more) => format!("{sentence}: {more}"),
            None => sentence,
        };
        // Some refusals name the one thing that stands in the way beside `details`.
        details.extend(body);
        Some(Self { code, message, request_id: None, details })
    }

    fn nothing(status: StatusCode, body: &str) -> Self {
        let message = match body.trim() {
            "" => status.canonical_reason().unwrap_or("no reason given").to_owned(),
            text => beginning(text),
        };
        let code = format!("HTTP_{}", status.as_u16());
        Self { code, message, request_id: None, details: Map::new() }
    }
}

/// What the details of a conversation's error say in words.
fn explanation(details: &Map<String, Value>) -> Option<String> {
    if let Some(message) = details.get("message").and_then(Value::as_str) {
        return Some(message.to_owned());
    }
    let violations = details.get("violations")?.as_array()?;
    let said = violations.iter().filter_map(|violation| {
        Some(format!("{} {}", violation.get("field")?.as_str()?, violation.get("message")?.as_str()?))
    });
    Some(said.collect::<Vec<_>>().join(", "))
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(RAW_BODY_CHARS).collect()
}

#[cfg(test)]
mod tests;
