//! Every change of a memory has its record in the one audit trail, which never proves what a memory said.

use super::*;

#[track_caller]
fn trail(tenant: &Tenant, user: &str, path: &str) -> Vec<Value> {
    let admin = tenant.as_user("admin");
    let answer = admin.client.get(&at(tenant, user, &format!("/audit?limit=500&path={path}"))).expect(200);
    list(&answer.json["records"])
}

#[track_caller]
fn reconstruct(tenant: &Tenant, user: &str, body: Value) -> Answer {
    tenant.as_user("admin").client.post(&at(tenant, user, "/audit:reconstruct"), body)
}

#[test]
fn the_life_of_a_memory_is_in_the_trail_of_its_user() {
    let tenant = Tenant::fresh();
    let agent = tenant.on_behalf_of("dana");
    let source = json!({"type": "conversation", "reference": "entry-7"});
    let id = agent.say_with(
        &Place::user("dana"),
        json!({"content": "a secret walrus", "metadata": {"source": source}}),
    );
    agent.changed(&id, json!({"content": "another secret"}));
    agent.delete(&id).expect(200);

    let path = format!("memories/{id}");
    let records = trail(&tenant, "dana", &path);
    let told: Vec<Value> = records
        .iter()
        .map(|record| {
            json!([
                record["layer"],
                record["action"],
                record["previous_etag"],
                record["new_etag"],
                record["actor"]
            ])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!(["memories", "create", null, "\"v1\"", AGENT]),
            json!(["memories", "replace", "\"v1\"", "\"v2\"", AGENT]),
            json!(["memories", "delete", "\"v2\"", null, AGENT]),
        ]
    );
    assert_eq!(records[0]["evidence"], source);
    for record in &records {
        assert!(record["document"].is_null() && !record.to_string().contains("secret"), "{record}");
        let change = json!({"path": path, "change_id": record["change_id"]});
        let answer = reconstruct(&tenant, "dana", change).expect(409);
        assert_eq!(answer.json["error"]["code"], "AUDIT_CHAIN_INCOMPLETE");
    }
    let ever = json!({"path": path, "as_of_utc": "2099-01-01T00:00:00Z"});
    assert_eq!(
        reconstruct(&tenant, "dana", ever).expect(409).json["error"]["code"],
        "AUDIT_CHAIN_INCOMPLETE"
    );
}

#[test]
fn a_file_of_that_name_is_proved_all_the_same() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("dana"), "one");
    let path = format!("memories/{id}");
    let mut etag = "*".to_owned();
    let mut etags = Vec::new();
    for n in 0..4 {
        etag = text(&put(&tenant, "dana", &path, &etag, &format!("version {n}"))["etag"]);
        tenant.changed(&id, json!({"metadata": {"n": n}}));
        etags.push(etag.clone());
    }
    let patch = json!({"edits": [{"old_text": "version 3", "new_text": "version 4"}]});
    let caller = tenant.client.with_header("if-match", &etag);
    etags.push(text(
        &caller.patch(&at(&tenant, "dana", &format!("/files/{path}")), patch).expect(200).json["etag"],
    ));

    let versions = |records: &[Value]| -> Vec<String> {
        let of_files = records.iter().filter(|record| record["layer"] == "files");
        let proved = of_files.map(|record| {
            let body = json!({"path": path, "change_id": record["change_id"]});
            text(&reconstruct(&tenant, "dana", body).expect(200).json["etag"])
        });
        proved.collect()
    };
    assert_eq!(versions(&trail(&tenant, "dana", &path)), etags);
    let newest = json!({"path": path, "as_of_utc": "2099-01-01T00:00:00Z"});
    assert_eq!(reconstruct(&tenant, "dana", newest).expect(200).json["etag"], json!(etags[4]));
}

#[test]
fn retention_of_the_trail_takes_records_of_memories_without_alarm() {
    let server = server_with("[retention]\naudit_min_days = 0\n");
    let tenant = Tenant::of(&server, &fresh_name("tenant"));
    let id = tenant.say(&Place::user("dana"), "one");
    for n in 0..3 {
        tenant.changed(&id, json!({"metadata": {"n": n}}));
    }
    let instants: Vec<String> = trail(&tenant, "dana", &format!("memories/{id}"))
        .iter()
        .map(|record| text(&record["timestamp"]))
        .collect();

    let rules = json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": instants[2]});
    let report = tenant.client.post(&at(&tenant, "dana", "/retention:apply"), rules).expect(200);

    assert_eq!(report.json["audit_deleted"], 2);
    assert_eq!(trail(&tenant, "dana", &format!("memories/{id}")).len(), 2);
    let metrics = server.anonymous().get("/metrics").expect(200);
    let failures =
        metrics.text.lines().find(|line| line.starts_with("memtrove_files_audit_integrity_failures_total"));
    assert_eq!(failures.map(|line| line.ends_with(" 0")), Some(true), "{failures:?}");
}
