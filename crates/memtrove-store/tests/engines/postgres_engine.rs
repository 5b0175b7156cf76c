//! What the engine for many nodes does beyond the suite of all engines: several of it on one database, connections that are
//! lost at the worst moment, tenants that a statement forgot to ask for, migrations that meet.

use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::postgres::{PostgresConfig, PostgresEngine, known_schema, migrate};
use memtrove_store::{AllTenants, Store, StoreError, TenantScope, TxExt};
use memtrove_testkit::postgres::Database;
use memtrove_testkit::proxy::Proxy;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

fn open(config: PostgresConfig) -> Store {
    Store::new(Arc::new(PostgresEngine::open(config).unwrap()))
}

/// A store behind a proxy, with one connection that writes and one that reads.
fn through(proxy: &Proxy, database: &Database) -> Store {
    open(PostgresConfig { url: proxy.url().to_owned(), connections: 2, ..database.config() })
}

async fn count(store: &Store) -> i64 {
    let counted = store.read(AllTenants, "test", |tx| {
        tx.first("SELECT COUNT(*) FROM meta WHERE key LIKE 'n%'", &[], |row| row.int(0))
    });
    counted.await.unwrap().unwrap()
}

/// Writes a row in two statements, of which the first is waited for.
async fn write(store: &Store, key: &'static str) -> Result<(), StoreError> {
    store
        .write(AllTenants, "test", move |tx| {
            tx.execute(
                "INSERT INTO meta (key, value) VALUES ($1, $2)",
                &[key.into(), [0u8].as_slice().into()],
            )?;
            tx.post("UPDATE meta SET value = $2 WHERE key = $1", &[key.into(), [1u8].as_slice().into()])
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_lose_no_increment() {
    let database = Database::fresh();
    let nodes = [open(database.config()), open(database.config())];
    let runs = Arc::new(AtomicUsize::new(0));
    let mut writes = JoinSet::new();
    for number in 0..100 {
        let (store, runs) = (nodes[number % 2].clone(), runs.clone());
        writes.spawn(async move {
            let add = store.write(AllTenants, "test", move |tx| {
                tx.lock(b"the counter")?;
                runs.fetch_add(1, Ordering::Relaxed);
                let value = tx.first("SELECT value FROM meta WHERE key = 'counter'", &[], |row| Ok(row.bytes(0)?.to_vec()))?;
                let value = value.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap())) + 1;
                tx.post(
                    "INSERT INTO meta (key, value) VALUES ('counter', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    &[value.to_be_bytes().as_slice().into()],
                )
            });
            add.await.unwrap();
        });
    }
    while let Some(done) = writes.join_next().await {
        done.unwrap();
    }
    let read = nodes[0].read(AllTenants, "test", |tx| {
        tx.first("SELECT value FROM meta WHERE key = 'counter'", &[], |row| Ok(row.bytes(0)?.to_vec()))
    });
    assert_eq!(read.await.unwrap().unwrap(), 100u64.to_be_bytes());
    assert_eq!(runs.load(Ordering::Relaxed), 100, "whoever holds the key first need not run again");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_told_from_defects_and_remembered() {
    let database = Database::fresh();
    let store = open(database.config());
    // What the server says of a page or an index that it cannot read, and of a file that it cannot.
    for (number, state) in ["XX001", "XX002", "58030", "58P01"].into_iter().enumerate() {
        database.execute(
            &format!(
                "CREATE FUNCTION damage{number}() RETURNS bigint LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'invalid page' USING ERRCODE = '{state}'; END $$"
            ),
            b"",
        );
    }
    assert!(!store.health().is_damaged);
    for number in 0..4 {
        let sql = format!("SELECT damage{number}()");
        let read = store.read(AllTenants, "test", move |tx| tx.first(&sql, &[], |row| row.int(0)));
        let refused = read.await.unwrap_err();
        assert!(
            matches!(&refused, StoreError::Damaged(why) if why.contains("restore a backup")),
            "{refused:?}"
        );
    }
    assert_eq!(count(&store).await, 0, "what is sound can be read");
    assert!(store.health().is_damaged, "and yet it is known");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_of_work_whose_connection_is_cut_before_the_commit_is_run_again() {
    let database = Database::fresh();
    let proxy = Proxy::before(&database);
    let store = through(&proxy, &database);
    write(&store, "n0").await.unwrap();

    proxy.cut_before("UPDATE meta");
    write(&store, "n1").await.unwrap_err();
    proxy.heal();

    // The update and the commit travel together: nobody can know whether the commit arrived.
    let seen = count(&store).await;
    assert_eq!(seen, 1, "cut before the server saw it");

    proxy.cut_before("INSERT INTO meta");
    write(&store, "n2").await.unwrap();
    assert_eq!(proxy.sprung(), 2);
    assert_eq!(count(&store).await, 2, "run again, and once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_during_the_commit_leaves_the_outcome_open_and_says_so() {
    let database = Database::fresh();
    let proxy = Proxy::before(&database);
    let store = through(&proxy, &database);
    write(&store, "n0").await.unwrap();

    proxy.cut_after("COMMIT");
    let lost = write(&store, "n1").await.unwrap_err();
    assert!(matches!(&lost, StoreError::Unknown(why) if why.contains("Idempotency-Key")), "{lost}");
    proxy.heal();

    assert!((1..=2).contains(&count(&store).await), "not run again, whatever became of it");
    write(&store, "n2").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_refused_and_found_again() {
    let database = Database::fresh();
    let proxy = Proxy::before(&database);
    let store = through(&proxy, &database);
    write(&store, "n0").await.unwrap();

    proxy.refuse();
    proxy.cut();
    let away = write(&store, "n1").await.unwrap_err();
    assert!(matches!(away, StoreError::Unavailable(_)), "{away}");
    let away = store.read(AllTenants, "test", |tx| memtrove_store::meta::probe(tx)).await.unwrap_err();
    assert!(matches!(away, StoreError::Unavailable(_)), "{away}");

    proxy.heal();
    tokio::time::sleep(Duration::from_millis(600)).await;
    write(&store, "n2").await.unwrap();
    assert_eq!(count(&store).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_died_while_nobody_used_them_cost_no_answer() {
    let database = Database::fresh();
    let proxy = Proxy::before(&database);
    let store = through(&proxy, &database);
    write(&store, "n0").await.unwrap();
    assert_eq!(count(&store).await, 1);

    proxy.cut();
    tokio::time::sleep(Duration::from_millis(100)).await;

    // All of it travels with the commit, so that a connection that is found dead only then would be an open outcome.
    let posted = store.write(AllTenants, "test", |tx| {
        tx.post("INSERT INTO meta (key, value) VALUES ('n1', $1)", &[[1u8].as_slice().into()])
    });
    posted.await.unwrap();
    assert_eq!(count(&store).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_swallows_everything_is_given_up() {
    let database = Database::fresh();
    let proxy = Proxy::before(&database);
    let config = PostgresConfig {
        url: proxy.url().to_owned(),
        connections: 2,
        statement_timeout: Duration::from_secs(2),
        ..database.config()
    };
    let store = open(config);
    write(&store, "n0").await.unwrap();

    proxy.black_hole();
    let swallowed = tokio::time::timeout(Duration::from_secs(60), write(&store, "n1")).await;
    assert!(matches!(swallowed, Ok(Err(StoreError::Unavailable(_)))), "{swallowed:?}");
    proxy.heal();

    let back = async {
        while write(&store, "n2").await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), back).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_of_work_sees_and_writes_no_row_of_another_tenant() {
    let database = Database::fresh();
    let store = open(database.config());
    let tell = |name: &'static str| {
        let (tenant, at) = (Tenant::listed(name.to_owned()), Timestamp::from_micros(1));
        let change = Change { kind: ChangeKind::FileUpdated, user: None, resource: "r", version: None };
        store.write(tenant.clone(), "test", move |tx| changes::record(tx, &tenant, at, &change).map(drop))
    };
    tell("a").await.unwrap();
    tell("b").await.unwrap();
    store.settle().await.unwrap();

    // A statement that forgot to ask for its tenant.
    let seen = |tenants: TenantScope| {
        store.read(tenants, "test", |tx| {
            tx.rows("SELECT tenant FROM changes ORDER BY tenant", &[], |row| Ok(row.text(0)?.to_owned()))
        })
    };
    let one = |name: &str| Tenant::listed(name.to_owned());
    assert_eq!(seen(one("a").into()).await.unwrap(), ["a"]);
    assert_eq!(seen(one("b").into()).await.unwrap(), ["b"]);
    assert!(seen(one("c").into()).await.unwrap().is_empty());
    assert!(seen(one("*").into()).await.unwrap().is_empty(), "a name like any other");
    assert!(seen(one("").into()).await.unwrap().is_empty());
    assert_eq!(seen(AllTenants.into()).await.unwrap(), ["a", "b"], "the service's own work sees everybody");

    let foreign = store.write(one("a"), "test", |tx| tx.execute("UPDATE changes SET resource = 'x'", &[]));
    assert_eq!(foreign.await.unwrap(), 1);
    let foreign = store.write(one("a"), "test", |tx| {
        tx.execute("INSERT INTO changes (tenant, sequence, at, kind) VALUES ('b', 9, 0, 'k')", &[])
    });
    foreign.await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_two_nodes_are_one_feed_without_gaps() {
    let database = Database::fresh();
    let nodes = [open(database.config()), open(database.config())];
    let mut heard = nodes[1].commits();
    heard.mark_unchanged();
    let mut writes = JoinSet::new();
    for number in 0..200usize {
        let store = nodes[number % 2].clone();
        writes.spawn(async move {
            let refused = number % 7 == 0;
            let wrote = store.write(AllTenants, "test", move |tx| {
                let tenant = Tenant::listed(format!("t{}", number % 3));
                let resource = number.to_string();
                let change =
                    Change { kind: ChangeKind::FileUpdated, user: None, resource: &resource, version: None };
                changes::record(tx, &tenant, Timestamp::from_micros(1), &change)?;
                if refused { Err(StoreError::Overloaded) } else { Ok(()) }
            });
            assert_eq!(wrote.await.is_err(), refused);
        });
    }
    while let Some(done) = writes.join_next().await {
        done.unwrap();
    }
    nodes[0].settle().await.unwrap();
    let mut all = 0;
    for name in ["t0", "t1", "t2"] {
        let tenant = Tenant::listed(name.to_owned());
        let page =
            nodes[1].read(AllTenants, "test", move |tx| changes::page(tx, &tenant, 0, 1000)).await.unwrap();
        let numbers: Vec<i64> = page.iter().map(|change| change.sequence).collect();
        assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>());
        all += numbers.len();
    }
    assert_eq!(all, (0..200).filter(|number| number % 7 != 0).count());
    tokio::time::timeout(Duration::from_secs(5), heard.changed()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_followed_from_a_change_never_comes_before_it() {
    let database = Database::fresh();
    let nodes = [open(database.config()), open(database.config())];
    let mut chains = JoinSet::new();
    for chain in 0..8 {
        let nodes = nodes.clone();
        chains.spawn(async move {
            for step in 0..20usize {
                let write = nodes[step % 2].write(AllTenants, "test", move |tx| {
                    let resource = format!("{chain} {step}");
                    let change = Change {
                        kind: ChangeKind::FileUpdated,
                        user: None,
                        resource: &resource,
                        version: None,
                    };
                    let tenant = Tenant::listed("t".to_owned());
                    changes::record(tx, &tenant, Timestamp::from_micros(1), &change).map(drop)
                });
                write.await.unwrap();
            }
        });
    }
    while let Some(done) = chains.join_next().await {
        done.unwrap();
    }
    nodes[0].settle().await.unwrap();
    let tenant = Tenant::listed("t".to_owned());
    let page =
        nodes[0].read(AllTenants, "test", move |tx| changes::page(tx, &tenant, 0, 1000)).await.unwrap();
    let mut next = [0usize; 8];
    for change in page {
        let resource = change.resource.unwrap();
        let (chain, step) = resource.split_once(' ').unwrap();
        let chain: usize = chain.parse().unwrap();
        assert_eq!(step.parse::<usize>().unwrap(), next[chain], "chain {chain}");
        next[chain] += 1;
    }
    assert_eq!(next, [20; 8]);
}

#[test]
fn nodes_that_start_at_once_migrate_once() {
    let database = Database::bare();
    let config = database.config();
    std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..4).map(|_| scope.spawn(|| migrate(&config))).collect();
        nodes.into_iter().for_each(|node| node.join().unwrap().unwrap());
    });
    let steps = database.rows("SELECT COUNT(*), COUNT(DISTINCT number) FROM schema_steps");
    let known = Some(known_schema().to_string());
    assert_eq!(steps, [vec![known.clone(), known]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_version_works_beside_a_newer_one_if_the_schema_says_so() {
    let database = Database::fresh();
    let old = open(database.config());
    write(&old, "n0").await.unwrap();
    let next = known_schema() + 1;

    // A step of the next version that only adds.
    database.execute("ALTER TABLE meta ADD COLUMN later TEXT", &[]);
    let step = format!(
        "INSERT INTO schema_steps (number, name, works_with) VALUES ({next}, 'later', {})",
        known_schema()
    );
    database.execute(&step, &[]);
    write(&old, "n1").await.unwrap();
    let restarted = open(database.config());
    assert_eq!(count(&restarted).await, 2);

    // And one that older versions cannot work on.
    let step =
        format!("INSERT INTO schema_steps (number, name, works_with) VALUES ({0}, 'last', {0})", next + 1);
    database.execute(&step, &[]);
    match PostgresEngine::open(database.config()).map(drop) {
        Err(StoreError::Schema(why)) => assert!(why.contains("start the newer version"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_key_takes_up_one_connection_and_not_all() {
    let database = Database::fresh();
    // Two connections write.
    let store = open(PostgresConfig { connections: 4, ..database.config() });
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let (holds, holding) = tokio::sync::oneshot::channel();
    let holds = std::sync::Mutex::new(Some(holds));
    let holder = store.clone();
    let first = tokio::spawn(async move {
        let work = holder.write(AllTenants, "test", move |tx| {
            tx.lock(b"busy")?;
            let _ = holds.lock().unwrap().take().map(|holds| holds.send(()));
            let _ = held.lock().unwrap().recv();
            Ok::<_, StoreError>(())
        });
        work.await.unwrap();
    });
    holding.await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let store = store.clone();
        waiting.spawn(async move { store.write(AllTenants, "test", |tx| tx.lock(b"busy")).await.unwrap() });
    }
    let other = tokio::time::timeout(Duration::from_secs(5), write(&store, "n1")).await;
    other.expect("others do not wait for it").unwrap();
    release.send(()).unwrap();
    first.await.unwrap();
    while let Some(done) = waiting.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_keys_are_all_given_back() {
    let database = Database::fresh();
    let nodes = [open(database.config()), open(database.config())];
    for round in 0..6 {
        for node in &nodes {
            let locked = node.write(AllTenants, "test", move |tx| {
                tx.lock(b"one")?;
                tx.lock(b"two")?;
                tx.lock(b"one")?;
                match round % 3 {
                    0 => tx.post("DELETE FROM meta WHERE key = 'none'", &[]),
                    1 => tx.execute("DELETE FROM meta WHERE key = 'none'", &[]).map(drop),
                    _ => Err(StoreError::Overloaded),
                }
            });
            let locked = tokio::time::timeout(Duration::from_secs(5), locked).await.unwrap();
            assert_eq!(locked.is_err(), round % 3 == 2);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_works_with_the_connections_it_can_have() {
    let database = Database::fresh();
    let proxy = Proxy::before(&database);
    let store = open(PostgresConfig { url: proxy.url().to_owned(), connections: 16, ..database.config() });
    write(&store, "n0").await.unwrap();
    assert_eq!(count(&store).await, 1);
    // Whoever has a connection keeps it, and no other can be made.
    proxy.refuse_new();
    let mut reads = JoinSet::new();
    for _ in 0..100 {
        let store = store.clone();
        reads.spawn(async move {
            let read: Result<(), StoreError> =
                store.read(AllTenants, "test", |tx| memtrove_store::meta::probe(tx)).await;
            read
        });
    }
    while let Some(read) = reads.join_next().await {
        read.unwrap().unwrap();
    }
}

#[test]
fn nodes_that_start_at_once_all_start() {
    let database = Database::bare();
    let config = database.config();
    std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..4).map(|_| scope.spawn(|| PostgresEngine::open(config.clone()))).collect();
        for node in nodes {
            node.join().unwrap().map(drop).unwrap();
        }
    });
}
