//! Entries that refer to files: what appending does with an `attachmentId`.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// How many entries the transcript has.
#[track_caller]
fn said(who: &Client, conversation: &str) -> usize {
    who.get(&format!("/v1/conversations/{conversation}/entries?limit=200")).expect_page().data.len()
}

/// What an admin sees of a file.
#[track_caller]
fn record(id: &str) -> Value {
    SERVER.as_user("admin").get(&format!("/v1/admin/attachments/{id}")).expect(200).json
}

#[test]
fn the_first_entry_takes_the_file_and_keeps_it() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let id = upload(&alice, "plan.png", "image/png", b"plan");
    assert!(record(&id)["expiresAt"].is_string());

    let entry = try_say(&alice, &conversation, json!([{"attachmentId": id}])).expect(201).json;

    let expected = json!([{"href": at(&id), "contentType": "image/png", "name": "plan.png"}]);
    assert_eq!(entry["content"][0]["attachments"], expected);
    let listed = alice.get(&format!("/v1/conversations/{conversation}/entries")).expect_page();
    assert_eq!(listed.data[0]["content"][0]["attachments"], expected, "and so it is stored");
    let record = record(&id);
    assert_eq!(record["entryId"], entry["id"]);
    assert!(record.get("expiresAt").is_none(), "it lives as long as the entry: {record}");
    alice.delete(&at(&id)).expect_error(409, "attachment_linked");
}

#[test]
fn what_the_message_says_of_a_file_stays_as_it_says() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let id = upload(&alice, "plan.png", "image/png", b"plan");
    let given = json!([
        {"attachmentId": id, "name": "the plan", "contentType": "image/x-plan", "width": 7},
        {"href": "https://example.org/x.png", "contentType": "image/png"},
    ]);

    let entry = try_say(&alice, &conversation, given).expect(201).json;

    let expected = json!([
        {"name": "the plan", "contentType": "image/x-plan", "width": 7, "href": at(&id)},
        {"href": "https://example.org/x.png", "contentType": "image/png"},
    ]);
    assert_eq!(entry["content"][0]["attachments"], expected);
}

#[test]
fn an_append_that_names_a_wrong_file_changes_nothing() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let conversation = start(&alice, "Plans");
    let elsewhere = start(&alice, "Elsewhere");
    let good = upload(&alice, "good.txt", "text/plain", b"good");
    let bobs = upload(&bob, "bob.txt", "text/plain", b"bob");
    let of_another_tree = link(&alice, &elsewhere, &upload(&alice, "e.txt", "text/plain", b"e"));
    let deleted = upload(&alice, "gone.txt", "text/plain", b"gone");
    alice.delete(&at(&deleted)).expect(204);
    let unknown = fresh_id();

    let naming =
        |id: &str| try_say(&alice, &conversation, json!([{"attachmentId": good}, {"attachmentId": id}]));
    naming(&bobs).expect_forbidden();
    naming(&of_another_tree).expect_forbidden();
    naming(&unknown).expect_not_found("attachment", &unknown);
    naming(&deleted).expect_not_found("attachment", &deleted);
    naming("not-a-uuid").expect_not_found("attachment", "not-a-uuid");

    assert_eq!(said(&alice, &conversation), 0);
    assert!(record(&good)["expiresAt"].is_string(), "the good one is free as before");
    alice.delete(&at(&good)).expect(204);
}

#[test]
fn a_second_entry_of_the_tree_shares_the_bytes() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let conversation = start(&alice, "Plans");
    share(&alice, &conversation, &bob, "writer");
    let first = link(&alice, &conversation, &upload(&alice, "a.txt", "text/plain", b"shared"));

    let second = link(&bob, &conversation, &first);

    assert_ne!(first, second);
    let (one, other) = (record(&first), record(&second));
    assert_eq!(one["storageKey"], other["storageKey"]);
    assert_eq!((&one["refCount"], &other["refCount"]), (&json!(2), &json!(2)));
    assert_ne!(one["entryId"], other["entryId"]);
    for (who, id) in [(&alice, &first), (&alice, &second), (&bob, &first), (&bob, &second)] {
        assert_eq!(who.get(&at(id)).expect(200).text, "shared");
    }
    // The bytes go with the last of them.
    let admin = SERVER.as_user("admin");
    admin.delete(&format!("/v1/admin/attachments/{first}")).expect(204);
    alice.get(&at(&first)).expect_not_found("attachment", &first);
    assert_eq!(alice.get(&at(&second)).expect(200).text, "shared");
    assert_eq!(record(&second)["refCount"], 1);
    admin.delete(&format!("/v1/admin/attachments/{second}")).expect(204);
    alice.get(&at(&second)).expect_not_found("attachment", &second);
}

#[test]
fn a_fork_reads_and_shares_the_files_of_its_tree() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let first = link(&alice, &conversation, &upload(&alice, "a.txt", "text/plain", b"tree"));
    let entries = format!("/v1/conversations/{conversation}/entries");
    let next = alice.post(&entries, message(json!([]))).expect(201).id();
    let fork = alice.post_nothing(&format!("{entries}/{next}/fork")).expect(201).id();

    let shared = link(&alice, &fork, &first);
    assert_eq!(record(&shared)["storageKey"], record(&first)["storageKey"]);

    // A conversation that its first entry makes belongs to the tree of its parent.
    let body = message(json!([{"attachmentId": first}]));
    let forking = |attachments: &Value, parent: &str, entry: &str| {
        let mut body = attachments.clone();
        body["forkedAtConversationId"] = json!(parent);
        body["forkedAtEntryId"] = json!(entry);
        alice.post(&format!("/v1/conversations/{}/entries", fresh_id()), body)
    };
    let made = referred(&forking(&body, &conversation, &next).expect(201).json)[0].clone();
    assert_eq!(record(&made)["storageKey"], record(&first)["storageKey"]);
    assert_eq!(alice.get(&at(&made)).expect(200).text, "tree");

    let other = start(&alice, "Other");
    let entry =
        alice.post(&format!("/v1/conversations/{other}/entries"), message(json!([]))).expect(201).id();
    forking(&body, &other, &entry).expect_forbidden();
}

#[test]
fn a_file_may_make_the_conversation_it_is_first_said_in() {
    let alice = SERVER.someone("alice");
    let conversation = fresh_id();
    let id = link(&alice, &conversation, &upload(&alice, "a.txt", "text/plain", b"first"));
    assert_eq!(alice.get(&at(&id)).expect(200).text, "first");
    assert_eq!(said(&alice, &conversation), 1);
}

#[test]
fn an_entry_that_names_a_file_twice_refers_to_it_twice() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let id = upload(&alice, "a.txt", "text/plain", b"twice");
    let entry =
        try_say(&alice, &conversation, json!([{"attachmentId": id}, {"attachmentId": id}])).expect(201);
    for id in referred(&entry.json) {
        assert_eq!(alice.get(&at(&id)).expect(200).text, "twice");
    }
}

#[test]
fn a_repetition_under_an_idempotency_key_links_nothing_more() {
    let alice = SERVER.someone("alice").with_header("idempotency-key", &fresh_id());
    let conversation = start(&alice, "Plans");
    let id = upload(&alice, "a.txt", "text/plain", b"once");
    let body = json!([{"attachmentId": id}]);

    let first = try_say(&alice, &conversation, body.clone()).expect(201).json;
    let second = try_say(&alice, &conversation, body).expect(201).json;

    assert_eq!(first, second);
    assert_eq!(record(&id)["refCount"], 1);
}

#[test]
fn memory_is_kept_word_by_word() {
    let agent = SERVER.someone("alice").with_key("planner");
    let conversation = start(&agent, "Plans");
    let id = upload(&agent, "a.txt", "text/plain", b"a");
    let content = json!([{"role": "USER", "attachments": [{"attachmentId": id}]}]);
    let body = json!({"channel": "memory", "contentType": "LC4J", "content": content});
    let entry = agent.post(&format!("/v1/conversations/{conversation}/entries"), body).expect(201);
    assert_eq!(entry.json["content"], content);
    assert!(record(&id)["expiresAt"].is_string(), "nothing refers to it");
}

#[test]
fn of_many_that_link_one_file_at_the_same_time_one_takes_it_and_the_others_share_it() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let id = upload(&alice, "a.txt", "text/plain", b"many");
    let linked = at_once(8, |_| link(&alice, &conversation, &id));
    assert_eq!(linked.iter().filter(|other| **other == id).count(), 1, "{linked:?}");
    let distinct: std::collections::BTreeSet<_> = linked.iter().collect();
    assert_eq!(distinct.len(), 8);
    assert_eq!(record(&id)["refCount"], 8);
}

#[test]
fn linking_against_deleting_has_one_winner() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    for _ in 0..10 {
        let id = upload(&alice, "a.txt", "text/plain", b"race");
        let statuses = at_once(2, |n| match n {
            0 => alice.delete(&at(&id)).status,
            _ => try_say(&alice, &conversation, json!([{"attachmentId": id}])).status,
        });
        let read = alice.get(&at(&id)).status;
        assert!(
            [(204, 404, 404), (409, 201, 200)].contains(&(statuses[0], statuses[1], read)),
            "{statuses:?} {read}"
        );
    }
}

#[test]
fn what_has_expired_cannot_be_linked_any_more() {
    let alice = SERVER.someone("alice");
    let conversation = start(&alice, "Plans");
    let form = Form::default().file("a.txt", "text/plain", b"short");
    let id = alice.send("POST", &format!("{ATTACHMENTS}?expiresIn=PT1S"), form.body()).expect(201).id();
    until("it expires", || alice.get(&at(&id)).status == 404);
    try_say(&alice, &conversation, json!([{"attachmentId": id}])).expect_not_found("attachment", &id);
}
