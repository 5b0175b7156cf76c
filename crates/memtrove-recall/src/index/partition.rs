//! What is searched together: the pieces of one memory scope or conversation tree.

use super::chunk::{CHUNK, Chunk, PieceNo, Shape};
use super::documents::{Document, Documents};
use super::postings::MAX_PIECE;
use super::probe::{Piece, SpaceNo, TermStatistics};
use super::segment::shared_bytes;
use super::term_lists::Occurrence;
use super::words::Words;
use hashbrown::HashMap;
use std::mem::size_of;
use std::sync::Arc;

/// The vectors and words of one memory scope or conversation tree, with something of the caller's (`M`) beside every
/// document.
///
/// What a search finds depends on the documents alone, not on the order in which they came or on those that went.
pub struct Partition<M> {
    pub(super) documents: Documents<M>,
    /// Shared with a [snapshot](super::segment) for as long as that is written, and copied if one changes meanwhile.
    pub(super) chunks: Vec<Arc<Chunk>>,
    pools: Vec<Pool>,
    /// Chunks without a piece, which may get any shape.
    unused: Vec<usize>,
    pub(super) words: Words,
    /// Pieces in use.
    pub(super) pieces: usize,
    pub(super) with_terms: u64,
    pub(super) length: u64,
    pub(super) repeats: Repeats,
    beside: usize,
}

/// What is counted more than once because documents have several pieces.
#[derive(Clone, Default)]
pub(super) struct Repeats {
    /// By term, in how many pieces it stands beyond the first of each document.
    pub(super) terms: HashMap<u32, u32>,
    /// Pieces with terms beyond the first of each document.
    pub(super) pieces: u64,
}

/// Which chunks of a shape have room.
struct Pool {
    shape: Shape,
    open: Vec<usize>,
}

impl<M> Default for Partition<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Partition<M> {
    /// A partition without documents.
    pub fn new() -> Self {
        Self {
            documents: Documents::new(),
            chunks: Vec::new(),
            pools: Vec::new(),
            unused: Vec::new(),
            words: Words::default(),
            pieces: 0,
            with_terms: 0,
            length: 0,
            repeats: Repeats::default(),
            beside: 0,
        }
    }

    /// A partition of what was written down: whatever is not named here follows from it.
    pub(super) fn restored(
        documents: Documents<M>,
        chunks: Vec<Arc<Chunk>>,
        words: Words,
        (with_terms, length, repeats): (u64, u64, Repeats),
    ) -> Self {
        let pieces = chunks.iter().map(|chunk| chunk.len() - chunk.free.len()).sum();
        let mut restored =
            Self { documents, chunks, words, pieces, with_terms, length, repeats, ..Self::new() };
        for number in 0..restored.chunks.len() {
            let chunk = &restored.chunks[number];
            let (is_full, is_unused, shape) = (chunk.is_full(), chunk.is_unused(), chunk.shape);
            if is_unused {
                restored.unused.push(number);
            } else if !is_full {
                let pool = restored.pool(shape);
                restored.pools[pool].open.push(number);
            }
        }
        restored
    }

    /// What was put beside a document.
    pub fn meta(&self, key: u64) -> Option<&M> {
        self.documents.get(self.documents.find(key)?).map(|document| &document.meta)
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// How many pieces the documents have together.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says how many bytes the caller keeps beside the partition, in its state or where `M` points to.
    pub fn set_bytes_beside(&mut self, bytes: usize) {
        self.beside = bytes;
    }

    /// How much memory the partition takes, and what is kept beside it.
    pub fn bytes(&self) -> usize {
        let lists = self.pools.iter().map(|pool| &pool.open).chain([&self.unused]);
        size_of::<Self>()
            + self.beside
            + self.documents.heap()
            + self.chunks.capacity() * size_of::<Arc<Chunk>>()
            + self.chunks.iter().map(|chunk| shared_bytes::<Chunk>() + chunk.heap()).sum::<usize>()
            + self.pools.capacity() * size_of::<Pool>()
            + lists.map(|list| list.capacity() * size_of::<usize>()).sum::<usize>()
            + self.words.heap()
            + self.repeats.terms.allocation_size()
    }

    /// All documents, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &M)> {
        self.documents.iter().map(|document| (document.key, &document.meta))
    }

    /// How common some terms are here. Pieces without any term do not count.
    pub fn statistics(&self, terms: &[u64]) -> TermStatistics {
        let frequency =
            |&hash: &u64| self.words.number(hash).map_or(0, |term| self.words.postings(term).len());
        TermStatistics {
            pieces: self.with_terms,
            length: self.length,
            frequencies: terms.iter().map(|hash| frequency(hash) as u64).collect(),
        }
    }

    /// How common some terms are among documents: each counts once, however many of its pieces have them. How long they are
    /// is not counted.
    pub fn document_statistics(&self, terms: &[u64]) -> TermStatistics {
        let frequency = |hash: &u64| {
            let term = self.words.number(*hash)?;
            let repeated = self.repeats.terms.get(&term).copied().unwrap_or_default();
            Some(self.words.postings(term).len() as u64 - u64::from(repeated))
        };
        TermStatistics {
            pieces: self.with_terms - self.repeats.pieces,
            length: 0,
            frequencies: terms.iter().map(|hash| frequency(hash).unwrap_or_default()).collect(),
        }
    }

    /// As [`Partition::document_statistics`], of the documents that `allow` lets through.
    pub fn document_statistics_of(&self, terms: &[u64], allow: impl Fn(u64, &M) -> bool) -> TermStatistics {
        let allowed = |number: u32| self.documents.get(number).is_some_and(|one| allow(one.key, &one.meta));
        let has_terms = |number: &u32| {
            self.pieces_of(*number)
                .any(|piece| self.chunks[piece.chunk()].terms.get(piece.slot()).next().is_some())
        };
        let documents = self.documents.numbers().filter(|number| allowed(*number)).filter(has_terms).count();
        let owner = |piece: u32| self.chunks[piece as usize / CHUNK].owner(piece as usize % CHUNK);
        let frequency = |hash: &u64| {
            let Some(term) = self.words.number(*hash) else { return 0 };
            let mut cursor = self.words.postings(term).cursor();
            let mut owners = Vec::new();
            while cursor.piece().is_some() {
                let run = cursor.before(u32::MAX);
                owners.extend(
                    run.iter().filter_map(|posting| owner(posting.piece())).filter(|one| allowed(*one)),
                );
            }
            if self.has_long_documents() {
                owners.sort_unstable();
                owners.dedup();
            }
            owners.len() as u64
        };
        TermStatistics {
            pieces: documents as u64,
            length: 0,
            frequencies: terms.iter().map(frequency).collect(),
        }
    }

    /// The pieces of a document.
    pub(super) fn pieces_of(&self, document: u32) -> impl Iterator<Item = PieceNo> {
        let first = self.documents.get(document).map(|document| document.first);
        std::iter::successors(first, |piece| self.chunks[piece.chunk()].next(piece.slot()))
    }

    fn pool(&mut self, shape: Shape) -> usize {
        self.pools.iter().position(|pool| pool.shape == shape).unwrap_or_else(|| {
            self.pools.push(Pool { shape, open: Vec::new() });
            self.pools.len() - 1
        })
    }
}

impl<M: Clone> Partition<M> {
    /// Puts a document, in place of the one that had its key. Without a space its vectors are left out.
    pub fn put(&mut self, key: u64, meta: M, space: Option<SpaceNo>, pieces: &[Piece<'_>]) {
        const NOTHING: Piece<'_> = Piece { vector: None, terms: &[], length: 0 };
        // Every document has a piece, even if nothing finds it.
        let pieces = if pieces.is_empty() { &[NOTHING][..] } else { pieces };
        let found = self.documents.find(key);
        let mut old: Vec<PieceNo> = found.map(|number| self.pieces_of(number).collect()).unwrap_or_default();
        if let Some(known) = found {
            self.count_repeats(known, false);
        }
        let document = found.unwrap_or_else(|| self.documents.vacant());
        let mut following = None;
        for piece in pieces.iter().rev() {
            let vector = piece.vector.filter(|vector| space.is_some() && !vector.is_empty());
            let shape = vector.map_or(Shape::WORDS, |vector| Shape { space, dimensions: vector.len() });
            // A document that only got other vectors keeps its slots, and so its postings.
            let same = old.iter().rposition(|&number| self.chunks[number.chunk()].shape == shape);
            let number = same.map_or_else(|| self.take_slot(shape), |at| old.remove(at));
            let chunk = Arc::make_mut(&mut self.chunks[number.chunk()]);
            chunk.own(number.slot(), document, following);
            if let Some(vector) = vector {
                chunk.set_vector(number.slot(), vector);
            }
            self.set_words(number, piece.terms, piece.length);
            following = Some(number);
        }
        old.into_iter().for_each(|number| self.give_back(number));
        if let Some(first) = following {
            self.documents.set(document, Document { key, meta, first });
            self.count_repeats(document, true);
        }
    }

    /// Takes a document out.
    pub fn remove(&mut self, key: u64) -> Option<M> {
        let document = self.documents.find(key)?;
        self.count_repeats(document, false);
        let pieces: Vec<PieceNo> = self.pieces_of(document).collect();
        pieces.into_iter().for_each(|number| self.give_back(number));
        let meta = self.documents.remove(document);
        if self.is_empty() {
            *self = Self { beside: self.beside, ..Self::new() };
        }
        meta
    }

    /// What was put beside a document, to be changed.
    pub fn meta_mut(&mut self, key: u64) -> Option<&mut M> {
        let number = self.documents.find(key)?;
        self.documents.get_mut(number).map(|document| &mut document.meta)
    }

    /// Notes which terms a document has in several pieces, or that it has them no more.
    fn count_repeats(&mut self, document: u32, come: bool) {
        if self.pieces_of(document).nth(1).is_none() {
            return;
        }
        let mut terms: Vec<u32> = Vec::new();
        let mut with_terms = 0;
        for piece in self.pieces_of(document) {
            let before = terms.len();
            let chunk = &self.chunks[piece.chunk()];
            terms.extend(chunk.terms.get(piece.slot()).map(|(term, _)| term));
            with_terms += u64::from(terms.len() > before);
        }
        let repeated = with_terms.saturating_sub(1);
        self.repeats.pieces =
            if come { self.repeats.pieces + repeated } else { self.repeats.pieces - repeated };
        terms.sort_unstable();
        for run in terms.chunk_by(|one, other| one == other).filter(|run| run.len() > 1) {
            let (term, more) = (run[0], run.len() as u32 - 1);
            let count = self.repeats.terms.entry(term).or_default();
            *count = if come { *count + more } else { *count - more };
            if *count == 0 {
                self.repeats.terms.remove(&term);
            }
        }
    }

    fn take_slot(&mut self, shape: Shape) -> PieceNo {
        self.pieces += 1;
        let pool = self.pool(shape);
        let open = self.pools[pool].open.last().copied();
        let number = open.unwrap_or_else(|| {
            let number = self.unused.pop().unwrap_or(self.chunks.len());
            if number == self.chunks.len() {
                self.chunks.push(Arc::new(Chunk::new(shape)));
            } else {
                self.chunks[number] = Arc::new(Chunk::new(shape));
            }
            self.pools[pool].open.push(number);
            number
        });
        let chunk = Arc::make_mut(&mut self.chunks[number]);
        let piece = PieceNo::new(number, chunk.take());
        assert!(piece.index() <= MAX_PIECE, "a partition of {} pieces", self.pieces);
        if chunk.is_full() {
            self.pools[pool].open.pop();
        }
        piece
    }

    fn give_back(&mut self, piece: PieceNo) {
        self.set_words(piece, &[], 0);
        self.pieces -= 1;
        let number = piece.chunk();
        let pool = self.pool(self.chunks[number].shape);
        let (chunk, open) = (Arc::make_mut(&mut self.chunks[number]), &mut self.pools[pool].open);
        if chunk.is_full() {
            open.push(number);
        }
        chunk.release(piece.slot());
        if chunk.is_unused() {
            *chunk = Chunk::new(Shape::WORDS);
            open.retain(|&other| other != number);
            self.unused.push(number);
        }
    }

    fn set_words(&mut self, number: PieceNo, terms: &[(u64, u32)], length: u32) {
        let chunk = Arc::make_mut(&mut self.chunks[number.chunk()]);
        let slot = number.slot();
        let old: Vec<Occurrence> = chunk.terms.get(slot).collect();
        let new = self.words.numbered(terms);
        if !old.is_empty() {
            self.with_terms -= 1;
            self.length -= u64::from(chunk.lengths[slot]);
        }
        // Nothing is that long; it would be cut into pieces.
        chunk.lengths[slot] = length.min(u32::from(u16::MAX)) as u16;
        if !new.is_empty() {
            self.with_terms += 1;
            self.length += u64::from(chunk.lengths[slot]);
        }
        if old != new {
            self.words.post(number.index(), &old, &new);
            chunk.terms.set(slot, &new);
        }
    }
}
