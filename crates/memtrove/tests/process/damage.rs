//! A database whose file was damaged: what the doctor says of it, and what a server answers that meets it.
use memtrove_testkit::server::{Client, Setup, TestServer};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_memtrove");
const PAGE: usize = 4096;

/// A database in a folder that is copied for every test.
struct Sample {
    folder: TempDir,
    conversation: String,
}

static SAMPLE: LazyLock<Sample> = LazyLock::new(Sample::new);

impl Sample {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let mut server = setup(&folder.path().join("data")).start();
        let (alice, agent) =
            (server.as_user("alice").with_key("agent"), server.anonymous().with_key("agent"));
        let conversation = alice.post("/v1/conversations", json!({"title": "Chat"})).expect(201).id();
        let long = "many words of no matter ".repeat(30);
        for number in 0..60 {
            let text = format!("walrus {number} {long}");
            alice.post(&format!("/v1/conversations/{conversation}/entries"), said(&text)).expect(201);
            write_file(&agent, "alice", number, &text);
            // Somebody who is forgotten, so that there are pages that nobody uses.
            write_file(&agent, "bob", number, &text);
            let memory = json!({"layer": "user", "identifiers": {"userId": "alice"}, "content": text});
            alice.post("/v1/memories", memory).expect(201);
        }
        // Longer than a page.
        write_file(&agent, "alice", 100, &"far too long ".repeat(3000));
        agent.delete("/v1/tenants/default/users/bob/memory").expect(200);
        assert!(server.stop().success());
        Self { folder, conversation }
    }

    /// A copy of its own, for a server or a doctor.
    fn copy(&self) -> TempDir {
        let copy = TempDir::new().unwrap();
        let data = copy.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::copy(self.folder.path().join("data/memtrove.db"), data.join("memtrove.db")).unwrap();
        copy
    }
}

fn setup(data: &Path) -> Setup {
    Setup::new(BINARY).data_dir(data).toml("[store]\nurl = \"sqlite\"")
}

fn said(text: &str) -> Value {
    json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]})
}

fn write_file(agent: &Client, user: &str, number: usize, text: &str) {
    let document = json!({"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": text}});
    let path = format!("/v1/tenants/default/users/{user}/files/notes/{number}.md");
    let put = agent.with_header("if-match", "*");
    put.send("PUT", &path, memtrove_testkit::server::Body::Json(json!({"document": document}))).expect(200);
}

/// The bytes of a database, and which page is what.
struct File {
    bytes: Vec<u8>,
    pages: Vec<(String, usize, String)>,
}

impl File {
    fn read(database: &Path) -> Self {
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let mut statement = connection.prepare("SELECT name, pageno, pagetype FROM dbstat").unwrap();
        let rows =
            statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize, row.get(2)?)));
        let pages = rows.unwrap().map(Result::unwrap).collect();
        Self { bytes: std::fs::read(database).unwrap(), pages }
    }

    /// Where the pages of a table or index are that are of this kind: `leaf`, `internal` or `overflow`.
    fn pages_of(&self, name: &str, kind: &str) -> Vec<Range<usize>> {
        let of_kind = self.pages.iter().filter(|(of, _, is)| of == name && is == kind);
        let found: Vec<_> = of_kind.map(|(_, number, _)| (number - 1) * PAGE..number * PAGE).collect();
        assert!(!found.is_empty(), "{name} has no page that is {kind}");
        found
    }

    fn page_of(&mut self, name: &str, kind: &str) -> &mut [u8] {
        let pages = self.pages_of(name, kind);
        &mut self.bytes[pages[pages.len() / 2].clone()]
    }

    fn number_at(&self, at: usize) -> usize {
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().unwrap()) as usize
    }
}

type Damage = (&'static str, fn(&mut File));

/// Ways in which a disk, a file system or a person damages a database. SQLite's own check finds each of them.
const DAMAGES: [Damage; 20] = [
    ("the header of a leaf of a table is zeros", |file| file.page_of("entries", "leaf")[..8].fill(0)),
    ("a leaf of a table is zeros", |file| file.page_of("files", "leaf").fill(0)),
    ("an inner page of a table is zeros", |file| file.page_of("entries", "internal").fill(0)),
    ("an inner page of a table leads nowhere", |file| {
        file.page_of("entries", "internal")[8..12].copy_from_slice(&[0x7F, 0xFF, 0xFF, 0]);
    }),
    ("an inner page of a table leads to another table", |file| {
        let other = (file.pages_of("files", "leaf")[0].start / PAGE + 1) as u32;
        file.page_of("entries", "internal")[8..12].copy_from_slice(&other.to_be_bytes());
    }),
    ("a leaf of an index is zeros", |file| file.page_of("files_by_folded_path", "leaf").fill(0)),
    ("the header of a leaf of an index is zeros", |file| {
        file.page_of("memories_by_time", "leaf")[..8].fill(0);
    }),
    ("rows are said to lie beyond the page", |file| {
        file.page_of("memories", "leaf")[8..12].copy_from_slice(&[0xFF; 4]);
    }),
    ("there are said to be more rows than fit", |file| {
        file.page_of("memories", "leaf")[3..5].copy_from_slice(&[0x40, 0]);
    }),
    ("a free block is said to lie where rows are listed", |file| {
        file.page_of("memories", "leaf")[1..3].copy_from_slice(&[0, 12]);
    }),
    ("the content of a page is noise", |file| {
        for (number, byte) in file.page_of("memories", "leaf")[8..].iter_mut().enumerate() {
            *byte ^= (number * 37 % 251) as u8;
        }
    }),
    ("what does not fit into a page leads nowhere", |file| file.page_of("files", "overflow").fill(0xEE)),
    ("what does not fit into a page ends too early", |file| {
        file.page_of("files", "overflow")[..4].fill(0);
    }),
    ("two pages are swapped", |file| {
        let (one, other) =
            (file.pages_of("files", "leaf")[0].clone(), file.pages_of("entries", "leaf")[0].clone());
        let kept = file.bytes[one.clone()].to_vec();
        file.bytes.copy_within(other.clone(), one.start);
        file.bytes[other].copy_from_slice(&kept);
    }),
    ("a page of another table stands in its place", |file| {
        let (from, to) =
            (file.pages_of("memories", "leaf")[0].clone(), file.pages_of("entries", "leaf")[0].clone());
        file.bytes.copy_within(from, to.start);
    }),
    ("the list of free pages begins nowhere", |file| {
        assert!(file.number_at(32) > 0, "there are no free pages");
        file.bytes[32..36].copy_from_slice(&[0x7F, 0xFF, 0xFF, 0]);
    }),
    ("the list of free pages is shorter than it says", |file| {
        let count = file.number_at(36) as u32 + 7;
        file.bytes[36..40].copy_from_slice(&count.to_be_bytes());
    }),
    ("a page of the list of free pages is noise", |file| {
        let first = (file.number_at(32) - 1) * PAGE;
        file.bytes[first..first + 64].fill(0x55);
    }),
    ("the file is cut in half", |file| {
        let half = file.bytes.len() / PAGE / 2 * PAGE;
        file.bytes.truncate(half);
    }),
    ("the schema is zeros", |file| file.bytes[100..108].fill(0)),
];

/// What SQLite says, on a copy, because it may write.
fn sqlite_says(database: &Path, pragma: &str) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(database, &copy).unwrap();
    let checked = Connection::open(&copy).and_then(|connection| {
        let mut statement = connection.prepare(&format!("PRAGMA {pragma}"))?;
        statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    });
    let mut said = checked.unwrap_or_else(|error| vec![error.to_string()]);
    said.retain(|line| line != "ok");
    said
}

/// What the doctor says of a data folder, and whether it is content.
fn doctor(data: &Path) -> (Value, bool) {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEMTROVE_")) {
        command.env_remove(name);
    }
    command
        .args(["doctor", "--json", "--listen", "127.0.0.1:0", "--store", "sqlite", "--data-dir"])
        .arg(data);
    let output = command.current_dir(data).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.success())
}

fn damage(data: &Path, damage: fn(&mut File)) -> PathBuf {
    let database = data.join("memtrove.db");
    let mut file = File::read(&database);
    let before = file.bytes.clone();
    damage(&mut file);
    assert_ne!(file.bytes, before, "nothing was damaged");
    std::fs::write(&database, &file.bytes).unwrap();
    database
}

#[test]
fn the_doctor_names_every_damage_that_sqlite_names() {
    let sound = SAMPLE.copy();
    let (report, content) = doctor(&sound.path().join("data"));
    assert!(content, "{report:#}");
    let integrity = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "integrity");
    assert_eq!(integrity.unwrap()["outcome"], "ok");

    for (name, way) in DAMAGES {
        let copy = SAMPLE.copy();
        let data = copy.path().join("data");
        let database = damage(&data, way);
        let said = sqlite_says(&database, "integrity_check");
        assert!(!said.is_empty(), "{name}: SQLite finds nothing");
        let before = std::fs::read(&database).unwrap();

        let (report, content) = doctor(&data);

        let problems: Vec<&Value> = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|check| {
                check["outcome"] == "problem"
                    && ["database", "integrity"].contains(&check["name"].as_str().unwrap())
            })
            .collect();
        assert!(!content && !problems.is_empty(), "{name}: SQLite says {said:?}, the doctor {report:#}");
        let told = format!("{} {}", problems[0]["message"], problems[0]["fix"]);
        assert!(told.contains("damaged") && told.contains("restore a backup"), "{name}: {told}");
        assert!(std::fs::read(&database).unwrap() == before, "{name}: the doctor changed the file");
    }
}

#[test]
fn the_doctor_says_that_a_database_is_an_empty_file() {
    let data = TempDir::new().unwrap();
    std::fs::write(data.path().join("memtrove.db"), "").unwrap();
    let (report, content) = doctor(data.path());
    assert!(content, "a server would start: {report:#}");
    let checks = report["checks"].as_array().unwrap();
    let database = checks.iter().find(|check| check["name"] == "database").unwrap();
    assert_eq!(database["outcome"], "warning", "{database}");
    assert!(database["message"].as_str().unwrap().contains("is an empty file"), "{database}");
    assert!(database["fix"].as_str().unwrap().contains("restore a backup"), "{database}");
}

/// Overwrites pages under a server that runs.
fn overwrite(database: &Path, pages: &[Range<usize>]) {
    let mut file = std::fs::File::options().write(true).open(database).unwrap();
    for page in pages {
        file.seek(SeekFrom::Start(page.start as u64)).unwrap();
        file.write_all(&vec![0xEE; page.len()]).unwrap();
    }
    file.sync_all().unwrap();
}

/// A copy, its database, and where the pages are that this damage is about.
fn copied(name: &str) -> (TempDir, PathBuf, Vec<Range<usize>>) {
    let copy = SAMPLE.copy();
    let database = copy.path().join("data/memtrove.db");
    let pages = File::read(&database).pages_of(name, "leaf");
    (copy, database, pages)
}

/// A server on a copy, which has read next to nothing so far.
fn serving(name: &str) -> (TempDir, TestServer, PathBuf, Vec<Range<usize>>) {
    let (copy, database, pages) = copied(name);
    let server = setup(&copy.path().join("data")).start();
    (copy, server, database, pages)
}

#[test]
fn a_server_that_meets_damage_says_so_and_is_not_ready_any_more() {
    let at = |path: &str| path.replace("{conversation}", &SAMPLE.conversation);
    // What is damaged, what meets it, and the code that the surface has for it.
    let cases = [
        (
            "entries",
            "GET",
            at("/v1/conversations/{conversation}/entries?limit=200"),
            Value::Null,
            "storage_unavailable",
        ),
        (
            "files",
            "GET",
            "/v1/tenants/default/users/alice/files/notes/7.md".into(),
            Value::Null,
            "DEPENDENCY_UNAVAILABLE",
        ),
        (
            "files_by_folded_path",
            "GET",
            "/v1/tenants/default/users/alice/files:list?limit=500".into(),
            Value::Null,
            "DEPENDENCY_UNAVAILABLE",
        ),
        (
            "memory_index",
            "POST",
            "/v1/memories:search".into(),
            json!({"query": "walrus", "identifiers": {"userId": "alice"}}),
            "PROVIDER_ERROR",
        ),
    ];
    for (name, method, path, body, code) in cases {
        let (_copy, server, database, pages) = serving(name);
        let alice = server.as_user("alice").with_key("agent");
        server.anonymous().get("/health/ready").expect(200);
        overwrite(&database, &pages);
        let ask = || match method {
            "GET" => alice.get(&path),
            _ => alice.post(&path, body.clone()),
        };

        for _ in 0..3 {
            let answer = ask().expect(503);
            assert!(answer.text.contains(code), "{name}: {}", answer.describe());
            assert!(
                !answer.text.contains("memtrove.db"),
                "callers learn nothing of our files: {}",
                answer.text
            );
        }

        let ready = server.anonymous().get("/health/ready").expect(503);
        assert_eq!(ready.json["reason"], "the database is damaged", "{name}");
        server.anonymous().get("/health/live").expect(200);
        server.wait_for_log(&["ERROR", "the database is damaged", "restore a backup"]);
        assert_eq!(server.log_lines(&["readiness fails from now on"]).len(), 1, "it is said once");
        let (report, content) = doctor(database.parent().unwrap());
        assert!(
            !content && report.to_string().contains("is damaged"),
            "{name}: beside the server: {report:#}"
        );
    }
}

#[test]
fn a_write_that_meets_damage_is_refused_and_what_is_sound_can_still_be_read() {
    let (copy, database, pages) = copied("entries");
    // Before the start: the writer may look at the newest entries by itself, and what it has seen it does not read again. Then it
    // may also meet the damage by itself.
    overwrite(&database, &pages);
    let server = setup(&copy.path().join("data")).ready_or_not().start();
    let alice = server.as_user("alice").with_key("agent");

    let path = format!("/v1/conversations/{}/entries", SAMPLE.conversation);
    alice.post(&path, said("one more")).expect_error(503, "storage_unavailable");

    server.anonymous().get("/health/ready").expect(503);
    alice.get("/v1/tenants/default/users/alice/files/notes/7.md").expect(200);
    alice.get(&format!("/v1/conversations/{}", SAMPLE.conversation)).expect(200);
}
