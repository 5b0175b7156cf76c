//! What every store of blobs promises, asked of all of them: a directory, memory, and real servers that speak S3 and
//! Azure Blob.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod behaviours;
mod fetching;
mod links;
mod on_disk;
mod on_servers;
// Of the testkit this alone: the rest of it needs the whole product.
#[path = "../../../memtrove-testkit/src/object_stores.rs"]
mod object_stores;
mod tampering;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use memtrove_blobs::{AzureConfig, BlobError, Blobs, ByteStream, ListedBlob, S3Config, Seal};
use object_stores::{Bucket, Container};
use std::ops::Range;
use tempfile::TempDir;

/// A store of a test's own, and what keeps it.
struct Store {
    blobs: Blobs,
    _folder: Option<TempDir>,
}

impl Store {
    fn directory() -> Self {
        let folder = TempDir::new().unwrap();
        let blobs = Blobs::directory(folder.path().join("blobs")).unwrap();
        Self { blobs, _folder: Some(folder) }
    }

    fn memory() -> Self {
        Self { blobs: Blobs::memory().unwrap(), _folder: None }
    }

    fn s3() -> Self {
        Self { blobs: Blobs::s3(s3_config()).unwrap(), _folder: None }
    }

    fn azure() -> Self {
        Self { blobs: Blobs::azure(azure_config()).unwrap(), _folder: None }
    }

    async fn put(&self, key: &str, seal: Option<&Seal>, body: &[u8]) {
        let mut upload = self.blobs.put(key, seal).await.unwrap();
        // As it comes from a network: in portions that fit nothing.
        for portion in body.chunks(30_011) {
            upload.write(Bytes::copy_from_slice(portion)).await.unwrap();
        }
        assert_eq!(upload.finish().await.unwrap(), body.len() as u64);
    }

    async fn get(&self, key: &str, seal: Option<&Seal>) -> Result<Bytes, BlobError> {
        collect(self.blobs.get(key, seal, None).await?).await
    }

    async fn range(&self, key: &str, seal: Option<&Seal>, range: Range<u64>) -> Result<Bytes, BlobError> {
        collect(self.blobs.get(key, seal, Some(range)).await?).await
    }

    async fn list(&self, prefix: &str) -> Vec<ListedBlob> {
        let mut listed: Vec<ListedBlob> = self.blobs.list(prefix).try_collect().await.unwrap();
        listed.sort_by(|one, other| one.key.cmp(&other.key));
        listed
    }

    async fn keys(&self, prefix: &str) -> Vec<String> {
        self.list(prefix).await.into_iter().map(|listed| listed.key).collect()
    }
}

async fn collect(stream: ByteStream) -> Result<Bytes, BlobError> {
    let all = stream.try_fold(BytesMut::new(), |mut all, more| async move {
        all.extend_from_slice(&more);
        Ok(all)
    });
    Ok(all.await?.freeze())
}

/// Bytes of which no two stretches are alike.
fn body(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect()
}

fn seal() -> Seal {
    Seal::new([42; 32], "attachment 1")
}

fn s3_config() -> S3Config {
    let place = Bucket::fresh();
    S3Config {
        bucket: place.bucket,
        prefix: Some(place.prefix),
        region: Some(place.region.into()),
        endpoint: Some(place.endpoint),
        access_key_id: Some(place.access_key_id.into()),
        secret_access_key: Some(place.secret_access_key.into()),
        allow_http: true,
        ..S3Config::default()
    }
}

fn azure_config() -> AzureConfig {
    let place = Container::fresh();
    AzureConfig {
        account: place.account.into(),
        container: place.container,
        prefix: Some(place.prefix),
        access_key: Some(place.access_key.into()),
        endpoint: Some(place.endpoint),
        allow_http: true,
    }
}
