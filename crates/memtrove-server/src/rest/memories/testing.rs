//! How tests of decoding ask, and how they look at refusals.

use memtrove_core::identity::{
    self, Credentials, IdentityPolicy, RoleGrant, Tenant, Trust, VerifiedClient, VerifiedUser,
};
use memtrove_core::memories::{
    AddMemory, Identifier, Identifiers, Layer, Memory, MemoryCaller, MemoryId, Rules, ScopeKey,
};
use memtrove_core::{Error, Result, Timestamp};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Debug;
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
pub(super) fn user(id: &str) -> MemoryCaller {
    caller(Some(id), None)
}

/// A client; `gateway` is trusted.
pub(super) fn client(id: &str) -> MemoryCaller {
    caller(None, Some(id))
}

/// One body with the members of another in place of its own.
pub(super) fn with(mut body: Value, members: Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Query parameters.
pub(super) fn params(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// An entry of the user layer of Alice that was made at 0.
pub(super) fn memory(id: u128, content: &str) -> Memory {
    let mut alice = Identifiers::default();
    alice.set(Identifier::User, "userId", "alice").unwrap();
    let add = AddMemory::new(Layer::User, alice, content.to_owned());
    let new = add.check(&Rules::default(), &user("alice")).unwrap();
    new.into_memory(MemoryId(Uuid::from_u128(id)), Timestamp::from_micros(0))
}

/// A scope of a layer, of which every identifier is `x`.
pub(super) fn scope(layer: Layer) -> ScopeKey {
    let values = vec!["x".to_owned(); layer.required().len()];
    ScopeKey::listed(Tenant::listed("x".to_owned()), layer, values).unwrap()
}

/// The refusal that this has to be.
pub(super) fn refusal<T: Debug>(result: Result<T>) -> Error {
    result.expect_err("a refusal")
}

/// The code of a refusal, with the field it names if it names one: `INVALID_REQUEST limit`.
pub(super) fn code<T: Debug>(result: Result<T>) -> String {
    let refusal = refusal(result);
    match refusal.details.get("field").and_then(Value::as_str) {
        Some(field) => format!("{} {field}", refusal.code.as_str()),
        None => refusal.code.as_str().to_owned(),
    }
}
