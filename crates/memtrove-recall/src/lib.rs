//! Recall: how texts become vectors ([`embed`]) and how vectors and words are found again ([`index`]).
//!
//! This crate knows no store and no use case. What ranks and why is pure and stands in `memtrove_core::recall`.

pub mod embed;
pub mod index;
