//! The files surface: documents with ETags, text edits and patches, event digests, all as pure rules.

pub mod assembly;
pub mod blocks;
pub mod body;
pub mod canonical;
mod change;
pub mod edits;
pub mod envelope;
pub mod etag;
mod events;
pub mod patch;
pub mod path;
pub mod retention;
mod scope;

pub use crate::Code;
pub use change::{IdempotencyKey, MovePaths, Reasons};
pub use etag::{ETag, FilePrecondition};
pub use events::{Event, EventQuery, SearchEvents, Searchable};
pub use patch::Patch;
pub use path::FilePath;
pub use scope::{FileRole, Scope, ScopedCaller, UNKNOWN_SERVICE};

#[cfg(test)]
mod testing;
