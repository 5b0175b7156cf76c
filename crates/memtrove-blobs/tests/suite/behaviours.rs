//! What is the same wherever blobs are kept, sealed or not.

use super::{Store, body, collect, seal};
use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use memtrove_blobs::{BlobError, Seal};

/// How many bytes are sealed together.
const PIECE: usize = 64 * 1024;

/// The longest part of any store, and some.
const LARGE: usize = 12 * 1024 * 1024 + 7;

macro_rules! for_every_store {
    ($($behaviour:ident),* $(,)?) => {
        mod directory { for_every_store!(@ directory: $($behaviour),*); }
        mod memory { for_every_store!(@ memory: $($behaviour),*); }
        mod s3 { for_every_store!(@ s3: $($behaviour),*); }
        mod azure { for_every_store!(@ azure: $($behaviour),*); }
    };
    (@ $store:ident: $($behaviour:ident),*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(crate::Store::$store(), None).await;
            }
        )*
        mod sealed {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    super::super::$behaviour(crate::Store::$store(), Some(&crate::seal())).await;
                }
            )*
        }
    };
}

for_every_store![
    what_was_put_is_what_is_got,
    ranges_are_cut_where_they_are_asked_for,
    a_range_that_is_not_there_is_said_to_be_none,
    a_large_blob_goes_through_in_parts,
    nothing_is_seen_of_a_blob_before_it_is_finished,
    an_upload_that_is_given_up_leaves_nothing,
    the_last_one_who_finishes_wins,
    a_blob_that_is_replaced_is_another_one,
    what_is_deleted_is_gone_and_deleting_nothing_is_fine,
    what_was_never_there_is_missing,
    keys_that_could_lead_astray_are_refused,
    everything_below_a_prefix_is_listed,
    many_at_once_do_not_disturb_each_other,
    a_store_that_is_there_says_so,
];

async fn what_was_put_is_what_is_got(store: Store, seal: Option<&Seal>) {
    for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 300_000] {
        let body = body(length);
        let key = format!("lengths/{length}");
        store.put(&key, seal, &body).await;
        assert!(store.get(&key, seal).await.unwrap() == body, "{length}");
    }
}

async fn ranges_are_cut_where_they_are_asked_for(store: Store, seal: Option<&Seal>) {
    let body = body(3 * PIECE + 100);
    store.put("ranges", seal, &body).await;
    let borders = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE, 3 * PIECE + 99, 3 * PIECE + 100];
    for start in borders {
        for end in borders.into_iter().filter(|end| *end > start) {
            let range = store.range("ranges", seal, start as u64..end as u64).await.unwrap();
            assert!(range == body[start..end], "{start}..{end}");
        }
    }
    let beyond = store.range("ranges", seal, 3 * PIECE as u64..u64::MAX).await.unwrap();
    assert!(beyond == body[3 * PIECE..], "a range that ends after the blob ends with it");
}

async fn a_range_that_is_not_there_is_said_to_be_none(store: Store, seal: Option<&Seal>) {
    store.put("short", seal, &body(100)).await;
    store.put("empty", seal, &[]).await;
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    for (key, range) in
        [("short", 100..101), ("short", 5000..6000), ("short", 5..5), ("short", 6..5), ("empty", 0..1)]
    {
        let answer = store.range(key, seal, range.clone()).await;
        assert!(matches!(answer, Err(BlobError::Invalid(_))), "{key} {range:?}: {answer:?}");
    }
}

async fn a_large_blob_goes_through_in_parts(store: Store, seal: Option<&Seal>) {
    let body = body(LARGE);
    store.put("large", seal, &body).await;
    assert!(store.get("large", seal).await.unwrap() == body);
    let middle = store.range("large", seal, 5_242_870..10_485_770).await.unwrap();
    assert!(middle == body[5_242_870..10_485_770]);

    let mut at_once = store.blobs.put("at-once", seal).await.unwrap();
    at_once.write(Bytes::from(body.clone())).await.unwrap();
    at_once.finish().await.unwrap();
    assert!(store.get("at-once", seal).await.unwrap() == body);
}

async fn nothing_is_seen_of_a_blob_before_it_is_finished(store: Store, seal: Option<&Seal>) {
    for (key, length) in [("small", 1000), ("large", LARGE)] {
        let body = body(length);
        let mut upload = store.blobs.put(key, seal).await.unwrap();
        upload.write(Bytes::from(body.clone())).await.unwrap();
        assert_eq!(store.get(key, seal).await, Err(BlobError::Missing), "{key}");
        assert!(store.keys("").await.iter().all(|listed| listed != key), "{key}");
        upload.finish().await.unwrap();
        assert!(store.get(key, seal).await.unwrap() == body, "{key}");
    }
}

async fn an_upload_that_is_given_up_leaves_nothing(store: Store, seal: Option<&Seal>) {
    store.put("kept", seal, b"before").await;
    for length in [0, 1000, LARGE] {
        let mut aborted = store.blobs.put("kept", seal).await.unwrap();
        aborted.write(Bytes::from(body(length))).await.unwrap();
        aborted.abort().await.unwrap();
        let mut dropped = store.blobs.put("new", seal).await.unwrap();
        dropped.write(Bytes::from(body(length))).await.unwrap();
        drop(dropped);
    }
    assert_eq!(store.get("kept", seal).await.unwrap(), &b"before"[..]);
    assert_eq!(store.get("new", seal).await, Err(BlobError::Missing));
    assert_eq!(store.keys("").await, ["kept"]);
}

async fn the_last_one_who_finishes_wins(store: Store, seal: Option<&Seal>) {
    let mut first = store.blobs.put("raced", seal).await.unwrap();
    let mut second = store.blobs.put("raced", seal).await.unwrap();
    first.write(Bytes::from_static(b"first")).await.unwrap();
    second.write(Bytes::from_static(b"second")).await.unwrap();
    second.finish().await.unwrap();
    assert_eq!(store.get("raced", seal).await.unwrap(), &b"second"[..]);
    first.finish().await.unwrap();
    assert_eq!(store.get("raced", seal).await.unwrap(), &b"first"[..]);
}

async fn a_blob_that_is_replaced_is_another_one(store: Store, seal: Option<&Seal>) {
    store.put("replaced", seal, &body(LARGE)).await;
    store.put("replaced", seal, b"short").await;
    assert_eq!(store.get("replaced", seal).await.unwrap(), &b"short"[..]);
    store.put("replaced", seal, &body(PIECE)).await;
    assert!(store.get("replaced", seal).await.unwrap() == body(PIECE));
    assert_eq!(store.keys("").await, ["replaced"]);
}

async fn what_is_deleted_is_gone_and_deleting_nothing_is_fine(store: Store, seal: Option<&Seal>) {
    store.put("a/b", seal, b"one").await;
    store.put("a/c", seal, b"two").await;
    store.blobs.delete("a/b").await.unwrap();
    assert_eq!(store.get("a/b", seal).await, Err(BlobError::Missing));
    assert_eq!(store.get("a/c", seal).await.unwrap(), &b"two"[..]);
    store.blobs.delete("a/b").await.unwrap();
    store.blobs.delete("never/there").await.unwrap();
    store.blobs.delete("a").await.unwrap();
    assert_eq!(store.keys("").await, ["a/c"]);
}

async fn what_was_never_there_is_missing(store: Store, seal: Option<&Seal>) {
    store.put("a/b", seal, b"one").await;
    for key in ["nothing", "a", "a/b/c", "a/bb"] {
        assert_eq!(store.get(key, seal).await, Err(BlobError::Missing), "{key}");
        assert_eq!(store.range(key, seal, 0..1).await, Err(BlobError::Missing), "{key}");
    }
}

async fn keys_that_could_lead_astray_are_refused(store: Store, seal: Option<&Seal>) {
    for key in ["", "../outside", "a/../../outside", "/etc/passwd", ".uploads/x", "a//b", "a\\b", "a\0b"] {
        let put = store.blobs.put(key, seal).await.map(drop);
        assert!(matches!(put, Err(BlobError::Invalid(_))), "put {key:?}: {put:?}");
        let got = store.get(key, seal).await;
        assert!(matches!(got, Err(BlobError::Invalid(_))), "get {key:?}: {got:?}");
        let deleted = store.blobs.delete(key).await;
        assert!(matches!(deleted, Err(BlobError::Invalid(_))), "delete {key:?}: {deleted:?}");
        let link = store.blobs.signed_url(key, std::time::Duration::from_secs(60), None, None).await;
        assert!(matches!(link, Err(BlobError::Invalid(_))), "signed_url {key:?}: {link:?}");
    }
    let listed: Result<Vec<_>, _> = store.blobs.list("..").try_collect().await;
    assert!(matches!(listed, Err(BlobError::Invalid(_))), "{listed:?}");
}

async fn everything_below_a_prefix_is_listed(store: Store, seal: Option<&Seal>) {
    for key in ["one/a", "one/b/c", "one", "ones/d", "two/e"].into_iter().filter(|key| *key != "one") {
        store.put(key, seal, &body(10)).await;
    }
    assert_eq!(store.keys("").await, ["one/a", "one/b/c", "ones/d", "two/e"]);
    assert_eq!(store.keys("one").await, ["one/a", "one/b/c"]);
    assert_eq!(store.keys("one/").await, ["one/a", "one/b/c"]);
    assert_eq!(store.keys("nothing").await, [""; 0]);

    let listed = store.list("two").await;
    assert!(listed[0].size >= 10, "{listed:?}");
    let age = listed[0].modified.elapsed().unwrap_or_default();
    assert!(age.as_secs() < 300, "{age:?} old");
}

async fn many_at_once_do_not_disturb_each_other(store: Store, seal: Option<&Seal>) {
    let all: Vec<u8> = body(400_000);
    let one = async |number: usize| {
        let (key, body) = (format!("many/{number}"), &all[number * 1000..200_000 + number * 3000]);
        store.put(&key, seal, body).await;
        let (whole, part) = tokio::join!(store.get(&key, seal), store.range(&key, seal, 70_000..140_000));
        assert!(whole.unwrap() == body, "{key}");
        assert!(part.unwrap() == body[70_000..140_000], "{key}");
        if number.is_multiple_of(2) {
            store.blobs.delete(&key).await.unwrap();
        }
    };
    join_all((0..24).map(one)).await;
    assert_eq!(store.keys("many").await.len(), 12);

    // Whoever reads while others write sees one of them, whole.
    store.put("busy", seal, &vec![0; 150_000]).await;
    let write = async |number: u8| store.put("busy", seal, &vec![number; 150_000]).await;
    let read = async || {
        let read = match store.blobs.get("busy", seal, None).await {
            Ok(stream) => collect(stream).await,
            Err(error) => Err(error),
        };
        if let Ok(read) = read {
            assert!(read.len() == 150_000 && read.iter().all(|byte| *byte == read[0]));
        }
    };
    tokio::join!(join_all((1..6).map(write)), join_all((0..8).map(|_| read())));
}

async fn a_store_that_is_there_says_so(store: Store, _: Option<&Seal>) {
    store.blobs.check().await.unwrap();
    store.put("something", Some(&seal()), b"in it").await;
    store.blobs.check().await.unwrap();
}
