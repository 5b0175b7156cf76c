//! Full text on `tsvector`. A text's terms are those that `memtrove_core::text` makes of it, for every script alike, so the
//! database only has to find them: its own dictionaries have no part in this. Each text has one more term that names its
//! tenant, for searches of all of it. A search confined to trees finds their texts by an index of their own: the index of terms
//! collects what begins with a word from everybody's texts before it can drop those of others.

use super::tx::PostgresTx;
use crate::{Lock, Row, StoreError, TextDocument, TextHit, TextQuery, Tx, TxExt, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Begins the term that names a tenant. No word begins with it: words are letters and digits.
const SCOPE: char = '§';
/// The longest term the database takes, with some room. Longer ones are cut, here and in queries.
const TERM_BYTES: usize = 2000;
/// What the database takes of one text's terms, with some room. Only a text of very many different words has more; the rest
/// of them do not find it.
const TERMS_BYTES: usize = 900 * 1024;
fn tenant_term(name: &str) -> String {
    format!("{SCOPE}t{}", blake3::hash(name.as_bytes()).to_hex())
}

/// A term's parts: like every engine, this one cuts at ASCII signs.
fn parts(term: &str) -> impl DoubleEndedIterator<Item = &str> {
    term.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(|part| part.char_indices().find(|(at, _)| *at > TERM_BYTES).map_or(part, |(at, _)| &part[..at]))
}

/// The terms of a document, each once, separated by spaces.
fn terms(document: &TextDocument) -> String {
    let mut terms = tenant_term(&document.tenant);
    let mut seen = BTreeSet::new();
    for term in document.terms.split_whitespace().flat_map(parts) {
        if terms.len() + term.len() > TERMS_BYTES {
            break;
        }
        if seen.insert(term) {
            terms.push(' ');
            terms.extend(term.chars().map(|c| c.to_ascii_lowercase()));
        }
    }
    terms
}

/// Writes a text, in place of the one that stands under its id. The tree's row is locked or about to be: the numbers of its
/// texts rise in the order of their commits.
pub(super) fn index(tx: &mut dyn Tx, document: &TextDocument) -> Result<(), StoreError> {
    let mut by_agent = document.by_agent.map(i64::from);
    if !document.is_new {
        let replaced =
            tx.first("SELECT by_agent FROM texts WHERE id = $1", &[document.id.into()], |row| {
                row.opt_int(0)
            })?;
        by_agent = by_agent.or(replaced.flatten());
        unindex(tx, document.id)?;
    }
    tx.post(
        "INSERT INTO texts (no, id, group_id, conversation_id, by_agent, text, terms) \
         VALUES (nextval('text_numbers'), $1, $2, $3, $4, $5, array_to_tsvector(string_to_array($6, ' ')))",
        &[
            document.id.into(),
            document.group.into(),
            document.conversation.into(),
            by_agent.into(),
            document.text.as_bytes().into(),
            terms(document).as_str().into(),
        ],
    )?;
    tx.post(
        "INSERT INTO texts_waiting (id, group_id) VALUES ($1, $2)",
        &[document.id.into(), document.group.into()],
    )
}

pub(super) fn unindex(tx: &mut dyn Tx, id: Uuid) -> Result<(), StoreError> {
    tx.post(
        "WITH gone AS (DELETE FROM texts WHERE id = $1 RETURNING no), \
         taken AS (DELETE FROM texts_waiting WHERE id = $1) \
         DELETE FROM meanings m USING gone WHERE m.text_no = gone.no",
        &[id.into()],
    )
}

pub(super) fn unindex_group(tx: &mut dyn Tx, group: Uuid) -> Result<(), StoreError> {
    tx.post("DELETE FROM texts WHERE group_id = $1", &[group.into()])?;
    tx.post("DELETE FROM texts_waiting WHERE group_id = $1", &[group.into()])?;
    tx.post("DELETE FROM meanings WHERE group_id = $1", &[group.into()])
}

pub(super) fn has_untaken(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(tx.first("SELECT 1 FROM texts_waiting LIMIT 1", &[], |row| row.int(0))?.is_some())
}

pub(super) fn count_untaken(tx: &mut dyn Tx, limit: i64) -> Result<i64, StoreError> {
    let waiting = tx.first(
        "SELECT COUNT(*) FROM (SELECT 1 FROM texts_waiting LIMIT $1) AS waiting",
        &[limit.into()],
        |row| row.int(0),
    );
    waiting.map(Option::unwrap_or_default)
}

pub(super) fn untaken(
    tx: &mut dyn Tx,
    group: Option<Uuid>,
    after: i64,
    limit: i64,
) -> Result<Vec<i64>, StoreError> {
    match group {
        // Ids rise with time, so the oldest come first.
        None => tx.rows(
            "SELECT t.no FROM (SELECT id FROM texts_waiting ORDER BY id LIMIT $1) AS w JOIN texts t ON t.id = w.id \
             WHERE t.no > $2 ORDER BY t.no",
            &[limit.into(), after.into()],
            |row| row.int(0),
        ),
        Some(group) => tx.rows(
            "SELECT t.no FROM texts_waiting w JOIN texts t ON t.id = w.id \
             WHERE w.group_id = $1 AND t.no > $2 ORDER BY t.no LIMIT $3",
            &[group.into(), after.into(), limit.into()],
            |row| row.int(0),
        ),
    }
}

pub(super) fn take_in(tx: &mut dyn Tx, numbers: &[i64]) -> Result<(), StoreError> {
    tx.post(
        "DELETE FROM texts_waiting w USING texts t WHERE t.no = ANY($1) AND w.id = t.id",
        &[Value::Ints(numbers)],
    )
}

/// Hands over every document that matches.
pub(super) fn search(
    tx: &mut PostgresTx<'_>,
    query: &TextQuery,
    each: &mut dyn FnMut(TextHit<'_>) -> Result<ControlFlow<()>, StoreError>,
) -> Result<(), StoreError> {
    let Some(expression) = expression(&query.tenant, &query.words) else { return Ok(()) };
    let mut hit = |row: &dyn Row| {
        let (id, group, conversation) = (row.uuid(0)?, row.uuid(1)?, row.uuid(2)?);
        each(TextHit { id, group, conversation, text: row.text(3)? })
    };
    // How many trees there are and how rare the words decides which index is the better one.
    tx.send("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)", &[])?;
    tx.by_terms(|tx| match query.groups.as_deref() {
        None => tx.query(
            "SELECT id, group_id, conversation_id, text FROM texts WHERE terms @@ CAST($1 AS tsquery)",
            &[expression.as_str().into()],
            Lock::None,
            &mut hit,
        ),
        Some(groups) => tx.query(
            "SELECT id, group_id, conversation_id, text FROM texts \
             WHERE group_id = ANY($2) AND terms @@ CAST($1 AS tsquery)",
            &[expression.as_str().into(), Value::Uuids(groups)],
            Lock::None,
            &mut hit,
        ),
    })
}

/// The query in the database's language; `None` when nothing can match.
fn expression(tenant: &str, words: &[Vec<String>]) -> Option<String> {
    let mut expression = format!("'{}'", tenant_term(tenant));
    for alternatives in words {
        let alternatives: Vec<String> = alternatives.iter().filter_map(|word| beginning_with(word)).collect();
        if alternatives.is_empty() {
            return None;
        }
        // Writing to a `String` cannot fail.
        let _ = write!(expression, " & ({})", alternatives.join(" | "));
    }
    (!words.is_empty()).then_some(expression)
}

/// The terms that begin with a word. Parts have neither quotes nor backslashes: those are ASCII signs.
fn beginning_with(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let mut parts = parts(&word);
    let mut expression = format!("'{}':*", parts.next_back()?);
    for part in parts {
        let _ = write!(expression, " & '{part}'");
    }
    Some(format!("({expression})"))
}
