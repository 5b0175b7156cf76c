//! Entries as the contract shows them.

use super::{Hit, Memories};
use memtrove_core::Timestamp;
use memtrove_core::memories::decay::Fading;
use memtrove_core::memories::{AccessPolicy, Fact, Lineage, Memory, MemoryCaller, MemoryId};
use serde_json::{Map, Value, json};

impl Memories {
    /// The relevance of an entry at this moment.
    pub fn relevance(&self, memory: &Memory) -> f64 {
        self.rules().decay.shown(memory.scope.layer(), &Fading::of(memory), self.now())
    }

    /// An entry as a caller sees it.
    pub fn show(&self, caller: &MemoryCaller, memory: &Memory, with_embedding: bool) -> Value {
        let mut shown = Map::new();
        let mut put = |name: &str, value: Value| {
            shown.insert(name.to_owned(), value);
        };
        let instant = |at: Timestamp| Value::String(at.to_string());
        put("id", memory.id.to_string().into());
        put("content", memory.content.clone().into());
        put("contentHash", memory.content_hash().into());
        put("layer", memory.scope.layer().as_str().into());
        put("kind", memory.kind.as_str().into());
        if let Some(kind) = memory.origin_kind {
            put("originKind", kind.as_str().into());
        }
        put("identifiers", identifiers(memory));
        put("metadata", Value::Object(memory.metadata.clone()));
        put("state", memory.state.as_str().into());
        put("relevance", self.relevance(memory).into());
        put("accessPolicy", policy(&memory.policy));
        if caller.sees_author(memory) {
            put("createdBy", author(memory));
        }
        put("createdAt", instant(memory.created_at));
        put("updatedAt", instant(memory.updated_at));
        if let Some(at) = memory.occurred_at {
            put("occurredAt", instant(at));
        }
        if let Some(at) = memory.expires_at {
            put("expiresAt", instant(at));
        }
        if let Some(seconds) = memory.ttl_seconds {
            put("ttlSeconds", seconds.into());
        }
        put("version", memory.version.into());
        if let Some(embedding) = &memory.embedding {
            if with_embedding {
                put("embedding", embedding.vector.iter().map(|x| f64::from(*x)).collect());
            }
            put("embeddingModel", (*embedding.model).into());
        }
        if let Some(fact) = &memory.fact {
            put("fact", shown_fact(fact));
        }
        if memory.lineage != Lineage::default() {
            put("lineage", lineage(&memory.lineage));
        }
        if memory.access_count > 0 {
            put("accessCount", memory.access_count.into());
        }
        if let Some(at) = memory.last_accessed_at {
            put("lastAccessedAt", instant(at));
        }
        Value::Object(shown)
    }

    /// A result of a search.
    pub fn show_hit(&self, caller: &MemoryCaller, hit: &Hit, with_embedding: bool, explain: bool) -> Value {
        let Hit { matched, memory } = hit;
        let mut shown = json!({
            "memory": self.show(caller, memory, with_embedding),
            "score": matched.score(),
            "similarity": matched.similarity(),
            "layer": memory.scope.layer().as_str(),
            "overriddenBy": matched.overridden_by.map(|winner| winner.to_string()),
        });
        if explain {
            shown["explanation"] = json!({
                "similarity": matched.similarity(),
                "calibrated": matched.evidence.similarity,
                "lexical": matched.evidence.coverage,
                "relevance": matched.relevance,
                "score": matched.score(),
            });
        }
        shown
    }

    /// A procedural entry as a fact.
    pub fn show_fact(&self, memory: &Memory) -> Value {
        let mut shown = Map::new();
        shown.insert("id".into(), memory.id.to_string().into());
        if let Some(fact) = &memory.fact
            && let Value::Object(fact) = shown_fact(fact)
        {
            shown.extend(fact);
        }
        shown.extend([
            ("content".to_owned(), memory.content.clone().into()),
            ("layer".to_owned(), memory.scope.layer().as_str().into()),
            ("identifiers".to_owned(), identifiers(memory)),
            ("metadata".to_owned(), Value::Object(memory.metadata.clone())),
            ("state".to_owned(), memory.state.as_str().into()),
            ("version".to_owned(), memory.version.into()),
            ("createdAt".to_owned(), memory.created_at.to_string().into()),
            ("updatedAt".to_owned(), memory.updated_at.to_string().into()),
        ]);
        Value::Object(shown)
    }
}

fn identifiers(memory: &Memory) -> Value {
    memory.scope.named().map(|(name, value)| (name.as_str(), value)).collect()
}

fn policy(policy: &AccessPolicy) -> Value {
    let mut shown = json!({"policy": policy.policy.as_str()});
    if !policy.approved_users.is_empty() {
        shown["approvedUsers"] = json!(policy.approved_users);
    }
    if !policy.allowed_teams.is_empty() {
        shown["allowedTeams"] = json!(policy.allowed_teams);
    }
    shown
}

fn author(memory: &Memory) -> Value {
    let author = &memory.created_by;
    [("userId", &author.user), ("clientId", &author.client)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect()
}

fn shown_fact(fact: &Fact) -> Value {
    let Fact { fact_type, subject, predicate, object, confidence } = fact;
    json!({"factType": fact_type, "subject": subject, "predicate": predicate, "object": object, "confidence": confidence})
}

fn lineage(lineage: &Lineage) -> Value {
    let Lineage { promoted_from, promoted_to, consolidated_from, superseded_by, mirror_of } = lineage;
    let mut shown = Map::new();
    let id = |id: &MemoryId| Value::String(id.to_string());
    for (name, value) in [
        ("promotedFrom", promoted_from.as_ref().map(id)),
        ("promotedTo", promoted_to.as_ref().map(id)),
        (
            "consolidatedFrom",
            (!consolidated_from.is_empty()).then(|| consolidated_from.iter().map(id).collect()),
        ),
        ("supersededBy", superseded_by.as_ref().map(id)),
        ("mirrorOf", mirror_of.clone().map(Value::String)),
    ] {
        shown.extend(value.map(|value| (name.to_owned(), value)));
    }
    Value::Object(shown)
}
