//! The network between a node and the database breaks in the middle of a transaction.

use crate::cluster::load::*;
use crate::cluster::sound::assert_sound;
use crate::cluster::support::*;
use std::sync::Arc;

/// How a unit of work ends that wrote and held a key; one that only reads ends with a bare `COMMIT`.
const COMMIT: &str = "COMMIT; SELECT pg_advisory_unlock";

/// A node that reaches its database through a network that fails on demand. Its background work is rare, so that the
/// statements that are met are those of the request.
fn node_behind(database: &Arc<Database>) -> (Proxy, TestServer) {
    let proxy = Proxy::before(database);
    let node = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .database(database)
        .variable("MEMTROVE_STORE__URL", proxy.url())
        .start();
    (proxy, node)
}

/// One request, again and again, each time broken off at another point.
struct Broken<'a> {
    proxy: &'a Proxy,
    /// What must be done before, with nothing in its way.
    prepare: &'a dyn Fn(&str),
    send: &'a dyn Fn(&str, Option<&str>) -> Said,
    fates: Fates,
    serial: usize,
    done: usize,
    open: usize,
}

impl<'a> Broken<'a> {
    fn new(proxy: &'a Proxy, send: &'a dyn Fn(&str, Option<&str>) -> Said) -> Self {
        Self { proxy, prepare: &|_| {}, send, fates: Fates::new(), serial: 0, done: 0, open: 0 }
    }

    /// Sends one without a key and one with a key, which is repeated until it is done. The cut falls into each of them.
    #[track_caller]
    fn at(&mut self, arm: impl Fn(&Proxy)) {
        let label = self.label();
        (self.prepare)(&label);
        arm(self.proxy);
        let said = (self.send)(&label, None);
        match &said {
            Said::Yes(_) => self.done += 1,
            Said::Perhaps => self.open += 1,
            _ => panic!("{label}: a connection that breaks is made anew, but the answer was {said:?}"),
        }
        self.fates.insert(label, Fate::of(&said));

        let label = self.label();
        (self.prepare)(&label);
        arm(self.proxy);
        // The cut may fall into the repetition as well.
        for what in ["it is done", "it is answered once more, and changes nothing"] {
            until(what, || matches!((self.send)(&label, Some(&label)), Said::Yes(_)));
        }
        self.fates.insert(label, Fate::Once);
    }

    /// The same before and after each of these statements, all of which must be met.
    #[track_caller]
    fn at_each(&mut self, statements: &[&str]) {
        for statement in statements {
            for after in [false, true] {
                let before = self.proxy.sprung();
                self.at(|proxy| match after {
                    false => proxy.cut_before(statement),
                    true => proxy.cut_after(statement),
                });
                assert!(self.proxy.sprung() > before, "no statement with {statement:?} was sent");
            }
        }
    }

    /// The same after so many bytes, wherever that is.
    #[track_caller]
    fn at_bytes(&mut self, rounds: u64, seed: u64) {
        for round in 1..=rounds {
            // Spread over what a request sends; the same in every run.
            let bytes = (round * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) % 3_000;
            self.at(|proxy| proxy.cut_after_bytes(bytes + 1));
        }
    }

    fn label(&mut self) -> String {
        self.serial += 1;
        format!("label-{}", self.serial)
    }

    /// Most cuts are mended without anybody's noticing, and the ones during a commit are told.
    #[track_caller]
    fn ended(self) -> Fates {
        assert!(self.done > 0, "no cut was mended");
        assert!(self.open > 0, "no cut fell into a commit");
        self.fates
    }
}

fn keyed(client: &Client, key: Option<&str>) -> Client {
    key.map_or_else(|| client.clone(), |key| client.with_header("idempotency-key", key))
}

#[test]
fn an_append_is_there_whole_or_not_at_all_wherever_its_connection_breaks() {
    let database = Database::fresh();
    let (proxy, node) = node_behind(&database);
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();
    let send = |label: &str, key: Option<&str>| {
        ask(&keyed(&alice.client, key), "POST", &entries(&id), &history(label))
    };
    let mut broken = Broken::new(&proxy, &send);

    broken.at_each(&[
        "pg_advisory_lock",
        "BEGIN",
        "UPDATE groups",
        "INSERT INTO entries",
        "INSERT INTO texts",
        "INSERT INTO changes_outbox",
        COMMIT,
    ]);
    broken.at_bytes(12, 1);

    assert_fates("the entry", &broken.ended(), &alice.transcript(&id));
    assert_sound(&database);
}

#[test]
fn a_memory_is_there_whole_or_not_at_all_wherever_its_connection_breaks() {
    let database = Database::fresh();
    let (proxy, node) = node_behind(&database);
    let alice = Person::fresh(&node, "alice");
    alice.remember("first").expect(201);
    let send = |label: &str, key: Option<&str>| {
        ask(&keyed(&alice.client, key), "POST", "/v1/memories", &alice.note(label))
    };
    let mut broken = Broken::new(&proxy, &send);

    broken.at_each(&[
        "BEGIN",
        "INSERT INTO memories",
        "INSERT INTO memory_index",
        "INSERT INTO audit",
        "INSERT INTO changes_outbox",
        COMMIT,
    ]);
    broken.at_bytes(12, 2);

    let mut fates = broken.ended();
    fates.insert("first".to_owned(), Fate::Once);
    assert_fates("the memory", &fates, &alice.remembered());
    assert_sound(&database);
}

#[test]
fn a_version_of_a_file_is_there_whole_or_not_at_all_wherever_its_connection_breaks() {
    let database = Database::fresh();
    let (proxy, node) = node_behind(&database);
    let alice = Person::fresh(&node, "alice");
    alice.put("log.md", "*", json!({"lines": []})).expect(200);
    let path = alice.path("/files/log.md");
    // Whoever repeats a change repeats what it was based on.
    let based_on = std::cell::RefCell::new(String::new());
    let prepare = |label: &str| {
        // What the change before came to is certain once there is a later one. A cut may still be armed.
        let made = || {
            let (name, key) = (format!("before-{label}.md"), format!("before-{label}"));
            alice.with_key(&key).put(&name, "*", json!({"lines": []})).status == 200
        };
        until("another file is made", made);
        *based_on.borrow_mut() = alice.read("log.md").expect(200).header("etag").to_owned();
    };
    let send = |label: &str, key: Option<&str>| {
        let client = keyed(&alice.client, key).with_header("if-match", &based_on.borrow());
        ask(&client, "PATCH", &path, &line_patch(label))
    };
    let mut broken = Broken { prepare: &prepare, ..Broken::new(&proxy, &send) };

    broken.at_each(&[
        "BEGIN",
        "UPDATE scopes",
        "INTO files",
        "INSERT INTO audit",
        "INSERT INTO changes_outbox",
        COMMIT,
    ]);
    broken.at_bytes(12, 3);

    assert_fates("the line", &broken.ended(), &lines(&alice.read("log.md").expect(200)));
    assert_sound(&database);
}

#[test]
fn a_sync_that_is_repeated_as_it_is_is_written_once_wherever_its_connection_breaks() {
    let database = Database::fresh();
    let (proxy, node) = node_behind(&database);
    let alice = Person::fresh(&node, "alice");
    let (id, mut items) = (alice.start(), Vec::new());
    for statement in ["BEGIN", "UPDATE groups", "INSERT INTO entries", "INSERT INTO changes_outbox", COMMIT] {
        for after in [false, true] {
            match after {
                false => proxy.cut_before(statement),
                true => proxy.cut_after(statement),
            }
            items.push(json!(format!("{statement} {after}")));
            let path = format!("{}/sync", entries(&id));
            until("the sync is done", || {
                matches!(ask(&alice.client, "POST", &path, &memory(&items)), Said::Yes(_))
            });
        }
    }

    assert_eq!(alice.memory(&id), items);
    let stored = walk(&alice.client, &format!("{}?channel=memory&epoch=all&limit=200", entries(&id)));
    assert_eq!(stored.len(), items.len(), "each of them is one entry");
    assert_sound(&database);
}

#[test]
fn a_commit_whose_outcome_nobody_knows_is_no_refusal() {
    let database = Database::fresh();
    let (proxy, node) = node_behind(&database);
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();
    // Background work may run into the cut first.
    let answer = (0..20).find_map(|n| {
        proxy.cut_after(COMMIT);
        let answer = alice.say(&id, &format!("try {n}"));
        (answer.status != 201).then_some(answer)
    });

    let answer = answer.expect("one of the cuts falls into the commit");
    assert_eq!(answer.header("retry-after"), "", "nothing should repeat it unasked");
    answer.expect_error(504, "timeout");
    node.anonymous().get("/health/ready").expect(200);
}

#[test]
fn connections_that_break_while_nobody_uses_them_are_noticed_by_nobody() {
    let database = Database::fresh();
    let (proxy, node) = node_behind(&database);
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();
    for n in 0..5 {
        proxy.cut();
        assert_eq!(alice.transcript(&id).len(), n, "a read is tried again");
        proxy.cut();
        alice.say(&id, &format!("number {n}")).expect(201);
    }
    assert_eq!(alice.feed().len(), 6);
}

#[test]
fn a_node_behind_a_silent_network_is_not_ready_and_holds_up_nobody_else() {
    let database = Database::fresh();
    let (proxy, cut_off) = node_behind(&database);
    let other = setup().database(&database).start();
    let (alice, bob) = (Person::fresh(&cut_off, "alice"), Person::fresh(&other, "bob"));
    let (hers, his) = (alice.start(), bob.start());

    proxy.black_hole();
    let said = std::thread::scope(|scope| {
        let said = scope.spawn(|| ask(&alice.client, "POST", &entries(&hers), &history("into the void")));
        until("the node is not ready", || !is_ready(&cut_off.anonymous()));
        for n in 0..10 {
            bob.say(&his, &format!("number {n}")).expect(201);
        }
        assert_eq!(bob.transcript(&his).len(), 10);
        proxy.heal();
        said.join().expect("no panic")
    });

    until("the node is ready again", || is_ready(&cut_off.anonymous()));
    let fates = Fates::from([("into the void".to_owned(), Fate::of(&said)), ("back".to_owned(), Fate::Once)]);
    alice.say(&hers, "back").expect(201);
    assert_fates("the entry", &fates, &alice.transcript(&hers));
    assert_sound(&database);
}

#[test]
fn a_node_that_falls_silent_while_it_numbers_changes_does_not_stop_the_feed() {
    let database = Database::fresh();
    let (proxy, cut_off) = node_behind(&database);
    let other = setup().database(&database).start();
    let (alice, bob) = (Person::fresh(&cut_off, "alice"), Person::fresh(&other, "bob"));
    let (hers, his) = (alice.start(), bob.start());
    assert_eq!(bob.feed().len(), 1);

    let frozen = Frozen::table(&database, "changes");
    alice.say(&hers, "last words").expect(201);
    until("it is about to number that", || Frozen::has_met(&database, "changes"));
    proxy.black_hole();
    drop(frozen);

    bob.say(&his, "number one").expect(201);
    let begun = std::time::Instant::now();
    until("the feed of others goes on", || {
        bob.admin().get("/v1/changes").json["changes"].as_array().is_some_and(|changes| changes.len() == 2)
    });
    assert!(begun.elapsed() < std::time::Duration::from_secs(12), "it took {:?}", begun.elapsed());
    proxy.heal();
    assert_sound(&database);
}
