//! The one error of the domain: a code of a closed list, a sentence, and what a program needs to go on. Each surface renders it
//! in the shape its contract fixes, from a table of its own.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::{Display, Formatter};
use uuid::Uuid;

/// What every rule and every use case answers with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is not what it should be: mend it.
    Malformed,
    /// It is well-formed, but cannot be applied or its result may not be stored.
    Unprocessable,
    /// No valid credential came with it.
    Unauthenticated,
    /// The caller is known but may not do this.
    Forbidden,
    /// What it names is not there, or not for this caller.
    Missing,
    /// The route exists, the method does not.
    NoSuchMethod,
    /// The state of things does not allow it.
    Conflict,
    /// It was made for another version: read again and rebase.
    Stale,
    /// It is larger than the limit.
    TooLarge,
    /// Its body is of a type that this endpoint does not read.
    UnsupportedMediaType,
    /// The caller asks for more than its share: wait.
    RateLimited,
    /// It asks for a part that this server does not have.
    NotImplemented,
    /// Another server failed, and waiting does not help.
    BadGateway,
    /// Something that is needed does not work now; nothing was done.
    Unavailable,
    /// It took too long, and may have been carried out.
    Timeout,
    /// A defect, here or in the configuration.
    Internal,
}

macro_rules! codes {
    ($($list:ident: $(#[$list_doc:meta])* { $($(#[$doc:meta])* $name:ident = $word:literal, $kind:ident;)* })*) => {
        /// What went wrong, for programs: a closed list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($($(#[$doc])* $name,)*)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Code] = &[$($(Code::$name,)*)*];
            $($(#[$list_doc])* pub const $list: &[Code] = &[$(Code::$name,)*];)*

            /// The word for it in the files and memories contracts. A contract that has another word has it in its own table.
            pub fn as_str(self) -> &'static str {
                match self { $($(Code::$name => $word,)*)* }
            }

            /// What a caller can do about it.
            pub fn kind(self) -> ErrorKind {
                match self { $($(Code::$name => ErrorKind::$kind,)*)* }
            }
        }
    };
}

codes! {
    SHARED: /// What any surface may answer with.
    {
        /// A field breaks a constraint: length, range, enum, malformed cursor.
        Invalid = "INVALID_REQUEST", Malformed;
        /// The request is well-formed but makes no sense.
        BadRequest = "INVALID_REQUEST", Malformed;
        /// An admin call came without the justification this deployment requires.
        JustificationRequired = "INVALID_REQUEST", Malformed;
        /// No or no valid credential.
        Unauthorized = "UNAUTHENTICATED", Unauthenticated;
        /// The caller is known but may not do this.
        Forbidden = "FORBIDDEN", Forbidden;
        /// The caller is known, but not in the tenant it names.
        TenantForbidden = "TENANT_FORBIDDEN", Forbidden;
        /// A caller uses more than its quota allows.
        QuotaExceeded = "QUOTA_EXCEEDED", RateLimited;
        /// What the request names is not there, or not for this caller.
        NotFound = "NOT_FOUND", Missing;
        /// No route has this path.
        RouteNotFound = "ROUTE_NOT_FOUND", Missing;
        /// The route exists, the method does not.
        MethodNotAllowed = "METHOD_NOT_ALLOWED", NoSuchMethod;
        /// The state of the thing does not allow it.
        Conflict = "CONFLICT", Conflict;
        /// A second pending ownership transfer for one tree.
        TransferAlreadyPending = "CONFLICT", Conflict;
        /// The body is larger than the limit.
        TooLarge = "PAYLOAD_TOO_LARGE", TooLarge;
        /// An attachment is larger than the limit.
        FileTooLarge = "PAYLOAD_TOO_LARGE", TooLarge;
        /// An attachment that an entry refers to lives as long as the entry.
        AttachmentLinked = "CONFLICT", Conflict;
        /// An attachment whose bytes are still on their way.
        UploadInProgress = "CONFLICT", Conflict;
        /// An attachment whose source could not be fetched.
        DownloadFailed = "CONFLICT", Unprocessable;
        /// Responses are not recorded on this server.
        RecorderDisabled = "CONFLICT", Conflict;
        /// Another node has what was asked for and does not answer.
        PeerUnreachable = "DEPENDENCY_UNAVAILABLE", BadGateway;
        /// The body is of a type this endpoint does not read.
        UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", UnsupportedMediaType;
        /// The request took longer than the server allows.
        Timeout = "TIMEOUT", Timeout;
        /// The requested search type is not available here.
        SearchTypeUnavailable = "NOT_IMPLEMENTED", NotImplemented;
        /// No search type is available at all.
        SearchDisabled = "NOT_IMPLEMENTED", NotImplemented;
        /// Search by meaning failed, because the query could not be embedded.
        SemanticUnavailable = "DEPENDENCY_UNAVAILABLE", Unavailable;
        /// Admin statistics need a Prometheus server and none is configured.
        PrometheusNotConfigured = "NOT_IMPLEMENTED", NotImplemented;
        /// The configured Prometheus server did not answer the query.
        PrometheusUnavailable = "DEPENDENCY_UNAVAILABLE", Unavailable;
        /// Too much work is queued; try again.
        Overloaded = "DEPENDENCY_UNAVAILABLE", Unavailable;
        /// The store cannot take the work now: disk full, read-only, unreachable. Nothing was written.
        StorageUnavailable = "DEPENDENCY_UNAVAILABLE", Unavailable;
        /// The identity provider does not answer, so no token can be checked.
        IdentityProviderUnavailable = "DEPENDENCY_UNAVAILABLE", Unavailable;
        /// A defect.
        Internal = "UNHANDLED_ERROR", Internal;
    }
    SHARED_BY_FILES_AND_MEMORIES: /// What both contracts have in the same words.
    {
        /// JSON of the wrong shape: a type, a range, an unknown member of a filter, a reserved key.
        InvalidRequest = "INVALID_REQUEST", Malformed;
        /// The key was used for another request.
        IdempotencyConflict = "IDEMPOTENCY_CONFLICT", Conflict;
        /// The thing is not at the version the caller expects.
        EtagMismatch = "ETAG_MISMATCH", Stale;
    }
    FILES: /// What the files contract alone has.
    {
        /// The body is no JSON, or is nested too deeply.
        InvalidJson = "INVALID_JSON", Malformed;
        /// A file path breaks the rules of paths.
        InvalidPath = "INVALID_PATH", Malformed;
        /// A tenant or user id breaks the rules of ids.
        InvalidPathSegment = "INVALID_PATH_SEGMENT", Malformed;
        /// A prefix to list by contains `..`.
        InvalidPathPrefix = "INVALID_PATH_PREFIX", Malformed;
        /// A limit is no number, or out of range.
        InvalidLimit = "INVALID_LIMIT", Malformed;
        /// A mutation came without `If-Match`.
        MissingIfMatch = "MISSING_IF_MATCH", Malformed;
        /// A patch with neither operations nor edits.
        InvalidPatch = "INVALID_PATCH", Malformed;
        /// A text edit of the wrong shape.
        InvalidTextPatch = "INVALID_TEXT_PATCH", Malformed;
        /// An assembly that names no files.
        MissingAssemblyTargets = "MISSING_ASSEMBLY_TARGETS", Malformed;
        /// An assembly that names files and a profile.
        InvalidAssemblyMode = "INVALID_ASSEMBLY_MODE", Malformed;
        /// An event of the wrong shape.
        InvalidEvent = "INVALID_EVENT", Malformed;
        /// A number of days out of range.
        InvalidRetentionValue = "INVALID_RETENTION_VALUE", Malformed;
        /// Some of the three numbers of days are missing.
        IncompleteRetentionRules = "INCOMPLETE_RETENTION_RULES", Malformed;
        /// All of them are.
        MissingRetentionRules = "MISSING_RETENTION_RULES", Malformed;
        /// Days and a profile at once.
        InvalidRetentionMode = "INVALID_RETENTION_MODE", Malformed;
        /// An `Idempotency-Key` that is too long, empty or not visible ASCII.
        InvalidIdempotencyKey = "INVALID_IDEMPOTENCY_KEY", Malformed;
        /// There is no such file.
        DocumentNotFound = "DOCUMENT_NOT_FOUND", Missing;
        /// There is no such audit record.
        AuditNotFound = "AUDIT_NOT_FOUND", Missing;
        /// There is no such job.
        JobNotFound = "JOB_NOT_FOUND", Missing;
        /// There is a file already where another is to be moved.
        DocumentExists = "DOCUMENT_EXISTS", Conflict;
        /// The audit trail cannot prove the version that was asked for.
        AuditChainIncomplete = "AUDIT_CHAIN_INCOMPLETE", Conflict;
        /// An envelope that breaks the rules of envelopes.
        InvalidDocument = "INVALID_DOCUMENT", Unprocessable;
        /// An envelope with too many characters.
        DocumentSizeExceeded = "DOCUMENT_SIZE_EXCEEDED", Unprocessable;
        /// More than a hundred operations and edits.
        PatchTooLarge = "PATCH_TOO_LARGE", Unprocessable;
        /// The document has no text to edit.
        PatchTextNotFound = "PATCH_TEXT_NOT_FOUND", Unprocessable;
        /// The text to replace is not there.
        PatchMatchNotFound = "PATCH_MATCH_NOT_FOUND", Unprocessable;
        /// The text to replace is there more than once.
        PatchMatchAmbiguous = "PATCH_MATCH_AMBIGUOUS", Unprocessable;
        /// The text to replace is not there so often.
        PatchOccurrenceOutOfRange = "PATCH_OCCURRENCE_OUT_OF_RANGE", Unprocessable;
        /// An operation that is none.
        InvalidPatchOp = "INVALID_PATCH_OP", Unprocessable;
        /// A pointer that is none, or leads nowhere.
        InvalidPatchPath = "INVALID_PATCH_PATH", Unprocessable;
        /// A `test` that failed.
        PatchTestFailed = "PATCH_TEST_FAILED", Unprocessable;
        /// Files are to be kept where this build cannot keep them.
        AzureProviderNotEnabled = "AZURE_PROVIDER_NOT_ENABLED", NotImplemented;
        /// An event that names another scope than its route.
        EventScopeMismatch = "EVENT_SCOPE_MISMATCH", Unprocessable;
        /// An event whose digest, keywords or projects are too many, or that is too large as a whole.
        EventMetadataTooLarge = "EVENT_METADATA_TOO_LARGE", Unprocessable;
    }
    MEMORIES: /// What the memories contract alone has.
    {
        /// A layer that is missing, unknown or disabled.
        InvalidLayer = "INVALID_LAYER", Malformed;
        /// A kind that is unknown or not allowed in its layer.
        InvalidKind = "INVALID_KIND", Malformed;
        /// An identifier that a layer needs.
        MissingIdentifier = "MISSING_IDENTIFIER", Malformed;
        /// A cursor that is malformed, foreign or for another query.
        InvalidCursor = "INVALID_CURSOR", Malformed;
        /// Unknown, deleted, expired, of another tenant, or not visible: never tells which.
        MemoryNotFound = "MEMORY_NOT_FOUND", Missing;
        /// The state of the entry does not allow it.
        InvalidState = "INVALID_STATE", Conflict;
        /// Content with too many characters.
        ContentTooLong = "CONTENT_TOO_LONG", Unprocessable;
        /// A query with too many characters.
        QueryTooLong = "QUERY_TOO_LONG", Unprocessable;
        /// Metadata with too many bytes.
        MetadataTooLarge = "METADATA_TOO_LARGE", Unprocessable;
        /// A batch with too many items.
        BatchTooLarge = "BATCH_TOO_LARGE", Unprocessable;
        /// Too many requests.
        RateLimited = "RATE_LIMITED", RateLimited;
        /// A provider is not configured, or cannot hold what it is given.
        ConfigurationError = "CONFIGURATION_ERROR", Internal;
        /// A capability that is switched off or absent.
        NotImplemented = "NOT_IMPLEMENTED", NotImplemented;
        /// A provider failed for good.
        ProviderFailed = "PROVIDER_ERROR", BadGateway;
        /// A provider failed for now.
        ProviderUnavailable = "PROVIDER_ERROR", Unavailable;
        /// No embedding could be made; nothing was stored.
        EmbeddingFailed = "EMBEDDING_FAILED", Unavailable;
        /// As [`Code::EmbeddingFailed`], and the same request would fail again: the embedder refused it for good.
        EmbeddingRefused = "EMBEDDING_FAILED", Unavailable;
    }
}

impl Code {
    /// Whether the identical request may succeed later.
    pub fn retryable(self) -> bool {
        self != Code::EmbeddingRefused
            && matches!(self.kind(), ErrorKind::RateLimited | ErrorKind::Unavailable | ErrorKind::Timeout)
    }

    /// Whether the rules of files answer with it.
    pub fn is_of_files(self) -> bool {
        Self::FILES.contains(&self) || Self::SHARED_BY_FILES_AND_MEMORIES.contains(&self)
    }

    /// Whether the rules of memories answer with it.
    pub fn is_of_memories(self) -> bool {
        self == Code::Forbidden
            || Self::MEMORIES.contains(&self)
            || Self::SHARED_BY_FILES_AND_MEMORIES.contains(&self)
    }
}

/// A field of a request that breaks a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field as the caller wrote it, e.g. `content` or `limit`.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

/// The kinds of things that can be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A conversation, live and in the caller's tenant.
    Conversation,
    /// An entry visible to the caller.
    Entry,
    /// A user's membership in a conversation's tree.
    Membership,
    /// A pending ownership transfer.
    Transfer,
    /// A file that belongs to an entry, or will.
    Attachment,
    /// A route of the API.
    Route,
}

impl Resource {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::Conversation => "conversation",
            Resource::Entry => "entry",
            Resource::Membership => "membership",
            Resource::Transfer => "transfer",
            Resource::Attachment => "attachment",
            Resource::Route => "route",
        }
    }
}

/// A quota that a request would exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Whose: `user` or `service`.
    pub scope: &'static str,
    /// What of: `reads`, `writes`, `files` or `events`.
    pub resource: &'static str,
    /// How many are allowed.
    pub limit: u64,
    /// In how many seconds; 0 where it is not a matter of time but of how many there are.
    pub window_seconds: u64,
    /// When trying again makes sense.
    pub retry_after_seconds: u32,
}

impl Display for Quota {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { scope, resource, limit, window_seconds, retry_after_seconds } = self;
        if *window_seconds > 0 {
            return write!(f, "the quota for {resource} is used up; try again in {retry_after_seconds} s");
        }
        let make_room = match *resource {
            "events" => "apply retention to remove old ones",
            _ => "delete one, or put more into those there are",
        };
        write!(
            f,
            "the {scope} has {limit} {resource}, as many as allowed; waiting does not help: {make_room}, or ask for a \
             higher quotas.max_{resource}"
        )
    }
}

/// What a program needs to go on.
#[derive(Debug, Clone, PartialEq)]
pub enum Details {
    /// The code says it all.
    None,
    /// Every field that breaks a constraint, in the order they were checked.
    Violations(Vec<Violation>),
    /// What was looked for, and its id as the caller wrote it.
    Resource(Resource, Box<str>),
    /// The limit that was hit, and how much there was, where known.
    Bytes {
        /// The most bytes.
        max: u64,
        /// How many there were, or had come when the limit was hit.
        actual: Option<u64>,
    },
    /// When trying again makes sense, in seconds.
    RetryAfter(u32),
    /// The quota that is used up.
    Quota(Box<Quota>),
    /// The transfer that is already pending.
    Transfer(Uuid),
    /// What could be asked for instead.
    Available(Vec<&'static str>),
    /// Members that the contract of the code names.
    Members(Box<Map<String, Value>>),
}

impl Details {
    /// A member that the contract of the code names, if it is there.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Members(members) => members.get(name),
            _ => None,
        }
    }

    /// The members that the contract of the code names.
    pub fn into_members(self) -> Map<String, Value> {
        match self {
            Self::Members(members) => *members,
            _ => Map::new(),
        }
    }
}

impl std::ops::Index<&str> for Details {
    type Output = Value;

    /// As of a JSON object: null where there is no such member.
    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }
}

/// Everything that can go wrong, as far as a caller can tell it apart.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Error {
    /// What went wrong, for programs.
    pub code: Code,
    /// What went wrong, for people: never a secret and never stored content.
    pub message: Cow<'static, str>,
    /// What a program needs to go on.
    pub details: Details,
    /// What an operator has to look at: for the log, never for the caller.
    pub cause: Option<Box<str>>,
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match (&self.cause, self.code) {
            // Only operators see an error as text: callers see its message.
            (Some(cause), Code::Internal) => write!(f, "{}: {cause}", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    const fn fixed(code: Code, message: &'static str) -> Self {
        Self { code, message: Cow::Borrowed(message), details: Details::None, cause: None }
    }

    /// No or no valid credential.
    pub const UNAUTHORIZED: Self = Self::fixed(Code::Unauthorized, "unauthorized");
    /// An admin call came without the justification this deployment requires.
    pub const JUSTIFICATION_REQUIRED: Self =
        Self::fixed(Code::JustificationRequired, "a justification is required for admin operations");
    /// The route exists, the method does not.
    pub const METHOD_NOT_ALLOWED: Self = Self::fixed(Code::MethodNotAllowed, "method not allowed");
    /// An attachment that an entry refers to lives as long as the entry.
    pub const ATTACHMENT_LINKED: Self =
        Self::fixed(Code::AttachmentLinked, "the attachment belongs to an entry and goes with it");
    /// An attachment whose bytes are still on their way.
    pub const UPLOAD_IN_PROGRESS: Self =
        Self::fixed(Code::UploadInProgress, "the attachment is still being uploaded");
    /// An attachment whose source could not be fetched.
    pub const DOWNLOAD_FAILED: Self =
        Self::fixed(Code::DownloadFailed, "the attachment could not be fetched from its source");
    /// Responses are not recorded on this server.
    pub const RECORDER_DISABLED: Self =
        Self::fixed(Code::RecorderDisabled, "Response resumer is not enabled");
    /// The body is of a type this endpoint does not read.
    pub const UNSUPPORTED_MEDIA_TYPE: Self =
        Self::fixed(Code::UnsupportedMediaType, "unsupported media type: send application/json");
    /// The request took longer than the server allows.
    pub const TIMEOUT: Self = Self::fixed(
        Code::Timeout,
        "the request took too long; it may have been carried out, so repeat it with the same Idempotency-Key or look first",
    );
    /// No search type is available at all.
    pub const SEARCH_DISABLED: Self = Self::fixed(Code::SearchDisabled, "search is disabled on this server");
    /// Admin statistics need a Prometheus server and none is configured.
    pub const PROMETHEUS_NOT_CONFIGURED: Self =
        Self::fixed(Code::PrometheusNotConfigured, "no Prometheus server is configured: set prometheus.url");
    /// The configured Prometheus server did not answer the query.
    pub const PROMETHEUS_UNAVAILABLE: Self =
        Self::fixed(Code::PrometheusUnavailable, "the Prometheus server did not answer");
    /// The identity provider does not answer, so no token can be checked.
    pub const IDENTITY_PROVIDER_UNAVAILABLE: Self = Self::fixed(
        Code::IdentityProviderUnavailable,
        "the identity provider cannot be reached, so nobody can sign in; try again later",
    );

    /// An error without details.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), details: Details::None, cause: None }
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.code.kind()
    }

    /// One field, one complaint.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::violations(vec![Violation { field: field.into(), message: message.into() }])
    }

    /// Every field that breaks a constraint.
    pub fn violations(violations: Vec<Violation>) -> Self {
        let first = violations.first().map(|first| format!("{}: {}", first.field, first.message));
        let message = format!("the request is not valid: {}", first.unwrap_or_default());
        Self { details: Details::Violations(violations), ..Self::new(Code::Invalid, message) }
    }

    /// The named thing is not there.
    pub fn not_found(resource: Resource, id: impl ToString) -> Self {
        let code = if resource == Resource::Route { Code::RouteNotFound } else { Code::NotFound };
        let details = Details::Resource(resource, id.to_string().into());
        Self { details, ..Self::new(code, format!("{} not found", resource.as_str())) }
    }

    /// Well-formed but senseless.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    /// Known, but not allowed.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Forbidden, message)
    }

    /// Known, but not in the tenant it names.
    pub fn tenant_forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::TenantForbidden, message)
    }

    /// The state of the thing does not allow it.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Conflict, message)
    }

    /// A second pending ownership transfer for one tree.
    pub fn transfer_already_pending(existing: Uuid) -> Self {
        let message = "A pending ownership transfer already exists for this conversation";
        Self { details: Details::Transfer(existing), ..Self::new(Code::TransferAlreadyPending, message) }
    }

    /// A caller uses more than its quota allows.
    pub fn quota_exceeded(quota: Quota) -> Self {
        let message = quota.to_string();
        Self { details: Details::Quota(quota.into()), ..Self::new(Code::QuotaExceeded, message) }
    }

    /// The body is larger than the limit.
    pub fn too_large(max: u64, actual: Option<u64>) -> Self {
        let message = format!("the request body is larger than {max} bytes");
        Self { details: Details::Bytes { max, actual }, ..Self::new(Code::TooLarge, message) }
    }

    /// An attachment is larger than the limit.
    pub fn file_too_large(max: u64, actual: u64) -> Self {
        let message = format!("the file is larger than {max} bytes");
        let details = Details::Bytes { max, actual: Some(actual) };
        Self { details, ..Self::new(Code::FileTooLarge, message) }
    }

    /// The requested search type is not available here; these are.
    pub fn search_type_unavailable(requested: &str, available: Vec<&'static str>) -> Self {
        let message = format!("search type '{requested}' is not available");
        Self { details: Details::Available(available), ..Self::new(Code::SearchTypeUnavailable, message) }
    }

    /// Too much work is queued.
    pub fn overloaded(retry_after_seconds: u32) -> Self {
        let message = format!("the server is overloaded, try again in {retry_after_seconds} s");
        let details = Details::RetryAfter(retry_after_seconds);
        Self { details, ..Self::new(Code::Overloaded, message) }
    }

    /// The store cannot take the work now, and nothing was written. The cause names what an operator has to look at.
    pub fn storage_unavailable(cause: impl Into<String>) -> Self {
        let message = "the store is not available at the moment; nothing was written, try again later";
        Self::fixed(Code::StorageUnavailable, message).because(cause)
    }

    /// A query could not be embedded.
    pub fn semantic_unavailable(cause: impl Into<String>) -> Self {
        let message =
            "search by meaning is not available at the moment: search with 'fulltext', or try again later";
        Self::fixed(Code::SemanticUnavailable, message).because(cause)
    }

    /// Another node has what was asked for and does not answer.
    pub fn peer_unreachable(cause: impl Into<String>) -> Self {
        let message = "the node that has it does not answer; try again later";
        Self::fixed(Code::PeerUnreachable, message).because(cause)
    }

    /// A defect. The cause is for the log, never for the caller.
    pub fn internal(cause: impl Into<String>) -> Self {
        Self::fixed(Code::Internal, "internal error").because(cause)
    }

    fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into().into()), ..self }
    }

    /// Adds a member that the contract of the code names.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let mut members = match self.details {
            Details::Members(members) => members,
            _ => Box::default(),
        };
        members.insert(name.to_owned(), value.into());
        self.details = Details::Members(members);
        self
    }

    /// Adds a member as a text: those of the files contract are, numbers too.
    pub fn with_text(self, name: &str, value: impl ToString) -> Self {
        self.with(name, value.to_string())
    }

    /// When trying again makes sense, where that is known.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        match &self.details {
            Details::RetryAfter(seconds) => Some(*seconds),
            Details::Quota(quota) => Some(quota.retry_after_seconds),
            details => details["retryAfterSeconds"].as_u64().and_then(|seconds| u32::try_from(seconds).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_enough_to_be_returned_by_value() {
        assert!(size_of::<Error>() <= 80, "{}", size_of::<Error>());
    }

    #[test]
    fn a_cause_is_for_operators() {
        let error = Error::storage_unavailable("the disk is full");
        assert!(!error.message.contains("disk"));
        assert!(!error.to_string().contains("disk"), "a message may end up in an answer");
        assert_eq!(Error::internal("a defect").to_string(), "internal error: a defect");
        assert_eq!(Error::internal("a defect").message, "internal error");
    }
}
