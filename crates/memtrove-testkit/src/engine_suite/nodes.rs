//! What nodes that share a store agree on.

use super::EngineFixture;
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{MemoryId, ScopeHash};
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::nodes::{self, Node};
use memtrove_store::rates::{self, Draw, Grant, Measure};
use memtrove_store::stream::{self, NewEvent};
use memtrove_store::{AllTenants, Store, StoreError, Tx, leases};
use tokio::task::JoinSet;
use uuid::Uuid;

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

async fn write<T: Send + 'static>(
    store: &Store,
    work: impl Fn(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.write(AllTenants, "suite", work).await.unwrap()
}

pub async fn a_lease_is_one_node_s_until_it_runs_out(fixture: impl EngineFixture) {
    let store = fixture.store();
    let [one, other] = [1, 2].map(Uuid::from_u128);
    let take =
        |holder, now, until| write(store, move |tx| leases::take(tx, "sweep", holder, at(now), at(until)));
    assert!(take(one, 0, 15).await);
    assert!(!take(other, 14, 30).await, "somebody has it");
    assert!(take(one, 10, 25).await, "its holder renews it");
    assert!(!take(other, 24, 40).await, "for as long as was said last");
    assert!(take(other, 25, 40).await, "nobody renewed it");
    assert!(!take(one, 26, 41).await, "and whoever had it has to wait");
    write(store, move |tx| leases::release(tx, "sweep", one)).await;
    assert!(!take(one, 27, 42).await, "nobody gives back what is another's");
    write(store, move |tx| leases::release_all(tx, other)).await;
    assert!(take(one, 28, 43).await);
    write(store, move |tx| leases::purge(tx, at(44))).await;
    assert!(take(other, 29, 44).await, "what nobody took over is removed");
}

pub async fn of_many_who_ask_for_a_lease_one_gets_it(fixture: impl EngineFixture) {
    let store = fixture.store();
    let mut asked = JoinSet::new();
    for holder in 1..=16u128 {
        let store = store.clone();
        asked.spawn(async move {
            let take = move |tx: &mut dyn Tx| leases::take(tx, "x", Uuid::from_u128(holder), at(0), at(15));
            store.write(AllTenants, "suite", take).await.unwrap()
        });
    }
    let got = asked.join_all().await;
    assert_eq!(got.into_iter().filter(|got| *got).count(), 1);
}

pub async fn a_node_is_there_for_as_long_as_it_says_so(fixture: impl EngineFixture) {
    let store = fixture.store();
    let node = |id, seen| Node {
        id: Uuid::from_u128(id),
        version: "1.2.3".to_owned(),
        started_at: at(1),
        seen_at: at(seen),
    };
    for (id, seen) in [(1, 2), (2, 2), (2, 9)] {
        write(store, move |tx| nodes::beat(tx, &node(id, seen))).await;
    }
    let seen = |since| store.read(AllTenants, "suite", move |tx| nodes::seen_since(tx, at(since)));
    assert_eq!(seen(2).await.unwrap(), [node(1, 2), node(2, 9)]);
    assert_eq!(seen(3).await.unwrap(), [node(2, 9)]);
    write(store, |tx| nodes::purge(tx, at(3))).await;
    assert_eq!(seen(0).await.unwrap(), [node(2, 9)]);
    write(store, |tx| nodes::remove(tx, Uuid::from_u128(2))).await;
    assert_eq!(seen(0).await.unwrap(), []);
}

fn calls(bucket: u8, most: i64) -> Draw {
    Draw { bucket: [bucket; 16], measure: Measure { cost: 10, capacity: 1_000 }, most }
}

pub async fn a_bucket_gives_no_piece_twice_and_no_more_than_it_holds(fixture: impl EngineFixture) {
    let store = fixture.store();
    let mut draws = JoinSet::new();
    for number in 0..40 {
        let store = store.clone();
        draws.spawn(async move {
            let draw = move |tx: &mut dyn Tx| rates::draw(tx, &[calls(1, 1 + number % 5)], 5_000);
            store.write(AllTenants, "suite", draw).await.unwrap()
        });
    }
    let mut grants: Vec<Grant> = draws.join_all().await.into_iter().flatten().flatten().collect();
    grants.sort_by_key(|grant| grant.from);
    assert!(grants.windows(2).all(|two| two[0].until <= two[1].from), "{grants:?}");
    assert_eq!(grants.first().unwrap().from, 5_000);
    assert_eq!(grants.last().unwrap().until, 6_000);
    let draw = |now| write(store, move |tx| rates::draw(tx, &[calls(1, 7)], now));
    let granted = |from, until| Ok(vec![Grant { from, until }]);
    assert_eq!(draw(5_000).await, Err(vec![10]), "how long it takes until there is something");
    assert_eq!(draw(5_010).await, granted(6_000, 6_010));
    write(store, |tx| rates::give_back(tx, &[1; 16], 10)).await;
    assert_eq!(draw(5_010).await, granted(6_000, 6_010));
    assert_eq!(draw(9_000).await, granted(9_000, 9_070), "what was full is full");
    write(store, |tx| rates::purge(tx, 9_071)).await;
    assert_eq!(draw(8_000).await, granted(8_000, 8_070));
}

pub async fn where_one_bucket_is_empty_nothing_is_drawn_from_the_others(fixture: impl EngineFixture) {
    let store = fixture.store();
    let draw = |draws: &'static [(u8, i64)]| {
        let draws: Vec<Draw> = draws.iter().map(|(bucket, most)| calls(*bucket, *most)).collect();
        write(store, move |tx| rates::draw(tx, &draws, 5_000))
    };
    assert_eq!(draw(&[(1, 100)]).await, Ok(vec![Grant { from: 5_000, until: 6_000 }]));
    assert_eq!(draw(&[(2, 1), (1, 1)]).await, Err(vec![0, 10]));
    assert_eq!(draw(&[(2, 1)]).await, Ok(vec![Grant { from: 5_000, until: 5_010 }]), "it is still full");
}

/// Records a change of a memory and tells of it.
async fn tell(store: &Store, memory: u128, scope: u8, author: Option<&'static str>, second: i64) {
    write(store, move |tx| {
        let tenant = Tenant::listed("a".to_owned());
        let change = Change {
            kind: ChangeKind::MemoryUpdated,
            user: None,
            resource: &memory.to_string(),
            version: None,
        };
        let (recorded, body) =
            (changes::record(tx, &tenant, at(second), &change)?, format!("{memory} at {second}"));
        let event = NewEvent {
            recorded,
            scope: ScopeHash([scope; 32]),
            memory: MemoryId(Uuid::from_u128(memory)),
            author,
            at: at(second),
            body: body.as_bytes(),
        };
        stream::insert(tx, &tenant, &event)
    })
    .await;
}

/// The numbers of a tenant's events, and what they say.
async fn told(store: &Store, after: i64) -> Vec<(i64, Option<String>)> {
    store.settle().await.unwrap();
    let tenant = Tenant::listed("a".to_owned());
    let page =
        store.read(AllTenants, "suite", move |tx| stream::page(tx, &tenant, after, 100)).await.unwrap();
    let said = |body: Vec<u8>| String::from_utf8(body).unwrap();
    page.into_iter().map(|event| (event.sequence, event.body.map(said))).collect()
}

pub async fn events_of_the_stream_have_the_numbers_of_their_changes(fixture: impl EngineFixture) {
    let store = fixture.store();
    tell(store, 1, 1, None, 1).await;
    write(store, |tx| {
        let change =
            Change { kind: ChangeKind::FileUpdated, user: None, resource: "notes/today", version: None };
        changes::record(tx, &Tenant::listed("a".to_owned()), at(2), &change)
    })
    .await;
    tell(store, 2, 1, None, 3).await;
    let say = |text: &str| Some(text.to_owned());
    assert_eq!(told(store, 0).await, [(1, say("1 at 1")), (3, say("2 at 3"))]);
    assert_eq!(told(store, 1).await, [(3, say("2 at 3"))]);
}

pub async fn events_of_the_stream_say_nothing_once_their_memory_is_gone(fixture: impl EngineFixture) {
    let store = fixture.store();
    tell(store, 1, 1, None, 1).await;
    tell(store, 2, 2, None, 2).await;
    tell(store, 3, 3, Some("alice"), 3).await;
    tell(store, 4, 4, Some("bob"), 4).await;
    write(store, |tx| stream::blank_memory(tx, MemoryId(Uuid::from_u128(1)))).await;
    write(store, |tx| stream::blank_scope(tx, ScopeHash([2; 32]))).await;
    write(store, |tx| stream::blank_author(tx, &Tenant::listed("a".to_owned()), "alice")).await;
    let expected = [(1, None), (2, None), (3, None), (4, Some("4 at 4".to_owned()))];
    assert_eq!(told(store, 0).await, expected, "and every number is still there");
}

pub async fn a_trimmed_stream_says_from_where_it_is_whole(fixture: impl EngineFixture) {
    let store = fixture.store();
    let kept = || {
        let read = |tx: &mut dyn Tx| stream::kept_after(tx, &Tenant::listed("a".to_owned()));
        store.read(AllTenants, "suite", read)
    };
    tell(store, 1, 1, None, 1).await;
    told(store, 0).await;
    assert_eq!(kept().await.unwrap(), None);
    let keep =
        |newest| write(store, move |tx| stream::keep_after(tx, &Tenant::listed("a".to_owned()), newest));
    assert_eq!((keep(1).await, keep(7).await), (1, 1), "it begins once");
    for second in 2..=5 {
        tell(store, 2, 1, None, second).await;
    }
    told(store, 0).await;
    assert_eq!(write(store, |tx| stream::trim(tx, at(4), 2)).await, 2, "in steps, the oldest first");
    assert_eq!(kept().await.unwrap(), Some(2));
    assert_eq!(write(store, |tx| stream::trim(tx, at(4), 100)).await, 1);
    assert_eq!(write(store, |tx| stream::trim(tx, at(4), 100)).await, 0);
    assert_eq!(kept().await.unwrap(), Some(3));
    let left: Vec<i64> = told(store, 0).await.into_iter().map(|(number, _)| number).collect();
    assert_eq!(left, [4, 5]);
}
