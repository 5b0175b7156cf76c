//! The routes an operator needs and no caller is asked who they are for: health, metrics, documentation.

use crate::rest::error::JSON_UTF8;
use crate::telemetry::metrics::Metrics;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde_json::json;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use utoipa_swagger_ui::{Config, SwaggerUi};

/// A store that takes longer than this to answer is not ready, whatever it answers then.
const READINESS_TIMEOUT: Duration = Duration::from_secs(1);

/// What tells how the server does, cheaply.
pub(super) const OPERATIONAL: [&str; 5] =
    ["/health/live", "/health/ready", "/ready", "/v1/health", "/metrics"];

/// Whether requests can be served, and if not, why not.
pub type Readiness = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Something that tells it.
pub fn readiness_of<F, Fut>(ready: F) -> Readiness
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    Arc::new(move || ready().boxed())
}

/// `/health/live`, `/health/ready` (also `/ready`), `/v1/health`, `/metrics` and the pointer at `/`.
pub fn operations(ready: Readiness, metrics: Metrics) -> Router {
    let readiness = get(move || readiness(ready.clone()));
    Router::new()
        .route("/", get(pointer))
        .route("/v1/health", get(alive))
        .route("/health/live", get(alive))
        .route("/health/ready", readiness.clone())
        .route("/ready", readiness)
        .route("/metrics", get(move || render(metrics.clone())))
}

/// `/openapi.json` and, at `/docs`, a page to read and try it with. The page comes out of the binary, whole.
pub fn docs(openapi: fn() -> utoipa::openapi::OpenApi) -> Router {
    // Made when it is first asked for: putting it together takes more memory than the rest of an idle server.
    let document: Arc<OnceLock<Bytes>> = Arc::default();
    // Serialising the description of our own routes cannot fail.
    let made = move || Bytes::from(openapi().to_json().unwrap_or_default());
    // Swagger UI would otherwise show every document to a validator on the web.
    let page = SwaggerUi::new("/docs").config(Config::from("/openapi.json").validator_url("none"));
    let answer = move || async move { body(JSON_UTF8, document.get_or_init(made).clone()) };
    Router::new().route("/openapi.json", get(answer)).merge(page)
}

async fn alive() -> Response {
    body(JSON_UTF8, Bytes::from_static(br#"{"status":"ok"}"#))
}

async fn readiness(ready: Readiness) -> Response {
    let reason = match tokio::time::timeout(READINESS_TIMEOUT, ready()).await {
        Ok(Ok(())) => return alive().await,
        Ok(Err(reason)) => reason,
        Err(_) => format!("no answer within {} s", READINESS_TIMEOUT.as_secs()),
    };
    let text = json!({ "status": "unavailable", "reason": reason }).to_string();
    (StatusCode::SERVICE_UNAVAILABLE, body(JSON_UTF8, text)).into_response()
}

async fn render(metrics: Metrics) -> Response {
    let text_format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    body(text_format, metrics.render().await)
}

async fn pointer() -> Response {
    let text = json!({
        "service": "memtrove",
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "docs": "/docs",
        "openapi": "/openapi.json",
    })
    .to_string();
    body(JSON_UTF8, text)
}

fn body(media_type: HeaderValue, bytes: impl Into<Bytes>) -> Response {
    ([(CONTENT_TYPE, media_type)], bytes.into()).into_response()
}
