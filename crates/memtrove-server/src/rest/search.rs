//! Searching, and giving entries the text that search finds them by.

use super::App;
use super::error::{ApiError, SearchTypeUnavailableBody};
use super::extract::{self, Authenticated, Body, Query, User};
use super::reply::{Ok200, page};
use axum::extract::State;
use memtrove_core::Result as CoreResult;
use memtrove_core::conversations::Entry;
use memtrove_service::PageRequest;
use memtrove_service::conversations::{
    Explanation, IndexItem, SearchHit, SearchPage, SearchRequest, SearchType, WeightsRequest,
};
use memtrove_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

/// Searches every conversation the caller can see.
#[utoipa::path(post, path = "/v1/conversations/search", tag = "search",
    request_body = wire::SearchConversationsRequest,
    responses((status = 200, description = "A page of results, best first", body = wire::SearchPage<wire::Entry>),
        (status = 501, description = "The search type is not available here", body = SearchTypeUnavailableBody)))]
pub(super) async fn search_conversations(
    User(caller): User,
    State(app): State<App>,
    body: Body,
) -> Result<Ok200<wire::SearchPage<wire::Entry>>, ApiError> {
    let request: wire::SearchConversationsRequest = body.object()?;
    let search = SearchRequest {
        query: request.query,
        search_type: search_type(request.search_type),
        after: extract::cursor([("after", request.after), ("afterCursor", request.after_cursor)])?,
        limit: request.limit,
        group_by_conversation: request.group_by_conversation.unwrap_or(true),
        include_entry: request.include_entry.unwrap_or(true),
        explain: request.explain.unwrap_or(false),
        actor: request.actor,
        weights: weights(request.weights),
    };
    let found = app.0.services.conversations.search(&caller, search).await?;
    Ok(Ok200(results(found)))
}

pub(super) fn results<E: From<Entry>>(found: SearchPage) -> wire::SearchPage<E> {
    let SearchPage { data, after, degraded } = found;
    wire::SearchPage { data: data.into_iter().map(result).collect(), after_cursor: after, degraded }
}

pub(crate) fn search_type(asked: Option<wire::SearchType>) -> SearchType {
    match asked {
        None | Some(wire::SearchType::Auto) => SearchType::Auto,
        Some(wire::SearchType::Semantic) => SearchType::Semantic,
        Some(wire::SearchType::FullText) => SearchType::FullText,
    }
}

pub(super) fn weights(asked: Option<wire::SearchWeights>) -> WeightsRequest {
    let wire::SearchWeights { lexical, context, by_another, asks } = asked.unwrap_or_default();
    WeightsRequest { lexical, context, by_another, asks }
}

fn result<E: From<Entry>>(hit: SearchHit) -> wire::SearchResult<E> {
    wire::SearchResult {
        conversation_id: hit.conversation_id,
        conversation_title: hit.conversation_title,
        entry_id: hit.entry_id,
        score: hit.score,
        highlights: hit.highlights,
        passage: hit.passage,
        entry: hit.entry.map(Into::into),
        explanation: hit.explanation.map(|explanation| explained(explanation, hit.score)),
    }
}

fn explained(explanation: Explanation, score: f64) -> wire::SearchExplanation {
    let ranked_by = |ranker: &str| wire::SearchExplanation {
        ranker: ranker.to_owned(),
        words: None,
        words_nearby: None,
        similarity: None,
        similarity_nearby: None,
        meaning: None,
        by_another: None,
        by_agent: None,
        asks: None,
    };
    match explanation {
        Explanation::FullText => ranked_by("fulltext"),
        Explanation::Semantic => wire::SearchExplanation { similarity: Some(score), ..ranked_by("semantic") },
        Explanation::Fused(parts) => wire::SearchExplanation {
            ranker: "fused".to_owned(),
            words: Some(parts.words),
            words_nearby: Some(parts.words_nearby),
            similarity: parts.similarity,
            similarity_nearby: parts.similarity_nearby,
            meaning: Some(parts.meaning),
            by_another: Some(parts.by_another),
            by_agent: Some(parts.by_agent),
            asks: Some(parts.asks),
        },
    }
}

/// Gives entries the text that search finds them by: all of them, or none. Needs the indexer role.
#[utoipa::path(post, path = "/v1/conversations/index", tag = "search",
    request_body = Vec<wire::IndexEntryRequest>,
    responses((status = 200, description = "How many", body = wire::IndexConversationsResponse)))]
pub(super) async fn index_conversations(
    Authenticated(principal): Authenticated,
    State(app): State<App>,
    body: Body,
) -> Result<Ok200<wire::IndexConversationsResponse>, ApiError> {
    principal.require(memtrove_core::identity::Role::Indexer)?;
    let items: Vec<wire::IndexEntryRequest> = body.objects()?;
    let items = items
        .into_iter()
        .map(|item| IndexItem {
            conversation_id: item.conversation_id,
            entry_id: item.entry_id,
            indexed_content: item.indexed_content,
        })
        .collect();
    let indexed = app.0.services.conversations.index(&principal, items).await?;
    Ok(Ok200(wire::IndexConversationsResponse { indexed }))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct UnindexedQuery {
    /// The cursor of the page before.
    #[param(max_length = 100)]
    after: Option<String>,
    /// The same, by another name.
    #[param(max_length = 100)]
    after_cursor: Option<String>,
    /// The same, by yet another name.
    #[param(max_length = 100)]
    cursor: Option<String>,
    /// The size of the page; 100 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

impl UnindexedQuery {
    fn read(self) -> CoreResult<PageRequest<String>> {
        let after = extract::cursor([
            ("after", self.after),
            ("afterCursor", self.after_cursor),
            ("cursor", self.cursor),
        ])?;
        Ok(PageRequest { after, limit: extract::number("limit", self.limit)? })
    }
}

/// Lists history entries that nobody has given a text yet, oldest first. Needs the indexer role.
#[utoipa::path(get, path = "/v1/conversations/unindexed", tag = "search", params(UnindexedQuery),
    responses((status = 200, description = "A page of entries", body = wire::Page<wire::UnindexedEntry>)))]
pub(super) async fn list_unindexed(
    Authenticated(principal): Authenticated,
    Query(query): Query<UnindexedQuery>,
    State(app): State<App>,
) -> Result<Ok200<wire::Page<wire::UnindexedEntry>>, ApiError> {
    principal.require(memtrove_core::identity::Role::Indexer)?;
    let entries = app.0.services.conversations.unindexed(&principal, query.read()?).await?;
    Ok(Ok200(page(entries, |entry| wire::UnindexedEntry {
        conversation_id: entry.conversation_id,
        entry: entry.into(),
    })))
}
