//! Whose memory it is: fixed by the host, never said by a model.

use crate::mcp::support::*;

#[test]
fn a_call_that_names_whose_memory_it_wants_is_refused() {
    let mut agent = Home::new().agent(&["--project", "shop"]);
    let names = [
        "user",
        "user_id",
        "userId",
        "tenant",
        "tenant_id",
        "project",
        "projectId",
        "identifiers",
        "layer",
        "scope",
    ];
    for name in names {
        for (tool, mut arguments) in [
            ("recall", json!({"query": "a"})),
            ("remember", json!({"text": "a"})),
            ("memory_list_files", json!({})),
            ("append_message", json!({"role": "user", "text": "a"})),
        ] {
            arguments[name] = "bob".into();
            let error = agent.failure(tool, arguments);
            assert_eq!(error["code"], "INVALID_ARGUMENTS", "{error}");
            assert!(error["message"].as_str().unwrap().contains("fixed by the host"), "{error}");
            assert!(error["hint"].as_str().unwrap().contains(name), "{error}");
        }
    }
}

#[test]
fn users_and_tenants_do_not_see_each_other() {
    let home = Home::new();
    let mut alice = home.agent(&[]);
    let kept = alice.ok("remember", json!({"text": "Alice hides the presents in the attic."}));
    let fact =
        alice.ok("remember_fact", json!({"subject": "attic", "predicate": "holds", "object": "presents"}));
    alice.ok("memory_write_file", json!({"path": "attic.md", "content": "presents"}));
    alice.ok("memory_log_event", json!({"digest": "Hid presents in the attic"}));
    let said = alice.ok("append_message", json!({"role": "user", "text": "The presents are in the attic"}));
    for args in [&["--user", "bob"][..], &["--tenant", "elsewhere"][..]] {
        let mut other = home.agent(args);
        let found = other.ok("recall", json!({"query": "presents in the attic", "min_score": 0}));
        assert!(found.starts_with("nothing found"), "{found}");
        assert!(other.ok("query_facts", json!({})).starts_with("no such facts"));
        assert_eq!(other.ok("memory_list_files", json!({})), "no files");
        assert_eq!(
            other.failure("memory_load_file", json!({"path": "attic.md"}))["code"],
            "DOCUMENT_NOT_FOUND"
        );
        assert!(other.ok("memory_recall", json!({"query": "presents attic"})).starts_with("no event"));
        let found = other.ok("search_conversations", json!({"query": "presents attic"}));
        assert_eq!(found, "nothing found in earlier conversations");
        for id in [id_in(&kept), id_in(&fact)] {
            assert_eq!(other.failure("forget", json!({"id": id}))["code"], "MEMORY_NOT_FOUND");
        }
        assert_eq!(other.request("resources/list", json!({}))["result"]["resources"], json!([]));
        if args[0] == "--user" {
            let message = json!({"role": "user", "text": "me too", "conversation_id": id_in(&said)});
            assert_eq!(other.failure("append_message", message)["code"], "NOT_FOUND");
        }
    }
    assert!(alice.ok("recall", json!({"query": "presents in the attic"})).contains("attic"));
}

#[test]
fn a_project_is_offered_only_where_one_is_bound() {
    let home = Home::new();
    let offered = |agent: &mut Agent| {
        let tools = agent.request("tools/list", json!({}));
        let tools = tools["result"]["tools"].as_array().unwrap().clone();
        let remember = tools.iter().find(|tool| tool["name"] == "remember").unwrap();
        remember["inputSchema"]["properties"].get("for_project").is_some()
    };
    assert!(!offered(&mut home.agent(&[])));
    assert!(offered(&mut home.agent(&["--project", "shop"])));
    let begun = home.process(&["--project", "shop"]).begin();
    let instructions = begun["result"]["instructions"].as_str().unwrap();
    assert!(instructions.ends_with("in the project shop."), "{instructions}");
}
