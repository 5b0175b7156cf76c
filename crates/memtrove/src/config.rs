//! The configuration: one struct per section of the file, every field with its default and its meaning.
//!
//! To add a key, add a documented field with a default. It can then be set in the file, as
//! `MEMTROVE_SECTION__KEY`, shows up in `memtrove doctor --settings`, and a mistyped one is reported. [`Config::problems`]
//! lists what cannot be combined.

mod attachments;
mod data_dir;
mod embedding;
mod encryption;
mod load;
mod memories;
mod quotas;
mod recorder;
mod search;
mod store;
mod suggest;
mod values;

pub use attachments::{AttachmentStore, Attachments, Azure, S3};
pub(crate) use data_dir::data_home;
pub use embedding::{Calibration, Embedding, EmbeddingProvider, LocalModel, OpenAi, QueryModel};
pub use encryption::{Dek, Encryption, Provider};
pub use load::{
    CONFIG_VARIABLE, DEFAULT, DEFAULT_FILE, Flag, Inputs, LoadError, Loaded, Setting, known_keys,
};
pub use memories::{
    ByKind, Consolidation, Decay, EmbeddingCache, Memories, MemoryCache, MemoryLimits, MemoryProvider,
    MemorySearch, Retry, Role, Session, Working, WriteRoles,
};
use memtrove_server::auth::config::{AuthConfig, ConfigProblem, Mode, RolesConfig};
use memtrove_server::shell::{CorsConfig, CorsOptions, Patience, ShellConfig};
pub use quotas::{Quotas, Rate, TenantQuotas};
pub use recorder::{Recorder, RecorderBackend, Redis, RedisUrl};
pub use search::{AutoMode, Search, Weights};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
pub use store::{Database, Store, StoreUrl};
pub use values::{Bytes, LayerName, Listen, Span};

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where and how requests are served.
    pub server: Server,
    /// Where data is kept.
    pub store: Store,
    /// Whether content is encrypted where it is kept.
    pub encryption: Encryption,
    /// Who may call, and how they prove it.
    pub auth: AuthConfig,
    /// Who holds which role.
    pub roles: RolesConfig,
    /// Which web pages may call.
    pub cors: Cors,
    /// What is logged.
    pub log: Log,
    /// Where traces go.
    pub telemetry: Telemetry,
    /// The admin API.
    pub admin: Admin,
    /// What a conversation's managers may do.
    pub policy: Policy,
    pub search: Search,
    /// What makes vectors of texts.
    pub embedding: Embedding,
    /// The memories surface.
    pub memories: Memories,
    /// What is indexed without being asked.
    pub indexing: Indexing,
    /// Background tasks.
    pub tasks: Tasks,
    /// Eviction of deleted conversations.
    pub eviction: Eviction,
    /// The change feed.
    pub changes: Changes,
    /// Responses while they are given.
    pub recorder: Recorder,
    /// A Redis, where nodes note who records which response.
    pub redis: Redis,
    /// Files that belong to entries.
    pub attachments: Attachments,
    /// The Prometheus server behind the admin statistics.
    pub prometheus: Prometheus,
    /// Limits on what is stored.
    pub limits: Limits,
    /// Where files are kept.
    pub files: Files,
    /// How much users and services may ask of the files surface.
    pub quotas: Quotas,
    /// What is remembered of requests that may be repeated.
    pub idempotency: Idempotency,
    /// How long the files surface keeps what it need not keep for ever.
    pub retention: Retention,
}

/// `[files]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// `store` keeps files with everything else. `azure` needs a build with that provider; this one has none, and answers
    /// so.
    pub provider: FilesProvider,
}

/// Where files are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilesProvider {
    /// With everything else.
    #[default]
    Store,
    /// In Azure Blob Storage.
    Azure,
}

/// `[server]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The address of every surface. Port 0 picks a free one and prints it.
    pub listen: Listen,
    /// Where everything that must survive is kept. The same for a server, editors and commands unless somebody says otherwise.
    pub data_dir: PathBuf,
    /// The most bytes a request body may have.
    pub body_limit: Bytes,
    /// How long a request may take from the end of its body to its response head.
    pub request_timeout: Span,
    /// How many connections there may be; one more is told to come again. No more than the system lets the process have.
    pub connections: usize,
    /// How long a caller may send nothing of a body, or take nothing of an answer, before it is given up.
    pub stall_timeout: Span,
    /// How many bytes of a body a caller must send, or of an answer it must take, for every second that it is waited for.
    pub min_rate: Bytes,
    /// How long the server goes on serving after it was told to stop, while it says that it is not ready: for balancers to
    /// notice.
    pub shutdown_delay: Span,
    /// How long requests may go on after that.
    pub shutdown_grace: Span,
    /// Whether responses are compressed for clients that ask.
    pub compression: bool,
    /// Threads that serve requests; as many as the machine has cores unless set.
    pub workers: Option<usize>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: Listen(([127, 0, 0, 1], 7077).into()),
            data_dir: data_dir::default_data_dir(),
            body_limit: Bytes::mebi(20),
            request_timeout: Span::seconds(30),
            connections: 16_384,
            stall_timeout: Span::seconds(30),
            min_rate: Bytes(16 * 1024),
            shutdown_delay: Span::seconds(0),
            shutdown_grace: Span::seconds(10),
            compression: true,
            workers: None,
        }
    }
}

/// `[cors]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// Whether web pages of other origins may call at all.
    pub enabled: bool,
    /// Origins as `https://app.example.com`, or `/regex/` for the whole origin, or `*`.
    pub origins: Vec<String>,
    /// Methods they may use; empty means whatever they ask for.
    pub methods: Vec<String>,
    /// Headers they may send; empty means whatever they ask for.
    pub headers: Vec<String>,
    /// Response headers they may read.
    pub exposed_headers: Vec<String>,
    /// Whether cookies and HTTP authentication may be sent along; never together with `*`.
    pub allow_credentials: bool,
    /// How long a browser may remember the answer.
    pub max_age: Option<Span>,
}

impl Default for Cors {
    fn default() -> Self {
        let shell = CorsOptions::default();
        Self {
            enabled: false,
            origins: shell.origins,
            methods: shell.methods,
            headers: shell.headers,
            exposed_headers: shell.exposed_headers,
            allow_credentials: shell.allow_credentials,
            max_age: shell.max_age.map(Span),
        }
    }
}

/// `[log]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// `pretty` for people, `json` for machines.
    pub format: LogFormat,
    /// A level (`error`, `warn`, `info`, `debug`, `trace`), or directives such as `info,memtrove_store=debug`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Pretty, level: "info".into() }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object per line.
    Json,
}

/// `[telemetry]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// An OTLP/HTTP endpoint for traces, e.g. `http://localhost:4318`. None: no traces.
    pub otlp_endpoint: Option<String>,
}

/// `[admin]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// Whether every admin call must say why it is made.
    pub require_justification: bool,
}

/// `[policy]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether a manager may delete the conversation.
    pub managers_may_delete: bool,
    /// Whether a manager may make other members managers.
    pub managers_may_grant_manager: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { managers_may_delete: false, managers_may_grant_manager: true }
    }
}

/// `[indexing]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Indexing {
    /// What is indexed of an entry that says nothing about it: its `text`, or nothing (`off`). Unless set, `text`, and `off`
    /// where content is encrypted: what is indexed is not.
    pub auto_derive: Option<AutoDerive>,
}

/// What is indexed of an entry that says nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoDerive {
    /// The text of history entries.
    Text,
    /// Nothing.
    Off,
}

/// `[tasks]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tasks {
    /// How long a failed task waits before it is tried again.
    pub retry_delay: Span,
    /// How often the queue is looked at.
    pub processor_interval: Span,
    /// How many tasks are taken at once.
    pub batch_size: usize,
    /// When a task that was taken and never finished is given to somebody else.
    pub stale_claim_timeout: Span,
    /// Where several nodes share a store: how long after one stops answering another takes over what it did for all.
    pub lease: Span,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            retry_delay: Span::seconds(600),
            processor_interval: Span::seconds(60),
            batch_size: 100,
            stale_claim_timeout: Span::seconds(300),
            lease: Span::seconds(15),
        }
    }
}

/// `[eviction]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Eviction {
    /// How many conversation trees one transaction removes.
    pub batch_size: usize,
    /// The pause between two of them, for everybody else.
    pub batch_delay: Span,
}

impl Default for Eviction {
    fn default() -> Self {
        Self { batch_size: 1000, batch_delay: Span::millis(100) }
    }
}

/// `[changes]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Changes {
    /// How long the feed keeps its changes; a reader who was away for longer must look at everything anew.
    pub retention: Span,
}

impl Default for Changes {
    fn default() -> Self {
        Self { retention: Span::hours(7 * 24) }
    }
}

/// `[prometheus]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prometheus {
    /// The Prometheus server that scrapes this one, e.g. `http://localhost:9090`. None: no admin statistics.
    pub url: Option<String>,
}

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most bytes the content of one entry may have.
    pub content_bytes: Bytes,
    /// The most bytes a request to the files surface may have; a document of the largest size may need 4 MiB.
    pub files_body: Bytes,
    /// The most bytes a request to the memories surface may have.
    pub memories_body: Bytes,
    /// The most bytes the bodies of all requests under way may have together.
    pub bodies: Bytes,
    /// The most bytes of answers that may wait for their readers.
    pub answers: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            content_bytes: Bytes::mebi(16),
            files_body: Bytes::mebi(8),
            memories_body: Bytes::mebi(20),
            bodies: Bytes::mebi(256),
            answers: Bytes::mebi(256),
        }
    }
}

/// `[idempotency]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Idempotency {
    /// How long the files surface remembers an `Idempotency-Key`, from an hour to a week.
    pub retention: Span,
}

impl Default for Idempotency {
    fn default() -> Self {
        Self { retention: Span::hours(24) }
    }
}

/// The shortest and the longest time an `Idempotency-Key` may be remembered.
const IDEMPOTENCY_RETENTION: RangeInclusive<Duration> =
    Duration::from_secs(3600)..=Duration::from_secs(7 * 24 * 3600);

/// `[retention]`. Nothing is deleted unless it is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Events whose time is this many days ago are deleted.
    pub events_days: Option<u32>,
    /// Audit records that are this many days old are deleted.
    pub audit_days: Option<u32>,
    /// Audit records of this many days stay, whatever a caller of `retention:apply` asks for: 365, or `audit_days` where that is
    /// less. An admin goes below it with a justification, and the trail says so. 0 keeps none.
    pub audit_min_days: Option<u32>,
    /// How often that is done, from the start on.
    pub interval: Span,
}

impl Default for Retention {
    fn default() -> Self {
        Self { events_days: None, audit_days: None, audit_min_days: None, interval: Span::hours(24) }
    }
}

impl Retention {
    /// How many days of audit records stay. A configuration of fewer from before there was a floor stays in force.
    pub fn audit_floor(&self) -> u32 {
        self.audit_min_days.unwrap_or_else(|| AUDIT_FLOOR.min(self.audit_days.unwrap_or(AUDIT_FLOOR)))
    }
}

const AUDIT_FLOOR: u32 = 365;

/// What `retention:apply` takes too, but for 0, which here rather means "never".
const RETENTION_DAYS: RangeInclusive<u32> = 1..=36_500;

impl Config {
    /// Everything that keeps a server from starting with this, each with what to do about it.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        let mut found = self.auth.problems();
        let listen = self.server.listen;
        if self.auth.mode == Mode::Local && !listen.0.ip().is_loopback() {
            found.push(ConfigProblem::new(
                "server.listen",
                format!("{listen} can be reached from other machines, and auth.mode = \"local\" believes every caller"),
                "listen on 127.0.0.1, or set auth.mode = \"jwt\" with an issuer or API keys",
            ));
        }
        if self.server.data_dir.as_os_str().is_empty() {
            let problem = "there is no home folder to keep data in";
            found.push(ConfigProblem::new("server.data_dir", problem, "name a folder with --data-dir"));
        }
        found.extend(self.store.problems(&self.server.data_dir));
        if let Err(problem) = self.cors() {
            found.push(problem);
        }
        for (key, url) in [
            ("telemetry.otlp_endpoint", &self.telemetry.otlp_endpoint),
            ("prometheus.url", &self.prometheus.url),
        ] {
            if let Some(url) =
                url.as_deref().filter(|url| !url.starts_with("http://") && !url.starts_with("https://"))
            {
                found.push(ConfigProblem::new(
                    key,
                    format!("'{url}' is not an http(s) address"),
                    "use http://…",
                ));
            }
        }
        found.extend(positive([
            ("server.body_limit", self.server.body_limit.0 > 0),
            ("server.request_timeout", !self.server.request_timeout.0.is_zero()),
            ("server.connections", self.server.connections > 0),
            ("server.stall_timeout", !self.server.stall_timeout.0.is_zero()),
            ("server.min_rate", self.server.min_rate.0 > 0),
            ("server.workers", self.server.workers != Some(0)),
            ("limits.content_bytes", self.limits.content_bytes.0 > 0),
            ("limits.files_body", self.limits.files_body.0 > 0),
            ("limits.memories_body", self.limits.memories_body.0 > 0),
            ("limits.bodies", self.limits.bodies.0 > 0),
            ("limits.answers", self.limits.answers.0 > 0),
            ("tasks.batch_size", self.tasks.batch_size > 0),
            ("tasks.processor_interval", !self.tasks.processor_interval.0.is_zero()),
            ("tasks.lease", !self.tasks.lease.0.is_zero()),
            ("eviction.batch_size", self.eviction.batch_size > 0),
            ("changes.retention", !self.changes.retention.0.is_zero()),
            ("retention.interval", !self.retention.interval.0.is_zero()),
        ]));
        found.extend(self.search.problems());
        found.extend(self.embedding.problems());
        found.extend(self.memories.problems());
        found.extend(self.encryption.problems(self.server.listen));
        found.extend(self.quotas.problems());
        found.extend(self.recorder.problems(&self.redis));
        found.extend(self.attachments.problems());
        found.extend(self.retention_problems());
        found
    }

    fn retention_problems(&self) -> Vec<ConfigProblem> {
        let Retention { events_days, audit_days, audit_min_days, interval: _ } = self.retention;
        let days = [("retention.events_days", events_days), ("retention.audit_days", audit_days)];
        let mut found: Vec<ConfigProblem> = days
            .into_iter()
            .filter_map(|(key, days)| Some((key, days.filter(|days| !RETENTION_DAYS.contains(days))?)))
            .map(|(key, days)| {
                let fix = "use 1 to 36500 days, or remove the key to keep them until somebody deletes them";
                ConfigProblem::new(key, format!("is {days}"), fix)
            })
            .collect();
        if let Some(floor) = audit_min_days.filter(|floor| floor > RETENTION_DAYS.end()) {
            let fix = "use 0 to 36500 days, or remove the key to keep 365";
            found.push(ConfigProblem::new("retention.audit_min_days", format!("is {floor}"), fix));
        } else if let (Some(days), Some(floor)) = (audit_days, audit_min_days)
            && days < floor
        {
            found.push(ConfigProblem::new(
                "retention.audit_days",
                format!("is {days}, and retention.audit_min_days = {floor} keeps audit records longer"),
                format!("set retention.audit_days to {floor} or more, or retention.audit_min_days to {days} or less"),
            ));
        }
        let remembered = self.idempotency.retention;
        if !IDEMPOTENCY_RETENTION.contains(&remembered.0) {
            found.push(ConfigProblem::new(
                "idempotency.retention",
                format!("is {remembered}"),
                "use 1h to 7d: shorter than a retry takes is useless, longer is not promised to anybody",
            ));
        }
        found
    }

    /// What a server may start with but somebody should know about.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.auth.warnings();
        if self.encryption.is_on() && self.auto_derive() == AutoDerive::Text {
            warnings.push(
                "indexing.auto_derive is \"text\": the text of history entries is kept readable for search, and with it what \
                 it means, next to the encrypted entries"
                    .into(),
            );
        }
        let searchable = self.search.fulltext_enabled || self.search.semantic_enabled;
        if self.encryption.is_on() && self.indexing.auto_derive.is_none() && searchable {
            warnings.push(
                "content is encrypted, so conversations are found only by their indexedContent: set \
                 indexing.auto_derive = \"text\" to find history entries by their text too, which is then kept readable \
                 for search, or \"off\" if this is meant"
                    .into(),
            );
        }
        warnings.extend(self.store.warnings(&self.server.data_dir));
        warnings.extend(self.embedding.warnings());
        if let Ok(database) = self.database() {
            warnings.extend(self.recorder.warnings(&self.redis, &database));
            let encrypted = self.encryption.is_on();
            warnings.extend(self.attachments.warnings(&self.server.data_dir, &database, encrypted));
        }
        warnings.extend(self.role_warning().map(str::to_owned));
        warnings
    }

    /// Each of the two roles is everybody's until it is configured: who sets one may not think of the other.
    fn role_warning(&self) -> Option<&'static str> {
        match (&self.roles.reader, &self.roles.writer) {
            (Some(_), None) => Some(
                "[roles.reader] is set without [roles.writer]: only admins and those it names may read files and events, \
                 and everybody, they too, may write them. To let some only read, name the others in [roles.writer]",
            ),
            // `[roles.writer]` alone is how some are let to only read.
            (None, _) | (Some(_), Some(_)) => None,
        }
    }

    /// What is indexed of an entry that says nothing about it.
    pub fn auto_derive(&self) -> AutoDerive {
        let unless_set = if self.encryption.is_on() { AutoDerive::Off } else { AutoDerive::Text };
        self.indexing.auto_derive.unwrap_or(unless_set)
    }

    /// Where the store is.
    pub fn database(&self) -> Result<Database, ConfigProblem> {
        self.store.database(&self.server.data_dir)
    }

    /// What the shell around every route needs to know.
    pub fn shell(&self) -> Result<ShellConfig, ConfigProblem> {
        Ok(ShellConfig {
            body_limit: self.server.body_limit.0,
            request_timeout: self.server.request_timeout.0,
            files_body_limit: self.limits.files_body.0,
            memories_body_limit: self.limits.memories_body.0,
            bodies_limit: self.limits.bodies.0,
            answers_limit: self.limits.answers.0,
            patience: self.patience(),
            patient_routes: memtrove_server::rest::PATIENT_ROUTES,
            streamed_routes: memtrove_server::STREAMED_ROUTES,
            reading_routes: memtrove_server::READING_ROUTES,
            compression: self.server.compression,
            cors: self.cors()?,
            loopback_names_only: self.auth.mode == Mode::Local,
        })
    }

    /// How slow callers may be.
    pub fn patience(&self) -> Patience {
        Patience { stall: self.server.stall_timeout.0, rate: self.server.min_rate.0 }
    }

    fn cors(&self) -> Result<Option<CorsConfig>, ConfigProblem> {
        let cors = &self.cors;
        if !cors.enabled {
            return Ok(None);
        }
        let options = CorsOptions {
            origins: cors.origins.clone(),
            methods: cors.methods.clone(),
            headers: cors.headers.clone(),
            exposed_headers: cors.exposed_headers.clone(),
            allow_credentials: cors.allow_credentials,
            max_age: cors.max_age.map(|age| age.0),
        };
        CorsConfig::try_from(options)
            .map(Some)
            .map_err(|error| ConfigProblem::new("cors", error.to_string(), "or set cors.enabled = false"))
    }
}

/// Complains about what is 0 and must not be.
fn positive<const N: usize>(keys: [(&'static str, bool); N]) -> impl Iterator<Item = ConfigProblem> {
    let zero = keys.into_iter().filter(|(_, positive)| !positive);
    zero.map(|(key, _)| {
        ConfigProblem::new(key, "is 0, so nothing could be done", "set at least 1, or remove the key")
    })
}

/// Complains about what is no share of a whole.
fn shares<const N: usize>(keys: [(&'static str, f64); N]) -> Vec<ConfigProblem> {
    let wrong = keys.into_iter().filter(|(_, share)| !(0.0..=1.0).contains(share));
    wrong.map(|(key, share)| ConfigProblem::new(key, format!("is {share}"), "use 0 to 1")).collect()
}

/// A number of bytes, as far as this machine can count them.
pub(crate) fn size(bytes: Bytes) -> usize {
    usize::try_from(bytes.0).unwrap_or(usize::MAX)
}
