//! Finding entries by their text, and keeping that text current.

use super::{Conversations, text};
use crate::page::{self, Page};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use memloom_core::conversations::{Channel, Entry, MAX_INDEXED_CHARS};
use memloom_core::identity::{Caller, MAX_USER_ID_CHARS, Principal, Role, Tenant};
use memloom_core::text::{Analyzer, Words};
use memloom_core::{ConversationId, EntryId, Error, Resource, Result, Timestamp, UserId};
use memloom_store::conversations::search::{self, Scope};
use memloom_store::{TextDocument, TextQuery, Tx};
use std::cmp::Ordering;
use std::collections::HashMap;
use uuid::Uuid;

const MAX_QUERY_CHARS: usize = 1000;
const MAX_CURSOR_CHARS: usize = 100;
const MAX_INDEX_ITEMS: usize = 1000;
/// Up to so many trees, a search is confined to them inside the index; beyond, its hits are filtered.
const CONFINED_GROUPS: usize = 256;

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchType {
    /// With whatever is available.
    #[default]
    Auto,
    /// By meaning.
    Semantic,
    /// By words.
    FullText,
}

/// A search.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Required.
    pub query: Option<String>,
    /// See [`SearchType`].
    pub search_type: SearchType,
    /// Go on after this page.
    pub after: Option<String>,
    /// The size of the page.
    pub limit: Option<i64>,
    /// Only the best entry of each conversation.
    pub group_by_conversation: bool,
    /// Whether hits bring their whole entries.
    pub include_entry: bool,
}

/// What an admin's search adds.
#[derive(Debug, Clone, Default)]
pub struct AdminSearch {
    /// Only trees this user owns.
    pub owner: Option<String>,
    /// Deleted trees too.
    pub include_deleted: bool,
}

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
}

/// A text for one entry.
#[derive(Debug, Clone)]
pub struct IndexItem {
    /// The conversation that stores the entry.
    pub conversation_id: Option<ConversationId>,
    /// The entry.
    pub entry_id: Option<EntryId>,
    /// What search should find it by.
    pub indexed_content: Option<String>,
}

impl Conversations {
    /// Searches everything the caller can see.
    pub async fn search(&self, caller: &Caller, request: SearchRequest) -> Result<Page<SearchHit>> {
        self.search_in(caller.tenant(), Scope::Member(caller.user.clone()), request, 200).await
    }

    pub(super) async fn search_as_admin(
        &self,
        tenant: &Tenant,
        request: SearchRequest,
        admin: AdminSearch,
    ) -> Result<Page<SearchHit>> {
        let owner = admin.owner.filter(|owner| !owner.trim().is_empty());
        if let Some(owner) = &owner {
            text("userId", owner, MAX_USER_ID_CHARS)?;
        }
        let scope = Scope::Tenant { owner: owner.map(UserId), with_deleted: admin.include_deleted };
        self.search_in(tenant, scope, request, 1000).await
    }

    async fn search_in(
        &self,
        tenant: &Tenant,
        scope: Scope,
        request: SearchRequest,
        max_limit: usize,
    ) -> Result<Page<SearchHit>> {
        let query = request.query.ok_or_else(|| Error::invalid("query", "is required"))?;
        if query.trim().is_empty() {
            return Err(Error::invalid("query", "must not be blank"));
        }
        text("query", &query, MAX_QUERY_CHARS)?;
        let limit = page::limit(request.limit, 20, max_limit)?;
        let list = fingerprint(&query, request.search_type, request.group_by_conversation);
        let after = request.after.map(|cursor| Cursor::decode(&cursor, list)).transpose()?;
        self.check_available(request.search_type)?;
        let words = self.cx.analyzer.query(&query);
        if words.is_empty() {
            return Ok(Page { data: Vec::new(), after: None });
        }
        let (cx, tenant, grouped) = (self.cx.clone(), tenant.clone(), request.group_by_conversation);
        let include_entry = request.include_entry;
        self.cx
            .store
            .read("search_entries", move |tx| {
                let mut hits = matches(tx, &tenant, &scope, &words, &cx.analyzer)?;
                if grouped {
                    hits = best_of_each(hits);
                }
                let hits = after_cursor(hits, after.as_ref(), limit + 1);
                let mut fit = hits.len().min(limit);
                if include_entry {
                    fit = fitting(tx, &hits[..fit])?;
                }
                let more = hits.len() > fit;
                let hits = &hits[..fit];
                let data = hydrated(tx, &tenant, hits, include_entry, &words, &cx.analyzer)?;
                let after = hits
                    .last()
                    .filter(|_| more)
                    .map(|last| Cursor { score: last.score, id: last.id }.encode(list));
                Ok(Page { data, after })
            })
            .await
    }

    fn check_available(&self, asked: SearchType) -> Result<()> {
        let available = if self.cx.settings.fulltext { vec!["fulltext"] } else { vec![] };
        match asked {
            SearchType::Auto if available.is_empty() => Err(Error::SearchDisabled),
            SearchType::FullText if available.is_empty() => {
                Err(Error::SearchTypeUnavailable { requested: "fulltext", available })
            }
            SearchType::Semantic => Err(Error::SearchTypeUnavailable { requested: "semantic", available }),
            SearchType::Auto | SearchType::FullText => Ok(()),
        }
    }

    /// Gives entries the text that search finds them by: all of them, or none.
    pub async fn index(&self, principal: &Principal, items: Vec<IndexItem>) -> Result<usize> {
        principal.require(Role::Indexer)?;
        if items.is_empty() {
            return Err(Error::bad_request("At least one entry is required"));
        }
        if items.len() > MAX_INDEX_ITEMS {
            return Err(Error::invalid("body", format!("must have at most {MAX_INDEX_ITEMS} items")));
        }
        let count = items.len();
        let items: Vec<_> =
            items.into_iter().enumerate().map(|(i, item)| self.check_item(i, item)).collect::<Result<_>>()?;
        let tenant = principal.tenant().clone();
        self.cx
            .store
            .write("index_entries", move |tx| {
                for item in &items {
                    index_one(tx, &tenant, item)?;
                }
                Ok(count)
            })
            .await
    }

    fn check_item(&self, at: usize, item: IndexItem) -> Result<CheckedItem> {
        let required = |field: &str| Error::invalid(format!("[{at}].{field}"), "is required");
        let conversation = item.conversation_id.ok_or_else(|| required("conversationId"))?;
        let entry = item.entry_id.ok_or_else(|| required("entryId"))?;
        let content = item.indexed_content.ok_or_else(|| required("indexedContent"))?;
        if content.trim().is_empty() {
            return Err(Error::invalid(format!("[{at}].indexedContent"), "must not be blank"));
        }
        text(&format!("[{at}].indexedContent"), &content, MAX_INDEXED_CHARS)?;
        Ok(CheckedItem { conversation, entry, terms: self.cx.analyzer.terms(&content), text: content })
    }

    /// History entries that nobody has given a text yet, oldest first.
    pub async fn unindexed(
        &self,
        principal: &Principal,
        after: Option<String>,
        limit: Option<i64>,
    ) -> Result<Page<Entry>> {
        principal.require(Role::Indexer)?;
        let limit = page::limit(limit, 100, 200)?;
        let after = after.as_deref().map(decode_feed_cursor).transpose()?;
        let tenant = principal.tenant().clone();
        self.cx
            .store
            .read("list_unindexed", move |tx| {
                let (data, more) = search::unindexed(tx, &tenant, after, limit)?;
                let last = data.last().filter(|_| more);
                let after = last.map(|entry| encode_feed_cursor(entry.created_at, entry.id));
                Ok(Page { data, after })
            })
            .await
    }
}

struct CheckedItem {
    conversation: ConversationId,
    entry: EntryId,
    text: String,
    terms: String,
}

fn index_one(tx: &mut dyn Tx, tenant: &Tenant, item: &CheckedItem) -> Result<()> {
    let entry = search::indexable(tx, tenant, item.entry)?
        .filter(|entry| entry.conversation == item.conversation)
        .ok_or_else(|| Error::not_found(Resource::Entry, item.entry))?;
    if entry.channel != Channel::History {
        return Err(Error::bad_request("Only history channel entries can be indexed"));
    }
    search::remove_unindexed(tx, tenant, item.entry, entry.created_at)?;
    Ok(tx.index_text(TextDocument {
        id: item.entry.0,
        tenant: tenant.as_str().to_owned(),
        group: entry.group.0,
        conversation: entry.conversation.0,
        text: item.text.clone(),
        terms: item.terms.clone(),
    })?)
}

/// A match and how good it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ranked {
    id: Uuid,
    group: Uuid,
    conversation: Uuid,
    score: f64,
}

/// Every match that the scope may see.
fn matches(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: &Scope,
    words: &Words,
    analyzer: &Analyzer,
) -> Result<Vec<Ranked>> {
    let groups = search::groups(tx, tenant, scope, CONFINED_GROUPS)?;
    let confined = groups.is_some();
    let scorer = analyzer.scorer(words);
    let mut hits = Vec::new();
    tx.search_text(
        &TextQuery { tenant: tenant.as_str().to_owned(), words: words.clone(), groups },
        &mut |hit| {
            let score = scorer.score(hit.text);
            hits.push(Ranked { id: hit.id, group: hit.group, conversation: hit.conversation, score });
            Ok(())
        },
    )?;
    if !confined {
        let mut candidates: Vec<Uuid> = hits.iter().map(|hit| hit.group).collect();
        candidates.sort_unstable();
        candidates.dedup();
        let visible = search::visible(tx, tenant, scope, &candidates)?;
        hits.retain(|hit| visible.contains(&hit.group));
    }
    Ok(hits)
}

/// Better first; equals by id.
fn by_rank(a: &Ranked, b: &Ranked) -> Ordering {
    b.score.total_cmp(&a.score).then(a.id.cmp(&b.id))
}

fn best_of_each(hits: Vec<Ranked>) -> Vec<Ranked> {
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
    tenant: &Tenant,
    hits: &[Ranked],
    include_entry: bool,
    words: &Words,
    analyzer: &Analyzer,
) -> Result<Vec<SearchHit>> {
    let ids: Vec<Uuid> = hits.iter().map(|hit| hit.id).collect();
    let mut found: HashMap<Uuid, search::Hydrated> =
        search::hydrate(tx, tenant, &ids, include_entry)?.into_iter().map(|hit| (hit.id.0, hit)).collect();
    Ok(hits
        .iter()
        .filter_map(|hit| {
            let search::Hydrated { id, entry, text, conversation_title } = found.remove(&hit.id)?;
            let highlights = Some(analyzer.highlight(&text, words)).filter(|text| !text.is_empty());
            Some(SearchHit {
                entry_id: id,
                conversation_id: ConversationId(hit.conversation),
                entry,
                conversation_title,
                score: hit.score,
                highlights,
            })
        })
        .collect())
}

/// Ties a cursor to the list it belongs to.
fn fingerprint(query: &str, search_type: SearchType, grouped: bool) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[search_type as u8, u8::from(grouped)]);
    hasher.update(query.as_bytes());
    let mut short = [0; 8];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    short
}

/// The last hit of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cursor {
    score: f64,
    id: Uuid,
}

impl Cursor {
    fn encode(self, list: [u8; 8]) -> String {
        let mut bytes = Vec::with_capacity(32);
        bytes.extend_from_slice(&list);
        bytes.extend_from_slice(&self.score.to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    fn decode(text: &str, list: [u8; 8]) -> Result<Self> {
        let bytes: [u8; 32] = opaque(text)?;
        let (tied_to, rest) = bytes.split_at(8);
        if tied_to != list {
            return Err(Error::invalid("after", "belongs to another search; start again without it"));
        }
        let (score, id) = rest.split_at(8);
        Ok(Self {
            score: f64::from_be_bytes(score.try_into().map_err(|_| malformed())?),
            id: Uuid::from_slice(id).map_err(|_| malformed())?,
        })
    }
}

fn encode_feed_cursor(created_at: Timestamp, id: EntryId) -> String {
    let mut bytes = Vec::with_capacity(24);
    bytes.extend_from_slice(&created_at.as_micros().to_be_bytes());
    bytes.extend_from_slice(id.0.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn decode_feed_cursor(text: &str) -> Result<(Timestamp, EntryId)> {
    let bytes: [u8; 24] = opaque(text)?;
    let (at, id) = bytes.split_at(8);
    let at = i64::from_be_bytes(at.try_into().map_err(|_| malformed())?);
    Ok((Timestamp::from_micros(at), EntryId(Uuid::from_slice(id).map_err(|_| malformed())?)))
}

fn opaque<const N: usize>(text: &str) -> Result<[u8; N]> {
    if text.len() > MAX_CURSOR_CHARS {
        return Err(Error::invalid("after", format!("must have at most {MAX_CURSOR_CHARS} characters")));
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| malformed())?;
    bytes.try_into().map_err(|_| malformed())
}

fn malformed() -> Error {
    Error::invalid("after", "is not a cursor of this list")
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
            after = Some(Cursor { score: last.score, id: last.id });
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

    #[test]
    fn a_cursor_belongs_to_its_search() {
        let cursor = Cursor { score: 1.25, id: Uuid::from_u128(7) };
        let list = fingerprint("cats", SearchType::Auto, true);
        assert_eq!(Cursor::decode(&cursor.encode(list), list), Ok(cursor));
        assert!(Cursor::decode(&cursor.encode(list), fingerprint("cats", SearchType::Auto, false)).is_err());
        assert!(Cursor::decode(&cursor.encode(list), fingerprint("dogs", SearchType::Auto, true)).is_err());
        assert!(
            Cursor::decode(&cursor.encode(list), fingerprint("cats", SearchType::FullText, true)).is_err()
        );
        assert!(Cursor::decode("garbage!", list).is_err());
        assert!(Cursor::decode(&"A".repeat(101), list).is_err());
    }
}
