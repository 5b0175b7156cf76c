use super::*;
use crate::memories::requests::{code, user};
use crate::memories::testing::{identifiers, members as object};
use crate::memories::{MemoryId, State};
use serde_json::{Value, json};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_micros(5);
const LATER: Timestamp = Timestamp::from_micros(50);

fn fact() -> Fact {
    let [fact_type, subject, predicate, object] =
        ["preference", "alice", "drinks_with", "milk"].map(str::to_owned);
    Fact { fact_type, subject, predicate, object, confidence: 1.0 }
}

fn stating(fact: Fact) -> AddFact {
    AddFact::new(Layer::User, identifiers(json!({"userId": "alice"})), fact)
}

fn noted(metadata: Value) -> GivenMetadata {
    GivenMetadata(object(metadata))
}

fn new(add: AddFact) -> NewFact {
    add.check(&Rules::default(), &user("alice")).unwrap()
}

fn stored(add: AddFact) -> Memory {
    new(add).memory.into_memory(MemoryId(Uuid::from_u128(1)), NOW)
}

fn changed(change: FactChange, memory: &Memory) -> Applied {
    change.apply(memory, LATER, &Rules::default()).unwrap()
}

#[test]
fn a_fact_is_a_procedural_memory() {
    let unsure = Fact { confidence: 0.5, ..fact() };
    let memory = stored(AddFact {
        ttl_seconds: Some(9),
        metadata: noted(json!({"a": 1, "b": null})),
        ..stating(unsure.clone())
    });
    assert_eq!((memory.kind, memory.state), (Kind::Procedural, State::Active));
    assert_eq!(memory.content, "alice drinks with milk");
    assert_eq!((memory.ttl_seconds, memory.metadata), (Some(9), object(json!({"a": 1}))));
    assert_eq!(memory.fact, Some(unsure));
    let own = AddFact { content: Some(" own ".to_owned()), ..stating(fact()) };
    assert_eq!(stored(own).content, " own ");
}

#[test]
fn the_key_is_everything_but_the_confidence_and_its_parts_stay_apart() {
    let text = str::to_owned;
    assert_eq!(fact().key(), Fact { confidence: 0.1, ..fact() }.key());
    let keys = [
        fact(),
        Fact { fact_type: text("Preference"), ..fact() },
        Fact { subject: text("alice "), ..fact() },
        Fact { subject: text("alicedrinks"), predicate: text("_with"), ..fact() },
        Fact { predicate: text("drinks_withm"), object: text("ilk"), ..fact() },
        Fact { object: text("Milk"), ..fact() },
    ]
    .map(|fact| fact.key());
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len());
}

#[test]
fn stating_a_fact_again_replaces_what_was_said_and_merges_what_was_noted() {
    let first = stored(AddFact {
        content: Some("first".to_owned()),
        ttl_seconds: Some(9),
        metadata: noted(json!({"a": 1, "b": 1})),
        ..stating(Fact { confidence: 0.2, ..fact() })
    });
    let surer = stating(Fact { confidence: 0.9, ..fact() });
    let again = new(AddFact { metadata: noted(json!({"b": null, "c": 1})), ..surer });
    let applied = again.apply(&first, LATER, &Rules::default()).unwrap();
    assert!(applied.content_changed);
    let next = applied.memory;
    assert_eq!((next.id, next.version, next.updated_at), (first.id, 2, LATER));
    assert_eq!((next.content.as_str(), next.fact.unwrap().confidence), ("alice drinks with milk", 0.9));
    assert_eq!(next.metadata, object(json!({"a": 1, "c": 1})));
    assert_eq!((next.ttl_seconds, next.expires_at), (Some(9), Some(LATER.saturating_add_micros(9_000_000))));
    assert_eq!(next.policy, first.policy);
}

#[test]
fn content_that_only_said_the_fact_follows_it() {
    let lemon = || FactChange { object: Some("lemon".to_owned()), ..FactChange::default() };
    let rendered = changed(lemon(), &stored(stating(fact())));
    assert!(rendered.content_changed);
    assert_eq!(rendered.memory.content, "alice drinks with lemon");
    let own = AddFact { content: Some("own words".to_owned()), ..stating(fact()) };
    let own = changed(lemon(), &stored(own));
    assert!(!own.content_changed);
    assert_eq!(own.memory.content, "own words");
    assert_eq!(own.memory.fact.unwrap().object, "lemon");
    let told = FactChange { content: Some("new words".to_owned()), ..lemon() };
    assert_eq!(changed(told, &stored(stating(fact()))).memory.content, "new words");
    let surer =
        FactChange { confidence: Some(0.1), metadata: Some(noted(json!({"a": 1}))), ..FactChange::default() };
    let surer = changed(surer, &stored(stating(fact())));
    assert!(!surer.content_changed);
    assert_eq!((surer.memory.version, surer.memory.fact.unwrap().confidence), (2, 0.1));
    assert_eq!(surer.memory.metadata, object(json!({"a": 1})));
}

#[test]
fn a_change_is_of_something_of_a_fact_at_the_version_it_is_for() {
    let at_9 = FactChange { precondition: Precondition::if_match(Some("\"v9\"")), ..FactChange::default() };
    assert_eq!(code(at_9.check(&Rules::default())), "INVALID_REQUEST");
    let stale = FactChange { subject: Some("x".to_owned()), ..at_9 };
    assert!(stale.check(&Rules::default()).is_ok());
    let apply = |change: FactChange, memory: &Memory| change.apply(memory, LATER, &Rules::default());
    assert_eq!(code(apply(stale.clone(), &stored(stating(fact())))), "ETAG_MISMATCH");
    let other = Memory { fact: None, kind: Kind::Semantic, ..stored(stating(fact())) };
    assert_eq!(code(apply(stale, &other)), "MEMORY_NOT_FOUND");
}
