//! Callers and entries to test with, and how tests look at refusals.

use memtrove_core::identity::{
    self, Credentials, IdentityPolicy, RoleGrant, Tenant, Trust, VerifiedClient, VerifiedUser,
};
use memtrove_core::memories::{
    AddMemory, Author, Embedding, Identifier, Identifiers, Layer, Memory, MemoryCaller, MemoryId, Rules,
    ScopeKey,
};
use memtrove_core::{Error, Result, Timestamp};
use serde_json::{Map, Value};
use std::collections::HashSet;
use uuid::Uuid;

/// A caller in the tenant `acme`: a user or a client. The client `gateway` is trusted, the user `root` is admin.
fn caller(user: Option<&str>, client: Option<&str>) -> MemoryCaller {
    let set = |name: &str| HashSet::from([name.to_owned()]);
    let policy = IdentityPolicy {
        default_tenant: "acme".to_owned(),
        trust: Trust::Clients(set("gateway")),
        admin: RoleGrant { users: set("root"), ..RoleGrant::default() },
        auditor: RoleGrant::default(),
        indexer: RoleGrant::default(),
        reader: None,
        writer: None,
    };
    let credentials = Credentials {
        user: user.map(|id| VerifiedUser { id: id.to_owned(), ..VerifiedUser::default() }),
        client: client.map(|id| VerifiedClient { id: id.to_owned(), tenant: None }),
        ..Credentials::default()
    };
    MemoryCaller::enter(&identity::resolve(credentials, &policy).unwrap(), "request".to_owned())
}

/// A user with a token.
pub(in crate::rest) fn user(id: &str) -> MemoryCaller {
    caller(Some(id), None)
}

/// A client; `gateway` is trusted.
pub(in crate::rest) fn client(id: &str) -> MemoryCaller {
    caller(None, Some(id))
}

/// One body with the members of another in place of its own.
pub(in crate::rest) fn with(mut body: Value, members: Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Query parameters.
pub(in crate::rest) fn params(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// An entry of the user layer of Alice that was made at 0.
pub(in crate::rest) fn memory(id: u128, content: &str) -> Memory {
    let mut alice = Identifiers::default();
    alice.set(Identifier::User, "userId", "alice").unwrap();
    let add = AddMemory::new(Layer::User, alice, content.to_owned());
    let new = add.check(&Rules::default(), &user("alice")).unwrap();
    new.into_memory(MemoryId(Uuid::from_u128(id)), Timestamp::from_micros(0))
}

/// An entry with metadata, in a scope whose identifiers are all `x`.
pub(in crate::rest) fn memory_with(metadata: Map<String, Value>) -> Memory {
    Memory {
        scope: scope(Layer::User),
        metadata,
        created_by: Author { user: Some("x".to_owned()), client: None },
        embedding: Some(Embedding::of_whole("test".into(), vec![1.0, 0.0])),
        ..memory(7, "the text")
    }
}

/// The members of an object.
pub(in crate::rest) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

/// A scope of a layer, of which every identifier is `x`.
pub(in crate::rest) fn scope(layer: Layer) -> ScopeKey {
    let values = vec!["x".to_owned(); layer.required().len()];
    ScopeKey::listed(Tenant::listed("x".to_owned()), layer, values).unwrap()
}

/// The refusal that this has to be.
pub(in crate::rest) fn refusal<T>(result: Result<T>) -> Error {
    let Err(refusal) = result else { panic!("this was not refused") };
    refusal
}

/// The code of a refusal, with the field it names if it names one: `INVALID_REQUEST limit`.
pub(in crate::rest) fn code<T>(result: Result<T>) -> String {
    let refusal = refusal(result);
    match refusal.details.get("field").and_then(Value::as_str) {
        Some(field) => format!("{} {field}", refusal.code.as_str()),
        None => refusal.code.as_str().to_owned(),
    }
}
