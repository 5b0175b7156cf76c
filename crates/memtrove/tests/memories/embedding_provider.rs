//! Embeddings made elsewhere: what fails fails closed, what is transient is tried again, and without any model words remain.

use crate::embedder::*;
use crate::openspec::*;
use crate::support::*;
use std::time::{Duration, Instant};

fn broken() -> Reply {
    Reply(500, None, json!({"error": {"message": "the text was: the heron waits"}}))
}

#[test]
fn entries_are_embedded_by_the_model_that_is_configured() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    let answer = tenant.add(place.with(json!({"content": "aaaa"}))).expect(201).json;
    assert_eq!(answer["embeddingGenerated"], true);
    assert!(text(&answer["memory"]["embeddingModel"]).contains("tiny"), "{answer}");
    let first = &embedder.requests()[0];
    assert_eq!((&first["model"], &first["input"]), (&json!("tiny"), &json!(["aaaa"])));
    let shown = tenant.get(&format!("{}?includeEmbedding=true", id_of(&answer["memory"]))).expect(200).json;
    let vector: Vec<f64> = list(&shown["memory"]["embedding"]).iter().map(number).collect();
    let norm = 17.0_f64.sqrt();
    assert!(
        vector.iter().zip([4.0 / norm, 0.0, 1.0 / norm]).all(|(a, b)| (a - b).abs() < 1e-6),
        "{vector:?}"
    );

    // An unknown model is not calibrated: the score is the similarity.
    tenant.say(&place, "bbbb");
    let results = tenant.results(place.everything(json!({"query": "aaab", "mode": "semantic"})));
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["memory"]["content"], "aaaa");
    for result in &results {
        assert!((number(&result["score"]) - number(&result["similarity"])).abs() < 1e-6, "{result}");
    }
    let expected = (3.0 * 4.0 + 1.0) / (17.0_f64 * 11.0).sqrt();
    assert!((number(&results[0]["similarity"]) - expected).abs() < 1e-5, "{}", results[0]);
    let capabilities = tenant.client.get("/v1/memories:capabilities").expect(200).json;
    assert_eq!(
        (&capabilities["embedding"]["provider"], &capabilities["embedding"]["dimensions"]),
        (&json!("openai"), &json!(3))
    );
}

#[test]
fn without_an_embedding_nothing_is_stored() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    let before = tenant.added(place.with(json!({"content": "before", "metadata": {"a": 1}})));
    let id = id_of(&before);

    embedder.becomes(|_, _| broken());
    let failed =
        tenant.add(place.with(json!({"content": "the heron waits"}))).refused(503, "EMBEDDING_FAILED");
    assert!(!failed.text.contains("heron"), "{}", failed.describe());
    assert_eq!(embedder.requests().len(), 3, "three attempts in total");

    tenant
        .change(&id, json!({"content": "the stork waits", "metadata": {"b": 2}}))
        .refused(503, "EMBEDDING_FAILED");
    assert_eq!(tenant.entry(&id), before, "not even its metadata");
    let fact = json!({"factType": "t", "subject": "heron", "predicate": "p", "object": "o"});
    tenant.fact(place.with(fact)).refused(503, "EMBEDDING_FAILED");
    let bulk = json!({"memories": [place.with(json!({"content": "heron one"})), place.with(json!({"content": "heron two"}))]});
    let answer = tenant.client.post("/v1/memories:bulkAdd", bulk.clone());
    match answer.status {
        200 => assert_eq!((&answer.json["added"], &answer.json["failed"]), (&json!(0), &json!(2))),
        _ => _ = answer.refused(503, "EMBEDDING_FAILED"),
    }
    let atomic = merged(bulk, &json!({"atomic": true}));
    tenant.client.post("/v1/memories:bulkAdd", atomic).refused(503, "EMBEDDING_FAILED");
    tenant
        .create(json!({"content": "a knowing heron"}), json!({"layer": {"type": "user", "user_id": "u"}}))
        .fails(503, 1001, "EMBEDDING_FAILED");
    assert_eq!(tenant.page(place.with(json!({}))).total, 1);

    // What needs no embedding goes on.
    assert_eq!(tenant.changed(&id, json!({"metadata": {"b": 2}}))["metadata"], json!({"a": 1, "b": 2}));
    assert_eq!(tenant.changed(&id, json!({"content": "before"}))["version"], 3);
    let options = json!({"generate_embedding": false, "layer": {"type": "user", "user_id": "u"}});
    tenant.create(json!({"content": "not embedded"}), options).expect(201);
    let health = tenant.client.get("/v1/memories:health");
    assert!(matches!(health.status, 200 | 503), "{}", health.describe());
    let log = server.log();
    assert!(!log.contains("heron") && !log.contains("sk-secret"), "neither key nor text is logged");
}

#[test]
fn a_failed_request_is_not_remembered_under_its_key() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme").with_header("idempotency-key", "k1");
    let body = Place::user("u").with(json!({"content": "the heron waits"}));
    embedder.becomes(|_, _| Reply(400, None, json!({})));
    tenant.add(body.clone()).refused(503, "EMBEDDING_FAILED");
    embedder.becomes(|_, request| good(request));
    let first = tenant.add(body.clone()).expect(201);
    assert_eq!(first.header("idempotency-replayed"), "");
    assert_eq!(tenant.add(body).expect(201).header("idempotency-replayed"), "true");
}

#[test]
fn what_is_transient_is_tried_again_and_what_is_not_is_not() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    let add = |content: &str| tenant.add(Place::user("u").with(json!({"content": content})));

    embedder.becomes(|n, request| if n < 2 { broken() } else { good(request) });
    add("third time lucky").expect(201);
    assert_eq!(embedder.requests().len(), 3);

    embedder.becomes(|_, _| Reply(400, None, json!({})));
    add("never").refused(503, "EMBEDDING_FAILED");
    assert_eq!(embedder.requests().len(), 1, "a refusal is final");

    embedder.becomes(
        |n, request| if n == 0 { Reply(429, Some(("retry-after", "1")), json!({})) } else { good(request) },
    );
    let begin = Instant::now();
    add("when asked to wait").expect(201);
    assert!(
        begin.elapsed() >= Duration::from_millis(950),
        "it says when to come back: {:?}",
        begin.elapsed()
    );

    embedder.becomes(|_, _| Reply(429, Some(("retry-after", "120")), json!({})));
    let begin = Instant::now();
    let refused = add("too long a wait").refused(429, "RATE_LIMITED");
    assert!(begin.elapsed() < Duration::from_secs(5), "longer than the deadline: not waited for");
    assert_eq!(refused.header("retry-after"), refused.details()["retryAfterSeconds"].to_string());
}

#[test]
fn a_refusal_for_good_is_not_worth_another_request() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    for (status, is_passing) in [
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (422, false),
        (408, true),
        (429, true),
        (500, true),
        (503, true),
    ] {
        embedder.becomes(move |_, _| Reply(status, None, json!({"error": "no"})));
        let add = tenant.add(place.with(json!({"content": "the heron waits"})));
        let search = tenant.search(place.everything(json!({"mode": "semantic"})));
        let create = tenant.create(json!({"content": "the heron waits"}), json!({}));
        for answer in [add, search, create] {
            assert_eq!(answer.json["error"]["retryable"], is_passing, "{status}: {}", answer.describe());
        }
        // After failures in a row it is left alone for a while; a refusal says that it is there.
        embedder.becomes(|_, request| good(request));
        let deadline = Instant::now() + Duration::from_secs(20);
        while tenant.add(place.with(json!({"content": "again"}))).status != 201 {
            assert!(Instant::now() < deadline, "it is not asked again after {status}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn who_refuses_everything_is_not_asked_again_and_again_in_the_background() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    embedder.becomes(|_, _| Reply(400, None, json!({})));
    let tell = |n: usize| {
        let event = json!({"event_id": format!("e{n}"), "tenant_id": "acme", "user_id": "u", "source_type": "chat",
            "timestamp": "2026-02-15T00:00:00Z", "digest": "the heron waits"});
        tenant.client.post("/v1/tenants/acme/users/u/events", json!({"event": event})).expect(202);
    };
    // Each event is embedded as it is written, and wakes whoever makes up for what failed.
    (0..40).for_each(tell);
    let asked = embedder.requests().len();
    assert!(asked <= 40 + 4, "{asked} requests for 40 events");
}

#[test]
fn an_answer_that_is_no_answer_is_a_failure() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    let one = |embedding: Value| Reply(200, None, json!({"data": [{"index": 0, "embedding": embedding}]}));
    type Answer = fn(&dyn Fn(Value) -> Reply) -> Reply;
    let wrong: [Answer; 7] = [
        |one| one(json!([1.0, 0.0])),
        |one| one(json!([1.0, 0.0, 0.0, 0.0])),
        |one| one(json!([])),
        |one| one(json!([1.0, null, 0.0])),
        |one| one(json!(["1", 0, 0])),
        |_| Reply(200, None, json!({"data": []})),
        |_| Reply(200, None, json!("hello")),
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        embedder.becomes(move |_, _| wrong(&one));
        tenant
            .add(place.with(json!({"content": format!("wrong {number}")})))
            .refused(503, "EMBEDDING_FAILED");
    }
    embedder.becomes(|_, request| {
        // Out of order and not of unit length, as some servers answer.
        let data = list(&request["input"]).into_iter().enumerate().rev().map(|(index, text)| {
            let value = if text == "left" { json!([3.0, 0.0, 0.0]) } else { json!([0.0, 3.0, 0.0]) };
            json!({"index": index, "embedding": value})
        });
        Reply(200, None, json!({"data": data.collect::<Vec<_>>()}))
    });
    let ids = tenant.add_all(["left", "right"].map(|content| place.with(json!({"content": content}))));
    let vector = |id: &str| {
        tenant.get(&format!("{id}?includeEmbedding=true")).expect(200).json["memory"]["embedding"].clone()
    };
    assert_eq!(vector(&ids[0]), json!([1.0, 0.0, 0.0]));
    assert_eq!(vector(&ids[1]), json!([0.0, 1.0, 0.0]));

    // All nought is legal: similar to nothing, and never NaN.
    embedder.becomes(move |_, _| one(json!([0.0, 0.0, 0.0])));
    let blank = tenant.say(&place, "blank");
    embedder.becomes(|_, request| good(request));
    let results = tenant.results(place.everything(json!({"query": "left turn", "mode": "semantic"})));
    let result = results.iter().find(|result| id_of(&result["memory"]) == blank).expect("it matches nought");
    assert_eq!(number(&result["similarity"]), 0.0);
}

#[test]
fn a_search_that_cannot_be_embedded_says_so() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    tenant.say(&place, "the heron waits");
    embedder.becomes(|_, _| broken());
    let body = place.everything(json!({"query": "which bird?", "mode": "semantic"}));
    tenant.search(body).refused(503, "EMBEDDING_FAILED");
    let body = json!({"query": "heron", "mode": "keyword", "layer": {"user_id": "u"}});
    let found = tenant.client.post(&format!("{KNOWLEDGE}/query"), body).expect(200).json;
    assert_eq!(list(&found["results"]).len(), 1, "words need no model");
}

#[test]
fn a_text_is_embedded_once() {
    let embedder = Embedder::start();
    let server = embedder.used_by("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    tenant.say(&place, "the heron waits");
    let asked = embedder.requests().len();
    tenant.say(&place, "the heron waits");
    assert_eq!(embedder.requests().len(), asked, "the same text in the same tenant");
    tenant.say(&place, "The heron waits");
    assert_eq!(embedder.requests().len(), asked + 1, "similar is not the same");
    Tenant::of(&server, "other").say(&place, "the heron waits");
    assert_eq!(embedder.requests().len(), asked + 2, "tenants share nothing");
}

#[test]
fn without_a_model_words_remain() {
    let server = server_with("[embedding]\nprovider = \"none\"\n");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    let answer = tenant.add(place.with(json!({"content": "the heron waits in the reeds"}))).expect(201).json;
    assert_eq!(
        (&answer["embeddingGenerated"], &answer["memory"]["state"]),
        (&json!(false), &json!("created"))
    );
    assert!(!names(&answer["memory"]).contains("embeddingModel"), "{answer}");
    tenant.say(&place, "nothing to do with it");

    let semantic = place.everything(json!({"query": "heron", "mode": "semantic"}));
    tenant.search(semantic).refused(501, "NOT_IMPLEMENTED");
    let hybrid = json!({"query": "heron reeds", "layers": ["user"], "identifiers": place.identifiers, "threshold": 0.1});
    assert_eq!(tenant.found(hybrid), ["the heron waits in the reeds"]);
    let query = |mode: &str| {
        let body = json!({"query": "heron", "mode": mode, "layer": {"user_id": "u"}});
        tenant.client.post(&format!("{KNOWLEDGE}/query"), body)
    };
    query("semantic").fails(501, 501, "NOT_IMPLEMENTED");
    assert_eq!(list(&query("keyword").expect(200).json["results"]).len(), 1);
    let provider = tenant.client.get(KNOWLEDGE).expect(200).json["provider"].clone();
    let modes = sorted(list(&provider["capabilities"]["query"]["modes"]).iter().map(text));
    assert!(!modes.contains(&"semantic".to_owned()) && modes.contains(&"keyword".to_owned()), "{modes:?}");
    assert_eq!(provider["features"]["semantic_search"], false);
    let changed = tenant.changed(&id_of(&answer["memory"]), json!({"content": "the stork waits"}));
    assert_eq!(changed["state"], "created");
    tenant.client.get("/v1/memories:health").expect(200);
}
