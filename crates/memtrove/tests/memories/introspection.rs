//! What the surface says about itself: capabilities, health, metrics.

use crate::support::*;
use std::time::{Duration, Instant};

#[test]
fn the_capabilities_are_those_of_the_contract() {
    let tenant = Tenant::fresh();
    let answer = tenant.client.get("/v1/memories:capabilities").expect(200).json;

    let layers = list(&answer["layers"]);
    assert_eq!(layers.len(), LAYERS.len());
    let defaults = ["semantic", "user_personal", "session", "semantic", "semantic", "semantic", "semantic"];
    for (n, (name, requires)) in LAYERS.iter().enumerate() {
        let expected =
            json!({"name": name, "precedence": n + 1, "requires": requires, "defaultKind": defaults[n]});
        assert_eq!(layers[n], expected);
    }
    let kinds = list(&answer["kinds"]);
    assert_eq!(sorted(kinds.iter().map(|kind| text(&kind["name"]))), sorted(KINDS.map(str::to_owned)));
    for kind in &kinds {
        let ttl =
            if kind["name"] == "working" || kind["name"] == "session" { json!(3600) } else { Value::Null };
        assert_eq!(kind["defaultTtlSeconds"], ttl, "{kind}");
        assert!(text(&kind["provider"]).starts_with("embedded"), "{kind}");
        assert!(!list(&kind["layers"]).is_empty(), "{kind}");
    }
    for (name, limit) in [
        ("maxContentLength", 100_000),
        ("maxQueryLength", 8_192),
        ("maxMetadataBytes", 65_536),
        ("maxIdentifierLength", 255),
        ("maxSearchLimit", 100),
        ("maxListLimit", 100),
        ("maxFactLimit", 1000),
        ("maxBulkAdd", 500),
        ("maxBulkDelete", 1000),
        ("maxBodyBytes", 20 * 1024 * 1024),
    ] {
        assert_eq!(answer["limits"][name], limit, "{name}");
    }
    assert_eq!(answer["defaults"]["search"]["limit"], 10);
    assert_eq!(number(&answer["defaults"]["search"]["threshold"]), 0.7);
    assert_eq!(answer["defaults"]["list"]["limit"], 50);
    for section in ["decay", "consolidation", "session"] {
        assert!(answer["defaults"][section].is_object(), "{section}");
    }
    let embedding = &answer["embedding"];
    assert_eq!(embedding["provider"], "static");
    assert!(
        !text(&embedding["model"]).is_empty() && embedding["dimensions"].as_u64() > Some(0),
        "{embedding}"
    );
    let entry = tenant.added(Place::user("u").with(json!({"content": "a"})));
    assert_eq!(entry["embeddingModel"], embedding["model"]);
    let providers = list(&answer["providers"]);
    for provider in &providers {
        assert!(provider["version"].is_string() && !provider["capabilities"].is_null(), "{provider}");
    }
    // A search of more than 20,000 entries counts as far as it looks, and says so; so nobody counts exactly always.
    for provider in &providers {
        assert_eq!(provider["capabilities"]["exactCount"], false, "{provider}");
    }
    for kind in &kinds {
        assert!(providers.iter().any(|provider| provider["id"] == kind["provider"]), "{kind} {providers:?}");
    }
}

#[test]
fn health_names_its_parts() {
    let answer = Tenant::fresh().client.get("/v1/memories:health").expect(200);
    assert_members(&answer.json, &["status", "latencyMs", "components"]);
    assert_eq!(answer.json["status"], "healthy");
    assert!(number(&answer.json["latencyMs"]) >= 0.0);
    for part in ["provider:embedded", "embedding"] {
        assert_eq!(answer.json["components"][part]["status"], "healthy", "{}", answer.describe());
    }
}

/// The sum of all samples of this name whose labels have all of these parts; `None` if there is none.
fn sample(metrics: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let samples = metrics.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (of, with) = series.split_once('{').unwrap_or((series, ""));
        (of == name && labels.iter().all(|label| with.contains(label))).then(|| value.parse::<f64>().unwrap())
    });
    samples.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

#[test]
fn the_metrics_have_the_seeds_names_and_name_nobody() {
    let server = server_with("");
    let tenant = Tenant::of(&server, "secret-tenant");
    let place = Place::user("secret-user");
    let id = tenant.say(&place, "secret walrus");
    tenant.say(&place, "secret walrus");
    tenant.say(&Place::project("secret-project"), "secret walrus");
    tenant.changed(&id, json!({"metadata": {"secret-key": 1}}));
    tenant.found(place.everything(json!({"query": "secret question"})));
    tenant.add(place.with(json!({"content": " "}))).invalid("content");
    tenant.get(&fresh_id()).not_found();
    tenant.client.post("/v1/memories:consolidate", place.with(json!({}))).expect(200);
    let promote = json!({"targetLayer": "project", "identifiers": {"projectId": "secret-target"}});
    tenant.client.post(&format!("/v1/memories/{id}/promote"), promote).expect(201);
    let decay = json!({"identifiers": place.identifiers, "asOf": "2999-01-01T00:00:00Z"});
    tenant.client.post("/v1/memories:decay", decay).expect(200);

    let metrics = || server.anonymous().get("/metrics").expect(200).text;
    let now = metrics();
    let has = |name: &str, labels: &[&str]| {
        let found = sample(&now, name, labels);
        assert!(found >= Some(1.0), "{name} {labels:?} is {found:?} in\n{now}");
    };
    has("memory_operations_total", &["operation=", "layer=\"user\""]);
    has("memory_operations_total", &["operation=", "layer=\"project\""]);
    let errors = |code: &str| {
        let code = format!("code=\"{code}\"");
        let labels = ["operation=", code.as_str()];
        let plain = sample(&now, "memory_operations_errors", &labels);
        let suffixed = sample(&now, "memory_operations_errors_total", &labels);
        assert!(plain.or(suffixed) >= Some(1.0), "{code} in\n{now}");
    };
    errors("INVALID_REQUEST");
    errors("MEMORY_NOT_FOUND");
    has("memory_operations_latency_count", &["operation="]);
    has("memory_search_results_count", &["layer=\"user\""]);
    has("memory_embedding_latency_count", &[]);
    has("memory_promotions_total", &[]);
    has("memory_consolidations_total", &[]);
    has("memory_decay_archived_total", &[]);
    let deadline = Instant::now() + Duration::from_secs(10);
    while sample(&metrics(), "memory_storage_size", &["layer=\"project\""]) < Some(1.0) {
        assert!(Instant::now() < deadline, "no memory_storage_size in\n{}", metrics());
        std::thread::sleep(Duration::from_millis(100));
    }
    let violations = sample(&now, "memory_isolation_violations", &[]);
    assert!(violations.unwrap_or(0.0) == 0.0, "{violations:?}");
    assert!(!metrics().contains("secret"), "somebody's name is in\n{}", metrics());
}
