//! Entities and relations, by line or by list.

use super::*;

#[test]
fn an_entity_is_a_fact_and_memories() {
    let mut left_out = LeftOut::default();
    let observations = json!(["rows", " ", {"content": "swims"}, {"text": "sings"}, {"n": 1}]);
    let item = json!({"type": "entity", "name": "Ada", "entityType": "person", "observations": observations});
    let found = read(&item, &mut left_out).unwrap();
    let told: Vec<_> = found
        .into_iter()
        .map(|record| match record {
            Record::Memory(memory) => (memory.content, memory.fact.map(|fact| fact.object)),
            other => panic!("{other:?}"),
        })
        .collect();
    let said = |words: &str| (Some(format!("Ada: {words}")), None);
    assert_eq!(told, [(None, Some("person".to_owned())), said("rows"), said("swims"), said("sings")]);
    assert_eq!(left_out.iter().collect::<Vec<_>>(), [("observations without words", 2)]);
}

#[test]
fn an_entity_of_which_nothing_is_said_is_counted() {
    let mut left_out = LeftOut::default();
    assert!(
        read(&json!({"type": "entity", "name": "Ada", "observations": []}), &mut left_out)
            .unwrap()
            .is_empty()
    );
    assert!(read(&json!({"name": "Bob"}), &mut left_out).unwrap().is_empty());
    assert_eq!(left_out.iter().collect::<Vec<_>>(), [("entities of which nothing is said", 2)]);
}

#[test]
fn what_is_neither_says_so() {
    let refused = |item: Value| read(&item, &mut LeftOut::default()).unwrap_err();
    assert!(refused(json!({"type": "entity"})).contains("no name"));
    assert!(refused(json!({"relationType": "knows", "from": "a"})).contains("'to'"));
    assert!(refused(json!([])).contains("neither"));
}
