//! Finding entries: by their words, by what they mean, or by both.
//!
//! [`fulltext`] finds entries that have every word of a query; [`ranking`] compares what trees hold in memory, by meaning
//! alone or by all that speaks for an entry. Of both, [`page`] makes a page.

mod cursor;
mod fulltext;
pub(crate) mod loading;
mod page;
mod question;
mod ranking;
mod turn;
mod view;

pub(super) use cursor::{malformed, opaque};
pub use page::{Explanation, SearchHit};
pub use question::WeightsRequest;
pub(super) use turn::Budget;
pub(crate) use turn::SearchTurns;
use turn::Waiting;

use super::{Conversations, text};
use crate::audit::{AsAuditor, Grant};
use crate::page::Page;
use crate::{AutoMode, Context};
use cursor::{Cursor, Ranker};
use memtrove_core::identity::{Caller, MAX_USER_ID_CHARS, Tenant};
use memtrove_core::{Error, Result, UserId};
use memtrove_recall::embed::EmbedError;
use memtrove_store::Tx;
use memtrove_store::conversations::search::Scope;
use page::HitPageRequest;
use question::Question;
use ranking::Ranking;
use std::sync::Arc;

const MAX_QUERY_CHARS: usize = 1000;
/// One in three hundred unrelated texts is that similar to a question, with the models that are part of the product; see
/// [`Calibration`](memtrove_recall::embed::Calibration). On LoCoMo nothing that answers is lost by it.
const DEFAULT_MIN_SCORE: f64 = 0.35;

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
    /// Whether hits say how their scores came about.
    pub explain: bool,
    /// Whether it counts who said something; as the deployment has it unless said otherwise.
    pub actor: Option<bool>,
    /// What counts how much; as the deployment has it unless said otherwise.
    pub weights: WeightsRequest,
}

/// A page of hits.
#[derive(Debug, Clone)]
pub struct SearchPage {
    /// Best first.
    pub data: Vec<SearchHit>,
    /// What to ask for next, if there is more.
    pub after: Option<String>,
    /// Whether the budget was spent before everything could be looked at: something better may be missing, and is found once it
    /// has been read.
    pub degraded: bool,
}

/// What an admin's search adds.
#[derive(Debug, Clone, Default)]
pub struct AdminSearch {
    /// Only trees this user owns.
    pub owner: Option<String>,
    /// Deleted trees too.
    pub include_deleted: bool,
}

impl Conversations {
    /// Searches everything the caller can see.
    pub async fn search(&self, caller: &Caller, request: SearchRequest) -> Result<SearchPage> {
        self.search_in(caller.tenant(), Scope::Member(caller.user.clone()), request, 200).await
    }

    /// Searches what the caller owns: nothing that others shared with it, which it may never have asked for.
    pub async fn search_own(&self, caller: &Caller, request: SearchRequest) -> Result<SearchPage> {
        self.search_in(caller.tenant(), Scope::Owner(caller.user.clone()), request, 200).await
    }

    pub(super) async fn search_any(
        &self,
        grant: Grant<AsAuditor>,
        request: SearchRequest,
        admin: AdminSearch,
    ) -> Result<SearchPage> {
        let owner = admin.owner.filter(|owner| !owner.trim().is_empty());
        if let Some(owner) = &owner {
            text("userId", owner, MAX_USER_ID_CHARS)?;
        }
        let scope = Scope::Tenant { owner: owner.map(UserId), with_deleted: admin.include_deleted };
        self.search_in(grant.tenant(), scope, request, 1000).await
    }

    async fn search_in(
        &self,
        tenant: &Tenant,
        scope: Scope,
        request: SearchRequest,
        max_limit: usize,
    ) -> Result<SearchPage> {
        let query = request.query.ok_or_else(|| Error::invalid("query", "is required"))?;
        if query.trim().is_empty() {
            return Err(Error::invalid("query", "must not be blank"));
        }
        text("query", &query, MAX_QUERY_CHARS)?;
        let limit = crate::page::limit(request.limit, 20, max_limit)?;
        let weights = request.weights.over(&self.cx.settings.search, request.actor)?;
        let (asked, grouped) = (request.search_type, request.group_by_conversation);
        let list = cursor::fingerprint(&query, asked, grouped, &weights);
        let after = request.after.map(|cursor| Cursor::decode(&cursor, list)).transpose()?;
        let mut rankers = self.rankers(asked)?;
        if let Some(after) = &after {
            rankers = vec![after.continues(&rankers)?];
        }
        let waiting = Waiting::default();
        let mut question = Question::new(&self.cx, tenant.clone(), scope, query, weights, waiting.wanted());
        question.floor = (asked == SearchType::Auto).then(|| self.min_score());
        if rankers.iter().any(|ranker| ranker.asks_who_spoke()) {
            question.find_names(&self.cx).await?;
        }
        if rankers.iter().any(|ranker| ranker.needs_vectors())
            && let Err(error) = question.embed(&self.cx).await
        {
            let may_do_without = asked == SearchType::Auto && after.is_none();
            rankers = without_vectors(&rankers, may_do_without, &error)?;
        }
        let (cx, turn) = (self.cx.clone(), question.turn(&self.cx).await?);
        let wanted = HitPageRequest {
            limit,
            grouped,
            include_entry: request.include_entry,
            explain: request.explain,
            after,
            list,
        };
        let question = Arc::new(question);
        let prepared = question.clone();
        let search = self.cx.store.read(tenant, "search_entries", move |tx| {
            let _ends_with_the_work = &turn;
            let mut found = (Ranker::FullText, Ranking::default());
            for ranker in &rankers {
                let before = found.1;
                found = (*ranker, rank(tx, &cx, *ranker, &prepared, &wanted)?);
                found.1.is_cut |= before.is_cut;
                found.1.unread = found.1.unread.or(before.unread);
                if !found.1.hits.is_empty() {
                    break;
                }
            }
            let (ranker, Ranking { hits, weighed, is_cut, unread }) = found;
            let page = page::page(tx, &prepared, (ranker, hits, weighed), &wanted)?;
            Ok::<_, Error>((page, is_cut, unread))
        });
        let (found, degraded, unread) = search.await?;
        if let Some(unread) = unread {
            self.cx.unread.read_later(unread);
        }
        let Page { data, after } = page::shown(&self.cx, question, found).await?;
        Ok(SearchPage { data, after, degraded })
    }

    /// Who answers such a search: the first one that finds something.
    fn rankers(&self, asked: SearchType) -> Result<Vec<Ranker>> {
        let settings = &self.cx.settings;
        let fulltext = settings.fulltext;
        let semantic = settings.search.semantic && self.cx.embeddings.space().is_some();
        let unavailable = |requested| {
            let types = [("semantic", semantic), ("fulltext", fulltext)];
            let available = types.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
            Err(Error::search_type_unavailable(requested, available))
        };
        Ok(match (asked, fulltext, semantic) {
            (SearchType::Auto, false, false) => return Err(Error::SEARCH_DISABLED),
            (SearchType::FullText, false, _) => return unavailable("fulltext"),
            (SearchType::Semantic, _, false) => return unavailable("semantic"),
            (SearchType::FullText, true, _) => vec![Ranker::FullText],
            (SearchType::Semantic, _, true) | (SearchType::Auto, false, true) => vec![Ranker::Semantic],
            (SearchType::Auto, true, semantic) => match (settings.search.auto_mode, semantic) {
                (AutoMode::Hybrid, true) => vec![Ranker::Fused],
                (AutoMode::Hybrid, false) => vec![Ranker::Words],
                (AutoMode::Fallback, true) => vec![Ranker::Semantic, Ranker::FullText],
                (AutoMode::Fallback, false) => vec![Ranker::FullText],
            },
        })
    }

    /// How similar something without a word in common must be for `auto` to return it.
    fn min_score(&self) -> f64 {
        self.cx.settings.search.min_score.unwrap_or(DEFAULT_MIN_SCORE)
    }
}

/// Who answers where the query could not be embedded.
fn without_vectors(rankers: &[Ranker], may_do_without: bool, error: &EmbedError) -> Result<Vec<Ranker>> {
    let others: Vec<Ranker> = rankers.iter().filter_map(|ranker| ranker.without_vectors()).collect();
    if !may_do_without || others.is_empty() {
        return Err(Error::semantic_unavailable(error.to_string()));
    }
    tracing::warn!(%error, "a query could not be embedded; it is answered by its words");
    Ok(others)
}

fn rank(
    tx: &mut dyn Tx,
    cx: &Context,
    ranker: Ranker,
    question: &Question,
    wanted: &HitPageRequest,
) -> Result<Ranking> {
    match ranker {
        Ranker::FullText => {
            let (hits, is_complete) = fulltext::rank(tx, cx, question)?;
            Ok(Ranking { hits, is_cut: !is_complete, ..Ranking::default() })
        }
        Ranker::Semantic => ranking::by_similarity(tx, cx, question, wanted),
        Ranker::Fused | Ranker::Words => ranking::fused(tx, cx, question, wanted),
    }
}
