//! One entry at a time: create, get, replace, delete, metadata.

use super::decode::{NewEntry, NextEntry};
use super::encode::{self, Show};
use super::{ApiError, OpenSpecErrorBody, decode, provided, respond, tagged};
use crate::rest::App;
use crate::rest::extract::header;
use crate::rest::memories::decode::Params;
use crate::rest::memories::extract::{Called, Id, JsonBody, Parameters};
use crate::rest::memories::no_store;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use memtrove_core::Result;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::{
    Assertion, Author, Memory, MemoryCaller, MemoryId, Precondition, precondition,
};
use memtrove_service::memories::Memories;
use memtrove_service::quota::CallKind;
use memtrove_wire::openspec as wire;
use serde_json::Value;

/// Creates an entry.
#[utoipa::path(post, path = "/openspec/v1/knowledge/create", tag = "knowledge",
    request_body = wire::WriteKnowledgeRequest,
    responses((status = 201, description = "The entry", body = wire::WrittenKnowledge, headers(("ETag" = String, description = "Its version"))),
        (status = 422, description = "Too long, or too much metadata", body = OpenSpecErrorBody)))]
pub(in crate::rest) async fn create_knowledge(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let body = body.value()?;
    let body = Members::body(&body)?;
    let NewEntry { add, generate_embedding } = decode::create(body, &caller)?;
    let embed = generate_embedding.unwrap_or(true);
    let memory = app.0.services.memories.create(&caller, add, embed).await?;
    let show = Show { content: true, embedding: generate_embedding == Some(true) };
    let answer = wire::WrittenKnowledge { entry: encode::entry(&memory, show), status: "created".to_owned() };
    Ok(tagged(respond(StatusCode::CREATED, &answer), &memory)?)
}

/// Reads an entry, archived ones too.
#[utoipa::path(get, path = "/openspec/v1/knowledge/{id}", tag = "knowledge",
    params(("id" = String, Path, description = "The entry"),
        ("If-None-Match" = Option<String>, Header, description = "An ETag that the caller has: 304 if it is still current")),
    responses((status = 200, description = "The entry", body = wire::OneKnowledgeEntry, headers(("ETag" = String, description = "Its version"))),
        (status = 304, description = "Not modified", headers(("ETag" = String, description = "Its version")))))]
pub(in crate::rest) async fn get_knowledge(
    Called(caller): Called,
    Id(id): Id,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let known = header(&headers, "If-None-Match")?;
    let memory = app.0.services.memories.get(&caller, MemoryId::named(&id), &Assertion::default()).await?;
    let response = if precondition::is_known(known.as_deref(), &memory) {
        provided(no_store(StatusCode::NOT_MODIFIED.into_response()))
    } else {
        respond(StatusCode::OK, &wire::OneKnowledgeEntry { entry: encode::text_entry(&memory) })
    };
    Ok(tagged(response, &memory)?)
}

/// Replaces an entry: what the request does not say is gone.
#[utoipa::path(put, path = "/openspec/v1/knowledge/{id}", tag = "knowledge",
    params(("id" = String, Path, description = "The entry"),
        ("If-Match" = Option<String>, Header, description = "The version to replace; `*` is any")),
    request_body = wire::WriteKnowledgeRequest,
    responses((status = 200, description = "The entry", body = wire::WrittenKnowledge, headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The entry is at another version", body = OpenSpecErrorBody),
        (status = 422, description = "Too long, or too much metadata", body = OpenSpecErrorBody)))]
pub(in crate::rest) async fn replace_knowledge(
    Called(caller): Called,
    Id(id): Id,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (body, if_match) = (body.value()?, header(&headers, "If-Match")?);
    let body = Members::body(&body)?;
    let precondition = Precondition::if_match(if_match.as_deref());
    let memory = replace(&app.0.services.memories, &caller, MemoryId::named(&id), precondition, body).await?;
    let answer = wire::WrittenKnowledge { entry: encode::text_entry(&memory), status: "updated".to_owned() };
    Ok(tagged(respond(StatusCode::OK, &answer), &memory)?)
}

/// Deletes an entry. Its content is gone at once, whichever way.
#[utoipa::path(delete, path = "/openspec/v1/knowledge/{id}", tag = "knowledge",
    params(("id" = String, Path, description = "The entry"),
        ("hard_delete" = Option<bool>, Query, description = "Without a trace; may be said in the body as well"),
        ("If-Match" = Option<String>, Header, description = "The version to delete; `*` is any")),
    request_body = Option<wire::DeleteKnowledgeRequest>,
    responses((status = 200, description = "Whether it was there", body = wire::DeletedKnowledge),
        (status = 412, description = "The entry is at another version", body = OpenSpecErrorBody)))]
pub(in crate::rest) async fn delete_knowledge(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let body = Value::Object(body.optional_object()?);
    decode::check_deletion(Members::body(&body)?)?;
    Params::new(&params)?.flag("hard_delete")?;
    let precondition = Precondition::if_match(header(&headers, "If-Match")?.as_deref());
    let memories = &app.0.services.memories;
    let deleted =
        memories.delete(&caller, MemoryId::named(&id), &Assertion::default(), &precondition).await?;
    Ok(respond(StatusCode::OK, &wire::DeletedKnowledge { deleted, entry_id: id }))
}

/// Says what is known about an entry, without what it says.
#[utoipa::path(get, path = "/openspec/v1/knowledge/{id}/metadata", tag = "knowledge",
    params(("id" = String, Path, description = "The entry"),
        ("include_custom" = Option<bool>, Query, description = "With `custom`")),
    responses((status = 200, description = "Metadata and versions", body = wire::KnowledgeEntryMetadata)))]
pub(in crate::rest) async fn knowledge_metadata(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let with_custom = Params::new(&params)?.flag("include_custom")?;
    let (memory, versions) = app.0.services.memories.versions(&caller, MemoryId::named(&id)).await?;
    let history = versions.iter().map(|version| wire::KnowledgeVersion {
        version: version.version,
        created_at: version.at.to_string(),
        created_by: author(&caller, &version.by).map(str::to_owned),
    });
    let answer = wire::KnowledgeEntryMetadata {
        entry_id: memory.id.0,
        metadata: encode::metadata(&memory, with_custom),
        source: encode::source(&memory),
        version_history: history.collect(),
    };
    Ok(respond(StatusCode::OK, &answer))
}

/// Replaces an entry by what a body describes.
pub(super) async fn replace(
    memories: &Memories,
    caller: &MemoryCaller,
    id: MemoryId,
    precondition: Precondition,
    body: Members<'_>,
) -> Result<Memory> {
    decode::check_options(body)?;
    let any = Assertion::default();
    let caller = &*memories.charge_once(caller, &any.identifiers, CallKind::Write).await?;
    let stored = memories.get(caller, id, &any).await?;
    match decode::replacement(body, &stored, &precondition)? {
        NextEntry::Fact(change) => Ok(memories.update_fact(caller, id, &any, change).await?.memory),
        NextEntry::Text(with) => memories.replace(caller, id, precondition, with).await,
    }
}

/// Who made a version, for those who may know.
fn author<'a>(caller: &MemoryCaller, by: &'a Author) -> Option<&'a str> {
    let may_know = caller.is_trusted() || (caller.user().is_some() && caller.user() == by.user.as_deref());
    by.user.as_deref().or(by.client.as_deref()).filter(|_| may_know)
}
