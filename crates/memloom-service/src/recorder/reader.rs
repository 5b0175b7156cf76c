//! A replay.

use super::registry::Tape;
use super::spool::Found;
use memloom_core::Result;
use std::sync::Arc;
use tokio::sync::watch;
use uuid::Uuid;

/// Reads a recording from its beginning, and follows it while it goes on. It holds what it reads: a recording that is superseded
/// or forgotten meanwhile is read to its end.
pub struct Reader {
    tape: Arc<Tape>,
    position: u64,
    changes: watch::Receiver<()>,
}

impl Reader {
    pub(super) fn new(tape: Arc<Tape>) -> Self {
        let changes = tape.spool.changes();
        Self { tape, position: 0, changes }
    }

    /// Which recording it is: another one of the same conversation has another id.
    pub fn recording_id(&self) -> Uuid {
        self.tape.id
    }

    /// How much was read, in bytes.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes on at a position that a reader of the same recording was at; `false`, and nothing changes, if it is not that long.
    pub fn skip_to(&mut self, position: u64) -> bool {
        let is_there = position <= self.tape.spool.length();
        if is_there {
            self.position = position;
        }
        is_there
    }

    /// What comes next, as soon as there is something, whole characters always; `None` at the end. Whoever gives up waiting has
    /// missed nothing.
    pub async fn next(&mut self) -> Result<Option<String>> {
        loop {
            self.changes.borrow_and_update();
            let (text, to) = match self.tape.spool.at(self.position) {
                Found::Text { text, to } => (text, to),
                Found::OnDisk(piece) => self.tape.spool.read(piece, self.position).await?,
                Found::End => return Ok(None),
                Found::NothingYet => {
                    // Its sender is in what is held.
                    let _ = self.changes.changed().await;
                    continue;
                }
            };
            self.position = to;
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }
}
