//! Where memories meet events and forgetting, when something was broken off on the way.

use crate::world::{World, entry_of, list_of, principal};
use memtrove_core::Clock;
use memtrove_core::files::{Event, ScopedCaller};
use memtrove_core::memories::Memory;
use memtrove_service::Settings;
use memtrove_service::files::WriteEvent;
use memtrove_store::AllTenants;
use memtrove_store::files::{events, forget, scopes};
use serde_json::{Value, json};

fn scoped(user: &str) -> ScopedCaller {
    ScopedCaller::enter(&principal(user, Some("agent")), user.to_owned(), None, "request".to_owned()).unwrap()
}

trait Remembering {
    async fn remember(&self, user: &str, body: Value) -> String;
    async fn remembered(&self, user: &str, place: Value) -> Vec<Memory>;
}

impl Remembering for World {
    async fn remember(&self, user: &str, body: Value) -> String {
        let memories = &self.services.memories;
        let caller = memories.caller(&principal(user, None), "request".into());
        memories
            .add(&caller, entry_of(&body), None)
            .await
            .unwrap()
            .now()
            .unwrap()
            .memory
            .memory
            .id
            .to_string()
    }

    async fn remembered(&self, user: &str, place: Value) -> Vec<Memory> {
        let memories = &self.services.memories;
        let caller = memories.caller(&principal(user, None), "request".into());
        let list = list_of(&place);
        memories.list(&caller, list).await.unwrap().memories
    }
}

fn contents(memories: &[Memory]) -> Vec<&str> {
    let mut contents: Vec<&str> = memories.iter().map(|memory| memory.content.as_str()).collect();
    contents.sort_unstable();
    contents
}

fn user(name: &str, members: Value) -> Value {
    let mut body = json!({"layer": "user", "identifiers": {"userId": name}});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

fn project(members: Value) -> Value {
    let mut body = json!({"layer": "project", "identifiers": {"projectId": "p"}});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn events_of_before_are_mirrored_by_a_reindex() {
    let world = World::new(Settings::default()).await;
    let (caller, now) = (scoped("alice"), world.clock.now());
    for n in 0..150 {
        let event = json!({
            "event_id": format!("e{n}"), "tenant_id": "default", "user_id": "alice", "digest": format!("event {n}"),
        });
        let event = Event::read(Some(event), "default", "alice", "agent", now).unwrap();
        let scope = caller.scope.clone();
        let put = world.store.write(AllTenants, "test", move |tx| {
            let counted = scopes::lock(tx, &scope)?;
            events::put(tx, scope.tenant(), &counted, &event)
        });
        put.await.unwrap();
    }
    let everything = user("alice", json!({"limit": 100}));
    assert_eq!(world.remembered("alice", everything.clone()).await.len(), 0);

    for _ in 0..2 {
        world
            .services
            .files
            .reindex_scope(&world.services.files.admit(caller.clone()).await.unwrap())
            .await
            .unwrap();
        world.services.run_due_tasks().await.unwrap();
    }

    let mirrors = world.remembered("alice", everything).await;
    assert_eq!(mirrors.len(), 100, "a page of them");
    assert!(mirrors.iter().all(|mirror| mirror.version == 1 && mirror.lineage.mirror_of.is_some()));
    let memories = &world.services.memories;
    let caller = memories.caller(&principal("alice", None), "request".into());
    let list = list_of(&user("alice", json!({})));
    assert_eq!(memories.list(&caller, list).await.unwrap().total, 150);
}

#[tokio::test]
async fn a_forget_that_was_broken_off_takes_what_was_there_and_nothing_else() {
    let world = World::new(Settings::default()).await;
    let private = json!({"policy": "private"});
    for (name, body) in [
        ("alice", user("alice", json!({"content": "old"}))),
        ("alice", project(json!({"content": "old of all"}))),
        ("alice", project(json!({"content": "old and private", "accessPolicy": private}))),
        ("bob", user("bob", json!({"content": "of bob"}))),
    ] {
        world.remember(name, body).await;
    }
    let (who, now) = (scoped("alice").scope, world.clock.now());
    // As a process leaves it that is killed right then.
    world.store.write(AllTenants, "test", move |tx| forget::detach(tx, &who, now)).await.unwrap();
    assert_eq!(world.remembered("alice", user("alice", json!({}))).await, [], "out of reach at once");
    for body in [
        user("alice", json!({"content": "new"})),
        project(json!({"content": "new of all"})),
        project(json!({"content": "new and private", "accessPolicy": private})),
    ] {
        world.remember("alice", body).await;
    }

    world.services.run_due_tasks().await.unwrap();

    assert_eq!(contents(&world.remembered("alice", user("alice", json!({}))).await), ["new"]);
    let shared = world.remembered("alice", project(json!({}))).await;
    assert_eq!(contents(&shared), ["new and private", "new of all", "old of all"]);
    for memory in &shared {
        let author = memory.created_by.user.as_deref();
        assert_eq!(author, (memory.content != "old of all").then_some("alice"), "{memory:?}");
    }
    assert_eq!(contents(&world.remembered("bob", user("bob", json!({}))).await), ["of bob"]);
}

#[tokio::test]
async fn an_event_can_be_written_again_before_its_old_memory_is_cleared_away() {
    let world = World::new(Settings::default()).await;
    let tell = async || {
        let event = json!({"event_id": "e", "tenant_id": "default", "user_id": "alice", "digest": "met Bob"});
        let (files, request) = (&world.services.files, WriteEvent { event: Some(event), key: None });
        files.write_event(&files.admit(scoped("alice")).await.unwrap(), request).await.unwrap();
    };
    tell().await;
    tell().await;
    let (who, now) = (scoped("alice").scope, world.clock.now());
    world.store.write(AllTenants, "test", move |tx| forget::detach(tx, &who, now)).await.unwrap();

    tell().await;
    world.services.run_due_tasks().await.unwrap();

    let mirrors = world.remembered("alice", user("alice", json!({}))).await;
    assert_eq!((contents(&mirrors), mirrors[0].version), (vec!["met Bob"], 1));
}
