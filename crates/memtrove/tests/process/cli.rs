//! The binary as its user sees it: what it prints, what it refuses, how it starts and stops.
use memtrove_testkit::embedder::{DIMENSIONS, Embedder};
use memtrove_testkit::postgres::Database;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn memtrove(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memtrove"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEMTROVE_")) {
        command.env_remove(name);
    }
    // Data lies with the user, wherever a command is run.
    command.current_dir(folder).env("XDG_DATA_HOME", folder).args(args);
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    memtrove(folder, args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn folder_with(toml: &str) -> TempDir {
    let folder = folder();
    std::fs::write(folder.path().join("memtrove.toml"), toml).unwrap();
    folder
}

/// A server on a free port. Killed when dropped.
struct Server {
    process: Child,
    printed: String,
}

impl Server {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut process =
            memtrove(folder, args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        while !printed.contains("curl") {
            let line = lines.next().unwrap_or_else(|| panic!("it ended after printing:\n{printed}")).unwrap();
            printed.push_str(&line);
            printed.push('\n');
        }
        Self { process, printed }
    }

    fn url(&self) -> String {
        let at = self.printed.find("http://").unwrap();
        self.printed[at..].split_whitespace().next().unwrap().to_owned()
    }

    fn signal(&self, name: &str) {
        assert!(
            Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap().success()
        );
    }

    fn wait(&mut self) -> std::process::ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it did not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_start_prints_where_what_and_a_line_to_paste() {
    let folder = folder();
    for args in [&["--listen", "127.0.0.1:0"][..], &["serve", "--listen", "localhost:0"]] {
        let mut server = Server::start(folder.path(), args);
        let url = server.url();
        assert!(url.starts_with("http://127.0.0.1:") && !url.ends_with(":0"), "{url}");
        let data = folder.path().join("memtrove");
        assert!(server.printed.contains(data.to_str().unwrap()), "{}", server.printed);
        assert!(server.printed.contains("mode     local"), "{}", server.printed);
        assert!(!server.printed.contains('\x1b'), "colours are for terminals");

        let line = server.printed.lines().find(|line| line.trim().starts_with("curl")).unwrap();
        let pasted =
            Command::new("sh").args(["-c", &format!("{line} -w ' %{{http_code}}'")]).output().unwrap();
        assert!(stdout(&pasted).ends_with(" 201"), "{line}\nanswered {}", stdout(&pasted));

        server.signal("-TERM");
        assert!(server.wait().success());
    }
}

#[test]
fn an_interrupt_ends_it_gracefully_and_the_folder_can_be_used_again() {
    let folder = folder();
    for _ in 0..2 {
        let mut server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
        server.signal("-INT");
        assert!(server.wait().success());
    }
}

#[test]
fn a_server_that_stops_says_so_before_it_refuses_anybody() {
    let folder = folder_with("[server]\nshutdown_delay = \"1s\"\n");
    let mut server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let status = |path: &str| {
        let url = format!("{}{path}", server.url());
        stdout(&Command::new("curl").args(["-s", "-w", " %{http_code}", &url]).output().unwrap())
    };
    assert!(status("/health/ready").ends_with(" 200"), "{}", status("/health/ready"));
    server.signal("-TERM");
    let deadline = Instant::now() + Duration::from_secs(1);
    while status("/health/ready").ends_with(" 200") {
        assert!(Instant::now() < deadline, "it did not say that it stops");
    }
    assert!(status("/health/ready").contains("the server is stopping"), "{}", status("/health/ready"));
    assert!(status("/health/live").ends_with(" 200"), "{}", status("/health/live"));
    assert!(server.wait().success());
}

#[test]
fn contradictions_stop_the_start_with_every_problem() {
    let folder = folder_with("[server]\nlisten = \"0.0.0.0:0\"\n[store]\nurl = \"postgres://u:hush@db\"\n");
    let refused = run(folder.path(), &["serve"]);
    assert_eq!(refused.status.code(), Some(1));
    let complaint = stderr(&refused);
    assert!(complaint.contains("server.listen") && complaint.contains("auth.mode = \"jwt\""), "{complaint}");
    assert!(complaint.contains("store.url: names no database; write it as postgres://"), "{complaint}");
    assert!(!complaint.contains("hush"), "{complaint}");
    assert!(!folder.path().join("memtrove").exists(), "nothing was made");
}

#[test]
fn a_mistyped_key_stops_the_start() {
    let folder = folder_with("[server]\nlistem = \"127.0.0.1:0\"\n");
    let refused = run(folder.path(), &["serve"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        stderr(&refused),
        "error: memtrove.toml: server.listem is not a setting; did you mean server.listen?\n"
    );
}

#[test]
fn a_taken_port_and_a_taken_folder_are_explained() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(folder.path(), &["serve", "--listen", &address]);
    assert!(stderr(&refused).contains("choose another port with --listen"), "{}", stderr(&refused));

    let _server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let refused = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        stderr(&refused).contains("another memtrove process uses this data folder"),
        "{}",
        stderr(&refused)
    );
    let refused = run(folder.path(), &["evict", "--older-than", "P1D"]);
    assert!(stderr(&refused).contains("use --url"), "{}", stderr(&refused));
}

#[test]
fn doctor_shows_every_key_with_its_source_and_no_secret() {
    let toml = "[auth]\nmode = \"jwt\"\n[auth.jwt]\nhmac_secret = \"hush-hush\"\n[auth.api_keys]\na = [\"hush-key\"]\n";
    let folder = folder_with(toml);
    let doctor = |args: &[&str]| {
        let mut command = memtrove(folder.path(), &[&["doctor", "--listen", "127.0.0.1:0"], args].concat());
        let output = command.env("MEMTROVE_LOG__LEVEL", "debug").output().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    let text = doctor(&["--settings"]);
    let line = |key: &str| text.lines().find(|line| line.trim_start().starts_with(key)).unwrap_or("");
    assert!(line("server.listen").ends_with("flag --listen"), "{text}");
    assert!(line("log.level").ends_with("environment variable MEMTROVE_LOG__LEVEL"), "{text}");
    assert!(line("auth.mode").ends_with("memtrove.toml"), "{text}");
    assert!(line("store.url").ends_with("default"), "{text}");
    assert!(line("auth.jwt.hmac_secret").contains("[redacted]"), "{text}");
    assert!(!text.contains("hush"), "{text}");
    for check in ["✓ configuration", "! configuration", "✓ data folder", "✓ database", "✓ port"] {
        assert!(text.contains(check), "{check} is missing:\n{text}");
    }
    let brief = doctor(&[]);
    assert!(brief.contains("log.level") && !brief.contains("store.url"), "only what was set:\n{brief}");
    assert!(brief.contains("more settings have their defaults"), "{brief}");
    assert!(!folder.path().join("memtrove").exists(), "the doctor changes nothing");
}

#[test]
fn doctor_finds_problems_and_says_what_to_do() {
    let folder = folder_with(
        "[auth]\nmode = \"jwt\"\n[auth.jwt]\nissuer = \"http://127.0.0.1:1\"\n[server]\ndata_dir = \"taken\"\n[store]\nurl = \"sqlite:data.db\"\n",
    );
    std::fs::write(
        folder.path().join("data.db"),
        "this is no database, and long enough to be looked at as one, or not",
    )
    .unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let output = run(folder.path(), &["doctor", "--json", "--listen", &listen]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["ok"], false);
    let check = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {report:#}"))
            .clone()
    };
    assert_eq!(check("configuration")["outcome"], "ok");
    for (name, message, fix) in [
        ("database", "data.db is damaged (file is not a database): restore a backup", None),
        ("port", "another program listens on", Some("choose another port")),
        ("issuer", "http://127.0.0.1:1/.well-known/openid-configuration", Some("check auth.jwt.issuer")),
    ] {
        let check = check(name);
        assert_eq!(check["outcome"], "problem", "{check}");
        assert!(check["message"].as_str().unwrap().contains(message), "{check}");
        assert!(fix.is_none_or(|fix| check["fix"].as_str().unwrap().contains(fix)), "{check}");
    }
}

#[test]
fn doctor_recognises_a_running_server() {
    let folder = folder();
    let server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let listen = server.url().replace("http://", "");
    let output = run(folder.path(), &["doctor", "--listen", &listen]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains(&format!("in use by process {}", server.process.id())), "{text}");
    assert!(text.contains("a Memtrove server is already running"), "{text}");

    let output = run(folder.path(), &["doctor", "--listen", &listen, "--data-dir", "other"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("✗ port: a Memtrove server with other data listens"),
        "{}",
        stdout(&output)
    );
}

/// What the doctor says of a store, whether it is content, and that it left no file behind.
fn doctor_of(store: &str, listen: &str) -> (String, bool) {
    let folder = folder();
    let mut command = memtrove(folder.path(), &["doctor", "--listen", listen]);
    let output = command.env("MEMTROVE_STORE__URL", store).output().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is kept here");
    assert_eq!(stderr(&output), "");
    (stdout(&output), output.status.success())
}

#[test]
fn doctor_examines_a_database_on_a_server() {
    let database = Database::fresh();
    let (text, content) = doctor_of(database.url(), "127.0.0.1:0");
    assert!(content, "{text}");
    let place = database.url();
    for said in [
        &format!("✓ database: connected to {place} without TLS"),
        "! server: PostgreSQL 18.6, encoding UTF8; a power failure loses acknowledged writes",
        "✓ role: memtrove may do what is needed, and no more",
        "✓ pgvector: 0.8.6",
        "✓ schema: ",
        "✓ row security: keeps tenants apart once more",
        "✓ connections: 397 are allowed",
        "1 node with up to 23 each",
        "✓ clock: agrees with the server's",
        "✓ vacuum: ",
        "✓ change feed: every change has its number",
        "✓ nodes: none is running",
    ] {
        assert!(text.contains(said), "{said} is missing:\n{text}");
    }
    assert!(!text.contains("data folder") && !text.contains("disk space"), "{text}");

    let (text, content) = doctor_of(&place.replace("memtrove@", "postgres@"), "127.0.0.1:0");
    let said =
        "! role: postgres is a superuser: row-level security, the second line of tenant isolation, is off";
    assert!(content && text.contains(said), "{text}");
    let name = database.name();
    let fix = format!("CREATE ROLE memtrove LOGIN PASSWORD '…'; ALTER DATABASE {name} OWNER TO memtrove;");
    assert!(text.contains(&fix) && !text.contains("ALTER ROLE"), "{text}");
}

#[test]
fn doctor_sees_the_nodes_of_a_database() {
    let (database, folder) = (Database::fresh(), folder());
    let start = |address: &str| {
        Server::start(folder.path(), &["serve", "--listen", address, "--store", database.url()])
    };
    let (one, two) = (start("127.0.0.1:0"), start("127.0.0.1:0"));
    assert!(one.printed.contains(&format!("data     {}", database.url())), "{}", one.printed);
    let listen = two.url().replace("http://", "");
    let (text, content) = doctor_of(database.url(), &listen);
    assert!(content, "{text}");
    assert!(text.contains("✓ nodes: 2 nodes: "), "{text}");
    for node in [&one, &two] {
        assert!(text.contains(&format!("process {} on ", node.process.id())), "{text}");
    }
    assert!(text.contains("2 nodes with up to 23 each"), "{text}");
    assert!(text.contains("! port: a Memtrove server is already running on"), "{text}");
}

#[test]
fn doctor_says_what_is_wrong_with_a_database() {
    let check = |change: &[&str], said: &str, fix: &str, fatal: bool| {
        let database = Database::fresh();
        for statement in change {
            database.execute(statement, &[]);
        }
        let (text, content) = doctor_of(database.url(), "127.0.0.1:0");
        assert!(text.contains(said) && text.contains(fix), "{said}\n{fix}\nare missing:\n{text}");
        assert_eq!(content, !fatal, "{text}");
    };
    check(
        &["INSERT INTO schema_steps (number, name, works_with) VALUES (99, 'later', 99)"],
        "✗ schema: the database has schema 99, which needs a version of memtrove that knows 99 at least",
        "start the newer version, or restore a backup made before the upgrade",
        true,
    );
    check(
        &["INSERT INTO schema_steps (number, name, works_with) VALUES (99, 'later', 1)"],
        "✓ schema: 99, newer than this version's",
        "which can work on it all the same",
        false,
    );
    let node = "INSERT INTO nodes VALUES (gen_random_uuid(), '0.0.1', 0, (EXTRACT(EPOCH FROM now()) * 1000000)::bigint)";
    check(
        &["DELETE FROM schema_steps WHERE number > 1", node],
        "! schema: 1; the next start upgrades it to",
        "stop the nodes that are running before you start this version",
        false,
    );
    check(
        &["DELETE FROM schema_steps WHERE number > 1"],
        "✓ schema: 1; the next start upgrades it to",
        "whether the database fits shows when it has been upgraded",
        false,
    );
    check(
        &[
            "INSERT INTO nodes VALUES (gen_random_uuid(), '0.0.1', 0, (EXTRACT(EPOCH FROM now()) * 1000000)::bigint)",
            "INSERT INTO nodes VALUES (gen_random_uuid(), '0.0.2', 0, (EXTRACT(EPOCH FROM now()) * 1000000)::bigint)",
            "INSERT INTO nodes VALUES (gen_random_uuid(), '0.0.3', 0, 0)",
        ],
        "! nodes: 2 nodes: ",
        "of different versions, as in an upgrade",
        false,
    );
    let node = |process: i64, seen: i64, settings: &str| {
        format!(
            "INSERT INTO nodes VALUES (gen_random_uuid(), '0.0.1', 0, ((EXTRACT(EPOCH FROM now()) - {seen}) * 1000000)::bigint, \
             'db1', {process}, '{settings}')"
        )
    };
    check(
        &[&node(71, 1, ""), &node(72, 40, "")],
        "✓ nodes: 1 node: process 71 on db1 (0.0.1, seen ",
        "; gone without having said so: process 72 on db1 (0.0.1, seen 4",
        false,
    );
    check(
        &[&node(71, 1, "search.language english"), &node(72, 1, "search.language german")],
        "they have different settings (search.language english / search.language german)",
        "give all nodes the same",
        false,
    );
    check(
        &["ALTER TABLE groups NO FORCE ROW LEVEL SECURITY", "DROP POLICY one_tenant ON scopes"],
        "! row security: is off for the owner of groups, scopes: ",
        "ALTER TABLE groups ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        false,
    );
    check(
        &["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"],
        "✓ schema: the database is empty; the first start makes schema",
        "as a superuser, in this database: CREATE EXTENSION vector",
        true,
    );
    check(
        &["DROP SCHEMA public CASCADE"],
        "✗ role: memtrove may not make tables and schemas in this database",
        "make it the owner: ALTER DATABASE test_",
        true,
    );
}

#[test]
fn a_server_that_cannot_be_reached_is_named_without_its_password() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://memtrove:hush@127.0.0.1:{free}/m?connect_timeout=2");
    let (text, content) = doctor_of(&url, "127.0.0.1:0");
    assert!(!content, "{text}");
    assert!(
        text.contains(&format!("\"postgres://memtrove:[redacted]@127.0.0.1:{free}/m?connect_timeout=2\"")),
        "{text}"
    );
    assert!(text.contains("✗ database: ") && text.contains(&format!("127.0.0.1:{free}")), "{text}");
    assert!(text.contains(&format!("→ nothing listens at 127.0.0.1:{free}: check host and port")), "{text}");
    assert!(!text.contains("hush"), "{text}");

    let folder = folder();
    for command in
        [&["serve", "--listen", "127.0.0.1:0"][..], &["evict", "--older-than", "90d"], &["reindex"]]
    {
        let mut refused = memtrove(folder.path(), command);
        let refused = refused.env("MEMTROVE_STORE__URL", &url).output().unwrap();
        let said = stdout(&refused) + &stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("127.0.0.1:{free}")) && !said.contains("hush"), "{said}");
        assert_eq!(said.contains("run `memtrove doctor`"), command[0] == "serve", "{said}");
    }
}

#[test]
fn doctor_says_what_to_do_where_nobody_lets_it_in() {
    let database = Database::fresh();
    let check = |url: &str, fix: &str| {
        let (text, content) = doctor_of(url, "127.0.0.1:0");
        assert!(!content && text.contains("✗ database: ") && text.contains(fix), "{fix} is missing:\n{text}");
    };
    check(
        &format!("{}_not", database.url()),
        &format!("→ as a superuser: CREATE DATABASE {}_not ", database.name()),
    );
    check(&format!("{}?sslmode=require", database.url()), "→ the server has no TLS: turn it on there");
    check(
        &database.url().replace("memtrove@", "nobody@"),
        "→ check user and password (store.url, PGPASSWORD",
    );
    database.execute(&format!("ALTER DATABASE {} CONNECTION LIMIT 0", database.name()), &[]);
    check(database.url(), "→ wait, end connections that are not needed, lower store.connections");
}

#[test]
fn a_start_that_is_not_allowed_says_whom_to_ask() {
    let (database, folder) = (Database::fresh(), folder());
    database.execute("DROP SCHEMA public CASCADE", &[]);
    let refused = run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--store", database.url()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("; run `memtrove doctor`, which says what is missing"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn a_folder_that_would_not_be_used_is_refused() {
    let folder = folder();
    for command in [&["export", "-o", "x"][..], &["import", "x"], &["serve"], &["doctor"], &["reindex"]] {
        let mut refused = memtrove(folder.path(), &[command, &["--data-dir", "./data"]].concat());
        let refused = refused.env("MEMTROVE_STORE__URL", "postgres://m:hush@127.0.0.1:1/m").output().unwrap();
        assert_eq!(
            stderr(&refused),
            "error: --data-dir names a folder, and the store is postgres://m@127.0.0.1:1/m, which has none (environment variable \
             MEMTROVE_STORE__URL says so): write --store sqlite --data-dir ./data for the store in that folder, or leave \
             --data-dir out\n"
        );
    }
    let mut meant =
        memtrove(folder.path(), &["export", "-o", "x", "--store", "sqlite", "--data-dir", "./data"]);
    let meant = meant.env("MEMTROVE_STORE__URL", "postgres://m:hush@127.0.0.1:1/m").output().unwrap();
    assert!(stderr(&meant).contains("there is no database at ./data/memtrove.db"), "{}", stderr(&meant));
}

#[test]
fn commands_work_in_a_database_beside_its_nodes() {
    let (database, folder) = (Database::fresh(), folder());
    let store = ["--store", database.url()];
    let server = Server::start(folder.path(), &[&["serve", "--listen", "127.0.0.1:0"], &store[..]].concat());
    let event = r#"{"event":{"event_id":"one","tenant_id":"acme","user_id":"alice","digest":"walrus"}}"#;
    post(&format!("{}/v1/tenants/acme/users/alice/events", server.url()), event);
    let run = |command: &[&str]| run(folder.path(), &[command, &store[..]].concat());
    let done = run(&["reindex"]);
    assert_eq!(stdout(&done), "Indexed 1 event.\n", "{}", stderr(&done));
    let done = run(&["evict", "--older-than", "90d"]);
    assert_eq!(stdout(&done), "Removed 0 conversation trees.\n", "{}", stderr(&done));

    database.execute("DROP SCHEMA public CASCADE", &[]);
    database.execute("CREATE SCHEMA public", &[]);
    let refused = run(&["evict", "--older-than", "90d"]);
    let said = format!("error: there is nothing of memtrove at {}: check --store\n", database.url());
    assert_eq!(stderr(&refused), said);
}

#[test]
fn keys_are_rotated_in_a_database_that_nobody_uses() {
    let (database, folder) = (Database::fresh(), folder());
    let key = "A".repeat(43) + "=";
    std::fs::write(folder.path().join("memtrove.toml"), format!("[store]\nurl = \"{}\"\n", database.url()))
        .unwrap();
    let mut server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    post(
        &format!("{}/v1/tenants/acme/users/alice/events", server.url()),
        r#"{"event":{"event_id":"one","tenant_id":"acme","user_id":"alice","digest":"walrus"}}"#,
    );
    let rotate = || {
        memtrove(folder.path(), &["rotate-keys"]).env("MEMTROVE_ENCRYPTION__DEK__KEY", &key).output().unwrap()
    };
    let refused = rotate();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("stop them first"), "{}", stderr(&refused));
    server.signal("-TERM");
    assert!(server.wait().success());
    let readable = "SELECT 1 FROM events WHERE encode(event, 'escape') LIKE '%walrus%'";
    assert_eq!(database.rows(readable).len(), 1);

    let done = rotate();
    assert!(stdout(&done).starts_with("Sealed "), "{}{}", stdout(&done), stderr(&done));
    assert!(database.rows(readable).is_empty());
    let mut command = memtrove(folder.path(), &["doctor", "--listen", "127.0.0.1:0"]);
    let healthy = command.env("MEMTROVE_ENCRYPTION__DEK__KEY", &key).output().unwrap();
    assert!(
        stdout(&healthy).contains("✓ encryption: content is encrypted with the key"),
        "{}",
        stdout(&healthy)
    );
    let unreadable = run(folder.path(), &["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(unreadable.status.code(), Some(1));
    assert!(
        stdout(&unreadable).contains("✗ encryption: the content of this store is encrypted"),
        "{}",
        stdout(&unreadable)
    );
}

#[test]
fn token_prints_the_header_to_use() {
    let plain = folder();
    assert_eq!(stdout(&run(plain.path(), &["token", "--user", "alice"])), "Authorization: Bearer alice\n");
    let signed = folder_with(
        "[auth]\nmode = \"jwt\"\n[auth.jwt]\nhmac_secret = \"0123456789abcdef0123456789abcdef\"\n",
    );
    let header = stdout(&run(signed.path(), &["token", "--user", "alice", "--expires-in", "5m"]));
    assert!(header.starts_with("Authorization: Bearer eyJ") && header.matches('.').count() == 2, "{header}");

    let _server = Server::start(signed.path(), &["--listen", "127.0.0.1:0"]);
    let url = _server.url();
    let ask = |header: &str| {
        let asked = Command::new("curl")
            .args([
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                "-H",
                header.trim(),
                &format!("{url}/v1/conversations"),
            ])
            .output();
        stdout(&asked.unwrap())
    };
    assert_eq!(ask(&header), "200");
    assert_eq!(ask("Authorization: Bearer alice"), "401");
}

#[test]
fn evict_works_through_a_server_and_in_the_folder() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let url = server.url();
    let through = |extra: &[&str]| run(folder.path(), &[&["evict", "--url", &url], extra].concat());
    let header = stdout(&run(folder.path(), &["token", "--user", "admin"]));
    for (older_than, token) in [("P90D", "admin"), ("90d", header.as_str()), ("24h", "bearer admin")] {
        let done = through(&["--older-than", older_than, "--token", token]);
        assert!(done.status.success(), "{older_than} {token}: {}", stderr(&done));
    }
    let refused = through(&["--older-than", "P90D", "--token", "alice"]);
    assert!(
        stderr(&refused).contains("403") && stderr(&refused).contains("Admin role required"),
        "{}",
        stderr(&refused)
    );
    for wrong in ["90 days", "90", "0d", "-1d", "soon"] {
        let refused = through(&[&format!("--older-than={wrong}"), "--token", "admin"]);
        assert!(stderr(&refused).contains("such as 90d, 24h or P90D"), "{wrong}: {}", stderr(&refused));
    }
    let refused = through(&["--older-than", "P90D"]);
    assert!(stderr(&refused).contains("--token"), "{}", stderr(&refused));
    server.signal("-TERM");
    assert!(server.wait().success());
    let done = run(folder.path(), &["evict", "--older-than", "90d"]);
    assert_eq!(stdout(&done), "Removed 0 conversation trees.\n", "{}", stderr(&done));
}

/// What a server in local mode answers an agent.
fn post(url: &str, body: &str) -> String {
    let json = ["-H", "Content-Type: application/json", "-d", body];
    let output =
        Command::new("curl").args(["-sS", "-f", url, "-H", "X-API-Key: agent"]).args(json).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn reindex_works_through_a_server_and_in_the_folder() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let url = server.url();
    for (tenant, id) in [("default", "one"), ("default", "two"), ("acme", "three")] {
        let event =
            format!(r#"{{"event_id":"{id}","tenant_id":"{tenant}","user_id":"alice","digest":"walrus"}}"#);
        post(&format!("{url}/v1/tenants/{tenant}/users/alice/events"), &format!(r#"{{"event":{event}}}"#));
    }
    let through = |extra: &[&str]| run(folder.path(), &[&["reindex", "--url", &url], extra].concat());
    let done = through(&["--token", "admin", "--justification", "the log said so"]);
    assert_eq!(stdout(&done), "Indexed 2 events.\n", "{}", stderr(&done));
    let done = through(&["--token", "admin", "--tenant", "acme"]);
    assert_eq!(stdout(&done), "Indexed 1 event.\n", "{}", stderr(&done));
    let refused = through(&["--token", "alice"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("403") && stderr(&refused).contains("Admin role required"),
        "{}",
        stderr(&refused)
    );
    assert!(stderr(&through(&[])).contains("--token"));
    assert!(stderr(&run(folder.path(), &["reindex"])).contains("use --url"));
    server.signal("-TERM");
    assert!(server.wait().success());

    let database = rusqlite::Connection::open(folder.path().join("memtrove/memtrove.db")).unwrap();
    assert_eq!(database.execute("UPDATE event_blocks SET body = x'00'", []).unwrap(), 2);
    drop(database);
    let done = run(folder.path(), &["reindex", "--tenant", "acme"]);
    assert_eq!(stdout(&done), "Indexed 1 event.\n", "{}", stderr(&done));
    let done = run(folder.path(), &["reindex"]);
    assert_eq!(stdout(&done), "Indexed 3 events.\n", "{}", stderr(&done));
    let server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let found = post(&format!("{}/v1/tenants/acme/users/alice/events:search", server.url()), "{}");
    assert!(found.contains("three"), "{found}");
}

/// A file that has vectors made by this server.
fn with_embedder(embedder: &Embedder) -> String {
    format!(
        "[embedding]\nprovider = \"openai\"\n[embedding.openai]\nbase_url = \"{}\"\nmodel = \"words\"\n\
         dimensions = {DIMENSIONS}\n[memories.retry]\nmax_attempts = 1\n",
        embedder.base_url
    )
}

#[test]
fn vectors_of_another_model_are_made_anew_in_the_folder_and_through_a_server() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let memory =
        r#"{"content":"Deploys happen on Tuesdays","layer":"project","identifiers":{"projectId":"p"}}"#;
    post(&format!("{}/v1/memories", server.url()), memory);
    server.signal("-TERM");
    assert!(server.wait().success());
    let embedder = Embedder::start();
    std::fs::write(folder.path().join("memtrove.toml"), with_embedder(&embedder)).unwrap();
    let doctor = || stdout(&run(folder.path(), &["doctor", "--listen", "127.0.0.1:0"]));
    let makes = "✓ embedding: openai:words:64 makes vectors of 64 dimensions";
    let before = doctor();
    assert!(
        before.contains(&format!("{makes}; those that static-256 made are made anew once a server starts")),
        "{before}"
    );

    let done = run(folder.path(), &["reindex", "--embeddings"]);
    assert_eq!(stdout(&done), "Made the vectors of 1 text anew.\n", "{}", stderr(&done));
    assert!(doctor().contains(&format!("{makes}\n")), "{}", doctor());

    let server = Server::start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let url = server.url();
    let through =
        |extra: &[&str]| run(folder.path(), &[&["reindex", "--embeddings", "--url", &url], extra].concat());
    let done = through(&["--token", "admin"]);
    assert_eq!(stdout(&done), "Made the vectors of 0 texts anew.\n", "{}", stderr(&done));
    let refused = through(&["--token", "alice"]);
    assert!(stderr(&refused).contains("Admin role required"), "{}", stderr(&refused));
    let refused = through(&["--token", "admin", "--tenant", "acme"]);
    assert!(stderr(&refused).contains("cannot be used with '--tenant"), "{}", stderr(&refused));
    embedder.refuse(Some(503));
    let unreachable = doctor();
    assert!(
        unreachable.contains(
            "! embedding: openai:words:64 makes vectors of 64 dimensions, but: the embedding provider failed"
        ),
        "{unreachable}"
    );
}

#[test]
fn a_model_that_cannot_be_read_stops_the_start_and_the_doctor_says_so() {
    let folder = folder_with("[embedding]\nprovider = \"local\"\n[embedding.local]\ndirectory = \"model\"\n");
    let refused = run(folder.path(), &["serve"]);
    let complaint = stderr(&refused);
    assert!(
        complaint.contains("embedding.local.directory: model is not a folder; name the folder"),
        "{complaint}"
    );
    std::fs::create_dir(folder.path().join("model")).unwrap();
    let refused = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = "the embedding provider cannot be used: the model in model: there is no config.json\n";
    assert!(stderr(&refused).ends_with(&format!("error: {why}")), "{}", stderr(&refused));
    let doctor = run(folder.path(), &["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(stdout(&doctor).contains(&format!("✗ embedding: {why}")), "{}", stdout(&doctor));
}

#[test]
fn doctor_says_who_makes_vectors() {
    let told = |toml: &str| {
        let output = run(folder_with(toml).path(), &["doctor", "--listen", "127.0.0.1:0"]);
        assert!(output.status.success(), "{}", stdout(&output));
        stdout(&output)
    };
    assert!(told("").contains("✓ embedding: static-256 makes vectors of 256 dimensions\n"), "{}", told(""));
    let none = told("[embedding]\nprovider = \"none\"\n");
    assert!(
        none.contains("✓ embedding: embedding.provider is none, so words alone are searched\n"),
        "{none}"
    );
}

#[test]
fn reindex_fails_with_what_a_server_says_went_wrong() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = [
        r#"{"job_id":"7"}"#,
        r#"{"job_id":"7","kind":"events_reindex","status":"running","processed":1,"total":3,"errors":[]}"#,
        r#"{"job_id":"7","kind":"events_reindex","status":"failed","processed":2,"total":3,"errors":["a","b"]}"#,
    ];
    let server = std::thread::spawn(move || {
        answers.map(|body| {
            let (mut connection, _) = listener.accept().unwrap();
            let asked = BufReader::new(connection.try_clone().unwrap()).lines().next().unwrap().unwrap();
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            connection.write_all((head + body).as_bytes()).unwrap();
            asked
        })
    });

    let failed = run(folder().path(), &["reindex", "--url", &url, "--token", "admin"]);

    assert_eq!(failed.status.code(), Some(1));
    let said = "error: the index could not be rebuilt as a whole:\n  a\n  b\n";
    assert_eq!(stderr(&failed), said);
    let look = "GET /v1/admin/jobs/7 HTTP/1.1";
    assert_eq!(server.join().unwrap(), ["POST /v1/admin/reindex HTTP/1.1", look, look]);
}

#[test]
fn openapi_prints_the_document() {
    let document: serde_json::Value =
        serde_json::from_slice(&run(folder().path(), &["openapi"]).stdout).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(document["paths"]["/v1/conversations"].is_object());
}

#[test]
fn help_teaches_with_examples_and_a_closed_pipe_is_no_error() {
    for command in ["serve", "doctor", "token", "evict", "reindex", "rotate-keys", "openapi"] {
        let help = stdout(&run(folder().path(), &[command, "--help"]));
        assert!(help.contains("Example"), "{help}");
    }
    let mut doctor =
        memtrove(folder().path(), &["doctor"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(doctor.stdout.take());
    let mut complaints = String::new();
    doctor.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    let _ = doctor.wait();
    assert_eq!(complaints, "");
}
