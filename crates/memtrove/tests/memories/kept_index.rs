//! Indexes that are kept in files: searches find what they would without, whatever happens to the files, and what is deleted or
//! forgotten is in none of them.

use crate::support::*;
use std::path::{Path, PathBuf};

const ENCRYPTION: &str = "[encryption.dek]\nkey = \"bWVtbG9vbSB0ZXN0IGtleSB3aXRoIDMyIGJ5dGVzIS4=\"\n";

/// As many as make it worth while.
const ENTRIES: usize = 2_000;

#[track_caller]
fn fill(tenant: &Tenant, place: &Place, first: usize, count: usize) -> Vec<String> {
    let colours = ["red", "green", "blue", "yellow", "brown"];
    let content = |number: usize| {
        format!("The {} box number {number} stands in room {}", colours[number % 5], number % 17)
    };
    let memories: Vec<Value> =
        (first..first + count).map(|number| place.with(json!({"content": content(number)}))).collect();
    let added = memories.chunks(100).flat_map(|some| {
        let answer =
            tenant.client.post("/v1/memories:bulkAdd", json!({"memories": some, "atomic": true})).expect(200);
        list(&answer.json["results"])
            .iter()
            .map(|one| one["memory"]["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    });
    added.collect()
}

/// What some searches find, with their scores.
#[track_caller]
fn found(tenant: &Tenant, place: &Place) -> Vec<Value> {
    let queries =
        ["where is the blue box 77?", "room 3", "yellow", "what stands in room 16?", "box number 1999"];
    let search = |query: &str| {
        let body = json!({"query": query, "identifiers": place.identifiers, "limit": 50, "threshold": 0.3});
        tenant.client.post("/v1/memories:search", body).expect(200).json["results"].clone()
    };
    queries.into_iter().map(search).collect()
}

/// What the best hit says.
#[track_caller]
fn best(tenant: &Tenant, place: &Place, query: &str) -> String {
    let body = json!({"query": query, "identifiers": place.identifiers, "threshold": 0});
    let found = tenant.client.post("/v1/memories:search", body).expect(200);
    found.json["results"][0]["memory"]["content"].as_str().unwrap().to_owned()
}

fn folder(server: &TestServer) -> PathBuf {
    server.data_dir().join("memtrove.db.index")
}

fn files(server: &TestServer) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder(server)) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// How many indexes came from where since the start.
#[track_caller]
fn loads(server: &TestServer, from: &str) -> u64 {
    let metrics = server.anonymous().get("/metrics").expect(200).text;
    let line = format!("memory_index_loads_total{{from=\"{from}\"}} ");
    let count = metrics.lines().find_map(|other| other.strip_prefix(&line));
    count.unwrap_or_else(|| panic!("no {line} in\n{metrics}")).parse().unwrap()
}

/// A server with a scope that is large enough, which was searched.
fn searched_server(toml: &str) -> (TestServer, Place) {
    let server = server_with(toml);
    let (tenant, place) = (Tenant::of(&server, "t"), Place::user("u1"));
    fill(&tenant, &place, 0, ENTRIES);
    found(&tenant, &place);
    (server, place)
}

#[track_caller]
fn restart(server: &mut TestServer) {
    assert!(server.stop().success());
    server.restart();
}

fn finds_the_same_after_a_restart(toml: &str) {
    let (mut server, place) = searched_server(toml);
    let before = found(&Tenant::of(&server, "t"), &place);
    assert_eq!(loads(&server, "store"), 1);
    restart(&mut server);
    let tenant = Tenant::of(&server, "t");
    assert_eq!(found(&tenant, &place), before);
    assert_eq!((loads(&server, "file"), loads(&server, "store")), (1, 0));

    // What changes afterwards is found as ever, and after a kill it is read from the store.
    let more = fill(&tenant, &place, ENTRIES, 150);
    let changed = json!({"content": "The blue box 77 was thrown away"});
    tenant.changed(&more[7], changed);
    let then = found(&tenant, &place);
    assert_ne!(then, before);
    server.kill();
    server.restart();
    assert_eq!(found(&Tenant::of(&server, "t"), &place), then);
    assert_eq!((loads(&server, "file"), loads(&server, "store")), (1, 0));
}

#[test]
fn searches_find_the_same_after_a_restart() {
    finds_the_same_after_a_restart("");
}

#[test]
fn searches_find_the_same_after_a_restart_encrypted() {
    finds_the_same_after_a_restart(ENCRYPTION);
}

/// Every kind of damage: none of it is noticed by who searches.
#[test]
fn a_damaged_file_is_made_anew() {
    let (mut server, place) = searched_server("");
    let before = found(&Tenant::of(&server, "t"), &place);
    assert!(server.stop().success());
    let flip = |at: fn(usize) -> usize| {
        move |path: &Path| {
            let mut bytes = std::fs::read(path).unwrap();
            let at = at(bytes.len());
            bytes[at] ^= 0x10;
            std::fs::write(path, bytes).unwrap();
        }
    };
    let cut = |keep: fn(u64) -> u64| {
        move |path: &Path| {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(keep(file.metadata().unwrap().len())).unwrap();
        }
    };
    type Damage<'a> = (&'a str, &'a dyn Fn(&Path));
    let damages: [Damage<'_>; 9] = [
        ("the mark", &flip(|_| 0)),
        ("the kind", &flip(|_| 8)),
        ("a part", &flip(|length| length / 2)),
        ("the state", &flip(|length| length - 400)),
        ("the list", &flip(|length| length - 40)),
        ("the end", &flip(|length| length - 1)),
        ("half of it", &cut(|length| length / 2)),
        ("all but a byte", &cut(|length| length - 1)),
        ("all of it", &cut(|_| 0)),
    ];
    for (what, damage) in damages {
        let kept = files(&server);
        assert_eq!(kept.len(), 1, "{what}");
        damage(&kept[0]);
        server.restart();
        assert_eq!(found(&Tenant::of(&server, "t"), &place), before, "{what}");
        assert_eq!((loads(&server, "file"), loads(&server, "store")), (0, 1), "{what}");
        assert!(server.stop().success());
    }
}

/// The database of yesterday does not know the file of today, even if it came as far since.
#[test]
fn an_older_copy_of_the_database_refuses_a_newer_file() {
    let (mut server, place) = searched_server("");
    assert!(server.stop().success());
    let (database, copy) = (server.data_dir().join("memtrove.db"), server.data_dir().join("yesterday"));
    std::fs::copy(&database, &copy).unwrap();
    server.restart();
    let tenant = Tenant::of(&server, "t");
    fill(&tenant, &place, 60_000, 1_200);
    assert!(best(&tenant, &place, "box number 60123").contains("60123"));
    assert!(server.stop().success());
    std::fs::copy(&copy, &database).unwrap();
    server.restart();
    let tenant = Tenant::of(&server, "t");
    fill(&tenant, &place, 70_000, 1_500);
    assert!(
        !best(&tenant, &place, "box number 60123").contains("60123"),
        "it was written after the copy was made"
    );
    assert!(best(&tenant, &place, "box number 70123").contains("70123"));
    assert_eq!((loads(&server, "file"), loads(&server, "store")), (0, 1));
}

/// A file goes before the answer, for whatever reason something goes.
#[test]
fn what_is_deleted_or_forgotten_takes_its_file_with_it() {
    let (mut server, place) = searched_server("");
    let project = Place::project("p1");
    let tenant = Tenant::of(&server, "t");
    let private = project.with(json!({"content": "mine alone", "accessPolicy": {"policy": "private"}}));
    let ids = fill(&tenant, &project, 0, ENTRIES);
    tenant.added(private);
    found(&tenant, &project);
    restart(&mut server);
    assert_eq!(files(&server).len(), 2);
    let tenant = Tenant::of(&server, "t");
    found(&tenant, &project);
    tenant.delete(&ids[3]).expect(200);
    assert_eq!(files(&server).len(), 1, "one entry of the project was deleted");
    restart(&mut server);
    found(&Tenant::of(&server, "t"), &project);
    restart(&mut server);
    assert_eq!(files(&server).len(), 2, "written again at the end");
    let forget = json!({"userId": "u1"});
    let left = files(&server);
    Tenant::of(&server, "t").as_user("u1").client.post("/v1/users:forget", forget).expect(200);
    assert!(files(&server).len() < left.len(), "the user's own scope is gone");
    assert_eq!(found(&Tenant::of(&server, "t"), &place), vec![json!([]); 5]);
    restart(&mut server);
    assert_eq!(found(&Tenant::of(&server, "t"), &place), vec![json!([]); 5]);
}

#[test]
fn a_file_that_comes_back_after_a_removal_is_not_taken_for_the_scopes() {
    let (mut server, place) = searched_server("");
    restart(&mut server);
    let kept = files(&server).remove(0);
    let bytes = std::fs::read(&kept).unwrap();
    let tenant = Tenant::of(&server, "t");
    found(&tenant, &place);
    let ids = fill(&tenant, &place, ENTRIES, 1);
    tenant.delete(&ids[0]).expect(200);
    assert!(files(&server).is_empty());
    // As after a loss of power that undid nothing but the removal.
    server.kill();
    std::fs::write(&kept, bytes).unwrap();
    server.restart();
    assert!(files(&server).is_empty(), "what was deleted is in it");
}
