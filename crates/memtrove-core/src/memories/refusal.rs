//! How the rules of memories say no, where several say the same.

use crate::{Code, Error, ErrorKind};

/// The word of the memories contract for a code, also for one that is not of its own.
pub fn contract_word(code: Code) -> &'static str {
    if code.is_of_memories() || code == Code::RouteNotFound {
        return code.as_str();
    }
    match code.kind() {
        ErrorKind::Malformed | ErrorKind::Unprocessable => "INVALID_REQUEST",
        ErrorKind::Unauthenticated => "UNAUTHORIZED",
        ErrorKind::Forbidden => "FORBIDDEN",
        ErrorKind::Missing => "MEMORY_NOT_FOUND",
        ErrorKind::NoSuchMethod => "METHOD_NOT_ALLOWED",
        ErrorKind::Conflict => "INVALID_STATE",
        ErrorKind::Stale => "ETAG_MISMATCH",
        ErrorKind::TooLarge => "REQUEST_TOO_LARGE",
        ErrorKind::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
        ErrorKind::RateLimited => "RATE_LIMITED",
        ErrorKind::NotImplemented => "NOT_IMPLEMENTED",
        ErrorKind::BadGateway | ErrorKind::Unavailable => "PROVIDER_ERROR",
        ErrorKind::Timeout => "TIMEOUT",
        ErrorKind::Internal => "INTERNAL_ERROR",
    }
}

impl Error {
    /// A member of the request is not what it should be.
    pub fn field(field: impl Into<String>, problem: impl AsRef<str>) -> Self {
        let field = field.into();
        Self::new(Code::InvalidRequest, format!("'{field}' {}", problem.as_ref())).with("field", field)
    }

    /// There is no such entry, as far as this caller may know.
    pub fn no_such_memory() -> Self {
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
}
