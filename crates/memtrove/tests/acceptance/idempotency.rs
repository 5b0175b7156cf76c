//! `Idempotency-Key`: a repeated append writes once.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

fn path(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/entries")
}

/// Appends with this idempotency key.
#[track_caller]
fn append(who: &Client, conversation: &str, key: &str, body: Value) -> Answer {
    who.with_header("idempotency-key", key).post(&path(conversation), body)
}

#[test]
fn a_repetition_answers_the_first_result_and_writes_nothing() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    let first = append(&alice, &id, "k1", history("hello")).expect(201);
    let again = append(&alice, &id, "k1", history("hello")).expect(201);

    assert_eq!(again.json, first.json);
    assert_eq!(transcript(&alice, &id), ["hello"]);
}

#[test]
fn a_repetition_answers_the_first_result_even_after_other_entries() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let first = append(&agent, &id, "k1", memory(json!(["a"]))).expect(201);
    sync(&agent, &id, json!(["x"])).expect(200);
    say(&agent, &id, "between");

    let again = append(&agent, &id, "k1", memory(json!(["a"]))).expect(201);

    assert_eq!(again.json, first.json);
    assert_eq!(again.json["epoch"], 1);
    assert_eq!(view(&agent, &id), ["a", "x", "between"]);
}

#[test]
fn different_keys_write_twice_and_no_key_always_writes() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    append(&alice, &id, "k1", history("hello")).expect(201);
    append(&alice, &id, "k2", history("hello")).expect(201);
    append(&alice, &id, "K2", history("hello")).expect(201);
    say(&alice, &id, "hello");
    say(&alice, &id, "hello");

    assert_eq!(transcript(&alice, &id).len(), 5);
}

#[test]
fn the_same_key_with_another_body_is_a_conflict() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    append(&agent, &id, "k1", history("hello")).expect(201);

    append(&agent, &id, "k1", history("goodbye")).expect_error(409, "conflict");
    append(&agent, &id, "k1", memory(json!(["hello"]))).expect_error(409, "conflict");
    let mut indexed = history("hello");
    indexed["indexedContent"] = json!("greeting");
    append(&agent, &id, "k1", indexed).expect_error(409, "conflict");

    assert_eq!(view(&agent, &id), ["hello"]);
    append(&agent, &id, "k1", history("hello")).expect(201);
}

#[test]
fn a_key_belongs_to_one_conversation() {
    let alice = SERVER.someone("alice");
    let (a, b) = (start(&alice, "A"), start(&alice, "B"));

    let in_a = append(&alice, &a, "k1", history("hello")).expect(201);
    let in_b = append(&alice, &b, "k1", history("other words")).expect(201);

    assert_ne!(in_a.id(), in_b.id());
    assert_eq!((transcript(&alice, &a).len(), transcript(&alice, &b).len()), (1, 1));
}

#[test]
fn a_key_belongs_to_one_user() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "writer");

    append(&alice, &id, "k1", history("by alice")).expect(201);
    append(&bob, &id, "k1", history("by bob")).expect(201);

    assert_eq!(transcript(&alice, &id), ["by alice", "by bob"]);
}

#[test]
fn a_key_belongs_to_one_client() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    append(&alice.with_key("agent-a"), &id, "k1", history("via a")).expect(201);
    append(&alice.with_key("agent-b"), &id, "k1", history("via b")).expect(201);
    append(&alice, &id, "k1", history("directly")).expect(201);

    assert_eq!(transcript(&alice, &id), ["via a", "via b", "directly"]);
}

#[test]
fn a_first_append_can_be_repeated() {
    let alice = SERVER.someone("alice");
    let id = fresh_id();

    let first = append(&alice, &id, "k1", history("hello")).expect(201);
    let again = append(&alice, &id, "k1", history("hello")).expect(201);

    assert_eq!(again.id(), first.id());
    assert_eq!(transcript(&alice, &id), ["hello"]);
}

#[test]
fn repetitions_at_once_write_once() {
    for known in [true, false] {
        let alice = SERVER.someone("alice");
        let id = if known { start(&alice, "Chat") } else { fresh_id() };

        let answers = at_once(20, |_| append(&alice, &id, "k1", history("hello")).expect(201).id());

        assert!(answers.iter().all(|entry| *entry == answers[0]), "{answers:?}");
        assert_eq!(transcript(&alice, &id), ["hello"]);
    }
}

#[test]
fn a_refused_append_does_not_use_up_its_key() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    append(&alice, &id, "k1", json!({"channel": "history", "contentType": "history", "content": []}))
        .expect(400);
    append(&alice, &id, "k1", memory(json!(["no key"]))).expect(403);

    append(&alice, &id, "k1", history("hello")).expect(201);
}

#[test]
fn a_repetition_still_needs_access() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "writer");
    append(&bob, &id, "k1", history("hello")).expect(201);

    alice
        .patch(
            &format!("/v1/conversations/{id}/memberships/{}", bob.user()),
            json!({"accessLevel": "reader"}),
        )
        .expect(200);
    append(&bob, &id, "k1", history("hello")).expect_forbidden();

    alice.delete(&format!("/v1/conversations/{id}")).expect(204);
    append(&alice, &id, "k1", history("hello")).expect_not_found("conversation", &id);
}

#[test]
fn a_key_has_at_most_128_characters() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    append(&alice, &id, &"k".repeat(128), history("hello")).expect(201);
    append(&alice, &id, &"k".repeat(129), history("hello")).expect(400);

    assert_eq!(transcript(&alice, &id).len(), 1);
}

#[test]
fn a_repetition_after_a_restart_still_writes_nothing() {
    let mut server = local_server();
    let user = fresh_name("alice");
    let id = fresh_id();
    let first = append(&server.as_user(&user), &id, "k1", history("hello")).expect(201);

    server.restart();

    let alice = server.as_user(&user);
    assert_eq!(append(&alice, &id, "k1", history("hello")).expect(201).json, first.json);
    assert_eq!(transcript(&alice, &id), ["hello"]);
}
