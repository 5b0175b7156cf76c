//! Facts: memories of subject, predicate and object, stated once, asked by exact words.

use crate::support::*;

fn fact(subject: &str, predicate: &str, object: &str) -> Value {
    json!({"factType": "rule", "subject": subject, "predicate": predicate, "object": object})
}

#[test]
fn a_fact_is_a_memory_with_a_second_face() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let answer = tenant.fact(
        place
            .with(merged(fact("The API", "is_owned_by", "team Blue"), &json!({"metadata": {"tags": ["t"]}}))),
    );

    let answer = answer.expect(201);
    assert_members(&answer.json, &["fact", "created"]);
    assert_eq!(answer.json["created"], true);
    assert_eq!(answer.header("etag"), "\"v1\"");
    let stated = &answer.json["fact"];
    let members = [
        "id",
        "factType",
        "subject",
        "predicate",
        "object",
        "confidence",
        "content",
        "layer",
        "identifiers",
        "metadata",
        "state",
        "version",
        "createdAt",
        "updatedAt",
    ];
    assert_members(stated, &members);
    assert_eq!(stated["content"], "The API is owned by team Blue");
    assert_eq!(number(&stated["confidence"]), 1.0);
    assert_eq!((&stated["layer"], &stated["identifiers"]), (&json!("project"), &json!({"projectId": "p"})));
    let id = id_of(stated);
    let read = tenant.client.get(&format!("/v1/facts/{id}")).expect(200);
    assert_eq!(read.json["fact"], *stated);
    assert_eq!(read.header("etag"), "\"v1\"");

    let memory = tenant.entry(&id);
    assert_eq!((&memory["kind"], &memory["content"]), (&json!("procedural"), &stated["content"]));
    assert_members(&memory["fact"], &["factType", "subject", "predicate", "object", "confidence"]);
    assert_eq!(memory["fact"]["predicate"], "is_owned_by");
    assert_eq!(tenant.page(place.with(json!({"kinds": ["procedural"]}))).ids(), [id.as_str()]);
    let found = tenant
        .found_ids(json!({"query": "Who owns the API?", "identifiers": place.identifiers, "threshold": 0}));
    assert_eq!(found, [id]);
}

#[test]
fn the_same_statement_again_is_the_same_fact() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let statement = fact("Alice", "likes", "tea");
    let first = tenant
        .stated(&place, merged(statement.clone(), &json!({"confidence": 0.4, "metadata": {"a": 1, "b": 1}})));

    let again = merged(
        statement.clone(),
        &json!({"confidence": 0.9, "content": "Alice loves tea", "metadata": {"b": 2, "c": 3}}),
    );
    let answer = tenant.fact(place.with(again)).expect(200);

    assert_eq!(answer.json["created"], false);
    let second = &answer.json["fact"];
    assert_eq!((id_of(second), &second["version"]), (id_of(&first), &json!(2)));
    assert_eq!((number(&second["confidence"]), &second["content"]), (0.9, &json!("Alice loves tea")));
    assert_eq!(second["metadata"], json!({"a": 1, "b": 2, "c": 3}));
    assert_eq!(second["createdAt"], first["createdAt"]);
    assert_eq!(answer.header("etag"), "\"v2\"");
    for other in [
        fact("alice", "likes", "tea"),
        fact("Alice", "likes", "Tea"),
        fact("Alice", "likes ", "tea"),
        merged(statement, &json!({"factType": "Rule"})),
    ] {
        assert_eq!(tenant.fact(place.with(other)).expect(201).json["created"], true);
    }
    assert_eq!(tenant.facts(json!({"identifiers": place.identifiers})).expect(200).json["totalCount"], 5);
    tenant.fact(Place::user("v").with(fact("Alice", "likes", "tea"))).expect(201);
}

#[test]
fn of_many_equal_statements_one_fact_remains() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    for round in 0..4 {
        let statement = fact("Alice", "likes", &format!("tea {round}"));
        let answers = at_once(8, |n| {
            let mut metadata = json!({});
            metadata[format!("writer-{n}")] = json!(true);
            tenant.fact(place.with(merged(statement.clone(), &json!({"metadata": metadata}))))
        });
        let created = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(created, 1, "{answers:?}");
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)), "{answers:?}");
        let ids: Vec<String> = answers.iter().map(|answer| id_of(&answer.json["fact"])).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let entry = tenant.entry(&ids[0]);
        assert_eq!(
            (&entry["version"], names(&entry["metadata"]).len()),
            (&json!(8), 8),
            "no statement is lost"
        );
    }
    assert_eq!(tenant.page(place.with(json!({}))).total, 4);
}

#[test]
fn fields_have_a_type_and_a_length() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for member in ["factType", "subject", "predicate", "object"] {
        for wrong in [json!(null), json!(""), json!(" \n"), json!(5), json!(["a"]), json!("x".repeat(1025))] {
            let mut body = place.with(fact("s", "p", "o"));
            body[member] = wrong;
            tenant.fact(body).invalid(member);
        }
        let mut body = place.with(fact("s", "p", "o"));
        body[member] = json!("é".repeat(1024));
        tenant.fact(body).expect(201);
    }
    for wrong in [json!(-0.1), json!(1.1), json!("1"), json!(true)] {
        tenant
            .fact(place.with(merged(fact("s", "p", "o"), &json!({"confidence": wrong}))))
            .invalid("confidence");
    }
    for wrong in [json!(""), json!(" "), json!(5)] {
        tenant.fact(place.with(merged(fact("s", "p", "o"), &json!({"content": wrong})))).invalid("content");
    }
    tenant
        .fact(place.with(merged(fact("s", "p", "o"), &json!({"metadata": {"_scope": 1}}))))
        .invalid("_scope");
    tenant.fact(json!({"layer": "user", "identifiers": {}, "factType": "t", "subject": "s", "predicate": "p", "object": "o"})).refused(400, "MISSING_IDENTIFIER");
    let entry = tenant.add(place.with(json!({"kind": "procedural", "content": "a"})));
    entry.invalid("fact");
}

#[test]
fn a_fact_is_changed_under_its_own_address() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let id = id_of(&tenant.stated(&place, fact("Alice", "likes", "tea")));
    let path = format!("/v1/facts/{id}");

    let changed = tenant.client.patch(&path, json!({"object": "coffee", "confidence": 0.5})).expect(200);
    let now = &changed.json["fact"];
    assert_eq!(
        (&now["object"], &now["version"], number(&now["confidence"])),
        (&json!("coffee"), &json!(2), 0.5)
    );
    assert_eq!(now["content"], "Alice likes coffee", "rendered anew");
    assert_eq!(changed.header("etag"), "\"v2\"");
    let named =
        tenant.client.patch(&path, json!({"content": "She likes coffee", "metadata": {"a": 1}})).expect(200);
    assert_eq!(named.json["fact"]["content"], "She likes coffee");
    let stale = tenant.client.with_header("if-match", "\"v1\"");
    let refused = stale.patch(&path, json!({"object": "milk"})).refused(412, "ETAG_MISMATCH");
    assert_eq!(refused.details()["latestVersion"], 3);
    for wrong in [json!({}), json!({"unknown": 1})] {
        tenant.client.patch(&path, wrong).refused(400, "INVALID_REQUEST");
    }
    tenant.client.patch(&path, json!({"subject": ""})).invalid("subject");
    tenant.change(&id, json!({"content": "a text of its own"})).invalid("content");
    tenant.changed(&id, json!({"metadata": {"b": 2}}));
    assert_eq!(tenant.entry(&id)["metadata"], json!({"a": 1, "b": 2}));

    let deleted = tenant.client.delete(&path).expect(200);
    assert_eq!(deleted.json, json!({"success": true, "deleted": true}));
    tenant.get(&id).not_found();
    assert_eq!(tenant.client.delete(&path).expect(200).json["deleted"], false);
}

#[test]
fn what_is_no_fact_is_not_there() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "a note");
    let path = format!("/v1/facts/{id}");
    tenant.client.get(&path).not_found();
    tenant.client.patch(&path, json!({"object": "o"})).not_found();
    assert_eq!(tenant.client.delete(&path).expect(200).json["deleted"], false);
    assert_eq!(tenant.entry(&id)["version"], 1);
}

/// Facts in several layers with equal subjects, told apart by confidence and age.
fn opinions() -> (Tenant, Vec<Value>) {
    let tenant = Tenant::fresh();
    let mut facts = Vec::new();
    for (n, place) in tenant.every_layer().iter().enumerate() {
        for (m, confidence) in [0.5, 0.9, 0.5].into_iter().enumerate() {
            let body = merged(
                fact("Alice", ["likes", "likes", "hates"][m], &format!("tea {n}{m}")),
                &json!({"confidence": confidence}),
            );
            facts.push(tenant.stated(place, body));
        }
    }
    (tenant, facts)
}

#[test]
fn facts_are_ordered_by_layer_then_confidence_then_age() {
    let (tenant, facts) = opinions();
    let query = |members: Value| {
        let answer =
            tenant.facts(merged(json!({"identifiers": tenant.all_identifiers()}), &members)).expect(200);
        assert_members(&answer.json, &["facts", "nextCursor", "totalCount"]);
        let facts = list(&answer.json["facts"]);
        (
            facts.iter().map(|fact| text(&fact["object"])).collect::<Vec<_>>(),
            answer.json["totalCount"].as_u64().unwrap(),
        )
    };
    let expected: Vec<String> = (0..7).flat_map(|n| [1, 2, 0].map(|m| format!("tea {n}{m}"))).collect();
    assert_eq!(query(json!({})), (expected.clone(), facts.len() as u64));
    let one: Vec<String> = expected[3..6].to_vec();
    assert_eq!(query(json!({"layers": ["user"]})), (one.clone(), 3));
    let got = tenant.client.get("/v1/facts?layer=user&userId=u1").expect(200);
    let got: Vec<String> = list(&got.json["facts"]).iter().map(|fact| text(&fact["object"])).collect();
    assert_eq!(got, one);
    assert_eq!(query(json!({"predicate": "hates"})).1, 7);
    assert_eq!(query(json!({"subject": "alice"})).1, 0, "to the letter");
    assert_eq!(query(json!({"object": "tea 42"})).0, ["tea 42"]);
    assert_eq!(
        query(json!({"factType": "rule", "subject": "Alice", "predicate": "likes", "object": "tea 00"})).1,
        1
    );
    assert_eq!(query(json!({"minConfidence": 0.5})).1, 21);
    assert_eq!(query(json!({"minConfidence": 0.500_001})).1, 7);
    assert_eq!(query(json!({"factType": "other"})).1, 0);
    assert_eq!(
        query(json!({"filter": {"custom": {"x": {"$exists": false}}}, "layers": ["org", "org"]})).1,
        3
    );
    let got =
        tenant.client.get("/v1/facts?layer=user&userId=u1&predicate=hates&minConfidence=0.2").expect(200);
    assert_eq!(got.json["totalCount"], 1);
}

#[test]
fn resolving_leaves_one_fact_per_subject_and_predicate() {
    let (tenant, _) = opinions();
    let resolve = |identifiers: Value| {
        let answer = tenant.facts(json!({"identifiers": identifiers, "resolve": true})).expect(200);
        let objects =
            list(&answer.json["facts"]).iter().map(|fact| text(&fact["object"])).collect::<Vec<_>>();
        assert_eq!(answer.json["totalCount"], objects.len());
        objects
    };
    assert_eq!(resolve(tenant.all_identifiers()), ["tea 01", "tea 02"], "the strongest layer");
    assert_eq!(resolve(json!({"projectId": "p1", "teamId": "t1"})), ["tea 31", "tea 32"]);
    let newest = tenant
        .stated(&Place::project("p1"), merged(fact("Alice", "likes", "newest"), &json!({"confidence": 0.9})));
    assert_eq!(resolve(json!({"projectId": "p1", "teamId": "t1"})), ["newest", "tea 32"]);
    tenant.client.patch(&format!("/v1/facts/{}", id_of(&newest)), json!({"confidence": 0.1})).expect(200);
    assert_eq!(resolve(json!({"projectId": "p1"})), ["tea 31", "tea 32"], "confidence before age");
}

#[test]
fn pages_of_facts_add_up() {
    let (tenant, facts) = opinions();
    for (limit, resolve) in [(1, false), (4, false), (21, false), (1, true)] {
        let mut body = json!({"identifiers": tenant.all_identifiers(), "limit": limit, "resolve": resolve});
        let whole = tenant.facts(merged(body.clone(), &json!({"limit": 1000}))).expect(200);
        let ids = |answer: &Answer| list(&answer.json["facts"]).iter().map(id_of).collect::<Vec<_>>();
        let mut seen = Vec::new();
        loop {
            let page = tenant.facts(body.clone()).expect(200);
            assert_eq!(page.json["totalCount"], whole.json["totalCount"]);
            seen.extend(ids(&page));
            match page.json["nextCursor"].as_str() {
                Some(cursor) => body["cursor"] = json!(cursor),
                None => break,
            }
        }
        assert_eq!(seen, ids(&whole), "{limit} {resolve}");
        assert!(resolve || seen.len() == facts.len());
    }
    let body = json!({"identifiers": tenant.all_identifiers(), "limit": 1});
    let cursor = tenant.facts(body.clone()).json["nextCursor"].clone();
    for other in [
        json!({"subject": "Alice"}),
        json!({"resolve": true}),
        json!({"layers": ["user"]}),
        json!({"minConfidence": 0.1}),
        json!({"filter": {"tags": ["x"]}}),
        json!({"cursor": "garbage"}),
        json!({"identifiers": {"userId": "u1"}}),
    ] {
        let body = merged(merged(body.clone(), &json!({"cursor": cursor})), &other);
        tenant.facts(body).refused(400, "INVALID_CURSOR");
    }
}

#[test]
fn words_of_a_query_are_bound_and_never_part_of_it() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let nasty = ["' OR 1=1 --", "%", "_", "\"; DROP TABLE memories;", "?1", "$1", ":subject", "\\", "*"];
    for word in nasty {
        tenant.stated(&place, fact(word, word, word));
    }
    for word in nasty {
        for member in ["subject", "predicate", "object"] {
            let mut body = json!({"identifiers": place.identifiers});
            body[member] = json!(word);
            let answer = tenant.facts(body).expect(200);
            assert_eq!(answer.json["totalCount"], 1, "{word}");
            assert_eq!(answer.json["facts"][0]["subject"], word);
        }
    }
}

/// However it comes about, a scope never holds one statement twice, and trying is nobody's fault.
#[test]
fn a_statement_stays_one_fact_whichever_way_it_is_made() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let tea = tenant.stated(&place, fact("Alice", "likes", "tea"));
    let milk = tenant.stated(&place, fact("Alice", "likes", "milk"));
    let count = || {
        tenant.facts(json!({"identifiers": place.identifiers, "object": "tea"})).expect(200).json["totalCount"].clone()
    };

    let moved = tenant.client.patch(&format!("/v1/facts/{}", id_of(&milk)), json!({"object": "tea"}));
    assert!(moved.status < 500, "{}", moved.describe());
    assert_eq!(count(), 1, "{}", moved.describe());
    let added = tenant.add(place.with(json!({"kind": "procedural", "fact": fact("Alice", "likes", "tea")})));
    assert!(added.status < 500, "{}", added.describe());
    assert_eq!(count(), 1, "{}", added.describe());
    let twice = [fact("Bob", "likes", "tea"), fact("Bob", "likes", "tea")]
        .map(|fact| place.with(json!({"kind": "procedural", "fact": fact})));
    let bulk = tenant.client.post("/v1/memories:bulkAdd", json!({"memories": twice}));
    assert_eq!(bulk.expect(200).status, 200);
    assert_eq!(count(), 2);
    let again = tenant.fact(place.with(fact("Alice", "likes", "tea"))).expect(200);
    assert_eq!(id_of(&again.json["fact"]), id_of(&tea));
}

#[test]
fn an_archived_fact_that_was_stated_anew_cannot_come_back() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let id = id_of(&tenant.stated(&place, fact("Alice", "likes", "tea")));
    let verb = |verb: &str| tenant.client.post(&format!("/v1/memories/{id}/{verb}"), json!({}));
    verb("archive").expect(200);
    tenant.stated(&place, fact("Alice", "likes", "tea"));

    verb("restore").refused(409, "INVALID_STATE");

    assert_eq!(tenant.entry(&id)["state"], "archived");
    assert_eq!(tenant.facts(json!({"identifiers": place.identifiers})).expect(200).json["totalCount"], 1);
}
