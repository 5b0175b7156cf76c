//! Where a page ended.

use super::SearchType;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use memtrove_core::recall::fusion::Weights;
use memtrove_core::{Error, Result};
use uuid::Uuid;

const MAX_CURSOR_CHARS: usize = 100;
/// No list is that long: who says so did not get the cursor from us, and would have everything ranked.
const MOST_GIVEN: u32 = 200_000;

/// Who ranked: scores of different ones mean different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ranker {
    /// How well every word of the query is there.
    FullText,
    /// How similar the meaning is.
    Semantic,
    /// All that speaks for an entry.
    Fused,
    /// The same without meaning.
    Words,
}

impl Ranker {
    const ALL: [Self; 4] = [Self::FullText, Self::Semantic, Self::Fused, Self::Words];

    pub fn needs_vectors(self) -> bool {
        matches!(self, Self::Semantic | Self::Fused)
    }

    pub fn asks_who_spoke(self) -> bool {
        matches!(self, Self::Fused | Self::Words)
    }

    /// Who does it where the query has no vector.
    pub fn without_vectors(self) -> Option<Self> {
        match self {
            Self::Semantic => None,
            Self::Fused | Self::Words => Some(Self::Words),
            Self::FullText => Some(Self::FullText),
        }
    }
}

/// What a cursor belongs to.
pub(super) type List = [u8; 8];

/// Ties a cursor to the list it belongs to.
pub(super) fn fingerprint(query: &str, asked: SearchType, grouped: bool, weights: &Weights) -> List {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[asked as u8, u8::from(grouped)]);
    let Weights { lexical, context, by_another, asks } = weights;
    for weight in [lexical, context, by_another, asks] {
        hasher.update(&weight.to_be_bytes());
    }
    hasher.update(query.as_bytes());
    let mut short = List::default();
    short.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    short
}

/// The last hit of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cursor {
    pub ranker: Ranker,
    /// How many hits there were up to it.
    pub given: u32,
    pub score: f64,
    pub id: Uuid,
}

impl Cursor {
    pub fn encode(self, list: List) -> String {
        let mut bytes = Vec::with_capacity(37);
        bytes.extend_from_slice(&list);
        bytes.push(self.ranker as u8);
        bytes.extend_from_slice(&self.given.to_be_bytes());
        bytes.extend_from_slice(&self.score.to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    pub fn decode(text: &str, list: List) -> Result<Self> {
        let bytes: [u8; 37] = opaque(text)?;
        let (tied_to, rest) = bytes.split_at(8);
        if tied_to != list {
            return Err(Error::invalid("after", "belongs to another search; start again without it"));
        }
        let (ranker, rest) = rest.split_at(1);
        let (given, rest) = rest.split_at(4);
        let (score, id) = rest.split_at(8);
        let given = u32::from_be_bytes(given.try_into().map_err(|_| malformed())?);
        if given > MOST_GIVEN {
            return Err(malformed());
        }
        Ok(Self {
            ranker: *Ranker::ALL.get(usize::from(ranker[0])).ok_or_else(malformed)?,
            given,
            score: f64::from_be_bytes(score.try_into().map_err(|_| malformed())?),
            id: Uuid::from_slice(id).map_err(|_| malformed())?,
        })
    }

    /// Who goes on: the ranker that made the page before, if it may answer such a search.
    pub fn continues(&self, rankers: &[Ranker]) -> Result<Ranker> {
        let may = |ranker: &Ranker| *ranker == self.ranker || ranker.without_vectors() == Some(self.ranker);
        if rankers.iter().any(may) { Ok(self.ranker) } else { Err(malformed()) }
    }
}

/// The bytes of a cursor that has `N` of them.
pub(in super::super) fn opaque<const N: usize>(text: &str) -> Result<[u8; N]> {
    if text.len() > MAX_CURSOR_CHARS {
        return Err(Error::invalid("after", format!("must have at most {MAX_CURSOR_CHARS} characters")));
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| malformed())?;
    bytes.try_into().map_err(|_| malformed())
}

pub(in super::super) fn malformed() -> Error {
    Error::invalid("after", "is not a cursor of this list")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_search() {
        let cursor = Cursor { ranker: Ranker::Fused, given: 20, score: 1.25, id: Uuid::from_u128(7) };
        let weights = Weights::default();
        let list = fingerprint("cats", SearchType::Auto, true, &weights);
        assert_eq!(Cursor::decode(&cursor.encode(list), list), Ok(cursor));
        for other in [
            fingerprint("cats", SearchType::Auto, false, &weights),
            fingerprint("dogs", SearchType::Auto, true, &weights),
            fingerprint("cats", SearchType::FullText, true, &weights),
            fingerprint("cats", SearchType::Auto, true, &Weights { by_another: 1.0, ..weights }),
        ] {
            assert!(Cursor::decode(&cursor.encode(list), other).is_err());
        }
        assert!(Cursor::decode("garbage!", list).is_err());
        assert!(Cursor::decode(&"A".repeat(101), list).is_err());
    }

    #[test]
    fn a_search_goes_on_with_who_began_it() {
        let words = Cursor { ranker: Ranker::Words, given: 1, score: 0.5, id: Uuid::nil() };
        assert_eq!(words.continues(&[Ranker::Fused]), Ok(Ranker::Words));
        assert_eq!(words.continues(&[Ranker::Words]), Ok(Ranker::Words));
        assert!(words.continues(&[Ranker::Semantic]).is_err());
        let semantic = Cursor { ranker: Ranker::Semantic, ..words };
        assert_eq!(semantic.continues(&[Ranker::Semantic, Ranker::FullText]), Ok(Ranker::Semantic));
        assert!(semantic.continues(&[Ranker::FullText]).is_err());
    }
}
