//! How the files surface says no: a code of its contract, a sentence, and what a program needs to go on.

use serde_json::{Map, Value};

/// The kinds of refusals: what a caller can do about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The request is not what it should be: mend it.
    Malformed,
    /// What it names is not there.
    Missing,
    /// The state of things does not allow it.
    Conflict,
    /// It was made for another version: read again and rebase.
    Stale,
    /// It is well-formed, but cannot be applied or its result may not be stored.
    Unprocessable,
    /// It asks for a part that this build does not have.
    Unavailable,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $class:ident;)*) => {
        /// The codes of the files contract that the rules and use cases answer with.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The contract's word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)*
                }
            }

            /// What kind of refusal it is.
            pub fn class(self) -> Class {
                match self {
                    $(Code::$name => Class::$class,)*
                }
            }
        }
    };
}

codes! {
    /// The body is no JSON, or is nested too deeply.
    InvalidJson = "INVALID_JSON", Malformed;
    /// The body is JSON of the wrong shape.
    InvalidRequest = "INVALID_REQUEST", Malformed;
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
    /// The key was used for another request.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT", Conflict;
    /// There is a file already where another is to be moved.
    DocumentExists = "DOCUMENT_EXISTS", Conflict;
    /// The audit trail cannot prove the version that was asked for.
    AuditChainIncomplete = "AUDIT_CHAIN_INCOMPLETE", Conflict;
    /// The file is not at the version the caller expects.
    EtagMismatch = "ETAG_MISMATCH", Stale;
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
    AzureProviderNotEnabled = "AZURE_PROVIDER_NOT_ENABLED", Unavailable;
    /// An event that names another scope than its route.
    EventScopeMismatch = "EVENT_SCOPE_MISMATCH", Unprocessable;
    /// An event whose digest, keywords or projects are too many, or that is too large as a whole.
    EventMetadataTooLarge = "EVENT_METADATA_TOO_LARGE", Unprocessable;
}

/// A refusal in the words of the files contract.
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

    /// Adds a detail; the files layer's are texts.
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.details.insert(name.to_owned(), Value::String(value.to_string()));
        self
    }
}
