//! `remember_fact`, `query_facts`.

use crate::mcp::support::*;

fn works_at(company: &str) -> Value {
    json!({"subject": "Alice", "predicate": "works_at", "object": company})
}

#[test]
fn a_fact_is_stated_once_looked_up_and_forgotten() {
    let mut agent = Home::new().agent(&[]);
    let first = agent.ok("remember_fact", works_at("Acme"));
    assert!(first.starts_with("remembered ["), "{first}");
    let again = agent.ok("remember_fact", works_at("Acme"));
    assert!(again.starts_with("already remembered ["), "{again}");
    assert_eq!(id_in(&again), id_in(&first));
    let found = agent.ok("query_facts", json!({"subject": "Alice"}));
    assert_eq!(found, format!("Alice · works_at · Acme [{}]", id_in(&first)));
    assert_eq!(agent.ok("forget", json!({"id": id_in(&first)})), "forgotten");
    assert!(agent.ok("query_facts", json!({"subject": "Alice"})).starts_with("no such facts"));
}

#[test]
fn whoever_states_another_value_hears_of_the_first() {
    let mut agent = Home::new().agent(&[]);
    let first = agent.ok("remember_fact", works_at("Acme"));
    let second = agent.ok("remember_fact", works_at("Initech"));
    let other = second.lines().nth(1).unwrap();
    assert!(other.contains("Alice · works_at · Acme") && other.contains(&id_in(&first)), "{second}");
}

#[test]
fn facts_are_compared_exactly_and_recall_finds_them_too() {
    let mut agent = Home::new().agent(&[]);
    agent.ok(
        "remember_fact",
        json!({"subject": "Alice", "predicate": "plays", "object": "the cello", "confidence": 0.5}),
    );
    agent.ok("remember_fact", json!({"subject": "Bob", "predicate": "plays", "object": "chess"}));
    let found = agent.ok("query_facts", json!({"predicate": "plays", "object": "the cello"}));
    assert!(found.starts_with("Alice · plays · the cello (0.5) ["), "{found}");
    assert_eq!(agent.ok("query_facts", json!({"limit": 1})).lines().count(), 2);
    let recalled = agent.ok("recall", json!({"query": "Alice plays the cello"}));
    assert!(recalled.contains("the cello"), "{recalled}");
}

#[test]
fn stating_a_fact_again_leaves_its_confidence_unless_another_is_given() {
    let mut agent = Home::new().agent(&[]);
    let mut doubtful = works_at("Acme");
    doubtful["confidence"] = json!(0.5);
    let first = agent.ok("remember_fact", doubtful.clone());
    for same in [works_at("Acme"), doubtful.clone()] {
        let again = agent.ok("remember_fact", same);
        assert_eq!(again, format!("already remembered [{}]", id_in(&first)));
        let found = agent.ok("query_facts", json!({"subject": "Alice"}));
        assert!(found.starts_with("Alice · works_at · Acme (0.5) ["), "{found}");
    }
    doubtful["confidence"] = json!(0.9);
    assert_eq!(agent.ok("remember_fact", doubtful), format!("updated [{}]", id_in(&first)));
    let found = agent.ok("query_facts", json!({"subject": "Alice"}));
    assert!(found.starts_with("Alice · works_at · Acme (0.9) ["), "{found}");
}

#[test]
fn a_fact_is_forgotten_by_the_text_that_shows_it() {
    let mut agent = Home::new().agent(&[]);
    let plain = "Alice · works_at · Acme".to_owned();
    let shown = |agent: &mut Agent| agent.ok("query_facts", json!({"subject": "Alice"}));
    for confidence in [1.0, 0.5] {
        let mut fact = works_at("Acme");
        fact["confidence"] = json!(confidence);
        agent.ok("remember_fact", fact.clone());
        assert_eq!(agent.ok("forget", json!({"text": plain})), "forgotten");
        agent.ok("remember_fact", fact);
        let line = shown(&mut agent);
        assert_eq!(agent.ok("forget", json!({"text": line})), "forgotten");
        assert!(shown(&mut agent).starts_with("no such facts"));
    }
    agent.ok("remember_fact", works_at("Acme (1999) · Berlin"));
    assert_eq!(agent.ok("forget", json!({"text": "Alice · works_at · Acme (1999) · Berlin"})), "forgotten");
    assert_eq!(agent.failure("forget", json!({"text": plain}))["code"], "MEMORY_NOT_FOUND");
    assert_eq!(agent.failure("forget", json!({"text": " ·  · "}))["code"], "MEMORY_NOT_FOUND");
}

#[test]
fn many_long_facts_are_cut_and_it_is_said_how_many_are_missing() {
    let mut agent = Home::new().agent(&[]);
    let long = |letter: &str, number: usize| format!("{number}{}", letter.repeat(1000));
    let fact =
        |number| json!({"subject": long("s", 1), "predicate": long("p", 1), "object": long("o", number)});
    for number in 0..45 {
        let said = agent.ok("remember_fact", fact(number));
        assert!(said.len() < 6000, "{} characters", said.len());
    }
    let found = agent.ok("query_facts", json!({"limit": 100}));
    let (lines, last) = (found.lines().count(), found.lines().last().unwrap());
    assert!(found.chars().count() <= 20_000, "{} characters", found.chars().count());
    assert_eq!(last, format!("({} more, not shown: narrow by subject or predicate)", 46 - lines));
    let found = agent.ok("query_facts", json!({"limit": 2}));
    assert!(
        found.ends_with("\n(43 more, not shown: raise limit, or narrow by subject or predicate)"),
        "{found}"
    );
    let one = agent.ok("query_facts", json!({"object": long("o", 7)}));
    assert!(one.contains(&long("o", 7)), "what is found alone is shown whole: {one}");
}

#[test]
fn at_the_most_that_can_be_asked_for_nobody_is_told_to_ask_for_more() {
    let mut agent = Home::new().agent(&[]);
    for number in 0..101 {
        agent.ask("tools/call", json!({"name": "remember_fact", "arguments": works_at(&number.to_string())}));
    }
    for _ in 0..101 {
        succeeded(&agent.hear());
    }
    let found = agent.ok("query_facts", json!({"limit": 100}));
    assert!(found.ends_with("\n(1 more, not shown: narrow by subject or predicate)"), "{found}");
}

#[test]
fn half_a_fact_is_none() {
    let mut agent = Home::new().agent(&[]);
    let error = agent.failure("remember_fact", json!({"subject": "Alice", "predicate": "works_at"}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS", "{error}");
    assert!(error["message"].as_str().unwrap().contains("object"), "{error}");
}
