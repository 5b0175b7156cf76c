//! Some thousand pieces behind each other, as a search reads them.

use super::kernels::BLOCK_ROWS;
use super::probe::SpaceNo;
use super::quantise::{Quantised, unit};
use super::sketch;
use super::term_lists::TermLists;
use std::mem::size_of;
use std::num::NonZeroU32;

/// A chunk has this many slots: memory grows by some hundred kilobytes at a time, and a chunk's scores fit in the
/// first-level cache.
pub(super) const CHUNK: usize = 4096;

/// No document owns the slot.
const FREE: u32 = u32::MAX;

/// Chunk and slot of a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceNo(NonZeroU32);

impl PieceNo {
    pub(super) fn new(chunk: usize, slot: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add((chunk * CHUNK + slot) as u32))
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

/// Pieces whose vectors are of one shape.
pub(super) struct Chunk {
    pub(super) shape: Shape,
    owners: Vec<u32>,
    free: usize,
    next: Vec<Option<PieceNo>>,
    pub(super) lengths: Vec<u16>,
    /// Row after row.
    pub(super) codes: Vec<i8>,
    pub(super) scales: Vec<f32>,
    pub(super) errors: Vec<f32>,
    /// In blocks, as the kernels read them.
    pub(super) sketches: Vec<u8>,
    pub(super) terms: TermLists,
}

impl Chunk {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            owners: Vec::new(),
            free: 0,
            next: Vec::new(),
            lengths: Vec::new(),
            codes: Vec::new(),
            scales: Vec::new(),
            errors: Vec::new(),
            sketches: Vec::new(),
            terms: TermLists::default(),
        }
    }

    /// How many slots are in use or were.
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Adds a slot, to be owned next.
    pub(super) fn push(&mut self) -> usize {
        let slot = self.len();
        self.owners.push(FREE);
        self.free += 1;
        self.next.push(None);
        self.lengths.push(0);
        if self.shape.space.is_some() {
            self.scales.push(0.0);
            self.errors.push(0.0);
            self.codes.resize(self.codes.len() + self.shape.dimensions, 0);
            if slot.is_multiple_of(BLOCK_ROWS) {
                self.sketches
                    .resize(self.sketches.len() + BLOCK_ROWS * sketch::columns(self.shape.dimensions), 0);
            }
        }
        slot
    }

    /// The document a slot belongs to.
    #[inline]
    pub(super) fn owner(&self, slot: usize) -> Option<u32> {
        self.owners.get(slot).copied().filter(|&owner| owner != FREE)
    }

    /// The slots below `end` that belong to nobody, whether they were used or not.
    pub(super) fn unowned(&self, end: usize) -> impl Iterator<Item = usize> {
        let looked_at = if self.free > 0 { self.len() } else { 0 };
        (0..looked_at).filter(|&slot| self.owners[slot] == FREE).chain(self.len()..end)
    }

    /// The next piece of the same document.
    pub(super) fn next(&self, slot: usize) -> Option<PieceNo> {
        self.next[slot]
    }

    /// Gives a slot to a document.
    pub(super) fn own(&mut self, slot: usize, owner: u32, next: Option<PieceNo>) {
        self.free -= usize::from(self.owners[slot] == FREE);
        self.owners[slot] = owner;
        self.next[slot] = next;
    }

    /// Gives a slot back.
    pub(super) fn release(&mut self, slot: usize) {
        self.owners[slot] = FREE;
        self.free += 1;
        self.next[slot] = None;
    }

    /// Sets the vector of a slot, which has to be of the chunk's dimensions.
    pub(super) fn set_vector(&mut self, slot: usize, vector: &[f32]) {
        let dimensions = self.shape.dimensions;
        let unit = unit(vector);
        let quantised = Quantised::new(&unit);
        self.codes[slot * dimensions..][..dimensions].copy_from_slice(&quantised.codes);
        self.scales[slot] = quantised.scale;
        self.errors[slot] = quantised.error;
        let block = BLOCK_ROWS * sketch::columns(dimensions);
        let block = &mut self.sketches[slot / BLOCK_ROWS * block..][..block];
        sketch::write(&unit, block, slot % BLOCK_ROWS);
    }

    /// How many bytes it takes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.owners.capacity() * size_of::<u32>()
            + self.next.capacity() * size_of::<Option<PieceNo>>()
            + self.lengths.capacity() * size_of::<u16>()
            + self.codes.capacity()
            + (self.scales.capacity() + self.errors.capacity()) * size_of::<f32>()
            + self.sketches.capacity()
            + self.terms.heap()
    }
}
