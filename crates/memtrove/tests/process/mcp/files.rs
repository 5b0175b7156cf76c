//! The file tools, and the events beside them.

use crate::mcp::support::*;

#[test]
fn a_file_is_written_listed_loaded_patched_and_deleted() {
    let mut agent = Home::new().agent(&[]);
    let path = "projects/plan.md";
    assert_eq!(agent.ok("memory_list_files", json!({})), "no files");
    let written = agent.ok("memory_write_file", json!({"path": path, "content": "# Plan\n\n- one\n- two\n"}));
    assert_eq!(written, "created projects/plan.md");
    let listed = agent.ok("memory_list_files", json!({"prefix": "projects/"}));
    assert!(listed.starts_with("projects/plan.md 20") && listed.lines().count() == 1, "{listed}");
    let edits = json!([{"old_text": "two", "new_text": "three"}]);
    assert_eq!(
        agent.ok("memory_patch_file", json!({"path": path, "edits": edits})),
        "patched projects/plan.md"
    );
    assert_eq!(agent.ok("memory_load_file", json!({"path": path})), "# Plan\n\n- one\n- three\n");
    assert_eq!(
        agent.ok("memory_write_file", json!({"path": path, "content": ""})),
        "replaced projects/plan.md"
    );
    assert_eq!(agent.ok("memory_load_file", json!({"path": path})), "");
    assert_eq!(agent.ok("memory_delete_file", json!({"path": path})), "deleted projects/plan.md");
    assert_eq!(agent.failure("memory_load_file", json!({"path": path}))["code"], "DOCUMENT_NOT_FOUND");
}

#[test]
fn failures_say_what_to_do_now() {
    let mut agent = Home::new().agent(&[]);
    agent.ok("memory_write_file", json!({"path": "a.md", "content": "same same"}));
    for (tool, arguments, code, hint) in [
        ("memory_load_file", json!({"path": "b.md"}), "DOCUMENT_NOT_FOUND", "memory_list_files"),
        ("memory_delete_file", json!({"path": "b.md"}), "DOCUMENT_NOT_FOUND", "memory_list_files"),
        ("memory_load_file", json!({"path": "../b.md"}), "INVALID_PATH", "relative path"),
        ("memory_load_file", json!({}), "INVALID_ARGUMENTS", "memory_load_file takes"),
        ("memory_delete_file", json!({"path": ""}), "INVALID_ARGUMENTS", "memory_delete_file takes"),
        (
            "memory_patch_file",
            json!({"path": "a.md", "old_text": "same", "new_text": "x"}),
            "PATCH_MATCH_AMBIGUOUS",
            "occurrence",
        ),
        (
            "memory_patch_file",
            json!({"path": "a.md", "old_text": "other", "new_text": "x"}),
            "PATCH_MATCH_NOT_FOUND",
            "memory_load_file",
        ),
        (
            "memory_write_file",
            json!({"path": "a.md", "content": "x".repeat(300_000)}),
            "DOCUMENT_SIZE_EXCEEDED",
            "shorter",
        ),
    ] {
        let error = agent.failure(tool, arguments);
        assert_eq!(error["code"], code, "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    }
    assert_eq!(agent.ok("memory_load_file", json!({"path": "a.md"})), "same same");
}

#[test]
fn long_events_are_cut_where_there_are_several() {
    let mut agent = Home::new().agent(&[]);
    let long = |number: usize| format!("Observation {number}: {}", "star ".repeat(700));
    agent.ok("memory_log_event", json!({"digest": long(1)}));
    let alone = agent.ok("memory_recall", json!({"query": "observation"}));
    assert!(alone.len() > 3000, "{} characters", alone.len());
    for number in 2..=5 {
        agent.ok("memory_log_event", json!({"digest": long(number)}));
    }
    let found = agent.ok("memory_recall", json!({"query": "observation", "top_k": 5}));
    assert_eq!(found.matches("more characters)").count(), 5, "{found}");
    assert!(found.len() < 6000, "{} characters", found.len());
}

#[test]
fn keywords_have_a_limit_and_are_cut_where_events_are_shown() {
    let server = TestServer::start(env!("CARGO_BIN_EXE_memtrove"));
    let client = server.someone("alice").with_key("editor");
    let alice = Caller::of(&client);
    let error = alice.failure("memory_log_event", json!({"digest": "a", "keywords": ["k".repeat(129)]}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS", "{error}");
    assert!(error["message"].as_str().unwrap().contains("129 characters"), "{error}");
    alice.ok("memory_log_event", json!({"digest": "a", "keywords": ["k".repeat(128)]}));

    // Other clients have no such limit.
    let event = json!({"event_id": "long", "tenant_id": "default", "user_id": client.user(), "digest": "Docked",
        "keywords": (0..50).map(|number| format!("{number}{}", "k".repeat(5000))).collect::<Vec<_>>()});
    let path = format!("/v1/tenants/default/users/{}/events", client.user());
    client.post(&path, json!({"event": event})).expect(202);
    let found = alice.ok("memory_recall", json!({"query": "docked"}));
    assert!(found.contains("Docked") && found.contains("more characters)"), "{found}");
    assert!(found.len() < 300, "{} characters", found.len());
}

#[test]
fn no_result_is_longer_than_a_model_should_pay_for_but_a_file() {
    let mut agent = Home::new().agent(&[]);
    for number in 0..25 {
        let digest = format!("Tide {number}{}end", "\n".repeat(9000));
        agent.ok("memory_log_event", json!({"digest": digest}));
        let path = format!("{number}/{}.md", ["long"; 200].join("/"));
        agent.ok("memory_write_file", json!({"path": path, "content": "x"}));
    }
    for (tool, arguments) in [
        ("memory_recall", json!({"query": "tide", "top_k": 20})),
        ("memory_recall", json!({"query": "tide", "top_k": 1})),
        ("recall", json!({"query": "tide", "limit": 20, "min_score": 0})),
        ("recall", json!({"query": "tide", "limit": 1, "min_score": 0})),
        ("memory_list_files", json!({})),
    ] {
        let found = agent.ok(tool, arguments);
        let chars = found.chars().count();
        assert!((5000..=20_000).contains(&chars), "{tool}: {chars} characters");
        let is_said = found.contains("more characters)") || found.contains("(there are more: ");
        assert!(is_said, "{tool}: {found}");
    }
    let content = "x".repeat(100_000);
    agent.ok("memory_write_file", json!({"path": "a.md", "content": content}));
    assert_eq!(agent.ok("memory_load_file", json!({"path": "a.md"})), content);
    let name = "n".repeat(100_000);
    let error = agent.failure("recall", json!({"query": "a", name: 1}));
    assert!(error.to_string().len() < 3000, "{} characters", error.to_string().len());
}

#[test]
fn what_there_are_too_many_of_does_not_become_less_by_waiting() {
    let quotas = "[quotas]\nmax_files = 1\nmax_events = 1\nuser_reads = {limit = 1, window = \"1h\"}\n";
    let server = Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(quotas).start();
    let alice = Caller::of(&server.someone("alice"));
    alice.ok("memory_write_file", json!({"path": "a.md", "content": "x"}));
    alice.ok("memory_log_event", json!({"digest": "first"}));
    for (tool, arguments, what) in [
        ("memory_write_file", json!({"path": "b.md", "content": "x"}), "files"),
        ("memory_log_event", json!({"digest": "second"}), "events"),
    ] {
        let error = alice.failure(tool, arguments);
        assert_eq!((&error["code"], &error["resource"]), (&json!("QUOTA_EXCEEDED"), &json!(what)), "{error}");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.starts_with("Waiting does not help.") && hint.contains(what), "{error}");
    }
    alice.ok("memory_list_files", json!({}));
    let error = alice.failure("memory_list_files", json!({}));
    assert!(error["hint"].as_str().unwrap().contains("Wait a little"), "{error}");
}

#[test]
fn an_event_happened_on_a_day_or_at_an_instant() {
    let mut agent = Home::new().agent(&[]);
    for (number, at) in
        ["2026-01-30", "2026-01-31T09:00:00", "2026-02-01T09:00:00+02:00"].into_iter().enumerate()
    {
        agent.ok("memory_log_event", json!({"digest": format!("launch{number}"), "happened_at": at}));
        let found = agent.ok("memory_recall", json!({"query": format!("launch{number}")}));
        assert!(found.starts_with(&at[..10]), "{at}: {found}");
    }
    let refused = [json!({"happened_at": "yesterday"}), json!({"keywords": "a,b"})];
    for (arguments, name) in refused.into_iter().zip(["'happened_at'", "'keywords'"]) {
        let mut arguments = arguments;
        arguments["digest"] = json!("A launch");
        let error = agent.failure("memory_log_event", arguments);
        assert!(error["message"].as_str().unwrap().contains(name), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("2026-01-31T09:00:00Z"), "{error}");
    }
}

#[test]
fn an_event_is_forgotten_by_the_id_that_it_was_logged_under() {
    let home = Home::new();
    let mut agent = home.agent(&[]);
    let logged = agent.ok("memory_log_event", json!({"digest": "The lighthouse was painted"}));
    let mut other = home.agent(&["--user", "bob"]);
    assert_eq!(other.failure("forget", json!({"id": id_in(&logged)}))["code"], "MEMORY_NOT_FOUND");
    assert_eq!(agent.ok("forget", json!({"id": id_in(&logged)})), "forgotten");
    assert!(agent.ok("memory_recall", json!({"query": "lighthouse"})).starts_with("no event"));
    let left = agent.ok("recall", json!({"query": "lighthouse painted", "min_score": 0}));
    assert!(left.starts_with("nothing found"), "{left}");
    assert_eq!(agent.failure("forget", json!({"id": id_in(&logged)}))["code"], "MEMORY_NOT_FOUND");
}

#[test]
fn writers_of_one_file_do_not_undo_each_other() {
    let mut agent = Home::new().agent(&[]);
    agent.ok("memory_write_file", json!({"path": "a.md", "content": "0 1 2"}));
    for digit in 0..3 {
        let edit = json!({"path": "a.md", "old_text": digit.to_string(), "new_text": format!("<{digit}>")});
        agent.ask("tools/call", json!({"name": "memory_patch_file", "arguments": edit}));
    }
    for _ in 0..3 {
        assert_eq!(succeeded(&agent.hear()), "patched a.md");
    }
    assert_eq!(agent.ok("memory_load_file", json!({"path": "a.md"})), "<0> <1> <2>");
}

#[test]
fn an_event_is_found_by_its_words_and_recalled_as_a_memory() {
    let mut agent = Home::new().agent(&["--project", "shop"]);
    let nothing = agent.ok("memory_recall", json!({"query": "release"}));
    assert!(nothing.contains("memory_log_event"), "{nothing}");
    let event = json!({"digest": "Released version 2 of the shop", "keywords": ["milestone"],
        "happened_at": "2026-01-31T09:00:00Z"});
    assert!(agent.ok("memory_log_event", event).starts_with("logged ["));
    assert_eq!(
        agent.ok("memory_recall", json!({"query": "milestone"})),
        "2026-01-31 Released version 2 of the shop (milestone)"
    );
    let recalled = agent.ok("recall", json!({"query": "Released version 2 of the shop"}));
    assert!(recalled.contains("Released version 2"), "{recalled}");
}
