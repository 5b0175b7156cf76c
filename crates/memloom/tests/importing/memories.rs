//! Memories of mem0, and of the MCP reference server.

use crate::support::{Place, fixture, says};
use memloom_testkit::server::Client;
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
