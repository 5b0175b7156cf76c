//! The archive: everything a store holds, or everything of one tenant, as one stream that any engine can read back.
//!
//! It is how stores are backed up and how they move between engines, so it consists of tables ([`tables`]) and not
//! of files of a database. The stream is made of [frames](frame), each with a digest of everything before it: reading stops
//! at the first byte that is not as it was written. Sealed content stays sealed, and its data keys stay wrapped.
//!
//! Equal content has the same [`ArchiveDigest`], on either engine and at any time.
//!
//! To archive one more table: a line in [`tables`], in both engines' order of dependence. A test compares that list with the
//! schema of every engine, so nothing is forgotten silently.

mod error;
mod export;
mod format;
mod frame;
mod import;
mod mark;
mod numbers;
mod rows;
mod tables;
#[cfg(test)]
mod tests;

pub use error::ArchiveError;
pub use export::{About, ArchiveProgress, ByteSource, Exported, Rows, Selection, checksum, count, export};
pub use format::{ArchivePart, Batch, Header, Reader, Summary};
pub use import::{Import, ImportOutcome, Terms};
pub use mark::refuse_unfinished;
pub use tables::{LEFT_OUT, schema};

use std::fmt::{Display, Formatter};

/// Names the content of a store, or of one tenant in it: equal where all rows are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveDigest(blake3::Hash);

impl Display for ArchiveDigest {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "blake3:{}", self.0.to_hex())
    }
}
