//! Searches and pages.

use crate::support::*;

#[test]
fn a_search_ranks_by_score_and_keeps_to_its_bounds() {
    let mem0 = Mem0::fresh();
    for text in ["My dog is called Rex", "I moved to Lisbon in May", "Deploys happen on Tuesdays"] {
        mem0.say(text, json!({"user_id": "u"}));
    }
    mem0.say("My dog is called Fido", json!({"user_id": "v"}));
    let search = |members: Value| {
        let mut body = json!({"query": "what is the name of the dog?", "filters": {"user_id": "u"}});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        mem0.0.post("/v3/memories/search/", body).expect(200).json
    };
    let all = search(json!({"threshold": 0}));
    assert_eq!(texts(&all).len(), 3);
    assert_eq!(texts(&all)[0], "My dog is called Rex");
    let scores: Vec<f64> =
        all["results"].as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores[0] <= 1.0 && scores[2] >= 0.0, "{scores:?}");
    assert_eq!(texts(&search(json!({"threshold": 0, "top_k": 1}))), ["My dog is called Rex"]);
    assert_eq!(texts(&search(json!({"threshold": scores[0]}))), ["My dog is called Rex"]);
    assert_eq!(texts(&search(json!({"threshold": 0, "show_expired": true, "latest_only": true}))).len(), 3);
    let body = json!({"filters": {"user_id": "u"}, "show_expired": true});
    assert_eq!(mem0.0.post("/v3/memories/", body).expect(200).json["count"], 3);
    let only =
        search(json!({"fields": ["memory", "user_id"], "top_k": 1, "rerank": true, "keyword_search": true}));
    let members: Vec<&String> = only["results"][0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["id", "memory", "user_id", "score"]);

    for (members, problem) in [
        (json!({"top_k": 0}), "'top_k' must be from 1 to 100"),
        (json!({"top_k": 101}), "'top_k' must be from 1 to 100"),
        (json!({"threshold": 1.5}), "'threshold' must be from 0 to 1"),
        (json!({"query": "  "}), "'query' must not be blank"),
        (json!({"enable_graph": true}), "there is no graph here"),
        (json!({"reference_date": "2024-01-01"}), "'reference_date' is not known here"),
    ] {
        let mut body = json!({"query": "q", "filters": {"user_id": "u"}});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        mem0.0.post("/v3/memories/search/", body).refused(400, problem);
    }
}

#[test]
fn a_search_that_names_no_threshold_has_that_of_every_other_search() {
    let server = server_with("[memories.search]\ndefault_threshold = 0.0\n");
    for (default, mem0) in [(0.7, Mem0::fresh()), (0.0, Mem0(server.anonymous().with_key("m0-key")))] {
        for text in ["My dog is called Rex", "Deploys happen on Tuesdays"] {
            mem0.say(text, json!({"user_id": "u"}));
        }
        let query = "what is the name of the dog?";
        let ours = json!({"query": query, "identifiers": {"userId": "u"}, "ranking": "score"});
        let ours = mem0.0.post("/v1/memories:search", ours).expect(200).json;
        assert_eq!(ours["thresholdUsed"], default);
        let texts_of_ours: Vec<&str> = ours["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["memory"]["content"].as_str().unwrap())
            .collect();
        assert_eq!(texts_of_ours.len(), if default > 0.0 { 1 } else { 2 });
        assert_eq!(mem0.found(query, json!({"user_id": "u"})), texts_of_ours);
    }
}

#[test]
fn two_that_say_the_same_are_both_found() {
    let mem0 = Mem0::fresh();
    mem0.say("the sky is blue", json!({"user_id": "u"}));
    mem0.say("the sky is blue", json!({"user_id": "u"}));
    assert_eq!(mem0.found("sky", json!({"user_id": "u"})).len(), 2);
}

#[test]
fn pages_hold_everything_once() {
    let mem0 = Mem0::fresh();
    let mut all: Vec<String> = Vec::new();
    for number in 0..7 {
        let run =
            if number % 2 == 0 { json!({"user_id": "u", "run_id": "r"}) } else { json!({"user_id": "u"}) };
        mem0.say(&format!("number {number}"), run);
        all.insert(0, format!("number {number}"));
    }
    let page = |number: usize| {
        let path = format!("/v3/memories/?page={number}&page_size=3");
        mem0.0.post(&path, json!({"filters": {"user_id": "u"}})).expect(200).json
    };
    let first = page(1);
    assert_eq!((&first["count"], &first["previous"]), (&json!(7), &Value::Null));
    assert_eq!(first["next"], "/v3/memories/?page=2&page_size=3");
    let last = page(3);
    assert_eq!(
        (&last["next"], &last["previous"]),
        (&Value::Null, &json!("/v3/memories/?page=2&page_size=3"))
    );
    let together: Vec<String> = [first, page(2), last].iter().flat_map(texts).collect();
    assert_eq!(together, all);
    let beyond = page(4);
    assert_eq!((texts(&beyond), &beyond["count"], &beyond["next"]), (vec![], &json!(7), &Value::Null));
    for query in ["page=0", "page_size=101", "page=x", "pages=1"] {
        mem0.0
            .post(&format!("/v3/memories/?{query}"), json!({"filters": {"user_id": "u"}}))
            .refused(400, "'page");
    }
}

#[test]
fn dates_and_categories_bound_a_list() {
    let mem0 = Mem0::fresh();
    mem0.say("old", json!({"user_id": "u", "timestamp": 1_600_000_000, "metadata": {"tags": ["past"]}}));
    mem0.say("new", json!({"user_id": "u"}));
    let list = |members: Value| {
        let mut body = json!({"filters": {"user_id": "u"}});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        texts(&mem0.0.post("/v3/memories/", body).expect(200).json)
    };
    assert_eq!(list(json!({"end_date": "2020-09-13"})), ["old"]);
    assert_eq!(list(json!({"start_date": "2020-09-14"})), ["new"]);
    assert_eq!(list(json!({"categories": ["past", "future"]})), ["old"]);
}
