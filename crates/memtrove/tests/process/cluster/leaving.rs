//! A node is told to stop while it is used.

use crate::cluster::database::{more, under_load};
use crate::cluster::load::*;
use crate::cluster::sound::assert_sound;
use crate::cluster::support::*;
use std::process::Command;

/// SIGTERM, without waiting.
fn tell_to_stop(node: &TestServer) {
    let sent =
        Command::new("kill").args(["-TERM", &node.pid().to_string()]).status().expect("the kill command");
    assert!(sent.success());
}

#[test]
fn a_node_that_stops_says_so_first_and_fails_nothing_that_it_accepted() {
    let database = Database::fresh();
    // Leases that would last: they are given back, not waited for.
    let setup = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .toml("[server]\nshutdown_delay = \"1s\"\n[tasks]\nlease = \"10m\"")
        .database(&database);
    let mut nodes = setup.clone().nodes(1);
    until("it does what is done for all", || number(&database, "SELECT count(*) FROM leases") > 3);
    nodes.extend(setup.nodes(1));
    let alice = Person::fresh(&nodes[0], "alice");
    let id = alice.start();
    let health = nodes[0].anonymous();

    // A balancer's view: whoever finds the node ready sends it a request.
    let sent: usize = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|n| {
                let (alice, health, id) = (alice.clone(), health.clone(), id.as_str());
                scope.spawn(move || {
                    let mut sent = 0;
                    while is_ready(&health) {
                        alice.say(id, &format!("{n}.{sent}")).expect(201);
                        sent += 1;
                    }
                    // It is still there for those who have not noticed.
                    alice.say(id, &format!("{n}.late")).expect(201);
                    sent + 1
                })
            })
            .collect();
        until("requests come", || alice.transcript(&id).len() > 10);
        tell_to_stop(&nodes[0]);
        callers.into_iter().map(|caller| caller.join().expect("no request failed")).sum()
    });

    until("the process is gone", || health.try_send("GET", "/health/live", Body::None).is_err());
    until("it gave everything back", || number(&database, "SELECT count(*) FROM nodes") == 1);
    let holders = "SELECT count(*) FROM leases WHERE holder NOT IN (SELECT id FROM nodes)";
    assert_eq!(number(&database, holders), 0, "its leases are given back at once");
    assert_eq!(alice.at(&nodes[1]).transcript(&id).len(), sent);
    assert_sound(&database);
}

#[test]
fn a_request_that_is_under_way_is_finished() {
    let database = Database::fresh();
    let node = setup().database(&database).start();
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();

    let frozen = Frozen::table(&database, "entries");
    std::thread::scope(|scope| {
        let said = scope.spawn(|| alice.say(&id, "in the middle of things"));
        until("the request is under way", || Frozen::has_met(&database, "entries"));
        tell_to_stop(&node);
        until("the node is not ready", || !is_ready(&node.anonymous()));
        drop(frozen);
        said.join().expect("an answer").expect(201);
    });

    let next = setup().database(&database).start();
    assert_eq!(alice.at(&next).transcript(&id), ["in the middle of things"]);
}

#[test]
fn nodes_are_replaced_one_by_one_under_load_and_nobody_notices() {
    let database = Database::fresh();
    let setup = setup().database(&database);
    let mut nodes = setup.clone().nodes(2);
    let mut crew = Writer::crew(&nodes, &[0, 0, 0]);

    // They talk to the first node, which stays, while others come and go beside it.
    under_load(&mut crew, |acknowledged| {
        for _ in 0..2 {
            more(acknowledged, 20);
            nodes.push(setup.clone().start());
            more(acknowledged, 20);
            assert!(nodes.remove(1).stop().success());
        }
        more(acknowledged, 20);
    });

    for writer in &crew {
        assert_eq!((writer.refused, writer.open), (0, 0), "somebody noticed");
        nodes.iter().for_each(|node| writer.verify(node));
    }
    assert_sound(&database);
}
