//! Why a connection failed, as far as the remedies differ.

use super::super::PostgresConfig;
use super::super::address::DatabaseUrl;
use super::super::connection::{runtime, waiting};
use super::super::tls::tls;
use std::error::Error as _;
use std::io::ErrorKind;
use std::time::Duration;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nothing listens there.
    Refused,
    /// The name of the host is not known, or there is no way to it.
    Unreachable,
    /// The host does not answer in time.
    Silent,
    /// The server has no TLS, and the URL wants it.
    NoTls,
    /// The server cannot prove to be the one that is meant.
    Certificate,
    /// It wants a password, and there is none.
    PasswordMissing,
    /// It does not let us in: the password or the role is another, or `pg_hba.conf` has no line for us.
    NotAdmitted,
    /// There is no such database.
    NoDatabase,
    /// The role may not connect to the database.
    NotAllowed,
    /// It has no room for another connection.
    Full,
    /// It starts or stops, or is a standby that takes no connections yet.
    NotReady,
    /// Something else.
    Other,
}

/// The most an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries to connect once more, to find out why that fails; `None` if it succeeds.
pub fn diagnose(config: &PostgresConfig) -> Option<Cause> {
    waiting(|| try_it(config)).unwrap_or(Some(Cause::Other))
}

fn try_it(config: &PostgresConfig) -> Option<Cause> {
    let Ok(address) = config.url.parse::<DatabaseUrl>() else { return Some(Cause::Other) };
    let Ok(tls) = tls(&address, config.tls_ca.as_deref()) else { return Some(Cause::Certificate) };
    let Ok(runtime) = runtime() else { return Some(Cause::Other) };
    let mut settings = address.config();
    if settings.get_connect_timeout().is_none() {
        settings.connect_timeout(PATIENCE / 2);
    }
    let connecting =
        async { tokio::time::timeout(PATIENCE, settings.connect(MakeRustlsConnect::new(tls))).await };
    match runtime.block_on(connecting) {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(cause(&error)),
        Err(_) => Some(Cause::Silent),
    }
}

/// By the server's code where it has one: its words may be in any language.
fn cause(error: &Error) -> Cause {
    if let Some(code) = error.code() {
        return match code {
            &SqlState::TOO_MANY_CONNECTIONS => Cause::Full,
            &SqlState::INVALID_CATALOG_NAME => Cause::NoDatabase,
            &SqlState::INSUFFICIENT_PRIVILEGE => Cause::NotAllowed,
            &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                Cause::NotAdmitted
            }
            code if code.code().starts_with("57") => Cause::NotReady,
            _ => Cause::Other,
        };
    }
    let source = error.source();
    let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let said = source.map(ToString::to_string).unwrap_or_default();
    match (error.to_string().as_str(), io.map(std::io::Error::kind)) {
        ("invalid configuration", _) if said == "password missing" => Cause::PasswordMissing,
        ("error performing TLS handshake", _) if said == "server does not support TLS" => Cause::NoTls,
        ("error performing TLS handshake", _) => Cause::Certificate,
        (_, Some(ErrorKind::ConnectionRefused | ErrorKind::NotFound)) => Cause::Refused,
        ("timeout waiting for server", _) | (_, Some(ErrorKind::TimedOut)) => Cause::Silent,
        ("error connecting to server", _) => Cause::Unreachable,
        _ => Cause::Other,
    }
}
