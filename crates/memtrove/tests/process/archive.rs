//! `memtrove export` and `memtrove import` as an operator uses them: from a server's store into another one, of the same engine
//! or the other, and back.
use memtrove_testkit::postgres::Database;
use memtrove_testkit::server::{Body, Client, FailedStart, Setup, TestServer};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_memtrove");
const KEY: &str = "[encryption.dek]\nkey = \"KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=\"\n";
const OTHER_KEY: &str = "[encryption.dek]\nkey = \"Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc=\"\n";

/// Where a store is.
enum Kept {
    Folder(TempDir),
    Database(Arc<Database>),
}

/// A store, and how it is encrypted.
struct Place {
    kept: Kept,
    toml: String,
    configured: TempDir,
}

impl Place {
    fn new(kept: Kept, toml: &str) -> Self {
        Self { kept, toml: toml.to_owned(), configured: tempfile::tempdir().unwrap() }
    }

    fn sqlite(toml: &str) -> Self {
        Self::new(Kept::Folder(tempfile::tempdir().unwrap()), toml)
    }

    fn postgres(toml: &str) -> Self {
        Self::new(Kept::Database(Database::fresh()), toml)
    }

    /// The same store with another configuration.
    fn configured(self, toml: &str) -> Self {
        Self { toml: toml.to_owned(), ..self }
    }

    fn url(&self) -> String {
        match &self.kept {
            Kept::Folder(folder) => format!("sqlite:{}", folder.path().join("memtrove.db").display()),
            Kept::Database(database) => database.url().to_owned(),
        }
    }

    fn database(&self) -> PathBuf {
        match &self.kept {
            Kept::Folder(folder) => folder.path().join("memtrove.db"),
            Kept::Database(_) => panic!("this one has no file"),
        }
    }

    fn try_serve(&self) -> Result<TestServer, FailedStart> {
        Setup::new(BINARY).toml(&self.toml).variable("MEMTROVE_STORE__URL", self.url()).try_start()
    }

    #[track_caller]
    fn serve(&self) -> TestServer {
        self.try_serve().unwrap_or_else(|failed| panic!("it did not start: {}", failed.log))
    }

    fn command(&self, args: &[&str]) -> Command {
        let config = self.configured.path().join("memtrove.toml");
        std::fs::write(&config, &self.toml).unwrap();
        let mut command = Command::new(BINARY);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEMTROVE_"))
        {
            command.env_remove(name);
        }
        command.current_dir(self.configured.path()).env("MEMTROVE_STORE__URL", self.url()).args(args);
        command
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        let printed = printed(&output);
        assert!(output.status.success(), "memtrove {args:?}: {printed}");
        printed
    }

    #[track_caller]
    fn refusal(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(1), "memtrove {args:?}: {printed}");
        printed
    }

    /// Exports; the digest.
    #[track_caller]
    fn export(&self, archive: &Path, more: &[&str]) -> String {
        let args = [&["export", "-o", archive.to_str().unwrap()], more].concat();
        digest(&self.run(&args))
    }

    #[track_caller]
    fn import(&self, archive: &Path) -> String {
        digest(&self.run(&["import", archive.to_str().unwrap()]))
    }

    #[track_caller]
    fn checksum(&self, more: &[&str]) -> String {
        digest(&self.run(&[&["export", "--checksum"], more].concat()))
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[track_caller]
fn digest(printed: &str) -> String {
    let line = printed.lines().find_map(|line| line.strip_prefix("digest "));
    line.unwrap_or_else(|| panic!("no digest in: {printed}")).to_owned()
}

fn archives() -> (TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, move |name: &str| path.join(name))
}

fn client(server: &TestServer, user: &str, tenant: &str) -> Client {
    server.as_user(user).with_key("agent").in_tenant(tenant)
}

/// An agent that is trusted to speak for everybody.
fn agent(server: &TestServer, tenant: &str) -> Client {
    server.anonymous().with_key("agent").in_tenant(tenant)
}

fn history(text: &str) -> Value {
    json!({"contentType": "history", "content": [{"role": "USER", "text": text}]})
}

fn scope(tenant: &str, user: &str, rest: &str) -> String {
    format!("/v1/tenants/{tenant}/users/{user}{rest}")
}

/// Something on every surface: forks, members, a transfer, memory, files with a trail, events, memories, facts, things that
/// are gone, and a user that was forgotten.
#[track_caller]
fn say_everything(server: &TestServer, tenant: &str) -> Vec<String> {
    let (alice, bob) = (client(server, "alice", tenant), client(server, "bob", tenant));
    let mut conversations = Vec::new();
    for number in 0..3 {
        let title = format!("Plans {number} über 東京");
        let id = alice
            .post("/v1/conversations", json!({"title": title, "metadata": {"n": number}}))
            .expect(201)
            .id();
        let entries = format!("/v1/conversations/{id}/entries");
        let first = alice.post(&entries, history(&format!("first walrus {number}"))).expect(201).id();
        for said in 0..5 {
            alice.post(&entries, history(&format!("zinnober {number}.{said}, and so on"))).expect(201);
        }
        let memory = json!({"channel": "memory", "contentType": "LC4J", "content": [{"text": "state"}, {"n": number}]});
        alice.post(&format!("{entries}/sync"), memory).expect(200);
        let fork = alice.post_nothing(&format!("{entries}/{first}/fork")).expect(201).id();
        alice
            .with_header("idempotency-key", "once")
            .post(&format!("/v1/conversations/{fork}/entries"), history("instead heron"))
            .expect(201);
        let member = json!({"userId": "bob", "accessLevel": "writer"});
        alice.post(&format!("/v1/conversations/{id}/memberships"), member).expect(201);
        bob.post(&entries, history("bob was here")).expect(201);
        conversations.extend([id, fork]);
    }
    let transfer = json!({"conversationId": conversations[0], "newOwnerUserId": "bob"});
    alice.post("/v1/ownership-transfers", transfer).expect(201);
    alice.delete(&format!("/v1/conversations/{}", conversations[4])).expect(204);

    let agent = agent(server, tenant);
    for user in ["alice", "carol", "dave"] {
        let mut version = "*".to_owned();
        for (name, text) in [("notes.md", "one"), ("notes.md", "two"), ("plans/next.md", "three")] {
            let document =
                json!({"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": text}});
            let written = agent
                .with_header("if-match", if name == "notes.md" { &version } else { "*" })
                .with_header("idempotency-key", &format!("{user}{text}"))
                .send(
                    "PUT",
                    &scope(tenant, user, &format!("/files/{name}")),
                    Body::Json(json!({"document": document})),
                )
                .expect(200);
            version = written.header("etag").to_owned();
        }
        // Two files leave their paths, one of them for another.
        for name in ["draft.md", "gone.md"] {
            let body = json!({"document": {"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": name}}});
            let file = scope(tenant, user, &format!("/files/{name}"));
            agent.with_header("if-match", "*").send("PUT", &file, Body::Json(body)).expect(200);
        }
        let any = agent.with_header("if-match", "*");
        let body = json!({"from": "draft.md", "to": "plans/final.md"});
        any.post(&scope(tenant, user, "/files:move"), body).expect(200);
        any.post(&scope(tenant, user, "/files:delete"), json!({"path": "gone.md"})).expect(200);
        for number in 0..70 {
            let event = json!({
                "event_id": format!("e{number}"), "tenant_id": tenant, "user_id": user,
                "digest": format!("cormorant {number}"),
            });
            agent.post(&scope(tenant, user, "/events"), json!({"event": event})).expect(202);
        }
    }
    let mut ids = Vec::new();
    for number in 0..4 {
        let memory = json!({
            "layer": "project", "identifiers": {"projectId": "p"}, "content": format!("Gull {number} nests on the roof"),
            "metadata": {"tags": ["birds"]},
        });
        ids.push(
            agent.post("/v1/memories", memory).expect(201).json["memory"]["id"].as_str().unwrap().to_owned(),
        );
    }
    agent.patch(&format!("/v1/memories/{}", ids[0]), json!({"content": "Gull 0 flew away"})).expect(200);
    agent.delete(&format!("/v1/memories/{}", ids[1])).expect(200);
    let fact = json!({
        "layer": "project", "identifiers": {"projectId": "p"}, "factType": "rule", "subject": "The roof",
        "predicate": "belongs_to", "object": "gulls",
    });
    agent.post("/v1/facts", fact).expect(201);
    agent.delete(&scope(tenant, "dave", "/memory")).expect(200);
    // The trail of one user is cut short, which stays to be seen.
    let cut = client(server, "admin", tenant).with_header("x-justification", "ticket 4711");
    let nothing = json!({"events_days": 36_500, "audit_days": 0, "snapshots_days": 0});
    cut.post(&scope(tenant, "carol", "/retention:apply"), nothing).expect(200);
    conversations
}

/// What the server answers to questions about all of it.
#[track_caller]
fn hear_everything(server: &TestServer, tenant: &str, conversations: &[String]) -> Vec<Value> {
    let (alice, bob) = (client(server, "alice", tenant), client(server, "bob", tenant));
    let mut heard = Vec::new();
    let mut ask = |client: &Client, path: &str| heard.push(json!([path, client.get(path).json]));
    for id in conversations {
        for path in ["", "/memberships", "/forks"] {
            ask(&alice, &format!("/v1/conversations/{id}{path}"));
        }
        for query in ["channel=history", "channel=memory", "channel=history&forks=all"] {
            ask(&alice, &format!("/v1/conversations/{id}/entries?{query}"));
            ask(&bob, &format!("/v1/conversations/{id}/entries?{query}"));
        }
    }
    for path in ["/v1/conversations?mode=all", "/v1/ownership-transfers"] {
        ask(&alice, path);
        ask(&bob, path);
    }
    let agent = agent(server, tenant);
    ask(&agent, "/v1/changes?limit=1000");
    for user in ["alice", "carol", "dave"] {
        for path in ["/files/notes.md", "/files/plans/next.md", "/files/plans/final.md", "/files:list"] {
            ask(&agent, &scope(tenant, user, path));
        }
        let admin = server.as_user("admin").with_key("agent").in_tenant(tenant);
        ask(&admin, &scope(tenant, user, "/audit?limit=500"));
    }
    let mut search = |client: &Client, path: &str, body: Value| {
        heard.push(json!([path, body, client.post(path, body.clone()).expect(200).json]));
    };
    for word in ["walrus", "zinnober", "heron", "bob was"] {
        search(&alice, "/v1/conversations/search", json!({"query": word, "searchType": "fulltext"}));
    }
    search(&agent, &scope(tenant, "carol", "/events:search"), json!({"query": "cormorant 33"}));
    let roof = json!({"query": "gulls on the roof", "identifiers": {"projectId": "p"}, "threshold": 0, "dedupe": false});
    search(&agent, "/v1/memories:search", roof);
    heard
}

/// The same answers, but for what is measured anew each time.
#[track_caller]
fn assert_heard_alike(here: Vec<Value>, there: Vec<Value>) {
    assert_eq!(here.len(), there.len());
    for (here, there) in here.into_iter().zip(there) {
        assert_eq!(settled(here.clone()), settled(there), "{here}");
    }
}

fn settled(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for name in
                ["tookMs", "took_ms", "tookMillis", "durationMs", "latencyMs", "requestId", "request_id"]
            {
                members.shift_remove(name);
            }
            for (_, member) in members.iter_mut() {
                *member = settled(member.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = settled(item.take())),
        _ => {}
    }
    value
}

/// SQLite → PostgreSQL → SQLite, without a server in between.
fn goes_both_ways(toml: &str) {
    let (_folder, archive) = archives();
    let (embedded, postgres, back) = (Place::sqlite(toml), Place::postgres(toml), Place::sqlite(toml));
    let mut server = embedded.serve();
    let (ours, theirs) = (say_everything(&server, "acme"), say_everything(&server, "globex"));
    assert!(server.stop().success());

    let exported = embedded.export(&archive("embedded"), &[]);
    assert_eq!(embedded.checksum(&[]), exported);
    assert_eq!(postgres.import(&archive("embedded")), exported);
    assert_eq!(postgres.checksum(&[]), exported);
    assert_eq!(postgres.export(&archive("postgres"), &[]), exported);
    assert_eq!(back.import(&archive("postgres")), exported);
    assert_eq!(back.checksum(&[]), exported);

    let servers = [embedded.serve(), postgres.serve(), back.serve()];
    for (tenant, conversations) in [("acme", &ours), ("globex", &theirs)] {
        let [here, there, again] =
            servers.each_ref().map(|server| hear_everything(server, tenant, conversations));
        assert_heard_alike(here.clone(), there);
        assert_heard_alike(here, again);
    }
    // Both go on where it was: what is written now clashes with nothing.
    for server in &servers {
        say_everything(server, "initech");
        client(server, "alice", "acme")
            .post(&format!("/v1/conversations/{}/entries", ours[2]), history("later"))
            .expect(201);
    }
}

#[test]
fn what_goes_to_postgres_and_back_is_the_same() {
    goes_both_ways("");
}

#[test]
fn what_is_encrypted_goes_to_postgres_and_back_and_is_the_same() {
    goes_both_ways(KEY);
}

#[test]
fn an_archive_of_an_encrypted_store_holds_no_plain_text_and_needs_the_key() {
    let (_folder, archive) = archives();
    let source = Place::sqlite(KEY);
    let mut server = source.serve();
    say_everything(&server, "acme");
    assert!(server.stop().success());
    // The key is not needed to make one.
    let source = source.configured("");
    let exported = source.export(&archive("sealed"), &[]);
    // What the archive holds is what comes out of it.
    let copy = Place::sqlite(KEY);
    assert_eq!(copy.import(&archive("sealed")), exported);
    let content = std::fs::read(copy.database()).unwrap();
    for (word, readable) in [("cormorant", false), ("Gull", false), ("alice", true)] {
        let found = content.windows(word.len()).any(|window| window == word.as_bytes());
        assert_eq!(found, readable, "{word}");
    }
    for (toml, reason) in [("", "does not name \"dek\""), (OTHER_KEY, "which is not configured")] {
        let target = Place::sqlite(toml);
        let refused = target.refusal(&["import", archive("sealed").to_str().unwrap()]);
        assert!(refused.contains(reason), "{refused}");
        target.serve();
    }
    let plain = Place::sqlite("");
    let mut server = plain.serve();
    say_everything(&server, "acme");
    assert!(server.stop().success());
    plain.export(&archive("plain"), &[]);
    let refused = Place::sqlite(KEY).refusal(&["import", archive("plain").to_str().unwrap()]);
    assert!(refused.contains("content that is not encrypted"), "{refused}");
}

/// Where the bytes of attachments are, as a configuration says it.
fn keeping_bytes_in(folder: &TempDir) -> String {
    format!("[attachments]\ndirectory = {:?}\n{KEY}", folder.path())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Uploads a file of this one word and links it; where it is found.
#[track_caller]
fn attach(server: &TestServer, tenant: &str, word: &str) -> String {
    let alice = client(server, "alice", tenant);
    let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n";
    let bytes = format!("{head}{word}\r\n--x--\r\n").into_bytes();
    let form = Body::Raw { content_type: Some("multipart/form-data; boundary=x"), bytes };
    let id = alice.send("POST", "/v1/attachments", form).expect(201).id();
    let conversation = alice.post("/v1/conversations", json!({})).expect(201).id();
    let content = json!([{"role": "USER", "attachments": [{"attachmentId": id}]}]);
    let entry = json!({"contentType": "history", "content": content});
    alice.post(&format!("/v1/conversations/{conversation}/entries"), entry).expect(201);
    format!("/v1/attachments/{id}")
}

#[test]
fn attachments_move_with_their_bytes() {
    let bytes = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let here = Place::sqlite(&keeping_bytes_in(&bytes[0]));
    let there = Place::postgres(&keeping_bytes_in(&bytes[1]));
    let (_kept, archive) = archives();
    let mut server = here.serve();
    let (walrus, otter) = (attach(&server, "acme", "walrus"), attach(&server, "globex", "otter"));
    server.stop();

    let all = archive("all.mtz");
    let exported = here.run(&["export", "-o", all.to_str().unwrap()]);
    assert!(exported.contains("It has 2 attachments with 2 files."), "{exported}");
    there.run(&["import", all.to_str().unwrap(), "--verify"]);
    let imported = there.run(&["import", all.to_str().unwrap()]);
    assert!(imported.contains("It has 2 attachments with 2 files."), "{imported}");
    let server = there.serve();
    assert_eq!(client(&server, "alice", "acme").get(&walrus).expect(200).text, "walrus");
    assert_eq!(client(&server, "alice", "globex").get(&otter).expect(200).text, "otter");

    let (one, alone) = (archive("one.mtz"), Place::sqlite(&keeping_bytes_in(&bytes[2])));
    here.export(&one, &["--tenant", "globex"]);
    alone.import(&one);
    let server = alone.serve();
    assert_eq!(client(&server, "alice", "globex").get(&otter).expect(200).text, "otter");
    client(&server, "alice", "acme").get(&walrus).expect(404);
}

#[test]
fn an_export_says_which_bytes_it_did_not_find() {
    let bytes = tempfile::tempdir().unwrap();
    let here = Place::sqlite(&keeping_bytes_in(&bytes));
    let (_kept, archive) = archives();
    let mut server = here.serve();
    attach(&server, "acme", "walrus");
    attach(&server, "globex", "otter");
    server.stop();
    // One of them, it does not matter which.
    let (mut folders, mut files) = (vec![bytes.path().to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert_eq!(files.len(), 2, "{files:?}");
    std::fs::remove_file(&files[0]).unwrap();
    let exported = here.run(&["export", "-o", archive("some.mtz").to_str().unwrap()]);
    assert!(exported.contains("It has 2 attachments with 1 of 2 files"), "{exported}");
}

#[test]
fn attachments_whose_bytes_are_left_out_are_whole_once_they_are_copied() {
    let bytes = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) =
        (Place::postgres(&keeping_bytes_in(&bytes.0)), Place::sqlite(&keeping_bytes_in(&bytes.1)));
    let (_kept, archive) = archives();
    let archive = archive("all.mtz");
    let mut server = here.serve();
    let path = attach(&server, "acme", "walrus");
    server.stop();

    let said = "It has 1 attachment without the bytes";
    let exported = here.run(&["export", "-o", archive.to_str().unwrap(), "--without-attachments"]);
    assert!(exported.contains(said), "{exported}");
    let imported = there.run(&["import", archive.to_str().unwrap()]);
    assert!(imported.contains(said), "{imported}");
    let server = there.serve();
    let alice = client(&server, "alice", "acme");
    alice.get(&path).expect(404);
    copy(bytes.0.path(), bytes.1.path());
    assert_eq!(alice.get(&path).expect(200).text, "walrus");
}

#[test]
fn one_tenant_moves_alone() {
    let (_folder, archive) = archives();
    let (source, target) = (Place::sqlite(""), Place::postgres(""));
    let mut server = source.serve();
    let (ours, _) = (say_everything(&server, "acme"), say_everything(&server, "globex"));
    let heard = hear_everything(&server, "acme", &ours);
    assert!(server.stop().success());
    let refused = source.refusal(&["export", "--tenant", "acne", "-o", archive("none").to_str().unwrap()]);
    assert!(refused.contains("nothing of a tenant 'acne'") && !archive("none").exists(), "{refused}");

    let exported = source.export(&archive("acme"), &["--tenant", "acme"]);
    let mut server = target.serve();
    let theirs = say_everything(&server, "initech");
    let before = hear_everything(&server, "initech", &theirs);
    let running = target.refusal(&["import", archive("acme").to_str().unwrap()]);
    assert!(running.contains("server runs on this store"), "{running}");
    assert!(server.stop().success());
    assert_eq!(target.import(&archive("acme")), exported);
    let server = target.serve();
    assert_heard_alike(heard, hear_everything(&server, "acme", &ours));
    assert_heard_alike(before, hear_everything(&server, "initech", &theirs));
    let others = client(&server, "alice", "globex").get("/v1/conversations").expect_page().data;
    assert!(others.is_empty(), "somebody else's conversations came along: {others:?}");
}

#[test]
fn an_export_is_one_snapshot_while_a_server_writes() {
    let (_folder, archive) = archives();
    for (source, target) in
        [(Place::sqlite(""), Place::postgres("")), (Place::postgres(""), Place::sqlite(""))]
    {
        let server = source.serve();
        let alice = client(&server, "alice", "acme");
        let id = alice.post("/v1/conversations", json!({"title": "Busy"})).expect(201).id();
        let path = format!("/v1/conversations/{id}/entries");
        std::thread::scope(|threads| {
            let writing = threads.spawn(|| {
                for number in 0..190 {
                    alice.post(&path, history(&format!("number {number}"))).expect(201);
                }
            });
            let mut exports = 0;
            while !writing.is_finished() || exports == 0 {
                source.export(&archive("busy"), &[]);
                exports += 1;
            }
            writing.join().unwrap();
        });
        target.import(&archive("busy"));
        let copy = target.serve();
        let entries =
            client(&copy, "alice", "acme").get(&format!("{path}?limit=200")).expect_page().data.len();
        let feed = agent(&copy, "acme").get("/v1/changes?limit=1000").expect(200).json;
        let told = feed.to_string().matches("entry.appended").count();
        assert_eq!(entries, told, "each entry and what is told of it are one commit: {feed}");
    }
}

/// Content of so many megabytes, put there without a server.
fn fill(place: &Place, megabytes: usize) {
    let mut server = place.serve();
    say_everything(&server, "acme");
    assert!(server.stop().success());
    let mut database = Connection::open(place.database()).unwrap();
    let transaction = database.transaction().unwrap();
    let group: Vec<u8> =
        transaction.query_row("SELECT id FROM groups LIMIT 1", [], |row| row.get(0)).unwrap();
    let mut seed = 1_u64;
    for ord in 0..megabytes * 4 {
        // It must not become small when it is compressed.
        let content: Vec<u8> = (0..256 * 1024 / 8)
            .flat_map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed | 0x2020_2020_2020_2020).to_le_bytes()
            })
            .collect();
        let id: Vec<u8> = (ord as u128 + (1 << 100)).to_be_bytes().to_vec();
        transaction
            .execute(
                "INSERT INTO entries (group_id, conversation_id, channel, ord, id, content_type, created_at, content) \
                 VALUES (?1, ?1, 1, ?2, ?3, 'history', 1, ?4)",
                rusqlite::params![group, 1000 + ord as i64, id, content],
            )
            .unwrap();
    }
    transaction.commit().unwrap();
}

/// The most memory a process has had, in megabytes, when it has come to its end.
fn peak_of(mut process: Child) -> u64 {
    let (mut peak, status) = (0, format!("/proc/{}/status", process.id()));
    while process.try_wait().unwrap().is_none() {
        let told = std::fs::read_to_string(&status).unwrap_or_default();
        let high = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = high.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(process.wait().unwrap().success());
    peak / 1024
}

#[test]
fn a_big_store_needs_little_memory_and_a_killed_import_is_noticed() {
    const MEGABYTES: usize = 256;
    let (_folder, archive) = archives();
    let source = Place::sqlite("");
    fill(&source, MEGABYTES);
    let path = archive("big");
    let path = path.to_str().unwrap();
    let quiet = |mut command: Command| command.stdout(Stdio::null()).spawn().unwrap();
    let peak = peak_of(quiet(source.command(&["export", "-o", path])));
    assert!(peak < 128, "an export of {MEGABYTES} MB needed {peak} MB");
    let exported = source.checksum(&[]);
    assert_eq!(digest(&source.run(&["import", path, "--verify"])), exported);
    let archived = std::fs::read(path).unwrap();

    for target in [Place::sqlite(""), Place::postgres("")] {
        // Half of it, and then the end.
        let mut import = target.command(&["import", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        import.stdin.as_mut().unwrap().write_all(&archived[..archived.len() / 2]).unwrap();
        import.kill().unwrap();
        import.wait().unwrap();
        let refused = match target.try_serve() {
            Ok(_) => panic!("a server starts on half an import"),
            Err(failed) => failed.log,
        };
        assert!(refused.contains("run `memtrove import` with the same archive again"), "{refused}");
        assert!(target.refusal(&["export", "--checksum"]).contains("has not come to its end"));
        let again = quiet(target.command(&["import", path]));
        let peak = peak_of(again);
        // The embedded engine keeps 64 MB of pages.
        assert!(peak < 192, "an import of {MEGABYTES} MB needed {peak} MB");
        assert_eq!(target.checksum(&[]), exported);
        target.serve();
    }
}

#[test]
fn what_is_no_archive_or_half_of_one_changes_nothing() {
    let (_folder, archive) = archives();
    let source = Place::sqlite("");
    let mut server = source.serve();
    say_everything(&server, "acme");
    assert!(server.stop().success());
    source.export(&archive("whole"), &[]);
    let whole = std::fs::read(archive("whole")).unwrap();
    std::fs::write(archive("cut"), &whole[..whole.len() - 9]).unwrap();
    std::fs::write(archive("begun"), &whole[..whole.len() / 50]).unwrap();
    std::fs::write(archive("empty"), "").unwrap();
    std::fs::write(archive("text"), "not an archive").unwrap();
    for (name, reason) in [
        ("cut", "the archive is cut off"),
        ("begun", "is cut off at its beginning: the file ends before the archive does"),
        ("empty", "the archive is empty"),
        ("text", "is not a memtrove archive"),
        ("away", "cannot read"),
    ] {
        let target = Place::sqlite("");
        for more in [&[][..], &["--verify"], &["--dry-run"]] {
            let path = archive(name);
            let refused = target.refusal(&[&["import", path.to_str().unwrap()], more].concat());
            assert!(refused.contains(reason), "{refused}");
            assert!(!target.database().exists(), "nothing was made for it");
        }
    }
    // A pipe is written as it is read, so that half of one is noticed at its end.
    let target = Place::sqlite("");
    let cut = std::fs::File::open(archive("cut")).unwrap();
    let output = target.command(&["import", "-"]).stdin(cut).output().unwrap();
    assert!(printed(&output).contains("the archive is cut off"), "{}", printed(&output));
    assert!(target.try_serve().is_err());
    let whole = std::fs::File::open(archive("whole")).unwrap();
    let output = target.command(&["import", "-"]).stdin(whole).output().unwrap();
    assert!(printed(&output).contains("Going on after"), "{}", printed(&output));
    assert_eq!(target.checksum(&[]), source.checksum(&[]));
    let refused = target.refusal(&["import", archive("whole").to_str().unwrap()]);
    assert!(refused.contains("the store has data of tenant 'acme' already"), "{refused}");
}

#[test]
fn an_archive_goes_through_a_pipe() {
    let (source, target) = (Place::sqlite(""), Place::sqlite(""));
    let mut server = source.serve();
    say_everything(&server, "acme");
    assert!(server.stop().success());
    let mut export = source.command(&["export", "-o", "-"]).stdout(Stdio::piped()).spawn().unwrap();
    let output = target.command(&["import", "-"]).stdin(export.stdout.take().unwrap()).output().unwrap();
    assert!(export.wait().unwrap().success());
    assert_eq!(digest(&printed(&output)), source.checksum(&[]));
    assert!(printed(&output).contains(&format!("into {}, read", target.database().display())));
    let read = source.run(&["export", "-o", "copy.mtz"]);
    assert!(read.contains(&format!("from {} to copy.mtz", source.database().display())), "{read}");
}
