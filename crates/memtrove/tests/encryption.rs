//! Encryption at rest as an operator sees it: a real server, its files, and `memtrove rotate-keys`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use memtrove_testkit::server::{Client, Setup, TestServer, engine_is_postgres, stored_of};
use memtrove_testkit::stored::Stored;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_memtrove");
const KEY: &str = "KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=";
const NEW_KEY: &str = "Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc=";

/// Words that are in everything these tests store, and must be nowhere on disk.
const SECRET: &str = "zinnober";

/// A folder for a server's data, and how it is to be encrypted.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn stored(&self) -> Stored {
        stored_of(&self.data())
    }

    fn setup(&self, toml: &str) -> Setup {
        Setup::new(BINARY).data_dir(self.data()).toml(toml)
    }

    #[track_caller]
    fn serve(&self, toml: &str) -> TestServer {
        self.setup(toml).start()
    }

    /// Why a server does not start.
    #[track_caller]
    fn refusal(&self, toml: &str) -> String {
        match self.setup(toml).try_start() {
            Ok(_) => panic!("it started with\n{toml}"),
            Err(failed) => {
                assert_eq!(failed.status.and_then(|status| status.code()), Some(1), "{}", failed.log);
                failed.log
            }
        }
    }

    fn command(&self, toml: &str, args: &[&str]) -> Command {
        let file = self.folder.path().join("memtrove.toml");
        std::fs::write(&file, toml).unwrap();
        let mut command = Command::new(BINARY);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEMTROVE_"))
        {
            command.env_remove(name);
        }
        command.args(args).arg("--config").arg(file);
        self.stored().aim(&mut command);
        command
    }

    fn run(&self, toml: &str, args: &[&str]) -> Output {
        self.command(toml, args).output().unwrap()
    }

    /// What `memtrove rotate-keys` says.
    #[track_caller]
    fn rotate(&self, toml: &str) -> String {
        let output = self.run(toml, &["rotate-keys"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The files or tables in which something is found, by name.
    fn found(&self, what: &str) -> Vec<String> {
        self.stored().holding(what)
    }
}

fn encrypted(key: &str) -> String {
    format!("[encryption.dek]\nkey = \"{key}\"\n")
}

fn exchanged(key: &str, former: &str) -> String {
    format!("[encryption.dek]\nkey = \"{key}\"\ndecryption_keys = [\"{former}\"]\n")
}

fn providers(list: &str, key: &str) -> String {
    format!("[encryption]\nproviders = {list}\n{}", encrypted(key))
}

fn alice(server: &TestServer) -> Client {
    server.as_user("alice").with_key("agent")
}

fn entries(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/entries")
}

/// One of everything that holds content.
struct Said {
    conversation: String,
    entry: String,
    fork: String,
}

const FILE: &str = "/v1/tenants/default/users/alice/files/notes.md";
const EVENTS: &str = "/v1/tenants/default/users/alice/events";

#[track_caller]
fn say_everything(server: &TestServer) -> Said {
    let alice = alice(server);
    let conversation =
        alice.post("/v1/conversations", json!({"title": format!("{SECRET} plans")})).expect(201).id();
    let history = |text: &str| json!({"contentType": "history", "content": [{"role": "USER", "text": text}]});
    let entry = alice.post(&entries(&conversation), history(&format!("buy {SECRET}"))).expect(201).id();
    alice.post(&entries(&conversation), history(&format!("{SECRET} ").repeat(1000))).expect(201);
    let memory = json!({"channel": "memory", "contentType": "LC4J", "content": [{"text": SECRET}]});
    alice.post(&format!("{}/sync", entries(&conversation)), memory).expect(200);
    let fork = alice.post_nothing(&format!("{}/{entry}/fork", entries(&conversation))).expect(201).id();
    let untitled = alice.post(&entries(&fork), history(&format!("instead {SECRET}"))).expect(201);
    assert_eq!(untitled.json["content"][0]["text"], format!("instead {SECRET}"));

    let document =
        json!({"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": SECRET}});
    alice
        .with_header("if-match", "*")
        .with_header("idempotency-key", "once")
        .send("PUT", FILE, memtrove_testkit::server::Body::Json(json!({"document": document})))
        .expect(200);
    let event = json!({"event_id": "e", "tenant_id": "default", "user_id": "alice", "digest": SECRET});
    alice.post(EVENTS, json!({"event": event})).expect(202);
    Said { conversation, entry, fork }
}

#[track_caller]
fn hear_everything(server: &TestServer, said: &Said) {
    let alice = alice(server);
    let conversation = alice.get(&format!("/v1/conversations/{}", said.conversation)).expect(200);
    assert_eq!(conversation.json["title"], format!("{SECRET} plans"));
    assert!(conversation.text_of("lastMessagePreview").contains(SECRET), "{}", conversation.describe());
    let texts = |conversation: &str, channel: &str| {
        let page = alice.get(&format!("{}?channel={channel}", entries(conversation))).expect_page();
        page.data
            .iter()
            .map(|entry| entry["content"][0]["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&said.conversation, "history"),
        [format!("buy {SECRET}"), format!("{SECRET} ").repeat(1000)]
    );
    assert_eq!(texts(&said.conversation, "memory"), [SECRET]);
    assert_eq!(texts(&said.fork, "history"), [format!("instead {SECRET}")]);
    let listed = alice.get("/v1/conversations?query=ZINNOBER&mode=all").expect_page();
    assert_eq!(listed.data.len(), 2, "titles are found whatever they are stored as");
    let file = alice.get(FILE).expect(200);
    assert_eq!(file.json["document"]["content"]["text"], SECRET, "{}", file.describe());
    let found = alice.post(&format!("{EVENTS}:search"), json!({"query": SECRET})).expect(200);
    assert_eq!(found.json["results"][0]["digest"], SECRET, "{}", found.describe());
}

#[test]
fn with_encryption_on_nothing_that_was_said_is_on_disk() {
    let place = Place::new();
    let mut server = place.serve(&encrypted(KEY));
    let said = say_everything(&server);
    assert_eq!(place.found(SECRET), [""; 0], "while the server runs, in its log too");
    hear_everything(&server, &said);
    server.restart();
    hear_everything(&server, &said);
    assert!(server.stop().success());
    assert_eq!(place.found(SECRET), [""; 0], "after it stopped");
    assert!(!server.log().contains(SECRET), "in what it printed");
}

#[test]
fn what_is_given_for_search_is_readable_and_what_would_be_derived_is_not() {
    let place = Place::new();
    let server = place.serve(&encrypted(KEY));
    server.wait_for_log(&["WARN", "found only by their indexedContent", "indexing.auto_derive"]);
    let alice = alice(&server);
    let conversation = alice.post("/v1/conversations", json!({})).expect(201).id();
    let said = |text: &str, indexed: Option<&str>| {
        let mut entry = json!({"contentType": "history", "content": [{"role": "USER", "text": text}]});
        if let Some(indexed) = indexed {
            entry["indexedContent"] = json!(indexed);
        }
        alice.post(&entries(&conversation), entry).expect(201);
    };
    said("walrus", None);
    said("secret", Some("heron"));
    let hits = |word: &str| {
        let found = alice.post("/v1/conversations/search", json!({"query": word})).expect(200);
        found.json["data"].as_array().unwrap().len()
    };
    assert_eq!((hits("walrus"), hits("heron")), (0, 1));
    assert_eq!(place.found("walrus"), [""; 0]);
    assert_ne!(place.found("heron"), [""; 0], "as docs/encryption.md says");
}

#[test]
fn encryption_is_turned_on_exchanged_and_turned_off() {
    let place = Place::new();
    let mut server = place.serve("");
    let said = say_everything(&server);
    server.stop();
    assert_ne!(place.found(SECRET), [""; 0]);

    let printed = place.rotate(&encrypted(KEY));
    assert!(printed.starts_with("Sealed ") && printed.contains(" rows"), "{printed}");
    assert_eq!(place.found(SECRET), [""; 0], "not even traces");
    let mut server = place.serve(&encrypted(KEY));
    hear_everything(&server, &said);
    server.stop();

    let wrapped = place.run(&exchanged(NEW_KEY, KEY), &["rotate-keys", "--wrap-only"]);
    let printed = String::from_utf8(wrapped.stdout).unwrap();
    assert!(printed.starts_with("Wrapped 1 data key with the key "), "{printed}");
    let mut server = place.serve(&encrypted(NEW_KEY));
    hear_everything(&server, &said);
    server.stop();
    place.rotate(&exchanged(KEY, NEW_KEY));
    let mut server = place.serve(&encrypted(KEY));
    hear_everything(&server, &said);
    server.stop();

    let printed = place.rotate(&providers("[\"plain\", \"dek\"]", KEY));
    assert!(printed.starts_with("Unsealed "), "{printed}");
    let server = place.serve("");
    hear_everything(&server, &said);
}

#[test]
fn a_store_can_be_encrypted_little_by_little() {
    let place = Place::new();
    let mut server = place.serve("");
    let said = say_everything(&server);
    server.stop();
    let mut server = place.serve(&providers("[\"dek\", \"plain\"]", KEY));
    hear_everything(&server, &said);
    let quiet = alice(&server).post("/v1/conversations", json!({"title": "quiet walrus"})).expect(201).id();
    assert_eq!(place.found("walrus"), [""; 0], "what is written now is sealed");
    server.stop();
    place.rotate(&encrypted(KEY));
    let server = place.serve(&encrypted(KEY));
    hear_everything(&server, &said);
    alice(&server).get(&format!("/v1/conversations/{quiet}")).expect(200);
}

#[test]
fn a_start_that_could_not_read_what_is_there_is_refused() {
    let place = Place::new();
    let mut server = place.serve("");
    say_everything(&server);
    server.stop();
    let refused = place.refusal(&encrypted(KEY));
    assert!(
        refused.contains("memtrove rotate-keys") && refused.contains("[\"dek\", \"plain\"]"),
        "{refused}"
    );
    let refused = place.run("", &["rotate-keys"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("openssl rand -base64 32"));

    place.rotate(&encrypted(KEY));
    let refused = place.refusal("");
    assert!(refused.contains("encrypted") && refused.contains("encryption.dek.key"), "{refused}");
    let refused = place.refusal(&encrypted(NEW_KEY));
    assert!(refused.contains("not configured") && refused.contains("decryption_keys"), "{refused}");
    let refused = place.run(&encrypted(NEW_KEY), &["rotate-keys"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("decryption_keys"));
    let refused = place.refusal("[encryption.dek]\nkey = \"c2hvcnQ=\"\n");
    assert!(refused.contains("has 5 bytes instead of 32") && !refused.contains("c2hvcnQ"), "{refused}");

    let _server = place.serve(&encrypted(KEY));
    let refused = place.run(&encrypted(KEY), &["rotate-keys"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("other memtrove process"));
}

#[test]
fn tampering_is_an_error_an_alarm_and_nobody_elses_problem() {
    let place = Place::new();
    let mut server = place.serve(&encrypted(KEY));
    let said = say_everything(&server);
    let other = alice(&server).post("/v1/conversations", json!({"title": "other"})).expect(201).id();
    let reason = |server: &TestServer, reason: &str| {
        let metrics = server.anonymous().get("/metrics").expect(200).text;
        let name = format!("memtrove_encryption_failures_total{{reason=\"{reason}\"}} ");
        let line = metrics.lines().find(|line| line.starts_with(&name));
        line.unwrap_or_else(|| panic!("no {name} in\n{metrics}"))[name.len()..].parse::<u64>().unwrap()
    };
    assert_eq!(reason(&server, "bad_tag"), 0, "there from the start, for alarms");

    let stored = place.stored();
    let entry = stored.id(&said.entry);
    let content = stored.bytes(&format!("SELECT content FROM entries WHERE id = {entry}")).unwrap();
    let put = |content: &[u8]| {
        let changed = stored.execute(&format!("UPDATE entries SET content = $1 WHERE id = {entry}"), content);
        assert_eq!(changed, 1);
    };
    let mut damaged = content.clone();
    *damaged.last_mut().unwrap() ^= 1;
    put(&damaged);
    let answer = alice(&server).get(&entries(&said.conversation)).expect_error(500, "internal_error");
    assert!(!answer.text.contains("entry") && !answer.text.contains("tag"), "{}", answer.describe());
    assert_eq!(reason(&server, "bad_tag"), 1);
    server.wait_for_log(&["entry.content", "bad_tag", "stored content cannot be opened"]);

    put(b"[{\"role\":\"USER\",\"text\":\"forged\"}]");
    alice(&server).get(&entries(&said.conversation)).expect(500);
    assert_eq!(reason(&server, "plain_row"), 1);
    let conversation = alice(&server).get(&format!("/v1/conversations/{}", said.conversation)).expect(200);
    assert_eq!(conversation.json["title"], format!("{SECRET} plans"), "what was left alone can be read");
    alice(&server).get(&format!("/v1/conversations/{other}")).expect(200);
    let entry = json!({"contentType": "history", "content": [{"role": "USER", "text": "go on"}]});
    alice(&server).post(&entries(&said.conversation), entry).expect(201);

    put(&content);
    alice(&server).get(&entries(&said.conversation)).expect(200);
    server.stop();
}

#[test]
fn words_that_were_derived_leave_the_disk_when_that_is_turned_off() {
    let place = Place::new();
    let mut server = place.serve(&format!("[indexing]\nauto_derive = \"text\"\n{}", encrypted(KEY)));
    let alice = alice(&server);
    let conversation = alice.post("/v1/conversations", json!({})).expect(201).id();
    for text in ["the walrus", "the heron"] {
        let entry = json!({"contentType": "history", "content": [{"role": "USER", "text": text}]});
        alice.post(&entries(&conversation), entry).expect(201);
    }
    server.stop();
    assert_ne!(place.found("walrus"), [""; 0]);

    place.rotate(&encrypted(KEY));
    for word in ["walrus", "heron"] {
        assert_eq!(place.found(&word[1..]), [""; 0], "{word}");
    }
}

#[test]
fn a_rotation_does_not_say_that_traces_are_gone_while_somebody_reads() {
    let place = Place::new();
    let mut server = place.serve("");
    say_everything(&server);
    server.stop();
    let reader = Connection::open(place.data().join("memtrove.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT COUNT(*) FROM meta").unwrap();

    let refused = place.run(&encrypted(KEY), &["rotate-keys"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("close it and run this again"), "{said}");
    drop(reader);
    assert!(place.rotate(&encrypted(KEY)).starts_with("Going on after"));
    assert_eq!(place.found(SECRET), [""; 0]);
}

/// Makes of the entries there are so many that sealing them takes a while.
fn multiply_entries(stored: &Stored, times: u32) -> u64 {
    let columns = "user_id, client_id, content_type, created_at, content";
    let sql = format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {times}) \
         INSERT INTO entries (group_id, conversation_id, channel, ord, id, {columns}) \
         SELECT group_id, conversation_id, channel, ord + 100 * n, {}, {columns} FROM entries, n WHERE channel = 1",
        stored.fresh_id()
    );
    stored.execute(&sql, &[])
}

/// How many rows the rotation under way has visited.
fn visited(stored: &Stored) -> u64 {
    let position = stored.bytes("SELECT value FROM meta WHERE key = 'rotation'");
    let position: Value = position.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
    position["rows"].as_u64().unwrap_or_default()
}

#[test]
fn a_rotation_that_is_killed_goes_on_where_it_was() {
    let place = Place::new();
    let mut server = place.serve("");
    let said = say_everything(&server);
    server.stop();
    let total = multiply_entries(&place.stored(), 5_000);

    let mut least = 0;
    for kill in 1..=3 {
        let mut rotation =
            place.command(&encrypted(KEY), &["rotate-keys"]).stdout(Stdio::null()).spawn().unwrap();
        let stored = place.stored();
        let deadline = Instant::now() + Duration::from_secs(60);
        while visited(&stored) < least + total / 8 {
            assert!(Instant::now() < deadline, "it does not get on");
            std::thread::sleep(Duration::from_millis(2));
        }
        rotation.kill().unwrap();
        let status = rotation.wait().unwrap();
        assert!(!status.success(), "it was done before kill {kill}");
        least = visited(&stored);
        let refused = place.refusal(&encrypted(KEY));
        assert!(refused.contains("rotate-keys"), "{refused}");
    }
    let printed = place.rotate(&encrypted(KEY));
    assert!(printed.starts_with(&format!("Going on after {least} rows")), "{printed}");
    assert_eq!(place.found(SECRET), [""; 0]);

    let server = place.serve(&encrypted(KEY));
    let mut after = String::new();
    let mut heard = 0;
    loop {
        let page =
            alice(&server).get(&format!("{}?limit=200{after}", entries(&said.conversation))).expect_page();
        heard += page
            .data
            .iter()
            .filter(|entry| entry["content"][0]["text"].as_str().unwrap().contains(SECRET))
            .count();
        match page.after {
            Some(cursor) => after = format!("&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(heard, 2 * 5_001);
}

#[test]
fn the_doctor_says_whether_content_is_encrypted_and_keeps_the_key_to_itself() {
    let place = Place::new();
    let doctor = |toml: &str| {
        let output = place.run(toml, &["doctor", "--listen", "127.0.0.1:0"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(doctor("").contains("✓ encryption: content is stored as plain text"));
    let on = doctor(&exchanged(KEY, NEW_KEY));
    assert!(on.contains("✓ encryption: content is encrypted with the key "), "{on}");
    assert!(on.contains("[redacted]") && !on.contains(KEY) && !on.contains(NEW_KEY), "{on}");
    assert!(doctor(&providers("[\"dek\", \"plain\"]", KEY)).contains("plain content is read too"));
}

#[test]
fn the_doctor_says_of_a_store_what_a_start_would_say_and_leaves_it_alone() {
    let place = Place::new();
    let look = |toml: &str| {
        let output = place.run(toml, &["doctor", "--listen", "127.0.0.1:0"]);
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let doctor = |toml: &str| {
        let before = place.stored().everything();
        let said = look(toml);
        assert!(place.stored().everything() == before, "the doctor changed something");
        said
    };
    let assert_refused_alike = |toml: &str| {
        let log = place.refusal(toml);
        let sentence = log.lines().find_map(|line| line.strip_prefix("error: ")).unwrap();
        let (code, said) = doctor(toml);
        assert!(code == 1 && said.contains(&format!("✗ encryption: {sentence}\n")), "{sentence}\n{said}");
    };
    let assert_fine = |toml: &str, expected: &str| {
        let (code, said) = doctor(toml);
        assert!(code == 0 && said.contains(&format!("✓ encryption: {expected}")), "{expected}\n{said}");
    };

    let mut server = place.serve("");
    say_everything(&server);
    server.stop();
    assert_refused_alike(&encrypted(KEY));
    assert_fine("", "content is stored as plain text");
    assert_fine(&providers("[\"dek\", \"plain\"]", KEY), "content is encrypted");

    place.rotate(&encrypted(KEY));
    assert_refused_alike("");
    assert_refused_alike(&encrypted(NEW_KEY));
    assert_fine(&encrypted(KEY), "content is encrypted");
    assert_fine(&exchanged(NEW_KEY, KEY), "content is encrypted");

    let mut server = place.serve(&encrypted(KEY));
    assert!(look(&encrypted(NEW_KEY)).1.contains("✗ encryption: "), "before a restart it is worth knowing");
    assert!(look(&encrypted(KEY)).1.contains("✓ encryption: "));
    server.kill();
    // Killed, SQLite leaves its log behind, and what is in the log counts too.
    assert!(engine_is_postgres() || place.data().join("memtrove.db-wal").exists());
    assert_eq!(look(&encrypted(KEY)).0, 0);
    assert_eq!(look("").0, 1);
}
