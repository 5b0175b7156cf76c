//! The pieces of a long entry, as a row of the index keeps them: bytes in its body, so that they are sealed, archived and
//! forgotten with it.

use memtrove_core::recall::terms::{EntryTerms, Terms};

/// The last place of a term that fits beside its frequency.
const MAX_PLACE: u32 = u32::MAX >> FREQUENCY_BITS;
const FREQUENCY_BITS: u32 = 8;
/// The largest number of a vector's codes.
const LARGEST_CODE: f32 = 127.0;

/// A piece as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredPiece {
    pub terms: Terms,
    /// What it means, unless the pieces have no vectors.
    pub vector: Option<Vec<f32>>,
}

/// The bytes of the pieces that have these terms and, unless they are others in number, these vectors: how long vectors are (0
/// without any); then of each piece how many terms it has and how long it is, each term as its place among those of the whole
/// with its frequency, and its vector in whole numbers after their scale. An index in memory keeps no more of a vector either,
/// and a long entry has dozens.
pub(super) fn encode(vectors: &[Vec<f32>], terms: &EntryTerms) -> Vec<u8> {
    let dimensions = vectors.first().map_or(0, Vec::len);
    let fit = vectors.len() == terms.pieces.len() && vectors.iter().all(|one| one.len() == dimensions);
    let dimensions = if fit { dimensions } else { 0 };
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(dimensions as u32).to_le_bytes());
    for (number, piece) in terms.pieces.iter().enumerate() {
        let found = piece.counts.iter().filter_map(|(hash, frequency)| {
            let place = terms.whole.counts.binary_search_by_key(hash, |(hash, _)| *hash).ok()? as u32;
            let frequency = (*frequency).min(u32::from(u8::MAX));
            (place <= MAX_PLACE).then_some(place << FREQUENCY_BITS | frequency)
        });
        let found: Vec<u32> = found.collect();
        for value in [found.len() as u32, piece.length].into_iter().chain(found) {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        if dimensions > 0 {
            let vector = &vectors[number];
            let scale = vector.iter().fold(0.0f32, |most, x| most.max(x.abs())) / LARGEST_CODE;
            bytes.extend_from_slice(&scale.to_le_bytes());
            let code = |x: &f32| if scale > 0.0 { (x / scale).round() as i8 } else { 0 };
            bytes.extend(vector.iter().map(code).map(|code| code as u8));
        }
    }
    bytes
}

/// The pieces of an entry whose terms are these; none of a short one, which has no bytes for them. `None` if the bytes are no
/// pieces.
pub(super) fn decode(mut bytes: &[u8], whole: &Terms) -> Option<Vec<StoredPiece>> {
    let mut pieces = Vec::new();
    if bytes.is_empty() {
        return Some(pieces);
    }
    let dimensions = number(&mut bytes)? as usize;
    while !bytes.is_empty() {
        let (count, length) = (number(&mut bytes)? as usize, number(&mut bytes)?);
        let (found, _) = take(&mut bytes, count.checked_mul(4)?)?.as_chunks::<4>();
        let term = |bytes: &[u8; 4]| {
            let term = u32::from_le_bytes(*bytes);
            let (hash, _) = whole.counts.get((term >> FREQUENCY_BITS) as usize)?;
            Some((*hash, term & u32::from(u8::MAX)))
        };
        let counts = found.iter().filter_map(term).collect();
        let mut vector = None;
        if dimensions > 0 {
            let scale = f32::from_bits(number(&mut bytes)?);
            let codes = take(&mut bytes, dimensions)?;
            vector = Some(codes.iter().map(|code| scale * f32::from(*code as i8)).collect());
        }
        pieces.push(StoredPiece { terms: Terms { counts, length }, vector });
    }
    Some(pieces)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn terms(counts: &BTreeMap<u64, u32>) -> Terms {
        Terms {
            counts: counts.iter().map(|(hash, count)| (*hash, *count)).collect(),
            length: counts.len() as u32,
        }
    }

    /// The terms of an entry with these pieces.
    fn entry(pieces: &[BTreeMap<u64, u32>]) -> EntryTerms {
        let whole = pieces.iter().flatten().map(|(hash, count)| (*hash, *count)).collect();
        EntryTerms { whole: terms(&whole), pieces: pieces.iter().map(terms).collect() }
    }

    fn any_pieces() -> impl Strategy<Value = Vec<(BTreeMap<u64, u32>, Vec<f32>)>> {
        let words = prop::collection::btree_map(any::<u64>(), 1..200u32, 0..30);
        prop::collection::vec((words, prop::collection::vec(-1.0..1.0f32, 7)), 1..6)
    }

    proptest! {
        #[test]
        fn pieces_come_back_as_they_were(pieces in any_pieces(), with_vectors: bool) {
            let (words, vectors): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
            let terms = entry(&words);
            let stored = decode(&encode(if with_vectors { &vectors } else { &[] }, &terms), &terms.whole).unwrap();
            prop_assert_eq!(stored.iter().map(|piece| &piece.terms).collect::<Vec<_>>(), terms.pieces.iter().collect::<Vec<_>>());
            for (piece, vector) in stored.iter().zip(&vectors) {
                prop_assert_eq!(piece.vector.is_some(), with_vectors);
                let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                for (stored, given) in piece.vector.iter().flatten().zip(vector) {
                    prop_assert!((stored - given).abs() <= 0.51 * largest / LARGEST_CODE);
                }
            }
            // What is read is stored again, as when an entry gets another expiry.
            let again: Vec<Vec<f32>> = stored.iter().filter_map(|piece| piece.vector.clone()).collect();
            let again = decode(&encode(&again, &terms), &terms.whole).unwrap();
            for (one, other) in stored.iter().zip(&again) {
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6;
                prop_assert!(one.vector.iter().flatten().zip(other.vector.iter().flatten()).all(near));
            }
        }

        #[test]
        fn damaged_bytes_are_no_pieces_and_break_nothing(pieces in any_pieces(), end in any::<prop::sample::Index>()) {
            let (words, vectors): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
            let terms = entry(&words);
            let bytes = encode(&vectors, &terms);
            let part = &bytes[..end.index(bytes.len())];
            let read = decode(part, &terms.whole);
            prop_assert!(read.is_none_or(|read| read.len() < terms.pieces.len()));
        }
    }

    #[test]
    fn vectors_of_another_number_or_length_are_left_out() {
        let terms = entry(&[BTreeMap::from([(1, 1)]), BTreeMap::from([(2, 1)])]);
        for vectors in [vec![vec![1.0]], vec![vec![1.0], vec![1.0, 0.0]]] {
            let stored = decode(&encode(&vectors, &terms), &terms.whole).unwrap();
            assert!(stored.len() == 2 && stored.iter().all(|piece| piece.vector.is_none()));
        }
        assert_eq!(decode(&[], &terms.whole), Some(Vec::new()));
    }
}
