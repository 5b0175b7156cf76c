//! Lists: their order, their pages, and whom they show what; and that scopes never meet.

use super::*;
use memtrove_core::memories::Position;
use serde_json::json;
use std::collections::BTreeSet;

pub async fn tenants_never_meet(fixture: Fixture) {
    let (here, there) = (scope("acme", Layer::User, &["u"]), scope("other", Layer::User, &["u"]));
    let memory = fixture.entry(&here, "of acme", &towards(0));
    fixture.insert([memory.clone()]).await;
    let other = Tenant::listed("other".into());
    assert_eq!(fixture.half().get(&other, memory.id).await.unwrap(), None);
    assert_eq!(fixture.scan(std::slice::from_ref(&there), fixture.everything()).await.total, 0);
    assert_eq!(fixture.nearest(std::slice::from_ref(&there), fixture.like(&towards(0))).await.total, 0);

    let mut stolen = fixture.next(&memory, |memory| memory.content = "stolen".into());
    stolen.scope = there;
    assert_eq!(fixture.replace(stolen.clone(), 1).await, WriteOutcome::Conflict(vec![memory.id]));
    assert_ne!(fixture.remove(&Memory { version: 1, ..stolen }).await, WriteOutcome::Done);
    assert_eq!(fixture.get(&memory).await, Some(memory));
}

pub async fn scopes_never_meet_whatever_they_are_called(fixture: Fixture) {
    let long = "x".repeat(254);
    let scopes = [
        scope("acme", Layer::Agent, &["a_b", "c"]),
        scope("acme", Layer::Agent, &["a", "b_c"]),
        scope("acme", Layer::Agent, &["a", "b"]),
        scope("acme", Layer::Session, &["a", "b"]),
        scope("acme", Layer::Session, &["b", "a"]),
        scope("acme", Layer::Agent, &["a:b", ""]),
        scope("acme", Layer::Agent, &["a", ":b"]),
        scope("acme", Layer::User, &["ab"]),
        scope("acme", Layer::User, &["aB"]),
        scope("acme", Layer::User, &["a b"]),
        scope("acme", Layer::User, &["ab "]),
        scope("acme", Layer::User, &["é"]),
        scope("acme", Layer::User, &["e\u{301}"]),
        scope("acme", Layer::User, &[&format!("{long}1")]),
        scope("acme", Layer::User, &[&format!("{long}2")]),
        scope("acmeab", Layer::User, &[""]),
    ];
    let entries: Vec<Memory> =
        scopes.iter().map(|scope| fixture.entry(scope, &format!("{scope:?}"), &towards(0))).collect();
    // One unit of work is of one tenant.
    for of_tenant in entries.chunk_by(|one, next| one.scope.tenant() == next.scope.tenant()) {
        fixture.insert(of_tenant.to_vec()).await;
    }

    for (scope, memory) in scopes.iter().zip(&entries) {
        let page = fixture.scan(std::slice::from_ref(scope), fixture.everything()).await;
        assert_eq!((contents(&page), page.total), (vec![memory.content.as_str()], 1));
        let hits = fixture.nearest(std::slice::from_ref(scope), fixture.like(&towards(0))).await;
        assert_eq!((found(&hits), hits.total), (vec![memory.id], 1), "{scope:?}");
    }
    let (one, two) = (scopes[0].clone(), scopes[3].clone());
    let page = fixture.scan(&[one.clone(), two.clone()], fixture.everything()).await;
    assert_eq!(contents(&page), [entries[3].content.as_str(), entries[0].content.as_str()], "newest first");
    let hits = fixture.nearest(&[one, two], fixture.like(&towards(0))).await;
    let places: BTreeSet<_> = hits.matches.iter().map(|near| (near.id, near.layer)).collect();
    assert_eq!(places, [(entries[0].id, Layer::Agent), (entries[3].id, Layer::Session)].into());
}

pub async fn a_page_is_newest_first(fixture: Fixture) {
    let mut entries = ["a", "b", "c", "d"].map(|content| fixture.entry(&user("u"), content, &towards(0)));
    let happened = |seconds: i64| Some(fixture.now().saturating_add_micros(seconds * 1_000_000));
    entries[0].occurred_at = happened(60);
    entries[3].occurred_at = happened(-60);
    // Two at the same instant: the larger id first.
    entries[2].created_at = entries[1].created_at;
    fixture.insert(entries).await;
    assert_eq!(contents(&fixture.scan(&[user("u")], fixture.everything()).await), ["a", "c", "b", "d"]);
}

pub async fn pages_together_are_the_whole(fixture: Fixture) {
    let scopes = [user("u"), scope("acme", Layer::Session, &["u", "s"])];
    let instant = fixture.tick();
    let entries: Vec<Memory> = (0..23)
        .map(|number| {
            let mut memory =
                fixture.entry(&scopes[number % 2], &format!("note {number}"), &towards(number % 8));
            if number % 3 == 0 {
                memory.created_at = instant;
            }
            memory
        })
        .collect();
    fixture.insert(entries).await;
    let whole = fixture.scan(&scopes, fixture.everything()).await;
    assert_eq!(whole.total, 23);
    for limit in [1, 2, 7, 22, 23, 24] {
        let (mut walked, mut after) = (Vec::new(), None);
        loop {
            let page = fixture.scan(&scopes, ScanQuery { limit, after, ..fixture.everything() }).await;
            assert_eq!(page.total, 23, "the count is that of the whole");
            let Some(last) = page.memories.last() else { break };
            assert!(page.memories.len() <= limit);
            after = Some(Position::of(last));
            walked.extend(page.memories);
        }
        assert_eq!(walked, whole.memories, "limit {limit}");
    }
}

pub async fn entries_that_come_and_go_disturb_no_page(fixture: Fixture) {
    let entries: Vec<Memory> =
        (0..6).map(|n| fixture.entry(&user("u"), &format!("note {n}"), &towards(0))).collect();
    fixture.insert(entries.clone()).await;
    let first = fixture.scan(&[user("u")], ScanQuery { limit: 2, ..fixture.everything() }).await;
    assert_eq!(contents(&first), ["note 5", "note 4"]);
    fixture.insert([fixture.entry(&user("u"), "newer", &towards(0))]).await;
    fixture.remove(&entries[4]).await;
    fixture.remove(&entries[3]).await;
    let after = first.memories.last().map(Position::of);
    let rest = fixture.scan(&[user("u")], ScanQuery { after, ..fixture.everything() }).await;
    assert_eq!((contents(&rest), rest.total), (vec!["note 2", "note 1", "note 0"], 5));
}

pub async fn what_has_expired_does_not_exist(fixture: Fixture) {
    let (kept, mut going) =
        (fixture.entry(&user("u"), "kept", &towards(0)), fixture.entry(&user("u"), "going", &towards(0)));
    let end = fixture.now().saturating_add_micros(1_000_000);
    (going.expires_at, going.ttl_seconds) = (Some(end), Some(1));
    fixture.insert([kept, going]).await;
    let seen = async |now: Timestamp| {
        let page = fixture.scan(&[user("u")], ScanQuery { now, ..fixture.everything() }).await;
        let hits = fixture.nearest(&[user("u")], ScopeQuery { now, ..fixture.like(&towards(0)) }).await;
        assert_eq!((page.total, hits.total), (page.memories.len(), hits.matches.len()));
        assert_eq!(page.total, hits.total);
        page.total
    };
    assert_eq!(seen(end.saturating_add_micros(-1)).await, 2);
    assert_eq!(seen(end).await, 1, "from that very instant");
    assert_eq!(seen(end.saturating_add_micros(1)).await, 1);
    assert_eq!(seen(end.saturating_add_micros(-1)).await, 2, "nobody swept: only the reader's clock counts");
}

pub async fn embeddings_come_along_if_wanted(fixture: Fixture) {
    let memory = fixture.entry(&user("u"), "with a vector", &[0.6, 0.8]);
    fixture.insert([memory.clone()]).await;
    let with = ScanQuery { with_embeddings: true, ..fixture.everything() };
    assert_eq!(fixture.scan(&[user("u")], with).await.memories, [memory]);
}

pub async fn a_span_ends_at_its_instant(fixture: Fixture) {
    let scopes = [user("u"), user("v")];
    let entries: Vec<Memory> =
        (0..6).map(|n| fixture.entry(&scopes[n % 2], &format!("note {n}"), &towards(0))).collect();
    fixture.insert(entries.clone()).await;
    let until = Some(entries[2].created_at);
    let spans =
        vec![Span { scope: scopes[0].clone(), until }, Span { scope: scopes[1].clone(), until: None }];
    let page = fixture.scan_spans(spans.clone(), fixture.everything()).await;
    assert_eq!((contents(&page), page.total), (vec!["note 5", "note 3", "note 2", "note 1", "note 0"], 5));
    let hits = fixture.nearest_in(spans, fixture.like(&towards(0))).await;
    assert_eq!((hits.matches.len(), hits.total), (5, 5));
    assert!(!found(&hits).contains(&entries[4].id));
}

pub async fn policies_hide_entries_from_lists_searches_and_counts(fixture: Fixture) {
    let policy = |policy: Policy, users: &[&str], teams: &[&str]| AccessPolicy {
        policy,
        approved_users: users.iter().map(|name| (*name).to_owned()).collect(),
        allowed_teams: teams.iter().map(|name| (*name).to_owned()).collect(),
    };
    let author = |user: Option<&str>, client: Option<&str>| Author {
        user: user.map(str::to_owned),
        client: client.map(str::to_owned),
    };
    let policies = [
        policy(Policy::Private, &[], &[]),
        policy(Policy::Restricted, &["bob"], &[]),
        policy(Policy::Restricted, &[], &[]),
        policy(Policy::Shared, &[], &["red"]),
        policy(Policy::Shared, &[], &[]),
        policy(Policy::Organization, &[], &[]),
        policy(Policy::Public, &[], &[]),
    ];
    let authors = [
        author(Some("ann"), Some("agent")),
        author(Some("bob"), None),
        author(None, Some("agent")),
        author(None, None),
    ];
    let mut entries = Vec::new();
    for policy in &policies {
        for author in &authors {
            let mut memory = fixture.entry(&user("u"), &format!("{policy:?} {author:?}"), &towards(0));
            (memory.policy, memory.created_by) = (policy.clone(), author.clone());
            entries.push(memory);
        }
    }
    fixture.insert(entries.clone()).await;
    let seen_by = |user: Option<&str>, client: Option<&str>, team: Option<&str>, all: bool| Viewer {
        user: user.map(str::to_owned),
        client: client.map(str::to_owned),
        team: team.map(str::to_owned),
        all,
    };
    let viewers = [
        seen_by(Some("ann"), None, None, false),
        seen_by(Some("bob"), Some("agent"), Some("red"), false),
        seen_by(Some("carol"), Some("else"), Some("blue"), false),
        seen_by(None, Some("agent"), None, false),
        seen_by(None, None, Some("red"), false),
        seen_by(None, None, None, false),
        seen_by(None, None, None, true),
    ];
    for viewer in viewers {
        let mut visible: Vec<MemoryId> = entries
            .iter()
            .filter(|one| viewer.sees(&one.policy, &one.created_by))
            .map(|one| one.id)
            .collect();
        let page =
            fixture.scan(&[user("u")], ScanQuery { viewer: viewer.clone(), ..fixture.everything() }).await;
        let mut listed: Vec<MemoryId> = page.memories.iter().map(|memory| memory.id).collect();
        let hits = fixture
            .nearest(&[user("u")], ScopeQuery { viewer: viewer.clone(), ..fixture.like(&towards(0)) })
            .await;
        let mut near = found(&hits);
        for ids in [&mut visible, &mut listed, &mut near] {
            ids.sort();
        }
        assert_eq!((listed, page.total), (visible.clone(), visible.len()), "{viewer:?}");
        assert_eq!((near, hits.total), (visible.clone(), visible.len()), "{viewer:?}");

        // With a filter, which takes another way.
        let conditions = Conditions {
            filter: filter(&json!({"custom": {"none": {"$exists": false}}})),
            ..Conditions::default()
        };
        let query =
            ScanQuery { viewer: viewer.clone(), conditions: conditions.clone(), ..fixture.everything() };
        assert_eq!(fixture.scan(&[user("u")], query).await.total, visible.len());
        let query = ScopeQuery { viewer, conditions, ..fixture.like(&towards(0)) };
        assert_eq!(fixture.nearest(&[user("u")], query).await.total, visible.len());
    }
}
