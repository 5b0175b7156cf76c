//! Every column that holds sealed content, for what has to visit them all.

use super::seal_contexts::SealContext;
use crate::{Row, StoreError, Tx, TxExt, Value};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use uuid::Uuid;

/// A table with sealed columns.
pub(super) struct SealedTable {
    pub(super) name: &'static str,
    /// A unique key: what rows are visited by, and what their content is bound to.
    key: &'static [(&'static str, SealedKind)],
    /// The table that knows the tenant of a row, with the column that leads there; the table itself if there is none. Rows
    /// that lead nowhere have no owner any more.
    owner: Option<(&'static str, &'static str)>,
    /// The sealed columns, and what is kept in each.
    columns: &'static [(&'static str, &'static str)],
}

/// What a key's column holds.
#[derive(Clone, Copy)]
enum SealedKind {
    Int,
    Text,
    Uuid,
}

const SCOPE: (&str, SealedKind) = ("scope_id", SealedKind::Int);
const OF_SCOPE: Option<(&str, &str)> = Some(("scopes", "scope_id"));
const OF_MEMORY_SCOPE: Option<(&str, &str)> = Some(("memory_scopes", "scope_no"));

pub(super) const TABLES: &[SealedTable] = &[
    SealedTable {
        name: "conversations",
        key: &[("tenant", SealedKind::Text), ("id", SealedKind::Uuid)],
        owner: None,
        columns: &[("title", "conversation.title"), ("preview", "conversation.preview")],
    },
    SealedTable {
        name: "entries",
        key: &[("id", SealedKind::Uuid)],
        owner: Some(("groups", "group_id")),
        columns: &[("content", "entry.content")],
    },
    SealedTable {
        name: "attachments",
        key: &[("id", SealedKind::Uuid)],
        owner: None,
        columns: &[("details", "attachment.details")],
    },
    SealedTable {
        name: "files",
        key: &[SCOPE, ("path", SealedKind::Text)],
        owner: OF_SCOPE,
        columns: &[("document", "file")],
    },
    SealedTable {
        name: "audit",
        key: &[("change_id", SealedKind::Uuid)],
        owner: OF_SCOPE,
        columns: &[("record", "audit.record"), ("image", "audit.image")],
    },
    SealedTable {
        name: "events",
        key: &[SCOPE, ("event_id", SealedKind::Text)],
        owner: OF_SCOPE,
        columns: &[("event", "event")],
    },
    SealedTable {
        name: "event_blocks",
        key: &[SCOPE, ("block", SealedKind::Int)],
        owner: OF_SCOPE,
        columns: &[("body", "event.block")],
    },
    SealedTable {
        name: "file_idempotency",
        key: &[SCOPE, ("principal", SealedKind::Text), ("key", SealedKind::Text)],
        owner: OF_SCOPE,
        columns: &[("answer", "file.idempotency")],
    },
    SealedTable {
        name: "memories",
        key: &[("id", SealedKind::Uuid)],
        owner: OF_MEMORY_SCOPE,
        columns: &[("content", "memory.content"), ("rest", "memory.rest")],
    },
    SealedTable {
        name: "memory_texts",
        key: &[("id", SealedKind::Uuid), ("version", SealedKind::Int)],
        owner: OF_MEMORY_SCOPE,
        columns: &[("text", "memory.text")],
    },
    SealedTable {
        name: "memory_index",
        key: &[("place", SealedKind::Int)],
        owner: OF_MEMORY_SCOPE,
        columns: &[("body", "memory.index")],
    },
    SealedTable {
        name: "memory_idempotency",
        key: &[("tenant", SealedKind::Text), ("principal", SealedKind::Text), ("key", SealedKind::Text)],
        owner: None,
        columns: &[("answer", "memory.idempotency")],
    },
];

/// A value of a key, kept between two visits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum KeyValue {
    Int(i64),
    Text(String),
    Uuid(Uuid),
}

impl<'a> From<&'a KeyValue> for Value<'a> {
    fn from(value: &'a KeyValue) -> Self {
        match value {
            KeyValue::Int(number) => (*number).into(),
            KeyValue::Text(text) => text.as_str().into(),
            KeyValue::Uuid(id) => (*id).into(),
        }
    }
}

impl Display for KeyValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyValue::Int(number) => write!(f, "{number}"),
            KeyValue::Text(text) => write!(f, "'{text}'"),
            KeyValue::Uuid(id) => write!(f, "{id}"),
        }
    }
}

/// A row as it was visited.
pub(super) struct Visited {
    pub(super) key: Vec<KeyValue>,
    pub(super) tenant: String,
    /// The sealed columns, in the table's order.
    pub(super) contents: Vec<Option<Vec<u8>>>,
}

impl Visited {
    pub(super) fn bytes(&self) -> usize {
        self.contents.iter().flatten().map(Vec::len).sum()
    }
}

impl SealedTable {
    /// How many rows there are.
    pub(super) fn count(&self, tx: &mut dyn Tx) -> Result<u64, StoreError> {
        let sql = format!("SELECT COUNT(*) FROM {}", self.name);
        Ok(tx.first(&sql, &[], |row| row.int(0))?.unwrap_or_default() as u64)
    }

    /// Whether there is no row.
    pub(super) fn is_empty(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let sql = format!("SELECT 1 FROM {} LIMIT 1", self.name);
        Ok(tx.first(&sql, &[], |row| row.int(0))?.is_none())
    }

    /// The statement that visits rows in the order of their keys, after one of them or from the first; `$1` is how many.
    pub(super) fn visit(&self, from_first: bool) -> String {
        let name = self.name;
        let key: Vec<String> = self.key.iter().map(|(column, _)| format!("t.{column}")).collect();
        let key = key.join(", ");
        let columns: Vec<String> = self.columns.iter().map(|(column, _)| format!("t.{column}")).collect();
        let (tenant, join) = match self.owner {
            None => ("t.tenant", String::new()),
            Some((owner, column)) => ("o.tenant", format!(" JOIN {owner} o ON o.id = t.{column}")),
        };
        let after: Vec<String> = (2..).take(self.key.len()).map(|number| format!("${number}")).collect();
        let after =
            if from_first { String::new() } else { format!(" WHERE ({key}) > ({})", after.join(", ")) };
        let columns = columns.join(", ");
        format!("SELECT {key}, {tenant}, {columns} FROM {name} t{join}{after} ORDER BY {key} LIMIT $1")
    }

    /// Reads a row of [`SealedTable::visit`].
    pub(super) fn visited(&self, row: &dyn Row) -> Result<Visited, StoreError> {
        let key = self.key.iter().enumerate().map(|(at, (_, kind))| match kind {
            SealedKind::Int => row.int(at).map(KeyValue::Int),
            SealedKind::Text => row.text(at).map(|text| KeyValue::Text(text.to_owned())),
            SealedKind::Uuid => row.uuid(at).map(KeyValue::Uuid),
        });
        let key: Vec<KeyValue> = key.collect::<Result<_, _>>()?;
        let tenant = row.text(key.len())?.to_owned();
        let contents = (key.len() + 1..).take(self.columns.len());
        let contents = contents.map(|at| Ok(row.opt_bytes(at)?.map(<[u8]>::to_vec)));
        Ok(Visited { tenant, contents: contents.collect::<Result<_, StoreError>>()?, key })
    }

    /// The contexts of a row's contents, in the table's order.
    pub(super) fn seal_contexts<'a>(
        &self,
        key: &'a [KeyValue],
    ) -> impl Iterator<Item = SealContext<'a>> + use<'a> {
        self.columns.iter().map(|(_, purpose)| SealContext::new(purpose, key.iter().map(Value::from)))
    }

    /// An error with the row it is about, so that somebody can look at it.
    pub(super) fn named(&self, key: &[KeyValue], error: &StoreError) -> StoreError {
        let key: Vec<String> =
            self.key.iter().zip(key).map(|((column, _), value)| format!("{column} = {value}")).collect();
        StoreError::Broken(format!("{error}: table {}, row {}", self.name, key.join(" AND ")))
    }

    /// Stores a row's contents, in the table's order.
    pub(super) fn replace(
        &self,
        tx: &mut dyn Tx,
        key: &[KeyValue],
        contents: &[Option<Vec<u8>>],
    ) -> Result<(), StoreError> {
        let assign = |(at, column): (usize, &str)| format!("{column} = ${at}");
        let columns = self.columns.iter().map(|(column, _)| *column);
        let mut columns: Vec<String> = (1..).zip(columns).map(assign).collect();
        let contents_end = columns.len();
        if self.name == "memories" {
            // Their digests are made under the key that seals them: the server that starts makes them anew.
            columns.push("words = NULL".into());
        }
        let keys = self.key.iter().map(|(column, _)| *column);
        let keys: Vec<String> = (contents_end + 1..).zip(keys).map(assign).collect();
        let sql = format!("UPDATE {} SET {} WHERE {}", self.name, columns.join(", "), keys.join(" AND "));
        let contents = contents.iter().map(|content| content.as_deref().into());
        let params: Vec<Value<'_>> = contents.chain(key.iter().map(Value::from)).collect();
        tx.execute(&sql, &params)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::seal_contexts;
    use memtrove_core::identity::Tenant;
    use memtrove_core::{AttachmentId, ConversationId, EntryId};

    fn bound_to(place: &SealContext<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        place.append_to(&mut bytes);
        bytes
    }

    /// What the repositories bind content to is what a visit of all columns binds it to.
    #[test]
    fn a_place_is_the_same_for_those_who_name_it_and_those_who_visit_it() {
        let (tenant, id) = (Tenant::listed("acme".into()), Uuid::from_u128(7));
        let bytes = || KeyValue::Uuid(id);
        let text = |text: &str| KeyValue::Text(text.into());
        let visited = |table: &str, key: &[KeyValue]| {
            let table = TABLES.iter().find(|found| found.name == table).unwrap();
            assert_eq!(table.key.len(), key.len());
            table.seal_contexts(key).map(|place| bound_to(&place)).collect::<Vec<_>>()
        };
        let scope = || KeyValue::Int(3);
        let conversation = ConversationId(id);
        let named = [
            (
                visited("conversations", &[text("acme"), bytes()]),
                vec![
                    seal_contexts::conversation_title(&tenant, conversation),
                    seal_contexts::conversation_preview(&tenant, conversation),
                ],
            ),
            (visited("entries", &[bytes()]), vec![seal_contexts::entry_content(EntryId(id))]),
            (visited("attachments", &[bytes()]), vec![seal_contexts::attachment_details(AttachmentId(id))]),
            (visited("files", &[scope(), text("a.md")]), vec![seal_contexts::file(3, "a.md")]),
            (
                visited("audit", &[bytes()]),
                vec![seal_contexts::audit_record(id), seal_contexts::audit_image(id)],
            ),
            (visited("events", &[scope(), text("e")]), vec![seal_contexts::event(3, "e")]),
            (visited("event_blocks", &[scope(), KeyValue::Int(9)]), vec![seal_contexts::event_block(3, 9)]),
            (
                visited("file_idempotency", &[scope(), text("p"), text("k")]),
                vec![seal_contexts::file_idempotency(3, "p", "k")],
            ),
            (
                visited("memories", &[bytes()]),
                vec![seal_contexts::memory_content(id), seal_contexts::memory_rest(id)],
            ),
            (visited("memory_texts", &[bytes(), KeyValue::Int(9)]), vec![seal_contexts::memory_text(id, 9)]),
            (visited("memory_index", &[KeyValue::Int(9)]), vec![seal_contexts::memory_index(9)]),
            (
                visited("memory_idempotency", &[text("acme"), text("p"), text("k")]),
                vec![seal_contexts::memory_idempotency("acme", "p", "k")],
            ),
        ];
        assert_eq!(named.len(), TABLES.len());
        for (visited, named) in named {
            assert_eq!(visited, named.iter().map(bound_to).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_two_places_look_alike() {
        let seal_contexts = [
            seal_contexts::file_idempotency(1, "ab", "c"),
            seal_contexts::file_idempotency(1, "a", "bc"),
            seal_contexts::file_idempotency(1, "", "abc"),
            seal_contexts::file(1, "ab"),
            seal_contexts::event(1, "ab"),
            seal_contexts::event_block(1, 2),
        ];
        let mut bytes: Vec<_> = seal_contexts.iter().map(bound_to).collect();
        bytes.sort();
        bytes.dedup();
        assert_eq!(bytes.len(), seal_contexts.len());
    }
}
