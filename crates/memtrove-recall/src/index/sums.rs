//! What a query makes of every sketch, and which are the best.

use super::chunk::CHUNK;
use memtrove_simd::search::BLOCK_ROWS;

/// Sums over sketches, chunk after chunk. None is negative.
#[derive(Default)]
pub(super) struct Sums {
    chunks: Vec<usize>,
    rows: Vec<i16>,
}

impl Sums {
    /// Where there is no sketch.
    pub(super) const UNUSED: i16 = -1;

    /// Room for the sums of a chunk with this many slots, in whole blocks.
    pub(super) fn add(&mut self, chunk: usize, slots: usize) -> &mut [i16] {
        let start = self.rows.len();
        self.chunks.push(chunk);
        self.rows.resize(start + CHUNK, Self::UNUSED);
        &mut self.rows[start..][..slots.next_multiple_of(BLOCK_ROWS)]
    }

    /// The largest sum that at least `depth` rows reach; 0 when there are not as many rows.
    pub(super) fn reached_by(&self, depth: usize) -> i16 {
        let mut best: Vec<i16> = self.rows.chunks_exact(BLOCK_ROWS).map(largest).collect();
        let highest = largest(&best).max(0);
        // More than `depth` blocks have a row that reaches this, so that rows below it need not be counted.
        let lowest =
            if depth < best.len() { *best.select_nth_unstable_by(depth, |a, b| b.cmp(a)).1 } else { 0 };
        let lowest = lowest.max(0);
        let mut counts = vec![0; usize::from(highest.abs_diff(lowest)) + 1];
        self.for_each_from(lowest, |_, _, sum| counts[usize::from(sum.abs_diff(lowest))] += 1);
        let mut reached = 0;
        let found = (lowest..=highest).rev().zip(counts.iter().rev()).find(|(_, count)| {
            reached += **count;
            reached >= depth
        });
        found.map_or(0, |(sum, _)| sum)
    }

    /// Visits the rows whose sum is `bar` or more, by chunk and slot.
    pub(super) fn for_each_from(&self, bar: i16, mut visit: impl FnMut(usize, usize, i16)) {
        for (number, rows) in self.rows.chunks_exact(BLOCK_ROWS).enumerate() {
            // Mostly there is none in a block, and that is seen without a look at each.
            if largest(rows) < bar {
                continue;
            }
            for (at, &sum) in (number * BLOCK_ROWS..).zip(rows) {
                if sum >= bar {
                    visit(self.chunks[at / CHUNK], at % CHUNK, sum);
                }
            }
        }
    }
}

fn largest(sums: &[i16]) -> i16 {
    sums.iter().fold(i16::MIN, |largest, &sum| largest.max(sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bar_is_the_sum_of_the_last_row_wanted(
            chunks in prop::collection::vec(prop::collection::vec(-1..60i16, 1..300), 0..4),
            depth in 1..400usize,
        ) {
            let mut sums = Sums::default();
            for (number, chunk) in chunks.iter().enumerate() {
                let rows = sums.add(number, chunk.len());
                rows.fill(Sums::UNUSED);
                rows[..chunk.len()].copy_from_slice(chunk);
            }
            let mut all: Vec<i16> = chunks.iter().flatten().copied().filter(|sum| *sum >= 0).collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let bar = sums.reached_by(depth);
            prop_assert_eq!(bar, all.get(depth - 1).copied().unwrap_or(0));
            let mut visited = Vec::new();
            sums.for_each_from(bar, |chunk, slot, sum| {
                assert_eq!(chunks[chunk][slot], sum);
                visited.push(sum);
            });
            visited.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert_eq!(&visited[..], &all[..visited.len()]);
            prop_assert!(visited.len() >= depth.min(all.len()));
        }
    }
}
