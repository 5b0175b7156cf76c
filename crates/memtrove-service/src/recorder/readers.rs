//! Everybody who replays something on this node.
//!
//! A stream whose client takes nothing is not asked for more, so whatever its reader holds it would hold for ever. That is
//! why it is held here, where it can be taken from it.

use super::registry::Tape;
use memtrove_core::{Error, GroupId, Result, Timestamp, UserId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How long somebody may stand still who reads what nothing is added to any more.
pub(super) const STANDSTILL: i64 = 60 * 1_000_000;

/// What one reader holds.
pub(super) struct Seat {
    /// Who reads.
    pub user: UserId,
    /// The tree of what is read.
    pub group: GroupId,
    held: Mutex<ReaderState>,
}

struct ReaderState {
    /// What is read, or why it is not any more.
    tape: Result<Arc<Tape>>,
    position: u64,
    /// Where it was when somebody looked, and since when.
    seen: Option<(u64, Timestamp)>,
}

impl Seat {
    pub(super) fn new(tape: Arc<Tape>, user: UserId) -> Self {
        let held = ReaderState { position: 0, seen: None, tape: Ok(Arc::clone(&tape)) };
        Self { user, group: tape.group, held: Mutex::new(held) }
    }

    /// What is read here. To be held for a moment only.
    pub(super) fn tape(&self) -> Result<Arc<Tape>> {
        self.held().tape.clone()
    }

    /// Notes how far it was read.
    pub(super) fn note(&self, position: u64) {
        self.held().position = position;
    }

    /// Takes from its reader what it holds.
    pub(super) fn cut_off(&self, why: Error) {
        let taken = std::mem::replace(&mut self.held().tape, Err(why));
        if let Ok(tape) = taken {
            tape.spool.wake();
        }
    }

    fn stands_still(&self, now: Timestamp) -> bool {
        let mut held = self.held();
        let Ok(tape) = &held.tape else { return false };
        if tape.is_live() {
            held.seen = None;
            return false;
        }
        match held.seen {
            Some((position, since)) if position == held.position => {
                since.saturating_add_micros(STANDSTILL) <= now
            }
            Some(_) | None => {
                held.seen = Some((held.position, now));
                false
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, ReaderState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All readers of this node.
#[derive(Default)]
pub(super) struct Readers(Mutex<Vec<Weak<Seat>>>);

impl Readers {
    /// Lets somebody read a recording.
    pub(super) fn seat(&self, tape: Arc<Tape>, user: UserId) -> Arc<Seat> {
        let seat = Arc::new(Seat::new(tape, user));
        self.seats().push(Arc::downgrade(&seat));
        seat
    }

    /// Cuts off readers that have not read on for too long.
    pub(super) fn sweep(&self, now: Timestamp) {
        for seat in self.all().iter().filter(|seat| seat.stands_still(now)) {
            seat.cut_off(Error::TIMEOUT);
        }
    }

    /// Those who are still there.
    pub(super) fn all(&self) -> Vec<Arc<Seat>> {
        let mut seats = self.seats();
        seats.retain(|seat| seat.strong_count() > 0);
        seats.iter().filter_map(Weak::upgrade).collect()
    }

    fn seats(&self) -> MutexGuard<'_, Vec<Weak<Seat>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
