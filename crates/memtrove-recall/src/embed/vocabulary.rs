//! Word pieces and their ids, in little memory.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// Which pieces there are. A piece either begins a word or continues one; the two are kept apart.
///
/// All spellings lie one after the other in one string, and a table finds them by their hashes: 0.7 MB for thirty
/// thousand pieces.
pub(super) struct Vocabulary {
    spellings: String,
    /// By id.
    pieces: Vec<VocabularyPiece>,
    /// By hash; with as many free places as taken ones at least.
    table: Vec<Option<TokenSlot>>,
    /// Of the longest spelling, in bytes.
    longest: usize,
}

/// An id, plus one: so a place that is free takes no more room than one that is taken.
type TokenSlot = std::num::NonZeroU32;

#[derive(Clone, Copy, Default)]
struct VocabularyPiece {
    start: u32,
    length: u8,
    continues: bool,
}

/// No spelling is longer, in bytes: the hashes of all beginnings of a word lie on the stack.
const MAX_SPELLING: usize = 64;

impl Vocabulary {
    /// What a piece that continues a word is written with.
    pub(super) const CONTINUES: &str = "##";

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The id of a token as it is written, with what it is written with.
    pub(super) fn id(&self, token: &str) -> Option<u32> {
        let (spelling, continues) = parse(token);
        self.find(spelling, continues, spelling.bytes().fold(seed(continues), step))
    }

    /// The longest piece that `text` begins with, and how many bytes it takes.
    pub(super) fn longest(&self, text: &str, continues: bool) -> Option<(u32, usize)> {
        let mut hashes = [0; MAX_SPELLING];
        let mut hash = seed(continues);
        for (slot, byte) in hashes.iter_mut().zip(text.bytes()).take(self.longest) {
            hash = step(hash, byte);
            *slot = hash;
        }
        (1..=text.len().min(self.longest))
            .rev()
            .filter(|length| text.is_char_boundary(*length))
            .find_map(|length| Some((self.find(&text[..length], continues, hashes[length - 1])?, length)))
    }

    fn find(&self, spelling: &str, continues: bool, hash: u32) -> Option<u32> {
        let mut at = self.home(hash);
        while let Some(place) = self.table[at] {
            let id = place.get() - 1;
            let piece = self.pieces[id as usize];
            if piece.continues == continues && self.spelling(piece) == spelling {
                return Some(id);
            }
            at = self.after(at);
        }
        None
    }

    fn spelling(&self, piece: VocabularyPiece) -> &str {
        let start = piece.start as usize;
        &self.spellings[start..start + usize::from(piece.length)]
    }

    fn home(&self, hash: u32) -> usize {
        (hash ^ hash >> 15) as usize & (self.table.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.table.len() - 1)
    }

    fn add(&mut self, token: &str, id: u32) -> Result<(), &'static str> {
        let (spelling, continues) = parse(token);
        let length = u8::try_from(spelling.len()).ok().filter(|length| usize::from(*length) <= MAX_SPELLING);
        let length = length.ok_or("a token is longer than 64 bytes")?;
        let start = u32::try_from(self.spellings.len()).map_err(|_| "the vocabulary is too large")?;
        let index = id as usize;
        if index > MAX_TOKENS {
            return Err("the vocabulary is too large");
        }
        if self.pieces.len() <= index {
            self.pieces.resize(index + 1, VocabularyPiece::default());
        }
        self.spellings.push_str(spelling);
        self.pieces[index] = VocabularyPiece { start, length, continues };
        self.longest = self.longest.max(spelling.len());
        Ok(())
    }

    /// Builds the table, when all pieces are there.
    fn finish(mut self) -> Self {
        self.spellings.shrink_to_fit();
        self.pieces.shrink_to_fit();
        self.table = vec![None; (2 * self.pieces.len() + 1).next_power_of_two()];
        for (index, piece) in self.pieces.iter().enumerate() {
            let spelling = self.spelling(*piece);
            // Nothing is a piece of nothing: a word would never end.
            if !spelling.is_empty() {
                let mut at = self.home(spelling.bytes().fold(seed(piece.continues), step));
                while self.table[at].is_some() {
                    at = self.after(at);
                }
                self.table[at] = TokenSlot::new(index as u32 + 1);
            }
        }
        self
    }
}

/// Ids are below this. Bounds what a damaged file can make us allocate.
const MAX_TOKENS: usize = 1 << 20;

fn parse(token: &str) -> (&str, bool) {
    token.strip_prefix(Vocabulary::CONTINUES).map_or((token, false), |spelling| (spelling, true))
}

/// FNV-1a, begun differently for the two sorts of pieces.
fn seed(continues: bool) -> u32 {
    if continues { 0x9747_b28c } else { 0x811c_9dc5 }
}

fn step(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

/// Read token by token: a map of thirty thousand strings would be ten times as large as what comes of it.
impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tokens;

        impl<'de> Visitor<'de> for Tokens {
            type Value = Vocabulary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tokens and their ids")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Vocabulary, M::Error> {
                let mut vocabulary = Vocabulary {
                    spellings: String::new(),
                    pieces: Vec::new(),
                    table: Vec::new(),
                    longest: 0,
                };
                while let Some((token, id)) = map.next_entry::<String, u32>()? {
                    vocabulary.add(&token, id).map_err(M::Error::custom)?;
                }
                Ok(vocabulary.finish())
            }
        }

        deserializer.deserialize_map(Tokens)
    }
}
