//! What clients ask before anything else.

use super::extract::Mem0Caller;
use super::{ApiError, respond};
use axum::response::Response;
use memtrove_wire::mem0 as wire;

/// Says whether an API key is good, and in which tenant. Clients want an organization and a project; both are that.
#[utoipa::path(get, path = "/v1/ping/", tag = "mem0", operation_id = "mem0_ping",
    responses((status = 200, description = "It is", body = wire::Mem0Pong)))]
pub(in crate::rest) async fn ping(Mem0Caller(caller): Mem0Caller) -> Result<Response, ApiError> {
    let tenant = caller.tenant().as_str().to_owned();
    let pong = wire::Mem0Pong {
        status: "ok".to_owned(),
        org_id: tenant.clone(),
        project_id: tenant,
        user_email: None,
    };
    Ok(respond(&pong))
}
