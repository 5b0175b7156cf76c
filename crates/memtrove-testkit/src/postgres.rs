//! Databases on a real PostgreSQL with pgvector, which `scripts/postgres.sh` installs and starts.
//!
//! `make test` starts one server for everybody and names it in `MEMTROVE_TEST_POSTGRES`; without that variable the first
//! test that needs a server starts one, and the next ones find it. Every test has a database of its own: a copy of a
//! template that holds the schema already, made once per server and schema.

#![expect(
    clippy::expect_used,
    reason = "a test helper fails by panicking, with what a person needs to see why"
)]

mod cluster;
mod leash;
mod template;

pub use cluster::Cluster;

use crate::server::fresh_name;
use leash::Leash;
use memtrove_store::postgres::{PostgresConfig, set_every_tenant};
use std::sync::Arc;
use tokio_postgres::{Client, NoTls};

/// The variable that names the server that all tests share.
const SHARED: &str = "MEMTROVE_TEST_POSTGRES";

/// An empty database with the schema of this version. It is dropped with its last holder, and also when the test process
/// ends without dropping it.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    _leash: Leash,
}

impl Database {
    /// A database of its own on the server that all tests share.
    pub fn fresh() -> Arc<Self> {
        Self::on(&Cluster::shared())
    }

    /// A database of its own on this server.
    pub fn on(cluster: &Cluster) -> Arc<Self> {
        let name = fresh_name("test").replace('-', "_");
        let url = cluster.url_of(&name);
        // Before the database is there: however early the test ends, nothing stays behind.
        let leash = cluster.leash(&["drop", &url]);
        let template = template::ensure(cluster);
        // A copy of the files takes 60 ms while others do the same, one through the log 170.
        run(&cluster.url(), format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"));
        Arc::new(Self { name, url, _leash: leash })
    }

    /// A database of its own on the server that all tests share, with nothing in it.
    pub fn bare() -> Arc<Self> {
        let cluster = Cluster::shared();
        let name = fresh_name("test").replace('-', "_");
        let url = cluster.url_of(&name);
        let leash = cluster.leash(&["drop", &url]);
        run(&cluster.url(), format!("CREATE DATABASE {name}"));
        Arc::new(Self { name, url, _leash: leash })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is: what `store.url` says.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What opens the engine on it, with as few connections as a test needs.
    pub fn config(&self) -> PostgresConfig {
        PostgresConfig { url: self.url.clone(), connections: 4, ..PostgresConfig::default() }
    }

    /// Runs a statement in which `$1` stands for these bytes, beside whatever else is connected; how many rows it changed.
    pub fn execute(&self, sql: &str, bytes: &[u8]) -> u64 {
        let (sql, bytes) = (sql.to_owned(), bytes.to_owned());
        connected(&self.url, async move |client| {
            client.batch_execute(&set_every_tenant()).await?;
            match sql.contains("$1") {
                true => client.execute(&sql, &[&bytes]).await,
                false => client.execute(&sql, &[]).await,
            }
        })
    }

    /// The bytes in the first column of the first row, if there is one.
    pub fn bytes(&self, sql: &str) -> Option<Vec<u8>> {
        let sql = sql.to_owned();
        connected(&self.url, async move |client| {
            client.batch_execute(&set_every_tenant()).await?;
            Ok(client.query_opt(&sql, &[]).await?.map(|row| row.get(0)))
        })
    }

    /// The rows of a query of every tenant's, each column as its text; null is `None`.
    pub fn rows(&self, query: &str) -> Vec<Vec<Option<String>>> {
        // A message of its own: some statements must not be sent with others.
        self.rows_after(Some(set_every_tenant()), query)
    }

    /// The rows of a query on a connection that named no tenant.
    pub fn rows_without_tenant(&self, query: &str) -> Vec<Vec<Option<String>>> {
        self.rows_after(None, query)
    }

    fn rows_after(&self, first: Option<String>, query: &str) -> Vec<Vec<Option<String>>> {
        let query = query.to_owned();
        connected(&self.url, async move |client| {
            if let Some(first) = first {
                client.batch_execute(&first).await?;
            }
            let answers = client.simple_query(&query).await?;
            let rows = answers.iter().filter_map(|answer| match answer {
                tokio_postgres::SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
                }
                _ => None,
            });
            Ok(rows.collect())
        })
    }
}

fn run(url: &str, statements: String) {
    connected(url, async move |client| client.batch_execute(&statements).await);
}

/// Does something on a connection of its own. On a thread of its own, too: a test that is itself asynchronous may not
/// block inside its runtime.
fn connected<T: Send + 'static>(
    url: &str,
    work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error> + Send + 'static,
) -> T {
    let url = url.to_owned();
    let done = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
            let connection = tokio::spawn(connection);
            let done = work(&client).await;
            drop(client);
            let _ = connection.await;
            done
        })
    });
    match done.join() {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => panic!("PostgreSQL refused: {}", explain(&error)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn explain(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(answer) => format!("{} ({})", answer.message(), answer.code().code()),
        None => crate::server::chain(error),
    }
}
