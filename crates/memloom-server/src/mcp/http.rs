//! `/mcp`: the protocol over streamable HTTP. Every request stands alone: there are no sessions, so any node answers any
//! request, and answers are plain JSON.

use super::failure::{self, INVALID_REQUEST, PARSE_ERROR};
use super::{Bound, McpServer};
use crate::rest::App;
use crate::rest::extract::header;
use crate::shell::request_id;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use axum::routing::post;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Full};
use memloom_core::{Error, Result};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use std::sync::Arc;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";
/// The header by which a host says which project is worked on.
const PROJECT: &str = "X-Memloom-Project";
const JSON: &str = "application/json";

/// The route, on an app.
pub fn router(app: App) -> Router {
    Router::new().route(PATH, post(answer)).with_state(app)
}

async fn answer(State(app): State<App>, request: Request) -> Response {
    try_answer(app, request).await.unwrap_or_else(failure::response)
}

async fn try_answer(app: App, request: Request) -> Result<Response> {
    // Who is calling comes before the body: nobody is made to send one for nothing.
    let principal = app.authenticator().authenticate(request.headers()).await?;
    let project = header(request.headers(), PROJECT)?;
    let bound = Bound::new(principal, project, request_id::current().unwrap_or_default())?;
    let server = McpServer::new(app.services().clone(), bound);

    let (parts, body) = request.into_parts();
    let is_json = header(&parts.headers, CONTENT_TYPE.as_str())?.is_some_and(|kind| kind.starts_with(JSON));
    let body = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    // Whether the limit was hit is the shell's to know, and then it answers in our place.
    let body = body.await.map_err(|_| Error::bad_request("the body could not be read to its end"))?;
    if serde_json::from_slice::<IgnoredAny>(&body).is_err() {
        return Ok(failure::json_rpc(StatusCode::BAD_REQUEST, PARSE_ERROR, "the body is no JSON", None));
    }
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config(),
    );
    let response = service.handle(Request::from_parts(parts, Full::new(body))).await;
    Ok(in_shape(response.map(Body::new), is_json).await)
}

/// Who may call under which name is decided for all routes alike, by the authenticator and by CORS; how long a body may be, by
/// the shell.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(usize::MAX)
}

/// What the transport refuses in plain words, as JSON-RPC says it.
async fn in_shape(response: Response, is_json: bool) -> Response {
    let refused = response.status().is_client_error() || response.status().is_server_error();
    if !refused || response.headers().contains_key(CONTENT_TYPE) {
        return response;
    }
    let status = match response.status() {
        // It says so of every body that is no message of the protocol.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => StatusCode::BAD_REQUEST,
        status => status,
    };
    let words = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    failure::json_rpc(status, INVALID_REQUEST, &String::from_utf8_lossy(&words), None)
}
