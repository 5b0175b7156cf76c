//! What the hosted service of mem0 has besides: it needs a language model, or is about its accounts. Each says so.

use super::Mem0Error;
use super::extract::Called;
use http::Uri;
use memloom_core::Error;
use memloom_core::memories::mem0::needs_a_model;
use memloom_core::memories::{Code, Refusal};

/// The routes, any method of which is answered here.
pub(in crate::rest) const ROUTES: [&str; 12] = [
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
];

/// Says why something is not here.
pub(in crate::rest) async fn absent(Called(_): Called, uri: Uri) -> Mem0Error {
    let path = uri.path();
    let is = |part: &str| path.contains(part);
    if is("/exports/") || is("/summary/") || is("/profile") {
        let what = "exports, summaries and profiles are written by a language model";
        return needs_a_model(what).into();
    }
    let message = if is("/webhooks/") {
        "there are no webhooks here; follow /v1/changes instead"
    } else if path == "/configure" {
        "Memloom is configured by its operator and has no language model; see docs/configuration.md"
    } else if is("/feedback/") {
        "feedback is not taken here; nothing was stored"
    } else {
        "there are no organizations and projects here; the API key says whose memories these are"
    };
    let refusal = Refusal::new(Code::InvalidRequest, message).with("reason", "not_offered");
    Error::from(refusal).into()
}
