//! `remember`: what is said already is found exactly, by those who may see it, and stored once.

use crate::world::{World, entry_of, identifiers, list_of, principal};
use memtrove_core::files::ScopedCaller;
use memtrove_core::memories::{
    AddMemory, Assertion, Change, ConsolidateRequest, Identifier, Layer, MemoryCaller, MemoryId,
    Precondition, Promote, SearchMemories,
};
use memtrove_service::{Services, Settings};
use memtrove_store::postgres::PostgresEngine;
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::vault::rotation::Rotation;
use memtrove_store::vault::{Keys, Vault, WrappingKey};
use memtrove_store::{AllTenants, Store, Tx, TxExt};
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;

const TEA: &str = "Alice prefers green tea.";

async fn world() -> World {
    World::new(Settings::default()).await
}

/// Somebody's memories, on a node.
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

    fn request(&self, content: &str, members: Value) -> AddMemory {
        let mut body = json!({"content": content, "layer": "user", "identifiers": {"userId": self.name,
            "projectId": "p", "sessionId": "s"}});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        entry_of(&body)
    }

    /// The id of what says it now, and whether it is new.
    async fn remember_as(&self, content: &str, members: Value) -> (String, bool) {
        let add = self.request(content, members);
        let remembered = self.services.memories.remember(&self.caller, add).await.unwrap();
        (remembered.memory.id.to_string(), remembered.created)
    }

    async fn remember(&self, content: &str) -> (String, bool) {
        self.remember_as(content, json!({})).await
    }

    async fn add(&self, content: &str, members: Value) -> String {
        let add = self.request(content, members);
        let added = self.services.memories.add(&self.caller, add, None).await.unwrap();
        added.now().unwrap().memory.memory.id.to_string()
    }

    /// What the person sees of a layer.
    async fn listed(&self, layer: &str) -> Vec<String> {
        let body = json!({"layer": layer, "identifiers": {"userId": self.name, "projectId": "p"}});
        let list = list_of(&body);
        let listed = self.services.memories.list(&self.caller, list).await.unwrap();
        listed.memories.into_iter().map(|memory| memory.id.to_string()).collect()
    }

    async fn archive(&self, id: &str) {
        let memories = &self.services.memories;
        memories.archive(&self.caller, MemoryId::named(id), &Precondition::default()).await.unwrap();
    }

    async fn forget_words(&self, words: &str) -> BTreeSet<String> {
        let named = [(Identifier::User, self.name), (Identifier::Project, "p"), (Identifier::Session, "s")];
        let layers = Some(vec![Layer::User, Layer::Project, Layer::Session]);
        let words = SearchMemories { layers, ..SearchMemories::new(identifiers(&named), words.to_owned()) };
        let gone = self.services.memories.forget_words(&self.caller, words).await.unwrap();
        gone.into_iter().map(|id| id.to_string()).collect()
    }
}

#[tokio::test]
async fn the_same_words_are_one_memory_and_kinds_and_times_tell_apart() {
    let world = world().await;
    let alice = Person::new(&world.services, "alice");
    let (id, created) = alice.remember(TEA).await;
    assert!(created);
    for same in ["alice  prefers GREEN tea", "Alice prefers green tea!?"] {
        assert_eq!(alice.remember(same).await, (id.clone(), false), "{same}");
    }
    for other in ["Alice prefers green teas.", "Alice, prefers green tea.", "🫖", "🍵", "?!"] {
        let (first, created) = alice.remember(other).await;
        assert!(created, "{other}");
        assert_eq!(alice.remember(other).await, (first, false), "{other}");
    }
    // Another kind, and another time, say something else; the time of making is no time.
    let episodic = |at: Option<&str>| json!({"kind": "episodic", "occurredAt": at});
    let (untimed, created) = alice.remember_as(TEA, episodic(None)).await;
    assert!(created && untimed != id);
    world.clock.advance_micros(1_000_000);
    assert_eq!(alice.remember_as(TEA, episodic(None)).await, (untimed.clone(), false));
    let then = episodic(Some("2026-01-31T12:00:00Z"));
    let (timed, created) = alice.remember_as(TEA, then.clone()).await;
    assert!(created && timed != untimed);
    assert_eq!(alice.remember_as(TEA, then).await, (timed.clone(), false));
    assert!(alice.remember_as(TEA, episodic(Some("2026-02-01T12:00:00Z"))).await.1);
    // Working memory has the same words by itself.
    let working = || json!({"kind": "working"});
    let (held, created) = alice.remember_as(TEA, working()).await;
    assert!(created && held != id);
    assert_eq!(alice.remember_as(TEA, working()).await, (held, false));
}

#[tokio::test]
async fn what_is_shared_is_found_and_what_is_hidden_neither_found_nor_in_the_way() {
    let world = world().await;
    let (alice, bob) = (Person::new(&world.services, "alice"), Person::new(&world.services, "bob"));
    let project = |policy: &str| json!({"layer": "project", "accessPolicy": {"policy": policy}});
    let (hidden, _) = alice.remember_as(TEA, project("private")).await;
    // Bob is told of nothing, and stores it for himself and for everybody.
    let (his, created) = bob.remember_as(TEA, project("private")).await;
    assert!(created && his != hidden);
    assert_eq!(alice.remember_as(TEA, project("private")).await, (hidden.clone(), false));
    assert_eq!(bob.remember_as(TEA, project("organization")).await, (his.clone(), false), "he sees his own");
    let carol = Person::new(&world.services, "carol");
    let (open, created) = carol.remember_as(TEA, project("organization")).await;
    assert!(created, "she sees neither");
    let dave = Person::new(&world.services, "dave");
    assert_eq!(dave.remember_as(TEA, project("organization")).await, (open.clone(), false));
    assert_eq!(dave.remember_as(TEA, project("private")).await, (open.clone(), false));
    // Whom a restricted one is for finds it.
    let restricted =
        json!({"layer": "project", "accessPolicy": {"policy": "restricted", "approvedUsers": ["dave"]}});
    let (named, _) = alice.remember_as("For Dave.", restricted.clone()).await;
    assert_eq!(dave.remember_as("for dave", project("organization")).await, (named, false));
    assert!(bob.remember_as("for dave", project("organization")).await.1);

    // Everybody forgets what they see.
    assert_eq!(bob.forget_words(TEA).await, BTreeSet::from([his, open]));
    assert_eq!(alice.forget_words(TEA).await, BTreeSet::from([hidden]));
}

#[tokio::test]
async fn what_is_gone_or_put_away_is_said_anew() {
    let world = world().await;
    let alice = Person::new(&world.services, "alice");
    let memories = &world.services.memories;
    let (deleted, _) = alice.remember(TEA).await;
    let (any, at_any) = (Assertion::default(), Precondition::default());
    assert!(memories.delete(&alice.caller, MemoryId::named(&deleted), &any, &at_any).await.unwrap());
    let (expiring, created) = alice.remember_as(TEA, json!({"ttlSeconds": 60})).await;
    assert!(created);
    world.clock.advance_micros(61_000_000);
    // It has expired and is not swept away yet.
    let (archived, created) = alice.remember(TEA).await;
    assert!(created && archived != expiring);
    alice.archive(&archived).await;
    let (second, created) = alice.remember(TEA).await;
    assert!(created && second != archived);

    // What comes back finds its place taken; both are there, and the same one is found.
    memories.restore(&alice.caller, MemoryId::named(&archived), &at_any).await.unwrap();
    assert_eq!(alice.remember(TEA).await, (second.clone(), false));
    assert_eq!(alice.listed("user").await.len(), 2);
    alice.archive(&second).await;
    assert_eq!(alice.remember(TEA).await, (archived.clone(), false), "the other one says it still");

    // Words that a change takes away are free, and those that it brings are said.
    let saying = |text: &str| Change { content: Some(text.to_owned()), ..Change::default() };
    let id = MemoryId::named(&archived);
    memories.update(&alice.caller, id, &any, saying("Alice prefers coffee")).await.unwrap();
    assert_eq!(alice.remember("alice prefers coffee").await, (archived.clone(), false));
    let (fresh, created) = alice.remember(TEA).await;
    assert!(created);
    memories.update(&alice.caller, id, &any, saying(TEA)).await.unwrap();
    assert_eq!(alice.remember(TEA).await, (fresh.clone(), false));
    assert_eq!(alice.forget_words(TEA).await, BTreeSet::from([fresh, archived]));
    assert!(alice.remember(TEA).await.1);
}

#[tokio::test]
async fn every_way_an_entry_comes_about_makes_its_words_known() {
    let world = world().await;
    let alice = Person::new(&world.services, "alice");
    let memories = &world.services.memories;
    // Two adds are two entries; the first is found, and both are forgotten.
    let twins = [alice.add(TEA, json!({})).await, alice.add(TEA, json!({})).await];
    assert_ne!(twins[0], twins[1]);
    assert_eq!(alice.remember(TEA).await, (twins[0].clone(), false));

    // Consolidation puts one of them away.
    let identifiers = alice.request(TEA, json!({})).identifiers;
    let request = ConsolidateRequest {
        layer: Layer::User,
        identifiers: identifiers.clone(),
        similarity_threshold: None,
        dry_run: false,
    };
    let merged = memories.consolidate(&alice.caller, request).await.unwrap().groups;
    assert_eq!(merged.iter().map(|(_, absorbed)| absorbed.len()).collect::<Vec<_>>(), [1]);
    let (left, created) = alice.remember(TEA).await;
    assert!(!created && twins.contains(&left));
    assert_eq!(alice.forget_words(TEA).await, BTreeSet::from([left]), "what is put away is not forgotten");

    // A copy in another layer.
    let (source, _) = alice.remember_as("Promoted once", json!({"layer": "session"})).await;
    let to = Promote { target_layer: Layer::User, identifiers, precondition: Precondition::default() };
    let copy = memories.promote(&alice.caller, MemoryId::named(&source), &to).await.unwrap();
    let kind = json!({"kind": copy.memory.kind.as_str()});
    assert_eq!(alice.remember_as("promoted once", kind).await, (copy.memory.id.to_string(), false));

    // Somebody who is forgotten leaves what all see, and nothing of what was its own.
    let project = json!({"layer": "project"});
    let (kept, _) = alice.remember_as("The shop charges in euros", project.clone()).await;
    let files = &world.services.files;
    let scoped =
        ScopedCaller::enter(&principal("alice", None), "alice".into(), None, "request".into()).unwrap();
    files.forget(&files.admit(scoped).await.unwrap()).await.unwrap();
    world.services.run_due_tasks().await.unwrap();
    let bob = Person::new(&world.services, "bob");
    assert_eq!(bob.remember_as("the shop charges in euros", project).await, (kept, false));
    assert_eq!(count(&world.store, "SELECT COUNT(*) FROM memories").await, 1);
    assert!(alice.remember_as("Promoted once", json!({})).await.1);
}

#[tokio::test]
async fn memories_of_an_older_version_are_found_before_the_background_came_to_them() {
    let world = world().await;
    let alice = Person::new(&world.services, "alice");
    let (id, _) = alice.remember(TEA).await;
    for number in 0..1200 {
        alice.add(&format!("Something else, {number}"), json!({})).await;
    }
    let unlist = |tx: &mut dyn Tx| tx.execute("UPDATE memories SET words = NULL, statement = NULL", &[]);
    world.store.write(AllTenants, "test", unlist).await.unwrap();
    assert_eq!(alice.remember(TEA).await, (id.clone(), false));
    world.store.write(AllTenants, "test", unlist).await.unwrap();
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(count(&world.store, "SELECT COUNT(*) FROM memories WHERE words IS NULL").await, 0);
    assert_eq!(alice.remember(TEA).await, (id, false));
}

async fn count(store: &Store, sql: &'static str) -> i64 {
    store.read(AllTenants, "test", move |tx| tx.first(sql, &[], |row| row.int(0))).await.unwrap().unwrap()
}

/// Remembers the same 32 times at once, on all of these nodes.
async fn at_once(nodes: &[Services]) {
    for members in [json!({}), json!({"layer": "project"}), json!({"kind": "working"})] {
        let mut calls = JoinSet::new();
        for number in 0..32 {
            let (services, members) = (nodes[number % nodes.len()].clone(), members.clone());
            calls.spawn(async move { Person::new(&services, "alice").remember_as(TEA, members).await });
        }
        let answers = calls.join_all().await;
        let ids: BTreeSet<&str> = answers.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids.len(), 1, "{members}");
        assert_eq!(answers.iter().filter(|(_, created)| *created).count(), 1, "{members}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_remember_the_same_at_once_one_stores_it() {
    let world = world().await;
    at_once(std::slice::from_ref(&world.services)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_on_several_nodes_who_remember_the_same_at_once_one_stores_it() {
    let (database, clock) = (Database::fresh(), Arc::new(TestClock::new()));
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let store = Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()));
        nodes.push(Services::new(store, clock.clone(), Settings::default()).await.unwrap());
    }
    at_once(&nodes[..1]).await;
    let alice = Person::new(&nodes[0], "alice");
    let forgotten = alice.forget_words(TEA).await;
    assert_eq!(forgotten.len(), 3);
    at_once(&nodes).await;
    assert_eq!(alice.listed("user").await.len(), 2, "one that lasts, one that does not");
    // What has no digest yet, and what expired, is looked up there too.
    let (expired, _) = alice.remember_as("short", json!({"ttlSeconds": 60})).await;
    clock.advance_micros(61_000_000);
    database.rows("UPDATE memories SET words = NULL");
    let (fresh, created) = alice.remember("short").await;
    assert!(created && fresh != expired);
    assert!(!Person::new(&nodes[1], "alice").remember(TEA).await.1);
}

fn key(number: u8) -> WrappingKey {
    WrappingKey::new(&[number; 32]).unwrap()
}

fn open(folder: &Path, vault: Vault) -> Store {
    let path = folder.join("memtrove.db");
    let config = SqliteConfig { path, vault: Arc::new(vault), ..SqliteConfig::default() };
    Store::new(Arc::new(SqliteEngine::open(config).unwrap()))
}

/// Opens the store with a vault and remembers: some words that are there, and others.
async fn check(folder: &Path, vault: Vault, said: &mut Vec<(String, String)>) {
    let store = open(folder, vault);
    let clock = Arc::new(TestClock::new());
    let services = Services::new(store.clone(), clock, Settings::default()).await.unwrap();
    let alice = Person::new(&services, "alice");
    for (words, id) in said.iter() {
        assert_eq!(alice.remember(words).await, (id.clone(), false), "{words}");
    }
    let words = format!("word number {}", said.len());
    let (id, created) = alice.remember(&words).await;
    assert!(created);
    said.push((words, id));
    drop(services);
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

/// Seals everything anew, or the first steps of it.
async fn rotate(folder: &Path, vault: Vault, to_the_end: bool) {
    let (store, rotation) = (open(folder, vault.rotating()), Rotation { keep_derived_texts: false });
    store.write(AllTenants, "test", move |tx| rotation.begin(tx)).await.unwrap();
    if to_the_end {
        while store.write(AllTenants, "test", move |tx| rotation.step(tx)).await.unwrap().is_some() {}
        store.write(AllTenants, "test", move |tx| rotation.finish(tx)).await.unwrap();
    }
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

#[tokio::test]
async fn what_was_said_is_found_whatever_becomes_of_encryption() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, mut said) = (folder.path(), Vec::new());
    let sealing = |current, former: &[u8]| {
        Vault::sealing(Keys::new(key(current), former.iter().map(|number| key(*number)).collect()))
    };
    check(folder, Vault::plain(), &mut said).await;
    // From now on new content is sealed; then all of it.
    check(folder, sealing(1, &[]).reading_plain(), &mut said).await;
    check(folder, sealing(1, &[]).reading_plain(), &mut said).await;
    rotate(folder, sealing(1, &[]), true).await;
    check(folder, sealing(1, &[]), &mut said).await;
    // Another key wraps the same data keys; then everything is to be sealed anew, which is interrupted.
    check(folder, sealing(2, &[1]), &mut said).await;
    rotate(folder, sealing(2, &[1]), false).await;
    check(folder, sealing(2, &[1]), &mut said).await;
    rotate(folder, sealing(2, &[1]), true).await;
    check(folder, sealing(2, &[]), &mut said).await;
    // And encryption is turned off.
    let keys = || Keys::new(key(2), Vec::new());
    check(folder, Vault::plain().reading_sealed(keys()), &mut said).await;
    rotate(folder, Vault::plain().reading_sealed(keys()), true).await;
    check(folder, Vault::plain(), &mut said).await;
}

#[tokio::test]
async fn sealed_words_have_digests_that_nobody_else_can_make() {
    let folder = tempfile::tempdir().unwrap();
    let digests = async |vault: Vault, name: &str| {
        let at = folder.path().join(name);
        std::fs::create_dir(&at).unwrap();
        check(&at, vault, &mut Vec::new()).await;
        let store = open(&at, Vault::plain().reading_sealed(Keys::new(key(1), vec![key(2)])));
        let read = store.read(AllTenants, "test", |tx| {
            tx.rows("SELECT words FROM memories", &[], |row| Ok(row.bytes(0)?.to_vec()))
        });
        read.await.unwrap()
    };
    let sealing = || Vault::sealing(Keys::new(key(1), Vec::new()));
    let plain = digests(Vault::plain(), "plain").await;
    let (one, other) = (digests(sealing(), "one").await, digests(sealing(), "other").await);
    assert_eq!(plain, digests(Vault::plain(), "again").await);
    assert!(plain != one && one != other, "each store has data keys of its own");
}
