//! Synchronising an agent's memory: the decision table, equality of items, checks, concurrency.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

fn path(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/entries/sync")
}

/// Somebody's agent.
fn an_agent() -> Client {
    SERVER.someone("alice").with_key("agent-a")
}

/// Requires the answer of a sync that wrote an entry with this content.
#[track_caller]
fn wrote(answer: Answer, epoch: u64, epoch_incremented: bool, content: Value) -> Value {
    let answer = answer.expect(200);
    assert_eq!(answer.json.as_object().map(|o| o.len()), Some(4), "{}", answer.describe());
    assert_eq!(
        (&answer.json["epoch"], &answer.json["noOp"], &answer.json["epochIncremented"]),
        (&json!(epoch), &json!(false), &json!(epoch_incremented)),
        "{}",
        answer.describe()
    );
    let entry = &answer.json["entry"];
    assert_members(
        entry,
        &["id", "conversationId", "userId", "channel", "epoch", "contentType", "content", "createdAt"],
        &answer.describe(),
    );
    assert_eq!(entry["content"], content, "{}", answer.describe());
    assert_eq!(entry["epoch"], epoch, "{}", answer.describe());
    assert_eq!(entry["channel"], "memory", "{}", answer.describe());
    entry.clone()
}

/// Requires the answer of a sync that wrote nothing.
#[track_caller]
fn wrote_nothing(answer: Answer, epoch: Value) {
    let answer = answer.expect(200);
    let expected = json!({"epoch": epoch, "noOp": true, "epochIncremented": false, "entry": null});
    assert_eq!(answer.json, expected, "{}", answer.describe());
}

// ---- the table of the contract, row by row

#[test]
fn unknown_conversation_and_nothing_to_remember_creates_nothing() {
    let agent = an_agent();
    let id = fresh_id();

    wrote_nothing(sync(&agent, &id, json!([])), json!(null));

    agent.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
}

#[test]
fn unknown_conversation_is_created_and_its_first_epoch_counts_as_incremented() {
    let agent = an_agent();
    let id = fresh_id();

    let entry = wrote(sync(&agent, &id, json!(["a"])), 1, true, json!(["a"]));

    assert_eq!(entry["conversationId"], id);
    let created = agent.get(&format!("/v1/conversations/{id}")).expect(200);
    assert_eq!(created.json["ownerUserId"], agent.user());
    assert_eq!(created.json.get("title"), None);
}

#[test]
fn existing_conversation_without_memory_and_nothing_to_remember() {
    let agent = an_agent();
    let id = start(&agent, "Chat");

    wrote_nothing(sync(&agent, &id, json!([])), json!(null));
    assert!(current_memory(&agent, &id).is_empty());
}

#[test]
fn existing_conversation_without_memory_gets_its_first_epoch_without_increment() {
    let agent = an_agent();
    let id = start(&agent, "Chat");

    wrote(sync(&agent, &id, json!(["a"])), 1, false, json!(["a"]));
}

#[test]
fn the_same_memory_again_writes_nothing() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);

    wrote_nothing(sync(&agent, &id, json!(["a"])), json!(1));
    assert_eq!(entries(&agent, &id, "channel=memory&epoch=all").data.len(), 1);
}

#[test]
fn an_extension_stores_only_what_is_new() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);

    wrote(sync(&agent, &id, json!(["a", "b"])), 1, false, json!(["b"]));
    assert_eq!(current_memory(&agent, &id), [json!("a"), json!("b")]);
}

#[test]
fn a_truncation_starts_a_new_epoch_with_everything() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a", "b"])).expect(200);

    wrote(sync(&agent, &id, json!(["a"])), 2, true, json!(["a"]));
    assert_eq!(current_memory(&agent, &id), [json!("a")]);
}

#[test]
fn a_divergence_starts_a_new_epoch_with_everything() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);

    wrote(sync(&agent, &id, json!(["x"])), 2, true, json!(["x"]));
    wrote(sync(&agent, &id, json!(["y", "x"])), 3, true, json!(["y", "x"]));
    assert_eq!(current_memory(&agent, &id), [json!("y"), json!("x")]);
}

#[test]
fn clearing_starts_a_new_epoch_with_an_empty_entry() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);

    wrote(sync(&agent, &id, json!([])), 2, true, json!([]));
    assert!(current_memory(&agent, &id).is_empty());
    assert_eq!(entries(&agent, &id, "channel=memory").data.len(), 1, "the clearing is an entry");
}

#[test]
fn a_cleared_memory_continues_in_the_same_epoch() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);
    sync(&agent, &id, json!([])).expect(200);

    wrote_nothing(sync(&agent, &id, json!([])), json!(2));
    wrote(sync(&agent, &id, json!(["a"])), 2, false, json!(["a"]));
    assert_eq!(current_memory(&agent, &id), [json!("a")]);
}

#[test]
fn another_content_type_starts_a_new_epoch_even_with_equal_items() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    let of_type = |content_type: &str, items: Value| {
        agent.post(&path(&id), json!({"channel": "memory", "contentType": content_type, "content": items}))
    };
    wrote(of_type("T", json!(["a"])), 1, false, json!(["a"]));

    let entry = wrote(of_type("U", json!(["a"])), 2, true, json!(["a"]));
    assert_eq!(entry["contentType"], "U");
    wrote(of_type("V", json!(["a", "b"])), 3, true, json!(["a", "b"]));
    wrote(of_type("W", json!([])), 4, true, json!([]));
    wrote(of_type("X", json!([])), 5, true, json!([]));
    wrote_nothing(of_type("X", json!([])), json!(5));
}

#[test]
fn a_memory_spread_over_several_entries_is_compared_as_one() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a1", "a2"])).expect(200);
    sync(&agent, &id, json!(["a1", "a2", "a3"])).expect(200);

    wrote_nothing(sync(&agent, &id, json!(["a1", "a2", "a3"])), json!(1));
    wrote(sync(&agent, &id, json!(["a1", "a2", "a3", "a4", "a5"])), 1, false, json!(["a4", "a5"]));
}

// ---- beyond the table

#[test]
fn appends_and_syncs_build_one_memory() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    remember(&agent, &id, json!(["a", "b"]));
    sync(&agent, &id, json!(["a", "b", "c"])).expect(200);
    remember(&agent, &id, json!([]));
    say(&agent, &id, "history does not count");
    remember(&agent, &id, json!(["d"]));

    wrote_nothing(sync(&agent, &id, json!(["a", "b", "c", "d"])), json!(1));
    wrote(sync(&agent, &id, json!(["a", "b", "c", "d", "e"])), 1, false, json!(["e"]));
}

#[test]
fn one_entry_of_another_type_in_the_epoch_is_enough_for_a_new_one() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);
    agent
        .post(
            &format!("/v1/conversations/{id}/entries"),
            json!({"channel": "memory", "contentType": "other", "content": ["b"]}),
        )
        .expect(201);

    wrote(sync(&agent, &id, json!(["a", "b"])), 2, true, json!(["a", "b"]));
    wrote_nothing(sync(&agent, &id, json!(["a", "b"])), json!(2));
}

#[test]
fn clients_never_influence_each_others_epochs() {
    let alice = SERVER.someone("alice");
    let (a, b) = (alice.with_key("agent-a"), alice.with_key("agent-b"));
    let id = start(&alice, "Chat");
    sync(&a, &id, json!(["one"])).expect(200);
    sync(&a, &id, json!(["two"])).expect(200);

    wrote(sync(&b, &id, json!(["one"])), 1, false, json!(["one"]));
    wrote_nothing(sync(&a, &id, json!(["two"])), json!(2));
}

#[test]
fn old_epochs_are_kept() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    for n in 1..=5 {
        sync(&agent, &id, json!([n])).expect(200);
    }

    for n in 1..=5 {
        assert_eq!(said(&entries(&agent, &id, &format!("channel=memory&epoch={n}"))), [n.to_string()]);
    }
}

#[test]
fn an_old_state_that_comes_back_is_a_new_epoch() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);
    sync(&agent, &id, json!(["b"])).expect(200);

    wrote(sync(&agent, &id, json!(["a"])), 3, true, json!(["a"]));
}

// ---- equality of items

/// Syncs `first`, then `second`; whether the second was a no-op.
#[track_caller]
fn are_equal(first: &str, second: &str) -> bool {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    let body = |items: &str| {
        Body::json_text(format!(r#"{{"channel":"memory","contentType":"T","content":[{items}]}}"#))
    };
    agent.send("POST", &path(&id), body(first)).expect(200);
    let again = agent.send("POST", &path(&id), body(second)).expect(200);
    let no_op = again.json["noOp"] == true;
    assert_eq!(again.json["epoch"], if no_op { 1 } else { 2 }, "{}", again.describe());
    no_op
}

#[test]
fn member_order_and_formatting_do_not_matter() {
    assert!(are_equal(r#"{"a":1,"b":{"c":2,"d":[3]}}"#, r#"{ "b": {"d":[3], "c":2}, "a":1 }"#));
}

#[test]
fn numbers_are_equal_by_value() {
    for (one, other) in [
        ("1", "1.0"),
        ("1", "1e0"),
        ("1.0", "1E0"),
        ("100", "1e2"),
        ("0.1", "1e-1"),
        ("0.10", "0.1"),
        ("-5", "-5.000"),
        ("0", "-0"),
        ("0", "0.0"),
        ("12345678901234567890", "1.2345678901234567890e19"),
    ] {
        assert!(are_equal(one, other), "{one} = {other}");
        assert!(are_equal(&format!(r#"{{"deep":[{one}]}}"#), &format!(r#"{{"deep":[{other}]}}"#)));
    }
}

#[test]
fn large_integers_are_compared_exactly() {
    assert!(!are_equal("9007199254740992", "9007199254740993"));
    assert!(!are_equal("18446744073709551615", "18446744073709551616"));
    assert!(!are_equal("123456789012345678901234567890", "123456789012345678901234567891"));
    assert!(are_equal("123456789012345678901234567890", "123456789012345678901234567890"));
}

#[test]
fn a_missing_member_is_not_a_null_member() {
    assert!(!are_equal(r#"{"a":1}"#, r#"{"a":1,"b":null}"#));
    assert!(!are_equal(r#"{"deep":{"a":1,"b":null}}"#, r#"{"deep":{"a":1}}"#));
    assert!(are_equal(r#"{"a":null}"#, r#"{"a":null}"#));
}

#[test]
fn different_kinds_of_values_differ() {
    for (one, other) in [
        ("1", r#""1""#),
        ("0", "false"),
        ("null", "false"),
        ("[]", "{}"),
        ("[1,2]", "[2,1]"),
        (r#""a""#, r#""A""#),
        (r#""""#, "null"),
        ("[null]", "[]"),
    ] {
        assert!(!are_equal(one, other), "{one} ≠ {other}");
    }
}

#[test]
fn strings_are_compared_by_code_point() {
    assert!(are_equal(r#""\u00e9""#, "\"é\""));
    assert!(are_equal(r#""\ud83d\ude00""#, "\"😀\""));
    assert!(are_equal(r#""a\/b""#, r#""a/b""#));
    assert!(!are_equal("\"é\"", "\"e\u{301}\""));
}

#[test]
fn item_boundaries_matter_and_entry_boundaries_do_not() {
    assert!(!are_equal(r#""ab","c""#, r#""a","bc""#));
    assert!(!are_equal(r#"["a"],["b"]"#, r#"["a","b"]"#));
}

#[test]
fn the_user_does_not_take_part_in_the_comparison() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "writer");
    sync(&alice.with_key("agent-a"), &id, json!(["a"])).expect(200);

    wrote_nothing(sync(&bob.with_key("agent-a"), &id, json!(["a"])), json!(1));
}

// ---- checks

#[test]
fn sync_needs_a_key_before_anything_else() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let message = "Client id is required to sync memory messages";

    alice.post(&path(&id), memory(json!(["a"]))).expect_message(403, "forbidden", message);
    alice.post(&path(&id), history("wrong channel")).expect_message(403, "forbidden", message);
    alice.post(&path(&fresh_id()), memory(json!([]))).expect_message(403, "forbidden", message);
}

#[test]
fn sync_needs_content_type_and_content() {
    let agent = an_agent();
    let id = start(&agent, "Chat");

    agent.post(&path(&id), json!({"channel": "memory", "content": ["a"]})).expect_violation("contentType");
    agent.post(&path(&id), json!({"channel": "memory", "contentType": "T"})).expect_violation("content");
    agent.send("POST", &path(&id), Body::None).expect(400);
}

#[test]
fn sync_must_target_the_memory_channel_explicitly() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    let message = "sync entry must target the memory channel";

    agent.post(&path(&id), json!({"contentType": "T", "content": ["a"]})).expect_message(
        400,
        "bad_request",
        message,
    );
    agent.post(&path(&id), history("x")).expect_message(400, "bad_request", message);
    for channel in ["memory", "MEMORY", "context", "Context"] {
        agent
            .post(&path(&id), json!({"channel": channel, "contentType": "T", "content": [channel]}))
            .expect(200);
    }
    agent
        .post(&path(&id), json!({"channel": "diary", "contentType": "T", "content": ["a"]}))
        .expect_violation("channel");
}

#[test]
fn sync_refuses_indexed_content_unless_blank() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    let mut body = memory(json!(["a"]));

    body["indexedContent"] = json!("searchable");
    agent.post(&path(&id), body.clone()).expect(400);
    body["indexedContent"] = json!(" ");
    agent.post(&path(&id), body).expect(200);
}

#[test]
fn a_reader_is_forbidden_even_when_nothing_would_change() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "reader");
    let reader = bob.with_key("agent-a");
    sync(&reader, &id, json!([])).expect_forbidden();
    sync(&alice.with_key("agent-a"), &id, json!(["a"])).expect(200);

    sync(&reader, &id, json!(["a"])).expect_forbidden();
    sync(&reader, &id, json!(["a", "b"])).expect_forbidden();
}

#[test]
fn a_stranger_is_forbidden_even_when_nothing_would_change() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    let id = start(&alice, "Chat");
    sync(&alice.with_key("agent-a"), &id, json!(["a"])).expect(200);

    sync(&mallory.with_key("agent-a"), &id, json!(["a"])).expect_forbidden();
    sync(&mallory.with_key("agent-a"), &id, json!([])).expect_forbidden();
}

#[test]
fn a_deleted_conversation_is_not_found_even_with_nothing_to_remember() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    agent.delete(&format!("/v1/conversations/{id}")).expect(204);

    sync(&agent, &id, json!(["a"])).expect_not_found("conversation", &id);
    sync(&agent, &id, json!([])).expect_not_found("conversation", &id);
}

#[test]
fn a_malformed_id_is_not_found() {
    sync(&an_agent(), "thread-1", json!(["a"])).expect_not_found("conversation", "thread-1");
}

// ---- concurrency

#[test]
fn fifty_identical_syncs_at_once_write_once() {
    let agent = an_agent();
    let id = start(&agent, "Chat");

    let answers = at_once(50, |_| sync(&agent, &id, json!(["a", {"b": 1}])).expect(200));

    let writes = answers.iter().filter(|answer| answer.json["noOp"] == false).count();
    assert_eq!(writes, 1);
    assert_eq!(entries(&agent, &id, "channel=memory&epoch=all").data.len(), 1);
}

#[test]
fn fifty_identical_first_syncs_at_once_create_and_write_once() {
    let agent = an_agent();
    let id = fresh_id();

    let answers = at_once(50, |_| sync(&agent, &id, json!(["a"])).expect(200));

    assert_eq!(answers.iter().filter(|answer| answer.json["noOp"] == false).count(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.json["epochIncremented"] == true).count(), 1);
    assert_eq!(agent.get("/v1/conversations").expect_page().ids(), [id.as_str()]);
    assert_eq!(current_memory(&agent, &id), [json!("a")]);
}

#[test]
fn different_syncs_at_once_end_as_if_they_had_come_one_after_the_other() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    let count = 20;

    let answers = at_once(count, |n| sync(&agent, &id, json!([n])).expect(200));

    // Every one diverges from whatever came before it, so each has an epoch to itself and none is lost.
    let mut epochs: Vec<u64> = answers.iter().map(|answer| answer.json["epoch"].as_u64().unwrap()).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, (1..=count as u64).collect::<Vec<_>>());
    for (n, answer) in answers.iter().enumerate() {
        let epoch = &answer.json["epoch"];
        assert_eq!(said(&entries(&agent, &id, &format!("channel=memory&epoch={epoch}"))), [n.to_string()]);
    }
    let last = answers.iter().position(|answer| answer.json["epoch"] == count).unwrap();
    assert_eq!(current_memory(&agent, &id), [json!(last)]);
}

#[test]
fn growing_syncs_at_once_never_store_an_item_twice() {
    let agent = an_agent();
    let id = start(&agent, "Chat");
    let all: Vec<usize> = (0..16).collect();

    at_once(16, |n| sync(&agent, &id, json!(all[..=n])).expect(200));

    // The last writer's state is a prefix of the full one, whatever the order was.
    let state = current_memory(&agent, &id);
    let expected: Vec<Value> = all[..state.len()].iter().map(|n| json!(n)).collect();
    assert_eq!(state, expected);
    wrote_nothing(
        sync(&agent, &id, json!(state)),
        entries(&agent, &id, "channel=memory").data[0]["epoch"].clone(),
    );
}

// ---- sync with fork fields

#[test]
fn a_first_sync_with_fork_fields_creates_a_fork_and_stores_only_the_delta() {
    let agent = an_agent();
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["a"])).expect(200);
    let cut = say(&agent, &root, "cut here");
    sync(&agent, &root, json!(["a", "later"])).expect(200);
    let branch = fresh_id();
    let mut body = memory(json!(["a", "b"]));
    body["forkedAtConversationId"] = json!(root);
    body["forkedAtEntryId"] = json!(cut);

    let entry = wrote(agent.post(&path(&branch), body), 1, false, json!(["b"]));

    assert_eq!(entry["conversationId"], branch);
    let created = agent.get(&format!("/v1/conversations/{branch}")).expect(200);
    assert_eq!(created.json["forkedAtConversationId"], root);
    assert_eq!(current_memory(&agent, &branch), [json!("a"), json!("b")]);
    assert_eq!(current_memory(&agent, &root), [json!("a"), json!("later")]);
}

#[test]
fn a_first_sync_on_a_blank_slate_starts_at_epoch_one_without_increment() {
    let agent = an_agent();
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["of the root"])).expect(200);
    let mut body = memory(json!(["a"]));
    body["forkedAtConversationId"] = json!(root);

    wrote(agent.post(&path(&fresh_id()), body), 1, false, json!(["a"]));
}

#[test]
fn nothing_to_remember_makes_no_fork_either() {
    let agent = an_agent();
    let root = start(&agent, "Root");
    let id = fresh_id();
    let mut body = memory(json!([]));
    body["forkedAtConversationId"] = json!(root);

    wrote_nothing(agent.post(&path(&id), body), json!(null));

    agent.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
}

#[test]
fn numbers_of_any_size_are_compared_without_being_spelled_out() {
    assert!(are_equal("1e1000000000", "10e999999999"));
    assert!(!are_equal("1e1000000000", "1e1000000001"));
    assert!(!are_equal("1e-1000000000", "0"));
    assert!(are_equal("0e1000000000", "0"));
    assert!(are_equal("1E+2", "100"));
    assert!(are_equal("123.4500e-2", "1.2345"));
}
