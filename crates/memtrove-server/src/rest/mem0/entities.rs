//! Whom there are memories about: users, agents, apps and runs.

use super::extract::{Mem0Caller, Parameters};
use super::params::EntityPageParameters;
use super::{ApiError, decode, encode, respond, said};
use crate::rest::App;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use memtrove_core::memories::Code;
use memtrove_core::memories::mem0::{Entities, Entity};
use memtrove_core::{Error, Result};
use memtrove_wire::mem0 as wire;

/// Lists whom there are memories about.
#[utoipa::path(get, path = "/v1/entities/", tag = "mem0", operation_id = "mem0_entities", params(EntityPageParameters),
    responses((status = 200, description = "Users, agents, apps and runs", body = wire::Mem0EntityPage)))]
pub(in crate::rest) async fn entities(
    Mem0Caller(caller): Mem0Caller,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let paging = decode::entity_page(&params)?;
    let (subjects, total) = app.0.services.memories.subjects(&caller, paging.offset(), paging.size).await?;
    Ok(respond(&encode::entity_page(&paging, subjects, total)))
}

/// Deletes all memories about somebody or something.
#[utoipa::path(delete, path = "/v2/entities/{entity_type}/{entity_id}/", tag = "mem0", operation_id = "mem0_delete_entity",
    params(("entity_type" = wire::Mem0EntityType, Path, description = "What it is"),
        ("entity_id" = String, Path, description = "Its id")),
    responses((status = 200, description = "They are gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn delete_entity(
    Mem0Caller(caller): Mem0Caller,
    path: Result<Path<(String, String)>, PathRejection>,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let not_found = || {
        let message = "memories are about a user, an agent, an app or a run, and about nothing else";
        Error::new(Code::MemoryNotFound, message)
    };
    // What cannot be decoded names nobody.
    let Path((kind, id)) = path.map_err(|_| not_found())?;
    let entity = Entity::parse(&kind).ok_or_else(not_found)?;
    // That there are none is no error: clients delete one after the other whom they were told of, and a memory of several goes
    // with the first.
    app.0.services.memories.delete_about(&caller, Entities::listed(entity, &id)).await?;
    Ok(said("Entity deleted successfully!"))
}
