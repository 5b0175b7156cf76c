//! Search, indexing, the feed of unindexed entries. Each test has a tenant to itself.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const SEARCH: &str = "/v1/conversations/search";
const INDEX: &str = "/v1/conversations/index";
const UNINDEXED: &str = "/v1/conversations/unindexed";

/// Alice and an admin (who is an indexer too) in a tenant of their own.
fn alice_and_indexer() -> (Client, Client) {
    let tenant = fresh_name("tenant");
    (someone_in(&SERVER, "alice", &tenant), admin_in(&SERVER, &tenant))
}

#[track_caller]
fn search(who: &Client, body: Value) -> Page {
    who.post(SEARCH, body).expect_page()
}

/// The entries that a plain full-text search finds, one per hit.
#[track_caller]
fn found(who: &Client, query: &str) -> Vec<String> {
    let body = json!({"query": query, "searchType": "fulltext", "groupByConversation": false});
    search(who, body).all("entryId")
}

#[track_caller]
fn index(indexer: &Client, conversation: &str, entry: &str, text: &str) {
    let body = json!([{"conversationId": conversation, "entryId": entry, "indexedContent": text}]);
    assert_eq!(indexer.post(INDEX, body).expect(200).json, json!({"indexed": 1}));
}

/// Appends with explicit `indexedContent`.
#[track_caller]
fn say_indexed(who: &Client, conversation: &str, text: &str, indexed: &str) -> String {
    let mut body = history(text);
    body["indexedContent"] = json!(indexed);
    who.post(&format!("/v1/conversations/{conversation}/entries"), body).expect(201).id()
}

// ---- results

#[test]
fn what_was_just_said_is_found_with_exactly_the_contracts_members() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Zoo");
    let entry = alice
        .post(&format!("/v1/conversations/{id}/entries"), history("The walrus ate an oyster"))
        .expect(201);

    for kind in [json!(null), json!("auto"), json!("fulltext"), json!("FULLTEXT"), json!("Auto")] {
        let page = search(&alice, json!({"query": "walrus", "searchType": kind}));
        assert_eq!(page.data.len(), 1, "searchType {kind}");
        let hit = &page.data[0];
        assert_members(
            hit,
            &["conversationId", "conversationTitle", "entryId", "score", "highlights", "entry"],
            "a hit",
        );
        assert_eq!(hit["conversationId"], id);
        assert_eq!(hit["conversationTitle"], "Zoo");
        assert_eq!(hit["entryId"], entry.id());
        assert_eq!(hit["entry"], entry.json);
        assert!(hit["score"].is_number());
    }
}

#[test]
fn without_include_entry_there_is_none() {
    let (alice, _) = alice_and_indexer();
    let id = alice.post("/v1/conversations", json!({})).expect(201).id();
    say_indexed(&alice, &id, "…", "walrus");
    alice.patch(&format!("/v1/conversations/{id}"), json!({"title": null})).expect(200);

    let page = search(&alice, json!({"query": "walrus", "includeEntry": false}));

    assert_members(&page.data[0], &["conversationId", "entryId", "score", "highlights"], "a hit, untitled");
}

#[test]
fn indexed_content_replaces_the_text_as_what_is_searched() {
    let (alice, indexer) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "my phone number is five five five");
    assert_eq!(found(&alice, "phone"), [entry.as_str()]);

    index(&indexer, &id, &entry, "contact details, redacted");

    assert_eq!(found(&alice, "redacted"), [entry.as_str()]);
    assert!(found(&alice, "phone").is_empty());
    index(&indexer, &id, &entry, "something else");
    assert!(found(&alice, "redacted").is_empty(), "re-indexing replaces");
    assert_eq!(found(&alice, "something"), [entry]);
}

#[test]
fn indexed_content_given_at_append_is_searched_instead_of_the_text() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let entry = say_indexed(&alice, &id, "the secret password is swordfish", "a question about access");

    assert_eq!(found(&alice, "access"), [entry]);
    assert!(found(&alice, "swordfish").is_empty());
}

#[test]
fn memory_is_never_found() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    remember(&alice, &id, json!([{"text": "walrus"}, "walrus"]));
    sync(&alice, &id, json!(["walrus"])).expect(200);

    assert!(found(&alice, "walrus").is_empty());
}

#[test]
fn highlights_mark_the_matches_in_the_indexed_text_only() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    say_indexed(&alice, &id, "swordfish is the password", "A question about the walrus and his friends");

    let page = search(&alice, json!({"query": "walrus", "searchType": "fulltext"}));

    let highlights = page.data[0]["highlights"].as_str().unwrap();
    assert!(highlights.contains("**walrus**"), "{highlights}");
    assert!(!highlights.contains("swordfish"), "{highlights}");
}

#[test]
fn highlights_of_a_long_text_are_a_fragment_around_the_match() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let text = format!("{} walrus {}", "before ".repeat(300), "after ".repeat(300));
    say_indexed(&alice, &id, "…", &text);

    let page = search(&alice, json!({"query": "walrus", "searchType": "fulltext"}));

    let highlights = page.data[0]["highlights"].as_str().unwrap();
    assert!(highlights.contains("**walrus**"), "{highlights}");
    let words = highlights.split_whitespace().count();
    assert!((15..=60).contains(&words), "{words} words: {highlights}");
}

#[test]
fn highlights_show_the_rare_words_of_a_question() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let text = format!("What is the use of it? {} The walrus sleeps in it.", "Nobody knows. ".repeat(50));
    say(&alice, &id, &text);

    let page = search(&alice, json!({"query": "What is the walrus doing in it?"}));

    let highlights = page.data[0]["highlights"].as_str().unwrap();
    assert!(highlights.ends_with("The **walrus** sleeps in it."), "{highlights}");
}

#[test]
fn a_long_entry_is_shown_by_the_passage_that_answers_of_its_indexed_text() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let line = |number: usize| format!("In line {number} of the report nothing is said that matters. ");
    let lines = |from: usize| (from..from + 55).map(line).collect::<String>();
    let text = format!("{}The ferry leaves at nine from quay four. {}", lines(0), lines(55));
    say_indexed(&alice, &id, "swordfish is the password", &text);
    say(&alice, &id, "The ferry of yesterday was late.");

    for kind in ["auto", "semantic", "fulltext"] {
        let body = json!({"query": "ferry quay", "searchType": kind, "groupByConversation": false});
        let page = search(&alice, body);
        let hit = page.data.iter().find(|hit| hit["passage"].is_string()).unwrap();
        let passage = hit["passage"].as_str().unwrap();
        assert!(passage.contains("The ferry leaves at nine from quay four."), "{kind}: {passage}");
        assert!(text.contains(passage) && !passage.contains("swordfish"), "{kind}: {passage}");
        let short = page.data.iter().find(|other| other["entryId"] != hit["entryId"]);
        assert!(short.is_none_or(|short| short.get("passage").is_none()), "{kind}: a short one has none");
    }
}

// ---- full text

#[test]
fn every_word_is_a_prefix_and_all_must_match() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let kubernetes = say(&alice, &id, "deploying kubernetes clusters in Frankfurt");
    let docker = say(&alice, &id, "deploying docker images in Frankfurt");

    assert_eq!(found(&alice, "kube"), [kubernetes.as_str()]);
    assert_eq!(found(&alice, "KUBE frank"), [kubernetes]);
    assert_eq!(found(&alice, "docker\tfrankfurt"), [docker.as_str()]);
    let mut both = found(&alice, "deploy");
    both.sort();
    assert_eq!(both.len(), 2);
    assert!(found(&alice, "kubernetes docker").is_empty());
    assert!(found(&alice, "ubernetes").is_empty(), "a prefix, not a part");
}

#[test]
fn words_are_stemmed() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "She was running several connections");

    assert_eq!(found(&alice, "connected"), [entry.as_str()]);
    assert_eq!(found(&alice, "runs"), [entry]);
}

#[test]
fn characters_with_operator_meaning_are_dropped() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "walrus and carpenter");

    for query in [
        "\"walrus\"",
        "walrus*",
        "*walrus",
        "(walrus",
        "walrus)",
        "-walrus",
        "+walrus",
        "walrus:",
        "^walrus",
        "!walrus",
        "walrus & carpenter",
        "walrus | carpenter",
        "walrus <-> carpenter",
        "{walrus}",
        "\"walrus carpenter",
        "'walrus'",
        "~walrus",
    ] {
        assert_eq!(found(&alice, query), [entry.as_str()], "query {query:?}");
    }
}

#[test]
fn a_word_with_punctuation_finds_the_text_it_was_copied_from() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let words = [
        "well-known",
        "bob@example.org",
        "snake_case_name",
        "node.js",
        "don't",
        "2024-01-15",
        "https://example.org/a/b?c=d",
        "src/main.rs",
        "key=value",
        "10:30",
        "\"quoted\"",
        "(aside)",
        "café",
    ];
    for (n, word) in words.iter().enumerate() {
        let entry = say(&alice, &id, &format!("before{n} {word} after{n}"));
        assert_eq!(found(&alice, &format!("{word} after{n}")), [entry], "query {word:?}");
    }
}

#[test]
fn operator_words_are_ordinary_words() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    say(&alice, &id, "walrus");
    say(&alice, &id, "carpenter");

    for query in ["walrus OR carpenter", "walrus NEAR carpenter", "walrus NOT carpenter"] {
        assert!(found(&alice, query).is_empty(), "query {query:?}: all words are required");
    }
    let entry = say(&alice, &id, "near or far, not here");
    assert_eq!(found(&alice, "NEAR far"), [entry]);
}

#[test]
fn a_query_without_a_usable_word_finds_nothing() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    say(&alice, &id, "walrus");

    for query in ["***", "\"\"", "()", "- + !", "::"] {
        let answer = alice.post(SEARCH, json!({"query": query, "searchType": "fulltext"})).expect(200);
        assert_eq!(answer.json, json!({"data": [], "afterCursor": null}), "query {query:?}");
    }
}

#[test]
fn text_without_spaces_between_words_is_found() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let chinese = say(&alice, &id, "我喜欢吃苹果和香蕉");
    let japanese = say(&alice, &id, "東京タワーに行きました");

    assert_eq!(found(&alice, "苹果"), [chinese]);
    assert_eq!(found(&alice, "タワー"), [japanese]);
}

#[test]
fn letters_outside_ascii_are_found_in_any_case() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "Die Straße nach Zürich führt über Ölbronn");

    assert_eq!(found(&alice, "zürich"), [entry.as_str()]);
    assert_eq!(found(&alice, "ÖLBRONN"), [entry]);
}

#[test]
fn an_unknown_type_is_refused() {
    let (alice, _) = alice_and_indexer();

    alice.post(SEARCH, json!({"query": "walrus", "searchType": "telepathy"})).expect_violation("searchType");
}

// ---- scope

#[test]
fn others_find_nothing_and_a_lost_membership_hides_hits_at_once() {
    let tenant = fresh_name("tenant");
    let (alice, bob) = (someone_in(&SERVER, "alice", &tenant), someone_in(&SERVER, "bob", &tenant));
    let id = start(&alice, "Chat");
    say(&alice, &id, "walrus");
    assert!(found(&bob, "walrus").is_empty());

    share(&alice, &id, &bob, "reader");
    assert_eq!(found(&bob, "walrus").len(), 1);

    alice.delete(&format!("/v1/conversations/{id}/memberships/{}", bob.user())).expect(204);
    assert!(found(&bob, "walrus").is_empty());
}

#[test]
fn access_is_decided_inside_the_search_not_after_the_top_results() {
    let tenant = fresh_name("tenant");
    let (alice, bob) = (someone_in(&SERVER, "alice", &tenant), someone_in(&SERVER, "bob", &tenant));
    let noisy = start(&alice, "Noisy");
    spread(300, |_| {
        say(&alice, &noisy, "walrus walrus walrus");
    });
    let id = start(&bob, "Quiet");
    let entry = say(&bob, &id, "a rather long sentence in which one walrus appears among many other words");

    assert_eq!(search(&bob, json!({"query": "walrus", "limit": 1})).all("entryId"), [entry]);
}

#[test]
fn forks_do_not_repeat_hits() {
    let (alice, _) = alice_and_indexer();
    let root = start(&alice, "Root");
    let entry = say(&alice, &root, "walrus");
    let cut = say(&alice, &root, "cut");
    fork(&alice, &root, &cut);
    fork(&alice, &root, &cut);

    let page = search(&alice, json!({"query": "walrus", "groupByConversation": false}));

    assert_eq!(page.all("entryId"), [entry]);
    assert_eq!(page.all("conversationId"), [root]);
}

#[test]
fn grouping_keeps_the_best_entry_of_each_conversation() {
    let (alice, _) = alice_and_indexer();
    let (a, b) = (start(&alice, "A"), start(&alice, "B"));
    say(&alice, &a, "one walrus somewhere in a long sentence about quite different things entirely");
    let best = say(&alice, &a, "walrus walrus walrus");
    let other = say(&alice, &b, "walrus");

    let grouped = search(&alice, json!({"query": "walrus"}));
    let mut ids = grouped.all("entryId");
    ids.sort();
    let mut expected = vec![best, other];
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(search(&alice, json!({"query": "walrus", "groupByConversation": true})).data, grouped.data);
    assert_eq!(search(&alice, json!({"query": "walrus", "groupByConversation": false})).data.len(), 3);
}

#[test]
fn grouping_comes_before_the_limit() {
    let (alice, _) = alice_and_indexer();
    let noisy = start(&alice, "Noisy");
    for _ in 0..5 {
        say(&alice, &noisy, "walrus walrus");
    }
    let quiet = start(&alice, "Quiet");
    say(&alice, &quiet, "one walrus in a much longer sentence than all of the others");

    let page = search(&alice, json!({"query": "walrus", "limit": 2}));

    let mut conversations = page.all("conversationId");
    conversations.sort();
    let mut expected = vec![noisy, quiet];
    expected.sort();
    assert_eq!(conversations, expected);
    assert_eq!(page.after, None);
}

// ---- order and paging

/// The hits of a query page by page, and a check that pages do not repeat anything.
#[track_caller]
fn search_pages(who: &Client, mut body: Value) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let mut page = search(who, body.clone());
        all.append(&mut page.data);
        assert!(all.len() < 1_000, "the pages never end");
        let Some(after) = page.after else { return all };
        assert!(after.len() <= 100, "a cursor of {} characters", after.len());
        assert!(
            after.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=".contains(&b)),
            "not base64url: {after}"
        );
        body["after"] = json!(after);
    }
}

#[test]
fn hits_are_ordered_by_score_then_id_and_paged_without_repeats() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    for n in 0..9 {
        say(&alice, &id, &format!("walrus {}", "filler ".repeat(n % 3)));
    }
    for kind in ["fulltext", "auto"] {
        let body = json!({"query": "walrus", "searchType": kind, "groupByConversation": false});
        let whole = search(&alice, body.clone());
        assert_eq!(whole.data.len(), 9);
        assert_eq!(whole.after, None);

        for limit in [1, 2, 3, 9] {
            let mut body = body.clone();
            body["limit"] = json!(limit);
            assert_eq!(search_pages(&alice, body), whole.data, "{kind} with limit {limit}");
        }
        let keys: Vec<(f64, &str)> = whole
            .data
            .iter()
            .map(|hit| (hit["score"].as_f64().unwrap(), hit["entryId"].as_str().unwrap()))
            .collect();
        assert!(
            keys.is_sorted_by(|a, b| a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)),
            "score descending, then entryId ascending: {keys:?}"
        );
    }
}

#[test]
fn grouped_hits_are_paged_without_repeats() {
    let (alice, _) = alice_and_indexer();
    for n in 0..5 {
        let id = start(&alice, &n.to_string());
        say(&alice, &id, "walrus");
        say(&alice, &id, "walrus and walrus");
    }

    let hits = search_pages(&alice, json!({"query": "walrus", "limit": 2}));

    let mut conversations: Vec<&str> =
        hits.iter().map(|hit| hit["conversationId"].as_str().unwrap()).collect();
    conversations.sort_unstable();
    conversations.dedup();
    assert_eq!((hits.len(), conversations.len()), (5, 5));
}

#[test]
fn writes_of_others_between_two_pages_do_not_repeat_or_lose_hits() {
    for grouped in [true, false] {
        let (alice, _) = alice_and_indexer();
        let (stranger, neighbour) = (alice_and_indexer().0, SERVER.someone("neighbour").with_key("gateway"));
        for n in 0..6 {
            let id = start(&alice, &n.to_string());
            say(&alice, &id, &format!("walrus {}", "filler ".repeat(n % 3)));
        }
        let mut body = json!({"query": "walrus", "groupByConversation": grouped, "limit": 1});
        let whole = search(&alice, json!({"query": "walrus", "groupByConversation": grouped})).all("entryId");

        let mut walked = Vec::new();
        loop {
            let page = search(&alice, body.clone());
            walked.append(&mut page.all("entryId"));
            let Some(after) = page.after else { break };
            assert!(walked.len() < 50, "the pages never end");
            body["after"] = json!(after);
            for who in [&stranger, &neighbour] {
                say(who, &fresh_id(), "a walrus of somebody else, and quite some filler around it");
            }
        }

        assert_eq!(walked, whole, "groupByConversation {grouped}");
    }
}

#[test]
fn a_cursor_belongs_to_its_query() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    for n in 0..3 {
        say(&alice, &id, &format!("walrus oyster {n}"));
    }
    let body = json!({"query": "walrus", "searchType": "fulltext", "groupByConversation": false, "limit": 1});
    let after = search(&alice, body.clone()).after.unwrap();
    let with = |field: &str, value: Value| {
        let mut changed = body.clone();
        changed["after"] = json!(after);
        changed[field] = value;
        alice.post(SEARCH, changed)
    };

    with("query", json!("oyster")).expect(400);
    with("groupByConversation", json!(true)).expect(400);
    with("after", json!("bm9uc2Vuc2U")).expect(400);
    with("after", json!("%%%")).expect(400);
    with("after", json!("x".repeat(101))).expect(400);
    with("afterCursor", json!("somethingElse")).expect(400);
    with("afterCursor", json!(after)).expect_page();
    with("limit", json!(2)).expect_page();
    assert_eq!(search(&alice, json!({"query": "walrus", "after": "", "afterCursor": null})).data.len(), 1);
    let mut alias = body.clone();
    alias["afterCursor"] = json!(after);
    let mut name = body;
    name["after"] = json!(after);
    assert_eq!(search(&alice, alias).data, search(&alice, name).data);
}

#[test]
fn the_request_is_validated() {
    let (alice, _) = alice_and_indexer();

    alice.post(SEARCH, json!({})).expect_violation("query");
    for query in [json!(null), json!(""), json!("  "), json!("x".repeat(1_001))] {
        alice.post(SEARCH, json!({"query": query})).expect_violation("query");
    }
    alice.post(SEARCH, json!({"query": "ä".repeat(1_000)})).expect_page();
    for limit in [json!(0), json!(-1), json!(201)] {
        alice.post(SEARCH, json!({"query": "x", "limit": limit})).expect_violation("limit");
    }
    alice.post(SEARCH, json!({"query": "x", "limit": "many"})).expect(400);
    alice.post(SEARCH, json!({"query": "x", "limit": 200})).expect_page();
    alice.post(SEARCH, json!({"query": "x", "includeEntry": "perhaps"})).expect(400);
    alice.send("POST", SEARCH, Body::None).expect(400);
}

#[test]
fn the_default_page_has_twenty_hits() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    for _ in 0..21 {
        say(&alice, &id, "walrus");
    }

    let page = search(&alice, json!({"query": "walrus", "groupByConversation": false}));

    assert_eq!(page.data.len(), 20);
    assert!(page.after.is_some());
}

// ---- index

#[test]
fn indexing_counts_the_items_it_processed() {
    let (alice, indexer) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let (one, two) = (say(&alice, &id, "one"), say(&alice, &id, "two"));

    let answer = indexer
        .post(
            INDEX,
            json!([
                {"conversationId": id, "entryId": one, "indexedContent": "first"},
                {"conversationId": id, "entryId": two, "indexedContent": "second"},
                {"conversationId": id, "entryId": one, "indexedContent": "third"},
            ]),
        )
        .expect(200);

    assert_eq!(answer.json, json!({"indexed": 3}));
    assert_eq!(found(&alice, "third"), [one], "the last one wins");
    assert_eq!(found(&alice, "second"), [two]);
    assert!(found(&alice, "first").is_empty());
}

#[test]
fn an_empty_list_cannot_be_indexed() {
    let (_, indexer) = alice_and_indexer();

    indexer.post(INDEX, json!([])).expect_message(400, "bad_request", "At least one entry is required");
}

#[test]
fn an_index_request_is_validated() {
    let (alice, indexer) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "one");

    for item in [
        json!({"entryId": entry, "indexedContent": "x"}),
        json!({"conversationId": id, "indexedContent": "x"}),
        json!({"conversationId": id, "entryId": entry}),
        json!({"conversationId": id, "entryId": entry, "indexedContent": null}),
        json!({"conversationId": id, "entryId": entry, "indexedContent": ""}),
        json!({"conversationId": id, "entryId": entry, "indexedContent": "  "}),
        json!({"conversationId": "nonsense", "entryId": entry, "indexedContent": "x"}),
        json!({"conversationId": id, "entryId": "nonsense", "indexedContent": "x"}),
        json!("text"),
    ] {
        indexer.post(INDEX, json!([item])).expect(400);
    }
    indexer.post(INDEX, json!({"conversationId": id, "entryId": entry, "indexedContent": "x"})).expect(400);
    indexer.send("POST", INDEX, Body::None).expect(400);
}

#[test]
fn what_cannot_be_indexed_is_refused_as_a_whole() {
    let (alice, indexer) = alice_and_indexer();
    let (id, other) = (start(&alice, "Chat"), start(&alice, "Other"));
    let good = say(&alice, &id, "one");
    let private = remember(&alice, &id, json!(["note"]));
    let cut = say(&alice, &id, "cut");
    let branch = fork(&alice, &id, &cut);
    let gone = start(&alice, "Gone");
    let deleted = say(&alice, &gone, "gone");
    alice.delete(&format!("/v1/conversations/{gone}")).expect(204);
    let unknown = fresh_id();
    let try_with = |conversation: &str, entry: &str| {
        indexer.post(
            INDEX,
            json!([
                {"conversationId": id, "entryId": good, "indexedContent": "changed"},
                {"conversationId": conversation, "entryId": entry, "indexedContent": "x"},
            ]),
        )
    };

    try_with(&id, &unknown).expect_not_found("entry", &unknown);
    try_with(&other, &good).expect_not_found("entry", &good);
    try_with(&branch, &good).expect_not_found("entry", &good);
    try_with(&gone, &deleted).expect_not_found("entry", &deleted);
    try_with(&id, &private).expect_message(400, "bad_request", "Only history channel entries can be indexed");

    assert!(found(&alice, "changed").is_empty(), "nothing of a refused batch is kept");
    assert_eq!(found(&alice, "one"), [good]);
}

#[test]
fn indexing_and_the_feed_are_for_indexers() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "one");
    let body = json!([{"conversationId": id, "entryId": entry, "indexedContent": "x"}]);

    alice.post(INDEX, body.clone()).expect_forbidden();
    alice.with_key("agent-a").post(INDEX, body).expect_forbidden();
    alice.get(UNINDEXED).expect_forbidden();
}

// ---- unindexed

#[test]
fn the_feed_holds_history_without_indexed_content_oldest_first() {
    let (alice, indexer) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let one = alice.post(&format!("/v1/conversations/{id}/entries"), history("one")).expect(201);
    say_indexed(&alice, &id, "indexed at once", "indexed");
    remember(&alice, &id, json!(["memory"]));
    let two = alice.post(&format!("/v1/conversations/{id}/entries"), history("two")).expect(201);

    let page = indexer.get(UNINDEXED).expect_page();

    assert_eq!(page.data.len(), 2, "derived text does not count as indexed");
    for (item, entry) in page.data.iter().zip([&one, &two]) {
        assert_members(item, &["conversationId", "entry"], "an unindexed entry");
        assert_eq!(item["conversationId"], id);
        assert_eq!(item["entry"], entry.json);
    }
}

#[test]
fn the_feed_shrinks_as_entries_are_indexed_and_deleted() {
    let (alice, indexer) = alice_and_indexer();
    let (id, gone) = (start(&alice, "Chat"), start(&alice, "Gone"));
    let one = say(&alice, &id, "one");
    say(&alice, &id, "two");
    say(&alice, &gone, "three");
    let waiting = || {
        let page = indexer.get(UNINDEXED).expect_page();
        page.data.iter().map(|item| label(&item["entry"])).collect::<Vec<_>>()
    };
    assert_eq!(waiting(), ["one", "two", "three"]);

    index(&indexer, &id, &one, "first");
    assert_eq!(waiting(), ["two", "three"]);

    alice.delete(&format!("/v1/conversations/{gone}")).expect(204);
    assert_eq!(waiting(), ["two"]);
}

#[test]
fn the_feed_can_be_walked_without_losing_entries_of_the_same_moment() {
    let (alice, indexer) = alice_and_indexer();
    let ids: Vec<String> = (0..8).map(|n| start(&alice, &n.to_string())).collect();
    // Appended at once, so that many of them share a commit and perhaps a moment.
    let mut appended = at_once(8, |n| (0..4).map(|_| say(&alice, &ids[n], "x")).collect::<Vec<_>>()).concat();
    appended.sort();

    for limit in [1, 3, 200] {
        let walked = walk(&indexer, &format!("{UNINDEXED}?limit={limit}"));
        let keys: Vec<(&str, &str)> = walked
            .iter()
            .map(|item| (item["entry"]["createdAt"].as_str().unwrap(), item["entry"]["id"].as_str().unwrap()))
            .collect();
        assert!(keys.is_sorted(), "createdAt, then id: {keys:?}");
        let mut entries: Vec<&str> = keys.iter().map(|key| key.1).collect();
        entries.sort_unstable();
        assert_eq!(entries, appended, "limit {limit}");
    }
}

// ---- long queries

/// Words of which none begins with another, and whose forms no stemmer takes for one.
fn distinct_words(count: usize) -> Vec<String> {
    let letters = ['b', 'd', 'k', 'm', 'p', 't', 'x'];
    (0..count).map(|n| format!("zor{}{}k", letters[n / 7], letters[n % 7])).collect()
}

#[test]
fn the_first_32_words_of_a_query_count_and_the_rest_are_ignored() {
    let (alice, _) = alice_and_indexer();
    let id = start(&alice, "Chat");
    let words = distinct_words(40);
    let entry = say(&alice, &id, &words[..32].join(" "));
    say(&alice, &id, &words[..31].join(" "));

    assert_eq!(found(&alice, &words[..32].join(" ")), [entry.as_str()], "the 32nd word counts");
    assert_eq!(found(&alice, &words.join(" ")), [entry.as_str()], "the 33rd does not");
    let repeated = format!("{} {}", format!("{} ", words[0]).repeat(40), words.join(" "));
    assert_eq!(found(&alice, &repeated), [entry.as_str()], "a word that is said again is not another one");

    let page = search(&alice, json!({"query": words.join(" "), "includeEntry": false}));
    assert_eq!(page.all("entryId"), [entry.as_str()]);
    assert!(page.data[0].get("entry").is_none());
    let most = (0..500).map(|n| char::from(b'a' + u8::try_from(n % 26).unwrap()).to_string());
    found(&alice, &most.collect::<Vec<_>>().join(" "));
}
