//! Entities and relations, by line or by list.

use super::*;

#[test]
fn an_entity_is_a_fact_and_memories() {
    let found = read(
        &json!({"type": "entity", "name": "Ada", "entityType": "person", "observations": ["rows", " "]}),
    )
    .unwrap();
    let told: Vec<_> = found
        .into_iter()
        .map(|record| match record {
            Record::Memory(memory) => (memory.content, memory.fact.map(|fact| fact.object)),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(None, Some("person".to_owned())), (Some("Ada: rows".to_owned()), None)]);
}

#[test]
fn what_is_neither_says_so() {
    assert!(read(&json!({"type": "entity"})).unwrap_err().contains("no name"));
    assert!(read(&json!({"relationType": "knows", "from": "a"})).unwrap_err().contains("'to'"));
    assert!(read(&json!([])).unwrap_err().contains("neither"));
}
