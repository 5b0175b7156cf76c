//! `remember`, `recall`, `forget`.

use crate::mcp::support::*;

#[test]
fn what_is_remembered_is_recalled_in_other_words_and_by_another_process() {
    let home = Home::new();
    let mut agent = home.agent(&[]);
    assert!(
        agent
            .ok("remember", json!({"text": "Alice prefers green tea over coffee."}))
            .starts_with("remembered [")
    );
    agent.ok("remember", json!({"text": "The deployment runs on a cluster in Frankfurt."}));
    agent.hang_up();
    assert!(agent.ended().success());

    let mut later = home.agent(&[]);
    let found = later.ok("recall", json!({"query": "What does Alice like to drink, tea or coffee?"}));
    let best = found.lines().nth(1).unwrap();
    assert!(best.contains("green tea over coffee"), "{found}");
    let score: f64 = best.split_once(' ').unwrap().0.parse().unwrap();
    assert!((0.0..=1.0).contains(&score), "{found}");
}

#[test]
fn the_same_words_again_are_the_same_memory() {
    let mut agent = Home::new().agent(&[]);
    let first = agent.ok("remember", json!({"text": "The release is on Friday."}));
    for same in ["The release is on Friday.", "the release  is on friday"] {
        let again = agent.ok("remember", json!({"text": same}));
        assert!(again.starts_with("already remembered ["), "{again}");
        assert_eq!(id_in(&again), id_in(&first));
    }
    let other = agent.ok("remember", json!({"text": "The release is on Monday."}));
    assert_ne!(id_in(&other), id_in(&first));
}

#[test]
fn what_has_no_words_is_remembered_once_and_forgotten_too() {
    let mut agent = Home::new().agent(&[]);
    for text in ["👍", "?!", "to be or not to be", "は"] {
        let first = agent.ok("remember", json!({"text": text}));
        let again = agent.ok("remember", json!({"text": text}));
        assert!(again.starts_with("already remembered ["), "{text}: {again}");
        assert_eq!(id_in(&again), id_in(&first));
    }
    assert_eq!(agent.ok("forget", json!({"text": "👍"})), "forgotten");
    assert_eq!(agent.failure("forget", json!({"text": "👍"}))["code"], "MEMORY_NOT_FOUND");
    assert_eq!(agent.ok("forget", json!({"text": "?!"})), "forgotten");
}

#[test]
fn what_is_told_of_another_time_is_another_memory() {
    let mut agent = Home::new().agent(&[]);
    let text = "Alice ran the marathon.";
    let first = agent.ok("remember", json!({"text": text, "happened_at": "2024-05-03"}));
    let again = agent.ok("remember", json!({"text": text, "happened_at": "2024-05-03T00:00:00Z"}));
    assert_eq!(again, format!("already {first}"));
    let other = agent.ok("remember", json!({"text": text, "happened_at": "2024-06-03T12:00:00+02:00"}));
    assert_ne!(id_in(&other), id_in(&first));
    let found = agent.ok("recall", json!({"query": "what did Alice run in June 2024?", "limit": 2}));
    assert!(found.lines().nth(1).unwrap().contains(&format!("[{}, 2024-06-03]", id_in(&other))), "{found}");
    let refused = agent.failure("remember", json!({"text": text, "happened_at": "yesterday"}));
    assert!(refused.to_string().contains("'happened_at'"), "{refused}");
}

#[test]
fn many_who_remember_the_same_at_once_make_one_memory() {
    let mut agent = Home::new().agent(&[]);
    let call = json!({"name": "remember", "arguments": {"text": "Backups are made every night."}});
    for _ in 0..8 {
        agent.ask("tools/call", call.clone());
    }
    let ids: std::collections::BTreeSet<String> = (0..8).map(|_| id_in(&succeeded(&agent.hear()))).collect();
    assert_eq!(ids.len(), 1);
}

#[test]
fn a_threshold_keeps_out_what_does_not_fit() {
    let mut agent = Home::new().agent(&[]);
    agent.ok("remember", json!({"text": "The cat sleeps on the windowsill."}));
    let none = agent.ok("recall", json!({"query": "quarterly tax filing deadlines", "min_score": 0.9}));
    assert!(none.contains("min_score"), "{none}");
    let nearest = agent.ok("recall", json!({"query": "quarterly tax filing deadlines", "min_score": 0}));
    assert!(nearest.contains("The cat sleeps"), "{nearest}");
}

#[test]
fn without_a_threshold_the_configured_one_applies() {
    let home = Home::new();
    let mut agent = home.agent(&[]);
    agent.ok("remember", json!({"text": "The cat sleeps on the windowsill."}));
    let unrelated = json!({"query": "quarterly tax filing deadlines"});
    let none = agent.ok("recall", unrelated.clone());
    assert!(none.starts_with("nothing found with a score of 0.7 or more"), "{none}");
    agent.hang_up();
    assert!(agent.ended().success());

    let mut command = home.command(&[]);
    command.env("MEMTROVE_MEMORIES__SEARCH__DEFAULT_THRESHOLD", "0");
    let mut all = Agent::start(command);
    all.begin();
    assert!(all.ok("recall", unrelated).contains("The cat sleeps"));
    let tools = all.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools[0]["inputSchema"]["properties"]["min_score"]["default"], 0.0);
}

#[test]
fn numbers_out_of_range_are_brought_into_it() {
    let mut agent = Home::new().agent(&[]);
    for number in 1..=3 {
        agent.ok("remember", json!({"text": format!("Fact number {number} about the harbour.")}));
    }
    let one = agent.ok("recall", json!({"query": "harbour", "limit": 0, "min_score": -1}));
    assert_eq!(one.lines().count(), 2, "{one}");
    let all = agent.ok("recall", json!({"query": "harbour", "limit": 5000, "min_score": "0"}));
    assert_eq!(all.lines().count(), 4, "{all}");
}

#[test]
fn of_a_long_memory_the_passage_that_answers_is_shown() {
    let mut agent = Home::new().agent(&[]);
    let stars = "Another star was seen that night. ".repeat(100);
    let long = format!("{stars}The archive of the observatory burnt down. {stars}");
    agent.ok("remember", json!({"text": long}));
    agent.ok("remember", json!({"text": "The archive of the observatory is in the cellar."}));
    let query = json!({"query": "archive of the observatory burnt", "min_score": 0});
    let found = agent.ok("recall", query);
    assert!(found.len() < 1200 && found.contains("burnt down."), "{found}");
    assert!(found.contains("… Another star") && found.contains("that night. …"), "{found}");
    let whole = agent.ok("recall", json!({"query": "which star was seen", "min_score": 0, "limit": 1}));
    assert!(whole.len() > long.len(), "{} characters", whole.len());
}

#[test]
fn long_memories_are_cut_where_there_are_several() {
    let mut agent = Home::new().agent(&[]);
    let long = |word: &str| format!("The archive of the observatory: {}", word.repeat(150));
    agent.ok("remember", json!({"text": long("stargazer's ")}));
    agent.ok("remember", json!({"text": long("astronomer's ")}));
    let found = agent.ok("recall", json!({"query": "archive of the observatory", "min_score": 0}));
    assert!(found.len() < 3000 && found.contains("more characters)"), "{} characters", found.len());
}

#[test]
fn a_memory_is_forgotten_by_id_or_by_its_text() {
    let mut agent = Home::new().agent(&[]);
    let first = agent.ok("remember", json!({"text": "The door code is on the blue card."}));
    agent.ok("remember", json!({"text": "The spare key hangs in the shed."}));
    assert_eq!(
        agent.ok("forget", json!({"id": format!("[{}]", id_in(&first))})),
        "forgotten",
        "as it is shown"
    );
    assert_eq!(agent.ok("forget", json!({"text": "the spare key hangs in the shed"})), "forgotten");
    let left = agent.ok("recall", json!({"query": "door code, spare key", "min_score": 0}));
    assert!(left.starts_with("nothing found"), "{left}");
    for gone in
        [json!({"id": id_in(&first)}), json!({"text": "The spare key"}), json!({"id": "no id at all"})]
    {
        let error = agent.failure("forget", gone);
        assert_eq!(error["code"], "MEMORY_NOT_FOUND", "{error}");
        assert!(error["hint"].as_str().unwrap().contains("recall"), "{error}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_answered_with_what_the_tool_takes() {
    let mut agent = Home::new().agent(&[]);
    for (tool, arguments) in [
        ("remember", json!({})),
        ("remember", json!({"text": "  "})),
        ("remember", json!({"text": 7})),
        ("remember", json!({"text": "x".repeat(8001)})),
        ("remember", json!({"text": "a", "mood": "b"})),
        ("recall", json!({"query": "a", "min_score": "much"})),
        ("recall", json!({"query": "q".repeat(2001)})),
        ("forget", json!({})),
        ("forget", json!({"id": "a", "text": "b"})),
    ] {
        let error = agent.failure(tool, arguments);
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{error}");
        assert!(error["hint"].as_str().unwrap().starts_with(tool), "{error}");
    }
}

#[test]
fn what_is_kept_for_a_project_is_found_by_all_who_work_on_it() {
    let home = Home::new();
    let mut alice = home.agent(&["--project", "shop"]);
    let kept = alice.ok("remember", json!({"text": "The shop charges in euros.", "for_project": true}));
    alice.ok("remember", json!({"text": "Alice charges her phone at night."}));
    let mut bob = home.agent(&["--project", "shop", "--user", "bob"]);
    let found = bob.ok("recall", json!({"query": "charges", "min_score": 0}));
    assert!(
        found.contains("in euros") && found.contains(", project]") && !found.contains("phone"),
        "{found}"
    );
    let mut elsewhere = home.agent(&["--project", "garden"]);
    let found = elsewhere.ok("recall", json!({"query": "charges", "min_score": 0}));
    assert!(found.contains("phone") && !found.contains("euros"), "{found}");
    assert_eq!(elsewhere.failure("forget", json!({"id": id_in(&kept)}))["code"], "MEMORY_NOT_FOUND");
    let mut unbound = home.agent(&[]);
    assert_eq!(unbound.failure("forget", json!({"id": id_in(&kept)}))["code"], "MEMORY_NOT_FOUND");
    let refused = unbound.failure("remember", json!({"text": "a", "for_project": true}));
    assert_eq!(refused["code"], "INVALID_ARGUMENTS");
    assert_eq!(bob.ok("forget", json!({"id": id_in(&kept)})), "forgotten");
}
