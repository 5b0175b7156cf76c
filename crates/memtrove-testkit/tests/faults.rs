//! The faults that tests of Memtrove rely on really happen: a network that fails, a database that is killed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use memtrove_testkit::postgres::{Cluster, Database};
use memtrove_testkit::proxy::Proxy;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, Error, NoTls};

/// A database with a table of notes, and a bad network before it.
fn given() -> (Arc<Database>, Proxy) {
    let database = Database::fresh();
    database.execute("CREATE TABLE notes (note TEXT)", &[]);
    let proxy = Proxy::before(&database);
    (database, proxy)
}

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn notes(database: &Database) -> Vec<String> {
    let rows = database.rows("SELECT note FROM notes ORDER BY note");
    rows.into_iter().flatten().flatten().collect()
}

const WRITE: &str = "INSERT INTO notes VALUES ('a')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_breaks_what_is_connected_and_nothing_else() {
    let (database, proxy) = given();
    let client = connect(proxy.url()).await.unwrap();
    client.batch_execute("BEGIN").await.unwrap();
    client.execute(WRITE, &[]).await.unwrap();

    proxy.cut();

    assert!(client.batch_execute("COMMIT").await.is_err());
    connect(proxy.url()).await.unwrap().execute("INSERT INTO notes VALUES ('b')", &[]).await.unwrap();
    assert_eq!(notes(&database), ["b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_can_be_kept_from_the_database() {
    let (database, proxy) = given();
    let client = connect(proxy.url()).await.unwrap();
    let write = client.prepare(WRITE).await.unwrap();
    client.execute(&write, &[]).await.unwrap();

    proxy.cut_before("INSERT INTO notes");

    assert!(client.execute(&write, &[]).await.is_err(), "prepared long ago, and known all the same");
    assert_eq!((notes(&database).len(), proxy.sprung()), (1, 1));
    connect(proxy.url()).await.unwrap().execute(WRITE, &[]).await.unwrap();
    assert_eq!(notes(&database).len(), 2, "it happens once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_can_be_kept_from_the_client() {
    let (database, proxy) = given();
    let client = connect(proxy.url()).await.unwrap();
    proxy.cut_after("COMMIT");

    client.batch_execute("BEGIN").await.unwrap();
    client.execute(WRITE, &[]).await.unwrap();
    assert!(client.batch_execute("COMMIT").await.is_err());

    proxy.wait_until_sprung(1);
    assert_eq!(notes(&database), ["a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_what_was_asked_before_are_not_the_outcome_that_is_kept() {
    let (database, proxy) = given();
    let client = connect(proxy.url()).await.unwrap();
    client.batch_execute("BEGIN").await.unwrap();
    proxy.cut_after("COMMIT");

    // All are on their way before the first is answered. A reset may overtake the answers to the first two.
    let (_, _, commit) = tokio::join!(
        client.batch_execute(WRITE),
        client.simple_query("SELECT repeat('Z', 100000)"),
        client.batch_execute("COMMIT"),
    );

    assert!(commit.is_err());
    assert_eq!((notes(&database), proxy.sprung()), (vec!["a".to_owned()], 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_can_break_in_the_middle_of_a_message() {
    let (database, proxy) = given();
    let client = connect(proxy.url()).await.unwrap();
    proxy.cut_after_bytes(12);

    assert!(client.batch_execute(WRITE).await.is_err());

    assert_eq!((notes(&database).len(), proxy.sprung()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_black_hole_is_silent_until_it_is_gone() {
    let (_database, proxy) = given();
    let client = connect(proxy.url()).await.unwrap();
    proxy.black_hole();

    let silent = client.batch_execute("SELECT 1");
    tokio::pin!(silent);
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut silent).await.is_err());
    proxy.heal();

    assert!(silent.await.is_err(), "what was swallowed does not come back");
    connect(proxy.url()).await.unwrap().batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_comes_in_while_connections_are_refused() {
    let (_database, proxy) = given();
    proxy.refuse();
    assert!(connect(proxy.url()).await.is_err());
    proxy.heal();
    connect(proxy.url()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_network_is_slow_both_ways() {
    let (_database, proxy) = given();
    let client = connect(proxy.url()).await.unwrap();
    proxy.slow(Duration::from_millis(50));
    let begin = Instant::now();
    client.batch_execute("SELECT 1").await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(100));
}

#[test]
fn a_killed_server_comes_back_with_what_was_committed() {
    let cluster = Cluster::own();
    let database = Database::on(&cluster);
    database.execute("CREATE TABLE notes (note TEXT)", &[]);
    database.execute(WRITE, &[]);

    cluster.kill();
    assert!(std::net::TcpStream::connect(cluster.address()).is_err());
    cluster.restart();

    assert_eq!(notes(&database), ["a"]);
}

#[test]
fn a_database_goes_with_its_last_holder() {
    let database = Database::fresh();
    let (name, witness) = (database.name().to_owned(), Database::fresh());
    let there = || witness.rows(&format!("SELECT 1 FROM pg_database WHERE datname = '{name}'")).len();
    assert_eq!(there(), 1);

    drop(database);

    let deadline = Instant::now() + Duration::from_secs(30);
    while there() > 0 {
        assert!(Instant::now() < deadline, "it is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}
