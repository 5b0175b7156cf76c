//! Parameters that the OpenAPI document describes; the rules of the domain read them.
#![allow(dead_code, reason = "describes parameters in the OpenAPI document; nothing makes these types")]

use memtrove_wire::memories::{MemoryKind, MemoryLayer, MemorySourceType, MemoryState};
use utoipa::IntoParams;

/// The identifiers of a scope.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct IdentifierParameters {
    /// The agent.
    #[param(max_length = 255, nullable = false)]
    agent_id: Option<String>,
    /// The user.
    #[param(max_length = 255, nullable = false)]
    user_id: Option<String>,
    /// The session.
    #[param(max_length = 255, nullable = false)]
    session_id: Option<String>,
    /// The project.
    #[param(max_length = 255, nullable = false)]
    project_id: Option<String>,
    /// The team.
    #[param(max_length = 255, nullable = false)]
    team_id: Option<String>,
    /// The organisation.
    #[param(max_length = 255, nullable = false)]
    org_id: Option<String>,
    /// The tenant; no other may be named.
    #[param(max_length = 255, nullable = false)]
    company_id: Option<String>,
}

/// The layer that a request by id means, besides the identifiers: something in another scope is not found.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LayerAssertion {
    /// Only if it is in this layer. The identifiers are asserted likewise.
    #[param(nullable = false)]
    layer: Option<MemoryLayer>,
}

/// The layer of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LayerParameter {
    /// Whose.
    layer: MemoryLayer,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct EmbeddingParameter {
    /// With the embedding.
    #[param(nullable = false)]
    include_embedding: Option<bool>,
}

/// Conditions on metadata that parameters can say.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct FilterParameters {
    /// With at least one of these tags.
    #[param(nullable = false)]
    tag: Option<Vec<String>>,
    /// From this kind of source.
    #[param(nullable = false)]
    source_type: Option<MemorySourceType>,
    /// Only those that point at a document, or only those that do not.
    #[param(nullable = false)]
    has_knowledge_pointer: Option<bool>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct ListParameters {
    /// The most memories; 50 unless said otherwise.
    #[param(minimum = 1, maximum = 100, nullable = false)]
    limit: Option<i64>,
    /// Where the page before this one ended.
    #[param(nullable = false)]
    cursor: Option<String>,
    /// Only of these kinds; all but archival unless said otherwise.
    #[param(nullable = false)]
    kind: Option<Vec<MemoryKind>>,
    /// Happened or made no earlier (RFC 3339).
    #[param(format = DateTime, nullable = false)]
    from: Option<String>,
    /// Happened or made no later (RFC 3339).
    #[param(format = DateTime, nullable = false)]
    to: Option<String>,
    /// Only in this state.
    #[param(nullable = false)]
    state: Option<MemoryState>,
    /// Archived ones, too.
    #[param(nullable = false)]
    include_archived: Option<bool>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct FactParameters {
    /// With this type.
    #[param(nullable = false)]
    fact_type: Option<String>,
    /// With this subject.
    #[param(nullable = false)]
    subject: Option<String>,
    /// With this predicate.
    #[param(nullable = false)]
    predicate: Option<String>,
    /// With this object.
    #[param(nullable = false)]
    object: Option<String>,
    /// At least so sure.
    #[param(minimum = 0, maximum = 1, nullable = false)]
    min_confidence: Option<f64>,
    /// Only the strongest of those with one subject and predicate.
    #[param(nullable = false)]
    resolve: Option<bool>,
    /// The most facts; 100 unless said otherwise.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<i64>,
    /// Where the page before this one ended.
    #[param(nullable = false)]
    cursor: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct IfMatch {
    /// The version to act on; `*` is any.
    #[param(rename = "If-Match", nullable = false)]
    if_match: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct IfNoneMatch {
    /// An ETag that the caller has: 304 if it is still current.
    #[param(rename = "If-None-Match", nullable = false)]
    if_none_match: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct IdempotencyKey {
    /// Makes a repetition return the first result.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 128, nullable = false)]
    idempotency_key: Option<String>,
}
