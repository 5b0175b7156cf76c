//! Where a PostgreSQL database is, read from its URL: what it says about TLS, what of it may be shown, and what is secret.

mod password;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// A database's URL, taken apart.
///
/// It follows libpq, but for what would be a guess: a database must be named, and what is special in a name or a password
/// must be escaped. `Display` and `Debug` leave the password out, so that an address can be shown to anybody.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    config: Box<tokio_postgres::Config>,
    tls: Tls,
    root: Option<Root>,
}

/// How far the server must prove who it is; libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// No TLS.
    Disable,
    /// TLS where the server offers it, with anybody.
    Prefer,
    /// TLS, without a look at the certificate, unless an authority is configured: then it must have signed it.
    Require,
    /// TLS, with a certificate of a trusted authority.
    VerifyCa,
    /// TLS, with the host that is named in the URL.
    VerifyFull,
}

/// Whose certificates are trusted; libpq's `sslrootcert`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// Those that the authorities in this file signed.
    File(PathBuf),
    /// Those that the machine trusts.
    System,
}

/// Why a text is no address: what is wrong with it, and what would be right. Neither repeats a part that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {fix}")]
pub struct AddressError {
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub fix: String,
}

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const MODES: [(&str, Tls); 5] = [
    ("disable", Tls::Disable),
    ("prefer", Tls::Prefer),
    ("require", Tls::Require),
    ("verify-ca", Tls::VerifyCa),
    ("verify-full", Tls::VerifyFull),
];
/// What may stand behind the question mark beside `sslmode` and `sslrootcert`.
const OPTIONS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];
const AN_EXAMPLE: &str = "write it as postgres://user@host/database";
const REDACTED: &str = "[redacted]";

impl FromStr for DatabaseUrl {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        let parts = Parts::of(url)?;
        let (mut tls, mut root, mut others) = (Tls::Prefer, None, Vec::new());
        for (name, value) in parts.options()? {
            match name {
                "sslmode" => tls = mode(value)?,
                "sslrootcert" if value == "system" => root = Some(Root::System),
                "sslrootcert" => root = Some(Root::File(unescaped(value)?.into())),
                "sslcert" | "sslkey" | "sslpassword" => {
                    return Err(wrong(
                        format!("asks for a client's certificate ({name}), which is not supported"),
                        "let the server ask for a password (scram-sha-256) instead",
                    ));
                }
                name if OPTIONS.contains(&name) => others.push(format!("{name}={value}")),
                // An unknown name may be a piece of a password.
                _ => {
                    return Err(wrong(
                        "has an option that is not known",
                        format!(
                            "after the question mark there may be sslmode, sslrootcert, {}",
                            OPTIONS.join(", ")
                        ),
                    ));
                }
            }
        }
        let plain = format!("{}{}?{}", SCHEMES[0], parts.place, others.join("&"));
        let config: tokio_postgres::Config =
            plain.parse().map_err(|error| wrong(unreadable(&error), AN_EXAMPLE))?;
        Self { config: Box::new(config), tls, root }.checked()
    }
}

impl DatabaseUrl {
    /// What the driver connects with. It asks for TLS as the address does; what is verified is up to the connector. A password
    /// that the URL leaves out comes from where libpq looks for it (`PGPASSWORD`, `PGPASSFILE`, `~/.pgpass`).
    pub fn config(&self) -> tokio_postgres::Config {
        let mut config = (*self.config).clone();
        if config.get_password().is_none() {
            let login = password::Login {
                hosts: self.places(),
                database: self.database(),
                user: self.config.get_user().unwrap_or_default(),
            };
            if let Some(password) = password::of(&login) {
                config.password(password);
            }
        }
        config.ssl_mode(match self.tls {
            Tls::Disable => SslMode::Disable,
            Tls::Prefer => SslMode::Prefer,
            Tls::Require | Tls::VerifyCa | Tls::VerifyFull => SslMode::Require,
        });
        config
    }

    /// How far the server must prove who it is.
    pub fn tls(&self) -> Tls {
        self.tls
    }

    /// Whose certificates are trusted, where the URL says so.
    pub fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    pub fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// The hosts with their ports, as `db.example:5432`.
    pub fn hosts(&self) -> Vec<String> {
        let bracketed = |host: String| if host.contains(':') { format!("[{host}]") } else { host };
        self.places().into_iter().map(|(host, port)| format!("{}:{port}", bracketed(host))).collect()
    }

    /// The hosts, which may be folders of sockets, and their ports.
    fn places(&self) -> Vec<(String, u16)> {
        let named: Vec<String> = match self.config.get_hosts() {
            [] => self.config.get_hostaddrs().iter().map(IpAddr::to_string).collect(),
            hosts => hosts.iter().map(shown).collect(),
        };
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        named.into_iter().enumerate().map(|(at, host)| (host, port(at))).collect()
    }

    /// Whether the connection stays on this machine.
    pub fn is_local(&self) -> bool {
        let loopback = |host: &str| {
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        };
        let hosts = self.config.get_hosts().iter().all(|host| match host {
            Host::Tcp(host) => loopback(host),
            #[cfg(unix)]
            Host::Unix(_) => true,
        });
        hosts && self.config.get_hostaddrs().iter().all(IpAddr::is_loopback)
    }

    /// Whether a host is reached through a Unix socket, which knows no TLS.
    fn has_socket(&self) -> bool {
        self.config.get_hosts().iter().any(|host| !matches!(host, Host::Tcp(_)))
    }

    fn checked(self) -> Result<Self, AddressError> {
        if self.config.get_hosts().is_empty() && self.config.get_hostaddrs().is_empty() {
            return Err(wrong("names no host", AN_EXAMPLE));
        }
        if self.config.get_dbname().is_none() {
            return Err(wrong("names no database", AN_EXAMPLE));
        }
        if self.config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
            return Err(wrong(
                "asks for a server that only reads (target_session_attrs=read-only)",
                "use target_session_attrs=read-write, or leave it out",
            ));
        }
        if self.has_socket() && !matches!(self.tls, Tls::Disable | Tls::Prefer) {
            return Err(wrong(
                format!("asks for TLS (sslmode={}) on a Unix socket, which has none", self.tls),
                "leave sslmode out, or name a host",
            ));
        }
        if self.root.is_some() && matches!(self.tls, Tls::Disable | Tls::Prefer) {
            return Err(wrong(
                format!("has sslrootcert next to sslmode={}, which verifies nothing", self.tls),
                "use sslmode=verify-full, or leave sslrootcert out",
            ));
        }
        Ok(self)
    }
}

/// The URL without its password, whatever is wrong with it.
pub fn redacted(url: &str) -> String {
    let Ok(parts) = Parts::of(url) else { return format!("{}{REDACTED}", SCHEMES[0]) };
    let place = match parts.place.split_once('@') {
        Some((credentials, rest)) => {
            let user = credentials.split_once(':').map(|(user, _)| format!("{user}:{REDACTED}"));
            format!("{}@{rest}", user.as_deref().unwrap_or(credentials))
        }
        None => parts.place.to_owned(),
    };
    let Ok(options) = parts.options() else { return format!("{}{place}?{REDACTED}", parts.scheme) };
    let known = |name: &str| OPTIONS.contains(&name) || name.starts_with("ssl");
    let options = options.into_iter().map(|(name, value)| match name {
        "password" | "sslpassword" => format!("{name}={REDACTED}"),
        name if known(name) => format!("{name}={value}"),
        _ => REDACTED.to_owned(),
    });
    let options: Vec<String> = options.collect();
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{}{place}{mark}{}", parts.scheme, options.join("&"))
}

/// A URL cut at its marks.
struct Parts<'a> {
    scheme: &'a str,
    /// Credentials, hosts and path.
    place: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Result<Self, AddressError> {
        let scheme = SCHEMES.iter().find(|scheme| url.starts_with(**scheme));
        let scheme =
            scheme.ok_or_else(|| wrong("is not the address of a PostgreSQL database", AN_EXAMPLE))?;
        let rest = &url[scheme.len()..];
        // A mark inside a password would end it early, and show the rest of it as the name of a host.
        let credentials = rest.rfind('@').map_or("", |end| &rest[..end]);
        if credentials.contains(['@', '/', '?', '#', ' ']) {
            return Err(wrong(
                "has a character in its user or password that means something else there",
                "write @ as %40, / as %2F, ? as %3F, # as %23, : as %3A, % as %25 and a space as %20",
            ));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        Ok(Self { scheme: &url[..scheme.len()], place, query })
    }

    fn options(&self) -> Result<Vec<(&'a str, &'a str)>, AddressError> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('='));
        let pairs: Option<Vec<_>> = pairs.collect();
        pairs.ok_or_else(|| wrong("has an option without a value", "write options as ?name=value&name=value"))
    }
}

fn mode(value: &str) -> Result<Tls, AddressError> {
    let found = MODES.iter().find(|(name, _)| *name == value);
    let names = MODES.map(|(name, _)| name).join(", ");
    found.map(|(_, tls)| *tls).ok_or_else(|| {
        let problem = match value {
            "allow" => "has sslmode=allow, which is not supported",
            _ => "has an sslmode that is not known",
        };
        wrong(problem, format!("use one of: {names}"))
    })
}

/// A value with its `%2F` and the like resolved.
fn unescaped(value: &str) -> Result<String, AddressError> {
    let (mut decoded, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(decoded).map_err(|_| wrong("has an sslrootcert that is not text", AN_EXAMPLE))
}

/// What the driver could not read. It names an option, never its value.
fn unreadable(error: &tokio_postgres::Error) -> String {
    let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let option = OPTIONS.iter().find(|option| why == format!("invalid value for option `{option}`"));
    option.map_or("cannot be read".to_owned(), |option| format!("has a {option} that is not one"))
}

fn shown(host: &Host) -> String {
    match host {
        Host::Tcp(host) => host.clone(),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    }
}

fn wrong(problem: impl Into<String>, fix: impl Into<String>) -> AddressError {
    AddressError { problem: problem.into(), fix: fix.into() }
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = MODES.iter().find(|(_, tls)| tls == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        write!(f, "{}{user}{}/{}", SCHEMES[0], self.hosts().join(","), self.database())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}?sslmode={}", self.tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let check = |url: &str, shown: &str, redacted_as: &str| {
            let address: DatabaseUrl = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(address.to_string(), shown, "{url}");
            assert_eq!(redacted(url), redacted_as);
            assert!(!format!("{address}{address:?}{}", redacted(url)).contains("hush"), "{url}");
        };
        check(
            "postgres://memtrove:hush@db.example/memtrove",
            "postgres://memtrove@db.example:5432/memtrove",
            "postgres://memtrove:[redacted]@db.example/memtrove",
        );
        check(
            "postgresql://memtrove@db.example/memtrove?password=hush&sslmode=verify-full",
            "postgres://memtrove@db.example:5432/memtrove",
            "postgresql://memtrove@db.example/memtrove?password=[redacted]&sslmode=verify-full",
        );
        check(
            "postgres://m:hush%40@a:1,[::1]:2/d?target_session_attrs=read-write",
            "postgres://m@a:1,[::1]:2/d",
            "postgres://m:[redacted]@a:1,[::1]:2/d?target_session_attrs=read-write",
        );
        check(
            "postgres://m@%2Frun%2Fpostgresql/d",
            "postgres://m@/run/postgresql:5432/d",
            "postgres://m@%2Frun%2Fpostgresql/d",
        );
    }

    #[test]
    fn what_tls_means_is_read_as_libpq_reads_it() {
        let read = |options: &str| format!("postgres://db/x{options}").parse::<DatabaseUrl>().unwrap();
        for (options, tls, mode) in [
            ("", Tls::Prefer, SslMode::Prefer),
            ("?sslmode=disable", Tls::Disable, SslMode::Disable),
            ("?sslmode=prefer", Tls::Prefer, SslMode::Prefer),
            ("?sslmode=require", Tls::Require, SslMode::Require),
            ("?sslmode=verify-ca", Tls::VerifyCa, SslMode::Require),
            ("?connect_timeout=3&sslmode=verify-full", Tls::VerifyFull, SslMode::Require),
        ] {
            assert_eq!(
                (read(options).tls(), read(options).config().get_ssl_mode()),
                (tls, mode),
                "{options}"
            );
        }
        let file = read("?sslmode=verify-full&sslrootcert=/etc/our%20ca.pem");
        assert_eq!(file.root(), Some(&Root::File("/etc/our ca.pem".into())));
        assert_eq!(read("?sslmode=require&sslrootcert=system").root(), Some(&Root::System));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right_and_without_the_password() {
        for (url, problem) in [
            ("postgres:hush", "is not the address of a PostgreSQL database"),
            ("postgres://", "names no host"),
            ("postgres://u:hush@/x", "names no host"),
            ("postgres://u:hush@db", "names no database"),
            ("postgres://u:hush@db/", "names no database"),
            ("postgres://u:hu@sh@db/x", "has a character in its user or password"),
            ("postgres://u:hush/hush@db/x", "has a character in its user or password"),
            ("postgres://u:hush?hush=1@db/x", "has a character in its user or password"),
            ("postgres://u:hush@db:many/x", "has a port that is not one"),
            ("postgres://u@db/x?connect_timeout=hush", "has a connect_timeout that is not one"),
            ("postgres://u@db/x?hush=1", "has an option that is not known"),
            ("postgres://u@db/x?hush", "has an option without a value"),
            ("postgres://u@db/x?sslmode=hush", "has an sslmode that is not known"),
            ("postgres://u@db/x?sslmode=allow", "has sslmode=allow, which is not supported"),
            ("postgres://u@db/x?sslcert=hush.pem", "asks for a client's certificate (sslcert)"),
            ("postgres://u@db/x?sslrootcert=hush.pem", "has sslrootcert next to sslmode=prefer"),
            ("postgres://u@%2Frun/x?sslmode=require", "asks for TLS (sslmode=require) on a Unix socket"),
            ("postgres://u@db/x?target_session_attrs=read-only", "asks for a server that only reads"),
        ] {
            let error = url.parse::<DatabaseUrl>().map(|address| address.to_string()).unwrap_err();
            assert!(error.problem.starts_with(problem), "{url}: {error}");
            assert!(!error.fix.is_empty() && !format!("{error}{error:?}").contains("hush"), "{url}: {error}");
            assert!(!redacted(url).contains("hush@"), "{}", redacted(url));
        }
    }

    #[test]
    fn it_is_known_whether_the_connection_leaves_the_machine() {
        let local = |place: &str| format!("postgres://{place}/x").parse::<DatabaseUrl>().unwrap().is_local();
        assert!(local("localhost") && local("127.0.0.1:6432") && local("[::1]") && local("%2Frun"));
        assert!(!local("db.example") && !local("localhost,10.0.0.1"));
    }
}
