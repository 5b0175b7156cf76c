//! Recall: how texts become vectors ([`embed`]) and how vectors and words are found again ([`index`]).
//!
//! This crate knows no store and no use case. The rules of ranking are pure functions in `memtrove_core::recall`.

pub mod embed;
pub mod index;
