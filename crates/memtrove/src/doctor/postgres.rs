//! A database on a PostgreSQL server: who answers, what we may do there, how it is doing, who else is there.

use super::store::Readable;
use super::{Check, DATABASE};
use memtrove_core::{Clock, SystemClock};
use memtrove_store::postgres::address::DatabaseUrl;
use memtrove_store::postgres::inspection::{self, Cause, InspectedNode, PostgresInspection, known_schema};
use memtrove_store::postgres::{self, PostgresConfig};
use memtrove_store::{AllTenants, StoreError, Tx};
use std::collections::BTreeSet;
use std::time::Duration;

/// The oldest server that is tested.
const OLDEST_SERVER: i32 = 150_000;
/// The oldest pgvector with iterative scans, without which selective filters would cost recall.
const OLDEST_PGVECTOR: (u32, u32) = (0, 8);
/// Clocks that are further apart than this, in microseconds, are worth a word: times of entries come from the nodes.
const CLOCKS_APART: u64 = 1_000_000;
/// A change that waits longer than this for its number, in microseconds, waits for a node that is not there.
const UNNUMBERED_FOR: i64 = 10_000_000;

/// A database, after a look at it that changed nothing.
pub(super) struct ExaminedPostgres {
    address: DatabaseUrl,
    config: PostgresConfig,
    /// Nodes that are gone without having said so are not among those it found.
    found: Result<PostgresInspection, Refusal>,
    gone: Vec<InspectedNode>,
}

/// Why a database could not be looked at.
struct Refusal {
    why: StoreError,
    cause: Option<Cause>,
}

impl ExaminedPostgres {
    /// Looks at a database, where nodes count as gone that did not say for a `lease` that they are there.
    pub(super) async fn of(address: DatabaseUrl, config: PostgresConfig, lease: Duration) -> Self {
        let looked_at = config.clone();
        let look = move || {
            inspection::inspect(&looked_at, &SystemClock)
                .map_err(|why| Refusal { why, cause: inspection::diagnose(&looked_at) })
        };
        let found = tokio::task::spawn_blocking(look).await;
        let failed = || StoreError::Broken("looking at the database failed".into());
        let mut found = found.unwrap_or_else(|_| Err(Refusal { why: failed(), cause: None }));
        let mut gone = Vec::new();
        if let Ok(found) = &mut found {
            let is_gone = |node: &mut InspectedNode| node.seen > lease.as_secs() as i64;
            gone.extend(found.nodes.extract_if(.., is_gone));
        }
        Self { address, config, found, gone }
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
        let looked =
            tokio::task::spawn_blocking(move || postgres::look(&config, AllTenants.into(), read)).await;
        looked.unwrap_or_else(|_| Err(StoreError::Broken("looking at the database failed".into())))
    }

    /// What there is to say, where a node that is here may be `running` as configured.
    pub(super) fn checks(&self, running: bool) -> Vec<Check> {
        match &self.found {
            Err(Refusal { why, cause }) => {
                let why = why.to_string().replace('\n', " ");
                vec![Check::problem(DATABASE, why, remedy(*cause, &self.address))]
            }
            Ok(found) => [
                self.connection(found),
                server(found),
                role(found, &self.address),
                pgvector(found),
                schema(found),
                self.room(found, running),
                clocks(found),
                vacuum(found),
            ]
            .into_iter()
            .chain(row_security(found))
            .chain(feed(found))
            .chain([nodes(&found.nodes, &self.gone)])
            .collect(),
        }
    }

    fn connection(&self, found: &PostgresInspection) -> Check {
        let tls =
            found.server.tls.as_deref().map_or("without TLS".to_owned(), |version| format!("with {version}"));
        Check::ok(DATABASE, format!("connected to {} {tls}", self.address))
    }

    /// Whether there are connections for all nodes, and this one.
    fn room(&self, found: &PostgresInspection, running: bool) -> Check {
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

/// What to do where a connection failed.
fn remedy(cause: Option<Cause>, address: &DatabaseUrl) -> String {
    let (hosts, database) = (address.hosts().join(", "), address.database());
    match cause {
        Some(Cause::Refused) => format!(
            "nothing listens at {hosts}: check host and port in store.url, that the server runs, and its listen_addresses"
        ),
        Some(Cause::Unreachable) => {
            format!("there is no way to {hosts}: check the host in store.url, and the network of this machine")
        }
        Some(Cause::Silent) => {
            format!("{hosts} does not answer: check host and port in store.url, and firewalls on the way")
        }
        Some(Cause::NoTls) => format!(
            "the server has no TLS: turn it on there (ssl = on), or write sslmode=disable in store.url where no one else is on \
             the way (now it is sslmode={})",
            address.tls()
        ),
        Some(Cause::Certificate) => "check that store.tls_ca has the authority that signed the server's certificate, and with \
                                     sslmode=verify-full that the certificate names the host in store.url"
            .into(),
        Some(Cause::PasswordMissing) => {
            "set the variable PGPASSWORD, or have a line in ~/.pgpass (or PGPASSFILE; mode 0600), or write the password into store.url".into()
        }
        Some(Cause::NotAdmitted) => format!(
            "check user and password (store.url, PGPASSWORD, ~/.pgpass), and that pg_hba.conf on the server has a line that \
             lets this user reach {database} from here"
        ),
        Some(Cause::NoDatabase) => {
            format!("as a superuser: CREATE DATABASE {database} OWNER … ENCODING 'UTF8' TEMPLATE template0")
        }
        Some(Cause::NotAllowed) => format!("as its owner: GRANT CONNECT ON DATABASE {database} TO …"),
        Some(Cause::Full) => "wait, end connections that are not needed, lower store.connections of the nodes, or raise \
                              max_connections of the server (or the limit of the role or database)"
            .into(),
        Some(Cause::NotReady) => "it starts or stops: wait a moment, and look into the server's log".into(),
        Some(Cause::Other) | None => {
            "check store.url (host, port, user, password, database), and that this machine can reach the server".into()
        }
    }
}

fn server(found: &PostgresInspection) -> Check {
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

fn role(found: &PostgresInspection, address: &DatabaseUrl) -> Check {
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
            let fix = format!("make it the owner: ALTER DATABASE {} OWNER TO {name}", address.database());
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
    // A superuser is somebody's way into the whole server: it is not ours to take its rights away.
    let fix = if role.superuser {
        let along = match found.schema {
            Some(_) => format!(
                ". What {name} has made here comes along with `memtrove export` and `memtrove import` into an empty database"
            ),
            None => String::new(),
        };
        let database = address.database();
        format!(
            "use a role of its own: CREATE ROLE memtrove LOGIN PASSWORD '…'; ALTER DATABASE {database} OWNER TO memtrove; then \
             name it in store.url{along}"
        )
    } else {
        format!("ALTER ROLE {name} NOBYPASSRLS")
    };
    let off = format!("{name} {what}: row-level security, the second line of tenant isolation, is off");
    Check::advice(NAME, off, fix)
}

/// Whether tables keep tenants apart for their owner too, who is who we are.
fn row_security(found: &PostgresInspection) -> Option<Check> {
    const NAME: &str = "row security";
    found.schema.filter(|schema| schema.number == known_schema())?;
    let [table, others @ ..] = found.unforced.as_slice() else {
        return Some(Check::ok(NAME, "keeps tenants apart once more, for the owner of the tables too"));
    };
    let more = if others.is_empty() { String::new() } else { format!(", {}", others.join(", ")) };
    Some(Check::advice(
        NAME,
        format!("is off for the owner of {table}{more}: a second line of tenant isolation is missing"),
        format!(
            "for each of them: ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY. A table that has lost \
             its policy one_tenant comes back from a backup"
        ),
    ))
}

fn pgvector(found: &PostgresInspection) -> Check {
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

fn schema(found: &PostgresInspection) -> Check {
    const NAME: &str = "schema";
    let known = known_schema();
    match found.schema {
        None => Check::ok(NAME, format!("the database is empty; the first start makes schema {known}")),
        Some(schema) if schema.number < inspection::works_with() && !found.nodes.is_empty() => Check::advice(
            NAME,
            format!(
                "{}; the next start upgrades it to {known}, on which older nodes cannot work",
                schema.number
            ),
            "stop the nodes that are running before you start this version",
        ),
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

fn clocks(found: &PostgresInspection) -> Check {
    const NAME: &str = "clock";
    let apart = found.clock_ahead.unsigned_abs();
    if apart < CLOCKS_APART {
        return Check::ok(NAME, "agrees with the server's");
    }
    let which = if found.clock_ahead > 0 { "ahead of" } else { "behind" };
    let message = format!("the server's is {:.1} s {which} this machine's", apart as f64 / 1e6);
    Check::advice(NAME, message, "set all clocks by the same time service (NTP)")
}

fn vacuum(found: &PostgresInspection) -> Check {
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

fn feed(found: &PostgresInspection) -> Option<Check> {
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

fn nodes(running: &[InspectedNode], gone: &[InspectedNode]) -> Check {
    const NAME: &str = "nodes";
    let each = |nodes: &[InspectedNode]| nodes.iter().map(shown).collect::<Vec<_>>().join(", ");
    let mut message = match running {
        [] => "none is running".to_owned(),
        running => format!("{}: {}", counted(running.len(), "node"), each(running)),
    };
    if !gone.is_empty() {
        let gone = format!("; gone without having said so: {}", each(gone));
        message.push_str(&gone);
    }
    let versions: BTreeSet<&str> = running.iter().map(|node| node.version.as_str()).collect();
    let places = running.iter().filter_map(|node| node.place.as_ref());
    let settings: BTreeSet<&str> = places.map(|place| place.settings.as_str()).collect();
    if settings.len() > 1 {
        let settings: Vec<&str> = settings.into_iter().collect();
        return Check::advice(
            NAME,
            format!("{message}; they have different settings ({})", settings.join(" / ")),
            "give all nodes the same: what one writes the other may not find",
        );
    }
    if versions.len() > 1 {
        return Check::warning(NAME, format!("{message}; of different versions, as in an upgrade"));
    }
    Check::ok(NAME, message)
}

/// A node, so that it can be found.
fn shown(node: &InspectedNode) -> String {
    let InspectedNode { id, version, seen, place } = node;
    let place = place.as_ref().map_or_else(|| "node".to_owned(), ToString::to_string);
    format!("{place} ({version}, seen {seen} s ago, {id})")
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn counted_i64(count: i64, what: &str) -> String {
    counted(usize::try_from(count).unwrap_or_default(), what)
}
