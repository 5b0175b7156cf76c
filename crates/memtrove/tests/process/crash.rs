//! What survives: `kill -9` in the middle of concurrent writes, a full disk, a folder that cannot be written.
//!
//! `MEMTROVE_CRASH_ROUNDS=200 cargo test --test crash` kills more often than the default three times. Small disks are
//! mounted, which takes root; with `MEMTROVE_ALLOW_SKIPS=1` the tests that need one are left out where that is not allowed.
use memtrove_testkit::server::{Answer, Body, Client, Setup, TestServer, fresh_id, fresh_name};
use memtrove_testkit::small_disk::SmallDisk;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const WORKERS: usize = 32;

fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_memtrove")
}

// ---- kill -9

/// A write that the server acknowledged.
#[derive(Debug, Clone)]
struct Acknowledged {
    entry: String,
    conversation: String,
    content: Value,
}

/// A fork that the server acknowledged, and what it must show of its parent.
#[derive(Debug, Clone)]
struct Fork {
    id: String,
    parent: String,
    inherited: Vec<String>,
}

/// One agent that writes without pause and remembers what the server promised.
#[derive(Debug)]
struct Worker {
    user: String,
    key: String,
    root: String,
    shared: String,
    dice: u64,
    serial: u64,
    /// Everything ever sent, acknowledged or not, by the label it carries.
    sent: HashSet<String>,
    writes: Vec<Acknowledged>,
    /// The transcript of the root as far as it is certain: entry id and label.
    transcript: Vec<(String, String)>,
    forks: Vec<Fork>,
    /// The last acknowledged memory, and the one that was on its way when the answer did not come.
    memory: Vec<Value>,
    memory_in_flight: Option<Vec<Value>>,
    /// Whether a root append may or may not have been written, so that the transcript is not certain any more.
    uncertain: bool,
}

impl Worker {
    fn new(n: usize, shared: &str) -> Self {
        Self {
            user: fresh_name(&format!("worker{n}")),
            key: format!("agent-{n}"),
            root: fresh_id(),
            shared: shared.to_owned(),
            dice: 0x9E37_79B9_7F4A_7C15 ^ (n as u64 + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9),
            serial: 0,
            sent: HashSet::new(),
            writes: Vec::new(),
            transcript: Vec::new(),
            forks: Vec::new(),
            memory: Vec::new(),
            memory_in_flight: None,
            uncertain: false,
        }
    }

    fn client(&self, server: &TestServer) -> Client {
        server.as_user(&self.user).with_key(&self.key)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % sides
    }

    /// A label nobody else uses, so that a duplicate can be recognised.
    fn label(&mut self) -> String {
        self.serial += 1;
        let label = format!("{}#{}", self.user, self.serial);
        self.sent.insert(label.clone());
        label
    }

    /// Writes until the server is gone. `acknowledged` counts over all workers.
    fn run(&mut self, client: &Client, acknowledged: &AtomicUsize) {
        loop {
            let done = match self.roll(10) {
                0..=3 => self.say(client, self.root.clone()),
                4 => self.say(client, self.shared.clone()),
                5 => match self.forks.last().map(|fork| fork.id.clone()) {
                    Some(fork) => self.say(client, fork),
                    None => continue,
                },
                6 if self.forks.len() < 20 => self.fork(client),
                _ => self.sync(client),
            };
            match done {
                Some(()) => acknowledged.fetch_add(1, Ordering::Relaxed),
                None => return,
            };
        }
    }

    /// Sends; `None` when no answer came, which is when the outcome is unknown.
    fn post(client: &Client, path: &str, body: Body, expected: u16) -> Option<Value> {
        let answer = client.try_send("POST", path, body).ok()?;
        assert_eq!(answer.status, expected, "{}", answer.describe());
        Some(answer.json)
    }

    fn say(&mut self, client: &Client, conversation: String) -> Option<()> {
        let label = self.label();
        let padding = "x".repeat(usize::try_from(self.roll(600)).unwrap());
        let content = json!([{"role": "USER", "text": label, "padding": padding}]);
        let body = json!({"channel": "history", "contentType": "history", "content": content});
        let path = format!("/v1/conversations/{conversation}/entries");
        let client = client.with_header("idempotency-key", &label);
        let Some(entry) = Self::post(&client, &path, Body::Json(body), 201) else {
            self.uncertain |= conversation == self.root;
            return None;
        };
        let entry = entry["id"].as_str().expect("an id").to_owned();
        if conversation == self.root {
            self.transcript.push((entry.clone(), label));
        }
        self.writes.push(Acknowledged { entry, conversation, content });
        Some(())
    }

    fn sync(&mut self, client: &Client) -> Option<()> {
        let mut next = self.memory.clone();
        if self.roll(8) == 0 || next.len() > 40 {
            next.clear(); // a new epoch
        }
        for _ in 0..=self.roll(2) {
            next.push(json!({"note": self.label()}));
        }
        self.memory_in_flight = Some(next.clone());
        let body = json!({"channel": "memory", "contentType": "crash", "content": next});
        let path = format!("/v1/conversations/{}/entries/sync", self.root);
        let answer = Self::post(client, &path, Body::Json(body), 200)?;
        self.memory = self.memory_in_flight.take().unwrap_or_default();
        let entry = &answer["entry"];
        self.writes.push(Acknowledged {
            entry: entry["id"].as_str().expect("every sync here writes").to_owned(),
            conversation: self.root.clone(),
            content: entry["content"].clone(),
        });
        Some(())
    }

    fn fork(&mut self, client: &Client) -> Option<()> {
        if self.uncertain || self.transcript.is_empty() {
            return self.say(client, self.root.clone());
        }
        let at = usize::try_from(self.roll(self.transcript.len() as u64)).unwrap();
        let inherited = self.transcript[..at].iter().map(|(_, label)| label.clone()).collect();
        let path = format!("/v1/conversations/{}/entries/{}/fork", self.root, self.transcript[at].0);
        let made = Self::post(client, &path, Body::None, 201)?;
        let id = made["id"].as_str().expect("an id").to_owned();
        self.forks.push(Fork { id, parent: self.root.clone(), inherited });
        Some(())
    }

    /// Everything the server promised is there; nothing is there twice or that was never sent.
    fn verify(&mut self, server: &TestServer, shared: &[Value]) {
        let client = self.client(server);
        let own = every_entry(server, &self.root);
        let mut stored: HashMap<&str, &Value> = HashMap::new();
        let mut labels: HashMap<String, usize> = HashMap::new();
        for entry in own.iter().chain(shared) {
            for label in labels_of(entry) {
                if label.starts_with(&self.user) {
                    *labels.entry(label).or_default() += 1;
                }
            }
            let id = entry["id"].as_str().expect("an id");
            assert!(stored.insert(id, entry).is_none(), "an entry is listed twice");
        }
        for write in &self.writes {
            let entry = stored
                .get(write.entry.as_str())
                .unwrap_or_else(|| panic!("{} lost the acknowledged {write:?}", self.user));
            assert_eq!(entry["content"], write.content, "{} got back other content", self.user);
            assert_eq!(entry["conversationId"], write.conversation);
        }
        for (label, times) in &labels {
            assert!(self.sent.contains(label), "{label} was never sent");
            // A superseded epoch repeats nothing here: a new epoch starts with fresh labels only.
            assert_eq!(*times, 1, "{label} is stored {times} times");
        }

        let found = every_hit(&client, &self.user);
        for write in self.writes.iter().filter(|write| write.content[0]["text"].is_string()) {
            assert!(found.contains(&write.entry), "{} cannot find the acknowledged {write:?}", self.user);
        }

        let memory = current_memory(&client, &self.root);
        let possible = [Some(&self.memory), self.memory_in_flight.as_ref()];
        assert!(
            possible.iter().flatten().any(|state| **state == memory),
            "{} remembers neither what was acknowledged nor what was on its way:\n{memory:?}\n{possible:?}",
            self.user
        );
        self.memory = memory;
        self.memory_in_flight = None;

        for fork in &self.forks {
            let read = client.get(&format!("/v1/conversations/{}", fork.id)).expect(200);
            assert_eq!(read.json["forkedAtConversationId"], fork.parent);
            let seen: Vec<String> =
                every_page(&client, &format!("/v1/conversations/{}/entries?limit=200", fork.id))
                    .iter()
                    .flat_map(labels_of)
                    .collect();
            assert_eq!(seen[..fork.inherited.len()], fork.inherited, "{} inherits something else", fork.id);
        }

        // From here on the transcript is certain again: it is what the server says.
        if !self.transcript.is_empty() || self.uncertain {
            let page = client.try_send("GET", &format!("/v1/conversations/{}", self.root), Body::None);
            if page.is_ok_and(|answer| answer.status == 200) {
                let acknowledged = std::mem::take(&mut self.transcript);
                self.transcript =
                    every_page(&client, &format!("/v1/conversations/{}/entries?limit=200", self.root))
                        .iter()
                        .map(|entry| (entry["id"].as_str().unwrap().to_owned(), labels_of(entry).remove(0)))
                        .collect();
                let mut rest = self.transcript.iter();
                for entry in &acknowledged {
                    assert!(rest.any(|found| found == entry), "{} is out of order", entry.1);
                }
            }
        }
        self.uncertain = false;
    }
}

/// Walks a list to its end and checks that time never runs backwards in it.
fn every_page(who: &Client, path: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut page = who.get(path).expect_page();
    loop {
        all.append(&mut page.data);
        let Some(after) = page.after else { break };
        page = who.get(&format!("{path}&after={after}")).expect_page();
    }
    let times: Vec<&str> = all.iter().map(|entry| entry["createdAt"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "createdAt decreases in {path}");
    all
}

/// The entries that a search finds, over all its pages.
fn every_hit(who: &Client, query: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut body = json!({"query": query, "groupByConversation": false, "includeEntry": false, "limit": 200});
    loop {
        let page = who.post("/v1/conversations/search", body.clone()).expect_page();
        for hit in page.all("entryId") {
            assert!(found.insert(hit), "a search for {query:?} finds an entry twice");
        }
        let Some(after) = page.after else { return found };
        body["after"] = json!(after);
    }
}

fn every_entry(server: &TestServer, root: &str) -> Vec<Value> {
    let admin = server.as_user("admin");
    let path = format!("/v1/admin/conversations/{root}/entries?forks=all&limit=1000");
    match admin.get(&format!("/v1/admin/conversations/{root}")).status {
        404 => Vec::new(), // its first append was never acknowledged
        _ => every_page(&admin, &path),
    }
}

fn labels_of(entry: &Value) -> Vec<String> {
    let items = entry["content"].as_array().cloned().unwrap_or_default();
    let label = |item: &Value| item["text"].as_str().or(item["note"].as_str()).map(str::to_owned);
    items.iter().filter_map(label).collect()
}

fn current_memory(agent: &Client, conversation: &str) -> Vec<Value> {
    let answer = agent.get(&format!("/v1/conversations/{conversation}/entries?channel=memory&limit=1000"));
    if answer.status == 404 {
        return Vec::new();
    }
    let page = answer.expect_page();
    page.data.iter().flat_map(|entry| entry["content"].as_array().cloned().unwrap_or_default()).collect()
}

/// What must never be in a database, each as a query that counts it. The schema has no foreign keys: a transaction is
/// what keeps rows together, and these say whether it did.
const WRONGS: [(&str, &str); 16] = [
    (
        "conversations without their tree",
        "SELECT count(*) FROM conversations c
         WHERE NOT EXISTS (SELECT 1 FROM groups g WHERE g.id = c.group_id AND g.tenant = c.tenant)",
    ),
    (
        "conversations of another owner than their tree's",
        "SELECT count(*) FROM conversations c JOIN groups g ON g.id = c.group_id
         WHERE c.owner_user_id <> g.owner_user_id",
    ),
    (
        "forks whose parent is gone",
        "SELECT count(*) FROM conversations c WHERE c.parent_id IS NOT NULL AND NOT EXISTS
         (SELECT 1 FROM conversations p WHERE p.group_id = c.group_id AND p.id = c.parent_id)",
    ),
    (
        "entries without their conversation",
        "SELECT count(*) FROM entries e WHERE NOT EXISTS
         (SELECT 1 FROM conversations c WHERE c.group_id = e.group_id AND c.id = e.conversation_id)",
    ),
    (
        "ancestry without its ancestor or descendant",
        "SELECT count(*) FROM ancestry a WHERE 2 <>
         (SELECT count(*) FROM conversations c
          WHERE c.group_id = a.group_id AND c.id IN (a.ancestor, a.descendant))",
    ),
    (
        "memberships without their tree",
        "SELECT count(*) FROM memberships m
         WHERE NOT EXISTS (SELECT 1 FROM groups g WHERE g.id = m.group_id AND g.tenant = m.tenant)",
    ),
    (
        "trees that do not have exactly one owner",
        "SELECT count(*) FROM groups g
         WHERE 1 <> (SELECT count(*) FROM memberships m WHERE m.group_id = g.id AND m.access_level = 1)",
    ),
    (
        "trees whose owner is not the member that owns them",
        "SELECT count(*) FROM groups g WHERE NOT EXISTS
         (SELECT 1 FROM memberships m
          WHERE m.group_id = g.id AND m.user_id = g.owner_user_id AND m.access_level = 1)",
    ),
    (
        "trees that would give an entry's place away again",
        "SELECT count(*) FROM groups g
         WHERE EXISTS (SELECT 1 FROM entries e WHERE e.group_id = g.id AND e.ord >= g.next_ord)",
    ),
    (
        "trees that name another conversation than the one that was updated last",
        "SELECT count(*) FROM groups g WHERE (g.latest_updated_at, g.latest_conversation_id) IS NOT
         (SELECT c.updated_at, c.id FROM conversations c WHERE c.group_id = g.id
          ORDER BY c.updated_at DESC, c.id DESC LIMIT 1)",
    ),
    (
        "unindexed rows without their history entry",
        "SELECT count(*) FROM unindexed u WHERE NOT EXISTS
         (SELECT 1 FROM entries e WHERE e.id = u.entry_id AND e.group_id = u.group_id AND e.channel = 1)",
    ),
    (
        "texts without their history entry",
        "SELECT count(*) FROM texts t WHERE NOT EXISTS
         (SELECT 1 FROM entries e WHERE e.id = t.id AND e.group_id = t.group_id
          AND e.conversation_id = t.conversation_id AND e.channel = 1)",
    ),
    (
        "meanings without their text",
        "SELECT count(*) FROM meanings m WHERE NOT EXISTS
         (SELECT 1 FROM texts t WHERE t.no = m.text_no AND t.id = m.entry_id AND t.group_id = m.group_id)",
    ),
    (
        "texts that were taken in and have no meaning",
        "SELECT count(*) FROM texts t JOIN meanings_progress p ON t.no <= p.text_no
         WHERE NOT EXISTS (SELECT 1 FROM meanings m WHERE m.text_no = t.no)",
    ),
    (
        "idempotency keys without their conversation or entry",
        "SELECT count(*) FROM idempotency_keys k
         WHERE NOT EXISTS (SELECT 1 FROM conversations c WHERE c.tenant = k.tenant AND c.id = k.conversation_id)
            OR NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = k.entry_id)",
    ),
    (
        "transfers without their tree, or to somebody who is no member",
        "SELECT count(*) FROM transfers t WHERE NOT EXISTS
         (SELECT 1 FROM memberships m WHERE m.group_id = t.group_id AND m.user_id = t.to_user_id)",
    ),
];

/// What SQLite itself thinks of the file that a killed process left behind, and whether its rows belong together.
fn assert_sound(data_dir: &Path) {
    let file = data_dir.join("memtrove.db");
    let database = rusqlite::Connection::open_with_flags(&file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
        .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let verdict: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a verdict");
    assert_eq!(verdict, "ok");
    for (wrong, query) in WRONGS {
        let count: i64 = database.query_row(query, [], |row| row.get(0)).expect(wrong);
        assert_eq!(count, 0, "{wrong}");
    }
    // Every document has a term that names what it belongs to, so this finds them all. Number 0 belongs to nobody: it is
    // what rewriting the index begins with.
    let numbers = |query: &str| -> Vec<i64> {
        let mut statement = database.prepare(query).expect("a statement");
        statement.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("numbers")
    };
    let texts = numbers("SELECT no FROM texts ORDER BY no");
    let indexed =
        numbers("SELECT rowid FROM text_index WHERE text_index MATCH '\"§\"*' AND rowid > 0 ORDER BY rowid");
    assert!(texts == indexed, "{} texts, and {} in the index", texts.len(), indexed.len());
}

#[test]
fn no_acknowledged_write_is_lost_and_none_is_doubled_when_the_process_is_killed() {
    let rounds: usize = std::env::var("MEMTROVE_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut server = TestServer::start(binary());
    // Former workers are looked at again at the very end only, so that two hundred rounds stay bearable.
    let mut retired = Vec::new();
    let mut pool = WorkerPool::new(&server);
    for round in 1..=rounds {
        let acknowledged = AtomicUsize::new(0);
        let clients: Vec<Client> = pool.workers.iter().map(|worker| worker.client(&server)).collect();
        std::thread::scope(|scope| {
            for (worker, client) in pool.workers.iter_mut().zip(&clients) {
                let acknowledged = &acknowledged;
                scope.spawn(move || worker.run(client, acknowledged));
            }
            // Kill in the middle of things, at another moment in every round.
            let begun = Instant::now();
            let enough = 200 + 97 * (round % 7);
            while acknowledged.load(Ordering::Relaxed) < enough && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            server.kill();
        });
        let count = acknowledged.load(Ordering::Relaxed);
        assert!(count >= 200, "round {round}: only {count} acknowledged writes, which proves little");

        assert_sound(server.data_dir());
        server.restart();
        pool.verify(&server);
        if round % 8 == 0 {
            retired.push(std::mem::replace(&mut pool, WorkerPool::new(&server)));
        }
    }
    retired.iter_mut().for_each(|pool| pool.verify(&server));
}

/// Workers with a conversation each and one that they share.
struct WorkerPool {
    shared: String,
    workers: Vec<Worker>,
}

impl WorkerPool {
    fn new(server: &TestServer) -> Self {
        let host = server.someone("host");
        let shared = host.post("/v1/conversations", json!({"title": "Everybody"})).expect(201).id();
        let workers: Vec<Worker> = (0..WORKERS).map(|n| Worker::new(n, &shared)).collect();
        for worker in &workers {
            host.post(
                &format!("/v1/conversations/{shared}/memberships"),
                json!({"userId": worker.user, "accessLevel": "writer"}),
            )
            .expect(201);
        }
        Self { shared, workers }
    }

    fn verify(&mut self, server: &TestServer) {
        let shared = every_entry(server, &self.shared);
        self.workers.iter_mut().for_each(|worker| worker.verify(server, &shared));
    }
}

/// A read of everything there is to read about these conversations, as texts.
fn everything(server: &TestServer, people: &[&str], conversations: &[&str]) -> Vec<String> {
    let mut answers = Vec::new();
    let admin = server.as_user("admin");
    for name in people {
        let who = server.as_user(*name).with_key("agent-a");
        answers.push(who.get("/v1/conversations?mode=all").text);
        answers.push(who.get("/v1/ownership-transfers").text);
        for query in ["walrus", "oyster"] {
            let body = json!({"query": query, "groupByConversation": false});
            answers.push(who.post("/v1/conversations/search", body).text);
        }
        for id in conversations {
            for rest in ["", "/entries", "/entries?channel=all&forks=all", "/forks", "/memberships"] {
                answers.push(who.get(&format!("/v1/conversations/{id}{rest}")).text);
            }
        }
    }
    answers.push(admin.get("/v1/admin/conversations?includeDeleted=true&mode=all").text);
    answers.push(admin.get("/v1/conversations/unindexed").text);
    for id in conversations {
        answers.push(admin.get(&format!("/v1/admin/conversations/{id}/entries?forks=all")).text);
        answers.push(admin.get(&format!("/v1/admin/conversations/{id}/memberships")).text);
    }
    answers
}

#[test]
fn everything_reads_the_same_after_a_stop_and_after_a_kill() {
    let mut server = TestServer::start(binary());
    let (alice, bob) = (server.someone("alice").with_key("agent-a"), server.someone("bob"));
    let root = alice
        .post("/v1/conversations", json!({"title": "Zoo", "metadata": {"k": [1, null, "ä"]}}))
        .expect(201)
        .id();
    let entries = format!("/v1/conversations/{root}/entries");
    alice.post(&entries, history("the walrus")).expect(201);
    let cut = alice.post(&entries, history("the oyster")).expect(201).id();
    for items in [json!(["a"]), json!(["a", 1e2]), json!(["x"])] {
        let body = json!({"channel": "memory", "contentType": "T", "content": items});
        alice.post(&format!("{entries}/sync"), body).expect(200);
    }
    let branch = alice.post(&format!("{entries}/{cut}/fork"), json!({"title": "Branch"})).expect(201).id();
    alice.post(&format!("/v1/conversations/{branch}/entries"), history("a walrus on the branch")).expect(201);
    let gone = alice.post("/v1/conversations", json!({"title": "Gone"})).expect(201).id();
    alice.delete(&format!("/v1/conversations/{gone}")).expect(204);
    alice
        .post(
            &format!("/v1/conversations/{root}/memberships"),
            json!({"userId": bob.user(), "accessLevel": "writer"}),
        )
        .expect(201);
    alice
        .post("/v1/ownership-transfers", json!({"conversationId": root, "newOwnerUserId": bob.user()}))
        .expect(201);
    server
        .as_user("admin")
        .post(
            "/v1/conversations/index",
            json!([{"conversationId": root, "entryId": cut, "indexedContent": "an oyster, summarised"}]),
        )
        .expect(200);
    let (people, conversations) = ([alice.user(), bob.user()], [&*root, &*branch, &*gone]);
    let before = everything(&server, &people, &conversations);

    assert!(server.stop().success());
    assert_sound(server.data_dir());
    server.restart();
    assert_eq!(everything(&server, &people, &conversations), before, "after a stop");
    server.kill();
    assert_sound(server.data_dir());
    server.restart();
    assert_eq!(everything(&server, &people, &conversations), before, "after a kill");
}

/// Somebody with a lot to forget: 2000 events, which are memories too, 600 memories in a project, half of them private, 200
/// trees shared with a friend, and what was said in 20 trees of that friend.
struct Forgettable {
    user: String,
    friend: String,
    /// A word that is in everything it ever wrote.
    word: String,
    of_friend: Vec<String>,
}

const EVENTS: usize = 2_000;
const SHARED_MEMORIES: usize = 600;
const TREES: usize = 200;
const TREES_OF_FRIEND: usize = 20;

impl Forgettable {
    fn new(server: &TestServer) -> Self {
        let (user, friend) = (fresh_name("alice"), fresh_name("bob"));
        let word = format!("{}q", fresh_name("x").replace('-', ""));
        let (alice, bob) = (server.as_user(&user), server.as_user(&friend));
        let start = |who: &Client, with: &str| {
            let id = who.post("/v1/conversations", json!({})).expect(201).id();
            let member = json!({"userId": with, "accessLevel": "writer"});
            who.post(&format!("/v1/conversations/{id}/memberships"), member).expect(201);
            id
        };
        let say = |who: &Client, id: &str, text: &str| {
            who.post(&format!("/v1/conversations/{id}/entries"), history(text)).expect(201);
        };
        on_threads(EVENTS, |n| {
            let event = json!({"event_id": format!("{word}-{n}"), "tenant_id": "default", "user_id": user,
                               "digest": format!("number {n} of {word}"), "timestamp": "2026-02-15T00:00:00Z"});
            alice
                .post(&format!("/v1/tenants/default/users/{user}/events"), json!({"event": event}))
                .expect(202);
        });
        on_threads(SHARED_MEMORIES, |n| {
            let (policy, content) = match n % 2 {
                0 => ("organization", format!("rule {n}")),
                _ => ("private", format!("rule {n} of {word}")),
            };
            let memory = json!({"layer": "project", "identifiers": {"projectId": friend}, "content": content,
                                "metadata": {"author": user}, "accessPolicy": {"policy": policy}});
            alice.post("/v1/memories", memory).expect(201);
        });
        on_threads(TREES, |n| {
            let id = start(&alice, &friend);
            say(&alice, &id, &format!("tree {n}, {word}"));
            say(&bob, &id, &format!("an answer to {word}"));
        });
        let of_friend = std::sync::Mutex::new(Vec::new());
        on_threads(TREES_OF_FRIEND, |n| {
            let id = start(&bob, &user);
            for m in 0..10 {
                say(if m % 2 == 0 { &alice } else { &bob }, &id, &format!("tree {n}, entry {m}"));
            }
            of_friend.lock().unwrap().push(id);
        });
        Self { user, friend, word, of_friend: of_friend.into_inner().unwrap() }
    }

    /// Asks for it; what is answered if the server lives on.
    fn forget(alice: &Client) -> Result<Answer, String> {
        alice.try_send("DELETE", &format!("/v1/tenants/default/users/{}/memory", alice.user()), Body::None)
    }

    fn assert_memories_forgotten(&self, alice: &Client, bob: &Client) {
        let listed = alice.get(&format!("/v1/memories?layer=user&userId={}", self.user)).expect(200);
        assert_eq!(listed.json["totalCount"], 0, "{}", listed.text);
        let shared =
            bob.get(&format!("/v1/memories?layer=project&projectId={}&limit=100", self.friend)).expect(200);
        assert_eq!(shared.json["totalCount"], SHARED_MEMORIES / 2, "{}", shared.text);
        assert!(!shared.text.contains(&self.user), "a memory names the user: {}", shared.text);
    }

    /// Nothing is found by any route, in any table or in any byte.
    fn assert_forgotten(&self, server: &TestServer) {
        let (alice, bob, admin) =
            (server.as_user(&self.user), server.as_user(&self.friend), server.as_user("admin"));
        let events = format!("/v1/tenants/default/users/{}/events:search", self.user);
        assert_eq!(alice.post(&events, json!({})).expect(200).json["results"], json!([]));
        assert_eq!(alice.get("/v1/conversations?mode=all").expect_page().ids(), Vec::<String>::new());
        let mut left = bob.get("/v1/conversations?mode=all&limit=200").expect_page().ids();
        let mut expected = self.of_friend.clone();
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
        self.assert_memories_forgotten(&alice, &bob);
        let query = json!({"query": self.word, "includeDeleted": true});
        for (who, path) in [(&bob, "/v1/conversations/search"), (&admin, "/v1/admin/conversations/search")] {
            assert!(who.post(path, query.clone()).expect_page().data.is_empty());
        }
        for id in &self.of_friend {
            for rest in ["/entries?limit=200", "/memberships"] {
                let shown = admin.get(&format!("/v1/admin/conversations/{id}{rest}")).expect(200).text;
                assert!(!shown.contains(&self.user), "{rest} names the user: {shown}");
            }
        }
        let mut after = 0;
        loop {
            let page = admin.get(&format!("/v1/changes?limit=1000&after={after}")).expect(200);
            let changes = page.json["changes"].as_array().unwrap();
            assert!(changes.iter().all(|change| change["user"] != self.user.as_str()), "{}", page.text);
            let Some(next) = page.json["next_after"].as_i64() else { break };
            after = next;
        }
        for file in std::fs::read_dir(server.data_dir()).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap_or_default();
            // A sorted index shares the first letters of neighbours.
            let found = String::from_utf8_lossy(&bytes).contains(&self.word[3..]);
            assert!(!found, "{} still has what was forgotten", path.display());
        }
    }
}

fn on_threads(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                numbers.take_while(|n| *n < count).for_each(&work);
            });
        }
    });
}

/// How many forgets have not come to their end.
fn unfinished_forgets(server: &TestServer) -> i64 {
    let database = rusqlite::Connection::open_with_flags(
        server.data_dir().join("memtrove.db"),
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
    );
    let database = database.expect("the database");
    database.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    database.query_row("SELECT count(*) FROM forgotten_users", [], |row| row.get(0)).expect("a number")
}

#[test]
fn a_forget_that_is_killed_comes_to_its_end_all_the_same() {
    let rounds: u32 = std::env::var("MEMTROVE_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut server = TestServer::start(binary());
    let undisturbed = Forgettable::new(&server);
    let begun = Instant::now();
    let report = Forgettable::forget(&server.as_user(&undisturbed.user)).expect("an answer").expect(200);
    let duration = begun.elapsed();
    assert_eq!(report.json["events_deleted"], EVENTS, "{}", report.text);
    let anonymized = TREES_OF_FRIEND * 5;
    assert_eq!(report.json["conversations"], json!({"deleted": TREES, "anonymized": anonymized}));
    let shared = SHARED_MEMORIES / 2;
    assert_eq!(report.json["memories"], json!({"deleted": EVENTS + shared, "anonymized": shared}));
    undisturbed.assert_forgotten(&server);

    let mut dice = 0x2545_F491_4F6C_DD1D_u64;
    for round in 1..=rounds {
        let alice = Forgettable::new(&server);
        // Once while it is asked for, and once while the next process goes on with it.
        let mut moment = || {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            duration * u32::try_from(dice % 1_000).unwrap() / 1_000
        };
        let (first, second) = (moment(), moment());
        let client = server.as_user(&alice.user);
        let answered = std::thread::scope(|scope| {
            let asked = scope.spawn(|| Forgettable::forget(&client).is_ok());
            std::thread::sleep(first);
            server.kill();
            asked.join().expect("no thread fails")
        });
        let left = unfinished_forgets(&server);
        eprintln!(
            "round {round}: killed after {first:?} of {duration:?}, {left} unfinished, answered: {answered}"
        );
        server.restart();
        std::thread::sleep(second);
        server.kill();
        server.restart();
        let deadline = Instant::now() + Duration::from_secs(60);
        while unfinished_forgets(&server) > 0 {
            assert!(Instant::now() < deadline, "round {round}: the worker does not finish it");
            std::thread::sleep(Duration::from_millis(20));
        }
        if left == 0 && !answered {
            // It was killed before anything of it was committed: the user is still whole, and may ask again.
            Forgettable::forget(&server.as_user(&alice.user)).expect("an answer").expect(200);
        }
        alice.assert_forgotten(&server);
        assert_sound(server.data_dir());
    }
}

#[test]
fn a_second_process_on_the_same_folder_is_refused() {
    let server = TestServer::start(binary());

    let failed = Setup::new(binary())
        .data_dir(server.data_dir())
        .try_start()
        .expect_err("two processes on one folder would not see each other's writes");

    assert!(failed.status.is_some_and(|status| !status.success()), "{}", failed.reason);
    assert!(failed.log.contains(&*server.data_dir().to_string_lossy()), "does not name it: {}", failed.log);
    server.someone("alice").post("/v1/conversations", json!({})).expect(201);
}

// ---- a database that somebody else holds

/// Nothing in the answer tells a caller how and where the server keeps its data.
#[track_caller]
fn assert_keeps_secrets(answer: &Answer, server: &TestServer) {
    let text = answer.text.to_lowercase();
    let folder = server.data_dir().to_string_lossy().to_lowercase();
    for secret in ["sqlite", "memtrove.db", ".rs:", "database is", &folder] {
        assert!(!text.contains(secret), "leaks {secret:?}: {}", answer.describe());
    }
}

/// Takes the database's write lock, as a careless person with a database browser would.
fn hold_the_database(server: &TestServer) -> rusqlite::Connection {
    let holder = rusqlite::Connection::open(server.data_dir().join("memtrove.db")).expect("the database");
    holder.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    holder
}

#[test]
fn a_database_that_somebody_else_holds_refuses_writes_keeps_reads_and_recovers() {
    let server = TestServer::start(binary());
    let alice = server.someone("alice");
    let id = fresh_id();
    let path = format!("/v1/conversations/{id}/entries");
    alice.post(&path, history("before")).expect(201);

    let holder = hold_the_database(&server);
    let refused = alice.post(&path, history("meanwhile")).expect_error(503, "storage_unavailable");
    let page = alice.get(&path).expect_page();
    drop(holder);
    alice.post(&path, history("after")).expect(201);

    assert_eq!(page.data.len(), 1, "reads still work");
    let texts: Vec<Value> =
        alice.get(&path).expect_page().data.iter().map(|entry| entry["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["before", "after"]);
    assert_keeps_secrets(&refused, &server);
}

#[test]
fn a_write_that_takes_too_long_is_told_so_and_can_be_repeated_with_its_key() {
    let server = Setup::new(binary()).toml("[server]\nrequest_timeout = \"2s\"").start();
    let alice = server.someone("alice");
    let path = format!("/v1/conversations/{}/entries", fresh_id());
    alice.post(&path, history("before")).expect(201);
    let keyed = alice.with_header("idempotency-key", "turn-2");

    let holder = hold_the_database(&server);
    let late = keyed.post(&path, history("once")).expect_error(504, "timeout");
    drop(holder);

    // Whoever is told when to come again repeats by itself, and would write twice without a key.
    assert_eq!(late.header("retry-after"), "", "{}", late.describe());
    assert_keeps_secrets(&late, &server);
    // Whether it was written or not: the same key makes it once.
    keyed.post(&path, history("once")).expect(201);
    let texts: Vec<Value> =
        alice.get(&path).expect_page().data.iter().map(|entry| entry["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["before", "once"]);
}

#[test]
fn an_eviction_that_fails_says_so_in_the_stream_and_never_reports_the_end() {
    let server = TestServer::start(binary());
    let (alice, admin) = (server.someone("alice"), server.as_user("admin"));
    let id = alice.post("/v1/conversations", json!({})).expect(201).id();
    alice.delete(&format!("/v1/conversations/{id}")).expect(204);
    std::thread::sleep(Duration::from_millis(1_200));
    let body = json!({"retentionPeriod": "PT1S", "resourceTypes": ["conversations"]});

    let holder = hold_the_database(&server);
    let failed = admin.post("/v1/admin/evict?async=true", body.clone()).expect(200);
    let blocking = admin.post("/v1/admin/evict", body.clone());
    drop(holder);

    let events: Vec<&str> = failed.text.split("\n\n").filter(|event| !event.trim().is_empty()).collect();
    assert!(events[0].starts_with("data:") && events[0].contains("\"progress\""), "{}", failed.describe());
    let last = events[events.len() - 1];
    let data = last.strip_prefix("event: error\ndata:").unwrap_or_else(|| panic!("{}", failed.describe()));
    let data: Value = serde_json::from_str(data.trim()).expect("JSON");
    assert!(data["error"].is_string() && data.as_object().is_some_and(|o| o.len() == 1), "{data}");
    assert!(!failed.text.contains("100"), "{}", failed.describe());
    blocking.expect_error(503, "storage_unavailable");
    admin.get(&format!("/v1/admin/conversations/{id}")).expect(200);
    admin.post("/v1/admin/evict", body).expect(204);
    admin.get(&format!("/v1/admin/conversations/{id}")).expect(404);
    assert_keeps_secrets(&failed, &server);
}

// ---- full disk, read-only folder

fn history(text: &str) -> Value {
    json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]})
}

/// Text that does not compress away.
fn bulky(seed: u64, length: usize) -> String {
    let mut dice = seed | 1;
    (0..length)
        .map(|_| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            char::from(b'!' + u8::try_from(dice % 90).unwrap())
        })
        .collect()
}

#[test]
fn a_full_disk_refuses_writes_keeps_reads_and_recovers_when_there_is_room_again() {
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let mut server = Setup::new(binary()).data_dir(disk.path().join("data")).start();
    let alice = server.someone("alice");
    let id = alice.post("/v1/conversations", json!({"title": "Diary"})).expect(201).id();
    let path = format!("/v1/conversations/{id}/entries");
    let mut acknowledged = Vec::new();
    for n in 0..5 {
        alice.post(&path, history(&format!("walrus {n}"))).expect(201);
        acknowledged.push(format!("walrus {n}"));
    }
    let transcript = |who: &Client| -> Vec<String> {
        every_page(who, &format!("{path}?limit=200"))
            .iter()
            .map(|entry| entry["content"][0]["text"].as_str().unwrap().to_owned())
            .collect()
    };

    disk.fill();
    // What the database has set aside may take a few more; then it must say no.
    let refused = (0..200).find_map(|n| {
        let text = bulky(n + 1, 200_000);
        let answer = alice.post(&path, history(&text));
        match answer.status {
            201 => {
                acknowledged.push(text);
                None
            }
            _ => Some(answer),
        }
    });
    let refused = refused.expect("a full disk takes no 40 MB").expect_error(503, "storage_unavailable");
    assert_eq!(transcript(&alice), acknowledged, "reads still work, and nothing refused is there");
    alice.get("/v1/conversations").expect_page();
    alice.post("/v1/conversations/search", json!({"query": "walrus"})).expect_page();
    server.anonymous().get("/v1/health").expect(200);
    let new = alice.post(&path, history(&bulky(77, 200_000)));
    new.expect_error(503, "storage_unavailable");
    alice
        .post(&format!("/v1/conversations/{}/entries", fresh_id()), history(&bulky(78, 200_000)))
        .expect_error(503, "storage_unavailable");

    disk.free();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = alice.post(&path, history("there is room again"));
        if answer.status == 201 {
            acknowledged.push("there is room again".to_owned());
            break;
        }
        assert!(Instant::now() < deadline, "still refused: {}", answer.describe());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(transcript(&alice), acknowledged);

    let user = alice.user().to_owned();
    server.kill();
    assert_sound(server.data_dir());
    server.restart();
    assert_eq!(transcript(&server.as_user(user)), acknowledged);
    assert_keeps_secrets(&refused, &server);
}

#[test]
fn concurrent_writes_on_a_disk_that_fills_up_are_either_kept_or_refused() {
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let mut server = Setup::new(binary()).data_dir(disk.path().join("data")).start();
    let alice = server.someone("alice");
    let id = fresh_id();
    let path = format!("/v1/conversations/{id}/entries");
    let full = AtomicBool::new(false);
    alice.post(&path, history("start")).expect(201);

    let kept: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u64)
            .map(|n| {
                let (alice, path, full) = (&alice, &path, &full);
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for m in 0..400 {
                        if full.load(Ordering::Relaxed) {
                            break;
                        }
                        let text = bulky(n * 1_000 + m + 1, 30_000);
                        let answer = alice.post(path, history(&text));
                        match answer.status {
                            201 => kept.push(text),
                            503 => full.store(true, Ordering::Relaxed),
                            _ => panic!("{}", answer.describe()),
                        }
                    }
                    kept
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread fails")).collect()
    });
    assert!(full.load(Ordering::Relaxed), "the disk never filled up");

    let stored = |who: &Client| -> HashSet<String> {
        every_page(who, &format!("{path}?limit=50"))
            .iter()
            .map(|entry| entry["content"][0]["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let expected: HashSet<String> = kept.into_iter().chain(["start".to_owned()]).collect();
    assert_eq!(stored(&alice).len(), expected.len());
    assert!(stored(&alice) == expected, "what is stored is not what was acknowledged");
    let user = alice.user().to_owned();
    server.kill();
    assert_sound(server.data_dir());
    // A restart may need room for a checkpoint; give it some by growing the disk.
    disk.remount("size=64m");
    server.restart();
    assert!(stored(&server.as_user(user)) == expected);
}

/// Requires that the server does not start on this folder and says why in a sentence.
#[track_caller]
fn refuses_to_start_on(folder: &Path) {
    let failed = Setup::new(binary())
        .data_dir(folder)
        .try_start()
        .expect_err("a folder that cannot be written must stop the start");
    let status = failed.status.unwrap_or_else(|| panic!("it did not end by itself: {}", failed.log));
    assert!(!status.success(), "{status}");
    assert!(failed.log.contains(&*folder.to_string_lossy()), "does not name the folder: {}", failed.log);
    assert!(!failed.log.contains("panicked"), "panics: {}", failed.log);
    let log = failed.log.to_lowercase();
    assert!(
        log.contains("read-only") || log.contains("cannot write") || log.contains("not writable"),
        "does not say what is wrong: {}",
        failed.log
    );
}

#[test]
fn a_read_only_data_folder_stops_the_start_with_a_clear_sentence() {
    let Some(disk) = SmallDisk::mount("16m") else { return };
    let data = disk.path().join("data");
    {
        let server = Setup::new(binary()).data_dir(&data).start();
        server.someone("alice").post("/v1/conversations", json!({})).expect(201);
    }
    std::fs::create_dir(disk.path().join("empty")).expect("a folder");
    disk.remount("ro");

    refuses_to_start_on(&data);
    refuses_to_start_on(&disk.path().join("empty"));
    refuses_to_start_on(&disk.path().join("missing"));
}

#[test]
fn a_data_folder_that_is_a_file_stops_the_start_with_a_clear_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data");
    File::create(&path).expect("a file");

    let failed = Setup::new(binary()).data_dir(&path).try_start().expect_err("a file is no folder");

    assert!(failed.status.is_some_and(|status| !status.success()), "{}", failed.reason);
    assert!(failed.log.contains(&*path.to_string_lossy()), "does not name it: {}", failed.log);
    assert!(!failed.log.contains("panicked"), "panics: {}", failed.log);
}
