//! How the memories surface says no: a code of its contract, a sentence, and what a program needs to go on.

use serde_json::{Map, Value};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $retryable:literal;)*) => {
        /// The codes of the memories contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The contract's word for it.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// The HTTP status the contract gives it.
            pub fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// Whether the identical request may succeed later.
            pub fn retryable(self) -> bool {
                match self { $(Code::$name => $retryable,)* }
            }
        }
    };
}

codes! {
    /// Malformed JSON, a type, a range, an unknown member of a filter, a reserved key.
    InvalidRequest = "INVALID_REQUEST", 400, false;
    /// A layer that is missing, unknown or disabled.
    InvalidLayer = "INVALID_LAYER", 400, false;
    /// A kind that is unknown or not allowed in its layer.
    InvalidKind = "INVALID_KIND", 400, false;
    /// An identifier that a layer needs.
    MissingIdentifier = "MISSING_IDENTIFIER", 400, false;
    /// A cursor that is malformed, foreign or for another query.
    InvalidCursor = "INVALID_CURSOR", 400, false;
    /// No or bad credential.
    Unauthorized = "UNAUTHORIZED", 401, false;
    /// Identifiers the caller may not use, or a role it does not hold.
    Forbidden = "FORBIDDEN", 403, false;
    /// Unknown, deleted, expired, of another tenant, or not visible: never tells which.
    MemoryNotFound = "MEMORY_NOT_FOUND", 404, false;
    /// The key was used for another request.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT", 409, false;
    /// The state of the entry does not allow it.
    InvalidState = "INVALID_STATE", 409, false;
    /// The entry is not at the version the caller expects.
    EtagMismatch = "ETAG_MISMATCH", 412, false;
    /// The body is over the byte cap.
    RequestTooLarge = "REQUEST_TOO_LARGE", 413, false;
    /// The body is of a type this endpoint does not read.
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", 415, false;
    /// Content with too many characters.
    ContentTooLong = "CONTENT_TOO_LONG", 422, false;
    /// A query with too many characters.
    QueryTooLong = "QUERY_TOO_LONG", 422, false;
    /// Metadata with too many bytes.
    MetadataTooLarge = "METADATA_TOO_LARGE", 422, false;
    /// A batch with too many items.
    BatchTooLarge = "BATCH_TOO_LARGE", 422, false;
    /// Too many requests.
    RateLimited = "RATE_LIMITED", 429, true;
    /// A provider is not configured, or cannot hold what it is given.
    ConfigurationError = "CONFIGURATION_ERROR", 500, false;
    /// Unexpected.
    InternalError = "INTERNAL_ERROR", 500, false;
    /// A capability that is switched off or absent.
    NotImplemented = "NOT_IMPLEMENTED", 501, false;
    /// A provider failed for good.
    ProviderFailed = "PROVIDER_ERROR", 502, false;
    /// A provider failed for now.
    ProviderUnavailable = "PROVIDER_ERROR", 503, true;
    /// No embedding could be made; nothing was stored.
    EmbeddingFailed = "EMBEDDING_FAILED", 503, true;
    /// As [`Code::EmbeddingFailed`], and the same request would fail again: whoever makes embeddings refused it for good.
    EmbeddingRefused = "EMBEDDING_FAILED", 503, false;
    /// The deadline of the request.
    Timeout = "TIMEOUT", 504, true;
}

/// A refusal in the words of the memories contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// What went wrong, for programs.
    pub code: Code,
    /// What went wrong, for people: never stored content.
    pub message: String,
    /// What a program needs to go on.
    pub details: Map<String, Value>,
}

impl Refusal {
    /// A refusal without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Map::new() }
    }

    /// A member of the request is not what it should be.
    pub fn field(field: impl Into<String>, problem: impl AsRef<str>) -> Self {
        let field = field.into();
        Self::new(Code::InvalidRequest, format!("'{field}' {}", problem.as_ref())).with("field", field)
    }

    /// There is no such entry, as far as this caller may know.
    pub fn not_found() -> Self {
        Self::new(Code::MemoryNotFound, "there is no such memory")
    }

    /// A text or a list that is too long; `code` says which.
    pub fn too_long(code: Code, max: usize, actual: usize) -> Self {
        let (what, name) = match code {
            Code::ContentTooLong => ("the content", "maxLength"),
            Code::QueryTooLong => ("the query", "maxLength"),
            Code::MetadataTooLarge => ("the metadata", "maxBytes"),
            _ => ("the batch", "maxItems"),
        };
        let unit = match code {
            Code::MetadataTooLarge => "bytes",
            Code::BatchTooLarge => "items",
            _ => "characters",
        };
        let refusal = Self::new(code, format!("{what} must have at most {max} {unit}, this has {actual}"));
        let refusal = refusal.with(name, max);
        if name == "maxLength" { refusal.with("actualLength", actual) } else { refusal }
    }

    /// Adds a detail.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}
