//! Full text on FTS5. The index holds terms only (`texts` holds the text), and each document's tree as one more term,
//! so that a search confined to trees intersects two posting lists instead of scoring every tree's matches.

use super::tx::SqliteTx;
use crate::{Lock, Row, StoreError, TextDocument, TextHit, TextQuery, Tx, TxExt, Value};
use std::fmt::Write;
use std::ops::ControlFlow;
use uuid::Uuid;

/// A change to the index that waits for the commit.
pub(super) enum TextChange {
    Index(TextDocument),
    UnindexGroup(Uuid),
}

/// Writes the changes, in their order.
///
/// FTS5 also writes a segment whenever a statement needs a journal of its own, as an upsert with `RETURNING` does. So rows
/// come first and terms after them, for as many documents in a row as there are.
pub(super) fn apply(tx: &mut SqliteTx<'_>, changes: &mut Vec<TextChange>) -> Result<(), StoreError> {
    let mut documents = Vec::with_capacity(changes.len());
    for change in changes.drain(..) {
        match change {
            TextChange::Index(document) => documents.push((put_text(tx, &document)?, document)),
            TextChange::UnindexGroup(group) => {
                put_terms(tx, &mut documents)?;
                unindex_group(tx, group)?;
            }
        }
    }
    put_terms(tx, &mut documents)
}

/// Writes the row of a document and answers its number.
fn put_text(tx: &mut dyn Tx, document: &TextDocument) -> Result<i64, StoreError> {
    let no = tx.first(
        "INSERT INTO texts (id, group_id, conversation_id, text) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO UPDATE
         SET group_id = excluded.group_id, conversation_id = excluded.conversation_id, text = excluded.text
         RETURNING no",
        &[
            document.id.into(),
            document.group.into(),
            document.conversation.into(),
            document.text.as_str().into(),
        ],
        |row| row.int(0),
    )?;
    no.ok_or_else(|| StoreError::Broken("an upsert returned no row".into()))
}

/// Writes the terms of documents whose rows are written.
fn put_terms(tx: &mut dyn Tx, documents: &mut Vec<(i64, TextDocument)>) -> Result<(), StoreError> {
    let mut buffer = Uuid::encode_buffer();
    for (no, document) in documents.drain(..) {
        let scope = &*document.group.simple().encode_lower(&mut buffer);
        tx.execute(
            "INSERT OR REPLACE INTO text_index (rowid, scope, terms) VALUES ($1, $2, $3)",
            &[no.into(), scope.into(), document.terms.as_str().into()],
        )?;
    }
    Ok(())
}

fn unindex_group(tx: &mut dyn Tx, group: Uuid) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM text_index WHERE rowid IN (SELECT no FROM texts WHERE group_id = $1)",
        &[group.into()],
    )?;
    tx.execute("DELETE FROM texts WHERE group_id = $1", &[group.into()])?;
    Ok(())
}

/// Trees that a search names to FTS5. Each costs it some 60 µs, and a little more for every match, so that among very
/// many trees it is cheaper to find all matches and drop those of other trees.
const NAMED_GROUPS: usize = 128;

/// Hands over every document that matches.
pub(super) fn search(
    tx: &mut SqliteTx<'_>,
    query: &TextQuery,
    each: &mut dyn FnMut(TextHit) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (named, dropped_by) = match query.groups.as_deref() {
        Some(groups) if groups.len() > NAMED_GROUPS => (None, Some(groups)),
        groups => (groups, None),
    };
    let Some(expression) = expression(&query.words, named) else { return Ok(()) };
    let mut hit = |row: &dyn Row| {
        each(TextHit {
            id: row.uuid(0)?,
            group: row.uuid(1)?,
            conversation: row.uuid(2)?,
            // FTS5 gives better matches the smaller number.
            score: -row.real(3)?,
        })?;
        Ok(ControlFlow::Continue(()))
    };
    match dropped_by {
        None => tx.query(
            "SELECT t.id, t.group_id, t.conversation_id, bm25(text_index, 0.0, 1.0)
             FROM text_index CROSS JOIN texts t ON t.no = text_index.rowid
             WHERE text_index MATCH $1",
            &[Value::Text(&expression)],
            Lock::None,
            &mut hit,
        ),
        // `+` keeps the planner from starting at the trees, which would ask FTS5 once for each of their documents.
        Some(groups) => tx.query(
            "SELECT t.id, t.group_id, t.conversation_id, bm25(text_index, 0.0, 1.0)
             FROM text_index CROSS JOIN texts t ON t.no = text_index.rowid
             WHERE text_index MATCH $1 AND +t.group_id = ANY($2)",
            &[Value::Text(&expression), Value::Uuids(groups)],
            Lock::None,
            &mut hit,
        ),
    }
}

/// The query in FTS5's language; `None` when nothing can match.
fn expression(words: &[Vec<String>], groups: Option<&[Uuid]>) -> Option<String> {
    let mut expression = String::new();
    if let Some(groups) = groups {
        let mut buffer = Uuid::encode_buffer();
        let mut opened = false;
        for group in groups {
            expression.push_str(if opened { " OR \"" } else { "scope : (\"" });
            expression.push_str(group.simple().encode_lower(&mut buffer));
            expression.push('"');
            opened = true;
        }
        if !opened {
            return None;
        }
        expression.push(')');
    }
    if words.is_empty() {
        return None;
    }
    for alternatives in words {
        if !expression.is_empty() {
            expression.push_str(" AND ");
        }
        let mut opened = false;
        for word in alternatives.iter().filter(|word| !word.is_empty()) {
            expression.push_str(if opened { " OR " } else { "terms : (" });
            quote(&mut expression, word);
            expression.push('*');
            opened = true;
        }
        if !opened {
            return None;
        }
        expression.push(')');
    }
    Some(expression)
}

/// A string of FTS5's language. It ends at a NUL, which separates terms like any other sign that is not a letter.
fn quote(expression: &mut String, word: &str) {
    // Writing to a `String` cannot fail.
    let _ = write!(expression, "\"{}\"", word.replace('"', "\"\"").replace('\0', " "));
}
