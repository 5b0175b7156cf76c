//! The tables of the conversations surface.
//!
//! Every function takes a [`Tenant`], or a [`GroupId`] that was found under one: a group's id is unique everywhere and
//! never leaves the server, so whoever holds one has been through a tenant-bound lookup.
//!
//! [`Tenant`]: memloom_core::identity::Tenant
//! [`GroupId`]: memloom_core::GroupId

pub mod ancestry;
pub mod entries;
pub mod groups;
pub mod idempotency;
pub mod listing;
pub mod memberships;
pub mod rows;
pub mod search;
pub mod transfers;

use crate::{Row, StoreError};
use memloom_core::conversations::{AccessLevel, Channel, Conversation, Entry};
use memloom_core::{ClientId, ConversationId, EntryId, Json, Timestamp, UserId};

/// The columns that [`conversation`] reads, of a table named `c`, followed by the caller's access level.
macro_rules! conversation_columns {
    () => {
        "c.id, c.title, c.owner_user_id, c.created_at, c.updated_at, c.preview, c.parent_id, c.fork_entry_id, \
         c.metadata, c.deleted_at"
    };
}
pub(crate) use conversation_columns;

/// How many columns [`conversation_columns`] names: the access level comes next.
const ACCESS_COLUMN: usize = 10;

fn conversation(row: &dyn Row) -> Result<Conversation, StoreError> {
    Ok(Conversation {
        id: ConversationId(row.uuid(0)?),
        title: row.opt_text(1)?.map(str::to_owned),
        owner_user_id: UserId(row.text(2)?.to_owned()),
        created_at: timestamp(row, 3)?,
        updated_at: timestamp(row, 4)?,
        last_message_preview: row.opt_text(5)?.map(str::to_owned),
        forked_at_conversation_id: row.opt_uuid(6)?.map(ConversationId),
        forked_at_entry_id: row.opt_uuid(7)?.map(EntryId),
        metadata: Json::stored(row.text(8)?.to_owned()),
        deleted_at: row.opt_int(9)?.map(Timestamp::from_micros),
        access_level: access_level(row.int(ACCESS_COLUMN)?)?,
    })
}

/// The columns that [`entry`] reads, of a table named `e`.
macro_rules! entry_columns {
    () => {
        "e.id, e.conversation_id, e.ord, e.user_id, e.client_id, e.channel, e.epoch, e.content_type, e.created_at, \
         e.content"
    };
}
pub(crate) use entry_columns;

/// Where [`entry_columns`] names the content.
const CONTENT_COLUMN: usize = 9;
/// Where it names the place.
const ORD_COLUMN: usize = 2;

fn entry(row: &dyn Row) -> Result<Entry, StoreError> {
    let content = std::str::from_utf8(row.bytes(CONTENT_COLUMN)?)
        .map_err(|e| StoreError::Broken(format!("stored content: {e}")))?;
    Ok(Entry {
        id: EntryId(row.uuid(0)?),
        conversation_id: ConversationId(row.uuid(1)?),
        ord: row.int(2)?,
        user_id: row.opt_text(3)?.map(UserId::from),
        client_id: row.opt_text(4)?.map(ClientId::from),
        channel: Channel::from_code(row.int(5)?)
            .ok_or_else(|| StoreError::Broken("unknown channel".into()))?,
        epoch: row.opt_int(6)?,
        content_type: row.text(7)?.to_owned(),
        created_at: timestamp(row, 8)?,
        content: Json::stored(content.to_owned()),
    })
}

fn timestamp(row: &dyn Row, column: usize) -> Result<Timestamp, StoreError> {
    row.int(column).map(Timestamp::from_micros)
}

fn access_level(code: i64) -> Result<AccessLevel, StoreError> {
    AccessLevel::from_code(code).ok_or_else(|| StoreError::Broken(format!("unknown access level {code}")))
}
