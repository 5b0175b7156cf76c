//! Memories and facts: what is worth knowing again, found by meaning.

mod bulk;
mod entries;
mod facts;
mod finding;
mod introspection;
mod lifecycle;

pub use entries::Expect;
pub use facts::ListFacts;
pub use memtrove_wire::memories::*;
