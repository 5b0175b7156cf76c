use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_769_860_800_000_000);

fn read(event: Value) -> Result<Event> {
    Event::read(Some(event), "acme", "alice", "planner", NOW)
}

/// The smallest event there is, with some members changed or added.
fn event(changes: Value) -> Value {
    let mut event = json!({"event_id": "e1", "tenant_id": "acme", "user_id": "alice", "digest": "d"});
    for (name, value) in changes.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn refusal<T: std::fmt::Debug>(result: Result<T>) -> (Code, String) {
    let refusal = result.unwrap_err();
    (refusal.code, refusal.details["field"].as_str().unwrap().to_owned())
}

fn search(query: &str) -> Result<EventQuery> {
    SearchEvents { query: Some(query.to_owned()), ..SearchEvents::default() }.check()
}

fn query_tokens(query: &str) -> Vec<String> {
    search(query).unwrap().tokens
}

#[test]
fn what_an_event_leaves_out_is_filled_in_after_what_it_says() {
    let stored = read(event(json!({}))).unwrap();
    assert_eq!(
        stored.json,
        r#"{"event_id":"e1","tenant_id":"acme","user_id":"alice","digest":"d","service_id":"planner","source_type":"unknown","timestamp":"2026-01-31T12:00:00.000000Z","keywords":[],"project_ids":[]}"#
    );
    assert_eq!((stored.id.as_str(), stored.timestamp), ("e1", NOW));
}

#[test]
fn null_is_filled_in_where_it_stands() {
    let sent = r#"{"keywords":null,"snapshot_uri":null,"event_id":"e1","timestamp":null,"tenant_id":"acme",
        "service_id":null,"user_id":"alice","project_ids":null,"digest":"d","source_type":null}"#;
    assert_eq!(
        read(body::parse(sent.as_bytes()).unwrap()).unwrap().json,
        r#"{"keywords":[],"event_id":"e1","timestamp":"2026-01-31T12:00:00.000000Z","tenant_id":"acme","service_id":"planner","user_id":"alice","project_ids":[],"digest":"d","source_type":"unknown"}"#
    );
}

#[test]
fn a_full_event_is_stored_as_it_was_sent() {
    let sent = r#"{"z":1.10,"event_id":"e 1","tenant_id":"acme","user_id":"alice","service_id":"S","source_type":"","timestamp":"2026-01-31T14:00:00+02:00","project_ids":["P"],"digest":"Ärger","keywords":["K",""],"evidence":{"b":[1E400,null],"a":123456789012345678901234567890},"snapshot_uri":"blob://x","extra":null}"#;
    let stored = read(body::parse(sent.as_bytes()).unwrap()).unwrap();
    assert_eq!(stored.json, sent);
    assert_eq!(
        stored.searchable,
        Searchable {
            id: "e 1".to_owned(),
            timestamp: NOW,
            service: "s".to_owned(),
            source: String::new(),
            projects: vec!["p".to_owned()],
            digest: "ärger".to_owned(),
            keywords: vec!["k".to_owned(), String::new()],
        }
    );
    assert_eq!(Event::stored(&stored.json), Some(stored.searchable));
}

#[test]
fn something_other_than_an_object_is_no_event() {
    for event in [None, Some(Value::Null), Some(json!([])), Some(json!("e1"))] {
        let result = Event::read(event, "acme", "alice", "planner", NOW);
        assert_eq!(refusal(result), (Code::InvalidEvent, "event".to_owned()));
    }
}

#[test]
fn the_scope_is_judged_first_and_exactly() {
    for scope in ["tenant_id", "user_id"] {
        for other in [json!("Acme"), json!("Alice"), json!("alice "), json!(""), json!(1), json!(null)] {
            let result = read(event(json!({scope: other, "event_id": "", "digest": 7})));
            assert_eq!(refusal(result), (Code::EventScopeMismatch, scope.to_owned()));
        }
    }
    assert_eq!(refusal(read(json!({}))).0, Code::EventScopeMismatch, "absent is different");
}

#[test]
fn members_of_the_wrong_shape_make_no_event() {
    let cases = [
        (
            "event_id",
            json!(["", " \t", null, 1, "a/b", "a\\b", "..", "a..b", "a\u{0}", "a\u{85}", "é".repeat(101)]),
        ),
        ("digest", json!(["", " \n", null, 1, ["d"]])),
        ("keywords", json!(["k", {}, 1, [1], [null], ["k", ["k"]]])),
        ("project_ids", json!(["p", {}, 1, [1], [null]])),
        ("service_id", json!([1, []])),
        ("source_type", json!([false, {}])),
        (
            "timestamp",
            json!(["", "yesterday", 1, "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T00:00:00Z"]),
        ),
        ("snapshot_uri", json!([1, {}])),
    ];
    for (name, values) in cases {
        for value in values.as_array().unwrap() {
            let result = read(event(json!({name: value})));
            assert_eq!(refusal(result), (Code::InvalidEvent, name.to_owned()), "{name}: {value}");
        }
    }
    for name in ["event_id", "digest"] {
        let mut event = event(json!({}));
        event.as_object_mut().unwrap().remove(name);
        assert_eq!(refusal(read(event)), (Code::InvalidEvent, name.to_owned()));
    }
}

#[test]
fn ids_may_be_anything_harmless() {
    for id in [".", "a.b", "a:b", "é".repeat(100).as_str(), "日本 語", "%2e%2e"] {
        assert_eq!(read(event(json!({"event_id": id}))).unwrap().id, id);
    }
}

#[test]
fn caps_count_characters_and_entries() {
    let allowed = [
        ("digest", json!("é".repeat(10_000))),
        ("keywords", json!(vec!["k"; 50])),
        ("project_ids", json!(vec!["p"; 20])),
    ];
    for (name, value) in allowed {
        assert!(read(event(json!({name: value}))).is_ok(), "{name}");
    }
    let refused = [
        ("digest", json!("é".repeat(10_001))),
        ("keywords", json!(vec!["k"; 51])),
        ("project_ids", json!(vec!["p"; 21])),
    ];
    for (name, value) in refused {
        let result = read(event(json!({name: value})));
        assert_eq!(refusal(result), (Code::EventMetadataTooLarge, name.to_owned()));
    }
    let overhead = read(event(json!({"evidence": ""}))).unwrap().json.chars().count();
    let full = "é".repeat(256_000 - overhead);
    assert_eq!(read(event(json!({"evidence": full}))).unwrap().json.chars().count(), 256_000);
    let refused = read(event(json!({"evidence": full + "é"}))).unwrap_err();
    assert_eq!(refused.code, Code::EventMetadataTooLarge);
    let detail = |name: &str| refused.details[name].as_str().unwrap();
    assert_eq!((detail("field"), detail("limit"), detail("actual")), ("event", "256000", "256001"));
    let both = event(json!({"keywords": vec!["k"; 51], "timestamp": "never"}));
    assert_eq!(refusal(read(both)).0, Code::InvalidEvent, "the shape is judged before the size");
}

#[test]
fn a_malformed_stored_event_is_none() {
    let stored = read(event(json!({}))).unwrap().json;
    assert!(Event::stored(&stored).is_some());
    for malformed in [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        stored[..stored.len() - 1].to_owned(),
        stored.replace(r#""keywords":[]"#, r#""keywords":null"#),
        stored.replace("digest", "digset"),
    ] {
        assert_eq!(Event::stored(&malformed), None, "{malformed}");
    }
}

#[test]
fn an_event_as_deep_as_a_body_may_be_is_read_again() {
    let evidence: Value = body::parse(format!("{}{}", "[".repeat(126), "]".repeat(126)).as_bytes()).unwrap();
    let stored = read(event(json!({"evidence": evidence}))).unwrap();
    assert_eq!(Event::stored(&stored.json), Some(stored.searchable));
}

#[test]
fn a_search_for_nothing_in_particular_finds_ten() {
    let all = EventQuery {
        tokens: Vec::new(),
        has_query: false,
        service: None,
        source: None,
        project: None,
        from: None,
        to: None,
        top_k: 10,
    };
    assert_eq!(SearchEvents::default().check().unwrap(), all);
    let [query, service, source, project] = [" \t\u{3000}", "", " ", "\n"].map(|text| Some(text.to_owned()));
    let blank = SearchEvents { query, service, source, project, ..SearchEvents::default() };
    assert_eq!(blank.check().unwrap(), all);
}

#[test]
fn filters_are_lower_case_and_not_trimmed() {
    let [service, source, project] = [" Ä", "CHAT", "P1"].map(|text| Some(text.to_owned()));
    let query = SearchEvents { service, source, project, ..SearchEvents::default() }.check().unwrap();
    assert_eq!(query.service.as_deref(), Some(" ä"));
    assert_eq!(query.source.as_deref(), Some("chat"));
    assert_eq!(query.project.as_deref(), Some("p1"));
}

#[test]
fn tokens_are_trimmed_words_each_once() {
    assert_eq!(query_tokens("Alpha, beta;ALPHA\u{3000}(gamma)"), ["alpha", "beta", "gamma"]);
    assert_eq!(query_tokens("v1.2-rc! --x-- \"it's\""), ["v1.2-rc", "x", "it's"]);
    assert_eq!(query_tokens("日本語、ノート"), ["日本語、ノート"], "only white space, ',' and ';' separate");
}

#[test]
fn a_query_without_words_is_still_a_query() {
    for query in ["!!!", ",;", "- -"] {
        let query = search(query).unwrap();
        assert!(query.has_query && query.tokens.is_empty());
    }
}

#[test]
fn a_query_of_too_many_words_is_refused_and_none_of_them_ignored() {
    let words = |count: usize| (0..count).map(|n| format!("w{n} ")).collect::<String>();
    assert_eq!(query_tokens(&words(MAX_TOKENS)).len(), MAX_TOKENS);
    assert_eq!(query_tokens(&words(MAX_TOKENS).repeat(2)).len(), MAX_TOKENS, "each counts once");
    let result = search(&words(MAX_TOKENS + 1));
    assert_eq!(refusal(result), (Code::InvalidRequest, "query".to_owned()));
}

#[test]
fn what_follows_a_letter_does_not_change_its_lower_case() {
    let stored = read(event(json!({"digest": "ΟΔΟΣΜΑ", "keywords": ["ΟΔΟΣ."]}))).unwrap().searchable;
    let [token] = query_tokens("ΟΔΟΣ").try_into().unwrap();
    assert!(stored.digest.contains(&token) && stored.keywords[0].contains(&token), "{stored:?} {token}");
}

#[test]
fn top_k_is_brought_into_range() {
    for (wanted, expected) in
        [(0, 10), (-1, 10), (i64::MIN, 10), (1, 1), (500, 500), (501, 500), (i64::MAX, 500)]
    {
        assert_eq!(top_k(Some(wanted)), expected, "{wanted}");
    }
}
