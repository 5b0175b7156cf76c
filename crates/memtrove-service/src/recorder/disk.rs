//! The part of a disk that the recordings of this node share.
//!
//! It is one file without a name, cut into places of one size. Without a name, because then the system takes it back when the
//! process ends, however it ends: a crash leaves nothing behind, and nothing has to be swept at the next start. One for all
//! recordings, because a thousand of them would need a thousand open files.

use super::metrics;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// What one place holds, in bytes.
pub(super) const PLACE: usize = 32 * 1024;
/// How many threads read at once, and how many write: a disk that stands still must not take up all the threads there are.
const AT_ONCE: usize = 4;

/// Places for pieces of recordings.
pub(super) struct Disk {
    directory: PathBuf,
    most: u32,
    runtime: Handle,
    places: Mutex<Places>,
    /// What else holds places and can do without them.
    spare: OnceLock<MakesRoom>,
    reads: Semaphore,
    writes: Semaphore,
}

/// Gives places back that are least needed; `false` if there are none.
type MakesRoom = Box<dyn Fn() -> bool + Send + Sync>;

#[derive(Default)]
struct Places {
    /// Made when it is first needed, given up when nothing is in it.
    file: Option<Arc<File>>,
    used: u32,
    /// No place from here on was ever used.
    untouched: u32,
    free: Vec<u32>,
}

/// Why nothing could be written.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// Everything that may be used is.
    NoRoom,
    /// The disk says so.
    Failed(io::Error),
}

impl Disk {
    /// As much of the disk as `bytes`, in `directory`; nothing is made there yet.
    pub(super) fn new(directory: Option<PathBuf>, bytes: u64, runtime: Handle) -> Self {
        Self {
            directory: directory.unwrap_or_else(std::env::temp_dir),
            most: u32::try_from(bytes / PLACE as u64).unwrap_or(u32::MAX),
            runtime,
            places: Mutex::default(),
            spare: OnceLock::new(),
            reads: Semaphore::new(AT_ONCE),
            writes: Semaphore::new(AT_ONCE),
        }
    }

    /// Takes a place, if there is one.
    pub(super) fn take(&self) -> Option<u32> {
        let mut places = self.places();
        if places.used >= self.most {
            return None;
        }
        let place = places.free.pop().unwrap_or_else(|| {
            places.untouched += 1;
            places.untouched - 1
        });
        places.used += 1;
        metrics::disk(u64::from(places.used) * PLACE as u64);
        Some(place)
    }

    /// Says who makes room when there is none.
    pub(super) fn let_make_room(&self, spare: impl Fn() -> bool + Send + Sync + 'static) {
        // Said once, when a node begins.
        let _ = self.spare.set(Box::new(spare));
    }

    /// Makes room for a writer that found none; `false` if nothing can be spared.
    pub(super) fn make_room(&self) -> bool {
        self.spare.get().is_some_and(|spare| spare())
    }

    /// Gives places back that are neither read nor written any more.
    pub(super) fn give_back(&self, given: impl ExactSizeIterator<Item = u32>) {
        let mut places = self.places();
        places.used -= given.len() as u32;
        places.free.extend(given);
        metrics::disk(u64::from(places.used) * PLACE as u64);
        if places.used > 0 {
            return;
        }
        let emptied = std::mem::take(&mut *places);
        drop(places);
        // Closing it frees what it took, which can be much.
        self.runtime.spawn_blocking(move || drop(emptied));
    }

    /// Does something in the background, when it is its turn among those who write.
    pub(super) fn write_with(self: &Arc<Self>, work: impl FnOnce(&Disk) + Send + 'static) {
        let disk = Arc::clone(self);
        self.runtime.clone().spawn(async move {
            // Never closed, so there is always a turn.
            let _turn = disk.writes.acquire().await;
            let this = Arc::clone(&disk);
            if let Err(error) = disk.runtime.spawn_blocking(move || work(&this)).await {
                tracing::error!(%error, "a recording could not be written");
            }
        });
    }

    /// Does something, when it is its turn among those who read.
    pub(super) async fn read_with<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Disk) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let _turn = self.reads.acquire().await;
        let disk = Arc::clone(self);
        self.runtime
            .spawn_blocking(move || work(&disk))
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Fills a place that was [taken](Disk::take). Blocks.
    pub(super) fn write(&self, place: u32, bytes: &[u8]) -> Result<(), NotWritten> {
        debug_assert!(bytes.len() <= PLACE);
        let written = self.file().and_then(|file| positioned::write(&file, bytes, offset(place)));
        written.map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NotWritten::NoRoom,
            _ => NotWritten::Failed(error),
        })
    }

    /// Reads from the beginning of a place. Blocks.
    pub(super) fn read(&self, place: u32, bytes: &mut [u8]) -> io::Result<()> {
        positioned::read(&*self.file()?, bytes, offset(place))
    }

    fn file(&self) -> io::Result<Arc<File>> {
        let mut places = self.places();
        if let Some(file) = &places.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(tempfile::tempfile_in(&self.directory)?);
        places.file = Some(Arc::clone(&file));
        Ok(file)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many places are taken.
    #[cfg(test)]
    pub(super) fn used(&self) -> u32 {
        self.places().used
    }
}

fn offset(place: u32) -> u64 {
    u64::from(place) * PLACE as u64
}

#[cfg(unix)]
mod positioned {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;

    pub(super) fn write(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        file.write_all_at(bytes, at)
    }

    pub(super) fn read(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
        file.read_exact_at(bytes, at)
    }
}

#[cfg(windows)]
mod positioned {
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    pub(super) fn write(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = file.seek_write(bytes, at)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            (bytes, at) = (&bytes[written..], at + written as u64);
        }
        Ok(())
    }

    pub(super) fn read(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let read = file.seek_read(bytes, at)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (bytes, at) = (&mut bytes[read..], at + read as u64);
        }
        Ok(())
    }
}
