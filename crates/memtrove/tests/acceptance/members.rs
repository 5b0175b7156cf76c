//! What becomes of members and parameters that nobody here looks at.
//!
//! The description of the API says which bodies and queries there are, so a new one has to be ruled on here. Three of the
//! contracts ignore what they do not name; mem0's routes refuse it, as do filters everywhere: what is left out of a search
//! widens it. What a contract names and nothing is done about yet is refused by its name on every surface.

use crate::support::*;
use Unknown::{Ignored, Refused};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A name that no contract will ever have.
const NOBODYS: &str = "zz_nobodys";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unknown {
    Ignored,
    Refused,
}

/// A body that gets past every check of its shape.
struct Ruled {
    body: Value,
    unknown: Unknown,
    /// Members that its contract names and that are not supported yet.
    unsupported: &'static [&'static str],
}

fn ignored(body: Value) -> Ruled {
    Ruled { body, unknown: Ignored, unsupported: &[] }
}

fn without(body: Value, unsupported: &'static [&'static str]) -> Ruled {
    Ruled { unsupported, ..ignored(body) }
}

fn refused(body: Value) -> Ruled {
    Ruled { unknown: Refused, ..ignored(body) }
}

/// Every operation that takes a body, by its id.
fn bodies() -> BTreeMap<&'static str, Ruled> {
    let (id, own) = (fresh_id(), json!({"userId": "admin"}));
    let memory = json!({"layer": "user", "identifiers": own, "content": "x"});
    let fact = json!({"layer": "user", "identifiers": own, "factType": "rule", "subject": "a", "predicate": "b", "object": "c"});
    let knowledge =
        json!({"entry": {"content": "x"}, "options": {"layer": {"type": "user", "user_id": "admin"}}});
    let document = json!({"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {}});
    let patch = json!({"ops": [{"op": "add", "path": "/content/x", "value": 1}]});
    let messages = json!([{"role": "user", "content": "x"}]);
    BTreeMap::from([
        ("create_conversation", without(json!({}), &["id", "forkedAtConversationId", "forkedAtEntryId"])),
        ("update_conversation", ignored(json!({"title": "x"}))),
        ("fork_conversation", ignored(json!({"title": "x"}))),
        ("append_entry", without(history("x"), &["seq"])),
        ("sync_entries", without(crate::support::memory(json!(["x"])), &["seq"])),
        ("share_conversation", ignored(json!({"userId": "bob", "accessLevel": "reader"}))),
        ("update_membership", ignored(json!({"accessLevel": "reader"}))),
        ("create_transfer", ignored(json!({"conversationId": id, "newOwnerUserId": "bob"}))),
        ("search_conversations", ignored(json!({"query": "x"}))),
        ("admin_search_conversations", ignored(json!({"query": "x"}))),
        (
            "index_conversations",
            ignored(json!([{"conversationId": id, "entryId": id, "indexedContent": "x"}])),
        ),
        ("create_attachment", ignored(json!({"sourceUrl": "http://nowhere.invalid/x"}))),
        ("admin_delete_attachment", ignored(json!({"justification": "x"}))),
        ("admin_delete_conversation", ignored(json!({"justification": "x"}))),
        ("restore_conversation", ignored(json!({"justification": "x"}))),
        ("evict", ignored(json!({"retentionPeriod": "P99Y", "resourceTypes": ["conversations"]}))),
        ("put_file", without(json!({"document": document}), &["profile_id", "binding_id", "confidence"])),
        ("patch_file", without(patch, &["profile_id", "binding_id", "confidence"])),
        ("delete_file", without(json!({"path": "a.md"}), &["profile_id", "binding_id", "confidence"])),
        (
            "move_file",
            without(json!({"from": "a.md", "to": "b.md"}), &["profile_id", "binding_id", "confidence"]),
        ),
        (
            "assemble_context",
            without(json!({"files": [{"path": "a.md"}]}), &["profile_id", "conversation_hint"]),
        ),
        (
            "write_event",
            ignored(
                json!({"event": {"event_id": "e", "tenant_id": "default", "user_id": "admin", "digest": "x"}}),
            ),
        ),
        ("search_events", ignored(json!({"query": "x"}))),
        ("reindex_tenant", ignored(json!({"tenant_id": "default"}))),
        (
            "reconstruct_version",
            without(json!({"path": "a.md", "as_of_utc": "2026-01-01T00:00:00Z"}), &["held"]),
        ),
        (
            "apply_retention",
            without(json!({"events_days": 400, "audit_days": 400, "snapshots_days": 400}), &["profile_id"]),
        ),
        ("forget_user_by_id", ignored(json!({"userId": "nobody/at/all"}))),
        ("add_memory", ignored(memory.clone())),
        ("update_memory", ignored(json!({"content": "x"}))),
        (
            "filter_memories",
            without(json!({"layer": "user", "identifiers": own}), &["asOf", "includeSuperseded"]),
        ),
        (
            "search_memories",
            without(json!({"query": "x", "identifiers": own}), &["asOf", "includeSuperseded"]),
        ),
        ("bulk_add", ignored(json!({"memories": [memory]}))),
        ("bulk_delete", ignored(json!({"ids": [id]}))),
        ("clear_memories", ignored(json!({"layer": "user", "identifiers": own}))),
        ("consolidate_memories", ignored(json!({"layer": "user", "identifiers": own, "dryRun": true}))),
        ("decay_memories", ignored(json!({"dryRun": true}))),
        ("promote_memory", ignored(json!({"targetLayer": "user"}))),
        ("end_session", ignored(json!({"identifiers": {"userId": "admin", "sessionId": "s"}}))),
        ("add_fact", ignored(fact)),
        ("update_fact", ignored(json!({"object": "x"}))),
        ("query_facts", without(json!({"identifiers": own}), &["asOf", "includeSuperseded"])),
        ("create_knowledge", ignored(knowledge.clone())),
        ("replace_knowledge", ignored(knowledge.clone())),
        ("delete_knowledge", ignored(json!({"options": {"hard_delete": true}}))),
        ("query_knowledge", ignored(json!({"query": "x", "layer": {"types": ["user"], "user_id": "admin"}}))),
        ("batch_knowledge", ignored(json!({"operation": "create", "entries": [knowledge]}))),
        ("mem0_create_memories", refused(json!({"messages": messages, "infer": false, "user_id": "admin"}))),
        ("mem0_add", refused(json!({"messages": messages, "infer": false, "user_id": "admin"}))),
        ("mem0_update_memory", refused(json!({"text": "x"}))),
        ("mem0_update", refused(json!({"text": "x"}))),
        ("mem0_search_memories", refused(json!({"query": "x", "user_id": "admin"}))),
        ("mem0_search", refused(json!({"query": "x", "filters": {"user_id": "admin"}}))),
        ("mem0_list", refused(json!({"filters": {"user_id": "admin"}}))),
        ("mem0_batch_update", ignored(json!({"memories": [{"memory_id": id, "text": "x"}]}))),
        ("mem0_batch_delete", ignored(json!({"memories": [{"memory_id": id}]}))),
    ])
}

/// Queries that get past every check, where the empty one does not; and parameters that are not supported yet.
fn queries() -> BTreeMap<&'static str, (&'static str, &'static [&'static str])> {
    const OWN: &str = "layer=user&userId=admin";
    BTreeMap::from([
        ("list_memories", (OWN, &["asOf", "includeSuperseded"][..])),
        ("list_facts", (OWN, &["asOf", "includeSuperseded"])),
        ("list_audit", ("", &["held"])),
        ("stream_knowledge", ("format=websocket", &[])),
        ("mem0_get_memories", ("user_id=admin", &[])),
        ("mem0_delete_memories", ("user_id=nobody-at-all", &[])),
        ("mem0_delete_all", ("user_id=nobody-at-all", &[])),
    ])
}

/// Operations of mem0 that name one memory: nothing widens them.
const LENIENT: [&str; 1] = ["mem0_delete"];

/// An operation as the description has it.
struct Operation {
    id: String,
    method: String,
    path: String,
    described: Value,
}

fn document() -> Value {
    SERVER.anonymous().get("/openapi.json").expect(200).json
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters");
            methods.map(move |(method, described)| Operation {
                id: described["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase(),
                path: path.clone(),
                described: described.clone(),
            })
        })
        .collect()
}

impl Operation {
    /// Its address: somebody's scope, and things that nobody has made.
    fn address(&self) -> String {
        let segments = self.path.split('/').map(|segment| match segment {
            "{tenant_id}" => "default".to_owned(),
            "{user_id}" => "admin".to_owned(),
            "{path}" => format!("{}.md", fresh_id()),
            "{entity_type}" => "user".to_owned(),
            "{name}" => "request-rate".to_owned(),
            other if other.starts_with('{') => fresh_id(),
            other => other.to_owned(),
        });
        segments.collect::<Vec<_>>().join("/")
    }

    fn send(&self, query: &str, body: Option<&Value>) -> Answer {
        let admin = SERVER.as_user("admin").with_key("agent").with_header("if-match", "*");
        let body = body.map_or(Body::None, |body| Body::Json(body.clone()));
        let separator = if query.is_empty() { "" } else { "?" };
        admin.send(&self.method, &format!("{}{separator}{query}", self.address()), body)
    }

    fn is_of_mem0(&self) -> bool {
        self.id.starts_with("mem0_")
    }
}

/// The body with one member more; in a list, its first item.
fn with(body: &Value, name: &str, value: Value) -> Value {
    let mut body = body.clone();
    match &mut body {
        Value::Array(items) => items[0][name] = value,
        members => members[name] = value,
    }
    body
}

/// A value that a member of this name could have.
fn plausible(name: &str) -> Value {
    match name {
        "includeSuperseded" | "held" => json!(true),
        "asOf" => json!("2026-01-01T00:00:00Z"),
        "confidence" => json!(0.9),
        "seq" => json!(7),
        "conversation_hint" => json!({"text": "x"}),
        _ => json!(fresh_id()),
    }
}

#[track_caller]
fn assert_refused_by_name(answer: Answer, name: &str) {
    let answer = answer.expect(400);
    assert!(answer.text.contains(name), "a refusal that does not name {name:?}: {}", answer.describe());
}

#[test]
fn every_body_is_ruled_on() {
    let document = document();
    let described =
        operations(&document).into_iter().filter(|one| one.described.get("requestBody").is_some());
    let described: BTreeSet<String> = described.map(|one| one.id).collect();
    let ruled: BTreeSet<String> = bodies().into_keys().map(str::to_owned).collect();
    assert_eq!(described, ruled, "say in `bodies` what becomes of unknown members of a new body");
}

#[test]
fn what_no_contract_names_is_ignored_or_refused_as_its_surface_says() {
    let (document, bodies) = (document(), bodies());
    for operation in operations(&document) {
        let Some(ruled) = bodies.get(operation.id.as_str()) else { continue };
        let known = operation.send("", Some(&ruled.body));
        assert!(known.status != 400 && known.status < 500, "{}: {}", operation.id, known.describe());
        let unknown = operation.send("", Some(&with(&ruled.body, NOBODYS, json!(1))));
        match ruled.unknown {
            Refused => assert_refused_by_name(unknown, NOBODYS),
            Ignored => {
                // A repetition may be answered with another success.
                let alike = unknown.status == known.status || known.status.max(unknown.status) < 300;
                assert!(alike, "{}: {}", operation.id, unknown.describe());
            }
        }
    }
}

#[test]
fn what_is_not_supported_yet_is_refused_by_its_name() {
    let (document, bodies) = (document(), bodies());
    for operation in operations(&document) {
        let Some(ruled) = bodies.get(operation.id.as_str()) else { continue };
        for name in ruled.unsupported {
            let asked = operation.send("", Some(&with(&ruled.body, name, plausible(name))));
            assert_refused_by_name(asked, name);
            let nothing = operation.send("", Some(&with(&ruled.body, name, Value::Null)));
            assert_ne!(nothing.status, 400, "null is as good as absent: {}", nothing.describe());
        }
    }
    // Where nothing else is wrong with it, the refusal says that it is not supported yet.
    let admin = SERVER.as_user("admin").with_key("agent");
    let scope = "/v1/tenants/default/users/admin";
    let asked = admin.post(&format!("{scope}/context:assemble"), json!({"profile_id": "p"})).expect(400);
    assert_eq!(asked.json["error"]["code"], "INVALID_REQUEST");
    assert_eq!(asked.json["error"]["details"], json!({"field": "profile_id"}));
    assert_eq!(asked.json["error"]["message"], "'profile_id' is not supported yet: leave it out");
    let memories =
        json!({"files": [{"path": "a.md"}], "memories": {"query": "x", "asOf": "2026-01-01T00:00:00Z"}});
    let asked = admin.post(&format!("{scope}/context:assemble"), memories).expect(400);
    assert_eq!(asked.json["error"]["details"]["field"], "asOf", "{}", asked.describe());
    let asked = admin.post("/v1/conversations", json!({"id": fresh_id()})).expect_violation("id");
    assert!(asked.text.contains("is not supported yet"), "{}", asked.describe());
}

#[test]
fn what_is_closed_takes_no_member_it_does_not_know() {
    let (document, bodies) = (document(), bodies());
    let resolved = |schema: &Value| -> Value {
        let mut schema = schema.clone();
        loop {
            let or_null =
                schema["oneOf"].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"));
            if let Some(inner) = or_null.cloned() {
                schema = inner;
                continue;
            }
            match schema["$ref"].as_str() {
                Some(reference) => schema = document.pointer(&reference[1..]).unwrap().clone(),
                None => return schema,
            }
        }
    };
    let mut closed = 0;
    for operation in operations(&document) {
        let Some(ruled) = bodies.get(operation.id.as_str()) else { continue };
        let body = resolved(&operation.described["requestBody"]["content"]["application/json"]["schema"]);
        for (name, member) in body["properties"].as_object().into_iter().flatten() {
            if resolved(member)["additionalProperties"] == json!(false) {
                let asked = operation.send("", Some(&with(&ruled.body, name, json!({NOBODYS: 1}))));
                assert_refused_by_name(asked, NOBODYS);
                closed += 1;
            }
        }
    }
    assert!(closed >= 6, "filters and weights are closed: {closed}");
}

#[test]
fn parameters_that_nobody_looks_at_change_nothing_but_those_of_mem0() {
    let (document, queries) = (document(), queries());
    let mut asked = 0;
    for operation in operations(&document) {
        let takes_query = operation.described["parameters"].as_array().into_iter().flatten();
        if !{ takes_query }.any(|parameter| parameter["in"] == "query") || operation.method == "POST" {
            continue;
        }
        let (query, unsupported) = queries.get(operation.id.as_str()).copied().unwrap_or_default();
        let bodies = bodies();
        let body = bodies.get(operation.id.as_str()).map(|ruled| &ruled.body);
        let known = operation.send(query, body);
        assert!(known.status != 400, "{}: {}", operation.id, known.describe());
        let unknown = operation.send(&format!("{query}&{NOBODYS}=1"), body);
        if operation.is_of_mem0() && !LENIENT.contains(&operation.id.as_str()) {
            assert_refused_by_name(unknown, NOBODYS);
        } else {
            assert_eq!(unknown.status, known.status, "{}: {}", operation.id, unknown.describe());
        }
        for name in unsupported {
            let value = plausible(name).to_string().replace('"', "");
            assert_refused_by_name(operation.send(&format!("{query}&{name}={value}"), body), name);
        }
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
}
