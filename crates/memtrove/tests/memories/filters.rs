//! Filters: every member, every operator, in lists, searches and facts alike.

use crate::support::*;

/// One entry per line of this table, found again by its letter.
fn entries() -> Vec<(&'static str, Value)> {
    let pointer = json!({"sourceType": "adr", "sourceId": "adr-1", "contentHash": "sha256:00", "syncedAt": "2026-01-01T00:00:00Z"});
    vec![
        ("a", json!({"tags": ["red", "warm"], "n": 1, "s": "apple", "importance": 0.2})),
        ("b", json!({"tags": ["Red"], "n": 2.5, "s": "banana", "list": [1, "two", null, {"x": 1}]})),
        (
            "c",
            json!({"tags": ["blue", "cold"], "n": "2.5", "s": "Apple pie", "flag": true, "source": {"type": "manual"}}),
        ),
        (
            "d",
            json!({"n": -3, "flag": false, "obj": {"x": 1, "y": [2]}, "source": {"type": "import", "reference": "r"}}),
        ),
        ("e", json!({"knowledgePointer": pointer, "list": [], "a.b": 1, "language": "de", "n": 10})),
        ("f", json!({"tags": [], "obj": {"y": [2], "x": 1}, "deep": {"n": 1}, "s": ""})),
    ]
}

fn world() -> (Tenant, Place) {
    let (tenant, place) = (Tenant::fresh(), Place::project("p"));
    tenant.add_all(
        entries()
            .into_iter()
            .map(|(name, metadata)| place.with(json!({"content": name, "metadata": metadata}))),
    );
    (tenant, place)
}

/// Asks by list and by search, page by page and all at once: everybody must agree on what the filter lets through.
#[track_caller]
fn assert_lets_through(tenant: &Tenant, place: &Place, filter: Value, expected: &str) {
    let expected: Vec<String> = expected.chars().map(String::from).collect();
    let listed = sorted(tenant.contents(place.with(json!({"filter": filter}))));
    assert_eq!(listed, expected, "listing {filter}");
    let paged = sorted(tenant.contents(place.with(json!({"filter": filter, "limit": 1}))));
    assert_eq!(paged, expected, "one by one {filter}");
    let answer = tenant.search(place.everything(json!({"filter": filter}))).expect(200);
    let found: Vec<String> =
        list(&answer.json["results"]).iter().map(|result| text(&result["memory"]["content"])).collect();
    assert_eq!(sorted(found), expected, "searching {filter}");
    assert_eq!(answer.json["totalCount"], expected.len(), "counted after the filter {filter}");
}

#[test]
fn members_of_a_filter() {
    let (tenant, place) = world();
    for (filter, expected) in [
        (json!({}), "abcdef"),
        (json!({"tags": []}), "abcdef"),
        (json!({"tags": ["red"]}), "a"),
        (json!({"tags": ["Red"]}), "b"),
        (json!({"tags": ["red", "cold"]}), "ac"),
        (json!({"tags": ["re"]}), ""),
        (json!({"sourceType": "manual"}), "c"),
        (json!({"sourceType": "IMPORT"}), "d"),
        (json!({"sourceType": "conversation"}), ""),
        (json!({"hasKnowledgePointer": true}), "e"),
        (json!({"hasKnowledgePointer": false}), "abcdf"),
        (json!({"custom": {}}), "abcdef"),
        (json!({"tags": ["red", "blue"], "custom": {"n": 1}}), "a"),
        (json!({"sourceType": "manual", "hasKnowledgePointer": true}), ""),
        (json!({"custom": {"n": 1, "s": "apple"}}), "a"),
        (json!({"custom": {"n": 1, "s": "banana"}}), ""),
    ] {
        assert_lets_through(&tenant, &place, filter, expected);
    }
}

#[test]
fn conditions_of_custom_keys() {
    let (tenant, place) = world();
    for (key, condition, expected) in [
        // A scalar: equal, or contained in a list.
        ("n", json!(1), "a"),
        ("n", json!(1.0), "a"),
        ("n", json!(2.5), "b"),
        ("n", json!("2.5"), "c"),
        ("n", json!(-3.0), "d"),
        ("n", json!("1"), ""),
        ("n", json!(true), ""),
        ("s", json!("apple"), "a"),
        ("s", json!("Apple"), ""),
        ("s", json!(""), "f"),
        ("flag", json!(true), "c"),
        ("flag", json!(false), "d"),
        ("flag", json!("true"), ""),
        ("list", json!("two"), "b"),
        ("list", json!(1), "b"),
        ("list", json!(1.0), "b"),
        ("list", json!("1"), ""),
        ("tags", json!("red"), "a"),
        ("absent", json!(1), ""),
        // Keys are literal.
        ("a.b", json!(1), "e"),
        ("deep.n", json!(1), ""),
        ("obj.x", json!(1), ""),
        ("$.n", json!(1), ""),
        // An object without operators is deep equality, whatever the order of its members.
        ("obj", json!({"x": 1, "y": [2]}), "df"),
        ("obj", json!({"y": [2], "x": 1.0}), "df"),
        ("obj", json!({"x": 1}), ""),
        ("deep", json!({"n": 1}), "f"),
        // Standard keys too.
        ("importance", json!(0.2), "a"),
        ("language", json!("de"), "e"),
    ] {
        assert_lets_through(&tenant, &place, json!({"custom": {key: condition}}), expected);
    }
}

#[test]
fn operators_of_conditions() {
    let (tenant, place) = world();
    for (key, condition, expected) in [
        ("n", json!({"$eq": 1}), "a"),
        ("n", json!({"$eq": "2.5"}), "c"),
        ("obj", json!({"$eq": {"y": [2], "x": 1}}), "df"),
        ("flag", json!({"$eq": true}), "c"),
        // Not equal also holds where the key is absent.
        ("n", json!({"$ne": 1}), "bcdef"),
        ("flag", json!({"$ne": true}), "abdef"),
        ("absent", json!({"$ne": 1}), "abcdef"),
        // Order is between numbers or between texts, and nothing else.
        ("n", json!({"$gt": 1}), "be"),
        ("n", json!({"$gte": 1}), "abe"),
        ("n", json!({"$lt": 2.5}), "ad"),
        ("n", json!({"$lte": 2.5}), "abd"),
        ("n", json!({"$gt": "2"}), "c"),
        ("n", json!({"$gt": -1e308}), "abde"),
        ("s", json!({"$gte": "apple"}), "ab"),
        ("s", json!({"$lt": "apple"}), "cf"),
        ("flag", json!({"$gte": false}), ""),
        ("flag", json!({"$gt": 0}), ""),
        ("obj", json!({"$gt": 0}), ""),
        ("absent", json!({"$lt": 5}), ""),
        // Several operators hold together.
        ("n", json!({"$gt": 0, "$lt": 5}), "ab"),
        ("n", json!({"$gt": 0, "$ne": 1}), "be"),
        ("n", json!({"$gt": 5, "$lt": 0}), ""),
        ("n", json!({"$in": [1, 10, "2.5", true]}), "ace"),
        ("s", json!({"$in": ["banana", "cherry"]}), "b"),
        ("n", json!({"$in": []}), ""),
        ("absent", json!({"$in": [1]}), ""),
        // A substring of a text, a member of a list.
        ("s", json!({"$contains": "pple"}), "ac"),
        ("s", json!({"$contains": "a"}), "ab"),
        ("s", json!({"$contains": ""}), "abcf"),
        ("list", json!({"$contains": "two"}), "b"),
        ("list", json!({"$contains": "tw"}), ""),
        ("list", json!({"$contains": 1}), "b"),
        ("tags", json!({"$contains": "warm"}), "a"),
        ("n", json!({"$contains": 1}), ""),
        ("absent", json!({"$contains": "x"}), ""),
        ("n", json!({"$exists": true}), "abcde"),
        ("n", json!({"$exists": false}), "f"),
        ("absent", json!({"$exists": false}), "abcdef"),
        ("list", json!({"$exists": true}), "be"),
        ("n", json!({"$exists": true, "$gt": 1}), "be"),
        ("importance", json!({"$lte": 0.2}), "a"),
    ] {
        assert_lets_through(&tenant, &place, json!({"custom": {key: condition}}), expected);
    }
}

#[test]
fn what_a_filter_does_not_know_is_refused_rather_than_ignored() {
    let (tenant, place) = world();
    for filter in [
        json!({"tag": ["red"]}),
        json!({"Tags": ["red"]}),
        json!({"tags": ["red"], "unknown": null}),
        json!({"$and": []}),
        json!({"tags": "red"}),
        json!({"tags": [5]}),
        json!({"tags": [null]}),
        json!({"sourceType": "hearsay"}),
        json!({"sourceType": 5}),
        json!({"hasKnowledgePointer": "true"}),
        json!({"hasKnowledgePointer": 1}),
        json!({"custom": []}),
        json!({"custom": "n"}),
        json!({"custom": {"n": {"$regex": "a"}}}),
        json!({"custom": {"n": {"$not": {"$gt": 1}}}}),
        json!({"custom": {"n": {"$gt": 1, "$near": 2}}}),
        json!({"custom": {"n": {"$exists": "true"}}}),
        json!({"custom": {"n": {"$exists": 1}}}),
        json!({"custom": {"n": {"$in": 5}}}),
    ] {
        tenant.list(place.with(json!({"filter": filter}))).refused(400, "INVALID_REQUEST");
        tenant.search(place.everything(json!({"filter": filter}))).refused(400, "INVALID_REQUEST");
        let facts = json!({"identifiers": {"projectId": "p"}, "filter": filter});
        tenant.facts(facts).refused(400, "INVALID_REQUEST");
    }
    for query in ["hasKnowledgePointer=maybe", "sourceType=hearsay"] {
        tenant.client.get(&format!("/v1/memories?{}&{query}", place.query())).refused(400, "INVALID_REQUEST");
    }
}

/// A selective filter in a large scope: the limit is filled from everything that passes, not from the first so many.
#[test]
fn a_filter_comes_before_the_limit() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    tenant.add_all((0..600).map(|n| {
        place
            .with(json!({"content": format!("walrus number {n}"), "metadata": {"n": n, "rare": n % 97 == 0}}))
    }));
    let filter = json!({"custom": {"rare": true}});
    let page = tenant.page(place.with(json!({"filter": filter, "limit": 5})));
    assert_eq!((page.entries.len(), page.total), (5, 7));
    assert!(page.next.is_some());
    let answer =
        tenant.search(place.everything(json!({"filter": filter, "limit": 5, "query": "walrus number 300"})));
    let answer = answer.expect(200);
    assert_eq!((list(&answer.json["results"]).len(), &answer.json["totalCount"]), (5, &json!(7)));
    let counted = tenant.search(place.everything(json!({"limit": 1}))).expect(200);
    assert_eq!(counted.json["totalCount"], 600);
}

#[test]
fn numbers_are_compared_as_numbers_and_exactly() {
    let (tenant, place) = (Tenant::fresh(), Place::project("p"));
    let numbers =
        ["100", "1e2", "9007199254740992", "9007199254740993", "-0.0", "0.1", "18446744073709551615"];
    for (n, number) in numbers.iter().enumerate() {
        let body =
            r#"{"content":"NAME","layer":"project","identifiers":{"projectId":"p"},"metadata":{"n":NUMBER}}"#;
        let body = body.replace("NAME", &n.to_string()).replace("NUMBER", number);
        tenant.client.send("POST", "/v1/memories", Body::json_text(body)).expect(201);
    }
    for (condition, expected) in [
        (json!(100), "01"),
        (json!(100.0), "01"),
        (json!({"$in": [100]}), "01"),
        (json!({"$gte": 100, "$lte": 100}), "01"),
        (json!(9_007_199_254_740_992_u64), "2"),
        (json!(9_007_199_254_740_993_u64), "3"),
        (json!({"$gt": 9_007_199_254_740_992_u64}), "36"),
        (json!({"$gte": 18_446_744_073_709_551_615_u64}), "6"),
        (json!(0), "4"),
        (json!({"$gte": 0, "$lt": 0.1}), "4"),
        (json!(0.1), "5"),
    ] {
        assert_lets_through(&tenant, &place, json!({"custom": {"n": condition}}), expected);
    }
}
