use super::super::{Partition, PartitionCache, Piece};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

type Numbers = PartitionCache<u32, u64, u64>;

/// Brings a partition to this many documents.
fn load(cache: &Numbers, key: u32, documents: u64) -> usize {
    let Ok(len) =
        cache.with(&key, |&seen| seen < documents, filler(documents), |_, partition| partition.len());
    len
}

fn filler(documents: u64) -> impl FnMut(&mut u64, &mut Partition<u64>) -> Result<(), Infallible> {
    move |seen, partition| {
        for key in *seen..documents {
            partition.put(key, key, None, &[Piece { vector: None, terms: &[(key, 1)], length: 1 }]);
        }
        *seen = documents;
        Ok(())
    }
}

#[test]
fn a_partition_is_caught_up_only_when_it_needs_to_be() {
    let cache = Numbers::new(1 << 20);
    assert_eq!(load(&cache, 1, 10), 10);
    assert_eq!(load(&cache, 1, 12), 12);
    assert_eq!(load(&cache, 1, 5), 12, "what was seen is not unseen");
    assert_eq!((cache.len(), cache.is_empty()), (1, false));
}

#[test]
fn threads_that_ask_together_load_once() {
    let (cache, loads, together) = (Numbers::new(1 << 20), AtomicUsize::new(0), Barrier::new(8));
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                together.wait();
                let catch_up = |seen: &mut u64, partition: &mut Partition<u64>| {
                    loads.fetch_add(1, Ordering::SeqCst);
                    filler(100)(seen, partition)
                };
                let Ok(len) = cache.with(&1, |&seen| seen < 100, catch_up, |_, partition| partition.len());
                assert_eq!(len, 100);
            });
        }
    });
    assert_eq!(loads.into_inner(), 1);
}

#[test]
fn loading_one_keeps_nobody_from_another() {
    let cache = Numbers::new(1 << 20);
    load(&cache, 2, 5);
    let Ok(()) = cache.with(
        &1,
        |_| true,
        |_, _| {
            thread::scope(|threads| {
                threads.spawn(|| load(&cache, 2, 9)).join().map(|len| assert_eq!(len, 9)).unwrap()
            });
            Ok::<_, Infallible>(())
        },
        |_, _| (),
    );
}

#[test]
fn readers_share_a_partition() {
    let cache = Numbers::new(1 << 20);
    load(&cache, 1, 5);
    let together = Barrier::new(2);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| cache.with(&1, |_| false, filler(5), |_, _| together.wait().is_leader()));
        }
    });
}

#[test]
fn what_fails_to_catch_up_is_dropped_and_loaded_anew() {
    let cache = Numbers::new(1 << 20);
    load(&cache, 1, 10);
    let failing = |seen: &mut u64, partition: &mut Partition<u64>| {
        *seen = 99;
        partition.remove(3);
        Err("no such table")
    };
    assert_eq!(cache.with(&1, |_| true, failing, |_, _| ()), Err("no such table"));
    assert_eq!((cache.len(), cache.bytes()), (0, 0));
    assert_eq!(load(&cache, 1, 10), 10);
}

#[test]
fn a_panic_while_catching_up_leaves_nothing_half_done() {
    let cache = Numbers::new(1 << 20);
    load(&cache, 1, 10);
    let panicking = |seen: &mut u64, _: &mut Partition<u64>| -> Result<(), Infallible> {
        *seen = 99;
        panic!("in the middle of it")
    };
    let result =
        thread::scope(|threads| threads.spawn(|| cache.with(&1, |_| true, panicking, |_, _| ())).join());
    assert!(result.is_err());
    assert_eq!(load(&cache, 1, 10), 10);
}

#[test]
fn those_used_longest_ago_make_room() {
    let one = {
        let cache = Numbers::new(usize::MAX);
        load(&cache, 0, 100);
        cache.bytes()
    };
    let cache = Numbers::new(8 * one);
    (0..8).for_each(|key| assert_eq!(load(&cache, key, 100), 100));
    assert_eq!((cache.len(), cache.bytes()), (8, 8 * one));
    load(&cache, 0, 100);
    load(&cache, 8, 100);
    assert!(cache.bytes() <= 8 * one);
    let is_here = |key| {
        let mut loaded = false;
        let catch_up = |seen: &mut u64, partition: &mut Partition<u64>| {
            loaded = true;
            filler(100)(seen, partition)
        };
        let Ok(()) = cache.with(&key, |&seen| seen < 100, catch_up, |_, _| ());
        !loaded
    };
    assert!(is_here(0), "used again in time");
    assert!(is_here(8));
    assert!(!is_here(1), "the one used longest ago");
}

#[test]
fn one_larger_than_the_budget_works_and_goes_first() {
    let cache = Numbers::new(10_000);
    assert_eq!(load(&cache, 1, 5000), 5000);
    assert!(cache.bytes() > 10_000);
    load(&cache, 2, 1);
    assert_eq!(cache.len(), 1);
    assert!(cache.bytes() < 10_000);
}

#[test]
fn what_is_in_use_is_not_dropped() {
    let cache = Numbers::new(10_000);
    let (reading, read) = mpsc::channel();
    let (finish, finished) = mpsc::channel::<()>();
    thread::scope(|threads| {
        let cache = &cache;
        threads.spawn(move || {
            cache.with(
                &1,
                |&seen| seen < 5000,
                filler(5000),
                |_, partition| {
                    reading.send(()).unwrap();
                    finished.recv().unwrap();
                    assert_eq!(partition.len(), 5000);
                },
            )
        });
        read.recv().unwrap();
        load(cache, 2, 10);
        assert_eq!(cache.len(), 2);
        finish.send(()).unwrap();
    });
    load(&cache, 3, 10);
    assert_eq!(cache.len(), 2, "not in use any more");
}

#[test]
fn a_dropped_partition_is_read_to_the_end_and_counted_no_more() {
    let cache = Numbers::new(1 << 20);
    let Ok(len) = cache.with(
        &1,
        |&seen| seen < 10,
        filler(10),
        |_, partition| {
            cache.drop_key(&1);
            assert!(cache.is_empty());
            partition.len()
        },
    );
    assert_eq!((len, cache.bytes()), (10, 0));
    let dropped_meanwhile = |seen: &mut u64, partition: &mut Partition<u64>| {
        cache.drop_key(&1);
        filler(10)(seen, partition)
    };
    let Ok(len) = cache.with(&1, |&seen| seen < 10, dropped_meanwhile, |_, partition| partition.len());
    assert_eq!((len, cache.bytes(), cache.len()), (10, 0, 0));
}
