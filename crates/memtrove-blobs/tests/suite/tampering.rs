//! What is sealed opens as what it was, or not at all.

use super::{Store, body, seal};
use memtrove_blobs::{BlobError, Seal};

const HEADER: usize = 36;
const PIECE: usize = 64 * 1024;
const SEALED: usize = PIECE + 16;

/// A store that holds a sealed body of three and a half pieces, and the bytes that are stored of it.
async fn sealed() -> (Store, Vec<u8>) {
    let store = Store::memory();
    store.put("sealed", Some(&seal()), &body(3 * PIECE + PIECE / 2)).await;
    let stored = store.get("sealed", None).await.unwrap().to_vec();
    assert_eq!(stored.len(), HEADER + 3 * SEALED + PIECE / 2 + 16);
    (store, stored)
}

/// What opening these bytes comes to.
async fn open(store: &Store, stored: &[u8]) -> Result<(), BlobError> {
    store.put("sealed", None, stored).await;
    store.get("sealed", Some(&seal())).await.map(drop)
}

fn piece(stored: &[u8], number: usize) -> &[u8] {
    let start = HEADER + number * SEALED;
    &stored[start..stored.len().min(start + SEALED)]
}

#[tokio::test]
async fn the_stored_bytes_show_nothing_of_the_body() {
    let store = Store::memory();
    store.put("sealed", Some(&seal()), &[b'x'; 1000]).await;
    let stored = store.get("sealed", None).await.unwrap();
    assert!(!stored.windows(4).any(|bytes| bytes == b"xxxx"));
}

#[tokio::test]
async fn a_bit_that_is_flipped_anywhere_is_noticed() {
    let (store, stored) = sealed().await;
    let places = [
        0,
        4,
        HEADER - 1,
        HEADER,
        HEADER + 5000,
        HEADER + PIECE,
        HEADER + SEALED,
        stored.len() - 17,
        stored.len() - 1,
    ];
    for place in places {
        for bit in [0, 7] {
            let mut changed = stored.clone();
            changed[place] ^= 1 << bit;
            assert_eq!(open(&store, &changed).await, Err(BlobError::Damaged), "bit {bit} of byte {place}");
        }
    }
    assert_eq!(open(&store, &stored).await, Ok(()));
}

#[tokio::test]
async fn a_body_that_is_cut_is_noticed_wherever_it_is_cut() {
    let (store, stored) = sealed().await;
    let borders = (0..=3).map(|pieces| HEADER + pieces * SEALED);
    for length in borders.chain([
        0,
        1,
        HEADER - 1,
        HEADER + 15,
        HEADER + 16,
        HEADER + 1000,
        stored.len() - 16,
        stored.len() - 1,
    ]) {
        assert_eq!(open(&store, &stored[..length]).await, Err(BlobError::Damaged), "cut to {length}");
        let range = store.range("sealed", Some(&seal()), 3 * PIECE as u64..3 * PIECE as u64 + 5).await;
        assert!(range.is_err(), "a range of what was cut off by cutting to {length}");
    }
}

#[tokio::test]
async fn pieces_that_are_swapped_repeated_or_left_out_are_noticed() {
    let (store, stored) = sealed().await;
    for order in
        [&[1, 0, 2, 3][..], &[0, 2, 1, 3], &[0, 1, 1, 3], &[0, 1, 3], &[1, 2, 3], &[0, 1, 2, 2, 3], &[3]]
    {
        let mut changed = stored[..HEADER].to_vec();
        order.iter().for_each(|number| changed.extend_from_slice(piece(&stored, *number)));
        assert_eq!(open(&store, &changed).await, Err(BlobError::Damaged), "{order:?}");
    }
}

#[tokio::test]
async fn what_is_added_at_the_end_is_noticed() {
    let (store, stored) = sealed().await;
    let additions =
        [vec![0], vec![0; 16], vec![0; SEALED], piece(&stored, 3).to_vec(), piece(&stored, 0).to_vec()];
    for addition in additions {
        let changed = [&stored[..], &addition].concat();
        assert_eq!(open(&store, &changed).await, Err(BlobError::Damaged), "{} more", addition.len());
    }
}

#[tokio::test]
async fn a_piece_of_another_body_under_the_same_seal_is_noticed() {
    let (store, stored) = sealed().await;
    store.put("other", Some(&seal()), &body(3 * PIECE + PIECE / 2)).await;
    let other = store.get("other", None).await.unwrap();
    for number in 0..4 {
        let start = HEADER + number * SEALED;
        let mut changed = stored.clone();
        let end = changed.len().min(start + SEALED);
        changed[start..end].copy_from_slice(piece(&other, number));
        assert_eq!(open(&store, &changed).await, Err(BlobError::Damaged), "piece {number}");
    }
}

#[tokio::test]
async fn another_key_or_another_context_opens_nothing() {
    let (store, _) = sealed().await;
    for wrong in [
        Seal::new([42; 32], "attachment 2"),
        Seal::new([42; 32], "attachment"),
        Seal::new([42; 32], ""),
        Seal::new([43; 32], "attachment 1"),
    ] {
        assert_eq!(store.get("sealed", Some(&wrong)).await, Err(BlobError::Damaged));
        assert_eq!(store.range("sealed", Some(&wrong), 0..10).await, Err(BlobError::Damaged));
    }
}

#[tokio::test]
async fn what_was_never_sealed_does_not_open() {
    let store = Store::memory();
    for length in [0, 10, HEADER + 16, 2 * PIECE] {
        assert_eq!(open(&store, &body(length)).await, Err(BlobError::Damaged), "{length}");
        assert_eq!(store.range("sealed", Some(&seal()), 0..1).await, Err(BlobError::Damaged), "{length}");
    }
}

#[tokio::test]
async fn a_range_opens_although_something_is_wrong_elsewhere() {
    let (store, mut stored) = sealed().await;
    stored[HEADER + 5] ^= 1;
    assert_eq!(open(&store, &stored).await, Err(BlobError::Damaged));
    let range = store.range("sealed", Some(&seal()), PIECE as u64 + 3..2 * PIECE as u64).await.unwrap();
    assert!(
        range == body(3 * PIECE)[PIECE + 3..2 * PIECE],
        "pieces that a range does not touch are not read"
    );
}
