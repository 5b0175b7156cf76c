//! Searches, pages, and deleting all that a filter is about.

use super::encode::Paging;
use super::extract::{Called, JsonBody, Parameters};
use super::params::{EntityParameters, PageParameters, members};
use super::{ApiError, Mem0ErrorBody, encode, respond, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::Result;
use memtrove_core::memories::MemoryCaller;
use memtrove_core::memories::mem0::{Entities, List, Search};
use memtrove_core::memories::members::Members;
use memtrove_service::memories::Memories;
use memtrove_wire::mem0 as wire;
use serde_json::{Map, Value};

/// Searches the memories that a filter is about, by meaning and words.
#[utoipa::path(post, path = "/v3/memories/search/", tag = "mem0", operation_id = "mem0_search",
    request_body = wire::Mem0SearchRequest,
    responses((status = 200, description = "The memories found, strongest first", body = wire::Mem0Found),
        (status = 422, description = "The query is too long", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn search(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let Search { query, filters, limit, threshold, fields } = Search::read(&body.value()?, memories.rules())?;
    let hits = memories.search_about(&caller, filters, &query, threshold, limit).await?;
    let found = hits.iter().map(|hit| encode::found(hit, fields.as_deref()));
    Ok(respond(&wire::Mem0Found { results: found.collect::<Result<_>>()? }))
}

/// Lists the memories that a filter is about, newest first, page by page.
#[utoipa::path(post, path = "/v3/memories/", tag = "mem0", operation_id = "mem0_list", params(PageParameters),
    request_body = wire::Mem0ListRequest,
    responses((status = 200, description = "A page", body = wire::Mem0Page)))]
pub(in crate::rest) async fn list(
    Called(caller): Called,
    Parameters(params): Parameters,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut body = body.object()?;
    body.extend(members(&params, &["page", "page_size"])?);
    Ok(respond(&page(&app.0.services.memories, &caller, body, "/v3/memories/").await?))
}

/// Deletes all memories with these ids.
#[utoipa::path(delete, path = "/v1/memories/", tag = "mem0", operation_id = "mem0_delete_all", params(EntityParameters),
    responses((status = 200, description = "They are gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn delete_all(
    Called(caller): Called,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    delete_with(&app.0.services.memories, &caller, &params).await?;
    Ok(said("Memories deleted successfully!"))
}

/// A page, with the addresses of those beside it.
pub(super) async fn page(
    memories: &Memories,
    caller: &MemoryCaller,
    body: Map<String, Value>,
    address: &'static str,
) -> Result<wire::Mem0Page> {
    let list = List::read(&body.into(), memories.rules())?;
    let paging = Paging { address, page: list.page, size: list.page_size };
    let (found, total) = memories.list_about(caller, list.filters, paging.offset(), paging.size).await?;
    Ok(encode::page(&paging, &found, total))
}

/// Deletes everything with the ids that parameters name.
pub(super) async fn delete_with(
    memories: &Memories,
    caller: &MemoryCaller,
    params: &[(String, String)],
) -> Result<usize> {
    let body = Value::Object(members(params, &[])?);
    memories.delete_about(caller, Entities::read(Members::body(&body)?)?).await
}
