//! Ownership transfers: life cycle, errors, races.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const PATH: &str = "/v1/ownership-transfers";
const TRANSFER: [&str; 6] =
    ["id", "conversationId", "conversationTitle", "fromUserId", "toUserId", "createdAt"];

/// Alice owns a conversation that Bob may read.
fn alice_and_bob() -> (Client, Client, String) {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "House");
    share(&alice, &id, &bob, "reader");
    (alice, bob, id)
}

#[track_caller]
fn offer(from: &Client, conversation: &str, to: &Client) -> Answer {
    from.post(PATH, json!({"conversationId": conversation, "newOwnerUserId": to.user()}))
}

#[track_caller]
fn level(who: &Client, conversation: &str) -> String {
    who.get(&format!("/v1/conversations/{conversation}")).expect(200).text_of("accessLevel")
}

// ---- life cycle

#[test]
fn a_transfer_has_exactly_the_contracts_members() {
    let (alice, bob, id) = alice_and_bob();

    let made = offer(&alice, &id, &bob).expect(201).expect_members(&TRANSFER);

    assert_uuid(&made.json["id"]);
    assert_eq!(made.json["conversationId"], id);
    assert_eq!(made.json["conversationTitle"], "House");
    assert_eq!(made.json["fromUserId"], alice.user());
    assert_eq!(made.json["toUserId"], bob.user());
    assert_timestamp(&made.json["createdAt"]);
    for who in [&alice, &bob] {
        assert_eq!(who.get(&format!("{PATH}/{}", made.id())).expect(200).json, made.json);
        assert_eq!(who.get(PATH).expect_page().data, std::slice::from_ref(&made.json));
    }
}

#[test]
fn a_transfer_of_an_untitled_conversation_has_no_title() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = alice.post("/v1/conversations", json!({})).expect(201).id();
    share(&alice, &id, &bob, "writer");

    offer(&alice, &id, &bob).expect(201).expect_members(&[
        "id",
        "conversationId",
        "fromUserId",
        "toUserId",
        "createdAt",
    ]);
}

#[test]
fn a_transfer_names_the_conversation_it_was_made_for_even_in_a_tree() {
    let (alice, bob, root) = alice_and_bob();
    let entry = say(&alice, &root, "one");
    let branch = fork(&alice, &root, &entry);

    let made = offer(&alice, &branch, &bob).expect(201);

    assert_eq!(made.json["conversationId"], branch);
    assert_eq!(bob.get(PATH).expect_page().all("conversationId"), [branch]);
}

#[test]
fn accepting_makes_the_recipient_owner_and_the_sender_manager_on_all_forks() {
    let (alice, bob, root) = alice_and_bob();
    let entry = say(&alice, &root, "one");
    let branch = fork(&alice, &root, &entry);
    let transfer = offer(&alice, &branch, &bob).expect(201).id();

    let accepted = bob.post_nothing(&format!("{PATH}/{transfer}/accept")).expect(204);

    assert_eq!(accepted.text, "");
    for id in [&root, &branch] {
        assert_eq!(level(&bob, id), "owner");
        assert_eq!(level(&alice, id), "manager");
        let read = alice.get(&format!("/v1/conversations/{id}")).expect(200);
        assert_eq!(read.json["ownerUserId"], bob.user());
    }
    let levels = bob.get(&format!("/v1/conversations/{root}/memberships")).expect_page().all("accessLevel");
    assert_eq!(levels.iter().filter(|l| *l == "owner").count(), 1);
    alice.delete(&format!("/v1/conversations/{root}")).expect_forbidden();
    bob.delete(&format!("/v1/conversations/{root}")).expect(204);
}

#[test]
fn an_accepted_transfer_is_gone() {
    let (alice, bob, id) = alice_and_bob();
    let transfer = offer(&alice, &id, &bob).expect(201).id();
    bob.post_nothing(&format!("{PATH}/{transfer}/accept")).expect(204);

    for who in [&alice, &bob] {
        who.get(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
        assert!(who.get(PATH).expect_page().data.is_empty());
    }
    bob.post_nothing(&format!("{PATH}/{transfer}/accept")).expect_not_found("transfer", &transfer);
    // And ownership can travel back.
    offer(&bob, &id, &alice).expect(201);
}

#[test]
fn the_sender_can_cancel_and_the_recipient_can_reject() {
    let (alice, bob, id) = alice_and_bob();
    for who in [&alice, &bob] {
        let transfer = offer(&alice, &id, &bob).expect(201).id();

        let gone = who.delete(&format!("{PATH}/{transfer}")).expect(204);

        assert_eq!(gone.text, "");
        alice.get(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
        who.delete(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
    }
    assert_eq!(level(&alice, &id), "owner");
    assert_eq!(level(&bob, &id), "reader");
}

// ---- creating: every error row in the contract's order

#[test]
fn an_unknown_or_deleted_conversation_cannot_be_offered() {
    let (alice, bob, id) = alice_and_bob();
    let unknown = fresh_id();
    offer(&alice, &unknown, &bob).expect_not_found("conversation", &unknown);

    alice.delete(&format!("/v1/conversations/{id}")).expect(204);
    offer(&alice, &id, &bob).expect_not_found("conversation", &id);
}

#[test]
fn only_the_owner_can_offer() {
    let (alice, bob, id) = alice_and_bob();
    let (manager, stranger) = (SERVER.someone("manager"), SERVER.someone("stranger"));
    share(&alice, &id, &manager, "manager");

    for who in [&bob, &manager, &stranger] {
        offer(who, &id, &bob).expect_forbidden();
        offer(who, &id, who).expect_forbidden();
    }
}

#[test]
fn an_offer_to_oneself_is_refused() {
    let (alice, _, id) = alice_and_bob();

    offer(&alice, &id, &alice).expect_error(400, "bad_request");
}

#[test]
fn an_offer_to_somebody_who_is_no_member_is_refused() {
    let (alice, _, id) = alice_and_bob();

    offer(&alice, &id, &SERVER.someone("stranger")).expect_error(400, "bad_request");
}

#[test]
fn a_second_pending_offer_is_refused_with_the_id_of_the_first() {
    let (alice, bob, id) = alice_and_bob();
    let carol = SERVER.someone("carol");
    share(&alice, &id, &carol, "writer");
    let entry = say(&alice, &id, "one");
    let branch = fork(&alice, &id, &entry);
    let first = offer(&alice, &id, &bob).expect(201).id();

    for (conversation, to) in [(&id, &bob), (&id, &carol), (&branch, &carol)] {
        let refused = offer(&alice, conversation, to).expect(409);
        assert_eq!(
            refused.json,
            json!({
                "error": "A pending ownership transfer already exists for this conversation",
                "code": "TRANSFER_ALREADY_PENDING",
                "existingTransferId": first,
            })
        );
    }
}

#[test]
fn checks_come_in_the_contracts_order() {
    let (alice, bob, id) = alice_and_bob();
    offer(&alice, &id, &bob).expect(201);

    // Pending already, yet the earlier checks answer first.
    offer(&alice, &id, &alice).expect_error(400, "bad_request");
    offer(&alice, &id, &SERVER.someone("stranger")).expect_error(400, "bad_request");
    offer(&bob, &id, &bob).expect_forbidden();
}

#[test]
fn the_body_of_an_offer_is_validated() {
    let (alice, bob, id) = alice_and_bob();

    alice.post(PATH, json!({"newOwnerUserId": bob.user()})).expect_violation("conversationId");
    alice
        .post(PATH, json!({"conversationId": "nonsense", "newOwnerUserId": bob.user()}))
        .expect_violation("conversationId");
    alice.post(PATH, json!({"conversationId": id})).expect_violation("newOwnerUserId");
    for name in ["", "  ", &"x".repeat(256)] {
        alice
            .post(PATH, json!({"conversationId": id, "newOwnerUserId": name}))
            .expect_violation("newOwnerUserId");
    }
    alice.send("POST", PATH, Body::None).expect(400);
}

// ---- reading and ending: who may

#[test]
fn others_do_not_find_a_transfer_and_may_not_end_it() {
    let (alice, bob, id) = alice_and_bob();
    let (carol, stranger) = (SERVER.someone("carol"), SERVER.someone("stranger"));
    share(&alice, &id, &carol, "manager");
    let transfer = offer(&alice, &id, &bob).expect(201).id();

    for who in [&carol, &stranger] {
        who.get(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
        who.delete(&format!("{PATH}/{transfer}")).expect_forbidden();
        who.post_nothing(&format!("{PATH}/{transfer}/accept")).expect_forbidden();
        assert!(who.get(PATH).expect_page().data.is_empty());
    }
}

#[test]
fn the_sender_cannot_accept() {
    let (alice, bob, id) = alice_and_bob();
    let transfer = offer(&alice, &id, &bob).expect(201).id();

    alice.post_nothing(&format!("{PATH}/{transfer}/accept")).expect_forbidden();
    assert_eq!(level(&alice, &id), "owner");
}

#[test]
fn an_unknown_transfer_is_not_found() {
    let alice = SERVER.someone("alice");
    for id in [fresh_id(), "nonsense".to_owned()] {
        alice.get(&format!("{PATH}/{id}")).expect_not_found("transfer", &id);
        alice.delete(&format!("{PATH}/{id}")).expect_not_found("transfer", &id);
        alice.post_nothing(&format!("{PATH}/{id}/accept")).expect_not_found("transfer", &id);
    }
}

// ---- listing

#[test]
fn transfers_are_listed_by_role_in_any_letter_case() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let (of_alice, of_bob) = (start(&alice, "Alice's"), start(&bob, "Bob's"));
    share(&alice, &of_alice, &bob, "reader");
    share(&bob, &of_bob, &alice, "reader");
    let sent = offer(&alice, &of_alice, &bob).expect(201).id();
    let received = offer(&bob, &of_bob, &alice).expect(201).id();
    let mut both = vec![sent.clone(), received.clone()];
    both.sort();

    let listed = |query: &str| alice.get(&format!("{PATH}?{query}")).expect_page().ids();

    assert_eq!(listed("role=sender"), [sent.as_str()]);
    assert_eq!(listed("role=SENDER"), [sent]);
    assert_eq!(listed("role=Recipient"), [received]);
    assert_eq!(listed("role=all"), both);
    assert_eq!(listed(""), both);
    alice.get(&format!("{PATH}?role=witness")).expect_violation("role");
}

#[test]
fn transfers_are_listed_by_id_and_can_be_walked() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let mut made: Vec<String> = (0..4)
        .map(|n| {
            let id = start(&alice, &n.to_string());
            share(&alice, &id, &bob, "reader");
            offer(&alice, &id, &bob).expect(201).id()
        })
        .collect();
    made.sort();

    let walked = walk(&bob, &format!("{PATH}?limit=1"));

    assert_eq!(walked.iter().map(|t| t["id"].as_str().unwrap()).collect::<Vec<_>>(), made);
}

// ---- what ends a transfer

#[test]
fn removing_the_recipient_removes_the_transfer() {
    let (alice, bob, id) = alice_and_bob();
    let transfer = offer(&alice, &id, &bob).expect(201).id();

    alice.delete(&format!("/v1/conversations/{id}/memberships/{}", bob.user())).expect(204);

    alice.get(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
    bob.post_nothing(&format!("{PATH}/{transfer}/accept")).expect_not_found("transfer", &transfer);
    share(&alice, &id, &bob, "reader");
    offer(&alice, &id, &bob).expect(201);
}

#[test]
fn a_recipient_who_leaves_takes_the_transfer_along() {
    let (alice, bob, id) = alice_and_bob();
    let transfer = offer(&alice, &id, &bob).expect(201).id();

    bob.delete(&format!("/v1/conversations/{id}/memberships/{}", bob.user())).expect(204);

    alice.get(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
}

#[test]
fn removing_somebody_else_keeps_the_transfer() {
    let (alice, bob, id) = alice_and_bob();
    let carol = SERVER.someone("carol");
    share(&alice, &id, &carol, "reader");
    let transfer = offer(&alice, &id, &bob).expect(201).id();

    alice.delete(&format!("/v1/conversations/{id}/memberships/{}", carol.user())).expect(204);

    bob.get(&format!("{PATH}/{transfer}")).expect(200);
}

#[test]
fn deleting_the_tree_removes_the_transfer_for_good() {
    let (alice, bob, id) = alice_and_bob();
    let transfer = offer(&alice, &id, &bob).expect(201).id();

    alice.delete(&format!("/v1/conversations/{id}")).expect(204);

    for who in [&alice, &bob] {
        who.get(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
        assert!(who.get(PATH).expect_page().data.is_empty());
    }
    SERVER.as_user("admin").post(&format!("/v1/admin/conversations/{id}/restore"), json!({})).expect(200);
    alice.get(&format!("{PATH}/{transfer}")).expect_not_found("transfer", &transfer);
    offer(&alice, &id, &bob).expect(201);
}

#[test]
fn a_changed_level_of_the_recipient_does_not_matter() {
    let (alice, bob, id) = alice_and_bob();
    let transfer = offer(&alice, &id, &bob).expect(201).id();
    alice
        .patch(
            &format!("/v1/conversations/{id}/memberships/{}", bob.user()),
            json!({"accessLevel": "manager"}),
        )
        .expect(200);

    bob.post_nothing(&format!("{PATH}/{transfer}/accept")).expect(204);

    assert_eq!(level(&bob, &id), "owner");
}

// ---- races

#[test]
fn of_two_offers_at_once_one_is_made_and_one_is_refused() {
    for _ in 0..5 {
        let (alice, bob, id) = alice_and_bob();

        let answers = at_once(2, |_| offer(&alice, &id, &bob));

        let made: Vec<&Answer> = answers.iter().filter(|a| a.status == 201).collect();
        let refused: Vec<&Answer> = answers.iter().filter(|a| a.status == 409).collect();
        assert_eq!(
            (made.len(), refused.len()),
            (1, 1),
            "{} / {}",
            answers[0].describe(),
            answers[1].describe()
        );
        assert_eq!(refused[0].json["existingTransferId"], made[0].json["id"]);
        assert_eq!(alice.get(PATH).expect_page().data.len(), 1);
    }
}

#[test]
fn accepting_twice_at_once_transfers_once() {
    let (alice, bob, id) = alice_and_bob();
    let transfer = offer(&alice, &id, &bob).expect(201).id();

    let answers = at_once(4, |_| bob.post_nothing(&format!("{PATH}/{transfer}/accept")));

    let mut statuses: Vec<u16> = answers.iter().map(|a| a.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 404, 404, 404]);
    assert_eq!(level(&bob, &id), "owner");
    assert_eq!(level(&alice, &id), "manager");
}

#[test]
fn accepting_and_cancelling_at_once_leave_exactly_one_owner() {
    for _ in 0..5 {
        let (alice, bob, id) = alice_and_bob();
        let transfer = offer(&alice, &id, &bob).expect(201).id();

        let answers = at_once(2, |n| match n {
            0 => bob.post_nothing(&format!("{PATH}/{transfer}/accept")),
            _ => alice.delete(&format!("{PATH}/{transfer}")),
        });

        let mut statuses: Vec<u16> = answers.iter().map(|a| a.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 404], "{} / {}", answers[0].describe(), answers[1].describe());
        let accepted = answers[0].status == 204;
        assert_eq!(level(&bob, &id), if accepted { "owner" } else { "reader" });
        assert_eq!(level(&alice, &id), if accepted { "manager" } else { "owner" });
    }
}

#[test]
fn whatever_happens_at_once_there_is_exactly_one_owner_and_all_forks_agree_on_him() {
    for round in 0..4 {
        let people: Vec<Client> = (0..4).map(|n| SERVER.someone(&format!("p{n}"))).collect();
        let root = start(&people[0], "Hot potato");
        let entry = say(&people[0], &root, "one");
        let branch = fork(&people[0], &root, &entry);
        for member in &people[1..] {
            share(&people[0], &root, member, "manager");
        }

        at_once(8, |n| {
            let me = &people[n % 4];
            for step in 0..6 {
                let other = &people[(n + step + 1) % 4];
                let answer = match (n + step) % 4 {
                    0 => offer(me, &root, other),
                    1 => match me.get(&format!("{PATH}?role=recipient")).expect_page().ids().first() {
                        Some(transfer) => me.post_nothing(&format!("{PATH}/{transfer}/accept")),
                        None => continue,
                    },
                    2 => me.patch(
                        &format!("/v1/conversations/{branch}/memberships/{}", other.user()),
                        json!({"accessLevel": "manager"}),
                    ),
                    _ => me.post(
                        &format!("/v1/conversations/{root}/memberships"),
                        json!({"userId": other.user(), "accessLevel": "manager"}),
                    ),
                };
                assert!(answer.status < 500, "{}", answer.describe());
            }
        });

        let page = people[0].get(&format!("/v1/conversations/{root}/memberships")).expect_page();
        let owners: Vec<&Value> = page.data.iter().filter(|m| m["accessLevel"] == "owner").collect();
        assert_eq!(owners.len(), 1, "round {round}: {:?}", page.data);
        for id in [&root, &branch] {
            let read = people[0].get(&format!("/v1/conversations/{id}")).expect(200);
            assert_eq!(read.json["ownerUserId"], owners[0]["userId"], "round {round}");
        }
    }
}
