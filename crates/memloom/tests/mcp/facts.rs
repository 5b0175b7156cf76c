//! `remember_fact`, `query_facts`.

use crate::support::*;

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
fn half_a_fact_is_none() {
    let mut agent = Home::new().agent(&[]);
    let error = agent.failure("remember_fact", json!({"subject": "Alice", "predicate": "works_at"}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS", "{error}");
    assert!(error["message"].as_str().unwrap().contains("object"), "{error}");
}
