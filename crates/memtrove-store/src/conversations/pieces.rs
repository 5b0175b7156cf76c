//! The pieces of a text as bytes.

use crate::StoreError;

/// A part of a text: where it lies, and its words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Piece {
    /// Its direction in the model's space; empty without one.
    pub vector: Vec<i8>,
    /// Each of its words as a number, with how often it is there.
    pub terms: Vec<(u64, u32)>,
    /// How many words it has.
    pub length: u32,
}

/// As bytes: per piece its length, its vector and its terms, each with a count before it. Numbers are as short as they are
/// small; a term's is not, since it is a digest.
pub(super) fn encode(pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        put_number(&mut bytes, piece.length);
        put_number(&mut bytes, piece.vector.len() as u32);
        bytes.extend(piece.vector.iter().map(|value| value.to_le_bytes()[0]));
        put_number(&mut bytes, piece.terms.len() as u32);
        for (term, frequency) in &piece.terms {
            bytes.extend_from_slice(&term.to_le_bytes());
            put_number(&mut bytes, *frequency);
        }
    }
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Piece>, StoreError> {
    let mut rest = Rest(bytes);
    let mut pieces = Vec::new();
    while !rest.0.is_empty() {
        let piece = rest.piece().ok_or_else(|| StoreError::Broken("a text's pieces end too early".into()))?;
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Seven bits a byte, the last ones first.
fn put_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What is still to be read.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn piece(&mut self) -> Option<Piece> {
        let length = self.number()?;
        let dimensions = self.number()? as usize;
        let vector = self.take(dimensions)?.iter().map(|byte| i8::from_le_bytes([*byte])).collect();
        let count = self.number()? as usize;
        // No more than there is room for, whatever the bytes say.
        let mut terms = Vec::with_capacity(count.min(self.0.len() / 9));
        for _ in 0..count {
            let term = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
            terms.push((term, self.number()?));
        }
        Some(Piece { vector, terms, length })
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn pieces_come_back_as_they_were() {
        let pieces = vec![
            Piece {
                vector: vec![127, -128, 0, 1, -1],
                terms: vec![(0, 1), (u64::MAX, u32::MAX)],
                length: 128,
            },
            Piece::default(),
            Piece {
                vector: vec![5; 1536],
                terms: (0..500).map(|n| (n << 40, n as u32)).collect(),
                length: 90,
            },
        ];
        assert_eq!(decode(&encode(&pieces)).unwrap(), pieces);
        assert_eq!(decode(&[]).unwrap(), []);
    }

    #[test]
    fn what_was_cut_off_is_noticed() {
        let piece = Piece { vector: vec![1; 200], terms: vec![(7, 1), (8, 200)], length: 300 };
        let whole = encode(std::slice::from_ref(&piece));
        for length in 1..whole.len() {
            assert!(decode(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
        }
        assert!(decode(&[0xFF; 16]).is_err(), "a number without an end");
    }
}
