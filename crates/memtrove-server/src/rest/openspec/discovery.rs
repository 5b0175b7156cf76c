//! What this provider says about itself.

use super::{ApiError, NAME, VERSION, respond};
use crate::rest::App;
use crate::rest::memories::extract::Called;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_core::memories::Rules;
use memtrove_core::memories::openspec::{SOURCE_TYPES, Type, kinds};
use memtrove_wire::openspec as wire;

const DESCRIPTION: &str =
    "Memories of agents, users, sessions, projects, teams and organisations, found by meaning and words";

/// Says what this provider can do.
#[utoipa::path(get, path = "/openspec/v1/knowledge", tag = "knowledge",
    responses((status = 200, description = "The provider", body = wire::KnowledgeDiscovery)))]
pub(in crate::rest) async fn discover_knowledge(
    Called(caller): Called,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let dimensions = memories.capabilities().dimensions.map(|dimensions| dimensions as u64);
    let query_rate = memories.reads_per_second(&caller);
    Ok(respond(StatusCode::OK, &discovery(memories.rules(), dimensions, query_rate)))
}

/// The truth: without embeddings nothing is found by meaning, and a type all of whose layers are switched off is none.
fn discovery(rules: &Rules, dimensions: Option<u64>, query_rate: Option<u64>) -> wire::KnowledgeDiscovery {
    let words = |words: &[&str]| words.iter().copied().map(str::to_owned).collect::<Vec<_>>();
    let modes: &[&str] = if dimensions.is_some() { &["semantic", "keyword", "hybrid"] } else { &["keyword"] };
    let is_open = |of: &Type| rules.enabled_layers.iter().any(|layer| !kinds(&[*of], *layer).is_empty());
    let layers: Vec<String> =
        Type::ALL.into_iter().filter(is_open).map(|of| of.as_str().to_owned()).collect();
    let limits = &rules.limits;
    let provider = wire::KnowledgeProvider {
        name: NAME.to_owned(),
        version: VERSION.to_owned(),
        description: DESCRIPTION.to_owned(),
        capabilities: wire::KnowledgeCapabilities {
            query: wire::KnowledgeQueryCapabilities {
                modes: words(modes),
                distance_metrics: words(&["cosine", "euclidean", "dot"]),
                layers: layers.clone(),
            },
            storage: wire::KnowledgeStorageCapabilities {
                layers,
                batch_operations: words(&["create", "update", "delete", "upsert"]),
            },
            metadata: wire::KnowledgeMetadataCapabilities { custom: true, version_history: true },
            streaming: wire::KnowledgeStreamingCapabilities {
                formats: words(&["sse"]),
                types: words(&["updates", "query", "notifications"]),
            },
        },
        supported_sources: words(&SOURCE_TYPES),
        limits: wire::KnowledgeLimits {
            // A character has up to four bytes.
            max_entry_size: (4 * limits.content_length + limits.metadata_bytes) as u64,
            max_batch_size: limits.bulk_add as u64,
            max_embeddings_dim: dimensions.unwrap_or(0),
            query_rate_limit: query_rate,
        },
        features: wire::KnowledgeFeatures {
            semantic_search: dimensions.is_some(),
            hybrid_search: dimensions.is_some(),
            reranking: false,
            cross_layer_query: true,
            versioning: true,
            promotion: true,
        },
    };
    wire::KnowledgeDiscovery { provider }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrove_core::memories::Layer;

    #[test]
    fn what_is_switched_off_is_not_promised() {
        let all = discovery(&Rules::default(), Some(256), None).provider;
        assert_eq!(all.capabilities.query.layers.len(), 8);
        assert!(all.features.semantic_search);
        assert_eq!(all.limits.max_embeddings_dim, 256);

        let rules = Rules { enabled_layers: vec![Layer::User], ..Rules::default() };
        let little = discovery(&rules, None, None).provider;
        let layers = ["working", "episodic", "semantic", "procedural", "archival", "user"];
        assert_eq!(little.capabilities.storage.layers, layers);
        assert_eq!(little.capabilities.query.modes, ["keyword"]);
        assert!(!little.features.hybrid_search);
    }
}
