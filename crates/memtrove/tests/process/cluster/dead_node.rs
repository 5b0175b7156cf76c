//! One of three nodes is killed: the others go on, and finish what it had begun.

use crate::cluster::database::{more, under_load};
use crate::cluster::load::*;
use crate::cluster::sound::assert_sound;
use crate::cluster::stream::Follower;
use crate::cluster::support::*;

/// The nodes that hold a lease which has not run out.
fn holders(database: &Database) -> Vec<String> {
    let query =
        "SELECT DISTINCT holder FROM leases WHERE until > extract(epoch FROM clock_timestamp()) * 1000000";
    database.rows(query).into_iter().flatten().flatten().collect()
}

/// A first node, which does what is done for all, and two more; and how the database calls the first.
fn three(database: &std::sync::Arc<Database>) -> (Vec<TestServer>, String) {
    let mut nodes = setup().database(database).nodes(1);
    until("the first node does what is done for all", || holders(database).len() == 1);
    let first = holders(database).remove(0);
    nodes.extend(setup().database(database).nodes(2));
    (nodes, first)
}

#[test]
fn the_others_go_on_and_everything_the_dead_one_promised_is_there() {
    let database = Database::fresh();
    let (mut nodes, first) = three(&database);
    let mut crew = Writer::crew(&nodes, &[0, 0, 1, 1, 2, 2]);
    let tenant = crew[0].person.tenant.clone();
    let mut followers: Vec<Follower> =
        nodes[1..].iter().map(|node| Follower::of_changes(node, &tenant)).collect();

    under_load(&mut crew, |acknowledged| {
        more(acknowledged, 60);
        nodes[0].kill();
        more(acknowledged, 90);
    });

    let (dead, alive) = crew.split_at(2);
    assert!(dead.iter().all(|writer| writer.open == 1), "it was killed in the middle of things");
    for writer in alive {
        assert_eq!((writer.refused, writer.open), (0, 0), "the others go on without an error of their own");
    }
    assert_sound(&database);
    for writer in &crew {
        nodes[1..].iter().for_each(|node| writer.verify(node));
    }
    let feed = alive[0].person.feed();
    for follower in &mut followers {
        let told = follower.changes_up_to(feed.len() as i64);
        assert_eq!(told, feed, "a follower is told what the feed says");
    }
    until("another node does what the dead one did", || {
        let holders = holders(&database);
        !holders.is_empty() && !holders.contains(&first)
    });
}

#[test]
fn a_change_that_a_node_did_not_live_to_number_is_told_by_the_others() {
    let database = Database::fresh();
    let mut nodes = setup().database(&database).nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");
    let id = alice.start();
    let mut follower = Follower::of_changes(&nodes[1], &alice.tenant);
    follower.changes_up_to(1);

    // Numbering waits for the table of numbered changes; appending does not need it.
    let frozen = Frozen::table(&database, "changes");
    let entry = alice.say(&id, "last words").expect(201).id();
    until("somebody is about to number it", || Frozen::has_met(&database, "changes"));
    nodes[0].kill();
    drop(frozen);

    let (name, change) = follower.next(std::time::Duration::from_secs(10)).expect("the change is told");
    assert_eq!(
        (name.as_str(), &change["sequence"], &change["version"]),
        ("entry.appended", &json!(2), &json!(entry))
    );
    assert_sound(&database);
}

#[test]
fn a_forget_that_a_node_did_not_live_to_finish_is_finished_by_another() {
    let database = Database::fresh();
    let mut nodes = setup().database(&database).nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");
    let (word, id) = (fresh_name("word").replace('-', ""), alice.start());
    alice.say(&id, &word).expect(201);
    alice.put("a.md", "*", json!({"lines": [word]})).expect(200);
    alice.tell("evt_1", &word).expect(202);
    alice.remember(&word).expect(201);
    alice.sync(&id, &[json!(word)]).expect(200);

    let frozen = Frozen::table(&database, "events");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| alice.client.try_send("DELETE", &alice.path("/memory"), Body::None));
        until("it has come to the events", || Frozen::has_met(&database, "events"));
        nodes[0].kill();
        assert!(asked.join().expect("no panic").is_err(), "nobody answers");
    });
    drop(frozen);

    until("it is finished", || number(&database, "SELECT count(*) FROM forgotten_users") == 0);
    let stored = nodes[1].stored();
    assert_eq!(stored.holding(&word), Vec::<String>::new());
    assert_eq!(
        stored.holding(&alice.user),
        ["public.changes"],
        "that the user was forgotten, and nothing else"
    );
    let alice = alice.at(&nodes[1]);
    assert_eq!(alice.remembered(), Vec::<String>::new());
    assert_eq!(alice.client.get("/v1/conversations?mode=all").expect_page().ids(), Vec::<String>::new());
    alice.read("a.md").expect(404);
}

#[test]
fn a_job_that_a_node_did_not_live_to_finish_is_finished_by_another() {
    let database = Database::fresh();
    let mut nodes = setup().database(&database).nodes(1);
    let alice = Person::fresh(&nodes[0], "alice");
    for n in 0..5 {
        alice.tell(&format!("evt_{n}"), "the walrus").expect(202);
    }
    let frozen = Frozen::table(&database, "event_blocks");
    let reindex = alice.path("/events:reindex");
    let job = alice.admin().post(&reindex, json!({})).expect(202).text_of("job_id");
    until("it is at work", || Frozen::has_met(&database, "event_blocks"));
    nodes.extend(setup().database(&database).nodes(1));
    nodes[0].kill();
    drop(frozen);

    let (alice, path) = (alice.at(&nodes[1]), format!("/v1/admin/jobs/{job}"));
    until("another node has finished it", || {
        let state = alice.admin().get(&path).expect(200);
        assert_ne!(state.json["status"], "failed", "{}", state.describe());
        state.json["status"] == "succeeded"
    });
    let found = alice.client.post(&alice.path("/events:search"), json!({"query": "walrus"})).expect(200);
    assert_eq!(found.json["results"].as_array().map(Vec::len), Some(5), "{}", found.describe());
}
