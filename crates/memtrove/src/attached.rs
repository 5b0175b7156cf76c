//! The bytes of attachments on their way between an object store and an archive.

use crate::config::{AttachmentStore, Config};
use anyhow::{Context, bail, ensure};
use futures_util::TryStreamExt;
use memtrove_blobs::{BlobError, Blobs, Upload};
use memtrove_store::archive::{ArchiveError, ArchivePart, ByteSource};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::runtime::Handle;

/// Pieces that wait to be written; each has some hundred kilobytes at most.
const READ_AHEAD: usize = 8;

/// The bytes of attachments as an export reads them: by a thread of its own, ahead of the one that packs them. Nothing is opened
/// before the first one is asked for.
pub struct AttachmentBytes {
    wanted: SyncSender<String>,
    found: Receiver<BlobPiece>,
}

enum BlobPiece {
    Begin,
    Piece(Vec<u8>),
    End,
    Missing,
    Failed(String),
}

impl AttachmentBytes {
    /// From where a configuration keeps them. To be called inside a runtime.
    pub fn of(config: &Config) -> Self {
        let (wanted, keys) = sync_channel::<String>(1);
        let (pieces, found) = sync_channel(READ_AHEAD);
        let (config, runtime) = (config.clone(), Handle::current());
        std::thread::spawn(move || {
            let mut blobs = None;
            // Both ends when the export does.
            while let Ok(key) = keys.recv() {
                let opened = match blobs.take() {
                    Some(blobs) => Ok(blobs),
                    None => open_existing(&config).map_err(|error| format!("{error:#}")),
                };
                let done = match opened {
                    Ok(opened) => {
                        let read = runtime.block_on(read(&opened, &key, &pieces));
                        blobs = Some(opened);
                        read.or_else(|error| pieces.send(BlobPiece::Failed(error.to_string())).map_err(drop))
                    }
                    Err(error) => pieces.send(BlobPiece::Failed(error)).map_err(drop),
                };
                if done.is_err() {
                    return;
                }
            }
        });
        Self { wanted, found }
    }

    fn next(&self) -> Result<BlobPiece, ArchiveError> {
        match self.found.recv() {
            Ok(BlobPiece::Failed(why)) => Err(ArchiveError::Refused(format!(
                "the bytes of an attachment cannot be read: {why}. Leave them out with --without-attachments, or try again"
            ))),
            Ok(found) => Ok(found),
            Err(_) => Err(ArchiveError::Refused("the reader of attachments has stopped".into())),
        }
    }
}

impl ByteSource for AttachmentBytes {
    fn find(&mut self, key: &str) -> Result<bool, ArchiveError> {
        // If the reader is gone, the next line says so.
        let _ = self.wanted.send(key.to_owned());
        Ok(!matches!(self.next()?, BlobPiece::Missing))
    }

    fn read(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>) -> Result<(), ArchiveError> {
        while let BlobPiece::Piece(piece) = self.next()? {
            each(&piece)?;
        }
        Ok(())
    }
}

/// As [`open`], for those who only read: where there is no directory, none is made that would look like an empty one.
fn open_existing(config: &Config) -> anyhow::Result<Blobs> {
    if config.attachments.store == AttachmentStore::Directory {
        let directory = config.attachments.directory(&config.server.data_dir);
        ensure!(directory.is_dir(), "there is no directory {}", directory.display());
    }
    open(config)
}

fn open(config: &Config) -> anyhow::Result<Blobs> {
    let blobs = config.attachments.blobs(&config.server.data_dir)?;
    blobs.context("there are attachments, and attachments.store is none")
}

/// Hands over the bytes under a key as they are stored: sealed ones stay sealed. The caller may be gone.
async fn read(blobs: &Blobs, key: &str, pieces: &SyncSender<BlobPiece>) -> Result<(), BlobError> {
    let gone = |_| BlobError::Invalid("the caller has gone away".into());
    let mut bytes = match blobs.get(key, None, None).await {
        Ok(bytes) => bytes,
        Err(BlobError::Missing) => return pieces.send(BlobPiece::Missing).map_err(gone),
        Err(error) => return Err(error),
    };
    pieces.send(BlobPiece::Begin).map_err(gone)?;
    while let Some(piece) = bytes.try_next().await? {
        pieces.send(BlobPiece::Piece(piece.into())).map_err(gone)?;
    }
    pieces.send(BlobPiece::End).map_err(gone)
}

/// Puts the bytes of attachments where a configuration keeps them, as an import reads them. What an earlier run has brought is
/// written once more.
pub struct Putting {
    config: Config,
    blobs: Option<Blobs>,
    upload: Option<Upload>,
}

impl Putting {
    /// Nothing is opened before the first one comes.
    pub fn new(config: Config) -> Self {
        Self { config, blobs: None, upload: None }
    }

    /// Takes the next part of an archive, if it has to do with bytes.
    pub async fn put(&mut self, part: ArchivePart) -> anyhow::Result<()> {
        const FAILED: &str = "the bytes of an attachment cannot be stored";
        match (part, self.upload.take()) {
            (ArchivePart::Blob(key), None) => {
                let blobs = match self.blobs.take() {
                    Some(blobs) => blobs,
                    None => open(&self.config).context(FAILED)?,
                };
                self.upload = Some(blobs.put(&key, None).await.context(FAILED)?);
                self.blobs = Some(blobs);
            }
            (ArchivePart::Bytes(bytes), Some(mut upload)) => {
                upload.write(bytes.into()).await.context(FAILED)?;
                self.upload = Some(upload);
            }
            (ArchivePart::BlobEnd, Some(upload)) => drop(upload.finish().await.context(FAILED)?),
            _ => bail!("the archive's parts are not in order"),
        }
        Ok(())
    }
}
