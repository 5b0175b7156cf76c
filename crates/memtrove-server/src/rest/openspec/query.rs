//! Queries: by meaning, by words, or both.

use super::encode::{self, Show};
use super::{ApiError, OpenSpecErrorBody, decode, fresh_id, provider, respond};
use crate::rest::App;
use crate::rest::memories::extract::{Called, JsonBody};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_core::Result;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::{MemoryCaller, Rules};
use memtrove_service::memories::{Hit, KnowledgeMode, KnowledgeQuery, Metric};
use memtrove_wire::openspec as wire;
use std::time::Instant;

/// Finds entries, best first.
#[utoipa::path(post, path = "/openspec/v1/knowledge/query", tag = "knowledge",
    request_body = wire::KnowledgeQueryRequest,
    responses((status = 200, description = "The entries found, best first", body = wire::KnowledgeResults),
        (status = 422, description = "The query is too long", body = OpenSpecErrorBody)))]
pub(in crate::rest) async fn query_knowledge(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let memories = &app.0.services.memories;
    let body = body.value()?;
    let asked = ParsedQuery::read(Members::body(&body)?, memories.rules(), &caller)?;
    let answer = memories.query(&caller, asked.query).await?;
    let body = wire::KnowledgeResults {
        query_id: fresh_id(),
        results: answer.hits.iter().map(|hit| asked.shown.result(hit)).collect(),
        metadata: wire::KnowledgeQueryMetadata {
            total_results: answer.total as u64,
            execution_time_ms: started.elapsed().as_secs_f64() * 1e3,
            layers_queried: asked.types,
            provider: provider(),
        },
    };
    Ok(respond(StatusCode::OK, &body))
}

/// What a query asks for.
pub(super) struct ParsedQuery {
    pub query: KnowledgeQuery,
    /// How its results are shown.
    pub shown: Shown,
    /// The layer types it looks at.
    types: Vec<String>,
}

/// How results are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    entry: Show,
    /// None for queries by words, which measure no distance.
    metric: Option<Metric>,
}

impl ParsedQuery {
    /// Reads the body of a query, in the order of a search: types and ranges, layers, identifiers, rights, lengths.
    pub fn read(body: Members<'_>, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let query = body.required("query", body.spoken("query"))?;
        let mode = body.word("mode", mode, &MODES)?.unwrap_or(KnowledgeMode::Semantic);
        let options = Options::read(body.object("options", "options.")?, rules)?;
        let filters = body.object("filters", "filters.")?;
        let layer = body.object("layer", "layer.")?;

        let reach = decode::reach(layer, rules, caller)?;
        let conditions = reach.conditions(decode::filter(filters)?);
        rules.check_query(query)?;
        let types = reach.types().into_iter().map(|of| of.as_str().to_owned()).collect();
        let metric = (mode != KnowledgeMode::Keyword).then_some(options.metric);
        let query = KnowledgeQuery {
            query: query.to_owned(),
            viewer: caller.viewer(&reach.identifiers),
            scopes: reach.scopes,
            identifiers: reach.identifiers,
            conditions,
            mode,
            metric: options.metric,
            distance_threshold: options.distance_threshold,
            top_k: options.top_k,
            offset: options.offset,
            limit: options.limit,
        };
        Ok(Self { query, shown: Shown { entry: options.show, metric }, types })
    }
}

impl Shown {
    /// A result as the protocol shows it.
    pub fn result(self, hit: &Hit) -> wire::KnowledgeResult {
        encode::result(hit, self.entry, self.metric)
    }
}

struct Options {
    limit: usize,
    offset: usize,
    distance_threshold: Option<f64>,
    metric: Metric,
    show: Show,
    top_k: Option<usize>,
}

impl Options {
    fn read(given: Option<Members<'_>>, rules: &Rules) -> Result<Self> {
        let nothing = serde_json::Map::new();
        let options = given.unwrap_or(Members::within(&nothing, "options."));
        let distance_threshold = options.number("distance_threshold", 0.0..=f64::MAX)?;
        Ok(Self {
            limit: options.limit("limit", rules.search_limit, rules.limits.search_limit)?,
            offset: count(options.integer("offset", 0..=i64::MAX)?).unwrap_or(0),
            distance_threshold,
            metric: options.word("distance_metric", metric, &METRICS)?.unwrap_or_default(),
            show: Show {
                content: options.boolean("include_content")?.unwrap_or(true),
                embedding: options.flag("include_embeddings")?,
            },
            top_k: count(options.integer("top_k", 1..=i64::MAX)?),
        })
    }
}

fn count(number: Option<i64>) -> Option<usize> {
    number.and_then(|number| usize::try_from(number).ok())
}

const MODES: [&str; 3] = ["semantic", "keyword", "hybrid"];

fn mode(word: &str) -> Option<KnowledgeMode> {
    let all = [KnowledgeMode::Semantic, KnowledgeMode::Keyword, KnowledgeMode::Hybrid];
    all.into_iter().zip(MODES).find_map(|(mode, name)| name.eq_ignore_ascii_case(word).then_some(mode))
}

const METRICS: [&str; 3] = ["cosine", "euclidean", "dot"];

fn metric(word: &str) -> Option<Metric> {
    let all = [Metric::Cosine, Metric::Euclidean, Metric::Dot];
    all.into_iter().zip(METRICS).find_map(|(metric, name)| name.eq_ignore_ascii_case(word).then_some(metric))
}

#[cfg(test)]
mod tests;
