//! What the hosted service of mem0 has or had besides: it needs a language model, is about its accounts, or is what older clients
//! call. Each says so.

use super::ApiError;
use super::decode::needs_a_model;
use super::extract::Mem0Caller;
use http::Uri;
use memtrove_core::Error;
use memtrove_core::memories::Code;

/// The routes, any method of which is answered here.
pub(in crate::rest) const ROUTES: [&str; 16] = [
    "/v1/exports/",
    "/v1/exports/get/",
    "/v1/summary/",
    "/v1/feedback/",
    "/v2/profiles/jobs/",
    "/v2/profiles/jobs/{job}/",
    "/v2/profiles/settings/",
    "/v2/entities/user/{entity_id}/profile/",
    "/api/v1/webhooks/projects/{project}/",
    "/api/v1/webhooks/{webhook}/",
    "/api/v1/orgs/organizations/{*rest}",
    "/configure",
    "/v1/memories/search/",
    "/v1/entities/{entity_type}/{entity_id}/",
    "/v2/memories/",
    "/v2/memories/{*rest}",
];

/// Says why something is not here.
pub(in crate::rest) async fn absent(Mem0Caller(_): Mem0Caller, uri: Uri) -> ApiError {
    let path = uri.path();
    let is = |part: &str| path.contains(part);
    if is("/exports/") || is("/summary/") || is("/profile") {
        let what = "exports, summaries and profiles are written by a language model";
        return needs_a_model(what).into();
    }
    let is_older = path.starts_with("/v2/memories/")
        || path.starts_with("/v1/entities/")
        || path == "/v1/memories/search/";
    let message = if is_older {
        "this route is of an older mem0 client; mem0ai 2 has others, which are answered here: update the client"
    } else if is("/webhooks/") {
        "there are no webhooks here; follow /v1/changes instead"
    } else if path == "/configure" {
        "Memtrove is configured by its operator and has no language model; see docs/configuration.md"
    } else if is("/feedback/") {
        "feedback is not taken here; nothing was stored"
    } else {
        "there are no organizations and projects here; the API key says whose memories these are"
    };
    let refusal = Error::new(Code::InvalidRequest, message).with("reason", "not_offered");
    refusal.into()
}
