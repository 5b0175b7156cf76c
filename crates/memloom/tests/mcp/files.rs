//! The file tools, and the events beside them.

use crate::support::*;

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
    for wrong in [json!({"digest": "a", "happened_at": "yesterday"}), json!({"digest": "a", "keywords": "b"})]
    {
        assert_eq!(agent.failure("memory_log_event", wrong)["code"], "INVALID_EVENT");
    }
}
