//! Memories and facts: what is worth knowing again, found by meaning.

pub use memloom_wire::memories::*;
