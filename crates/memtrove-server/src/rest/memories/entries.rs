//! One memory at a time: add, get, update, delete.

use super::decode::{self, Params, answer_key, assertion, if_match};
use super::extract::{Called, Id, JsonBody, Parameters};
use super::params::{
    EmbeddingParameter, IdempotencyKey, IdentifierParameters, IfMatch, IfNoneMatch, LayerAssertion,
};
use super::{ApiError, MemoriesErrorBody, answer, encode, no_store, respond, tagged};
use crate::rest::App;
use crate::rest::extract::header;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use memtrove_core::memories::{MemoryId, precondition};
use memtrove_service::memories::Updated;
use memtrove_wire::memories as wire;

/// Remembers something.
#[utoipa::path(post, path = "/v1/memories", tag = "memories", params(IdempotencyKey),
    request_body = wire::AddMemoryRequest,
    responses((status = 201, description = "The memory", body = wire::AddedMemory,
            headers(("ETag" = String, description = "Its version"), ("Location" = String, description = "Where it is"))),
        (status = 200, description = "The memory that stated this fact already, changed", body = wire::AddedMemory,
            headers(("ETag" = String, description = "Its version"))),
        (status = 422, description = "Too long, or too much metadata", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn add_memory(
    Called(caller): Called,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (memories, body) = (&app.0.services.memories, body.value()?);
    let key = answer_key(&headers, "memories", &body, encode::added_memory)?;
    let added = memories.add(&caller, decode::add(&body, memories.rules())?, key).await?;
    Ok(answer(added, encode::added_memory, "/v1/memories")?)
}

/// Reads a memory, archived ones too.
#[utoipa::path(get, path = "/v1/memories/{id}", tag = "memories",
    params(("id" = String, Path, description = "The memory"), LayerAssertion, IdentifierParameters, EmbeddingParameter,
        IfNoneMatch),
    responses((status = 200, description = "The memory", body = wire::OneMemory, headers(("ETag" = String, description = "Its version"))),
        (status = 304, description = "Not modified", headers(("ETag" = String, description = "Its version")))))]
pub(in crate::rest) async fn get_memory(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let with_embedding = Params::new(&params)?.flag("includeEmbedding")?;
    let known = header(&headers, "If-None-Match")?;
    let memory = memories.get(&caller, MemoryId::named(&id), &assertion(&params)?).await?;
    let etag = memory.etag();
    let response = if precondition::is_known(known.as_deref(), &memory) {
        no_store(StatusCode::NOT_MODIFIED.into_response())
    } else {
        let memory = encode::memory(memories.show(&caller, memory), with_embedding);
        respond(StatusCode::OK, &wire::OneMemory { memory })
    };
    Ok(tagged(response, &etag)?)
}

/// Changes a memory. Metadata are merged, member by member.
#[utoipa::path(patch, path = "/v1/memories/{id}", tag = "memories",
    params(("id" = String, Path, description = "The memory"), LayerAssertion, IdentifierParameters, IfMatch),
    request_body = wire::UpdateMemoryRequest,
    responses((status = 200, description = "The memory", body = wire::UpdatedMemory, headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The memory is at another version", body = MemoriesErrorBody),
        (status = 422, description = "Too long, or too much metadata", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn update_memory(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let (body, precondition) = (body.value()?, if_match(&headers)?);
    let change = decode::change(&body, precondition, memories.rules())?;
    let asserted = assertion(&params)?;
    let Updated { memory, embedding_regenerated } =
        memories.update(&caller, MemoryId::named(&id), &asserted, change).await?;
    let etag = memory.etag();
    let memory = encode::memory(memories.show(&caller, memory), false);
    let body = wire::UpdatedMemory { memory, embedding_regenerated };
    Ok(tagged(respond(StatusCode::OK, &body), &etag)?)
}

/// Deletes a memory. It is gone at once; deleting it again succeeds, too.
#[utoipa::path(delete, path = "/v1/memories/{id}", tag = "memories",
    params(("id" = String, Path, description = "The memory"), LayerAssertion, IdentifierParameters, IfMatch),
    responses((status = 200, description = "Whether it was there", body = wire::DeletedMemory),
        (status = 412, description = "The memory is at another version", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn delete_memory(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let (precondition, asserted) = (if_match(&headers)?, assertion(&params)?);
    let deleted =
        app.0.services.memories.delete(&caller, MemoryId::named(&id), &asserted, &precondition).await?;
    Ok(respond(StatusCode::OK, &wire::DeletedMemory { success: true, deleted }))
}
