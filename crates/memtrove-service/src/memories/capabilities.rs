//! What this surface can do and how it is.

use super::Memories;
use super::memory_store::Status;
use futures_util::future::join_all;
use memtrove_core::memories::{Kind, Layer};
use memtrove_store::AllTenants;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// How long counting what waits may keep an answer about health.
const COUNTING: Duration = Duration::from_millis(200);

/// How the surface is.
#[derive(Debug, Clone)]
pub struct Introspection {
    /// Whether it works.
    pub healthy: bool,
    /// The answer.
    pub body: Value,
}

impl Memories {
    /// How the store and the embedder are.
    pub async fn health(&self) -> Introspection {
        let started = Instant::now();
        let (mut components, mut worst) = (Map::new(), Status::Healthy);
        let mut note = |name: String, status: Status, message: Option<String>| {
            let mut component = json!({"status": status.as_str()});
            if let Some(message) = message {
                component["message"] = message.into();
            }
            components.insert(name, component);
            if worst == Status::Healthy || status == Status::Unhealthy {
                worst = status;
            }
        };
        // All at once: none of them may make the answer late.
        let halves = self.parts.store.all();
        let healths = join_all(halves.iter().map(|half| half.health())).await;
        for (half, health) in halves.iter().zip(healths) {
            note(format!("provider:{}", half.info().id), health.status, health.message);
        }
        let embeddings = &self.cx.embeddings;
        let (status, message) = if embeddings.space().is_none() {
            (Status::Degraded, Some("there is no embedding provider: only words are searched".to_owned()))
        } else if embeddings.is_failing() {
            (Status::Degraded, Some("the embedding provider failed the last time it was asked".to_owned()))
        } else {
            match self.waiting_upgrades().await {
                0 => (Status::Healthy, None),
                waiting => (Status::Healthy, Some(format!("{waiting} memories wait for a new embedding"))),
            }
        };
        note("embedding".to_owned(), status, message);
        let latency = started.elapsed().as_secs_f64() * 1e3;
        let body = json!({"status": worst.as_str(), "latencyMs": latency, "components": components});
        Introspection { healthy: worst != Status::Unhealthy, body }
    }

    /// How many entries wait for a vector; 0 also where the store does not say in time.
    async fn waiting_upgrades(&self) -> i64 {
        if self.cx.store.pulse().await.is_err() {
            return 0;
        }
        let count =
            self.cx.store.read(AllTenants, "count_upgrades", memtrove_store::memories::upgrades::count);
        tokio::time::timeout(COUNTING, count).await.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// What this surface can do, and the numbers it does it by.
    pub fn capabilities(&self) -> Value {
        let rules = self.rules();
        let layers: Vec<Value> = rules.enabled_layers.iter().map(|layer| shown_layer(*layer)).collect();
        let kinds: Vec<Value> = Kind::ALL.into_iter().map(|kind| self.shown_kind(kind)).collect();
        let embeddings = &self.cx.embeddings;
        let calibration: Vec<Value> = embeddings.space().map_or_else(Vec::new, |space| {
            let calibration = embeddings.calibration_of(space);
            calibration.points().iter().map(|(raw, score)| json!([raw, score])).collect()
        });
        let limits = &rules.limits;
        json!({
            "layers": layers,
            "kinds": kinds,
            "limits": {
                "maxContentLength": limits.content_length,
                "maxQueryLength": limits.query_length,
                "maxMetadataBytes": limits.metadata_bytes,
                "maxIdentifierLength": memtrove_core::memories::layer::MAX_IDENTIFIER_CHARS,
                "maxSearchLimit": limits.search_limit,
                "maxListLimit": limits.list_limit,
                "maxFactLimit": limits.fact_limit,
                "maxBulkAdd": limits.bulk_add,
                "maxBulkDelete": limits.bulk_delete,
                "maxBodyBytes": limits.body_bytes,
            },
            "defaults": {
                "search": {"limit": rules.search_limit, "threshold": rules.search_threshold},
                "list": {"limit": rules.list_limit},
                "decay": {
                    "enabled": rules.decay.enabled,
                    "ratePerDay": rules.decay.rate_per_day,
                    "archiveThreshold": rules.decay.archive_threshold,
                    "decayedBelow": rules.decay.decayed_below,
                    "exemptLayers": names(&rules.decay.exempt_layers),
                },
                "consolidation": {
                    "enabled": rules.consolidation.enabled,
                    "similarityThreshold": rules.consolidation.similarity_threshold,
                    "maxMemoriesBeforeTrigger": rules.consolidation.max_memories_before_trigger,
                    "targetLayers": names(&rules.consolidation.target_layers),
                },
                "session": {
                    "autoDelete": rules.session.auto_delete,
                    "retentionSeconds": rules.session.retention_seconds,
                    "promoteImportant": rules.session.promote_important,
                    "promotionThreshold": rules.session.promotion_threshold,
                },
            },
            "embedding": {
                "provider": embeddings.provider(),
                "model": embeddings.preferred_model_id(),
                "dimensions": embeddings.space().map(|space| space.dimensions),
                "calibration": calibration,
            },
            "providers": self.parts.store.all().map(|half| json!(half.info())),
            "forkInheritance": true,
        })
    }

    fn shown_kind(&self, kind: Kind) -> Value {
        let mut shown = json!({
            "name": kind.as_str(),
            "layers": names(kind.layers()),
            "provider": self.parts.store.of(kind).info().id,
        });
        if let Some(seconds) = self.rules().default_ttl(kind) {
            shown["defaultTtlSeconds"] = seconds.into();
        }
        shown
    }
}

fn shown_layer(layer: Layer) -> Value {
    let requires: Vec<&str> = layer.required().iter().map(|identifier| identifier.as_str()).collect();
    json!({
        "name": layer.as_str(),
        "precedence": layer.precedence(),
        "requires": requires,
        "defaultKind": Kind::default_in(layer).as_str(),
    })
}

fn names(layers: &[Layer]) -> Vec<&'static str> {
    layers.iter().map(|layer| layer.as_str()).collect()
}
