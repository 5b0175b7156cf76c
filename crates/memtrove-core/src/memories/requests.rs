//! How tests ask, and how they look at refusals.

use super::MemoryCaller;
use crate::identity::{self, Credentials, IdentityPolicy, RoleGrant, Trust, VerifiedClient, VerifiedUser};
use crate::{Error, Result, files};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Debug;

/// A caller in the tenant `acme`: a user, a client, or a client that speaks for a user. The client `gateway` is trusted, the
/// user `root` is admin.
fn caller(user: Option<&str>, client: Option<&str>, asserted: Option<&str>) -> MemoryCaller {
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
        asserted_user: asserted.map(str::to_owned),
        asserted_tenant: None,
    };
    MemoryCaller::enter(&identity::resolve(credentials, &policy).unwrap(), "request".to_owned())
}

/// A user with a token.
pub(super) fn user(id: &str) -> MemoryCaller {
    caller(Some(id), None, None)
}

/// An untrusted client.
pub(super) fn client(id: &str) -> MemoryCaller {
    caller(None, Some(id), None)
}

/// The trusted client, for no particular user.
pub(super) fn gateway() -> MemoryCaller {
    client("gateway")
}

/// The trusted client with `X-User-ID`.
pub(super) fn gateway_for(user: &str) -> MemoryCaller {
    caller(None, Some("gateway"), Some(user))
}

/// A body as the transport reads it: numbers keep their spelling.
pub(super) fn parsed(text: &str) -> Value {
    files::body::parse(text.as_bytes()).unwrap()
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
