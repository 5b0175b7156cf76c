//! A user is forgotten on one node while others still write for it.

use crate::cluster::support::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn what_was_written_before_a_forget_never_comes_back() {
    let nodes = setup().nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");
    let friend = Person::of(&nodes[1], &alice.tenant, &fresh_name("friend"));
    let shared = friend.start();
    let member = json!({"userId": alice.user, "accessLevel": "writer"});
    friend.client.post(&format!("/v1/conversations/{shared}/memberships"), member).expect(201);
    let own = alice.start();

    let (stop, begun, written) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (alice, own, shared) = (alice.at(&nodes[n % 2]), own.as_str(), shared.as_str());
            let (stop, begun, written) = (&stop, &begun, &written);
            scope.spawn(move || {
                for m in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let label = format!("secret{n}x{m}x");
                    // Being forgotten, one finds some doors closed. Nothing is answered with a failure.
                    let (answer, refusals): (Answer, &[u16]) = match (n + m) % 6 {
                        0 => (alice.say(own, &label), &[403, 404]),
                        1 => (alice.say(shared, &label), &[403, 404]),
                        2 => (alice.put(&format!("{label}.md"), "*", json!({"lines": [label]})), &[]),
                        3 => (alice.remember(&label), &[]),
                        4 => (alice.tell(&label, &label), &[]),
                        _ => (alice.sync(own, &[json!(label)]), &[403, 404]),
                    };
                    let done = (200..300).contains(&answer.status);
                    assert!(done || refusals.contains(&answer.status), "{}", answer.describe());
                    // Acknowledged before anybody asked to forget. What was said to others stays with them, without a name.
                    if done && (n + m) % 6 != 1 && !begun.load(Ordering::SeqCst) {
                        written.lock().expect("no panic").push(label);
                    }
                }
            });
        }
        until("enough is written", || written.lock().expect("no panic").len() > 40);
        begun.store(true, Ordering::SeqCst);
        let forgotten = alice.at(&nodes[1]).client.delete(&alice.path("/memory"));
        stop.store(true, Ordering::Relaxed);
        forgotten.expect(200);
    });

    let written = written.into_inner().expect("no panic");
    let stored = nodes[0].stored().everything();
    for label in &written {
        for (table, bytes) in &stored {
            let found = bytes.windows(label.len()).any(|part| part == label.as_bytes());
            assert!(!found, "{label} is still in {table}");
        }
    }
    for node in &nodes {
        let alice = alice.at(node);
        let shown = [
            alice.remembered().join(" "),
            alice.client.get(&alice.path("/files:list?limit=500")).expect(200).text,
            alice.client.post(&alice.path("/events:search"), json!({"top_k": 500})).expect(200).text,
            alice.client.get("/v1/conversations?mode=all").expect(200).text,
        ];
        for label in &written {
            assert!(!shown.iter().any(|text| text.contains(label.as_str())), "{label} came back");
        }
    }

    // What was written meanwhile is forgotten by the next one, and then nothing has its name.
    alice.client.delete(&alice.path("/memory")).expect(200);
    until("nothing is left to do", || {
        number(nodes[0].database().expect("a database"), "SELECT count(*) FROM forgotten_users") == 0
    });
    assert_eq!(
        nodes[0].stored().holding(&alice.user),
        ["public.changes"],
        "that the user was forgotten, and nothing else"
    );
    assert!(!friend.transcript(&shared).is_empty());
}

/// An archive that is imported while its user is forgotten brings rows whose parents are gone. They have no tenant.
#[test]
fn what_came_without_a_tenant_in_the_middle_of_a_forget_is_forgotten_too() {
    const CONTENT: [&str; 8] =
        ["audit", "entries", "event_blocks", "events", "files", "memories", "memory_index", "texts"];
    let database = Database::fresh();
    let node = setup().database(&database).start();
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();
    for written in [
        alice.say(&id, "secretly said"),
        alice.put("secret.md", "*", json!({"lines": ["secretly filed"]})),
        alice.tell("secret", "secretly happened"),
        alice.remember("secretly remembered"),
    ] {
        assert!(written.status < 300, "{}", written.describe());
    }
    let rows = |table: &str| number(&database, &format!("SELECT count(*) FROM {table}"));
    for table in CONTENT {
        assert!(rows(table) > 0, "{table} is empty");
        database.execute(&format!("UPDATE {table} SET tenant = E'\\x01all'"), &[]);
    }

    alice.client.delete(&alice.path("/memory")).expect(200);

    for table in CONTENT {
        assert_eq!(rows(table), 0, "{table}");
    }
    assert_eq!(node.stored().holding("secretly"), [""; 0]);
}
