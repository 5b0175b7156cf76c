//! Where memories meet the rest: forgetting, files they point at, the audit trail.

use super::forget::{NOW, alice, detach, steps, tenant, write};
use super::{EngineFixture, count};
use memtrove_core::Timestamp;
use memtrove_core::files::{ETag, Event, FilePath};
use memtrove_core::memories::{
    AccessPolicy, Author, Kind, Layer, Lineage, Memory, MemoryId, Policy, ScopeKey, State,
};
use memtrove_core::recall::terms::EntryTerms;
use memtrove_store::files::audit::{self, NewRecord};
use memtrove_store::files::forget;
use memtrove_store::files::{events, scopes};
use memtrove_store::idempotency::{self, AnswerTable, KeyPlace, RequestKey};
use memtrove_store::memories::purge::{self, Selector};
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{entries, pointers, texts, versions};
use memtrove_store::{AllTenants, Store, StoreError, Tx};
use serde_json::{Map, Value, json};
use uuid::Uuid;

fn scope(layer: Layer, values: &[&str]) -> ScopeKey {
    ScopeKey::listed(tenant(), layer, values.iter().map(|value| (*value).to_owned()).collect()).unwrap()
}

pub(super) fn of_alice() -> ScopeKey {
    scope(Layer::User, &["alice"])
}

pub(super) fn project() -> ScopeKey {
    scope(Layer::Project, &["p"])
}

pub(super) fn memory(number: u128, scope: &ScopeKey, by: &str, metadata: Value) -> Memory {
    Memory {
        id: MemoryId(Uuid::from_u128(number)),
        scope: scope.clone(),
        kind: Kind::Semantic,
        origin_kind: None,
        content: "walrus".into(),
        metadata: metadata.as_object().cloned().unwrap_or_else(Map::new),
        state: State::Created,
        policy: AccessPolicy::new(Policy::Organization),
        created_by: Author { user: Some(by.into()), client: Some("agent".into()) },
        created_at: NOW,
        updated_at: NOW,
        occurred_at: None,
        expires_at: None,
        ttl_seconds: None,
        version: 1,
        anchor: NOW,
        fact: None,
        lineage: Lineage::default(),
        access_count: 0,
        last_accessed_at: None,
        embedding: None,
    }
}

/// Stores entries.
pub(super) async fn remember(store: &Store, memories: Vec<Memory>) {
    write(store, move |tx| {
        let mut writing = Writing::default();
        for memory in &memories {
            writing.insert(tx, memory, &EntryTerms::default())?;
        }
        writing.finish(tx)
    })
    .await;
}

/// Has entries say something else, as their second version.
async fn reword(store: &Store, memories: Vec<Memory>) {
    write(store, move |tx| {
        let mut writing = Writing::default();
        for memory in &memories {
            let next = Memory { content: "seal".into(), version: 2, ..memory.clone() };
            assert!(writing.replace(tx, &next, &EntryTerms::default(), 1)?);
        }
        writing.finish(tx)
    })
    .await;
}

async fn is_there(store: &Store, number: u128) -> bool {
    let id = MemoryId(Uuid::from_u128(number));
    store.read(AllTenants, "suite", move |tx| entries::get(tx, &tenant(), id)).await.unwrap().is_some()
}

/// Forgotten memories are out of reach at once, say nothing before the first of them goes, and go step by step; those that
/// come meanwhile stay.
pub async fn forgotten_memories_say_nothing_before_they_go(fixture: impl EngineFixture) {
    let store = fixture.store();
    let session = scope(Layer::Session, &["alice", "s"]);
    let mut memories: Vec<Memory> = (0..7).map(|n| memory(n, &of_alice(), "alice", json!({}))).collect();
    memories.extend((10..13).map(|n| memory(n, &session, "alice", json!({}))));
    memories.push(memory(20, &project(), "bob", json!({})));
    remember(store, memories.clone()).await;
    reword(store, memories).await;

    let gone = write(store, |tx| Ok(forget::detach(tx, &alice(), NOW)?.memories)).await;
    assert_eq!(gone.iter().map(|scope| scope.entries).sum::<u64>(), 10);
    assert!(!is_there(store, 0).await && is_there(store, 20).await);
    remember(store, vec![memory(30, &of_alice(), "alice", json!({}))]).await;
    let mut taken = 0;
    while write(store, |tx| purge::step(tx, 3)).await.is_some() {
        taken += 1;
        let all = count(store, "SELECT COUNT(*) FROM memories").await;
        let saying = count(store, "SELECT COUNT(*) FROM memories WHERE LENGTH(content) > 0").await;
        assert!(all == 12 || saying == 2, "some are gone while {saying} of {all} say something");
        let said = count(store, "SELECT COUNT(*) FROM memory_texts WHERE LENGTH(text) > 0").await;
        let found_by = count(store, "SELECT COUNT(*) FROM memories WHERE LENGTH(words) > 0").await;
        assert!(all == 12 || found_by == 2, "some are gone while {found_by} are found by what they said");
        assert!(all == 12 || said == 1, "some are gone while {said} are known to have said something");
    }
    assert!(taken > 6, "{taken} steps");
    assert_eq!(count(store, "SELECT COUNT(*) FROM memories").await, 2);
    assert_eq!(count(store, "SELECT COUNT(*) FROM memory_index").await, 2);
    assert_eq!(count(store, "SELECT COUNT(*) FROM memory_texts").await, 1);
    assert!(is_there(store, 30).await && is_there(store, 20).await);
}

/// What an entry said before is kept in the order of its versions, as many as are remembered, and goes with it. A version that
/// says the same leaves none.
pub async fn replaced_texts_go_with_their_memory(fixture: impl EngineFixture) {
    let store = fixture.store();
    let mut now = memory(1, &of_alice(), "alice", json!({}));
    remember(store, vec![now.clone()]).await;
    let id = now.id;
    let said = || async move {
        let texts = store.read(AllTenants, "suite", move |tx| texts::list(tx, id)).await.unwrap();
        texts.into_iter().map(|one| (one.version, one.text.unwrap())).collect::<Vec<_>>()
    };
    for version in 2..=versions::KEPT + 3 {
        now.version = version;
        // The third version says what the second said.
        if version != 3 {
            now.content = format!("text {version}");
        }
        let next = now.clone();
        write(store, move |tx| {
            let mut writing = Writing::default();
            assert!(writing.replace(tx, &next, &EntryTerms::default(), next.version - 1)?);
            writing.finish(tx)
        })
        .await;
        if version == 4 {
            assert_eq!(said().await, [(2, "walrus".to_owned()), (4, "text 2".to_owned())]);
        }
    }
    let kept = said().await;
    assert_eq!(kept.len() as i64, versions::KEPT);
    assert_eq!(kept.first(), Some(&(4, "text 2".to_owned())));
    let last = versions::KEPT + 3;
    assert_eq!(kept.last(), Some(&(last, format!("text {}", last - 1))));

    write(store, move |tx| {
        let stored = entries::get(tx, &tenant(), id)?.unwrap();
        texts::unsay(tx, &tenant(), stored.scope_no, id)
    })
    .await;
    let unsaid = store.read(AllTenants, "suite", move |tx| texts::list(tx, id)).await.unwrap();
    assert_eq!(unsaid.len(), kept.len(), "that there was another text is known");
    assert!(unsaid.iter().all(|one| one.text.is_none()));
    now.version += 1;
    now.policy = AccessPolicy::new(Policy::Public);
    now.content = "for all".into();
    let next = now.clone();
    write(store, move |tx| {
        let mut writing = Writing::default();
        assert!(writing.replace(tx, &next, &EntryTerms::default(), last)?);
        writing.finish(tx)
    })
    .await;
    let shown = store.read(AllTenants, "suite", move |tx| texts::list(tx, id)).await.unwrap();
    assert!(shown.iter().all(|one| one.text.is_none()), "others see it now than those it was said to");

    write(store, move |tx| {
        let mut writing = Writing::default();
        assert!(writing.remove(tx, &now, None)?);
        writing.finish(tx)
    })
    .await;
    assert_eq!(count(store, "SELECT COUNT(*) FROM memory_texts").await, 0);
}

/// An id that belongs to what is out of reach can be used again before that is cleared away.
pub async fn the_id_of_a_forgotten_memory_is_free(fixture: impl EngineFixture) {
    let store = fixture.store();
    remember(store, vec![memory(1, &of_alice(), "alice", json!({}))]).await;
    detach(store).await;
    write(store, |tx| purge::clear_id(tx, MemoryId(Uuid::from_u128(1)))).await;
    remember(store, vec![memory(1, &of_alice(), "alice", json!({}))]).await;
    write(store, |tx| purge::clear_id(tx, MemoryId(Uuid::from_u128(1)))).await;
    assert!(is_there(store, 1).await, "what can be reached is not cleared away");
    while write(store, |tx| purge::step(tx, 100)).await.is_some() {}
    assert!(is_there(store, 1).await);
}

/// A forgotten user loses its name on what it did in scopes of others, up to the moment it was forgotten.
pub async fn a_forgotten_author_is_found_in_scopes_of_others(fixture: impl EngineFixture) {
    let store = fixture.store();
    let of_bob = scope(Layer::User, &["bob"]);
    let private = Memory {
        policy: AccessPolicy::new(Policy::Private),
        ..memory(4, &project(), "alice", json!({"x": 1}))
    };
    remember(
        store,
        vec![
            memory(1, &of_alice(), "alice", json!({})),
            memory(2, &project(), "alice", json!({})),
            memory(3, &of_bob, "alice", json!({})),
            private,
            memory(5, &project(), "bob", json!({})),
        ],
    )
    .await;
    let author = Author { user: Some("alice".into()), client: None };
    write(store, move |tx| {
        for number in [1, 5] {
            versions::record(tx, MemoryId(Uuid::from_u128(number)), 2, NOW, &author)?;
        }
        Ok(())
    })
    .await;
    let begun = detach(store).await.remove(0);
    remember(store, vec![memory(6, &project(), "alice", json!({}))]).await;

    let last = begun.last_memory;
    let found = store
        .read(AllTenants, "suite", move |tx| entries::shared_by(tx, &tenant(), "alice", last, 10))
        .await
        .unwrap();
    let found: Vec<u128> = found.iter().map(|stored| stored.memory.id.0.as_u128()).collect();
    assert_eq!(found, [2, 3, 4]);
    write(store, move |tx| entries::blank_private(tx, &tenant(), "alice", last)).await;
    let saying = "SELECT COUNT(*) FROM memories WHERE shared_by = 'alice' AND LENGTH(content) > 0";
    assert_eq!(count(store, saying).await, 3, "only the private one says nothing");
    let found_by = "SELECT COUNT(*) FROM memories WHERE shared_by = 'alice' AND LENGTH(words) > 0";
    assert_eq!(count(store, found_by).await, 3, "and is found by nothing");
    steps(store, &begun, forget::clear_memory_names, 1).await;
    let named = "SELECT COUNT(*) FROM memory_versions v JOIN memories m ON m.no = v.no \
                 JOIN memory_scopes s ON s.id = m.scope_no WHERE v.user_id = 'alice'";
    assert_eq!(count(store, named).await, 0);
}

/// Answers that tell of a user go with it, those of others stay.
pub async fn keys_whose_answers_tell_of_a_user_are_forgotten(fixture: impl EngineFixture) {
    let store = fixture.store();
    let key = |key: &str| RequestKey {
        place: KeyPlace::Memories,
        principal: "p".into(),
        key: key.into(),
        fingerprint: b"f".to_vec(),
    };
    write(store, move |tx| {
        for (name, users) in [("1", vec!["alice"]), ("2", vec!["alice", "bob"]), ("3", vec!["bob"])] {
            let users: Vec<String> = users.into_iter().map(str::to_owned).collect();
            idempotency::remember(tx, &tenant(), &key(name), &users, "an answer", NOW)?;
        }
        Ok(())
    })
    .await;
    let begun = detach(store).await.remove(0);
    steps(store, &begun, forget::clear_memory_names, 1).await;
    for (name, kept) in [("1", false), ("2", false), ("3", true)] {
        let found = store
            .read(AllTenants, "suite", move |tx| {
                idempotency::find(tx, &tenant(), &key(name), Timestamp::from_micros(0))
            })
            .await
            .unwrap();
        assert_eq!(found.map(|found| found.answer).as_deref() == Some("an answer"), kept, "{name}");
    }
    assert_eq!(count(store, "SELECT COUNT(*) FROM memory_idempotency").await, 1);
    assert_eq!(count(store, "SELECT COUNT(*) FROM memory_idempotency_users").await, 1);
    write(store, |tx| idempotency::purge(tx, AnswerTable::Memories, Timestamp::from_micros(i64::MAX), 10))
        .await;
    assert_eq!(count(store, "SELECT COUNT(*) FROM memory_idempotency_users").await, 0);
}

/// An entry that points at a document is to be looked at when that changes, and until it was.
pub async fn pointers_are_due_when_their_document_changes(fixture: impl EngineFixture) {
    let store = fixture.store();
    let at = |path: &str| {
        json!({"knowledgePointer": {"sourceType": "adr", "sourceId": format!("file:{path}"), "contentHash": "00",
            "syncedAt": "2026-01-31T12:00:00Z"}})
    };
    remember(
        store,
        vec![
            memory(1, &of_alice(), "alice", at("a.md")),
            memory(2, &project(), "bob", at("a.md")),
            memory(3, &of_alice(), "alice", at("b.md")),
            memory(4, &scope(Layer::User, &["bob"]), "bob", at("a.md")),
            memory(5, &of_alice(), "alice", json!({})),
        ],
    )
    .await;
    let due = async || {
        let due = store.read(AllTenants, "suite", |tx| pointers::due(tx, 10)).await.unwrap();
        due.iter().map(|due| due.no.0).collect::<Vec<_>>()
    };
    assert_eq!(due().await, [] as [i64; 0]);
    let changed = write(store, |tx| {
        let id = scopes::lock(tx, &alice())?.id;
        pointers::note_change(tx, &alice(), id, &FilePath::parse("a.md").unwrap())
    })
    .await;
    assert_eq!((changed, due().await), (2, vec![1, 2]));

    // One of them is pointed elsewhere, the other was looked at.
    let elsewhere = Memory { version: 2, ..memory(1, &of_alice(), "alice", at("b.md")) };
    write(store, move |tx| {
        let mut writing = Writing::default();
        assert!(writing.replace(tx, &elsewhere, &EntryTerms::default(), 1)?);
        writing.finish(tx)?;
        let due = pointers::due(tx, 10)?;
        assert_eq!(due.len(), 1);
        pointers::set_seen(tx, due[0])
    })
    .await;
    assert_eq!(due().await, [] as [i64; 0]);
    write(store, |tx| purge::detach(tx, &tenant(), &Selector::User("alice"))).await;
    while write(store, |tx| purge::step(tx, 10)).await.is_some() {}
    assert_eq!(count(store, "SELECT COUNT(*) FROM memory_pointers").await, 2);
}

/// What the trail says of a memory is no version of a file, even of one that is called like it.
pub async fn records_of_memories_are_no_versions_of_files(fixture: impl EngineFixture) {
    let store = fixture.store();
    let change = |number: i64| ETag { revision: number, change: Uuid::from_u128(number as u128) };
    write(store, move |tx| {
        let scope = scopes::lock(tx, &alice())?.id;
        // A file that is made and patched twice, and a memory of the same name in between.
        for (sequence, previous, image) in
            [(1, None, Some("{}")), (2, None, None), (3, Some(1), None), (4, Some(3), None)]
        {
            let new = NewRecord {
                sequence,
                at: Timestamp::from_micros(sequence),
                path: "memories/1",
                etag: change(sequence),
                previous: previous.map(change),
                record: "{}",
                image,
            };
            audit::insert(tx, &tenant(), scope, &new)?;
        }
        let version = |version: Option<audit::FileVersion>| {
            version.map(|version| (version.sequence, version.is_of_a_file))
        };
        assert_eq!(audit::chain(tx, scope, "memories/1", 4)?, [1, 3, 4]);
        assert_eq!(version(audit::version_after(tx, scope, "memories/1", 1)?), Some((3, true)));
        assert_eq!(
            version(audit::version_at(tx, scope, "memories/1", Timestamp::from_micros(2))?),
            Some((1, true))
        );
        assert_eq!(version(audit::version(tx, scope, Uuid::from_u128(2))?), Some((2, false)));
        Ok(())
    })
    .await;
}

/// An event that is removed is neither found nor counted.
pub async fn a_removed_event_leaves_the_others(fixture: impl EngineFixture) {
    let store = fixture.store();
    let put = |tx: &mut dyn Tx, id: &str| -> Result<(), StoreError> {
        let event = json!({"event_id": id, "tenant_id": "a", "user_id": "alice", "digest": "walrus"});
        let event = Event::read(Some(event), "a", "alice", "agent", NOW).unwrap();
        let counted = scopes::lock(tx, &alice())?;
        events::put(tx, &tenant(), &counted, &event)
    };
    let left = write(store, move |tx| {
        put(tx, "one")?;
        put(tx, "two")?;
        let counted = scopes::lock(tx, &alice())?;
        assert!(events::remove(tx, &tenant(), &counted, "one")?);
        let counted = scopes::lock(tx, &alice())?;
        assert!(!events::remove(tx, &tenant(), &counted, "one")?);
        let ids: Vec<String> = events::in_block(tx, counted.id, 0)?.into_iter().map(|(id, _)| id).collect();
        Ok((counted.events, ids))
    })
    .await;
    assert_eq!(left, (1, vec!["two".to_owned()]));
}
