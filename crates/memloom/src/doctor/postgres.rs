//! A database on a PostgreSQL server: who answers, what we may do there, how it is doing, who else is there.

use super::store::Readable;
use super::{Check, DATABASE};
use memloom_core::{Clock, SystemClock};
use memloom_store::postgres::address::Address;
use memloom_store::postgres::inspection::{self, Inspection, Node, known_schema};
use memloom_store::postgres::{self, PostgresConfig};
use memloom_store::{StoreError, Tx};
use std::collections::BTreeSet;

/// The oldest server that is tested.
const OLDEST_SERVER: i32 = 150_000;
/// The oldest pgvector with iterative scans, without which selective filters would cost recall.
const OLDEST_PGVECTOR: (u32, u32) = (0, 8);
/// Clocks that are further apart than this, in microseconds, are worth a word: times of entries come from the nodes.
const CLOCKS_APART: u64 = 1_000_000;
/// A change that waits longer than this for its number, in microseconds, waits for a node that is not there.
const UNNUMBERED_FOR: i64 = 10_000_000;

/// A database, after a look at it that changed nothing.
pub(super) struct Examined {
    address: Address,
    config: PostgresConfig,
    found: Result<Inspection, StoreError>,
}

impl Examined {
    pub(super) async fn of(address: Address, config: PostgresConfig) -> Self {
        let looked_at = config.clone();
        let found = tokio::task::spawn_blocking(move || inspection::inspect(&looked_at, &SystemClock)).await;
        let found =
            found.unwrap_or_else(|_| Err(StoreError::Broken("looking at the database failed".into())));
        Self { address, config, found }
    }

    pub(super) fn in_use(&self) -> bool {
        self.found.as_ref().is_ok_and(|found| !found.nodes.is_empty())
    }

    pub(super) fn readable(&self) -> Readable<'_> {
        match &self.found {
            Ok(found) if found.schema.is_some_and(|schema| schema.number <= known_schema()) => {
                Readable::of(found.readable.as_ref())
            }
            Ok(_) | Err(_) => Readable::Nothing,
        }
    }

    pub(super) async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let config = self.config.clone();
        let looked = tokio::task::spawn_blocking(move || postgres::look(&config, read)).await;
        looked.unwrap_or_else(|_| Err(StoreError::Broken("looking at the database failed".into())))
    }

    /// What there is to say, where a node that is here may be `running` as configured.
    pub(super) fn checks(&self, running: bool) -> Vec<Check> {
        match &self.found {
            Err(refusal) => vec![Check::problem(
                DATABASE,
                refusal.to_string(),
                "check store.url (host, port, user, password, database), and that this machine can reach the server",
            )],
            Ok(found) => [
                self.connection(found),
                server(found),
                role(found),
                pgvector(found),
                schema(found),
                self.room(found, running),
                clocks(found),
                vacuum(found),
            ]
            .into_iter()
            .chain(feed(found))
            .chain([nodes(&found.nodes)])
            .collect(),
        }
    }

    fn connection(&self, found: &Inspection) -> Check {
        let tls =
            found.server.tls.as_deref().map_or("without TLS".to_owned(), |version| format!("with {version}"));
        Check::ok(DATABASE, format!("connected to {} {tls}", self.address))
    }

    /// Whether there are connections for all nodes, and this one.
    fn room(&self, found: &Inspection, running: bool) -> Check {
        const NAME: &str = "connections";
        let nodes = found.nodes.len() + usize::from(!running);
        let (each, limit) = (self.config.most_connections(), found.connections.limit);
        let needed = each * nodes;
        let message = format!(
            "{limit} are allowed, {} are used; {} with up to {each} each",
            found.connections.used,
            counted(nodes, "node"),
        );
        if i64::try_from(needed).is_ok_and(|needed| needed <= limit) {
            return Check::ok(NAME, message);
        }
        let fix = "lower store.connections, or raise max_connections of the server (or the limit of the role or database)";
        Check::advice(NAME, format!("{message} may need {needed}"), fix)
    }
}

fn server(found: &Inspection) -> Check {
    const NAME: &str = "server";
    let server = &found.server;
    let message = format!("PostgreSQL {}, encoding {}", server.version_text, server.encoding);
    if server.version < OLDEST_SERVER {
        return Check::problem(NAME, message, "upgrade the server to PostgreSQL 15 or newer");
    }
    if server.encoding != "UTF8" {
        let fix = "make the database anew: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0";
        return Check::problem(NAME, message, fix);
    }
    if server.read_only {
        let fix = "name the primary in store.url; with several hosts, add target_session_attrs=read-write";
        return Check::problem(NAME, format!("{message}; it takes no writes: a standby?"), fix);
    }
    if !server.durable {
        let fix = "set fsync, full_page_writes and synchronous_commit to on, unless this is for tests";
        return Check::advice(NAME, format!("{message}; a power failure loses acknowledged writes"), fix);
    }
    Check::ok(NAME, message)
}

fn role(found: &Inspection) -> Check {
    const NAME: &str = "role";
    let role = &found.role;
    let name = &role.name;
    let what = match (role.superuser, role.bypasses_rls) {
        (true, _) => "is a superuser",
        (false, true) => "has BYPASSRLS",
        (false, false) if role.creates_tables && role.creates_in_database => {
            return Check::ok(NAME, format!("{name} may do what is needed, and no more"));
        }
        (false, false) => {
            let fix = format!("make it the owner: ALTER DATABASE … OWNER TO {name}");
            let missing = format!(
                "{name} may not make tables and schemas in this database, so no version can be installed"
            );
            // A database that is set up needs nothing more until the next upgrade.
            return match found.schema {
                Some(schema) if schema.number >= known_schema() => Check::advice(NAME, missing, fix),
                _ => Check::problem(NAME, missing, fix),
            };
        }
    };
    Check::advice(
        NAME,
        format!("{name} {what}: row-level security, the second line of tenant isolation, is off"),
        format!("use a role that is neither: ALTER ROLE {name} NOSUPERUSER NOBYPASSRLS"),
    )
}

fn pgvector(found: &Inspection) -> Check {
    const NAME: &str = "pgvector";
    let (pgvector, role) = (&found.pgvector, &found.role);
    match (&pgvector.installed, &pgvector.available) {
        (Some(version), _) if parts(version) < OLDEST_PGVECTOR => {
            let fix = "install pgvector 0.8 or newer, then ALTER EXTENSION vector UPDATE";
            Check::problem(NAME, format!("{version} is too old"), fix)
        }
        (Some(version), _) => Check::ok(NAME, version.clone()),
        (None, Some(version)) if role.superuser || (pgvector.trusted && role.creates_in_database) => {
            Check::ok(NAME, format!("{version} is made at the first start"))
        }
        (None, Some(_)) => Check::problem(
            NAME,
            format!("is not in this database, and {} may not make it", role.name),
            "as a superuser, in this database: CREATE EXTENSION vector",
        ),
        (None, None) => Check::problem(
            NAME,
            "is not installed on the server",
            "install pgvector 0.8 or newer there; managed services have it",
        ),
    }
}

/// `0.8.6` as numbers that can be compared.
fn parts(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn schema(found: &Inspection) -> Check {
    const NAME: &str = "schema";
    let known = known_schema();
    match found.schema {
        None => Check::ok(NAME, format!("the database is empty; the first start makes schema {known}")),
        Some(schema) if schema.number < known => {
            Check::ok(NAME, format!("{}; the next start upgrades it to {known}", schema.number))
        }
        Some(schema) if schema.number == known => Check::ok(NAME, format!("{known}, as this version has it")),
        Some(schema) => match inspection::refusal(schema) {
            Some(refusal) => Check::refusal(NAME, &refusal),
            None => Check::ok(
                NAME,
                format!(
                    "{}, newer than this version's {known}, which can work on it all the same",
                    schema.number
                ),
            ),
        },
    }
}

fn clocks(found: &Inspection) -> Check {
    const NAME: &str = "clock";
    let apart = found.clock_ahead.unsigned_abs();
    if apart < CLOCKS_APART {
        return Check::ok(NAME, "agrees with the server's");
    }
    let which = if found.clock_ahead > 0 { "ahead of" } else { "behind" };
    let message = format!("the server's is {:.1} s {which} this machine's", apart as f64 / 1e6);
    Check::advice(NAME, message, "set all clocks by the same time service (NTP)")
}

fn vacuum(found: &Inspection) -> Check {
    const NAME: &str = "vacuum";
    let whose = if found.sees_everybody { "" } else { " of this role" };
    match found.holding_back.as_slice() {
        [] => Check::ok(NAME, format!("no long transaction{whose} holds it back")),
        [oldest, others @ ..] => {
            let more = match others.len() {
                0 => String::new(),
                others => format!(", and {}", counted(others, "other")),
            };
            let message = format!("{} holds it back for {} minutes{more}", oldest.what, oldest.seconds / 60);
            Check::advice(NAME, message, "end it: until then deleted and replaced rows stay, and tables grow")
        }
    }
}

fn feed(found: &Inspection) -> Option<Check> {
    const NAME: &str = "change feed";
    found.schema?;
    let Some(unnumbered) = found.unnumbered else {
        return Some(Check::ok(NAME, "every change has its number"));
    };
    let waiting = format!("{} without a number", counted_i64(unnumbered.count, "change"));
    let waits_for = SystemClock.now().as_micros() - unnumbered.oldest;
    Some(if waits_for < UNNUMBERED_FOR {
        Check::ok(NAME, waiting)
    } else if found.nodes.is_empty() {
        Check::ok(NAME, format!("{waiting}; the next node that starts gives them one"))
    } else {
        let message = format!("{waiting}, the oldest since {} s", waits_for / 1_000_000);
        Check::advice(
            NAME,
            message,
            "look for \"number\" in the nodes' logs: readers of the feed do not see them yet",
        )
    })
}

fn nodes(nodes: &[Node]) -> Check {
    const NAME: &str = "nodes";
    if nodes.is_empty() {
        return Check::ok(NAME, "none is running");
    }
    let versions: BTreeSet<&str> = nodes.iter().map(|node| node.version.as_str()).collect();
    let each: Vec<String> = nodes
        .iter()
        .map(|node| format!("{} ({}, seen {} s ago)", node.id, node.version, node.seen))
        .collect();
    let message = format!("{}: {}", counted(nodes.len(), "node"), each.join(", "));
    if versions.len() > 1 {
        return Check::warning(NAME, format!("{message}; of different versions, as in an upgrade"));
    }
    Check::ok(NAME, message)
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn counted_i64(count: i64, what: &str) -> String {
    counted(usize::try_from(count).unwrap_or_default(), what)
}
