//! Full text on FTS5. The index holds terms only (`texts` holds the text), and each document's tree as one more term,
//! so that a search confined to trees intersects two posting lists instead of visiting every tree's matches.

use super::tx::SqliteTx;
use crate::{Lock, Row, StoreError, TextDocument, TextHit, TextQuery, Tx, TxExt, Value};
use std::fmt::Write;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Begins the term that names a document's tree. No word begins with it: words are letters and digits.
const SCOPE: char = '§';

/// The term that names a document's tenant.
fn tenant(name: &str) -> String {
    format!("{SCOPE}t{}", blake3::hash(name.as_bytes()).to_hex())
}

/// A change to the index that waits for the commit.
pub(super) enum TextChange {
    Index(TextDocument),
    UnindexText(Uuid),
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
            TextChange::Index(document) => {
                let (no, replaced) = put_text(tx, &document)?;
                if let Some(replaced) = replaced {
                    documents.retain(|(no, _)| *no != replaced);
                    unindex_number(tx, replaced)?;
                }
                documents.push((no, document));
            }
            TextChange::UnindexText(id) => {
                put_terms(tx, &mut documents)?;
                unindex_text(tx, id)?;
            }
            TextChange::UnindexGroup(group) => {
                put_terms(tx, &mut documents)?;
                unindex_group(tx, group)?;
            }
        }
    }
    put_terms(tx, &mut documents)
}

/// The number of the next text: above those of all texts, and of all that were taken in, whether they are still there.
macro_rules! next_number {
    () => {
        "MAX(COALESCE((SELECT MAX(no) FROM texts), 0), (SELECT text_no FROM meanings_progress)) + 1"
    };
}

/// Writes the row of a document. Answers its number, and the one of the text it replaces.
fn put_text(tx: &mut dyn Tx, document: &TextDocument) -> Result<(i64, Option<i64>), StoreError> {
    let row: [Value<'_>; 5] = [
        document.id.into(),
        document.group.into(),
        document.conversation.into(),
        document.text.as_str().into(),
        document.by_agent.map(i64::from).into(),
    ];
    let added = tx.first(
        concat!(
            "INSERT INTO texts (no, id, group_id, conversation_id, text, by_agent) VALUES (",
            next_number!(),
            ", $1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING RETURNING no"
        ),
        &row,
        |row| row.int(0),
    )?;
    if let Some(no) = added {
        return Ok((no, None));
    }
    let replaced = tx.first("SELECT no FROM texts WHERE id = $1", &row[..1], |row| row.int(0))?;
    let no = tx.first(
        concat!(
            "UPDATE texts SET no = ",
            next_number!(),
            ", group_id = $2, conversation_id = $3, text = $4, by_agent = COALESCE($5, by_agent) \
             WHERE id = $1 RETURNING no"
        ),
        &row,
        |row| row.int(0),
    )?;
    let no = no.ok_or_else(|| StoreError::Broken("a text that is to be replaced is not there".into()))?;
    Ok((no, replaced))
}

/// Writes the terms of documents whose rows are written.
fn put_terms(tx: &mut dyn Tx, documents: &mut Vec<(i64, TextDocument)>) -> Result<(), StoreError> {
    for (no, document) in documents.drain(..) {
        let terms =
            format!("{} {SCOPE}{} {}", tenant(&document.tenant), document.group.simple(), document.terms);
        tx.execute(
            "INSERT OR REPLACE INTO text_index (rowid, terms) VALUES ($1, $2)",
            &[no.into(), terms.as_str().into()],
        )?;
    }
    Ok(())
}

fn unindex_text(tx: &mut dyn Tx, id: Uuid) -> Result<(), StoreError> {
    let no = tx.first("DELETE FROM texts WHERE id = $1 RETURNING no", &[id.into()], |row| row.int(0))?;
    no.map_or(Ok(()), |no| unindex_number(tx, no))
}

/// Removes what was derived from a text.
fn unindex_number(tx: &mut dyn Tx, no: i64) -> Result<(), StoreError> {
    tx.execute("DELETE FROM text_index WHERE rowid = $1", &[no.into()])?;
    tx.execute("DELETE FROM meanings WHERE text_no = $1", &[no.into()])?;
    Ok(())
}

/// The index itself knows a tree's documents, by the term that names the tree.
fn unindex_group(tx: &mut dyn Tx, group: Uuid) -> Result<(), StoreError> {
    let tree = format!("\"{SCOPE}{}\"", group.simple());
    for sql in [
        "DELETE FROM texts WHERE no IN (SELECT rowid FROM text_index WHERE text_index MATCH $1)",
        "DELETE FROM text_index WHERE rowid IN (SELECT rowid FROM text_index WHERE text_index MATCH $1)",
    ] {
        tx.execute(sql, &[tree.as_str().into()])?;
    }
    tx.execute("DELETE FROM meanings WHERE group_id = $1", &[group.into()])?;
    Ok(())
}

/// Texts are numbered in the order of their commits, so that one number says which were taken in.
pub(super) fn has_untaken(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    let waiting = tx.first(
        "SELECT COALESCE((SELECT MAX(no) FROM texts), 0) > text_no FROM meanings_progress",
        &[],
        |row| row.int(0),
    )?;
    waiting.map(|waiting| waiting != 0).ok_or_else(no_progress)
}

/// How many texts were not taken in, by their numbers: some of them may be gone.
pub(super) fn count_untaken(tx: &mut dyn Tx, limit: i64) -> Result<i64, StoreError> {
    let waiting = tx.first(
        "SELECT MAX(COALESCE((SELECT MAX(no) FROM texts), 0) - text_no, 0) FROM meanings_progress",
        &[],
        |row| row.int(0),
    )?;
    waiting.map(|waiting| waiting.min(limit)).ok_or_else(no_progress)
}

/// The numbers of texts that were not taken in. FTS5 keeps a tree's in order, and begins where it is told to.
pub(super) fn untaken(
    tx: &mut dyn Tx,
    group: Option<Uuid>,
    after: i64,
    limit: i64,
) -> Result<Vec<i64>, StoreError> {
    let progress = tx.first("SELECT text_no FROM meanings_progress", &[], |row| row.int(0))?;
    let progress = progress.ok_or_else(no_progress)?.max(after);
    match group {
        None => tx.rows(
            "SELECT no FROM texts WHERE no > $1 ORDER BY no LIMIT $2",
            &[progress.into(), limit.into()],
            |row| row.int(0),
        ),
        Some(group) => tx.rows(
            "SELECT rowid FROM text_index WHERE text_index MATCH $1 AND rowid > $2 ORDER BY rowid LIMIT $3",
            &[format!("\"{SCOPE}{}\"", group.simple()).as_str().into(), progress.into(), limit.into()],
            |row| row.int(0),
        ),
    }
}

pub(super) fn take_in(tx: &mut dyn Tx, numbers: &[i64]) -> Result<(), StoreError> {
    let Some(last) = numbers.iter().max() else { return Ok(()) };
    tx.execute("UPDATE meanings_progress SET text_no = $1 WHERE text_no < $1", &[(*last).into()])?;
    Ok(())
}

fn no_progress() -> StoreError {
    StoreError::Broken("nothing says which texts were taken in".into())
}

/// Trees that a search names to FTS5. Each costs it some 60 µs, and a little more for every match, so that among very
/// many trees it is cheaper to find all matches and drop those of other trees.
const NAMED_GROUPS: usize = 128;

/// Hands over every document that matches.
pub(super) fn search(
    tx: &mut SqliteTx<'_>,
    query: &TextQuery,
    each: &mut dyn FnMut(TextHit<'_>) -> Result<ControlFlow<()>, StoreError>,
) -> Result<(), StoreError> {
    let (named, dropped_by) = match query.groups.as_deref() {
        Some(groups) if groups.len() > NAMED_GROUPS => (None, Some(groups)),
        groups => (groups, None),
    };
    let Some(expression) = expression(&query.tenant, &query.words, named) else { return Ok(()) };
    let mut hit = |row: &dyn Row| {
        each(TextHit {
            id: row.uuid(0)?,
            group: row.uuid(1)?,
            conversation: row.uuid(2)?,
            text: row.text(3)?,
        })
    };
    match dropped_by {
        None => tx.query(
            "SELECT t.id, t.group_id, t.conversation_id, t.text
             FROM text_index CROSS JOIN texts t ON t.no = text_index.rowid
             WHERE text_index MATCH $1",
            &[Value::Text(&expression)],
            Lock::None,
            &mut hit,
        ),
        // `+` keeps the planner from starting at the trees, which would ask FTS5 once for each of their documents.
        Some(groups) => tx.query(
            "SELECT t.id, t.group_id, t.conversation_id, t.text
             FROM text_index CROSS JOIN texts t ON t.no = text_index.rowid
             WHERE text_index MATCH $1 AND +t.group_id = ANY($2)",
            &[Value::Text(&expression), Value::Uuids(groups)],
            Lock::None,
            &mut hit,
        ),
    }
}

/// The query in FTS5's language; `None` when nothing can match.
fn expression(of_tenant: &str, words: &[Vec<String>], groups: Option<&[Uuid]>) -> Option<String> {
    let mut expression = format!("\"{}\"", tenant(of_tenant));
    if let Some(groups) = groups {
        let names: Vec<String> =
            groups.iter().map(|group| format!("\"{SCOPE}{}\"", group.simple())).collect();
        if names.is_empty() {
            return None;
        }
        // A tree has one tenant, so its name says both.
        expression = format!("({})", names.join(" OR "));
    }
    if words.is_empty() {
        return None;
    }
    for alternatives in words {
        let alternatives: Vec<String> = alternatives.iter().filter_map(|word| beginning_with(word)).collect();
        if alternatives.is_empty() {
            return None;
        }
        // Writing to a `String` cannot fail.
        let _ = write!(expression, " AND ({})", alternatives.join(" OR "));
    }
    Some(expression)
}

/// The terms that begin with a word, in FTS5's language. The tokenizer cuts at ASCII signs, and so do we: without positions
/// FTS5 knows no phrases.
fn beginning_with(word: &str) -> Option<String> {
    let mut parts: Vec<&str> = word
        .split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .collect();
    let last = parts.pop()?;
    let mut expression = String::from("(");
    for part in parts {
        let _ = write!(expression, "\"{part}\" AND ");
    }
    let _ = write!(expression, "\"{last}\"*)");
    Some(expression)
}
