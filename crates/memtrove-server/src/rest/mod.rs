//! The REST API: one handler per operation, each of them decode, one call of the service, encode.

mod admin;
pub(crate) mod attachments;
mod changes;
mod conversations;
pub(crate) mod entries;
pub mod error;
pub(crate) mod extract;
pub mod files;
pub mod mem0;
mod memberships;
pub mod memories;
mod openapi;
pub mod openspec;
pub(crate) mod operation;
mod reply;
mod responses;
pub(crate) mod search;
pub mod stats;
pub mod surface;
#[cfg(test)]
mod testing;
mod transfers;

pub use attachments::Uploads;
pub use openapi::document;

use crate::auth::Authenticator;
use crate::forward::Peers;
use axum::Router;
use axum::routing::{any, get};
use files::documents::no_path;
use http::HeaderName;
use memtrove_service::Services;
use stats::Prometheus;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Says of an answer that it was given before, under the same key.
pub(crate) const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What handlers work with.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    services: Services,
    authenticator: Authenticator,
    prometheus: Prometheus,
    peers: Arc<Peers>,
    uploads: Uploads,
}

impl App {
    /// Puts the API on the use cases. `peers` are the other nodes, to whom requests for what they hold go on; `uploads` are
    /// let in so many at once.
    pub fn new(
        services: Services,
        authenticator: Authenticator,
        prometheus: Prometheus,
        peers: Arc<Peers>,
        uploads: Uploads,
    ) -> Self {
        Self(Arc::new(Parts { services, authenticator, prometheus, peers, uploads }))
    }

    /// Who is uploading attachments now.
    pub(crate) fn uploads(&self) -> &Uploads {
        &self.0.uploads
    }

    /// The use cases.
    pub(crate) fn services(&self) -> &Services {
        &self.0.services
    }

    /// Who tells callers apart.
    pub(crate) fn authenticator(&self) -> &Authenticator {
        &self.0.authenticator
    }
}

/// Routes that may take longer than a request usually may: they work in batches and say so, or answer at the end.
pub const PATIENT_ROUTES: &[&str] = &[
    "/v1/tenants/{tenant_id}/users/{user_id}/memory",
    "/v1/tenants/{tenant_id}/users/{user_id}/retention:apply",
    "/v1/users:forget",
    "/v1/admin/evict",
    "/v1/memories/",
    "/v1/batch/",
    "/v2/entities/{entity_type}/{entity_id}/",
    "/memories",
    "/reset",
    "/v1/conversations/{conversationId}/response",
    "/memory.v1.ResponseRecorderService/Cancel",
];

/// The routes of the API, on an app.
pub fn router(app: App) -> Router {
    let no_path = || get(no_path).put(no_path).patch(no_path);
    let router: Router<App> = routes().split_for_parts().0;
    let router = mem0::absent::ROUTES
        .into_iter()
        .fold(router, |router, route| router.route(route, any(mem0::absent::absent)));
    router
        .route("/v1/tenants/{tenant_id}/users/{user_id}/files", no_path())
        .route("/v1/tenants/{tenant_id}/users/{user_id}/files/", no_path())
        .with_state(app)
}

/// Every route, with its description. Literal segments win over `{conversationId}`.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(conversations::list_conversations, conversations::create_conversation))
        .routes(routes!(
            conversations::get_conversation,
            conversations::update_conversation,
            conversations::delete_conversation
        ))
        .routes(routes!(conversations::fork_conversation))
        .routes(routes!(conversations::list_forks))
        .routes(routes!(entries::list_entries, entries::append_entry))
        .routes(routes!(entries::sync_entries))
        .routes(routes!(memberships::list_memberships, memberships::share_conversation))
        .routes(routes!(memberships::update_membership, memberships::delete_membership))
        .routes(routes!(transfers::list_transfers, transfers::create_transfer))
        .routes(routes!(transfers::get_transfer, transfers::delete_transfer))
        .routes(routes!(transfers::accept_transfer))
        .routes(routes!(search::search_conversations))
        .routes(routes!(search::index_conversations))
        .routes(routes!(search::list_unindexed))
        .routes(routes!(responses::replay_response, responses::cancel_response))
        .routes(routes!(attachments::create_attachment))
        .routes(routes!(attachments::get_attachment, attachments::delete_attachment))
        .routes(routes!(attachments::download_url))
        .routes(routes!(attachments::download_signed))
        .routes(routes!(changes::list_changes))
        .routes(routes!(admin::list_conversations))
        .routes(routes!(admin::get_conversation, admin::delete_conversation))
        .routes(routes!(admin::restore_conversation))
        .routes(routes!(admin::list_entries))
        .routes(routes!(admin::list_memberships))
        .routes(routes!(admin::list_forks))
        .routes(routes!(admin::search_conversations))
        .routes(routes!(admin::evict))
        .routes(routes!(admin::stats_summary))
        .routes(routes!(admin::stats))
        .routes(routes!(attachments::admin::list_attachments))
        .routes(routes!(attachments::admin::get_attachment, attachments::admin::delete_attachment))
        .routes(routes!(attachments::admin::attachment_content))
        .routes(routes!(attachments::admin::attachment_download_url))
        .routes(routes!(files::documents::list_files))
        .routes(routes!(files::documents::get_file, files::documents::put_file, files::documents::patch_file))
        .routes(routes!(files::removal::delete_file))
        .routes(routes!(files::removal::move_file))
        .routes(routes!(files::documents::assemble_context))
        .routes(routes!(files::events::write_event))
        .routes(routes!(files::events::search_events))
        .routes(routes!(files::jobs::reindex_events))
        .routes(routes!(files::jobs::reindex_tenant))
        .routes(routes!(files::jobs::get_job))
        .routes(routes!(files::audit::list_audit))
        .routes(routes!(files::audit::get_audit))
        .routes(routes!(files::audit::reconstruct_version))
        .routes(routes!(files::lifecycle::apply_retention))
        .routes(routes!(files::lifecycle::forget_user))
        .routes(routes!(files::lifecycle::forget_user_by_id))
        .routes(routes!(memories::search::list_memories, memories::entries::add_memory))
        .routes(routes!(
            memories::entries::get_memory,
            memories::entries::update_memory,
            memories::entries::delete_memory
        ))
        .routes(routes!(memories::search::filter_memories))
        .routes(routes!(memories::search::search_memories))
        .routes(routes!(memories::bulk::bulk_add))
        .routes(routes!(memories::bulk::bulk_delete))
        .routes(routes!(memories::bulk::clear_memories))
        .routes(routes!(memories::lifecycle::archive_memory))
        .routes(routes!(memories::lifecycle::restore_memory))
        .routes(routes!(memories::lifecycle::promote_memory))
        .routes(routes!(memories::lifecycle::decay_memories))
        .routes(routes!(memories::lifecycle::consolidate_memories))
        .routes(routes!(memories::introspection::memory_capabilities))
        .routes(routes!(memories::introspection::memory_health))
        .routes(routes!(memories::sessions::end_session))
        .routes(routes!(memories::facts::list_facts, memories::facts::add_fact))
        .routes(routes!(memories::facts::query_facts))
        .routes(routes!(
            memories::facts::get_fact,
            memories::facts::update_fact,
            memories::facts::delete_fact
        ))
        .routes(routes!(openspec::discovery::discover_knowledge))
        .routes(routes!(openspec::query::query_knowledge))
        .routes(routes!(openspec::entries::create_knowledge))
        .routes(routes!(openspec::batch::batch_knowledge))
        .routes(routes!(openspec::stream::stream_knowledge))
        .routes(routes!(
            openspec::entries::get_knowledge,
            openspec::entries::replace_knowledge,
            openspec::entries::delete_knowledge
        ))
        .routes(routes!(openspec::entries::knowledge_metadata))
        .routes(routes!(mem0::system::ping))
        .routes(routes!(mem0::entries::add))
        .routes(routes!(mem0::search::search))
        .routes(routes!(mem0::search::list))
        .routes(routes!(mem0::search::delete_all))
        .routes(routes!(mem0::entries::get, mem0::entries::update, mem0::entries::delete))
        .routes(routes!(mem0::history::history))
        .routes(routes!(mem0::batch::batch_update, mem0::batch::batch_delete))
        .routes(routes!(mem0::entities::entities))
        .routes(routes!(mem0::entities::delete_entity))
        .routes(routes!(
            mem0::published::create_memories,
            mem0::published::get_memories,
            mem0::published::delete_memories
        ))
        .routes(routes!(
            mem0::published::get_memory,
            mem0::published::update_memory,
            mem0::published::delete_memory
        ))
        .routes(routes!(mem0::published::memory_history))
        .routes(routes!(mem0::published::search_memories))
        .routes(routes!(mem0::published::reset))
}
