//! What a partition says it takes is what it takes.
#![allow(unsafe_code, reason = "an allocator that counts; nothing else can check the accounting")]

use memtrove_recall::index::{Partition, Piece, SpaceNo};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test, because a second would allocate beside it.
#[test]
fn a_partition_accounts_for_every_byte_it_takes() {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let mut partition = Partition::<[u64; 8]>::new();
    let check = |partition: &Partition<[u64; 8]>, when: &str| {
        let taken = ALLOCATED.load(Ordering::Relaxed) - before + size_of::<Partition<[u64; 8]>>();
        // The test's own runner may allocate a little meanwhile.
        assert!(partition.bytes().abs_diff(taken) < 4096, "{} of {taken} {when}", partition.bytes());
    };
    let put = |partition: &mut Partition<[u64; 8]>, key: u64, pieces: usize| {
        let vector: Vec<f32> = (0..100).map(|n| ((key * 31 + n * 17) % 101) as f32 - 50.0).collect();
        let terms: Vec<(u64, u32)> = (0..12).map(|n| (key * (n + 1) % (1 << n), 1 + n as u32 % 3)).collect();
        let space = SpaceNo((key % 2) as u16);
        let piece =
            Piece { vector: Some(&vector[..50 + 50 * (key as usize % 2)]), terms: &terms, length: 20 };
        partition.put(key, [key; 8], Some(space), &vec![piece; pieces]);
    };
    for key in 0..10_000 {
        put(&mut partition, key, 1 + key as usize % 3);
    }
    check(&partition, "after loading");
    for key in 0..7000 {
        put(&mut partition, key * 2, 1);
        partition.remove(key * 2 + 1);
    }
    check(&partition, "after changes");
    for key in 0..6990 {
        partition.remove(key * 2);
    }
    check(&partition, "after nearly all went");
}
