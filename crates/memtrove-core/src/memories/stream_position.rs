//! Where a reader of the stream is, as a number that tells nothing of what others write.
//!
//! A reader must be able to go on where it was, so its position has to name a change of the tenant. But changes are numbered
//! for the whole tenant, and a reader that sees two of those numbers knows how much others wrote in between. So a position has two
//! halves. The upper one is a clock: it grows with every event that this reader is told, and depends on nothing else. The
//! lower one is the number of the change, enciphered under a key of the tenant, and differently for every value of the clock.

use crate::Timestamp;
use crate::identity::Tenant;

/// The key of a store that positions are enciphered with; kept with the data, so that they survive a restart.
pub type StreamKey = [u8; 32];

/// Of a change's number as many bits are kept: enough to tell four million changes in a row apart.
const NUMBER_BITS: u32 = 22;
const HALF_BITS: u32 = NUMBER_BITS / 2;
const HALF: u32 = (1 << HALF_BITS) - 1;
const ROUNDS: u8 = 8;
/// 2020-01-01, in milliseconds: the clock counts from here, and has 41 bits until 2089.
const BEGINNING: i64 = 1_577_836_800_000;
/// No position was told before 2021; what older versions told, plain numbers of changes, is far below.
const EARLIEST: i64 = 1_609_459_200_000 - BEGINNING;
/// The clock of a position may be so far ahead: it is where more than a thousand events a second were told.
const AHEAD: i64 = 24 * 3600 * 1000;
/// A clock that is ahead goes on at random, so that a reader that comes back with the same position gets another one.
const SCATTER: u64 = 1024;

/// The positions that one reader is told.
#[derive(Debug, Clone)]
pub struct StreamPositions {
    key: [u8; 32],
    /// The clock of the last one.
    clock: i64,
}

impl StreamPositions {
    /// For a reader of a tenant that was told nothing yet.
    pub fn new(key: &StreamKey, tenant: &Tenant) -> Self {
        Self { key: *blake3::keyed_hash(key, tenant.as_str().as_bytes()).as_bytes(), clock: 0 }
    }

    /// Goes on after a position. Answers the number of its change, where `newest` is the greatest there is; none if that is not
    /// known any more, as of positions that an older version told. 0 is before everything.
    pub fn resume(&mut self, position: i64, newest: i64, now: Timestamp, random: u64) -> Option<i64> {
        if position == 0 {
            return Some(0);
        }
        let (clock, number) = (position >> NUMBER_BITS, self.number(position));
        let now = millis(now);
        if !(EARLIEST..=now.saturating_add(AHEAD)).contains(&clock) {
            return None;
        }
        let scatter = if clock < now { 0 } else { (random % SCATTER) as i64 };
        self.clock = clock + scatter;
        let since = (newest - number).rem_euclid(1 << NUMBER_BITS);
        Some(newest - since).filter(|number| *number >= 0)
    }

    /// The next position, which stands for a change.
    pub fn next(&mut self, change: i64, now: Timestamp) -> i64 {
        self.clock = millis(now).max(self.clock + 1);
        let number = (change & ((1 << NUMBER_BITS) - 1)) as u32;
        let (mut left, mut right) = (number >> HALF_BITS, number & HALF);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.pad(round, self.clock, right));
        }
        self.clock << NUMBER_BITS | i64::from(left << HALF_BITS | right)
    }

    fn number(&self, position: i64) -> i64 {
        let (clock, low) = (position >> NUMBER_BITS, (position & ((1 << NUMBER_BITS) - 1)) as u32);
        let (mut left, mut right) = (low >> HALF_BITS, low & HALF);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.pad(round, clock, left), left);
        }
        i64::from(left << HALF_BITS | right)
    }

    fn pad(&self, round: u8, clock: i64, half: u32) -> u32 {
        let mut input = [0; 13];
        input[0] = round;
        input[1..9].copy_from_slice(&clock.to_be_bytes());
        input[9..].copy_from_slice(&half.to_be_bytes());
        let [a, b, ..] = *blake3::keyed_hash(&self.key, &input).as_bytes();
        u32::from(u16::from_be_bytes([a, b])) & HALF
    }
}

/// The clock at an instant.
fn millis(at: Timestamp) -> i64 {
    (at.as_micros().div_euclid(1000) - BEGINNING).clamp(0, (1 << 41) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: StreamKey = [7; 32];
    const NOW: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

    fn positions() -> StreamPositions {
        StreamPositions::new(&KEY, &Tenant::listed("acme".to_owned()))
    }

    proptest! {
        #[test]
        fn a_position_leads_back_to_its_change(
            change in 0..i64::from(u32::MAX), since in 0..4_000_000i64, later in 0..1_000_000_000i64
        ) {
            let position = positions().next(change, NOW);
            let found = positions().resume(position, change + since, NOW.saturating_add_micros(later), 5);
            prop_assert_eq!(found, Some(change));
        }

        #[test]
        fn positions_of_a_reader_grow_also_when_it_comes_back(
            changes in prop::collection::vec((0..1000i64, 0..3000i64), 2..40), random in any::<u64>()
        ) {
            let (mut reader, mut last, mut now, mut change) = (positions(), 0, NOW, 0);
            for (step, (more, pause)) in changes.into_iter().enumerate() {
                (change, now) = (change + more, now.saturating_add_micros(pause));
                if step % 3 == 2 {
                    reader = positions();
                    prop_assert!(reader.resume(last, change, now, random).is_some());
                }
                let next = reader.next(change, now);
                prop_assert!(next > last, "{} after {}", next, last);
                last = next;
            }
        }

        #[test]
        fn the_clock_of_a_position_does_not_depend_on_the_change(a in 0..1000i64, b in 0..1_000_000i64) {
            let (a, b) = (positions().next(a, NOW), positions().next(b, NOW));
            prop_assert_eq!(a >> NUMBER_BITS, b >> NUMBER_BITS);
        }

        #[test]
        fn no_position_makes_anything_overflow(position in 0..i64::MAX, newest in 0..i64::MAX) {
            let mut reader = positions();
            let found = reader.resume(position, newest, NOW, u64::MAX);
            prop_assert!(found.is_none_or(|found| (0..=newest).contains(&found)));
            prop_assert!(reader.next(newest, NOW) > 0);
        }
    }

    #[test]
    fn what_older_versions_told_and_what_is_yet_to_come_is_not_known() {
        assert_eq!(positions().resume(0, 10_000, NOW, 0), Some(0));
        for foreign in [1, 4711, 10_000_000_000, i64::MAX] {
            assert_eq!(positions().resume(foreign, 10_000, NOW, 0), None, "{foreign}");
        }
    }

    /// Neither the order nor the distance of lower halves follows that of the changes: their bits are as good as thrown.
    #[test]
    fn neighbours_are_enciphered_unlike_each_other() {
        let low = |change: i64, late: i64| {
            positions().next(change, NOW.saturating_add_micros(1000 * late)) & ((1 << NUMBER_BITS) - 1)
        };
        let flips: u32 = (0..1000).map(|n| (low(n, n) ^ low(n + 1, n + 1)).count_ones()).sum();
        assert!((10_500..11_500).contains(&flips), "{flips} of 22,000 bits");
        let same: usize = (0..1000).filter(|n| low(42, *n) == low(42, n + 1)).count();
        assert!(same < 3, "the same change looks the same {same} times");
    }
}
