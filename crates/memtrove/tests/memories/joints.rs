//! Where memories meet files, events, conversations, the audit trail and forgetting: one product, whichever door one takes.

mod audit;
mod context;
mod conversations;
mod events;
mod forget;
mod pointers;

use crate::support::*;
use std::time::Duration;

/// The address of something that the files surface keeps of a user.
fn at(tenant: &Tenant, user: &str, rest: &str) -> String {
    format!("/v1/tenants/{}/users/{user}{rest}", tenant.name)
}

/// Writes an event with these members besides the usual ones.
#[track_caller]
fn tell(tenant: &Tenant, user: &str, id: &str, members: Value) {
    let usual = json!({
        "event_id": id, "tenant_id": tenant.name, "user_id": user, "timestamp": "2026-02-15T00:00:00Z",
        "source_type": "chat", "digest": "Dana booked the night train to Porto.",
    });
    let body = json!({"event": merged(usual, &members)});
    tenant.client.post(&at(tenant, user, "/events"), body).expect(202);
}

/// The ids of all events of a user.
#[track_caller]
fn events(tenant: &Tenant, user: &str) -> Vec<String> {
    let answer = tenant.client.post(&at(tenant, user, "/events:search"), json!({"top_k": 500})).expect(200);
    sorted(list(&answer.json["results"]).iter().map(|event| text(&event["event_id"])))
}

/// Writes a file whose content is this text; its new version.
#[track_caller]
fn put(tenant: &Tenant, user: &str, path: &str, if_match: &str, content: &str) -> Value {
    let document =
        json!({"doc_id": "d", "schema_id": "note", "schema_version": "1", "content": {"text": content}});
    let caller = tenant.client.with_header("if-match", if_match);
    let body = Body::Json(json!({"document": document}));
    caller.send("PUT", &at(tenant, user, &format!("/files/{path}")), body).expect(200).json
}

/// What mirrors the events of a user.
#[track_caller]
fn mirrors(tenant: &Tenant, user: &str) -> Vec<Value> {
    let mut all = tenant.all(Place::user(user).with(json!({"kinds": ["episodic"]})));
    all.retain(|entry| entry["lineage"]["mirrorOf"].is_string());
    all
}

/// Forgets a user; what became of its memories.
#[track_caller]
fn forget(tenant: &Tenant, user: &str) -> Value {
    tenant.client.delete(&at(tenant, user, "/memory")).expect(200).json["memories"].clone()
}
