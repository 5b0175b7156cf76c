//! Search: every layer's matches, merged into one answer.

use super::provider::{Hits, MemoryProvider, Near, NearQuery, Span};
use super::{Memories, count, embedding_failed};
use memtrove_core::Result;
use memtrove_core::memories::duplicate::Profile;
use memtrove_core::memories::merge::{Contender, Options, Text, Walk};
use memtrove_core::memories::{
    Code, Conditions, Identifiers, Layer, Memory, MemoryCaller, MemoryId, Mode, Ranking, Refusal, ScopeKey,
    Search, Viewer,
};
use memtrove_core::recall::terms;
use memtrove_recall::embed::{EmbedError, QueryVector, Space};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// So many more matches than asked for are taken from each layer at first, since some may be dropped.
const SPARE: usize = 32;
/// An answer that many duplicates are dropped from is looked for among at most so many matches.
const MOST_MATCHES: usize = 65_536;

/// A result.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The entry.
    pub memory: Memory,
    /// 0..1.
    pub score: f64,
    /// The raw cosine, clamped to 0..1.
    pub similarity: f64,
    /// The raw cosine.
    pub cosine: f64,
    /// The entry that beats it.
    pub overridden_by: Option<MemoryId>,
    /// How the score came about, where asked for.
    pub explanation: Option<Value>,
}

/// What a search finds.
#[derive(Debug, Clone)]
pub struct Answer {
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
    /// Only the best so many are considered.
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
pub(super) struct Looked {
    pub vectors: Vec<QueryVector>,
    pub terms: Vec<u64>,
}

impl Memories {
    /// Searches the layers of a request.
    pub async fn search(&self, caller: &MemoryCaller, search: Search) -> Result<Answer> {
        let mode =
            if search.mode == Mode::Semantic { KnowledgeMode::Semantic } else { KnowledgeMode::Hybrid };
        let looked = self.look_for(caller, &search.query, mode).await?;
        let searched: Vec<Layer> = search.scopes.iter().map(ScopeKey::layer).collect();
        let spans = self.spans(caller, search.scopes).await?;
        let query = NearQuery {
            vectors: looked.vectors,
            terms: looked.terms,
            mode: search.mode,
            words_required: false,
            threshold: search.threshold,
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
        };
        let (mut hits, total, exact) = self.walk(caller, &spans, query, options, &|_| true).await?;
        self.parts.uses.note(hits.iter().map(|hit| hit.memory.id), self.now());
        for hit in &mut hits {
            if !search.explain {
                hit.explanation = None;
            }
        }
        for layer in &searched {
            let of_layer = hits.iter().filter(|hit| hit.memory.scope.layer() == *layer).count();
            count("memory.search", *layer);
            metrics::histogram!("memory_search_results", "layer" => layer.as_str()).record(of_layer as f64);
        }
        Ok(Answer { hits, total, exact, searched, threshold: search.threshold })
    }

    /// Searches as the knowledge protocol asks for it: by score, without a threshold of its own.
    pub async fn query(&self, caller: &MemoryCaller, query: KnowledgeQuery) -> Result<Answer> {
        let looked = self.look_for(caller, &query.query, query.mode).await?;
        let searched: Vec<Layer> = query.scopes.iter().map(ScopeKey::layer).collect();
        let spans = self.spans(caller, query.scopes).await?;
        let wanted = query.top_k.unwrap_or(query.offset + query.limit).min(MOST_MATCHES);
        let near = NearQuery {
            vectors: looked.vectors,
            terms: looked.terms,
            mode: if query.mode == KnowledgeMode::Semantic { Mode::Semantic } else { Mode::Hybrid },
            words_required: query.mode == KnowledgeMode::Keyword,
            threshold: 0.0,
            want: wanted + SPARE,
            viewer: query.viewer,
            conditions: query.conditions,
            now: self.now(),
        };
        let options =
            Options { limit: wanted, ranking: Ranking::Score, dedupe: true, include_overridden: false };
        let near_enough = |near: &Near| {
            query.distance_threshold.is_none_or(|most| query.metric.distance(near.cosine) <= most)
        };
        let (hits, total, exact) = self.walk(caller, &spans, near, options, &near_enough).await?;
        let hits: Vec<Hit> = hits.into_iter().skip(query.offset).take(query.limit).collect();
        self.parts.uses.note(hits.iter().map(|hit| hit.memory.id), self.now());
        Ok(Answer { hits, total, exact, searched, threshold: 0.0 })
    }

    pub(super) async fn look_for(
        &self,
        caller: &MemoryCaller,
        text: &str,
        mode: KnowledgeMode,
    ) -> Result<Looked> {
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
            return Err(Refusal::new(Code::NotImplemented, message).into());
        }
        Ok(Looked { vectors, terms: terms::query(&self.cx.analyzer, text) })
    }

    /// Asks the providers and walks through what they answer, until there is enough or nothing left.
    pub(super) async fn walk(
        &self,
        caller: &MemoryCaller,
        spans: &[Span],
        mut query: NearQuery,
        options: Options,
        admits: &(dyn Fn(&Near) -> bool + Sync),
    ) -> Result<(Vec<Hit>, usize, bool)> {
        let providers: Vec<Arc<dyn MemoryProvider>> =
            self.parts.catalogue.for_conditions(&query.conditions, spans).into_iter().cloned().collect();
        loop {
            let mut merged = Merged::default();
            for (number, provider) in providers.iter().enumerate() {
                merged.take(number, provider.nearest(spans.to_vec(), query.clone()).await?, admits);
            }
            let space = query.vectors.first().map(|vector| &vector.space);
            let Some((hits, all)) = merged.walk(caller, &providers, options, query.want, space).await? else {
                continue;
            };
            if hits.len() >= options.limit || (all && !merged.truncated) || query.want >= MOST_MATCHES {
                return Ok((hits, merged.total, merged.exact));
            }
            query.want *= 8;
        }
    }
}

/// The matches of all providers.
#[derive(Default)]
struct Merged {
    /// Each with the number of its provider.
    near: Vec<(usize, Near)>,
    total: usize,
    inexact: bool,
    exact: bool,
    truncated: bool,
}

impl Merged {
    fn take(&mut self, provider: usize, hits: Hits, admits: &(dyn Fn(&Near) -> bool + Sync)) {
        let found = hits.near.len();
        let near: Vec<Near> = hits.near.into_iter().filter(admits).collect();
        // What the provider could not know is taken off what it counted.
        self.total += hits.total.saturating_sub(found - near.len());
        self.inexact |= !hits.exact;
        self.exact = !self.inexact;
        self.truncated |= hits.truncated;
        self.near.extend(near.into_iter().map(|near| (provider, near)));
        self.near.sort_by(|(_, a), (_, b)| a.matched.by_precedence(&b.matched));
    }

    /// The answer, and whether every match was walked for it; `None` if an entry changed since it was matched, and the
    /// search is to be begun anew.
    async fn walk(
        &self,
        caller: &MemoryCaller,
        providers: &[Arc<dyn MemoryProvider>],
        options: Options,
        want: usize,
        space: Option<&Space>,
    ) -> Result<Option<(Vec<Hit>, bool)>> {
        let contenders = self.near.iter().filter_map(|(_, near)| {
            let matched = near.matched;
            Some(Contender {
                key: near.conflict_key.as_deref()?,
                id: matched.id,
                layer: matched.layer,
                updated_at: matched.updated_at,
            })
        });
        let mut walk = Walk::new(options, contenders);
        let mut loaded: HashMap<MemoryId, Memory> = HashMap::new();
        let batch = options.limit.max(8) + 8;
        // Ranked by score, what is far down cannot come up: the best are enough.
        let window = self.window(options, want);
        for chunk in window.chunks(batch) {
            if walk.is_full() {
                break;
            }
            load(caller, providers, chunk, &mut loaded).await?;
            for (_, near) in chunk {
                // Gone since: as if the search had come after.
                let Some(memory) = loaded.get(&near.matched.id) else { continue };
                if memory.updated_at != near.matched.updated_at {
                    return Ok(None);
                }
                let text = walk.wants_text(&near.matched).then(|| Text {
                    profile: Profile::of(&memory.content),
                    vector: space.and_then(|space| comparable(memory, space)).map(<[f32]>::to_vec),
                });
                walk.offer(near.matched, text);
            }
        }
        let by_id: HashMap<MemoryId, &Near> =
            self.near.iter().map(|(_, near)| (near.matched.id, near)).collect();
        let hits = walk.finish().into_iter().filter_map(|survivor| {
            let near = by_id.get(&survivor.matched.id)?;
            Some(Hit {
                memory: loaded.remove(&survivor.matched.id)?,
                score: near.matched.score,
                similarity: near.similarity,
                cosine: near.cosine,
                overridden_by: survivor.overridden_by,
                explanation: Some(json!({
                    "similarity": near.similarity,
                    "calibrated": near.evidence.similarity,
                    "lexical": near.evidence.coverage,
                    "relevance": near.matched.relevance,
                    "score": near.matched.score,
                })),
            })
        });
        Ok(Some((hits.collect(), window.len() == self.near.len())))
    }

    /// The matches that are walked, in the order of the walk.
    fn window(&self, options: Options, want: usize) -> Vec<&(usize, Near)> {
        let mut window: Vec<&(usize, Near)> = self.near.iter().collect();
        if options.ranking == Ranking::Score {
            window.sort_by(|(_, a), (_, b)| a.matched.by_score(&b.matched));
            window.truncate(want);
            window.sort_by(|(_, a), (_, b)| a.matched.by_precedence(&b.matched));
        }
        window
    }
}

/// Loads the entries of some matches from the providers that named them.
async fn load(
    caller: &MemoryCaller,
    providers: &[Arc<dyn MemoryProvider>],
    chunk: &[&(usize, Near)],
    loaded: &mut HashMap<MemoryId, Memory>,
) -> Result<()> {
    for (number, provider) in providers.iter().enumerate() {
        let ids: Vec<MemoryId> =
            chunk.iter().filter(|(of, _)| *of == number).map(|(_, near)| near.matched.id).collect();
        if ids.is_empty() {
            continue;
        }
        for memory in provider.load(caller.tenant(), &ids).await? {
            loaded.insert(memory.id, memory);
        }
    }
    Ok(())
}

/// The vector of an entry, if it is of this space: vectors of different spaces are never compared.
pub(super) fn comparable<'a>(memory: &'a Memory, space: &Space) -> Option<&'a [f32]> {
    let embedding = memory.embedding.as_ref()?;
    (Space::of(&embedding.model)? == *space).then_some(embedding.vector.as_slice())
}
