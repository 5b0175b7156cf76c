//! A database in a file: its folder, its disk, who has it open.

use super::store::Readable;
use super::{Check, DATABASE};
use crate::config::{Bytes, Config};
use crate::terminal;
use memtrove_store::sqlite::{self, Soundness, SqliteInspection};
use memtrove_store::vault::Vault;
use memtrove_store::{StoreError, Tx};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Less than this is worth a word: SQLite needs room for its log, and a full disk stops every write.
const LITTLE_SPACE: u64 = 1 << 30;
/// With less than this writes are about to fail.
const NO_SPACE: u64 = 64 << 20;

const BAR: &str = "looking at the database {bar:40} {pos}/{len} pages {elapsed}";
/// A server cannot start its log over while somebody looks at its database, so that it grows.
const PATIENCE_BESIDE_SERVER: Duration = Duration::from_secs(10);

/// A database file, after a look at it that changed nothing.
pub(super) struct ExaminedSqlite {
    path: PathBuf,
    /// Who has it open, in words.
    holder: Option<String>,
    /// What was found; `None` where no file is.
    found: Option<Result<SqliteInspection, StoreError>>,
    /// Whether all of it can be read; `None` where there is nothing that could.
    soundness: Option<Result<Soundness, StoreError>>,
}

impl ExaminedSqlite {
    pub(super) fn of(path: PathBuf, vault: Vault) -> Self {
        let holder = lock_holder(&path);
        let found = path.exists().then(|| sqlite::inspect(&path, vault));
        let soundness =
            found.as_ref().is_some_and(Result::is_ok).then(|| look_through(&path, holder.is_some()));
        Self { path, holder, found, soundness }
    }

    pub(super) fn in_use(&self) -> bool {
        self.holder.is_some()
    }

    pub(super) fn readable(&self) -> Readable<'_> {
        match &self.found {
            None | Some(Err(_)) => Readable::Nothing,
            Some(Ok(found)) => Readable::of(found.readable.as_ref()),
        }
    }

    pub(super) fn look<T>(
        &self,
        vault: Vault,
        read: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        sqlite::look(&self.path, vault, read)
    }

    /// What there is to say, where the server that has it may be `running` as configured.
    pub(super) fn checks(&self, config: &Config, running: bool) -> Vec<Check> {
        let database = match &self.holder {
            Some(holder) => used_database(&self.path, holder, running),
            None => free_database(&self.path, self.found.as_ref()),
        };
        let folder = &config.server.data_dir;
        let integrity = self.soundness.as_ref().map(|soundness| integrity(&self.path, soundness));
        [data_folder(folder), database].into_iter().chain(integrity).chain(free_space(folder)).collect()
    }
}

fn data_folder(folder: &Path) -> Check {
    folder_check("data folder", folder, "--data-dir")
}

/// Whether a server could write to a folder, and make it if it is not there; another one is chosen with `choice`.
pub(super) fn folder_check(name: &'static str, folder: &Path, choice: &str) -> Check {
    let shown = folder.display();
    let Some(existing) = nearest_existing(folder) else {
        return Check::problem(
            name,
            format!("{shown} cannot be made"),
            format!("choose another with {choice}"),
        );
    };
    // Permissions, read-only mounts and quotas all show in whether a file can be made, and nowhere else reliably.
    let probe = existing.join(format!(".memtrove-doctor-{}", std::process::id()));
    let written = File::create_new(&probe);
    let _ = std::fs::remove_file(&probe);
    match written {
        Ok(_) if existing == folder => Check::ok(name, format!("{shown} can be written")),
        Ok(_) => Check::ok(name, format!("{shown} is not there yet and will be created")),
        Err(error) => Check::problem(
            name,
            format!("{} cannot be written: {error}", existing.display()),
            format!("give this user the right to write there, or choose another folder with {choice}"),
        ),
    }
}

/// The folder itself, or the closest one above it that is there.
fn nearest_existing(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
        .find(|folder| folder.is_dir())
}

/// A database that a process has open: a server that is `running` as configured, or something that is in the way.
fn used_database(path: &Path, holder: &str, running: bool) -> Check {
    let message = format!("{} is in use by {holder}", path.display());
    if running {
        return Check::warning(DATABASE, message);
    }
    Check::problem(DATABASE, message, "stop that process, or choose another folder with --data-dir")
}

fn free_database(path: &Path, found: Option<&Result<SqliteInspection, StoreError>>) -> Check {
    let shown = path.display();
    match found {
        None => Check::ok(DATABASE, format!("{shown} is not there yet and will be created")),
        Some(Err(refusal)) => Check::refusal(DATABASE, refusal),
        Some(Ok(SqliteInspection { schema, .. })) if *schema > sqlite::known_schema() => Check::problem(
            DATABASE,
            format!(
                "{shown} has schema {schema}, and this version of memtrove knows up to {}",
                sqlite::known_schema()
            ),
            "start the newer version that wrote it, or restore a backup made before the upgrade",
        ),
        Some(Ok(SqliteInspection { schema: 0, .. })) if path.metadata().is_ok_and(|file| file.len() == 0) => {
            Check::advice(
                DATABASE,
                format!("{shown} is an empty file: a server would begin anew in it"),
                "if there was something in it, put it aside and restore a backup",
            )
        }
        Some(Ok(SqliteInspection { schema, .. })) => {
            Check::ok(DATABASE, format!("{shown} is a database with schema {schema}, not in use"))
        }
    }
}

/// Looks at every page, showing progress on a terminal.
fn look_through(path: &Path, in_use: bool) -> Result<Soundness, StoreError> {
    let (bar, started) = (terminal::progress_bar(BAR, 0), Instant::now());
    let shown = bar.clone();
    let soundness = sqlite::check(path, move |seen, pages| {
        shown.set_length(pages);
        shown.set_position(seen);
        !in_use || started.elapsed() < PATIENCE_BESIDE_SERVER
    });
    bar.finish_and_clear();
    soundness
}

fn integrity(path: &Path, soundness: &Result<Soundness, StoreError>) -> Check {
    const NAME: &str = "integrity";
    let shown = path.display();
    match soundness {
        Ok(Soundness::Sound) => Check::ok(NAME, "every page of the database can be read"),
        Ok(Soundness::Unfinished) => Check::advice(
            NAME,
            format!(
                "{shown} is large, and a server uses it: not all of it was looked at in {} s",
                PATIENCE_BESIDE_SERVER.as_secs()
            ),
            "stop the server and run this again, or run it on a copy",
        ),
        Ok(Soundness::Damaged(findings)) => Check::problem(
            NAME,
            format!("{shown} is damaged: {}", findings.join("; ")),
            "stop the server, keep a copy of the folder, and restore a backup; without one, docs/operations.md (Without a \
             backup) says how to save what can be read",
        ),
        Err(refusal) => Check::refusal(NAME, refusal),
    }
}

/// Who has this database open, in words. `None` when it is free.
fn lock_holder(database: &Path) -> Option<String> {
    let mut lock = database.as_os_str().to_owned();
    lock.push(".lock");
    let file = File::open(lock).ok()?;
    match file.try_lock_shared() {
        Ok(()) => None,
        Err(std::fs::TryLockError::WouldBlock) => Some(match lock_owner(&file) {
            Some(pid) => format!("process {pid}"),
            None => "another process".into(),
        }),
        Err(std::fs::TryLockError::Error(_)) => None,
    }
}

/// The process that holds a lock on this file, from the kernel's own list.
#[cfg(target_os = "linux")]
fn lock_owner(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|held| {
        // 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
        let fields: Vec<&str> = held.split_whitespace().collect();
        let matches = fields.get(1) == Some(&"FLOCK") && fields.get(5)?.ends_with(&inode);
        if matches { fields.get(4)?.parse().ok().filter(|pid| *pid != 0) } else { None }
    })
}

#[cfg(not(target_os = "linux"))]
fn lock_owner(_: &File) -> Option<u32> {
    None
}

#[cfg(unix)]
fn free_space(folder: &Path) -> Option<Check> {
    const NAME: &str = "disk space";
    let space = rustix::fs::statvfs(nearest_existing(folder)?).ok()?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let message = format!("{} free for {}", round(free), folder.display());
    Some(if free < NO_SPACE {
        Check::problem(NAME, message, "free some space, or choose another folder with --data-dir")
    } else if free < LITTLE_SPACE {
        Check::warning(NAME, message)
    } else {
        Check::ok(NAME, message)
    })
}

#[cfg(not(unix))]
fn free_space(_: &Path) -> Option<Check> {
    None
}

/// A number of bytes in a unit that a person reads at a glance.
fn round(bytes: u64) -> String {
    let unit = if bytes >= 10 << 30 { 30 } else { 20 };
    Bytes((bytes >> unit) << unit).to_string()
}
