//! Facts: memories that state something of something.

use super::decode::{self, answer_key, assertion, if_match};
use super::extract::{Called, Id, JsonBody, Parameters};
use super::params::{
    FactParameters, FilterParameters, IdempotencyKey, IdentifierParameters, IfMatch, IfNoneMatch,
    LayerAssertion, LayerParameter,
};
use super::{ApiError, MemoriesErrorBody, answer, encode, no_store, respond, tagged};
use crate::rest::App;
use crate::rest::extract::header;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use memtrove_core::memories::{MemoryCaller, MemoryId, QueryFacts, precondition};
use memtrove_service::memories::Listed;
use memtrove_wire::memories as wire;

/// States a fact; one that is stated already is changed.
#[utoipa::path(post, path = "/v1/facts", tag = "facts", params(IdempotencyKey),
    request_body = wire::AddFactRequest,
    responses((status = 201, description = "The fact", body = wire::AddedFact,
            headers(("ETag" = String, description = "Its version"), ("Location" = String, description = "Where it is"))),
        (status = 200, description = "The fact that was there already, changed", body = wire::AddedFact,
            headers(("ETag" = String, description = "Its version"))),
        (status = 422, description = "Too long, or too much metadata", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn add_fact(
    Called(caller): Called,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (memories, body) = (&app.0.services.memories, body.value()?);
    let key = answer_key(&headers, "facts", &body, encode::added_fact)?;
    let added = memories.add_fact(&caller, decode::add_fact(&body, memories.rules())?, key).await?;
    Ok(answer(added, encode::added_fact, "/v1/facts")?)
}

/// Lists the facts of one layer that are as wanted, the surest first.
#[utoipa::path(get, path = "/v1/facts", tag = "facts",
    params(LayerParameter, IdentifierParameters, FactParameters, FilterParameters),
    responses((status = 200, description = "A page", body = wire::FactPage)))]
pub(in crate::rest) async fn list_facts(
    Called(caller): Called,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let query = decode::list_facts(&params, app.0.services.memories.rules())?;
    page(&app, &caller, query).await
}

/// Lists the facts of several layers that are as wanted: by layer, the surest first.
#[utoipa::path(post, path = "/v1/facts:query", tag = "facts",
    request_body = wire::QueryFactsRequest,
    responses((status = 200, description = "A page", body = wire::FactPage)))]
pub(in crate::rest) async fn query_facts(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let query = decode::query_facts(&body.value()?, app.0.services.memories.rules())?;
    page(&app, &caller, query).await
}

async fn page(app: &App, caller: &MemoryCaller, query: QueryFacts) -> Result<Response, ApiError> {
    let Listed { memories, next_cursor, total } = app.0.services.memories.facts(caller, query).await?;
    let facts = memories.into_iter().map(encode::fact).collect::<Result<_, _>>()?;
    Ok(respond(StatusCode::OK, &wire::FactPage { facts, next_cursor, total_count: total as u64 }))
}

/// Reads a fact.
#[utoipa::path(get, path = "/v1/facts/{id}", tag = "facts",
    params(("id" = String, Path, description = "The fact"), LayerAssertion, IdentifierParameters, IfNoneMatch),
    responses((status = 200, description = "The fact", body = wire::OneFact, headers(("ETag" = String, description = "Its version"))),
        (status = 304, description = "Not modified", headers(("ETag" = String, description = "Its version")))))]
pub(in crate::rest) async fn get_fact(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let known = header(&headers, "If-None-Match")?;
    let memory = memories.get_fact(&caller, MemoryId::named(&id), &assertion(&params)?).await?;
    let etag = memory.etag();
    let response = if precondition::is_known(known.as_deref(), &memory) {
        no_store(StatusCode::NOT_MODIFIED.into_response())
    } else {
        respond(StatusCode::OK, &wire::OneFact { fact: encode::fact(memory)? })
    };
    Ok(tagged(response, &etag)?)
}

/// Changes a fact. Metadata are merged, member by member.
#[utoipa::path(patch, path = "/v1/facts/{id}", tag = "facts",
    params(("id" = String, Path, description = "The fact"), LayerAssertion, IdentifierParameters, IfMatch),
    request_body = wire::UpdateFactRequest,
    responses((status = 200, description = "The fact", body = wire::OneFact, headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The fact is at another version", body = MemoriesErrorBody),
        (status = 422, description = "Too long, or too much metadata", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn update_fact(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let (body, precondition) = (body.value()?, if_match(&headers)?);
    let change = decode::change_fact(&body, precondition, memories.rules())?;
    let asserted = assertion(&params)?;
    let updated = memories.update_fact(&caller, MemoryId::named(&id), &asserted, change).await?;
    let etag = updated.memory.etag();
    let body = wire::OneFact { fact: encode::fact(updated.memory)? };
    Ok(tagged(respond(StatusCode::OK, &body), &etag)?)
}

/// Deletes a fact. It is gone at once; deleting it again succeeds, too.
#[utoipa::path(delete, path = "/v1/facts/{id}", tag = "facts",
    params(("id" = String, Path, description = "The fact"), LayerAssertion, IdentifierParameters, IfMatch),
    responses((status = 200, description = "Whether it was there", body = wire::DeletedMemory),
        (status = 412, description = "The fact is at another version", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn delete_fact(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let (precondition, asserted) = (if_match(&headers)?, assertion(&params)?);
    let memories = &app.0.services.memories;
    let deleted = memories.delete_fact(&caller, MemoryId::named(&id), &asserted, &precondition).await?;
    Ok(respond(StatusCode::OK, &wire::DeletedMemory { success: true, deleted }))
}
