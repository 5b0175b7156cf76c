//! What is acknowledged by one node is read at once through another.

use crate::cluster::stream::Follower;
use crate::cluster::support::*;
use std::time::Duration;

/// The entries that a search of this type finds, best first.
fn found(who: &Person, kind: &str, query: &str) -> Vec<String> {
    let body = json!({"query": query, "searchType": kind, "groupByConversation": false});
    who.client.post("/v1/conversations/search", body).expect_page().all("entryId")
}

/// What a search of memories finds.
fn recalled(who: &Person, query: &str) -> String {
    let body = json!({"query": query, "identifiers": {"userId": who.user}, "limit": 20, "threshold": 0});
    who.client.post("/v1/memories:search", body).expect(200).text
}

#[test]
fn what_one_node_acknowledged_another_one_shows_at_once() {
    let nodes = setup().nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");
    let mut streams = nodes.iter().map(|node| Follower::of_memories(node, &alice)).collect::<Vec<_>>();
    let id = alice.start();
    // Indexes in the memory of the reading node are warm, and must not be stale.
    for round in 0..4 {
        let (here, there) = (alice.at(&nodes[round % 2]), alice.at(&nodes[(round + 1) % 2]));
        let word = format!("walrus{round}x");

        let entry =
            here.say(&id, &format!("Our puppy {word} needs to see the vet on Monday")).expect(201).id();
        assert_eq!(there.transcript(&id).len(), round + 1);
        assert_eq!(there.feed().last().map(|change| text_of(&change["version"])), Some(entry.clone()));
        assert_eq!(found(&there, "fulltext", &word), [entry.as_str()]);
        let meant = found(&there, "semantic", "taking the dog to an animal doctor");
        assert!(meant.contains(&entry), "{entry} is not among {meant:?}");

        here.sync(&id, &[json!(word)]).expect(200);
        assert_eq!(there.memory(&id), [json!(word)]);

        let etag =
            here.put(&format!("{word}.md"), "*", json!({"lines": []})).expect(200).header("etag").to_owned();
        assert_eq!(there.read(&format!("{word}.md")).expect(200).header("etag"), etag);
        assert!(there.client.get(&there.path("/files:list?")).expect(200).text.contains(&word));
        there.add_line(&format!("{word}.md"), &etag, "more").expect(200);
        assert_eq!(lines(&here.read(&format!("{word}.md")).expect(200)), ["more"]);

        here.tell(&format!("evt-{round}"), &word).expect(202);
        let events = there.client.post(&there.path("/events:search"), json!({"query": word})).expect(200);
        assert!(events.text.contains(&format!("evt-{round}")), "{}", events.describe());

        let content = format!("the heron {word} waits by the river");
        let memory = text_of(&here.remember(&content).expect(201).json["memory"]["id"]);
        there.client.get(&format!("/v1/memories/{memory}")).expect(200);
        assert!(there.remembered().contains(&content));
        assert!(recalled(&there, &word).contains(&memory), "by its word");
        assert!(recalled(&there, "a bird at the water").contains(&memory), "by its meaning");
        for stream in &mut streams {
            loop {
                let (_, event) = stream.next(Duration::from_secs(10)).expect("the memory is told");
                if event.to_string().contains(&memory) {
                    break;
                }
            }
        }

        let fact = json!({"layer": "user", "identifiers": {"userId": here.user}, "factType": "rule",
                          "subject": word, "predicate": "eats", "object": "fish"});
        here.client.post("/v1/facts", fact).expect(201);
        let query = json!({"layer": "user", "identifiers": {"userId": here.user}, "subject": word});
        let facts = there.client.post("/v1/facts:query", query).expect(200);
        assert!(facts.text.contains("fish"), "{}", facts.describe());

        there.client.delete(&format!("/v1/memories/{memory}")).expect(200);
        here.client.get(&format!("/v1/memories/{memory}")).expect(404);
        assert!(!recalled(&here, &word).contains(&memory), "what is gone there is gone here");
    }
}

#[test]
fn what_is_taken_away_on_one_node_is_closed_on_the_other_at_once() {
    let nodes = setup().nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");
    let bob = Person::of(&nodes[1], &alice.tenant, &fresh_name("bob"));
    let id = alice.start();
    let entry = alice.say(&id, "the walrus waits").expect(201).id();
    let memberships = format!("/v1/conversations/{id}/memberships");
    for _ in 0..3 {
        let member = json!({"userId": bob.user, "accessLevel": "reader"});
        alice.client.post(&memberships, member).expect(201);
        assert_eq!(found(&bob, "fulltext", "walrus"), [entry.as_str()]);
        assert_eq!(found(&bob, "semantic", "walrus"), [entry.as_str()]);

        alice.client.delete(&format!("{memberships}/{}", bob.user)).expect(204);

        bob.client.get(&entries(&id)).expect_forbidden();
        assert!(found(&bob, "fulltext", "walrus").is_empty());
        assert!(found(&bob, "semantic", "walrus").is_empty());
    }
    alice.client.delete(&format!("/v1/conversations/{id}")).expect(204);
    alice.at(&nodes[1]).client.get(&format!("/v1/conversations/{id}")).expect(404);
}
