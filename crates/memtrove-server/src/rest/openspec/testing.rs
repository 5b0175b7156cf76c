//! Callers to test decoding with, and how tests look at refusals.

use memtrove_core::Result;
use memtrove_core::identity::{self, Credentials, IdentityPolicy, RoleGrant, Trust, VerifiedUser};
use memtrove_core::memories::MemoryCaller;
use serde_json::Value;
use std::collections::HashSet;

/// A user with a token, in the tenant `acme`.
pub(super) fn caller(user: &str) -> MemoryCaller {
    let policy = IdentityPolicy {
        default_tenant: "acme".to_owned(),
        trust: Trust::Clients(HashSet::new()),
        admin: RoleGrant::default(),
        auditor: RoleGrant::default(),
        indexer: RoleGrant::default(),
        reader: None,
        writer: None,
    };
    let user = VerifiedUser { id: user.to_owned(), ..VerifiedUser::default() };
    let credentials =
        Credentials { user: Some(user), client: None, asserted_user: None, asserted_tenant: None };
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
