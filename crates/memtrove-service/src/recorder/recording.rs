//! A recording in the hands of its recorder.

use super::EndReason;
use super::node::Node;
use super::registry::Tape;
use super::spool::Closed;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How long the end of a recording waits to be announced. Other nodes find out anyway.
const TELLING: Duration = Duration::from_secs(5);

/// A response that is being recorded. Dropping it ends it as [`finish`](Recording::finish) does: an agent that hung up has said
/// all that it will say.
pub struct Recording {
    node: Arc<Node>,
    tape: Arc<Tape>,
}

impl Recording {
    pub(super) fn new(node: Arc<Node>, tape: Arc<Tape>) -> Self {
        Self { node, tape }
    }

    /// Which recording it is.
    pub fn id(&self) -> Uuid {
        self.tape.id
    }

    /// Adds to it. Everybody who replays it reads that from now on. A caller that gives up waiting may have added a part.
    pub async fn append(&mut self, content: &str) -> Result<(), EndReason> {
        let appended = self.tape.spool.append(content).await;
        if let Err(ended) = appended {
            self.node.end(&self.tape, Closed::Ended(ended));
        }
        appended
    }

    /// Resolves when it has to stop, also while nothing comes in. A caller that gives up waiting has missed nothing.
    pub async fn ended(&self) -> EndReason {
        self.tape.spool.ended().await
    }

    /// Ends it. Afterwards it is in progress nowhere.
    pub async fn finish(self) {
        if let Some(told) = self.node.end(&self.tape, Closed::Finished) {
            // Without an announcement, other nodes find out when its time is over.
            let _ = tokio::time::timeout(TELLING, told).await;
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.node.end(&self.tape, Closed::Finished);
    }
}
