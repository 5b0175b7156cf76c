//! The same operations over both transports, asked in the same words and answered in the same words: those of REST.

use crate::support::*;
use bytes::Bytes;
use memtrove_proto::json::{Struct, Value as WireValue};
use memtrove_proto::v1;
use memtrove_proto::v1::conversation_memberships_service_client::ConversationMembershipsServiceClient;
use memtrove_proto::v1::conversations_service_client::ConversationsServiceClient;
use memtrove_proto::v1::entries_service_client::EntriesServiceClient;
use memtrove_proto::v1::ownership_transfers_service_client::OwnershipTransfersServiceClient;
use memtrove_proto::v1::search_service_client::SearchServiceClient;
use std::collections::BTreeMap;
use tonic::transport::Channel;
use tonic::{Response, Status};
use tonic_types::StatusExt;

/// What can be asked for; named as the calls are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    ListConversations,
    CreateConversation,
    GetConversation,
    UpdateConversation,
    DeleteConversation,
    ForkConversation,
    ListForks,
    ListMemberships,
    ShareConversation,
    UpdateMembership,
    DeleteMembership,
    ListOwnershipTransfers,
    GetOwnershipTransfer,
    CreateOwnershipTransfer,
    AcceptOwnershipTransfer,
    DeleteOwnershipTransfer,
    ListEntries,
    AppendEntry,
    SyncEntries,
    SearchConversations,
    IndexConversations,
    ListUnindexedEntries,
}

/// An answer as REST has it, or why there is none.
pub type Outcome = Result<Value, Refusal>;

/// Why not, in the words of gRPC.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub code: Code,
    /// The code of a REST error, the reason of a gRPC status.
    pub reason: String,
    /// The sentence, where both transports give the same one.
    pub message: String,
    /// How many fields are wrong.
    pub violations: usize,
    /// What else is said about it.
    pub about: BTreeMap<String, String>,
}

/// A way to reach a server.
pub trait Surface: Sync {
    fn name(&self) -> &'static str;
    /// Asks for something. `asked` has the members of path, query and body by their names in REST.
    fn call(&self, who: &Who, op: Op, asked: &Value) -> Outcome;
}

/// Everything that has a value.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect())
}

// ---- REST

/// The server over REST.
pub struct Rest<'a>(pub &'a TestServer);

impl Surface for Rest<'_> {
    fn name(&self) -> &'static str {
        "REST"
    }

    fn call(&self, who: &Who, op: Op, asked: &Value) -> Outcome {
        let (method, route) = route(op);
        let (mut url, rest) = located(route, asked);
        let body = match method {
            "POST" | "PATCH" => Body::Json(rest),
            _ => {
                for (name, value) in rest.as_object().into_iter().flatten() {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    url.query_pairs_mut().append_pair(name, &value);
                }
                Body::None
            }
        };
        let path = url.as_str().trim_start_matches("http://server");
        let answer = who.rest(self.0).send(method, path, body);
        match answer.status {
            200..300 => Ok(answer.json),
            status => Err(refused(status, &answer.json)),
        }
    }
}

/// Where an operation is in REST; what begins with a colon is part of the question.
fn route(op: Op) -> (&'static str, &'static str) {
    match op {
        Op::ListConversations => ("GET", "conversations"),
        Op::CreateConversation => ("POST", "conversations"),
        Op::GetConversation => ("GET", "conversations/:conversationId"),
        Op::UpdateConversation => ("PATCH", "conversations/:conversationId"),
        Op::DeleteConversation => ("DELETE", "conversations/:conversationId"),
        Op::ForkConversation => ("POST", "conversations/:conversationId/entries/:entryId/fork"),
        Op::ListForks => ("GET", "conversations/:conversationId/forks"),
        Op::ListMemberships => ("GET", "conversations/:conversationId/memberships"),
        Op::ShareConversation => ("POST", "conversations/:conversationId/memberships"),
        Op::UpdateMembership => ("PATCH", "conversations/:conversationId/memberships/:userId"),
        Op::DeleteMembership => ("DELETE", "conversations/:conversationId/memberships/:userId"),
        Op::ListOwnershipTransfers => ("GET", "ownership-transfers"),
        Op::GetOwnershipTransfer => ("GET", "ownership-transfers/:transferId"),
        Op::CreateOwnershipTransfer => ("POST", "ownership-transfers"),
        Op::AcceptOwnershipTransfer => ("POST", "ownership-transfers/:transferId/accept"),
        Op::DeleteOwnershipTransfer => ("DELETE", "ownership-transfers/:transferId"),
        Op::ListEntries => ("GET", "conversations/:conversationId/entries"),
        Op::AppendEntry => ("POST", "conversations/:conversationId/entries"),
        Op::SyncEntries => ("POST", "conversations/:conversationId/entries/sync"),
        Op::SearchConversations => ("POST", "conversations/search"),
        Op::IndexConversations => ("POST", "conversations/index"),
        Op::ListUnindexedEntries => ("GET", "conversations/unindexed"),
    }
}

/// The path of a request, and what of the question does not stand in it.
fn located(route: &str, asked: &Value) -> (reqwest::Url, Value) {
    let mut url = reqwest::Url::parse("http://server/v1").expect("a URL");
    let mut rest = asked.clone();
    for word in route.split('/') {
        let mut segments = url.path_segments_mut().expect("a path");
        match word.strip_prefix(':') {
            None => segments.push(word),
            Some(name) => {
                let value = rest.as_object_mut().and_then(|members| members.shift_remove(name));
                segments.push(value.unwrap_or_default().as_str().unwrap_or_default())
            }
        };
    }
    (url, rest)
}

/// What a REST error is over gRPC.
#[track_caller]
fn refused(status: u16, body: &Value) -> Refusal {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // One error has a shape of its own.
    let reason = if body["code"].is_string() { text(&body["code"]) } else { text(&body["error"]) };
    let code = match (status, reason.as_str()) {
        (400, _) => Code::InvalidArgument,
        (401, _) => Code::Unauthenticated,
        (403, _) => Code::PermissionDenied,
        (404, _) => Code::NotFound,
        (409, "TRANSFER_ALREADY_PENDING") => Code::AlreadyExists,
        (409, _) => Code::Aborted,
        (413 | 429, _) => Code::ResourceExhausted,
        (501, _) => Code::Unimplemented,
        (503, _) => Code::Unavailable,
        _ => panic!("the contract has no status for {status} {body}"),
    };
    let details = &body["details"];
    let mut about = BTreeMap::new();
    for (name, value) in [
        ("resource", &details["resource"]),
        ("id", &details["id"]),
        ("existingTransferId", &body["existingTransferId"]),
    ] {
        if value.is_string() {
            about.insert(name.to_owned(), text(value));
        }
    }
    if let Some(types) = body["availableTypes"].as_array() {
        about.insert("availableTypes".to_owned(), types.iter().map(text).collect::<Vec<_>>().join(","));
    }
    let violations = details["violations"].as_array().map_or(0, Vec::len);
    Refusal { code, message: text(&details["message"]), reason, violations, about }
}

// ---- gRPC

/// The server over gRPC.
pub struct Grpc(pub Channel);

impl Surface for Grpc {
    fn name(&self) -> &'static str {
        "gRPC"
    }

    fn call(&self, who: &Who, op: Op, asked: &Value) -> Outcome {
        self.send(who, op, asked).map_err(|status| denied(&status))
    }
}

/// What a gRPC status says.
pub fn denied(status: &Status) -> Refusal {
    let (reason, about) = match status.get_details_error_info() {
        Some(info) => (info.reason, info.metadata.into_iter().collect()),
        None => Default::default(),
    };
    let said_by_both =
        matches!(reason.as_str(), "bad_request" | "forbidden" | "conflict" | "search_store_disabled");
    Refusal {
        code: status.code(),
        message: if said_by_both { status.message().to_owned() } else { String::new() },
        violations: status.get_details_bad_request().map_or(0, |bad| bad.field_violations.len()),
        about,
        reason,
    }
}

macro_rules! ask {
    ($client:ident, $channel:expr, $who:expr, $method:ident, $message:expr) => {{
        let mut client = $client::new($channel.clone()).max_decoding_message_size(usize::MAX);
        soon(client.$method($who.request($message))).map(Response::into_inner)
    }};
}

impl Grpc {
    fn send(&self, who: &Who, op: Op, asked: &Value) -> Result<Value, Status> {
        let Self(channel) = self;
        let id = |name: &str| bytes_of(asked[name].as_str().unwrap_or_default());
        let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
        let conversation_id = id("conversationId");
        let page = page_asked(asked);
        Ok(match op {
            Op::ListConversations => {
                let mode = match asked["mode"].as_str() {
                    None => v1::ConversationListMode::Unspecified,
                    Some("all") => v1::ConversationListMode::All,
                    Some("roots") => v1::ConversationListMode::Roots,
                    Some(_) => v1::ConversationListMode::LatestFork,
                };
                let message = v1::ListConversationsRequest { mode: mode.into(), query: text("query"), page };
                let list = ask!(ConversationsServiceClient, channel, who, list_conversations, message)?;
                page_of(list.conversations, list.page_info, summary)
            }
            Op::CreateConversation => {
                let metadata = asked.get("metadata").map(|metadata| Struct::from_json(&metadata.to_string()));
                let message = v1::CreateConversationRequest { title: text("title"), metadata };
                conversation(ask!(ConversationsServiceClient, channel, who, create_conversation, message)?)
            }
            Op::GetConversation => {
                let message = v1::GetConversationRequest { conversation_id };
                conversation(ask!(ConversationsServiceClient, channel, who, get_conversation, message)?)
            }
            Op::UpdateConversation => {
                let title = asked.get("title").map(|_| text("title"));
                let message = v1::UpdateConversationRequest { conversation_id, title };
                conversation(ask!(ConversationsServiceClient, channel, who, update_conversation, message)?)
            }
            Op::DeleteConversation => {
                let message = v1::DeleteConversationRequest { conversation_id };
                ask!(ConversationsServiceClient, channel, who, delete_conversation, message)?;
                Value::Null
            }
            Op::ForkConversation => {
                let (entry_id, title) = (id("entryId"), text("title"));
                let message = v1::ForkConversationRequest { conversation_id, entry_id, title };
                conversation(ask!(ConversationsServiceClient, channel, who, fork_conversation, message)?)
            }
            Op::ListForks => {
                let message = v1::ListForksRequest { conversation_id, page };
                let list = ask!(ConversationsServiceClient, channel, who, list_forks, message)?;
                page_of(list.forks, list.page_info, fork)
            }
            Op::ListMemberships => {
                let message = v1::ListMembershipsRequest { conversation_id, page };
                let list =
                    ask!(ConversationMembershipsServiceClient, channel, who, list_memberships, message)?;
                page_of(list.memberships, list.page_info, membership)
            }
            Op::ShareConversation => {
                let message = v1::ShareConversationRequest {
                    conversation_id,
                    user_id: text("userId"),
                    access_level: level_asked(asked),
                };
                let client =
                    ask!(ConversationMembershipsServiceClient, channel, who, share_conversation, message);
                membership(client?)
            }
            Op::UpdateMembership => {
                let message = v1::UpdateMembershipRequest {
                    conversation_id,
                    member_user_id: text("userId"),
                    access_level: level_asked(asked),
                };
                let client =
                    ask!(ConversationMembershipsServiceClient, channel, who, update_membership, message);
                membership(client?)
            }
            Op::DeleteMembership => {
                let message = v1::DeleteMembershipRequest { conversation_id, member_user_id: text("userId") };
                ask!(ConversationMembershipsServiceClient, channel, who, delete_membership, message)?;
                Value::Null
            }
            Op::ListOwnershipTransfers => {
                let role = match asked["role"].as_str() {
                    Some("sender") => v1::TransferRole::Sender,
                    Some("recipient") => v1::TransferRole::Recipient,
                    _ => v1::TransferRole::Unspecified,
                };
                let message = v1::ListOwnershipTransfersRequest { role: role.into(), page };
                let list =
                    ask!(OwnershipTransfersServiceClient, channel, who, list_ownership_transfers, message)?;
                page_of(list.transfers, list.page_info, transfer)
            }
            Op::GetOwnershipTransfer => {
                let message = v1::GetOwnershipTransferRequest { transfer_id: id("transferId") };
                transfer(ask!(
                    OwnershipTransfersServiceClient,
                    channel,
                    who,
                    get_ownership_transfer,
                    message
                )?)
            }
            Op::CreateOwnershipTransfer => {
                let new_owner_user_id = text("newOwnerUserId");
                let message = v1::CreateOwnershipTransferRequest { conversation_id, new_owner_user_id };
                transfer(ask!(
                    OwnershipTransfersServiceClient,
                    channel,
                    who,
                    create_ownership_transfer,
                    message
                )?)
            }
            Op::AcceptOwnershipTransfer => {
                let message = v1::AcceptOwnershipTransferRequest { transfer_id: id("transferId") };
                ask!(OwnershipTransfersServiceClient, channel, who, accept_ownership_transfer, message)?;
                Value::Null
            }
            Op::DeleteOwnershipTransfer => {
                let message = v1::DeleteOwnershipTransferRequest { transfer_id: id("transferId") };
                ask!(OwnershipTransfersServiceClient, channel, who, delete_ownership_transfer, message)?;
                Value::Null
            }
            Op::ListEntries => {
                let message = v1::ListEntriesRequest {
                    conversation_id,
                    channel: channel_asked(asked),
                    epoch_filter: text("epoch"),
                    page,
                    forks: text("forks"),
                    up_to_entry_id: asked.get("upToEntryId").map(|_| id("upToEntryId")),
                    before_page_token: asked.get("before").map(|_| text("before")),
                    tail: asked.get("tail").map(|tail| *tail == json!(true)),
                };
                let backwards = asked["tail"] == json!(true) || asked.get("before").is_some();
                let list = ask!(EntriesServiceClient, channel, who, list_entries, message)?;
                let before = list.page_info.as_ref().map(|info| info.previous_page_token.clone());
                let mut page = page_of(list.entries, list.page_info, entry);
                if backwards {
                    page["beforeCursor"] = given(before.unwrap_or_default());
                }
                page
            }
            Op::AppendEntry => {
                let message = v1::AppendEntryRequest { conversation_id, entry: Some(entry_asked(asked)) };
                entry(ask!(EntriesServiceClient, channel, who, append_entry, message)?)
            }
            Op::SyncEntries => {
                let message = v1::SyncEntriesRequest { conversation_id, entry: Some(entry_asked(asked)) };
                let done = ask!(EntriesServiceClient, channel, who, sync_entries, message)?;
                json!({"epoch": done.epoch, "noOp": done.no_op, "epochIncremented": done.epoch_incremented,
                    "entry": done.entry.map(entry)})
            }
            Op::SearchConversations => {
                let message = v1::SearchEntriesRequest {
                    query: text("query"),
                    after: text("after"),
                    limit: number(asked, "limit"),
                    include_entry: asked["includeEntry"].as_bool(),
                    search_type: asked["searchType"].as_str().map(str::to_owned).into_iter().collect(),
                    group_by_conversation: asked["groupByConversation"].as_bool(),
                };
                let found = ask!(SearchServiceClient, channel, who, search_conversations, message)?;
                let data: Vec<Value> = found.results.into_iter().map(hit).collect();
                json!({"data": data, "afterCursor": given(found.next_cursor)})
            }
            Op::IndexConversations => {
                let item = |item: &Value| {
                    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
                    v1::IndexEntryRequest {
                        conversation_id: bytes_of(&text("conversationId")),
                        entry_id: bytes_of(&text("entryId")),
                        indexed_content: text("indexedContent"),
                    }
                };
                let entries = asked.as_array().into_iter().flatten().map(item).collect();
                let message = v1::IndexConversationsRequest { entries };
                let done = ask!(SearchServiceClient, channel, who, index_conversations, message)?;
                json!({"indexed": done.indexed})
            }
            Op::ListUnindexedEntries => {
                let cursor = asked.get("after").map(|_| text("after"));
                let message = v1::ListUnindexedEntriesRequest { limit: number(asked, "limit"), cursor };
                let list = ask!(SearchServiceClient, channel, who, list_unindexed_entries, message)?;
                let unindexed = |item: v1::UnindexedEntry| json!({"conversationId": text_of(&item.conversation_id), "entry": item.entry.map(entry)});
                let data: Vec<Value> = list.entries.into_iter().map(unindexed).collect();
                json!({"data": data, "afterCursor": list.cursor})
            }
        })
    }
}

// ---- from the words of REST to messages

fn number(asked: &Value, name: &str) -> i32 {
    asked[name].as_i64().map_or(0, |number| i32::try_from(number).expect("a small number"))
}

fn page_asked(asked: &Value) -> Option<v1::PageRequest> {
    let page_token = asked["after"].as_str().unwrap_or_default().to_owned();
    let page = v1::PageRequest { page_token, page_size: number(asked, "limit") };
    (page != v1::PageRequest::default()).then_some(page)
}

fn level_asked(asked: &Value) -> i32 {
    let level = match asked["accessLevel"].as_str() {
        None => v1::AccessLevel::Unspecified,
        Some("owner") => v1::AccessLevel::Owner,
        Some("manager") => v1::AccessLevel::Manager,
        Some("writer") => v1::AccessLevel::Writer,
        Some("reader") => v1::AccessLevel::Reader,
        Some(_) => return 99,
    };
    level.into()
}

fn channel_asked(asked: &Value) -> i32 {
    let channel = match asked["channel"].as_str() {
        None => v1::Channel::Unspecified,
        Some("history") => v1::Channel::History,
        Some("memory") => v1::Channel::Memory,
        Some(_) => return 99,
    };
    channel.into()
}

/// An entry to append or sync.
pub fn entry_asked(asked: &Value) -> v1::CreateEntryRequest {
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    let id = |name: &str| asked[name].as_str().map(bytes_of);
    v1::CreateEntryRequest {
        user_id: text("userId"),
        channel: channel_asked(asked),
        content_type: text("contentType"),
        content: WireValue::items_from_json(&asked["content"].to_string()),
        indexed_content: asked["indexedContent"].as_str().map(str::to_owned),
        forked_at_conversation_id: id("forkedAtConversationId"),
        forked_at_entry_id: id("forkedAtEntryId"),
    }
}

// ---- from messages to the words of REST

fn given(text: String) -> Value {
    if text.is_empty() { Value::Null } else { Value::String(text) }
}

fn given_id(id: &Bytes) -> Value {
    if id.is_empty() { Value::Null } else { Value::String(text_of(id)) }
}

fn page_of<T>(items: Vec<T>, info: Option<v1::PageInfo>, to_json: fn(T) -> Value) -> Value {
    let info = info.expect("every list says where it goes on");
    let data: Vec<Value> = items.into_iter().map(to_json).collect();
    json!({"data": data, "afterCursor": given(info.next_page_token)})
}

fn level(number: i32) -> Value {
    let level = v1::AccessLevel::try_from(number).expect("a level of the contract");
    assert_ne!(level, v1::AccessLevel::Unspecified, "answers say the level");
    json!(level.as_str_name().to_lowercase())
}

fn summary(summary: v1::ConversationSummary) -> Value {
    object([
        ("id", given_id(&summary.id)),
        ("title", given(summary.title)),
        ("ownerUserId", given(summary.owner_user_id)),
        ("createdAt", given(summary.created_at)),
        ("updatedAt", given(summary.updated_at)),
        ("lastMessagePreview", given(summary.last_message_preview)),
        ("accessLevel", level(summary.access_level)),
    ])
}

fn conversation(conversation: v1::Conversation) -> Value {
    let metadata = conversation.metadata.map(|metadata| {
        let mut text = String::new();
        metadata.write_json(&mut text, 64).expect("JSON");
        serde_json::from_str::<Value>(&text).expect("JSON")
    });
    object([
        ("id", given_id(&conversation.id)),
        ("title", given(conversation.title)),
        ("ownerUserId", given(conversation.owner_user_id)),
        ("createdAt", given(conversation.created_at)),
        ("updatedAt", given(conversation.updated_at)),
        ("lastMessagePreview", given(conversation.last_message_preview)),
        ("accessLevel", level(conversation.access_level)),
        ("forkedAtEntryId", given_id(&conversation.forked_at_entry_id)),
        ("forkedAtConversationId", given_id(&conversation.forked_at_conversation_id)),
        // REST leaves out what is empty.
        ("metadata", metadata.filter(|metadata| *metadata != json!({})).unwrap_or_default()),
    ])
}

fn fork(fork: v1::ConversationForkSummary) -> Value {
    object([
        ("conversationId", given_id(&fork.conversation_id)),
        ("forkedAtEntryId", given_id(&fork.forked_at_entry_id)),
        ("forkedAtConversationId", given_id(&fork.forked_at_conversation_id)),
        ("title", given(fork.title)),
        ("createdAt", given(fork.created_at)),
    ])
}

fn membership(membership: v1::ConversationMembership) -> Value {
    object([
        ("conversationId", given_id(&membership.conversation_id)),
        ("userId", given(membership.user_id)),
        ("accessLevel", level(membership.access_level)),
        ("createdAt", given(membership.created_at)),
    ])
}

fn transfer(transfer: v1::OwnershipTransfer) -> Value {
    object([
        ("id", given_id(&transfer.id)),
        ("conversationId", given_id(&transfer.conversation_id)),
        ("conversationTitle", given(transfer.conversation_title)),
        ("fromUserId", given(transfer.from_user_id)),
        ("toUserId", given(transfer.to_user_id)),
        ("createdAt", given(transfer.created_at)),
    ])
}

/// An entry as REST has it.
pub fn entry(entry: v1::Entry) -> Value {
    let content: Vec<Value> = entry.content.iter().map(json_of).collect();
    let channel = v1::Channel::try_from(entry.channel).expect("a channel of the contract");
    let epoch = if entry.epoch == 0 { Value::Null } else { json!(entry.epoch) };
    object([
        ("id", given_id(&entry.id)),
        ("conversationId", given_id(&entry.conversation_id)),
        ("userId", given(entry.user_id)),
        ("channel", json!(channel.as_str_name().to_lowercase())),
        ("epoch", epoch),
        ("contentType", given(entry.content_type)),
        ("content", json!(content)),
        ("createdAt", given(entry.created_at)),
    ])
}

/// A value of a message as JSON.
pub fn json_of(value: &WireValue) -> Value {
    let mut text = String::new();
    value.write_json(&mut text, 1000).expect("JSON");
    serde_json::from_str(&text).expect("JSON")
}

fn hit(hit: v1::SearchResult) -> Value {
    object([
        ("conversationId", given_id(&hit.conversation_id)),
        ("conversationTitle", given(hit.conversation_title)),
        ("entryId", given_id(&hit.entry_id)),
        ("score", json!(hit.score)),
        ("highlights", given(hit.highlights)),
        ("passage", given(hit.passage)),
        ("entry", hit.entry.map(entry).unwrap_or_default()),
    ])
}
