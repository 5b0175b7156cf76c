//! Where sealed content belongs: one function per sealed column, used by what writes it, reads it or seals it anew.

use super::data_keys::DataKeyId;
use crate::Value;
use memtrove_core::identity::Tenant;
use memtrove_core::{AttachmentId, ConversationId, EntryId, Timestamp};
use uuid::Uuid;

/// A column and the identity of a row in it. Sealed content is bound to both, so that it opens nowhere else.
#[derive(Debug, Clone, Copy)]
pub struct SealContext<'a> {
    purpose: &'static str,
    row: [Value<'a>; 3],
}

impl<'a> SealContext<'a> {
    /// A place by the parts of its row's key, of which there are at most three.
    pub(super) fn new(purpose: &'static str, key: impl IntoIterator<Item = Value<'a>>) -> Self {
        let mut row = [Value::Null; 3];
        row.iter_mut().zip(key).for_each(|(part, value)| *part = value);
        Self { purpose, row }
    }

    /// What is kept there; names the column in logs.
    pub fn purpose(&self) -> &'static str {
        self.purpose
    }

    /// Writes down what content is bound to. Each part says its kind and length, so that no two places look alike.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        append(bytes, b's', self.purpose.as_bytes());
        for part in &self.row {
            match part {
                Value::Null => {}
                Value::Int(number) => append(bytes, b'i', &number.to_be_bytes()),
                Value::Real(number) => append(bytes, b'r', &number.to_be_bytes()),
                Value::Text(text) => append(bytes, b's', text.as_bytes()),
                Value::Bytes(part) => append(bytes, b'b', part),
                Value::Uuid(id) => append(bytes, b'b', id.as_bytes()),
                Value::Uuids(ids) => ids.iter().for_each(|id| append(bytes, b'b', id.as_bytes())),
                Value::Ints(numbers) => {
                    numbers.iter().for_each(|number| append(bytes, b'i', &number.to_be_bytes()));
                }
            }
        }
    }
}

fn append(bytes: &mut Vec<u8>, kind: u8, part: &[u8]) {
    bytes.push(kind);
    bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
    bytes.extend_from_slice(part);
}

/// The key of a file that the index of a scope of memories is kept in.
pub fn memory_segment(scope: i64, token: &[u8]) -> SealContext<'_> {
    SealContext::new("memory_segment", [scope.into(), token.into()])
}

/// The title of a conversation. Ids of conversations are unique inside a tenant only.
pub fn conversation_title(tenant: &Tenant, id: ConversationId) -> SealContext<'_> {
    SealContext::new("conversation.title", [tenant.as_str().into(), id.0.into()])
}

/// The preview of a conversation's last message.
pub fn conversation_preview(tenant: &Tenant, id: ConversationId) -> SealContext<'_> {
    SealContext::new("conversation.preview", [tenant.as_str().into(), id.0.into()])
}

pub fn entry_content(id: EntryId) -> SealContext<'static> {
    SealContext::new("entry.content", [id.0.into()])
}

/// What is known of an attachment, and what its bytes are sealed with.
pub fn attachment_details(id: AttachmentId) -> SealContext<'static> {
    SealContext::new("attachment.details", [id.0.into()])
}

/// A file's document.
pub fn file(scope: i64, path: &str) -> SealContext<'_> {
    SealContext::new("file", [scope.into(), path.into()])
}

/// What the audit trail says of a change.
pub fn audit_record(change: Uuid) -> SealContext<'static> {
    SealContext::new("audit.record", [change.into()])
}

/// A document as a change left it.
pub fn audit_image(change: Uuid) -> SealContext<'static> {
    SealContext::new("audit.image", [change.into()])
}

pub fn event(scope: i64, event: &str) -> SealContext<'_> {
    SealContext::new("event", [scope.into(), event.into()])
}

/// A block of the index of events.
pub fn event_block(scope: i64, block: i64) -> SealContext<'static> {
    SealContext::new("event.block", [scope.into(), block.into()])
}

/// What a request under an idempotency key was answered.
pub fn file_idempotency<'a>(scope: i64, principal: &'a str, key: &'a str) -> SealContext<'a> {
    SealContext::new("file.idempotency", [scope.into(), principal.into(), key.into()])
}

pub fn memory_content(id: Uuid) -> SealContext<'static> {
    SealContext::new("memory.content", [id.into()])
}

/// What belongs to a memory besides its content.
pub fn memory_rest(id: Uuid) -> SealContext<'static> {
    SealContext::new("memory.rest", [id.into()])
}

/// What a memory said before one of its versions.
pub fn memory_text(id: Uuid, version: i64) -> SealContext<'static> {
    SealContext::new("memory.text", [id.into(), version.into()])
}

/// A row of the index of memories.
pub fn memory_index(place: i64) -> SealContext<'static> {
    SealContext::new("memory.index", [place.into()])
}

/// What a request under an idempotency key was answered.
pub fn memory_idempotency<'a>(tenant: &'a str, principal: &'a str, key: &'a str) -> SealContext<'a> {
    SealContext::new("memory.idempotency", [tenant.into(), principal.into(), key.into()])
}

/// What is told of a memory to those who follow it.
pub fn stream_event(tenant: &Tenant, memory: Uuid, at: Timestamp) -> SealContext<'_> {
    SealContext::new("stream.event", [tenant.as_str().into(), memory.into(), at.as_micros().into()])
}

/// A data key, which is bound to its tenant.
pub(super) fn data_key<'a>(tenant: &'a str, id: &'a DataKeyId) -> SealContext<'a> {
    SealContext::new("data key", [tenant.into(), id.as_slice().into()])
}
