//! An import that was killed is completed by the next one, and nothing is there twice.

use crate::support::{Place, list, says};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CONVERSATIONS: usize = 300;

/// Conversations of two branches each: three entries on the root, one more on the fork.
fn export() -> Value {
    let one = |number: usize| {
        let node = |id: &str, parent: Option<&str>, role: &str, at: usize| {
            (
                id.to_owned(),
                json!({"id": id, "parent": parent, "message": {"id": id, "author": {"role": role},
                "create_time": 1_700_000_000 + at, "content": {"content_type": "text", "parts": [format!("{id} of {number}")]}}}),
            )
        };
        let nodes = [
            node("q", None, "user", 1),
            node("a", Some("q"), "assistant", 2),
            node("b", Some("q"), "assistant", 3),
            node("c", Some("b"), "user", 4),
        ];
        let mapping: serde_json::Map<String, Value> = nodes.into_iter().collect();
        json!({"conversation_id": format!("c{number}"), "title": format!("c{number}"), "current_node": "c", "mapping": mapping})
    };
    (0..CONVERSATIONS).map(one).collect()
}

#[test]
fn killed_and_run_again_is_whole() {
    for place in Place::both() {
        let path = place.give("export.json", export().to_string());
        let alice = ["--user", "alice"];
        // Killed at different moments, at least once after something was written and before everything was.
        for pause in [50, 120, 250] {
            let mut import = place.command(&path, &alice).spawn().unwrap();
            let until = Instant::now() + Duration::from_millis(pause);
            while Instant::now() < until && import.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            import.kill().unwrap();
            import.wait().unwrap();
        }
        place.import(&path, &alice);
        let again = place.import(&path, &alice);
        says(&again, &["conversations: 300 there already", "entries: 1200 there already"]);
        let server = place.serve();
        let client = server.as_user("alice");
        let (mut roots, mut after) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/v1/conversations?mode=roots&limit=200{after}")).expect(200).json;
            roots.extend(page["data"].as_array().unwrap().clone());
            let Some(cursor) = page["afterCursor"].as_str() else { break };
            after = format!("&after={cursor}");
        }
        assert_eq!(roots.len(), CONVERSATIONS);
        for root in roots.iter().step_by(37) {
            let id = root["id"].as_str().unwrap();
            assert_eq!(list(&client, &format!("/v1/conversations/{id}/entries")).len(), 3);
            assert_eq!(list(&client, &format!("/v1/conversations/{id}/forks")).len(), 2);
        }
    }
}
