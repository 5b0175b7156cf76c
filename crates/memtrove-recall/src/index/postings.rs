//! Where a term occurs: piece numbers in order, in blocks small enough that one more or one less is cheap anywhere.

use std::mem::size_of;

/// A block has at most this many postings.
const BLOCK: usize = 512;
/// The low bits of a posting.
const FREQUENCY_BITS: u32 = 4;
/// Frequencies above this count as this: BM25 is at 94 % of its limit there.
pub(super) const MAX_FREQUENCY: u32 = (1 << FREQUENCY_BITS) - 1;
/// Piece numbers above this do not fit.
pub(super) const MAX_PIECE: u32 = u32::MAX >> FREQUENCY_BITS;

/// A piece, and how often the term occurs in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting(u32);

impl Posting {
    pub(super) fn new(piece: u32, frequency: u32) -> Self {
        Self(piece << FREQUENCY_BITS | frequency.min(MAX_FREQUENCY))
    }

    pub(super) fn piece(self) -> u32 {
        self.0 >> FREQUENCY_BITS
    }

    pub(super) fn frequency(self) -> u32 {
        self.0 & MAX_FREQUENCY
    }
}

/// The postings of a term.
#[derive(Default)]
pub(super) struct Postings {
    /// None is empty; all of one come before all of the next.
    blocks: Vec<Vec<Posting>>,
    len: usize,
}

impl Postings {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a posting, in place of the piece's earlier one. Returns how many bytes more it takes.
    pub(super) fn insert(&mut self, posting: Posting) -> isize {
        let before = self.outer_bytes();
        let at = self.block_of(posting.piece()).min(self.blocks.len().saturating_sub(1));
        let Some(block) = self.blocks.get_mut(at) else {
            self.len = 1;
            self.blocks = vec![vec![posting]];
            return self.outer_bytes() - before + bytes(&self.blocks[0]);
        };
        let mut change = -bytes(block);
        let place = match block.binary_search_by_key(&posting.piece(), |posting| posting.piece()) {
            Ok(place) => {
                block[place] = posting;
                return 0;
            }
            Err(place) => place,
        };
        self.len += 1;
        if block.len() < BLOCK {
            if block.len() == block.capacity() {
                // Growing by a quarter instead of doubling: most of the memory of all terms is here.
                block.reserve_exact((block.len() / 4).clamp(1, BLOCK - block.len()));
            }
            block.insert(place, posting);
            change += bytes(block);
        } else {
            // Pieces mostly come in order: what lies at the end begins a block, and the full one stays full.
            let middle = if place == BLOCK { BLOCK } else { BLOCK / 2 };
            let mut second = block.split_off(middle);
            if place > middle || second.is_empty() {
                second.insert(place - middle, posting);
            } else {
                block.insert(place, posting);
            }
            change += bytes(block) + bytes(&second);
            self.blocks.insert(at + 1, second);
        }
        change + self.outer_bytes() - before
    }

    /// Takes the posting of a piece out. Returns how many bytes more it takes (less, mostly).
    pub(super) fn remove(&mut self, piece: u32) -> isize {
        let at = self.block_of(piece);
        let Some(block) = self.blocks.get_mut(at) else { return 0 };
        let Ok(place) = block.binary_search_by_key(&piece, |posting| posting.piece()) else { return 0 };
        let before = bytes(block);
        block.remove(place);
        self.len -= 1;
        if block.is_empty() {
            self.blocks.remove(at);
            return -before;
        }
        if block.len() <= block.capacity() / 4 {
            block.shrink_to(2 * block.len());
        }
        bytes(block) - before
    }

    /// How many bytes it takes on the heap.
    pub(super) fn bytes(&self) -> isize {
        self.outer_bytes() + self.blocks.iter().map(bytes).sum::<isize>()
    }

    /// Reads the postings in order, a range of pieces at a time.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        let (first, rest) =
            self.blocks.split_first().map_or((&[][..], &[][..]), |(first, rest)| (first, rest));
        Cursor { block: first, rest }
    }

    /// The block where the piece is if it is anywhere.
    fn block_of(&self, piece: u32) -> usize {
        // Most come at the end.
        let last = self.blocks.last().and_then(|block| block.first());
        if last.is_some_and(|first| first.piece() <= piece) {
            return self.blocks.len() - 1;
        }
        self.blocks.partition_point(|block| block.last().is_some_and(|last| last.piece() < piece))
    }

    fn outer_bytes(&self) -> isize {
        (self.blocks.capacity() * size_of::<Vec<Posting>>()) as isize
    }
}

fn bytes(block: &Vec<Posting>) -> isize {
    (block.capacity() * size_of::<Posting>()) as isize
}

/// A place in a list of postings.
pub(super) struct Cursor<'a> {
    block: &'a [Posting],
    rest: &'a [Vec<Posting>],
}

impl<'a> Cursor<'a> {
    /// The piece of the next posting.
    pub(super) fn piece(&self) -> Option<u32> {
        self.block.first().map(|posting| posting.piece())
    }

    /// Some of the next postings, all of pieces before `end`; none when there are no more of these.
    pub(super) fn before(&mut self, end: u32) -> &'a [Posting] {
        let here = match self.block.last() {
            Some(last) if last.piece() < end => self.block.len(),
            _ => self.block.partition_point(|posting| posting.piece() < end),
        };
        let (run, left) = self.block.split_at(here);
        self.block = left;
        if left.is_empty()
            && let Some((next, rest)) = self.rest.split_first()
        {
            (self.block, self.rest) = (next, rest);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn read(postings: &Postings, step: u32) -> Vec<(u32, u32)> {
        let mut cursor = postings.cursor();
        let mut all = Vec::new();
        let mut end = 0;
        while let Some(next) = cursor.piece() {
            end = step.max(1) * (next / step.max(1) + 1).max(end / step.max(1));
            loop {
                let run = cursor.before(end);
                if run.is_empty() {
                    break;
                }
                all.extend(run.iter().map(|posting| (posting.piece(), posting.frequency())));
            }
        }
        all
    }

    proptest! {
        #[test]
        fn postings_are_what_was_put_in_whatever_the_order(
            changes in prop::collection::vec((0..3000u32, prop::option::weighted(0.7, 0..40u32)), 0..4000),
            in_order in any::<bool>(),
            step in 1..2000u32,
        ) {
            let mut changes = changes;
            if in_order {
                changes.sort();
            }
            let (mut postings, mut model, mut heap) = (Postings::default(), BTreeMap::new(), 0);
            for (piece, frequency) in changes {
                match frequency {
                    Some(frequency) => {
                        heap += postings.insert(Posting::new(piece, frequency));
                        model.insert(piece, frequency.min(MAX_FREQUENCY));
                    }
                    None => {
                        heap += postings.remove(piece);
                        model.remove(&piece);
                    }
                }
            }
            prop_assert_eq!(postings.len(), model.len());
            prop_assert_eq!(read(&postings, step), model.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(postings.bytes(), heap);
        }
    }
}
