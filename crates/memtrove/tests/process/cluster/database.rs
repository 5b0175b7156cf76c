//! The database is killed under load, and comes back.

use crate::cluster::load::*;
use crate::cluster::sound::assert_sound;
use crate::cluster::support::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Everybody writes while something happens; what happens is told how many writes were acknowledged so far.
pub fn under_load<T>(crew: &mut [Writer], happens: impl FnOnce(&AtomicUsize) -> T) -> T {
    /// Ends the writing also when the test fails.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for writer in crew {
            let (stop, acknowledged) = (&stop, &acknowledged);
            scope.spawn(move || writer.work(stop, acknowledged));
        }
        let _stop = Stop(&stop);
        happens(&acknowledged)
    })
}

/// Waits until so many more writes were acknowledged.
#[track_caller]
pub fn more(acknowledged: &AtomicUsize, count: usize) {
    let enough = acknowledged.load(Ordering::Relaxed) + count;
    until("enough is acknowledged", || acknowledged.load(Ordering::Relaxed) >= enough);
}

#[test]
fn a_database_that_is_killed_under_load_and_brought_back_loses_nothing() {
    let cluster = Cluster::own();
    let database = Database::on(&cluster);
    let nodes = setup().database(&database).nodes(2);
    let health: Vec<Client> = nodes.iter().map(TestServer::anonymous).collect();
    let mut crew = Writer::crew(&nodes, &[0, 1, 0, 1, 0, 1]);

    under_load(&mut crew, |acknowledged| {
        for _ in 0..2 {
            more(acknowledged, 60);
            cluster.kill();
            for node in &health {
                until("a node without a database is not ready", || !is_ready(node));
                node.get("/health/live").expect(200);
            }
            cluster.restart();
            for node in &health {
                until("a node is ready again", || is_ready(node));
            }
        }
        more(acknowledged, 60);
    });

    assert_sound(&database);
    for writer in &crew {
        nodes.iter().for_each(|node| writer.verify(node));
    }
}

#[test]
fn a_database_that_is_away_is_said_so_at_once_and_reads_come_back_by_themselves() {
    let cluster = Cluster::own();
    let database = Database::on(&cluster);
    let node = setup().database(&database).start();
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();
    alice.say(&id, "before").expect(201);

    cluster.kill();
    until("the node is not ready", || !is_ready(&node.anonymous()));
    for _ in 0..4 {
        assert!(matches!(ask(&alice.client, "POST", &entries(&id), &history("meanwhile")), Said::No));
        alice.client.get(&entries(&id)).expect_error(503, "storage_unavailable");
    }
    cluster.restart();

    until("the node is ready", || is_ready(&node.anonymous()));
    assert_eq!(alice.transcript(&id), ["before"]);
    alice.say(&id, "after").expect(201);
    assert_eq!(alice.transcript(&id), ["before", "after"]);
}

/// Ends every connection to the database, as an administrator does, or a failover.
fn end_connections(database: &Database) {
    database.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()",
    );
}

#[test]
fn connections_that_the_server_ends_under_load_lose_nothing_and_refuse_nobody() {
    let database = Database::fresh();
    let nodes = setup().database(&database).nodes(2);
    let mut crew = Writer::crew(&nodes, &[0, 1, 0, 1]);

    under_load(&mut crew, |acknowledged| {
        for _ in 0..8 {
            more(acknowledged, 15);
            end_connections(&database);
        }
        more(acknowledged, 15);
    });

    for writer in &crew {
        assert_eq!(writer.refused, 0, "what was not committed is run again");
        nodes.iter().for_each(|node| writer.verify(node));
    }
    assert_sound(&database);
}

#[test]
fn a_database_that_only_reads_refuses_writes_until_it_writes_again() {
    let database = Database::fresh();
    let node = setup().database(&database).start();
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();
    alice.say(&id, "before").expect(201);

    // What a standby is to those who connect to it.
    let name = database.name();
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"), b"");
    end_connections(&database);
    until("the node is not ready", || !is_ready(&node.anonymous()));
    let writes = [
        ("POST", entries(&id), history("meanwhile")),
        ("POST", entries(&fresh_id()), history("meanwhile")),
        ("POST", format!("{}/sync", entries(&id)), memory(&[json!("meanwhile")])),
        ("POST", "/v1/memories".to_owned(), alice.note("meanwhile")),
        ("POST", "/v1/conversations".to_owned(), json!({"title": "meanwhile"})),
    ];
    for (method, path, body) in &writes {
        let begun = Instant::now();
        let said = ask(&alice.client, method, path, body);
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{path}: refused only after {:?}",
            begun.elapsed()
        );
        assert!(matches!(said, Said::No), "{path}: nothing was written, and that is certain, but {said:?}");
    }
    assert_eq!(alice.transcript(&id), ["before"], "reads go on");
    let again =
        format!("BEGIN READ WRITE; ALTER DATABASE {name} RESET default_transaction_read_only; COMMIT");
    database.rows(&again);

    until("the node is ready", || is_ready(&node.anonymous()));
    for (method, path, body) in &writes {
        until("it is written", || matches!(ask(&alice.client, method, path, body), Said::Yes(_)));
    }
    assert_sound(&database);
}

/// How long each way of asking for health takes, and what it says.
fn healths(node: &TestServer) -> Vec<(&'static str, Duration, u16)> {
    let paths = ["/health/ready", "/ready", "/health/live", "/v1/health", "/v1/memories:health"];
    let asked = paths.map(|path| {
        let (begin, client) = (Instant::now(), node.as_user("alice").with_key(AGENT));
        let answer = client.get(path);
        (path, begin.elapsed(), answer.status)
    });
    asked.to_vec()
}

#[test]
fn health_is_answered_within_a_second_however_the_database_is_away() {
    // A second, and what a busy machine may add.
    const SOON: Duration = Duration::from_millis(2_500);
    type Worsen = fn(&Proxy);
    let weathers: [(&str, Worsen); 4] = [
        ("silent", Proxy::black_hole),
        ("refusing", Proxy::refuse),
        ("cut off from new connections", Proxy::refuse_new),
        ("slow", |proxy| proxy.slow(Duration::from_secs(5))),
    ];
    for (name, worsen) in weathers {
        let database = Database::fresh();
        let proxy = Proxy::before(&database);
        let node = setup().database(&database).variable("MEMTROVE_STORE__URL", proxy.url()).start();
        assert!(healths(&node).iter().all(|(_, _, status)| *status == 200), "{:?}", healths(&node));

        worsen(&proxy);

        for round in 0..5 {
            for (path, took, status) in healths(&node) {
                assert!(took < SOON, "{name}, round {round}: {path} took {took:?} and said {status}");
                let is_alive = path == "/health/live" || path == "/v1/health";
                assert!(!is_alive || status == 200, "{name}: the process lives, and {path} said {status}");
            }
        }
        if name != "cut off from new connections" {
            until("it says that it is not ready", || !is_ready(&node.anonymous()));
            until("memories say so", || healths(&node)[4].2 == 503);
        }
        proxy.heal();
        until("it is ready again", || is_ready(&node.anonymous()));
        until("memories are healthy again", || healths(&node)[4].2 == 200);
    }
}
