//! A page of hits: the best of those that come after the page before, with all that the answer shows of them.

use super::cursor::{Cursor, List, Ranker};
use super::question::Question;
use crate::Context;
use crate::page::Page;
use memtrove_core::conversations::Entry;
use memtrove_core::recall::fusion::Score;
use memtrove_core::recall::terms;
use memtrove_core::{ConversationId, EntryId, Error, Result};
use memtrove_store::Tx;
use memtrove_store::conversations::search;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// A page of more bytes of text takes longer to show than others should wait for: it takes a turn.
const SHOWN_AT_ONCE: usize = 64 * 1024;
/// How much is shown of a text that has no word of the query.
const BEGINNING_CHARS: usize = 200;

/// An entry that was found.
#[derive(Debug, Clone)]
pub struct SearchHit {
    /// The entry's id.
    pub entry_id: EntryId,
    /// The conversation that stores it.
    pub conversation_id: ConversationId,
    /// The whole entry, where asked for.
    pub entry: Option<Entry>,
    /// The title of the conversation that stores it.
    pub conversation_title: Option<String>,
    /// How well it matches; larger is better.
    pub score: f64,
    /// The part of its text that matched.
    pub highlights: Option<String>,
    /// The part of its text that matters, if that is long.
    pub passage: Option<String>,
    /// How the score came about, where asked for.
    pub explanation: Option<Explanation>,
}

/// How a score came about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Explanation {
    /// By how often and how exactly every word of the query is there.
    FullText,
    /// By the cosine of the query's vector and the entry's.
    Semantic,
    /// By all that speaks for it.
    Fused(Score),
}

/// A match and how good it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub id: Uuid,
    pub group: Uuid,
    pub conversation: Uuid,
    pub score: f64,
    /// Whether it has a word of the query.
    pub has_words: bool,
    pub explanation: Explanation,
}

/// What is wanted of the hits.
pub(super) struct HitPageRequest {
    pub limit: usize,
    /// Only the best of each conversation.
    pub grouped: bool,
    pub include_entry: bool,
    pub explain: bool,
    /// The end of the page before.
    pub after: Option<Cursor>,
    pub list: List,
}

impl HitPageRequest {
    fn given(&self) -> usize {
        self.after.map_or(0, |after| after.given as usize)
    }

    /// How many of the best hits this page is taken from.
    pub fn depth(&self) -> usize {
        self.given() + self.limit + 1
    }
}

/// A page of hits without what is shown of their texts: that takes no unit of work.
pub(super) struct FoundPage {
    hits: Vec<FoundEntry>,
    after: Option<String>,
    weighed: Vec<(u64, f64)>,
}

/// A hit and the text that it was found by.
struct FoundEntry {
    hit: SearchHit,
    text: String,
    has_words: bool,
}

/// The page of hits that comes next.
pub(super) fn page(
    tx: &mut dyn Tx,
    question: &Question,
    (ranker, mut hits, weighed): (Ranker, Vec<Ranked>, Vec<(u64, f64)>),
    wanted: &HitPageRequest,
) -> Result<FoundPage> {
    if wanted.grouped {
        hits = best_of_each(hits);
    }
    let next = after_cursor(hits, wanted.after.as_ref(), wanted.limit + 1);
    let due = &next[..next.len().min(wanted.limit)];
    let mut shown = due.to_vec();
    retain_visible(tx, question, &mut shown)?;
    if wanted.include_entry {
        let fit = fitting(tx, &shown)?;
        shown.truncate(fit);
    }
    // A page ends where its last hit is due, though some before it may not be shown.
    let is_due = |hit: &Ranked| due.iter().position(|due| due.id == hit.id);
    let is_cut = wanted.include_entry && shown.len() < due.len();
    let end = match shown.last().and_then(is_due).filter(|_| is_cut) {
        Some(last) => last + 1,
        None => due.len(),
    };
    let data = hydrated(tx, question, &shown, wanted)?;
    let given = (wanted.given() + end) as u32;
    let after = due[..end]
        .last()
        .filter(|_| next.len() > end)
        .map(|last| Cursor { ranker, given, score: last.score, id: last.id }.encode(wanted.list));
    Ok(FoundPage { hits: data, after, weighed })
}

/// Better first; equals by id.
pub(super) fn by_rank(a: &Ranked, b: &Ranked) -> Ordering {
    b.score.total_cmp(&a.score).then(a.id.cmp(&b.id))
}

/// The best hit of each conversation.
pub(super) fn best_of_each(hits: Vec<Ranked>) -> Vec<Ranked> {
    let mut best: HashMap<(Uuid, Uuid), Ranked> = HashMap::with_capacity(hits.len());
    for hit in hits {
        best.entry((hit.group, hit.conversation))
            .and_modify(|known| {
                if by_rank(&hit, known).is_lt() {
                    *known = hit;
                }
            })
            .or_insert(hit);
    }
    best.into_values().collect()
}

fn after_cursor(mut hits: Vec<Ranked>, after: Option<&Cursor>, count: usize) -> Vec<Ranked> {
    if let Some(after) = after {
        hits.retain(|hit| after.score.total_cmp(&hit.score).then(hit.id.cmp(&after.id)).is_gt());
    }
    if hits.len() > count {
        hits.select_nth_unstable_by(count, by_rank);
        hits.truncate(count);
    }
    hits.sort_unstable_by(by_rank);
    hits
}

/// Drops what is out of the caller's reach by now: an index may have been brought up to date by somebody who saw more.
fn retain_visible(tx: &mut dyn Tx, question: &Question, hits: &mut Vec<Ranked>) -> Result<()> {
    let mut groups: Vec<Uuid> = hits.iter().map(|hit| hit.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let visible = search::visible(tx, &question.tenant, &question.scope, &groups)?;
    hits.retain(|hit| visible.contains(&hit.group));
    Ok(())
}

/// How many of these hits a page may hold, by the content of their entries: at least one.
fn fitting(tx: &mut dyn Tx, hits: &[Ranked]) -> Result<usize> {
    let ids: Vec<Uuid> = hits.iter().map(|hit| hit.id).collect();
    let sizes: HashMap<Uuid, usize> = search::content_bytes(tx, &ids)?.into_iter().collect();
    let mut bytes = 0;
    let fit = hits.iter().take_while(|hit| {
        bytes += sizes.get(&hit.id).copied().unwrap_or_default();
        bytes <= search::HITS_BYTES
    });
    Ok(fit.count().max(1).min(hits.len()))
}

/// Loads the entries of a page in one query and puts them in the order of their hits.
fn hydrated(
    tx: &mut dyn Tx,
    question: &Question,
    hits: &[Ranked],
    wanted: &HitPageRequest,
) -> Result<Vec<FoundEntry>> {
    let ids: Vec<Uuid> = hits.iter().map(|hit| hit.id).collect();
    let mut found: HashMap<Uuid, search::Hydrated> =
        search::hydrate(tx, &question.tenant, &ids, wanted.include_entry)?
            .into_iter()
            .map(|hit| (hit.id.0, hit))
            .collect();
    let entry = |hit: &Ranked| {
        let search::Hydrated { id, entry, text, conversation_title } = found.remove(&hit.id)?;
        let explanation = wanted.explain.then_some(hit.explanation);
        let conversation_id = ConversationId(hit.conversation);
        let hit_of_page = SearchHit {
            entry_id: id,
            conversation_id,
            entry,
            conversation_title,
            score: hit.score,
            highlights: None,
            passage: None,
            explanation,
        };
        Some(FoundEntry { hit: hit_of_page, text, has_words: hit.has_words })
    };
    Ok(hits.iter().filter_map(entry).collect())
}

/// Shows of every text what matters: of a long one the passage that answers, and of that what matched.
pub(super) async fn shown(
    cx: &Arc<Context>,
    question: Arc<Question>,
    found: FoundPage,
) -> Result<Page<SearchHit>> {
    if found.hits.iter().map(|found| found.text.len()).sum::<usize>() <= SHOWN_AT_ONCE {
        return Ok(show(cx, &question, found));
    }
    let (cx, turn) = (cx.clone(), question.turn(cx).await?);
    let shown = tokio::task::spawn_blocking(move || {
        let _ends_with_the_work = &turn;
        show(&cx, &question, found)
    });
    shown.await.map_err(|error| Error::internal(error.to_string()))
}

fn show(cx: &Context, question: &Question, found: FoundPage) -> Page<SearchHit> {
    let worth = terms::worth_of_words(&cx.analyzer, &question.words, &found.weighed);
    let show = |FoundEntry { mut hit, text, has_words }: FoundEntry| {
        if question.wanted.is_over() {
            return hit;
        }
        let passage = question.passage(cx, &found.weighed, &text).map(|range| &text[range]);
        let shown = passage.unwrap_or(&text);
        let highlights = match has_words {
            true => cx.analyzer.highlight(shown, &question.words, &worth),
            false => beginning(shown),
        };
        hit.highlights = Some(highlights).filter(|text| !text.is_empty());
        hit.passage = passage.map(str::to_owned);
        hit
    };
    Page { data: found.hits.into_iter().map(show).collect(), after: found.after }
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(BEGINNING_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(id: u128, conversation: u128, score: f64) -> Ranked {
        Ranked {
            id: Uuid::from_u128(id),
            group: Uuid::nil(),
            conversation: Uuid::from_u128(conversation),
            score,
            has_words: true,
            explanation: Explanation::FullText,
        }
    }

    #[test]
    fn pages_never_repeat_and_never_miss() {
        let hits: Vec<Ranked> = (0..50).map(|n| hit(n * 7919 % 50, n, f64::from((n % 5) as u8))).collect();
        let mut all = hits.clone();
        all.sort_unstable_by(by_rank);
        let mut walked = Vec::new();
        let mut after = None;
        loop {
            let page = after_cursor(hits.clone(), after.as_ref(), 3);
            let Some(last) = page.last() else { break };
            after = Some(Cursor { ranker: Ranker::Fused, given: 0, score: last.score, id: last.id });
            walked.extend(page);
        }
        assert_eq!(walked, all);
    }

    #[test]
    fn the_best_entry_stands_for_its_conversation() {
        let best = best_of_each(vec![hit(1, 9, 1.0), hit(2, 9, 3.0), hit(3, 9, 3.0), hit(4, 8, 2.0)]);
        let mut ids: Vec<u128> = best.iter().map(|hit| hit.id.as_u128()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [2, 4]);
    }
}
