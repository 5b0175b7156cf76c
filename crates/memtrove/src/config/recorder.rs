//! `[recorder]` and `[redis]`: responses while they are given, and where nodes note who records which.

use super::{Bytes, Database, Span, positive};
use memtrove_server::auth::config::ConfigProblem;
use memtrove_service::recorder::{self, Address, RecorderSettings};
use reqwest::Url;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;

/// `[recorder]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recorder {
    /// Where nodes note who records which response: `auto` is `redis` where `redis.url` is set, else `store`. `store` is the
    /// database, where several nodes share it. `local` is for one node alone, and `none` records nothing.
    pub backend: RecorderBackend,
    /// How long a response can be replayed after its end.
    pub finished_retention: Span,
    /// The most bytes one response may have.
    pub max_bytes: Bytes,
    /// The most bytes all recordings of this node may take on the disk.
    pub disk: Bytes,
    /// The folder for them; the system's for temporary files unless set.
    pub temp_dir: Option<PathBuf>,
    /// Where other nodes and clients reach this one, as `host:port`; the address that a recording came in at unless set.
    pub advertised_address: Option<String>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            backend: RecorderBackend::Auto,
            finished_retention: Span::seconds(60),
            max_bytes: Bytes::mebi(64),
            disk: Bytes::mebi(4096),
            temp_dir: None,
            advertised_address: None,
        }
    }
}

/// Where nodes note who records which response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecorderBackend {
    /// In the best place there is.
    Auto,
    /// Nowhere: there is one node.
    Local,
    /// In the database.
    Store,
    Redis,
    /// Nothing is recorded.
    None,
}

/// `[redis]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redis {
    /// `redis://user:password@host:6379/0`, or `rediss://` with TLS.
    pub url: Option<RedisUrl>,
}

/// The address of a Redis, which may hold a password: it is shown without.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct RedisUrl(String);

const BACKEND: &str = "recorder.backend";
const ADVERTISED: &str = "recorder.advertised_address";
const URL: &str = "redis.url";

impl RedisUrl {
    /// The address itself, for the code that connects.
    pub fn expose(&self) -> &str {
        self.0.trim()
    }

    fn read(&self) -> Option<Url> {
        let url = Url::parse(self.expose()).ok()?;
        (matches!(url.scheme(), "redis" | "rediss") && url.has_host()).then_some(url)
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(mut url) = self.read() else { return f.write_str("[redacted]") };
        // Some write the password where the user stands. Neither can fail where there is a host.
        let secret = url.password().is_some() || !url.username().is_empty();
        let _ = (url.set_username(""), url.set_password(None));
        url.set_query(None);
        match secret {
            true => write!(f, "{}", url.as_str().replacen("://", "://[redacted]@", 1)),
            false => f.write_str(url.as_str()),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RedisUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Recorder {
    /// What the use cases work with.
    pub fn settings(&self, redis: &Redis) -> RecorderSettings {
        RecorderSettings {
            backend: self.backend(redis),
            finished_retention: self.finished_retention.0,
            max_bytes: self.max_bytes.0,
            disk: self.disk.0,
            temp_dir: self.temp_dir.clone(),
            advertised_address: self.advertised_address.as_deref().and_then(|address| address.parse().ok()),
            ..RecorderSettings::default()
        }
    }

    fn backend(&self, redis: &Redis) -> recorder::RecorderBackend {
        let in_redis =
            redis.url.as_ref().map(|url| recorder::RecorderBackend::Redis(url.expose().to_owned()));
        match self.backend {
            RecorderBackend::Auto => in_redis.unwrap_or(recorder::RecorderBackend::Store),
            RecorderBackend::Local => recorder::RecorderBackend::Local,
            RecorderBackend::Store => recorder::RecorderBackend::Store,
            // Without a URL the start is refused.
            RecorderBackend::Redis => in_redis.unwrap_or(recorder::RecorderBackend::Off),
            RecorderBackend::None => recorder::RecorderBackend::Off,
        }
    }

    /// What keeps a server from starting.
    pub(super) fn problems(&self, redis: &Redis) -> Vec<ConfigProblem> {
        let mut found: Vec<ConfigProblem> =
            positive([("recorder.max_bytes", self.max_bytes.0 > 0), ("recorder.disk", self.disk.0 > 0)])
                .collect();
        if self.max_bytes > self.disk {
            let problem = format!("is {}, and recorder.disk is {}", self.max_bytes, self.disk);
            found.push(ConfigProblem::new("recorder.max_bytes", problem, "raise recorder.disk, or lower it"));
        }
        if let Some(folder) = self.temp_dir.as_deref().filter(|folder| !folder.is_dir()) {
            let problem = format!("{} is no folder", folder.display());
            found.push(ConfigProblem::new(
                "recorder.temp_dir",
                problem,
                "make it, or remove the key to use the system's",
            ));
        }
        let address = self.advertised_address.as_deref();
        if let Some(address) = address.filter(|address| address.parse::<Address>().is_err()) {
            let fix = "use \"host:port\", with an IPv6 address in brackets";
            found.push(ConfigProblem::new(
                ADVERTISED,
                format!("'{address}' is not an address with a port"),
                fix,
            ));
        }
        match &redis.url {
            Some(url) if url.read().is_none() => found.push(ConfigProblem::new(
                URL,
                "is not the address of a Redis",
                "use redis://host:6379, or rediss:// with TLS; what is special in a password is escaped: @ is %40",
            )),
            None if self.backend == RecorderBackend::Redis => found.push(ConfigProblem::new(
                BACKEND,
                "is \"redis\", and redis.url is missing",
                "set redis.url = \"redis://host:6379\", or remove the key to note it in the database",
            )),
            Some(_) | None => {}
        }
        found
    }

    /// What a server may start with but somebody should know about.
    pub(super) fn warnings(&self, redis: &Redis, database: &Database) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.backend == RecorderBackend::Local && matches!(database, Database::Postgres(_)) {
            warnings.push(format!(
                "{BACKEND} is \"local\", and other nodes may share the database: a response that is recorded here can be \
                 replayed and cancelled here only. Remove the key to note in the database who records what"
            ));
        }
        if redis.url.is_some() && !matches!(self.backend, RecorderBackend::Auto | RecorderBackend::Redis) {
            warnings.push(format!("{URL} is set, and {BACKEND} says not to use it"));
        }
        warnings
    }
}
