//! Search: every layer's matches, merged into one answer.

use super::ranking::{Hit, RankedHits};
use super::scope_search::{ScopeQuery, Span};
use super::{Memories, count, embedding_failed};
use crate::quota::CallKind;
use memtrove_core::memories::contradiction::Wording;
use memtrove_core::memories::merge::Options;
use memtrove_core::memories::{
    Code, Conditions, Identifiers, Layer, MemoryCaller, Mode, Ranking, ScopeKey, SearchMemories, Viewer,
};
use memtrove_core::recall::terms::{self, EntryQuery};
use memtrove_core::recall::time_words::{self, TimePhrase, TimeWindow};
use memtrove_core::{Error, Result};
use memtrove_recall::embed::{EmbedError, QueryVector};

/// Matches taken from each layer beyond those asked for, since some may be dropped.
const SPARE: usize = 32;
/// The most matches that are looked at for one answer, however many of them are duplicates.
const MOST_MATCHES: usize = 65_536;

/// What a search finds.
#[derive(Debug, Clone)]
pub struct SearchResults {
    /// The results.
    pub hits: Vec<Hit>,
    /// How many entries match, before duplicates, overriding and the limit.
    pub total: usize,
    /// Whether that is certain.
    pub exact: bool,
    /// The layers that were searched, strongest first.
    pub searched: Vec<Layer>,
    /// The least score.
    pub threshold: f64,
    /// The time that the query was understood to ask about.
    pub time: Option<AskedTime>,
}

/// A time that a query asks about, with the words that say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTime {
    /// The time.
    pub window: TimeWindow,
    /// The words, as they stand there.
    pub words: String,
}

/// How far apart meanings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Metric {
    /// 1 − cos.
    #[default]
    Cosine,
    /// The length of the difference of unit vectors.
    Euclidean,
    /// 1 − dot.
    Dot,
}

impl Metric {
    /// The distance of two unit vectors with this cosine.
    pub fn distance(self, cosine: f64) -> f64 {
        match self {
            Self::Cosine | Self::Dot => 1.0 - cosine,
            Self::Euclidean => (2.0 - 2.0 * cosine).max(0.0).sqrt(),
        }
    }
}

/// A search as the knowledge protocol asks for it.
#[derive(Debug, Clone)]
pub struct KnowledgeQuery {
    /// What to look for.
    pub query: String,
    /// Where, strongest first.
    pub scopes: Vec<ScopeKey>,
    /// All identifiers of the request.
    pub identifiers: Identifiers,
    /// For whom.
    pub viewer: Viewer,
    /// Among which entries.
    pub conditions: Conditions,
    /// By meaning, by words, or both.
    pub mode: KnowledgeMode,
    /// See [`Metric`].
    pub metric: Metric,
    /// The greatest distance.
    pub distance_threshold: Option<f64>,
    /// How many of the best are considered.
    pub top_k: Option<usize>,
    /// How many are passed over.
    pub offset: usize,
    /// How many results at most.
    pub limit: usize,
}

/// How the knowledge protocol searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnowledgeMode {
    /// By meaning.
    Semantic,
    /// By words: an entry without any of them does not match.
    Keyword,
    /// By both.
    Hybrid,
}

/// What is looked for, in every form it takes.
pub(super) struct QueryForms {
    pub vectors: Vec<QueryVector>,
    pub terms: EntryQuery,
}

impl Memories {
    /// Searches the layers of a request.
    pub async fn search(&self, caller: &MemoryCaller, search: SearchMemories) -> Result<SearchResults> {
        let search = search.check(self.rules(), caller)?;
        let caller = &*self.charge(caller, CallKind::Read, |_| search.viewer.user.clone()).await?;
        let mode =
            if search.mode == Mode::Semantic { KnowledgeMode::Semantic } else { KnowledgeMode::Hybrid };
        let phrase =
            search.asks_about_time().then(|| time_words::find(&search.query, self.now(), 0)).flatten();
        // A question about a time, or about what was, is not answered by what came later.
        let clusters = phrase.is_none() && !Wording::of(&self.cx.analyzer, &search.query).asks_about_before();
        // What was understood as a time is not looked for as words, unless there is nothing else to look for.
        let rest = phrase.as_ref().map(|phrase| phrase.rest(&search.query));
        let rest = rest.filter(|rest| rest.contains(char::is_alphanumeric));
        let mut forms = self.query_forms(caller, rest.as_deref().unwrap_or(&search.query), mode).await?;
        // A memory may name the same time: "our choir sings it this spring", "lunch is on Friday".
        let faint_terms = match (&phrase, &rest) {
            (Some(phrase), Some(_)) => {
                terms::query_for_entries(&self.cx.analyzer, &phrase.names(&search.query)).words
            }
            _ => Vec::new(),
        };
        let time_alone = phrase.as_ref().is_some_and(|phrase| phrase.is_all_of(&search.query));
        if time_alone && rest.is_some() {
            // Words that ask for anything are in no answer.
            forms.terms = EntryQuery::default();
        }
        let searched: Vec<Layer> = search.scopes.iter().map(ScopeKey::layer).collect();
        let spans = self.spans(caller, search.scopes).await?;
        let meanings = forms.vectors.clone();
        let query = ScopeQuery {
            vectors: forms.vectors,
            terms: forms.terms,
            mode: search.mode,
            words_required: false,
            threshold: search.threshold,
            farthest: None,
            time: phrase.as_ref().map(|phrase| phrase.window),
            time_alone,
            faint_terms,
            want: search.limit + SPARE,
            viewer: search.viewer,
            conditions: search.conditions,
            now: self.now(),
        };
        let options = Options {
            limit: search.limit,
            ranking: search.ranking,
            dedupe: search.dedupe,
            include_overridden: search.include_overridden,
            clusters,
        };
        let RankedHits { hits, total, inexact, passages, .. } = self.hits(&spans, query, options).await?;
        let hits = self.with_passages(hits, passages, meanings).await?;
        self.parts.uses.note(hits.iter().map(|hit| hit.memory.id), self.now());
        for layer in &searched {
            let of_layer = hits.iter().filter(|hit| hit.memory.scope.layer() == *layer).count();
            count("memory.search", *layer);
            metrics::histogram!("memory_search_results", "layer" => layer.as_str()).record(of_layer as f64);
        }
        let time = phrase.map(|TimePhrase { window, range, .. }| AskedTime {
            window,
            words: search.query[range].to_owned(),
        });
        Ok(SearchResults { hits, total, exact: !inexact, searched, threshold: search.threshold, time })
    }

    /// Searches as the knowledge protocol asks for it: by score, without a threshold of its own.
    pub async fn query(&self, caller: &MemoryCaller, query: KnowledgeQuery) -> Result<SearchResults> {
        let caller = &*self.charge(caller, CallKind::Read, |_| query.viewer.user.clone()).await?;
        let mut forms = self.query_forms(caller, &query.query, query.mode).await?;
        if query.mode == KnowledgeMode::Keyword {
            // A mark is no word.
            forms.terms.marks.clear();
        }
        let searched: Vec<Layer> = query.scopes.iter().map(ScopeKey::layer).collect();
        let spans = self.spans(caller, query.scopes).await?;
        let wanted = query.top_k.unwrap_or(query.offset + query.limit).min(MOST_MATCHES);
        let scope_query = ScopeQuery {
            vectors: forms.vectors,
            terms: forms.terms,
            mode: if query.mode == KnowledgeMode::Semantic { Mode::Semantic } else { Mode::Hybrid },
            words_required: query.mode == KnowledgeMode::Keyword,
            threshold: 0.0,
            farthest: query.distance_threshold.map(|most| (query.metric, most)),
            time: None,
            time_alone: false,
            faint_terms: Vec::new(),
            want: wanted + SPARE,
            viewer: query.viewer,
            conditions: query.conditions,
            now: self.now(),
        };
        let options = Options {
            limit: wanted,
            ranking: Ranking::Score,
            dedupe: true,
            include_overridden: false,
            clusters: false,
        };
        let RankedHits { hits, total, inexact, .. } = self.hits(&spans, scope_query, options).await?;
        let hits: Vec<Hit> = hits.into_iter().skip(query.offset).take(query.limit).collect();
        self.parts.uses.note(hits.iter().map(|hit| hit.memory.id), self.now());
        Ok(SearchResults { hits, total, exact: !inexact, searched, threshold: 0.0, time: None })
    }

    pub(super) async fn query_forms(
        &self,
        caller: &MemoryCaller,
        text: &str,
        mode: KnowledgeMode,
    ) -> Result<QueryForms> {
        let vectors = match self.cx.embeddings.query(caller.tenant().as_str(), text).await {
            Ok(vectors) => vectors,
            Err(EmbedError::Disabled) => Vec::new(),
            // Words are found without it.
            Err(_) if mode == KnowledgeMode::Keyword => Vec::new(),
            Err(error) => return Err(embedding_failed(&error)),
        };
        if vectors.is_empty() && mode == KnowledgeMode::Semantic {
            let message =
                "there is no embedding provider, so nothing can be searched by meaning; use mode hybrid";
            return Err(Error::new(Code::NotImplemented, message));
        }
        Ok(QueryForms { vectors, terms: terms::query_for_entries(&self.cx.analyzer, text) })
    }

    /// Searches both halves of the store, for more matches if there are too few hits among the first.
    pub(super) async fn hits(
        &self,
        spans: &[Span],
        mut query: ScopeQuery,
        options: Options,
    ) -> Result<RankedHits> {
        loop {
            let ranked = self.parts.store.search(spans, &query, options).await?;
            if ranked.hits.len() >= options.limit || ranked.is_all || query.want >= MOST_MATCHES {
                return Ok(ranked);
            }
            query.want *= 8;
        }
    }
}
