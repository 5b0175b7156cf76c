//! The one error of the domain. Each transport renders it in the shape its contract fixes.

use crate::files::{Code, Refusal};
use crate::memories;
use std::fmt::{Display, Formatter};
use uuid::Uuid;

/// What every rule and every use case answers with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

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

/// Everything that can go wrong, as far as a caller can tell it apart.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A field breaks a constraint: length, range, enum, malformed cursor.
    #[error("the request is not valid: {}", first_message(.0))]
    Invalid(Vec<Violation>),
    /// The request is well-formed but makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// An admin call came without the justification this deployment requires.
    #[error("a justification is required for admin operations")]
    JustificationRequired,
    /// Nobody, or nobody valid, is calling.
    #[error("unauthorized")]
    Unauthorized,
    /// The caller is known but may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The caller is known, but not in the tenant it names.
    #[error("{0}")]
    TenantForbidden(String),
    /// A refusal of the files surface, in its contract's words.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// A refusal of the memories surface, in its contract's words.
    #[error("{}", .0.message)]
    MemoryRefused(Box<memories::Refusal>),
    /// A caller uses more than its quota allows.
    #[error("{0}")]
    QuotaExceeded(Box<Quota>),
    /// What the request names is not there, or not for this caller.
    #[error("{} not found", .resource.as_str())]
    NotFound {
        /// What kind of thing.
        resource: Resource,
        /// Its id as the caller wrote it.
        id: String,
    },
    /// The route exists, the method does not.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// The state of the thing does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// A second pending ownership transfer for one tree.
    #[error("A pending ownership transfer already exists for this conversation")]
    TransferAlreadyPending {
        /// The one that is already pending.
        existing: Uuid,
    },
    /// The body is larger than the limit.
    #[error("the request body is larger than {max_bytes} bytes")]
    TooLarge {
        /// The limit that was hit.
        max_bytes: u64,
        /// How large it was, where known.
        actual_bytes: Option<u64>,
    },
    /// An attachment is larger than the limit.
    #[error("the file is larger than {max_bytes} bytes")]
    FileTooLarge {
        /// The limit that was hit.
        max_bytes: u64,
        /// How large it was, or how much of it there was when the limit was hit.
        actual_bytes: u64,
    },
    /// An attachment that an entry refers to lives as long as the entry.
    #[error("the attachment belongs to an entry and goes with it")]
    AttachmentLinked,
    /// An attachment whose bytes are still on their way.
    #[error("the attachment is still being uploaded")]
    UploadInProgress,
    /// An attachment whose source could not be fetched.
    #[error("the attachment could not be fetched from its source")]
    DownloadFailed,
    /// Responses are not recorded on this server.
    #[error("Response resumer is not enabled")]
    RecorderDisabled,
    /// Another node has what was asked for and does not answer. The text is for the log.
    #[error("the node that has it does not answer; try again later")]
    PeerUnreachable(String),
    /// The body is of a type this endpoint does not read.
    #[error("unsupported media type: send application/json")]
    UnsupportedMediaType,
    /// The request took longer than the server allows.
    #[error(
        "the request took too long; it may have been carried out, so repeat it with the same Idempotency-Key or look first"
    )]
    Timeout,
    /// The requested search type is not available here.
    #[error("search type '{requested}' is not available")]
    SearchTypeUnavailable {
        /// What was asked for.
        requested: &'static str,
        /// What could be asked for instead.
        available: Vec<&'static str>,
    },
    /// No search type is available at all.
    #[error("search is disabled on this server")]
    SearchDisabled,
    /// Search by meaning failed, because the query could not be embedded. The text is for the log.
    #[error("search by meaning is not available at the moment: search with 'fulltext', or try again later")]
    SemanticUnavailable(String),
    /// Admin statistics need a Prometheus server and none is configured.
    #[error("no Prometheus server is configured: set prometheus.url")]
    PrometheusNotConfigured,
    /// The configured Prometheus server did not answer the query.
    #[error("the Prometheus server did not answer")]
    PrometheusUnavailable,
    /// Too much work is queued; try again.
    #[error("the server is overloaded, try again in {retry_after_seconds} s")]
    Overloaded {
        /// When trying again makes sense.
        retry_after_seconds: u32,
    },
    /// The store cannot take the work now: disk full, read-only, unreachable. Nothing was written. The text is for the
    /// log: it names what an operator has to look at.
    #[error("the store is not available at the moment; nothing was written, try again later")]
    StorageUnavailable(String),
    /// Whoever could say whether a token is valid does not answer.
    #[error("the identity provider cannot be reached, so nobody can sign in; try again later")]
    IdentityProviderUnavailable,
    /// A defect. The text is for the log, never for the caller.
    #[error("internal error: {0}")]
    Internal(String),
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

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::Refused(Box::new(refusal))
    }
}

impl From<memories::Refusal> for Error {
    fn from(refusal: memories::Refusal) -> Self {
        Error::MemoryRefused(Box::new(refusal))
    }
}

impl Error {
    /// A refusal of the files surface without details.
    pub fn refused(code: Code, message: impl Into<String>) -> Self {
        Refusal::new(code, message).into()
    }

    /// One field, one complaint.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Invalid(vec![Violation { field: field.into(), message: message.into() }])
    }

    /// The named thing is not there.
    pub fn not_found(resource: Resource, id: impl ToString) -> Self {
        Error::NotFound { resource, id: id.to_string() }
    }

    /// Well-formed but senseless.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Error::BadRequest(message.into())
    }

    /// Known, but not allowed.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Error::Forbidden(message.into())
    }
}

fn first_message(violations: &[Violation]) -> String {
    violations.first().map_or_else(String::new, |v| format!("{}: {}", v.field, v.message))
}
