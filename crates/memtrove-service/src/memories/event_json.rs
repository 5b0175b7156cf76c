//! An event as other nodes read it: one flat JSON object. Vectors are left out: the stream shows none.

use super::journal::Milestone;
use super::stream::{Event, Update};
use memtrove_core::files::body;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{
    AccessPolicy, Author, Embedding, Fact, Kind, Layer, Lineage, Memory, MemoryId, Policy, ScopeKey, State,
};
use memtrove_core::{Timestamp, parse_uuid};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What the life of an entry may come to.
const MILESTONES: [&str; 6] = ["decayed", "archived", "restored", "promoted", "consolidated", "expired"];

/// Writes an event down. Of an entry that is gone only what decides who is told of it.
pub(super) fn write(event: &Event) -> String {
    let Event { update, memory, at, milestone } = event;
    let gone = *update == Update::Deleted;
    let metadata = match memory.metadata.get("tags") {
        _ if !gone => memory.metadata.clone(),
        Some(tags) => Map::from_iter([("tags".to_owned(), tags.clone())]),
        None => Map::new(),
    };
    let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
    let id = |id: Option<MemoryId>| id.map(|id| id.to_string());
    let mut body = json!({
        "update": update.as_str(),
        "at": at.as_micros(),
        "id": memory.id.to_string(),
        "layer": memory.scope.layer().precedence(),
        "scope": memory.scope.values(),
        "kind": memory.kind.code(),
        "originKind": memory.origin_kind.map(Kind::code),
        "content": if gone { "" } else { memory.content.as_str() },
        "state": memory.state.code(),
        "policy": memory.policy.policy.as_str(),
        "approvedUsers": memory.policy.approved_users,
        "allowedTeams": memory.policy.allowed_teams,
        "user": memory.created_by.user,
        "client": memory.created_by.client,
        "createdAt": memory.created_at.as_micros(),
        "updatedAt": memory.updated_at.as_micros(),
        "occurredAt": micros(memory.occurred_at),
        "expiresAt": micros(memory.expires_at),
        "ttlSeconds": memory.ttl_seconds,
        "version": memory.version,
        "anchor": memory.anchor.as_micros(),
        "promotedFrom": id(memory.lineage.promoted_from),
        "promotedTo": id(memory.lineage.promoted_to),
        "consolidatedFrom": memory.lineage.consolidated_from.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "supersededBy": id(memory.lineage.superseded_by),
        "mirrorOf": memory.lineage.mirror_of,
        "accessCount": memory.access_count,
        "lastAccessedAt": micros(memory.last_accessed_at),
        "model": memory.embedding.as_ref().map(|embedding| &*embedding.model),
    });
    // Put in as it is: the macro would spell its numbers anew.
    body["metadata"] = Value::Object(metadata);
    if let Some(Fact { fact_type, subject, predicate, object, confidence }) =
        memory.fact.as_ref().filter(|_| !gone)
    {
        body["fact"] = json!([fact_type, subject, predicate, object, confidence]);
    }
    if let Some(Milestone { name, details }) = milestone {
        body["milestone"] = json!(name);
        body["details"] = details.clone();
    }
    body.to_string()
}

/// Reads an event; `None` if it is none that this version knows.
pub(super) fn read(tenant: &Tenant, bytes: &[u8]) -> Option<Event> {
    // Not with serde_json alone: it would spell numbers anew.
    let Value::Object(mut body) = body::parse(bytes).ok()? else { return None };
    let metadata = match body.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let body = Body(&body);
    let layer = Layer::from_precedence(body.int("layer")?)?;
    let memory = Memory {
        id: body.id("id")?,
        scope: ScopeKey::listed(tenant.clone(), layer, body.texts("scope")?)?,
        kind: Kind::from_code(body.int("kind")?)?,
        origin_kind: body.int("originKind").and_then(Kind::from_code),
        content: body.text("content")?,
        metadata,
        state: State::from_code(body.int("state")?)?,
        policy: AccessPolicy {
            approved_users: body.texts("approvedUsers")?,
            allowed_teams: body.texts("allowedTeams")?,
            ..AccessPolicy::new(Policy::parse(&body.text("policy")?)?)
        },
        created_by: Author { user: body.text("user"), client: body.text("client") },
        created_at: body.at("createdAt")?,
        updated_at: body.at("updatedAt")?,
        occurred_at: body.at("occurredAt"),
        expires_at: body.at("expiresAt"),
        ttl_seconds: body.int("ttlSeconds"),
        version: body.int("version")?,
        anchor: body.at("anchor")?,
        fact: body.fact(),
        lineage: Lineage {
            promoted_from: body.id("promotedFrom"),
            promoted_to: body.id("promotedTo"),
            consolidated_from: body.ids("consolidatedFrom")?,
            superseded_by: body.id("supersededBy"),
            mirror_of: body.text("mirrorOf"),
            // Nobody is told.
            passed_over: None,
        },
        access_count: body.int("accessCount")?,
        last_accessed_at: body.at("lastAccessedAt"),
        embedding: body.text("model").map(|model| Embedding::of_whole(model.into(), Vec::new())),
    };
    Some(Event {
        update: Update::parse(&body.text("update")?)?,
        memory: Arc::new(memory),
        at: body.at("at")?,
        milestone: body.milestone(),
    })
}

struct Body<'a>(&'a Map<String, Value>);

impl Body<'_> {
    fn int(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    fn at(&self, name: &str) -> Option<Timestamp> {
        self.int(name).map(Timestamp::from_micros)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    fn texts(&self, name: &str) -> Option<Vec<String>> {
        self.0.get(name)?.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
    }

    fn id(&self, name: &str) -> Option<MemoryId> {
        self.0.get(name)?.as_str().and_then(parse_uuid).map(MemoryId)
    }

    fn ids(&self, name: &str) -> Option<Vec<MemoryId>> {
        self.texts(name)?.iter().map(|id| parse_uuid(id).map(MemoryId)).collect()
    }

    fn fact(&self) -> Option<Fact> {
        let [fact_type, subject, predicate, object, confidence] = self.0.get("fact")?.as_array()?.as_slice()
        else {
            return None;
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Fact {
            fact_type: text(fact_type)?,
            subject: text(subject)?,
            predicate: text(predicate)?,
            object: text(object)?,
            confidence: confidence.as_f64()?,
        })
    }

    fn milestone(&self) -> Option<Milestone> {
        let named = self.text("milestone")?;
        let name = MILESTONES.into_iter().find(|name| *name == named)?;
        Some(Milestone { name, details: self.0.get("details").cloned().unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_micros(1_767_225_600_123_456);

    fn event(update: Update) -> Event {
        let id = |number: u128| MemoryId(uuid::Uuid::from_u128(number));
        let tenant = Tenant::listed("acme".to_owned());
        let metadata = body::parse(br#"{"tags": ["a"], "price": 1.50, "deep": {"x": [1e3]}}"#).unwrap();
        let memory = Memory {
            id: id(1),
            scope: ScopeKey::listed(tenant, Layer::User, vec!["alice".to_owned()]).unwrap(),
            kind: Kind::Archival,
            origin_kind: Some(Kind::Procedural),
            content: "what was said".to_owned(),
            metadata: metadata.as_object().unwrap().clone(),
            state: State::Archived,
            policy: AccessPolicy {
                approved_users: vec!["bob".to_owned()],
                allowed_teams: vec!["team".to_owned()],
                ..AccessPolicy::new(Policy::Private)
            },
            created_by: Author { user: Some("alice".to_owned()), client: None },
            created_at: AT,
            updated_at: AT,
            occurred_at: Some(AT),
            expires_at: None,
            ttl_seconds: Some(5),
            version: 7,
            anchor: AT,
            fact: Some(Fact {
                fact_type: "t".to_owned(),
                subject: "s".to_owned(),
                predicate: "p".to_owned(),
                object: "o".to_owned(),
                confidence: 0.25,
            }),
            lineage: Lineage {
                promoted_from: Some(id(2)),
                promoted_to: None,
                consolidated_from: vec![id(3), id(4)],
                superseded_by: Some(id(5)),
                mirror_of: Some("event".to_owned()),
                passed_over: None,
            },
            access_count: 3,
            last_accessed_at: Some(AT),
            embedding: Some(Embedding::of_whole("model".into(), Vec::new())),
        };
        let milestone = Some(Milestone { name: "archived", details: json!({"relevance": 0.5}) });
        Event { update, memory: Arc::new(memory), at: AT, milestone }
    }

    #[test]
    fn an_event_comes_back_as_it_was() {
        let event = event(Update::Updated);
        let back = read(event.memory.scope.tenant(), write(&event).as_bytes()).unwrap();
        assert_eq!(back.memory, event.memory);
        assert_eq!((back.update, back.at), (event.update, event.at));
        let (was, is) = (event.milestone.unwrap(), back.milestone.unwrap());
        assert_eq!((was.name, was.details), (is.name, is.details));
    }

    #[test]
    fn of_an_entry_that_is_gone_nothing_is_said() {
        let written = write(&event(Update::Deleted));
        for said in ["what was said", "price", "deep", "\"o\""] {
            assert!(!written.contains(said), "{written}");
        }
        let back = read(&Tenant::listed("acme".to_owned()), written.as_bytes()).unwrap();
        assert_eq!(back.memory.metadata, json!({"tags": ["a"]}).as_object().unwrap().clone());
    }

    #[test]
    fn what_is_no_event_is_none() {
        let tenant = Tenant::listed("acme".to_owned());
        for body in ["", "[]", "{}", "{\"update\": \"moved\"}"] {
            assert!(read(&tenant, body.as_bytes()).is_none(), "{body}");
        }
    }
}
