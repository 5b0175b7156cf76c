//! The database that the databases of tests are copies of.

use super::{Cluster, connected, run};
use memtrove_store::postgres::{self, PostgresConfig};

/// Held while the template is made, so that one of many tests that begin at once makes it.
const ADVISORY_KEY: i64 = 0x6d65_6d6c_6f6f_6d00;

/// The name of the template for this version's schema; makes it if this server has none yet.
pub(super) fn ensure(cluster: &Cluster) -> String {
    let name = format!("template_{}", postgres::schema_fingerprint());
    if !exists(cluster, &name) {
        make(cluster, &name);
    }
    name
}

fn exists(cluster: &Cluster, name: &str) -> bool {
    let name = name.to_owned();
    connected(&cluster.url(), async move |client| {
        let found = client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]).await?;
        Ok(found.is_some())
    })
}

fn make(cluster: &Cluster, name: &str) {
    // A template that stands there under its name is complete: it is made under another one.
    let unfinished = format!("{name}_unfinished");
    let url = cluster.url_of(&unfinished);
    let (name, outer) = (name.to_owned(), cluster.url());
    connected(&cluster.url(), async move |client| {
        client.execute("SELECT pg_advisory_lock($1)", &[&ADVISORY_KEY]).await?;
        if client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]).await?.is_none() {
            client.batch_execute(&format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)")).await?;
            client.batch_execute(&format!("CREATE DATABASE {unfinished}")).await?;
            // Elsewhere, because it may not block inside this runtime.
            let config = PostgresConfig { url, ..PostgresConfig::default() };
            let migrated = std::thread::spawn(move || postgres::migrate(&config)).join();
            migrated.expect("no panic").expect("the template of the tests' databases migrates");
            run(&outer, format!("ALTER DATABASE {unfinished} RENAME TO {name}"));
        }
        Ok(())
    });
}
