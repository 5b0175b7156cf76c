//! Delete, restore, evict.

use crate::support::*;
use std::sync::LazyLock;
use std::time::Duration;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

fn conversation(id: &str) -> String {
    format!("/v1/conversations/{id}")
}

fn admin_conversation(id: &str) -> String {
    format!("/v1/admin/conversations/{id}")
}

/// A root with an entry, a fork with an entry, and a member of every level.
struct Tree {
    tenant: String,
    owner: Client,
    members: Vec<(&'static str, Client)>,
    root: String,
    branch: String,
    entry: String,
}

impl Tree {
    fn in_tenant(tenant: &str) -> Self {
        let owner = someone_in(&SERVER, "owner", tenant);
        let root = start(&owner, "Tree");
        say(&owner, &root, "the walrus speaks");
        let entry = say(&owner, &root, "the second walrus");
        let branch = fork(&owner, &root, &entry);
        say(&owner, &branch, "a walrus of the branch");
        sync(&owner, &root, json!(["state"])).expect(200);
        let members = ["manager", "reader", "writer"]
            .map(|level| {
                let member = someone_in(&SERVER, level, tenant);
                share(&owner, &root, &member, level);
                (level, member)
            })
            .to_vec();
        Self { tenant: tenant.to_owned(), owner, members, root, branch, entry }
    }
}

// ---- deleting

#[test]
fn deleting_any_member_deletes_the_whole_tree() {
    for through_the_branch in [true, false] {
        let tree = Tree::in_tenant(&fresh_name("tenant"));
        let id = if through_the_branch { &tree.branch } else { &tree.root };

        let deleted = tree.owner.delete(&conversation(id)).expect(204);

        assert_eq!(deleted.text, "");
        for id in [&tree.root, &tree.branch] {
            tree.owner.get(&conversation(id)).expect_not_found("conversation", id);
        }
        for mode in ["all", "roots", "latest-fork"] {
            let page = tree.owner.get(&format!("/v1/conversations?mode={mode}")).expect_page();
            assert!(page.data.is_empty(), "mode {mode}");
        }
    }
}

#[test]
fn a_deleted_tree_is_not_found_on_every_user_endpoint() {
    let tree = Tree::in_tenant(&fresh_name("tenant"));
    let (owner, id) = (&tree.owner, &tree.root);
    owner.delete(&conversation(id)).expect(204);
    let at = |rest: &str| format!("{}{rest}", conversation(id));

    for answer in [
        owner.get(&at("")),
        owner.patch(&at(""), json!({"title": "x"})),
        owner.delete(&at("")),
        owner.get(&at("/entries")),
        owner.get(&at("/entries?channel=memory")),
        owner.get(&at("/entries?forks=all")),
        owner.post(&at("/entries"), history("x")),
        owner.post(&at("/entries"), memory(json!(["x"]))),
        owner.post(&at("/entries/sync"), memory(json!(["state"]))),
        owner.post(&at("/entries/sync"), memory(json!([]))),
        owner.post_nothing(&at(&format!("/entries/{}/fork", tree.entry))),
        owner.get(&at("/forks")),
        owner.get(&at("/memberships")),
        owner.post(&at("/memberships"), json!({"userId": "new", "accessLevel": "reader"})),
        owner.patch(
            &at(&format!("/memberships/{}", tree.members[0].1.user())),
            json!({"accessLevel": "reader"}),
        ),
        owner.delete(&at(&format!("/memberships/{}", tree.members[0].1.user()))),
        owner.post(
            "/v1/ownership-transfers",
            json!({"conversationId": id, "newOwnerUserId": tree.members[0].1.user()}),
        ),
        // Also for somebody who never had access: whether it is there is decided before who may see it.
        someone_in(&SERVER, "stranger", &tree.tenant).get(&at("")),
    ] {
        answer.expect_not_found("conversation", id);
    }
}

#[test]
fn only_the_owner_deletes() {
    let tree = Tree::in_tenant(&fresh_name("tenant"));

    for (_, member) in &tree.members {
        member.delete(&conversation(&tree.root)).expect_forbidden();
        member.delete(&conversation(&tree.branch)).expect_forbidden();
    }
    someone_in(&SERVER, "stranger", &tree.tenant).delete(&conversation(&tree.root)).expect_forbidden();
    tree.owner.get(&conversation(&tree.root)).expect(200);
}

#[test]
fn managers_may_delete_when_the_policy_says_so() {
    let server = server_with("[policy]\nmanagers_may_delete = true\n");
    let (alice, manager, writer) =
        (server.someone("alice"), server.someone("manager"), server.someone("writer"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &manager, "manager");
    share(&alice, &id, &writer, "writer");

    writer.delete(&conversation(&id)).expect_forbidden();
    manager.delete(&conversation(&id)).expect(204);
}

#[test]
fn a_second_delete_and_a_second_life_are_not_found() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    alice.delete(&conversation(&id)).expect(204);

    alice.delete(&conversation(&id)).expect_not_found("conversation", &id);
    let path = format!("{}/entries", conversation(&id));
    alice.post(&path, history("again")).expect_not_found("conversation", &id);
    SERVER.someone("bob").post(&path, history("mine now")).expect_not_found("conversation", &id);
}

#[test]
fn deleting_writes_one_remove_line_per_member() {
    let tree = Tree::in_tenant(&fresh_name("tenant"));
    tree.owner.delete(&conversation(&tree.root)).expect(204);

    for who in tree.members.iter().map(|(_, member)| member).chain([&tree.owner]) {
        SERVER.wait_for_log(&[
            "MEMBERSHIP_CHANGE",
            "action=remove",
            &format!("actor={}", tree.owner.user()),
            &format!("target={}", who.user()),
        ]);
    }
}

#[test]
fn appends_racing_a_deletion_are_written_before_it_or_not_found() {
    for _ in 0..3 {
        let alice = SERVER.someone("alice");
        let id = start(&alice, "Chat");
        let path = format!("{}/entries", conversation(&id));

        let statuses = at_once(12, |n| match n {
            6 => alice.delete(&conversation(&id)).expect(204).status,
            n => alice.post(&path, history(&n.to_string())).status,
        });

        assert!(statuses.iter().all(|status| matches!(status, 201 | 204 | 404)), "{statuses:?}");
        alice.get(&path).expect_not_found("conversation", &id);
        let kept = SERVER.as_user("admin").get(&format!("{}/entries", admin_conversation(&id))).expect_page();
        assert_eq!(kept.data.len(), statuses.iter().filter(|status| **status == 201).count());
    }
}

// ---- admin delete and restore

#[test]
fn an_admin_deletes_any_tree_and_again_without_effect() {
    let tenant = fresh_name("tenant");
    let (tree, admin) = (Tree::in_tenant(&tenant), admin_in(&SERVER, &tenant));

    admin.delete(&admin_conversation(&tree.branch)).expect(204);

    tree.owner.get(&conversation(&tree.root)).expect_not_found("conversation", &tree.root);
    let first = admin.get(&admin_conversation(&tree.root)).expect(200);
    assert_timestamp(&first.json["deletedAt"]);
    admin
        .send("DELETE", &admin_conversation(&tree.root), Body::Json(json!({"justification": "again"})))
        .expect(204);
    let second = admin.get(&admin_conversation(&tree.root)).expect(200);
    assert_eq!(second.json["deletedAt"], first.json["deletedAt"]);
    let branch = admin.get(&admin_conversation(&tree.branch)).expect(200);
    assert_eq!(branch.json["deletedAt"], first.json["deletedAt"], "the whole tree at one moment");
}

#[test]
fn what_an_admin_cannot_find_is_not_found() {
    let admin = SERVER.as_user("admin");
    for id in [fresh_id(), "nonsense".to_owned()] {
        admin.get(&admin_conversation(&id)).expect_not_found("conversation", &id);
        admin.delete(&admin_conversation(&id)).expect_not_found("conversation", &id);
        admin
            .post(&format!("{}/restore", admin_conversation(&id)), json!({}))
            .expect_not_found("conversation", &id);
    }
}

#[test]
fn restoring_brings_everything_back() {
    let tenant = fresh_name("tenant");
    let (tree, admin) = (Tree::in_tenant(&tenant), admin_in(&SERVER, &tenant));
    let everything = |who: &Client| {
        (
            who.get("/v1/conversations?mode=all").expect(200).json,
            who.get(&format!("{}/entries?forks=all", conversation(&tree.root))).expect(200).json,
            who.get(&format!("{}/forks", conversation(&tree.root))).expect(200).json,
            who.get(&format!("{}/memberships", conversation(&tree.root))).expect(200).json,
            who.post("/v1/conversations/search", json!({"query": "walrus", "groupByConversation": false}))
                .expect(200)
                .json,
        )
    };
    let people: Vec<&Client> = tree.members.iter().map(|(_, member)| member).chain([&tree.owner]).collect();
    let before: Vec<_> = people.iter().map(|who| everything(who)).collect();
    assert_eq!(before[0].4["data"].as_array().unwrap().len(), 3, "three hits before");

    tree.owner.delete(&conversation(&tree.branch)).expect(204);
    for who in &people {
        let hits = who.post("/v1/conversations/search", json!({"query": "walrus"})).expect_page();
        assert!(hits.data.is_empty(), "deleted trees are hidden from search");
    }
    let restored = admin.post_nothing(&format!("{}/restore", admin_conversation(&tree.root))).expect(200);

    assert_members(
        &restored.json,
        &["id", "title", "ownerUserId", "createdAt", "updatedAt", "lastMessagePreview", "accessLevel"],
        "AdminConversation of a restored root",
    );
    let after: Vec<_> = people.iter().map(|who| everything(who)).collect();
    assert_eq!(after, before);
    assert_eq!(current_memory(&tree.owner, &tree.root), [json!("state")]);
    say(&tree.owner, &tree.root, "life goes on");
}

#[test]
fn restoring_a_live_tree_is_a_conflict() {
    let tree = Tree::in_tenant("default");

    SERVER
        .as_user("admin")
        .post(&format!("{}/restore", admin_conversation(&tree.root)), json!({}))
        .expect_message(409, "conflict", "Conversation is not deleted");
}

#[test]
fn a_tree_can_be_deleted_and_restored_again_and_again() {
    let tenant = fresh_name("tenant");
    let (tree, admin) = (Tree::in_tenant(&tenant), admin_in(&SERVER, &tenant));
    for _ in 0..3 {
        tree.owner.delete(&conversation(&tree.root)).expect(204);
        admin.post(&format!("{}/restore", admin_conversation(&tree.branch)), json!({})).expect(200);
    }
    assert_eq!(transcript(&tree.owner, &tree.root).len(), 2);
}

// ---- evict

/// A request to evict, with this retention.
fn evict(admin: &Client, retention: &str) -> Answer {
    admin.post("/v1/admin/evict", json!({"retentionPeriod": retention, "resourceTypes": ["conversations"]}))
}

/// The progress numbers of an event stream, and a check that there is nothing else in it.
#[track_caller]
fn progress(answer: Answer) -> Vec<u64> {
    let answer = answer.expect(200);
    assert!(answer.header("content-type").starts_with("text/event-stream"), "{:?}", answer.headers);
    let events = answer.text.split("\n\n").filter(|event| !event.trim().is_empty());
    events
        .map(|event| {
            let data = event.strip_prefix("data:").unwrap_or_else(|| panic!("not a data event: {event:?}"));
            let data: Value = serde_json::from_str(data.trim()).unwrap_or_else(|e| panic!("{event:?}: {e}"));
            assert_members(&data, &["progress"], "an event");
            data["progress"].as_u64().unwrap_or_else(|| panic!("not a number: {data}"))
        })
        .collect()
}

/// Trees deleted just now, then long enough ago for a retention of one second.
fn deleted_trees(owner: &Client, count: usize) -> Vec<String> {
    let ids: Vec<String> = (0..count).map(|n| start(owner, &format!("tree {n}"))).collect();
    for id in &ids {
        say(owner, id, "soon gone");
        owner.delete(&conversation(id)).expect(204);
    }
    std::thread::sleep(Duration::from_millis(1_200));
    ids
}

#[test]
fn evict_removes_only_what_was_deleted_before_the_cutoff() {
    let tenant = fresh_name("tenant");
    let (alice, admin) = (someone_in(&SERVER, "alice", &tenant), admin_in(&SERVER, &tenant));
    let live = start(&alice, "live");
    let old = deleted_trees(&alice, 1).remove(0);
    std::thread::sleep(Duration::from_secs(2));
    let fresh = start(&alice, "fresh");
    alice.delete(&conversation(&fresh)).expect(204);

    evict(&admin, "P1D").expect(204);
    admin.get(&admin_conversation(&old)).expect(200);

    let answer = evict(&admin, "PT3S").expect(204);

    assert_eq!(answer.text, "");
    admin.get(&admin_conversation(&old)).expect_not_found("conversation", &old);
    admin.get(&format!("{}/entries", admin_conversation(&old))).expect_not_found("conversation", &old);
    admin.get(&admin_conversation(&fresh)).expect(200);
    alice.get(&conversation(&live)).expect(200);
}

#[test]
fn evict_removes_the_whole_tree_and_it_cannot_be_restored() {
    let tenant = fresh_name("tenant");
    let (tree, admin) = (Tree::in_tenant(&tenant), admin_in(&SERVER, &tenant));
    tree.owner.delete(&conversation(&tree.branch)).expect(204);
    std::thread::sleep(Duration::from_millis(1_200));

    evict(&admin, "PT1S").expect(204);

    for id in [&tree.root, &tree.branch] {
        admin.get(&admin_conversation(id)).expect_not_found("conversation", id);
        admin
            .post(&format!("{}/restore", admin_conversation(id)), json!({}))
            .expect_not_found("conversation", id);
    }
    assert!(admin.get("/v1/admin/conversations?includeDeleted=true").expect_page().data.is_empty());
    // What is evicted was never there: the id can be used again, by anybody, and nothing shines through.
    let bob = someone_in(&SERVER, "bob", &tenant);
    say(&bob, &tree.root, "new life");
    assert_eq!(transcript(&bob, &tree.root), ["new life"]);
    tree.owner.get(&conversation(&tree.root)).expect_forbidden();
}

#[test]
fn evict_stays_in_its_tenant() {
    let (tenant, other) = (fresh_name("tenant"), fresh_name("other"));
    let theirs = deleted_trees(&someone_in(&SERVER, "alice", &other), 1).remove(0);

    evict(&admin_in(&SERVER, &tenant), "PT1S").expect(204);

    admin_in(&SERVER, &other).get(&admin_conversation(&theirs)).expect(200);
}

#[test]
fn evict_understands_full_iso_8601_durations() {
    let admin = admin_in(&SERVER, &fresh_name("tenant"));
    for duration in ["P90D", "PT24H", "P1Y", "P1M", "P2W", "P1Y2M3W4DT5H6M7S", "PT0.5S", "P1DT12H", "PT36H"] {
        evict(&admin, duration).expect(204);
    }
}

#[test]
fn evict_refuses_durations_that_make_no_sense() {
    let admin = admin_in(&SERVER, &fresh_name("tenant"));
    for duration in
        ["90 days", "PT0S", "P0D", "-P1D", "P-1D", "", " ", "P", "PT", "90", "P1", "1D", "P1H", "PT1D"]
    {
        let answer = evict(&admin, duration);
        assert_eq!(answer.status, 400, "{duration:?}: {}", answer.describe());
    }
    for body in [
        json!({"resourceTypes": ["conversations"]}),
        json!({"retentionPeriod": null, "resourceTypes": ["conversations"]}),
        json!({"retentionPeriod": 90, "resourceTypes": ["conversations"]}),
    ] {
        admin.post("/v1/admin/evict", body).expect(400);
    }
}

#[test]
fn evict_refuses_unknown_or_missing_resource_types() {
    let admin = admin_in(&SERVER, &fresh_name("tenant"));
    for types in
        [json!(null), json!([]), json!(["files"]), json!(["conversations", "files"]), json!("conversations")]
    {
        let answer = admin.post("/v1/admin/evict", json!({"retentionPeriod": "P1D", "resourceTypes": types}));
        assert_eq!(answer.status, 400, "{types}: {}", answer.describe());
    }
    admin.post("/v1/admin/evict", json!({"retentionPeriod": "P1D"})).expect(400);
}

#[test]
fn evict_is_for_admins_and_its_refusals_are_ordinary_answers_even_for_streams() {
    let alice = SERVER.someone("alice").with_header("accept", "text/event-stream");

    evict(&alice, "P1D").expect_forbidden();
    let admin = SERVER.as_user("admin").with_header("accept", "text/event-stream");
    let refused = evict(&admin, "PT0S").expect(400);
    assert!(refused.header("content-type").starts_with("application/json"), "{:?}", refused.headers);
}

#[test]
fn evict_streams_progress_when_asked_by_parameter_or_accept_header() {
    let tenant = fresh_name("tenant");
    let (alice, admin) = (someone_in(&SERVER, "alice", &tenant), admin_in(&SERVER, &tenant));
    let body = json!({"retentionPeriod": "PT1S", "resourceTypes": ["conversations"]});
    assert_eq!(
        progress(admin.post("/v1/admin/evict?async=true", body.clone())),
        [0, 100],
        "nothing to evict"
    );

    for by_header in [true, false] {
        let ids = deleted_trees(&alice, 3);

        let answer = if by_header {
            let accept = "application/json, text/event-stream;q=0.9";
            admin.with_header("accept", accept).post("/v1/admin/evict", body.clone())
        } else {
            admin.post("/v1/admin/evict?async=true", body.clone())
        };

        let steps = progress(answer);
        assert_eq!(steps.first(), Some(&0));
        assert_eq!(steps.last(), Some(&100));
        assert_eq!(steps.iter().filter(|n| **n == 100).count(), 1, "{steps:?}");
        assert!(steps.is_sorted(), "{steps:?}");
        for id in ids {
            admin.get(&admin_conversation(&id)).expect_not_found("conversation", &id);
        }
    }
    admin.post("/v1/admin/evict?async=false", body).expect(204);
}

#[test]
fn evict_reports_every_batch() {
    let server = server_with("[eviction]\nbatch_size = 2\nbatch_delay = \"10ms\"\n");
    let (alice, admin) = (server.someone("alice"), server.as_user("admin"));
    deleted_trees(&alice, 7);

    let steps = progress(admin.post(
        "/v1/admin/evict?async=true",
        json!({"retentionPeriod": "PT1S", "resourceTypes": ["conversations"]}),
    ));

    assert_eq!(steps, [0, 28, 57, 85, 99, 100]);
}

#[test]
fn three_evictions_at_once_remove_everything_once_and_all_end_well() {
    let server = server_with("[eviction]\nbatch_size = 2\nbatch_delay = \"5ms\"\n");
    let (alice, admin) = (server.someone("alice"), server.as_user("admin"));
    let ids = deleted_trees(&alice, 30);

    let streams = at_once(3, |_| {
        progress(admin.post(
            "/v1/admin/evict?async=true",
            json!({"retentionPeriod": "PT1S", "resourceTypes": ["conversations"]}),
        ))
    });

    for steps in streams {
        assert_eq!((steps.first(), steps.last()), (Some(&0), Some(&100)), "{steps:?}");
        assert_eq!(steps.iter().filter(|n| **n == 100).count(), 1, "{steps:?}");
    }
    for id in ids {
        admin.get(&admin_conversation(&id)).expect_not_found("conversation", &id);
    }
}

#[test]
fn an_eviction_stops_when_its_caller_goes_away() {
    use std::io::{Read as _, Write as _};
    let server = server_with("[eviction]\nbatch_size = 1\nbatch_delay = \"300ms\"\n");
    let (alice, admin) = (server.someone("alice"), server.as_user("admin"));
    deleted_trees(&alice, 12);
    let address = server.url().trim_start_matches("http://").to_owned();
    let remaining = || admin.get("/v1/admin/conversations?onlyDeleted=true").expect_page().data.len();

    let body = r#"{"retentionPeriod":"PT1S","resourceTypes":["conversations"]}"#;
    let mut caller = std::net::TcpStream::connect(&address).unwrap();
    write!(
        caller,
        "POST /v1/admin/evict?async=true HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer admin\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut begun = [0; 256];
    assert!(caller.read(&mut begun).unwrap() > 0, "the stream begins");
    drop(caller);

    std::thread::sleep(Duration::from_millis(1_500));
    let soon = remaining();
    std::thread::sleep(Duration::from_millis(900));
    assert!(soon > 0, "it went on although nobody listened");
    assert_eq!(remaining(), soon, "it still goes on");
    assert_eq!(
        progress(admin.post("/v1/admin/evict?async=true", serde_json::from_str(body).unwrap())).last(),
        Some(&100),
        "and the next one finishes"
    );
    assert_eq!(remaining(), 0);
}
