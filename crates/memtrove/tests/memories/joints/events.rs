//! Events are episodic memories: one record, two views.

use super::*;
use crate::sse::Follower;

#[test]
fn an_event_is_an_episodic_memory_at_once() {
    let tenant = Tenant::fresh();
    let members = json!({
        "timestamp": "2026-01-30T18:00:00+01:00", "service_id": "planner", "keywords": ["train", "booking"],
        "project_ids": ["porto"], "evidence": {"message_ids": ["m4"], "ratio": 1.10},
    });
    tell(&tenant, "dana", "chat-17", members);

    let mirror = &mirrors(&tenant, "dana")[0];
    assert_eq!(mirror["content"], "Dana booked the night train to Porto.");
    assert_eq!(
        (&mirror["layer"], &mirror["kind"], &mirror["state"]),
        (&json!("user"), &json!("episodic"), &json!("active"))
    );
    assert_eq!(mirror["occurredAt"], "2026-01-30T17:00:00.000000Z");
    assert_eq!(mirror["lineage"], json!({"mirrorOf": "chat-17"}));
    assert_eq!(mirror["createdBy"], json!({"userId": "dana"}));
    assert_eq!(mirror["version"], 1);
    assert_eq!(
        mirror["metadata"],
        json!({
            "source": {"type": "conversation", "reference": "chat-17"}, "tags": ["train", "booking"],
            "serviceId": "planner", "sourceType": "chat", "projectIds": ["porto"],
            "evidence": {"message_ids": ["m4"], "ratio": 1.10},
        })
    );
    let found =
        tenant.found(json!({"query": "how does she travel to Porto", "identifiers": {"userId": "dana"}}));
    assert_eq!(found, ["Dana booked the night train to Porto."]);
    let by_tag = json!({"query": "x", "identifiers": {"userId": "dana"}, "threshold": 0, "filter": {"tags": ["booking"]}});
    assert_eq!(tenant.found(by_tag).len(), 1);
    let since = Place::user("dana").with(json!({"kinds": ["episodic"], "from": "2026-01-30T17:00:01Z"}));
    assert_eq!(tenant.contents(since), Vec::<String>::new());
}

#[test]
fn an_event_written_again_is_the_next_version_of_the_same_memory() {
    let tenant = Tenant::fresh();
    tell(&tenant, "dana", "chat-17", json!({"digest": "the old words", "source_type": "mail"}));
    let first = mirrors(&tenant, "dana").remove(0);
    assert_eq!(first["metadata"]["source"]["type"], "import");

    tell(&tenant, "dana", "chat-17", json!({"digest": "the new words"}));

    let all = mirrors(&tenant, "dana");
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0]["id"], &all[0]["createdAt"]), (&first["id"], &first["createdAt"]));
    assert_eq!((&all[0]["content"], &all[0]["version"]), (&json!("the new words"), &json!(2)));
    let found = tenant.found(Place::user("dana").everything(json!({"query": "words"})));
    assert_eq!(found, ["the new words"]);
}

#[test]
fn events_of_the_same_id_are_different_memories_for_different_users_and_tenants() {
    let (here, there) = (Tenant::fresh(), Tenant::fresh());
    tell(&here, "dana", "evt", json!({}));
    tell(&here, "bob", "evt", json!({}));
    tell(&there, "dana", "evt", json!({}));

    let ids = [(&here, "dana"), (&here, "bob"), (&there, "dana")].map(|(tenant, user)| {
        let all = mirrors(tenant, user);
        assert_eq!(all.len(), 1);
        id_of(&all[0])
    });
    assert_eq!(sorted(ids.clone()).windows(2).filter(|pair| pair[0] == pair[1]).count(), 0, "{ids:?}");
    there.get(&ids[0]).not_found();
    here.as_user("bob").get(&ids[0]).not_found();
}

#[test]
fn a_mirror_is_read_only_here() {
    let tenant = Tenant::fresh();
    tell(&tenant, "dana", "evt", json!({}));
    let id = id_of(&mirrors(&tenant, "dana")[0]);

    let refused = tenant.change(&id, json!({"content": "something else"})).refused(409, "INVALID_STATE");
    assert!(refused.details()["reason"].is_string(), "{}", refused.describe());
    tenant.client.post(&format!("/v1/memories/{id}/archive"), json!({})).refused(409, "INVALID_STATE");
    let clear = Place::user("dana").with(json!({"kinds": ["episodic"]}));
    assert_eq!(tenant.client.post("/v1/memories:clear", clear).expect(200).json["cleared"], 0);
    assert_eq!(tenant.entry(&id)["version"], 1);
}

#[test]
fn deleting_either_view_deletes_both() {
    let tenant = Tenant::fresh();
    tell(&tenant, "dana", "first", json!({}));
    tell(&tenant, "dana", "second", json!({"digest": "something else"}));
    let id = id_of(mirrors(&tenant, "dana").iter().find(|one| one["content"] == "something else").unwrap());

    tenant.with_header("if-match", "\"v9\"").delete(&id).refused(412, "ETAG_MISMATCH");
    tenant.as_user("bob").delete(&id).expect(200);
    assert_eq!(events(&tenant, "dana"), ["first", "second"]);
    assert_eq!(tenant.as_user("dana").delete(&id).expect(200).json["deleted"], true);

    assert_eq!(events(&tenant, "dana"), ["first"]);
    tenant.get(&id).not_found();
    assert_eq!(mirrors(&tenant, "dana").len(), 1);
    let feed = tenant.as_user("admin").client.get("/v1/changes?limit=1000").expect(200);
    let told: Vec<(Value, Value)> = list(&feed.json["changes"])
        .iter()
        .map(|change| (change["kind"].clone(), change["resource"].clone()))
        .collect();
    let expected = [
        ("event.written", "first"),
        ("event.written", "second"),
        ("event.deleted", "second"),
        ("memory.deleted", &id),
    ];
    assert_eq!(told, expected.map(|(kind, resource)| (json!(kind), json!(resource))));
    tell(&tenant, "dana", "second", json!({}));
    assert_eq!(tenant.entry(&id)["version"], 1, "an event that comes back is new");
}

#[test]
fn the_stream_tells_of_events() {
    let tenant = Tenant::fresh();
    let mut stream = Follower::of(&SERVER, &tenant, "user_id=dana");
    let now = "2026-01-20T00:00:00Z";
    tell(&tenant, "dana", "evt", json!({"timestamp": "2026-01-10T00:00:00Z"}));
    tell(&tenant, "dana", "evt", json!({"timestamp": "2026-01-10T00:00:00Z", "digest": "something else"}));
    let id = id_of(&mirrors(&tenant, "dana")[0]);
    let rules = json!({"events_days": 5, "audit_days": 9000, "snapshots_days": 9000, "as_of_utc": now});
    tenant.client.post(&at(&tenant, "dana", "/retention:apply"), rules).expect(200);
    tell(&tenant, "dana", "evt", json!({}));
    tenant.delete(&id).expect(200);

    let told = stream.take(5);

    let names: Vec<&str> = told.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["created", "updated", "deleted", "created", "deleted"]);
    assert!(told.iter().all(|event| event.entry() == id), "{told:?}");
    let numbers: Vec<_> = told.iter().map(|event| event.id).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[test]
fn retention_of_events_removes_their_memories() {
    let tenant = Tenant::fresh();
    for day in 10..20 {
        tell(
            &tenant,
            "dana",
            &format!("evt-{day}"),
            json!({"timestamp": format!("2026-01-{day}T00:00:00Z")}),
        );
    }
    tenant.say_with(
        &Place::user("dana"),
        json!({"content": "my own", "kind": "episodic", "occurredAt": "2020-01-01T00:00:00Z"}),
    );

    let rules = json!({"events_days": 5, "audit_days": 9000, "snapshots_days": 9000, "as_of_utc": "2026-01-20T00:00:00Z"});
    let report = tenant.client.post(&at(&tenant, "dana", "/retention:apply"), rules).expect(200);

    assert_eq!(report.json["events_deleted"], 5);
    assert_eq!(events(&tenant, "dana"), ["evt-15", "evt-16", "evt-17", "evt-18", "evt-19"]);
    let left = mirrors(&tenant, "dana");
    let left: Vec<String> = left.iter().map(|one| text(&one["lineage"]["mirrorOf"])).collect();
    assert_eq!(left, ["evt-19", "evt-18", "evt-17", "evt-16", "evt-15"]);
    assert!(tenant.contents(Place::user("dana").with(json!({}))).contains(&"my own".to_owned()));
}

#[test]
fn an_event_holds_what_metadata_cannot() {
    let tenant = Tenant::fresh();
    let large = "x".repeat(200_000);
    let members = json!({"keywords": ["a", "b".repeat(500), "a"], "evidence": {"large": large}});
    tell(&tenant, "dana", "evt", members);

    let metadata = &mirrors(&tenant, "dana")[0]["metadata"];
    assert_eq!(metadata["tags"], json!(["a"]));
    assert_eq!(metadata.get("evidence"), None);
    let found = tenant.client.post(&at(&tenant, "dana", "/events:search"), json!({})).expect(200);
    assert_eq!(found.json["results"][0]["evidence"]["large"], json!(large));
}

#[test]
fn a_reindex_makes_no_mirror_twice() {
    let tenant = Tenant::fresh();
    for n in 0..70 {
        tell(&tenant, "dana", &format!("evt-{n}"), json!({"digest": format!("event number {n}")}));
    }
    let before = mirrors(&tenant, "dana");

    let job = tenant.client.post(&at(&tenant, "dana", "/events:reindex"), json!({})).expect(202);
    let path = format!("/v1/admin/jobs/{}", text(&job.json["job_id"]));
    until("the end of the job", || tenant.client.get(&path).expect(200).json["status"] == "succeeded");

    assert_eq!(mirrors(&tenant, "dana"), before);
}

#[test]
fn an_event_is_stored_though_it_cannot_be_embedded() {
    // Nobody listens there.
    let server = server_with(
        "[embedding]\nprovider = \"openai\"\n\
         [embedding.openai]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\ndimensions = 8\n",
    );
    let tenant = Tenant::of(&server, &fresh_name("tenant"));
    tell(&tenant, "dana", "evt", json!({}));

    assert_eq!(events(&tenant, "dana"), ["evt"]);
    let mirror = &mirrors(&tenant, "dana")[0];
    assert_eq!((&mirror["state"], mirror.get("embeddingModel")), (&json!("created"), None));
    tenant.add(Place::user("dana").with(json!({"content": "mine"}))).refused(503, "EMBEDDING_FAILED");
}
