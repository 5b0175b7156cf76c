//! The same request under the same key on both nodes at once: applied once, and answered alike.

use crate::cluster::sound::assert_sound;
use crate::cluster::support::*;

/// Sends the same four times, at two nodes; the answers to those that were not told to wait.
#[track_caller]
fn repeated(send: impl Fn(usize) -> Answer + Sync) -> Vec<Answer> {
    let answers = at_once(4, |n| send(n % 2));
    let (done, waiting): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status != 409);
    for answer in waiting {
        // Still under way is a right answer, and the only other one.
        assert!(
            answer.text.contains("in_progress") || answer.text.contains("PENDING"),
            "{}",
            answer.describe()
        );
    }
    assert!(!done.is_empty(), "somebody is answered");
    for answer in &done {
        assert!((200..300).contains(&answer.status), "{}", answer.describe());
        let (mut body, mut first) = (answer.json.clone(), done[0].json.clone());
        for replayed in [&mut body, &mut first] {
            replayed.as_object_mut().map(|members| members.remove("idempotency_replay"));
        }
        assert_eq!((answer.status, body), (done[0].status, first), "answered alike");
    }
    done
}

#[test]
fn a_key_used_on_both_nodes_at_once_is_applied_once() {
    let nodes = setup().nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");
    let id = alice.start();
    let at = |n: usize, key: &str| alice.at(&nodes[n]).with_key(key);
    for round in 0..4 {
        let key = format!("key-{round}");
        repeated(|n| at(n, &key).say(&id, &key));
        repeated(|n| at(n, &key).put(&format!("{round}.md"), "*", json!({"lines": []})));
        repeated(|n| at(n, &key).remember(&key));
        let fact = json!({"layer": "user", "identifiers": {"userId": alice.user}, "factType": "rule",
                          "subject": key, "predicate": "is", "object": "a key"});
        repeated(|n| at(n, &key).client.post("/v1/facts", fact.clone()));
        // A key that begins a conversation.
        let begun = fresh_id();
        repeated(|n| at(n, &key).say(&begun, &key));
        assert_eq!(alice.transcript(&begun), [key.as_str()]);
    }

    assert_eq!(alice.transcript(&id), ["key-0", "key-1", "key-2", "key-3"]);
    let mut memories = alice.remembered();
    memories.retain(|content| content.starts_with("key-") && content.len() == 5);
    assert_eq!(memories.len(), 4, "{memories:?}");
    let database = nodes[0].database().expect("a database");
    assert_eq!(number(database, "SELECT count(*) FROM files"), 4);
    assert_eq!(number(database, "SELECT count(*) FROM memory_facts"), 4);
    assert_sound(database);
}

#[test]
fn a_key_that_was_used_on_one_node_is_known_on_the_other() {
    let nodes = setup().nodes(2);
    let alice = Person::fresh(&nodes[0], "alice").with_key("key");
    let other = alice.at(&nodes[1]).with_key("key");
    let id = fresh_id();

    let entry = alice.say(&id, "once").expect(201).id();
    let etag = alice.put("a.md", "*", json!({"lines": []})).expect(200).header("etag").to_owned();
    let memory = alice.remember("once").expect(201).json["memory"]["id"].clone();

    assert_eq!(other.say(&id, "once").expect(201).id(), entry);
    assert_eq!(other.put("a.md", "*", json!({"lines": []})).expect(200).header("etag"), etag);
    assert_eq!(other.remember("once").expect(201).json["memory"]["id"], memory);
    other.say(&id, "something else").expect(409);
    other.put("a.md", "*", json!({"lines": ["something else"]})).expect(409);
    other.remember("something else").expect(409);
}
