//! Lists and searches.

use super::extract::{Called, JsonBody, Parameters};
use super::params::{
    EmbeddingParameter, FilterParameters, IdentifierParameters, LayerParameter, ListParameters,
};
use super::{ApiError, MemoriesErrorBody, respond};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_core::memories::{List, MemoryCaller, Search};
use memtrove_wire::memories as wire;
use serde_json::{Value, json};

/// Lists the memories of one scope, newest first.
#[utoipa::path(get, path = "/v1/memories", tag = "memories",
    params(LayerParameter, IdentifierParameters, ListParameters, FilterParameters, EmbeddingParameter),
    responses((status = 200, description = "A page", body = wire::MemoryPage)))]
pub(in crate::rest) async fn list_memories(
    Called(caller): Called,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let list = List::from_params(&params, app.0.services.memories.rules(), &caller)?;
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
    let list = List::read(&body.value()?, app.0.services.memories.rules(), &caller)?;
    page(&app, &caller, list).await
}

async fn page(app: &App, caller: &MemoryCaller, list: List) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let with_embedding = list.include_embedding;
    let listed = memories.list(caller, list).await?;
    let shown: Vec<Value> =
        listed.memories.iter().map(|memory| memories.show(caller, memory, with_embedding)).collect();
    let body = json!({"memories": shown, "nextCursor": listed.next_cursor, "totalCount": listed.total});
    Ok(respond(StatusCode::OK, &body))
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
    let search = Search::read(&body.value()?, memories.rules(), &caller)?;
    let (with_embedding, explain) = (search.include_embedding, search.explain);
    let answer = memories.search(&caller, search).await?;
    let show = |hit| memories.show_hit(&caller, hit, with_embedding, explain);
    let results: Vec<Value> = answer.hits.iter().map(show).collect();
    let searched: Vec<&str> = answer.searched.iter().map(|layer| layer.as_str()).collect();
    let body = json!({
        "results": results,
        "totalCount": answer.total,
        "totalCountExact": answer.exact,
        "searchedLayers": searched,
        "thresholdUsed": answer.threshold,
    });
    Ok(respond(StatusCode::OK, &body))
}
