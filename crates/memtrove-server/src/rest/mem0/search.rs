//! Searches, pages, and deleting all that a filter is about.

use super::extract::{JsonBody, Mem0Caller, Parameters};
use super::params::{EntityParameters, PageParameters};
use super::{ApiError, Mem0ErrorBody, decode, encode, respond, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::Result;
use memtrove_core::memories::MemoryCaller;
use memtrove_service::memories::Memories;
use memtrove_wire::mem0 as wire;
use serde_json::{Map, Value};

/// Searches the memories that a filter is about, by meaning and words.
#[utoipa::path(post, path = "/v3/memories/search/", tag = "mem0", operation_id = "mem0_search",
    request_body = wire::Mem0SearchRequest,
    responses((status = 200, description = "The memories found, strongest first", body = wire::Mem0Found),
        (status = 422, description = "The query is too long", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn search(
    Mem0Caller(caller): Mem0Caller,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let (search, fields) = decode::search(&body.value()?, memories.rules())?;
    let hits = memories.search_about(&caller, search).await?;
    let found = hits.iter().map(|hit| encode::found(hit, fields.as_deref()));
    Ok(respond(&wire::Mem0Found { results: found.collect::<Result<_>>()? }))
}

/// Lists the memories that a filter is about, newest first, page by page.
#[utoipa::path(post, path = "/v3/memories/", tag = "mem0", operation_id = "mem0_list", params(PageParameters),
    request_body = wire::Mem0ListRequest,
    responses((status = 200, description = "A page", body = wire::Mem0Page)))]
pub(in crate::rest) async fn list(
    Mem0Caller(caller): Mem0Caller,
    Parameters(params): Parameters,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut body = body.object()?;
    body.extend(decode::parameters(&params, &["page", "page_size"])?);
    Ok(respond(&page(&app.0.services.memories, &caller, body, "/v3/memories/").await?))
}

/// Deletes all memories with these ids.
#[utoipa::path(delete, path = "/v1/memories/", tag = "mem0", operation_id = "mem0_delete_all", params(EntityParameters),
    responses((status = 200, description = "They are gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn delete_all(
    Mem0Caller(caller): Mem0Caller,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    app.0.services.memories.delete_about(&caller, decode::ids(&params)?).await?;
    Ok(said("Memories deleted successfully!"))
}

/// A page, with the addresses of those beside it.
pub(super) async fn page(
    memories: &Memories,
    caller: &MemoryCaller,
    body: Map<String, Value>,
    address: &'static str,
) -> Result<wire::Mem0Page> {
    let (filters, paging) = decode::list(body, memories.rules(), address)?;
    let (found, total) = memories.list_about(caller, filters, paging.offset(), paging.size).await?;
    Ok(encode::page(&paging, &found, total))
}
