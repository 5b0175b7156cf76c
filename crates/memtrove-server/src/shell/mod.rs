//! What every request passes through, whatever it asks for: id, limits, timeout, metrics, log, trace, CORS,
//! compression, panics, and the answers for routes that do not exist.
//!
//! It is one middleware and not a stack of ten, because a stack of ten costs more than most of our handlers. It knows
//! no route: [`shell`] goes around any router, so that a benchmark can put it around an empty one.

pub(crate) mod access;
mod answers;
mod bodies;
mod body_limit;
mod compression;
mod connection;
mod cors;
mod meter;
mod middleware;
mod operations;
mod pace;
pub mod request_id;
mod room;
mod serve;
mod socket;
mod whole_messages;

pub(crate) use body_limit::linger;
pub use connection::Connection;
pub(crate) use cors::AllowedOrigins;
pub use cors::{CorsConfig, CorsError, CorsOptions};
pub use operations::{Readiness, docs, operations, readiness_of};
pub use pace::Patience;
pub use serve::{Limits, run};

use crate::grpc;
use crate::rest::error::ApiError;
use crate::rest::surface;
use axum::response::Response;
use axum::{Extension, Router};
use http::{HeaderMap, Uri};
use memtrove_core::Error;
use std::time::Duration;

/// How the shell treats requests.
#[derive(Debug, Clone)]
pub struct ShellConfig {
    /// The most bytes a request body may have.
    pub body_limit: u64,
    /// The most bytes a request body of the files surface may have.
    pub files_body_limit: u64,
    /// The most bytes a request body of the memories surface may have, in either of its protocols.
    pub memories_body_limit: u64,
    /// The most bytes the bodies of all requests under way may have together; beyond, callers are told to wait.
    pub bodies_limit: u64,
    /// The most bytes of answers that may wait to be read; beyond, callers are told to wait.
    pub answers_limit: u64,
    /// How slowly bodies may come and answers may be read.
    pub patience: Patience,
    /// How long a handler may take from the end of its request's body to its response head. Streams may then go on for as long
    /// as they like.
    pub request_timeout: Duration,
    /// Routes whose handlers may take as long as they need.
    pub patient_routes: &'static [&'static str],
    /// Routes whose bodies come and go piece by piece: they limit and time themselves.
    pub streamed_routes: &'static [&'static str],
    /// Routes that only read, whatever their method says.
    pub reading_routes: &'static [&'static str],
    /// Whether to compress for clients that ask.
    pub compression: bool,
    /// Which web pages may call; none unless configured.
    pub cors: Option<CorsConfig>,
    /// Whether to answer only requests that call this machine `localhost` or by a loopback address, as local mode must.
    pub loopback_names_only: bool,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self {
            body_limit: 20 * 1024 * 1024,
            files_body_limit: 8 * 1024 * 1024,
            memories_body_limit: 20 * 1024 * 1024,
            bodies_limit: 256 * 1024 * 1024,
            answers_limit: 256 * 1024 * 1024,
            patience: Patience::default(),
            request_timeout: Duration::from_secs(30),
            patient_routes: &[],
            streamed_routes: &[],
            reading_routes: &[],
            compression: true,
            cors: None,
            loopback_names_only: false,
        }
    }
}

/// Puts the shell around a router. Its fallbacks for unknown routes and methods replace the router's own.
pub fn shell(router: Router, config: &ShellConfig) -> Router {
    let mut router = router.fallback(no_such_route).method_not_allowed_fallback(no_such_method);
    if let Some(cors) = &config.cors {
        router = router.layer(cors.layer.clone()).layer(Extension(cors.origins.clone()));
    }
    // Without `with_state` axum turns handlers into services again for every request, and the shell with them.
    router.layer(middleware::ShellLayer::new(config)).with_state(())
}

async fn no_such_route(uri: Uri, headers: HeaderMap) -> Response {
    if grpc::framing::is_asked_for(&headers) {
        return grpc::error::no_such_call();
    }
    surface::no_such_route(uri.path())
}

/// axum adds the `Allow` header to what this answers.
async fn no_such_method() -> ApiError {
    ApiError(Error::METHOD_NOT_ALLOWED)
}
