//! Full text on `tsvector`. A text's terms are those that `memloom_core::text` makes of it, for every script alike, so the
//! database only has to find them: its own dictionaries have no part in this. Each text has one more term that names its tree
//! and one that names its tenant, so that a search confined to trees intersects posting lists.

use crate::{Lock, Row, StoreError, TextDocument, TextHit, TextQuery, Tx, TxExt, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Begins the term that names a tree. No word begins with it: words are letters and digits.
const SCOPE: char = '§';
/// The longest term the database takes, less what the scope's mark needs. Longer ones are cut, here and in queries.
const TERM_BYTES: usize = 2000;
/// What the database takes of one text's terms, with some room. Only a text of very many different words has more; the rest
/// of them do not find it.
const TERMS_BYTES: usize = 900 * 1024;
/// Trees that a query names. Among more it is cheaper to find all matches and drop those of other trees.
const NAMED_GROUPS: usize = 128;

fn tenant_term(name: &str) -> String {
    format!("{SCOPE}t{}", blake3::hash(name.as_bytes()).to_hex())
}

fn group_term(group: Uuid) -> String {
    format!("{SCOPE}{}", group.simple())
}

/// A term's parts: like every engine, this one cuts at ASCII signs.
fn parts(term: &str) -> impl DoubleEndedIterator<Item = &str> {
    term.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(|part| &part[..part.floor_char_boundary(TERM_BYTES)])
}

/// The terms of a document, each once, separated by spaces.
fn terms(document: &TextDocument) -> String {
    let mut terms = format!("{} {}", tenant_term(&document.tenant), group_term(document.group));
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
    tx.post(
        "WITH replaced AS (DELETE FROM meanings m USING texts t WHERE t.id = $1 AND m.text_no = t.no) \
         INSERT INTO texts (no, id, group_id, conversation_id, by_agent, waiting, text, terms) \
         VALUES (nextval('text_numbers'), $1, $2, $3, $4, TRUE, $5, array_to_tsvector(string_to_array($6, ' '))) \
         ON CONFLICT (id) DO UPDATE SET no = excluded.no, group_id = excluded.group_id, \
         conversation_id = excluded.conversation_id, by_agent = COALESCE(excluded.by_agent, texts.by_agent), \
         waiting = TRUE, text = excluded.text, terms = excluded.terms",
        &[
            document.id.into(),
            document.group.into(),
            document.conversation.into(),
            document.by_agent.map(i64::from).into(),
            document.text.as_bytes().into(),
            terms(document).as_str().into(),
        ],
    )
}

pub(super) fn unindex(tx: &mut dyn Tx, id: Uuid) -> Result<(), StoreError> {
    tx.post(
        "WITH gone AS (DELETE FROM texts WHERE id = $1 RETURNING no) \
         DELETE FROM meanings m USING gone WHERE m.text_no = gone.no",
        &[id.into()],
    )
}

pub(super) fn unindex_group(tx: &mut dyn Tx, group: Uuid) -> Result<(), StoreError> {
    tx.post("DELETE FROM texts WHERE group_id = $1", &[group.into()])?;
    tx.post("DELETE FROM meanings WHERE group_id = $1", &[group.into()])
}

pub(super) fn has_untaken(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(tx.first("SELECT 1 FROM texts WHERE waiting LIMIT 1", &[], |row| row.int(0))?.is_some())
}

pub(super) fn untaken(tx: &mut dyn Tx, group: Option<Uuid>, limit: i64) -> Result<Vec<i64>, StoreError> {
    match group {
        None => tx.rows("SELECT no FROM texts WHERE waiting ORDER BY no LIMIT $1", &[limit.into()], |row| {
            row.int(0)
        }),
        Some(group) => tx.rows(
            "SELECT no FROM texts WHERE waiting AND group_id = $1 ORDER BY no LIMIT $2",
            &[group.into(), limit.into()],
            |row| row.int(0),
        ),
    }
}

pub(super) fn take_in(tx: &mut dyn Tx, numbers: &[i64]) -> Result<(), StoreError> {
    tx.post("UPDATE texts SET waiting = FALSE WHERE no = ANY($1)", &[Value::Ints(numbers)])
}

/// Hands over every document that matches.
pub(super) fn search(
    tx: &mut dyn Tx,
    query: &TextQuery,
    each: &mut dyn FnMut(TextHit<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (named, dropped_by) = match query.groups.as_deref() {
        Some(groups) if groups.len() > NAMED_GROUPS => (None, Some(groups)),
        groups => (groups, None),
    };
    let Some(expression) = expression(&query.tenant, &query.words, named) else { return Ok(()) };
    let mut hit = |row: &dyn Row| {
        let (id, group, conversation) = (row.uuid(0)?, row.uuid(1)?, row.uuid(2)?);
        each(TextHit { id, group, conversation, text: row.text(3)? })?;
        Ok(ControlFlow::Continue(()))
    };
    match dropped_by {
        None => tx.query(
            "SELECT id, group_id, conversation_id, text FROM texts WHERE terms @@ CAST($1 AS tsquery)",
            &[expression.as_str().into()],
            Lock::None,
            &mut hit,
        ),
        Some(groups) => tx.query(
            "SELECT id, group_id, conversation_id, text FROM texts \
             WHERE terms @@ CAST($1 AS tsquery) AND group_id = ANY($2)",
            &[expression.as_str().into(), Value::Uuids(groups)],
            Lock::None,
            &mut hit,
        ),
    }
}

/// The query in the database's language; `None` when nothing can match.
fn expression(of_tenant: &str, words: &[Vec<String>], groups: Option<&[Uuid]>) -> Option<String> {
    let mut expression = match groups {
        None => format!("'{}'", tenant_term(of_tenant)),
        Some([]) => return None,
        // A tree has one tenant, so its name says both.
        Some(groups) => {
            let names: Vec<String> = groups.iter().map(|group| format!("'{}'", group_term(*group))).collect();
            format!("({})", names.join(" | "))
        }
    };
    if words.is_empty() {
        return None;
    }
    for alternatives in words {
        let alternatives: Vec<String> = alternatives.iter().filter_map(|word| beginning_with(word)).collect();
        if alternatives.is_empty() {
            return None;
        }
        // Writing to a `String` cannot fail.
        let _ = write!(expression, " & ({})", alternatives.join(" | "));
    }
    Some(expression)
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
