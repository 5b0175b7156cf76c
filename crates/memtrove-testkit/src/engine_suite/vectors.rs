//! What engines have in common that find vectors and words by themselves. Those that do not have nothing to show.

use super::forget::write;
use super::{EngineFixture, Failure};
use memtrove_store::vectors::{
    Care, Named, PrivateOwner, TermCounts, VectorFilter, VectorIndex, VectorRow, VisibleTo, WordQuery,
};
use memtrove_store::{AllTenants, Store, StoreError, Tx};
use std::f32::consts::FRAC_PI_2;

const SCOPE: i64 = 7;
const WALRUS: u64 = 0x1234_5678_9abc_def0;
const SEAL: u64 = 0xfedc_ba98_7654_3210;

async fn is_able(store: &Store) -> bool {
    store.read(AllTenants, "suite", |tx| Ok::<_, StoreError>(tx.vectors().is_some())).await.unwrap()
}

fn index(tx: &mut dyn Tx) -> &mut dyn VectorIndex {
    tx.vectors().unwrap()
}

/// The directions of a quarter of a circle: the greater the number, the farther from the first.
fn direction(number: i64, of: i64) -> [f32; 3] {
    let angle = FRAC_PI_2 * number as f32 / of as f32;
    [angle.cos(), angle.sin(), 0.0]
}

fn row<'a>(no: i64, vector: &'a [f32], terms: &'a [u64]) -> VectorRow<'a> {
    VectorRow {
        no,
        scope: SCOPE,
        seq: 10 * no,
        kind: no % 2,
        state: 1,
        policy: if no % 3 == 0 { "private" } else { "organization" },
        author_user: Some(if no % 2 == 0 { "even" } else { "odd" }),
        author_client: None,
        at: no,
        created_at: no,
        expires_at: (no % 10 == 9).then_some(1_000),
        vector: Some(vector),
        pieces: &[],
        terms,
    }
}

async fn put(store: &Store, numbers: std::ops::Range<i64>) {
    write(store, move |tx| {
        for no in numbers.clone() {
            let words = if no % 4 == 0 { &[WALRUS, SEAL][..] } else { &[WALRUS][..] };
            index(tx).put(&row(no, &direction(no, 100), words))?;
        }
        Ok(())
    })
    .await;
}

async fn nearest(store: &Store, filter: VectorFilter<'static>, limit: usize) -> Vec<i64> {
    let mut both = Vec::new();
    for care in [Care::Quick, Care::Exact] {
        let found = store.read(AllTenants, "suite", move |tx| {
            index(tx).nearest(SCOPE, &direction(0, 1), &filter, limit, care)
        });
        both.push(numbers(&found.await.unwrap()));
    }
    assert_eq!(both[0], both[1], "so few are found exactly either way");
    both.remove(0)
}

fn numbers(named: &[Named]) -> Vec<i64> {
    assert!(named.iter().all(|one| one.seq == 10 * one.no), "{named:?}");
    named.iter().map(|one| one.no).collect()
}

/// The most similar are named first, as they were put last, and no more when they are removed.
pub async fn what_is_similar_is_found_as_it_was_put_last(fixture: impl EngineFixture) {
    let store = fixture.store();
    if !is_able(store).await {
        return;
    }
    put(store, 1..60).await;
    assert_eq!(nearest(store, VectorFilter::default(), 3).await, [1, 2, 3]);
    write(store, |tx| {
        index(tx).put(&row(2, &direction(90, 100), &[]))?;
        index(tx).remove(1)?;
        // The unit of work itself sees it.
        let found = index(tx).nearest(SCOPE, &direction(0, 1), &VectorFilter::default(), 2, Care::Exact)?;
        assert_eq!(numbers(&found), [3, 4]);
        Ok(())
    })
    .await;
    assert_eq!(nearest(store, VectorFilter::default(), 3).await, [3, 4, 5]);
    let found = store.read(AllTenants, "suite", |tx| {
        index(tx).nearest(SCOPE + 1, &direction(0, 1), &VectorFilter::default(), 9, Care::Quick)
    });
    assert_eq!(found.await.unwrap(), [], "another scope");
    let lengths = store.read(AllTenants, "suite", |tx| index(tx).dimensions(SCOPE)).await.unwrap();
    assert_eq!(lengths, [3]);
}

/// An entry is found by each of its pieces, and counted once.
pub async fn pieces_are_found_with_their_entry(fixture: impl EngineFixture) {
    let store = fixture.store();
    if !is_able(store).await {
        return;
    }
    put(store, 10..60).await;
    let near = |of: i64| direction(of, 100).to_vec();
    write(store, move |tx| {
        let pieces = [near(80), near(0), near(1)];
        index(tx).put(&VectorRow { pieces: &pieces, ..row(5, &direction(40, 100), &[SEAL]) })
    })
    .await;
    assert_eq!(nearest(store, VectorFilter::default(), 4).await, [5, 5, 10, 11], "for two of its pieces");
    assert_eq!(nearest(store, VectorFilter { only: Some(&[5]), ..VectorFilter::default() }, 9).await, [5; 4]);
    let counted = write(store, |tx| {
        let all = VectorFilter::default();
        index(tx).count_terms(SCOPE, 51)?;
        let counts = index(tx).term_counts(SCOPE, PrivateOwner::default(), &[SEAL])?;
        let query = WordQuery { some: &[SEAL], worth: &[(SEAL, 1.0)], vector: Some(&direction(0, 1)) };
        let named = index(tx).with_terms(SCOPE, &query, &VectorFilter { to: Some(9), ..all }, 9)?;
        let listed = index(tx).list(SCOPE, &VectorFilter { to: Some(10), ..all }, 0, 9)?;
        Ok((index(tx).count(SCOPE, &all, None)?, counts, numbers(&named), numbers(&listed)))
    })
    .await;
    // Of 10 to 59, 16 are private; of the 12 with the word, 4.
    let counts = TermCounts { entries: 35, counts: vec![9] };
    assert_eq!(counted, (51, counts, vec![5], vec![5, 10]));

    // A version with fewer pieces, and then none.
    write(store, move |tx| {
        index(tx).put(&VectorRow { pieces: &[near(1)], ..row(5, &direction(40, 100), &[]) })
    })
    .await;
    assert_eq!(nearest(store, VectorFilter { only: Some(&[5]), ..VectorFilter::default() }, 9).await, [5; 2]);
    write(store, |tx| index(tx).remove(5)).await;
    assert_eq!(nearest(store, VectorFilter::default(), 2).await, [10, 11]);
}

/// Conditions come before the limit, every one of them.
pub async fn filters_come_before_the_limit_of_vectors(fixture: impl EngineFixture) {
    let store = fixture.store();
    if !is_able(store).await {
        return;
    }
    put(store, 1..60).await;
    let all = VectorFilter::default();
    assert_eq!(nearest(store, VectorFilter { kinds: Some(&[0]), ..all }, 3).await, [2, 4, 6]);
    assert_eq!(nearest(store, VectorFilter { kinds: Some(&[]), ..all }, 3).await, [0; 0]);
    assert_eq!(nearest(store, VectorFilter { state: Some(2), ..all }, 3).await, [0; 0]);
    assert_eq!(nearest(store, VectorFilter { from: Some(50), ..all }, 3).await, [50, 51, 52]);
    assert_eq!(nearest(store, VectorFilter { to: Some(2), ..all }, 3).await, [1, 2]);
    assert_eq!(nearest(store, VectorFilter { until: Some(1), ..all }, 3).await, [1]);
    assert_eq!(nearest(store, VectorFilter { only: Some(&[40, 30]), ..all }, 3).await, [30, 40]);
    assert_eq!(
        nearest(store, VectorFilter { from: Some(8), now: 1_000, ..all }, 2).await,
        [8, 10],
        "9 has expired"
    );
    let owner = PrivateOwner { user: Some("odd"), client: None };
    assert_eq!(
        nearest(store, VectorFilter { visible_to: VisibleTo::Perhaps(owner), ..all }, 6).await,
        [1, 2, 3, 4, 5, 7]
    );
    let nobody = PrivateOwner::default();
    assert_eq!(
        nearest(store, VectorFilter { visible_to: VisibleTo::Surely(nobody), ..all }, 3).await,
        [1, 2, 4]
    );
    let count = store.read(AllTenants, "suite", move |tx| {
        let seen = VectorFilter { visible_to: VisibleTo::Surely(owner), ..VectorFilter::default() };
        let unsure = VectorFilter { visible_to: VisibleTo::Unsure, ..VectorFilter::default() };
        let count = index(tx).count(SCOPE, &seen, None)?;
        Ok::<_, StoreError>((
            count,
            index(tx).count(SCOPE, &seen, Some(5))?,
            index(tx).list(SCOPE, &unsure, 0, 9)?,
        ))
    });
    // 19 of 59 are private, 10 of those odd.
    assert_eq!(count.await.unwrap(), (50, 5, Vec::new()));
}

/// Words are those of a scope, whatever others say.
pub async fn words_are_found_and_counted_in_their_scope(fixture: impl EngineFixture) {
    let store = fixture.store();
    if !is_able(store).await {
        return;
    }
    put(store, 1..60).await;
    write(store, |tx| index(tx).put(&VectorRow { scope: SCOPE + 1, ..row(100, &direction(0, 1), &[SEAL]) }))
        .await;
    for counted in [false, true] {
        let (named, counts) = write(store, move |tx| {
            if counted {
                index(tx).count_terms(SCOPE, 59)?;
            }
            let query =
                WordQuery { some: &[WALRUS, SEAL], worth: &[(WALRUS, 1.0), (SEAL, 2.0)], vector: None };
            let named = index(tx).with_terms(SCOPE, &query, &VectorFilter::default(), 15)?;
            let similar = WordQuery { vector: Some(&direction(0, 1)), some: &[SEAL], ..query };
            let similar = index(tx).with_terms(SCOPE, &similar, &VectorFilter::default(), 3)?;
            assert_eq!(numbers(&similar), [4, 8, 12]);
            let with_both = VectorFilter { terms: &[SEAL, WALRUS], ..VectorFilter::default() };
            let similar = index(tx).nearest(SCOPE, &direction(0, 1), &with_both, 2, Care::Quick)?;
            assert_eq!(numbers(&similar), [4, 8]);
            let words = [SEAL, WALRUS, 0];
            let odd = PrivateOwner { user: Some("odd"), client: None };
            let counts =
                [PrivateOwner::default(), odd].map(|owner| index(tx).term_counts(SCOPE, owner, &words));
            assert_eq!(index(tx).has_counts(SCOPE)?, counted);
            Ok((numbers(&named), counts.into_iter().collect::<Result<Vec<_>, _>>()?))
        })
        .await;
        assert_eq!(
            named,
            [56, 52, 48, 44, 40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 59],
            "those with both words first"
        );
        // Of 59, 19 are private, 10 of those odd; of the 14 with both words, 4, none of them odd.
        let entries = if counted { 40 } else { 0 };
        let of = |counts: [i64; 3]| TermCounts { entries, counts: counts.to_vec() };
        assert_eq!(counts, [of([10, 40, 0]), of([10, 50, 0])]);
    }
    while write(store, |tx| index(tx).clear(SCOPE, 25)).await > 0 {}
    let left = write(store, |tx| {
        Ok((
            index(tx).count(SCOPE, &VectorFilter::default(), None)?,
            index(tx).count(SCOPE + 1, &VectorFilter::default(), None)?,
        ))
    });
    assert_eq!(left.await, (0, 1));
}

/// What is undone was never there.
pub async fn undone_vectors_leave_no_trace(fixture: impl EngineFixture) {
    let store = fixture.store();
    if !is_able(store).await {
        return;
    }
    let undone = store.write(AllTenants, "suite", |tx| {
        index(tx).put(&row(1, &direction(0, 1), &[WALRUS]))?;
        Err::<(), _>(Failure::Refused)
    });
    assert!(undone.await.is_err());
    assert_eq!(nearest(store, VectorFilter::default(), 3).await, [0; 0]);
}
