//! Callers and entries to test with, and how tests look at refusals.

use memtrove_core::identity::{
    self, Credentials, IdentityPolicy, RoleGrant, Trust, VerifiedClient, VerifiedUser,
};
use memtrove_core::memories::{
    AccessPolicy, Author, Embedding, Identifier, Identifiers, Kind, Layer, Lineage, Memory, MemoryCaller,
    MemoryId, ScopeKey, State, resolve,
};
use memtrove_core::{Result, Timestamp};
use serde_json::{Map, Value};
use std::collections::HashSet;
use uuid::Uuid;

/// A user with a token, in the tenant `acme`.
pub(super) fn caller(user: &str) -> MemoryCaller {
    let user = VerifiedUser { id: user.to_owned(), ..VerifiedUser::default() };
    entered(Credentials { user: Some(user), client: None, asserted_user: None, asserted_tenant: None })
}

/// A client that may act for all users of the tenant `acme`.
pub(super) fn gateway() -> MemoryCaller {
    let client = VerifiedClient { id: "gateway".to_owned(), tenant: None };
    entered(Credentials { user: None, client: Some(client), asserted_user: None, asserted_tenant: None })
}

fn entered(credentials: Credentials) -> MemoryCaller {
    let policy = IdentityPolicy {
        default_tenant: "acme".to_owned(),
        trust: Trust::Clients(HashSet::from(["gateway".to_owned()])),
        admin: RoleGrant::default(),
        auditor: RoleGrant::default(),
        indexer: RoleGrant::default(),
        reader: None,
        writer: None,
    };
    MemoryCaller::enter(&identity::resolve(credentials, &policy).unwrap(), "request".to_owned())
}

/// The code of a refusal, and the field it is about.
pub(super) fn code<T>(result: Result<T>) -> String {
    let Err(refusal) = result else { panic!("this was not refused") };
    match refusal.details.get("field").and_then(Value::as_str) {
        Some(field) => format!("{} {field}", refusal.code.as_str()),
        None => refusal.code.as_str().to_owned(),
    }
}

/// A scope of a layer, of which every identifier is `x`.
pub(super) fn scope(layer: Layer) -> ScopeKey {
    let mut identifiers = Identifiers::default();
    for identifier in Identifier::ALL {
        identifiers.set(identifier, identifier.as_str(), "x").unwrap();
    }
    resolve(&identity::Tenant::listed("x".to_owned()), &identifiers, &[layer]).unwrap().remove(0)
}

/// An entry of the user layer that was made at 0.
pub(super) fn memory(metadata: Map<String, Value>) -> Memory {
    let at = Timestamp::from_micros(0);
    Memory {
        id: MemoryId(Uuid::from_u128(7)),
        scope: scope(Layer::User),
        kind: Kind::UserPersonal,
        origin_kind: None,
        content: "the text".to_owned(),
        metadata,
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
        embedding: Some(Embedding { model: "test".into(), vector: vec![1.0, 0.0] }),
    }
}

/// The members of an object.
pub(super) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}
