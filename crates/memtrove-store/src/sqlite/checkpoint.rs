//! Moving the write-ahead log into the database without making a commit wait.
//!
//! A thread with its own connection copies the log in passes that block neither readers nor the writer. While writes go on such a
//! pass never reaches the log's end, so the log would grow for ever; the writer therefore starts it over between two batches,
//! when a pass has just left little to copy. Starting over keeps the file: overwriting synced blocks is about twice as fast as
//! appending to a file. Only where something must not be in it any more the file is emptied, by the writer as well: any other
//! connection would hold the lock on writing for as long as it waits for readers.

use super::connection::PATIENCE;
use crossbeam_channel::{Receiver, Sender, TrySendError};
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Pages (of 4 KiB) the log grows by between two passes: 32 MiB. Busy pages are in the log many times and are copied
/// once per pass, so that rare passes copy less.
const PASS_PAGES: usize = 8 * 1024;
/// Pages from which on the log is worth starting over.
const RESTART_PAGES: usize = 2 * PASS_PAGES;
/// Pages beyond which writers wait for the log to be started over: 256 MiB.
const HARD_PAGES: usize = 8 * PASS_PAGES;
/// What a pass may leave behind for the writer to copy.
const SMALL_REST: usize = 128;
/// What the writer copies itself at most when the log is to be emptied: 4 MiB.
const EMPTY_REST: usize = 1024;

/// How long the writer waits for readers that still use the log: seldom at all, and long only beyond the hard size.
const SHORT_WAIT: Duration = Duration::from_millis(5);
const HARD_WAIT: Duration = Duration::from_secs(1);

/// What the writer and the checkpointer tell each other.
#[derive(Debug, Default)]
pub(super) struct Log {
    pages: AtomicUsize,
    /// How many of them the last pass found or left copied.
    copied: AtomicUsize,
    restart: AtomicBool,
}

impl Log {
    /// Pages that are still to be copied, at most. (A pass that ends just when the log is started over leaves too high a
    /// number of copies, until the next pass: the writer may then copy more than it meant to.)
    fn rest(&self) -> usize {
        self.pages.load(Ordering::Relaxed).saturating_sub(self.copied.load(Ordering::Relaxed))
    }

    fn started_over(&self) {
        self.pages.store(0, Ordering::Relaxed);
        self.copied.store(0, Ordering::Relaxed);
        self.restart.store(false, Ordering::Relaxed);
    }
}

/// The writer's side.
pub(super) struct LogKeeper {
    log: Arc<Log>,
    passes: Sender<()>,
    /// Where the log stood when the last pass was asked for.
    asked_at: usize,
}

impl LogKeeper {
    /// Counts the pages that the writer's commits leave in the log.
    pub(super) fn watch(
        writer: &mut Connection,
        log: Arc<Log>,
        passes: Sender<()>,
    ) -> rusqlite::Result<LogKeeper> {
        let counted = Arc::clone(&log);
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            counted.pages.store(usize::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(LogKeeper { log, passes, asked_at: 0 })
    }

    /// Does what the log needs, between two batches.
    pub(super) fn tend(&mut self, writer: &Connection) {
        let pages = self.log.pages.load(Ordering::Relaxed);
        if pages < self.asked_at {
            self.asked_at = 0; // it was started over
        }
        if pages >= HARD_PAGES {
            self.restart(writer, HARD_WAIT);
        } else if pages >= RESTART_PAGES && self.log.restart.swap(false, Ordering::Relaxed) {
            self.restart(writer, SHORT_WAIT);
        } else if pages >= self.asked_at + PASS_PAGES {
            self.ask_for_pass(pages);
        }
    }

    /// For a full disk: afterwards the log's space can be written again.
    pub(super) fn make_room(&mut self, writer: &Connection) {
        self.restart(writer, SHORT_WAIT);
    }

    /// Empties the file, between two batches. Answers `false` if that cannot be now: because there is much to copy first,
    /// or because somebody still reads from it. Either way no commit waits for long.
    pub(super) fn empty(&mut self, writer: &Connection) -> rusqlite::Result<bool> {
        if self.log.rest() > EMPTY_REST {
            self.ask_for_pass(self.log.pages.load(Ordering::Relaxed));
            return Ok(false);
        }
        self.start_over(writer, CheckpointMode::TRUNCATE, SHORT_WAIT)
    }

    fn ask_for_pass(&mut self, pages: usize) {
        self.asked_at = pages;
        match self.passes.try_send(()) {
            // A pass that is already waiting will copy these pages too.
            Ok(()) | Err(TrySendError::Full(())) => {}
            Err(TrySendError::Disconnected(())) => tracing::warn!("the checkpoint thread is gone"),
        }
    }

    /// Lets the next commit write at the log's beginning. The file keeps its size.
    fn restart(&mut self, writer: &Connection, wait: Duration) {
        match self.start_over(writer, CheckpointMode::RESTART, wait) {
            Ok(false) if wait >= HARD_WAIT => {
                tracing::warn!("the write-ahead log cannot be started over: a long read still uses it");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot move the write-ahead log into the database"),
        }
    }

    /// Copies what is left and starts the log over, if readers let go of it in time.
    fn start_over(
        &mut self,
        writer: &Connection,
        mode: CheckpointMode,
        wait: Duration,
    ) -> rusqlite::Result<bool> {
        writer.busy_timeout(wait)?;
        let copied = checkpoint(writer, mode);
        writer.busy_timeout(PATIENCE)?;
        match copied {
            Ok(_) => {
                self.asked_at = 0;
                self.log.started_over();
                Ok(true)
            }
            Err(error) if is_busy(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The checkpointer's thread: a pass for every call, until the writer is gone.
pub(super) fn run(connection: &Connection, log: &Log, calls: &Receiver<()>) {
    let mut healthy = true;
    while calls.recv().is_ok() {
        match pass(connection, log) {
            Ok(pages) => {
                healthy = true;
                if pages >= RESTART_PAGES {
                    log.restart.store(true, Ordering::Relaxed);
                }
            }
            // Somebody else is copying.
            Err(error) if is_busy(&error) => {}
            // Said once, not every few milliseconds for as long as the disk is full.
            Err(error) if healthy => {
                healthy = false;
                tracing::warn!(%error, "cannot move the write-ahead log into the database");
            }
            Err(_) => {}
        }
    }
}

/// Copies until little is left of what was written meanwhile; answers how many pages the log has.
fn pass(connection: &Connection, log: &Log) -> rusqlite::Result<usize> {
    let mut pages = 0;
    for _ in 0..3 {
        let (total, copied) = checkpoint(connection, CheckpointMode::PASSIVE)?;
        pages = total;
        log.copied.store(copied, Ordering::Relaxed);
        if log.rest() <= SMALL_REST {
            break;
        }
    }
    Ok(pages)
}

/// Copies everything and empties the file, waiting for those who still read from it: for when nothing is written.
pub(super) fn truncate(connection: &Connection) -> rusqlite::Result<()> {
    checkpoint(connection, CheckpointMode::TRUNCATE).map(drop)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// As [`truncate`], for closing, when no other connection is open.
pub(super) fn empty(connection: &Connection) {
    if let Err(error) = truncate(connection) {
        tracing::warn!(%error, "the write-ahead log stays beside the database; the next start reads it");
    }
}

/// How many pages the log has, and how many of them are copied.
fn checkpoint(connection: &Connection, mode: CheckpointMode) -> rusqlite::Result<(usize, usize)> {
    let (total, copied) = connection.wal_checkpoint_v2(None::<&str>, mode)?;
    Ok((usize::try_from(total).unwrap_or(0), usize::try_from(copied).unwrap_or(0)))
}
