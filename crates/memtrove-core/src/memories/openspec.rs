//! The OpenSpec knowledge protocol in terms of memories: where its eight layer types write and look, and where knowledge comes
//! from.

mod reach;
mod source;
mod types;

pub use reach::{KnowledgeFilter, Reach};
pub use source::{KnowledgeSource, SOURCE_TYPES, source_type};
pub use types::{LayerRequest, Target, Type, kinds};

#[cfg(test)]
mod tests;
