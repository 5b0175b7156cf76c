//! Blobs as files of a directory.
//!
//! A blob is written to a file of its own below `.uploads` and moved to its place when it is whole and on disk. The process that
//! writes such a file holds a lock on it, so that a process that starts can tell what a crash left from what another one
//! is busy with; several may share the directory.

use crate::{BlobError, ByteStream, ListedBlob, Opened};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// How many bytes are written at once.
pub(crate) const PART: usize = 256 * 1024;
/// How many bytes are read at once.
const PORTION: usize = 64 * 1024;
/// No key begins with a dot, so no blob lies here.
const UPLOADS: &str = ".uploads";
/// How much of a listing may wait for its reader.
const LISTED_AHEAD: usize = 64;

#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) fn open(root: &Path) -> Result<Self, BlobError> {
        let root = std::path::absolute(root).map_err(|error| unavailable(root, &error))?;
        let uploads = root.join(UPLOADS);
        make_folders(&uploads).map_err(|error| unavailable(&uploads, &error))?;
        remove_abandoned(&uploads).map_err(|error| unavailable(&uploads, &error))?;
        Ok(Self { root })
    }

    pub(crate) async fn begin(&self, key: &str) -> Result<FileUpload, BlobError> {
        let (root, target) = (self.root.clone(), self.path(key));
        blocking(move || {
            let (file, path) = new_file(&root.join(UPLOADS))?;
            Ok(FileUpload { root, file: Arc::new(file), path: Some(path), target })
        })
        .await
        .map_err(not_of_a_blob)
    }

    pub(crate) async fn read(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        version: Option<String>,
    ) -> Result<Opened, BlobError> {
        let path = self.path(key);
        blocking(move || {
            let mut file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(BlobError::Missing),
                file => file?,
            };
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(BlobError::Missing);
            }
            let (size, found) = (metadata.len(), version_of(&metadata));
            if version.is_some_and(|version| version != found) {
                return Err(BlobError::replaced());
            }
            let range = range.unwrap_or(0..size);
            if range.start > 0 && range.start >= size || size == 0 && range.end > 0 {
                return Err(BlobError::beyond(&range, size));
            }
            file.seek(SeekFrom::Start(range.start))?;
            let bytes = contents(file, range.end.min(size) - range.start);
            Ok(Opened { size, version: Some(found), bytes })
        })
        .await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let path = self.path(key);
        blocking(move || match fs::remove_file(&path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(())
            }
            // A folder of other blobs, as a key, is a blob that is not there.
            Err(_) if path.is_dir() => Ok(()),
            done => Ok(done?),
        })
        .await
    }

    pub(crate) fn list(&self, prefix: &str) -> BoxStream<'static, Result<ListedBlob, BlobError>> {
        let (sender, receiver) = mpsc::channel(LISTED_AHEAD);
        let (root, prefix) = (self.root.clone(), prefix.to_owned());
        spawn_blocking(move || {
            if let Err(error) = walk(&root.join(&prefix), &prefix, &sender) {
                // The listener is gone, or is told of the error.
                let _ = sender.blocking_send(Err(error.into()));
            }
        });
        Box::pin(stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) }))
    }

    pub(crate) async fn check(&self) -> Result<(), BlobError> {
        let root = self.root.clone();
        blocking(move || writable(&root).map_err(|error| unavailable(&root, &error))).await
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }
}

/// A blob that is being written. Dropped, its file goes.
#[derive(Debug)]
pub(crate) struct FileUpload {
    root: PathBuf,
    file: Arc<File>,
    /// Where it is until it is finished.
    path: Option<PathBuf>,
    target: PathBuf,
}

impl FileUpload {
    pub(crate) async fn write(&mut self, part: Bytes) -> Result<(), BlobError> {
        let file = self.file.clone();
        blocking(move || Ok((&*file).write_all(&part)?)).await.map_err(not_of_a_blob)
    }

    pub(crate) async fn finish(mut self, rest: Bytes) -> Result<(), BlobError> {
        blocking(move || {
            (&*self.file).write_all(&rest)?;
            self.file.sync_all()?;
            let folders = self.target.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
            let folders: Vec<&Path> = folders.collect();
            make_folders(folders.first().unwrap_or(&&*self.root))?;
            if let Some(path) = &self.path {
                fs::rename(path, &self.target)?;
            }
            drop(self.path.take());
            // All of them: who made one of them lately may not have come as far as this.
            Ok(folders.into_iter().try_for_each(sync_folder)?)
        })
        .await
        .map_err(not_of_a_blob)
    }
}

impl Drop for FileUpload {
    fn drop(&mut self) {
        if let Some(path) = self.path.take()
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "an upload that was given up cannot be removed");
        }
    }
}

/// A file of its own that is locked before anybody could take it for abandoned.
fn new_file(uploads: &Path) -> io::Result<(File, PathBuf)> {
    loop {
        let path = uploads.join(random_name()?);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            file => file?,
        };
        if is_ours(file.try_lock(), &path)? {
            return Ok((file, path));
        }
    }
}

/// Whether a file that was just made may be written. A process that starts right now may have it in its hands, and remove it;
/// where there are no locks, it looks like what a crash left, so it goes.
fn is_ours(locked: Result<(), TryLockError>, path: &Path) -> io::Result<bool> {
    match locked {
        Ok(()) => Ok(path.exists()),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => {
            fs::remove_file(path)?;
            Err(io::Error::new(error.kind(), format!("files cannot be locked there: {error}")))
        }
    }
}

fn random_name() -> io::Result<String> {
    let mut random = [0; 16];
    aws_lc_rs::rand::fill(&mut random).map_err(|_| io::Error::other("there is no randomness"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}

/// Removes what is not locked. What cannot be removed takes up room and does no other harm.
fn remove_abandoned(uploads: &Path) -> io::Result<()> {
    for entry in fs::read_dir(uploads)? {
        let entry = entry?;
        let path = entry.path();
        match entry.file_type().and_then(|kind| remove_unlocked(&path, kind.is_file())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "what is left of an upload cannot be removed");
            }
            _ => {}
        }
    }
    Ok(())
}

fn remove_unlocked(path: &Path, is_file: bool) -> io::Result<()> {
    if !is_file {
        return Err(io::Error::other("it is not a file"));
    }
    // Some network file systems lock for one writer only what is open for writing.
    match OpenOptions::new().write(true).open(path)?.try_lock() {
        Ok(()) => fs::remove_file(path),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Makes a folder and those above it, readable for this user only, so that they survive a crash.
fn make_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new("/"));
    make_folders(above)?;
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        // Somebody else made it just now, and may not have got as far as the next line.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made?,
    }
    sync_folder(above)
}

/// Puts on disk which files a folder has.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Whether this process may make files there. Makes none.
fn writable(folder: &Path) -> io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder"));
    }
    #[cfg(unix)]
    {
        use rustix::fs::Access;
        rustix::fs::access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?;
    }
    Ok(())
}

/// Tells a file from one that takes its place.
fn version_of(metadata: &Metadata) -> String {
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{inode}-{}-{}", modified.unwrap_or_default().as_nanos(), metadata.len())
}

/// The next bytes of a file, as many as asked for.
fn contents(file: File, length: u64) -> ByteStream {
    let read = |(mut file, left): (File, u64)| async move {
        if left == 0 {
            return Ok(None);
        }
        let portion = usize::try_from(left).map_or(PORTION, |left| left.min(PORTION));
        blocking(move || {
            let mut bytes = BytesMut::zeroed(portion);
            file.read_exact(&mut bytes)?;
            Ok(Some((bytes.freeze(), (file, left - portion as u64))))
        })
        .await
        // It was there when it was opened: somebody cut it.
        .map_err(not_of_a_blob)
    };
    Box::pin(stream::try_unfold((file, length), read))
}

/// Tells of every blob below a folder; a listener that is gone ends it quietly.
fn walk(
    folder: &Path,
    prefix: &str,
    listener: &mpsc::Sender<Result<ListedBlob, BlobError>>,
) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        // What has a name that no key has is not ours.
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let key = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if crate::key::check(&key).is_err() {
            continue;
        }
        let metadata = match entry.metadata() {
            // Deleted since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        if metadata.is_dir() {
            walk(&entry.path(), &key, listener)?;
        } else if metadata.is_file() {
            let listed = ListedBlob { key, size: metadata.len(), modified: metadata.modified()? };
            if listener.blocking_send(Ok(listed)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    spawn_blocking(work).await.map_err(BlobError::unavailable)?
}

fn unavailable(path: &Path, error: &io::Error) -> BlobError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => BlobError::Denied,
        _ => BlobError::unavailable(format_args!("{}: {error}", path.display())),
    }
}

/// What is missing where something is written, or where a file was opened already, is not the blob.
fn not_of_a_blob(error: BlobError) -> BlobError {
    match error {
        BlobError::Missing => BlobError::Unavailable("the directory is gone".into()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_files_cannot_be_locked_nothing_is_left_and_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made");
        let made = || fs::write(&path, b"").unwrap();
        made();
        assert!(is_ours(Ok(()), &path).unwrap());
        assert!(!is_ours(Err(TryLockError::WouldBlock), &path).unwrap());
        let error = is_ours(Err(TryLockError::Error(io::ErrorKind::Unsupported.into())), &path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(!path.exists());
        assert!(!is_ours(Ok(()), &path).unwrap(), "somebody took it for abandoned");
    }
}
