//! Writing, versions, and what happens when several write at once.

use super::*;
use memtrove_core::memories::{Code, Fact};
use memtrove_service::memories::journal::Remember;
use memtrove_service::memories::memory_store::Status;
use memtrove_store::idempotency::{KeyPlace, RequestKey};
use serde_json::json;
use tokio::task::JoinSet;

pub async fn a_half_says_what_it_can_do_and_that_it_is_well(fixture: Fixture) {
    let info = fixture.half().info();
    assert!(!info.id.is_empty() && !info.version.is_empty());
    assert!(info.capabilities.max_content_chars > 0 && info.capabilities.max_metadata_bytes > 0);
    assert!(info.capabilities.metrics.contains(&"cosine") || !info.capabilities.vector_search);
    assert_eq!(fixture.half().health().await.status, Status::Healthy);
}

pub async fn an_entry_comes_back_as_it_was_written(fixture: Fixture) {
    let plain = fixture.entry(&user("u"), "the heron waits", &towards(0));
    let mut full =
        fixture.entry(&scope("acme", Layer::Session, &["u", "ŝ/%:#"]), " \n\u{1f426} Größe\t", &[0.6, -0.8]);
    full.metadata = metadata(json!({
        "tags": ["a", "b"], "own": {"deep": [null, 1.5, "x", {}]}, "big": 9_007_199_254_740_993_i64, "relevance": 0.25,
    }));
    full.policy = AccessPolicy {
        policy: Policy::Restricted,
        approved_users: vec!["a".into(), "ä".into()],
        allowed_teams: vec!["t".into()],
    };
    full.created_by = Author { user: None, client: Some("agent".into()) };
    full.state = State::Decayed;
    full.occurred_at = Some(Timestamp::from_micros(-62_135_596_800_000_000));
    full.expires_at = Some(fixture.now().saturating_add_micros(3_600_000_000));
    full.ttl_seconds = Some(3600);
    full.anchor = Timestamp::from_micros(7);
    full.version = 7;
    full.lineage = Lineage {
        promoted_from: Some(plain.id),
        promoted_to: Some(MemoryId(fixture.clock.new_id())),
        consolidated_from: vec![plain.id],
        superseded_by: Some(plain.id),
        mirror_of: Some("event 7".into()),
        passed_over: Some(6),
    };
    let mut bare = fixture.entry(&user("u"), "not embedded", &[]);
    (bare.state, bare.embedding, bare.created_by) = (State::Created, None, Author::default());
    let written = [plain, full, bare];
    fixture.insert(written.clone()).await;

    for memory in &written {
        assert_eq!(fixture.get(memory).await.as_ref(), Some(memory));
    }
}

pub async fn an_unknown_id_is_nothing(fixture: Fixture) {
    let known = fixture.entry(&user("u"), "known", &towards(0));
    fixture.insert([known.clone()]).await;
    let unknown = fixture.entry(&user("u"), "unknown", &towards(0));
    assert_eq!(fixture.get(&unknown).await, None);
    assert_eq!(fixture.scan(&[user("nobody")], fixture.everything()).await.total, 0);
    assert_eq!(fixture.nearest(&[user("nobody")], fixture.like(&towards(0))).await.total, 0);
    assert_eq!(fixture.scan(&[], fixture.everything()).await.total, 0);
}

pub async fn a_new_version_takes_the_place_of_the_old_one(fixture: Fixture) {
    let first = fixture.entry(&user("u"), "first", &towards(0));
    fixture.insert([first.clone()]).await;
    let second = fixture.next(&first, |memory| {
        memory.content = "second".into();
        memory.metadata = metadata(json!({"tags": ["new"]}));
        memory.embedding = Some(Embedding::of_whole(MODELS[0].into(), towards(1)));
    });
    assert_eq!(fixture.replace(second.clone(), 1).await, WriteOutcome::Done);

    assert_eq!(fixture.get(&first).await, Some(second));
    let page = fixture.scan(&[user("u")], fixture.everything()).await;
    assert_eq!((contents(&page), page.total), (vec!["second"], 1));
    let hits = fixture.nearest(&[user("u")], fixture.like(&towards(1))).await;
    assert_eq!((hits.matches.len(), hits.total), (1, 1));
    assert!(
        (hits.matches[0].cosine - 1.0).abs() < 1e-6,
        "compared is the new vector: {}",
        hits.matches[0].cosine
    );
}

pub async fn a_removed_entry_is_nowhere(fixture: Fixture) {
    let (kept, gone) =
        (fixture.entry(&user("u"), "kept", &towards(0)), fixture.entry(&user("u"), "gone", &towards(0)));
    fixture.insert([kept.clone(), gone.clone()]).await;
    assert_eq!(fixture.nearest(&[user("u")], fixture.like(&towards(0))).await.total, 2);
    assert_eq!(fixture.remove(&gone).await, WriteOutcome::Done);

    assert_eq!(fixture.get(&gone).await, None);
    let page = fixture.scan(&[user("u")], fixture.everything()).await;
    assert_eq!((contents(&page), page.total), (vec!["kept"], 1));
    let hits = fixture.nearest(&[user("u")], fixture.like(&towards(0))).await;
    assert_eq!((found(&hits), hits.total), (vec![kept.id], 1));
    assert_eq!(fixture.remove(&gone).await, WriteOutcome::Conflict(vec![gone.id]), "it went already");
}

pub async fn a_stale_write_changes_nothing(fixture: Fixture) {
    let first = fixture.entry(&user("u"), "first", &towards(0));
    fixture.insert([first.clone()]).await;
    let second = fixture.next(&first, |memory| memory.content = "second".into());
    assert_eq!(fixture.replace(second.clone(), 1).await, WriteOutcome::Done);

    let late = fixture.next(&first, |memory| memory.content = "late".into());
    assert_eq!(fixture.replace(late.clone(), 1).await, WriteOutcome::Conflict(vec![first.id]));
    assert_eq!(fixture.replace(late, 3).await, WriteOutcome::Conflict(vec![first.id]));
    assert_eq!(fixture.remove(&first).await, WriteOutcome::Conflict(vec![first.id]));
    assert_eq!(fixture.get(&first).await, Some(second));
}

pub async fn writing_what_is_not_there_is_a_conflict(fixture: Fixture) {
    let never = fixture.entry(&user("u"), "never", &towards(0));
    assert_eq!(fixture.replace(never.clone(), 1).await, WriteOutcome::Conflict(vec![never.id]));
    assert_eq!(fixture.remove(&never).await, WriteOutcome::Conflict(vec![never.id]));
    assert_eq!(fixture.get(&never).await, None);
}

pub async fn an_insert_that_is_repeated_does_no_harm(fixture: Fixture) {
    let memory = fixture.entry(&user("u"), "once", &towards(0));
    fixture.insert([memory.clone()]).await;
    let again = Write::Insert(Arc::new(memory.clone()));
    assert_eq!(fixture.write(vec![again]).await, WriteOutcome::Conflict(vec![memory.id]));
    let mut other = memory.clone();
    other.content = "another under the same id".into();
    assert_eq!(
        fixture.write(vec![Write::Insert(Arc::new(other))]).await,
        WriteOutcome::Conflict(vec![memory.id])
    );
    assert_eq!(fixture.get(&memory).await, Some(memory));
    assert_eq!(fixture.scan(&[user("u")], fixture.everything()).await.total, 1);
}

pub async fn a_batch_is_done_whole_or_not_at_all(fixture: Fixture) {
    let entries = ["a", "b", "c"].map(|content| fixture.entry(&user("u"), content, &towards(0)));
    fixture.insert(entries.clone()).await;
    let [a, b, c] = &entries;
    let fresh = fixture.entry(&user("v"), "fresh", &towards(0));
    let changed = fixture.next(b, |memory| memory.content = "changed".into());
    let batch = |stale: i64| {
        vec![
            Write::Insert(Arc::new(fresh.clone())),
            Write::Remove(Writable::by_task(a.clone())),
            Write::Replace { memory: Arc::new(changed.clone()), current: at_version(stale, &changed) },
            Write::Replace { memory: Arc::new(fixture.next(c, |_| ())), current: at_version(stale, c) },
        ]
    };

    let WriteOutcome::Conflict(mut ids) = fixture.write(batch(7)).await else {
        panic!("done, though two are stale")
    };
    ids.sort();
    assert_eq!(ids, [b.id, c.id], "every one that stands in the way is named");
    for memory in &entries {
        assert_eq!(fixture.get(memory).await.as_ref(), Some(memory));
    }
    assert_eq!(fixture.get(&fresh).await, None);

    assert_eq!(fixture.write(batch(1)).await, WriteOutcome::Done);
    assert_eq!(fixture.get(a).await, None);
    assert_eq!(fixture.get(b).await, Some(changed));
    assert_eq!(fixture.get(c).await.map(|memory| memory.version), Some(2));
    assert_eq!(fixture.get(&fresh).await, Some(fresh));
}

pub async fn a_fact_is_stated_once_in_a_scope(fixture: Fixture) {
    if !fixture.kinds.contains(&Kind::Procedural) {
        return;
    }
    let fact = |object: &str| Fact {
        fact_type: "rule".into(),
        subject: "build".into(),
        predicate: "runs_on".into(),
        object: object.into(),
        confidence: 1.0,
    };
    let stated = |name: &str, object: &str| {
        let mut memory = fixture.entry(&user(name), "a fact", &towards(0));
        (memory.kind, memory.fact) = (Kind::Procedural, Some(fact(object)));
        memory
    };
    let first = stated("u", "linux");
    fixture.insert([first.clone(), stated("u", "windows"), stated("v", "linux")]).await;
    let second = stated("u", "linux");
    assert_eq!(
        fixture.write(vec![Write::Insert(Arc::new(second.clone()))]).await,
        WriteOutcome::Conflict(vec![second.id])
    );

    let changed =
        fixture.next(&first, |memory| memory.fact = Some(Fact { confidence: 0.5, ..fact("linux") }));
    assert_eq!(fixture.replace(changed.clone(), 1).await, WriteOutcome::Done, "it is not in its own way");
    let rival = fixture.next(&changed, |memory| memory.fact = Some(fact("windows")));
    assert_eq!(fixture.replace(rival, 2).await, WriteOutcome::Conflict(vec![first.id]));
    assert_eq!(fixture.remove(&changed).await, WriteOutcome::Done);
    fixture.insert([second]).await;
}

pub async fn a_request_under_a_known_key_is_answered_as_before(fixture: Fixture) {
    let write = async |content: &str, fingerprint: &[u8]| {
        let memory = fixture.entry(&user("u"), content, &towards(0));
        let key = RequestKey {
            place: KeyPlace::Memories,
            principal: "agent".into(),
            key: "add:k1".into(),
            fingerprint: fingerprint.to_vec(),
        };
        let remember = Remember {
            key,
            users: vec!["u".into()],
            since: Timestamp::from_micros(0),
            answer: content.into(),
        };
        let journal = Entry { remember: Some(remember), ..fixture.journal(1) };
        fixture.half().write(vec![Write::Insert(Arc::new(memory))], journal).await
    };
    assert_eq!(write("first", b"a").await.unwrap(), WriteOutcome::Done);
    assert_eq!(write("again", b"a").await.unwrap(), WriteOutcome::Replayed("first".into()));
    match write("other", b"b").await {
        Err(refusal) => assert_eq!(refusal.code, Code::IdempotencyConflict),
        other => panic!("a key stands for one request: {other:?}"),
    }
    let page = fixture.scan(&[user("u")], fixture.everything()).await;
    assert_eq!((contents(&page), page.total), (vec!["first"], 1));
    assert_eq!(fixture.nearest(&[user("u")], fixture.like(&towards(0))).await.total, 1);
}

pub async fn one_of_many_writers_of_a_version_wins(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let first = fixture.entry(&user("u"), "first", &towards(0));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (fixture, first) = (fixture.clone(), first.clone());
        tasks.spawn(async move { fixture.write(vec![Write::Insert(Arc::new(first))]).await });
    }
    let done = |written: Vec<WriteOutcome>| written.iter().filter(|one| **one == WriteOutcome::Done).count();
    assert_eq!(done(tasks.join_all().await), 1, "one insert");

    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let (fixture, first) = (fixture.clone(), first.clone());
        tasks.spawn(async move {
            let mine = fixture.next(&first, |memory| memory.content = format!("writer {number}"));
            (fixture.replace(mine.clone(), 1).await, mine)
        });
    }
    let tried = tasks.join_all().await;
    let winners: Vec<&Memory> =
        tried.iter().filter(|(written, _)| *written == WriteOutcome::Done).map(|(_, one)| one).collect();
    let [winner] = winners[..] else { panic!("{} writers won", winners.len()) };
    assert_eq!(fixture.get(&first).await.as_ref(), Some(winner));

    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (fixture, winner) = (fixture.clone(), winner.clone());
        tasks.spawn(async move { fixture.remove(&winner).await });
    }
    assert_eq!(done(tasks.join_all().await), 1, "one removal");
}

pub async fn changes_that_are_tried_again_are_never_lost(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let first = fixture.entry(&user("u"), "counter", &towards(0));
    fixture.insert([first.clone()]).await;
    let mut tasks = JoinSet::new();
    for writer in 0..6 {
        let (fixture, first) = (fixture.clone(), first.clone());
        tasks.spawn(async move {
            for step in 0..5 {
                loop {
                    let current = fixture.get(&first).await.unwrap();
                    let mine = fixture.next(&current, |memory| {
                        memory.metadata.insert(format!("{writer}-{step}"), true.into());
                    });
                    if fixture.replace(mine, current.version).await == WriteOutcome::Done {
                        break;
                    }
                }
            }
        });
    }
    tasks.join_all().await;
    let last = fixture.get(&first).await.unwrap();
    assert_eq!((last.version, last.metadata.len()), (31, 30));
}
