//! Two nodes do the same thing at once.

use crate::cluster::sound::assert_sound;
use crate::cluster::support::*;

/// Two nodes, and somebody as each of them sees it.
fn two() -> (Vec<TestServer>, [Person; 2]) {
    let nodes = setup().nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");
    let seen = [alice.clone(), alice.at(&nodes[1])];
    (nodes, seen)
}

fn database(nodes: &[TestServer]) -> &Database {
    nodes[0].database().expect("a database")
}

#[test]
fn appends_to_one_conversation_are_all_there_in_the_order_of_each_writer() {
    let (nodes, alice) = two();
    let id = alice[0].start();

    at_once(8, |n| {
        for m in 0..8 {
            alice[n % 2].say(&id, &format!("{n}.{m}")).expect(201);
        }
    });

    let transcripts = alice.each_ref().map(|alice| alice.transcript(&id));
    assert_eq!(transcripts[0], transcripts[1]);
    for n in 0..8 {
        let own: Vec<&String> =
            transcripts[0].iter().filter(|text| text.starts_with(&format!("{n}."))).collect();
        assert_eq!(own, (0..8).map(|m| format!("{n}.{m}")).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    }
    assert_sound(database(&nodes));
}

#[test]
fn one_conversation_that_many_begin_at_once_is_one() {
    let (nodes, alice) = two();
    for round in 0..4 {
        let id = fresh_id();
        at_once(6, |n| alice[n % 2].say(&id, &format!("{n}")).expect(201));
        assert_eq!(alice[round % 2].transcript(&id).len(), 6);
    }
    assert_sound(database(&nodes));
}

#[test]
fn syncs_of_one_memory_follow_each_other_whichever_node_they_come_to() {
    let (nodes, alice) = two();
    let id = alice[0].start();

    // Each of them goes on from what it reads, so that some extend the memory and others diverge from it.
    let answers: Vec<(Vec<Value>, Value)> = at_once(6, |n| {
        let rounds = (0..8).map(|m| {
            let mut next = alice[n % 2].memory(&id);
            next.push(json!(format!("{n}.{m}")));
            let answer = alice[n % 2].sync(&id, &next).expect(200).json;
            (next, answer)
        });
        rounds.collect::<Vec<_>>()
    })
    .concat();

    let stored = walk(&alice[0].client, &format!("{}?channel=memory&epoch=all&limit=200", entries(&id)));
    assert_eq!(stored.len(), answers.len(), "each of them wrote exactly one entry");
    let (mut epoch, mut state): (Option<i64>, Vec<Value>) = (None, Vec::new());
    for entry in &stored {
        let (asked, answer) = answers
            .iter()
            .find(|(_, answer)| answer["entry"]["id"] == entry["id"])
            .unwrap_or_else(|| panic!("nobody wrote {entry}"));
        let extends = asked.starts_with(&state);
        assert_eq!(answer["noOp"], false, "{answer}");
        assert_eq!(answer["epochIncremented"], !extends, "after {state:?}: {answer}");
        let now = if extends { epoch.unwrap_or(1) } else { epoch.unwrap_or(0) + 1 };
        assert_eq!((&answer["epoch"], &entry["epoch"]), (&json!(now), &json!(now)), "{answer}");
        let delta = if extends { &asked[state.len()..] } else { asked.as_slice() };
        assert_eq!(entry["content"], json!(delta), "{answer}");
        (epoch, state) = (Some(now), asked.clone());
    }
    for alice in &alice {
        assert_eq!(alice.memory(&id), state, "the last one is the memory");
    }
    assert_sound(database(&nodes));
}

#[test]
fn the_same_sync_on_both_nodes_is_written_once() {
    let (nodes, alice) = two();
    let id = alice[0].start();
    let mut items = Vec::new();
    for round in 0..8 {
        items.push(json!(round));
        let answers = at_once(4, |n| alice[n % 2].sync(&id, &items).expect(200).json);
        let written = answers.iter().filter(|answer| answer["noOp"] == false).count();
        assert_eq!(written, 1, "{answers:?}");
        assert!(answers.iter().all(|answer| answer["epoch"] == 1), "{answers:?}");
    }
    assert_eq!(alice[1].memory(&id), items);
    assert_sound(database(&nodes));
}

#[test]
fn of_many_patches_of_one_version_exactly_one_wins() {
    let (nodes, alice) = two();
    let mut etag = alice[0].put("a.md", "*", json!({"lines": []})).expect(200).header("etag").to_owned();
    let mut expected = Vec::new();
    for round in 0..12 {
        let answers = at_once(4, |n| alice[n % 2].add_line("a.md", &etag, &format!("{round}.{n}")));
        let winners: Vec<usize> = (0..4).filter(|n| answers[*n].status == 200).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        expected.push(format!("{round}.{}", winners[0]));
        etag = answers[winners[0]].header("etag").to_owned();
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            let answer = answer.clone().expect(412);
            assert_eq!(answer.json["error"]["details"]["latest_etag"], etag, "{}", answer.describe());
        }
    }
    for alice in &alice {
        assert_eq!(lines(&alice.read("a.md").expect(200)), expected);
    }

    let answers = at_once(6, |n| alice[n % 2].put("new.md", "*", json!({"lines": [n]})));
    let made = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(made, 1, "one of them makes the file: {answers:?}");
    assert_sound(database(&nodes));
}

#[test]
fn the_same_fact_on_both_nodes_is_one_and_no_statement_is_lost() {
    let (nodes, alice) = two();
    for round in 0..4 {
        let answers = at_once(6, |n| {
            let mut body = json!({"layer": "project", "identifiers": {"projectId": "p"}, "factType": "rule",
                                  "subject": "the walrus", "predicate": "eats", "object": format!("fish {round}")});
            body["metadata"] = json!({format!("writer-{n}"): true});
            alice[n % 2].client.post("/v1/facts", body)
        });
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)), "{answers:?}");
        assert_eq!(made, 1, "{answers:?}");
        let id = &answers[0].json["fact"]["id"];
        assert!(answers.iter().all(|answer| answer.json["fact"]["id"] == *id), "{answers:?}");
        let stored = alice[1].client.get(&format!("/v1/memories/{}", text_of(id))).expect(200).json;
        let members = stored["memory"]["metadata"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!((&stored["memory"]["version"], members), (&json!(6), 6), "{stored}");
    }
    assert_sound(database(&nodes));
}

#[test]
fn promoting_the_same_memory_on_both_nodes_makes_one_copy() {
    let (nodes, alice) = two();
    for round in 0..4 {
        let id =
            text_of(&alice[0].remember(&format!("the heron waits {round}")).expect(201).json["memory"]["id"]);
        let project = fresh_name("project");
        let body = json!({"targetLayer": "project", "identifiers": {"projectId": project}});
        let answers =
            at_once(4, |n| alice[n % 2].client.post(&format!("/v1/memories/{id}/promote"), body.clone()));
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)), "{answers:?}");
        let listed = json!({"layer": "project", "identifiers": {"projectId": project}});
        let listed = alice[1].client.post("/v1/memories:list", listed).expect(200);
        assert_eq!(listed.json["totalCount"], 1, "{answers:?}");
    }
    drop(nodes);
}

#[test]
fn changes_of_one_memory_on_both_nodes_follow_each_other() {
    let (nodes, alice) = two();
    let id = text_of(&alice[0].remember("the heron waits").expect(201).json["memory"]["id"]);
    let path = format!("/v1/memories/{id}");

    at_once(4, |n| {
        for m in 0..5 {
            let metadata = json!({"metadata": {format!("{n}.{m}"): true}});
            alice[n % 2].client.patch(&path, metadata).expect(200);
        }
    });

    let stored = alice[1].client.get(&path).expect(200).json;
    assert_eq!(stored["memory"]["version"], 21, "{stored}");
    assert_sound(database(&nodes));
}

#[test]
fn sharing_and_transfers_on_both_nodes_leave_one_owner() {
    let (nodes, alice) = two();
    let bob = Person::of(&nodes[0], &alice[0].tenant, &fresh_name("bob"));
    let bob = [bob.clone(), bob.at(&nodes[1])];
    for round in 0..3 {
        let id = alice[0].start();
        let memberships = format!("/v1/conversations/{id}/memberships");
        let levels = ["reader", "writer", "manager"];
        at_once(6, |n| {
            let member = json!({"userId": bob[0].user, "accessLevel": levels[(n + round) % 3]});
            alice[n % 2].client.post(&memberships, member).expect(201);
        });
        assert_eq!(alice[1].client.get(&memberships).expect_page().data.len(), 2);

        let offer = json!({"conversationId": id, "newOwnerUserId": bob[0].user});
        let offers = at_once(4, |n| alice[n % 2].client.post("/v1/ownership-transfers", offer.clone()));
        let made: Vec<&Answer> = offers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(made.len(), 1, "{offers:?}");
        let transfer = made[0].id();
        for answer in offers.iter().filter(|answer| answer.status != 201) {
            assert_eq!((answer.status, &answer.json["existingTransferId"]), (409, &json!(transfer)));
        }
        let path = format!("/v1/ownership-transfers/{transfer}");
        let mut statuses = at_once(4, |n| match n {
            0..2 => bob[n % 2].client.post_nothing(&format!("{path}/accept")).status,
            _ => alice[n % 2].client.delete(&path).status,
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 404, 404, 404]);
    }
    assert_sound(database(&nodes));
}

#[test]
fn changes_of_one_memory_on_all_nodes_at_once_wait_for_each_other() {
    const WRITERS: u64 = 48;
    let database = Database::fresh();
    let nodes = setup().database(&database).nodes(3);
    let alice = Person::fresh(&nodes[0], "alice");
    let body = json!({"content": "one", "layer": "user", "identifiers": {"userId": alice.user}});
    let id = alice.client.post("/v1/memories", body).expect(201).json["memory"]["id"].clone();
    let path = format!("/v1/memories/{}", text_of(&id));
    let gate = std::sync::Barrier::new(WRITERS as usize);
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                let (client, path, gate) = (alice.at(&nodes[n as usize % 3]).client, &path, &gate);
                scope.spawn(move || {
                    gate.wait();
                    client.patch(path, json!({"metadata": {format!("key-{n}"): n}}))
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(refused.is_empty(), "{} of {WRITERS}: {}", refused.len(), refused[0].describe());
    let mut versions: Vec<_> =
        answers.iter().map(|answer| answer.json["memory"]["version"].as_u64().unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=WRITERS + 1).collect::<Vec<_>>());
    let memory = alice.client.get(&path).expect(200).json["memory"].clone();
    assert!((0..WRITERS).all(|n| memory["metadata"][format!("key-{n}")] == n), "{memory}");
}
