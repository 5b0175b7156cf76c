//! Search by meaning, alone and together with words.

use crate::support::*;
use memtrove_testkit::embedder::{DIMENSIONS, Embedder};
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const SEARCH: &str = "/v1/conversations/search";

/// Somebody with a conversation.
fn alice() -> (Client, String) {
    let alice = someone_in(&SERVER, "alice", &fresh_name("tenant"));
    let id = start(&alice, "Chat");
    (alice, id)
}

#[track_caller]
fn search(who: &Client, body: Value) -> Page {
    who.post(SEARCH, body).expect_page()
}

/// The entries that a search of this type finds, best first.
#[track_caller]
fn found(who: &Client, kind: &str, query: &str) -> Vec<String> {
    let body = json!({"query": query, "searchType": kind, "groupByConversation": false});
    search(who, body).all("entryId")
}

/// The agent's answer in the transcript.
#[track_caller]
fn answer(who: &Client, conversation: &str, text: &str) -> String {
    let mut body = history(text);
    body["content"][0]["role"] = json!("AI");
    who.post(&format!("/v1/conversations/{conversation}/entries"), body).expect(201).id()
}

// ---- semantic

#[test]
fn what_means_the_same_is_found_without_a_word_in_common() {
    let (alice, id) = alice();
    let dog = say(&alice, &id, "Our puppy needs to see the vet on Monday");
    let tax = say(&alice, &id, "The invoice has to be paid by the end of the quarter");

    let page = search(
        &alice,
        json!({"query": "taking the dog to an animal doctor", "searchType": "semantic", "groupByConversation": false}),
    );

    assert_eq!(page.all("entryId"), [dog.as_str(), tax.as_str()], "the most similar first, and no threshold");
    let hit = &page.data[0];
    assert_members(
        hit,
        &["conversationId", "conversationTitle", "entryId", "score", "highlights", "entry"],
        "a hit",
    );
    let score = |hit: &Value| hit["score"].as_f64().unwrap();
    assert!((-1.0..=1.0).contains(&score(hit)) && score(hit) > score(&page.data[1]));
    assert_eq!(hit["highlights"], "Our puppy needs to see the vet on Monday", "nothing is marked");
    assert_eq!(found(&alice, "auto", "taking the dog to an animal doctor")[0], dog);
}

#[test]
fn the_same_text_is_as_similar_as_can_be() {
    let (alice, id) = alice();
    say(&alice, &id, "The lighthouse keeper counts the ships");

    let body = json!({"query": "The lighthouse keeper counts the ships", "searchType": "SEMANTIC"});
    let score = search(&alice, body).data[0]["score"].as_f64().unwrap();

    assert!((0.99..=1.0).contains(&score), "{score}");
}

#[test]
fn of_a_long_text_every_part_is_found_and_the_passage_that_answers_is_shown() {
    let (alice, id) = alice();
    let taxes = "We talked about taxes and invoices. ".repeat(100);
    say(&alice, &id, &taxes);
    let text = format!("{taxes}\n{}", "The puppy was taken to the vet. ".repeat(10));
    let entry = say(&alice, &id, &text);

    let page = search(&alice, json!({"query": "an animal doctor for the dog", "searchType": "semantic"}));

    assert_eq!(page.all("entryId"), [entry]);
    let passage = page.data[0]["passage"].as_str().unwrap();
    assert!(passage.contains("The puppy was taken to the vet.") && text.contains(passage), "{passage}");
    assert!((60..=120).contains(&passage.split_whitespace().count()), "{passage}");
    let beginning: String = passage.chars().take(200).collect();
    assert_eq!(page.data[0]["highlights"], format!("{beginning}..."), "its beginning: no word is shared");
    let score = page.data[0]["score"].as_f64().unwrap();
    assert!(score > 0.3, "it scores what its best part scores: {score}");
}

#[test]
fn what_was_replaced_or_deleted_is_not_found_any_more_and_what_comes_back_is() {
    let tenant = fresh_name("tenant");
    let (alice, admin) = (someone_in(&SERVER, "alice", &tenant), admin_in(&SERVER, &tenant));
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "Our puppy needs to see the vet");
    let similarity = || {
        let body = json!({"query": "Our puppy needs to see the vet", "searchType": "semantic"});
        search(&alice, body).data.first().map(|hit| hit["score"].as_f64().unwrap())
    };
    assert!(similarity().unwrap() > 0.99);

    let item = json!([{"conversationId": id, "entryId": entry, "indexedContent": "An invoice about taxes"}]);
    admin.post("/v1/conversations/index", item).expect(200);
    assert!(similarity().unwrap() < 0.5, "its text is another one now");

    alice.delete(&format!("/v1/conversations/{id}")).expect(204);
    assert_eq!(similarity(), None);
    admin.post(&format!("/v1/admin/conversations/{id}/restore"), json!({})).expect(200);
    assert!(similarity().is_some());
}

#[test]
fn only_members_find_and_forks_do_not_repeat() {
    let tenant = fresh_name("tenant");
    let (alice, bob) = (someone_in(&SERVER, "alice", &tenant), someone_in(&SERVER, "bob", &tenant));
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "Our puppy needs to see the vet");
    let cut = say(&alice, &id, "cut");
    fork(&alice, &id, &cut);
    assert!(found(&bob, "semantic", "dog").is_empty());
    assert!(found(&bob, "auto", "puppy").is_empty());

    share(&alice, &id, &bob, "reader");
    assert_eq!(found(&bob, "semantic", "dog"), [entry.as_str(), cut.as_str()]);
    assert_eq!(found(&bob, "auto", "puppy"), [entry]);

    alice.delete(&format!("/v1/conversations/{id}/memberships/{}", bob.user())).expect(204);
    assert!(found(&bob, "semantic", "dog").is_empty());
    assert!(found(&bob, "auto", "puppy").is_empty());
}

#[test]
fn memory_is_not_found_by_meaning() {
    let (alice, id) = alice();
    remember(&alice, &id, json!([{"text": "the puppy"}]));

    assert!(found(&alice, "semantic", "the puppy").is_empty());
}

#[test]
fn pages_do_not_repeat_and_a_cursor_belongs_to_its_search() {
    let (alice, id) = alice();
    for animal in ["dog", "cat", "horse", "cow", "goat", "sheep", "duck", "frog", "wolf"] {
        say(&alice, &id, &format!("I once saw a {animal} on the road"));
    }
    for kind in ["semantic", "auto"] {
        let body =
            json!({"query": "which animal on the road", "searchType": kind, "groupByConversation": false});
        let whole = search(&alice, body.clone());
        for limit in [1, 4] {
            let (mut walked, mut body) = (Vec::new(), body.clone());
            body["limit"] = json!(limit);
            loop {
                let mut page = search(&alice, body.clone());
                walked.append(&mut page.data);
                let Some(after) = page.after else { break };
                assert!(after.len() <= 100 && walked.len() < 100);
                body["after"] = json!(after);
            }
            assert_eq!(walked, whole.data, "{kind} by {limit}");
        }
        let mut other = body.clone();
        other["limit"] = json!(1);
        other["after"] = json!(search(&alice, other.clone()).after);
        for (member, value) in [
            ("query", json!("which animal")),
            ("searchType", json!("fulltext")),
            ("groupByConversation", json!(true)),
            ("weights", json!({"lexical": 0.1})),
        ] {
            let mut changed = other.clone();
            changed[member] = value;
            alice.post(SEARCH, changed).expect_violation("after");
        }
    }
}

#[test]
fn the_best_entry_stands_for_its_conversation() {
    let (alice, first) = alice();
    let second = start(&alice, "Second");
    say(&alice, &first, "The invoice has to be paid");
    let best = say(&alice, &first, "Our puppy needs to see the vet");
    let other = say(&alice, &second, "A kitten slept on the sofa");

    let page = search(&alice, json!({"query": "a sick dog", "searchType": "semantic", "limit": 2}));

    assert_eq!(page.all("entryId"), [best, other]);
    assert_eq!(page.after, None);
}

// ---- auto

#[test]
fn auto_returns_neither_what_is_unrelated_nor_what_only_stands_nearby() {
    let (alice, id) = alice();
    say(&alice, &id, "The invoice has to be paid");
    let walrus = say(&alice, &id, "A walrus ate all the oysters");
    say(&alice, &id, "See you tomorrow");

    assert_eq!(found(&alice, "auto", "walrus"), [walrus.as_str()]);
    assert_eq!(found(&alice, "auto", "Which walrus?"), [walrus]);
    assert!(found(&alice, "auto", "quantum chromodynamics").is_empty());
}

#[test]
fn auto_finds_exact_words_that_mean_nothing() {
    let (alice, id) = alice();
    say(&alice, &id, "The deployment failed again tonight");
    let ticket = say(&alice, &id, "see OPS-4711 in src/main.rs");

    assert_eq!(found(&alice, "auto", "OPS-4711")[0], ticket);
    assert_eq!(found(&alice, "auto", "src/main.rs")[0], ticket);
}

#[test]
fn what_full_text_finds_auto_finds_too() {
    let (alice, id) = alice();
    let kubernetes = say(&alice, &id, "deploying kubernetes clusters");
    let who = say(&alice, &id, "The Who");

    for (query, entry) in [("kubern", kubernetes), ("the who", who)] {
        assert_eq!(found(&alice, "fulltext", query), [entry.as_str()]);
        assert_eq!(found(&alice, "auto", query), [entry.as_str()], "{query}");
    }
    let page = search(&alice, json!({"query": "kubern"}));
    assert_eq!(page.data[0]["highlights"], "deploying **kubernetes** clusters");
}

#[test]
fn words_in_common_are_marked() {
    let (alice, id) = alice();
    say(&alice, &id, "Our puppy needs to see the vet");

    let page = search(&alice, json!({"query": "puppies"}));

    assert_eq!(page.data[0]["highlights"], "Our **puppy** needs to see the vet");
}

#[test]
fn an_answer_is_found_by_the_question_before_it() {
    let (alice, id) = alice();
    say(&alice, &id, "The meeting is at noon");
    say(&alice, &id, "How long have you had the turtles?");
    let answer = say(&alice, &id, "Three years now, turtles get old");
    say(&alice, &id, "The weather was nice");

    assert_eq!(found(&alice, "auto", "How long has the user kept turtles?")[0], answer);
}

#[test]
fn whom_a_query_names_is_who_should_have_said_it() {
    let (alice, id) = alice();
    let caroline = say(&alice, &id, "[8 May 2023] Caroline: I love to paint landscapes");
    let melanie = say(&alice, &id, "[8 May 2023] Melanie: I love to paint landscapes");
    let best = |query: &str, actor: Value| {
        let body =
            json!({"query": query, "groupByConversation": false, "actor": actor, "includeEntry": false});
        search(&alice, body).all("entryId")[0].clone()
    };

    assert_eq!(best("What does Caroline paint?", json!(null)), caroline);
    assert_eq!(best("What does Melanie paint?", json!(true)), melanie);
}

#[test]
fn who_asks_in_the_first_person_asks_for_what_it_said() {
    let (alice, id) = alice();
    let said = say(&alice, &id, "The best food for a puppy is rice");
    let answered = answer(&alice, &id, "The best food for a puppy is rice");
    let scores = |body: Value| -> Vec<(String, f64)> {
        let page = search(&alice, body);
        let score =
            |hit: &Value| (hit["entryId"].as_str().unwrap().to_owned(), hit["score"].as_f64().unwrap());
        page.data.iter().map(score).collect()
    };
    let body = |actor: bool| {
        json!({"query": "what did I feed my puppy", "groupByConversation": false, "actor": actor,
            "weights": {"context": 0}})
    };

    let by_actor = scores(body(true));
    assert_eq!((&by_actor[0].0, &by_actor[1].0), (&said, &answered));
    assert!(by_actor[0].1 > 1.2 * by_actor[1].1);
    let by_text = scores(body(false));
    assert!((by_text[0].1 - by_text[1].1).abs() < 1e-9, "it does not matter who said it: {by_text:?}");
}

#[test]
fn a_question_to_an_agent_counts_like_a_statement() {
    let (alice, id) = alice();
    let asked = say(&alice, &id, "I build boats of cork. Which glue holds?");
    let asks = || {
        let body = json!({"query": "boats of cork", "explain": true, "groupByConversation": false});
        let page = search(&alice, body);
        let hit = page.data.iter().find(|hit| hit["entryId"] == asked).unwrap();
        hit["explanation"]["asks"].as_f64().unwrap()
    };
    assert!(asks() < 1.0, "nobody is asked");
    answer(&alice, &id, "Any that stays soft.");
    assert!((asks() - 1.0).abs() < 1e-9, "it is asked of an agent");
}

#[test]
fn a_long_answer_of_an_agent_counts_less_than_a_short_one() {
    let (alice, id) = alice();
    answer(&alice, &id, &format!("Cork floats. {}", "Sand the hull again before every winter. ".repeat(20)));
    let body = json!({"query": "does cork float", "explain": true});
    let long = search(&alice, body.clone()).data[0]["explanation"]["byAgent"].as_f64().unwrap();
    answer(&alice, &start(&alice, "Other"), "Cork floats.");
    let short = search(&alice, body).data[0]["explanation"]["byAgent"].as_f64().unwrap();
    assert!(long < 1.0 && (short - 1.0).abs() < 1e-9, "{long} and {short}");
}

#[test]
fn an_answer_is_found_beside_its_question_without_a_word_in_common() {
    let (alice, id) = alice();
    say(&alice, &id, "How long have you had the turtles?");
    let answered = say(&alice, &id, "Eleven, come spring.");
    say(&alice, &start(&alice, "Other"), "Twelve, come winter.");

    let hits = found(&alice, "auto", "How long have there been turtles?");

    assert_eq!(hits.len(), 2, "what stands elsewhere is not found");
    assert!(hits.contains(&answered));
}

#[test]
fn a_score_is_explained_on_request() {
    let (alice, id) = alice();
    say(&alice, &id, "Do you like the puppy?");
    let ask = |kind: &str| {
        let body = json!({"query": "puppy", "searchType": kind, "explain": true});
        search(&alice, body).data[0].clone()
    };

    let fused = ask("auto");
    let parts = &fused["explanation"];
    assert_members(
        parts,
        &[
            "ranker",
            "words",
            "wordsNearby",
            "similarity",
            "similarityNearby",
            "meaning",
            "byAnother",
            "byAgent",
            "asks",
        ],
        "an explanation",
    );
    assert_eq!(parts["ranker"], "fused");
    let part = |name: &str| parts[name].as_f64().unwrap();
    let words = part("words") + part("wordsNearby");
    let sum = (1.0 - part("meaning")) * words + part("meaning") * part("similarityNearby");
    let score = sum * part("byAnother") * part("byAgent") * part("asks");
    assert!((score - fused["score"].as_f64().unwrap()).abs() < 1e-9, "{fused}");
    assert!(part("asks") < 1.0, "it is a question");
    assert_eq!(part("meaning"), 0.5, "every word of the query is known");

    let semantic = ask("semantic");
    assert_eq!(semantic["explanation"], json!({"ranker": "semantic", "similarity": semantic["score"]}));
    assert_eq!(ask("fulltext")["explanation"], json!({"ranker": "fulltext"}));
    assert!(search(&alice, json!({"query": "puppy"})).data[0].get("explanation").is_none());
}

#[test]
fn weights_change_what_counts_and_are_validated() {
    let (alice, id) = alice();
    let words = say(&alice, &id, "puppy puppy");
    let meaning = say(&alice, &id, "A young dog");
    let best = |lexical: f64| {
        let body = json!({"query": "young puppy dogs", "groupByConversation": false,
            "weights": {"lexical": lexical, "context": 0.0}});
        search(&alice, body).data.iter().map(|hit| hit["score"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_ne!(best(0.0), best(1.0));
    assert_eq!(found(&alice, "auto", "puppy").len(), 2, "{words} and {meaning}");

    for weights in [json!({"lexical": -0.1}), json!({"context": 1.5}), json!({"asks": 2})] {
        let answer = alice.post(SEARCH, json!({"query": "x", "weights": weights}));
        answer.expect(400);
    }
    for weights in [json!({"lexical": "much"}), json!({"size": 1}), json!("many")] {
        alice.post(SEARCH, json!({"query": "x", "weights": weights})).expect(400);
    }
    alice.post(SEARCH, json!({"query": "x", "explain": "perhaps"})).expect(400);
}

// ---- admins

#[test]
fn an_admin_searches_everybody_by_meaning() {
    let tenant = fresh_name("tenant");
    let (alice, bob) = (someone_in(&SERVER, "alice", &tenant), someone_in(&SERVER, "bob", &tenant));
    let admin = admin_in(&SERVER, &tenant);
    let (hers, his) = (start(&alice, "Hers"), start(&bob, "His"));
    let one = say(&alice, &hers, "Our puppy needs to see the vet");
    let two = say(&bob, &his, "A kitten slept on the sofa");
    let ask = |body: Value| {
        let mut whole =
            json!({"query": "a sick dog", "searchType": "semantic", "groupByConversation": false});
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        admin.post("/v1/admin/conversations/search", whole).expect_page().all("entryId")
    };

    assert_eq!(ask(json!({})), [one.as_str(), two.as_str()]);
    assert_eq!(ask(json!({"userId": bob.user()})), [two.as_str()]);
    assert_eq!(ask(json!({"searchType": "auto", "query": "the kitten"})), [two.as_str()]);

    alice.delete(&format!("/v1/conversations/{hers}")).expect(204);
    assert_eq!(ask(json!({})), [two.as_str()]);
    assert_eq!(ask(json!({"includeDeleted": true, "explain": true, "limit": 1000})), [one, two]);
}

// ---- what is not available

#[track_caller]
fn assert_unavailable(who: &Client, kind: &str, available: Value) {
    let answer = who.post(SEARCH, json!({"query": "walrus", "searchType": kind})).expect(501);
    assert_members(&answer.json, &["error", "message", "availableTypes"], &answer.describe());
    assert_eq!(answer.json["error"], "search_type_unavailable");
    assert_eq!(answer.json["availableTypes"], available);
    assert!(answer.json["message"].is_string());
}

#[test]
fn without_a_model_words_are_searched() {
    for toml in ["[embedding]\nprovider = \"none\"", "[search]\nsemantic_enabled = false"] {
        let server = server_with(toml);
        let alice = server.someone("alice");
        let id = start(&alice, "Chat");
        let walrus = say(&alice, &id, "The walrus and the carpenter");
        say(&alice, &id, "cabbages and kings");

        assert_unavailable(&alice, "semantic", json!(["fulltext"]));
        assert_eq!(found(&alice, "auto", "Did the walrus see a carpenter?"), [walrus.as_str()]);
        assert_eq!(found(&alice, "auto", "carp"), [walrus.as_str()]);
        let page = search(&alice, json!({"query": "walrus", "explain": true}));
        assert!(page.data[0]["explanation"].get("similarity").is_none());
    }
}

#[test]
fn without_full_text_meaning_is_searched() {
    let server = server_with("[search]\nfulltext_enabled = false");
    let alice = server.someone("alice");
    let id = start(&alice, "Chat");
    let dog = say(&alice, &id, "Our puppy needs to see the vet");
    say(&alice, &id, "The invoice has to be paid");

    assert_unavailable(&alice, "fulltext", json!(["semantic"]));
    assert_eq!(found(&alice, "auto", "a puppy at the vet"), [dog], "and what is unrelated is left out");
}

#[test]
fn a_search_without_time_says_so_and_what_is_missing_is_read_meanwhile() {
    let server = server_with("[search]\nbudget = \"0s\"");
    let alice = server.someone("alice");
    let id = start(&alice, "Chat");
    let walrus = say(&alice, &id, "The walrus and the carpenter");
    let body = json!({"query": "walrus", "includeEntry": false});

    let first = alice.post(SEARCH, body.clone()).expect(200).json;
    assert_eq!(first, json!({"data": [], "afterCursor": null, "degraded": true}));

    until("all of it is in memory", || {
        let found = alice.post(SEARCH, body.clone()).expect(200).json;
        found.get("degraded").is_none() && found["data"][0]["entryId"] == walrus.as_str()
    });
}

#[test]
fn with_neither_search_is_off() {
    let server = server_with("[search]\nfulltext_enabled = false\nsemantic_enabled = false");
    let alice = server.someone("alice");

    assert_unavailable(&alice, "fulltext", json!([]));
    let answer = alice.post(SEARCH, json!({"query": "walrus"})).expect(501);
    assert_eq!(answer.json["code"], "search_store_disabled");
}

#[test]
fn fallback_searches_by_words_only_where_meaning_finds_nothing() {
    let server = server_with("[search]\nauto_mode = \"fallback\"");
    let alice = server.someone("alice");
    let id = start(&alice, "Chat");
    let dog = say(&alice, &id, "Our puppy needs to see the vet");
    let code = say(&alice, &id, "xq7-zzy-999");

    assert_eq!(found(&alice, "auto", "our puppy at the vet"), [dog]);
    assert_eq!(found(&alice, "auto", "zzy"), [code]);
    assert!(found(&alice, "auto", "nobody wrote brontosaurus").is_empty());
}

#[test]
fn while_the_model_fails_auto_answers_by_words() {
    let embedder = Embedder::start();
    let server = server_with(&format!(
        "[embedding]\nprovider = \"openai\"\n[embedding.openai]\nbase_url = \"{}\"\nmodel = \"words\"\ndimensions = {DIMENSIONS}\n\
         [memories.retry]\nmax_attempts = 1",
        embedder.base_url
    ));
    let alice = server.someone("alice");
    let id = start(&alice, "Chat");
    let walrus = say(&alice, &id, "The walrus and the carpenter");
    let other = say(&alice, &id, "cabbages and kings");
    until("the other is found first", || {
        found(&alice, "semantic", "walrus carpenter") == [walrus.as_str(), other.as_str()]
    });

    embedder.refuse(Some(503));

    let answer = alice.post(SEARCH, json!({"query": "a carpenter", "searchType": "semantic"})).expect(503);
    assert_eq!(answer.json["code"], "semantic_search_unavailable");
    assert!(!answer.header("retry-after").is_empty());
    assert_eq!(found(&alice, "auto", "the carpenter there"), [walrus.as_str()]);
    assert_eq!(found(&alice, "fulltext", "carpenter"), [walrus]);
}
