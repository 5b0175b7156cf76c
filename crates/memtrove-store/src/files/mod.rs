//! The files surface: documents, their audit trail, events and their index, and what forgotten users leave behind.

pub mod audit;
pub mod documents;
pub mod events;
pub mod forget;
pub mod jobs;
pub mod scopes;

/// What one answer holds at most, unless its first row alone has more.
const ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// What one step of something long reads or removes: others wait for its thread meanwhile.
pub const STEP_BYTES: usize = 4 * 1024 * 1024;
