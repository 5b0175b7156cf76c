//! The tables of the conversations surface.
//!
//! Every function takes a [`Tenant`], or a [`GroupId`] that was found under one: a group's id is unique everywhere and
//! never leaves the server, so a caller that holds one has been through a tenant-bound lookup.
//!
//! Titles, previews and content may be sealed. A row holds the connection that opening needs, so what reads one answers a
//! closure that opens it when the query is over.
//!
//! [`Tenant`]: memtrove_core::identity::Tenant
//! [`GroupId`]: memtrove_core::GroupId

pub mod ancestry;
pub mod embeddings;
pub mod entries;
pub mod groups;
pub mod idempotency;
pub mod listing;
pub mod memberships;
pub mod pieces;
pub mod rows;
pub mod search;
pub mod transfers;

use crate::vault::{self, SealContext, seal_contexts};
use crate::{Row, StoreError, Tx};
use memtrove_core::conversations::{AccessLevel, Channel, Conversation, Entry};
use memtrove_core::identity::Tenant;
use memtrove_core::{ClientId, ConversationId, EntryId, Json, Timestamp, UserId};
use std::borrow::Cow;

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

fn conversation<'t>(
    row: &dyn Row,
    tenant: &'t Tenant,
) -> Result<impl FnOnce(&mut dyn Tx) -> Result<Conversation, StoreError> + use<'t>, StoreError> {
    let id = ConversationId(row.uuid(0)?);
    let (title, preview) = (stored(row, 1)?, stored(row, 5)?);
    let rest = Conversation {
        id,
        title: None,
        owner_user_id: UserId(row.text(2)?.to_owned()),
        created_at: timestamp(row, 3)?,
        updated_at: timestamp(row, 4)?,
        last_message_preview: None,
        forked_at_conversation_id: row.opt_uuid(6)?.map(ConversationId),
        forked_at_entry_id: row.opt_uuid(7)?.map(EntryId),
        metadata: Json::stored(row.text(8)?.to_owned()),
        deleted_at: row.opt_int(9)?.map(Timestamp::from_micros),
        access_level: access_level(row.int(ACCESS_COLUMN)?)?,
    };
    Ok(move |tx: &mut dyn Tx| {
        let title = open_text(tx, &seal_contexts::conversation_title(tenant, id), title)?;
        let last_message_preview = open_text(tx, &seal_contexts::conversation_preview(tenant, id), preview)?;
        Ok(Conversation { title, last_message_preview, ..rest })
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

fn entry(row: &dyn Row) -> Result<impl FnOnce(&mut dyn Tx) -> Result<Entry, StoreError> + use<>, StoreError> {
    let id = EntryId(row.uuid(0)?);
    let conversation_id = ConversationId(row.uuid(1)?);
    let ord = row.int(ORD_COLUMN)?;
    let user_id = row.opt_text(3)?.map(UserId::from);
    let client_id = row.opt_text(4)?.map(ClientId::from);
    let channel =
        Channel::from_code(row.int(5)?).ok_or_else(|| StoreError::Broken("unknown channel".into()))?;
    let epoch = row.opt_int(6)?;
    let content_type = row.text(7)?.to_owned();
    let created_at = timestamp(row, 8)?;
    let content = row.bytes(CONTENT_COLUMN)?.to_vec();
    Ok(move |tx: &mut dyn Tx| {
        let content = Json::stored(vault::open_text(tx, &seal_contexts::entry_content(id), content)?);
        Ok(Entry {
            id,
            conversation_id,
            ord,
            user_id,
            client_id,
            channel,
            epoch,
            content_type,
            created_at,
            content,
        })
    })
}

/// Opens what was read, in its order.
fn opened<T>(
    tx: &mut dyn Tx,
    read: impl IntoIterator<Item = impl FnOnce(&mut dyn Tx) -> Result<T, StoreError>>,
) -> Result<Vec<T>, StoreError> {
    read.into_iter().map(|open| open(tx)).collect()
}

fn stored(row: &dyn Row, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(row.opt_bytes(column)?.map(<[u8]>::to_vec))
}

fn open_text(
    tx: &mut dyn Tx,
    place: &SealContext<'_>,
    stored: Option<Vec<u8>>,
) -> Result<Option<String>, StoreError> {
    stored.map(|stored| vault::open_text(tx, place, stored)).transpose()
}

fn seal_text<'a>(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    place: &SealContext<'_>,
    text: Option<&'a str>,
) -> Result<Option<Cow<'a, [u8]>>, StoreError> {
    text.map(|text| vault::seal(tx, tenant, place, text.as_bytes())).transpose()
}

fn timestamp(row: &dyn Row, column: usize) -> Result<Timestamp, StoreError> {
    row.int(column).map(Timestamp::from_micros)
}

fn access_level(code: i64) -> Result<AccessLevel, StoreError> {
    AccessLevel::from_code(code).ok_or_else(|| StoreError::Broken(format!("unknown access level {code}")))
}
