//! Memories of mem0, and of the MCP reference server.

use crate::importing::support::{Place, fixture, printed, says};
use memtrove_core::{Clock, SystemClock};
use memtrove_testkit::server::{Client, TestServer};
use serde_json::{Value, json};

fn memories(client: &Client, layer: &str, identifiers: Value) -> Vec<Value> {
    let listed =
        client.post("/v1/memories:list", json!({"layer": layer, "identifiers": identifiers})).expect(200);
    listed.json["memories"].as_array().unwrap().clone()
}

#[test]
fn mem0_memories_go_to_whom_they_are_of() {
    for place in Place::both() {
        let told = place.ends_with(3, &fixture("mem0.json"), &[]);
        says(&told, &["Imported a mem0 export into", "memories: 2 new", "facts: 1 new"]);
        says(&told, &["mem0.json results[2]: it does not say whose it is: add --user"]);
        let again = place.import(&fixture("mem0.json"), &["--user", "carol"]);
        says(&again, &["memories: 1 new, 2 there already", "facts: 1 there already"]);
        let server = place.serve();
        let dev = server.as_user("dev");
        let found = memories(&dev, "user", json!({"userId": "dev"}));
        let work =
            found.iter().find(|one| one["content"] == "Dev works at TechCorp as a senior engineer").unwrap();
        assert_eq!(work["createdAt"], "2024-07-20T08:30:36.275141Z");
        assert_eq!(work["metadata"]["tags"], json!(["work"]));
        assert_eq!(work["metadata"]["type"], "professional");
        assert_eq!(memories(&dev, "agent", json!({"userId": "dev", "agentId": "travel"})).len(), 1);
        assert_eq!(memories(&server.as_user("carol"), "user", json!({"userId": "carol"})).len(), 1);
        let facts = dev.get("/v1/facts?layer=user&userId=dev").expect(200);
        assert_eq!(facts.json["facts"][0]["predicate"], "works_at", "{}", facts.describe());
        let searched =
            json!({"query": "where does he work", "layers": ["user"], "identifiers": {"userId": "dev"}});
        assert!(dev.post("/v1/memories:search", searched).expect(200).text.contains("TechCorp"));
    }
}

#[test]
fn mem0_memories_are_what_they_would_be_if_they_were_added() {
    let day = |seconds: i64| {
        let at = SystemClock.now().saturating_add_micros(seconds * 1_000_000);
        at.to_string()[..10].to_owned()
    };
    let (soon, over) = (day(30 * 86_400), day(-2 * 86_400));
    let given = json!({"source": "chat", "n": 1, "title": 7});
    let of = |id: &str, ids: Value| {
        let mut one = json!({"id": id, "memory": format!("what {id} says"), "metadata": given});
        one.as_object_mut().unwrap().extend(ids.as_object().unwrap().clone());
        one
    };
    let export = json!({"results": [
        of("m1", json!({"user_id": "u", "role": "user", "actor_id": "Uma", "expiration_date": soon})),
        of("m2", json!({"user_id": "u", "agent_id": "a", "app_id": "p", "run_id": "r"})),
        of("m3", json!({"agent_id": "a"})),
        of("m4", json!({"user_id": "u", "expiration_date": over})),
    ]});
    for place in Place::both() {
        let path = place.give("mem0.json", export.to_string());
        let dry = place.import(&path, &["--dry-run"]);
        for told in [dry, place.import(&path, &[])] {
            says(&told, &["memories: 3 new", "left out: 1 memories whose last day is over"]);
        }
        says(&place.import(&path, &[]), &["memories: 3 there already"]);
        let server = place.serve();
        let mem0 = server.anonymous().with_key("agent");
        let found = |filters: Value| {
            let page = mem0.post("/v3/memories/", json!({"filters": filters})).expect(200).json;
            page["results"].as_array().unwrap().clone()
        };
        let of_user = found(json!({"AND": [{"user_id": "u"}, {"source": "chat"}, {"n": 1}]}));
        assert_eq!(of_user.len(), 2, "{of_user:#?}");
        let [one] = &found(json!({"user_id": "u", "memory": {"contains": "m1"}}))[..] else {
            panic!("not one")
        };
        assert_eq!((&one["role"], &one["actor_id"]), (&json!("user"), &json!("Uma")));
        assert_eq!(one["expiration_date"], *soon);
        for filters in
            [json!({"user_id": "u", "agent_id": "a", "app_id": "p", "run_id": "r"}), json!({"agent_id": "a"})]
        {
            let [one] = &found(filters.clone())[..] else { panic!("not one for {filters}") };
            assert_eq!(one["metadata"], given);
            for name in ["user_id", "agent_id", "app_id", "run_id"] {
                assert_eq!(one[name], filters[name], "{name}");
            }
        }
    }
}

/// What mem0's client is shown of a user's memories.
fn shown(server: &TestServer, filters: Value) -> Vec<Value> {
    let mem0 = server.anonymous().with_key("agent");
    mem0.post("/v3/memories/", json!({"filters": filters})).expect(200).json["results"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn points_of_a_vector_store_bring_their_metadata_in_whichever_shape_they_come() {
    let point = |id: &str| {
        json!({"id": id, "payload": {"data": format!("what {id} says"), "hash": "h", "user_id": "alice",
            "category": "travel", "source": "chat", "priority": 5}})
    };
    let memory = |id: &str| json!({"id": id, "memory": format!("what {id} says"), "user_id": "alice"});
    let files = [
        ("array.json", json!([point("p1")]).to_string(), 1),
        ("points.json", json!({"points": [point("p2")]}).to_string(), 1),
        (
            "scroll.json",
            json!({"result": {"points": [point("p3")], "next_page_offset": null}, "status": "ok"})
                .to_string(),
            1,
        ),
        ("data.json", json!({"data": [memory("m1")], "total": 1}).to_string(), 1),
        ("lines.jsonl", format!("{}\n{}\n", memory("m2"), point("p4")), 2),
        ("one.json", format!("{:#}", memory("m3")), 1),
    ];
    let place = Place::sqlite();
    for (name, text, number) in files {
        says(&place.import(&place.give(name, text), &[]), &[&format!("memories: {number} new")]);
    }
    let server = place.serve();
    let found = shown(&server, json!({"AND": [{"user_id": "alice"}, {"category": "travel"}]}));
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(found[0]["metadata"], json!({"category": "travel", "source": "chat", "priority": 5}));
    assert_eq!(shown(&server, json!({"user_id": "alice"})).len(), 7);
}

#[test]
fn memories_that_differ_are_kept_until_somebody_says_otherwise() {
    let export = |said: &str, metadata: Value| {
        let one = |id: &str, said: &str| json!({"id": id, "memory": said, "user_id": "alice", "metadata": metadata});
        json!({"results": [one("m1", said), one("m2", "Rows")]}).to_string()
    };
    for place in Place::both() {
        let import = |text: String, more: &[&str]| place.import(&place.give("mem0.json", text), more);
        says(&import(export("Sits at the window", json!({"n": 1})), &[]), &["memories: 2 new"]);
        let newer = export("Sits at the aisle", json!({"n": 1}));
        for more in [&["--dry-run"][..], &[]] {
            let told = import(newer.clone(), more);
            says(&told, &["memories: 1 there already"]);
            says(&told, &["left as they are: 1 memory that differs here; --overwrite replaces them"]);
            says(&told, &["mem0.json results[0]: \"Sits at the aisle\""]);
        }
        for more in [&["--overwrite", "--dry-run"][..], &["--overwrite"]] {
            says(&import(newer.clone(), more), &["memories: 1 replaced, 1 there already"]);
        }
        says(&import(newer, &["--overwrite"]), &["memories: 2 there already"]);
        let tagged = export("Sits at the aisle", json!({"n": 2}));
        says(&import(tagged.clone(), &["--overwrite"]), &["memories: 2 replaced"]);
        says(&import(tagged, &[]), &["memories: 2 there already"]);

        let server = place.serve();
        let alice = server.as_user("alice");
        let found = memories(&alice, "user", json!({"userId": "alice"}));
        let seat = found.iter().find(|one| one["content"] == "Sits at the aisle").unwrap();
        assert_eq!((&seat["version"], &seat["metadata"]["n"]), (&json!(3), &json!(2)), "{seat:#}");
        let history = format!("/v1/memories/{}/history/", seat["id"].as_str().unwrap());
        let history = server.anonymous().with_key("agent").get(&history).expect(200);
        assert!(history.text.contains("Sits at the window"), "{}", history.describe());
        let searched = json!({"query": "aisle", "layers": ["user"], "identifiers": {"userId": "alice"}});
        assert!(alice.post("/v1/memories:search", searched).expect(200).text.contains("at the aisle"));
    }
}

#[test]
fn of_memories_with_one_id_the_last_is_what_overwrite_leaves() {
    let one = |said: &str| json!({"id": "m", "memory": said, "user_id": "alice"});
    let export = json!([one("first"), one("second"), one("second")]).to_string();
    let place = Place::sqlite();
    for more in [&["--overwrite", "--dry-run"][..], &["--overwrite"]] {
        let told = place.import(&place.give("mem0.json", &export), more);
        says(&told, &["memories: 1 new, 1 replaced, 1 there already"]);
    }
}

#[test]
fn whoever_has_the_store_needs_no_role_in_it() {
    let export = json!([{"id": "m1", "memory": "Rows", "user_id": "alice", "agent_id": "coach"},
        {"id": "m2", "memory": "Swims", "agent_id": "coach"}]);
    let place = Place::sqlite();
    let path = place.give("mem0.json", export.to_string());
    for more in [&["--dry-run"][..], &[]] {
        let mut command = place.command(&path, more);
        command.env("MEMTROVE_MEMORIES__BIND_AGENT_ID", "true");
        command.env("MEMTROVE_MEMORIES__WRITE_ROLES__PROJECT", r#"["writer"]"#);
        let output = command.output().unwrap();
        says(&printed(&output), &["memories: 2 new"]);
        assert!(output.status.success());
    }
}

#[test]
fn an_mcp_memory_becomes_memories_and_facts() {
    for place in Place::both() {
        let alice = ["--user", "alice"];
        says(&place.ends_with(1, &fixture("memory.jsonl"), &[]), &["add --user NAME"]);
        let told = place.ends_with(3, &fixture("memory.jsonl"), &alice);
        says(&told, &["memories: 3 new", "facts: 3 new", "memory.jsonl line 4: it is not JSON"]);
        let again = place.ends_with(3, &fixture("memory.jsonl"), &alice);
        says(&again, &["memories: 3 there already", "facts: 3 there already"]);
        let server = place.serve();
        let client = server.as_user("alice");
        let facts = client.get("/v1/facts?layer=user&userId=alice&predicate=member_of").expect(200);
        assert_eq!(facts.json["facts"][0]["object"], "Analytical Society", "{}", facts.describe());
        let listed = memories(&client, "user", json!({"userId": "alice"}));
        assert!(listed.iter().any(|one| one["content"] == "Ada: speaks Portuguese"), "{listed:#?}");
    }
}

#[test]
fn a_fact_that_is_stated_already_is_left_as_it_is() {
    let place = Place::sqlite();
    let mut server = place.serve();
    let alice = server.as_user("alice");
    let stated = json!({"layer": "user", "identifiers": {"userId": "alice"}, "factType": "relation", "subject": "Ada",
        "predicate": "member_of", "object": "Analytical Society", "confidence": 0.5});
    alice.post("/v1/facts", stated).expect(201);
    assert!(server.stop().success());
    let told = place.ends_with(3, &fixture("memory.jsonl"), &["--user", "alice", "--dry-run"]);
    says(&told, &["facts: 2 new, 1 there already"]);
    let told = place.ends_with(3, &fixture("memory.jsonl"), &["--user", "alice"]);
    says(&told, &["facts: 2 new, 1 there already"]);
    let server = place.serve();
    let facts =
        server.as_user("alice").get("/v1/facts?layer=user&userId=alice&predicate=member_of").expect(200);
    assert_eq!(facts.json["facts"].as_array().unwrap().len(), 1);
    assert_eq!(facts.json["facts"][0]["confidence"], 0.5);
}
