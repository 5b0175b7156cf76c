//! Memories and facts: what is worth knowing again, found by meaning.

mod bulk;
mod entries;
mod facts;
mod introspection;
mod lifecycle;
mod search;

pub use entries::Expect;
pub use facts::ListFacts;
pub use memtrove_wire::memories::*;
