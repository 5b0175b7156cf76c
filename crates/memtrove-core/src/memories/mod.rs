//! Layered memories: whose they are ([`layer`]), how they are kept ([`kind`]), and the rules they live by.
//!
//! Two axes of one entry: its layer decides isolation, precedence and access, its kind decides storage, lifetime and extra
//! queries. Everything here is pure; use cases and repositories build on it.

pub mod access;
pub mod add;
pub mod assertion;
pub mod bulk;
pub mod change;
pub mod clusters;
pub mod conditions;
pub mod consolidate;
pub mod contradiction;
pub mod cursor;
pub mod decay;
pub mod duplicate;
pub mod entry;
pub mod fact_query;
pub mod facts;
pub mod filter;
pub mod kind;
pub mod layer;
mod lifecycle;
pub mod limits;
pub mod list;
pub mod maintenance;
pub mod mem0;
pub mod members;
pub mod merge;
pub mod metadata;
pub mod mirror;
pub mod openspec;
pub mod pointer;
pub mod precondition;
pub mod promote;
pub mod refusal;
#[cfg(test)]
mod requests;
pub mod scope;
mod scoping;
pub mod search;
pub mod sessions;
pub mod statement;
pub mod stream_position;
#[cfg(test)]
pub(crate) mod testing;

pub use crate::Code;
pub use access::{AccessPolicy, Author, MemoryCaller, Policy, Viewer};
pub use add::{AddMemory, NewMemory};
pub use assertion::Assertion;
pub use bulk::{BulkAdd, BulkDelete};
pub use change::{Applied, Change};
pub use conditions::Conditions;
pub use cursor::{CursorKey, FactPosition, Fingerprint, Position};
pub use entry::{Embedding, Fact, Lineage, Memory, MemoryId, State, told_at};
pub use fact_query::{FactPattern, FactQuery, QueryFacts};
pub use facts::{AddFact, FactChange, FactKey, NewFact};
pub use filter::{Filter, MemberConditions};
pub use kind::Kind;
pub use layer::{Identifier, Identifiers, Layer};
pub use limits::{ConsolidationRules, DecayRules, Limits, Rules, SessionRules};
pub use list::{List, ListMemories};
pub use maintenance::{ConsolidateRequest, Consolidation, Decay, DecayRequest};
pub use metadata::GivenMetadata;
pub use precondition::Precondition;
pub use refusal::contract_word;
pub use scope::{ScopeHash, ScopeKey, resolve};
pub use search::{Mode, Ranking, Search, SearchMemories};
pub use sessions::{Clear, ClearMemories, EndSession, Promote, SessionEnd};
pub use statement::Statement;
