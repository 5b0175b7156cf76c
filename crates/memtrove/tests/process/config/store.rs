//! Which database, how it is reached, and that nobody is told its password.

use crate::config::{given, stops};
use memtrove::config::{Database, Store};
use memtrove_store::postgres::address::{Root, Tls};
use memtrove_store::vault::Vault;
use std::path::PathBuf;
use std::time::Duration;

fn at(url: &str) -> Database {
    given(&format!("[store]\nurl = \"{url}\"\n")).load().config.database().unwrap()
}

#[test]
fn a_database_can_be_in_a_file_of_its_own() {
    assert_eq!(at("sqlite:/var/lib/m.db"), Database::Sqlite("/var/lib/m.db".into()));
    assert_eq!(at("sqlite:///var/lib/m.db"), Database::Sqlite("/var/lib/m.db".into()));
    assert_eq!(at("sqlite:m.db"), Database::Sqlite("m.db".into()));
}

#[test]
fn a_database_can_be_on_a_server() {
    for url in ["postgres://memtrove@db.example:6432/m", "postgresql://memtrove:hush@db.example:6432/m"] {
        assert_eq!(at(url).to_string(), "postgres://memtrove@db.example:6432/m");
    }
    let Database::Postgres(address) = at("postgres://db.example/m?sslmode=verify-full&sslrootcert=/ca.pem")
    else {
        panic!("this is a server");
    };
    assert_eq!((address.tls(), address.root()), (Tls::VerifyFull, Some(&Root::File("/ca.pem".into()))));
}

#[test]
fn the_defaults_and_every_key_reach_the_engine() {
    let store = Store::default();
    assert_eq!((store.connections, store.queue), (16, 4096));
    assert_eq!((store.statement_timeout.0, store.tls_ca), (Duration::from_secs(30), None));

    let config = given("[store]\nconnections = 8\n")
        .variable("MEMTROVE_STORE__URL", "postgres://m:hush@db.example/m?sslmode=verify-ca")
        .variable("MEMTROVE_STORE__STATEMENT_TIMEOUT", "90s")
        .variable("MEMTROVE_STORE__QUEUE", "100")
        .variable("MEMTROVE_STORE__TLS_CA", "/etc/ca.pem")
        .load()
        .config;
    let engine = config.store.postgres(Vault::plain());
    assert_eq!(engine.url, "postgres://m:hush@db.example/m?sslmode=verify-ca");
    assert_eq!((engine.connections, engine.queue), (8, 100));
    assert_eq!(engine.statement_timeout, Duration::from_secs(90));
    assert_eq!(engine.tls_ca, Some(PathBuf::from("/etc/ca.pem")));
    assert!(!format!("{engine:?}").contains("hush"), "{engine:?}");
}

#[test]
fn a_variable_holds_an_address_whatever_its_password_looks_like() {
    for password in ["12345", "a,b", "%5Bx%5D", "true", "a=b;c"] {
        let url = format!("postgres://m:{password}@db.example/m?sslmode=require");
        let loaded = given("").variable("MEMTROVE_STORE__URL", &url).load();
        assert_eq!(loaded.config.store.url.expose(), url);
        assert_eq!(loaded.source("store.url"), "environment variable MEMTROVE_STORE__URL");
    }
}

#[test]
fn nobody_is_told_the_password() {
    for url in [
        "postgres://m:hush@db.example/m",
        "postgres://m@db.example/m?password=hush",
        "postgres://m:hush@db.example",
        "postgres://m:hush@hush@db.example/m",
        "postgres://m:hush/hush@db.example/m",
        "postgres://m:x?hush@db.example/m",
        "postgres://m:x@db.example/m?hush=hush",
        "postgres://m:x@db.example/m?hush",
        "postgres:m:hush@db.example/m",
        "mysql://m:hush@db.example/m",
        "m:hush@db.example",
        "host=db.example password=hush",
    ] {
        let loaded = given("").flag("--store", "store.url", url).load();
        let problems: Vec<String> = loaded.config.problems().iter().map(ToString::to_string).collect();
        let told = format!(
            "{loaded:?}\n{}\n{problems:?}\n{:?}\n{:?}",
            serde_json::to_string(&loaded.settings()).unwrap(),
            loaded.config.warnings(),
            loaded.config.store.url.to_string(),
        );
        assert!(!told.contains("hush"), "{url}:\n{told}");
    }
    for toml in [
        "[store]\nurl = \"postgres://m:hush@db.example/m\n",
        "[store]\nurl = [\"hush\"]\n",
        "[store]\nurl = hush\n",
    ] {
        let complaint = given(toml).complaint();
        assert!(!complaint.contains("hush"), "{complaint}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told_where_and_why() {
    let complaint = given("[server]\nworkers = 1\nlisten = \"127.0.0.1:1\n").complaint();
    assert!(complaint.contains("memtrove.toml: TOML parse error at line 3, column"), "{complaint}");
    assert!(!complaint.contains("127.0.0.1"), "{complaint}");
}

#[test]
fn what_cannot_work_stops_the_start() {
    const KINDS: &str = "use \"sqlite\" for a database in the data folder, \"sqlite:/path/to/file.db\", or \
                         \"postgres://user@host/database\"";
    let store = |url: &str, rest: &str| format!("[store]\nurl = \"{url}\"\n{rest}");
    stops(&store("mysql://db", ""), &[&format!("store.url: 'mysql' is not a kind of store; {KINDS}")]);
    stops(&store("sqlite:", ""), &[&format!("store.url: 'sqlite:' names no file; {KINDS}")]);
    stops(&store("sqlite3", ""), &[&format!("store.url: 'sqlite3' is not a kind of store; {KINDS}")]);
    stops(
        &store("postgres://m:hush@db", ""),
        &["store.url: names no database; write it as postgres://user@host/database"],
    );
    stops(
        &store("postgres://m:hu@sh@db/m", ""),
        &[
            "store.url: has a character in its user or password that means something else there; write @ as %40, / as %2F, ? \
           as %3F, # as %23, : as %3A, % as %25 and a space as %20",
        ],
    );
    stops(
        &store("postgres://db/m?sslmode=always", ""),
        &[
            "store.url: has an sslmode that is not known; use one of: disable, prefer, require, verify-ca, verify-full",
        ],
    );
    stops(
        &store("postgres://db/m", "connections = 1\nqueue = 0\nstatement_timeout = 0\n"),
        &[
            "store.queue: is 0, so nothing could be done; set at least 1, or remove the key",
            "store.statement_timeout: is 0, so nothing could be done; set at least 1, or remove the key",
            "store.connections: is 1; use at least 2: one reads while another one writes",
        ],
    );
    stops(
        &store("postgres://db/m", "statement_timeout = \"13d\"\n"),
        &["store.statement_timeout: is 13d; use at most 12d"],
    );
}

#[test]
fn a_server_that_would_not_be_verified_as_somebody_asked_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, empty) = (folder.path().join("ca.pem"), folder.path().join("empty.pem"));
    std::fs::write(&ca, "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::write(&empty, "").unwrap();
    let check = |options: &str, file: &std::path::Path, expected: &[&str]| {
        let toml = format!("[store]\nurl = \"postgres://db/m{options}\"\ntls_ca = \"{}\"\n", file.display());
        stops(&toml, expected);
    };
    for (options, mode) in [("", "prefer"), ("?sslmode=prefer", "prefer"), ("?sslmode=disable", "disable")] {
        let said = format!(
            "store.tls_ca: is set, and sslmode={mode} in store.url verifies nothing; add sslmode=verify-full to store.url, \
             or remove store.tls_ca"
        );
        check(options, &ca, &[&said]);
    }
    check(
        "?sslmode=verify-full&sslrootcert=/etc/other.pem",
        &ca,
        &["store.tls_ca: is set, and sslrootcert in store.url says otherwise; remove one of them"],
    );
    let said =
        |problem: &str| format!("store.tls_ca: {problem}; name a file with certificates in PEM format");
    check("?sslmode=verify-full", &empty, &[&said(&format!("{} holds no certificate", empty.display()))]);
    let missing = folder.path().join("missing.pem");
    let why = format!("{} cannot be read: No such file or directory (os error 2)", missing.display());
    check("?sslmode=verify-full", &missing, &[&said(&why)]);
    for mode in ["require", "verify-ca", "verify-full"] {
        check(&format!("?sslmode={mode}"), &ca, &[]);
    }
}

#[test]
fn whoever_is_not_verified_and_what_changes_nothing_is_worth_a_word() {
    let warnings = |toml: &str| {
        let warnings = given(toml).load().config.warnings();
        warnings.into_iter().filter(|warning| warning.contains("store.")).collect::<Vec<_>>()
    };
    let url = |url: &str| warnings(&format!("[store]\nurl = \"{url}\"\n"));
    for (options, how) in [
        ("", "with TLS only if the server offers it, and never verified"),
        ("?sslmode=disable", "without TLS"),
        ("?sslmode=require", "with TLS that is not verified"),
    ] {
        let said = url(&format!("postgres://m:hush@db.example/m{options}"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with(&format!("store.url connects to db.example:5432 {how}: ")), "{said:?}");
    }
    assert_eq!(url("postgres://db.example/m?sslmode=verify-full"), [""; 0]);
    assert_eq!(url("postgres://localhost/m"), [""; 0]);
    assert_eq!(
        warnings("[store]\nconnections = 4\nqueue = 9\n"),
        ["store.connections, store.queue: for PostgreSQL only, and store.url asks for SQLite"]
    );
    assert_eq!(warnings(""), [""; 0]);
}
