//! The knowledge protocol: replacing and deleting entries, their metadata, and what is refused.

use crate::openspec::*;
use crate::support::*;

fn of_user() -> Value {
    json!({"type": "user", "user_id": "u"})
}

/// The metadata of an entry alone.
#[track_caller]
fn metadata(tenant: &Tenant, id: &str, query: &str) -> Value {
    let answer = tenant.client.get(&format!("{KNOWLEDGE}/{id}/metadata{query}")).expect(200);
    assert_members(&answer.json, &["entry_id", "metadata", "source", "version_history"]);
    assert_headers(&answer);
    assert_eq!(answer.json["entry_id"], id);
    answer.json
}

#[test]
fn replacing_empties_what_is_not_named() {
    let tenant = Tenant::fresh();
    let entry = json!({
        "content": "the heron waits", "metadata": {"title": "Herons", "tags": ["bird"], "custom": {"own": 1}},
        "source": {"type": "web_scrape", "identifier": "x"}, "access_policy": "public",
    });
    let id = id_of(&tenant.created(entry, of_user()));

    let answer = tenant
        .replace(&id, json!({"content": "the heron has flown", "metadata": {"tags": ["gone"]}}))
        .expect(200);

    assert_members(&answer.json, &["entry", "status"]);
    assert_eq!(answer.json["status"], "updated");
    assert_eq!(answer.header("etag"), "\"v2\"");
    assert_headers(&answer);
    let replaced = &answer.json["entry"];
    assert_knowledge(replaced);
    assert_eq!((&replaced["content"], &replaced["version"]), (&json!("the heron has flown"), &json!(2)));
    assert_eq!(replaced["metadata"], json!({"tags": ["gone"]}));
    assert_eq!(replaced["access_policy"], "private", "the default of the layer");
    assert_ne!(replaced["source"]["type"], "web_scrape");
    assert_eq!(tenant.knowledge(&id), *replaced);
    assert_eq!(tenant.entry(&id)["metadata"], json!({"tags": ["gone"]}));
}

#[test]
fn reading_and_writing_back_loses_nothing() {
    let tenant = Tenant::fresh();
    let pointer = json!({"sourceType": "adr", "sourceId": "a", "contentHash": "sha256:0", "syncedAt": "2026-01-01T00:00:00Z"});
    let given = json!({
        "title": "T", "tags": ["a", "b"], "importance": 0.5, "custom": {"custom": 1}, "own": {"deep": [null, 1]},
        "relevance": 0.5, "decayFactor": 2, "conflictKey": "k", "knowledgePointer": pointer, "sensitive": false,
        "source": {"type": "tool_result", "reference": "r"},
    });
    let body = Place::user("u").with(json!({"content": "the heron waits", "metadata": given}));
    let before = tenant.added(body);
    let id = id_of(&before);
    let shown = tenant.knowledge(&id);

    let back = json!({"content": shown["content"], "metadata": shown["metadata"], "source": shown["source"]});
    tenant.replace(&id, back).expect(200);

    let again = tenant.knowledge(&id);
    for member in ["content", "metadata", "source", "layer", "access_policy", "created_at"] {
        assert_eq!(again[member], shown[member], "{member}");
    }
    let mut after = tenant.entry(&id)["metadata"].clone();
    let mut given = before["metadata"].clone();
    for metadata in [&mut after, &mut given] {
        metadata.as_object_mut().unwrap().shift_remove("source");
    }
    assert_eq!(after, given);
}

#[test]
fn a_replacement_names_the_version_it_replaces_if_it_wants() {
    let tenant = Tenant::fresh();
    let id = id_of(&tenant.created(json!({"content": "one"}), of_user()));
    let two = json!({"content": "two"});
    let refused =
        tenant.with_header("if-match", "\"v7\"").replace(&id, two.clone()).fails(412, 412, "ETAG_MISMATCH");
    assert_eq!(refused.json["error"]["details"]["latestVersion"], 1);
    tenant.with_header("if-match", "\"v1\"").replace(&id, two.clone()).expect(200);
    let unknown = fresh_id();
    tenant.replace(&unknown, two.clone()).fails(404, 404, "MEMORY_NOT_FOUND");
    tenant.client.get(&format!("{KNOWLEDGE}/{unknown}")).fails(404, 404, "MEMORY_NOT_FOUND");
    tenant.replace("no-uuid", two).fails(404, 404, "MEMORY_NOT_FOUND");
    tenant.replace(&id, json!({"metadata": {}})).fails(400, 400, "INVALID_REQUEST");
    tenant.replace(&id, json!({"content": "  "})).fails(400, 400, "INVALID_REQUEST");
    assert_eq!(tenant.entry(&id)["version"], 2);
}

#[test]
fn deleting_is_final_soft_or_hard() {
    let tenant = Tenant::fresh();
    let create = || id_of(&tenant.created(json!({"content": "one"}), of_user()));
    let gone = |answer: Answer, id: &str, deleted: bool| {
        let answer = answer.expect(200);
        assert_eq!(answer.json, json!({"deleted": deleted, "entry_id": id}), "{}", answer.describe());
        tenant.client.get(&format!("{KNOWLEDGE}/{id}")).fails(404, 404, "MEMORY_NOT_FOUND");
        tenant.client.get(&format!("{KNOWLEDGE}/{id}/metadata")).fails(404, 404, "MEMORY_NOT_FOUND");
        tenant.get(id).not_found();
    };
    let at = |id: &str| format!("{KNOWLEDGE}/{id}");
    let id = create();
    gone(tenant.client.delete(&at(&id)), &id, true);
    gone(tenant.client.delete(&at(&id)), &id, false);
    let id = create();
    gone(tenant.client.delete(&format!("{}?hard_delete=true", at(&id))), &id, true);
    let id = create();
    let body = json!({"options": {"hard_delete": true}});
    gone(tenant.client.send("DELETE", &at(&id), Body::Json(body)), &id, true);
    let id = fresh_id();
    gone(tenant.client.delete(&at(&id)), &id, false);

    let id = create();
    let answer = tenant.as_user("v").client.delete(&at(&id)).expect(200);
    assert_eq!(answer.json["deleted"], false, "what belongs to another does not exist");
    tenant.with_header("if-match", "\"v7\"").client.delete(&at(&id)).fails(412, 412, "ETAG_MISMATCH");
    assert_eq!(tenant.entry(&id)["version"], 1);
}

#[test]
fn policies_are_one_word_and_their_lists_travel_with_the_options() {
    let tenant = Tenant::fresh();
    for policy in ["private", "restricted", "shared", "organization", "public"] {
        let entry = tenant.created(json!({"content": "a", "access_policy": policy}), of_user());
        assert_eq!(entry["access_policy"], policy);
    }
    let options = json!({
        "layer": {"type": "semantic", "scope": "project", "project_id": "p"},
        "access_policy": {"policy": "restricted", "approved_users": ["v"]},
    });
    let entry =
        tenant.as_user("u").create(json!({"content": "for v"}), options).expect(201).json["entry"].clone();
    assert_eq!(entry["access_policy"], "restricted");
    let id = id_of(&entry);
    assert_eq!(tenant.entry(&id)["accessPolicy"], json!({"policy": "restricted", "approvedUsers": ["v"]}));
    tenant.as_user("v").knowledge(&id);
    tenant.as_user("w").client.get(&format!("{KNOWLEDGE}/{id}")).fails(404, 404, "MEMORY_NOT_FOUND");
    tenant.create(json!({"content": "a", "access_policy": "nobody"}), json!({"layer": of_user()})).fails(
        400,
        400,
        "INVALID_REQUEST",
    );
}

#[test]
fn an_approval_workflow_is_not_pretended() {
    let tenant = Tenant::fresh();
    let create = |governance: Value| {
        let body =
            json!({"entry": {"content": "a"}, "options": {"layer": of_user()}, "governance": governance});
        tenant.client.post(&format!("{KNOWLEDGE}/create"), body)
    };
    create(json!({"require_approval": true})).fails(501, 501, "NOT_IMPLEMENTED");
    create(json!({"verification_required": true})).fails(501, 501, "NOT_IMPLEMENTED");
    create(json!({"require_approval": false, "verification_required": false, "audit_log": true})).expect(201);
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 1);
}

#[test]
fn metadata_come_without_content_and_with_their_history() {
    let tenant = Tenant::fresh();
    let given = json!({"title": "Herons", "custom": {"own": 1}});
    let created =
        tenant.as_user("u").created(json!({"content": "a very secret heron", "metadata": given}), of_user());
    let id = id_of(&created);
    tenant.changed(&id, json!({"metadata": {"title": "More herons"}}));
    tenant.replace(&id, json!({"content": "a very secret stork", "metadata": given})).expect(200);

    let plain = metadata(&tenant, &id, "");
    assert_eq!(plain["metadata"], json!({"title": "Herons"}));
    assert!(!plain.to_string().contains("secret"), "{plain}");
    assert_eq!(metadata(&tenant, &id, "?include_custom=false"), plain);
    assert_eq!(metadata(&tenant, &id, "?include_custom=true")["metadata"], given);

    let history = list(&plain["version_history"]);
    let versions: Vec<u64> = history.iter().map(|row| row["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, [1, 2, 3]);
    for row in &history {
        assert_members(row, &["version", "created_at", "created_by"]);
        assert_timestamp(&row["created_at"]);
    }
    assert_eq!(history[0]["created_at"], created["created_at"]);
    assert_eq!(history[2]["created_at"], tenant.knowledge(&id)["updated_at"]);
    assert!(history.windows(2).all(|pair| text(&pair[0]["created_at"]) < text(&pair[1]["created_at"])));
    tenant.client.get(&format!("{KNOWLEDGE}/{}/metadata", fresh_id())).fails(404, 404, "MEMORY_NOT_FOUND");
    tenant.client.get(&format!("{KNOWLEDGE}/{id}/metadata?include_custom=perhaps")).fails(
        400,
        400,
        "INVALID_REQUEST",
    );
}

#[test]
fn a_hundred_versions_are_remembered() {
    let tenant = Tenant::fresh();
    let id = id_of(&tenant.created(json!({"content": "one"}), of_user()));
    for n in 0..119 {
        tenant.changed(&id, json!({"metadata": {"n": n}}));
    }
    let history = list(&metadata(&tenant, &id, "")["version_history"]);
    let versions: Vec<u64> = history.iter().map(|row| row["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, (21..=120).collect::<Vec<u64>>());
}

#[test]
fn what_cannot_be_is_refused_in_the_protocol_s_own_shape() {
    let tenant = Tenant::fresh();
    let post = |path: &str, body: Body| tenant.client.send("POST", &format!("{KNOWLEDGE}/{path}"), body);
    post("create", Body::json_text("{")).fails(400, 400, "INVALID_REQUEST");
    post("create", Body::json_text("[]")).fails(400, 400, "INVALID_REQUEST");
    post("create", Body::Json(json!({}))).fails(400, 400, "INVALID_REQUEST");
    post("create", Body::Raw { content_type: Some("text/plain"), bytes: b"{}".to_vec() }).fails(
        415,
        415,
        "UNSUPPORTED_MEDIA_TYPE",
    );
    let create = |entry: Value| tenant.create(entry, json!({"layer": of_user()}));
    create(json!({"content": 7})).fails(400, 400, "INVALID_REQUEST");
    create(json!({"content": ""})).fails(400, 400, "INVALID_REQUEST");
    create(json!({"content": "a", "metadata": {"confidence": 2}})).fails(400, 400, "INVALID_REQUEST");
    create(json!({"content": "a", "metadata": {"custom": {"_scope": "x"}}})).fails(
        400,
        400,
        "INVALID_REQUEST",
    );
    create(json!({"content": "x".repeat(100_001)})).fails(422, 422, "CONTENT_TOO_LONG");
    create(json!({"content": "a", "metadata": {"custom": {"big": "x".repeat(70_000)}}})).fails(
        422,
        422,
        "METADATA_TOO_LARGE",
    );
    let foreign = json!({"layer": {"type": "organization", "company_id": "another"}});
    tenant.create(json!({"content": "a"}), foreign).fails(403, 403, "FORBIDDEN");
    let unknown = tenant.client.get("/openspec/v1/nothing");
    assert_eq!(unknown.status, 404, "{}", unknown.describe());
    assert_members(&unknown.json, &["error", "request_id", "timestamp"]);
    let wrong_method = tenant.client.send("PATCH", &format!("{KNOWLEDGE}/query"), Body::Json(json!({})));
    assert!((400..500).contains(&wrong_method.status), "{}", wrong_method.describe());
    for literal in ["query", "create", "batch"] {
        let answer = tenant.client.get(&format!("{KNOWLEDGE}/{literal}"));
        assert!(matches!(answer.status, 404 | 405), "{}", answer.describe());
    }
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 0);
}

#[test]
fn a_fact_stays_a_fact_when_it_is_written_back() {
    let tenant = Tenant::fresh();
    let fact = json!({"fact_type": "rule", "subject": "build", "predicate": "runs_on", "object": "linux", "confidence": 0.5});
    let entry =
        json!({"content": "Builds run on Linux", "metadata": {"title": "T", "custom": {"fact": fact}}});
    let created = tenant.created(entry, json!({"type": "procedural", "project_id": "p"}));
    let id = id_of(&created);
    assert_eq!(created["metadata"]["custom"]["fact"], fact, "what was written is shown");

    let back =
        json!({"content": created["content"], "metadata": created["metadata"], "source": created["source"]});
    tenant.replace(&id, back).expect(200);

    assert_eq!(tenant.knowledge(&id)["metadata"], created["metadata"]);
    let shown = tenant.client.get(&format!("/v1/facts/{id}")).expect(200).json["fact"].clone();
    assert_eq!(
        (&shown["subject"], &shown["object"], &shown["confidence"]),
        (&json!("build"), &json!("linux"), &json!(0.5))
    );
    let found = tenant.facts(json!({"identifiers": {"projectId": "p"}, "subject": "build"})).expect(200).json;
    assert_eq!(found["totalCount"], 1);

    let confidence = |given: Option<Value>| {
        let mut metadata = created["metadata"].clone();
        let fact = metadata["custom"]["fact"].as_object_mut().unwrap();
        fact.remove("confidence");
        fact.extend(given.map(|given| ("confidence".to_owned(), given)));
        tenant.replace(&id, json!({"content": created["content"], "metadata": metadata})).expect(200);
        tenant.client.get(&format!("/v1/facts/{id}")).expect(200).json["fact"]["confidence"].clone()
    };
    assert_eq!(confidence(Some(Value::Null)), 0.5, "null leaves it as it is");
    assert_eq!(confidence(None), 1.0, "a fact that says nothing of it is certain");
}

#[test]
fn what_is_archived_or_mirrored_keeps_its_nature() {
    let tenant = Tenant::fresh();
    let id = id_of(&tenant.created(json!({"content": "old"}), json!({"type": "archival", "user_id": "u"})));
    let replaced = tenant.replace(&id, json!({"content": "older"}));
    assert!(replaced.status < 500, "{}", replaced.describe());
    let entry = tenant.entry(&id);
    assert_eq!(entry["kind"] == "archival", entry["state"] == "archived");

    let event = json!({"event_id": "e1", "tenant_id": tenant.name, "user_id": "u", "digest": "met a heron"});
    let event = json!({"event": event});
    tenant.client.post(&format!("/v1/tenants/{}/users/u/events", tenant.name), event).expect(202);
    let mirror = crate::instants::eventually("the mirror of the event", || {
        tenant.all(Place::user("u").with(json!({"kinds": ["episodic"]}))).first().map(id_of)
    });
    tenant.replace(&mirror, json!({"content": "met a stork"})).fails(409, 409, "INVALID_STATE");
    for verb in ["archive", "promote"] {
        let body = json!({"targetLayer": "project", "identifiers": {"projectId": "p"}});
        let answer = tenant.client.post(&format!("/v1/memories/{mirror}/{verb}"), body);
        assert!(answer.status < 500, "{}", answer.describe());
    }
}
