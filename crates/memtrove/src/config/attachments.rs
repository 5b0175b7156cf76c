//! `[attachments]`: where the bytes of attachments are kept, how large they may be and for how long.

use super::{Bytes, Database, Span, positive};
use memtrove_blobs::fetch::{Fetcher, USUAL_PORTS};
use memtrove_blobs::{AzureConfig, BlobError, Blobs, S3Config};
use memtrove_server::auth::config::{ConfigProblem, Secret};
use memtrove_service::AttachmentSettings;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// `[attachments]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attachments {
    /// Where their bytes are: in a `directory`, in a bucket of `s3` or of something that speaks its language, in a container
    /// of `azure`. With `none` there are no attachments.
    pub store: AttachmentStore,
    /// The directory, if they are in one; `attachments` in the data folder unless set. Nodes that share a database must see
    /// the same.
    pub directory: Option<PathBuf>,
    /// The most bytes one may have.
    pub max_size: Bytes,
    /// How many are uploaded to a node at a time; more are asked to come again. A user uploads at most 8.
    pub uploads: usize,
    /// How long one is kept that no entry refers to, unless its uploader says so.
    pub default_expires_in: Span,
    /// The longest that its uploader may say.
    pub max_expires_in: Span,
    /// How long an upload is waited for that gives no sign of life.
    pub upload_expires_in: Span,
    /// How often it gives one.
    pub upload_refresh_interval: Span,
    /// How often what has expired is removed.
    pub cleanup_interval: Span,
    /// How long a link to one can be used.
    pub download_url_expires_in: Span,
    /// What links are signed with; a key of the store's own unless set.
    pub download_url_secret: Option<Secret>,
    /// Whether attachments are fetched from addresses that callers name. Only public ones are.
    pub fetch_sources: bool,
    /// The ports that they are fetched from.
    pub fetch_ports: Vec<u16>,
    /// The bucket.
    pub s3: S3,
    /// The container.
    pub azure: Azure,
}

impl Default for Attachments {
    fn default() -> Self {
        Self {
            store: AttachmentStore::Directory,
            directory: None,
            max_size: Bytes::mebi(10),
            uploads: 64,
            default_expires_in: Span::hours(1),
            max_expires_in: Span::hours(24),
            upload_expires_in: Span::seconds(60),
            upload_refresh_interval: Span::seconds(30),
            cleanup_interval: Span::seconds(300),
            download_url_expires_in: Span::seconds(300),
            download_url_secret: None,
            fetch_sources: true,
            fetch_ports: USUAL_PORTS.to_vec(),
            s3: S3::default(),
            azure: Azure::default(),
        }
    }
}

/// Where the bytes of attachments are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentStore {
    Directory,
    /// In a bucket.
    S3,
    /// In a container.
    Azure,
    /// Nowhere.
    None,
}

/// `[attachments.s3]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3 {
    /// The name of the bucket.
    pub bucket: Option<String>,
    /// What the names of all objects begin with.
    pub prefix: Option<String>,
    /// The bucket's region; `AWS_REGION` unless set.
    pub region: Option<String>,
    /// The address of a server that is not Amazon's.
    pub endpoint: Option<String>,
    /// The address by which those reach that server to whom links are given.
    pub external_endpoint: Option<String>,
    /// Whether readers are sent to the bucket with a link instead of being served from here.
    pub direct_download: bool,
    /// The id of the key; unless set, keys come from where Amazon's own tools look: variables, files, the machine's role.
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<Secret>,
    /// Whether the server may be reached without TLS.
    pub allow_http: bool,
}

/// `[attachments.azure]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Azure {
    /// The storage account.
    pub account: Option<String>,
    /// The name of the container.
    pub container: Option<String>,
    /// What the names of all blobs begin with.
    pub prefix: Option<String>,
    /// The key of the account; unless set, credentials come from where Azure's own tools look: variables, the machine's
    /// identity. Links can be made only with a key.
    pub access_key: Option<Secret>,
    /// The address of the account on a server that is not Microsoft's.
    pub endpoint: Option<String>,
    /// Whether readers are sent to the container with a link instead of being served from here.
    pub direct_download: bool,
    /// Whether the server may be reached without TLS.
    pub allow_http: bool,
}

const STORE: &str = "attachments.store";
const SECRET: &str = "attachments.download_url_secret";
/// As long as what it is hashed to.
const SHORTEST_SECRET: usize = 32;
/// S3 signs no link that lasts longer; a caller can ask for another.
const LONGEST_LINK: Span = Span::hours(7 * 24);
/// An object store takes an upload in at most 10,000 parts, of 5 MiB here. What is in a directory may have to move to one.
const LARGEST: Bytes = Bytes::mebi(48 * 1024);

impl Attachments {
    /// What the use cases work with, but for the places that [`Attachments::blobs`] and [`Attachments::fetcher`] open.
    pub fn settings(&self) -> AttachmentSettings {
        let secret = self.download_url_secret.as_ref();
        AttachmentSettings {
            blobs: None,
            fetcher: None,
            max_bytes: self.max_size.0,
            default_expires_in: self.default_expires_in.0,
            max_expires_in: self.max_expires_in.0,
            upload_expires_in: self.upload_expires_in.0,
            upload_refresh: self.upload_refresh_interval.0,
            cleanup_interval: self.cleanup_interval.0,
            download_url_expires_in: self.download_url_expires_in.0,
            download_url_secret: secret.map(|secret| Zeroizing::new(secret.expose().as_bytes().to_vec())),
            direct_download: self.direct_download(),
        }
    }

    /// Opens the place where the bytes are kept, and makes the directory if it is one; `None` if there are no attachments.
    pub fn blobs(&self, data_dir: &Path) -> Result<Option<Blobs>, BlobError> {
        match self.store {
            AttachmentStore::Directory => Blobs::directory(self.directory(data_dir)),
            AttachmentStore::S3 => Blobs::s3(self.s3.settings()),
            AttachmentStore::Azure => Blobs::azure(self.azure.settings()),
            AttachmentStore::None => return Ok(None),
        }
        .map(Some)
    }

    /// What fetches attachments from the web, if that is allowed.
    pub fn fetcher(&self) -> anyhow::Result<Option<Fetcher>> {
        let fetches = self.fetch_sources && self.store != AttachmentStore::None;
        let fetcher = fetches.then(Fetcher::new).transpose()?;
        Ok(fetcher.map(|fetcher| fetcher.with_ports(&self.fetch_ports)))
    }

    /// The directory, if they are kept in one.
    pub fn directory(&self, data_dir: &Path) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| data_dir.join("attachments"))
    }

    fn direct_download(&self) -> bool {
        match self.store {
            AttachmentStore::S3 => self.s3.direct_download,
            AttachmentStore::Azure => self.azure.direct_download,
            AttachmentStore::Directory | AttachmentStore::None => false,
        }
    }

    /// What keeps a server from starting.
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        let mut found: Vec<ConfigProblem> = positive([
            ("attachments.max_size", self.max_size.0 > 0),
            ("attachments.uploads", self.uploads > 0),
            ("attachments.default_expires_in", !self.default_expires_in.0.is_zero()),
            ("attachments.upload_refresh_interval", !self.upload_refresh_interval.0.is_zero()),
            ("attachments.cleanup_interval", !self.cleanup_interval.0.is_zero()),
            ("attachments.download_url_expires_in", !self.download_url_expires_in.0.is_zero()),
        ])
        .collect();
        if self.default_expires_in.0 > self.max_expires_in.0 {
            found.push(ConfigProblem::new(
                "attachments.default_expires_in",
                format!(
                    "is {}, and attachments.max_expires_in is {}",
                    self.default_expires_in, self.max_expires_in
                ),
                "raise attachments.max_expires_in, or lower it",
            ));
        }
        if self.upload_refresh_interval.0 >= self.upload_expires_in.0 {
            let (refresh, expires) = (self.upload_refresh_interval, self.upload_expires_in);
            found.push(ConfigProblem::new(
                "attachments.upload_refresh_interval",
                format!(
                    "is {refresh}, and uploads expire after {expires}, so they would expire while they run"
                ),
                "use half of attachments.upload_expires_in",
            ));
        }
        if self.download_url_secret.as_ref().is_some_and(|secret| secret.expose().len() < SHORTEST_SECRET) {
            let problem = format!("is shorter than {SHORTEST_SECRET} characters");
            found.push(ConfigProblem::new(SECRET, problem, "use the output of `openssl rand -base64 32`"));
        }
        if self.download_url_expires_in.0 > LONGEST_LINK.0 {
            found.push(ConfigProblem::new(
                "attachments.download_url_expires_in",
                format!("is {}, and no link lasts longer than {LONGEST_LINK}", self.download_url_expires_in),
                "lower it; a caller who needs a link for longer asks for another",
            ));
        }
        if self.max_size.0 > LARGEST.0 {
            found.push(ConfigProblem::new(
                "attachments.max_size",
                format!(
                    "is {}, and an object store takes no upload of more than {LARGEST} in the parts it is sent in",
                    self.max_size
                ),
                "lower it",
            ));
        }
        if self.fetch_ports.is_empty() || self.fetch_ports.contains(&0) {
            found.push(ConfigProblem::new(
                "attachments.fetch_ports",
                "names no port, or 0, which is none",
                "name ports such as [80, 443], or set attachments.fetch_sources = false",
            ));
        }
        match self.store {
            AttachmentStore::S3 => found.extend(self.s3.problems()),
            AttachmentStore::Azure => found.extend(self.azure.problems()),
            AttachmentStore::Directory | AttachmentStore::None => {}
        }
        found
    }

    /// What a server may start with but somebody should know about.
    pub(super) fn warnings(&self, data_dir: &Path, database: &Database, encrypted: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        let is_shared = matches!(database, Database::Postgres(_));
        if self.store == AttachmentStore::Directory && self.directory.is_none() && is_shared {
            warnings.push(format!(
                "attachments are kept in {} of this machine, and other nodes may share the database: set \
                 attachments.directory to one that all nodes see, or {STORE} to \"s3\" or \"azure\"",
                self.directory(data_dir).display()
            ));
        }
        for (name, is_set, store) in [
            ("attachments.s3", self.s3 != S3::default(), AttachmentStore::S3),
            ("attachments.azure", self.azure != Azure::default(), AttachmentStore::Azure),
            ("attachments.directory", self.directory.is_some(), AttachmentStore::Directory),
        ] {
            if is_set && self.store != store {
                warnings.push(format!("{name} is set, and {STORE} says not to use it"));
            }
        }
        if self.direct_download() && encrypted {
            warnings.push(
                "direct_download is on, and content is encrypted: what is uploaded from now on is sealed, so it is served \
                 from here"
                    .into(),
            );
        }
        warnings
    }
}

impl S3 {
    fn settings(&self) -> S3Config {
        S3Config {
            bucket: self.bucket.clone().unwrap_or_default(),
            prefix: self.prefix.clone(),
            region: self.region.clone(),
            endpoint: self.endpoint.clone(),
            external_endpoint: self.external_endpoint.clone(),
            access_key_id: self.access_key_id.clone(),
            secret_access_key: self.secret_access_key.as_ref().map(|key| key.expose().to_owned()),
            allow_http: self.allow_http,
        }
    }

    fn problems(&self) -> Vec<ConfigProblem> {
        let endpoint = |key, url| endpoint_problem(key, url, self.allow_http, "attachments.s3.allow_http");
        let mut found: Vec<ConfigProblem> = [
            missing("attachments.s3.bucket", self.bucket.as_deref(), "s3", "name the bucket"),
            endpoint("attachments.s3.endpoint", self.endpoint.as_deref()),
            endpoint("attachments.s3.external_endpoint", self.external_endpoint.as_deref()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let half = match (&self.access_key_id, &self.secret_access_key) {
            (Some(_), None) => Some(("attachments.s3.secret_access_key", "access_key_id")),
            (None, Some(_)) => Some(("attachments.s3.access_key_id", "secret_access_key")),
            (Some(_), Some(_)) | (None, None) => None,
        };
        found.extend(half.map(|(key, other)| {
            let problem = format!("is missing, and attachments.s3.{other} is set");
            ConfigProblem::new(key, problem, "set both, or none to use those of the environment")
        }));
        found
    }
}

impl Azure {
    fn settings(&self) -> AzureConfig {
        AzureConfig {
            account: self.account.clone().unwrap_or_default(),
            container: self.container.clone().unwrap_or_default(),
            prefix: self.prefix.clone(),
            access_key: self.access_key.as_ref().map(|key| key.expose().to_owned()),
            endpoint: self.endpoint.clone(),
            allow_http: self.allow_http,
        }
    }

    fn problems(&self) -> Vec<ConfigProblem> {
        const ENDPOINT: &str = "attachments.azure.endpoint";
        [
            missing(
                "attachments.azure.account",
                self.account.as_deref(),
                "azure",
                "name the storage account",
            ),
            missing("attachments.azure.container", self.container.as_deref(), "azure", "name the container"),
            endpoint_problem(
                ENDPOINT,
                self.endpoint.as_deref(),
                self.allow_http,
                "attachments.azure.allow_http",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn missing(key: &'static str, value: Option<&str>, store: &str, fix: &'static str) -> Option<ConfigProblem> {
    let is_missing = value.is_none_or(|value| value.trim().is_empty());
    is_missing.then(|| ConfigProblem::new(key, format!("is missing, and {STORE} is \"{store}\""), fix))
}

fn endpoint_problem(
    key: &'static str,
    url: Option<&str>,
    allow_http: bool,
    allow_http_key: &str,
) -> Option<ConfigProblem> {
    let url = Url::parse(url?).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match url {
        // Not shown: it may hold a password.
        None => Some(ConfigProblem::new(key, "is not an http(s) address", "use https://…")),
        Some(url) if url.scheme() == "http" && !allow_http => Some(ConfigProblem::new(
            key,
            "is not https: attachments would go there readable",
            format!("use https://…, or set {allow_http_key} = true if the way there is safe"),
        )),
        Some(_) => None,
    }
}
