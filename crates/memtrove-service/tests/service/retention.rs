//! What the server deletes without being asked: events past their days, keys past their time.

use crate::world::{World, principal};
use memtrove_core::Error;
use memtrove_core::files::retention::Retention;
use memtrove_core::files::{
    Code, FilePath, FilePrecondition, IdempotencyKey, Patch, Reasons, ScopedCaller, SearchEvents,
};
use memtrove_service::files::{
    Admitted, ChangeId, ListAudit, PatchFile, PutFile, Reconstruct, Role, WantedVersion, WriteEvent,
    WrittenFile,
};
use memtrove_service::{RetentionSettings, Settings};
use memtrove_store::AllTenants;
use memtrove_store::TxExt;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: i64 = 3600 * 1_000_000;
const DAY: i64 = 24 * HOUR;

async fn admitted<R: Role>(world: &World, user: &str) -> Admitted<R> {
    let caller =
        ScopedCaller::enter(&principal(user, Some("agent")), user.to_owned(), None, "request".to_owned());
    world.services.files.admit(caller.unwrap()).await.unwrap()
}

/// Settings of a deployment that lets everybody remove audit records.
fn without_floor() -> RetentionSettings {
    RetentionSettings { audit_min_days: 0, ..RetentionSettings::default() }
}

trait Events {
    async fn write(&self, user: &str, id: &str, key: Option<&str>);
    async fn found(&self, user: &str) -> usize;
    async fn keys(&self) -> i64;
}

impl Events for World {
    async fn write(&self, user: &str, id: &str, key: Option<&str>) {
        let event = json!({"event_id": id, "tenant_id": "default", "user_id": user, "digest": "met Bob"});
        let key = IdempotencyKey::read(key.map(str::to_owned), || event.to_string()).unwrap();
        let request = WriteEvent { event: Some(event), key };
        self.services.files.write_event(&admitted(self, user).await, request).await.unwrap();
    }

    async fn found(&self, user: &str) -> usize {
        let everything = SearchEvents::default();
        self.services.files.search_events(&admitted(self, user).await, everything).await.unwrap().len()
    }

    async fn keys(&self) -> i64 {
        let count = |row: &dyn memtrove_store::Row| row.int(0);
        self.store
            .read(AllTenants, "test", move |tx| {
                Ok::<_, Error>(tx.first("SELECT COUNT(*) FROM file_idempotency", &[], count)?.unwrap())
            })
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn the_configured_days_are_applied_to_everybody_at_the_start_and_again() {
    let interval = Duration::from_millis(5);
    let retention = RetentionSettings { events_days: Some(30), interval, ..RetentionSettings::default() };
    let world = World::new(Settings { retention, ..Settings::default() }).await;
    for user in ["alice", "bob"] {
        world.write(user, "old", None).await;
    }
    world.clock.advance_micros(20 * DAY);
    world.write("alice", "new", None).await;

    let ends = async |alice: usize, bob: usize| {
        while (world.found("alice").await, world.found("bob").await) != (alice, bob) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let script = async {
        // Several sweeps later everything is still there, because nothing is old enough.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!((world.found("alice").await, world.found("bob").await), (2, 1));
        world.clock.advance_micros(11 * DAY);
        ends(1, 0).await;
        world.clock.advance_micros(20 * DAY);
        ends(0, 0).await;
    };
    tokio::time::timeout(Duration::from_secs(60), world.services.run_tasks(script)).await.unwrap();
}

#[tokio::test]
async fn without_days_nothing_goes() {
    let world = World::new(Settings::default()).await;
    world.write("alice", "old", None).await;
    world.clock.advance_micros(36_500 * DAY);
    assert_eq!(world.services.files.sweep().await.unwrap(), (0, 0));
    assert_eq!(world.found("alice").await, 1);
}

#[tokio::test]
async fn a_sweep_with_nothing_to_do_writes_nothing() {
    let retention = RetentionSettings { events_days: Some(30), audit_days: Some(30), ..without_floor() };
    let world = World::new(Settings { retention, ..Settings::default() }).await;
    for user in ["alice", "bob", "carol"] {
        world.write(user, "e", None).await;
        world.create(user, "a.md").await;
    }
    world.clock.advance_micros(29 * DAY);
    let commits = world.store.commits();
    assert_eq!(world.services.files.sweep().await.unwrap(), (0, 0));
    assert!(!commits.has_changed().unwrap());
    world.clock.advance_micros(2 * DAY);
    assert_eq!(world.services.files.sweep().await.unwrap(), (3, 3));
    assert!(commits.has_changed().unwrap());
}

/// Files and what is known of their history.
trait Trail {
    async fn create(&self, user: &str, path: &str) -> WrittenFile;
    async fn patch(&self, user: &str, path: &str, etag: &str, text: &str) -> WrittenFile;
    /// The records of a user's trail after a place, as the contract shows them.
    async fn records(&self, user: &str, after: i64) -> Vec<Value>;
    /// The version that a record tells of, from the trail alone; none if that cannot be proved.
    async fn proved(&self, user: &str, record: &Value) -> Option<Value>;
    /// Removes what is older than now; says how many records went.
    async fn expire(&self, user: &str) -> u64;
}

impl Trail for World {
    async fn create(&self, user: &str, path: &str) -> WrittenFile {
        let document =
            json!({"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": "begun"}});
        let request = PutFile {
            path: FilePath::parse(path).unwrap(),
            precondition: FilePrecondition::Star,
            envelope: document.as_object().unwrap().clone(),
            reasons: Reasons::default(),
            key: None,
        };
        self.services.files.put(&admitted(self, user).await, request).await.unwrap()
    }

    async fn patch(&self, user: &str, path: &str, etag: &str, text: &str) -> WrittenFile {
        let op = json!({"op": "replace", "path": "/content/text", "value": text});
        let request = PatchFile {
            path: FilePath::parse(path).unwrap(),
            precondition: FilePrecondition::Matches(etag.to_owned()),
            patch: Patch::read(Some(&json!([op])), None).unwrap(),
            reasons: Reasons::default(),
            key: None,
        };
        self.services.files.patch(&admitted(self, user).await, request).await.unwrap()
    }

    async fn records(&self, user: &str, after: i64) -> Vec<Value> {
        let request = ListAudit { after: Some(after), limit: Some(500), ..ListAudit::default() };
        let page = self.services.files.list_audit(&admitted(self, user).await, request).await.unwrap();
        page.records.iter().map(|record| serde_json::to_value(record).unwrap()).collect()
    }

    async fn proved(&self, user: &str, record: &Value) -> Option<Value> {
        let text = |name: &str| record[name].as_str().unwrap();
        let path = FilePath::parse(text("path")).unwrap();
        let version = WantedVersion::Of(ChangeId::parse(text("change_id")).unwrap());
        let auditor = admitted(self, user).await;
        match self.services.files.reconstruct(&auditor, Reconstruct { path, version }).await {
            Ok(version) => Some(serde_json::from_str(&version.document).unwrap()),
            Err(Error { code: Code::AuditChainIncomplete, .. }) => None,
            // It went while we looked.
            Err(Error { code: Code::AuditNotFound, .. }) => Some(Value::Null),
            Err(error) => panic!("{error}"),
        }
    }

    async fn expire(&self, user: &str) -> u64 {
        let rules = Retention { events_days: 36_500, audit_days: 0, snapshots_days: 0, as_of: None };
        let writer = admitted(self, user).await;
        self.services.files.apply_retention(&writer, rules, None).await.unwrap().audit_deleted
    }
}

#[tokio::test]
async fn at_no_step_is_a_record_left_that_cannot_be_proved() {
    let world = World::new(Settings { retention: without_floor(), ..Settings::default() }).await;
    let mut version = world.create("alice", "a.md").await;
    for n in 0..1200 {
        world.clock.advance_micros(1);
        version = world.patch("alice", "a.md", &version.etag, &format!("version {n}")).await;
        if n % 100 == 0 {
            world.create("alice", &format!("b/{n}.md")).await;
        }
    }
    world.clock.advance_micros(1);
    let rest = world.patch("alice", "a.md", &version.etag, "the last").await;
    let mut commits = world.store.commits();
    let (before, watch) = (*commits.borrow_and_update(), async {
        loop {
            let oldest = world.records("alice", 0).await.remove(0);
            assert!(world.proved("alice", &oldest).await.is_some(), "{oldest}");
        }
    });
    tokio::select! {
        removed = world.expire("alice") => assert_eq!(removed, 1 + 1200 + 12),
        () = watch => {}
    }
    assert!(*commits.borrow() - before >= 3, "it took several units of work");
    let left = world.records("alice", 0).await;
    assert_eq!(left.len(), 1);
    let document: Value = serde_json::from_str(&rest.document).unwrap();
    assert_eq!(left[0]["document"], document);
    assert_eq!(world.proved("alice", &left[0]).await, Some(document));
}

#[tokio::test]
async fn what_is_written_while_the_rest_goes_can_be_proved() {
    let world = World::new(Settings { retention: without_floor(), ..Settings::default() }).await;
    for n in 0..100 {
        let path = format!("{n}.md");
        let version = world.create("alice", &path).await;
        world.clock.advance_micros(1);
        let (_, written) =
            tokio::join!(world.expire("alice"), world.patch("alice", &path, &version.etag, "meanwhile"));
        let records = world.records("alice", 0).await;
        let last = records.last().unwrap();
        let document: Value = serde_json::from_str(&written.document).unwrap();
        assert_eq!(world.proved("alice", last).await, Some(document), "{records:?}");
    }
}

#[tokio::test]
async fn a_record_that_proves_nothing_does_not_keep_the_others() {
    let world = World::new(Settings { retention: without_floor(), ..Settings::default() }).await;
    let mut stays = Vec::new();
    for path in ["a.md", "b.md", "c.md"] {
        let version = world.create("alice", path).await;
        stays.push((path, version));
    }
    let forge = |tx: &mut dyn memtrove_store::Tx| {
        tx.execute("UPDATE audit SET image = x'00' WHERE path = 'b.md'", &[])
    };
    assert_eq!(world.store.write(AllTenants, "test", forge).await.unwrap(), 1);
    world.clock.advance_micros(1);
    for (path, version) in stays {
        world.patch("alice", path, &version.etag, "new").await;
    }
    assert_eq!(world.expire("alice").await, 3);
    let left = world.records("alice", 0).await;
    assert_eq!(left.len(), 3);
    for record in &left {
        assert_eq!(world.proved("alice", record).await.is_some(), record["path"] != "b.md");
    }
}

#[tokio::test]
async fn the_sweep_keeps_what_the_floor_keeps() {
    let retention =
        RetentionSettings { audit_days: Some(1), audit_min_days: 100, ..RetentionSettings::default() };
    let world = World::new(Settings { retention, ..Settings::default() }).await;
    world.create("alice", "a.md").await;
    world.clock.advance_micros(100 * DAY);
    assert_eq!(world.services.files.sweep().await.unwrap(), (0, 0));
    world.clock.advance_micros(1);
    assert_eq!(world.services.files.sweep().await.unwrap(), (0, 1));
}

#[tokio::test]
async fn a_truncation_stays_in_the_trail_for_as_long_as_the_floor_says() {
    let retention =
        RetentionSettings { audit_days: Some(100), audit_min_days: 100, ..RetentionSettings::default() };
    let world = World::new(Settings { retention, ..Settings::default() }).await;
    for n in 0..1200 {
        world.create("alice", &format!("{n}.md")).await;
    }
    world.clock.advance_micros(1);
    let admin = principal("admin", Some("agent"));
    let admin = ScopedCaller::enter(&admin, "alice".to_owned(), None, "request".to_owned()).unwrap();
    let nothing = Retention { events_days: 0, audit_days: 0, snapshots_days: 0, as_of: None };
    let files = &world.services.files;
    let admin = files.admit(admin).await.unwrap();
    let mut commits = world.store.commits();
    let before = *commits.borrow_and_update();

    assert_eq!(files.apply_retention(&admin, nothing, Some("why")).await.unwrap().audit_deleted, 1200);

    assert!(*commits.borrow() - before >= 3, "it took several units of work");
    let trail = world.records("alice", 0).await;
    assert_eq!(trail.len(), 1, "and one record tells of all of them");
    assert_eq!((&trail[0]["action"], &trail[0]["count"]), (&json!("audit_truncated"), &json!(1200)));
    let ever = Retention { as_of: memtrove_core::Timestamp::parse("2999-01-01T00:00:00Z"), ..nothing };
    for days in [0, 99] {
        world.clock.advance_micros(days * DAY);
        assert_eq!(files.apply_retention(&admin, ever, Some("why")).await.unwrap().audit_deleted, 0);
        assert_eq!(world.records("alice", 0).await, trail);
    }
    world.clock.advance_micros(DAY + 1);
    assert_eq!(files.sweep().await.unwrap(), (0, 1));
    assert_eq!(world.records("alice", 0).await, Vec::<Value>::new());
}

#[tokio::test]
async fn many_keys_go_in_several_units_of_work() {
    let world = World::new(Settings::default()).await;
    for n in 0..1100 {
        world.write("alice", "e", Some(&format!("key{n}"))).await;
    }
    world.clock.advance_micros(25 * HOUR);
    let mut commits = world.store.commits();
    let before = *commits.borrow_and_update();
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.keys().await, 0);
    assert!(*commits.borrow() - before >= 3 + 3, "three for the keys, and the other chores");
}

#[tokio::test]
async fn idempotency_keys_go_when_their_time_is_over() {
    let idempotency_retention = Duration::from_secs(3600);
    let world = World::new(Settings { idempotency_retention, ..Settings::default() }).await;
    world.write("alice", "e", Some("key")).await;
    world.clock.advance_micros(HOUR);
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.keys().await, 1);
    world.clock.advance_micros(1);
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.keys().await, 0);
}
