//! `EntriesService`: reading, appending, syncing.

use super::{Calls, answer, decode, encode};
use crate::rest;
use memtrove_core::conversations::Channel;
use memtrove_core::files::canonical::canonical;
use memtrove_core::{ConversationId, EntryId, Error, Json, Result as CoreResult};
use memtrove_proto::v1;
use memtrove_proto::v1::entries_service_server::EntriesService;
use memtrove_service::PageRequest;
use memtrove_service::conversations::{AppendRequest, ChannelFilter, Idempotency, ListEntries, SyncOutcome};
use prost::Message;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl EntriesService for Calls {
    async fn list_entries(
        &self,
        request: Request<v1::ListEntriesRequest>,
    ) -> Result<Response<v1::ListEntriesResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let request = request.into_inner();
            let id = decode::conversation_id(&request.conversation_id)?;
            let page = self.app.services().conversations.list_entries(&caller, id, list(request)?).await?;
            Ok(v1::ListEntriesResponse {
                entries: page.data.into_iter().map(encode::entry).collect(),
                page_info: Some(encode::info(text(page.after), text(page.before.flatten()))),
            })
        })
        .await
    }

    async fn append_entry(
        &self,
        request: Request<v1::AppendEntryRequest>,
    ) -> Result<Response<v1::Entry>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let key = decode::header(request.metadata(), "idempotency-key")?;
            let v1::AppendEntryRequest { conversation_id, entry } = request.into_inner();
            let (id, mut entry) = (decode::conversation_id(&conversation_id)?, required(entry)?);
            let conversations = &self.app.services().conversations;
            let (key, entry) = match key {
                None => (None, append(entry)?),
                Some(key) => {
                    let (described, entry) = (described(&mut entry), append(entry)?);
                    let body = [described, in_order(entry.content.as_ref())?].concat();
                    (Some(Idempotency { key, body: conversations.request_digest(&caller, &body) }), entry)
                }
            };
            Ok(encode::entry(conversations.append(&caller, id, entry, key).await?))
        })
        .await
    }

    async fn sync_entries(
        &self,
        request: Request<v1::SyncEntriesRequest>,
    ) -> Result<Response<v1::SyncEntriesResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::SyncEntriesRequest { conversation_id, entry } = request.into_inner();
            let (id, entry) = (decode::conversation_id(&conversation_id)?, required(entry)?);
            let conversations = &self.app.services().conversations;
            let digest = conversations.request_digest(&caller, &entry.encode_to_vec());
            let outcome = match conversations.sync_unchanged(&caller, id, digest).await? {
                Some(unchanged) => unchanged,
                None => conversations.sync(&caller, id, append(entry)?, digest).await?,
            };
            let SyncOutcome { epoch, no_op, epoch_incremented, entry } = outcome;
            Ok(v1::SyncEntriesResponse { epoch, no_op, epoch_incremented, entry: entry.map(encode::entry) })
        })
        .await
    }
}

fn required(entry: Option<v1::CreateEntryRequest>) -> CoreResult<v1::CreateEntryRequest> {
    entry.ok_or_else(|| Error::invalid("entry", "is required"))
}

/// The message without its content.
fn described(entry: &mut v1::CreateEntryRequest) -> Vec<u8> {
    let content = std::mem::take(&mut entry.content);
    let described = entry.encode_to_vec();
    entry.content = content;
    described
}

/// Content as it is compared with that of a repetition: clients need not send the members of a map in the same order twice.
fn in_order(content: Option<&Json>) -> CoreResult<Vec<u8>> {
    let content = content.map_or("null", Json::get);
    match serde_json::from_str(content) {
        Ok(value) => Ok(canonical(&value).into_bytes()),
        Err(error) => Err(Error::internal(format!("content that is no JSON: {error}"))),
    }
}

fn append(entry: v1::CreateEntryRequest) -> CoreResult<AppendRequest> {
    Ok(AppendRequest {
        user_id: decode::given("user_id", entry.user_id)?,
        channel: decode::channel(entry.channel)?,
        content_type: Some(entry.content_type),
        content: Some(decode::content(&entry.content)?),
        indexed_content: entry.indexed_content,
        forked_at_conversation_id: decode::optional_id(
            "forked_at_conversation_id",
            entry.forked_at_conversation_id,
        )?
        .map(ConversationId),
        forked_at_entry_id: decode::optional_id("forked_at_entry_id", entry.forked_at_entry_id)?.map(EntryId),
    })
}

fn list(request: v1::ListEntriesRequest) -> CoreResult<ListEntries> {
    let channel = match decode::channel(request.channel)? {
        None | Some(Channel::History) => ChannelFilter::History,
        Some(Channel::Memory) => ChannelFilter::Memory,
    };
    let PageRequest { after, limit } = decode::page_after_id(request.page)?;
    let before = match decode::given("before_page_token", request.before_page_token.unwrap_or_default())? {
        Some(text) => Some(EntryId(decode::cursor_id("before_page_token", &text)?)),
        None => None,
    };
    Ok(ListEntries {
        channel,
        epoch: rest::entries::epoch(Some(request.epoch_filter), channel == ChannelFilter::Memory)?,
        all_forks: rest::entries::all_forks(Some(request.forks), None)?,
        after: after.map(EntryId),
        before,
        tail: request.tail.unwrap_or_default(),
        up_to: decode::optional_id("up_to_entry_id", request.up_to_entry_id)?.map(EntryId),
        limit,
    })
}

fn text(cursor: Option<EntryId>) -> Option<String> {
    cursor.map(|id| id.to_string())
}
