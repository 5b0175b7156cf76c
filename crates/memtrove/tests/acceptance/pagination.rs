//! What all lists have in common: limits, cursors, their aliases, the envelope.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// One list: who reads it, where, its maximum, and where its cursors are accepted.
struct List {
    name: &'static str,
    reader: Client,
    path: String,
    max: u32,
    aliases: &'static [&'static str],
    /// Cursors that are well-formed but denote nothing in this list.
    foreign: Vec<String>,
    /// Cursors that are not well-formed.
    malformed: &'static [&'static str],
}

impl List {
    #[track_caller]
    fn get(&self, query: &str) -> Answer {
        self.reader.get(&format!("{}?{query}", self.path))
    }
}

const UUID: &[&str] = &["nonsense", "12345", "00000000-0000-0000-0000-00000000000g"];
const OPAQUE: &[&str] = &["%25%25%25", "nonsense!", "AAAA"];
const PLAIN: &[&str] = &["after", "afterCursor"];

/// Every list of the API with three items in it, in a tenant of its own.
fn lists() -> Vec<List> {
    let tenant = fresh_name("tenant");
    let (alice, bob) = (someone_in(&SERVER, "alice", &tenant), someone_in(&SERVER, "bob", &tenant));
    let stranger = someone_in(&SERVER, "stranger", &tenant);
    let admin = admin_in(&SERVER, &tenant);
    let root = start(&alice, "Root");
    let entry = say(&alice, &root, "one");
    say(&alice, &root, "two");
    say(&alice, &root, "three");
    fork(&alice, &root, &entry);
    fork(&alice, &root, &entry);
    for n in 0..2 {
        start(&alice, &n.to_string());
    }
    share(&alice, &root, &bob, "reader");
    share(&alice, &root, &someone_in(&SERVER, "carol", &tenant), "reader");
    for n in 0..3 {
        let id = start(&bob, &n.to_string());
        share(&bob, &id, &alice, "reader");
        bob.post("/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": alice.user()}))
            .expect(201);
    }
    let foreign_conversation = start(&stranger, "Foreign");
    let foreign_entry = say(&stranger, &foreign_conversation, "foreign");
    let of = |rest: &str| format!("/v1/conversations/{root}/{rest}");
    let admin_of = |rest: &str| format!("/v1/admin/conversations/{root}/{rest}");
    let list = |name, reader: &Client, path: String, max, foreign: &[&str]| List {
        name,
        reader: reader.clone(),
        path,
        max,
        aliases: PLAIN,
        foreign: foreign.iter().map(|text| (*text).to_owned()).chain([fresh_id()]).collect(),
        malformed: UUID,
    };
    let entry_aliases: &[&str] = &["after", "afterCursor", "afterEntryId"];
    vec![
        list("conversations", &alice, "/v1/conversations".into(), 200, &[&foreign_conversation, &entry]),
        List {
            aliases: entry_aliases,
            ..list("entries", &alice, of("entries"), 200, &[&foreign_entry, &root])
        },
        list("forks", &alice, of("forks"), 200, &[&foreign_conversation, &entry]),
        List { malformed: &[], ..list("memberships", &alice, of("memberships"), 200, &[stranger.user()]) },
        list("transfers", &alice, "/v1/ownership-transfers".into(), 200, &[&root]),
        List {
            aliases: &["after", "afterCursor", "cursor"],
            foreign: Vec::new(),
            malformed: OPAQUE,
            ..list("unindexed", &admin, "/v1/conversations/unindexed".into(), 200, &[])
        },
        list("admin conversations", &admin, "/v1/admin/conversations".into(), 1_000, &[&entry]),
        List {
            aliases: entry_aliases,
            ..list("admin entries", &admin, admin_of("entries"), 1_000, &[&foreign_entry])
        },
        List {
            malformed: &[],
            ..list("admin memberships", &admin, admin_of("memberships"), 1_000, &[stranger.user()])
        },
        list("admin forks", &admin, admin_of("forks"), 1_000, &[&foreign_conversation]),
    ]
}

#[test]
fn a_limit_outside_one_to_the_maximum_is_refused() {
    for list in lists() {
        for limit in ["0", "-1", "abc", "1.5", "1e1", "99999999999999999999", &(list.max + 1).to_string()] {
            let answer = list.get(&format!("limit={limit}"));
            assert_eq!(answer.status, 400, "{} limit={limit}: {}", list.name, answer.describe());
            answer.expect_violation("limit");
        }
        assert_eq!(list.get("limit=1").expect_page().data.len(), 1, "{}", list.name);
        assert!(list.get(&format!("limit={}", list.max)).expect_page().data.len() >= 3, "{}", list.name);
    }
}

#[test]
fn the_cursor_of_a_page_that_is_not_the_last_leads_to_the_next() {
    for list in lists() {
        let whole = list.get("limit=200").expect_page();
        assert_eq!(whole.after, None, "{}", list.name);

        let first = list.get("limit=1").expect_page();
        let after = first.after.unwrap_or_else(|| panic!("{}: no cursor", list.name));
        for alias in list.aliases {
            let rest = list.get(&format!("limit=200&{alias}={after}")).expect_page();
            assert_eq!(rest.data, whole.data[1..], "{} with {alias}", list.name);
            assert_eq!(rest.after, None);
        }
    }
}

#[test]
fn a_page_that_is_exactly_full_is_the_last_when_nothing_follows() {
    for list in lists() {
        let count = list.get("limit=200").expect_page().data.len();
        let full = list.get(&format!("limit={count}")).expect_page();
        assert_eq!((full.data.len(), full.after), (count, None), "{}", list.name);
        assert!(list.get(&format!("limit={}", count - 1)).expect_page().after.is_some(), "{}", list.name);
    }
}

#[test]
fn an_empty_cursor_is_as_good_as_none() {
    for list in lists() {
        let whole = list.get("limit=200").expect_page().data;
        for alias in list.aliases {
            assert_eq!(list.get(&format!("limit=200&{alias}=")).expect_page().data, whole, "{}", list.name);
        }
        let after = list.get("limit=1").expect_page().after.unwrap();
        let rest = list.get(&format!("limit=200&after={after}&afterCursor=")).expect_page();
        assert_eq!(rest.data, whole[1..], "{}: an empty alias beside a cursor", list.name);
    }
}

#[test]
fn two_different_cursors_in_one_request_are_refused() {
    for list in lists() {
        let first = list.get("limit=1").expect_page().after.unwrap();
        let second = list.get("limit=2").expect_page().after.unwrap();
        for pair in list.aliases.windows(2) {
            let answer = list.get(&format!("{}={first}&{}={second}", pair[0], pair[1]));
            assert_eq!(answer.status, 400, "{} {pair:?}: {}", list.name, answer.describe());
        }
    }
}

#[test]
fn a_cursor_that_denotes_nothing_in_the_list_is_refused() {
    for list in lists() {
        for cursor in &list.foreign {
            let answer = list.get(&format!("after={cursor}"));
            assert_eq!(answer.status, 400, "{} after={cursor}: {}", list.name, answer.describe());
        }
    }
}

#[test]
fn a_malformed_cursor_is_a_validation_error() {
    for list in lists() {
        for cursor in list.malformed {
            for alias in list.aliases {
                let answer = list.get(&format!("{alias}={cursor}"));
                assert_eq!(answer.status, 400, "{} {alias}={cursor}: {}", list.name, answer.describe());
                answer.expect_error(400, "validation_error");
            }
        }
    }
}

#[test]
fn an_opaque_cursor_has_at_most_100_characters() {
    let admin = SERVER.as_user("admin");

    admin.get(&format!("/v1/conversations/unindexed?after={}", "A".repeat(101))).expect(400);
}

#[test]
fn a_deleted_conversation_is_no_cursor_any_more() {
    let alice = SERVER.someone("alice");
    let gone = start(&alice, "Gone");
    start(&alice, "Stays");
    alice.delete(&format!("/v1/conversations/{gone}")).expect(204);

    alice.get(&format!("/v1/conversations?after={gone}")).expect(400);
}

#[test]
fn a_finished_transfer_is_no_cursor_any_more() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let id = start(&alice, "Chat");
    share(&alice, &id, &bob, "reader");
    let transfer = alice
        .post("/v1/ownership-transfers", json!({"conversationId": id, "newOwnerUserId": bob.user()}))
        .expect(201)
        .id();
    alice.delete(&format!("/v1/ownership-transfers/{transfer}")).expect(204);

    alice.get(&format!("/v1/ownership-transfers?after={transfer}")).expect(400);
}

#[test]
fn without_a_limit_pages_have_the_contracts_size() {
    let tenant = fresh_name("tenant");
    let (alice, bob) = (someone_in(&SERVER, "alice", &tenant), someone_in(&SERVER, "bob", &tenant));
    let admin = admin_in(&SERVER, &tenant);
    let root = start(&alice, "Root");
    let first = say(&alice, &root, "0");
    spread(101, |n| {
        say(&alice, &root, "walrus");
        let id = start(&bob, &n.to_string());
        if n < 51 {
            share(&bob, &id, &alice, "reader");
            bob.post(
                "/v1/ownership-transfers",
                json!({"conversationId": id, "newOwnerUserId": alice.user()}),
            )
            .expect(201);
            share(&alice, &root, &someone_in(&SERVER, "member", &tenant), "reader");
            fork(&alice, &root, &first);
        }
    });
    let search = json!({"query": "walrus", "groupByConversation": false});

    for (who, path, size) in [
        (&bob, "/v1/conversations".to_owned(), 20),
        (&alice, format!("/v1/conversations/{root}/entries"), 50),
        (&alice, format!("/v1/conversations/{root}/forks"), 50),
        (&alice, format!("/v1/conversations/{root}/memberships"), 50),
        (&alice, "/v1/ownership-transfers".to_owned(), 50),
        (&admin, "/v1/conversations/unindexed".to_owned(), 100),
        (&admin, "/v1/admin/conversations".to_owned(), 100),
        (&admin, format!("/v1/admin/conversations/{root}/entries"), 50),
        (&admin, format!("/v1/admin/conversations/{root}/forks"), 50),
        (&admin, format!("/v1/admin/conversations/{root}/memberships"), 50),
    ] {
        let page = who.get(&path).expect_page();
        assert_eq!(page.data.len(), size, "{path}");
        assert!(page.after.is_some(), "{path}");
    }
    for (who, path) in [(&alice, "/v1/conversations/search"), (&admin, "/v1/admin/conversations/search")] {
        assert_eq!(who.post(path, search.clone()).expect_page().data.len(), 20, "{path}");
    }
}
