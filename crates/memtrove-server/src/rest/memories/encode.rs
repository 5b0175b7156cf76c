//! From what the service answers to what goes over the wire.

use memtrove_core::memories::layer::MAX_IDENTIFIER_CHARS;
use memtrove_core::memories::{
    AccessPolicy, Author, Fact, Identifier, Kind, Layer, Limits, Lineage, Memory, MemoryId, Rules, ScopeKey,
    SearchMemories, contract_word,
};
use memtrove_core::{Error, Json, Result};
use memtrove_service::memories::memory_store::{HalfInfo, Health};
use memtrove_service::memories::{
    AddedFact, AddedMemory, AskedTime, BulkAdded, ConsolidationReport, DecayReport, EndedSession,
    FadedMemory, MemoryCapabilities, MemoryHealth, Reply, SessionPromotion, ShownHit, ShownMemory,
};
use memtrove_wire::memories as wire;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A memory, with its embedding where that is asked for.
pub(in crate::rest) fn memory(shown: ShownMemory, with_embedding: bool) -> wire::Memory {
    let ShownMemory { mut memory, relevance, created_by } = shown;
    let (embedding, embedding_model) = match memory.embedding.take() {
        Some(made) => (with_embedding.then_some(made.vector), Some(made.model.to_string())),
        None => (None, None),
    };
    wire::Memory {
        id: memory.id.0,
        content_hash: memory.content_hash(),
        content: memory.content,
        layer: memory.scope.layer().into(),
        kind: memory.kind.into(),
        origin_kind: memory.origin_kind.map(Into::into),
        identifiers: identifiers(&memory.scope),
        metadata: memory.metadata.into(),
        state: memory.state.into(),
        relevance,
        access_policy: policy(memory.policy),
        created_by: created_by.map(author),
        created_at: memory.created_at.to_string(),
        updated_at: memory.updated_at.to_string(),
        occurred_at: memory.occurred_at.map(|at| at.to_string()),
        expires_at: memory.expires_at.map(|at| at.to_string()),
        ttl_seconds: memory.ttl_seconds,
        version: memory.version,
        embedding,
        embedding_model,
        fact: memory.fact.map(statement),
        lineage: lineage(memory.lineage),
        access_count: (memory.access_count > 0).then_some(memory.access_count),
        last_accessed_at: memory.last_accessed_at.map(|at| at.to_string()),
    }
}

/// A result of a search.
pub(in crate::rest) fn hit(hit: ShownHit, with_embedding: bool, explain: bool) -> wire::FoundMemory {
    let ShownHit { shown, matched, passage } = hit;
    let explanation = || {
        let mut members = json!({
            "similarity": matched.similarity(),
            "calibrated": matched.evidence.similarity,
            "lexical": matched.evidence.coverage,
            "relevance": matched.relevance,
            "score": matched.score(),
        });
        if let Some(fit) = matched.evidence.time {
            members["time"] = json!(fit);
        }
        members
    };
    wire::FoundMemory {
        layer: shown.memory.scope.layer().into(),
        memory: memory(shown, with_embedding),
        passage,
        score: matched.score(),
        similarity: matched.similarity(),
        overridden_by: matched.overridden_by.map(|winner| winner.0),
        explanation: if explain { explanation().as_object().cloned() } else { None },
    }
}

/// The time that a query asks about.
pub(super) fn asked_time(asked: AskedTime) -> wire::AskedTime {
    let AskedTime { window, words } = asked;
    wire::AskedTime { from: window.from.to_string(), to: window.to.to_string(), words }
}

/// A result of a search in a context: what its budget counts.
pub(in crate::rest) fn hit_in_context(found: ShownHit, search: &SearchMemories) -> Result<String> {
    Ok(text(&hit(found, search.include_embedding, search.explain))?.get().to_owned())
}

/// A procedural memory as a fact.
pub(super) fn fact(memory: Memory) -> Result<wire::Fact> {
    let Some(fact) = memory.fact else { return Err(Error::internal("a procedural memory states nothing")) };
    Ok(wire::Fact {
        id: memory.id.0,
        fact_type: fact.fact_type,
        subject: fact.subject,
        predicate: fact.predicate,
        object: fact.object,
        confidence: fact.confidence,
        content: memory.content,
        layer: memory.scope.layer().into(),
        identifiers: identifiers(&memory.scope),
        metadata: memory.metadata.into(),
        state: memory.state.into(),
        version: memory.version,
        created_at: memory.created_at.to_string(),
        updated_at: memory.updated_at.to_string(),
    })
}

pub(super) fn added_memory(added: &AddedMemory) -> Result<Reply> {
    let stored = &added.memory.memory;
    let body = wire::AddedMemory {
        memory: memory(added.memory.clone(), false),
        embedding_generated: stored.embedding.is_some(),
    };
    reply(&body, added.created, stored)
}

pub(super) fn added_fact(added: &AddedFact) -> Result<Reply> {
    let body = wire::AddedFact { fact: fact(added.memory.clone())?, created: added.created };
    reply(&body, added.created, &added.memory)
}

pub(super) fn bulk_added(added: &BulkAdded) -> Result<Reply> {
    let stored = added.results.iter().flatten().count();
    let result = |(index, one): (usize, &Result<ShownMemory>)| {
        let (shown, error) = match one {
            Ok(shown) => (Some(shown), None),
            Err(error) => (None, Some(error)),
        };
        wire::BulkAddResult {
            index: index as u64,
            memory: shown.map(|shown| memory(shown.clone(), false)),
            embedding_generated: shown.map(|shown| shown.memory.embedding.is_some()),
            error: error.and_then(|error| item_error(error).as_object().cloned()),
        }
    };
    let body = wire::BulkAdded {
        results: added.results.iter().enumerate().map(result).collect(),
        added: stored as u64,
        failed: (added.results.len() - stored) as u64,
    };
    Ok(Reply { body: text(&body)?, created: false, etag: None, id: None })
}

pub(super) fn ended_session(ended: EndedSession) -> wire::EndedSession {
    let EndedSession { scope, ended_at, evaluated, promoted, blocked, deleted, retained } = ended;
    let of = |identifier| scope.get(identifier).unwrap_or_default().to_owned();
    let promotion = |SessionPromotion { from, to, score, deduplicated }| wire::SessionPromotion {
        from: from.0,
        to: to.0,
        score,
        deduplicated,
    };
    let blocked = blocked.into_iter();
    wire::EndedSession {
        user_id: of(Identifier::User),
        session_id: of(Identifier::Session),
        ended_at: ended_at.to_string(),
        evaluated: evaluated as u64,
        promoted: promoted.into_iter().map(promotion).collect(),
        blocked: blocked
            .map(|(id, reason)| wire::BlockedPromotion { id: id.0, reason: reason.as_str().to_owned() })
            .collect(),
        deleted: deleted as u64,
        retained: retained as u64,
    }
}

pub(super) fn decayed(report: DecayReport) -> wire::DecayedMemories {
    let DecayReport { at, dry_run, processed, decayed, archived, skipped, entries } = report;
    let entry = |FadedMemory { id, layer, relevance, previous, state }| wire::DecayedMemory {
        id: id.0,
        layer: layer.into(),
        relevance,
        previous_state: previous.into(),
        state: state.into(),
    };
    let entries = entries.into_iter().map(entry).collect();
    wire::DecayedMemories { as_of: at.to_string(), dry_run, processed, decayed, archived, skipped, entries }
}

pub(super) fn consolidated(report: ConsolidationReport) -> wire::Consolidated {
    let merged: usize = report.groups.iter().map(|(_, absorbed)| absorbed.len()).sum();
    let group = |(survivor, absorbed): (MemoryId, Vec<MemoryId>)| wire::ConsolidationGroup {
        survivor_id: survivor.0,
        absorbed_ids: absorbed.into_iter().map(|id| id.0).collect(),
    };
    let groups = report.groups.into_iter().map(group).collect();
    wire::Consolidated { groups, merged: merged as u64, examined: report.examined as u64 }
}

pub(super) fn health(health: MemoryHealth) -> wire::MemoryHealth {
    let component = |(name, Health { status, message })| {
        (name, wire::MemoryComponent { status: status.as_str().to_owned(), message })
    };
    wire::MemoryHealth {
        status: health.status.as_str().to_owned(),
        latency_ms: health.latency.as_secs_f64() * 1e3,
        components: health.components.into_iter().map(component).collect(),
    }
}

pub(super) fn capabilities(can: MemoryCapabilities, rules: &Rules) -> Result<wire::MemoryCapabilities> {
    let layer = |layer: &Layer| wire::MemoryLayerInfo {
        name: (*layer).into(),
        precedence: layer.precedence(),
        requires: layer.required().iter().map(|identifier| identifier.as_str().to_owned()).collect(),
        default_kind: Kind::default_in(*layer).into(),
    };
    let kind = |(kind, half): (Kind, &str)| wire::MemoryKindInfo {
        name: kind.into(),
        layers: kind.layers().iter().map(|layer| (*layer).into()).collect(),
        provider: half.to_owned(),
        default_ttl_seconds: rules.default_ttl(kind),
    };
    let provider = |half: HalfInfo| {
        Ok(wire::MemoryProvider {
            id: half.id.to_owned(),
            version: half.version.to_owned(),
            capabilities: object(half.capabilities)?,
        })
    };
    Ok(wire::MemoryCapabilities {
        layers: rules.enabled_layers.iter().map(layer).collect(),
        kinds: can.kinds.into_iter().map(kind).collect(),
        limits: object(limits(&rules.limits))?,
        defaults: object(defaults(rules))?,
        embedding: wire::MemoryEmbedding {
            provider: can.embedder.to_owned(),
            model: can.model,
            dimensions: can.dimensions.map(|dimensions| dimensions as u64),
            calibration: can.calibration,
        },
        providers: can.halves.into_iter().map(provider).collect::<Result<_>>()?,
        fork_inheritance: true,
    })
}

fn limits(limits: &Limits) -> Value {
    json!({
        "maxContentLength": limits.content_length,
        "maxQueryLength": limits.query_length,
        "maxMetadataBytes": limits.metadata_bytes,
        "maxIdentifierLength": MAX_IDENTIFIER_CHARS,
        "maxSearchLimit": limits.search_limit,
        "maxListLimit": limits.list_limit,
        "maxFactLimit": limits.fact_limit,
        "maxBulkAdd": limits.bulk_add,
        "maxBulkDelete": limits.bulk_delete,
        "maxBodyBytes": limits.body_bytes,
    })
}

fn defaults(rules: &Rules) -> Value {
    let names = |layers: &[Layer]| -> Vec<&str> { layers.iter().map(|layer| layer.as_str()).collect() };
    json!({
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
    })
}

/// An object of which the contract names no members.
fn object(value: impl Serialize) -> Result<Map<String, Value>> {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(Error::internal("an answer is no object")),
    }
}

fn reply(body: &impl Serialize, created: bool, memory: &Memory) -> Result<Reply> {
    let id = created.then(|| memory.id.to_string());
    Ok(Reply { body: text(body)?, created, etag: Some(memory.etag()), id })
}

/// An error of one item, in the shape of errors.
fn item_error(error: &Error) -> Value {
    json!({
        "code": contract_word(error.code),
        "message": error.message,
        "retryable": error.code.retryable(),
        "details": error.details.clone().into_members(),
    })
}

fn text(body: &impl Serialize) -> Result<Json> {
    Json::of(body).map_err(|error| Error::internal(error.to_string()))
}

fn identifiers(scope: &ScopeKey) -> wire::MemoryIdentifiers {
    let of = |identifier| scope.get(identifier).map(str::to_owned);
    wire::MemoryIdentifiers {
        agent_id: of(Identifier::Agent),
        user_id: of(Identifier::User),
        session_id: of(Identifier::Session),
        project_id: of(Identifier::Project),
        team_id: of(Identifier::Team),
        org_id: of(Identifier::Org),
        company_id: of(Identifier::Company),
    }
}

fn policy(policy: AccessPolicy) -> wire::MemoryAccessPolicy {
    let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
    wire::MemoryAccessPolicy {
        policy: policy.policy.into(),
        approved_users: some(policy.approved_users),
        allowed_teams: some(policy.allowed_teams),
    }
}

fn author(author: Author) -> wire::MemoryAuthor {
    wire::MemoryAuthor { user_id: author.user, client_id: author.client }
}

fn statement(fact: Fact) -> wire::FactStatement {
    let Fact { fact_type, subject, predicate, object, confidence } = fact;
    wire::FactStatement { fact_type, subject, predicate, object, confidence: Some(confidence) }
}

fn lineage(lineage: Lineage) -> Option<wire::MemoryLineage> {
    // Nobody is shown what a session passed over.
    let shown = Lineage { passed_over: None, ..lineage };
    if shown == Lineage::default() {
        return None;
    }
    let Lineage { promoted_from, promoted_to, consolidated_from, superseded_by, mirror_of, passed_over: _ } =
        shown;
    let id = |id: MemoryId| id.0;
    Some(wire::MemoryLineage {
        promoted_from: promoted_from.map(id),
        promoted_to: promoted_to.map(id),
        consolidated_from: (!consolidated_from.is_empty())
            .then(|| consolidated_from.into_iter().map(id).collect()),
        superseded_by: superseded_by.map(id),
        mirror_of,
    })
}
