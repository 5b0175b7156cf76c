//! A partition as bytes and back: parts of some megabytes, each of which can be read by itself and in any order, so that several
//! threads can. They hold the arrays of a partition as they are in memory; what follows from these is not written.
//!
//! Nothing here guards against damage: whoever stores the parts has to know that he reads what he wrote. Parts that do not belong
//! together are refused.

use super::chunk::{CHUNK, Chunk, FREE, PieceNo, Shape, Slot};
use super::documents::{Document, DocumentChunk, Documents};
use super::partition::{Partition, Repeats};
use super::postings::Posting;
use super::probe::SpaceNo;
use super::quantise::Grid;
use super::term_lists::{NONE, TermLists};
use super::words::{RestoredTerms, Words};
use hashbrown::HashMap;
use memtrove_simd::search::BLOCK_ROWS;
use std::mem::size_of;
use std::sync::Arc;

/// What the bytes mean, with what codes, sketches and terms mean that are in them: to be raised whenever one of these changes, as the
/// test below finds.
pub const SEGMENT_FORMAT: u32 = 1;

/// Terms are written together until they have so many postings, or are so many.
const POSTINGS_TOGETHER: usize = 1 << 20;
const TERMS_TOGETHER: usize = 1 << 16;

/// What an `Arc` takes on the heap.
pub(super) fn shared_bytes<T>() -> usize {
    size_of::<T>() + 2 * size_of::<usize>()
}

/// A partition as it was at one moment. Taking one copies no vectors and no words, so that searches and writes need not wait until it is
/// written down.
pub struct Snapshot<M> {
    documents: Vec<DocumentChunk<M>>,
    chunks: Vec<Arc<Chunk>>,
    hashes: Vec<u64>,
    with_terms: u64,
    length: u64,
    repeats: Repeats,
}

/// A part of a partition that was read.
pub struct SegmentPart<M>(Part<M>);

enum Part<M> {
    Head(Head),
    Terms(usize, RestoredTerms),
    Documents(usize, Vec<Option<Document<M>>>),
    Chunk(usize, Chunk),
}

/// What says which parts belong together.
struct Head {
    documents: usize,
    chunks: usize,
    terms: usize,
    with_terms: u64,
    length: u64,
    repeats: Repeats,
}

const HEAD: u8 = 0;
const TERMS: u8 = 1;
const DOCUMENTS: u8 = 2;
const CHUNKS: u8 = 3;

impl<M> Partition<M> {
    /// The partition as it is now, to be written down.
    pub fn snapshot(&self) -> Snapshot<M> {
        Snapshot {
            documents: self.documents.snapshot(),
            chunks: self.chunks.clone(),
            hashes: self.words.hashes(),
            with_terms: self.with_terms,
            length: self.length,
            repeats: self.repeats.clone(),
        }
    }

    /// A partition of all its parts, which may come in any order; `None` if they do not belong together.
    pub fn assemble(parts: impl IntoIterator<Item = SegmentPart<M>>) -> Option<Self> {
        let (mut head, mut terms, mut documents, mut chunks) = (None, Vec::new(), Vec::new(), Vec::new());
        for SegmentPart(part) in parts {
            match part {
                Part::Head(one) => head = Some(one),
                Part::Terms(number, one) => terms.push((number, one)),
                Part::Documents(number, one) => documents.push((number, Arc::new(one))),
                Part::Chunk(number, one) => chunks.push((number, Arc::new(one))),
            }
        }
        let head = head?;
        let terms = in_order(terms, head.terms)?;
        let (documents, chunks) = (in_order(documents, head.documents)?, in_order(chunks, head.chunks)?);
        let (_, full) = documents.split_last().map_or((None, &[][..]), |(last, full)| (Some(last), full));
        if full.iter().any(|chunk| chunk.len() != CHUNK) || !lead_to_each_other(&documents, &chunks) {
            return None;
        }
        // Two tables of hashes, which take longest to be made.
        let (words, documents) = std::thread::scope(|scope| {
            let words = scope.spawn(|| Words::restored(terms));
            let documents = Documents::restored(documents);
            Some((words.join().ok()?, documents))
        })?;
        Some(Self::restored(documents, chunks, words, (head.with_terms, head.length, head.repeats)))
    }
}

/// Whether what a number leads to is there.
fn lead_to_each_other<M>(documents: &[DocumentChunk<M>], chunks: &[Arc<Chunk>]) -> bool {
    let count = documents.iter().map(|chunk| chunk.len()).sum::<usize>();
    let has = |piece: PieceNo| chunks.get(piece.chunk()).is_some_and(|chunk| piece.slot() < chunk.len());
    let owned = |slot: &Slot| slot.owner == FREE || (slot.owner as usize) < count;
    documents.iter().flat_map(|chunk| chunk.iter()).flatten().all(|document| has(document.first))
        && chunks.iter().flat_map(|chunk| &chunk.slots).all(|slot| owned(slot) && slot.next.is_none_or(has))
}

/// Parts by their numbers, if each is there once.
fn in_order<T>(mut parts: Vec<(usize, T)>, count: usize) -> Option<Vec<T>> {
    parts.sort_unstable_by_key(|(number, _)| *number);
    let complete = parts.len() == count && parts.iter().zip(0..).all(|((number, _), at)| *number == at);
    complete.then(|| parts.into_iter().map(|(_, part)| part).collect())
}

impl<M> Snapshot<M> {
    /// About how many bytes it takes where it is written down.
    pub fn size(&self) -> usize {
        let of_chunk = |chunk: &Arc<Chunk>| {
            chunk.codes.len() + chunk.sketches.len() + 3 * chunk.terms.bytes.len() + 18 * chunk.len()
        };
        let documents: usize = self.documents.iter().map(|chunk| chunk.len()).sum();
        self.chunks.iter().map(of_chunk).sum::<usize>()
            + documents * (12 + size_of::<M>())
            + self.hashes.len() * 12
    }

    /// Writes it down, part after part.
    ///
    /// # Errors
    /// What `each` fails with; nothing more is written then.
    pub fn write<E>(
        &self,
        write_meta: impl Fn(&M, &mut Vec<u8>),
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (lengths, postings) = self.postings();
        let groups = groups(&lengths);
        let mut bytes = Vec::new();
        self.write_head(groups.len(), &mut bytes);
        each(&bytes)?;
        let mut start = 0;
        for (number, group) in groups.into_iter().enumerate() {
            let (hashes, lengths) = (&self.hashes[group.clone()], &lengths[group]);
            let end = start + lengths.iter().map(|length| *length as usize).sum::<usize>();
            begin(&mut bytes, TERMS, number, hashes.len());
            for (hash, length) in hashes.iter().zip(lengths) {
                let used = if *length > 0 { *hash } else { 0 };
                bytes.extend_from_slice(&used.to_le_bytes());
            }
            put_u32s(&mut bytes, lengths.iter().copied());
            put_u32s(&mut bytes, postings[start..end].iter().copied());
            each(&bytes)?;
            start = end;
        }
        for (number, chunk) in self.documents.iter().enumerate() {
            begin(&mut bytes, DOCUMENTS, number, chunk.len());
            let first = |document: &Option<Document<M>>| {
                document.as_ref().map_or(0, |document| document.first.index() + 1)
            };
            put_u32s(&mut bytes, chunk.iter().map(first));
            for document in chunk.iter().flatten() {
                bytes.extend_from_slice(&document.key.to_le_bytes());
                write_meta(&document.meta, &mut bytes);
            }
            each(&bytes)?;
        }
        for (number, chunk) in self.chunks.iter().enumerate() {
            begin(&mut bytes, CHUNKS, number, chunk.len());
            write_chunk(chunk, &mut bytes);
            each(&bytes)?;
        }
        Ok(())
    }

    fn write_head(&self, groups: usize, bytes: &mut Vec<u8>) {
        begin(bytes, HEAD, 0, self.repeats.terms.len());
        let counts = [self.documents.len(), self.chunks.len(), groups].map(|count| count as u32);
        put_u32s(bytes, [SEGMENT_FORMAT].into_iter().chain(counts));
        for number in [self.with_terms, self.length, self.repeats.pieces] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let mut repeats: Vec<(u32, u32)> =
            self.repeats.terms.iter().map(|(&term, &count)| (term, count)).collect();
        repeats.sort_unstable();
        put_u32s(bytes, repeats.into_iter().flat_map(|(term, count)| [term, count]));
    }

    /// How many postings each term has, and all of them by term and piece: as the terms of the pieces have it.
    fn postings(&self) -> (Vec<u32>, Vec<u32>) {
        let pieces = || {
            let slots = self.chunks.iter().enumerate();
            slots.flat_map(|(number, chunk)| (0..chunk.len()).map(move |slot| (number, chunk, slot)))
        };
        let mut lengths = vec![0u32; self.hashes.len()];
        for (_, chunk, slot) in pieces() {
            chunk.terms.get(slot).for_each(|(term, _)| lengths[term as usize] += 1);
        }
        let mut next: Vec<usize> = Vec::with_capacity(lengths.len());
        let mut all = 0;
        for length in &lengths {
            next.push(all);
            all += *length as usize;
        }
        let mut postings = vec![0; all];
        for (number, chunk, slot) in pieces() {
            let piece = PieceNo::new(number, slot).index();
            for (term, frequency) in chunk.terms.get(slot) {
                let next = &mut next[term as usize];
                postings[*next] = Posting::new(piece, frequency).bits();
                *next += 1;
            }
        }
        (lengths, postings)
    }
}

/// Which terms are written together.
fn groups(lengths: &[u32]) -> Vec<std::ops::Range<usize>> {
    let (mut groups, mut start, mut postings) = (Vec::new(), 0, 0);
    for (number, length) in lengths.iter().enumerate() {
        postings += *length as usize;
        let end = number + 1;
        if postings >= POSTINGS_TOGETHER || end - start == TERMS_TOGETHER || end == lengths.len() {
            groups.push(start..end);
            (start, postings) = (end, 0);
        }
    }
    groups
}

fn write_chunk(chunk: &Chunk, bytes: &mut Vec<u8>) {
    let space = chunk.shape.space.map_or(0, |space| u32::from(space.0) + 1);
    // What is left of pieces that went must not outlive them in a file.
    let clean = (!chunk.free.is_empty() || chunk.terms.unused > 0).then(|| chunk.without_leftovers());
    let chunk = clean.as_ref().unwrap_or(chunk);
    let TermLists { bytes: terms, starts, unused } = &chunk.terms;
    put_u32s(
        bytes,
        [space, chunk.shape.dimensions as u32, terms.len() as u32, starts.len() as u32, *unused as u32],
    );
    put_u32s(bytes, chunk.slots.iter().map(|slot| slot.owner));
    put_u32s(bytes, chunk.slots.iter().map(|slot| slot.next.map_or(0, |next| next.index() + 1)));
    chunk.lengths.iter().for_each(|length| bytes.extend_from_slice(&length.to_le_bytes()));
    put_u32s(bytes, chunk.grids.iter().map(|grid| grid.scale.to_bits()));
    put_u32s(bytes, chunk.grids.iter().map(|grid| grid.error.to_bits()));
    put_u32s(bytes, starts.iter().copied());
    bytes.extend_from_slice(terms);
    bytes.extend(chunk.codes.iter().map(|code| *code as u8));
    bytes.extend_from_slice(&chunk.sketches);
}

fn begin(bytes: &mut Vec<u8>, kind: u8, number: usize, count: usize) {
    bytes.clear();
    bytes.push(kind);
    put_u32s(bytes, [number as u32, count as u32]);
}

fn put_u32s(bytes: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    numbers.into_iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

impl<M> SegmentPart<M> {
    /// Reads a part, each document's `M` from the bytes that are left; `None` if it is none of this format.
    pub fn read(bytes: &[u8], read_meta: impl Fn(&mut &[u8]) -> Option<M>) -> Option<Self> {
        let mut rest = Rest(bytes);
        let kind = *rest.take(1)?.first()?;
        let (number, count) = (rest.number()?, rest.number()?);
        let part = match kind {
            HEAD => Part::Head(read_head(&mut rest, count)?),
            TERMS => Part::Terms(number, read_terms(&mut rest, count)?),
            DOCUMENTS => Part::Documents(number, read_documents(&mut rest, count, read_meta)?),
            CHUNKS => Part::Chunk(number, read_chunk(&mut rest, count)?),
            _ => return None,
        };
        rest.0.is_empty().then_some(Self(part))
    }
}

fn read_head(rest: &mut Rest<'_>, repeated: usize) -> Option<Head> {
    if rest.number()? != SEGMENT_FORMAT as usize {
        return None;
    }
    let (documents, chunks, terms) = (rest.number()?, rest.number()?, rest.number()?);
    let (with_terms, length, pieces) = (rest.long()?, rest.long()?, rest.long()?);
    let mut repeats: HashMap<u32, u32> = HashMap::with_capacity(repeated.min(rest.0.len()));
    let mut numbers = rest.u32s(repeated.checked_mul(2)?)?;
    while let (Some(term), Some(count)) = (numbers.next(), numbers.next()) {
        repeats.insert(term, count);
    }
    Some(Head { documents, chunks, terms, with_terms, length, repeats: Repeats { terms: repeats, pieces } })
}

fn read_terms(rest: &mut Rest<'_>, count: usize) -> Option<RestoredTerms> {
    let (hashes, _) = rest.take(count.checked_mul(8)?)?.as_chunks::<8>();
    let hashes = hashes.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let lengths: Vec<u32> = rest.u32s(count)?.collect();
    let all = lengths.iter().map(|length| *length as usize).sum();
    let postings = rest.u32s(all)?.map(Posting::from_bits).collect();
    Some(RestoredTerms { hashes, lengths, postings })
}

fn read_documents<M>(
    rest: &mut Rest<'_>,
    count: usize,
    read_meta: impl Fn(&mut &[u8]) -> Option<M>,
) -> Option<Vec<Option<Document<M>>>> {
    let firsts = rest.u32s(count)?;
    let mut documents = Vec::with_capacity(count);
    for first in firsts {
        documents.push(match PieceNo::written(first) {
            Some(first) => {
                let key = rest.long()?;
                Some(Document { key, meta: read_meta(&mut rest.0)?, first })
            }
            None => None,
        });
    }
    (count <= CHUNK).then_some(documents)
}

fn read_chunk(rest: &mut Rest<'_>, count: usize) -> Option<Chunk> {
    let (space, dimensions) = (rest.number()?, rest.number()?);
    let (terms, starts, unused) = (rest.number()?, rest.number()?, rest.number()?);
    let space = (space > 0).then(|| SpaceNo((space - 1) as u16));
    let owners = rest.u32s(count)?;
    let nexts = rest.u32s(count)?.map(PieceNo::written);
    let slots: Vec<Slot> = owners.zip(nexts).map(|(owner, next)| Slot { owner, next }).collect();
    let (lengths, _) = rest.take(count.checked_mul(2)?)?.as_chunks::<2>();
    let with_vectors = if space.is_some() { count } else { 0 };
    let scales = rest.u32s(with_vectors)?.map(f32::from_bits);
    let errors = rest.u32s(with_vectors)?.map(f32::from_bits);
    let starts: Vec<u32> = rest.u32s(starts)?.collect();
    let terms = rest.take(terms)?.to_vec();
    let codes = rest.take(with_vectors.checked_mul(dimensions)?)?;
    let mut chunk = Chunk {
        lengths: lengths.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect(),
        grids: scales.zip(errors).map(|(scale, error)| Grid { scale, error }).collect(),
        codes: codes.iter().map(|code| *code as i8).collect(),
        free: (0..count).filter(|slot| slots[*slot].owner == FREE).map(|slot| slot as u16).collect(),
        slots,
        ..Chunk::new(Shape { space, dimensions })
    };
    chunk.sketches = rest.take(with_vectors.div_ceil(BLOCK_ROWS).checked_mul(chunk.block_bytes())?)?.to_vec();
    let is_inside = |start: &u32| *start == NONE || (*start as usize) < terms.len();
    if count > CHUNK || starts.len() > count || !starts.iter().all(is_inside) {
        return None;
    }
    chunk.terms = TermLists { bytes: terms, starts, unused };
    Some(chunk)
}

/// Bytes that were not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        self.u32s(1)?.next().map(|number| number as usize)
    }

    fn long(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn u32s(&mut self, count: usize) -> Option<impl Iterator<Item = u32> + use<'a>> {
        let (numbers, _) = self.take(count.checked_mul(4)?)?.as_chunks::<4>();
        Some(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)))
    }
}
