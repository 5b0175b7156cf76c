//! Looking at a database without opening it for work: whether a server could start on it, and how it is doing.

mod cause;

use super::connection::DatabaseSession;
use super::failure::DatabaseFailure;
pub use super::look;
use super::migrations::DENIES_WITHOUT_TENANT;
pub use super::migrations::{Schema, known as known_schema, refusal, works_with};
use super::tx::{PostgresTx, set_tenant};
use super::{PostgresConfig, VOLATILE_CONNECTIONS, VOLATILE_SCHEMA, waiting};
use crate::nodes::NodePlace;
use crate::{StoreError, TenantScope, vault};
pub use cause::{Cause, diagnose};
use memtrove_core::Clock;
use tokio_postgres::{Client, Error, Row};

/// What a look at a database finds.
#[derive(Debug, Clone)]
pub struct PostgresInspection {
    /// The server that answered.
    pub server: Server,
    /// Whom we are there.
    pub role: DatabaseRole,
    /// The extension for vectors.
    pub pgvector: Extension,
    /// Room for connections.
    pub connections: Connections,
    /// How much its clock is ahead of ours, in microseconds.
    pub clock_ahead: i64,
    /// What keeps dead rows from being cleared away, the oldest first.
    pub holding_back: Vec<Holder>,
    /// Whether we see everybody's transactions, not only our own.
    pub sees_everybody: bool,
    /// The schema; `None` where nothing of ours is.
    pub schema: Option<Schema>,
    /// Whether the content can be read with the vault; an error is what a start would be refused with. `None` if the schema
    /// is another than this version's: then only the upgrade shows it.
    pub readable: Option<Result<(), StoreError>>,
    /// Tables that keep tenants apart once more for everybody, or should: those that do so no longer, the owner included.
    pub unforced: Vec<String>,
    /// Changes that have no number yet.
    pub unnumbered: Option<Unnumbered>,
    /// Who said within the last hour that it works here, and has not said that it stops.
    pub nodes: Vec<InspectedNode>,
}

/// A PostgreSQL server and the database in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// As a number: 170004 is 17.4.
    pub version: i32,
    /// As the server writes it.
    pub version_text: String,
    /// `TLSv1.3`, say; `None` without TLS.
    pub tls: Option<String>,
    /// The encoding of the database.
    pub encoding: String,
    /// Whether it follows another server, or takes no writes for another reason.
    pub read_only: bool,
    /// Whether a commit survives a power failure of this server.
    pub durable: bool,
}

/// Who we are to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseRole {
    pub name: String,
    /// It may do everything.
    pub superuser: bool,
    /// Row-level security does not apply to it.
    pub bypasses_rls: bool,
    /// It may make tables where we make them.
    pub creates_tables: bool,
    /// It may make schemas, and extensions that are trusted, in this database.
    pub creates_in_database: bool,
}

/// An extension of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The version in this database.
    pub installed: Option<String>,
    /// The version that could be made.
    pub available: Option<String>,
    /// Whether more than a superuser may make it.
    pub trusted: bool,
}

/// How many may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Connections that roles like ours may have, together.
    pub limit: i64,
    /// Connections there are, this one included.
    pub used: i64,
}

/// Something that keeps dead rows from being cleared away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// In words.
    pub what: String,
    /// For how many seconds.
    pub seconds: i64,
}

/// Changes that have no number in the feed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unnumbered {
    /// How many.
    pub count: i64,
    /// When the oldest of them was written, in microseconds since 1970.
    pub oldest: i64,
}

/// A process that works on this store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedNode {
    pub id: String,
    /// The version of its binary.
    pub version: String,
    /// Where it runs, and with what; `None` where it has not said so.
    pub place: Option<NodePlace>,
    /// How many seconds ago it said so.
    pub seen: i64,
}

/// A transaction is long from this many seconds on.
const LONG: i64 = 300;
/// A node that said nothing for this many seconds is forgotten.
const FORGOTTEN: i64 = 3600;

impl PostgresConfig {
    /// How many connections a node with this configuration makes at most: its threads, those of its volatile twin, the one that
    /// listens for what others commit, the one that says that the node is there, and one that makes indexes now and then.
    pub fn most_connections(&self) -> usize {
        let threads = self.connections.max(2);
        threads + VOLATILE_CONNECTIONS.min(threads) + 3
    }
}

/// Looks at a database, which may be in use. Nothing is changed, upgraded or made.
pub fn inspect(config: &PostgresConfig, clock: &dyn Clock) -> Result<PostgresInspection, StoreError> {
    waiting(|| inspect_here(config, clock))?
}

fn inspect_here(config: &PostgresConfig, clock: &dyn Clock) -> Result<PostgresInspection, StoreError> {
    let mut session = DatabaseSession::connect(config, None)?;
    let client = session.client().clone();
    let asked = session.wait(async {
        let failed = |error: Error| DatabaseFailure::from(&error);
        client.batch_execute("BEGIN READ ONLY").await.map_err(failed)?;
        let found = ask(&client, clock).await;
        client.batch_execute("ROLLBACK").await.map_err(failed)?;
        found.map_err(failed)
    });
    let mut found = asked.map_err(|failure| failure.error)?;
    let is_ours = found.schema.is_some_and(|schema| schema.number == known_schema());
    found.readable = is_ours.then(|| {
        let mut tx = PostgresTx::new(&mut session, &config.vault, &TenantScope::All, false);
        let checked = vault::check(&mut tx);
        tx.roll_back();
        checked
    });
    Ok(found)
}

async fn ask(client: &Client, clock: &dyn Clock) -> Result<PostgresInspection, Error> {
    let before = clock.now().as_micros();
    let row = client.query_one(SERVER, &[]).await?;
    let after = clock.now().as_micros();
    let schema = match is_there(client, "schema_steps").await? {
        true => schema(&client.query_one(SCHEMA, &[]).await?)?,
        false => None,
    };
    let unnumbered = match is_there(client, "changes_outbox").await? {
        true => {
            // Policies of older schemas would take this for the name of a tenant.
            if schema.is_some_and(|schema| schema.number >= DENIES_WITHOUT_TENANT) {
                client.batch_execute(&set_tenant(&TenantScope::All)).await?;
            }
            unnumbered(&client.query_one(UNNUMBERED, &[]).await?)?
        }
        false => None,
    };
    let nodes = match is_there(client, "nodes").await? {
        true => client.query(NODES, &[&FORGOTTEN]).await?.iter().map(node).collect::<Result<_, _>>()?,
        false => vec![],
    };
    Ok(PostgresInspection {
        server: server(&row)?,
        role: role(&row)?,
        pgvector: extension(&row)?,
        connections: Connections {
            limit: row.try_get("connection_limit")?,
            used: row.try_get("connections")?,
        },
        clock_ahead: row.try_get::<_, i64>("now")? - (before + (after - before) / 2),
        holding_back: client.query(HOLDERS, &[&LONG]).await?.iter().map(holder).collect::<Result<_, _>>()?,
        sees_everybody: row.try_get("sees_everybody")?,
        schema,
        readable: None,
        unforced: client
            .query(UNFORCED, &[&PROTECTED.as_slice(), &VOLATILE_SCHEMA])
            .await?
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?,
        unnumbered,
        nodes,
    })
}

async fn is_there(client: &Client, table: &str) -> Result<bool, Error> {
    client.query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&table]).await?.try_get(0)
}

/// Everything that one row can tell. Others' connections are counted by their users: what kind they are of is not ours to see.
const SERVER: &str = "
SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS version_text,
       (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls,
       (SELECT pg_encoding_to_char(encoding)::text FROM pg_database WHERE datname = current_database()) AS encoding,
       pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool AS read_only,
       current_setting('fsync')::bool AND current_setting('full_page_writes')::bool
         AND current_setting('synchronous_commit') <> 'off' AS durable,
       current_user::text AS role, rolsuper AS superuser, rolbypassrls AS bypasses_rls,
       COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false) AS creates_tables,
       has_database_privilege(current_database(), 'CREATE') AS creates_in_database,
       rolsuper OR pg_has_role('pg_read_all_stats', 'USAGE') AS sees_everybody,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector_installed,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS vector_available,
       COALESCE((SELECT bool_or(trusted) FROM pg_available_extension_versions WHERE name = 'vector'), false) AS vector_trusted,
       LEAST(current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
               - COALESCE(current_setting('reserved_connections', true), '0')::bigint,
             NULLIF(rolconnlimit, -1),
             (SELECT NULLIF(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS connection_limit,
       (SELECT COUNT(*) FROM pg_stat_activity WHERE usesysid IS NOT NULL) AS connections,
       (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint AS now
FROM pg_roles WHERE rolname = current_user";

/// Long transactions, transactions that were prepared and left, and replicas that stay away.
const HOLDERS: &str = "
SELECT what, seconds FROM (
    SELECT 'a transaction of ' || COALESCE(NULLIF(application_name, ''), usename::text, 'somebody') || ' (process ' || pid || ')'
               AS what,
           EXTRACT(EPOCH FROM clock_timestamp() - xact_start)::bigint AS seconds
    FROM pg_stat_activity
    WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
    UNION ALL
    SELECT 'the prepared transaction ' || gid, EXTRACT(EPOCH FROM clock_timestamp() - prepared)::bigint
    FROM pg_prepared_xacts WHERE database = current_database()
) AS holders
WHERE seconds >= $1 ORDER BY seconds DESC";

/// A table without a row is what a start leaves that made nothing else.
const SCHEMA: &str = "SELECT MAX(number), MAX(works_with) FROM schema_steps";

const UNNUMBERED: &str = "SELECT COUNT(*), MIN(at) FROM changes_outbox";

const NODES: &str = "
SELECT id::text, version, age, host, process, settings FROM (
    SELECT id, version, host, process, settings,
           (EXTRACT(EPOCH FROM clock_timestamp()) - seen_at / 1000000)::bigint AS age FROM nodes
) AS nodes
WHERE age < $1 ORDER BY host, process, id";

/// Tables whose rows say whose they are, and are therefore under row-level security; a test compares them with the schema.
pub const PROTECTED: [&str; 46] = [
    "ancestry",
    "attachments",
    "audit",
    "changes",
    "changes_outbox",
    "conversations",
    "data_keys",
    "entries",
    "event_blocks",
    "events",
    "file_idempotency",
    "files",
    "forgotten_groups",
    "forgotten_members",
    "forgotten_users",
    "groups",
    "idempotency_keys",
    "jobs",
    "meanings",
    "memberships",
    "memories",
    "memory_common_terms",
    "memory_facts",
    "memory_gone",
    "memory_idempotency",
    "memory_idempotency_users",
    "memory_index",
    "memory_pointers",
    "memory_purges",
    "memory_scopes",
    "memory_texts",
    "memory_upgrades",
    "memory_uses",
    "memory_vectors",
    "memory_versions",
    "past_members",
    "recordings",
    "scopes",
    "stream_events",
    "stream_kept",
    "tasks",
    "texts",
    "texts_waiting",
    "transfers",
    "unindexed",
    "unreadable_blocks",
];

/// In older schemas fewer tables say whose their rows are. A dump that was made as the hint of pg_dump says leaves tables behind that do not apply their policy to their owner.
const UNFORCED: &str = "
SELECT CASE nspname WHEN $2 THEN nspname || '.' ELSE '' END || relname FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relname = ANY($1) AND relkind IN ('r', 'p') AND nspname IN (current_schema(), $2)
  AND EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'tenant' AND NOT attisdropped)
  AND NOT (relrowsecurity AND relforcerowsecurity AND EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = pg_class.oid))
ORDER BY 1";

fn server(row: &Row) -> Result<Server, Error> {
    Ok(Server {
        version: row.try_get("version")?,
        version_text: row.try_get("version_text")?,
        tls: row.try_get("tls")?,
        encoding: row.try_get("encoding")?,
        read_only: row.try_get("read_only")?,
        durable: row.try_get("durable")?,
    })
}

fn role(row: &Row) -> Result<DatabaseRole, Error> {
    Ok(DatabaseRole {
        name: row.try_get("role")?,
        superuser: row.try_get("superuser")?,
        bypasses_rls: row.try_get("bypasses_rls")?,
        creates_tables: row.try_get("creates_tables")?,
        creates_in_database: row.try_get("creates_in_database")?,
    })
}

fn extension(row: &Row) -> Result<Extension, Error> {
    Ok(Extension {
        installed: row.try_get("vector_installed")?,
        available: row.try_get("vector_available")?,
        trusted: row.try_get("vector_trusted")?,
    })
}

fn schema(row: &Row) -> Result<Option<Schema>, Error> {
    let number: Option<i64> = row.try_get(0)?;
    number.map(|number| Ok(Schema { number, works_with: row.try_get(1)? })).transpose()
}

fn unnumbered(row: &Row) -> Result<Option<Unnumbered>, Error> {
    let oldest: Option<i64> = row.try_get(1)?;
    oldest.map(|oldest| Ok(Unnumbered { count: row.try_get(0)?, oldest })).transpose()
}

fn node(row: &Row) -> Result<InspectedNode, Error> {
    let (host, settings): (Option<String>, Option<String>) = (row.try_get(3)?, row.try_get(5)?);
    let process: Option<i64> = row.try_get(4)?;
    let place = process.map(|process| NodePlace {
        process,
        host: host.unwrap_or_default(),
        settings: settings.unwrap_or_default(),
    });
    Ok(InspectedNode { id: row.try_get(0)?, version: row.try_get(1)?, seen: row.try_get(2)?, place })
}

fn holder(row: &Row) -> Result<Holder, Error> {
    Ok(Holder { what: row.try_get(0)?, seconds: row.try_get(1)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrove_testkit::postgres::Database;

    #[test]
    fn every_table_under_row_level_security_is_looked_at() {
        let query = "SELECT relname FROM pg_class WHERE relrowsecurity AND relnamespace = current_schema()::regnamespace ORDER BY 1";
        let rows = Database::fresh().rows(query);
        let found: Vec<&str> = rows.iter().filter_map(|row| row[0].as_deref()).collect();
        assert_eq!(found, PROTECTED);
    }
}
