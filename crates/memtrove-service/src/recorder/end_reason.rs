//! Why a recording stops before its agent says so.

/// Why a recording takes nothing more. What was recorded until then stays replayable, unless another recording took its place.
/// The texts are for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// Somebody cancelled the response, or its conversation was deleted.
    #[error("the response was cancelled")]
    Cancelled,
    /// A newer recording of the same conversation took its place, on this node or another.
    #[error("a newer recording of the conversation took the place of this one")]
    Superseded,
    /// It would be larger than a recording may be.
    #[error("a recording may have {max_bytes} bytes at most")]
    TooLarge {
        /// How large it may be.
        max_bytes: u64,
    },
    /// All recordings together take as much of the disk as they may, or the disk is full.
    #[error("there is no room for more recordings at the moment")]
    NoRoom,
    /// It could not be written. Why is in the log.
    #[error("the recording could not be written")]
    Failed,
    /// This node stops.
    #[error("the server stops")]
    Stopped,
}
