//! Forks: what they see, how they are made, how memory crosses them.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const FORK: [&str; 8] = [
    "id",
    "title",
    "ownerUserId",
    "createdAt",
    "updatedAt",
    "accessLevel",
    "forkedAtEntryId",
    "forkedAtConversationId",
];

/// How a fork comes into being: the fork endpoint, or the first append to an unknown id.
#[derive(Debug, Clone, Copy)]
enum Form {
    Endpoint,
    FirstAppend,
}

const FORMS: [Form; 2] = [Form::Endpoint, Form::FirstAppend];

impl Form {
    /// Forks `parent` at `entry`, the first entry the fork does not see, and says `text` on the fork.
    #[track_caller]
    fn fork(self, who: &Client, parent: &str, entry: &str, text: &str) -> String {
        match self {
            Form::Endpoint => {
                let branch = fork(who, parent, entry);
                say(who, &branch, text);
                branch
            }
            Form::FirstAppend => {
                let branch = fresh_id();
                fork_by_append(who, &branch, parent, Some(entry), text).expect(201);
                branch
            }
        }
    }
}

#[track_caller]
fn fork_by_append(who: &Client, branch: &str, parent: &str, entry: Option<&str>, text: &str) -> Answer {
    let mut body = history(text);
    body["forkedAtConversationId"] = json!(parent);
    if let Some(entry) = entry {
        body["forkedAtEntryId"] = json!(entry);
    }
    who.post(&format!("/v1/conversations/{branch}/entries"), body)
}

#[track_caller]
fn conversation(who: &Client, id: &str) -> Answer {
    who.get(&format!("/v1/conversations/{id}")).expect(200)
}

/// The contract's root R: A(h) B(m,e1) C(h) D(h) E(m,e1) F(h).
struct Root {
    agent: Client,
    id: String,
    entries: std::collections::HashMap<&'static str, String>,
}

impl Root {
    fn new() -> Self {
        let agent = SERVER.someone("alice").with_key("agent-a");
        let id = start(&agent, "R");
        let mut entries = std::collections::HashMap::new();
        for (name, is_memory) in
            [("A", false), ("B", true), ("C", false), ("D", false), ("E", true), ("F", false)]
        {
            let entry = if is_memory { remember(&agent, &id, json!([name])) } else { say(&agent, &id, name) };
            entries.insert(name, entry);
        }
        Self { agent, id, entries }
    }

    fn entry(&self, name: &str) -> &str {
        &self.entries[name]
    }
}

// ---- the worked examples

#[test]
fn a_fork_sees_what_came_before_its_entry_and_then_its_own() {
    for form in FORMS {
        let r = Root::new();

        let f1 = form.fork(&r.agent, &r.id, r.entry("D"), "I");
        let j = r.agent.post(&format!("/v1/conversations/{f1}/entries"), memory(json!(["J"]))).expect(201);

        assert_eq!(view(&r.agent, &f1), ["A", "B", "C", "I", "J"], "{form:?}");
        assert_eq!(j.json["epoch"], 1, "the inherited epoch");
        let read = conversation(&r.agent, &f1);
        assert_eq!(read.json["forkedAtEntryId"], r.entry("C"), "the last entry it includes");
        assert_eq!(read.json["forkedAtConversationId"], r.id);
    }
}

#[test]
fn a_fork_never_sees_what_its_parent_wrote_later() {
    for form in FORMS {
        let r = Root::new();
        let f1 = form.fork(&r.agent, &r.id, r.entry("D"), "I");

        say(&r.agent, &r.id, "G");
        remember(&r.agent, &r.id, json!(["H"]));
        sync(&r.agent, &r.id, json!(["a new epoch on the parent"])).expect(200);

        assert_eq!(view(&r.agent, &f1), ["A", "B", "C", "I"], "{form:?}");
        assert_eq!(current_memory(&r.agent, &f1), [json!("B")]);
    }
}

#[test]
fn a_fork_at_the_first_entry_is_empty_and_still_names_its_parent() {
    let r = Root::new();

    let made = r
        .agent
        .post(&format!("/v1/conversations/{}/entries/{}/fork", r.id, r.entry("A")), json!({}))
        .expect(201);

    assert_eq!(made.json.get("forkedAtEntryId"), None);
    assert_eq!(made.json["forkedAtConversationId"], r.id);
    assert!(view(&r.agent, &made.id()).is_empty());
}

#[test]
fn the_entry_before_the_fork_may_be_a_memory_entry() {
    for form in FORMS {
        let agent = SERVER.someone("alice").with_key("agent-a");
        let root = start(&agent, "Root");
        say(&agent, &root, "H1");
        let m1 = remember(&agent, &root, json!(["M1"]));
        let h2 = say(&agent, &root, "H2");
        say(&agent, &root, "H3");

        let branch = form.fork(&agent, &root, &h2, "own");

        assert_eq!(conversation(&agent, &branch).json["forkedAtEntryId"], m1, "{form:?}");
        assert_eq!(transcript(&agent, &branch), ["H1", "own"]);
        assert_eq!(said(&entries(&agent, &branch, "channel=memory")), ["M1"]);
        assert_eq!(view(&agent, &branch), ["H1", "M1", "own"]);
    }
}

#[test]
fn the_entry_before_the_fork_may_be_another_clients_memory() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Root");
    say(&alice, &root, "H1");
    let m1 = remember(&alice.with_key("agent-b"), &root, json!(["M1"]));
    let h2 = say(&alice, &root, "H2");

    let branch = fork(&alice, &root, &h2);

    assert_eq!(conversation(&alice, &branch).json["forkedAtEntryId"], m1);
    assert_eq!(transcript(&alice, &branch), ["H1"]);
    assert_eq!(current_memory(&alice.with_key("agent-b"), &branch), [json!("M1")]);
    assert!(current_memory(&alice.with_key("agent-a"), &branch).is_empty());
}

#[test]
fn a_memory_listing_finds_its_end_when_the_boundary_is_a_history_entry() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    remember(&agent, &root, json!(["M1"]));
    let h1 = say(&agent, &root, "H1");
    let m2 = remember(&agent, &root, json!(["M2"]));
    remember(&agent, &root, json!(["M3"]));

    let branch = fork(&agent, &root, &m2);

    assert_eq!(conversation(&agent, &branch).json["forkedAtEntryId"], h1);
    assert_eq!(said(&entries(&agent, &branch, "channel=memory")), ["M1"]);
    assert_eq!(transcript(&agent, &branch), ["H1"]);
}

#[test]
fn forks_of_forks_compose() {
    for form in FORMS {
        let r = Root::new();
        let f1 = form.fork(&r.agent, &r.id, r.entry("D"), "I");
        let i = entries(&r.agent, &f1, "").ids()[2].clone();
        let j = remember(&r.agent, &f1, json!(["J"]));

        let f2 = form.fork(&r.agent, &f1, &j, "own of F2");
        assert_eq!(view(&r.agent, &f2), ["A", "B", "C", "I", "own of F2"], "{form:?}");
        assert_eq!(conversation(&r.agent, &f2).json["forkedAtEntryId"], i);
        assert_eq!(conversation(&r.agent, &f2).json["forkedAtConversationId"], f1);

        let f3 = form.fork(&r.agent, &f1, &i, "own of F3");
        assert_eq!(view(&r.agent, &f3), ["A", "B", "C", "own of F3"], "{form:?}: inherited entries stay");
        assert_eq!(conversation(&r.agent, &f3).json["forkedAtEntryId"], r.entry("C"));
        assert_eq!(conversation(&r.agent, &f3).json["forkedAtConversationId"], f1);
    }
}

#[test]
fn a_fork_of_a_fork_may_start_at_an_inherited_entry() {
    for form in FORMS {
        let r = Root::new();
        let f1 = form.fork(&r.agent, &r.id, r.entry("D"), "I");

        let at_b = form.fork(&r.agent, &f1, r.entry("B"), "own");
        assert_eq!(view(&r.agent, &at_b), ["A", "own"], "{form:?}");
        assert_eq!(conversation(&r.agent, &at_b).json["forkedAtEntryId"], r.entry("A"));

        let at_c = form.fork(&r.agent, &f1, r.entry("C"), "own");
        assert_eq!(view(&r.agent, &at_c), ["A", "B", "own"], "{form:?}");
        let read = conversation(&r.agent, &at_c);
        assert_eq!(read.json["forkedAtEntryId"], r.entry("B"));
        assert_eq!(read.json["forkedAtConversationId"], f1, "the conversation named in the request");
    }
}

#[test]
fn the_nested_example_of_the_contract() {
    for form in FORMS {
        let alice = SERVER.someone("alice");
        let r = start(&alice, "R");
        say(&alice, &r, "A");
        say(&alice, &r, "B");
        let c = say(&alice, &r, "C");
        let f1 = form.fork(&alice, &r, &c, "D");
        let e = say(&alice, &f1, "E");
        let f2 = form.fork(&alice, &f1, &e, "F");
        say(&alice, &f2, "G");

        assert_eq!(transcript(&alice, &f2), ["A", "B", "D", "F", "G"], "{form:?}");
        assert_eq!(transcript(&alice, &f1), ["A", "B", "D", "E"]);
        assert_eq!(transcript(&alice, &r), ["A", "B", "C"]);
    }
}

// ---- isolation and depth

#[test]
fn siblings_never_see_each_other() {
    for form in FORMS {
        let r = Root::new();
        let left = form.fork(&r.agent, &r.id, r.entry("D"), "left");
        let right = form.fork(&r.agent, &r.id, r.entry("D"), "right");
        remember(&r.agent, &left, json!(["left memory"]));
        sync(&r.agent, &right, json!(["right memory"])).expect(200);

        assert_eq!(view(&r.agent, &left), ["A", "B", "C", "left", "left memory"], "{form:?}");
        assert_eq!(view(&r.agent, &right), ["A", "B", "C", "right", "right memory"], "{form:?}");
        assert_eq!(view(&r.agent, &r.id), ["A", "B", "C", "D", "E", "F"]);
    }
}

#[test]
fn inherited_entries_name_the_conversation_that_stores_them() {
    let r = Root::new();
    let f1 = Form::Endpoint.fork(&r.agent, &r.id, r.entry("D"), "I");

    let page = entries(&r.agent, &f1, "channel=all");

    assert_eq!(page.all("conversationId"), [&*r.id, &*r.id, &*r.id, &*f1]);
    let inherited = entries(&r.agent, &r.id, "channel=all").data;
    assert_eq!(page.data[..3], inherited[..3], "and are the very same entries");
}

#[test]
fn a_chain_of_fifty_forks_sees_one_entry_of_each() {
    let alice = SERVER.someone("alice");
    let mut id = start(&alice, "0");
    let mut expected = vec!["kept 0".to_owned()];
    say(&alice, &id, "kept 0");
    let mut cut = say(&alice, &id, "cut 0");
    for n in 1..=50 {
        id = fork(&alice, &id, &cut);
        say(&alice, &id, &format!("kept {n}"));
        cut = say(&alice, &id, &format!("cut {n}"));
        expected.push(format!("kept {n}"));
    }
    expected.push("cut 50".to_owned());

    assert_eq!(transcript(&alice, &id), expected);
    let walked = walk(&alice, &format!("/v1/conversations/{id}/entries?limit=1"));
    assert_eq!(walked.iter().map(label).collect::<Vec<_>>(), expected);
    assert_eq!(walk(&alice, &format!("/v1/conversations/{id}/forks?limit=10")).len(), 51);
}

// ---- what can be forked

#[test]
fn an_entry_that_is_not_in_the_view_cannot_be_forked() {
    let r = Root::new();
    let left = Form::Endpoint.fork(&r.agent, &r.id, r.entry("D"), "left");
    let sibling = say(&r.agent, &left, "of a sibling");
    let right = Form::Endpoint.fork(&r.agent, &r.id, r.entry("D"), "right");
    let other_tree = Root::new();
    let foreign = other_tree.entry("A").to_owned();
    let unknown = fresh_id();

    for (conversation, entry) in [
        (&right, sibling.as_str()), // stored in a sibling
        (&r.id, sibling.as_str()),  // stored in a child
        (&right, r.entry("D")),     // the parent's, after the boundary
        (&right, r.entry("F")),     // likewise
        (&r.id, foreign.as_str()),  // another tree
        (&r.id, unknown.as_str()),  // nowhere
        (&r.id, r.id.as_str()),     // not an entry
        (&r.id, "nonsense"),        // not an id
    ] {
        r.agent
            .post_nothing(&format!("/v1/conversations/{conversation}/entries/{entry}/fork"))
            .expect_not_found("entry", entry);
    }
    assert_eq!(r.agent.get(&format!("/v1/conversations/{}/forks", r.id)).expect_page().data.len(), 3);
}

#[test]
fn a_first_append_cannot_fork_at_an_entry_that_is_not_in_the_view() {
    let r = Root::new();
    let left = Form::Endpoint.fork(&r.agent, &r.id, r.entry("D"), "left");
    let sibling = say(&r.agent, &left, "of a sibling");
    let unknown = fresh_id();

    for entry in [&sibling, &unknown] {
        let id = fresh_id();
        fork_by_append(&r.agent, &id, &r.id, Some(entry), "x").expect_not_found("entry", entry);
        r.agent.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
    }
}

#[test]
fn a_memory_entry_can_be_forked_only_by_the_client_that_owns_it() {
    let r = Root::new();
    let owner = SERVER.as_user(r.agent.user());
    let path = format!("/v1/conversations/{}/entries/{}/fork", r.id, r.entry("E"));

    owner.post_nothing(&path).expect_not_found("entry", r.entry("E"));
    owner.with_key("agent-b").post_nothing(&path).expect_not_found("entry", r.entry("E"));
    fork_by_append(&owner.with_key("agent-b"), &fresh_id(), &r.id, Some(r.entry("E")), "x")
        .expect_not_found("entry", r.entry("E"));

    let made = r.agent.post_nothing(&path).expect(201);
    assert_eq!(view(&r.agent, &made.id()), ["A", "B", "C", "D"]);
}

#[test]
fn forking_needs_a_writer_and_that_is_checked_before_the_entry() {
    let r = Root::new();
    let (reader, writer, stranger) =
        (SERVER.someone("reader"), SERVER.someone("writer"), SERVER.someone("stranger"));
    share(&r.agent, &r.id, &reader, "reader");
    share(&r.agent, &r.id, &writer, "writer");
    let unknown = fresh_id();

    for entry in [r.entry("D"), unknown.as_str()] {
        let path = format!("/v1/conversations/{}/entries/{entry}/fork", r.id);
        reader.post_nothing(&path).expect_forbidden();
        stranger.post_nothing(&path).expect_forbidden();
        fork_by_append(&reader, &fresh_id(), &r.id, Some(entry), "x").expect_forbidden();
        fork_by_append(&stranger, &fresh_id(), &r.id, Some(entry), "x").expect_forbidden();
    }
    writer.post_nothing(&format!("/v1/conversations/{}/entries/{}/fork", r.id, r.entry("D"))).expect(201);
    fork_by_append(&writer, &fresh_id(), &r.id, Some(r.entry("D")), "x").expect(201);
}

#[test]
fn forking_an_unknown_or_deleted_conversation_is_not_found() {
    let r = Root::new();
    let unknown = fresh_id();
    let path = |id: &str| format!("/v1/conversations/{id}/entries/{}/fork", r.entry("D"));

    r.agent.post_nothing(&path(&unknown)).expect_not_found("conversation", &unknown);
    r.agent.post_nothing(&path("nonsense")).expect_not_found("conversation", "nonsense");
    fork_by_append(&r.agent, &fresh_id(), &unknown, None, "x").expect_not_found("conversation", &unknown);

    r.agent.delete(&format!("/v1/conversations/{}", r.id)).expect(204);
    r.agent.post_nothing(&path(&r.id)).expect_not_found("conversation", &r.id);
    fork_by_append(&r.agent, &fresh_id(), &r.id, None, "x").expect_not_found("conversation", &r.id);
}

// ---- what a fork is

#[test]
fn a_made_fork_has_exactly_the_contracts_members() {
    let r = Root::new();

    let made = r
        .agent
        .post(
            &format!("/v1/conversations/{}/entries/{}/fork", r.id, r.entry("D")),
            json!({"title": "Another way"}),
        )
        .expect(201)
        .expect_members(&FORK);

    assert_uuid(&made.json["id"]);
    assert_ne!(made.id(), r.id);
    assert_eq!(made.json["title"], "Another way");
    assert_eq!(made.json["accessLevel"], "owner");
    assert_eq!(made.json["ownerUserId"], r.agent.user());
    assert_eq!(conversation(&r.agent, &made.id()).json, made.json);
}

#[test]
fn a_fork_without_a_title_of_its_own_has_its_parents() {
    let r = Root::new();
    let path = format!("/v1/conversations/{}/entries/{}/fork", r.id, r.entry("D"));

    assert_eq!(r.agent.post_nothing(&path).expect(201).json["title"], "R");
    assert_eq!(r.agent.post(&path, json!({})).expect(201).json["title"], "R");
    r.agent.patch(&format!("/v1/conversations/{}", r.id), json!({"title": null})).expect(200);
    assert_eq!(r.agent.post_nothing(&path).expect(201).json.get("title"), None);
    r.agent.post(&path, json!({"title": "x".repeat(500)})).expect(201);
    r.agent.post(&path, json!({"title": "x".repeat(501)})).expect_violation("title");
}

#[test]
fn a_fork_belongs_to_the_trees_owner_and_shows_the_callers_level() {
    let r = Root::new();
    let bob = SERVER.someone("bob");
    share(&r.agent, &r.id, &bob, "writer");

    let made =
        bob.post_nothing(&format!("/v1/conversations/{}/entries/{}/fork", r.id, r.entry("D"))).expect(201);
    assert_eq!(made.json["ownerUserId"], r.agent.user());
    assert_eq!(made.json["accessLevel"], "writer");

    let appended = fresh_id();
    fork_by_append(&bob, &appended, &r.id, Some(r.entry("D")), "x").expect(201);
    let read = conversation(&bob, &appended);
    assert_eq!(read.json["ownerUserId"], r.agent.user());
    assert_eq!(read.json["accessLevel"], "writer");
}

#[test]
fn a_fork_starts_without_metadata() {
    let alice = SERVER.someone("alice");
    let root =
        alice.post("/v1/conversations", json!({"title": "R", "metadata": {"team": "blue"}})).expect(201).id();
    say(&alice, &root, "one");
    let entry = say(&alice, &root, "two");

    conversation(&alice, &fork(&alice, &root, &entry)).expect_members(&FORK);
}

#[test]
fn a_fork_counts_as_updated_when_it_is_made() {
    let r = Root::new();
    let before = conversation(&r.agent, &r.id);

    let made = r
        .agent
        .post_nothing(&format!("/v1/conversations/{}/entries/{}/fork", r.id, r.entry("D")))
        .expect(201);

    assert!(made.text_of("updatedAt") > before.text_of("updatedAt"));
    assert_eq!(conversation(&r.agent, &r.id).json, before.json, "the parent is untouched");
}

// ---- fork on first append

#[test]
fn a_first_append_with_fork_fields_makes_the_fork_and_stores_the_entry() {
    let r = Root::new();
    let branch = fresh_id();

    let entry = fork_by_append(&r.agent, &branch, &r.id, Some(r.entry("D")), "a question").expect(201);

    assert_eq!(entry.json["conversationId"], branch);
    assert_eq!(view(&r.agent, &branch), ["A", "B", "C", "a question"]);
    let made = conversation(&r.agent, &branch).expect_members(&[&FORK[..], &["lastMessagePreview"]].concat());
    assert_eq!(made.json["title"], "a question", "derived from the entry");
}

#[test]
fn a_first_append_without_usable_text_takes_the_parents_title() {
    let r = Root::new();
    let branch = fresh_id();
    let body = json!({
        "contentType": "history", "content": [{"role": "AI", "events": []}],
        "forkedAtConversationId": r.id, "forkedAtEntryId": r.entry("D"),
    });

    r.agent.post(&format!("/v1/conversations/{branch}/entries"), body).expect(201);

    assert_eq!(conversation(&r.agent, &branch).json["title"], "R");
}

#[test]
fn a_first_append_without_a_fork_entry_is_a_blank_slate() {
    let r = Root::new();
    let branch = fresh_id();

    fork_by_append(&r.agent, &branch, &r.id, None, "from scratch").expect(201);

    assert_eq!(view(&r.agent, &branch), ["from scratch"]);
    assert!(current_memory(&r.agent, &branch).is_empty());
    let made = conversation(&r.agent, &branch);
    assert_eq!(made.json["forkedAtConversationId"], r.id);
    assert_eq!(made.json.get("forkedAtEntryId"), None);

    let cut = say(&r.agent, &branch, "cut");
    let nested = Form::Endpoint.fork(&r.agent, &branch, &cut, "own");
    assert_eq!(view(&r.agent, &nested), ["from scratch", "own"], "a fork of a blank slate inherits only it");
}

#[test]
fn memory_on_a_blank_slate_starts_at_epoch_one() {
    let r = Root::new();
    sync(&r.agent, &r.id, json!(["epoch two"])).expect(200);
    let branch = fresh_id();
    fork_by_append(&r.agent, &branch, &r.id, None, "from scratch").expect(201);

    let entry =
        r.agent.post(&format!("/v1/conversations/{branch}/entries"), memory(json!(["m"]))).expect(201);

    assert_eq!(entry.json["epoch"], 1);
}

#[test]
fn fork_fields_are_ignored_when_the_conversation_exists() {
    let r = Root::new();
    let other = start(&r.agent, "Other");
    let mallory = SERVER.someone("mallory");
    let foreign = start(&mallory, "Foreign");

    fork_by_append(&r.agent, &other, &r.id, Some(r.entry("D")), "plain").expect(201);
    fork_by_append(&r.agent, &other, &foreign, None, "plain too").expect(201);
    fork_by_append(&r.agent, &other, &fresh_id(), Some(&fresh_id()), "and this").expect(201);

    assert_eq!(transcript(&r.agent, &other), ["plain", "plain too", "and this"]);
    assert_eq!(conversation(&r.agent, &other).json.get("forkedAtConversationId"), None);
}

#[test]
fn a_memory_append_can_make_a_fork_too() {
    let r = Root::new();
    let branch = fresh_id();
    let mut body = memory(json!(["own memory"]));
    body["forkedAtConversationId"] = json!(r.id);
    body["forkedAtEntryId"] = json!(r.entry("D"));

    let entry = r.agent.post(&format!("/v1/conversations/{branch}/entries"), body).expect(201);

    assert_eq!(entry.json["epoch"], 1);
    assert_eq!(view(&r.agent, &branch), ["A", "B", "C", "own memory"]);
    assert_eq!(conversation(&r.agent, &branch).json["title"], "R");
}

#[test]
fn concurrent_first_appends_with_fork_fields_make_one_fork() {
    let r = Root::new();
    let branch = fresh_id();

    at_once(20, |n| {
        fork_by_append(&r.agent, &branch, &r.id, Some(r.entry("D")), &n.to_string()).expect(201);
    });

    let texts = transcript(&r.agent, &branch);
    assert_eq!(texts[..2], ["A", "C"]);
    assert_eq!(texts.len(), 22);
    assert_eq!(r.agent.get(&format!("/v1/conversations/{}/forks", r.id)).expect_page().data.len(), 2);
}

// ---- list forks

#[test]
fn the_list_of_forks_holds_the_whole_tree_from_every_member() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Root");
    let first = say(&alice, &root, "one");
    let second = say(&alice, &root, "two");
    let f1 = fork(&alice, &root, &second);
    let f2 = fork(&alice, &root, &first);
    let f3 = fork(&alice, &f1, &first);
    let mut expected = vec![root.clone(), f1.clone(), f2.clone(), f3.clone()];
    expected.sort();

    for id in [&root, &f1, &f2, &f3] {
        let page = alice.get(&format!("/v1/conversations/{id}/forks")).expect_page();
        assert_eq!(page.all("conversationId"), expected, "ascending by id, root and self included");
        for item in &page.data {
            let members: &[&str] = match item["conversationId"].as_str().unwrap() {
                id if id == root => &["conversationId", "title", "createdAt"],
                id if id == f1 => {
                    &["conversationId", "title", "createdAt", "forkedAtConversationId", "forkedAtEntryId"]
                }
                _ => &["conversationId", "title", "createdAt", "forkedAtConversationId"],
            };
            assert_members(item, members, "a fork summary");
        }
    }
}

#[test]
fn the_list_of_forks_can_be_walked_one_by_one() {
    let alice = SERVER.someone("alice");
    let root = start(&alice, "Root");
    let entry = say(&alice, &root, "one");
    for _ in 0..4 {
        fork(&alice, &root, &entry);
    }

    let walked = walk(&alice, &format!("/v1/conversations/{root}/forks?limit=1"));

    let ids: Vec<&str> = walked.iter().map(|item| item["conversationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 5);
    assert!(ids.is_sorted());
}

#[test]
fn a_readers_and_a_strangers_list_of_forks() {
    let (alice, reader, stranger) =
        (SERVER.someone("alice"), SERVER.someone("reader"), SERVER.someone("stranger"));
    let root = start(&alice, "Root");
    share(&alice, &root, &reader, "reader");
    let unknown = fresh_id();

    assert_eq!(reader.get(&format!("/v1/conversations/{root}/forks")).expect_page().data.len(), 1);
    stranger.get(&format!("/v1/conversations/{root}/forks")).expect_forbidden();
    alice.get(&format!("/v1/conversations/{unknown}/forks")).expect_not_found("conversation", &unknown);
    alice.get("/v1/conversations/nonsense/forks").expect_not_found("conversation", "nonsense");
}

#[test]
fn membership_given_on_a_fork_holds_for_the_whole_tree() {
    let r = Root::new();
    let branch = fork(&r.agent, &r.id, r.entry("D"));
    let bob = SERVER.someone("bob");

    share(&r.agent, &branch, &bob, "reader");

    assert_eq!(transcript(&bob, &r.id), ["A", "C", "D", "F"]);
    assert_eq!(transcript(&bob, &branch), ["A", "C"]);
    let later = fork(&r.agent, &r.id, r.entry("F"));
    assert_eq!(transcript(&bob, &later), ["A", "C", "D"], "and for forks made afterwards");
}

// ---- paging across the boundary

#[test]
fn a_fork_can_be_walked_one_by_one_across_the_boundary_in_both_directions() {
    let r = Root::new();
    let branch = Form::Endpoint.fork(&r.agent, &r.id, r.entry("D"), "I");
    say(&r.agent, &branch, "J");
    let path = format!("/v1/conversations/{branch}/entries?channel=all");
    let expected = ["A", "B", "C", "I", "J"];

    let forwards: Vec<String> = walk(&r.agent, &format!("{path}&limit=1")).iter().map(label).collect();
    assert_eq!(forwards, expected);

    let mut backwards = Vec::new();
    let mut page = r.agent.get(&format!("{path}&limit=1&tail=true")).expect_backward_page();
    loop {
        backwards.extend(said(&page));
        let Some(before) = page.before else { break };
        page = r.agent.get(&format!("{path}&limit=1&before={before}")).expect_backward_page();
    }
    backwards.reverse();
    assert_eq!(backwards, expected);
}

#[test]
fn a_cursor_may_lie_in_the_inherited_part_but_not_beyond_it() {
    let r = Root::new();
    let branch = Form::Endpoint.fork(&r.agent, &r.id, r.entry("D"), "I");
    let path = |query: String| format!("/v1/conversations/{branch}/entries?channel=all&{query}");

    let page = r.agent.get(&path(format!("after={}", r.entry("B")))).expect_page();
    assert_eq!(said(&page), ["C", "I"]);
    let page = r.agent.get(&path(format!("before={}", r.entry("C")))).expect_backward_page();
    assert_eq!(said(&page), ["A", "B"]);
    let page = r.agent.get(&path(format!("upToEntryId={}", r.entry("B")))).expect_page();
    assert_eq!(said(&page), ["A", "B"]);

    r.agent.get(&path(format!("after={}", r.entry("D")))).expect(400);
    r.agent.get(&path(format!("after={}", r.entry("F")))).expect(400);
    r.agent.get(&path(format!("before={}", r.entry("D")))).expect(400);
}

// ---- memory across forks

#[test]
fn a_fork_inherits_the_latest_epoch_and_sync_stores_only_the_delta_on_it() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["old"])).expect(200);
    sync(&agent, &root, json!(["a"])).expect(200);
    sync(&agent, &root, json!(["a", "b"])).expect(200);
    let cut = say(&agent, &root, "cut");
    let branch = fork(&agent, &root, &cut);
    assert_eq!(current_memory(&agent, &branch), [json!("a"), json!("b")]);

    let same = sync(&agent, &branch, json!(["a", "b"])).expect(200);
    assert_eq!(same.json["noOp"], true);
    assert_eq!(same.json["epoch"], 2);

    let more = sync(&agent, &branch, json!(["a", "b", "c"])).expect(200);
    assert_eq!(more.json["epoch"], 2, "the inherited number");
    assert_eq!(more.json["epochIncremented"], false);
    assert_eq!(more.json["entry"]["content"], json!(["c"]));
    assert_eq!(more.json["entry"]["conversationId"], branch);
    assert_eq!(current_memory(&agent, &branch), [json!("a"), json!("b"), json!("c")]);
    assert_eq!(current_memory(&agent, &root), [json!("a"), json!("b")]);
}

#[test]
fn a_new_epoch_on_a_fork_leaves_parent_and_siblings_alone() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["a"])).expect(200);
    let cut = say(&agent, &root, "cut");
    let (left, right) = (fork(&agent, &root, &cut), fork(&agent, &root, &cut));

    let diverged = sync(&agent, &left, json!(["x"])).expect(200);

    assert_eq!(diverged.json["epoch"], 2);
    assert_eq!(diverged.json["epochIncremented"], true);
    assert_eq!(current_memory(&agent, &left), [json!("x")]);
    assert_eq!(current_memory(&agent, &right), [json!("a")]);
    assert_eq!(current_memory(&agent, &root), [json!("a")]);
    assert_eq!(said(&entries(&agent, &left, "channel=memory&epoch=all")), ["a", "x"]);
    assert_eq!(said(&entries(&agent, &left, "channel=memory&epoch=1")), ["a"]);

    let on_root = sync(&agent, &root, json!(["y"])).expect(200);
    assert_eq!(on_root.json["epoch"], 2, "equal numbers in different branches are unrelated");
    assert_eq!(current_memory(&agent, &left), [json!("x")]);
    assert_eq!(current_memory(&agent, &right), [json!("a")]);
}

#[test]
fn a_fork_depends_on_the_epoch_of_its_time_even_after_the_parent_moved_on() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["a"])).expect(200);
    let cut = say(&agent, &root, "cut");
    for n in 0..5 {
        sync(&agent, &root, json!([n])).expect(200);
    }

    let branch = fork(&agent, &root, &cut);

    assert_eq!(current_memory(&agent, &branch), [json!("a")]);
    assert_eq!(sync(&agent, &branch, json!(["a", "b"])).expect(200).json["epoch"], 1);
}

#[test]
fn a_client_that_wrote_nothing_on_the_fork_keeps_what_it_inherited() {
    let alice = SERVER.someone("alice");
    let (a, b) = (alice.with_key("agent-a"), alice.with_key("agent-b"));
    let root = start(&alice, "Root");
    sync(&a, &root, json!(["of a"])).expect(200);
    sync(&b, &root, json!(["of b"])).expect(200);
    let cut = say(&alice, &root, "cut");
    let branch = fork(&alice, &root, &cut);

    sync(&a, &branch, json!(["new of a"])).expect(200);

    assert_eq!(current_memory(&a, &branch), [json!("new of a")]);
    assert_eq!(current_memory(&b, &branch), [json!("of b")]);
}

#[test]
fn a_memory_append_on_a_fork_joins_the_inherited_epoch() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["one"])).expect(200);
    sync(&agent, &root, json!(["two"])).expect(200);
    sync(&agent, &root, json!(["three"])).expect(200);
    let cut = say(&agent, &root, "cut");
    let branch = fork(&agent, &root, &cut);

    let appended =
        agent.post(&format!("/v1/conversations/{branch}/entries"), memory(json!(["four"]))).expect(201);

    assert_eq!(appended.json["epoch"], 3);
    assert_eq!(current_memory(&agent, &branch), [json!("three"), json!("four")]);
}

#[test]
fn a_fork_in_the_middle_of_an_epoch_continues_from_its_part_of_it() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["a"])).expect(200);
    let cut = say(&agent, &root, "cut");
    sync(&agent, &root, json!(["a", "b"])).expect(200);
    let branch = fork(&agent, &root, &cut);

    let answer = sync(&agent, &branch, json!(["a", "b"])).expect(200);

    assert_eq!(answer.json["noOp"], false, "b lies after the fork point");
    assert_eq!(answer.json["entry"]["content"], json!(["b"]));
    let nested_cut = say(&agent, &branch, "nested cut");
    let nested = fork(&agent, &branch, &nested_cut);
    assert_eq!(sync(&agent, &nested, json!(["a", "b"])).expect(200).json["noOp"], true);
    assert_eq!(
        sync(&agent, &nested, json!(["a", "b", "c"])).expect(200).json["entry"]["content"],
        json!(["c"])
    );
}

#[test]
fn a_content_type_change_is_noticed_across_the_fork_point() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    sync(&agent, &root, json!(["a"])).expect(200);
    let cut = say(&agent, &root, "cut");
    let branch = fork(&agent, &root, &cut);

    let answer = agent
        .post(
            &format!("/v1/conversations/{branch}/entries/sync"),
            json!({"channel": "memory", "contentType": "other", "content": ["a"]}),
        )
        .expect(200);

    assert_eq!((&answer.json["epoch"], &answer.json["epochIncremented"]), (&json!(2), &json!(true)));
}

#[test]
fn memory_grows_along_a_chain_of_forks_and_each_stores_only_its_part() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let mut id = start(&agent, "Root");
    let mut state = Vec::new();
    for n in 0..25 {
        state.push(json!({"n": n}));
        let answer = sync(&agent, &id, json!(state)).expect(200);
        assert_eq!(answer.json["entry"]["content"], json!([{"n": n}]), "level {n}");
        assert_eq!(answer.json["epoch"], 1);
        assert_eq!(sync(&agent, &id, json!(state)).expect(200).json["noOp"], true);
        let cut = say(&agent, &id, "cut");
        sync(&agent, &id, json!(["the parent goes its own way"])).expect(200);
        id = fork(&agent, &id, &cut);
    }
    assert_eq!(current_memory(&agent, &id), state);
}

// ---- large trees

#[test]
fn pages_appends_and_memory_of_a_branch_are_the_same_beside_thousands_of_sibling_entries() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    for n in 0..5 {
        say(&agent, &root, &format!("root {n}"));
    }
    sync(&agent, &root, json!(["state"])).expect(200);
    let cut = say(&agent, &root, "cut");
    let quiet = fork(&agent, &root, &cut);
    say(&agent, &quiet, "quiet 0");
    let before = (view(&agent, &quiet), current_memory(&agent, &quiet));

    let siblings: Vec<String> = (0..20).map(|_| fork(&agent, &root, &cut)).collect();
    spread(2_000, |n| {
        let sibling = &siblings[n % siblings.len()];
        if n % 10 == 0 {
            sync(&agent, sibling, json!([n])).expect(200);
        } else {
            say(&agent, sibling, &format!("noise {n}"));
        }
    });

    assert_eq!((view(&agent, &quiet), current_memory(&agent, &quiet)), before);
    let page = entries(&agent, &quiet, "limit=3");
    assert_eq!(said(&page), ["root 0", "root 1", "root 2"]);
    assert_eq!(said(&entries(&agent, &quiet, &format!("after={}", page.after.unwrap()))).len(), 3);
    let tail =
        agent.get(&format!("/v1/conversations/{quiet}/entries?tail=true&limit=2")).expect_backward_page();
    assert_eq!(said(&tail), ["root 4", "quiet 0"]);
    let next = agent.post(&format!("/v1/conversations/{quiet}/entries"), memory(json!(["more"]))).expect(201);
    assert_eq!(next.json["epoch"], 1);
    assert_eq!(sync(&agent, &quiet, json!(["state", "more"])).expect(200).json["noOp"], true);
    let all = entries(&agent, &root, "forks=all&limit=200");
    assert_eq!(all.data.len(), 200);
    assert!(all.after.is_some());
}

// ---- races

#[test]
fn a_fork_made_while_its_parent_grows_shows_exactly_the_prefix() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let root = start(&agent, "Root");
    let first: Vec<String> = (0..10).map(|n| say(&agent, &root, &format!("before {n}"))).collect();

    at_once(12, |n| {
        if n < 6 {
            for m in 0..15 {
                say(&agent, &root, &format!("during {n}-{m}"));
            }
            return;
        }
        for (at, entry) in first.iter().enumerate() {
            let branch = fork(&agent, &root, entry);
            let expected: Vec<String> = (0..at).map(|n| format!("before {n}")).collect();
            assert_eq!(transcript(&agent, &branch), expected);
            say(&agent, &branch, "own");
            assert_eq!(transcript(&agent, &branch).len(), at + 1);
        }
    });

    assert_eq!(transcript(&agent, &root).len(), 10 + 6 * 15);
}
