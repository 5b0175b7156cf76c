//! Creating, reading, changing and listing conversations.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const SUMMARY: [&str; 6] = ["id", "title", "ownerUserId", "createdAt", "updatedAt", "accessLevel"];
const UNTITLED: [&str; 5] = ["id", "ownerUserId", "createdAt", "updatedAt", "accessLevel"];

// ---- create

#[test]
fn a_created_conversation_has_exactly_the_contracts_members() {
    let alice = SERVER.someone("alice");

    let created = alice
        .post("/v1/conversations", json!({"title": "Plans", "metadata": {"team": "blue"}}))
        .expect(201)
        .expect_members(&SUMMARY);

    assert_eq!(created.json["title"], "Plans");
    assert_eq!(created.json["ownerUserId"], alice.user());
    assert_eq!(created.json["accessLevel"], "owner");
    assert_eq!(created.json["createdAt"], created.json["updatedAt"]);
    assert_uuid(&created.json["id"]);
    assert_timestamp(&created.json["createdAt"]);
}

#[test]
fn a_server_made_id_is_a_version_7_uuid() {
    let id = start(&SERVER.someone("alice"), "Plans");

    assert_eq!(id.as_bytes()[14], b'7', "not version 7: {id}");
}

#[test]
fn a_conversation_without_a_title_has_no_title_member() {
    let alice = SERVER.someone("alice");
    for body in [json!({}), json!({"title": null}), json!({"metadata": {}}), json!({"metadata": null})] {
        alice.post("/v1/conversations", body).expect(201).expect_members(&UNTITLED);
    }
}

#[test]
fn a_blank_title_is_no_title() {
    let alice = SERVER.someone("alice");
    for blank in ["", " ", " \t\n "] {
        alice.post("/v1/conversations", json!({"title": blank})).expect(201).expect_members(&UNTITLED);
    }
}

#[test]
fn unknown_request_members_are_ignored() {
    SERVER
        .someone("alice")
        .post("/v1/conversations", json!({"title": "Plans", "colour": "blue", "nested": {"a": [1]}}))
        .expect(201)
        .expect_members(&SUMMARY);
}

#[test]
fn a_title_that_is_not_text_is_refused() {
    let alice = SERVER.someone("alice");
    for title in [json!(7), json!(["Plans"]), json!({"text": "Plans"}), json!(true)] {
        alice.post("/v1/conversations", json!({"title": title})).expect(400);
    }
}

#[test]
fn metadata_that_is_not_an_object_is_refused() {
    let alice = SERVER.someone("alice");
    for metadata in [json!([]), json!("team blue"), json!(7), json!(true)] {
        alice.post("/v1/conversations", json!({"metadata": metadata})).expect(400);
    }
}

// ---- get

#[test]
fn the_owner_reads_the_conversation_as_it_was_created() {
    let alice = SERVER.someone("alice");
    let created = alice.post("/v1/conversations", json!({"title": "Plans"})).expect(201);

    let read = alice.get(&format!("/v1/conversations/{}", created.id())).expect(200);

    assert_eq!(read.json, created.json);
}

#[test]
fn metadata_appears_only_in_get_and_only_when_there_is_some() {
    let alice = SERVER.someone("alice");
    let metadata = json!({"team": "blue", "count": 3, "nested": {"deep": [true, null]}});
    let with = alice.post("/v1/conversations", json!({"title": "A", "metadata": metadata})).expect(201);
    let without = alice.post("/v1/conversations", json!({"title": "B", "metadata": {}})).expect(201);

    let read = alice.get(&format!("/v1/conversations/{}", with.id())).expect(200);
    assert_eq!(read.json["metadata"], metadata);
    assert_members(&read.json, &[&SUMMARY[..], &["metadata"]].concat(), "GET with metadata");

    alice.get(&format!("/v1/conversations/{}", without.id())).expect(200).expect_members(&SUMMARY);
    alice
        .patch(&format!("/v1/conversations/{}", with.id()), json!({"title": "C"}))
        .expect(200)
        .expect_members(&SUMMARY);
    for item in alice.get("/v1/conversations").expect_page().data {
        assert_members(&item, &SUMMARY, "a list item");
    }
}

#[test]
fn a_foreign_conversation_is_forbidden() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    let id = start(&alice, "Private");

    mallory.get(&format!("/v1/conversations/{id}")).expect_forbidden();
}

#[test]
fn an_unknown_conversation_is_not_found() {
    let id = fresh_id();

    SERVER.someone("alice").get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
}

#[test]
fn a_malformed_id_is_not_found_and_comes_back_as_it_was_written() {
    let alice = SERVER.someone("alice");
    for id in
        ["nonsense", "1234", "00000000-0000-0000-0000-00000000000", "01890000-0000-7000-8000-00000000000g"]
    {
        alice.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", id);
        alice
            .patch(&format!("/v1/conversations/{id}"), json!({"title": "x"}))
            .expect_not_found("conversation", id);
        alice.delete(&format!("/v1/conversations/{id}")).expect_not_found("conversation", id);
    }
}

#[test]
fn a_malformed_id_is_percent_decoded_once_in_the_answer() {
    SERVER
        .someone("alice")
        .get("/v1/conversations/not%20a%2520uuid")
        .expect_not_found("conversation", "not a%20uuid");
}

#[test]
fn a_deleted_conversation_is_not_found() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Gone");
    alice.delete(&format!("/v1/conversations/{id}")).expect(204);

    alice.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
}

#[test]
fn ids_of_any_uuid_version_may_be_chosen_by_the_client() {
    let alice = SERVER.someone("alice");
    // The middle of the id is fresh, the version digit is what varies.
    for version in ["1", "4", "5", "0", "f"] {
        let mut id = fresh_id();
        id.replace_range(14..15, version);
        say(&alice, &id, "hello");
        assert_eq!(alice.get(&format!("/v1/conversations/{id}")).expect(200).id(), id);
    }
}

// ---- patch

#[test]
fn a_title_can_be_changed_and_cleared() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Before");
    let path = format!("/v1/conversations/{id}");

    let changed = alice.patch(&path, json!({"title": "After"})).expect(200).expect_members(&SUMMARY);
    assert_eq!(changed.json["title"], "After");
    assert_eq!(alice.get(&path).expect(200).json["title"], "After");

    alice.patch(&path, json!({"title": null})).expect(200).expect_members(&UNTITLED);
    alice.patch(&path, json!({"title": "Again"})).expect(200);
    alice.patch(&path, json!({"title": "  "})).expect(200).expect_members(&UNTITLED);
}

#[test]
fn a_patch_without_a_title_changes_nothing() {
    let alice = SERVER.someone("alice");
    let created = alice.post("/v1/conversations", json!({"title": "Stays"})).expect(201);
    let path = format!("/v1/conversations/{}", created.id());

    alice.patch(&path, json!({})).expect(200);
    alice.patch(&path, json!({"metadata": {"a": "b"}})).expect(200);

    let read = alice.get(&path).expect(200).expect_members(&SUMMARY);
    assert_eq!(read.json["title"], "Stays");
}

#[test]
fn a_title_change_moves_updated_at_and_nothing_else_in_the_dates() {
    let alice = SERVER.someone("alice");
    let created = alice.post("/v1/conversations", json!({"title": "Before"})).expect(201);

    let changed =
        alice.patch(&format!("/v1/conversations/{}", created.id()), json!({"title": "After"})).expect(200);

    assert!(changed.text_of("updatedAt") > created.text_of("updatedAt"));
    assert_eq!(changed.json["createdAt"], created.json["createdAt"]);
}

#[test]
fn patching_needs_a_title_of_the_right_kind() {
    let alice = SERVER.someone("alice");
    let path = format!("/v1/conversations/{}", start(&alice, "Plans"));

    alice.patch(&path, json!({"title": "x".repeat(501)})).expect_violation("title");
    alice.patch(&path, json!({"title": 7})).expect(400);
    alice.send("PATCH", &path, Body::None).expect(400);
}

#[test]
fn patching_what_is_not_there_or_not_yours_is_refused() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    let id = start(&alice, "Mine");
    let unknown = fresh_id();

    mallory.patch(&format!("/v1/conversations/{id}"), json!({"title": "Yours"})).expect_forbidden();
    mallory
        .patch(&format!("/v1/conversations/{unknown}"), json!({"title": "x"}))
        .expect_not_found("conversation", &unknown);
    assert_eq!(alice.get(&format!("/v1/conversations/{id}")).expect(200).json["title"], "Mine");
}

// ---- list

#[test]
fn a_newcomer_has_an_empty_list() {
    let answer = SERVER.someone("newcomer").get("/v1/conversations").expect(200);

    assert_eq!(answer.json, json!({"data": [], "afterCursor": null}));
}

#[test]
fn the_list_shows_the_most_recently_updated_first() {
    let alice = SERVER.someone("alice");
    let a = start(&alice, "A");
    start(&alice, "B");
    start(&alice, "C");
    assert_eq!(titles(&alice.get("/v1/conversations").expect_page()), ["C", "B", "A"]);

    say(&alice, &a, "news");

    assert_eq!(titles(&alice.get("/v1/conversations").expect_page()), ["A", "C", "B"]);
}

#[test]
fn the_list_holds_own_and_shared_conversations_with_the_callers_level() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let shared = start(&alice, "Shared");
    start(&alice, "Private");
    start(&bob, "Bob's");
    share(&alice, &shared, &bob, "reader");

    let page = bob.get("/v1/conversations").expect_page();

    assert_eq!(titles(&page), ["Bob's", "Shared"]);
    assert_eq!(page.all("accessLevel"), ["owner", "reader"]);
    assert_eq!(page.all("ownerUserId"), [bob.user(), alice.user()]);
}

#[test]
fn list_items_have_exactly_the_contracts_members() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "With preview");
    alice.post("/v1/conversations", json!({})).expect(201);
    say(&alice, &id, "hello");

    let page = alice.get("/v1/conversations").expect_page();

    assert_members(&page.data[0], &[&SUMMARY[..], &["lastMessagePreview"]].concat(), "with preview");
    assert_members(&page.data[1], &UNTITLED, "untitled, no preview");
}

/// A tree R with forks F1 and F2 (of F1), F2 updated last, and a second tree S.
fn two_trees(alice: &Client) -> (String, String, String, String) {
    let r = start(alice, "R");
    say(alice, &r, "r1");
    let r2 = say(alice, &r, "r2");
    let f1 = fork(alice, &r, &r2);
    alice.patch(&format!("/v1/conversations/{f1}"), json!({"title": "F1"})).expect(200);
    let own = say(alice, &f1, "f1");
    let f2 = fork(alice, &f1, &own);
    alice.patch(&format!("/v1/conversations/{f2}"), json!({"title": "F2"})).expect(200);
    let s = start(alice, "S");
    (r, f1, f2, s)
}

#[test]
fn mode_all_lists_roots_and_forks() {
    let alice = SERVER.someone("alice");
    two_trees(&alice);

    let page = alice.get("/v1/conversations?mode=all").expect_page();

    assert_eq!(titles(&page), ["S", "F2", "F1", "R"]);
}

#[test]
fn mode_roots_lists_only_conversations_without_a_parent() {
    let alice = SERVER.someone("alice");
    two_trees(&alice);

    let page = alice.get("/v1/conversations?mode=roots").expect_page();

    assert_eq!(titles(&page), ["S", "R"]);
}

#[test]
fn a_blank_slate_fork_is_not_a_root() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Root");
    let blank = fresh_id();
    let mut body = history("from scratch");
    body["forkedAtConversationId"] = json!(root);
    alice.post(&format!("/v1/conversations/{blank}/entries"), body).expect(201);

    assert_eq!(alice.get("/v1/conversations?mode=roots").expect_page().ids(), [root.as_str()]);
    assert_eq!(alice.get("/v1/conversations?mode=all").expect_page().ids(), [blank, root]);
}

#[test]
fn the_default_mode_shows_one_conversation_per_tree_the_latest() {
    let alice = SERVER.someone("alice");
    let (r, _, f2, s) = two_trees(&alice);

    assert_eq!(alice.get("/v1/conversations").expect_page().ids(), [s.clone(), f2.clone()]);
    assert_eq!(alice.get("/v1/conversations?mode=latest-fork").expect_page().ids(), [s.clone(), f2]);

    say(&alice, &r, "back to the root");
    assert_eq!(alice.get("/v1/conversations").expect_page().ids(), [r, s]);
}

#[test]
fn modes_are_accepted_in_any_letter_case_and_others_refused() {
    let alice = SERVER.someone("alice");
    two_trees(&alice);

    assert_eq!(titles(&alice.get("/v1/conversations?mode=ROOTS").expect_page()), ["S", "R"]);
    assert_eq!(titles(&alice.get("/v1/conversations?mode=Latest-Fork").expect_page()), ["S", "F2"]);
    assert_eq!(titles(&alice.get("/v1/conversations?mode=aLL").expect_page()), ["S", "F2", "F1", "R"]);
    alice.get("/v1/conversations?mode=newest").expect_violation("mode");
}

#[test]
fn walking_with_limit_one_yields_each_conversation_once_in_every_mode() {
    let alice = SERVER.someone("alice");
    let (r, f1, f2, s) = two_trees(&alice);
    for (mode, expected) in
        [("all", vec![&s, &f2, &f1, &r]), ("roots", vec![&s, &r]), ("latest-fork", vec![&s, &f2])]
    {
        let walked = walk(&alice, &format!("/v1/conversations?mode={mode}&limit=1"));
        let ids: Vec<&str> = walked.iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "mode {mode}");
    }
}

#[test]
fn a_tree_with_many_forks_does_not_push_other_trees_off_the_page() {
    let alice = SERVER.someone("alice");
    let other = start(&alice, "Other");
    let root = start(&alice, "Big tree");
    let entry = say(&alice, &root, "one");
    for _ in 0..30 {
        fork(&alice, &root, &entry);
    }

    let page = alice.get("/v1/conversations?limit=2").expect_page();

    assert_eq!(page.data.len(), 2);
    assert_eq!(page.ids()[1], other);
    assert_eq!(page.after, None);
}

#[test]
fn every_tree_gives_one_row_when_its_forks_are_updated_at_the_same_moment() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Tree");
    let entry = say(&alice, &root, "one");
    let forks: Vec<String> = (0..8).map(|_| fork(&alice, &root, &entry)).collect();

    at_once(forks.len(), |n| say(&alice, &forks[n], "at the same time"));

    assert_eq!(alice.get("/v1/conversations").expect_page().data.len(), 1);
    let all = alice.get("/v1/conversations?mode=all").expect_page();
    let keys: Vec<(String, String)> = all.all("updatedAt").into_iter().zip(all.ids()).collect();
    let mut sorted = keys.clone();
    sorted.sort_by(|a, b| b.cmp(a));
    assert_eq!(keys, sorted, "updatedAt descending, then id descending");
}

#[test]
fn the_default_page_has_twenty_conversations() {
    let alice = SERVER.someone("alice");
    spread(21, |n| {
        start(&alice, &format!("{n}"));
    });

    let page = alice.get("/v1/conversations").expect_page();

    assert_eq!(page.data.len(), 20);
    assert_eq!(page.after, Some(page.ids()[19].clone()));
    assert_eq!(alice.get("/v1/conversations?limit=21").expect_page().after, None);
}

#[test]
fn a_full_last_page_has_no_cursor() {
    let alice = SERVER.someone("alice");
    start(&alice, "A");
    start(&alice, "B");

    assert_eq!(alice.get("/v1/conversations?limit=2").expect_page().after, None);
    assert!(alice.get("/v1/conversations?limit=1").expect_page().after.is_some());
}

// ---- query

#[test]
fn a_query_matches_titles_in_any_letter_case_anywhere() {
    let alice = SERVER.someone("alice");
    start(&alice, "Quarterly Budget");
    start(&alice, "Äpfel und Birnen");
    start(&alice, "Lunch");

    let found = |query: &str| titles(&alice.get(&format!("/v1/conversations?query={query}")).expect_page());

    assert_eq!(found("BUDGET"), ["Quarterly Budget"]);
    assert_eq!(found("rterly%20bud"), ["Quarterly Budget"]);
    assert_eq!(found("%C3%A4PFEL"), ["Äpfel und Birnen"]);
    assert_eq!(found("u"), ["Lunch", "Äpfel und Birnen", "Quarterly Budget"]);
    assert_eq!(found("dinner"), Vec::<String>::new());
}

#[test]
fn a_query_matches_string_values_of_metadata_but_not_its_keys() {
    let alice = SERVER.someone("alice");
    for (title, metadata) in [
        ("A", json!({"team": "Platform"})),
        ("B", json!({"tags": ["ops", {"level": "Platform-2"}]})),
        ("C", json!({"platform": "other"})),
    ] {
        alice.post("/v1/conversations", json!({"title": title, "metadata": metadata})).expect(201);
    }

    assert_eq!(titles(&alice.get("/v1/conversations?query=platform").expect_page()), ["B", "A"]);
}

#[test]
fn wildcard_characters_in_a_query_are_ordinary() {
    let alice = SERVER.someone("alice");
    start(&alice, "100% sure");
    start(&alice, "snake_case");
    start(&alice, "plain");

    let found = |query: &str| titles(&alice.get(&format!("/v1/conversations?query={query}")).expect_page());

    assert_eq!(found("%25"), ["100% sure"]);
    assert_eq!(found("e_c"), ["snake_case"]);
    assert_eq!(found("_"), ["snake_case"]);
    assert_eq!(found("*"), Vec::<String>::new());
    assert_eq!(found("%5C"), Vec::<String>::new());
}

#[test]
fn a_query_is_applied_before_the_limit_and_pages_on() {
    let alice = SERVER.someone("alice");
    for n in 0..6 {
        start(&alice, &format!("{} {n}", if n % 2 == 0 { "needle" } else { "hay" }));
    }

    let walked = walk(&alice, "/v1/conversations?query=needle&limit=1");

    let names: Vec<&str> = walked.iter().map(|item| item["title"].as_str().unwrap()).collect();
    assert_eq!(names, ["needle 4", "needle 2", "needle 0"]);
}

#[test]
fn a_match_beyond_the_first_thousand_rows_is_found() {
    let alice = SERVER.someone("alice");
    start(&alice, "The needle");
    spread(1_010, |n| {
        start(&alice, &format!("hay {n}"));
    });

    let page = alice.get("/v1/conversations?query=needle&limit=1").expect_page();

    assert_eq!(titles(&page), ["The needle"]);
    assert_eq!(page.after, None);
}

#[test]
fn in_the_default_mode_only_the_representative_of_a_tree_is_tested() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Alpha");
    let entry = say(&alice, &root, "one");
    let fork = fork(&alice, &root, &entry);
    alice.patch(&format!("/v1/conversations/{fork}"), json!({"title": "Beta"})).expect(200);

    assert_eq!(titles(&alice.get("/v1/conversations?query=beta").expect_page()), ["Beta"]);
    assert_eq!(titles(&alice.get("/v1/conversations?query=alpha").expect_page()), Vec::<String>::new());
    assert_eq!(titles(&alice.get("/v1/conversations?mode=all&query=alpha").expect_page()), ["Alpha"]);
}

#[test]
fn a_query_never_finds_foreign_titles() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    start(&alice, "secret merger");

    assert!(mallory.get("/v1/conversations?query=merger&mode=all").expect_page().data.is_empty());
}

// ---- preview and updatedAt

#[test]
fn history_appends_set_preview_and_updated_at() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    say(&alice, &id, "first");
    let entry = alice.post(&format!("/v1/conversations/{id}/entries"), history("second")).expect(201);

    let read = alice.get(&format!("/v1/conversations/{id}")).expect(200);

    assert_eq!(read.json["lastMessagePreview"], "second");
    assert_eq!(read.json["updatedAt"], entry.json["createdAt"]);
}

#[test]
fn memory_sharing_transfers_and_indexing_leave_preview_and_updated_at_alone() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let agent = alice.with_key("agent-a");
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "hello");
    let path = format!("/v1/conversations/{id}");
    let before = alice.get(&path).expect(200);

    remember(&agent, &id, json!(["note"]));
    sync(&agent, &id, json!(["other note"])).expect(200);
    share(&alice, &id, &bob, "reader");
    alice
        .post("/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": bob.user()}))
        .expect(201);
    SERVER
        .as_user("admin")
        .post(
            "/v1/conversations/index",
            json!([{"conversationId": id, "entryId": entry, "indexedContent": "greeting"}]),
        )
        .expect(200);

    assert_eq!(alice.get(&path).expect(200).json, before.json);
}

#[test]
fn a_preview_has_its_whitespace_collapsed() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    say(&alice, &id, "  one\n\n two\t\tthree  ");

    let read = alice.get(&format!("/v1/conversations/{id}")).expect(200);
    assert_eq!(read.json["lastMessagePreview"], "one two three");
}

#[test]
fn a_preview_of_two_hundred_characters_is_whole_and_a_longer_one_is_cut_on_a_character() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let path = format!("/v1/conversations/{id}");

    say(&alice, &id, &"ä".repeat(200));
    assert_eq!(alice.get(&path).expect(200).text_of("lastMessagePreview"), "ä".repeat(200));

    say(&alice, &id, &"😀".repeat(201));
    let preview = alice.get(&path).expect(200).text_of("lastMessagePreview");
    let kept = preview.strip_suffix('…').unwrap_or_else(|| panic!("no … at the end of {preview:?}"));
    assert!(kept.chars().all(|c| c == '😀'), "{preview:?}");
    assert!((199..=200).contains(&kept.chars().count()), "{} characters kept", kept.chars().count());
}

#[test]
fn a_fork_has_no_preview_until_something_is_said_on_it() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Chat");
    say(&alice, &root, "inherited");
    let cut = say(&alice, &root, "cut off");
    let branch = fork(&alice, &root, &cut);
    let path = format!("/v1/conversations/{branch}");
    assert_eq!(alice.get(&path).expect(200).json.get("lastMessagePreview"), None);

    say(&alice, &branch, "own words");

    assert_eq!(alice.get(&path).expect(200).json["lastMessagePreview"], "own words");
    let root = alice.get(&format!("/v1/conversations/{root}")).expect(200);
    assert_eq!(root.json["lastMessagePreview"], "cut off");
}
