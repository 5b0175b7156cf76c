//! A replay.

use super::EndReason;
use super::readers::Seat;
use super::spool::{Closed, Piece, SpoolRead};
use memtrove_core::{Error, Result};
use std::sync::Arc;
use tokio::sync::watch;
use uuid::Uuid;

/// Reads a recording from its beginning, and follows it while it goes on. It holds what it reads: a recording that is superseded
/// or forgotten meanwhile is read to its end. One who does not go on reading when nothing more is added is cut off, because what
/// it holds is missing elsewhere; so is one who may not read any more.
pub struct RecordingReader {
    seat: Arc<Seat>,
    recording: Uuid,
    position: u64,
    changes: watch::Receiver<()>,
}

impl RecordingReader {
    pub(super) fn new(seat: Arc<Seat>) -> Result<Self> {
        let tape = seat.tape()?;
        Ok(Self { recording: tape.id, position: 0, changes: tape.spool.changes(), seat })
    }

    /// Which recording it is: another one of the same conversation has another id.
    pub fn recording_id(&self) -> Uuid {
        self.recording
    }

    /// Why the recording had to stop, if it had to: then what was read to its end may be half of an answer.
    pub fn ended(&self) -> Option<EndReason> {
        match self.seat.tape().ok()?.spool.closed() {
            Some(Closed::Ended(ended)) => Some(ended),
            Some(Closed::Finished) | None => None,
        }
    }

    /// How much was read, in bytes.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes on at a position that a reader of the same recording was at; `false`, and nothing changes, if it is not that long.
    pub fn skip_to(&mut self, position: u64) -> bool {
        let is_there = self.seat.tape().is_ok_and(|tape| position <= tape.spool.length());
        if is_there {
            self.position = position;
        }
        is_there
    }

    /// What comes next, as soon as there is something, whole characters always; `None` at the end. A caller that gives up waiting
    /// has missed nothing. Fails if it was cut off.
    pub async fn next(&mut self) -> Result<Option<String>> {
        loop {
            self.changes.borrow_and_update();
            let (text, to) = match self.look()? {
                SpoolLook::Text(text, to) => (text, to),
                // The recording is not held meanwhile: this may wait for somebody who never asks again.
                SpoolLook::Reading(reading) => match reading.await? {
                    Some(read) => read,
                    None => return Err(self.seat.tape().err().unwrap_or_else(gone)),
                },
                SpoolLook::End => return Ok(None),
                SpoolLook::NothingYet => {
                    // An error means that this was cut off, which is seen next.
                    let _ = self.changes.changed().await;
                    continue;
                }
            };
            self.position = to;
            self.seat.note(to);
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }

    fn look(&self) -> Result<SpoolLook<impl Future<Output = Piece> + Send + use<>>> {
        let tape = self.seat.tape()?;
        Ok(match tape.spool.at(self.position) {
            SpoolRead::Text { text, to } => SpoolLook::Text(text, to),
            SpoolRead::OnDisk(piece) => SpoolLook::Reading(tape.spool.read(piece, self.position)),
            SpoolRead::End => SpoolLook::End,
            SpoolRead::NothingYet => SpoolLook::NothingYet,
        })
    }
}

/// What a reader finds.
enum SpoolLook<R> {
    Text(String, u64),
    Reading(R),
    End,
    NothingYet,
}

/// Cannot be: a recording is held until its readers are cut off.
fn gone() -> Error {
    Error::internal("a recording was let go while it was read")
}
