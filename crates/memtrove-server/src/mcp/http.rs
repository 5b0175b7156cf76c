//! `/mcp`: the protocol over streamable HTTP. Every request stands alone: there are no sessions, so any node answers any
//! request, and answers are plain JSON.

use super::failure::{self, INVALID_REQUEST, PARSE_ERROR};
use super::{Bound, McpServer};
use crate::auth::loopback::is_this_machine;
use crate::rest::App;
use crate::rest::extract::header;
use crate::shell::AllowedOrigins;
use crate::shell::request_id::RequestId;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use axum::routing::post;
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, Full};
use memtrove_core::{Error, Result};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use std::sync::Arc;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";
/// The header by which a host says which project is worked on.
const PROJECT: &str = "X-Memtrove-Project";
const JSON: &str = "application/json";

/// The route, on an app.
pub fn router(app: App) -> Router {
    Router::new().route(PATH, post(answer)).with_state(app)
}

async fn answer(State(app): State<App>, request: Request) -> Response {
    try_answer(app, request).await.unwrap_or_else(failure::response)
}

async fn try_answer(app: App, request: Request) -> Result<Response> {
    require_known_origin(&app, &request)?;
    // Who is calling comes before the body, so that no caller sends one for nothing.
    let principal = app.authenticator().authenticate(request.headers()).await?;
    let project = header(request.headers(), PROJECT)?;
    let bound = Bound::new(principal, project, RequestId::of(request.extensions()))?;
    let server = McpServer::new(app.services().clone(), bound);

    let (mut parts, body) = request.into_parts();
    if !header(&parts.headers, CONTENT_TYPE.as_str())?.is_some_and(|kind| is_json(&kind)) {
        let message = "Content-Type must be application/json";
        return Ok(failure::json_rpc(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST, message, None));
    }
    // The transport compares letters.
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
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
    Ok(in_shape(response.map(Body::new)).await)
}

/// Refuses web pages that are not configured as origins. Programs send no origin.
fn require_known_origin(app: &App, request: &Request) -> Result<()> {
    let allowed = request.extensions().get::<AllowedOrigins>();
    let is_known = |origin: &HeaderValue| {
        allowed.is_some_and(|allowed| allowed.allows(origin))
            || (app.authenticator().is_local() && origin.to_str().is_ok_and(is_of_this_machine))
    };
    if request.headers().get_all(ORIGIN).iter().all(is_known) {
        return Ok(());
    }
    Err(Error::forbidden("web pages of this origin may not call; cors.origins names those that may"))
}

fn is_of_this_machine(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(is_this_machine)
}

/// Whether this is the media type of JSON, whatever its parameters.
fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(JSON)
}

/// Which pages may call is decided above; under which name, and how long a body may be, by the shell.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(usize::MAX)
}

/// What the transport refuses in plain words, as JSON-RPC says it.
async fn in_shape(response: Response) -> Response {
    let refused = response.status().is_client_error() || response.status().is_server_error();
    if !refused || response.headers().contains_key(CONTENT_TYPE) {
        return response;
    }
    let status = match response.status() {
        // It says so of every body that is no message of the protocol.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
        status => status,
    };
    let words = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    failure::json_rpc(status, INVALID_REQUEST, &String::from_utf8_lossy(&words), None)
}
