//! An import that was killed is completed by the next one, and nothing is there twice.

use crate::importing::support::{Place, list, says};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ALICE: [&str; 2] = ["--user", "alice"];
/// How many conversations there are; if all of them were in before anybody noticed, there are more the next time.
const SIZES: [usize; 3] = [300, 1200, 4800];
/// How many entries each of them has.
const ENTRIES: u64 = 4;

/// Conversations of two branches each: three entries on the root, one more on the fork.
fn export(conversations: usize) -> Value {
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
    (0..conversations).map(one).collect()
}

/// Begins an import and kills it as soon as it has written more than there was; how many entries there are then.
fn kill_midway(place: &Place, path: &Path) -> u64 {
    let before = place.entries();
    let mut import = place.command(path, &ALICE).spawn().unwrap();
    let started = Instant::now();
    while place.entries() == before && import.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(120), "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    import.kill().unwrap();
    import.wait().unwrap();
    place.entries()
}

/// A store with an export of which some is in, because it was killed on the way, and the number of conversations.
fn broken_off(fresh: fn() -> Place) -> (Place, PathBuf, usize) {
    for size in SIZES {
        let place = fresh();
        // The tables are there before anything is counted.
        assert!(place.serve().stop().success());
        let path = place.give("export.json", export(size).to_string());
        let written = kill_midway(&place, &path);
        assert!(written > 0, "it ended before anything was written");
        if written < size as u64 * ENTRIES {
            return (place, path, size);
        }
    }
    panic!("no kill came before the end");
}

#[test]
fn killed_and_run_again_is_whole() {
    for fresh in [Place::sqlite, Place::postgres] {
        let (place, path, size) = broken_off(fresh);
        // Once more, where it goes on from; and then to the end.
        kill_midway(&place, &path);
        place.import(&path, &ALICE);
        let again = place.import(&path, &ALICE);
        let entries = format!("entries: {} there already", size as u64 * ENTRIES);
        says(&again, &[&format!("conversations: {size} there already"), &entries]);
        let server = place.serve();
        let client = server.as_user("alice");
        let (mut roots, mut after) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/v1/conversations?mode=roots&limit=200{after}")).expect(200).json;
            roots.extend(page["data"].as_array().unwrap().clone());
            let Some(cursor) = page["afterCursor"].as_str() else { break };
            after = format!("&after={cursor}");
        }
        assert_eq!(roots.len(), size);
        for root in roots.iter().step_by(37) {
            let id = root["id"].as_str().unwrap();
            assert_eq!(list(&client, &format!("/v1/conversations/{id}/entries")).len(), 3);
            assert_eq!(list(&client, &format!("/v1/conversations/{id}/forks")).len(), 2);
        }
    }
}
