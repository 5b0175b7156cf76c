//! What REST refuses, gRPC refuses, with the status and the reason that belong together.

use crate::parity::{memory, message};
use crate::support::*;
use crate::surface::{Grpc, Op, Rest, Surface};
use crate::world::{World, assert_same};
use Code::{AlreadyExists, InvalidArgument, NotFound, PermissionDenied, Unimplemented};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A wrong call: who, what, and with which status and reason it must be refused.
type Wrong = (&'static str, Op, Value, Code, &'static str);

/// Makes each call over both transports; both must refuse it as the table says, and alike.
#[track_caller]
fn refuse(server: &TestServer, world: &mut World, table: Vec<Wrong>) {
    let (rest, grpc) = (Rest(server), Grpc(channel(server)));
    let mut problems = Vec::new();
    for (number, (who, op, asked, code, reason)) in table.into_iter().enumerate() {
        let caller = world.who(who);
        let over_rest = rest.call(&caller, op, &asked);
        let over_grpc = grpc.call(&caller, op, &asked);
        let asked: String = asked.to_string().chars().take(200).collect();
        let as_it_must =
            matches!(&over_rest, Err(refusal) if refusal.code == code && refusal.reason == reason);
        if !as_it_must || over_rest != over_grpc {
            problems.push(format!(
                "{number}: {who} {op:?} {asked} must be {code:?} {reason}\n  REST: {over_rest:?}\n  gRPC: {over_grpc:?}"
            ));
        }
    }
    assert!(problems.is_empty(), "{} calls:\n{}", problems.len(), problems.join("\n"));
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().expect("an id").to_owned()
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

fn letters(count: usize) -> String {
    "ä".repeat(count)
}

#[test]
fn wrong_calls_have_the_same_status_and_reason_over_both_transports() {
    let mut world = World::over_rest(&SERVER);
    let conversation = id(&world.done("alice", Op::CreateConversation, json!({"title": "Plans"})));
    let spare = id(&world.done("alice", Op::CreateConversation, json!({"title": "Spare"})));
    let deleted = id(&world.done("alice", Op::CreateConversation, json!({})));
    world.done("alice", Op::DeleteConversation, json!({"conversationId": deleted}));
    let entry = id(&world.done("alice", Op::AppendEntry, message(&conversation, "hello")));
    let remembered = id(&world.done("alice@agent-a", Op::AppendEntry, memory(&conversation, json!(["x"]))));
    let elsewhere = id(&world.done("alice", Op::AppendEntry, message(&spare, "elsewhere")));
    let members = [("bob", "manager"), ("carol", "writer"), ("dave", "reader")];
    for (role, level) in members {
        let member =
            json!({"conversationId": conversation, "userId": world.user(role), "accessLevel": level});
        world.done("alice", Op::ShareConversation, member);
    }
    let (alice, bob, carol, mallory) =
        (world.user("alice"), world.user("bob"), world.user("carol"), world.user("mallory"));
    let offer = json!({"conversationId": conversation, "newOwnerUserId": bob});
    let offered = id(&world.done("alice", Op::CreateOwnershipTransfer, offer.clone()));
    world.user("admin");
    let before = world.state();

    let of = |more: Value| {
        let mut asked = json!({"conversationId": conversation});
        for (name, value) in more.as_object().into_iter().flatten() {
            asked[name] = value.clone();
        }
        asked
    };
    let history =
        |content: Value| of(json!({"channel": "history", "contentType": "history", "content": content}));
    let nobody = fresh_id();
    let unknown = json!({"conversationId": nobody});
    let deleted_one = json!({"conversationId": deleted});
    let many_keys: Value =
        (0..51).map(|n| (format!("key {n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();

    let mut table: Vec<Wrong> = vec![
        // Making, renaming.
        (
            "alice",
            Op::CreateConversation,
            json!({"title": letters(501)}),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::CreateConversation, json!({"title": "nul \0"}), InvalidArgument, "validation_error"),
        (
            "alice",
            Op::CreateConversation,
            json!({"metadata": many_keys}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::CreateConversation,
            json!({"metadata": {letters(101): 1}}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::CreateConversation,
            json!({"metadata": {"k": letters(9000)}}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::CreateConversation,
            json!({"metadata": {"k": "\0"}}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::UpdateConversation,
            of(json!({"title": letters(501)})),
            InvalidArgument,
            "validation_error",
        ),
        ("dave", Op::UpdateConversation, of(json!({"title": "no"})), PermissionDenied, "forbidden"),
        ("mallory", Op::UpdateConversation, of(json!({"title": "no"})), PermissionDenied, "forbidden"),
        ("bob", Op::DeleteConversation, of(json!({})), PermissionDenied, "forbidden"),
        // Lists.
        ("alice", Op::ListConversations, json!({"limit": 201}), InvalidArgument, "validation_error"),
        ("alice", Op::ListConversations, json!({"limit": -1}), InvalidArgument, "validation_error"),
        ("alice", Op::ListConversations, json!({"after": "nonsense"}), InvalidArgument, "validation_error"),
        ("alice", Op::ListConversations, json!({"after": nobody}), InvalidArgument, "validation_error"),
        (
            "alice",
            Op::ListConversations,
            json!({"query": letters(1001)}),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::ListForks, of(json!({"limit": 201})), InvalidArgument, "validation_error"),
        ("alice", Op::ListForks, of(json!({"after": spare})), InvalidArgument, "validation_error"),
        ("alice", Op::ListMemberships, of(json!({"limit": 201})), InvalidArgument, "validation_error"),
        ("alice", Op::ListMemberships, of(json!({"after": mallory})), InvalidArgument, "validation_error"),
        ("alice", Op::ListOwnershipTransfers, json!({"limit": 201}), InvalidArgument, "validation_error"),
        ("alice", Op::ListOwnershipTransfers, json!({"after": "x"}), InvalidArgument, "validation_error"),
        ("alice", Op::ListOwnershipTransfers, json!({"after": nobody}), InvalidArgument, "validation_error"),
        ("alice", Op::ListEntries, of(json!({"limit": 201})), InvalidArgument, "validation_error"),
        (
            "alice@agent-a",
            Op::ListEntries,
            of(json!({"channel": "memory", "limit": 1001})),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::ListEntries, of(json!({"after": elsewhere})), InvalidArgument, "validation_error"),
        ("alice", Op::ListEntries, of(json!({"before": nobody})), InvalidArgument, "validation_error"),
        ("alice", Op::ListEntries, of(json!({"before": "x"})), InvalidArgument, "validation_error"),
        (
            "alice",
            Op::ListEntries,
            of(json!({"tail": true, "after": entry})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::ListEntries,
            of(json!({"tail": true, "before": entry})),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::ListEntries, of(json!({"upToEntryId": nobody})), InvalidArgument, "validation_error"),
        ("alice", Op::ListEntries, of(json!({"forks": "some"})), InvalidArgument, "validation_error"),
        ("alice", Op::ListEntries, of(json!({"channel": "journal"})), InvalidArgument, "validation_error"),
        (
            "alice@agent-a",
            Op::ListEntries,
            of(json!({"channel": "memory", "epoch": "newest"})),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::ListEntries, of(json!({"channel": "memory"})), PermissionDenied, "forbidden"),
        // Appending.
        ("alice", Op::AppendEntry, of(json!({"content": []})), InvalidArgument, "validation_error"),
        (
            "alice",
            Op::AppendEntry,
            of(json!({"contentType": letters(128), "content": [1]})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::AppendEntry,
            of(json!({"contentType": "message", "content": vec![1; 1001]})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::AppendEntry,
            of(json!({"contentType": "message", "content": [nested(64)]})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::AppendEntry,
            of(json!({"contentType": "message", "content": ["\0"]})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::AppendEntry,
            of(json!({"channel": "history", "contentType": "message", "content": [1]})),
            InvalidArgument,
            "bad_request",
        ),
        ("alice", Op::AppendEntry, history(json!([])), InvalidArgument, "bad_request"),
        ("alice", Op::AppendEntry, history(json!([1, 2])), InvalidArgument, "bad_request"),
        ("alice", Op::AppendEntry, history(json!([{"role": "USER"}])), InvalidArgument, "bad_request"),
        (
            "alice",
            Op::AppendEntry,
            history(json!([{"role": "SYSTEM", "text": "x"}])),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::AppendEntry,
            history(json!([{"role": "AI", "events": {}}])),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::AppendEntry,
            history(json!([{"role": "AI", "attachments": 1}])),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::AppendEntry,
            history(json!([{"role": "AI", "attachments": [{"name": "x"}]}])),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::AppendEntry,
            history(json!([{"role": "AI", "attachments": [{"href": "x"}]}])),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::AppendEntry,
            of(json!({"userId": bob, "contentType": "message", "content": [1]})),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::AppendEntry,
            of(json!({"userId": letters(256), "contentType": "message", "content": [1]})),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::AppendEntry, memory(&conversation, json!([1])), PermissionDenied, "forbidden"),
        ("dave", Op::AppendEntry, message(&conversation, "no"), PermissionDenied, "forbidden"),
        ("mallory", Op::AppendEntry, message(&conversation, "no"), PermissionDenied, "forbidden"),
        ("alice", Op::AppendEntry, message(&deleted, "no"), NotFound, "not_found"),
    ];
    let with = |mut asked: Value, name: &str, value: Value| {
        asked[name] = value;
        asked
    };
    let forking = |at: &str, entry: Option<&str>| {
        let mut asked = message(&fresh_id(), "a fork");
        asked["forkedAtConversationId"] = json!(at);
        if let Some(entry) = entry {
            asked["forkedAtEntryId"] = json!(entry);
        }
        asked
    };
    table.extend([
        (
            "alice@agent-a",
            Op::AppendEntry,
            with(memory(&conversation, json!([1])), "indexedContent", json!("x")),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::AppendEntry,
            with(message(&conversation, "x"), "indexedContent", json!(letters(100_001))),
            InvalidArgument,
            "validation_error",
        ),
        // Forking.
        (
            "alice",
            Op::AppendEntry,
            with(message(&fresh_id(), "x"), "forkedAtEntryId", json!(entry)),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::AppendEntry, forking(&nobody, None), NotFound, "not_found"),
        ("alice", Op::AppendEntry, forking(&conversation, Some(&elsewhere)), NotFound, "not_found"),
        ("mallory", Op::AppendEntry, forking(&conversation, Some(&entry)), PermissionDenied, "forbidden"),
        ("alice", Op::ForkConversation, of(json!({"entryId": nobody})), NotFound, "not_found"),
        ("alice", Op::ForkConversation, of(json!({"entryId": elsewhere})), NotFound, "not_found"),
        ("alice@agent-b", Op::ForkConversation, of(json!({"entryId": remembered})), NotFound, "not_found"),
        (
            "alice",
            Op::ForkConversation,
            of(json!({"entryId": entry, "title": letters(501)})),
            InvalidArgument,
            "validation_error",
        ),
        ("dave", Op::ForkConversation, of(json!({"entryId": entry})), PermissionDenied, "forbidden"),
        ("mallory", Op::ForkConversation, of(json!({"entryId": nobody})), PermissionDenied, "forbidden"),
        // Syncing.
        ("alice", Op::SyncEntries, memory(&conversation, json!(["x"])), PermissionDenied, "forbidden"),
        ("alice@agent-a", Op::SyncEntries, message(&conversation, "x"), InvalidArgument, "bad_request"),
        (
            "alice@agent-a",
            Op::SyncEntries,
            of(json!({"contentType": "LC4J", "content": []})),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice@agent-a",
            Op::SyncEntries,
            of(json!({"channel": "memory", "content": []})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice@agent-a",
            Op::SyncEntries,
            memory(&conversation, json!(vec![0; 10_001])),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice@agent-a",
            Op::SyncEntries,
            with(memory(&conversation, json!([])), "userId", json!(bob)),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice@agent-a",
            Op::SyncEntries,
            with(memory(&conversation, json!([])), "indexedContent", json!("x")),
            InvalidArgument,
            "bad_request",
        ),
        ("dave@agent-a", Op::SyncEntries, memory(&conversation, json!(["x"])), PermissionDenied, "forbidden"),
        ("alice@agent-a", Op::SyncEntries, memory(&deleted, json!([])), NotFound, "not_found"),
        // Sharing.
        (
            "carol",
            Op::ShareConversation,
            of(json!({"userId": mallory, "accessLevel": "reader"})),
            PermissionDenied,
            "forbidden",
        ),
        (
            "alice",
            Op::ShareConversation,
            of(json!({"userId": mallory, "accessLevel": "owner"})),
            InvalidArgument,
            "bad_request",
        ),
        ("alice", Op::ShareConversation, of(json!({"userId": mallory})), InvalidArgument, "validation_error"),
        (
            "alice",
            Op::ShareConversation,
            of(json!({"userId": mallory, "accessLevel": "king"})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::ShareConversation,
            of(json!({"accessLevel": "reader"})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::ShareConversation,
            of(json!({"userId": "  ", "accessLevel": "reader"})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::ShareConversation,
            of(json!({"userId": letters(256), "accessLevel": "reader"})),
            InvalidArgument,
            "validation_error",
        ),
        (
            "bob",
            Op::ShareConversation,
            of(json!({"userId": alice, "accessLevel": "reader"})),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::UpdateMembership,
            of(json!({"userId": mallory, "accessLevel": "reader"})),
            NotFound,
            "not_found",
        ),
        ("alice", Op::UpdateMembership, of(json!({"userId": carol})), InvalidArgument, "validation_error"),
        (
            "alice",
            Op::UpdateMembership,
            of(json!({"userId": alice, "accessLevel": "reader"})),
            InvalidArgument,
            "bad_request",
        ),
        (
            "carol",
            Op::UpdateMembership,
            of(json!({"userId": carol, "accessLevel": "manager"})),
            PermissionDenied,
            "forbidden",
        ),
        ("alice", Op::DeleteMembership, of(json!({"userId": mallory})), NotFound, "not_found"),
        ("alice", Op::DeleteMembership, of(json!({"userId": alice})), InvalidArgument, "bad_request"),
        ("carol", Op::DeleteMembership, of(json!({"userId": bob})), PermissionDenied, "forbidden"),
        // Transfers.
        ("alice", Op::CreateOwnershipTransfer, offer, AlreadyExists, "TRANSFER_ALREADY_PENDING"),
        (
            "alice",
            Op::CreateOwnershipTransfer,
            json!({"conversationId": spare, "newOwnerUserId": alice}),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::CreateOwnershipTransfer,
            json!({"conversationId": spare, "newOwnerUserId": mallory}),
            InvalidArgument,
            "bad_request",
        ),
        (
            "alice",
            Op::CreateOwnershipTransfer,
            json!({"conversationId": spare}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::CreateOwnershipTransfer,
            json!({"newOwnerUserId": bob}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::CreateOwnershipTransfer,
            json!({"conversationId": nobody, "newOwnerUserId": bob}),
            NotFound,
            "not_found",
        ),
        (
            "bob",
            Op::CreateOwnershipTransfer,
            json!({"conversationId": conversation, "newOwnerUserId": carol}),
            PermissionDenied,
            "forbidden",
        ),
        ("mallory", Op::GetOwnershipTransfer, json!({"transferId": offered}), NotFound, "not_found"),
        ("alice", Op::GetOwnershipTransfer, json!({"transferId": nobody}), NotFound, "not_found"),
        ("alice", Op::AcceptOwnershipTransfer, json!({"transferId": offered}), PermissionDenied, "forbidden"),
        (
            "mallory",
            Op::AcceptOwnershipTransfer,
            json!({"transferId": offered}),
            PermissionDenied,
            "forbidden",
        ),
        ("bob", Op::AcceptOwnershipTransfer, json!({"transferId": nobody}), NotFound, "not_found"),
        (
            "mallory",
            Op::DeleteOwnershipTransfer,
            json!({"transferId": offered}),
            PermissionDenied,
            "forbidden",
        ),
        ("bob", Op::DeleteOwnershipTransfer, json!({"transferId": nobody}), NotFound, "not_found"),
        // Searching and indexing.
        ("alice", Op::SearchConversations, json!({"query": ""}), InvalidArgument, "validation_error"),
        ("alice", Op::SearchConversations, json!({"query": "  "}), InvalidArgument, "validation_error"),
        (
            "alice",
            Op::SearchConversations,
            json!({"query": letters(1001)}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::SearchConversations,
            json!({"query": "x", "limit": 201}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::SearchConversations,
            json!({"query": "x", "limit": -5}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::SearchConversations,
            json!({"query": "x", "searchType": "psychic"}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::SearchConversations,
            json!({"query": "x", "after": "nonsense"}),
            InvalidArgument,
            "validation_error",
        ),
        (
            "alice",
            Op::SearchConversations,
            json!({"query": "x", "after": letters(101)}),
            InvalidArgument,
            "validation_error",
        ),
        ("alice", Op::IndexConversations, json!([]), PermissionDenied, "forbidden"),
        ("alice", Op::ListUnindexedEntries, json!({}), PermissionDenied, "forbidden"),
        ("admin", Op::IndexConversations, json!([]), InvalidArgument, "bad_request"),
        (
            "admin",
            Op::IndexConversations,
            json!([{"conversationId": conversation, "entryId": entry}]),
            InvalidArgument,
            "validation_error",
        ),
        (
            "admin",
            Op::IndexConversations,
            json!([{"conversationId": conversation, "indexedContent": "x"}]),
            InvalidArgument,
            "validation_error",
        ),
        (
            "admin",
            Op::IndexConversations,
            json!([{"conversationId": conversation, "entryId": entry, "indexedContent": " "}]),
            InvalidArgument,
            "validation_error",
        ),
        (
            "admin",
            Op::IndexConversations,
            json!([{"conversationId": conversation, "entryId": remembered, "indexedContent": "x"}]),
            InvalidArgument,
            "bad_request",
        ),
        (
            "admin",
            Op::IndexConversations,
            json!([{"conversationId": spare, "entryId": entry, "indexedContent": "x"}]),
            NotFound,
            "not_found",
        ),
        ("admin", Op::IndexConversations, vec![json!({}); 1001].into(), InvalidArgument, "validation_error"),
        ("admin", Op::ListUnindexedEntries, json!({"limit": 201}), InvalidArgument, "validation_error"),
        (
            "admin",
            Op::ListUnindexedEntries,
            json!({"after": "nonsense"}),
            InvalidArgument,
            "validation_error",
        ),
    ]);
    // Whatever is asked of a conversation: that it is there is looked at before what is asked.
    for op in
        [Op::GetConversation, Op::DeleteConversation, Op::ListForks, Op::ListMemberships, Op::ListEntries]
    {
        table.push(("alice", op, unknown.clone(), NotFound, "not_found"));
        table.push(("alice", op, deleted_one.clone(), NotFound, "not_found"));
        table.push(("mallory", op, of(json!({})), PermissionDenied, "forbidden"));
    }
    assert!(table.len() > 100, "{}", table.len());
    refuse(&SERVER, &mut world, table);

    assert_same("what was there before", &before, "what is there after", &world.state());
}

#[test]
fn without_credentials_no_call_is_answered_but_the_one_that_needs_none() {
    let nobody = Who::anonymous();
    let (rest, grpc) = (Rest(&SERVER), Grpc(channel(&SERVER)));
    let asked = json!({"conversationId": fresh_id(), "entryId": fresh_id(), "transferId": fresh_id(), "userId": "bob",
        "newOwnerUserId": "bob", "accessLevel": "reader", "query": "x", "contentType": "message", "content": []});
    for op in [
        Op::ListConversations,
        Op::CreateConversation,
        Op::GetConversation,
        Op::UpdateConversation,
        Op::DeleteConversation,
        Op::ForkConversation,
        Op::ListForks,
        Op::ListMemberships,
        Op::ShareConversation,
        Op::UpdateMembership,
        Op::DeleteMembership,
        Op::ListOwnershipTransfers,
        Op::GetOwnershipTransfer,
        Op::CreateOwnershipTransfer,
        Op::AcceptOwnershipTransfer,
        Op::DeleteOwnershipTransfer,
        Op::ListEntries,
        Op::AppendEntry,
        Op::SyncEntries,
        Op::SearchConversations,
        Op::IndexConversations,
        Op::ListUnindexedEntries,
    ] {
        let over_grpc = grpc.call(&nobody, op, &asked);
        assert_eq!(rest.call(&nobody, op, &asked), over_grpc, "{op:?}");
        let refusal = over_grpc.expect_err("nobody may do this");
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::Unauthenticated, "unauthorized"),
            "{op:?}"
        );
    }
    let mut system = memtrove_proto::v1::system_service_client::SystemServiceClient::new(channel(&SERVER));
    let health = soon(system.get_health(nobody.request(()))).expect("anybody may ask").into_inner();
    assert_eq!(health.status, "ok");
}

#[test]
fn searches_that_a_server_cannot_do_are_unimplemented() {
    let words = server_with("[embedding]\nprovider = \"none\"");
    let mut world = World::over_rest(&words);
    let semantic = json!({"query": "x", "searchType": "semantic"});
    refuse(
        &words,
        &mut world,
        vec![("alice", Op::SearchConversations, semantic, Unimplemented, "search_type_unavailable")],
    );

    let nothing = server_with("[embedding]\nprovider = \"none\"\n[search]\nfulltext_enabled = false");
    let mut world = World::over_rest(&nothing);
    let any = json!({"query": "x"});
    refuse(
        &nothing,
        &mut world,
        vec![("alice", Op::SearchConversations, any, Unimplemented, "search_store_disabled")],
    );
}

#[test]
fn a_second_body_under_the_same_idempotency_key_is_refused_alike() {
    let who = Who::someone("alice").with("idempotency-key", "k1");
    let (rest, grpc) = (Rest(&SERVER), Grpc(channel(&SERVER)));
    for surface in [&rest as &dyn Surface, &grpc] {
        let conversation = fresh_id();
        let first = surface.call(&who, Op::AppendEntry, &message(&conversation, "hello")).expect("an entry");
        let again =
            surface.call(&who, Op::AppendEntry, &message(&conversation, "hello")).expect("the same entry");
        assert_eq!(first, again, "{}", surface.name());
        let other = surface.call(&who, Op::AppendEntry, &message(&conversation, "good bye"));
        let refusal = other.expect_err("another body");
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::Aborted, "conflict"),
            "{}",
            surface.name()
        );
    }
}
