//! Every limit: the last value that is accepted, the first that is not.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const MIB: usize = 1024 * 1024;

fn entries_path(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/entries")
}

/// Lengths count characters, so the widest characters show whether somebody counts bytes or UTF-16 units.
const WIDE: &str = "😀";

#[test]
fn a_title_has_at_most_500_characters() {
    let alice = SERVER.someone("alice");

    let created = alice.post("/v1/conversations", json!({"title": WIDE.repeat(500)})).expect(201);
    assert_eq!(created.json["title"], WIDE.repeat(500));
    alice.post("/v1/conversations", json!({"title": "x".repeat(501)})).expect_violation("title");
    alice.post("/v1/conversations", json!({"title": WIDE.repeat(501)})).expect_violation("title");
}

#[test]
fn metadata_has_at_most_50_keys() {
    let alice = SERVER.someone("alice");
    let with_keys = |count: usize| {
        let metadata: serde_json::Map<String, Value> =
            (0..count).map(|n| (format!("k{n}"), json!(n))).collect();
        alice.post("/v1/conversations", json!({"metadata": metadata}))
    };

    with_keys(50).expect(201);
    with_keys(51).expect_violation("metadata");
}

#[test]
fn a_metadata_key_has_at_most_100_characters() {
    let alice = SERVER.someone("alice");
    let with_key = |key: String| alice.post("/v1/conversations", json!({"metadata": {key: 1}}));

    with_key("ä".repeat(100)).expect(201);
    with_key("x".repeat(101)).expect_violation("metadata");
}

#[test]
fn metadata_has_at_most_16_kib() {
    let alice = SERVER.someone("alice");
    // {"k":"…"} is eight characters around the value.
    let with_size =
        |bytes: usize| alice.post("/v1/conversations", json!({"metadata": {"k": "x".repeat(bytes - 8)}}));

    with_size(16 * 1024).expect(201);
    with_size(16 * 1024 + 1).expect_violation("metadata");
}

#[test]
fn a_user_id_has_at_most_255_characters() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let path = format!("/v1/conversations/{id}/memberships");

    alice.post(&path, json!({"userId": WIDE.repeat(255), "accessLevel": "reader"})).expect(201);
    alice.post(&path, json!({"userId": "x".repeat(256), "accessLevel": "reader"})).expect_violation("userId");

    let mut body = history("x");
    body["userId"] = json!("x".repeat(256));
    alice.post(&entries_path(&id), body).expect(400);
}

#[test]
fn a_caller_with_a_user_id_of_255_characters_is_served() {
    let name = format!("{}{}", fresh_name("long"), "x".repeat(255));
    let long = SERVER.as_user(&name[..255]);

    let created = long.post("/v1/conversations", json!({})).expect(201);
    assert_eq!(created.json["ownerUserId"], name[..255]);
    SERVER.as_user(&name[..256]).get("/v1/conversations").expect(401);
}

#[test]
fn a_content_type_has_at_most_127_characters() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let append = |content_type: String| {
        alice.post(&entries_path(&id), json!({"contentType": content_type, "content": ["x"]}))
    };

    append("x".repeat(127)).expect(201);
    append("ä".repeat(127)).expect(201);
    append("x".repeat(128)).expect_violation("contentType");
}

#[test]
fn an_append_has_at_most_1000_items_and_a_sync_at_most_10000() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let items = |count: usize| Value::from_iter(0..count);

    agent.post(&entries_path(&id), memory(items(1_000))).expect(201);
    agent.post(&entries_path(&id), memory(items(1_001))).expect_violation("content");
    agent
        .post(&entries_path(&id), json!({"contentType": "message", "content": items(1_001)}))
        .expect_violation("content");

    assert_eq!(sync(&agent, &id, items(1_001)).expect(200).json["entry"]["content"], json!([1_000]));
    let answer = sync(&agent, &id, items(10_000)).expect(200);
    assert_eq!(answer.json["entry"]["content"].as_array().unwrap().len(), 10_000 - 1_001);
    sync(&agent, &id, items(10_001)).expect_violation("content");
    assert_eq!(sync(&agent, &id, items(10_000)).expect(200).json["noOp"], true);
}

#[test]
fn indexed_content_has_at_most_100000_characters() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let append = |text: String| {
        let mut body = history("x");
        body["indexedContent"] = json!(text);
        alice.post(&entries_path(&id), body)
    };

    let entry = append("ä".repeat(100_000)).expect(201).id();
    append("x".repeat(100_001)).expect_violation("indexedContent");

    let index = |text: String| {
        SERVER.as_user("admin").post(
            "/v1/conversations/index",
            json!([{"conversationId": id, "entryId": entry, "indexedContent": text}]),
        )
    };
    index("ä".repeat(100_000)).expect(200);
    index("x".repeat(100_001)).expect_violation("indexedContent");
}

#[test]
fn a_list_query_has_at_most_1000_characters() {
    let alice = SERVER.someone("alice");
    let list = |query: &str| alice.get(&format!("/v1/conversations?query={query}"));

    list(&"%C3%A4".repeat(1_000)).expect_page();
    list(&"x".repeat(1_001)).expect_violation("query");
}

#[test]
fn an_index_batch_has_at_most_1000_items() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "x");
    let batch = |count: usize| {
        let item = json!({"conversationId": id, "entryId": entry, "indexedContent": "x"});
        SERVER.as_user("admin").post("/v1/conversations/index", json!(vec![item; count]))
    };

    assert_eq!(batch(1_000).expect(200).json, json!({"indexed": 1_000}));
    batch(1_001).expect(400);
}

#[test]
fn a_justification_has_at_most_1000_characters() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let admin = SERVER.as_user("admin");
    let read = |text: &str| admin.get(&format!("/v1/admin/conversations/{id}?justification={text}"));

    read(&"%C3%A4".repeat(1_000)).expect(200);
    read(&"x".repeat(1_001)).expect(400);
    let evict = |text: String| {
        admin.post(
            "/v1/admin/evict",
            json!({"retentionPeriod": "P9Y", "resourceTypes": ["conversations"], "justification": text}),
        )
    };
    evict("x".repeat(1_000)).expect(204);
    evict("x".repeat(1_001)).expect(400);
}

/// `levels` nested arrays, or objects, in the text of a `content` member; the outermost is the content array.
fn nested(levels: usize, objects: bool) -> Body {
    let inner = levels - 1;
    let (open, close) = if objects { (r#"{"a":"#, "}") } else { ("[", "]") };
    let content = format!("[{}1{}]", open.repeat(inner), close.repeat(inner));
    Body::json_text(format!(r#"{{"channel":"memory","contentType":"deep","content":{content}}}"#))
}

#[test]
fn content_is_nested_at_most_64_levels() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    for objects in [false, true] {
        for end in ["", "/sync"] {
            let send = |levels: usize| {
                agent.send("POST", &format!("{}{end}", entries_path(&id)), nested(levels, objects))
            };
            let accepted = send(64);
            assert!(accepted.status < 300, "{}", accepted.describe());
            for levels in [65, 66, 127, 129, 5_000, 100_000] {
                send(levels).expect(400);
            }
        }
    }
}

#[test]
fn deep_nesting_anywhere_else_does_no_harm() {
    let alice = SERVER.someone("alice");
    for depth in [100, 1_000, 100_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for body in [
            format!(r#"{{"metadata":{{"a":{deep}}}}}"#),
            format!(r#"{{"metadata":{deep}}}"#),
            format!(r#"{{"title":{deep}}}"#),
            deep.clone(),
        ] {
            alice.send("POST", "/v1/conversations", Body::json_text(body)).expect(400);
        }
        let ignored =
            alice.send("POST", "/v1/conversations", Body::json_text(format!(r#"{{"unknown":{deep}}}"#)));
        assert!(matches!(ignored.status, 201 | 400), "{}", ignored.describe());
    }
}

#[test]
fn brackets_in_strings_are_not_nesting() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");

    remember(&agent, &id, json!(["[".repeat(500), "{\"\\".repeat(500)]));
}

#[test]
fn a_body_of_20_mib_is_read_and_one_byte_more_is_not() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let body = |bytes: usize| {
        let mut text = history("small").to_string();
        text.push_str(&" ".repeat(bytes - text.len()));
        Body::json_text(text)
    };

    alice.send("POST", &entries_path(&id), body(20 * MIB)).expect(201);
    let refused =
        alice.send("POST", &entries_path(&id), body(20 * MIB + 1)).expect_error(413, "payload_too_large");
    assert_eq!(refused.json["details"]["maxBytes"], 20 * MIB);
    assert_eq!(transcript(&alice, &id).len(), 1);
}

#[test]
fn a_large_body_of_unknown_length_is_refused_too() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let mut chunks = vec![history("small").to_string().into_bytes()];
    chunks.extend(std::iter::repeat_n(vec![b' '; MIB], 21));

    // The server may answer while the client still sends; a broken pipe is then as good as the answer.
    let body = Body::Chunked { content_type: "application/json", chunks };
    if let Ok(answer) = alice.try_send("POST", &entries_path(&id), body) {
        answer.expect_error(413, "payload_too_large");
    }
    assert!(transcript(&alice, &id).is_empty());
}

#[test]
fn the_content_of_one_entry_has_at_most_16_mib() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    // ["…"] is four characters around the text.
    let content = |bytes: usize| memory(json!(["x".repeat(bytes - 4)]));

    let stored = agent.post(&entries_path(&id), content(16 * MIB)).expect(201);
    assert_eq!(stored.json["content"][0].as_str().unwrap().len(), 16 * MIB - 4);
    let refused = agent.post(&entries_path(&id), content(16 * MIB + 1));
    assert!(matches!(refused.status, 400 | 413), "{}", refused.describe());
    assert_eq!(entries(&agent, &id, "channel=memory").data.len(), 1);
}

// ---- NUL

#[test]
fn nul_characters_are_refused_in_every_string_of_a_body() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let admin = SERVER.as_user("admin");
    let id = start(&agent, "Chat");
    let entry = say(&agent, &id, "one");
    let entries = entries_path(&id);
    let sync = format!("{entries}/sync");
    let fork = format!("{entries}/{entry}/fork");
    let conversation = format!("/v1/conversations/{id}");
    let memberships = format!("{conversation}/memberships");
    let mut indexed = history("x");
    indexed["indexedContent"] = json!("a\0b");
    let mut typed = history("x");
    typed["contentType"] = json!("history/a\0b");

    for (who, path, body) in [
        (&agent, "/v1/conversations", json!({"title": "a\0b"})),
        (&agent, "/v1/conversations", json!({"title": "\0"})),
        (&agent, "/v1/conversations", json!({"metadata": {"k": "a\0b"}})),
        (&agent, "/v1/conversations", json!({"metadata": {"k": {"deep": ["\0"]}}})),
        (&agent, "/v1/conversations", json!({"metadata": {"a\0b": 1}})),
        (&agent, entries.as_str(), history("a\0b")),
        (&agent, entries.as_str(), typed),
        (&agent, entries.as_str(), indexed),
        (&agent, entries.as_str(), memory(json!(["a\0b"]))),
        (&agent, entries.as_str(), memory(json!([{"deep": [{"k": "\0"}]}]))),
        (&agent, entries.as_str(), memory(json!([{"a\0b": 1}]))),
        (&agent, entries.as_str(), json!({"contentType": "message", "content": ["\0"]})),
        (&agent, sync.as_str(), memory(json!(["a\0b"]))),
        (&agent, fork.as_str(), json!({"title": "a\0b"})),
        (&agent, memberships.as_str(), json!({"userId": "a\0b", "accessLevel": "reader"})),
        (&agent, "/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": "a\0b"})),
        (&agent, "/v1/conversations/search", json!({"query": "a\0b"})),
        (
            &admin,
            "/v1/conversations/index",
            json!([{"conversationId": id, "entryId": entry, "indexedContent": "a\0b"}]),
        ),
        (&admin, "/v1/admin/conversations/search", json!({"query": "a\0b"})),
        (&admin, "/v1/admin/conversations/search", json!({"query": "a", "userId": "a\0b"})),
    ] {
        let answer = who.post(path, body.clone());
        assert_eq!(answer.status, 400, "{body}: {}", answer.describe());
    }
    agent.patch(&conversation, json!({"title": "a\0b"})).expect(400);
    assert_eq!(view(&agent, &id), ["one"]);
    assert_eq!(agent.get(&memberships).expect_page().data.len(), 1);
}

#[test]
fn nul_characters_are_refused_in_query_parameters_and_paths() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let admin = SERVER.as_user("admin");

    alice.get("/v1/conversations?query=a%00b").expect(400);
    alice.get("/v1/conversations?after=%00").expect(400);
    alice.get(&format!("/v1/conversations/{id}/memberships?after=a%00b")).expect(400);
    admin.get("/v1/admin/conversations?userId=a%00b").expect(400);
    for answer in [
        alice.patch(&format!("/v1/conversations/{id}/memberships/a%00b"), json!({"accessLevel": "reader"})),
        alice.delete(&format!("/v1/conversations/{id}/memberships/a%00b")),
        alice.get("/v1/conversations/a%00b"),
    ] {
        assert!(matches!(answer.status, 400 | 404), "{}", answer.describe());
    }
}

// ---- names that a JSON library keeps for itself

#[test]
fn names_that_our_json_library_would_read_as_something_else_are_refused() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let append = entries_path(&id);
    let sync_path = format!("{append}/sync");
    sync(&agent, &id, json!([1])).expect(200);

    for name in ["Number", "RawValue", "AnythingElse", ""] {
        for dollar in ["$", "\\u0024"] {
            for member in [
                format!(r#"{{"{dollar}serde_json::private::{name}":"1"}}"#),
                format!(r#"{{"a":1,"{dollar}serde_json::private::{name}" : "1"}}"#),
                format!(r#"{{"deep":[{{"{dollar}serde_json::private::{name}":"{{\"role\":\"USER\"}}"}}]}}"#),
            ] {
                let entry = |channel: &str, kind: &str| {
                    Body::json_text(format!(
                        r#"{{"channel":"{channel}","contentType":"{kind}","content":[{member}]}}"#
                    ))
                };
                let history = format!(
                    r#"{{"contentType":"history","content":[{{"role":"USER","text":"x","more":{member}}}]}}"#
                );
                for (path, body) in [
                    (append.as_str(), entry("memory", "LC4J")),
                    (append.as_str(), entry("history", "history")),
                    (
                        append.as_str(),
                        Body::json_text(format!(r#"{{"contentType":"m","content":[{member}]}}"#)),
                    ),
                    (append.as_str(), Body::json_text(history)),
                    (sync_path.as_str(), entry("memory", "LC4J")),
                    ("/v1/conversations", Body::json_text(format!(r#"{{"metadata":{member}}}"#))),
                    ("/v1/conversations", Body::json_text(format!(r#"{{"metadata":{{"k":{member}}}}}"#))),
                ] {
                    agent.send("POST", path, body).expect_error(400, "validation_error");
                }
            }
        }
    }

    assert_eq!(current_memory(&agent, &id), [json!(1)], "nothing refused was stored");
    assert!(transcript(&agent, &id).is_empty());
    // As a value it is a text like any other, and other names are nobody's.
    let fine = json!([{"$serde_json": "$serde_json::private::Number", "$": 1}]);
    assert_eq!(sync(&agent, &id, fine.clone()).expect(200).json["entry"]["content"], fine);
}

// ---- pages of large entries

/// The agent says something with 9 MiB beside it; four of these are more than a page holds.
#[track_caller]
fn say_much(agent: &Client, conversation: &str) -> String {
    let item = json!({"role": "USER", "text": "walrus", "more": "x".repeat(9 * MIB)});
    agent
        .post(&entries_path(conversation), json!({"contentType": "history", "content": [item]}))
        .expect(201)
        .id()
}

/// Follows the pages in one direction; how many entries each had, and the ids of all of them, oldest first.
#[track_caller]
fn pages(who: &Client, path: &str, backwards: bool) -> (Vec<usize>, Vec<String>) {
    let (mut sizes, mut ids) = (Vec::new(), Vec::new());
    let mut place = if backwards { "&tail=true".to_owned() } else { String::new() };
    loop {
        let answer = who.get(&format!("{path}{place}"));
        let page = if backwards { answer.expect_backward_page() } else { answer.expect_page() };
        assert!(!page.data.is_empty(), "{path}{place} is an empty page");
        sizes.push(page.data.len());
        // The feed has its entries one level deeper.
        let id = |item: &Value| item["id"].as_str().or(item["entry"]["id"].as_str()).unwrap().to_owned();
        let here = page.data.iter().map(id);
        let next = if backwards {
            ids.splice(0..0, here);
            page.before.map(|cursor| format!("&before={cursor}"))
        } else {
            ids.extend(here);
            page.after.map(|cursor| format!("&after={cursor}"))
        };
        let Some(next) = next else { return (sizes, ids) };
        assert!(sizes.len() < 100, "{path} never ends");
        place = next;
    }
}

#[test]
fn a_page_ends_early_when_its_entries_are_large_and_the_next_one_goes_on() {
    // A server to itself, because nobody else should wait for this much.
    let server = local_server();
    let agent = server.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let said: Vec<String> = (0..5).map(|_| say_much(&agent, &id)).collect();
    let remembered: Vec<String> =
        (0..5).map(|_| remember(&agent, &id, json!(["x".repeat(9 * MIB)]))).collect();
    let everything: Vec<String> = said.iter().chain(&remembered).cloned().collect();

    let path = entries_path(&id);
    for (query, expected) in [
        ("channel=history", &said),
        ("channel=memory", &remembered),
        ("channel=all", &everything),
        ("channel=history&forks=all", &said),
    ] {
        for backwards in [false, true] {
            let (sizes, ids) = pages(&agent, &format!("{path}?{query}&limit=50"), backwards);
            assert_eq!(&ids, expected, "{query}, backwards: {backwards}, in pages of {sizes:?}");
            assert!(
                sizes.iter().all(|size| *size <= 4),
                "{query}, backwards: {backwards}: pages of {sizes:?} entries of 9 MiB each"
            );
        }
    }

    let admin = server.as_user("admin");
    let (sizes, ids) =
        pages(&admin, &format!("/v1/admin/conversations/{id}/entries?forks=all&limit=1000"), false);
    assert_eq!(ids, everything, "an admin, in pages of {sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 4), "an admin gets pages of {sizes:?} entries of 9 MiB each");
}

#[test]
fn a_page_that_ends_early_leaves_nothing_out_where_branches_and_channels_meet() {
    let server = local_server();
    let agent = server.someone("alice").with_key("agent-a");
    let root = start(&agent, "Chat");
    let mut expected: Vec<String> = (0..3).map(|_| say_much(&agent, &root)).collect();
    let cut = say(&agent, &root, "replaced");
    let branch = fork(&agent, &root, &cut);
    // The inherited part leaves no room for the first of these, and enough for the second.
    expected.push(say_much(&agent, &branch));
    expected.push(remember(&agent, &branch, json!(["small"])));
    expected.push(say(&agent, &branch, "small"));
    expected.push(remember(&agent, &branch, json!(["x".repeat(9 * MIB)])));
    let whole: Vec<String> = expected[..3].iter().chain([&cut]).chain(&expected[3..]).cloned().collect();

    for backwards in [false, true] {
        let path = format!("{}?channel=all&limit=50", entries_path(&branch));
        let (sizes, ids) = pages(&agent, &path, backwards);
        assert_eq!(ids, expected, "the branch, backwards: {backwards}, in pages of {sizes:?}");
        let (sizes, ids) = pages(&agent, &format!("{path}&forks=all"), backwards);
        assert_eq!(ids, whole, "the tree, backwards: {backwards}, in pages of {sizes:?}");
    }
}

#[test]
fn a_page_of_hits_or_of_the_feed_ends_early_too_when_its_entries_are_large() {
    let server = local_server();
    let agent = server.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let said: Vec<String> = (0..5).map(|_| say_much(&agent, &id)).collect();

    let (sizes, ids) = pages(&server.as_user("admin"), "/v1/conversations/unindexed?limit=50", false);
    assert_eq!(ids, said, "the feed, in pages of {sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 4), "pages of {sizes:?} entries of 9 MiB each");

    let mut found = Vec::new();
    let mut body = json!({"query": "walrus", "groupByConversation": false, "limit": 50});
    loop {
        let page = agent.post("/v1/conversations/search", body.clone()).expect_page();
        assert!((1..=4).contains(&page.data.len()), "a page of {} hits of 9 MiB each", page.data.len());
        found.extend(page.all("entryId"));
        let Some(after) = page.after else { break };
        body["after"] = json!(after);
    }
    found.sort();
    assert_eq!(found, said, "a search finds each of them once");
    let body = json!({"query": "walrus", "groupByConversation": false, "includeEntry": false, "limit": 50});
    let slim = agent.post("/v1/conversations/search", body).expect_page();
    assert_eq!(slim.data.len(), 5, "without their entries they fit on one page");
}
