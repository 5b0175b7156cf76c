//! Events: what is accepted, what is kept, what a search finds and in which order.

use crate::support::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// An event with nothing but what it must have.
fn minimal(scope: &Scope, id: &str) -> Value {
    json!({"event_id": id, "tenant_id": scope.tenant, "user_id": scope.user, "digest": "short summary"})
}

/// The one event of the scope.
#[track_caller]
fn only(scope: &Scope) -> Value {
    let mut events = scope.search(json!({}));
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

/// Requires that this event is refused and that nothing of it is stored.
#[track_caller]
fn refused(event: impl Fn(&Scope) -> Value, status: u16, code: &str) {
    let scope = Scope::fresh(&SERVER);
    scope.write_event(event(&scope)).refused(status, code);
    assert_eq!(scope.found(json!({})), Vec::<String>::new());
}

/// The event without this member.
fn without(mut event: Value, member: &str) -> Value {
    event.as_object_mut().unwrap().remove(member);
    event
}

// ---- what is accepted

#[test]
fn an_event_is_accepted_without_a_word_and_found_as_it_was_sent() {
    let scope = Scope::fresh(&SERVER);
    let event = scope.event("evt_01", json!({"snapshot_uri": "blob://snapshots/c_123/s1"}));

    let answer = scope.write_event(event.clone()).expect(202);

    assert_eq!(answer.text, "");
    assert_eq!(only(&scope), event);
}

#[test]
fn what_is_left_out_has_a_default() {
    let scope = Scope::fresh(&SERVER);
    scope.with_header("x-service-id", "assistant-b").write_event(minimal(&scope, "evt_01")).expect(202);

    let stored = only(&scope);

    assert_eq!(stored["service_id"], "assistant-b", "the actor");
    assert_eq!(stored["source_type"], "unknown");
    assert_eq!(stored["keywords"], json!([]));
    assert_eq!(stored["project_ids"], json!([]));
    assert_timestamp(&stored["timestamp"]);
    let now = scope.retain(json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0})).expect(200);
    assert!(
        stored["timestamp"].as_str() < now.json["cutoff_events_utc"].as_str(),
        "{stored} is in the past of {}",
        now.text
    );
}

#[test]
fn the_service_is_the_caller_where_nobody_says_otherwise() {
    let scope = Scope::fresh(&SERVER);
    scope.write_event(minimal(&scope, "evt_01")).expect(202);

    assert_eq!(only(&scope)["service_id"], AGENT);
}

#[test]
fn null_is_as_good_as_nothing() {
    let scope = Scope::fresh(&SERVER);
    let nulls = json!({"keywords": null, "project_ids": null, "service_id": null, "source_type": null,
                       "timestamp": null});
    scope.tell("evt_01", nulls);

    let stored = only(&scope);

    assert_eq!(stored["keywords"], json!([]));
    assert_eq!(stored["project_ids"], json!([]));
    assert_eq!(stored["service_id"], AGENT);
    assert_eq!(stored["source_type"], "unknown");
    assert_timestamp(&stored["timestamp"]);
}

#[test]
fn evidence_and_unknown_members_are_kept_letter_by_letter() {
    let scope = Scope::fresh(&SERVER);
    let (evidence, mood) =
        (r#"{"z":1.10,"a":[1E400,null],"m":{"n":0.0}}"#, r#"{"y":123456789012345678901234567890,"b":[]}"#);
    let body = format!(
        r#"{{"event":{{"event_id":"e","tenant_id":"{}","user_id":"{}","digest":"d","evidence":{evidence},"mood":{mood}}}}}"#,
        scope.tenant, scope.user
    );
    scope.client.send("POST", &scope.at("/events"), Body::json_text(body)).expect(202);

    let answer = scope.post("/events:search", json!({})).expect(200);

    assert!(answer.text.contains(&format!("\"evidence\":{evidence}")), "{}", answer.text);
    assert!(answer.text.contains(&format!("\"mood\":{mood}")), "{}", answer.text);
}

#[test]
fn evidence_may_be_any_json() {
    let scope = Scope::fresh(&SERVER);
    for evidence in [json!("text"), json!(7), json!([1, "a", {}]), json!(false), json!({"deep": {"er": []}})]
    {
        scope.tell("evt_01", json!({"evidence": evidence}));
        assert_eq!(only(&scope)["evidence"], evidence);
    }
}

#[test]
fn a_timestamp_is_kept_as_it_was_written() {
    let scope = Scope::fresh(&SERVER);
    for text in [
        "2026-02-15T00:00:00Z",
        "2026-02-15T00:00:00.5Z",
        "2026-02-15T02:00:00+02:00",
        "2026-02-14T13:30:00.123456-10:30",
    ] {
        scope.tell("evt_01", json!({"timestamp": text}));
        assert_eq!(only(&scope)["timestamp"], text);
    }
}

#[test]
fn without_an_event_there_is_nothing_to_write() {
    let scope = Scope::fresh(&SERVER);
    scope.post("/events", json!({})).refused(400, "INVALID_EVENT");
    scope.post("/events", json!({"event": null})).refused(400, "INVALID_EVENT");
    scope.client.post_nothing(&scope.at("/events")).refused(400, "INVALID_JSON");
    scope.client.send("POST", &scope.at("/events"), Body::json_text("{")).refused(400, "INVALID_JSON");
    for event in [json!("text"), json!(7), json!([]), json!(true)] {
        let answer = scope.post("/events", json!({"event": event})).expect(400);
        assert!(matches!(answer.json["error"]["code"].as_str(), Some("INVALID_EVENT" | "INVALID_REQUEST")));
    }
    assert_eq!(scope.found(json!({})), Vec::<String>::new());
}

#[test]
fn an_event_needs_an_id_that_is_harmless_everywhere() {
    refused(|s| json!({"tenant_id": s.tenant, "user_id": s.user, "digest": "d"}), 400, "INVALID_EVENT");
    for id in [
        json!(null),
        json!(7),
        json!(""),
        json!("  \t"),
        json!("a/b"),
        json!("/etc/passwd"),
        json!("a\\b"),
        json!("a..b"),
        json!(".."),
        json!("../../x"),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("a\u{7f}"),
        json!("a\u{85}"),
        json!("x".repeat(201)),
        json!(format!("{}x", "é".repeat(100))),
    ] {
        refused(|s| s.event("evt", json!({"event_id": id})), 400, "INVALID_EVENT");
    }
    for id in ["x".repeat(200), "é".repeat(100), "evt:1 (a) %2e%2e".into(), ".a".into(), "事件一".into()]
    {
        let scope = Scope::fresh(&SERVER);
        scope.tell(&id, json!({}));
        assert_eq!(scope.found(json!({})), [id]);
    }
}

#[test]
fn an_event_belongs_to_the_scope_of_its_route() {
    for member in ["tenant_id", "user_id"] {
        for other in [json!("other"), json!(""), json!(null)] {
            refused(|s| s.event("evt", json!({member: other})), 422, "EVENT_SCOPE_MISMATCH");
        }
        refused(
            |s| {
                let upper = s.event("evt", json!({}))[member].as_str().unwrap().to_uppercase();
                s.event("evt", json!({member: upper}))
            },
            422,
            "EVENT_SCOPE_MISMATCH",
        );
        refused(|s| without(s.event("evt", json!({})), member), 422, "EVENT_SCOPE_MISMATCH");
    }
}

#[test]
fn the_scope_is_judged_before_the_rest() {
    let wrong = json!({"tenant_id": "other", "event_id": "", "digest": " ", "timestamp": "yesterday",
                       "keywords": vec!["k"; 51]});
    refused(|s| s.event("evt", wrong.clone()), 422, "EVENT_SCOPE_MISMATCH");
}

#[test]
fn a_digest_has_something_to_say_in_ten_thousand_characters() {
    for digest in [json!(null), json!(""), json!(" \n\t "), json!(7), json!(["d"])] {
        refused(|s| s.event("evt", json!({"digest": digest})), 400, "INVALID_EVENT");
    }
    refused(|s| without(s.event("evt", json!({})), "digest"), 400, "INVALID_EVENT");
    for letter in ["x", "é", "茶", "🦀"] {
        let scope = Scope::fresh(&SERVER);
        scope.tell("evt", json!({"digest": letter.repeat(10_000)}));
        assert_eq!(only(&scope)["digest"], letter.repeat(10_000));
        refused(
            |s| s.event("evt", json!({"digest": letter.repeat(10_001)})),
            422,
            "EVENT_METADATA_TOO_LARGE",
        );
    }
}

#[test]
fn there_are_at_most_fifty_keywords_and_twenty_projects() {
    for (member, cap) in [("keywords", 50), ("project_ids", 20)] {
        let some = |count: usize| (0..count).map(|n| format!("word{n}")).collect::<Vec<_>>();
        let scope = Scope::fresh(&SERVER);
        scope.tell("evt", json!({member: some(cap)}));
        assert_eq!(only(&scope)[member], json!(some(cap)));
        refused(|s| s.event("evt", json!({member: some(cap + 1)})), 422, "EVENT_METADATA_TOO_LARGE");
        for wrong in [json!("word"), json!([1]), json!(["a", null]), json!({})] {
            let answer = scope.write_event(scope.event("evt", json!({member: wrong}))).expect(400);
            assert!(matches!(
                answer.json["error"]["code"].as_str(),
                Some("INVALID_EVENT" | "INVALID_REQUEST")
            ));
        }
        assert_eq!(only(&scope)[member], json!(some(cap)), "a refused event replaces nothing");
    }
}

#[test]
fn an_event_is_no_larger_than_a_document() {
    let scope = Scope::fresh(&SERVER);
    let event = |evidence: usize| {
        let mut event = scope.event("evt", json!({"digest": "walrus"}));
        event["evidence"] = "é".repeat(evidence).into();
        event
    };
    let most = 256_000 - event(0).to_string().chars().count();
    scope.write_event(event(most)).expect(202);

    let answer = scope.write_event(event(most + 1)).refused(422, "EVENT_METADATA_TOO_LARGE");

    let detail = |name| answer.detail(name);
    assert_eq!(
        (detail("field"), detail("limit"), detail("actual")),
        (Some("event"), Some("256000"), Some("256001"))
    );
    assert_eq!(only(&scope)["evidence"].as_str().unwrap().chars().count(), most);
}

#[test]
fn a_timestamp_says_its_offset() {
    for timestamp in [
        json!("yesterday"),
        json!(""),
        json!("2026-02-15"),
        json!("2026-02-15T00:00:00"),
        json!("2026-13-15T00:00:00Z"),
        json!("2026-02-30T00:00:00Z"),
        json!("15 Feb 2026 00:00:00 GMT"),
        json!(1_771_113_600),
    ] {
        refused(|s| s.event("evt", json!({"timestamp": timestamp})), 400, "INVALID_EVENT");
    }
}

#[test]
fn an_event_of_the_same_id_replaces_the_one_before() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("evt", json!({"digest": "walrus", "keywords": ["tusk"], "project_ids": ["zoo"]}));
    scope.tell("other", json!({"digest": "seal"}));
    let second = scope.event(
        "evt",
        json!({"digest": "penguin", "keywords": ["beak"], "project_ids": ["ice"], "source_type": "mail",
               "timestamp": "2026-03-01T00:00:00Z"}),
    );
    scope.write_event(second.clone()).expect(202);

    assert_eq!(scope.found(json!({})), ["evt", "other"]);
    assert_eq!(scope.search(json!({"query": "penguin"})), [second]);
    assert_eq!(scope.found(json!({"query": "beak"})), ["evt"]);
    for gone in [
        json!({"query": "walrus"}),
        json!({"query": "tusk"}),
        json!({"project_id": "zoo"}),
        json!({"query": "penguin", "source_type": "chat"}),
        json!({"query": "penguin", "to": "2026-02-20T00:00:00Z"}),
    ] {
        assert_eq!(scope.found(gone.clone()), Vec::<String>::new(), "{gone}");
    }
}

#[test]
fn replacing_an_event_again_and_again_leaves_one() {
    let scope = Scope::fresh(&SERVER);
    for n in 0..60 {
        scope.tell("evt", json!({"digest": format!("version number{n}x")}));
        scope.tell(&format!("other{}", n % 5), json!({"digest": "neighbour"}));
        assert_eq!(scope.found(json!({"query": format!("number{n}x")})), ["evt"]);
    }
    assert_eq!(scope.found(json!({"query": "version"})), ["evt"]);
    assert_eq!(scope.found(json!({})).len(), 6);
}

#[test]
fn one_of_many_writers_of_an_id_is_the_last() {
    let scope = Scope::fresh(&SERVER);
    at_once(16, |n| scope.tell("evt", json!({"digest": format!("from writer{n}x")})));

    let digest = only(&scope)["digest"].clone();

    for n in 0..16 {
        let expected: &[&str] = if digest == format!("from writer{n}x") { &["evt"] } else { &[] };
        assert_eq!(scope.found(json!({"query": format!("writer{n}x")})), expected, "{digest} won");
    }
}

#[test]
fn an_event_is_found_as_soon_as_it_is_accepted() {
    let scope = Scope::fresh(&SERVER);
    at_once(8, |n| {
        for m in 0..20 {
            let id = format!("evt-{n}-{m}");
            scope.tell(&id, json!({"digest": format!("word{n}x{m}x")}));
            assert_eq!(scope.found(json!({"query": format!("word{n}x{m}x")})), [id]);
        }
    });
    assert_eq!(scope.found(json!({"top_k": 500})).len(), 160);
}

// ---- what a search finds

#[test]
fn a_search_without_wishes_finds_everything() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("a", json!({}));
    scope.tell("b", json!({}));

    let answer = scope.client.post_nothing(&scope.at("/events:search")).expect(200);
    assert_eq!(answer.json["results"].as_array().unwrap().len(), 2);
    for body in [
        json!({}),
        json!({"query": null, "service_id": null, "from": null, "to": null, "top_k": null}),
        json!({"query": "", "service_id": "", "source_type": " ", "project_id": "\t"}),
        json!({"query": " \n "}),
        json!({"a member nobody knows": 1}),
    ] {
        assert_eq!(scope.found(body.clone()), ["a", "b"], "{body}");
    }
}

#[test]
fn an_unknown_scope_has_no_events() {
    assert_eq!(Scope::fresh(&SERVER).search(json!({"query": "anything"})), Vec::<Value>::new());
}

#[test]
fn a_search_of_the_wrong_shape_is_refused() {
    let scope = Scope::fresh(&SERVER);
    for body in [
        json!({"from": "yesterday"}),
        json!({"to": "2026-02-15"}),
        json!({"from": "2026-02-15T00:00:00"}),
        json!({"to": 5}),
        json!({"query": 7}),
        json!({"service_id": ["a"]}),
        json!({"top_k": "5"}),
        json!({"top_k": 1.5}),
        json!([]),
        json!("alpha"),
    ] {
        scope.post("/events:search", body).refused(400, "INVALID_REQUEST");
    }
    scope
        .client
        .send("POST", &scope.at("/events:search"), Body::json_text("{]"))
        .refused(400, "INVALID_JSON");
}

#[test]
fn filters_compare_without_regard_to_case_and_all_must_hold() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("a", json!({"service_id": "Agent", "source_type": "Chat", "project_ids": ["Zoo", "Ärzte"]}));
    scope.tell("b", json!({"service_id": "agent", "source_type": "mail", "project_ids": ["zoo"]}));
    scope.tell("c", json!({"service_id": "other", "source_type": "chat", "project_ids": []}));

    for (body, expected) in [
        (json!({"service_id": "AGENT"}), &["a", "b"][..]),
        (json!({"service_id": "age"}), &[]),
        (json!({"source_type": "CHAT"}), &["a", "c"]),
        (json!({"project_id": "zOO"}), &["a", "b"]),
        (json!({"project_id": "äRZTE"}), &["a"]),
        (json!({"project_id": "zo"}), &[]),
        (json!({"service_id": "agent", "source_type": "chat"}), &["a"]),
        (
            json!({"service_id": "agent", "source_type": "chat", "project_id": "zoo", "query": "short"}),
            &["a"],
        ),
        (json!({"service_id": "agent", "source_type": "chat", "project_id": "zoo", "query": "long"}), &[]),
        (json!({"service_id": "other", "project_id": "zoo"}), &[]),
    ] {
        assert_eq!(scope.found(body.clone()), expected, "{body}");
    }
}

#[test]
fn from_and_to_are_instants_and_both_belong_to_the_range() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("a", json!({"timestamp": "2026-01-01T00:00:00+02:00"})); // 22:00 in UTC, the day before
    scope.tell("b", json!({"timestamp": "2025-12-31T23:00:00.000001Z"}));
    scope.tell("c", json!({"timestamp": "2025-12-31T19:00:00-05:00"})); // midnight in UTC

    for (from, to, expected) in [
        ("2025-12-31T22:00:00Z", "2026-01-01T00:00:00Z", &["c", "b", "a"][..]),
        ("2025-12-31T22:00:00.000001Z", "2026-01-01T00:00:00Z", &["c", "b"]),
        ("2025-12-31T22:00:00Z", "2025-12-31T23:59:59.999999Z", &["b", "a"]),
        ("2025-12-31T23:00:00.000001Z", "2025-12-31T23:00:00.000001Z", &["b"]),
        ("2025-12-31T23:00:00.000002Z", "2025-12-31T23:00:00.000002Z", &[]),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T02:00:00+02:00", &["c"]),
        ("2026-01-01T00:00:00Z", "2025-12-31T22:00:00Z", &[]),
    ] {
        assert_eq!(scope.found(json!({"from": from, "to": to})), expected, "{from} to {to}");
    }
    assert_eq!(scope.found(json!({"from": "2025-12-31T23:30:00Z"})), ["c"]);
    assert_eq!(scope.found(json!({"to": "2025-12-31T22:30:00Z"})), ["a"]);
}

#[test]
fn a_word_counts_twice_in_the_digest_and_once_among_the_keywords() {
    let scope = Scope::fresh(&SERVER);
    let word = |digest: &str, keywords: &[&str]| json!({"digest": digest, "keywords": keywords});
    scope.tell("keyword", word("nothing", &["Walrus", "walrus"]));
    scope.tell("digest", word("A WALRUS and another walrus", &[]));
    scope.tell("both", word("the walrus", &["walruses"]));
    scope.tell("neither", word("a seal", &["fish"]));

    assert_eq!(scope.found(json!({"query": "walrus"})), ["both", "digest", "keyword"]);
    assert_eq!(scope.found(json!({"query": "Walrus fish"})), ["both", "digest", "keyword", "neither"]);
    assert_eq!(scope.found(json!({"query": "fish seal"})), ["neither"]);
    assert_eq!(
        scope.found(json!({"query": "walrus WALRUS walrus nothing"})),
        ["both", "keyword", "digest"],
        "a word said twice is one word, so `nothing` decides; ties go by id"
    );
}

#[test]
fn words_are_found_inside_of_words() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("alpha", json!({"digest": "the alphabet", "keywords": []}));
    scope.tell("tea", json!({"digest": "我喜欢绿茶和咖啡", "keywords": ["日本語"]}));

    for (query, expected) in [
        ("alph", &["alpha"][..]),
        ("phabe", &["alpha"]),
        ("ALPHABET", &["alpha"]),
        ("alphabets", &[]),
        ("the alphabets", &["alpha"]),
        ("绿茶", &["tea"]),
        ("茶", &["tea"]),
        ("绿咖", &[]),
        ("本語", &["tea"]),
        ("he al", &["alpha"]),
    ] {
        assert_eq!(scope.found(json!({"query": query})), expected, "{query}");
    }
}

#[test]
fn a_query_is_cut_at_white_space_commas_and_semicolons_and_freed_of_punctuation() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("a", json!({"digest": "node.js on x-ray", "keywords": ["c++"]}));

    for (query, found) in [
        ("node.js", true),
        ("(node.js)", true),
        ("\"x-ray\"!", true),
        ("nothing,x-ray", true),
        ("nothing;x-ray;", true),
        ("nothing\u{3000}x-ray", true),
        ("c++", true),
        ("node-js", false),
        ("node.js/x-ray", false),
        ("...", false),
        ("+ - ; , !", false),
        ("%", false),
        ("_", false),
        ("*", false),
    ] {
        assert_eq!(!scope.found(json!({"query": query})).is_empty(), found, "{query}");
    }
}

#[test]
fn every_word_of_a_query_counts_or_the_query_is_refused() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("evt", json!({"digest": "walrus999x"}));
    let words = |count: usize| (0..count).map(|n| format!("walrus{n}x ")).collect::<String>();

    assert_eq!(scope.found(json!({"query": words(1000)})), ["evt"], "the last word is as good as the first");
    let answer = scope.post("/events:search", json!({"query": words(1001)})).refused(400, "INVALID_REQUEST");
    assert_eq!(answer.detail("field"), Some("query"));
}

#[test]
fn ties_go_to_the_newer_and_then_by_id() {
    let scope = Scope::fresh(&SERVER);
    let at = |timestamp: &str| json!({"digest": "walrus", "keywords": [], "timestamp": timestamp});
    scope.tell("b", at("2026-01-01T10:00:00Z"));
    scope.tell("a", at("2026-01-01T12:00:00+02:00"));
    scope.tell("B", at("2026-01-01T10:00:00.000000Z"));
    scope.tell("newest", at("2026-01-01T10:00:00.000001Z"));
    scope.tell("oldest", at("2026-01-01T23:00:00+14:00"));
    scope.tell(
        "best",
        json!({"keywords": ["walrus"], "digest": "walrus", "timestamp": "2001-01-01T00:00:00Z"}),
    );

    assert_eq!(scope.found(json!({"query": "walrus"})), ["best", "newest", "B", "a", "b", "oldest"]);
    assert_eq!(scope.found(json!({})), ["newest", "B", "a", "b", "oldest", "best"]);
}

#[test]
fn top_k_is_ten_unless_said_otherwise_and_five_hundred_at_most() {
    let scope = Scope::fresh(&SERVER);
    spread(501, |n| scope.tell(&format!("evt{n:03}"), json!({})));

    for (top_k, expected) in [
        (json!(null), 10),
        (json!(0), 10),
        (json!(-1), 10),
        (json!(-9_007_199_254_740_993_i64), 10),
        (json!(1), 1),
        (json!(11), 11),
        (json!(500), 500),
        (json!(501), 500),
        (json!(i64::MAX), 500),
    ] {
        for query in [json!(null), json!("short")] {
            let found = scope.found(json!({"top_k": top_k, "query": query}));
            let first: Vec<String> = (0..expected).map(|n| format!("evt{n:03}")).collect();
            assert_eq!(found, first, "top_k {top_k}");
        }
    }
}

#[test]
fn equal_ids_in_other_scopes_are_other_events() {
    let (tenant, other_tenant) = (fresh_name("tenant"), fresh_name("tenant"));
    let (user, other_user) = (fresh_name("user"), fresh_name("user"));
    let scopes = [
        Scope::of(&SERVER, &tenant, &user),
        Scope::of(&SERVER, &tenant, &other_user),
        Scope::of(&SERVER, &other_tenant, &user),
        Scope::of(&SERVER, &tenant, &user.to_uppercase()),
        Scope::of(&SERVER, &tenant.to_uppercase(), &user),
        Scope::of(&SERVER, &user, &tenant),
    ];
    for (n, scope) in scopes.iter().enumerate() {
        scope.tell("evt", json!({"digest": format!("walrus number{n}x")}));
    }
    for (n, scope) in scopes.iter().enumerate() {
        let found = scope.search(json!({"query": "walrus"}));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["digest"], format!("walrus number{n}x"));
    }

    scopes[0].tell("evt", json!({"digest": "replaced"}));

    assert_eq!(scopes[0].found(json!({"query": "walrus"})), Vec::<String>::new());
    for scope in &scopes[1..] {
        assert_eq!(scope.found(json!({"query": "walrus"})), ["evt"]);
    }
}

#[test]
fn upstream_defect_5_an_event_without_keywords_breaks_no_search() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("null", json!({"keywords": null, "project_ids": null}));
    scope.write_event(minimal(&scope, "absent")).expect(202);
    scope.tell("odd", json!({"keywords": ["", "  ", "\u{0}"], "project_ids": [""], "evidence": null}));
    scope.tell("fine", json!({"keywords": ["walrus"], "project_ids": ["zoo"]}));

    assert_eq!(scope.found(json!({"query": "walrus"})), ["fine"]);
    assert_eq!(scope.found(json!({"project_id": "zoo"})), ["fine"]);
    let all: BTreeSet<String> = scope.found(json!({"query": "short"})).into_iter().collect();
    assert_eq!(all, ["absent", "fine", "null", "odd"].map(str::to_owned).into());
}

#[test]
fn one_malformed_stored_event_does_not_hide_the_others() {
    let mut server = local_server();
    let scope = Scope::fresh(&server);
    for n in 0..5 {
        scope.tell(&format!("evt{n}"), json!({"digest": "walrus"}));
    }
    server.stop();
    let breaking = "UPDATE events SET event = $1 WHERE event_id = 'evt2'";
    assert_eq!(server.stored().execute(breaking, b"\x7B\x00\xFF"), 1);
    server.restart();

    let scope = Scope::of(&server, &scope.tenant, &scope.user);
    for body in [json!({}), json!({"query": "walrus"}), json!({"source_type": "chat"})] {
        let mut found = scope.found(body);
        found.retain(|id| id != "evt2");
        assert_eq!(found, ["evt0", "evt1", "evt3", "evt4"]);
    }
    scope.tell("evt2", json!({"digest": "walrus"}));
    assert_eq!(scope.found(json!({"query": "walrus"})).len(), 5, "writing it again heals it");
}

#[test]
fn an_answer_ends_where_memory_would() {
    let scope = Scope::fresh(&SERVER);
    let evidence = "𝄞".repeat(250_000);
    spread(40, |n| scope.tell(&format!("evt{n:02}"), json!({"digest": "walrus", "evidence": evidence})));

    let answer = scope.post("/events:search", json!({"query": "walrus", "top_k": 500})).expect(200);

    let found = answer.json["results"].as_array().unwrap();
    let expected: Vec<String> = (0..33).map(|n| format!("evt{n:02}")).collect();
    assert_eq!(found.iter().map(|event| event["event_id"].as_str().unwrap()).collect::<Vec<_>>(), expected);
    assert!(answer.text.len() < 33 * 1024 * 1024, "{}", answer.text.len());
}

/// Flips the last bit of what this statement finds and stores it again: `body` in `event_blocks`.
#[track_caller]
fn damage(server: &TestServer, table: &str, column: &str, condition: &str) {
    let select = format!("SELECT {column} FROM {table} WHERE {condition}");
    let mut bytes = server.stored().bytes(&select).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let update = format!("UPDATE {table} SET {column} = $1 WHERE {condition}");
    assert_eq!(server.stored().execute(&update, &bytes), 1);
}

/// How long the index has been behind, as the metrics tell it.
#[track_caller]
fn index_lag(server: &TestServer) -> f64 {
    let metrics = server.anonymous().get("/metrics").expect(200).text;
    let name = "memtrove_files_index_lag_seconds ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).parse().unwrap()
}

/// A server that encrypts, and a scope in it with two blocks of events: 64 in the first, 6 in the one that is open.
fn two_blocks() -> (TestServer, Scope, Vec<String>) {
    let server = encrypted_server();
    let scope = Scope::fresh(&server);
    let ids: Vec<String> = (0..70).map(|n| format!("evt{n:02}")).collect();
    for id in &ids {
        scope.tell(id, json!({"digest": format!("walrus {id}x")}));
    }
    (server, scope, ids)
}

#[test]
fn a_damaged_block_hides_its_own_events_until_it_is_rebuilt() {
    let (server, scope, ids) = two_blocks();
    let walruses = || scope.found(json!({"query": "walrus", "top_k": 500}));
    assert_eq!((walruses(), index_lag(&server)), (ids.clone(), 0.0));
    damage(&server, "event_blocks", "body", "block = 0");

    assert_eq!(walruses(), ids[64..]);
    assert!(index_lag(&server) > 0.0);
    scope.tell("evt65", json!({"digest": "walrus again"}));
    scope.tell("new", json!({"digest": "walrus"}));
    assert_eq!(walruses(), [&ids[64..], &["new".to_owned()]].concat());

    let job = scope.as_admin().post("/events:reindex", json!({})).expect(202).text_of("job_id");
    let path = format!("/v1/admin/jobs/{job}");
    while scope.as_admin().client.get(&path).expect(200).json["status"] != "succeeded" {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(walruses(), [&ids[..], &["new".to_owned()]].concat());
    assert_eq!(index_lag(&server), 0.0);
}

#[test]
fn an_event_of_a_damaged_block_is_replaced_and_expires_as_ever() {
    let (server, scope, ids) = two_blocks();
    damage(&server, "event_blocks", "body", "block = 0");

    scope.tell("evt07", json!({"digest": "penguin", "timestamp": "2026-03-01T00:00:00Z"}));
    assert_eq!(scope.found(json!({"query": "penguin"})), ["evt07"]);
    assert_eq!(scope.found(json!({"query": "evt08x"})), ["evt08"], "that has rebuilt the block");

    damage(&server, "event_blocks", "body", "block = 0");
    let rules =
        json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": "2026-02-20T00:00:00Z"});
    assert_eq!(scope.retain(rules).expect(200).json["events_deleted"], ids.len() - 1);
    assert_eq!(scope.found(json!({"top_k": 500})), ["evt07"]);
}

#[test]
fn a_damaged_open_block_refuses_nobody() {
    let (server, scope, ids) = two_blocks();
    damage(&server, "event_blocks", "body", "block = 1");

    scope.tell("new", json!({"digest": "walrus"}));

    let found = scope.found(json!({"query": "walrus", "top_k": 500}));
    assert_eq!(found, [&ids[..], &["new".to_owned()]].concat(), "and is whole again");
}

#[test]
fn a_damaged_event_is_left_out_until_it_is_written_again() {
    let (server, scope, ids) = two_blocks();
    damage(&server, "events", "event", "event_id = 'evt03'");
    let walruses = || scope.found(json!({"query": "walrus", "top_k": 500}));
    let others: Vec<String> = ids.iter().filter(|id| *id != "evt03").cloned().collect();

    assert_eq!(walruses(), others);
    let rules =
        json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": "2026-02-10T00:00:00Z"});
    scope.tell("old", json!({"timestamp": "2026-02-01T00:00:00Z"}));
    assert_eq!(scope.retain(rules).expect(200).json["events_deleted"], 1);
    scope.tell("evt03", json!({"digest": "walrus"}));
    assert_eq!(walruses(), ids);
}

// ---- the same, at random, against a model that anybody can check

const WORDS: [&str; 16] = [
    "alpha",
    "Alphabet",
    "BETA",
    "be",
    "绿茶",
    "我喜欢绿茶",
    "茶",
    "Käse",
    "KÄSEKUCHEN",
    "c++",
    "node.js",
    "x-ray",
    "42",
    "größe",
    "日本語",
    "a",
];

/// What the contract says about an event, in the plainest words there are.
struct Known {
    id: String,
    instant: usize,
    digest: String,
    keywords: Vec<String>,
    service: &'static str,
    source: &'static str,
    projects: Vec<&'static str>,
}

fn tokens(query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let mut tokens: Vec<String> = Vec::new();
    for piece in query.split(|c: char| c.is_whitespace() || c == ',' || c == ';') {
        let token = piece.trim_matches(|c: char| !c.is_alphanumeric());
        if !token.is_empty() && !tokens.iter().any(|known| known == token) {
            tokens.push(token.to_owned());
        }
    }
    tokens
}

impl Known {
    fn score(&self, query: &str) -> usize {
        let digest = self.digest.to_lowercase();
        let score = |token: &String| {
            let in_keyword = self.keywords.iter().any(|keyword| keyword.to_lowercase().contains(token));
            2 * usize::from(digest.contains(token)) + usize::from(in_keyword)
        };
        tokens(query).iter().map(score).sum()
    }
}

/// A spelling of the instant that many hours after the year began.
fn spelled(dice: &mut Dice, hour: usize) -> String {
    match dice.roll(4) {
        0 => format!("2026-01-01T{hour:02}:00:00Z"),
        1 => format!("2026-01-01T{:02}:00:00+02:00", hour + 2),
        2 => format!("2026-01-01T{hour:02}:30:00.000+00:30"),
        _ => format!("2025-12-31T{:02}:00:00.000000-10:00", hour + 14),
    }
}

fn pick<T: Copy>(dice: &mut Dice, from: &[T]) -> T {
    from[dice.roll(from.len())]
}

fn phrase(dice: &mut Dice, separators: &[&str]) -> String {
    let mut phrase = String::new();
    for _ in 0..=dice.roll(3) {
        phrase.push_str(pick(dice, &WORDS));
        phrase.push_str(pick(dice, separators));
    }
    phrase
}

#[test]
fn random_searches_find_what_a_naive_reading_of_the_contract_finds() {
    for seed in 1..=3 {
        let dice = &mut Dice(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let scope = Scope::fresh(&SERVER);
        let mut model: Vec<Known> = Vec::new();
        for _ in 0..60 {
            let known = Known {
                id: format!("evt{}", dice.roll(50)), // some ids come twice and replace
                instant: dice.roll(6),
                digest: phrase(dice, &[" ", "", ". "]),
                keywords: (0..dice.roll(3)).map(|_| pick(dice, &WORDS).to_owned()).collect(),
                service: pick(dice, &["agent", "Agent", "other"]),
                source: pick(dice, &["chat", "mail"]),
                projects: (0..dice.roll(3)).map(|_| pick(dice, &["zoo", "Zoo", "ice"])).collect(),
            };
            let timestamp = spelled(dice, known.instant);
            scope.tell(
                &known.id,
                json!({"digest": known.digest, "keywords": known.keywords, "service_id": known.service,
                       "source_type": known.source, "project_ids": known.projects, "timestamp": timestamp}),
            );
            model.retain(|other| other.id != known.id);
            model.push(known);
        }
        for _ in 0..80 {
            let query = if dice.roll(5) == 0 {
                " ".into()
            } else {
                phrase(dice, &[" ", ",", "; ", "! (", "\u{3000}"])
            };
            let service = (dice.roll(3) == 0).then(|| pick(dice, &["AGENT", "other", "nobody"]));
            let source = (dice.roll(3) == 0).then(|| pick(dice, &["Chat", "mail"]));
            let project = (dice.roll(3) == 0).then(|| pick(dice, &["ZOO", "ice"]));
            let from = (dice.roll(3) == 0).then(|| dice.roll(6));
            let to = (dice.roll(3) == 0).then(|| dice.roll(6));
            let top_k = pick(dice, &[0, 1, 3, 10, 100]);
            let body = json!({"query": query, "service_id": service, "source_type": source, "project_id": project,
                              "from": from.map(|hour| spelled(dice, hour)), "to": to.map(|hour| spelled(dice, hour)),
                              "top_k": top_k});

            let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
            let mut expected: Vec<(usize, &Known)> = model
                .iter()
                .filter(|known| service.is_none_or(|service| same(service, known.service)))
                .filter(|known| source.is_none_or(|source| same(source, known.source)))
                .filter(|known| project.is_none_or(|project| known.projects.iter().any(|p| same(p, project))))
                .filter(|known| from.is_none_or(|from| known.instant >= from))
                .filter(|known| to.is_none_or(|to| known.instant <= to))
                .map(|known| (known.score(&query), known))
                .filter(|(score, _)| query.trim().is_empty() || *score > 0)
                .collect();
            expected.sort_by(|(score, a), (other, b)| {
                other.cmp(score).then(b.instant.cmp(&a.instant)).then(a.id.cmp(&b.id))
            });
            expected.truncate(if top_k == 0 { 10 } else { top_k });
            let expected: Vec<&str> = expected.iter().map(|(_, known)| known.id.as_str()).collect();
            assert_eq!(scope.found(body.clone()), expected, "seed {seed}, {body}");
        }
    }
}
