//! Several processes on one folder.

use crate::mcp::support::*;
use memtrove_testkit::postgres::Database;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

#[test]
fn editors_share_a_folder_and_see_each_others_memories() {
    let home = Home::new();
    let mut agents = [home.agent(&[]), home.agent(&[]), home.agent(&[])];
    for (number, agent) in agents.iter_mut().enumerate() {
        agent.ok("remember", json!({"text": format!("Editor {number} was here.")}));
    }
    for agent in &mut agents {
        let found = agent.ok("recall", json!({"query": "which editor was here", "min_score": 0}));
        assert_eq!(found.matches("was here").count(), 3, "{found}");
    }
    let socket = std::fs::metadata(home.data().join("memtrove.db.mcp")).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
}

#[test]
fn each_keeps_its_own_user_project_and_conversation() {
    let home = Home::new();
    let (mut alice, mut bob) = (home.agent(&[]), home.agent(&["--user", "bob", "--agent", "helper"]));
    let said = [&mut alice, &mut bob]
        .map(|agent| agent.ok("append_message", json!({"role": "user", "text": "Hello"})));
    assert_ne!(id_in(&said[0]), id_in(&said[1]));
    bob.ok("memory_write_file", json!({"path": "bob.md", "content": "mine"}));
    assert_eq!(alice.ok("memory_list_files", json!({})), "no files");
}

#[test]
fn when_the_owner_leaves_the_others_go_on() {
    let home = Home::new();
    let (mut owner, mut second, mut third) = (home.agent(&[]), home.agent(&[]), home.agent(&[]));
    owner.ok("remember", json!({"text": "The owner knew this."}));
    let said = second.ok("append_message", json!({"role": "user", "text": "Before"}));
    owner.hang_up();
    assert!(owner.ended().success());
    for agent in [&mut second, &mut third] {
        let found = agent.ok("recall", json!({"query": "what did the owner know", "min_score": 0}));
        assert!(found.contains("The owner knew this."), "{found}");
    }
    third.ok("remember", json!({"text": "The third wrote this."}));
    let after = second.ok("append_message", json!({"role": "user", "text": "After"}));
    assert_eq!(id_in(&after), id_in(&said), "the session is the same one");
    second.hang_up();
    assert!(second.ended().success());
    let found = third.ok("recall", json!({"query": "what did the third write", "min_score": 0}));
    assert!(found.contains("The third wrote this."), "{found}");
    assert_eq!(third.errors(), "");
}

#[test]
fn when_the_owner_is_killed_nothing_that_was_acknowledged_is_lost() {
    let home = Home::new();
    let mut owner = home.agent(&[]);
    let mut others = [home.agent(&[]), home.agent(&[])];
    for (number, agent) in others.iter_mut().enumerate() {
        agent.ok("remember", json!({"text": format!("Note {number} of the others.")}));
    }
    owner.signal("-KILL");
    owner.ended();
    for agent in &mut others {
        let found = agent.ok("recall", json!({"query": "notes of the others", "min_score": 0}));
        assert_eq!(found.matches("of the others.").count(), 2, "{found}");
    }
    // There is a socket again for the next one.
    let mut new = home.agent(&[]);
    assert!(new.ok("recall", json!({"query": "notes of the others", "min_score": 0})).contains("Note 0"));
}

/// Has a folder open as an owner does, and does what a test says.
struct FakeOwner {
    socket: UnixListener,
    _lock: std::fs::File,
}

impl FakeOwner {
    /// Takes a folder that has been used, and is not.
    fn take(home: &Home) -> Self {
        let lock = std::fs::File::options().write(true).open(home.data().join("memtrove.db.lock")).unwrap();
        lock.lock().unwrap();
        let socket = home.data().join("memtrove.db.mcp");
        let _ = std::fs::remove_file(&socket);
        Self { socket: UnixListener::bind(socket).unwrap(), _lock: lock }
    }

    /// Accepts the next client, with its hello.
    fn accept(&self) -> (Value, BufReader<UnixStream>) {
        let given_up = Instant::now() + PATIENCE;
        self.socket.set_nonblocking(true).unwrap();
        let client = loop {
            match self.socket.accept() {
                Ok((client, _)) => break client,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    assert!(Instant::now() < given_up, "nothing connects");
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("{error}"),
            }
        };
        client.set_nonblocking(false).unwrap();
        let mut client = BufReader::new(client);
        client.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        let hello = hear(&mut client);
        say(&mut client, &json!({"here": {"kind": "mcp", "pid": std::process::id()}}));
        (hello, client)
    }

    /// Accepts an editor, whose session then has begun.
    fn begin(&self, agent: &mut Agent) -> BufReader<UnixStream> {
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        let id = agent.ask("initialize", params);
        let (hello, mut client) = self.accept();
        assert!(hello.get("join").is_some(), "{hello}");
        assert_eq!(hear(&mut client)["method"], "initialize");
        say(&mut client, &json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        assert_eq!(agent.hear()["id"], id);
        client
    }
}

fn hear(client: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn say(client: &mut BufReader<UnixStream>, message: &Value) {
    client.get_mut().write_all(format!("{message}\n").as_bytes()).unwrap();
}

/// An answer that says that the owner ended before it answered.
#[track_caller]
fn assert_owner_ended(answer: &Value) {
    let error = &answer["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32000), &json!("OWNER_ENDED")), "{answer}");
    assert_eq!(error["data"]["retryable"], true, "{answer}");
    assert!(error["message"].as_str().unwrap().contains("may or may not"), "{answer}");
    assert!(error["data"]["hint"].as_str().unwrap().contains("look first"), "{answer}");
}

#[test]
fn a_request_under_way_when_the_owner_ends_gets_a_retryable_error_and_the_session_goes_on() {
    let home = Home::new();
    home.agent(&[]).ok("remember", json!({"text": "The owner is about to stop."}));
    let owner = FakeOwner::take(&home);
    let mut other = home.process(&[]);
    let mut client = owner.begin(&mut other);
    let recall = json!({"name": "recall", "arguments": {"query": "owner", "min_score": 0}});
    let log = json!({"name": "memory_log_event", "arguments": {"digest": "Maybe"}});
    let cancelled = other.ask("tools/call", recall.clone());
    other.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}})
            .to_string(),
    );
    let under_way = [other.ask("tools/call", recall.clone()), other.ask("tools/call", log)];
    // It has read all of them when it ends, and half of an answer is none.
    let read: Vec<Value> = (0..4).map(|_| hear(&mut client)["id"].clone()).collect();
    assert_eq!(read, [json!(cancelled), Value::Null, json!(under_way[0]), json!(under_way[1])]);
    client.get_mut().write_all(b"{\"jsonrpc\":\"2.0\",\"id\":").unwrap();
    drop((client, owner));
    for id in under_way {
        let answer = other.hear();
        assert_eq!(answer["id"], id, "{answer}");
        assert_owner_ended(&answer);
    }
    assert!(succeeded(&other.request("tools/call", recall)).contains("about to stop"));
    assert!(other.ok("memory_log_event", json!({"digest": "Surely"})).starts_with("logged"));
    assert!(!other.ok("memory_recall", json!({"query": "Maybe Surely"})).contains("Maybe"));
}

#[test]
fn a_request_that_the_owner_did_not_read_goes_to_the_next() {
    let home = Home::new();
    drop(home.agent(&[]));
    let owner = FakeOwner::take(&home);
    let mut other = home.process(&[]);
    let client = owner.begin(&mut other);
    // As an owner does that ends: it reads no more, and answers what it has read.
    client.get_ref().shutdown(std::net::Shutdown::Read).unwrap();
    let asked = other.ask("tools/call", json!({"name": "memory_log_event", "arguments": {"digest": "Once"}}));
    std::thread::sleep(Duration::from_millis(200));
    drop((client, owner));
    let answer = other.hear();
    assert!(answer["id"] == asked && succeeded(&answer).starts_with("logged"), "{answer}");
}

#[test]
fn a_session_that_an_owner_refuses_is_not_begun_again_and_again() {
    let mut agent = Home::new().process(&[]);
    let refused = agent.request("initialize", json!({"protocolVersion": 7}));
    assert!(refused.get("error").is_some(), "{refused}");
    agent.begin();
    assert_eq!(agent.ok("memory_list_files", json!({})), "no files");
}

#[test]
fn an_owner_that_is_slow_is_waited_for_as_long_as_its_socket_replies() {
    let home = Home::new();
    drop(home.agent(&[]));
    let owner = FakeOwner::take(&home);
    let mut agent = home.process(&[]);
    let mut client = owner.begin(&mut agent);
    let asked = agent.ask("tools/list", json!({}));
    assert_eq!(hear(&mut client)["id"], asked);
    // It says nothing for so long that it is asked whether it lives, and so again.
    for _ in 0..2 {
        assert_eq!(owner.accept().0, "who");
    }
    say(&mut client, &json!({"jsonrpc": "2.0", "id": asked, "result": {"tools": []}}));
    let answer = agent.hear();
    assert_eq!((&answer["id"], &answer["result"]["tools"]), (&json!(asked), &json!([])), "{answer}");
}

#[test]
fn when_the_owner_leaves_no_write_of_another_fails() {
    let home = Home::new();
    let (mut owner, mut other) = (home.agent(&[]), home.agent(&[]));
    // Some writes are under way all the time, until the owner is gone and the other has the folder.
    let (mut asked, mut answered): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    let hear = |other: &mut Agent, answered: &mut Vec<i64>| {
        let answer = other.hear();
        assert!(succeeded(&answer).starts_with("logged"), "{answer}");
        answered.push(answer["id"].as_i64().unwrap());
    };
    let mut after = 0;
    while after < 40 {
        let digest = format!("Event {}.", asked.len());
        asked.push(
            other.ask("tools/call", json!({"name": "memory_log_event", "arguments": {"digest": digest}})),
        );
        if asked.len() == 40 {
            owner.hang_up();
        }
        if asked.len() > answered.len() + 24 {
            hear(&mut other, &mut answered);
        }
        after += usize::from(asked.len() > 40 && owner.process.try_wait().unwrap().is_some());
    }
    while answered.len() < asked.len() {
        hear(&mut other, &mut answered);
    }
    answered.sort_unstable();
    assert_eq!(answered, asked, "each is answered once");
    assert!(owner.ended().success());
    other.hang_up();
    assert!(other.ended().success());
    assert_eq!((other.errors(), owner.errors()), (String::new(), String::new()));
    let database = rusqlite::Connection::open(home.data().join("memtrove.db")).unwrap();
    let events: i64 = database.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(events).unwrap(), asked.len(), "and carried out once");
}

/// The process that has the folder of a home open.
fn owner_of(home: &Home) -> u32 {
    let mut stream = BufReader::new(UnixStream::connect(home.data().join("memtrove.db.mcp")).unwrap());
    say(&mut stream, &json!("who"));
    hear(&mut stream)["here"]["pid"].as_u64().unwrap().try_into().unwrap()
}

/// An editor that logs numbered events without waiting for the answers.
struct Writer {
    agent: Agent,
    /// By the id of the request that logs it.
    asked: HashMap<i64, usize>,
}

/// What the answers say of numbered events.
#[derive(Default)]
struct Outcomes {
    logged: Vec<usize>,
    unknown: Vec<usize>,
}

impl Writer {
    fn log(&mut self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let arguments = json!({"digest": format!("Event {number}.")});
            let id =
                self.agent.ask("tools/call", json!({"name": "memory_log_event", "arguments": arguments}));
            self.asked.insert(id, number);
        }
    }

    #[track_caller]
    fn note(&mut self, answer: &Value, outcomes: &mut Outcomes) {
        let number = self.asked.remove(&answer["id"].as_i64().unwrap()).expect("one answer to each request");
        if answer.get("error").is_some() {
            assert_owner_ended(answer);
            outcomes.unknown.push(number);
        } else {
            assert!(succeeded(answer).starts_with("logged"), "{answer}");
            outcomes.logged.push(number);
        }
    }
}

#[test]
fn when_owners_are_killed_no_write_is_lost_and_none_is_done_twice() {
    const ROUNDS: usize = 10;
    const WRITES: usize = 12;
    let home = Home::new();
    let writer = || Writer { agent: home.agent(&[]), asked: HashMap::new() };
    let mut writers = vec![writer(), writer(), writer()];
    let (mut outcomes, mut next) = (Outcomes::default(), 0);
    for round in 0..ROUNDS {
        for writer in &mut writers {
            writer.log(next..next + WRITES);
            next += WRITES;
        }
        let pid = owner_of(&home);
        let owner = writers.iter().position(|writer| writer.agent.process.id() == pid).unwrap();
        let mut killed = writers.swap_remove(owner);
        // At another moment in every round.
        for _ in 0..round {
            let answer = writers[0].agent.hear();
            writers[0].note(&answer, &mut outcomes);
        }
        killed.agent.signal("-KILL");
        killed.agent.ended();
        for line in killed.agent.rest() {
            // Its last line may be half of one.
            if let Ok(answer) = serde_json::from_str(&line) {
                killed.note(&answer, &mut outcomes);
            }
        }
        outcomes.unknown.extend(killed.asked.values());
        for writer in &mut writers {
            while !writer.asked.is_empty() {
                let answer = writer.agent.hear();
                writer.note(&answer, &mut outcomes);
            }
        }
        writers.push(writer());
    }
    for writer in &mut writers {
        writer.agent.hang_up();
        assert!(writer.agent.ended().success());
    }
    assert!(outcomes.logged.len() > ROUNDS && outcomes.unknown.len() > ROUNDS, "too little was under way");
    let database = rusqlite::Connection::open(home.data().join("memtrove.db")).unwrap();
    let mut events = database.prepare("SELECT event FROM events").unwrap();
    let mut times = vec![0; next];
    for event in events.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap() {
        let event: Value = serde_json::from_slice(&event.unwrap()).unwrap();
        let digest = event["digest"].as_str().unwrap();
        let number = digest.trim_start_matches("Event ").trim_end_matches('.');
        times[number.parse::<usize>().unwrap()] += 1;
    }
    outcomes
        .logged
        .iter()
        .for_each(|number| assert_eq!(times[*number], 1, "event {number} was acknowledged"));
    outcomes
        .unknown
        .iter()
        .for_each(|number| assert!(times[*number] <= 1, "event {number} was logged twice"));
    assert_eq!(outcomes.logged.len() + outcomes.unknown.len(), next);
}

#[test]
fn answers_are_not_lost_when_the_owner_dies_after_the_editor_said_its_last() {
    let home = Home::new();
    let (mut owner, mut other) = (home.agent(&[]), home.agent(&[]));
    other.ok("remember", json!({"text": "The editor is about to go."}));
    owner.signal("-STOP");
    let recall = json!({"name": "recall", "arguments": {"query": "editor", "min_score": 0}});
    let reads = other.ask("tools/call", recall);
    let writes =
        other.ask("tools/call", json!({"name": "memory_log_event", "arguments": {"digest": "Maybe"}}));
    other.hang_up();
    owner.signal("-KILL");
    owner.ended();
    assert!(other.ended().success(), "{}", other.errors());
    let answers: Vec<Value> = other.rest().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer =
        |id: i64| answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("{answers:?}"));
    // Whether the owner had been sent them is not known to a test; the answers say which.
    for answer in [answer(reads), answer(writes)].into_iter().filter(|answer| answer.get("result").is_none())
    {
        assert_owner_ended(answer);
    }
}

#[test]
fn an_owner_that_stops_amid_a_session_is_given_up_and_what_was_asked_is_answered() {
    let home = Home::new();
    let (owner, mut other) = (home.agent(&[]), home.agent(&[]));
    other.ok("memory_log_event", json!({"digest": "Before"}));
    owner.signal("-STOP");
    let reads = other.ask("tools/call", json!({"name": "recall", "arguments": {"query": "before"}}));
    let writes =
        other.ask("tools/call", json!({"name": "memory_log_event", "arguments": {"digest": "Maybe"}}));
    for id in [reads, writes] {
        let answer = other.hear();
        assert_eq!(answer["id"], id, "{answer}");
        assert_owner_ended(&answer);
    }
    assert!(!other.ended().success());
    assert!(other.errors().contains("does not answer"), "{}", other.errors());
    // What was open turns out to be so: once it goes on, it does what it was asked.
    owner.signal("-CONT");
    let mut new = home.agent(&[]);
    assert!(new.ok("memory_recall", json!({"query": "before"})).contains("Before"));
}

/// Whether tests may start processes of other users.
fn is_root() -> bool {
    std::process::Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0"
}

#[cfg(target_os = "linux")]
#[test]
fn a_socket_of_another_user_is_not_used() {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::process::CommandExt as _;
    if !is_root() {
        assert!(
            std::env::var("MEMTROVE_ALLOW_SKIPS").is_ok_and(|allowed| allowed == "1"),
            "this test starts a process of another user, which only root may: run it as root, or set MEMTROVE_ALLOW_SKIPS=1 to \
             leave it out"
        );
        eprintln!("skipped, because only root may start processes of other users");
        return;
    }
    let home = Home::new();
    // Their folder, which we may use too, as root may use everything.
    let folder = home.path().join("theirs");
    std::fs::create_dir(&folder).unwrap();
    for path in [home.path(), &folder] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let args = ["--data-dir", folder.to_str().unwrap()];
    // By its number, because the folder that the program lies in may be closed to them.
    let program = std::fs::File::open(env!("CARGO_BIN_EXE_memtrove")).unwrap();
    let mut command = std::process::Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.arg("mcp").args(args).env_clear().env("HOME", home.path()).env("USER", "bob");
    command.current_dir(home.path()).uid(65534).gid(65534);
    let mut theirs = Agent::start(command);
    theirs.begin();
    let mut ours = home.process(&args);
    assert!(!ours.ended().success());
    assert!(ours.errors().contains("another user (65534)"), "{}", ours.errors());
    // Nor is another user let in, whatever the mode of the socket has become.
    let refused = {
        use std::io::{Read as _, Write as _};
        let mut stranger = std::os::unix::net::UnixStream::connect(folder.join("memtrove.db.mcp")).unwrap();
        stranger.write_all(b"\"who\"\n").unwrap();
        let mut heard = String::new();
        stranger.read_to_string(&mut heard).unwrap();
        heard
    };
    assert!(refused.starts_with("{\"refused\":\"you are another user"), "{refused}");
    assert_eq!(theirs.ok("memory_list_files", json!({})), "no files");
}

/// A server on the folder of a home, on the engine that has folders.
fn server_in(home: &Home, toml: &str) -> TestServer {
    let toml = format!("[store]\nurl = \"sqlite\"\n{toml}");
    Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(&toml).data_dir(home.data()).start()
}

#[test]
fn it_works_beside_a_server_and_leaves_the_folder_to_it() {
    let home = Home::new();
    let mut server = server_in(&home, "");
    let mut agent = home.agent(&[]);
    agent.ok("remember", json!({"text": "Seen by the server as well."}));
    let listed = server.as_user("alice").get("/v1/memories?layer=user&userId=alice").expect(200);
    assert_eq!(listed.json["memories"][0]["content"], "Seen by the server as well.");
    let said = agent.ok("append_message", json!({"role": "user", "text": "Before"}));

    // What is asked while it starts again waits for it, be it to read or to write.
    assert!(server.stop().success());
    let call = json!({"name": "append_message", "arguments": {"role": "user", "text": "Between"}});
    let waiting = agent.ask("tools/call", call);
    let mut server = server_in(&home, "");
    let answer = agent.hear();
    assert_eq!((&answer["id"], id_in(&succeeded(&answer))), (&json!(waiting), id_in(&said)));

    // What is asked while it stays away is answered with what to do, again and again; the folder stays free.
    assert!(server.stop().success());
    for _ in 0..2 {
        let answer = agent.request("tools/call", json!({"name": "recall", "arguments": {"query": "seen"}}));
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("memtrove serve"), "{answer}");
    }
    assert!(!home.data().join("memtrove.db.mcp").exists());
    let _server = server_in(&home, "");
    let found = agent.ok("recall", json!({"query": "seen by the server"}));
    assert!(found.contains("Seen by the server as well."), "{found}");
    agent.hang_up();
    assert!(agent.ended().success());
    assert_eq!(agent.errors(), "");
}

#[test]
fn an_editor_goes_while_its_server_is_away() {
    let home = Home::new();
    let mut server = server_in(&home, "");
    let mut agent = home.agent(&[]);
    assert!(server.stop().success());
    let asked = agent.ask("tools/list", json!({}));
    agent.hang_up();
    assert!(agent.ended().success());
    let answer: Value = serde_json::from_str(&agent.rest()[0]).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(asked), &json!(-32000)), "{answer}");
}

#[test]
fn the_tenant_is_the_clients_not_the_owners() {
    let home = Home::new();
    let server = server_in(&home, "");
    let mut command = home.command(&[]);
    command.env("MEMTROVE_AUTH__DEFAULT_TENANT", "acme");
    let mut client = Agent::start(command);
    client.begin();
    client.ok("remember", json!({"text": "Acme alone knows this."}));
    let listed = server.as_user("alice").get("/v1/memories?layer=user&userId=alice").expect(200);
    assert_eq!(listed.json["memories"], json!([]), "{}", listed.text);
    let found = home.agent(&["--tenant", "acme"]).ok("recall", json!({"query": "what does Acme know"}));
    assert!(found.contains("Acme alone"), "{found}");
}

/// Runs a command that cannot have the folder; what it says about that.
fn refused(home: &Home, args: &[&str]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_memtrove"));
    command.args(args).args(["--store", "sqlite", "--data-dir"]).arg(home.data());
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn whoever_needs_the_folder_is_told_who_holds_it() {
    let home = Home::new();
    let agent = home.agent(&[]);
    let pid = agent.process.id().to_string();
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["reindex"][..]] {
        let said = refused(&home, args);
        assert!(said.contains("`memtrove mcp`") && said.contains(&pid), "{args:?}: {said}");
    }
}

#[test]
fn a_folder_that_is_shared_with_nobody_is_said_so() {
    let home = Home::new();
    let toml = "[auth]\nmode = \"jwt\"\n[auth.jwt]\nhmac_secret = \"0123456789abcdef0123456789abcdef\"\n";
    let _server = server_in(&home, toml);
    let mut agent = home.process(&[]);
    assert!(!agent.ended().success());
    assert!(agent.errors().contains("does not share its folder"), "{}", agent.errors());
}

#[test]
fn an_owner_that_does_not_answer_is_given_up() {
    let home = Home::new();
    drop(home.agent(&[]));
    // Holds the folder as a process of another version might: it accepts, and closes again.
    let lock = std::fs::File::options().write(true).open(home.data().join("memtrove.db.lock")).unwrap();
    lock.lock().unwrap();
    let socket = home.data().join("memtrove.db.mcp");
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(socket).unwrap();
    let visits = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = visits.clone();
    std::thread::spawn(move || {
        while listener.accept().is_ok() {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let mut agent = home.process(&[]);
    assert!(!agent.ended().success());
    assert!(agent.errors().contains("does not answer"), "{}", agent.errors());
    // Twenty in a second, for as long as it is patient.
    let visits = visits.load(std::sync::atomic::Ordering::Relaxed);
    assert!((2..1000).contains(&visits), "{visits} visits");
}

#[test]
fn an_owner_that_was_stopped_is_given_up() {
    let home = Home::new();
    let owner = home.agent(&[]);
    owner.signal("-STOP");
    let mut agent = home.process(&[]);
    assert!(!agent.ended().success());
    assert!(agent.errors().contains("does not answer"), "{}", agent.errors());
}

#[test]
fn in_a_database_of_many_it_leaves_to_servers_what_is_done_for_all() {
    let (home, database) = (Home::new(), Database::fresh());
    let mut agents = [home.agent(&["--store", database.url()]), home.agent(&["--store", database.url()])];
    agents[0].ok("remember", json!({"text": "The database is shared."}));
    assert!(agents[1].ok("recall", json!({"query": "what is shared"})).contains("database is shared"));
    let deadline = Instant::now() + PATIENCE;
    while database.rows("SELECT id FROM nodes").len() < 2 {
        assert!(Instant::now() < deadline, "they do not say that they are there");
        std::thread::sleep(Duration::from_millis(20));
    }
    let leases = database.rows("SELECT name FROM leases WHERE name NOT LIKE 'remember%'");
    assert!(leases.is_empty(), "{leases:?}");
    for agent in &mut agents {
        agent.hang_up();
        assert!(agent.ended().success());
    }
    assert_eq!(database.rows("SELECT id FROM nodes").len(), 0, "and say that they go");
}

#[test]
fn folders_with_long_names_are_shared_too() {
    let home = Home::new();
    let folder =
        home.path().join("a-folder-with-a-name-that-is-longer-than-the-address-of-a-socket".repeat(2));
    let args = ["--data-dir", folder.to_str().unwrap()];
    let (mut one, mut two) = (home.agent(&args), home.agent(&args));
    one.ok("remember", json!({"text": "Long names work."}));
    assert!(two.ok("recall", json!({"query": "long names"})).contains("Long names work."));
    assert_eq!(one.errors(), "");
}

#[test]
fn a_client_that_does_not_greet_is_refused() {
    use std::io::{Read as _, Write as _};
    let home = Home::new();
    let mut agent = home.agent(&[]);
    let nobody = json!({"user": " ", "tenant": "default", "session": fresh_id()});
    for (said, is_told) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), true),
        (format!("{}\n", json!({"join": nobody})), true),
        ("x".repeat(100_000), false),
    ] {
        let mut stranger =
            std::os::unix::net::UnixStream::connect(home.data().join("memtrove.db.mcp")).unwrap();
        stranger.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stranger.write_all(said.as_bytes());
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let (mut heard, begun) = (Vec::new(), Instant::now());
        let _ = stranger.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard);
        assert!(begun.elapsed() < PATIENCE && heard.lines().count() == usize::from(is_told), "{heard}");
        assert!(!is_told || heard.starts_with("{\"refused\":"), "{heard}");
    }
    assert_eq!(agent.ok("memory_list_files", json!({})), "no files");
}
