//! Sessions that nobody ends: what matters in them outlives them, once, on both engines.

use crate::world::{identifiers, principal};
use memtrove_core::files::ScopedCaller;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{
    AddMemory, Assertion, BulkAdd, Change, EndSession, GivenMetadata, Identifier, Identifiers, Kind, Layer,
    ListMemories, Memory, MemoryCaller, MemoryId, ScopeKey,
};
use memtrove_core::{Clock, ConversationId, Timestamp};
use memtrove_service::conversations::CreateConversation;
use memtrove_service::{Services, Settings};
use memtrove_store::memories::entries::{self, ExpiredSince};
use memtrove_store::postgres::PostgresEngine;
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::{AllTenants, Store, Tx, leases};
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// Each behaviour as a test on SQLite and one on PostgreSQL.
macro_rules! on_both_engines {
    ($($behaviour:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(super::Engine::sqlite()).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(super::Engine::postgres()).await;
            })*
        }
    };
}

on_both_engines!(
    what_matters_is_copied_to_the_user_when_it_expires,
    what_the_end_of_a_session_would_leave_behind_goes,
    what_was_used_often_matters,
    what_happened_then_still_happened_then,
    a_server_that_was_away_for_days_looks_before_it_purges,
    what_is_said_already_is_not_said_twice,
    nothing_is_promoted_where_that_is_switched_off,
    what_the_end_of_its_session_left_behind_stays_behind_until_it_changes,
    a_user_who_was_forgotten_is_not_promoted,
    the_session_of_a_deleted_conversation_is_not_promoted,
    a_long_backlog_is_promoted_in_several_passes,
    what_the_end_of_its_session_did_not_choose_stays_behind,
    what_was_given_a_lifetime_of_its_own_has_had_it,
    what_was_copied_before_something_failed_is_linked,
    what_cannot_be_promoted_takes_nothing_from_others_and_goes_after_a_day,
    the_same_words_at_another_time_say_something_else,
);

/// A store that services are opened on, again and again.
struct Engine {
    store: Store,
    database: Option<Arc<Database>>,
    clock: Arc<TestClock>,
    _folder: tempfile::TempDir,
}

impl Engine {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memtrove.db");
        let engine = SqliteEngine::open(SqliteConfig { path, ..SqliteConfig::default() }).unwrap();
        let clock = Arc::new(TestClock::new());
        Self { store: Store::new(Arc::new(engine)), database: None, clock, _folder: folder }
    }

    fn postgres() -> Self {
        let database = Database::fresh();
        let store = Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()));
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
        Self { store, database: Some(database), clock, _folder: folder }
    }

    async fn start(&self) -> Services {
        self.start_with(|_| {}).await
    }

    async fn start_with(&self, change: impl FnOnce(&mut Settings)) -> Services {
        let mut settings = Settings::default();
        change(&mut settings);
        Services::new(self.store.clone(), self.clock.clone(), settings).await.unwrap()
    }
}

impl Engine {
    /// From now on the store refuses every new entry that says "refused".
    async fn refuse_copies(&self) {
        let sql: &[&str] = match self.database {
            None => &["CREATE TRIGGER refuse BEFORE INSERT ON memories \
                       WHEN instr(NEW.content, CAST('refused' AS BLOB)) > 0 BEGIN SELECT RAISE(ABORT, 'no'); END"],
            Some(_) => &[
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'no'; END $$",
                "CREATE TRIGGER refuse BEFORE INSERT ON memories FOR EACH ROW \
                 WHEN (position('refused'::bytea in NEW.content) > 0) EXECUTE FUNCTION refuse()",
            ],
        };
        let refuse = move |tx: &mut dyn Tx| sql.iter().try_for_each(|sql| tx.execute(sql, &[]).map(drop));
        self.store.write(AllTenants, "refuse_copies", refuse).await.unwrap();
    }

    /// How many expired entries are stored still.
    async fn expired(&self) -> usize {
        let now = self.clock.now();
        let list = move |tx: &mut dyn Tx| entries::expired(tx, now, ExpiredSince::EVER, 10_000);
        self.store.read(AllTenants, "list_expired", list).await.unwrap().0.len()
    }
}

/// A user's memories.
struct Person<'a> {
    services: &'a Services,
    caller: MemoryCaller,
    name: &'a str,
}

impl<'a> Person<'a> {
    fn new(services: &'a Services, name: &'a str) -> Self {
        let caller = services.memories.caller(&principal(name, None), "request".into());
        Self { services, caller, name }
    }

    fn session(&self, session: &str) -> Identifiers {
        identifiers(&[(Identifier::User, self.name), (Identifier::Session, session)])
    }

    async fn say(&self, session: &str, content: &str, metadata: Value) -> MemoryId {
        self.say_as(session, content, metadata, None).await
    }

    async fn say_as(&self, session: &str, content: &str, metadata: Value, kind: Option<Kind>) -> MemoryId {
        self.add(AddMemory { kind, ..self.saying(session, content, metadata) }).await
    }

    /// Something that lives for an hour, as entries of sessions do.
    fn saying(&self, session: &str, content: &str, metadata: Value) -> AddMemory {
        let Value::Object(metadata) = metadata else { panic!("metadata are an object") };
        AddMemory {
            metadata: GivenMetadata::new(metadata).unwrap(),
            ttl_seconds: Some(3600),
            ..AddMemory::new(Layer::Session, self.session(session), content.to_owned())
        }
    }

    async fn add(&self, add: AddMemory) -> MemoryId {
        let added = self.services.memories.add(&self.caller, add, None).await.unwrap();
        added.now().unwrap().memory.memory.id
    }

    async fn end(&self, session: &str, change: impl FnOnce(&mut EndSession)) {
        let mut request = EndSession { identifiers: self.session(session), ..EndSession::default() };
        change(&mut request);
        self.services.memories.end_session(&self.caller, request).await.unwrap();
    }

    /// What is known of the user for good, by its text.
    async fn knows(&self) -> Vec<Memory> {
        let of_user = identifiers(&[(Identifier::User, self.name)]);
        let list = ListMemories { limit: Some(100), ..ListMemories::new(Layer::User, of_user) };
        let mut known = self.services.memories.list(&self.caller, list).await.unwrap().memories;
        known.sort_by(|a, b| a.content.cmp(&b.content));
        known
    }

    /// Says things in one session, together.
    async fn say_all(&self, session: &str, contents: impl Iterator<Item = String>) {
        self.say_all_in(contents.map(|content| (session.to_owned(), content))).await;
    }

    /// Says things, each in a session, together.
    async fn say_all_in(&self, said: impl Iterator<Item = (String, String)>) {
        let items: Vec<_> =
            said.map(|(session, content)| Ok(self.saying(&session, &content, important()))).collect();
        let adds = BulkAdd { count: items.len(), items, atomic: true };
        self.services.memories.bulk_add(&self.caller, adds, None).await.unwrap();
    }

    /// How much is known of the user for good.
    async fn counts(&self) -> usize {
        let list = ListMemories::new(Layer::User, identifiers(&[(Identifier::User, self.name)]));
        self.services.memories.list(&self.caller, list).await.unwrap().total
    }

    async fn knows_texts(&self) -> Vec<String> {
        self.knows().await.into_iter().map(|memory| memory.content).collect()
    }
}

fn stamp(number: usize) -> String {
    format!("Alice owns the stamp number {number}")
}

fn important() -> Value {
    json!({"importance": 0.9, "tags": ["travel"]})
}

/// What expires an hour after it was said, or changed, is swept.
async fn expire(engine: &Engine, services: &Services) {
    engine.clock.advance_micros(HOUR + SECOND);
    services.run_due_tasks().await.unwrap();
}

async fn what_matters_is_copied_to_the_user_when_it_expires(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    let id = alice.say("s", "Alice moves to Porto in May", important()).await;
    alice.say_as("s", "The move is on the second", important(), Some(Kind::Episodic)).await;
    engine.clock.advance_micros(HOUR - 1);
    services.run_due_tasks().await.unwrap();
    assert_eq!(alice.knows_texts().await, Vec::<String>::new(), "it has not expired yet");

    engine.clock.advance_micros(1);
    services.run_due_tasks().await.unwrap();

    let known = alice.knows().await;
    assert_eq!(
        known.iter().map(|memory| memory.content.as_str()).collect::<Vec<_>>(),
        ["Alice moves to Porto in May", "The move is on the second"]
    );
    let copy = &known[0];
    assert_eq!((copy.lineage.promoted_from, copy.kind), (Some(id), Kind::UserPersonal));
    assert_eq!((copy.expires_at, copy.ttl_seconds), (None, None));
    assert_eq!(copy.created_by.user.as_deref(), Some("alice"));
    assert_eq!(copy.metadata["tags"], json!(["travel"]));
    assert!(copy.embedding.is_some() || copy.state != memtrove_core::memories::State::Created);
    let gone = services.memories.get(&alice.caller, id, &Assertion::default()).await;
    assert!(gone.is_err(), "the original has expired");
    for _ in 0..2 {
        expire(&engine, &services).await;
    }
    assert_eq!(alice.knows().await.len(), 2, "once");
}

async fn what_the_end_of_a_session_would_leave_behind_goes(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    alice.say("s", "it rains", json!({"importance": 0.79})).await;
    alice.say("s", "nobody asked for this", json!({})).await;
    alice.say("s", "her pin is 1234", json!({"importance": 1, "sensitive": true})).await;
    alice.say("s", "she is ill", json!({"importance": 1, "private": true})).await;
    alice.say_as("s", "scratch", important(), Some(Kind::Working)).await;
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, Vec::<String>::new());
}

async fn what_was_used_often_matters(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    let id = alice.say("s", "Alice drinks tea", json!({})).await;
    alice.say("s", "Alice wears a hat", json!({})).await;
    for _ in 0..10 {
        services.memories.get(&alice.caller, id, &Assertion::default()).await.unwrap();
    }
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, ["Alice drinks tea"]);
}

async fn what_happened_then_still_happened_then(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    let then = Some(Timestamp::from_micros(1_000_000));
    for (session, content) in [("ended", "Alice moved to Porto"), ("s", "Alice bought a boat")] {
        let dated = |add| AddMemory { occurred_at: then, ..add };
        alice.add(dated(alice.saying(session, content, important()))).await;
    }
    alice.end("ended", |_| {}).await;
    expire(&engine, &services).await;
    let known = alice.knows().await;
    assert_eq!(known.iter().map(|memory| memory.occurred_at).collect::<Vec<_>>(), [then, then]);
}

async fn a_server_that_was_away_for_days_looks_before_it_purges(engine: Engine) {
    let services = engine.start().await;
    Person::new(&services, "alice").say("s", "Alice moves to Porto", important()).await;
    drop(services);
    engine.clock.advance_micros(9 * DAY);
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    assert_eq!(alice.knows_texts().await, Vec::<String>::new());
    services.run_due_tasks().await.unwrap();
    assert_eq!(alice.knows_texts().await, ["Alice moves to Porto"]);
}

async fn what_is_said_already_is_not_said_twice(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    for session in ["one", "another"] {
        alice.say(session, "Alice moves to Porto", important()).await;
    }
    alice.say("one", "alice moves  to Porto!", important()).await;
    // What the end of its session promoted is not looked at again.
    alice.say("ended", "Alice has a cat", important()).await;
    alice.end("ended", |_| {}).await;
    expire(&engine, &services).await;
    let known = alice.knows_texts().await;
    assert_eq!(known.len(), 2, "{known:?}");
}

async fn nothing_is_promoted_where_that_is_switched_off(engine: Engine) {
    let services =
        engine.start_with(|settings| settings.memories.rules.session.promote_important = false).await;
    let alice = Person::new(&services, "alice");
    alice.say("s", "Alice moves to Porto", important()).await;
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, Vec::<String>::new());

    let services = engine
        .start_with(|settings| settings.memories.rules.enabled_layers.retain(|layer| *layer != Layer::User))
        .await;
    Person::new(&services, "alice").say("s", "Alice moves to Faro", important()).await;
    expire(&engine, &services).await;
    let services = engine.start().await;
    assert_eq!(Person::new(&services, "alice").knows_texts().await, Vec::<String>::new());
}

async fn what_the_end_of_its_session_left_behind_stays_behind_until_it_changes(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    alice.say("s", "Alice moves to Porto", important()).await;
    let changed = alice.say("s", "Alice has a cat", important()).await;
    alice.say("picky", "Alice has a dog", important()).await;
    alice.end("s", |end| end.promote_important = Some(false)).await;
    alice.end("picky", |end| end.promotion_threshold = Some(0.95)).await;
    alice.say("s", "Alice has a canary", important()).await;
    let change = Change { content: Some("Alice has two cats".to_owned()), ..Change::default() };
    services.memories.update(&alice.caller, changed, &Assertion::default(), change).await.unwrap();
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, ["Alice has a canary", "Alice has two cats"]);
}

async fn a_user_who_was_forgotten_is_not_promoted(engine: Engine) {
    let services = engine.start().await;
    let (alice, bob) = (Person::new(&services, "alice"), Person::new(&services, "bob"));
    alice.say("s", "Alice moves to Porto", important()).await;
    bob.say("s", "Bob moves to Faro", important()).await;
    let scoped = ScopedCaller::enter(&principal("alice", Some("agent")), "alice".into(), None, "r".into());
    let files = &services.files;
    files.forget(&files.admit(scoped.unwrap()).await.unwrap()).await.unwrap();
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, Vec::<String>::new());
    assert_eq!(bob.knows_texts().await, ["Bob moves to Faro"]);
}

async fn the_session_of_a_deleted_conversation_is_not_promoted(engine: Engine) {
    let services = engine.start().await;
    let (alice, owner) = (Person::new(&services, "alice"), crate::world::caller("alice", None));
    let mut sessions: Vec<ConversationId> = Vec::new();
    for _ in 0..2 {
        let created = services.conversations.create(&owner, CreateConversation::default()).await.unwrap();
        sessions.push(created.id);
    }
    alice.say(&sessions[0].to_string(), "Alice moves to Porto", important()).await;
    alice.say(&sessions[1].to_string(), "Alice has a cat", important()).await;
    services.conversations.delete(&owner, sessions[0]).await.unwrap();
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, ["Alice has a cat"]);
}

async fn a_long_backlog_is_promoted_in_several_passes(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    for some in 0..3 {
        let stamps = (some * 400..(some + 1) * 400).map(|number| (format!("s{}", number % 7), number));
        alice.say_all_in(stamps.map(|(session, number)| (session, stamp(number)))).await;
    }
    expire(&engine, &services).await;
    assert_eq!(alice.counts().await, 1_000, "a pass does no more");
    services.run_due_tasks().await.unwrap();
    assert_eq!(alice.counts().await, 1_200, "and the next one goes on");
}

async fn what_the_end_of_its_session_did_not_choose_stays_behind(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    let id = alice.say("s", "Alice drinks tea", json!({})).await;
    alice.end("s", |_| {}).await;
    for _ in 0..10 {
        services.memories.get(&alice.caller, id, &Assertion::default()).await.unwrap();
    }
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, Vec::<String>::new());
}

async fn what_was_given_a_lifetime_of_its_own_has_had_it(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    for (content, ttl_seconds) in
        [("The code is 4711", Some(300)), ("The lift is broken", Some(7200)), ("Alice has a cat", None)]
    {
        alice.add(AddMemory { ttl_seconds, ..alice.saying("s", content, important()) }).await;
    }
    for _ in 0..2 {
        expire(&engine, &services).await;
    }
    assert_eq!(alice.knows_texts().await, ["Alice has a cat"]);
}

async fn what_was_copied_before_something_failed_is_linked(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    alice.say("s", "Alice owns a refused stamp", important()).await;
    engine.clock.advance_micros(SECOND);
    alice.say_all("s", (0..249).map(stamp)).await;
    engine.refuse_copies().await;
    let request = EndSession { identifiers: alice.session("s"), ..EndSession::default() };
    assert!(services.memories.end_session(&alice.caller, request).await.is_err(), "one copy is refused");
    assert_eq!(alice.counts().await, 200, "the first step was done");
    let list = ListMemories { limit: Some(100), ..ListMemories::new(Layer::Session, alice.session("s")) };
    let newest = services.memories.list(&alice.caller, list).await.unwrap().memories;
    assert!(newest.iter().all(|memory| memory.lineage.promoted_to.is_some()));
}

async fn what_cannot_be_promoted_takes_nothing_from_others_and_goes_after_a_day(engine: Engine) {
    let services = engine.start().await;
    let (alice, bob) = (Person::new(&services, "alice"), Person::new(&services, "bob"));
    bob.say("s", "Bob has a cat", important()).await;
    for _ in 0..3 {
        bob.say_all("s", (0..400).map(|number| format!("Bob owns the refused stamp {number}"))).await;
    }
    engine.clock.advance_micros(SECOND);
    alice.say("s", "Alice has a dog", important()).await;
    engine.refuse_copies().await;
    expire(&engine, &services).await;
    assert_eq!(alice.knows_texts().await, ["Alice has a dog"]);
    assert_eq!((bob.counts().await, engine.expired().await), (0, 1_201), "it waits");

    engine.clock.advance_micros(DAY);
    services.run_due_tasks().await.unwrap();
    assert_eq!(bob.knows_texts().await, ["Bob has a cat"], "each is tried by itself before it goes");
    assert_eq!(engine.expired().await, 1_001, "the others go step by step");
}

async fn the_same_words_at_another_time_say_something_else(engine: Engine) {
    let services = engine.start().await;
    let alice = Person::new(&services, "alice");
    for day in [None, Some(1), Some(2), Some(2), None] {
        let occurred_at = day.map(|day| Timestamp::from_micros(day * DAY));
        let said = alice.saying("s", "Alice swam a mile", important());
        alice.add(AddMemory { occurred_at, ..said }).await;
    }
    alice.end("s", |_| {}).await;
    let mut times: Vec<_> = alice.knows().await.into_iter().map(|memory| memory.occurred_at).collect();
    times.sort();
    assert_eq!(times, [None, Some(Timestamp::from_micros(DAY)), Some(Timestamp::from_micros(2 * DAY))]);
}

/// Another node copies to Bob for as long as this lasts: what goes to Alice does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promoting_to_one_user_does_not_wait_for_another() {
    let engine = Engine::postgres();
    let services = engine.start().await;
    let (alice, bob) = (Person::new(&services, "alice"), Person::new(&services, "bob"));
    alice.say("s", "Alice moves to Porto", important()).await;
    bob.say("s", "Bob moves to Faro", important()).await;
    let target =
        ScopeKey::listed(Tenant::listed("default".to_owned()), Layer::User, vec!["bob".to_owned()]).unwrap();
    let half: String = target.hash().0[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let (now, until) = (engine.clock.now(), engine.clock.now().saturating_add_micros(HOUR));
    let (name, node) = (format!("promote {half}"), Uuid::from_u128(7));
    let take = move |tx: &mut dyn Tx| leases::take(tx, &name, node, now, until);
    assert!(engine.store.write(AllTenants, "take_lease", take).await.unwrap());

    let waiting = bob.end("s", |_| {});
    tokio::pin!(waiting);
    let soon = tokio::time::timeout(Duration::from_millis(500), &mut waiting).await;
    assert!(soon.is_err(), "the other node is at it");
    let all = async {
        tokio::select! { () = &mut waiting => panic!("too early"), () = alice.end("s", |_| {}) => {} }
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.unwrap();
    assert_eq!(alice.knows_texts().await, ["Alice moves to Porto"]);
}

/// Two nodes at once: the one that has the lease promotes, and if both do, it is done once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_nodes_promote_once() {
    let engine = Engine::postgres();
    let other = PostgresEngine::open(engine.database.as_ref().unwrap().config()).unwrap();
    let one = engine.start().await;
    let other = Services::new(Store::new(Arc::new(other)), engine.clock.clone(), Settings::default());
    let other = other.await.unwrap();
    let (alice, of_other) = (Person::new(&one, "alice"), Person::new(&other, "alice"));
    for number in 0..20 {
        let node = if number % 2 == 0 { &alice } else { &of_other };
        node.say(&format!("s{number}"), &format!("stamp {number} shows a heron"), important()).await;
    }
    engine.clock.advance_micros(HOUR);
    for _ in 0..3 {
        let (first, second) = tokio::join!(one.run_due_tasks(), other.run_due_tasks());
        first.unwrap();
        second.unwrap();
    }
    assert_eq!(alice.knows().await.len(), 20);
    assert_eq!(of_other.knows().await.len(), 20);
}
