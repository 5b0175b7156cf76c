//! The tables of the memories surface.
//!
//! Everything hangs on the number of a scope, which comes from looking up a [`ScopeKey`]: a caller that holds one has been
//! through the resolver. Deleting the scope's row puts everything below it out of reach at once.
//!
//! [`ScopeKey`]: memtrove_core::memories::ScopeKey

pub mod access_counts;
pub mod entries;
pub mod facts;
pub mod index;
mod pieces;
pub mod pointers;
pub mod purge;
pub mod scopes;
pub mod searched;
pub mod segments;
pub mod sessions;
pub mod statements;
pub mod texts;
pub mod upgrades;
pub mod versions;
pub mod writing;

pub use scopes::ScopeNo;

/// The number of an entry's row: what an index in memory knows it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryNo(pub i64);
