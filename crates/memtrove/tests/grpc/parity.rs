//! What is done over one transport is done over the other: the same answers, and the same state for both to read.

use crate::support::*;
use crate::surface::{Grpc, Op, Rest, Surface};
use crate::world::{World, assert_same};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// Plays a scenario over REST and over gRPC, among different people, and compares what was said and what is left.
#[track_caller]
fn the_same_over_both(scenario: fn(&mut World)) {
    compare(scenario, World::over_rest(&SERVER), World::over_grpc(&SERVER));
}

#[track_caller]
fn compare(scenario: fn(&mut World), mut rest: World, mut grpc: World) {
    scenario(&mut rest);
    scenario(&mut grpc);
    assert!(!rest.said.is_empty());
    for (one, other) in rest.said.iter().zip(&grpc.said) {
        assert_eq!(one.0, other.0, "the scenario took another turn");
        assert_same(&format!("{}: what REST says", one.0), &one.1, "what gRPC says", &other.1);
    }
    assert_eq!(rest.said.len(), grpc.said.len());
    assert_same("the state after REST", &rest.state(), "the state after gRPC", &grpc.state());
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().expect("an id").to_owned()
}

/// A message of the user.
pub fn message(conversation: &str, text: &str) -> Value {
    json!({"conversationId": conversation, "channel": "history", "contentType": "history",
        "content": [{"role": "USER", "text": text}]})
}

/// Items of an agent's memory.
pub fn memory(conversation: &str, items: Value) -> Value {
    json!({"conversationId": conversation, "channel": "memory", "contentType": "LC4J", "content": items})
}

/// A question about a conversation.
fn of(conversation: &str) -> Value {
    json!({"conversationId": conversation})
}

/// The same question with more said.
fn and(mut asked: Value, more: Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        asked[name] = value.clone();
    }
    asked
}

#[test]
fn conversations_are_made_read_renamed_and_deleted() {
    the_same_over_both(|world| {
        let plain = id(&world.done("alice", Op::CreateConversation, json!({})));
        let metadata = json!({"origin": "mail", "n": 7, "half": 0.5, "nested": {"list": [1, null, "x", true]}, "none": null});
        let full = json!({"title": "Reise nach Łódź 🧵", "metadata": metadata});
        let full = id(&world.done("alice", Op::CreateConversation, full));
        world.done("alice", Op::CreateConversation, json!({"title": "   "}));
        world.done("alice", Op::CreateConversation, json!({"metadata": {}}));
        for conversation in [&plain, &full] {
            world.done("alice", Op::GetConversation, of(conversation));
        }
        for title in [json!("Renamed"), json!("  padded  "), json!("  "), json!("Again"), json!(null)] {
            world.done("alice", Op::UpdateConversation, and(of(&full), json!({"title": title})));
        }
        world.done("alice", Op::UpdateConversation, and(of(&plain), json!({"title": "Plain"})));
        world.done("alice", Op::UpdateConversation, of(&plain));
        world.done("alice", Op::GetConversation, of(&plain));
        world.refused("bob", Op::GetConversation, of(&plain), Code::PermissionDenied);

        world.done("alice", Op::DeleteConversation, of(&full));
        for op in
            [Op::GetConversation, Op::DeleteConversation, Op::ListForks, Op::ListMemberships, Op::ListEntries]
        {
            world.refused("alice", op, of(&full), Code::NotFound);
        }
        world.refused("alice", Op::AppendEntry, message(&full, "too late"), Code::NotFound);
    });
}

#[test]
fn lists_of_conversations_have_the_same_rows_in_the_same_order() {
    the_same_over_both(|world| {
        let mut roots = Vec::new();
        for title in ["One", "Two", "Three", "The Other One"] {
            roots.push(id(&world.done("alice", Op::CreateConversation, json!({"title": title}))));
        }
        world.done(
            "alice",
            Op::CreateConversation,
            json!({"title": "Tagged", "metadata": {"topic": "ONEiric"}}),
        );
        let entry = id(&world.done("alice", Op::AppendEntry, message(&roots[1], "first words of two")));
        world.done(
            "alice",
            Op::ForkConversation,
            json!({"conversationId": roots[1], "entryId": entry, "title": "Fork of two"}),
        );
        world.done("alice", Op::AppendEntry, message(&roots[0], "the latest is one again"));
        let fork = fresh_id();
        let forking = and(message(&fork, "on a blank slate"), json!({"forkedAtConversationId": roots[2]}));
        world.done("alice", Op::AppendEntry, forking);

        for asked in [
            json!({}),
            json!({"mode": "all"}),
            json!({"mode": "roots"}),
            json!({"mode": "latest-fork"}),
            json!({"query": "one"}),
            json!({"query": "ONE", "mode": "all"}),
            json!({"query": "nobody says this"}),
            json!({"limit": 200}),
        ] {
            world.done("alice", Op::ListConversations, asked);
        }
        for mode in ["all", "roots", "latest-fork"] {
            let mut asked = json!({"mode": mode, "limit": 2});
            loop {
                let page = world.done("alice", Op::ListConversations, asked.clone());
                if page["afterCursor"].is_null() {
                    break;
                }
                asked["after"] = page["afterCursor"].clone();
            }
        }
        world.done("bob", Op::ListConversations, json!({}));
    });
}

#[test]
fn entries_are_appended_and_listed() {
    the_same_over_both(|world| {
        let conversation = id(&world.done("alice", Op::CreateConversation, json!({})));
        let mut entries = Vec::new();
        for text in ["a question about   whitespace\nand lines", "b", "c 🧵", "d", "e"] {
            entries.push(id(&world.done("alice", Op::AppendEntry, message(&conversation, text))));
        }
        let typed = json!({"conversationId": conversation, "contentType": "message", "content": [1, "two", null, {"3": [4]}]});
        world.done("alice", Op::AppendEntry, typed);
        let rich = json!({"conversationId": conversation, "channel": "history", "contentType": "history/lc4j",
            "indexedContent": "what to find it by", "content": [{"role": "AI", "text": "an answer", "events": [{"kind": "tool", "ms": 12.5}],
            "attachments": [{"href": "/v1/somewhere", "contentType": "image/png", "name": "a.png"}], "extra": null}]});
        world.done("alice@agent-a", Op::AppendEntry, rich);
        for (agent, items) in [
            ("alice@agent-a", json!(["a1", {"a": 2}])),
            ("alice@agent-b", json!([])),
            ("alice@agent-a", json!([3.25, -7, 0])),
        ] {
            world.done(agent, Op::AppendEntry, memory(&conversation, items));
        }
        let own_name = and(message(&conversation, "in my own name"), json!({"userId": world.user("alice")}));
        world.done("alice", Op::AppendEntry, own_name);

        for asked in [
            json!({}),
            json!({"channel": "history"}),
            json!({"limit": 3}),
            json!({"limit": 3, "after": entries[2]}),
            json!({"after": entries[4]}),
            json!({"tail": true}),
            json!({"tail": true, "limit": 2}),
            json!({"tail": false}),
            json!({"before": entries[3], "limit": 2}),
            json!({"before": entries[0]}),
            json!({"upToEntryId": entries[2]}),
            json!({"upToEntryId": entries[3], "tail": true, "limit": 2}),
            json!({"forks": "none"}),
            json!({"forks": "all"}),
            json!({"epoch": "anything, for it is ignored"}),
        ] {
            world.done("alice", Op::ListEntries, and(of(&conversation), asked));
        }
        for agent in ["alice@agent-a", "alice@agent-b", "alice@agent-c"] {
            for asked in [
                json!({}),
                json!({"epoch": "latest"}),
                json!({"epoch": "ALL"}),
                json!({"epoch": "1"}),
                json!({"epoch": "9"}),
                json!({"limit": 1000}),
                json!({"limit": 1}),
                json!({"forks": "all"}),
                json!({"upToEntryId": entries[4]}),
            ] {
                world.done(
                    agent,
                    Op::ListEntries,
                    and(and(of(&conversation), json!({"channel": "memory"})), asked),
                );
            }
        }
        let unknown = fresh_id();
        world.done(
            "alice",
            Op::AppendEntry,
            message(&unknown, "Sensitive information about the new compliance project"),
        );
        world.done("alice", Op::GetConversation, of(&unknown));
        world.refused("bob", Op::AppendEntry, message(&unknown, "not mine"), Code::PermissionDenied);
    });
}

#[test]
fn syncs_decide_alike() {
    the_same_over_both(|world| {
        let agent = "alice@agent-a";
        let unknown = fresh_id();
        world.done(agent, Op::SyncEntries, memory(&unknown, json!([])));
        world.refused(agent, Op::GetConversation, of(&unknown), Code::NotFound);
        world.done(agent, Op::SyncEntries, memory(&unknown, json!(["a"])));
        let conversation = id(&world.done("alice", Op::CreateConversation, json!({"title": "Chat"})));
        for items in [
            json!([]),
            json!(["a"]),
            json!(["a"]),
            json!(["a", {"b": [1, 2.5, null]}]),
            json!(["a", {"b": [1, 2.5, null]}]),
            json!(["a", {"b": [1, 2.5]}]),
            json!(["a"]),
            json!(["x"]),
            json!([]),
            json!([]),
            json!(["a"]),
            json!(["a", "b", "c"]),
        ] {
            world.done(agent, Op::SyncEntries, memory(&conversation, items));
        }
        for kind in ["T", "U", "U"] {
            let typed = and(memory(&conversation, json!(["a", "b", "c"])), json!({"contentType": kind}));
            world.done(agent, Op::SyncEntries, typed);
        }
        world.done(
            agent,
            Op::AppendEntry,
            and(memory(&conversation, json!(["d", "e"])), json!({"contentType": "U"})),
        );
        let whole = and(memory(&conversation, json!(["a", "b", "c", "d", "e"])), json!({"contentType": "U"}));
        world.done(agent, Op::SyncEntries, whole);
        world.done("alice@agent-b", Op::SyncEntries, memory(&conversation, json!(["mine"])));

        let entry = id(&world.done("alice", Op::AppendEntry, message(&conversation, "hello")));
        world.done(
            agent,
            Op::SyncEntries,
            and(memory(&conversation, json!([1, 2, 3])), json!({"contentType": "U"})),
        );
        let fork = id(&world.done(
            agent,
            Op::ForkConversation,
            json!({"conversationId": conversation, "entryId": entry}),
        ));
        let inherited =
            and(memory(&fork, json!(["a", "b", "c", "d", "e", "f"])), json!({"contentType": "U"}));
        world.done(agent, Op::SyncEntries, inherited);
        world.done(agent, Op::SyncEntries, and(memory(&fork, json!(["z"])), json!({"contentType": "U"})));
        let blank = and(memory(&fresh_id(), json!(["new"])), json!({"forkedAtConversationId": conversation}));
        world.done(agent, Op::SyncEntries, blank);
        let at =
            json!({"forkedAtConversationId": conversation, "forkedAtEntryId": entry, "contentType": "U"});
        world.done(agent, Op::SyncEntries, and(memory(&fresh_id(), json!(["a", "b", "c", "d", "e", 6])), at));
    });
}

#[test]
fn forks_share_the_same_past() {
    the_same_over_both(|world| {
        let agent = "alice@agent-a";
        let root = id(&world.done("alice", Op::CreateConversation, json!({"title": "Root"})));
        let mut entries = Vec::new();
        for (who, entry) in [
            ("alice", message(&root, "A")),
            (agent, memory(&root, json!(["B"]))),
            ("alice", message(&root, "C")),
            ("alice", message(&root, "D")),
            (agent, memory(&root, json!(["E"]))),
            ("alice", message(&root, "F")),
        ] {
            entries.push(id(&world.done(who, Op::AppendEntry, entry)));
        }
        let at = |conversation: &str, entry: &str| json!({"conversationId": conversation, "entryId": entry});
        let first = id(&world.done("alice", Op::ForkConversation, at(&root, &entries[3])));
        let own = id(&world.done("alice", Op::AppendEntry, message(&first, "I")));
        let memorised = id(&world.done(agent, Op::AppendEntry, memory(&first, json!(["J"]))));
        world.done("alice", Op::AppendEntry, message(&root, "G"));
        let titled = and(at(&first, &memorised), json!({"title": "Second"}));
        let second = id(&world.done(agent, Op::ForkConversation, titled));
        let third = id(&world.done("alice", Op::ForkConversation, at(&first, &own)));
        let nothing = id(&world.done("alice", Op::ForkConversation, at(&root, &entries[0])));
        let inherited = id(&world.done("alice", Op::ForkConversation, at(&first, &entries[2])));
        let (appended, blank) = (fresh_id(), fresh_id());
        let forking = json!({"forkedAtConversationId": root, "forkedAtEntryId": entries[5]});
        world.done("alice", Op::AppendEntry, and(message(&appended, "on append"), forking.clone()));
        world.done("alice", Op::AppendEntry, and(message(&appended, "once more, when it is there"), forking));
        world.done(
            "alice",
            Op::AppendEntry,
            and(message(&blank, "blank"), json!({"forkedAtConversationId": first})),
        );

        for conversation in [&root, &first, &second, &third, &nothing, &inherited, &appended, &blank] {
            world.done("alice", Op::GetConversation, of(conversation));
            world.done("alice", Op::ListEntries, of(conversation));
            world.done(
                agent,
                Op::ListEntries,
                and(of(conversation), json!({"channel": "memory", "epoch": "all"})),
            );
            world.done("alice", Op::ListEntries, and(of(conversation), json!({"limit": 1, "tail": true})));
            world.done("alice", Op::ListForks, of(conversation));
        }
        world.refused("alice", Op::ForkConversation, at(&second, &entries[5]), Code::NotFound);
        world.refused("alice", Op::ForkConversation, at(&root, &entries[1]), Code::NotFound);
        world.refused("bob", Op::ForkConversation, at(&root, &entries[0]), Code::PermissionDenied);
        world.done("alice", Op::DeleteConversation, of(&third));
        world.refused("alice", Op::GetConversation, of(&root), Code::NotFound);
    });
}

#[test]
fn conversations_are_shared_and_members_come_and_go() {
    the_same_over_both(|world| {
        let conversation = id(&world.done("alice", Op::CreateConversation, json!({"title": "Shared"})));
        for (role, level) in [("bob", "manager"), ("carol", "writer"), ("dave", "reader"), ("erin", "reader")]
        {
            let member = json!({"userId": world.user(role), "accessLevel": level});
            world.done("alice", Op::ShareConversation, and(of(&conversation), member));
        }
        for (role, code) in [
            ("bob", None),
            ("carol", None),
            ("dave", Some(Code::PermissionDenied)),
            ("frank", Some(Code::PermissionDenied)),
        ] {
            let asked = message(&conversation, &format!("hello from {role}"));
            match code {
                None => drop(world.done(role, Op::AppendEntry, asked)),
                Some(code) => drop(world.refused(role, Op::AppendEntry, asked, code)),
            }
            let frank = json!({"userId": world.user("frank"), "accessLevel": "reader"});
            drop(world.ask(role, Op::ShareConversation, and(of(&conversation), frank)));
            drop(world.ask(role, Op::GetConversation, of(&conversation)));
            drop(world.ask(role, Op::UpdateConversation, and(of(&conversation), json!({"title": role}))));
            drop(world.ask(role, Op::DeleteConversation, of(&conversation)));
        }
        let mut asked = and(of(&conversation), json!({"limit": 2}));
        loop {
            let page = world.done("dave", Op::ListMemberships, asked.clone());
            if page["afterCursor"].is_null() {
                break;
            }
            asked["after"] = page["afterCursor"].clone();
        }
        let change = |world: &mut World, by: &str, whom: &str, level: &str| {
            let member = json!({"userId": world.user(whom), "accessLevel": level});
            world.ask(by, Op::UpdateMembership, and(of(&conversation), member))
        };
        change(world, "bob", "carol", "reader").expect("a manager changes writers");
        change(world, "bob", "dave", "manager").expect("a manager grants his own level");
        change(world, "bob", "bob", "writer").expect("a manager may step down");
        change(world, "bob", "dave", "reader").expect_err("a writer changes nobody");
        change(world, "alice", "alice", "writer").expect_err("the owner stays");
        change(world, "alice", "carol", "owner").expect_err("ownership moves by transfer");
        let again = json!({"userId": world.user("erin"), "accessLevel": "writer"});
        world.done("alice", Op::ShareConversation, and(of(&conversation), again));
        for (by, whom) in
            [("erin", "erin"), ("carol", "dave"), ("alice", "carol"), ("alice", "alice"), ("alice", "carol")]
        {
            let member = json!({"userId": world.user(whom)});
            drop(world.ask(by, Op::DeleteMembership, and(of(&conversation), member)));
        }
        world.refused("carol", Op::GetConversation, of(&conversation), Code::PermissionDenied);
    });
}

#[test]
fn conversations_change_hands() {
    the_same_over_both(|world| {
        let conversation = id(&world.done("alice", Op::CreateConversation, json!({"title": "Handed over"})));
        let untitled = id(&world.done("alice", Op::CreateConversation, json!({})));
        for whose in [&conversation, &untitled] {
            for (role, level) in [("bob", "reader"), ("carol", "manager")] {
                let member = json!({"userId": world.user(role), "accessLevel": level});
                world.done("alice", Op::ShareConversation, and(of(whose), member));
            }
        }
        let (alice, bob, carol, dave) =
            (world.user("alice"), world.user("bob"), world.user("carol"), world.user("dave"));
        let to = |whose: &str, whom: &str| json!({"conversationId": whose, "newOwnerUserId": whom});
        let offer = id(&world.done("alice", Op::CreateOwnershipTransfer, to(&conversation, &bob)));
        let pending = world.refused(
            "alice",
            Op::CreateOwnershipTransfer,
            to(&conversation, &carol),
            Code::AlreadyExists,
        );
        assert_eq!(pending.about["existingTransferId"], offer);
        world.refused("carol", Op::CreateOwnershipTransfer, to(&untitled, &bob), Code::PermissionDenied);
        world.refused("alice", Op::CreateOwnershipTransfer, to(&untitled, &alice), Code::InvalidArgument);
        world.refused("alice", Op::CreateOwnershipTransfer, to(&untitled, &dave), Code::InvalidArgument);
        let other = id(&world.done("alice", Op::CreateOwnershipTransfer, to(&untitled, &carol)));
        for person in ["alice", "bob", "carol", "dave"] {
            for asked in [
                json!({}),
                json!({"role": "all"}),
                json!({"role": "sender"}),
                json!({"role": "recipient"}),
                json!({"limit": 1}),
            ] {
                world.done(person, Op::ListOwnershipTransfers, asked);
            }
            drop(world.ask(person, Op::GetOwnershipTransfer, json!({"transferId": offer})));
        }
        let page = world.done("alice", Op::ListOwnershipTransfers, json!({"limit": 1}));
        world.done("alice", Op::ListOwnershipTransfers, json!({"limit": 1, "after": page["afterCursor"]}));
        for (person, op) in [
            ("dave", Op::AcceptOwnershipTransfer),
            ("alice", Op::AcceptOwnershipTransfer),
            ("carol", Op::DeleteOwnershipTransfer),
        ] {
            world.refused(person, op, json!({"transferId": offer}), Code::PermissionDenied);
        }
        world.done("bob", Op::AcceptOwnershipTransfer, json!({"transferId": offer}));
        world.done("carol", Op::DeleteOwnershipTransfer, json!({"transferId": other}));
        for transfer in [&offer, &other] {
            world.refused("alice", Op::GetOwnershipTransfer, json!({"transferId": transfer}), Code::NotFound);
            world.refused(
                "bob",
                Op::AcceptOwnershipTransfer,
                json!({"transferId": transfer}),
                Code::NotFound,
            );
        }
        for person in ["alice", "bob", "carol"] {
            world.done(person, Op::GetConversation, of(&conversation));
            world.done(person, Op::ListMemberships, of(&conversation));
        }
    });
}

#[test]
fn entries_are_found_indexed_and_listed_while_they_are_not() {
    fn scenario(world: &mut World) {
        let (alice, indexer) = ("alice@agent-a", "admin@agent-a");
        let zoo = id(&world.done(alice, Op::CreateConversation, json!({"title": "Zoo"})));
        let mut entries = Vec::new();
        for text in ["The walrus ate an oyster", "Walruses and oysters, again", "Nothing of the kind"] {
            entries.push(id(&world.done(alice, Op::AppendEntry, message(&zoo, text))));
        }
        let other = fresh_id();
        let said = and(
            message(&other, "A walrus elsewhere"),
            json!({"indexedContent": "the walrus of another conversation"}),
        );
        entries.push(id(&world.done(alice, Op::AppendEntry, said)));
        for asked in [
            json!({"query": "walrus", "searchType": "fulltext"}),
            json!({"query": "walrus", "searchType": "fulltext", "groupByConversation": false}),
            json!({"query": "walrus", "searchType": "fulltext", "groupByConversation": true, "includeEntry": false}),
            json!({"query": "oyster ate", "searchType": "FULLTEXT", "includeEntry": true}),
            json!({"query": "walrus", "searchType": "auto"}),
            json!({"query": "walrus"}),
            json!({"query": "where do sea animals eat", "searchType": "semantic", "limit": 2}),
            json!({"query": "zebra", "searchType": "fulltext"}),
            json!({"query": "()*\"", "searchType": "fulltext"}),
        ] {
            world.done(alice, Op::SearchConversations, asked);
        }
        let mut asked =
            json!({"query": "walrus", "searchType": "fulltext", "groupByConversation": false, "limit": 1});
        loop {
            let page = world.done(alice, Op::SearchConversations, asked.clone());
            if page["afterCursor"].is_null() {
                break;
            }
            asked["after"] = page["afterCursor"].clone();
        }
        world.done("bob@agent-a", Op::SearchConversations, json!({"query": "walrus"}));

        let mut asked = json!({"limit": 2});
        loop {
            let page = world.done(indexer, Op::ListUnindexedEntries, asked.clone());
            if page["afterCursor"].is_null() {
                break;
            }
            asked["after"] = page["afterCursor"].clone();
        }
        let item = |entry: &str, text: &str| json!({"conversationId": zoo, "entryId": entry, "indexedContent": text});
        world.done(
            indexer,
            Op::IndexConversations,
            json!([
                item(&entries[0], "a zebra"),
                item(&entries[1], "first"),
                item(&entries[1], "a zebra too")
            ]),
        );
        world.refused(
            indexer,
            Op::IndexConversations,
            json!([item(&entries[2], "a zebra"), item(&fresh_id(), "x")]),
            Code::NotFound,
        );
        world.done(indexer, Op::ListUnindexedEntries, json!({}));
        world.done(
            alice,
            Op::SearchConversations,
            json!({"query": "zebra", "searchType": "fulltext", "groupByConversation": false}),
        );
        world.refused(alice, Op::IndexConversations, json!([item(&entries[2], "x")]), Code::PermissionDenied);
        world.refused(alice, Op::ListUnindexedEntries, json!({}), Code::PermissionDenied);
    }
    compare(scenario, World::over_rest(&SERVER).in_a_tenant(), World::over_grpc(&SERVER).in_a_tenant());
}

#[test]
fn an_agent_that_changes_the_transport_in_between_notices_nothing() {
    let (mut rest, mut grpc) = (World::over_rest(&SERVER), World::over_grpc(&SERVER));
    let name = rest.user("alice");
    grpc.call_somebody("alice", &name);
    let conversation = id(&rest.done("alice", Op::CreateConversation, json!({"title": "Both"})));
    let items = json!(["a", 1, 2.5, 9_007_199_254_740_992_u64, -3, {"deep": [null, true, {"n": 1e3}]}, []]);

    let first = rest.done("alice@agent-a", Op::SyncEntries, memory(&conversation, items.clone()));
    let again = grpc.done("alice@agent-a", Op::SyncEntries, memory(&conversation, items.clone()));
    assert_eq!((&first["noOp"], &again["noOp"]), (&json!(false), &json!(true)), "{again}");

    let mut longer = items.clone();
    longer.as_array_mut().expect("items").push(json!(7));
    let more = grpc.done("alice@agent-a", Op::SyncEntries, memory(&conversation, longer.clone()));
    assert_eq!(
        (&more["noOp"], &more["epoch"], &more["entry"]["content"]),
        (&json!(false), &json!(1), &json!([7]))
    );
    let again = rest.done("alice@agent-a", Op::SyncEntries, memory(&conversation, longer));
    assert_eq!(again["noOp"], json!(true), "{again}");
}

/// Asks the same of both transports at the same time, many times; what was answered.
fn at_once(who: &Who, op: Op, asked: impl Fn(usize) -> Value + Sync) -> Vec<Value> {
    const CALLS: usize = 40;
    let gate = std::sync::Barrier::new(CALLS);
    let (rest, grpc) = (Rest(&SERVER), Grpc(channel(&SERVER)));
    let call = |number: usize| {
        let surface: &dyn Surface = if number.is_multiple_of(2) { &rest } else { &grpc };
        gate.wait();
        surface.call(who, op, &asked(number)).expect("every call is answered")
    };
    std::thread::scope(|scope| {
        let call = &call;
        let threads: Vec<_> = (0..CALLS).map(|number| scope.spawn(move || call(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
    })
}

#[test]
fn first_appends_over_both_transports_at_once_make_one_conversation() {
    let (alice, conversation) = (Who::someone("alice"), fresh_id());
    let written = at_once(&alice, Op::AppendEntry, |number| message(&conversation, &number.to_string()));
    let list =
        Rest(&SERVER).call(&alice, Op::ListEntries, &json!({"conversationId": conversation, "limit": 200}));
    let list = list.expect("a page")["data"].as_array().cloned().unwrap_or_default();
    assert_eq!(list.len(), written.len());
    assert!(list.is_sorted_by_key(|entry| entry["createdAt"].to_string()));
    assert!(written.iter().all(|entry| list.contains(entry)), "what was answered is what is stored");
}

#[test]
fn the_same_sync_over_both_transports_at_once_writes_once() {
    let (agent, conversation) = (Who::someone("alice").with_key("agent-a"), fresh_id());
    let done =
        at_once(&agent, Op::SyncEntries, |_| memory(&conversation, json!([1, {"b": 2.5, "a": null}, "x"])));
    assert_eq!(done.iter().filter(|sync| sync["noOp"] == false).count(), 1);
    assert!(done.iter().all(|sync| sync["epoch"] == 1), "{done:?}");
}
