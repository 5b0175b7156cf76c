//! Entries to test the rules with.

use super::{
    AccessPolicy, Author, Embedding, Identifier, Identifiers, Kind, Layer, Lineage, Memory, MemoryId,
};
use super::{ScopeKey, State, resolve};
use crate::Timestamp;
use crate::identity::Tenant;
use serde_json::{Map, Value};
use uuid::Uuid;

/// A scope of a layer, of which every identifier is `x`.
pub(crate) fn scope(layer: Layer) -> ScopeKey {
    let mut identifiers = Identifiers::default();
    for identifier in Identifier::ALL {
        identifiers.set(identifier, identifier.as_str(), "x").unwrap();
    }
    resolve(&Tenant::listed("x".to_owned()), &identifiers, &[layer]).unwrap().remove(0)
}

/// An active entry of the user layer that was made at 0.
pub(crate) fn memory(id: u128, content: &str) -> Memory {
    let at = Timestamp::from_micros(0);
    Memory {
        id: MemoryId(Uuid::from_u128(id)),
        scope: scope(Layer::User),
        kind: Kind::UserPersonal,
        origin_kind: None,
        content: content.to_owned(),
        metadata: Map::new(),
        state: State::Active,
        policy: AccessPolicy::default_in(Layer::User),
        created_by: Author { user: Some("x".to_owned()), client: None },
        created_at: at,
        updated_at: at,
        occurred_at: None,
        expires_at: None,
        ttl_seconds: None,
        version: 1,
        anchor: at,
        fact: None,
        lineage: Lineage::default(),
        access_count: 0,
        last_accessed_at: None,
        embedding: Some(Embedding::of_whole("test".into(), vec![1.0, 0.0])),
    }
}

/// Identifiers by their names on the wire.
pub(crate) fn identifiers(given: Value) -> Identifiers {
    let mut identifiers = Identifiers::default();
    for (name, text) in members(given) {
        let identifier = Identifier::ALL.into_iter().find(|identifier| identifier.as_str() == name).unwrap();
        identifiers.set(identifier, &name, text.as_str().unwrap()).unwrap();
    }
    identifiers
}

/// The members of an object.
pub(crate) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}
