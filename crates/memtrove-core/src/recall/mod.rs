//! How recall judges: which words a text is found by, what of it is meaning, who a query is about, and one ranker for
//! every surface.
//!
//! Pure functions over what an index found. Dialogue (conversations, events) is ranked by [`fusion`], where a turn's
//! neighbours and its session count; entries that stand alone (memories) by [`relevance`], whose scores mean the same for
//! every query, so that a threshold can be set. Long texts are cut into [`passages`].

pub mod actors;
pub mod document;
mod forms;
pub mod fusion;
pub mod lexical;
pub mod passages;
pub mod relevance;
pub mod spelling;
pub(crate) mod stop_words;
pub mod terms;
pub mod time_words;
