//! The knowledge protocol's query: modes, distances, filters, and which layers a question reaches.

use crate::instants::*;
use crate::openspec::*;
use crate::support::*;

#[track_caller]
fn ask(tenant: &Tenant, body: Value) -> Answer {
    tenant.client.post(&format!("{KNOWLEDGE}/query"), body)
}

/// The answer to a question of user `u`.
#[track_caller]
fn query(tenant: &Tenant, members: Value) -> Value {
    let answer = ask(tenant, merged(json!({"layer": {"user_id": "u"}}), &members)).expect(200);
    assert_headers(&answer);
    let known = ["query_id", "results", "metadata", "streaming_url"];
    assert!(names(&answer.json).iter().all(|name| known.contains(name)), "{}", answer.describe());
    let metadata = &answer.json["metadata"];
    assert_members(metadata, &["total_results", "execution_time_ms", "layers_queried", "provider"]);
    assert_members(&metadata["provider"], &["name", "version"]);
    assert!(metadata["execution_time_ms"].is_number() && !text(&answer.json["query_id"]).is_empty());
    let results = list(&answer.json["results"]);
    for result in &results {
        let known = ["entry", "score", "distance", "highlight"];
        assert!(names(result).iter().all(|name| known.contains(name)), "{result}");
        assert_knowledge(&result["entry"]);
        assert!((0.0..=1.0).contains(&number(&result["score"])), "{result}");
    }
    assert!(
        results.is_sorted_by(|a, b| number(&a["score"]) >= number(&b["score"])),
        "by score: {}",
        answer.describe()
    );
    answer.json
}

/// The contents that a question of user `u` finds, in order.
#[track_caller]
fn found(tenant: &Tenant, members: Value) -> Vec<String> {
    list(&query(tenant, members)["results"]).iter().map(|result| text(&result["entry"]["content"])).collect()
}

/// A tenant with some knowledge of user `u`.
fn library() -> Tenant {
    let tenant = Tenant::fresh();
    let user = Place::user("u");
    let entries = [
        ("Use PostgreSQL for all new services", json!({"tags": ["db", "rule"], "author": "ann", "own": 3})),
        (
            "Deploys happen on Tuesdays",
            json!({"tags": ["ops"], "author": "bob", "title": "Release calendar"}),
        ),
        ("My dog is called Rex", json!({"tags": ["pets"], "language": "en"})),
        ("The cafeteria closes at three", json!({})),
    ];
    for (content, metadata) in entries {
        tenant.say_with(&user, json!({"content": content, "metadata": metadata}));
    }
    tenant
}

#[test]
fn meaning_words_or_both() {
    let tenant = library();
    let question = "Which database should a new service use?";
    for mode in ["semantic", "hybrid"] {
        let found = found(&tenant, json!({"query": question, "mode": mode}));
        assert_eq!(found[0], "Use PostgreSQL for all new services", "{mode}");
    }
    assert_eq!(
        found(&tenant, json!({"query": question})),
        found(&tenant, json!({"query": question, "mode": "semantic"})),
        "the default"
    );
    assert_eq!(
        found(&tenant, json!({"query": "postgresql", "mode": "keyword"})),
        ["Use PostgreSQL for all new services"]
    );
    assert_eq!(
        found(&tenant, json!({"query": "calendar", "mode": "keyword"})),
        ["Deploys happen on Tuesdays"],
        "a title"
    );
    assert_eq!(
        found(&tenant, json!({"query": "pets", "mode": "keyword"})),
        ["My dog is called Rex"],
        "a tag"
    );
    assert_eq!(found(&tenant, json!({"query": "zeppelin", "mode": "keyword"})), Vec::<String>::new());
    assert_eq!(
        found(&tenant, json!({"query": "zeppelin"})).len(),
        4,
        "without a threshold everything matches"
    );
    ask(&tenant, json!({"query": "x", "mode": "psychic", "layer": {"user_id": "u"}})).fails(
        400,
        400,
        "INVALID_REQUEST",
    );
    ask(&tenant, json!({"query": "", "layer": {"user_id": "u"}})).fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, json!({"layer": {"user_id": "u"}})).fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, json!({"query": "x".repeat(8193), "layer": {"user_id": "u"}})).fails(
        422,
        422,
        "QUERY_TOO_LONG",
    );
}

#[test]
fn distances_are_those_of_the_raw_vectors() {
    let tenant = library();
    let question = "Which database should a new service use?";
    let vector = |id: &str| -> Vec<f64> {
        let shown = tenant.get(&format!("{id}?includeEmbedding=true")).expect(200).json;
        list(&shown["memory"]["embedding"]).iter().map(number).collect()
    };
    let asked = vector(&tenant.say(&Place::user("asker"), question));
    for metric in ["cosine", "euclidean", "dot"] {
        let answer = query(&tenant, json!({"query": question, "options": {"distance_metric": metric}}));
        let mut distances = Vec::new();
        for result in list(&answer["results"]) {
            let other = vector(&id_of(&result["entry"]));
            let dot: f64 = asked.iter().zip(&other).map(|(a, b)| a * b).sum();
            let l2: f64 = asked.iter().zip(&other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let expected = if metric == "euclidean" { l2 } else { 1.0 - dot };
            let distance = number(&result["distance"]);
            assert!((distance - expected).abs() < 1e-4, "{metric}: {distance} is not {expected}");
            distances.push(distance);
        }
        assert_eq!(distances.len(), 4);
        assert!(distances.is_sorted(), "{metric}: {distances:?}");

        // Inclusive: what is exactly as far as asked for belongs to it.
        for (count, threshold) in distances.iter().enumerate() {
            let options = json!({"distance_metric": metric, "distance_threshold": threshold});
            let near = query(&tenant, json!({"query": question, "options": options}));
            assert_eq!(list(&near["results"]).len(), count + 1, "{metric} {threshold}");
            assert_eq!(near["metadata"]["total_results"], count + 1);
        }
    }
    let options =
        |members: Value| ask(&tenant, json!({"query": "x", "options": members, "layer": {"user_id": "u"}}));
    options(json!({"distance_metric": "manhattan"})).fails(400, 400, "INVALID_REQUEST");
    options(json!({"distance_threshold": "far"})).fails(400, 400, "INVALID_REQUEST");
}

#[test]
fn pages_are_cut_from_the_candidates() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let words = [
        "red", "green", "blue", "amber", "violet", "black", "white", "brown", "pink", "grey", "teal", "gold",
    ];
    tenant.add_all(words.iter().map(|word| place.with(json!({"content": format!("The {word} lamp")}))));
    let page = |options: Value| found(&tenant, json!({"query": "The red lamp", "options": options}));

    let all = page(json!({"limit": 100}));
    assert_eq!(all.len(), 12);
    assert_eq!(page(json!({})), all[..10], "ten by default");
    assert_eq!(page(json!({"limit": 3})), all[..3]);
    assert_eq!(page(json!({"limit": 3, "offset": 3})), all[3..6]);
    assert_eq!(page(json!({"limit": 100, "offset": 11})), all[11..]);
    assert_eq!(page(json!({"offset": 12})), Vec::<String>::new());
    assert_eq!(page(json!({"top_k": 5})), all[..5]);
    assert_eq!(page(json!({"top_k": 5, "offset": 3})), all[3..5], "candidates are cut first");
    assert_eq!(page(json!({"top_k": 5, "offset": 5})), Vec::<String>::new());
    assert_eq!(page(json!({"top_k": 100, "limit": 2})), all[..2]);
    assert_eq!(
        query(&tenant, json!({"query": "lamp", "options": {"limit": 2}}))["metadata"]["total_results"],
        12
    );
    for far in [json!({"offset": 1_000_000_000_u64}), json!({"offset": i64::MAX}), json!({"top_k": i64::MAX})]
    {
        let answer = ask(&tenant, json!({"query": "x", "options": far, "layer": {"user_id": "u"}}));
        assert!(matches!(answer.status, 200 | 400), "{}", answer.describe());
    }
    for wrong in [
        json!({"limit": 0}),
        json!({"limit": 101}),
        json!({"offset": -1}),
        json!({"offset": 1.5}),
        json!({"top_k": 0}),
    ] {
        ask(&tenant, json!({"query": "x", "options": wrong, "layer": {"user_id": "u"}})).fails(
            400,
            400,
            "INVALID_REQUEST",
        );
    }
}

#[test]
fn content_and_embeddings_are_shown_as_wanted() {
    let tenant = library();
    let first = |options: Value| {
        query(&tenant, json!({"query": "Rex the dog", "options": options}))["results"][0]["entry"].clone()
    };
    assert!(first(json!({}))["content"].is_string() && !names(&first(json!({}))).contains("embedding"));
    let bare = first(json!({"include_content": false}));
    assert!(!names(&bare).contains("content"), "{bare}");
    assert_eq!(list(&first(json!({"include_embeddings": true}))["embedding"]).len(), 256);
    let hidden =
        query(&tenant, json!({"query": "dog Rex", "mode": "keyword", "options": {"include_content": false}}));
    assert!(!hidden.to_string().contains("called"), "nor in a highlight: {hidden}");
}

#[test]
fn filters_narrow_and_unknown_ones_are_refused() {
    let tenant = library();
    let filtered = |filters: Value| sorted(found(&tenant, json!({"query": "anything", "filters": filters})));
    let (db, deploys, dog) =
        ("Use PostgreSQL for all new services", "Deploys happen on Tuesdays", "My dog is called Rex");
    assert_eq!(filtered(json!({"tags": ["db"]})), [db]);
    assert_eq!(filtered(json!({"tags": ["ops", "pets"]})), [deploys, dog]);
    assert_eq!(filtered(json!({"tags": []})).len(), 4);
    assert_eq!(filtered(json!({"author": "ann"})), [db]);
    assert_eq!(filtered(json!({"author": "ann", "tags": ["ops"]})), Vec::<String>::new(), "all of them");
    assert_eq!(filtered(json!({"custom_filters": {"own": {"$gte": 3}}})), [db]);
    assert_eq!(filtered(json!({"custom_filters": {"language": "en"}})), [dog]);
    assert_eq!(filtered(json!({"access_policy": "private"})).len(), 4);
    assert_eq!(filtered(json!({"access_policy": "public"})), Vec::<String>::new());
    for wrong in [
        json!({"colour": "red"}),
        json!({"tags": "db"}),
        json!({"custom_filters": {"own": {"$near": 3}}}),
        json!({"created_after": "soon"}),
        json!({"source_type": "rumour"}),
        json!({"access_policy": "nobody"}),
    ] {
        ask(&tenant, json!({"query": "x", "filters": wrong, "layer": {"user_id": "u"}})).fails(
            400,
            400,
            "INVALID_REQUEST",
        );
    }

    let of = |source: &str| {
        let entry = json!({"content": source, "source": {"type": source, "identifier": "x"}});
        tenant.created(entry, json!({"type": "user", "user_id": "u"}))
    };
    for source in ["web_scrape", "api_import", "git_repository"] {
        of(source);
    }
    assert_eq!(filtered(json!({"source_type": "web_scrape"})), ["web_scrape"], "not every import");
    assert_eq!(filtered(json!({"source_type": "git_repository"})), ["git_repository"]);
}

#[test]
fn times_are_inclusive() {
    let tenant = Tenant::fresh();
    let entries: Vec<Value> = ["one", "two", "three"]
        .iter()
        .map(|content| tenant.added(Place::user("u").with(json!({"content": content}))))
        .collect();
    let between = |filters: Value| sorted(found(&tenant, json!({"query": "number", "filters": filters})));
    let at = |n: usize| entries[n]["createdAt"].clone();
    assert_eq!(between(json!({"created_after": at(1)})), ["three", "two"]);
    assert_eq!(between(json!({"created_before": at(1)})), ["one", "two"]);
    assert_eq!(between(json!({"created_after": at(1), "created_before": at(1)})), ["two"]);
    assert_eq!(between(json!({"created_after": after(&at(2), 1e-6)})), Vec::<String>::new());
}

#[test]
fn a_question_covers_what_the_table_says() {
    let tenant = Tenant::fresh();
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let all = tenant.all_identifiers();
    for place in tenant.every_layer() {
        for kind in KINDS {
            let members = json!({"content": format!("{} {kind}", place.layer), "kind": kind});
            let members =
                if kind == "procedural" { merged(members, &json!({"fact": fact})) } else { members };
            let answer = tenant.add(place.with(members));
            assert!(matches!(answer.status, 201 | 400), "{}", answer.describe());
        }
    }
    let mut ids = json!({});
    for (name, value) in all.as_object().unwrap() {
        ids[format!("{}_id", name.trim_end_matches("Id"))] = value.clone();
    }
    let of = |types: &[&str]| {
        let layer = merged(ids.clone(), &json!({"types": types}));
        let answer = ask(&tenant, json!({"query": "anything", "options": {"limit": 100}, "layer": layer}))
            .expect(200)
            .json;
        assert_eq!(answer["metadata"]["layers_queried"], json!(types));
        sorted(list(&answer["results"]).iter().map(|result| text(&result["entry"]["content"])))
    };
    let those = |wanted: &dyn Fn(&str, &str) -> bool| {
        let allowed = |layer: &str, kind: &str| match kind {
            "working" => matches!(layer, "agent" | "user" | "session"),
            "session" => layer == "session",
            "user_personal" => layer == "user",
            _ => true,
        };
        let every = LAYERS.iter().flat_map(|(layer, _)| KINDS.iter().map(move |kind| (*layer, *kind)));
        sorted(every.filter(|(l, k)| allowed(l, k) && wanted(l, k)).map(|(l, k)| format!("{l} {k}")))
    };
    let shared = |layer: &str| matches!(layer, "project" | "team" | "org" | "company");
    assert_eq!(of(&["working"]), those(&|_, kind| kind == "working"));
    assert_eq!(of(&["session"]), those(&|layer, kind| layer == "session" && kind != "archival"));
    for kind in ["episodic", "semantic", "procedural", "archival"] {
        assert_eq!(of(&[kind]), those(&|_, k| k == kind), "{kind}");
    }
    assert_eq!(
        of(&["user"]),
        those(&|layer, kind| layer == "user" && !matches!(kind, "working" | "archival"))
    );
    assert_eq!(of(&["organization"]), those(&|layer, kind| shared(layer) && kind != "archival"));
    let both = those(&|layer, kind| {
        kind == "episodic" || (layer == "user" && !matches!(kind, "working" | "archival"))
    });
    assert_eq!(of(&["episodic", "user"]), both);
}

#[test]
fn identifiers_decide_which_layers_are_reached() {
    let tenant = Tenant::fresh();
    let company = tenant.name.clone();
    for place in tenant.every_layer() {
        tenant.say_with(&place, json!({"content": place.layer, "kind": "semantic"}));
    }
    let layers = |tenant: &Tenant, layer: Value| {
        let answer = ask(tenant, json!({"query": "anything", "layer": layer})).expect(200).json;
        sorted(list(&answer["results"]).iter().map(|result| text(&result["entry"]["content"])))
    };
    assert_eq!(layers(&tenant, json!({"user_id": "u1"})), ["user"], "one user does not drag in the company");
    assert_eq!(layers(&tenant, json!({"user_id": "u1", "session_id": "s1"})), ["session", "user"]);
    assert_eq!(layers(&tenant, json!({"user_id": "u1", "agent_id": "a1"})), ["agent", "user"]);
    assert_eq!(layers(&tenant, json!({"project_id": "p1", "team_id": "t1"})), ["project", "team"]);
    assert_eq!(layers(&tenant, json!({"company_id": company})), ["company"]);
    assert_eq!(layers(&tenant, json!({})), ["company"], "nobody named: the tenant");
    assert_eq!(layers(&tenant, json!({"types": ["organization"], "user_id": "u1"})), ["company"]);
    assert_eq!(layers(&tenant, json!({"types": ["organization"], "team_id": "t1"})), ["company", "team"]);
    let me = tenant.as_user("u1");
    assert_eq!(layers(&me, json!({"session_id": "s1"})), ["session", "user"], "the user is the one who asks");
    ask(&me, json!({"query": "x", "layer": {"user_id": "u2"}})).fails(403, 403, "FORBIDDEN");
    ask(&tenant, json!({"query": "x", "layer": {"company_id": "another"}})).fails(403, 403, "FORBIDDEN");
    ask(&tenant, json!({"query": "x", "layer": {"types": ["galaxy"]}})).expect(400);
    let without = ask(&me, json!({"query": "anything"})).expect(200).json;
    let contents = sorted(list(&without["results"]).iter().map(|result| text(&result["entry"]["content"])));
    assert!(contents.contains(&"user".to_owned()), "{without}");
}

#[test]
fn the_answer_is_ranked_by_score_across_layers() {
    let tenant = Tenant::fresh();
    tenant.say(&Place::user("u"), "The cafeteria closes at three");
    tenant.say(&Place::project("p"), "Deploys happen on Tuesdays");
    let layer = json!({"user_id": "u", "project_id": "p"});
    let answer =
        ask(&tenant, json!({"query": "Deploys happen on Tuesdays", "layer": layer})).expect(200).json;
    let order: Vec<String> =
        list(&answer["results"]).iter().map(|result| text(&result["entry"]["layer"]["scope"])).collect();
    assert_eq!(order, ["project", "user"]);
    assert!(number(&answer["results"][0]["distance"]) < 1e-4);

    // Duplicates go: the more specific layer survives.
    tenant.say(&Place::user("u"), "deploys happen on tuesdays!");
    let answer =
        ask(&tenant, json!({"query": "Deploys happen on Tuesdays", "layer": layer})).expect(200).json;
    let scopes =
        sorted(list(&answer["results"]).iter().map(|result| text(&result["entry"]["layer"]["scope"])));
    assert_eq!(scopes, ["user", "user"]);
}
