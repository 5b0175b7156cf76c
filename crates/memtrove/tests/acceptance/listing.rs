//! Reading entries: channels, epochs, tail, backward paging, `upToEntryId`, all forks.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

fn path(conversation: &str, query: &str) -> String {
    format!("/v1/conversations/{conversation}/entries?{query}")
}

/// A conversation of five messages: its id and theirs.
fn five_messages(who: &Client) -> (String, Vec<String>) {
    let id = start(who, "Chat");
    let ids = (1..=5).map(|n| say(who, &id, &n.to_string())).collect();
    (id, ids)
}

// ---- channels

#[test]
fn the_default_channel_is_history_also_for_agents() {
    let alice = SERVER.someone("alice");
    let agent = alice.with_key("agent-a");
    let id = start(&alice, "Chat");
    say(&alice, &id, "aloud");
    remember(&agent, &id, json!(["private"]));

    for who in [&alice, &agent] {
        assert_eq!(said(&who.get(&format!("/v1/conversations/{id}/entries")).expect_page()), ["aloud"]);
        assert_eq!(said(&entries(who, &id, "channel=history")), ["aloud"]);
    }
}

#[test]
fn memory_and_all_need_a_key() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    for channel in ["memory", "all", "context", "MEMORY", "All"] {
        alice.get(&path(&id, &format!("channel={channel}"))).expect_forbidden();
    }
}

#[test]
fn channel_all_is_history_and_own_memory_of_every_epoch_in_order() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    say(&agent, &id, "h1");
    sync(&agent, &id, json!(["m1"])).expect(200);
    say(&agent, &id, "h2");
    sync(&agent, &id, json!(["m2"])).expect(200);

    let page = entries(&agent, &id, "channel=all");

    assert_eq!(said(&page), ["h1", "m1", "h2", "m2"]);
    assert_eq!(page.all("channel"), ["history", "memory", "history", "memory"]);
    assert_eq!(page.data[1]["epoch"], 1);
    assert_eq!(page.data[3]["epoch"], 2);
    assert_eq!(page.data[0].get("epoch"), None);
}

#[test]
fn channel_words_are_accepted_in_any_letter_case_and_others_refused() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    say(&agent, &id, "h");
    remember(&agent, &id, json!(["m"]));

    for channel in ["memory", "MEMORY", "Memory", "context", "Context"] {
        assert_eq!(said(&entries(&agent, &id, &format!("channel={channel}"))), ["m"], "{channel}");
    }
    assert_eq!(said(&entries(&agent, &id, "channel=HISTORY")), ["h"]);
    assert_eq!(said(&entries(&agent, &id, "channel=ALL")), ["h", "m"]);
    agent.get(&path(&id, "channel=everything")).expect_violation("channel");
}

#[test]
fn entries_of_an_unknown_conversation_are_not_found() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = fresh_id();

    for channel in ["history", "memory", "all"] {
        agent.get(&path(&id, &format!("channel={channel}"))).expect_not_found("conversation", &id);
    }
    agent.get("/v1/conversations/nonsense/entries").expect_not_found("conversation", "nonsense");
}

#[test]
fn entries_of_a_foreign_conversation_are_forbidden() {
    let (alice, mallory) = (SERVER.someone("alice"), SERVER.someone("mallory"));
    let (id, _) = five_messages(&alice);

    mallory.get(&path(&id, "")).expect_forbidden();
    mallory.with_key("agent-a").get(&path(&id, "channel=memory")).expect_forbidden();
    mallory.get(&path(&id, "forks=all")).expect_forbidden();
}

#[test]
fn a_conversation_without_entries_has_an_empty_page() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");

    for channel in ["history", "memory", "all"] {
        let answer = agent.get(&path(&id, &format!("channel={channel}"))).expect(200);
        assert_eq!(answer.json, json!({"data": [], "afterCursor": null}));
    }
}

// ---- epochs

#[test]
fn epoch_selects_latest_all_or_one() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    sync(&agent, &id, json!(["a"])).expect(200);
    sync(&agent, &id, json!(["a", "b"])).expect(200);
    sync(&agent, &id, json!(["x"])).expect(200);
    sync(&agent, &id, json!(["x", "y"])).expect(200);

    let read = |epoch: &str| said(&entries(&agent, &id, &format!("channel=memory&epoch={epoch}")));

    assert_eq!(said(&entries(&agent, &id, "channel=memory")), ["x", "y"]);
    assert_eq!(read("latest"), ["x", "y"]);
    assert_eq!(read("LATEST"), ["x", "y"]);
    assert_eq!(read("all"), ["a", "b", "x", "y"]);
    assert_eq!(read("All"), ["a", "b", "x", "y"]);
    assert_eq!(read("1"), ["a", "b"]);
    assert_eq!(read("2"), ["x", "y"]);
    assert_eq!(read("3"), Vec::<String>::new());
    assert_eq!(read("4000000000"), Vec::<String>::new());
}

#[test]
fn a_senseless_epoch_is_refused() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");

    for epoch in ["newest", "1.5", "1e0", "0x1", "1,2", "one"] {
        agent.get(&path(&id, &format!("channel=memory&epoch={epoch}"))).expect_violation("epoch");
    }
}

#[test]
fn epoch_is_ignored_for_history() {
    let alice = SERVER.someone("alice");
    let (id, _) = five_messages(&alice);

    for epoch in ["1", "7", "latest", "all"] {
        assert_eq!(said(&entries(&alice, &id, &format!("epoch={epoch}"))).len(), 5);
    }
}

// ---- forward paging

#[test]
fn the_default_page_has_fifty_entries_and_goes_on() {
    let alice = SERVER.someone("alice");
    let id = fresh_id();
    for n in 0..51 {
        say(&alice, &id, &n.to_string());
    }

    let first = entries(&alice, &id, "");
    assert_eq!(first.data.len(), 50);
    assert_eq!(first.after.as_ref(), Some(&first.ids()[49]));

    let second = entries(&alice, &id, &format!("after={}", first.after.unwrap()));
    assert_eq!(said(&second), ["50"]);
    assert_eq!(second.after, None);
}

#[test]
fn walking_with_limit_one_yields_each_entry_once() {
    let alice = SERVER.someone("alice");
    let (id, ids) = five_messages(&alice);

    let walked = walk(&alice, &path(&id, "limit=1"));

    assert_eq!(walked.iter().map(|e| e["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
}

#[test]
fn a_cursor_stays_valid_when_the_channel_changes() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    say(&agent, &id, "h1");
    let m1 = remember(&agent, &id, json!(["m1"]));
    let h2 = say(&agent, &id, "h2");
    remember(&agent, &id, json!(["m2"]));

    assert_eq!(said(&entries(&agent, &id, &format!("after={m1}"))), ["h2"]);
    assert_eq!(said(&entries(&agent, &id, &format!("channel=memory&after={h2}"))), ["m2"]);
    assert_eq!(said(&entries(&agent, &id, &format!("channel=all&after={m1}"))), ["h2", "m2"]);
}

#[test]
fn memory_pages_may_hold_a_thousand_entries() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    for n in 0..205 {
        remember(&agent, &id, json!([n]));
    }

    let page = entries(&agent, &id, "channel=memory&limit=1000");

    assert_eq!(page.data.len(), 205);
    agent.get(&path(&id, "channel=memory&limit=1001")).expect_violation("limit");
    agent.get(&path(&id, "channel=history&limit=201")).expect_violation("limit");
    agent.get(&path(&id, "limit=201")).expect_violation("limit");
    agent.get(&path(&id, "channel=history&limit=200")).expect(200);
}

// ---- tail and before

#[test]
fn tail_gives_the_last_entries_in_ascending_order() {
    let alice = SERVER.someone("alice");
    let (id, ids) = five_messages(&alice);

    let page = alice.get(&path(&id, "tail=true&limit=2")).expect_backward_page();

    assert_eq!(said(&page), ["4", "5"]);
    assert_eq!(page.before.as_ref(), Some(&ids[3]));
    assert_eq!(page.after, None);
}

#[test]
fn a_tail_that_holds_everything_has_no_cursors() {
    let alice = SERVER.someone("alice");
    let (id, _) = five_messages(&alice);

    for query in ["tail=true", "tail=true&limit=5"] {
        let page = alice.get(&path(&id, query)).expect_backward_page();
        assert_eq!(said(&page), ["1", "2", "3", "4", "5"]);
        assert_eq!((page.before, page.after), (None, None));
    }
    let empty = start(&alice, "Empty");
    let page = alice.get(&path(&empty, "tail=true")).expect_backward_page();
    assert_eq!((page.data.len(), page.before, page.after), (0, None, None));
}

#[test]
fn before_gives_the_entries_just_before_in_ascending_order() {
    let alice = SERVER.someone("alice");
    let (id, ids) = five_messages(&alice);

    for name in ["before", "beforeCursor"] {
        let page = alice.get(&path(&id, &format!("{name}={}&limit=2", ids[3]))).expect_backward_page();
        assert_eq!(said(&page), ["2", "3"]);
        assert_eq!(page.before.as_ref(), Some(&ids[1]));
        assert_eq!(page.after.as_ref(), Some(&ids[2]), "newer entries exist");
    }

    let page = alice.get(&path(&id, &format!("before={}&limit=2", ids[1]))).expect_backward_page();
    assert_eq!(said(&page), ["1"]);
    assert_eq!(page.before, None);
    let page = alice.get(&path(&id, &format!("before={}", ids[0]))).expect_backward_page();
    assert_eq!((page.data.len(), page.before), (0, None));
}

#[test]
fn a_chat_can_be_read_backwards_page_by_page() {
    let alice = SERVER.someone("alice");
    let (id, _) = five_messages(&alice);

    let mut pages = Vec::new();
    let mut page = alice.get(&path(&id, "tail=true&limit=2")).expect_backward_page();
    loop {
        pages.push(said(&page));
        let Some(before) = page.before else { break };
        page = alice.get(&path(&id, &format!("before={before}&limit=2"))).expect_backward_page();
    }

    assert_eq!(pages, [vec!["4", "5"], vec!["2", "3"], vec!["1"]]);
}

#[test]
fn tail_and_before_obey_the_channel() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    say(&agent, &id, "h1");
    sync(&agent, &id, json!(["old"])).expect(200);
    sync(&agent, &id, json!(["m1"])).expect(200);
    let h2 = say(&agent, &id, "h2");
    sync(&agent, &id, json!(["m1", "m2"])).expect(200);

    let tail = |query: &str| said(&agent.get(&path(&id, query)).expect_backward_page());

    assert_eq!(tail("tail=true&limit=1"), ["h2"]);
    assert_eq!(tail("tail=true&channel=memory"), ["m1", "m2"]);
    assert_eq!(tail("tail=true&channel=all&limit=3"), ["m1", "h2", "m2"]);
    assert_eq!(tail(&format!("before={h2}&channel=memory&epoch=all")), ["old", "m1"]);
    assert_eq!(tail(&format!("before={h2}&limit=1")), ["h1"]);
}

#[test]
fn tail_before_and_after_exclude_each_other() {
    let alice = SERVER.someone("alice");
    let (id, ids) = five_messages(&alice);

    for query in [
        format!("tail=true&after={}", ids[0]),
        format!("tail=true&before={}", ids[4]),
        format!("before={}&after={}", ids[4], ids[0]),
        format!("beforeCursor={}&afterEntryId={}", ids[4], ids[0]),
        format!("before={}&beforeCursor={}", ids[4], ids[3]),
    ] {
        alice.get(&path(&id, &query)).expect(400);
    }
}

#[test]
fn tail_false_and_empty_cursors_are_as_if_absent() {
    let alice = SERVER.someone("alice");
    let (id, _) = five_messages(&alice);

    for query in ["tail=false", "before=", "beforeCursor=&after=", "upToEntryId="] {
        assert_eq!(said(&entries(&alice, &id, query)).len(), 5, "{query}");
    }
    alice.get(&path(&id, "tail=perhaps")).expect(400);
}

#[test]
fn a_before_that_is_no_entry_of_this_view_is_refused() {
    let alice = SERVER.someone("alice");
    let (id, _) = five_messages(&alice);
    let (_, others) = five_messages(&alice);

    for before in [fresh_id(), others[0].clone(), "nonsense".to_owned(), id.clone()] {
        alice.get(&path(&id, &format!("before={before}"))).expect(400);
    }
}

// ---- upToEntryId

#[test]
fn up_to_entry_restricts_to_entries_at_or_before_it() {
    let alice = SERVER.someone("alice");
    let (id, ids) = five_messages(&alice);

    assert_eq!(said(&entries(&alice, &id, &format!("upToEntryId={}", ids[2]))), ["1", "2", "3"]);
    let walked = walk(&alice, &path(&id, &format!("upToEntryId={}&limit=1", ids[2])));
    assert_eq!(walked.len(), 3, "the last page ends at the entry");
    let tail =
        alice.get(&path(&id, &format!("upToEntryId={}&tail=true&limit=1", ids[2]))).expect_backward_page();
    assert_eq!(said(&tail), ["3"]);
}

#[test]
fn up_to_entry_reconstructs_the_memory_as_of_a_message() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let h0 = say(&agent, &id, "h0");
    sync(&agent, &id, json!(["a"])).expect(200);
    let h1 = say(&agent, &id, "h1");
    sync(&agent, &id, json!(["a", "b"])).expect(200);
    let h2 = say(&agent, &id, "h2");
    sync(&agent, &id, json!(["x"])).expect(200);
    let h3 = say(&agent, &id, "h3");

    let as_of = |entry: &str| said(&entries(&agent, &id, &format!("channel=memory&upToEntryId={entry}")));

    assert_eq!(as_of(&h0), Vec::<String>::new());
    assert_eq!(as_of(&h1), ["a"]);
    assert_eq!(as_of(&h2), ["a", "b"]);
    assert_eq!(as_of(&h3), ["x"]);
}

#[test]
fn up_to_an_entry_that_is_not_in_the_view_is_refused() {
    let alice = SERVER.someone("alice");
    let (id, _) = five_messages(&alice);
    let (_, others) = five_messages(&alice);

    for entry in [fresh_id(), others[0].clone(), "nonsense".to_owned()] {
        let answer = alice.get(&path(&id, &format!("upToEntryId={entry}")));
        assert!(matches!(answer.status, 400 | 404), "{}", answer.describe());
    }
}

// ---- all forks

#[test]
fn forks_all_lists_every_branch_in_order_with_the_same_filters() {
    let alice = SERVER.someone("alice");
    let (a, b) = (alice.with_key("agent-a"), alice.with_key("agent-b"));
    let root = start(&alice, "Root");
    say(&alice, &root, "r1");
    sync(&a, &root, json!(["a1"])).expect(200);
    let r2 = say(&alice, &root, "r2");
    let branch = fork(&alice, &root, &r2);
    say(&alice, &branch, "f1");
    sync(&b, &branch, json!(["b1"])).expect(200);
    sync(&a, &branch, json!(["a2"])).expect(200);
    say(&alice, &root, "r3");

    for id in [&root, &branch] {
        assert_eq!(said(&entries(&alice, id, "forks=all")), ["r1", "r2", "f1", "r3"]);
        assert_eq!(said(&entries(&alice, id, "forks=ALL")), ["r1", "r2", "f1", "r3"]);
        assert_eq!(said(&entries(&alice, id, "allForks=true")), ["r1", "r2", "f1", "r3"]);
        assert_eq!(said(&entries(&a, id, "forks=all&channel=memory")), ["a1", "a2"]);
        assert_eq!(said(&entries(&a, id, "forks=all&channel=memory&epoch=latest")), ["a1", "a2"]);
        assert_eq!(said(&entries(&a, id, "forks=all&channel=memory&epoch=all")), ["a1", "a2"]);
        assert_eq!(said(&entries(&a, id, "forks=all&channel=memory&epoch=2")), ["a2"]);
        assert_eq!(said(&entries(&b, id, "forks=all&channel=memory")), ["b1"]);
        assert_eq!(said(&entries(&b, id, "forks=all&channel=all")), ["r1", "r2", "f1", "b1", "r3"]);
    }
    assert_eq!(transcript(&alice, &branch), ["r1", "f1"], "the default follows the path");
    assert_eq!(said(&entries(&alice, &branch, "forks=none")), ["r1", "f1"]);
    assert_eq!(said(&entries(&alice, &branch, "allForks=false")), ["r1", "f1"]);
}

#[test]
fn forks_all_pages_with_a_cursor_from_anywhere_in_the_tree() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Root");
    say(&alice, &root, "r1");
    let r2 = say(&alice, &root, "r2");
    let branch = fork(&alice, &root, &r2);
    let f1 = say(&alice, &branch, "f1");
    say(&alice, &root, "r3");

    let walked = walk(&alice, &path(&root, "forks=all&limit=1"));
    assert_eq!(walked.iter().map(label).collect::<Vec<_>>(), ["r1", "r2", "f1", "r3"]);
    assert_eq!(said(&entries(&alice, &root, &format!("forks=all&after={f1}"))), ["r3"]);
    alice.get(&path(&root, &format!("after={f1}"))).expect(400);
    let (_, others) = five_messages(&alice);
    alice.get(&path(&root, &format!("forks=all&after={}", others[0]))).expect(400);
}

#[test]
fn an_unknown_forks_word_is_refused() {
    let alice = SERVER.someone("alice");
    let (id, _) = five_messages(&alice);

    alice.get(&path(&id, "forks=some")).expect_violation("forks");
    alice.get(&path(&id, "allForks=perhaps")).expect(400);
}
