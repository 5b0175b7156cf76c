//! Memberships: the access matrix, the invariants of ownership, the audit lines.

use crate::support::*;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const MEMBERSHIP: [&str; 4] = ["conversationId", "userId", "accessLevel", "createdAt"];

fn memberships(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/memberships")
}

fn membership(conversation: &str, user: &str) -> String {
    format!("/v1/conversations/{conversation}/memberships/{user}")
}

// ---- the matrix

/// A tree with one person of every level, fresh for every cell of the matrix.
struct Tree {
    id: String,
    entry: String,
    caller: Client,
    bystander: Client,
}

impl Tree {
    /// The caller has this level; `none` is somebody without a membership.
    fn with_caller(level: &str) -> Self {
        let owner = SERVER.someone("owner").with_key("agent-a");
        let bystander = SERVER.someone("bystander");
        let id = start(&owner, "Tree");
        let entry = say(&owner, &id, "a searchable walrus");
        sync(&owner, &id, json!(["state"])).expect(200);
        share(&owner, &id, &bystander, "writer");
        let caller = match level {
            "owner" => owner,
            "none" => SERVER.someone("nobody").with_key("agent-a"),
            level => {
                let caller = SERVER.someone(level).with_key("agent-a");
                share(&owner, &id, &caller, level);
                caller
            }
        };
        Self { id, entry, caller, bystander }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/conversations/{}{rest}", self.id)
    }
}

/// What one action answers for reader, writer, manager, owner and somebody without a membership.
#[track_caller]
fn row(action: &str, expected: [u16; 5], perform: impl Fn(&Tree) -> Answer) {
    for (level, status) in ["reader", "writer", "manager", "owner", "none"].into_iter().zip(expected) {
        let answer = perform(&Tree::with_caller(level));
        assert_eq!(answer.status, status, "{action} as {level}: {}", answer.describe());
        if status == 403 {
            answer.expect_forbidden();
        }
    }
}

#[test]
fn matrix_reading_a_conversation_and_its_lists() {
    row("get", [200, 200, 200, 200, 403], |t| t.caller.get(&t.path("")));
    row("list entries", [200, 200, 200, 200, 403], |t| t.caller.get(&t.path("/entries")));
    row("list forks", [200, 200, 200, 200, 403], |t| t.caller.get(&t.path("/forks")));
    row("list memberships", [200, 200, 200, 200, 403], |t| t.caller.get(&t.path("/memberships")));
    row("read own-client memory", [200, 200, 200, 200, 403], |t| {
        t.caller.get(&t.path("/entries?channel=memory"))
    });
    row("read everything", [200, 200, 200, 200, 403], |t| {
        t.caller.get(&t.path("/entries?channel=all&forks=all"))
    });
}

#[test]
fn matrix_finding_a_conversation() {
    for (level, hits) in [("reader", 1), ("writer", 1), ("manager", 1), ("owner", 1), ("none", 0)] {
        let tree = Tree::with_caller(level);
        let found = tree.caller.post("/v1/conversations/search", json!({"query": "walrus"})).expect_page();
        assert_eq!(found.data.len(), hits, "search hits of {level}");
        let listed = tree.caller.get("/v1/conversations").expect_page();
        assert_eq!(listed.data.len(), hits, "listed conversations of {level}");
        assert!(listed.data.iter().all(|item| item["accessLevel"] == level));
    }
}

#[test]
fn matrix_writing() {
    row("append history", [403, 201, 201, 201, 403], |t| t.caller.post(&t.path("/entries"), history("x")));
    row("append memory", [403, 201, 201, 201, 403], |t| {
        t.caller.post(&t.path("/entries"), memory(json!(["x"])))
    });
    row("sync", [403, 200, 200, 200, 403], |t| t.caller.post(&t.path("/entries/sync"), memory(json!(["x"]))));
    row("fork", [403, 201, 201, 201, 403], |t| {
        t.caller.post_nothing(&t.path(&format!("/entries/{}/fork", t.entry)))
    });
    row("fork on first append", [403, 201, 201, 201, 403], |t| {
        let mut body = history("x");
        body["forkedAtConversationId"] = json!(t.id);
        t.caller.post(&format!("/v1/conversations/{}/entries", fresh_id()), body)
    });
    row("change the title", [403, 200, 200, 200, 403], |t| {
        t.caller.patch(&t.path(""), json!({"title": "New"}))
    });
}

#[test]
fn matrix_granting_changing_and_revoking() {
    for level in ["manager", "writer", "reader"] {
        row(&format!("grant {level}"), [403, 403, 201, 201, 403], |t| {
            t.caller.post(&t.path("/memberships"), json!({"userId": fresh_name("new"), "accessLevel": level}))
        });
        row(&format!("change to {level}"), [403, 403, 200, 200, 403], |t| {
            t.caller.patch(&membership(&t.id, t.bystander.user()), json!({"accessLevel": level}))
        });
    }
    row("revoke", [403, 403, 204, 204, 403], |t| t.caller.delete(&membership(&t.id, t.bystander.user())));
}

#[test]
fn matrix_deleting_and_transferring() {
    row("delete", [403, 403, 403, 204, 403], |t| t.caller.delete(&t.path("")));
    row("start a transfer", [403, 403, 403, 201, 403], |t| {
        t.caller.post(
            "/v1/ownership-transfers",
            json!({"conversationId": t.id, "newOwnerUserId": t.bystander.user()}),
        )
    });
}

#[test]
fn matrix_leaving() {
    for (level, status) in [("reader", 204), ("writer", 204), ("manager", 204), ("owner", 400)] {
        let tree = Tree::with_caller(level);
        let answer = tree.caller.delete(&membership(&tree.id, tree.caller.user()));
        assert_eq!(answer.status, status, "leaving as {level}: {}", answer.describe());
        let then = tree.caller.get(&tree.path("")).status;
        assert_eq!(then, if level == "owner" { 200 } else { 403 }, "after leaving as {level}");
    }
}

#[test]
fn a_conversation_that_is_not_there_is_not_found_before_anything_else_is_checked() {
    let alice = SERVER.someone("alice");
    for id in [fresh_id(), "nonsense".to_owned()] {
        alice.get(&memberships(&id)).expect_not_found("conversation", &id);
        alice
            .post(&memberships(&id), json!({"userId": "bob", "accessLevel": "reader"}))
            .expect_not_found("conversation", &id);
        alice
            .patch(&membership(&id, "bob"), json!({"accessLevel": "reader"}))
            .expect_not_found("conversation", &id);
        alice.delete(&membership(&id, "bob")).expect_not_found("conversation", &id);
    }
}

// ---- shapes and lists

#[test]
fn a_granted_membership_has_exactly_the_contracts_members() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");

    let granted = alice
        .post(&memberships(&id), json!({"userId": bob.user(), "accessLevel": "writer"}))
        .expect(201)
        .expect_members(&MEMBERSHIP);

    assert_eq!(granted.json["conversationId"], id);
    assert_eq!(granted.json["userId"], bob.user());
    assert_eq!(granted.json["accessLevel"], "writer");
    assert_timestamp(&granted.json["createdAt"]);
}

#[test]
fn memberships_name_the_conversation_they_were_asked_through() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let root = start(&alice, "Root");
    let entry = say(&alice, &root, "one");
    let branch = fork(&alice, &root, &entry);

    let granted =
        alice.post(&memberships(&branch), json!({"userId": bob.user(), "accessLevel": "reader"})).expect(201);
    assert_eq!(granted.json["conversationId"], branch);
    let changed = alice.patch(&membership(&root, bob.user()), json!({"accessLevel": "writer"})).expect(200);
    assert_eq!(changed.json["conversationId"], root);

    for id in [&root, &branch] {
        let page = alice.get(&memberships(id)).expect_page();
        assert_eq!(page.all("conversationId"), [id.as_str(), id.as_str()]);
        assert_eq!(page.data.len(), 2);
        page.data.iter().for_each(|item| assert_members(item, &MEMBERSHIP, "a membership"));
    }
}

#[test]
fn memberships_are_listed_by_user_id_in_byte_order_and_can_be_walked() {
    let alice = SERVER.as_user(fresh_name("mmm"));
    let id = start(&alice, "Chat");
    let names = ["Zoë", "abel", "Abel", "émile", "zoe", "zebra@example.org", "a b", "10", "9"];
    for name in names {
        alice.post(&memberships(&id), json!({"userId": name, "accessLevel": "reader"})).expect(201);
    }
    let mut expected: Vec<&str> = names.into_iter().chain([alice.user()]).collect();
    expected.sort_unstable();

    assert_eq!(alice.get(&memberships(&id)).expect_page().all("userId"), expected);
    let mut walked = Vec::new();
    let mut page = alice.get(&format!("{}?limit=1", memberships(&id))).expect_page();
    loop {
        walked.append(&mut page.all("userId"));
        let Some(after) = page.after else { break };
        let encoded: String = after.bytes().map(|byte| format!("%{byte:02X}")).collect();
        page = alice.get(&format!("{}?limit=1&after={encoded}", memberships(&id))).expect_page();
    }
    assert_eq!(walked, expected);
}

#[test]
fn user_ids_in_paths_are_percent_decoded_exactly_once() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for (name, encoded) in [
        ("bob@example.org", "bob%40example.org"),
        ("a/b c", "a%2Fb%20c"),
        ("50%25", "50%2525"),
        ("jürgen+x", "j%C3%BCrgen+x"),
        ("auth0|42", "auth0%7C42"),
    ] {
        alice.post(&memberships(&id), json!({"userId": name, "accessLevel": "reader"})).expect(201);

        let changed = alice.patch(&membership(&id, encoded), json!({"accessLevel": "writer"})).expect(200);
        assert_eq!(changed.json["userId"], name);
        alice.delete(&membership(&id, encoded)).expect(204);
        alice.delete(&membership(&id, encoded)).expect_not_found("membership", name);
    }
}

// ---- granting

#[test]
fn granting_again_overwrites_the_level_and_keeps_the_date() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    let grant = |level: &str| {
        alice.post(&memberships(&id), json!({"userId": bob.user(), "accessLevel": level})).expect(201)
    };

    let first = grant("reader");
    let second = grant("manager");
    let third = grant("manager");

    assert_eq!(second.json["accessLevel"], "manager");
    assert_eq!(second.json["createdAt"], first.json["createdAt"]);
    assert_eq!(third.json, second.json);
    assert_eq!(alice.get(&memberships(&id)).expect_page().data.len(), 2);
}

#[test]
fn levels_are_accepted_in_any_letter_case_and_answered_in_lower_case() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    for (given, answered) in [("READER", "reader"), ("Writer", "writer"), ("mAnAgEr", "manager")] {
        let user = fresh_name("bob");
        let granted =
            alice.post(&memberships(&id), json!({"userId": user, "accessLevel": given})).expect(201);
        assert_eq!(granted.json["accessLevel"], answered);
        let changed = alice.patch(&membership(&id, &user), json!({"accessLevel": given})).expect(200);
        assert_eq!(changed.json["accessLevel"], answered);
    }
}

#[test]
fn user_and_level_are_required_and_checked() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let path = memberships(&id);

    alice.post(&path, json!({"accessLevel": "reader"})).expect_violation("userId");
    alice.post(&path, json!({"userId": null, "accessLevel": "reader"})).expect_violation("userId");
    alice.post(&path, json!({"userId": "", "accessLevel": "reader"})).expect_violation("userId");
    alice.post(&path, json!({"userId": "  ", "accessLevel": "reader"})).expect_violation("userId");
    alice.post(&path, json!({"userId": "bob"})).expect_violation("accessLevel");
    alice.post(&path, json!({"userId": "bob", "accessLevel": "king"})).expect_violation("accessLevel");
    alice.send("POST", &path, Body::None).expect(400);
    let bob = fresh_name("bob");
    alice.post(&path, json!({"userId": bob, "accessLevel": "reader"})).expect(201);
    alice.patch(&membership(&id, &bob), json!({})).expect_violation("accessLevel");
    alice.patch(&membership(&id, &bob), json!({"accessLevel": "king"})).expect_violation("accessLevel");
    assert_eq!(alice.get(&path).expect_page().data.len(), 2);
}

#[test]
fn ownership_cannot_be_granted() {
    let (alice, bob, new) = (SERVER.someone("alice"), SERVER.someone("bob"), SERVER.someone("new"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "manager");

    for level in ["owner", "OWNER"] {
        alice.post(&memberships(&id), json!({"userId": new.user(), "accessLevel": level})).expect(400);
        alice.post(&memberships(&id), json!({"userId": bob.user(), "accessLevel": level})).expect(400);
        alice.patch(&membership(&id, bob.user()), json!({"accessLevel": level})).expect(400);
        bob.patch(&membership(&id, bob.user()), json!({"accessLevel": level})).expect(400);
    }
    assert_eq!(alice.get(&memberships(&id)).expect_page().all("accessLevel"), ["owner", "manager"]);
}

#[test]
fn the_owner_cannot_be_touched_by_anybody() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "manager");

    for who in [&alice, &bob] {
        for level in ["manager", "writer", "reader", "owner"] {
            who.patch(&membership(&id, alice.user()), json!({"accessLevel": level})).expect(400);
            who.post(&memberships(&id), json!({"userId": alice.user(), "accessLevel": level})).expect(400);
        }
        who.delete(&membership(&id, alice.user())).expect(400);
    }
    assert_eq!(alice.get(&format!("/v1/conversations/{id}")).expect(200).json["accessLevel"], "owner");
}

#[test]
fn an_unknown_member_is_not_found() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let nobody = fresh_name("nobody");

    alice
        .patch(&membership(&id, &nobody), json!({"accessLevel": "reader"}))
        .expect_not_found("membership", &nobody);
    alice.delete(&membership(&id, &nobody)).expect_not_found("membership", &nobody);
}

// ---- managers

#[test]
fn a_manager_handles_other_managers_and_himself() {
    let (alice, bob, carol, dave) =
        (SERVER.someone("alice"), SERVER.someone("bob"), SERVER.someone("carol"), SERVER.someone("dave"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "manager");

    share(&bob, &id, &carol, "manager");
    share(&bob, &id, &dave, "manager");
    bob.patch(&membership(&id, carol.user()), json!({"accessLevel": "reader"})).expect(200);
    bob.delete(&membership(&id, dave.user())).expect(204);
    let lowered = bob.patch(&membership(&id, bob.user()), json!({"accessLevel": "writer"})).expect(200);

    assert_eq!(lowered.json["accessLevel"], "writer");
    bob.delete(&membership(&id, carol.user())).expect_forbidden();
    bob.post(&memberships(&id), json!({"userId": bob.user(), "accessLevel": "manager"})).expect_forbidden();
    bob.delete(&membership(&id, bob.user())).expect(204);
    bob.get(&format!("/v1/conversations/{id}")).expect_forbidden();
}

#[test]
fn a_reader_cannot_remove_others_nor_raise_himself() {
    let (alice, bob, carol) = (SERVER.someone("alice"), SERVER.someone("bob"), SERVER.someone("carol"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "reader");
    share(&alice, &id, &carol, "reader");

    bob.delete(&membership(&id, carol.user())).expect_forbidden();
    bob.patch(&membership(&id, bob.user()), json!({"accessLevel": "manager"})).expect_forbidden();
}

#[test]
fn a_revocation_takes_effect_at_once() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let agent = bob.with_key("agent-a");
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "writer");
    sync(&agent, &id, json!(["state"])).expect(200);
    assert_eq!(current_memory(&agent, &id), [json!("state")]);

    alice.delete(&membership(&id, bob.user())).expect(204);

    agent.get(&format!("/v1/conversations/{id}/entries?channel=memory")).expect_forbidden();
    agent.get(&format!("/v1/conversations/{id}/entries")).expect_forbidden();
    sync(&agent, &id, json!(["state"])).expect_forbidden();
    assert!(bob.get("/v1/conversations?mode=all").expect_page().data.is_empty());
}

#[test]
fn removing_and_sharing_again_gives_a_fresh_membership() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "manager");
    alice.delete(&membership(&id, bob.user())).expect(204);

    share(&alice, &id, &bob, "reader");

    bob.post(&format!("/v1/conversations/{id}/entries"), history("x")).expect_forbidden();
    assert_eq!(transcript(&bob, &id), Vec::<String>::new());
}

#[test]
fn concurrent_grants_to_one_user_leave_one_membership() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    let levels = ["reader", "writer", "manager"];

    at_once(12, |n| {
        alice
            .post(&memberships(&id), json!({"userId": bob.user(), "accessLevel": levels[n % 3]}))
            .expect(201);
    });

    assert_eq!(alice.get(&memberships(&id)).expect_page().data.len(), 2);
}

// ---- the policy that only owners make managers

#[test]
fn where_only_owners_make_managers_a_manager_may_still_lower_himself() {
    let server = server_with("[policy]\nmanagers_may_grant_manager = false\n");
    let (alice, bob, carol) = (server.someone("alice"), server.someone("bob"), server.someone("carol"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "manager");
    share(&alice, &id, &carol, "manager");
    let grant = json!({"userId": fresh_name("new"), "accessLevel": "manager"});

    // What the policy forbids: managers making, changing and removing managers.
    bob.post(&memberships(&id), grant).expect_forbidden();
    bob.patch(&membership(&id, carol.user()), json!({"accessLevel": "writer"})).expect_forbidden();
    bob.post(&memberships(&id), json!({"userId": carol.user(), "accessLevel": "reader"})).expect_forbidden();
    bob.delete(&membership(&id, carol.user())).expect_forbidden();
    // What it does not: going down, and leaving.
    let lowered = bob.patch(&membership(&id, bob.user()), json!({"accessLevel": "writer"})).expect(200);
    assert_eq!(lowered.json["accessLevel"], "writer");
    bob.patch(&membership(&id, bob.user()), json!({"accessLevel": "manager"})).expect_forbidden();
    bob.post(&format!("/v1/conversations/{id}/entries"), history("still here")).expect(201);
    carol.delete(&membership(&id, carol.user())).expect(204);

    let members: BTreeSet<(String, String)> = alice
        .get(&memberships(&id))
        .expect_page()
        .data
        .iter()
        .map(|m| (m["userId"].as_str().unwrap().to_owned(), m["accessLevel"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [(alice.user(), "owner"), (bob.user(), "writer")];
    assert_eq!(members, expected.map(|(who, level)| (who.to_owned(), level.to_owned())).into());
}

// ---- audit

#[test]
fn every_change_of_membership_writes_an_audit_line() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    let (actor, target, conversation) =
        (format!("actor={}", alice.user()), format!("target={}", bob.user()), format!("conversation={id}"));
    let line = |action: &str| {
        SERVER.wait_for_log(&[
            "MEMBERSHIP_CHANGE",
            &actor,
            &target,
            &conversation,
            &format!("action={action}"),
        ])
    };

    share(&alice, &id, &bob, "reader");
    assert!(line("add").contains("accessLevel=reader"));

    alice.patch(&membership(&id, bob.user()), json!({"accessLevel": "writer"})).expect(200);
    let updated = line("update");
    assert!(updated.contains("fromLevel=reader") && updated.contains("toLevel=writer"), "{updated}");

    alice.delete(&membership(&id, bob.user())).expect(204);
    line("remove");
}

#[test]
fn the_audit_line_names_the_client_when_there_is_one() {
    let (alice, bob) = (SERVER.someone("alice").with_key("agent-7"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");

    share(&alice, &id, &bob, "reader");

    SERVER.wait_for_log(&[
        "MEMBERSHIP_CHANGE",
        &format!("conversation={id}"),
        "client=agent-7",
        "action=add",
    ]);
}

#[test]
fn a_transfer_of_ownership_writes_an_audit_line() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "reader");
    let transfer = alice
        .post("/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": bob.user()}))
        .expect(201)
        .id();
    bob.post_nothing(&format!("/v1/ownership-transfers/{transfer}/accept")).expect(204);

    SERVER.wait_for_log(&[
        "MEMBERSHIP_CHANGE",
        &format!("conversation={id}"),
        "action=transfer_ownership",
        bob.user(),
    ]);
}

#[test]
fn a_user_name_cannot_forge_an_audit_line() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let marker = fresh_name("forged");
    let name = format!("bob\nMEMBERSHIP_CHANGE actor={marker} action=add \"quoted\" \u{1b}[31m");

    alice.post(&memberships(&id), json!({"userId": name, "accessLevel": "reader"})).expect(201);

    SERVER.wait_for_log(&["MEMBERSHIP_CHANGE", &format!("conversation={id}"), "action=add"]);
    let lines = SERVER.log_lines(&[&marker]);
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line.contains(&format!("actor={}", alice.user())), "a forged line: {line}");
        assert!(!line.contains('\u{1b}'), "a raw escape character: {line:?}");
    }
}

#[test]
fn a_change_is_audited_even_if_whoever_made_it_hung_up_at_once() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let address = SERVER.url().strip_prefix("http://").unwrap();
    for n in 0..30 {
        let body = json!({"userId": fresh_name("guest"), "accessLevel": "reader"}).to_string();
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            memberships(&id),
            alice.user(),
            body.len()
        );
        let mut socket = TcpStream::connect(address).expect("a connection");
        socket.write_all(request.as_bytes()).expect("the request is sent");
        // Some hang up before the change is made, some while it is made, some before the answer.
        std::thread::sleep(Duration::from_micros(250 * (n % 12)));
        drop(socket);
    }

    let conversation = format!("conversation={id}");
    let audited = |guest: &str| {
        let target = format!("target={guest}");
        SERVER.log_lines(&["MEMBERSHIP_CHANGE", "action=add", &conversation, &target]).len()
    };
    // Requests may still be under way, and logging may lag behind: settled is what stays the same for a while.
    let deadline = Instant::now() + Duration::from_secs(20);
    let (mut guests, mut since) = (BTreeSet::new(), Instant::now());
    loop {
        let page = alice.get(&format!("{}?limit=200", memberships(&id))).expect_page();
        let now: BTreeSet<String> =
            page.all("userId").into_iter().filter(|user| user.starts_with("guest-")).collect();
        if now != guests {
            (guests, since) = (now, Instant::now());
        }
        let silent: Vec<&String> = guests.iter().filter(|guest| audited(guest) != 1).collect();
        if silent.is_empty() && !guests.is_empty() && since.elapsed() > Duration::from_secs(1) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "of {} memberships these were made without exactly one line in the audit log: {silent:?}",
            guests.len()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}
