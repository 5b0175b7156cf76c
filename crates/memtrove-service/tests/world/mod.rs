//! The service on a real store in a folder of its own, with a clock to wind.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use memtrove_core::identity::{
    Caller, Credentials, IdentityPolicy, Principal, RoleGrant, Trust, VerifiedClient, VerifiedUser, resolve,
};
use memtrove_core::memories::{Identifier, Identifiers, Layer, ListMemories};
use memtrove_service::{Services, Settings};
use memtrove_store::Store;
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_testkit::clock::TestClock;
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
pub fn list_of(place: &serde_json::Value) -> ListMemories {
    let layer = Layer::parse(place["layer"].as_str().unwrap()).unwrap();
    let limit = place["limit"].as_u64().map(|limit| limit as usize);
    ListMemories { limit, ..ListMemories::new(layer, Identifiers::read(place.get("identifiers")).unwrap()) }
}
