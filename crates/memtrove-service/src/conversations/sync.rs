//! Syncing an agent's complete memory.

use super::Conversations;
use super::access::{AsWriter, find, open_existing};
use super::entries::{AppendRequest, NEW_EPOCH, NewMemoryEntry, append_memory, memory_state, open_or_create};
use memtrove_core::conversations::sync::{Digest, EMPTY_CHAIN, MemoryState, SyncDecision, decide};
use memtrove_core::conversations::{Channel, Entry, MAX_SYNC_ITEMS};
use memtrove_core::identity::Caller;
use memtrove_core::{Code, ConversationId, EntryId, Error, GroupId, Json, Result};

/// What a sync did.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncOutcome {
    /// The epoch that is current now, if there is one.
    pub epoch: Option<i64>,
    /// Nothing was written.
    pub no_op: bool,
    /// The epoch is a new one.
    pub epoch_incremented: bool,
    /// What was written.
    pub entry: Option<Entry>,
}

impl SyncOutcome {
    fn no_op(epoch: Option<i64>) -> Self {
        Self { epoch, no_op: true, epoch_incremented: false, entry: None }
    }
}

impl Conversations {
    /// Answers a sync whose very bytes led to the current state, from one row and without parsing them.
    ///
    /// `None` means that this shortcut does not apply, for whatever reason: then [`Conversations::sync`] decides, and
    /// gives every error in its order.
    pub async fn sync_unchanged(
        &self,
        caller: &Caller,
        id: ConversationId,
        request: Digest,
    ) -> Result<Option<SyncOutcome>> {
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "sync_unchanged", move |tx| {
                let Some(client) = &caller.client else { return Ok(None) };
                let access = match find::<AsWriter>(tx, &caller, id) {
                    Ok(Some(access)) => access,
                    Ok(None) | Err(Error { code: Code::Forbidden, .. }) => return Ok(None),
                    Err(error) => return Err(error),
                };
                Ok(memory_state(tx, &access, client)?
                    .filter(|state| state.request == Some(request))
                    .map(|state| SyncOutcome::no_op(Some(state.epoch))))
            })
            .await
    }

    /// Makes the stored memory of the caller's client equal to `request.content`, writing at most one entry.
    pub async fn sync(
        &self,
        caller: &Caller,
        id: ConversationId,
        request: AppendRequest,
        digest: Digest,
    ) -> Result<SyncOutcome> {
        if caller.client.is_none() {
            return Err(Error::forbidden("Client id is required to sync memory messages"));
        }
        let channel = request.channel;
        let checked = self.check_entry(caller, request, Channel::Memory, MAX_SYNC_ITEMS)?;
        if channel != Some(Channel::Memory) {
            return Err(Error::bad_request("sync entry must target the memory channel"));
        }
        if checked.text.is_some() {
            return Err(Error::bad_request("indexedContent is only allowed on history channel"));
        }
        let items = checked.content.items().map_err(|e| Error::invalid("content", e.to_string()))?;
        let chain = self.cx.digester.chain(EMPTY_CHAIN, &self.cx.digester.items(&items)?);
        let empty = items.is_empty();
        let (cx, caller, now) = (self.cx.clone(), caller.clone(), self.cx.clock.now());
        let (entry_id, group_id) = (EntryId(cx.clock.new_id()), GroupId(cx.clock.new_id()));
        self.cx
            .store
            .write(caller.tenant().clone(), "sync_entries", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let Some(client) = &caller.client else { return Err(Error::UNAUTHORIZED) };
                let existing = open_existing::<AsWriter>(tx, &caller, id)?;
                let created_as_root = existing.is_none() && checked.fork.is_none();
                let access = match existing {
                    Some(access) => access,
                    None if empty => return Ok(SyncOutcome::no_op(None)),
                    None => open_or_create(tx, &caller, id, group_id, &checked, now)?,
                };
                let state = memory_state(tx, &access, client)?;
                let decision = decide(state.as_ref(), &checked.content_type, &chain);
                let (stored, new_epoch) = match decision {
                    SyncDecision::NoOp => return Ok(SyncOutcome::no_op(state.map(|state| state.epoch))),
                    SyncDecision::Append { stored } => (stored, false),
                    SyncDecision::NewEpoch => (0, true),
                };
                let next = MemoryState {
                    epoch: state.as_ref().map_or(1, |state| state.epoch + i64::from(new_epoch)),
                    epoch_start: match &state {
                        Some(state) if !new_epoch => state.epoch_start,
                        _ => NEW_EPOCH,
                    },
                    item_count: chain.len() - 1,
                    chain: chain.last().copied().unwrap_or(EMPTY_CHAIN),
                    uniform_type: Some(checked.content_type.clone()),
                    request: Some(digest),
                };
                let epoch = next.epoch;
                let delta =
                    if stored == 0 { checked.content.clone() } else { rest_of(&checked.content, stored)? };
                let (content_type, content) = (&checked.content_type, &delta);
                let new = NewMemoryEntry { id: entry_id, content_type, content, state: next };
                let entry = append_memory(tx, &caller, &access, new, now)?;
                Ok(SyncOutcome {
                    epoch: Some(epoch),
                    no_op: false,
                    epoch_incremented: new_epoch || created_as_root,
                    entry: Some(entry),
                })
            })
            .await
    }
}

/// The items of an array from index `from` on.
fn rest_of(content: &Json, from: usize) -> Result<Json> {
    let internal = |e: memtrove_core::JsonError| Error::internal(e.to_string());
    let items = content.items().map_err(internal)?;
    Json::of(&items[from..].to_vec()).map_err(internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_keeps_its_items_as_they_were_written() {
        let content = Json::parse(r#"[1, {"b":2.50,"a":[ ]} ,"x"]"#.to_owned()).unwrap();
        assert_eq!(rest_of(&content, 1).unwrap().get(), r#"[{"b":2.50,"a":[ ]},"x"]"#);
        assert_eq!(rest_of(&content, 3).unwrap().get(), "[]");
    }
}
