//! SQLite's errors, as sentences that say what to do.

use crate::StoreError;
use crate::damage::Damage;
use crate::memories::segments::SegmentFolder;
use rusqlite::ffi::{SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_DATA, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ};
use rusqlite::{Error, ErrorCode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a database lies; knows how to talk about it.
#[derive(Debug, Clone)]
pub(super) struct DatabaseFile {
    pub(super) database: PathBuf,
    pub(super) damage: Arc<Damage>,
    /// Where indexes are kept between starts; a database in memory has none.
    pub(super) segments: Option<Arc<SegmentFolder>>,
}

impl DatabaseFile {
    pub(super) fn new(database: PathBuf) -> Self {
        Self { database, damage: Arc::default(), segments: None }
    }

    /// The folder that holds the database.
    pub(super) fn folder(&self) -> &Path {
        match self.database.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// The file whose lock says that a process uses the database.
    pub(super) fn lock_file(&self) -> PathBuf {
        self.beside(".lock")
    }

    /// The folder of indexes.
    pub(super) fn segment_folder(&self) -> PathBuf {
        self.beside(".index")
    }

    /// The write-ahead log.
    pub(super) fn log_file(&self) -> PathBuf {
        self.beside("-wal")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.database.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// What a failure of SQLite means for the caller.
    pub(super) fn error(&self, error: &Error) -> StoreError {
        if is_damage(error) {
            let what =
                format!("the database {} is damaged ({error}): restore a backup", self.database.display());
            self.damage.found(&what);
            return StoreError::Damaged(what);
        }
        let folder = self.folder().display();
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => StoreError::Constraint(error.to_string()),
            Some(ErrorCode::DiskFull) => {
                StoreError::Unavailable(format!("the disk is full: free space in {folder} and try again"))
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => self.read_only(),
            Some(ErrorCode::SystemIoFailure) => StoreError::Unavailable(format!(
                "the disk failed under {folder} ({error}): check it and its free space, then try again"
            )),
            Some(ErrorCode::CannotOpen) => StoreError::Unavailable(format!(
                "cannot open the database {} ({error}): check that the folder exists and may be written",
                self.database.display()
            )),
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => StoreError::Unavailable(format!(
                "another program holds the database {} ({error}): close it and try again",
                self.database.display()
            )),
            Some(ErrorCode::OutOfMemory) => {
                StoreError::Unavailable("there is not enough memory for the database: try again later".into())
            }
            _ => StoreError::Broken(error.to_string()),
        }
    }

    /// What a failure of the file system means when the database is opened.
    pub(super) fn io_error(&self, error: &std::io::Error) -> StoreError {
        use std::io::ErrorKind;
        let folder = self.folder().display();
        match error.kind() {
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => self.read_only(),
            ErrorKind::StorageFull => {
                StoreError::Unavailable(format!("the disk is full: free space in {folder} and try again"))
            }
            _ => StoreError::Unavailable(format!(
                "cannot use the data folder {folder} ({error}): check the path, or choose another with --data-dir"
            )),
        }
    }

    pub(super) fn read_only(&self) -> StoreError {
        StoreError::Unavailable(format!(
            "the data folder {} is read-only: make it writable, or choose another with --data-dir",
            self.folder().display()
        ))
    }
}

/// Whether what is stored could not be read, as opposed to the disk being full or away.
fn is_damage(error: &Error) -> bool {
    const UNREADABLE: [i32; 4] =
        [SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_DATA];
    match error.sqlite_error() {
        Some(failure) => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                || UNREADABLE.contains(&failure.extended_code)
        }
        None => false,
    }
}

/// Whether freeing space would help.
pub(super) fn is_disk_full(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
