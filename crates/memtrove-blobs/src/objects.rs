//! Blobs as objects of a store that `object_store` speaks to.

use crate::sas::SharedKey;
use crate::{BlobError, ByteStream, ListedBlob, Opened};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureConfigKey, AzureCredential, MicrosoftAzureBuilder};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::signer::{Method, SignedUrlOptions, Signer};
use object_store::{
    ClientOptions, GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload,
    RetryConfig, StaticCredentialProvider,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How many bytes go to the store at once: the least S3 takes for a part that another one follows.
pub(crate) const PART: usize = 5 * 1024 * 1024;

/// A bucket, and how to get into it.
#[derive(Clone, Default)]
pub struct S3Config {
    /// The name of the bucket.
    pub bucket: String,
    /// What all keys begin with, if several share the bucket.
    pub prefix: Option<String>,
    /// Where the bucket is.
    pub region: Option<String>,
    /// The address of a server that is not Amazon's.
    pub endpoint: Option<String>,
    /// The address of the same server as others see it, to whom links are given.
    pub external_endpoint: Option<String>,
    /// Without keys, those of the environment or of the machine are used, as Amazon's own tools do.
    pub access_key_id: Option<String>,
    /// The other half of the key.
    pub secret_access_key: Option<String>,
    /// Whether addresses without TLS will do.
    pub allow_http: bool,
}

/// A container, and how to get into it.
#[derive(Clone, Default)]
pub struct AzureConfig {
    /// The storage account.
    pub account: String,
    pub container: String,
    /// What all keys begin with, if several share the container.
    pub prefix: Option<String>,
    /// Without it, what the environment or the machine has is used, as Azure's own tools do; links can be made only with it.
    pub access_key: Option<String>,
    /// The address of a server that is not Microsoft's, with the account in its path if it wants that.
    pub endpoint: Option<String>,
    /// Whether addresses without TLS will do.
    pub allow_http: bool,
}

impl fmt::Debug for S3Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Config")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AzureConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureConfig")
            .field("account", &self.account)
            .field("container", &self.container)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Option<Path>,
    links: Links,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.store)
    }
}

/// What makes links to objects.
enum Links {
    None,
    S3(AmazonS3),
    Azure(Box<SharedKey>),
}

impl Objects {
    pub(crate) fn s3(config: S3Config) -> Result<Self, BlobError> {
        let prefix = prefix(config.prefix.as_deref())?;
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&config.bucket)
            .with_client_options(client(config.allow_http))
            .with_retry(retry());
        if let Some(region) = &config.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &config.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        // Past whatever else the environment has: some of that would win over a key.
        if let (Some(id), Some(secret)) = (&config.access_key_id, &config.secret_access_key) {
            let (key_id, secret_key) = (id.clone(), secret.clone());
            let given = AwsCredential { key_id, secret_key, token: None };
            builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(given)));
        }
        // The host is part of what is signed.
        let outside = match &config.external_endpoint {
            Some(endpoint) => builder.clone().with_endpoint(endpoint),
            None => builder.clone(),
        };
        Ok(Self {
            store: Arc::new(builder.build().map_err(unusable)?),
            prefix,
            links: Links::S3(outside.build().map_err(unusable)?),
        })
    }

    pub(crate) fn azure(config: AzureConfig) -> Result<Self, BlobError> {
        let prefix = prefix(config.prefix.as_deref())?;
        let mut builder = MicrosoftAzureBuilder::from_env()
            .with_account(&config.account)
            .with_container_name(&config.container)
            .with_client_options(client(config.allow_http))
            .with_retry(retry());
        if let Some(endpoint) = &config.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        let key = config.access_key.clone().or_else(|| builder.get_config_value(&AzureConfigKey::AccessKey));
        let links = match key {
            Some(key) => {
                let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
                Links::Azure(Box::new(SharedKey::new(&config, endpoint, &key)?))
            }
            None => Links::None,
        };
        if let Some(key) = &config.access_key {
            let given = AzureCredential::AccessKey(AzureAccessKey::try_new(key.trim()).map_err(unusable)?);
            builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(given)));
        }
        Ok(Self { store: Arc::new(builder.build().map_err(unusable)?), prefix, links })
    }

    pub(crate) fn memory() -> Self {
        Self { store: Arc::new(InMemory::new()), prefix: None, links: Links::None }
    }

    pub(crate) fn begin(&self, key: &str) -> ObjectUpload {
        ObjectUpload { store: self.store.clone(), path: self.path(key), parts: None }
    }

    pub(crate) async fn read(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        version: Option<String>,
    ) -> Result<Opened, BlobError> {
        let path = self.path(key);
        let options =
            GetOptions { range: range.clone().map(wanted), if_match: version, ..GetOptions::default() };
        let found = match self.store.get_opts(&path, options).await {
            Ok(found) => found,
            Err(error) => return Err(self.why_not(&path, range, error).await),
        };
        let (size, version) = (found.meta.size, found.meta.e_tag.clone());
        let bytes: ByteStream = Box::pin(found.into_stream().map_err(BlobError::from));
        Ok(Opened { size, version, bytes })
    }

    /// Stores say in different ways that a range is not there.
    async fn why_not(&self, path: &Path, range: Option<Range<u64>>, error: object_store::Error) -> BlobError {
        let error = BlobError::from(error);
        let (BlobError::Unavailable(_), Some(range)) = (&error, range) else { return error };
        match self.store.head(path).await {
            Ok(meta) if range.start >= meta.size => BlobError::beyond(&range, meta.size),
            _ => error,
        }
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), BlobError> {
        match self.store.delete(&self.path(key)).await.map_err(BlobError::from) {
            Err(BlobError::Missing) => Ok(()),
            done => done,
        }
    }

    pub(crate) fn list(&self, prefix: &str) -> BoxStream<'static, Result<ListedBlob, BlobError>> {
        let (above, below) = (self.prefix.clone(), self.path(prefix));
        let listed = self.store.list(Some(&below)).map_err(in_its_place).try_filter_map(move |meta| {
            let key = match &above {
                Some(above) => {
                    meta.location.as_ref().strip_prefix(above.as_ref()).and_then(|key| key.strip_prefix('/'))
                }
                None => Some(meta.location.as_ref()),
            };
            // What has a name that no key has is not ours.
            let key = key.filter(|key| crate::key::check(key).is_ok()).map(str::to_owned);
            let listed =
                key.map(|key| ListedBlob { key, size: meta.size, modified: meta.last_modified.into() });
            std::future::ready(Ok(listed))
        });
        Box::pin(listed)
    }

    pub(crate) async fn signed_url(
        &self,
        key: &str,
        lasting: Duration,
        content_type: Option<&str>,
        disposition: Option<&str>,
    ) -> Result<Option<String>, BlobError> {
        let path = self.path(key);
        match &self.links {
            Links::None => Ok(None),
            Links::Azure(key) => key.link(path.as_ref(), lasting, content_type, disposition).map(Some),
            Links::S3(store) => {
                let answers =
                    [("response-content-type", content_type), ("response-content-disposition", disposition)];
                let answers = answers.into_iter().filter_map(|(name, value)| Some((name, value?)));
                let options = SignedUrlOptions::default().with_query(answers);
                let url = store.signed_url_opts(Method::GET, &path, lasting, &options).await?;
                Ok(Some(url.into()))
            }
        }
    }

    pub(crate) async fn check(&self) -> Result<(), BlobError> {
        // Of a listing, whether it was denied is not told from other trouble; of an object, whether it or the bucket is missing.
        if let Err(BlobError::Denied) = self.store.head(&self.path("check")).await.map_err(BlobError::from) {
            return Err(BlobError::Denied);
        }
        let first = self.store.list(self.prefix.as_ref()).next().await;
        first.transpose().map(drop).map_err(in_its_place)
    }

    /// A key of ours as the store knows it.
    fn path(&self, key: &str) -> Path {
        let names = key.split('/').filter(|name| !name.is_empty());
        names.fold(self.prefix.clone().unwrap_or_default(), |path, name| path.join(name))
    }
}

/// A blob that is being written: at once if it fits into a part, otherwise in parts.
pub(crate) struct ObjectUpload {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// There once the first part is full.
    parts: Option<Box<dyn MultipartUpload>>,
}

impl fmt::Debug for ObjectUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectUpload").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ObjectUpload {
    pub(crate) async fn write(&mut self, part: Bytes) -> Result<(), BlobError> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(self.store.put_multipart(&self.path).await.map_err(in_its_place)?),
        };
        parts.put_part(part.into()).await.map_err(in_its_place)
    }

    pub(crate) async fn finish(mut self, rest: Bytes) -> Result<(), BlobError> {
        if self.parts.is_none() {
            let put = self.store.put(&self.path, PutPayload::from_bytes(rest)).await;
            return put.map(drop).map_err(in_its_place);
        }
        if !rest.is_empty() {
            self.write(rest).await?;
        }
        if let Some(parts) = &mut self.parts {
            parts.complete().await.map_err(in_its_place)?;
        }
        // Nothing is left to be given up.
        self.parts = None;
        Ok(())
    }

    pub(crate) async fn abort(mut self) -> Result<(), BlobError> {
        match self.parts.take() {
            Some(mut parts) => parts.abort().await.map_err(in_its_place),
            None => Ok(()),
        }
    }
}

impl Drop for ObjectUpload {
    /// Parts cost somebody money until they are given up.
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let path = self.path.clone();
        runtime.spawn(async move {
            if let Err(error) = parts.abort().await {
                tracing::warn!(%path, %error, "the parts of an upload that was given up cannot be removed");
            }
        });
    }
}

/// Not every server can read how far the largest number is.
fn wanted(range: Range<u64>) -> GetRange {
    if range.end > i64::MAX as u64 { GetRange::Offset(range.start) } else { GetRange::Bounded(range) }
}

/// Downloads take as long as their reader does, so only silence ends a request.
fn client(allow_http: bool) -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(allow_http)
        .with_connect_timeout(Duration::from_secs(10))
        .with_read_timeout(Duration::from_secs(60))
        .with_timeout_disabled()
}

/// Somebody waits for the answer.
fn retry() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(30), ..RetryConfig::default() }
}

fn prefix(prefix: Option<&str>) -> Result<Option<Path>, BlobError> {
    let Some(prefix) = prefix.map(|prefix| prefix.trim_matches('/')).filter(|prefix| !prefix.is_empty())
    else {
        return Ok(None);
    };
    crate::key::check(prefix).map_err(|_| BlobError::Invalid(format!("{prefix:?} cannot be a prefix")))?;
    Ok(Some(Path::from(prefix)))
}

fn unusable(error: impl fmt::Display) -> BlobError {
    BlobError::Invalid(error.to_string())
}

/// What is missing where something is written or listed is the bucket.
fn in_its_place(error: object_store::Error) -> BlobError {
    match BlobError::from(error) {
        BlobError::Missing => BlobError::Unavailable("there is no such bucket or container".into()),
        other => other,
    }
}
