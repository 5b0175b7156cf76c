//! Large bodies in a directory, S3 or Azure Blob, sealed if there is a key; and fetching them from public addresses of the
//! web.
//!
//! This crate knows bytes, keys and stores, and not what they are for. Bytes pass in pieces: no body is held whole. To add a
//! store, give [`Backend`] a variant and pass the suite in `tests/suite`.

mod directory;
mod error;
pub mod fetch;
mod key;
mod objects;
mod reading;
mod sas;
mod seal;
mod upload;

use bytes::Bytes;
use directory::Directory;
pub use error::BlobError;
use futures_util::stream::BoxStream;
use objects::Objects;
pub use objects::{AzureConfig, S3Config};
pub use seal::Seal;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
pub use upload::Upload;

/// The bytes of a blob, as they come.
pub type ByteStream = BoxStream<'static, Result<Bytes, BlobError>>;

/// A place for blobs. A key is one to eight names with `/` between them, each of letters, digits, `-`, `_` and `.`, and
/// none begins with a dot.
#[derive(Debug, Clone)]
pub struct Blobs(Arc<Backend>);

#[derive(Debug)]
enum Backend {
    Directory(Directory),
    Objects(Objects),
}

/// A blob as a listing names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBlob {
    pub key: String,
    /// How many bytes are stored; of a sealed one that is more than were written.
    pub size: u64,
    /// When it was written, by the clock of the store.
    pub modified: SystemTime,
}

/// What a read found, before it is opened.
struct Opened {
    /// How many bytes the whole blob has where it is stored.
    size: u64,
    /// Tells this blob from another one written to the same key later.
    version: Option<String>,
    bytes: ByteStream,
}

impl Blobs {
    /// In a directory, which is made if it is missing. What abandoned uploads left there is removed.
    pub fn directory(path: impl AsRef<Path>) -> Result<Self, BlobError> {
        Ok(Self(Arc::new(Backend::Directory(Directory::open(path.as_ref())?))))
    }

    /// In a bucket of S3, or of something that speaks its language.
    pub fn s3(config: S3Config) -> Result<Self, BlobError> {
        Ok(Self(Arc::new(Backend::Objects(Objects::s3(config)?))))
    }

    /// In a container of Azure Blob Storage.
    pub fn azure(config: AzureConfig) -> Result<Self, BlobError> {
        Ok(Self(Arc::new(Backend::Objects(Objects::azure(config)?))))
    }

    /// In the memory of this process: for tests.
    pub fn memory() -> Result<Self, BlobError> {
        Ok(Self(Arc::new(Backend::Objects(Objects::memory()))))
    }

    /// Begins a blob. What is written goes to the store in parts, and nothing beyond a part is held here. It is invisible
    /// before [`Upload::finish`], which replaces what was there under this key; dropped or aborted, nothing stays.
    pub async fn put(&self, key: &str, seal: Option<&Seal>) -> Result<Upload, BlobError> {
        key::check(key)?;
        let target = match &*self.0 {
            Backend::Directory(directory) => upload::Target::File(directory.begin(key).await?),
            Backend::Objects(objects) => upload::Target::Object(objects.begin(key)),
        };
        Upload::begin(target, seal)
    }

    /// The bytes of a blob, or a range of them. One that ends after the blob ends with it; one that is empty, or begins
    /// where the blob has ended, is [`BlobError::Invalid`]. Sealed blobs are opened and verified piece by piece, so what
    /// comes out before an error is true; of a range, only the pieces it touches are read.
    pub async fn get(
        &self,
        key: &str,
        seal: Option<&Seal>,
        range: Option<Range<u64>>,
    ) -> Result<ByteStream, BlobError> {
        key::check(key)?;
        if let Some(range) = range.as_ref().filter(|range| range.is_empty()) {
            return Err(BlobError::Invalid(format!("the range {range:?} is empty")));
        }
        match seal {
            None => Ok(self.open(key, range, None).await?.bytes),
            Some(seal) => reading::sealed(self, key, seal, range).await,
        }
    }

    /// Removes a blob. It is fine if there is none.
    pub async fn delete(&self, key: &str) -> Result<(), BlobError> {
        key::check(key)?;
        match &*self.0 {
            Backend::Directory(directory) => directory.delete(key).await,
            Backend::Objects(objects) => objects.delete(key).await,
        }
    }

    /// Every blob whose key begins with `prefix` and a `/`, in no particular order; with an empty prefix every blob.
    pub fn list(&self, prefix: &str) -> BoxStream<'static, Result<ListedBlob, BlobError>> {
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty()
            && let Err(error) = key::check(prefix)
        {
            return Box::pin(futures_util::stream::iter([Err(error)]));
        }
        match &*self.0 {
            Backend::Directory(directory) => directory.list(prefix),
            Backend::Objects(objects) => objects.list(prefix),
        }
    }

    /// A link with which anybody may read a blob for a while, and which answers with this type and disposition; `None`
    /// where the store cannot make one. It leads to the bytes as they are stored: of no use for sealed ones.
    pub async fn signed_url(
        &self,
        key: &str,
        lasting: Duration,
        content_type: Option<&str>,
        disposition: Option<&str>,
    ) -> Result<Option<String>, BlobError> {
        key::check(key)?;
        match &*self.0 {
            Backend::Directory(_) => Ok(None),
            Backend::Objects(objects) => objects.signed_url(key, lasting, content_type, disposition).await,
        }
    }

    /// Whether the store is there and lets us in. Changes nothing.
    pub async fn check(&self) -> Result<(), BlobError> {
        match &*self.0 {
            Backend::Directory(directory) => directory.check().await,
            Backend::Objects(objects) => objects.check().await,
        }
    }

    /// The stored bytes; with a `version`, only if they are still those of that read.
    async fn open(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        version: Option<String>,
    ) -> Result<Opened, BlobError> {
        match &*self.0 {
            Backend::Directory(directory) => directory.read(key, range, version).await,
            Backend::Objects(objects) => objects.read(key, range, version).await,
        }
    }
}
