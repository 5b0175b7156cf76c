//! Tenants: whatever one of them does, another never sees it.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// The same user name in a tenant, through a client that may choose it.
fn gateway(user: &str, tenant: &str) -> Client {
    SERVER.anonymous().with_key("gateway").with_header("x-user-id", user).in_tenant(tenant)
}

#[test]
fn the_same_id_in_two_tenants_is_two_conversations() {
    let user = fresh_name("alice");
    let (one, two) = (gateway(&user, &fresh_name("one")), gateway(&user, &fresh_name("two")));
    let id = fresh_id();

    say(&one, &id, "in one");
    two.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
    say(&two, &id, "in two");
    say(&two, &id, "again in two");

    assert_eq!(transcript(&one, &id), ["in one"]);
    assert_eq!(transcript(&two, &id), ["in two", "again in two"]);
    one.delete(&format!("/v1/conversations/{id}")).expect(204);
    one.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
    assert_eq!(transcript(&two, &id), ["in two", "again in two"]);
}

#[test]
fn the_same_id_can_have_memory_memberships_forks_and_transfers_in_both() {
    let user = fresh_name("alice");
    let bob = fresh_name("bob");
    let id = fresh_id();
    for tenant in [fresh_name("one"), fresh_name("two")] {
        let alice = gateway(&user, &tenant);
        say(&alice, &id, &tenant);
        let cut = say(&alice, &id, "cut");
        sync(&alice, &id, json!([tenant])).expect(200);
        alice
            .post(
                &format!("/v1/conversations/{id}/memberships"),
                json!({"userId": bob, "accessLevel": "reader"}),
            )
            .expect(201);
        alice
            .post("/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": bob}))
            .expect(201);
        let branch = fork(&alice, &id, &cut);

        assert_eq!(transcript(&alice, &branch), [tenant.as_str()]);
        assert_eq!(current_memory(&alice, &id), [json!(tenant)]);
        assert_eq!(alice.get("/v1/ownership-transfers").expect_page().data.len(), 1);
        assert_eq!(alice.get(&format!("/v1/conversations/{id}/memberships")).expect_page().data.len(), 2);
        assert_eq!(alice.get(&format!("/v1/conversations/{id}/forks")).expect_page().data.len(), 2);
    }
}

#[test]
fn nothing_of_one_tenant_can_be_reached_from_another() {
    let (user, bob) = (fresh_name("alice"), fresh_name("bob"));
    let (mine, other) = (fresh_name("one"), fresh_name("two"));
    let (alice, intruder) = (gateway(&user, &mine), gateway(&user, &other));
    let id = start(&alice, "Mine");
    let entry = say(&alice, &id, "walrus");
    alice
        .post(&format!("/v1/conversations/{id}/memberships"), json!({"userId": bob, "accessLevel": "writer"}))
        .expect(201);
    let transfer = alice
        .post("/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": bob}))
        .expect(201)
        .id();
    let of = |rest: &str| format!("/v1/conversations/{id}{rest}");

    for answer in [
        intruder.get(&of("")),
        intruder.patch(&of(""), json!({"title": "x"})),
        intruder.delete(&of("")),
        intruder.get(&of("/entries")),
        intruder.get(&of("/entries?channel=memory")),
        intruder.get(&of("/entries?channel=all&forks=all")),
        intruder.post_nothing(&of(&format!("/entries/{entry}/fork"))),
        intruder.get(&of("/forks")),
        intruder.get(&of("/memberships")),
        intruder.post(&of("/memberships"), json!({"userId": "x", "accessLevel": "reader"})),
        intruder.patch(&of(&format!("/memberships/{bob}")), json!({"accessLevel": "reader"})),
        intruder.delete(&of(&format!("/memberships/{bob}"))),
        intruder.post("/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": bob})),
    ] {
        answer.expect_not_found("conversation", &id);
    }
    let recipient = gateway(&bob, &other);
    for who in [&intruder, &recipient] {
        who.get(&format!("/v1/ownership-transfers/{transfer}")).expect_not_found("transfer", &transfer);
        who.delete(&format!("/v1/ownership-transfers/{transfer}")).expect_not_found("transfer", &transfer);
        who.post_nothing(&format!("/v1/ownership-transfers/{transfer}/accept"))
            .expect_not_found("transfer", &transfer);
        assert!(who.get("/v1/ownership-transfers").expect_page().data.is_empty());
        assert!(who.get("/v1/conversations?mode=all").expect_page().data.is_empty());
        assert!(
            who.post("/v1/conversations/search", json!({"query": "walrus"})).expect_page().data.is_empty()
        );
    }
    let mut body = history("x");
    body["forkedAtConversationId"] = json!(id);
    body["forkedAtEntryId"] = json!(entry);
    intruder
        .post(&format!("/v1/conversations/{}/entries", fresh_id()), body)
        .expect_not_found("conversation", &id);
    intruder.get(&format!("/v1/conversations?after={id}")).expect(400);

    let own = start(&intruder, "Own");
    say(&intruder, &own, "own");
    intruder.get(&format!("/v1/conversations/{own}/entries?after={entry}")).expect(400);
    intruder
        .post_nothing(&format!("/v1/conversations/{own}/entries/{entry}/fork"))
        .expect_not_found("entry", &entry);

    let admin = admin_in(&SERVER, &other);
    for rest in ["", "/entries", "/memberships", "/forks"] {
        admin.get(&format!("/v1/admin/conversations/{id}{rest}")).expect_not_found("conversation", &id);
    }
    admin.delete(&format!("/v1/admin/conversations/{id}")).expect_not_found("conversation", &id);
    admin
        .post(
            "/v1/conversations/index",
            json!([{"conversationId": id, "entryId": entry, "indexedContent": "x"}]),
        )
        .expect_not_found("entry", &entry);
    assert_eq!(transcript(&alice, &id), ["walrus"]);
}

#[test]
fn without_a_choice_everybody_is_in_the_default_tenant() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    let chosen = SERVER.as_user(alice.user()).with_key("gateway").in_tenant("default");

    assert_eq!(chosen.get("/v1/conversations").expect_page().ids(), [id]);
}

#[test]
fn a_user_alone_cannot_choose_a_tenant() {
    let tenant = fresh_name("tenant");
    let user = fresh_name("alice");
    let id = start(&gateway(&user, &tenant), "Theirs");

    let alone = SERVER.as_user(&user).in_tenant(&tenant);

    let read = alone.get(&format!("/v1/conversations/{id}"));
    assert!(matches!(read.status, 403 | 404), "{}", read.describe());
    let listed = alone.get("/v1/conversations");
    assert!(listed.status == 403 || listed.json["data"] == json!([]), "{}", listed.describe());
}

/// Three tenants with the same people and, where possible, the same conversation ids do random things. Every text
/// carries its tenant's mark, and nobody ever reads another mark.
#[test]
fn random_actions_in_random_tenants_never_cross() {
    for seed in [1_u64, 20_240_229, 0xC0FFEE] {
        let mut dice = Dice(seed);
        let tenants: Vec<String> = (0..3).map(|n| fresh_name(&format!("t{n}"))).collect();
        let people: Vec<String> = (0..3).map(|n| fresh_name(&format!("p{n}"))).collect();
        let ids: Vec<String> = (0..4).map(|_| fresh_id()).collect();
        for _ in 0..120 {
            let (tenant, person, id) =
                (&tenants[dice.roll(3)], &people[dice.roll(3)], &ids[dice.roll(ids.len())]);
            let who = gateway(person, tenant);
            let path = format!("/v1/conversations/{id}/entries");
            // Most of these succeed, some are forbidden or not found; what matters is what is read afterwards.
            let answer = match dice.roll(6) {
                0 | 1 => who.post(&path, history(&format!("mark {tenant}"))),
                2 => who.post(&path, memory(json!([format!("mark {tenant}")]))),
                3 => sync(&who, id, json!([format!("mark {tenant}"), dice.roll(3)])),
                4 => who.post(
                    &format!("/v1/conversations/{id}/memberships"),
                    json!({"userId": people[dice.roll(3)], "accessLevel": "writer"}),
                ),
                _ => match entry_of(&who, id) {
                    Some(entry) => who.post_nothing(&format!("{path}/{entry}/fork")),
                    None => continue,
                },
            };
            assert!(answer.status < 500, "seed {seed}: {}", answer.describe());
        }

        for tenant in &tenants {
            let foreign: Vec<&String> = tenants.iter().filter(|other| *other != tenant).collect();
            let clean = |answer: &Answer| {
                for mark in &foreign {
                    assert!(
                        !answer.text.contains(*mark),
                        "seed {seed}: {tenant} reads {}",
                        answer.describe()
                    );
                }
            };
            for person in &people {
                let who = gateway(person, tenant);
                let listed = who.get("/v1/conversations?mode=all&limit=200").expect(200);
                clean(&listed);
                for item in listed.json["data"].as_array().unwrap() {
                    let id = item["id"].as_str().unwrap();
                    for rest in [
                        "entries?channel=all&limit=200",
                        "entries?forks=all&limit=200",
                        "forks",
                        "memberships",
                    ] {
                        clean(&who.get(&format!("/v1/conversations/{id}/{rest}")).expect(200));
                    }
                }
                for query in ["mark", tenant, foreign[0], foreign[1]] {
                    let body = json!({"query": query, "groupByConversation": false, "limit": 200});
                    clean(&who.post("/v1/conversations/search", body).expect(200));
                }
            }
            let admin = admin_in(&SERVER, tenant);
            clean(&admin.get("/v1/admin/conversations?includeDeleted=true&mode=all&limit=1000").expect(200));
            clean(&admin.get("/v1/conversations/unindexed?limit=200").expect(200));
            clean(
                &admin
                    .post("/v1/admin/conversations/search", json!({"query": "mark", "limit": 1000}))
                    .expect(200),
            );
        }
    }
}

/// Some entry that this person sees in this conversation.
fn entry_of(who: &Client, conversation: &str) -> Option<String> {
    let answer = who.get(&format!("/v1/conversations/{conversation}/entries"));
    answer.json["data"][0]["id"].as_str().map(str::to_owned)
}
