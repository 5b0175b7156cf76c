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
use serde_json::{Value, json};

const DESCRIPTION: &str =
    "Memories of agents, users, sessions, projects, teams and organisations, found by meaning and words";

/// Says what this provider can do.
#[utoipa::path(get, path = "/openspec/v1/knowledge", tag = "knowledge",
    responses((status = 200, description = "The provider", body = wire::KnowledgeDiscovery)))]
pub(in crate::rest) async fn discover_knowledge(
    Called(_): Called,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let dimensions = memories.capabilities()["embedding"]["dimensions"].as_u64();
    Ok(respond(StatusCode::OK, &discovery(memories.rules(), dimensions)))
}

/// The truth: without embeddings nothing is found by meaning, and a type all of whose layers are switched off is none.
fn discovery(rules: &Rules, dimensions: Option<u64>) -> Value {
    let modes: &[&str] = if dimensions.is_some() { &["semantic", "keyword", "hybrid"] } else { &["keyword"] };
    let is_open = |of: &Type| rules.enabled_layers.iter().any(|layer| !kinds(&[*of], *layer).is_empty());
    let layers: Vec<&str> = Type::ALL.into_iter().filter(is_open).map(Type::as_str).collect();
    let limits = &rules.limits;
    json!({"provider": {
        "name": NAME,
        "version": VERSION,
        "description": DESCRIPTION,
        "capabilities": {
            "query": {"modes": modes, "distance_metrics": ["cosine", "euclidean", "dot"], "layers": layers},
            "storage": {"layers": layers, "batch_operations": ["create", "update", "delete", "upsert"]},
            "metadata": {"custom": true, "version_history": true},
            "streaming": {"formats": ["sse"], "types": ["updates", "query", "notifications"]},
        },
        "supported_sources": SOURCE_TYPES,
        "limits": {
            // A character has up to four bytes.
            "max_entry_size": 4 * limits.content_length + limits.metadata_bytes,
            "max_batch_size": limits.bulk_add,
            "max_embeddings_dim": dimensions.unwrap_or(0),
            "query_rate_limit": null,
        },
        "features": {
            "semantic_search": dimensions.is_some(),
            "hybrid_search": dimensions.is_some(),
            "reranking": false,
            "cross_layer_query": true,
            "versioning": true,
            "promotion": true,
        },
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrove_core::memories::Layer;

    #[test]
    fn what_is_switched_off_is_not_promised() {
        let all = &discovery(&Rules::default(), Some(256))["provider"];
        assert_eq!(all["capabilities"]["query"]["layers"].as_array().unwrap().len(), 8);
        assert_eq!(all["features"]["semantic_search"], true);
        assert_eq!(all["limits"]["max_embeddings_dim"], 256);

        let rules = Rules { enabled_layers: vec![Layer::User], ..Rules::default() };
        let little = &discovery(&rules, None)["provider"];
        let layers = json!(["working", "episodic", "semantic", "procedural", "archival", "user"]);
        assert_eq!(little["capabilities"]["storage"]["layers"], layers);
        assert_eq!(little["capabilities"]["query"]["modes"], json!(["keyword"]));
        assert_eq!(little["features"]["hybrid_search"], false);
    }
}
