//! The service on a real store in a folder of its own, with a clock to wind.

use memtrove_core::Timestamp;
use memtrove_core::identity::{
    Caller, Credentials, IdentityPolicy, Principal, RoleGrant, Trust, VerifiedClient, VerifiedUser, resolve,
};
use memtrove_core::memories::{
    AccessPolicy, AddMemory, Identifier, Identifiers, Kind, Layer, ListMemories, Policy,
};
use memtrove_service::{Services, Settings};
use memtrove_store::Store;
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_testkit::clock::TestClock;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

pub struct World {
    pub services: Services,
    pub store: Store,
    pub clock: Arc<TestClock>,
    pub folder: tempfile::TempDir,
}

impl World {
    pub async fn new(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memtrove.db");
        let engine = SqliteEngine::open(SqliteConfig { path, ..SqliteConfig::default() }).unwrap();
        let (store, clock) = (Store::new(Arc::new(engine)), Arc::new(TestClock::new()));
        let services = Services::new(store.clone(), clock.clone(), settings).await.unwrap();
        Self { services, store, clock, folder }
    }
}

/// A user of the default tenant, through an agent or not; `admin` is an admin.
pub fn principal(user: &str, agent: Option<&str>) -> Principal {
    let policy = IdentityPolicy {
        default_tenant: "default".into(),
        trust: Trust::EveryClient,
        admin: RoleGrant { users: HashSet::from(["admin".to_owned()]), ..RoleGrant::default() },
        auditor: RoleGrant::default(),
        indexer: RoleGrant::default(),
        reader: None,
        writer: None,
    };
    let credentials = Credentials {
        user: Some(VerifiedUser { id: user.into(), ..VerifiedUser::default() }),
        client: agent.map(|id| VerifiedClient { id: id.into(), tenant: None }),
        ..Credentials::default()
    };
    resolve(credentials, &policy).unwrap()
}

pub fn caller(user: &str, agent: Option<&str>) -> Caller {
    principal(user, agent).into_caller().unwrap()
}

/// What scopes are named by.
pub fn identifiers(named: &[(Identifier, &str)]) -> Identifiers {
    let mut identifiers = Identifiers::default();
    for (identifier, value) in named {
        identifiers.set(*identifier, identifier.as_str(), value).unwrap();
    }
    identifiers
}

/// The list of a place: its layer, its identifiers, its limit.
pub fn list_of(place: &Value) -> ListMemories {
    let (layer, identifiers) = scope_of(place);
    let limit = place["limit"].as_u64().map(|limit| limit as usize);
    ListMemories { limit, ..ListMemories::new(layer, identifiers) }
}

/// An entry of a place: its content, and what else tests say of one.
pub fn entry_of(place: &Value) -> AddMemory {
    let (layer, identifiers) = scope_of(place);
    let text = |name: &str| place[name].as_str();
    let policy = |given: &Value| AccessPolicy {
        approved_users: serde_json::from_value(given["approvedUsers"].clone()).unwrap_or_default(),
        ..AccessPolicy::new(Policy::parse(given["policy"].as_str().unwrap()).unwrap())
    };
    AddMemory {
        kind: text("kind").map(|word| Kind::parse(word).unwrap()),
        ttl_seconds: place["ttlSeconds"].as_i64(),
        occurred_at: text("occurredAt").map(|at| Timestamp::parse(at).unwrap()),
        policy: place.get("accessPolicy").map(policy),
        ..AddMemory::new(layer, identifiers, text("content").unwrap().to_owned())
    }
}

fn scope_of(place: &Value) -> (Layer, Identifiers) {
    let named: Vec<_> = Identifier::ALL
        .into_iter()
        .filter_map(|identifier| Some((identifier, place["identifiers"][identifier.as_str()].as_str()?)))
        .collect();
    (Layer::parse(place["layer"].as_str().unwrap()).unwrap(), identifiers(&named))
}
