//! `[store]`: which database, and how it is reached.

use super::{Span, positive};
use memtrove_server::auth::config::ConfigProblem;
use memtrove_store::postgres::PostgresConfig;
use memtrove_store::postgres::address::{self, DatabaseUrl, Root, Tls};
use memtrove_store::vault::Vault;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// `[store]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// `sqlite` keeps a database in the data folder, `sqlite:/path` in a file of its own, `postgres://user@host/database` on
    /// a PostgreSQL server, which several nodes may share.
    pub url: StoreUrl,
    /// PostgreSQL: how many connections this node works with.
    pub connections: usize,
    /// PostgreSQL: how long one statement may take, waiting for locks included.
    pub statement_timeout: Span,
    /// PostgreSQL: how many units of work may wait for a connection; more are answered 503.
    pub queue: usize,
    /// PostgreSQL: a file with the certificates of the authorities that may vouch for the server.
    pub tls_ca: Option<PathBuf>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: StoreUrl::new("sqlite"),
            connections: 16,
            statement_timeout: Span::seconds(30),
            queue: 4096,
            tls_ca: None,
        }
    }
}

/// The address of a store, which may hold a password: it is shown without.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct StoreUrl(String);

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// In a file of this machine, for one process.
    Sqlite(PathBuf),
    /// On a PostgreSQL server, for any number of them.
    Postgres(DatabaseUrl),
}

const URL: &str = "store.url";
const TLS_CA: &str = "store.tls_ca";
/// Half of them write, the others read.
const FEWEST_CONNECTIONS: usize = 2;
/// PostgreSQL counts timeouts in milliseconds, in 31 bits, and one of them is twice this.
const LONGEST_STATEMENT: Duration = Duration::from_millis(i32::MAX as u64 / 2);

impl StoreUrl {
    /// Wraps an address.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The address itself, for the code that connects.
    pub fn expose(&self) -> &str {
        self.0.trim()
    }

    fn names_postgres(&self) -> bool {
        ["postgres:", "postgresql:"].iter().any(|scheme| self.expose().starts_with(scheme))
    }

    /// The kind of store this asks for, if it can be nothing else: what was meant as something else may be secret.
    fn kind(&self) -> Option<&str> {
        let (kind, named) = match self.expose().split_once(':') {
            Some((kind, _)) => (kind, true),
            None => (self.expose(), false),
        };
        let is_name =
            !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        (is_name && (named || kind.len() <= 16)).then_some(kind)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names_postgres() {
            return f.write_str(&address::redacted(self.expose()));
        }
        match self.kind() {
            Some("sqlite") => f.write_str(self.expose()),
            Some(kind) => write!(f, "{kind}:[redacted]"),
            None => f.write_str("[redacted]"),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => file.display().fmt(f),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

impl Store {
    /// Where the store is; a file without a path of its own is in `data_dir`.
    pub(super) fn database(&self, data_dir: &Path) -> Result<Database, ConfigProblem> {
        const KINDS: &str = "use \"sqlite\" for a database in the data folder, \"sqlite:/path/to/file.db\", or \
                             \"postgres://user@host/database\"";
        let url = self.url.expose();
        if self.url.names_postgres() {
            let address = url.parse();
            return address
                .map(Database::Postgres)
                .map_err(|error: address::AddressError| ConfigProblem::new(URL, error.problem, error.fix));
        }
        match url.strip_prefix("sqlite") {
            Some("") => Ok(Database::Sqlite(data_dir.join("memtrove.db"))),
            Some(":" | "://") => Err(ConfigProblem::new(URL, format!("'{url}' names no file"), KINDS)),
            Some(path) if path.starts_with(':') => {
                let path = &path[1..];
                Ok(Database::Sqlite(path.strip_prefix("//").unwrap_or(path).into()))
            }
            _ => {
                let kind = self.url.kind().map_or("what it says".to_owned(), |kind| format!("'{kind}'"));
                Err(ConfigProblem::new(URL, format!("{kind} is not a kind of store"), KINDS))
            }
        }
    }

    /// What the PostgreSQL engine works with.
    pub fn postgres(&self, vault: Vault) -> PostgresConfig {
        PostgresConfig {
            url: self.url.expose().to_owned(),
            connections: self.connections,
            queue: self.queue,
            statement_timeout: self.statement_timeout.0,
            tls_ca: self.tls_ca.clone(),
            vault: Arc::new(vault),
        }
    }

    /// What keeps a server from starting.
    pub(super) fn problems(&self, data_dir: &Path) -> Vec<ConfigProblem> {
        let mut found: Vec<ConfigProblem> = positive([
            ("store.queue", self.queue > 0),
            ("store.statement_timeout", !self.statement_timeout.0.is_zero()),
        ])
        .collect();
        if self.connections < FEWEST_CONNECTIONS {
            let problem = format!("is {}", self.connections);
            let fix = "use at least 2: one reads while another one writes";
            found.push(ConfigProblem::new("store.connections", problem, fix));
        }
        if self.statement_timeout.0 > LONGEST_STATEMENT {
            let problem = format!("is {}", self.statement_timeout);
            found.push(ConfigProblem::new("store.statement_timeout", problem, "use at most 12d"));
        }
        match self.database(data_dir) {
            Ok(Database::Postgres(address)) => found.extend(self.tls_problem(&address)),
            Ok(Database::Sqlite(_)) => {}
            Err(problem) => found.push(problem),
        }
        found
    }

    /// Whatever would make somebody believe that the server is verified when it is not.
    fn tls_problem(&self, address: &DatabaseUrl) -> Option<ConfigProblem> {
        let file = self.tls_ca.as_deref()?;
        if matches!(address.tls(), Tls::Disable | Tls::Prefer) {
            return Some(ConfigProblem::new(
                TLS_CA,
                format!("is set, and sslmode={} in {URL} verifies nothing", address.tls()),
                format!("add sslmode=verify-full to {URL}, or remove {TLS_CA}"),
            ));
        }
        if address.root().is_some_and(|root| *root != Root::File(file.to_owned())) {
            return Some(ConfigProblem::new(
                TLS_CA,
                format!("is set, and sslrootcert in {URL} says otherwise"),
                "remove one of them",
            ));
        }
        let problem = match std::fs::read_to_string(file) {
            Ok(text) if text.contains("-----BEGIN CERTIFICATE-----") => return None,
            Ok(_) => format!("{} holds no certificate", file.display()),
            Err(error) => format!("{} cannot be read: {error}", file.display()),
        };
        Some(ConfigProblem::new(TLS_CA, problem, "name a file with certificates in PEM format"))
    }

    /// What a server may start with but somebody should know about.
    pub(super) fn warnings(&self, data_dir: &Path) -> Vec<String> {
        match self.database(data_dir) {
            Ok(Database::Sqlite(_)) => self.unused().into_iter().collect(),
            Ok(Database::Postgres(address)) => self.unverified(&address).into_iter().collect(),
            Err(_) => vec![],
        }
    }

    fn unused(&self) -> Option<String> {
        let Self { url: _, connections, statement_timeout, queue, tls_ca } = Self::default();
        let set = [
            ("connections", self.connections != connections),
            ("statement_timeout", self.statement_timeout != statement_timeout),
            ("queue", self.queue != queue),
            ("tls_ca", self.tls_ca != tls_ca),
        ];
        let set: Vec<String> =
            set.iter().filter(|(_, set)| *set).map(|(key, _)| format!("store.{key}")).collect();
        (!set.is_empty())
            .then(|| format!("{}: for PostgreSQL only, and {URL} asks for SQLite", set.join(", ")))
    }

    fn unverified(&self, address: &DatabaseUrl) -> Option<String> {
        let verified_by = address.root().is_some() || self.tls_ca.is_some();
        let anybody = match address.tls() {
            Tls::Disable => "without TLS",
            Tls::Prefer => "with TLS only if the server offers it, and never verified",
            Tls::Require if !verified_by => "with TLS that is not verified",
            Tls::Require | Tls::VerifyCa | Tls::VerifyFull => return None,
        };
        (!address.is_local()).then(|| {
            format!(
                "{URL} connects to {} {anybody}: anyone on the way can read and change everything. Add \
                 sslmode=verify-full, and {TLS_CA} where the server's certificate is of an authority of your own",
                address.hosts().join(", ")
            )
        })
    }
}
