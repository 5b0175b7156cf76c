//! Lists and searches.

use super::extract::{Called, JsonBody, Parameters};
use super::params::{
    EmbeddingParameter, FilterParameters, IdentifierParameters, LayerParameter, ListParameters,
};
use super::{ApiError, MemoriesErrorBody, decode, encode, respond};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_core::memories::{ListMemories, MemoryCaller};
use memtrove_service::memories::Listed;
use memtrove_wire::memories as wire;

/// Lists the memories of one scope, newest first.
#[utoipa::path(get, path = "/v1/memories", tag = "memories",
    params(LayerParameter, IdentifierParameters, ListParameters, FilterParameters, EmbeddingParameter),
    responses((status = 200, description = "A page", body = wire::MemoryPage)))]
pub(in crate::rest) async fn list_memories(
    Called(caller): Called,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let list = decode::list(&params, app.0.services.memories.rules())?;
    page(&app, &caller, list).await
}

/// Lists the memories of one scope, newest first, with every filter there is.
#[utoipa::path(post, path = "/v1/memories:list", tag = "memories",
    request_body = wire::ListMemoriesRequest,
    responses((status = 200, description = "A page", body = wire::MemoryPage)))]
pub(in crate::rest) async fn filter_memories(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let list = decode::filter(&body.value()?, app.0.services.memories.rules())?;
    page(&app, &caller, list).await
}

async fn page(app: &App, caller: &MemoryCaller, list: ListMemories) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let with_embedding = list.include_embedding;
    let Listed { memories: listed, next_cursor, total } = memories.list(caller, list).await?;
    let show = |memory| encode::memory(memories.show(caller, memory), with_embedding);
    let shown = listed.into_iter().map(show).collect();
    let page = wire::MemoryPage { memories: shown, next_cursor, total_count: total as u64 };
    Ok(respond(StatusCode::OK, &page))
}

/// Searches memories by meaning and words, in every layer that the identifiers open.
#[utoipa::path(post, path = "/v1/memories:search", tag = "memories",
    request_body = wire::SearchMemoriesRequest,
    responses((status = 200, description = "The memories found, strongest first", body = wire::SearchedMemories),
        (status = 422, description = "The query is too long", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn search_memories(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let search = decode::search(&body.value()?, memories.rules())?;
    let (with_embedding, explain) = (search.include_embedding, search.explain);
    let answer = memories.search(&caller, search).await?;
    let show = |hit| encode::hit(memories.show_hit(&caller, hit), with_embedding, explain);
    let body = wire::SearchedMemories {
        results: answer.hits.into_iter().map(show).collect(),
        total_count: answer.total as u64,
        total_count_exact: answer.exact,
        searched_layers: answer.searched.into_iter().map(Into::into).collect(),
        threshold_used: answer.threshold,
        time: answer.time.map(encode::asked_time),
    };
    Ok(respond(StatusCode::OK, &body))
}
