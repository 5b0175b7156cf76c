//! Where a term occurs: piece numbers in order, in blocks small enough that one more or one less is cheap anywhere.

use std::mem::size_of;
use std::sync::Arc;

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

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(super) fn frequency(self) -> u32 {
        self.0 & MAX_FREQUENCY
    }
}

/// The postings of a term.
#[derive(Default)]
pub(super) struct Postings {
    list: List,
    len: usize,
}

enum List {
    /// None is empty; all of one come before all of the next.
    Blocks(Vec<Vec<Posting>>),
    /// As they were written down, behind those of other terms, from here on. They become blocks when one comes or goes.
    Restored(Arc<Vec<Posting>>, u32),
}

impl Default for List {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl Postings {
    /// Postings that were written down behind those of other terms. There have to be as many from `start` on.
    pub(super) fn restored(all: &Arc<Vec<Posting>>, start: u32, len: usize) -> Self {
        match len {
            0 => Self::default(),
            len => Self { list: List::Restored(Arc::clone(all), start), len },
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a posting, in place of the piece's earlier one. Returns how many bytes more it takes.
    pub(super) fn insert(&mut self, posting: Posting) -> isize {
        let thawed = self.thaw();
        let Self { list: List::Blocks(blocks), len } = self else { return thawed };
        thawed + insert(blocks, len, posting)
    }

    /// Takes the posting of a piece out. Returns how many bytes more it takes (less, mostly).
    pub(super) fn remove(&mut self, piece: u32) -> isize {
        let thawed = self.thaw();
        let Self { list: List::Blocks(blocks), len } = self else { return thawed };
        thawed + remove(blocks, len, piece)
    }

    /// How many bytes it takes on the heap, but for what it shares with other terms.
    pub(super) fn bytes(&self) -> isize {
        match &self.list {
            List::Blocks(blocks) => outer_bytes(blocks) + blocks.iter().map(bytes).sum::<isize>(),
            List::Restored(..) => 0,
        }
    }

    /// Reads the postings in order, a range of pieces at a time.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        match &self.list {
            List::Blocks(blocks) => {
                let (first, rest) =
                    blocks.split_first().map_or((&[][..], &[][..]), |(first, rest)| (first, rest));
                Cursor { block: first, rest }
            }
            List::Restored(all, start) => Cursor { block: &all[*start as usize..][..self.len], rest: &[] },
        }
    }

    /// Makes blocks of what was written down, so that it can change. Returns how many bytes more it takes.
    fn thaw(&mut self) -> isize {
        let List::Restored(all, start) = &self.list else { return 0 };
        let blocks = all[*start as usize..][..self.len].chunks(BLOCK).map(<[Posting]>::to_vec).collect();
        self.list = List::Blocks(blocks);
        self.bytes()
    }
}

fn insert(blocks: &mut Vec<Vec<Posting>>, len: &mut usize, posting: Posting) -> isize {
    let before = outer_bytes(blocks);
    let at = block_of(blocks, posting.piece()).min(blocks.len().saturating_sub(1));
    let Some(block) = blocks.get_mut(at) else {
        *len = 1;
        *blocks = vec![vec![posting]];
        return outer_bytes(blocks) - before + bytes(&blocks[0]);
    };
    let mut change = -bytes(block);
    let place = match block.binary_search_by_key(&posting.piece(), |posting| posting.piece()) {
        Ok(place) => {
            block[place] = posting;
            return 0;
        }
        Err(place) => place,
    };
    *len += 1;
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
        blocks.insert(at + 1, second);
    }
    change + outer_bytes(blocks) - before
}

fn remove(blocks: &mut Vec<Vec<Posting>>, len: &mut usize, piece: u32) -> isize {
    let at = block_of(blocks, piece);
    let Some(block) = blocks.get_mut(at) else { return 0 };
    let Ok(place) = block.binary_search_by_key(&piece, |posting| posting.piece()) else { return 0 };
    let before = bytes(block);
    block.remove(place);
    *len -= 1;
    if block.is_empty() {
        blocks.remove(at);
        return -before;
    }
    if block.len() <= block.capacity() / 4 {
        block.shrink_to(2 * block.len());
    }
    bytes(block) - before
}

/// The block where the piece is if it is anywhere.
fn block_of(blocks: &[Vec<Posting>], piece: u32) -> usize {
    // Most come at the end.
    let last = blocks.last().and_then(|block| block.first());
    if last.is_some_and(|first| first.piece() <= piece) {
        return blocks.len() - 1;
    }
    blocks.partition_point(|block| block.last().is_some_and(|last| last.piece() < piece))
}

fn outer_bytes(blocks: &Vec<Vec<Posting>>) -> isize {
    (blocks.capacity() * size_of::<Vec<Posting>>()) as isize
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
