//! What fields may hold: ids, pages, JSON, enums. Messages are written byte by byte where the types of the contract would
//! not let one say it.

use crate::parity::{memory, message};
use crate::support::*;
use crate::surface::{Grpc, Op, Rest, Surface, denied};
use crate::wire;
use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use memtrove_proto::v1;
use memtrove_proto::v1::conversation_memberships_service_client::ConversationMembershipsServiceClient;
use memtrove_proto::v1::conversations_service_client::ConversationsServiceClient;
use memtrove_proto::v1::entries_service_client::EntriesServiceClient;
use memtrove_proto::v1::ownership_transfers_service_client::OwnershipTransfersServiceClient;
use tonic::{Response, Status};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const APPEND: &str = "/memory.v1.EntriesService/AppendEntry";

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, reason: &str) {
    let status = answer.expect_err("this must be refused");
    assert_eq!((status.code(), denied(&status).reason.as_str()), (code, reason), "{status:?}");
}

fn get(who: &Who, conversation_id: impl Into<Bytes>) -> Result<v1::Conversation, Status> {
    let message = v1::GetConversationRequest { conversation_id: conversation_id.into() };
    soon(ConversationsServiceClient::new(channel(&SERVER)).get_conversation(who.request(message)))
        .map(Response::into_inner)
}

/// A conversation of somebody new, made over REST.
fn a_conversation() -> (Who, String) {
    let who = Who::someone("alice").with_key("agent-a");
    let id = who.rest(&SERVER).post("/v1/conversations", json!({"title": "Chat"})).expect(201).id();
    (who, id)
}

/// The content of the entries of a conversation, as REST shows it: the text, so that nothing is lost in reading it.
fn contents(who: &Who, conversation: &str) -> String {
    who.rest(&SERVER).get(&format!("/v1/conversations/{conversation}/entries?limit=200")).expect(200).text
}

// ---- ids

#[test]
fn ids_are_sixteen_bytes_or_their_text() {
    let (alice, id) = a_conversation();
    for given in [bytes_of(&id), Bytes::from(id.clone()), Bytes::from(id.to_uppercase())] {
        let found = get(&alice, given).expect("a conversation");
        assert_eq!(found.id, bytes_of(&id), "answers have 16 bytes");
    }
}

#[test]
fn anything_else_is_no_id() {
    let (alice, id) = a_conversation();
    let hex = id.replace('-', "");
    let mut wrong: Vec<Bytes> =
        [1, 2, 15, 17, 32, 35, 37, 64].into_iter().map(|n| Bytes::from(vec![7; n])).collect();
    wrong.extend([
        Bytes::new(),
        Bytes::from(hex.clone()),
        Bytes::from(format!("{{{id}}}")),
        Bytes::from(format!("urn:uuid:{id}")),
        Bytes::from("x".repeat(36)),
        Bytes::from(vec![0xff; 36]),
        Bytes::from(format!(" {}", &id[1..])),
        Bytes::from(format!("{}----", hex)),
    ]);
    for bytes in wrong {
        let described = format!("{bytes:?}");
        let status = get(&alice, bytes).expect_err(&described);
        assert_eq!(status.code(), Code::InvalidArgument, "{described}: {status:?}");
        let refusal = denied(&status);
        assert_eq!((refusal.reason.as_str(), refusal.violations), ("validation_error", 1), "{described}");
    }
}

#[test]
fn an_id_nobody_has_is_not_found_and_the_details_name_it() {
    let (alice, _) = a_conversation();
    let unknown = fresh_id();
    let refusal = denied(&get(&alice, bytes_of(&unknown)).expect_err("there is none"));
    assert_eq!((refusal.code, refusal.reason.as_str()), (Code::NotFound, "not_found"));
    assert_eq!(refusal.about["resource"], "conversation");
    assert_eq!(refusal.about["id"], unknown);
}

#[test]
fn every_field_that_holds_an_id_is_looked_at() {
    let (alice, id) = a_conversation();
    let (bad, id) = (Bytes::from_static(b"not an id"), bytes_of(&id));
    let entry = |more: fn(&mut v1::CreateEntryRequest, Bytes)| {
        let mut entry = v1::CreateEntryRequest { content_type: "message".to_owned(), ..Default::default() };
        more(&mut entry, Bytes::from_static(b"not an id"));
        entry
    };
    let mut conversations = ConversationsServiceClient::new(channel(&SERVER));
    let mut entries = EntriesServiceClient::new(channel(&SERVER));
    let mut members = ConversationMembershipsServiceClient::new(channel(&SERVER));
    let mut transfers = OwnershipTransfersServiceClient::new(channel(&SERVER));
    let (conversation_id, transfer_id) = (bad.clone(), bad.clone());
    macro_rules! refuses {
        ($client:ident.$method:ident($message:expr)) => {
            assert_refused(
                soon($client.$method(alice.request($message))),
                Code::InvalidArgument,
                "validation_error",
            )
        };
    }
    refuses!(
        conversations
            .delete_conversation(v1::DeleteConversationRequest { conversation_id: conversation_id.clone() })
    );
    refuses!(conversations.update_conversation(v1::UpdateConversationRequest {
        conversation_id: conversation_id.clone(),
        title: None
    }));
    refuses!(
        conversations
            .list_forks(v1::ListForksRequest { conversation_id: conversation_id.clone(), page: None })
    );
    let fork = |conversation_id: &Bytes, entry_id: &Bytes| v1::ForkConversationRequest {
        conversation_id: conversation_id.clone(),
        entry_id: entry_id.clone(),
        title: String::new(),
    };
    refuses!(conversations.fork_conversation(fork(&bad, &id)));
    refuses!(conversations.fork_conversation(fork(&id, &bad)));
    refuses!(conversations.fork_conversation(fork(&id, &Bytes::new())));
    refuses!(members.list_memberships(v1::ListMembershipsRequest {
        conversation_id: conversation_id.clone(),
        page: None
    }));
    refuses!(members.share_conversation(v1::ShareConversationRequest {
        conversation_id: conversation_id.clone(),
        user_id: "bob".into(),
        access_level: 4
    }));
    refuses!(members.update_membership(v1::UpdateMembershipRequest {
        conversation_id: conversation_id.clone(),
        member_user_id: "bob".into(),
        access_level: 4
    }));
    refuses!(members.update_membership(v1::UpdateMembershipRequest {
        conversation_id: id.clone(),
        member_user_id: String::new(),
        access_level: 4
    }));
    refuses!(members.delete_membership(v1::DeleteMembershipRequest {
        conversation_id: conversation_id.clone(),
        member_user_id: "bob".into()
    }));
    refuses!(members.delete_membership(v1::DeleteMembershipRequest {
        conversation_id: id.clone(),
        member_user_id: String::new()
    }));
    refuses!(
        transfers
            .get_ownership_transfer(v1::GetOwnershipTransferRequest { transfer_id: transfer_id.clone() })
    );
    refuses!(
        transfers.accept_ownership_transfer(v1::AcceptOwnershipTransferRequest {
            transfer_id: transfer_id.clone()
        })
    );
    refuses!(transfers.delete_ownership_transfer(v1::DeleteOwnershipTransferRequest { transfer_id }));
    refuses!(transfers.create_ownership_transfer(v1::CreateOwnershipTransferRequest {
        conversation_id,
        new_owner_user_id: "bob".into()
    }));
    refuses!(entries.append_entry(v1::AppendEntryRequest {
        conversation_id: bad.clone(),
        entry: Some(entry(|_, _| ()))
    }));
    refuses!(entries.sync_entries(v1::SyncEntriesRequest {
        conversation_id: bad.clone(),
        entry: Some(entry(|_, _| ()))
    }));
    let forked_at = entry(|entry, bad| entry.forked_at_conversation_id = Some(bad));
    refuses!(
        entries.append_entry(v1::AppendEntryRequest { conversation_id: id.clone(), entry: Some(forked_at) })
    );
    let forked_at = entry(|entry, bad| entry.forked_at_entry_id = Some(bad));
    refuses!(
        entries.append_entry(v1::AppendEntryRequest { conversation_id: id.clone(), entry: Some(forked_at) })
    );
    let listed = |more: fn(&mut v1::ListEntriesRequest)| {
        let mut list = v1::ListEntriesRequest { conversation_id: id.clone(), ..Default::default() };
        more(&mut list);
        list
    };
    refuses!(entries.list_entries(listed(|list| list.conversation_id = Bytes::from_static(b"no"))));
    refuses!(entries.list_entries(listed(|list| list.up_to_entry_id = Some(Bytes::from_static(b"no")))));
    refuses!(entries.list_entries(listed(|list| list.before_page_token = Some("no".to_owned()))));
}

#[test]
fn an_empty_id_where_none_is_needed_is_none() {
    let (alice, id) = a_conversation();
    let entry = v1::CreateEntryRequest {
        content_type: "message".to_owned(),
        forked_at_conversation_id: Some(Bytes::new()),
        forked_at_entry_id: Some(Bytes::new()),
        ..Default::default()
    };
    let append = v1::AppendEntryRequest { conversation_id: bytes_of(&id), entry: Some(entry) };
    let entry = soon(EntriesServiceClient::new(channel(&SERVER)).append_entry(alice.request(append)))
        .expect("an entry");
    assert_eq!(entry.into_inner().conversation_id, bytes_of(&id));
}

#[test]
fn an_entry_is_required() {
    let (alice, id) = a_conversation();
    let mut entries = EntriesServiceClient::new(channel(&SERVER));
    let append = v1::AppendEntryRequest { conversation_id: bytes_of(&id), entry: None };
    assert_refused(
        soon(entries.append_entry(alice.request(append))),
        Code::InvalidArgument,
        "validation_error",
    );
    let sync = v1::SyncEntriesRequest { conversation_id: bytes_of(&id), entry: None };
    assert_refused(
        soon(entries.sync_entries(alice.request(sync))),
        Code::InvalidArgument,
        "validation_error",
    );
}

// ---- pages

#[test]
fn a_page_size_of_zero_is_the_default_of_the_list() {
    let alice = Who::someone("alice");
    for number in 0..21 {
        alice.rest(&SERVER).post("/v1/conversations", json!({"title": format!("{number}")})).expect(201);
    }
    let mut conversations = ConversationsServiceClient::new(channel(&SERVER));
    let mut list = |page: Option<v1::PageRequest>| {
        let message = v1::ListConversationsRequest { page, ..Default::default() };
        soon(conversations.list_conversations(alice.request(message))).map(Response::into_inner)
    };
    let sized = |page_size: i32| Some(v1::PageRequest { page_token: String::new(), page_size });

    for page in [None, sized(0)] {
        let first = list(page).expect("a page");
        assert_eq!(first.conversations.len(), 20);
        let page_token = first.page_info.expect("where it goes on").next_page_token;
        let rest = list(Some(v1::PageRequest { page_token, page_size: 0 })).expect("a page");
        assert_eq!(rest.conversations.len(), 1);
        assert_eq!(rest.page_info.unwrap_or_default().next_page_token, "", "the last page");
    }
    assert_eq!(list(sized(200)).expect("a page").conversations.len(), 21);
    for size in [-1, 201, i32::MIN, i32::MAX] {
        assert_refused(list(sized(size)), Code::InvalidArgument, "validation_error");
    }
}

#[test]
fn cursors_are_those_of_rest() {
    let (alice, id) = a_conversation();
    for text in ["a", "b", "c"] {
        alice.rest(&SERVER).post(&format!("/v1/conversations/{id}/entries"), message(&id, text)).expect(201);
    }
    let (rest, grpc) = (Rest(&SERVER), Grpc(channel(&SERVER)));
    for (first, second) in [(&rest as &dyn Surface, &grpc as &dyn Surface), (&grpc, &rest)] {
        let page =
            first.call(&alice, Op::ListEntries, &json!({"conversationId": id, "limit": 1})).expect("a page");
        let asked = json!({"conversationId": id, "after": page["afterCursor"]});
        let rest = second.call(&alice, Op::ListEntries, &asked).expect("the rest");
        assert_eq!(rest["data"].as_array().map(Vec::len), Some(2), "{} then {}", first.name(), second.name());
    }
}

/// What a JSON rendering of a message shows of an id, in every spelling: page tokens are text, so clients pass that on.
fn as_json_renders(id: &Bytes) -> [String; 4] {
    let encode = |engine: &GeneralPurpose| engine.encode(id);
    [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD].map(encode)
}

#[test]
fn a_page_begins_after_an_id_as_json_renders_it() {
    let (alice, bob) = (Who::someone("alice"), fresh_name("bob"));
    let made: Vec<String> = (0..3)
        .map(|number| {
            alice
                .rest(&SERVER)
                .post("/v1/conversations", json!({"title": format!("{number}")}))
                .expect(201)
                .id()
        })
        .collect();
    let id = made[0].clone();
    for text in ["a", "b", "c"] {
        alice.rest(&SERVER).post(&format!("/v1/conversations/{id}/entries"), message(&id, text)).expect(201);
    }
    for id in &made {
        let members = format!("/v1/conversations/{id}/memberships");
        let member = json!({"userId": bob, "accessLevel": "manager"});
        alice.rest(&SERVER).post(&members, member).expect(201);
        let transfer = json!({"conversationId": id, "newOwnerUserId": bob});
        alice.rest(&SERVER).post("/v1/ownership-transfers", transfer).expect(201);
    }
    let channel = channel(&SERVER);
    let mut entries = EntriesServiceClient::new(channel.clone());
    let mut listed = |page_token: &str, before: Option<&str>| {
        let message = v1::ListEntriesRequest {
            conversation_id: bytes_of(&id),
            page: Some(v1::PageRequest { page_token: page_token.to_owned(), page_size: 2 }),
            before_page_token: before.map(str::to_owned),
            ..Default::default()
        };
        let page = soon(entries.list_entries(alice.request(message))).expect("a page").into_inner();
        page.entries.into_iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    let first = listed("", None);
    let last = listed(&as_json_renders(&first[1])[0], None);
    assert_eq!((first.len(), last.len()), (2, 1));
    for token in as_json_renders(&first[1]) {
        assert_eq!(listed(&token, None), last, "{token}");
    }
    for token in as_json_renders(&last[0]) {
        assert_eq!(listed("", Some(&token)), first, "{token}");
    }

    let mut conversations = ConversationsServiceClient::new(channel.clone());
    let mut listed = |page_token: String| {
        let page = Some(v1::PageRequest { page_token, page_size: 2 });
        let message = v1::ListConversationsRequest { page, ..Default::default() };
        let page =
            soon(conversations.list_conversations(alice.request(message))).expect("a page").into_inner();
        page.conversations.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    let first = listed(String::new());
    for token in as_json_renders(&first[1]) {
        let rest = listed(token);
        assert!(rest.len() == 1 && !first.contains(&rest[0]), "{first:?} {rest:?}");
    }

    let mut transfers = OwnershipTransfersServiceClient::new(channel.clone());
    let mut listed = |page_token: String| {
        let page = Some(v1::PageRequest { page_token, page_size: 2 });
        let message = v1::ListOwnershipTransfersRequest { page, ..Default::default() };
        let page =
            soon(transfers.list_ownership_transfers(alice.request(message))).expect("a page").into_inner();
        page.transfers.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    let first = listed(String::new());
    for token in as_json_renders(&first[1]) {
        let rest = listed(token);
        assert!(rest.len() == 1 && !first.contains(&rest[0]), "{first:?} {rest:?}");
    }

    let entry =
        alice.rest(&SERVER).get(&format!("/v1/conversations/{id}/entries")).expect_page().ids()[2].clone();
    for _ in 0..2 {
        let fork = format!("/v1/conversations/{id}/entries/{entry}/fork");
        alice.rest(&SERVER).post(&fork, json!({})).expect(201);
    }
    let mut listed = |page_token: String| {
        let page = Some(v1::PageRequest { page_token, page_size: 2 });
        let message = v1::ListForksRequest { conversation_id: bytes_of(&id), page };
        let page = soon(conversations.list_forks(alice.request(message))).expect("a page").into_inner();
        page.forks.into_iter().map(|one| one.conversation_id).collect::<Vec<_>>()
    };
    let first = listed(String::new());
    for token in as_json_renders(&first[1]) {
        let rest = listed(token);
        assert!(rest.len() == 1 && !first.contains(&rest[0]), "{first:?} {rest:?}");
    }

    let half = as_json_renders(&first[1])[0][..12].to_owned();
    for page_token in [half, STANDARD.encode([7; 17]), "no".to_owned()] {
        let page = Some(v1::PageRequest { page_token, page_size: 2 });
        let message = v1::ListConversationsRequest { page, ..Default::default() };
        let refused = soon(conversations.list_conversations(alice.request(message)));
        assert_refused(refused, Code::InvalidArgument, "validation_error");
    }
}

// ---- enums

#[test]
fn numbers_that_no_enum_has_are_refused() {
    let (alice, id) = a_conversation();
    let id = bytes_of(&id);
    let mut conversations = ConversationsServiceClient::new(channel(&SERVER));
    let mut entries = EntriesServiceClient::new(channel(&SERVER));
    let mut members = ConversationMembershipsServiceClient::new(channel(&SERVER));
    let mut transfers = OwnershipTransfersServiceClient::new(channel(&SERVER));
    for number in [-1, 5, 99, i32::MAX] {
        let list = v1::ListConversationsRequest { mode: number, ..Default::default() };
        assert_refused(
            soon(conversations.list_conversations(alice.request(list))),
            Code::InvalidArgument,
            "validation_error",
        );
        let list =
            v1::ListEntriesRequest { conversation_id: id.clone(), channel: number, ..Default::default() };
        assert_refused(
            soon(entries.list_entries(alice.request(list))),
            Code::InvalidArgument,
            "validation_error",
        );
        let entry =
            v1::CreateEntryRequest { content_type: "message".into(), channel: number, ..Default::default() };
        let append = v1::AppendEntryRequest { conversation_id: id.clone(), entry: Some(entry.clone()) };
        assert_refused(
            soon(entries.append_entry(alice.request(append))),
            Code::InvalidArgument,
            "validation_error",
        );
        let sync = v1::SyncEntriesRequest { conversation_id: id.clone(), entry: Some(entry) };
        assert_refused(
            soon(entries.sync_entries(alice.request(sync))),
            Code::InvalidArgument,
            "validation_error",
        );
        let share = v1::ShareConversationRequest {
            conversation_id: id.clone(),
            user_id: "bob".into(),
            access_level: number,
        };
        assert_refused(
            soon(members.share_conversation(alice.request(share))),
            Code::InvalidArgument,
            "validation_error",
        );
        let list = v1::ListOwnershipTransfersRequest { role: number, page: None };
        assert_refused(
            soon(transfers.list_ownership_transfers(alice.request(list))),
            Code::InvalidArgument,
            "validation_error",
        );
    }
    let journal = v1::ListEntriesRequest { conversation_id: id, channel: 3, ..Default::default() };
    assert_refused(
        soon(entries.list_entries(alice.request(journal))),
        Code::InvalidArgument,
        "validation_error",
    );
}

#[test]
fn an_entry_without_a_channel_is_history_in_any_format() {
    let (alice, id) = a_conversation();
    let entry = v1::CreateEntryRequest {
        content_type: "anything".to_owned(),
        content: vec![memtrove_proto::json::Value::from_json("\"plain\"")],
        ..Default::default()
    };
    let append = v1::AppendEntryRequest { conversation_id: bytes_of(&id), entry: Some(entry) };
    let entry = soon(EntriesServiceClient::new(channel(&SERVER)).append_entry(alice.request(append)));
    assert_eq!(entry.expect("an entry").into_inner().channel(), v1::Channel::History);
}

// ---- JSON

/// Appends these values; what REST then shows of them.
#[track_caller]
fn stored(values: &[Vec<u8>]) -> String {
    let (alice, id) = a_conversation();
    call_raw(&channel(&SERVER), &alice, APPEND, wire::append(&bytes_of(&id), values)).expect("an entry");
    let page = contents(&alice, &id);
    let start = page.find("\"content\":").expect("content") + "\"content\":".len();
    let end = page.rfind(",\"createdAt\"").expect("what follows");
    page[start..end].to_owned()
}

#[track_caller]
fn refused(values: &[Vec<u8>]) {
    let (alice, id) = a_conversation();
    let answer = call_raw(&channel(&SERVER), &alice, APPEND, wire::append(&bytes_of(&id), values));
    assert_refused(answer, Code::InvalidArgument, "validation_error");
    assert!(contents(&alice, &id).contains("\"data\":[]"), "nothing is stored of what was refused");
}

#[test]
fn whole_numbers_come_back_as_integers() {
    let two_to_53 = 9_007_199_254_740_992.0;
    let numbers = [0.0, 1.0, -1.0, 42.0, 4_294_967_296.0, two_to_53 - 1.0, two_to_53, -two_to_53];
    let shown = stored(&numbers.map(wire::number));
    assert_eq!(shown, "[0,1,-1,42,4294967296,9007199254740991,9007199254740992,-9007199254740992]");
}

#[test]
fn other_numbers_keep_their_value() {
    let numbers = [0.5, -2.75, 0.1, 1e300, 5e-324, f64::MAX, f64::MIN_POSITIVE, 9_007_199_254_740_994.0];
    let shown = stored(&numbers.map(wire::number));
    let values: Vec<Value> = serde_json::from_str(&shown).expect("JSON");
    let values: Vec<f64> = values.iter().map(|value| value.as_f64().expect("a number")).collect();
    assert_eq!(values, numbers, "{shown}");
}

#[test]
fn numbers_that_json_does_not_have_are_refused() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(&[wire::number(number)]);
        refused(&[wire::object(&[("deep", wire::list(&[wire::number(number)]))])]);
    }
}

#[test]
fn a_value_without_a_kind_is_null_and_of_several_kinds_the_last_one_counts() {
    assert_eq!(stored(&[Vec::new(), wire::null()]), "[null,null]");
    let both = [wire::number(1.0), wire::string("two")].concat();
    assert_eq!(stored(&[both, wire::list(&[Vec::new()])]), "[\"two\",[null]]");
}

#[test]
fn of_a_name_that_a_map_has_twice_the_last_value_counts() {
    let twice = wire::object(&[("a", wire::number(1.0)), ("b", wire::null()), ("a", wire::string("last"))]);
    let shown: Value = serde_json::from_str(&stored(&[twice])).expect("JSON");
    assert_eq!(shown, json!([{"a": "last", "b": null}]));
}

#[test]
fn values_that_are_not_well_formed_are_refused() {
    for broken in [
        vec![0x11, 1, 2],
        vec![0x1a, 50, b'x'],
        wire::field(3, &[0xff, 0xfe]),
        vec![0x2a, 3, 0x0a, 9, 1],
        wire::field(6, &[0x0b]),
    ] {
        let (alice, id) = a_conversation();
        let answer = call_raw(
            &channel(&SERVER),
            &alice,
            APPEND,
            wire::append(&bytes_of(&id), std::slice::from_ref(&broken)),
        );
        let status = answer.expect_err("this is no value");
        assert_eq!(status.code(), Code::InvalidArgument, "{broken:?}: {status:?}");
        assert!(contents(&alice, &id).contains("\"data\":[]"));
    }
}

#[test]
fn content_may_be_nested_as_deeply_as_over_rest_and_no_deeper() {
    let nested = |levels: usize| (1..levels).fold(wire::list(&[]), |inner, _| wire::list(&[inner]));
    let objects =
        |levels: usize| (1..levels).fold(wire::object(&[]), |inner, _| wire::object(&[("k", inner)]));
    // The content itself is the first level of 64.
    stored(&[nested(63)]);
    stored(&[objects(63)]);
    refused(&[nested(64)]);
    refused(&[objects(64)]);
    let (alice, id) = a_conversation();
    for (levels, status) in [(63, 201), (64, 400)] {
        let inner = (1..levels).fold(json!([]), |inner, _| json!([inner]));
        let body = json!({"contentType": "message", "content": [inner]});
        alice.rest(&SERVER).post(&format!("/v1/conversations/{id}/entries"), body).expect(status);
    }
}

#[test]
fn a_value_nested_a_million_levels_deep_is_refused_and_nothing_more() {
    // Only the outermost lengths would be right if it were true to the format; that must not matter.
    let deep: Vec<u8> = std::iter::repeat_n([0x32_u8, 0x7f, 0x0a, 0x7d], 250_000).flatten().collect();
    let (alice, id) = a_conversation();
    let answer = call_raw(&channel(&SERVER), &alice, APPEND, wire::append(&bytes_of(&id), &[deep]));
    assert!(answer.is_err(), "{answer:?}");
    let true_to_the_format = (0..5_000).fold(wire::list(&[]), |inner, _| wire::list(&[inner]));
    refused(&[true_to_the_format]);
}

#[test]
fn integers_that_no_double_holds_are_read_as_the_nearest_one() {
    let (alice, id) = a_conversation();
    let body =
        Body::json_text(r#"{"contentType":"message","content":[9007199254740993,18446744073709551615,0.1]}"#);
    alice.rest(&SERVER).send("POST", &format!("/v1/conversations/{id}/entries"), body).expect(201);
    let list = v1::ListEntriesRequest { conversation_id: bytes_of(&id), ..Default::default() };
    let page =
        soon(EntriesServiceClient::new(channel(&SERVER)).list_entries(alice.request(list))).expect("a page");
    let content = &page.into_inner().entries[0].content;
    let doubles = [9_007_199_254_740_992.0, 18_446_744_073_709_551_616.0, 0.1];
    for (value, double) in content.iter().zip(doubles) {
        assert_eq!(value.as_wire(), wire::number(double), "{double}");
    }
    assert!(
        contents(&alice, &id).contains("[9007199254740993,18446744073709551615,0.1]"),
        "REST keeps every digit"
    );
}

#[test]
fn a_sync_over_each_transport_is_one_memory_whatever_the_numbers_look_like() {
    let (alice, id) = a_conversation();
    let sync = |body: &str| {
        let body =
            Body::json_text(format!(r#"{{"channel":"memory","contentType":"LC4J","content":{body}}}"#));
        alice
            .rest(&SERVER)
            .send("POST", &format!("/v1/conversations/{id}/entries/sync"), body)
            .expect(200)
            .json
    };
    assert_eq!(sync("[1,2.0,3e0,{\"b\":1,\"a\":2}]")["noOp"], false);
    let grpc = Grpc(channel(&SERVER));
    let again = memory(&id, json!([1, 2, 3, {"a": 2, "b": 1}]));
    assert_eq!(grpc.call(&alice, Op::SyncEntries, &again).expect("a sync")["noOp"], true);
    assert_eq!(sync("[1.0,2,3,{\"a\":2,\"b\":1.0}]")["noOp"], true);
}

#[test]
fn members_in_another_order_are_the_same_body_under_an_idempotency_key() {
    let (alice, id) = a_conversation();
    let alice = alice.with("idempotency-key", "k1");
    let one = wire::object(&[("a", wire::number(1.0)), ("b", wire::string("x"))]);
    let other = wire::object(&[("b", wire::string("x")), ("a", wire::number(1.0))]);
    let channel = channel(&SERVER);
    let first = call_raw(&channel, &alice, APPEND, wire::append(&bytes_of(&id), &[one])).expect("an entry");
    // Clients need not send the members of a map in the same order twice, and some never do.
    let again =
        call_raw(&channel, &alice, APPEND, wire::append(&bytes_of(&id), &[other])).expect("the same entry");
    assert_eq!(first[..18], again[..18], "the id of the entry");
    let changed = wire::object(&[("b", wire::string("x")), ("a", wire::number(2.0))]);
    let answer = call_raw(&channel, &alice, APPEND, wire::append(&bytes_of(&id), &[changed]));
    assert_refused(answer, Code::Aborted, "conflict");
}

#[test]
fn fields_that_the_contract_does_not_have_are_ignored() {
    let (alice, id) = a_conversation();
    let unknown = [vec![0xa0, 0x06, 0x01], vec![0xaa, 0x06, 2, b'h', b'i']].concat();
    let append = [unknown.clone(), wire::append(&bytes_of(&id), &[wire::string("x")]), unknown].concat();
    call_raw(&channel(&SERVER), &alice, APPEND, append).expect("an entry");
}

#[test]
fn texts_that_are_not_utf_8_are_refused() {
    let (alice, id) = a_conversation();
    let rename = [wire::field(1, &bytes_of(&id)), wire::field(2, &[b'a', 0xff])].concat();
    let answer =
        call_raw(&channel(&SERVER), &alice, "/memory.v1.ConversationsService/UpdateConversation", rename);
    let status = answer.expect_err("this is no text");
    assert_eq!(
        (status.code(), denied(&status).reason.as_str()),
        (Code::InvalidArgument, "bad_request"),
        "{status:?}"
    );
}
