//! What a database needs for large scopes of memories, and what is said where it does not have it.

use memtrove_store::postgres::{self, PostgresConfig};
use memtrove_testkit::postgres::Database;

/// The tests' role may make databases, and no extension that only superusers may make.
#[test]
fn a_database_without_pgvector_is_refused_with_what_to_run() {
    let beside = Database::fresh();
    let name = format!("{}_bare", beside.name());
    beside.rows(&format!("CREATE DATABASE {name} TEMPLATE template0"));
    let url = beside.url().replace(beside.name(), &name);
    let refused = postgres::migrate(&PostgresConfig { url, ..beside.config() });
    beside.rows(&format!("DROP DATABASE {name} WITH (FORCE)"));
    let said = refused.unwrap_err().to_string();
    for part in ["pgvector", "as a superuser", "CREATE EXTENSION vector;"] {
        assert!(said.contains(part), "{said}");
    }
}
