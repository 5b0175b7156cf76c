//! Vectors and words to documents: what a search looks through, in memory.
//!
//! A [`Partition`] holds one memory scope or one conversation tree; a [`PartitionCache`] holds the partitions in use, within a
//! budget. Everything here is derived from the store and may be dropped at any time. Vectors are kept as 8-bit integers,
//! so similarities are estimates with a known error; callers that need the exact number read the stored vector and
//! [`rescore`] it.
//!
//! Made by hand: libraries for vectors keep one large graph on disk or in memory, and must be told of every write. This index has
//! many small partitions, scanned exactly, with words and filters in the same pass; each is caught up from the store and dropped
//! when memory is short.

mod by_vector;
mod by_words;
mod cache;
mod chunk;
mod documents;
mod partition;
mod postings;
mod probe;
mod quantise;
mod search;
mod segment;
mod shortlist;
mod sketch;
mod sums;
mod term_lists;
#[cfg(test)]
mod tests;
mod words;

pub use cache::{INDEX_BYTES, INDEX_EVICTIONS, INDEX_PARTITIONS, PartitionCache, announce_metrics};
pub use partition::Partition;
pub use probe::{Bm25, Candidate, Piece, Probe, ProbeResult, QueryTerm, SpaceNo, TermStatistics, rescore};
pub use segment::{SEGMENT_FORMAT, SegmentPart, Snapshot};
