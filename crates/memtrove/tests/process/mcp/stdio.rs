//! The process that an editor starts.

use crate::mcp::support::*;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[test]
fn it_needs_no_configuration_and_leaves_the_folder_it_starts_in_alone() {
    let home = Home::new();
    // An editor starts it wherever a project lies, also in one that has a server of its own.
    std::fs::write(home.path().join("work/memtrove.toml"), "[server]\nlisten = \"nonsense\"\n").unwrap();
    let mut agent = home.agent(&[]);
    agent.ok("remember", json!({"text": "It works."}));
    assert!(home.data().join("memtrove.db").is_file());
    let mode = std::fs::metadata(home.data()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "{mode:o}");
    let left: Vec<_> =
        std::fs::read_dir(home.path().join("work")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["memtrove.toml"]);
}

#[test]
fn folders_are_where_flags_and_variables_say() {
    let home = Home::new();
    let folder = |name: &str| home.path().join(name).join("memtrove.db");
    let flagged = home.path().join("flagged");
    drop(home.agent(&["--data-dir", flagged.to_str().unwrap()]));
    assert!(folder("flagged").is_file());

    let mut command = home.command(&[]);
    command.env("XDG_DATA_HOME", home.path().join("xdg"));
    Agent::start(command).begin();
    assert!(folder("xdg/memtrove").is_file());

    let mut command = home.command(&[]);
    command.env("MEMTROVE_SERVER__DATA_DIR", home.path().join("variable"));
    Agent::start(command).begin();
    assert!(folder("variable").is_file());

    let file = home.path().join("mine.toml");
    std::fs::write(&file, format!("[server]\ndata_dir = {:?}\n", home.path().join("configured"))).unwrap();
    drop(home.agent(&["--config", file.to_str().unwrap()]));
    assert!(folder("configured").is_file());
    assert!(!home.data().exists());
}

#[test]
fn it_says_who_it_is_what_it_can_and_when_to_use_it() {
    let mut agent = Home::new().process(&[]);
    let begun = agent.begin()["result"].clone();
    assert_eq!(begun["serverInfo"]["name"], "memtrove");
    assert_eq!(begun["protocolVersion"], VERSION);
    assert!(begun["capabilities"].get("tools").is_some() && begun["capabilities"].get("resources").is_some());
    assert!(begun["capabilities"].get("prompts").is_none());
    let instructions = begun["instructions"].as_str().unwrap();
    assert!(
        instructions.contains("recall") && instructions.len() < 1500,
        "{} characters",
        instructions.len()
    );
    assert!(instructions.ends_with("This is the memory of alice."), "{instructions}");

    let listed = agent.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools = listed.as_array().unwrap();
    assert_eq!(tools.len(), 14);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{tool}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
    }
    assert_eq!(tools[0]["inputSchema"]["properties"]["min_score"]["default"], 0.7, "the server's default");
    assert!(listed.to_string().len() < 12_000, "{} bytes", listed.to_string().len());
}

#[test]
fn standard_output_is_for_the_protocol_alone() {
    let home = Home::new();
    let mut command = home.command(&[]);
    command.env("MEMTROVE_LOG__LEVEL", "trace");
    let mut agent = Agent::start(command);
    agent.begin();
    agent.ok("remember", json!({"text": "Quiet, please."}));
    agent.say("this is no JSON");
    agent.say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nothing\"}");
    agent.ok("recall", json!({"query": "quiet"}));
    agent.hang_up();
    assert!(agent.ended().success());
    for line in agent.rest() {
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0");
    }
    let logged = agent.errors();
    assert!(logged.contains("sqlite opened"), "logs go to standard error: {logged}");
    assert!(!logged.contains("Quiet, please"), "and say nothing of what people wrote: {logged}");
}

#[test]
fn it_is_quiet_unless_something_is_wrong() {
    let mut agent = Home::new().agent(&[]);
    agent.ok("remember", json!({"text": "a"}));
    agent.failure("memory_load_file", json!({"path": "nothing.md"}));
    agent.hang_up();
    assert!(agent.ended().success());
    assert_eq!(agent.errors(), "");
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let mut agent = Home::new().agent(&[]);
    let ids: Vec<i64> = (0..5)
        .map(|number| {
            agent.ask(
                "tools/call",
                json!({"name": "remember", "arguments": {"text": format!("Thing {number}.")}}),
            )
        })
        .collect();
    agent.hang_up();
    assert!(agent.ended().success());
    let answers: Vec<Value> = agent.rest().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for id in ids {
        let answer =
            answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("no answer to {id}"));
        succeeded(answer);
    }
}

#[test]
fn a_last_line_that_is_not_ended_is_answered_too() {
    let mut agent = Home::new().agent(&[]);
    agent.say_unended(&json!({"jsonrpc": "2.0", "id": 42, "method": "tools/list"}).to_string());
    agent.hang_up();
    assert!(agent.ended().success());
    assert!(agent.rest().iter().any(|line| line.contains("\"id\":42")), "{:?}", agent.errors());
}

#[test]
fn sigterm_ends_it_cleanly() {
    let home = Home::new();
    let mut agent = home.agent(&[]);
    agent.ok("remember", json!({"text": "Kept."}));
    agent.signal("-TERM");
    assert!(agent.ended().success());
    // Closed properly: the log of the database is empty, and the socket is gone.
    let left: Vec<String> = std::fs::read_dir(home.data())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("-wal") || name.contains(".mcp"))
        .filter(|name| std::fs::metadata(home.data().join(name)).is_ok_and(|file| file.len() > 0))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_editor_that_goes_without_reading_its_answers_keeps_nothing_open() {
    use std::io::Write as _;
    use std::process::Stdio;
    let home = Home::new();
    let mut process = home.command(&[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}});
    writeln!(input, "{hello}").unwrap();
    // More answers than a pipe has room for, and not so many questions.
    for id in 1..=40 {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while !home.data().join("memtrove.db").exists() {
        assert!(Instant::now() < deadline, "it does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(input);
    let pid = process.id().to_string();
    std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    while process.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(home.agent(&[]).ok("memory_list_files", json!({})), "no files");
}

#[test]
fn what_was_asked_before_sigterm_is_answered() {
    let mut agent = Home::new().agent(&[]);
    let asked: Vec<i64> = (0..300)
        .map(|number| {
            let call =
                json!({"name": "memory_log_event", "arguments": {"digest": format!("Thing {number}.")}});
            agent.ask("tools/call", call)
        })
        .collect();
    // One answer shows that it is at work on them.
    let mut answered = vec![agent.hear()];
    agent.signal("-TERM");
    assert!(agent.ended().success(), "{}", agent.errors());
    answered.extend(agent.rest().iter().map(|line| serde_json::from_str(line).unwrap()));
    answered.iter().for_each(|answer: &Value| assert!(succeeded(answer).starts_with("logged"), "{answer}"));
    // Those that it had read are the first ones, and none of them is left out.
    let mut ids: Vec<i64> = answered.iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, asked[..ids.len()]);
}

#[test]
fn a_message_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let mut agent = Home::new().agent(&[]);
    let text = "x".repeat(17 * 1024 * 1024);
    let call = json!({"name": "remember", "arguments": {"text": text, "id": 7}});
    // The members in the order of ours, of the TypeScript client's, and in one that leaves it open which id is the message's.
    for (line, id) in [
        (format!(r#"{{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{call}}}"#), json!(99)),
        (format!(r#"{{"method":"tools/call","params":{call},"jsonrpc":"2.0","id":98}}"#), json!(98)),
        (format!(r#"{{"method":"tools/call","params":{call}}}"#), Value::Null),
    ] {
        agent.say(&line);
        let refused = agent.hear();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&id, &json!(-32600)), "{refused}");
    }
    assert!(agent.ok("memory_list_files", json!({})).contains("no files"));
}

#[test]
fn a_message_of_any_length_is_answered() {
    let mut agent = Home::new().agent(&[]);
    let message = |id: i64, length: usize| {
        let line = |text: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"_meta":{{"text":"{text}"}}}}}}"#
            )
        };
        line(&"x".repeat(length - line("").len()))
    };
    let most = 16 * 1024 * 1024;
    for (length, is_taken) in [(most - 1, true), (most, false), (most + 1, false)] {
        agent.say(&message(900 + length as i64, length));
        let answer = agent.hear();
        assert_eq!(answer["id"], 900 + length as i64, "{length}");
        assert_eq!(answer.get("result").is_some(), is_taken, "{length}: {answer}");
    }
}

#[test]
fn in_a_folder_that_others_can_look_into_the_memory_is_the_users_own() {
    let home = Home::new();
    let folder = home.path().join("open");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut agent = home.agent(&["--data-dir", folder.to_str().unwrap()]);
    agent.ok("remember", json!({"text": "Not for everybody."}));
    let mut looked_at = 0;
    for file in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}: {mode:o}", file.file_name());
        looked_at += 1;
    }
    assert!(looked_at >= 4, "{looked_at} files");
}

#[test]
fn unknown_tools_and_methods_are_errors_of_the_protocol() {
    let mut agent = Home::new().agent(&[]);
    let unknown = agent.request("tools/call", json!({"name": "dig", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("remember"), "{unknown}");
    assert_eq!(agent.request("prompts/get", json!({"name": "a"}))["error"]["code"], -32601);
}

#[test]
fn names_that_cannot_be_are_refused_at_the_start() {
    let home = Home::new();
    for args in [&["--user", " "][..], &["--tenant", "\u{1}"][..], &["--project", "a\u{7}b"][..]] {
        let output = home.command(args).output().unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{output:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_host_that_sets_no_variables_has_the_memory_of_its_account() {
    let home = Home::new();
    let mut command = home.command(&[]);
    command.env_remove("USER");
    let begun = Agent::start(command).begin()["result"].clone();
    // Tests run under an account that the machine knows.
    let account = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
    let account = String::from_utf8(account).unwrap();
    let instructions = begun["instructions"].as_str().unwrap();
    assert!(instructions.ends_with(&format!("This is the memory of {}.", account.trim())), "{instructions}");
}
