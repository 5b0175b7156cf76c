//! Appending: channels, format rules, identity, auto-creation, titles.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

fn path(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/entries")
}

// ---- shape and channels

#[test]
fn a_user_appends_history_and_gets_exactly_the_contracts_members() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    let entry = alice.post(&path(&id), history("hello")).expect(201).expect_members(&[
        "id",
        "conversationId",
        "userId",
        "channel",
        "contentType",
        "content",
        "createdAt",
    ]);

    assert_uuid(&entry.json["id"]);
    assert_timestamp(&entry.json["createdAt"]);
    assert_eq!(entry.json["conversationId"], id);
    assert_eq!(entry.json["userId"], alice.user());
    assert_eq!(entry.json["channel"], "history");
    assert_eq!(entry.json["contentType"], "history");
    assert_eq!(entry.json["content"], json!([{"role": "USER", "text": "hello"}]));
    assert_eq!(entries(&alice, &id, "").data, [entry.json]);
}

#[test]
fn an_agent_appends_memory_with_an_epoch_and_without_a_client_id_in_the_answer() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");

    let entry = agent.post(&path(&id), memory(json!([{"k": 1}]))).expect(201).expect_members(&[
        "id",
        "conversationId",
        "userId",
        "channel",
        "epoch",
        "contentType",
        "content",
        "createdAt",
    ]);

    assert_eq!(entry.json["channel"], "memory");
    assert_eq!(entry.json["epoch"], 1);
    assert_eq!(entries(&agent, &id, "channel=memory").data, [entry.json]);
}

#[test]
fn an_agent_appends_history_for_its_user() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let body =
        json!({"channel": "history", "contentType": "history", "content": [{"role": "AI", "text": "hi"}]});

    let entry = alice.with_key("agent-a").post(&path(&id), body).expect(201);

    assert_eq!(entry.json["userId"], alice.user());
    assert_eq!(entry.json.get("epoch"), None);
    assert_eq!(transcript(&alice, &id), ["hi"]);
}

#[test]
fn a_user_without_a_key_cannot_append_memory() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    alice.post(&path(&id), memory(json!(["x"]))).expect_message(403, "forbidden", "Client id is required");
    alice.post(&path(&fresh_id()), memory(json!(["x"]))).expect_message(
        403,
        "forbidden",
        "Client id is required",
    );
}

#[test]
fn channels_are_accepted_in_any_letter_case_and_answered_in_lower_case() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    for (given, answered) in [
        ("HISTORY", "history"),
        ("History", "history"),
        ("MEMORY", "memory"),
        ("Memory", "memory"),
        ("context", "memory"),
        ("CONTEXT", "memory"),
    ] {
        let body = json!({
            "channel": given, "contentType": "history", "content": [{"role": "USER", "text": given}],
        });
        let entry = agent.post(&path(&id), body).expect(201);
        assert_eq!(entry.json["channel"], answered, "given {given}");
    }
}

#[test]
fn an_unknown_channel_is_refused() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    for channel in ["transcript", "", "all", "journal"] {
        let mut body = history("x");
        body["channel"] = json!(channel);
        agent.post(&path(&id), body).expect_error(400, "validation_error");
    }
    assert!(view(&agent, &id).is_empty());
}

#[test]
fn content_survives_value_for_value() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    // As text: numbers that no machine type holds, escapes, nulls, empty things, names in an unusual order.
    let content = r#"[{"z":1,"a":null,"nested":{"list":[[],{},"",null,true,false]}},
        12345678901234567890123456789, 0.1234567890123456789012345, -0.0, 1e300, 9007199254740993,
        "Z\u00fcrich \ud83d\ude00 \"quoted\" back\\slash \n line \u2028", null, "\u0001"]"#;
    let body = format!(r#"{{"channel":"memory","contentType":"any","content":{content}}}"#);

    let stored = agent.send("POST", &path(&id), Body::json_text(body)).expect(201);

    let expected: Value = serde_json::from_str(content).unwrap();
    assert_eq!(stored.json["content"], expected);
    assert_eq!(entries(&agent, &id, "channel=memory").data[0]["content"], expected);
}

#[test]
fn entries_of_one_conversation_have_strictly_ordered_places_and_non_decreasing_times() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let appended: Vec<String> = (0..20).map(|n| say(&alice, &id, &n.to_string())).collect();

    let page = entries(&alice, &id, "");

    assert_eq!(page.ids(), appended);
    let times = page.all("createdAt");
    assert!(times.is_sorted(), "createdAt decreases: {times:?}");
}

// ---- history format: every literal message of the contract

/// Appends this as an explicit history entry and requires this literal message.
#[track_caller]
fn refused(content_type: &str, content: Value, message: &str) {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let body = json!({"channel": "history", "contentType": content_type, "content": content});
    alice.post(&path(&id), body).expect_message(400, "bad_request", message);
    assert!(transcript(&alice, &id).is_empty(), "a refused entry was stored");
}

#[test]
fn explicit_history_with_another_content_type_is_refused() {
    for content_type in ["message", "historyx", "History", "LC4J", "history-2"] {
        refused(
            content_type,
            json!([{"role": "USER", "text": "x"}]),
            "History channel entries must use 'history' or 'history/<subtype>' as the contentType",
        );
    }
}

#[test]
fn history_with_no_or_several_content_objects_is_refused() {
    let one = json!({"role": "USER", "text": "x"});
    for content in [json!([]), json!([one, one])] {
        refused("history", content, "History channel entries must contain exactly 1 content object");
    }
}

#[test]
fn history_without_text_events_and_attachments_is_refused() {
    for content in [
        json!([{"role": "USER"}]),
        json!([{"role": "AI", "text": null}]),
        json!([{"role": "AI", "text": null, "events": null, "attachments": null}]),
        json!([{"role": "AI", "other": "x"}]),
    ] {
        refused(
            "history",
            content,
            "History channel content must have at least one of 'text', 'events', or 'attachments'",
        );
    }
}

#[test]
fn history_without_a_proper_role_is_refused() {
    for content in [
        json!([{"text": "x"}]),
        json!([{"text": "x", "role": null}]),
        json!([{"text": "x", "role": "user"}]),
        json!([{"text": "x", "role": "SYSTEM"}]),
        json!([{"text": "x", "role": 1}]),
        json!([{"text": "x", "role": ""}]),
    ] {
        refused(
            "history",
            content,
            "History channel content must have a 'role' field with value 'USER' or 'AI'",
        );
    }
}

#[test]
fn history_attachments_that_are_not_an_array_are_refused() {
    for attachments in [json!({}), json!("file"), json!(1)] {
        refused(
            "history",
            json!([{"role": "USER", "text": "x", "attachments": attachments}]),
            "History channel 'attachments' field must be an array",
        );
    }
}

#[test]
fn history_events_that_are_not_an_array_are_refused() {
    for events in [json!({}), json!("start"), json!(1)] {
        refused(
            "history",
            json!([{"role": "USER", "text": "x", "events": events}]),
            "History channel 'events' field must be an array",
        );
    }
}

#[test]
fn a_history_attachment_without_href_and_attachment_id_is_refused_with_its_index() {
    let good = json!({"href": "https://example.org/a.png", "contentType": "image/png"});
    refused(
        "history",
        json!([{"role": "USER", "attachments": [{"contentType": "image/png"}]}]),
        "History channel attachment at index 0 must have an 'href' or 'attachmentId' field",
    );
    refused(
        "history",
        json!([{"role": "USER", "attachments": [good, good, {"href": 7, "contentType": "image/png"}]}]),
        "History channel attachment at index 2 must have an 'href' or 'attachmentId' field",
    );
}

#[test]
fn a_history_attachment_with_href_but_without_content_type_is_refused_with_its_index() {
    let good = json!({"href": "https://example.org/a.png", "contentType": "image/png"});
    refused(
        "history",
        json!([{"role": "USER", "attachments": [{"href": "https://example.org/a.png"}]}]),
        "History channel attachment at index 0 must have a 'contentType' field",
    );
    refused(
        "history",
        json!([{"role": "USER", "attachments": [good, {"href": "https://example.org/b.png", "contentType": 1}]}]),
        "History channel attachment at index 1 must have a 'contentType' field",
    );
}

#[test]
fn history_content_and_attachments_must_be_objects() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for content in [json!(["text"]), json!([["text"]]), json!([null]), json!([7])] {
        let body = json!({"channel": "history", "contentType": "history", "content": content});
        alice.post(&path(&id), body).expect_error(400, "bad_request");
    }
    let body = json!({
        "channel": "history", "contentType": "history", "content": [{"role": "USER", "attachments": ["a.png"]}],
    });
    alice.post(&path(&id), body).expect_error(400, "bad_request");
}

#[test]
fn well_formed_history_is_accepted_and_extra_members_are_kept() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for (content_type, content) in [
        ("history", json!([{"role": "USER", "text": ""}])),
        ("history", json!([{"role": "AI", "text": "x", "model": "m", "usage": {"in": 1, "out": null}}])),
        ("history/lc4j", json!([{"role": "AI", "events": [{"anything": [1, null]}, "goes", 7]}])),
        ("history/a/b", json!([{"role": "AI", "events": []}])),
        (
            "history",
            json!([{"role": "USER", "text": null, "events": null,
                "attachments": [{"href": "https://example.org/a.png", "contentType": "image/png", "name": "a"}]}]),
        ),
        ("history", json!([{"role": "USER", "attachments": []}])),
    ] {
        let body = json!({"channel": "history", "contentType": content_type, "content": content});
        let stored = alice.post(&path(&id), body).expect(201);
        assert_eq!(stored.json["content"], content);
        assert_eq!(stored.json["contentType"], content_type);
    }
}

#[test]
fn without_a_channel_another_content_type_is_stored_as_history_unchecked() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for (content_type, content) in [
        ("message", json!([{"text": "no role"}])),
        ("message", json!([])),
        ("historyx", json!(["a", "b", 3])),
        ("LC4J", json!([{"role": "nobody"}])),
    ] {
        let body = json!({"contentType": content_type, "content": content});
        let stored = alice.post(&path(&id), body).expect(201);
        assert_eq!(stored.json["channel"], "history");
        assert_eq!(stored.json["content"], content);
    }
    assert_eq!(entries(&alice, &id, "").data.len(), 4);
}

#[test]
fn without_a_channel_the_history_content_type_is_still_checked() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for content_type in ["history", "history/lc4j"] {
        alice
            .post(&path(&id), json!({"contentType": content_type, "content": [{"text": "x"}]}))
            .expect_message(
                400,
                "bad_request",
                "History channel content must have a 'role' field with value 'USER' or 'AI'",
            );
    }
    alice
        .post(&path(&id), json!({"contentType": "history", "content": [{"role": "USER", "text": "x"}]}))
        .expect(201);
}

#[test]
fn memory_is_opaque_and_may_be_empty() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    for (content_type, content) in
        [("history", json!([])), ("history", json!(["no", "role"])), ("any thing", json!([null]))]
    {
        let body = json!({"channel": "memory", "contentType": content_type, "content": content});
        assert_eq!(agent.post(&path(&id), body).expect(201).json["content"], content);
    }
}

// ---- required members

#[test]
fn content_type_and_content_are_required() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let content = json!([{"role": "USER", "text": "x"}]);

    alice.post(&path(&id), json!({"content": content})).expect_violation("contentType");
    alice.post(&path(&id), json!({"contentType": null, "content": content})).expect_violation("contentType");
    alice.post(&path(&id), json!({"contentType": "", "content": content})).expect_violation("contentType");
    alice.post(&path(&id), json!({"contentType": "history"})).expect_violation("content");
    alice.post(&path(&id), json!({"contentType": "history", "content": null})).expect_violation("content");
}

#[test]
fn content_must_be_an_array() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for content in [json!({"role": "USER", "text": "x"}), json!("x"), json!(1), json!(true)] {
        alice.post(&path(&id), json!({"contentType": "message", "content": content})).expect(400);
    }
}

// ---- userId

#[test]
fn the_effective_user_is_stored_when_none_is_given() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for user in [None, Some(json!(null)), Some(json!("")), Some(json!("  ")), Some(json!(alice.user()))] {
        let mut body = history("x");
        if let Some(user) = user {
            body["userId"] = user;
        }
        assert_eq!(alice.post(&path(&id), body).expect(201).json["userId"], alice.user());
    }
}

#[test]
fn writing_in_another_users_name_is_refused() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "writer");

    let mut body = history("x");
    body["userId"] = json!(bob.user());
    alice.post(&path(&id), body).expect_message(
        400,
        "bad_request",
        "userId does not match the authenticated user",
    );

    let mut body = memory(json!(["x"]));
    body["userId"] = json!(bob.user());
    for end in ["", "/sync"] {
        alice.with_key("agent-a").post(&format!("{}{end}", path(&id)), body.clone()).expect_message(
            400,
            "bad_request",
            "userId does not match the authenticated user",
        );
    }
    assert!(view(&alice.with_key("agent-a"), &id).is_empty());
}

#[test]
fn user_ids_are_compared_byte_for_byte() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let mut body = history("x");
    body["userId"] = json!(alice.user().to_uppercase());

    alice.post(&path(&id), body).expect_message(
        400,
        "bad_request",
        "userId does not match the authenticated user",
    );
}

// ---- access

#[test]
fn appending_to_a_foreign_conversation_is_forbidden() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    let id = start(&alice, "Private");

    mallory.post(&path(&id), history("x")).expect_forbidden();
    mallory.with_key("agent-a").post(&path(&id), memory(json!(["x"]))).expect_forbidden();
    assert!(transcript(&alice, &id).is_empty());
}

#[test]
fn appending_to_a_malformed_id_is_not_found_and_creates_nothing() {
    let alice = SERVER.someone("alice");

    alice.post(&path("my-thread"), history("x")).expect_not_found("conversation", "my-thread");
    assert!(alice.get("/v1/conversations?mode=all").expect_page().data.is_empty());
}

#[test]
fn a_malformed_body_is_refused_before_access_is_looked_at() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    let id = start(&alice, "Private");

    mallory.post(&path(&id), json!({"content": []})).expect_violation("contentType");
}

// ---- memory belongs to one client

#[test]
fn memory_of_one_client_is_invisible_to_another_and_to_users() {
    let alice = SERVER.someone("alice");
    let (a, b) = (alice.with_key("agent-a"), alice.with_key("agent-b"));
    let id = start(&alice, "Chat");
    remember(&a, &id, json!(["of a"]));
    say(&alice, &id, "aloud");
    remember(&b, &id, json!(["of b"]));

    assert_eq!(said(&entries(&a, &id, "channel=memory")), ["of a"]);
    assert_eq!(said(&entries(&b, &id, "channel=memory")), ["of b"]);
    assert_eq!(said(&entries(&b, &id, "channel=memory&epoch=all")), ["of b"]);
    assert_eq!(view(&a, &id), ["of a", "aloud"]);
    assert_eq!(view(&b, &id), ["aloud", "of b"]);
    assert_eq!(said(&entries(&a, &id, "channel=all&forks=all")), ["of a", "aloud"]);
    assert_eq!(transcript(&alice, &id), ["aloud"]);
}

#[test]
fn memory_of_one_client_is_shared_by_the_users_that_client_works_for() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "reader");
    remember(&alice.with_key("agent-a"), &id, json!(["note"]));

    assert_eq!(said(&entries(&bob.with_key("agent-a"), &id, "channel=memory")), ["note"]);
}

#[test]
fn an_auditor_sees_the_memory_of_every_client_with_its_client_id() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    remember(&alice.with_key("agent-a"), &id, json!(["of a"]));
    remember(&alice.with_key("agent-b"), &id, json!(["of b"]));

    let page = SERVER.as_user("admin").get(&format!("/v1/admin{}", &path(&id)[3..])).expect_page();

    assert_eq!(said(&page), ["of a", "of b"]);
    assert_eq!(page.all("clientId"), ["agent-a", "agent-b"]);
}

// ---- epochs of plain appends

#[test]
fn memory_appends_join_the_latest_epoch_of_their_client() {
    let alice = SERVER.someone("alice");
    let (a, b) = (alice.with_key("agent-a"), alice.with_key("agent-b"));
    let id = start(&alice, "Chat");
    sync(&a, &id, json!(["one"])).expect(200);
    sync(&a, &id, json!(["two"])).expect(200);

    let of_a = a.post(&path(&id), memory(json!(["three"]))).expect(201);
    let of_b = b.post(&path(&id), memory(json!(["other"]))).expect(201);

    assert_eq!(of_a.json["epoch"], 2);
    assert_eq!(of_b.json["epoch"], 1, "clients never influence each other");
    assert_eq!(current_memory(&a, &id), [json!("two"), json!("three")]);
}

// ---- indexedContent

#[test]
fn indexed_content_is_only_for_history() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let mut body = memory(json!(["x"]));
    body["indexedContent"] = json!("searchable");

    agent.post(&path(&id), body.clone()).expect_message(
        400,
        "bad_request",
        "indexedContent is only allowed on history channel",
    );

    for blank in [json!(null), json!(""), json!("  ")] {
        body["indexedContent"] = blank;
        agent.post(&path(&id), body.clone()).expect(201);
    }
}

#[test]
fn indexed_content_is_not_part_of_an_entry() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let mut body = history("hello");
    body["indexedContent"] = json!("a greeting");

    let entry = alice.post(&path(&id), body).expect(201);

    assert_eq!(entry.json.get("indexedContent"), None);
    assert_eq!(entries(&alice, &id, "").data, [entry.json]);
}

// ---- auto-creation

#[test]
fn appending_to_an_unknown_id_creates_the_conversation_for_the_caller() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    let id = fresh_id();

    let entry = alice.post(&path(&id), history("hello")).expect(201);

    assert_eq!(entry.json["conversationId"], id);
    let created = alice.get(&format!("/v1/conversations/{id}")).expect(200).expect_members(&[
        "id",
        "title",
        "ownerUserId",
        "createdAt",
        "updatedAt",
        "lastMessagePreview",
        "accessLevel",
    ]);
    assert_eq!(created.json["ownerUserId"], alice.user());
    assert_eq!(created.json["accessLevel"], "owner");
    assert_eq!(created.json["title"], "hello");
    mallory.get(&format!("/v1/conversations/{id}")).expect_forbidden();
}

#[test]
fn an_agents_memory_append_creates_the_conversation_too_without_a_title() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = fresh_id();

    let entry = agent.post(&path(&id), memory(json!([{"text": "not a title"}]))).expect(201);

    assert_eq!(entry.json["epoch"], 1);
    let created = agent.get(&format!("/v1/conversations/{id}")).expect(200);
    assert_eq!(created.json["ownerUserId"], agent.user());
    assert_eq!(created.json.get("title"), None);
}

#[test]
fn a_refused_append_creates_no_conversation() {
    let alice = SERVER.someone("alice");
    let id = fresh_id();

    alice
        .post(&path(&id), json!({"channel": "history", "contentType": "history", "content": []}))
        .expect(400);
    alice.post(&path(&id), memory(json!(["x"]))).expect(403);

    alice.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
}

#[test]
fn a_hundred_concurrent_first_appends_make_one_conversation_with_a_hundred_ordered_entries() {
    let alice = SERVER.someone("alice");
    let id = fresh_id();

    let appended = at_once(100, |n| say(&alice, &id, &n.to_string()));

    assert_eq!(alice.get("/v1/conversations?mode=all").expect_page().ids(), [id.as_str()]);
    let listed = walk(&alice, &format!("{}?limit=7", path(&id)));
    let mut ids: Vec<&str> = listed.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    let times: Vec<&str> = listed.iter().map(|entry| entry["createdAt"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "createdAt decreases: {times:?}");
    ids.sort_unstable();
    let mut expected = appended.clone();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    // The same order every time, whatever the page size.
    assert_eq!(listed, walk(&alice, &format!("{}?limit=100", path(&id))));
}

#[test]
fn of_two_users_who_create_the_same_id_at_once_one_wins_and_the_other_is_forbidden() {
    for _ in 0..5 {
        let people = [SERVER.someone("alice"), SERVER.someone("bob")];
        let id = fresh_id();

        let answers = at_once(2, |n| people[n].post(&path(&id), history("mine")));

        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 403], "{} / {}", answers[0].describe(), answers[1].describe());
    }
}

// ---- title derivation

/// The title that a conversation gets when it begins with this content.
fn title_from(content: Value) -> Option<String> {
    let alice = SERVER.someone("alice");
    let id = fresh_id();
    alice.post(&path(&id), json!({"contentType": "message", "content": content})).expect(201);
    let created = alice.get(&format!("/v1/conversations/{id}")).expect(200);
    created.json["title"].as_str().map(str::to_owned)
}

#[test]
fn a_title_is_the_first_forty_characters_of_the_first_text() {
    let text = "Sensitive information about the new compliance project";

    assert_eq!(title_from(json!([{"text": text}])).unwrap(), "Sensitive information about the new comp");
}

#[test]
fn a_title_is_cut_on_characters_not_bytes() {
    assert_eq!(title_from(json!([{"text": "ä".repeat(50)}])).unwrap(), "ä".repeat(40));
    assert_eq!(title_from(json!([{"text": "😀".repeat(41)}])).unwrap(), "😀".repeat(40));
    assert_eq!(title_from(json!([{"text": "字".repeat(40)}])).unwrap(), "字".repeat(40));
}

#[test]
fn a_title_has_its_whitespace_collapsed_before_it_is_cut() {
    assert_eq!(title_from(json!([{"text": "  a\n\n b\t  c  "}])).unwrap(), "a b c");
    let spread_out = "x   ".repeat(30);
    assert_eq!(title_from(json!([{"text": spread_out}])).unwrap().trim_end(), "x ".repeat(20).trim_end());
}

#[test]
fn a_title_comes_from_the_first_item_with_usable_text() {
    assert_eq!(title_from(json!([7, {"text": " "}, {"text": 5}, {"text": "third"}])).unwrap(), "third");
    assert_eq!(title_from(json!(["plain text"])).unwrap(), "plain text");
    assert_eq!(title_from(json!(["  ", "second"])).unwrap(), "second");
}

#[test]
fn without_usable_text_there_is_no_title() {
    for content in [json!([]), json!([{"text": " "}]), json!([{"body": "x"}]), json!([1, null, ["x"]])] {
        assert_eq!(title_from(content), None);
    }
}

#[test]
fn only_the_first_history_entry_gives_a_title() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let title = |id: &str| agent.get(&format!("/v1/conversations/{id}")).expect(200).json["title"].clone();

    let id = fresh_id();
    agent.post(&path(&id), json!({"contentType": "message", "content": [{"data": 1}]})).expect(201);
    say(&agent, &id, "too late");
    assert_eq!(title(&id), Value::Null);

    let id = fresh_id();
    remember(&agent, &id, json!(["memory first"]));
    say(&agent, &id, "then words");
    assert_eq!(title(&id), "then words");
    say(&agent, &id, "more words");
    assert_eq!(title(&id), "then words");
}

#[test]
fn a_given_title_is_not_replaced_and_a_missing_one_is_filled_in() {
    let alice = SERVER.someone("alice");
    let given = start(&alice, "Given");
    say(&alice, &given, "hello");
    assert_eq!(alice.get(&format!("/v1/conversations/{given}")).expect(200).json["title"], "Given");

    let untitled = alice.post("/v1/conversations", json!({})).expect(201).id();
    say(&alice, &untitled, "hello");
    assert_eq!(alice.get(&format!("/v1/conversations/{untitled}")).expect(200).json["title"], "hello");
}

// ---- fork fields on append

#[test]
fn a_fork_entry_without_a_fork_conversation_is_refused() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Root");
    let entry = say(&alice, &root, "one");
    let id = fresh_id();
    let mut body = history("x");
    body["forkedAtEntryId"] = json!(entry);

    alice.post(&path(&id), body).expect(400);

    alice.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
}

#[test]
fn malformed_fork_ids_in_the_body_are_validation_errors() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Root");
    for (field, other) in [("forkedAtConversationId", None), ("forkedAtEntryId", Some(&root))] {
        let mut body = history("x");
        if let Some(root) = other {
            body["forkedAtConversationId"] = json!(root);
        }
        body[field] = json!("not-a-uuid");
        alice.post(&path(&fresh_id()), body).expect_violation(field);
    }
}
