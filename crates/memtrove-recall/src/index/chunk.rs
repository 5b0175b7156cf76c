//! Some thousand pieces behind each other, as a search reads them.

use super::probe::SpaceNo;
use super::quantise::{Grid, Quantised, unit};
use super::sketch;
use super::term_lists::TermLists;
use memtrove_simd::search::BLOCK_ROWS;
use std::mem::size_of;
use std::num::NonZeroU32;

/// A chunk has this many slots: memory grows by some hundred kilobytes at a time, and a chunk's scores fit in the
/// first-level cache.
pub(super) const CHUNK: usize = 4096;

/// No document owns the slot.
pub(super) const FREE: u32 = u32::MAX;

/// Chunk and slot of a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceNo(NonZeroU32);

impl PieceNo {
    pub(super) fn new(chunk: usize, slot: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add((chunk * CHUNK + slot) as u32))
    }

    /// The piece whose [index](Self::index) was written down as one more; 0 is none.
    pub(super) fn written(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// A number without gaps between chunks.
    pub(super) fn index(self) -> u32 {
        self.0.get() - 1
    }

    pub(super) fn chunk(self) -> usize {
        self.index() as usize / CHUNK
    }

    pub(super) fn slot(self) -> usize {
        self.index() as usize % CHUNK
    }
}

/// What the vectors of a chunk have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// `None` where pieces have no vector.
    pub(super) space: Option<SpaceNo>,
    pub(super) dimensions: usize,
}

impl Shape {
    /// Pieces that have words only.
    pub(super) const WORDS: Self = Self { space: None, dimensions: 0 };
}

/// Whose a piece is.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) owner: u32,
    /// The next piece of the same document.
    pub(super) next: Option<PieceNo>,
}

/// Pieces whose vectors are of one shape.
#[derive(Clone)]
pub(super) struct Chunk {
    pub(super) shape: Shape,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<u16>,
    pub(super) lengths: Vec<u16>,
    /// Row after row.
    pub(super) codes: Vec<i8>,
    pub(super) grids: Vec<Grid>,
    /// In blocks, as the kernels read them.
    pub(super) sketches: Vec<u8>,
    pub(super) terms: TermLists,
}

impl Chunk {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            slots: Vec::new(),
            free: Vec::new(),
            lengths: Vec::new(),
            codes: Vec::new(),
            grids: Vec::new(),
            sketches: Vec::new(),
            terms: TermLists::default(),
        }
    }

    /// How many slots are in use or were.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether every slot is in use.
    pub(super) fn is_full(&self) -> bool {
        self.len() == CHUNK && self.free.is_empty()
    }

    /// Whether no slot is in use.
    pub(super) fn is_unused(&self) -> bool {
        self.free.len() == self.len()
    }

    /// A slot, to be owned next. There has to be one.
    pub(super) fn take(&mut self) -> usize {
        if let Some(slot) = self.free.pop() {
            return usize::from(slot);
        }
        let slot = self.len();
        self.slots.push(Slot { owner: FREE, next: None });
        self.lengths.push(0);
        if self.shape.space.is_some() {
            let sketches = (slot / BLOCK_ROWS + 1) * self.block_bytes();
            self.grids.push(Grid::default());
            self.codes.resize(self.codes.len() + self.shape.dimensions, 0);
            self.sketches.resize(sketches, 0);
        }
        slot
    }

    /// The document a slot belongs to.
    #[inline]
    pub(super) fn owner(&self, slot: usize) -> Option<u32> {
        self.slots.get(slot).map(|slot| slot.owner).filter(|&owner| owner != FREE)
    }

    /// The slots below `end` that no document has, whether they were used or not.
    pub(super) fn unowned(&self, end: usize) -> impl Iterator<Item = usize> {
        self.free.iter().map(|&slot| usize::from(slot)).chain(self.len()..end)
    }

    /// The next piece of the same document.
    pub(super) fn next(&self, slot: usize) -> Option<PieceNo> {
        self.slots[slot].next
    }

    /// Gives a slot to a document.
    pub(super) fn own(&mut self, slot: usize, owner: u32, next: Option<PieceNo>) {
        self.slots[slot] = Slot { owner, next };
    }

    /// Gives a slot back.
    pub(super) fn release(&mut self, slot: usize) {
        self.slots[slot] = Slot { owner: FREE, next: None };
        self.free.push(slot as u16);
    }

    /// Sets the vector of a slot, which has to be of the chunk's dimensions.
    pub(super) fn set_vector(&mut self, slot: usize, vector: &[f32]) {
        let dimensions = self.shape.dimensions;
        let unit = unit(vector);
        let quantised = Quantised::new(&unit);
        self.codes[slot * dimensions..][..dimensions].copy_from_slice(&quantised.codes);
        self.grids[slot] = quantised.grid;
        let bytes = self.block_bytes();
        let block = &mut self.sketches[slot / BLOCK_ROWS * bytes..][..bytes];
        sketch::write(&unit, block, slot % BLOCK_ROWS);
    }

    /// The same without anything in slots that no document has.
    pub(super) fn without_leftovers(&self) -> Self {
        let mut clean = self.clone();
        if self.shape.space.is_some() {
            let (dimensions, block) = (self.shape.dimensions, self.block_bytes());
            for slot in self.free.iter().map(|slot| usize::from(*slot)) {
                clean.grids[slot] = Grid::default();
                clean.codes[slot * dimensions..][..dimensions].fill(0);
                let columns =
                    clean.sketches[slot / BLOCK_ROWS * block..][..block].chunks_exact_mut(BLOCK_ROWS);
                columns.for_each(|column| column[slot % BLOCK_ROWS] = 0);
            }
        }
        clean.terms.tidy();
        clean
    }

    /// How many bytes it takes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.free.capacity() * size_of::<u16>()
            + self.lengths.capacity() * size_of::<u16>()
            + self.codes.capacity()
            + self.grids.capacity() * size_of::<Grid>()
            + self.sketches.capacity()
            + self.terms.heap()
    }

    /// How many bytes a block of sketches has.
    pub(super) fn block_bytes(&self) -> usize {
        BLOCK_ROWS * sketch::columns(self.shape.dimensions)
    }
}
