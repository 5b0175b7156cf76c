//! Metadata: what the known keys may hold, what is kept as it is, and how much of it.

use crate::support::*;

#[track_caller]
fn with(tenant: &Tenant, metadata: Value) -> Answer {
    tenant.add(Place::project("p").with(json!({"content": "a", "metadata": metadata})))
}

#[track_caller]
fn kept(tenant: &Tenant, metadata: Value) -> Value {
    let answer = with(tenant, metadata).expect(201);
    let id = id_of(&answer.json["memory"]);
    let read = tenant.entry(&id)["metadata"].clone();
    assert_eq!(read, answer.json["memory"]["metadata"], "what is read is what was answered");
    read
}

#[test]
fn a_known_key_has_a_type_and_a_range() {
    let tenant = Tenant::fresh();
    let unit = [json!(-0.1), json!(1.1), json!("0.5"), json!(true), json!([0.5]), json!({}), json!(1e300)];
    let words = [json!(5), json!(true), json!(["a"]), json!({})];
    let truth = [json!("true"), json!(1), json!(0), json!([]), json!({})];
    let tags = [
        json!("a"),
        json!({}),
        json!(5),
        json!([5]),
        json!([null]),
        json!([""]),
        json!(["a", true]),
        json!(["x".repeat(129)]),
        json!((0..65).map(|n| n.to_string()).collect::<Vec<_>>()),
    ];
    let source = [
        json!("manual"),
        json!([]),
        json!({}),
        json!({"type": "hearsay"}),
        json!({"type": 5}),
        json!({"reference": "x"}),
        json!({"type": "manual", "reference": 5}),
    ];
    let factor = [json!(-0.1), json!(10.1), json!("1"), json!(true)];
    let key = [json!(""), json!("x".repeat(256)), json!(5), json!(["a"])];
    let pointer = [
        json!("adr"),
        json!({}),
        json!({"sourceType": "adr", "sourceId": "x", "contentHash": "h"}),
        json!({"sourceType": "blog", "sourceId": "x", "contentHash": "h", "syncedAt": "2026-01-01T00:00:00Z"}),
        json!({"sourceType": "adr", "sourceId": "", "contentHash": "h", "syncedAt": "2026-01-01T00:00:00Z"}),
        json!({"sourceType": "adr", "sourceId": "x", "contentHash": "", "syncedAt": "2026-01-01T00:00:00Z"}),
        json!({"sourceType": "adr", "sourceId": "x", "contentHash": "h", "syncedAt": "now"}),
    ];
    for (name, wrong) in [
        ("relevance", &unit[..]),
        ("confidence", &unit),
        ("importance", &unit),
        ("title", &words),
        ("description", &words),
        ("language", &words),
        ("author", &words),
        ("sensitive", &truth),
        ("private", &truth),
        ("tags", &tags),
        ("source", &source),
        ("decayFactor", &factor),
        ("conflictKey", &key),
        ("knowledgePointer", &pointer),
    ] {
        for value in wrong {
            let mut metadata = json!({"fine": 1});
            metadata[name] = value.clone();
            with(&tenant, metadata).invalid(name);
        }
    }
    for wrong in [json!([]), json!("x"), json!(5), json!(true)] {
        with(&tenant, wrong).invalid("metadata");
    }
    assert_eq!(tenant.page(Place::project("p").with(json!({}))).total, 0);
}

#[test]
fn the_ends_of_every_range_belong_to_it() {
    let tenant = Tenant::fresh();
    for metadata in [
        json!({"relevance": 0, "confidence": 0, "importance": 0, "decayFactor": 0}),
        json!({"relevance": 1, "confidence": 1, "importance": 1, "decayFactor": 10}),
        json!({"tags": (0..64).map(|n| format!("{n:03}{}", "🦭".repeat(125))).collect::<Vec<_>>()}),
        json!({"tags": []}),
        json!({"conflictKey": "é".repeat(255)}),
        json!({"title": "", "description": "", "language": "", "author": ""}),
        json!({"source": {"type": "tool_result", "reference": "", "origin": "x", "more": {"kept": [1]}}}),
        json!({"sensitive": true, "private": false}),
    ] {
        assert_eq!(kept(&tenant, metadata.clone()), metadata);
    }
    for kind in ["conversation", "tool_result", "knowledge_sync", "manual", "import"] {
        assert_eq!(kept(&tenant, json!({"source": {"type": kind}}))["source"]["type"], kind);
    }
    assert_eq!(
        number(&with(&tenant, json!({"relevance": 0.25})).expect(201).json["memory"]["relevance"]),
        0.25
    );
}

#[test]
fn equal_tags_are_one_tag() {
    let tenant = Tenant::fresh();
    let tags = |tags: Value| kept(&tenant, json!({"tags": tags}))["tags"].clone();
    assert_eq!(tags(json!(["b", "a", "b", "c", "a"])), json!(["b", "a", "c"]));
    assert_eq!(tags(json!(["a", "A", " a", "é", "e\u{301}"])), json!(["a", "A", " a", "é", "e\u{301}"]));
    let id = id_of(&with(&tenant, json!({})).expect(201).json["memory"]);
    assert_eq!(
        tenant.changed(&id, json!({"metadata": {"tags": ["x", "x"]}}))["metadata"]["tags"],
        json!(["x"])
    );
}

#[test]
fn keys_of_providers_are_reserved() {
    let tenant = Tenant::fresh();
    let id = id_of(&with(&tenant, json!({"a": 1})).expect(201).json["memory"]);
    for key in ["_layer", "_scope", "_tenant", "_", "__proto__", "_id"] {
        let mut metadata = json!({"fine": 1});
        metadata[key] = json!("forged");
        with(&tenant, metadata.clone()).invalid(key);
        tenant.change(&id, json!({"metadata": metadata})).invalid(key);
        metadata[key] = json!(null);
        with(&tenant, metadata).invalid(key);
    }
    assert_eq!(kept(&tenant, json!({"a": {"_deep": 1}, "b_": 2})), json!({"a": {"_deep": 1}, "b_": 2}));
    assert_eq!(tenant.entry(&id)["version"], 1);
}

#[test]
fn a_null_at_the_top_is_absent_and_deeper_is_data() {
    let tenant = Tenant::fresh();
    let given = json!({"a": null, "tags": null, "title": null, "b": {"c": null}, "d": [null], "knowledgePointer": null});
    assert_eq!(kept(&tenant, given), json!({"b": {"c": null}, "d": [null]}));
    assert_eq!(kept(&tenant, json!({"a": null})), json!({}));
    let answer = tenant.add(Place::project("p").with(json!({"content": "a", "metadata": null})));
    assert_eq!(answer.expect(201).json["memory"]["metadata"], json!({}));
}

#[test]
fn custom_values_are_kept_to_the_letter() {
    let tenant = Tenant::fresh();
    let metadata = concat!(
        r#"{"int":9007199254740993,"max":18446744073709551615,"min":-9223372036854775808,"zero":0,"#,
        r#""tenth":0.1,"sum":0.30000000000000004,"tiny":5e-324,"large":1.7976931348623157e308,"#,
        r#""deep":{"list":[1,[2,{"x":[]}],null,"",{}],"ünï":"🦭","a.b":1,"$gt":2,"":"empty"},"#,
        r#""text":"<>&'\"\\/","yes":true,"no":false,"custom":{"custom":1}}"#
    );
    let body = r#"{"content":"a","layer":"project","identifiers":{"projectId":"p"},"metadata":METADATA}"#;
    let body = Body::json_text(body.replace("METADATA", metadata));
    let answer = tenant.client.send("POST", "/v1/memories", body).expect(201);

    let expected: Value = serde_json::from_str(metadata).unwrap();
    assert_eq!(answer.json["memory"]["metadata"], expected);
    let id = id_of(&answer.json["memory"]);
    assert_eq!(tenant.entry(&id)["metadata"], expected);
    assert_eq!(tenant.changed(&id, json!({"content": "b"}))["metadata"], expected);
    let place = Place::project("p");
    assert_eq!(tenant.page(place.with(json!({}))).entries[0]["metadata"], expected);
    assert_eq!(tenant.results(place.everything(json!({})))[0]["memory"]["metadata"], expected);
}

#[test]
fn metadata_has_sixty_four_kibibytes_at_most() {
    const MAX: usize = 65_536;
    let tenant = Tenant::fresh();
    // {"k":"…"} is eight bytes around the text.
    let sized = |bytes: usize, letter: &str| json!({"k": letter.repeat((bytes - 8) / letter.len())});
    for letter in ["x", "éé"] {
        kept(&tenant, sized(MAX, letter));
        let refused = with(&tenant, sized(MAX + letter.len(), letter)).refused(422, "METADATA_TOO_LARGE");
        assert_eq!(refused.details()["maxBytes"], MAX);
    }
    let id = id_of(&with(&tenant, sized(40_000, "x")).expect(201).json["memory"]);
    let more = |key: &str, bytes: usize| {
        let mut metadata = json!({});
        metadata[key] = json!("y".repeat(bytes));
        tenant.change(&id, json!({"metadata": metadata}))
    };
    more("other", 30_000).refused(422, "METADATA_TOO_LARGE");
    assert_eq!(tenant.entry(&id)["version"], 1, "measured after merging, and nothing was changed");
    more("other", 20_000).expect(200);
    more("k", 40_000).expect(200);
}

#[test]
fn a_change_obeys_the_same_rules() {
    let tenant = Tenant::fresh();
    let id = id_of(&with(&tenant, json!({"importance": 0.5, "tags": ["a"]})).expect(201).json["memory"]);
    for (name, wrong) in [
        ("importance", json!(2)),
        ("tags", json!(["a", 5])),
        ("source", json!({"type": "x"})),
        ("sensitive", json!("yes")),
        ("conflictKey", json!("")),
        ("knowledgePointer", json!({"sourceType": "adr"})),
    ] {
        let mut metadata = json!({"other": 1});
        metadata[name] = wrong;
        tenant.change(&id, json!({"content": "b", "metadata": metadata})).invalid(name);
    }
    let entry = tenant.entry(&id);
    assert_eq!((&entry["version"], &entry["content"]), (&json!(1), &json!("a")), "all or nothing");
    assert_eq!(entry["metadata"], json!({"importance": 0.5, "tags": ["a"]}));
    let pointer = json!({"sourceType": "adr", "sourceId": "adr-1", "contentHash": "sha256:00", "syncedAt": "2026-01-01T00:00:00Z"});
    let pointing = tenant.changed(&id, json!({"metadata": {"knowledgePointer": pointer}}));
    assert_eq!(pointing["metadata"]["knowledgePointer"]["sourceId"], "adr-1");
    let plain = tenant.changed(&id, json!({"metadata": {"knowledgePointer": null}}));
    assert!(!names(&plain["metadata"]).contains("knowledgePointer"), "{plain}");
}
