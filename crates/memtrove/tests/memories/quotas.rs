//! Quotas: what every operation costs, whose it is, and how a refusal looks.

use crate::support::*;
use std::collections::BTreeSet;

const READS: bool = false;
const WRITES: bool = true;

/// An operation: how it is asked for so that it may be carried out, and whether it writes. `{id}` is that of no memory.
type Operation = (&'static str, &'static str, &'static str, Value, bool);

/// Every operation on what is remembered.
fn operations() -> Vec<Operation> {
    let (user, nothing) = (Place::user("u"), Value::Null);
    let of_user = "user_id=u";
    let add = json!({"messages": [{"role": "user", "content": "tea"}], "user_id": "u", "infer": false});
    let entry = json!({"entry": {"content": "tea"}, "options": {"layer": {"type": "user", "user_id": "u"}}});
    let (text, filters) = (json!({"text": "coffee"}), json!({"user_id": "u"}));
    let batch = |member: &str| {
        let mut one = json!({"memory_id": fresh_id()});
        one[member] = json!("coffee");
        json!({"memories": [one]})
    };
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    vec![
        ("POST", "/v1/memories", "", user.with(json!({"content": "tea"})), WRITES),
        ("GET", "/v1/memories", "layer=user&userId=u", nothing.clone(), READS),
        ("POST", "/v1/memories:list", "", user.with(json!({})), READS),
        ("POST", "/v1/memories:search", "", json!({"query": "tea", "identifiers": {"userId": "u"}}), READS),
        ("GET", "/v1/memories/{id}", "", nothing.clone(), READS),
        ("PATCH", "/v1/memories/{id}", "", json!({"metadata": {"a": 1}}), WRITES),
        ("DELETE", "/v1/memories/{id}", "", nothing.clone(), WRITES),
        ("POST", "/v1/memories/{id}/archive", "", nothing.clone(), WRITES),
        ("POST", "/v1/memories/{id}/restore", "", nothing.clone(), WRITES),
        ("POST", "/v1/memories/{id}/promote", "", json!({"targetLayer": "user"}), WRITES),
        (
            "POST",
            "/v1/memories:bulkAdd",
            "",
            json!({"memories": [user.with(json!({"content": "a"}))]}),
            WRITES,
        ),
        ("POST", "/v1/memories:bulkDelete", "", json!({"ids": [fresh_id()]}), WRITES),
        ("POST", "/v1/memories:clear", "", user.with(json!({})), WRITES),
        ("POST", "/v1/memories:decay", "", json!({"identifiers": {"userId": "u"}, "dryRun": true}), WRITES),
        ("POST", "/v1/memories:consolidate", "", user.with(json!({})), WRITES),
        ("POST", "/v1/sessions:end", "", json!({"identifiers": {"userId": "u", "sessionId": "s"}}), WRITES),
        ("POST", "/v1/facts", "", user.with(fact), WRITES),
        ("GET", "/v1/facts", "layer=user&userId=u", nothing.clone(), READS),
        ("POST", "/v1/facts:query", "", json!({"identifiers": {"userId": "u"}}), READS),
        ("GET", "/v1/facts/{id}", "", nothing.clone(), READS),
        ("PATCH", "/v1/facts/{id}", "", json!({"confidence": 0.5}), WRITES),
        ("DELETE", "/v1/facts/{id}", "", nothing.clone(), WRITES),
        ("POST", "/openspec/v1/knowledge/query", "", json!({"query": "tea", "layer": filters}), READS),
        ("POST", "/openspec/v1/knowledge/create", "", entry.clone(), WRITES),
        (
            "POST",
            "/openspec/v1/knowledge/batch",
            "",
            json!({"operation": "create", "entries": [entry]}),
            WRITES,
        ),
        ("GET", "/openspec/v1/knowledge/stream", "type=query&query=tea&user_id=u", nothing.clone(), READS),
        ("GET", "/openspec/v1/knowledge/{id}", "", nothing.clone(), READS),
        ("PUT", "/openspec/v1/knowledge/{id}", "", json!({"entry": {"content": "tea"}}), WRITES),
        ("DELETE", "/openspec/v1/knowledge/{id}", "", nothing.clone(), WRITES),
        ("GET", "/openspec/v1/knowledge/{id}/metadata", "", nothing.clone(), READS),
        ("POST", "/v3/memories/add/", "", add.clone(), WRITES),
        ("POST", "/v3/memories/search/", "", json!({"query": "tea", "filters": filters}), READS),
        ("POST", "/v3/memories/", "", json!({"filters": filters}), READS),
        ("GET", "/v1/memories/{id}/", "", nothing.clone(), READS),
        ("PUT", "/v1/memories/{id}/", "", text.clone(), WRITES),
        ("DELETE", "/v1/memories/{id}/", "", nothing.clone(), WRITES),
        ("GET", "/v1/memories/{id}/history/", "", nothing.clone(), READS),
        ("DELETE", "/v1/memories/", of_user, nothing.clone(), WRITES),
        ("PUT", "/v1/batch/", "", batch("text"), WRITES),
        ("DELETE", "/v1/batch/", "", json!({"memories": [{"memory_id": fresh_id()}]}), WRITES),
        ("GET", "/v1/entities/", "", nothing.clone(), READS),
        ("DELETE", "/v2/entities/{entity_type}/{entity_id}/", "", nothing.clone(), WRITES),
        ("GET", "/memories", of_user, nothing.clone(), READS),
        ("POST", "/memories", "", add, WRITES),
        ("DELETE", "/memories", of_user, nothing.clone(), WRITES),
        ("GET", "/memories/{id}", "", nothing.clone(), READS),
        ("PUT", "/memories/{id}", "", text, WRITES),
        ("DELETE", "/memories/{id}", "", nothing.clone(), WRITES),
        ("GET", "/memories/{id}/history", "", nothing.clone(), READS),
        ("POST", "/search", "", json!({"query": "tea", "user_id": "u"}), READS),
        ("POST", "/reset", "", nothing, WRITES),
    ]
}

/// Operations that look at nothing that is remembered.
const FREE: [&str; 4] = ["discover_knowledge", "memory_capabilities", "memory_health", "mem0_ping"];

fn ask(client: &Client, (method, path, query, body, _): &Operation) -> Answer {
    let path = path.replace("{id}", &fresh_id()).replace("{entity_type}", "user").replace("{entity_id}", "u");
    let path = if query.is_empty() { path } else { format!("{path}?{query}") };
    client.send(method, &path, if body.is_null() { Body::None } else { Body::Json(body.clone()) })
}

/// Requires the refusal of a quota, in the shape of the route.
#[track_caller]
fn refused(answer: &Answer, path: &str) {
    assert_eq!(answer.status, 429, "{path}: {}", answer.describe());
    let seconds: u64 = answer.header("retry-after").parse().expect("seconds");
    assert!((1..=3600).contains(&seconds), "{}", answer.describe());
    let json = &answer.json;
    let (code, details) = if path.starts_with("/openspec/") {
        assert_eq!((&json["error"]["code"], &json["error"]["retryable"]), (&json!(429), &json!(true)));
        (&json["error"]["name"], &json["error"]["details"])
    } else if json["detail"].is_string() {
        (&json["code"], &json["details"])
    } else {
        assert_eq!(json["error"]["retryable"], true, "{}", answer.describe());
        assert!(json["error"]["operation"].as_str().is_some_and(|name| name.contains('.')), "{json}");
        (&json["error"]["code"], &json["error"]["details"])
    };
    assert_eq!((code, details), (&json!("RATE_LIMITED"), &json!({"retryAfterSeconds": seconds})), "{json}");
}

#[test]
fn every_operation_is_charged_once_as_a_read_or_a_write() {
    let server = server_with(
        "[quotas]\nservice_reads = {limit = 1, window = \"1h\"}\nservice_writes = {limit = 1, window = \"1h\"}\n",
    );
    let tenant = Tenant::of(&server, "t");
    for (number, operation) in operations().iter().enumerate() {
        let (method, path, _, _, writes) = operation;
        let name = format!("{method} {path}");
        let robot = tenant.client.with_key(&format!("robot-{number}"));

        let first = ask(&robot, operation);
        assert!([200, 201, 404].contains(&first.status), "{name}: {}", first.describe());
        refused(&ask(&robot, operation), path);

        let other: Operation = if *writes == WRITES {
            ("GET", "/v1/memories/{id}", "", Value::Null, READS)
        } else {
            ("POST", "/v1/memories:clear", "", Place::user("u").with(json!({})), WRITES)
        };
        let of_other_kind = ask(&robot, &other);
        assert!(of_other_kind.status < 429, "{name} took both: {}", of_other_kind.describe());
    }
}

#[test]
fn discovery_tells_how_many_queries_a_second_there_may_be() {
    let server = server_with(
        "[quotas]\nuser_reads = {limit = 600, window = \"1m\"}\nservice_reads = {limit = 45, window = \"10s\"}\n\
         [quotas.tenants.\"slow\"]\nuser_reads = {limit = 6, window = \"1m\"}\n",
    );
    for (tenant, rate) in [("t", 4), ("slow", 0)] {
        let provider = Tenant::of(&server, tenant).client.get("/openspec/v1/knowledge").expect(200).json;
        assert_eq!(provider["provider"]["limits"]["query_rate_limit"], rate, "{tenant}");
    }
}

#[test]
fn no_operation_is_forgotten() {
    let path = format!("{}/../../openapi/memtrove.json", env!("CARGO_MANIFEST_DIR"));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut published = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            let id = operation["operationId"].as_str().unwrap_or_default();
            if ["memories", "facts", "sessions", "knowledge", "mem0"].contains(&tag) && !FREE.contains(&id) {
                published.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let tested = operations().iter().map(|(method, path, ..)| format!("{method} {path}")).collect();
    assert_eq!(published, tested);
}

#[test]
fn a_call_counts_for_the_user_whom_it_is_for_whoever_calls() {
    let server = server_with("[quotas]\nuser_writes = {limit = 2, window = \"1h\"}\n");
    let tenant = Tenant::of(&server, "t");
    let (alice, project) = (Place::user("alice"), Place::project("p"));
    let add = |tenant: &Tenant, place: &Place| tenant.add(place.with(json!({"content": "tea"})));

    add(&tenant, &alice).expect(201);
    tenant.add(alice.with(json!({"content": ""}))).expect(400);
    add(&tenant.as_user("alice"), &project).expect(201);
    for caller in
        [tenant.clone(), tenant.seen_by(&tenant.client.with_key("another")), tenant.as_user("alice")]
    {
        refused(&add(&caller, &alice), "/v1/memories");
    }
    refused(&add(&tenant.on_behalf_of("alice"), &project), "/v1/memories");
    add(&tenant, &Place::user("bob")).expect(201);
    tenant.page(alice.with(json!({})));
    for _ in 0..3 {
        // For no user in particular.
        add(&tenant, &project).expect(201);
    }
    add(&Tenant::of(&server, "another"), &alice).expect(201);

    let metrics = server.anonymous().get("/metrics").expect(200).text;
    assert!(metrics.contains("memory_quota_rejections_total{scope=\"user\"} 4"), "{metrics}");
}

#[test]
fn a_bulk_request_is_one_call() {
    let server = server_with("[quotas]\nuser_writes = {limit = 2, window = \"1h\"}\n");
    let tenant = Tenant::of(&server, "t");
    let (alice, bob) = (Place::user("alice"), Place::user("bob"));
    let bulk = |places: &[&Place]| {
        let items: Vec<Value> = places.iter().map(|place| place.with(json!({"content": "tea"}))).collect();
        tenant.client.post("/v1/memories:bulkAdd", json!({"memories": items}))
    };
    bulk(&[&alice, &alice, &alice]).expect(200);
    bulk(&[&alice]).expect(200);
    refused(&bulk(&[&alice, &alice]), "/v1/memories:bulkAdd");
    // It is of both, and so of neither.
    bulk(&[&alice, &bob]).expect(200);
}

#[test]
fn a_repeated_request_counts_and_one_that_is_refused_changes_nothing() {
    let server = server_with("[quotas]\nuser_writes = {limit = 2, window = \"1h\"}\n");
    let (tenant, alice) = (Tenant::of(&server, "t"), Place::user("alice"));
    let keyed = tenant.with_header("idempotency-key", "k");
    let add = |tenant: &Tenant| tenant.add(alice.with(json!({"content": "tea"})));
    let first = id_of(&add(&keyed).expect(201).json["memory"]);
    assert_eq!(id_of(&add(&keyed).expect(201).json["memory"]), first);
    refused(&add(&keyed), "/v1/memories");
    refused(&tenant.client.delete(&format!("/v1/memories/{first}?layer=user&userId=alice")), "/v1/memories");
    assert_eq!(tenant.page(alice.with(json!({}))).total, 1);
}

#[test]
fn files_and_memories_draw_from_one_quota_and_a_context_is_one_read() {
    let server = server_with("[quotas]\nuser_reads = {limit = 3, window = \"1h\"}\n");
    let (tenant, alice) = (Tenant::of(&server, "t"), Place::user("alice"));
    tenant.say(&alice, "Alice drinks tea");
    let search = json!({"query": "what does Alice drink?", "identifiers": alice.identifiers});
    let context = || {
        let body = json!({"files": [{"path": "profile.md"}], "memories": search});
        tenant.client.post("/v1/tenants/t/users/alice/context:assemble", body)
    };
    for _ in 0..2 {
        assert_eq!(list(&context().expect(200).json["memories"]).len(), 1);
    }
    tenant.search(search.clone()).expect(200);
    refused(&tenant.search(search.clone()), "/v1/memories:search");
    assert_eq!(context().expect(429).json["error"]["code"], "QUOTA_EXCEEDED");
}

#[test]
fn a_tool_of_a_model_costs_one_call() {
    let server = server_with(
        "[quotas]\nuser_reads = {limit = 1, window = \"1h\"}\nuser_writes = {limit = 4, window = \"1h\"}\n",
    );
    let client = server.as_user("alice").with_header("accept", "application/json, text/event-stream");
    let call = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        client.post("/mcp", body).expect(200).json["result"].clone()
    };
    let said = |result: &Value| text(&result["content"][0]["text"]);
    for (tool, arguments) in [
        ("remember", json!({"text": "Alice drinks tea"})),
        ("remember_fact", json!({"subject": "Alice", "predicate": "drinks", "object": "tea"})),
        ("forget", json!({"text": "Alice - drinks - tea"})),
        ("forget", json!({"id": fresh_id()})),
    ] {
        assert!(!said(&call(tool, arguments)).contains("QUOTA"), "{tool}");
    }
    for (tool, arguments) in [("remember", json!({"text": "Bob"})), ("forget", json!({"text": "Bob"}))] {
        let failed = call(tool, arguments);
        assert_eq!(failed["isError"], true);
        assert!(
            said(&failed).contains("QUOTA_EXCEEDED") && said(&failed).contains("Wait a little"),
            "{failed}"
        );
    }
    assert!(said(&call("recall", json!({"query": "tea"}))).contains("Alice drinks tea"));
    assert_eq!(call("query_facts", json!({}))["isError"], true);
}
