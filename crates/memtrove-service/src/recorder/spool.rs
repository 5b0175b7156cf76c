//! The text of one recording: written at its end, read from anywhere by any number of readers, each at its own pace.
//!
//! It is cut into pieces, always between characters. The last piece is in memory, and so is the one before it while it is being
//! written; all before them are on the [disk](Disk), sealed. So a recording takes the memory of two pieces however long it is,
//! and a slow reader keeps no one waiting.

use super::cipher::{self, Cipher, PIECE};
use super::disk::{Disk, NotWritten};
use super::{EndReason, metrics};
use memtrove_core::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::watch;

/// The text of a recording.
pub(super) struct Spool {
    disk: Arc<Disk>,
    max_bytes: u64,
    /// Most recordings fit into memory and never need one.
    cipher: OnceLock<Cipher>,
    state: Mutex<SpoolState>,
    /// Told of everything that happens to `state`.
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct SpoolState {
    /// Pieces on the disk.
    written: Vec<SpooledPiece>,
    /// Where in the text they end.
    written_to: u64,
    /// The piece that is being written. It stays here if it cannot be.
    writing: Option<Arc<str>>,
    /// The piece that grows.
    open: String,
    /// Why nothing is added any more.
    closed: Option<Closed>,
}

#[derive(Clone, Copy)]
struct SpooledPiece {
    /// Where in the text it begins.
    from: u64,
    length: usize,
    place: u32,
}

/// How a recording came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// Its agent said so, or hung up.
    Finished,
    /// It had to stop.
    Ended(EndReason),
}

impl Spool {
    pub(super) fn new(disk: Arc<Disk>, max_bytes: u64) -> Self {
        let (changes, _) = watch::channel(());
        Self { disk, max_bytes, cipher: OnceLock::new(), state: Mutex::default(), changes }
    }

    /// Adds to the end. Waits for the disk if that is slower than the agent. A caller that gives up waiting may have added a
    /// part.
    pub(super) async fn append(self: &Arc<Self>, content: &str) -> Result<(), EndReason> {
        self.admit(content.len() as u64)?;
        let mut rest = content;
        while !rest.is_empty() {
            let mut changes = self.changes.subscribe();
            match self.push(rest)? {
                Pushed::Some(left) => rest = left,
                Pushed::DiskIsBusy => {
                    // Its sender is in `self`.
                    let _ = changes.changed().await;
                }
                // Asked while nothing of this one is locked: others are looked at.
                Pushed::NoRoom if self.disk.make_room() => {}
                Pushed::NoRoom => {
                    self.close(Closed::Ended(EndReason::NoRoom));
                    self.state().still_open()?;
                }
            }
        }
        metrics::recorded(content.len() as u64);
        Ok(())
    }

    /// Refuses what would make it too large, as a whole: half of it is of no use to anybody.
    fn admit(&self, more: u64) -> Result<(), EndReason> {
        let mut state = self.state();
        state.still_open()?;
        if state.length() + more <= self.max_bytes {
            return Ok(());
        }
        let ended = EndReason::TooLarge { max_bytes: self.max_bytes };
        state.closed = Some(Closed::Ended(ended));
        self.changes.send_replace(());
        Err(ended)
    }

    /// Adds as much as there is room for in memory.
    fn push<'c>(self: &Arc<Self>, content: &'c str) -> Result<Pushed<'c>, EndReason> {
        let mut state = self.state();
        state.still_open()?;
        let (now, later) = content.split_at(last_boundary(content, PIECE - state.open.len()));
        if !now.is_empty() {
            state.open.push_str(now);
            self.changes.send_replace(());
            return Ok(Pushed::Some(later));
        }
        if state.writing.is_some() {
            return Ok(Pushed::DiskIsBusy);
        }
        let Some(place) = self.disk.take() else { return Ok(Pushed::NoRoom) };
        let piece: Arc<str> = std::mem::take(&mut state.open).into();
        state.writing = Some(Arc::clone(&piece));
        let (number, spool) = (state.written.len(), Arc::clone(self));
        self.disk.write_with(move |disk| {
            let written = spool.seal(number, &piece).and_then(|sealed| disk.write(place, &sealed));
            spool.note_written(place, piece.len(), written);
        });
        Ok(Pushed::Some(later))
    }

    fn seal(&self, number: usize, piece: &str) -> Result<Vec<u8>, NotWritten> {
        let cipher = match self.cipher.get() {
            Some(cipher) => cipher,
            None => {
                let fresh = Cipher::new().map_err(NotWritten::Failed)?;
                self.cipher.get_or_init(|| fresh)
            }
        };
        cipher.seal(number, piece).map_err(NotWritten::Failed)
    }

    fn note_written(&self, place: u32, length: usize, written: Result<(), NotWritten>) {
        let mut state = self.state();
        let ended = match written {
            Ok(()) => {
                let from = state.written_to;
                state.written.push(SpooledPiece { from, length, place });
                state.written_to += length as u64;
                state.writing = None;
                None
            }
            Err(NotWritten::NoRoom) => Some(EndReason::NoRoom),
            Err(NotWritten::Failed(error)) => {
                tracing::warn!(%error, "a recording could not be written");
                Some(EndReason::Failed)
            }
        };
        if let Some(ended) = ended {
            self.disk.give_back([place].into_iter());
            state.closed.get_or_insert(Closed::Ended(ended));
        }
        drop(state);
        self.changes.send_replace(());
    }

    /// Ends it, unless it has ended already.
    pub(super) fn close(&self, how: Closed) {
        let mut state = self.state();
        state.closed.get_or_insert(how);
        state.open.shrink_to_fit();
        drop(state);
        self.changes.send_replace(());
    }

    /// How it came to its end, if it has.
    pub(super) fn closed(&self) -> Option<Closed> {
        self.state().closed
    }

    /// Resolves when it has to stop.
    pub(super) async fn ended(&self) -> EndReason {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(Closed::Ended(ended)) = self.closed() {
                return ended;
            }
            // Its sender is in `self`.
            let _ = changes.changed().await;
        }
    }

    /// How much memory its text takes.
    pub(super) fn memory(&self) -> usize {
        let state = self.state();
        state.open.capacity() + state.writing.as_ref().map_or(0, |piece| piece.len())
    }

    /// How long it is now, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.state().length()
    }

    /// Whether some of it is on the disk, and it could be given back now.
    pub(super) fn is_on_disk(self: &Arc<Self>) -> bool {
        // Its writer and its readers hold it.
        Arc::strong_count(self) == 1 && !self.state().written.is_empty()
    }

    /// Has everybody who reads it look again.
    pub(super) fn wake(&self) {
        self.changes.send_replace(());
    }

    /// Readers tell changes apart by this.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// What there is to read at a position.
    pub(super) fn at(&self, position: u64) -> SpoolRead {
        let state = self.state();
        if position < state.written_to {
            let after = state.written.partition_point(|piece| piece.from <= position);
            return SpoolRead::OnDisk(OnDisk { number: after - 1, piece: state.written[after - 1] });
        }
        let mut from = state.written_to;
        for piece in [state.writing.as_deref().unwrap_or_default(), &state.open] {
            let to = from + piece.len() as u64;
            let rest = if position < to { rest(piece, position - from) } else { "" };
            if !rest.is_empty() {
                return SpoolRead::Text { text: rest.to_owned(), to };
            }
            from = to;
        }
        if state.closed.is_some() { SpoolRead::End } else { SpoolRead::NothingYet }
    }

    /// The text from a position to the end of its piece, and where that is; nothing if the recording was let go. A wait
    /// that is abandoned does not keep the recording.
    pub(super) fn read(
        self: &Arc<Self>,
        OnDisk { number, piece }: OnDisk,
        position: u64,
    ) -> impl Future<Output = Piece> + Send + use<> {
        let (spool, disk) = (Arc::downgrade(self), Arc::clone(&self.disk));
        async move {
            let read = disk.read_with(move |disk| {
                // Held while it is read, so that its place is not given away.
                let Some(spool) = spool.upgrade() else { return Ok(None) };
                let mut sealed = vec![0; cipher::sealed_len(piece.length)];
                disk.read(piece.place, &mut sealed)?;
                let cipher = spool.cipher.get().ok_or_else(|| std::io::Error::other("there is no key"))?;
                cipher.open(number, sealed).map(Some)
            });
            let failed = |error| Error::internal(format!("a recording cannot be read back: {error}"));
            let Some(whole) = read.await.map_err(failed)? else { return Ok(None) };
            let text = match position - piece.from {
                0 => whole,
                within => rest(&whole, within).to_owned(),
            };
            Ok(Some((text, piece.from + piece.length as u64)))
        }
    }

    fn state(&self) -> MutexGuard<'_, SpoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let written = std::mem::take(&mut self.state().written);
        if !written.is_empty() {
            self.disk.give_back(written.into_iter().map(|piece| piece.place));
        }
    }
}

impl SpoolState {
    fn length(&self) -> u64 {
        let writing = self.writing.as_ref().map_or(0, |piece| piece.len());
        self.written_to + (writing + self.open.len()) as u64
    }

    fn still_open(&self) -> Result<(), EndReason> {
        match self.closed {
            None => Ok(()),
            Some(Closed::Ended(ended)) => Err(ended),
            // A finished recording has no recorder any more.
            Some(Closed::Finished) => Err(EndReason::Stopped),
        }
    }
}

/// What became of a text that was to be added.
enum Pushed<'c> {
    /// How much of it is left.
    Some(&'c str),
    /// All that may be in memory is, until the disk is done.
    DiskIsBusy,
    /// And all that may be on the disk is too.
    NoRoom,
}

/// What is found at a position.
pub(super) enum SpoolRead {
    /// Text in memory, which ends at `to`.
    Text { text: String, to: u64 },
    /// A piece that is to be [read](Spool::read) from the disk.
    OnDisk(OnDisk),
    /// Nothing more will come.
    End,
    /// Something may come.
    NothingYet,
}

/// A text that was read from the disk and where it ends; nothing if the recording was let go meanwhile.
pub(super) type Piece = Result<Option<(String, u64)>>;

/// A piece on the disk.
pub(super) struct OnDisk {
    number: usize,
    piece: SpooledPiece,
}

/// The last place up to `most` at which a text can be cut.
fn last_boundary(text: &str, most: usize) -> usize {
    if most >= text.len() {
        return text.len();
    }
    (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// A text from a position on. One inside a character is not one that anybody was given; then it begins with the next.
fn rest(text: &str, from: u64) -> &str {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
    (from..=text.len()).find_map(|at| text.get(at..)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
