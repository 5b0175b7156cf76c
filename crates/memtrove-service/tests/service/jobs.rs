//! Jobs: asked for once, worked on beside the queue, tried again, watched by those they concern.

use crate::world::{World, principal};
use memtrove_core::files::{Code, ScopedCaller};
use memtrove_core::identity::{
    Credentials, IdentityPolicy, Principal, RoleGrant, Trust, VerifiedClient, VerifiedUser, resolve,
};
use memtrove_core::{Clock, Error, Timestamp};
use memtrove_service::files::{Admitted, WriteEvent, Writer};
use memtrove_service::{Services, Settings};
use memtrove_store::files::jobs::{self, Job, Status};
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::{AllTenants, Engine, Health, Store, StoreError, tasks};
use memtrove_testkit::clock::TestClock;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

const MINUTE: i64 = 60_000_000;

async fn writer(services: &Services, user: &str) -> Admitted<Writer> {
    let caller =
        ScopedCaller::enter(&principal(user, Some("agent")), user.to_owned(), None, "request".to_owned());
    services.files.admit(caller.unwrap()).await.unwrap()
}

async fn tell(services: &Services, user: &str, id: &str) {
    let event = json!({"event_id": id, "tenant_id": "default", "user_id": user, "digest": "met Bob"});
    let request = WriteEvent { event: Some(event), key: None };
    services.files.write_event(&writer(services, user).await, request).await.unwrap();
}

async fn job(store: &Store, id: Uuid) -> Job {
    store.read(AllTenants, "test", move |tx| jobs::get(tx, id)).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_same_work_is_one_job_until_it_has_ended() {
    let world = World::new(Settings::default()).await;
    let files = &world.services.files;
    tell(&world.services, "alice", "e").await;
    let [alice, bob] = [writer(&world.services, "alice").await, writer(&world.services, "bob").await];
    let first = files.reindex_scope(&alice).await.unwrap();
    assert_eq!(files.reindex_scope(&alice).await.unwrap(), first);
    assert_ne!(files.reindex_scope(&bob).await.unwrap(), first);
    let admin = principal("admin", None);
    let whole = files.reindex_tenant(&admin, None).await.unwrap();
    assert_ne!(whole, first);
    assert_eq!(files.reindex_tenant(&admin, None).await.unwrap(), whole);

    world.services.run_due_tasks().await.unwrap();

    for id in [first, whole] {
        let job = job(&world.store, id).await;
        assert_eq!((job.status, job.processed, job.total), (Status::Succeeded, 1, 1));
    }
    assert_ne!(files.reindex_scope(&alice).await.unwrap(), first, "that one has ended");
}

#[tokio::test]
async fn nobody_takes_a_job_that_somebody_is_at() {
    let world = World::new(Settings::default()).await;
    let id = world.services.files.reindex_scope(&writer(&world.services, "alice").await).await.unwrap();
    let claim = async |minutes: i64| {
        let now = world.clock.now().saturating_add_micros(minutes * MINUTE);
        let stale = now.saturating_add_micros(-5 * MINUTE);
        world
            .store
            .write(AllTenants, "test", move |tx| jobs::claim(tx, "events_reindex", now, stale))
            .await
            .unwrap()
    };
    let update = async |job: &Job, minutes: i64| {
        let (job, now) = (job.clone(), world.clock.now().saturating_add_micros(minutes * MINUTE));
        world.store.write(AllTenants, "test", move |tx| jobs::update(tx, &job, now)).await.unwrap()
    };
    let mut mine = claim(0).await.unwrap();
    assert_eq!((mine.id, mine.status), (id, Status::Running));
    assert!(update(&mine, 4).await);
    mine.claimed_at = Some(world.clock.now().saturating_add_micros(4 * MINUTE));
    assert_eq!(claim(8).await, None, "whoever reports is at it");
    let others = claim(10).await.unwrap();
    assert_eq!(others.id, id, "whoever does not is gone");
    assert!(!update(&mine, 11).await, "and has lost it");
    assert!(update(&others, 11).await);
}

/// A store that refuses to be read for a while, as one with a full queue does.
struct Busy {
    engine: SqliteEngine,
    refusals: AtomicUsize,
}

impl Engine for Busy {
    fn read(&self, job: memtrove_store::QueuedWork) {
        let refuses = |left: usize| left.checked_sub(1);
        match self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, refuses) {
            Ok(_) => job.finish(Err(StoreError::Overloaded)),
            Err(_) => self.engine.read(job),
        }
    }

    fn write(&self, job: memtrove_store::QueuedWork) {
        self.engine.write(job);
    }

    fn health(&self) -> Health {
        self.engine.health()
    }

    fn empty_log(&self) -> oneshot::Receiver<Result<bool, StoreError>> {
        self.engine.empty_log()
    }

    fn describe(&self) -> String {
        self.engine.describe()
    }

    fn close(&self) {
        self.engine.close();
    }
}

/// A service on such a store, with an event and a job on it; and the folder it lives in.
async fn busy() -> (Services, Store, Arc<Busy>, Uuid, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = SqliteConfig { path: folder.path().join("memtrove.db"), ..SqliteConfig::default() };
    let engine =
        Arc::new(Busy { engine: SqliteEngine::open(config).unwrap(), refusals: AtomicUsize::new(0) });
    let store = Store::new(engine.clone());
    let clock = Arc::new(TestClock::new());
    // Whether the first look at the queue comes before or after what a test puts there is chance.
    let settings = Settings { task_interval: Duration::from_millis(50), ..Settings::default() };
    let services = Services::new(store.clone(), clock, settings).await.unwrap();
    tell(&services, "alice", "e").await;
    let id = services.files.reindex_scope(&writer(&services, "alice").await).await.unwrap();
    (services, store, engine, id, folder)
}

/// A job, asked for until the store answers.
async fn patiently(store: &Store, id: Uuid) -> Job {
    loop {
        if let Ok(job) = store.read(AllTenants, "test", move |tx| jobs::get(tx, id)).await {
            return job.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_step_that_meets_a_busy_store_is_tried_again() {
    let (services, store, engine, id, _folder) = busy().await;
    let script = async {
        engine.refusals.store(3, Ordering::SeqCst);
        while job_has_not_ended(patiently(&store, id).await.status) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), services.run_tasks(script)).await.unwrap();
    let job = job(&store, id).await;
    assert_eq!((job.status, job.errors.as_str()), (Status::Succeeded, "[]"));
}

fn job_has_not_ended(status: Status) -> bool {
    matches!(status, Status::Queued | Status::Running)
}

#[tokio::test]
async fn a_job_that_gives_up_says_so_and_holds_nothing_up_meanwhile() {
    let (services, store, engine, id, _folder) = busy().await;
    engine.refusals.store(usize::MAX, Ordering::SeqCst);
    let queue = async |store: &Store| {
        let backlog = |tx: &mut dyn memtrove_store::Tx| tasks::backlog(tx).map(|(depth, _)| depth);
        store.write(AllTenants, "test", backlog).await.unwrap()
    };
    let status = async |store: &Store| {
        store.write(AllTenants, "test", move |tx| jobs::get(tx, id)).await.unwrap().unwrap().status
    };
    let script = async {
        let at = Timestamp::from_micros(0);
        let enqueue = move |tx: &mut dyn memtrove_store::Tx| {
            let body = r#"{"conversationGroupId":"00000000-0000-0000-0000-000000000007"}"#;
            tasks::enqueue(tx, Uuid::from_u128(7), None, "vector_store_delete", body, at)
        };
        store.write(AllTenants, "test", enqueue).await.unwrap();
        // Every write of an event or a deletion wakes the worker; here nobody does.
        while queue(&store).await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(status(&store).await, Status::Running, "the task did not wait for the job");
        while job_has_not_ended(status(&store).await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), services.run_tasks(script)).await.unwrap();

    engine.refusals.store(0, Ordering::SeqCst);
    let job = job(&store, id).await;
    assert_eq!(job.status, Status::Failed);
    let errors: Vec<String> = serde_json::from_str(&job.errors).unwrap();
    assert!(errors.len() == 1 && errors[0].contains("could not be rebuilt"), "{errors:?}");
}

/// Somebody in a deployment that trusts the client `gateway` only. Users and clients are bound to these tenants.
fn someone(
    user: Option<(&str, &str)>,
    client: Option<(&str, Option<&str>)>,
    tenant: Option<&str>,
) -> Principal {
    let policy = IdentityPolicy {
        default_tenant: "default".into(),
        trust: Trust::Clients(HashSet::from(["gateway".to_owned()])),
        admin: RoleGrant { users: HashSet::from(["admin".to_owned()]), ..RoleGrant::default() },
        auditor: RoleGrant::default(),
        indexer: RoleGrant::default(),
        reader: None,
        writer: None,
    };
    let credentials = Credentials {
        user: user.map(|(id, tenant)| VerifiedUser {
            id: id.into(),
            tenant: Some(tenant.into()),
            ..VerifiedUser::default()
        }),
        client: client
            .map(|(id, tenant)| VerifiedClient { id: id.into(), tenant: tenant.map(str::to_owned) }),
        asserted_tenant: tenant.map(str::to_owned),
        ..Credentials::default()
    };
    resolve(credentials, &policy).unwrap()
}

#[tokio::test]
async fn a_job_is_seen_from_its_tenant_by_whoever_could_have_asked_for_it() {
    let world = World::new(Settings::default()).await;
    let files = &world.services.files;
    let start = async |principal: &Principal, user: &str| {
        let caller = ScopedCaller::enter(principal, user.to_owned(), None, "request".to_owned()).unwrap();
        files.reindex_scope(&files.admit(caller).await.unwrap()).await.unwrap().to_string()
    };
    let sees = async |principal: Principal, job: &str| match files.job(&principal, job).await {
        Ok(found) => found.id.to_string() == job,
        Err(Error { code: Code::JobNotFound, .. }) => false,
        Err(error) => panic!("{error}"),
    };
    let user = |id, tenant| someone(Some((id, tenant)), None, None);
    let client = |id, tenant| someone(None, Some((id, Some(tenant))), None);

    let of_alice = start(&user("alice", "acme"), "alice").await;
    assert!(sees(user("alice", "acme"), &of_alice).await);
    assert!(sees(client("robot", "acme"), &of_alice).await, "a client of the tenant acts on its users");
    assert!(sees(user("admin", "acme"), &of_alice).await);
    assert!(!sees(user("alice", "globex"), &of_alice).await, "another alice");
    assert!(!sees(user("bob", "acme"), &of_alice).await);
    assert!(!sees(user("admin", "globex"), &of_alice).await);
    assert!(!sees(client("robot", "globex"), &of_alice).await);

    let of_all = files.reindex_tenant(&user("admin", "acme"), None).await.unwrap().to_string();
    assert!(sees(user("admin", "acme"), &of_all).await);
    assert!(!sees(user("admin", "globex"), &of_all).await);
    assert!(!sees(client("robot", "acme"), &of_all).await);

    let of_gateway = start(&someone(None, Some(("gateway", None)), Some("globex")), "carol").await;
    assert!(sees(someone(None, Some(("gateway", None)), None), &of_gateway).await, "it chooses its tenant");
    assert!(!sees(someone(None, Some(("other", None)), None), &of_gateway).await);
}
