//! The model that is part of the program: a table with a vector for every word piece.
//!
//! A text is the mean of its pieces' vectors. That is the mean over all of them, however many there are: the tail of a long
//! text counts as much as its beginning. The table is used where the program lies in memory, so what is resident of it is
//! what was looked up.

use super::wordpiece::WordPiece;
use super::{Calibration, EmbedError, Embedder, SHARED_DIMENSIONS, STATIC_MODEL, Space, Vector, vector};
use futures_util::future::{BoxFuture, FutureExt};
use memtrove_core::text::is_unspaced;
use serde::Deserialize;
use std::sync::LazyLock;

static MODEL: &[u8] = include_bytes!("../../assets/static-256/model.safetensors");
static TOKENIZER: &[u8] = include_bytes!("../../assets/static-256/tokenizer.json");

/// Read when the first text comes.
static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    #[allow(clippy::expect_used, reason = "what is read is part of the program, and tests read it")]
    Loaded::read().expect("the bundled model is whole")
});

/// Embedding this many bytes takes less than a millisecond; then other tasks get their turn on this thread.
const BYTES_AT_A_TIME: usize = 64 * 1024;

/// The bundled model.
pub struct StaticModel {
    space: Space,
    calibration: Calibration,
}

impl Default for StaticModel {
    fn default() -> Self {
        Self { space: Space::shared(), calibration: Calibration::shared() }
    }
}

impl StaticModel {
    /// The vector of one text, in microseconds.
    pub fn vector(text: &str) -> Vector {
        LOADED.vector(text)
    }

    /// Whether a word is one of the model's vocabulary, and so likely spelled right.
    pub fn knows(word: &str) -> bool {
        let mut ids = Vec::new();
        LOADED.tokenizer.encode(word, &mut ids);
        ids.len() == 1 && ids[0] != LOADED.tokenizer.unknown()
    }

    /// Which share of a text's letters stands in words that the model knows. It was made from English: a foreign word falls into
    /// many short pieces, and single Chinese or Japanese characters say little by themselves.
    pub fn understood(text: &str) -> f64 {
        let tokenizer = &LOADED.tokenizer;
        let (mut letters, mut known) = (0, 0);
        let mut ids = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let length = word.chars().filter(|c| c.is_alphabetic()).count();
            if length == 0 {
                continue;
            }
            letters += length;
            ids.clear();
            tokenizer.encode(word, &mut ids);
            let is_known = !ids.contains(&tokenizer.unknown())
                && !word.contains(is_unspaced)
                && (ids.len() == 1 || length >= KNOWN_PIECE * ids.len());
            known += if is_known { length } else { 0 };
        }
        // Of what has no letters, like a number, the vector is as good as any.
        if letters == 0 { 1.0 } else { known as f64 / letters as f64 }
    }
}

/// A word of several pieces is known if they have so many letters on average.
const KNOWN_PIECE: usize = 3;

impl Embedder for StaticModel {
    fn model_id(&self) -> &str {
        STATIC_MODEL
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn max_input_chars(&self) -> usize {
        usize::MAX
    }

    fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vector>, EmbedError>> {
        async move {
            let mut vectors = Vec::with_capacity(texts.len());
            let mut bytes = 0;
            for text in texts {
                vectors.push(Self::vector(text));
                bytes += text.len();
                if bytes > BYTES_AT_A_TIME {
                    bytes = 0;
                    tokio::task::yield_now().await;
                }
            }
            Ok(vectors)
        }
        .boxed()
    }
}

struct Loaded {
    tokenizer: WordPiece,
    /// A vector of signed bytes per id. They have one scale, which the length of the mean takes out again.
    rows: &'static [u8],
}

impl Loaded {
    fn read() -> Result<Self, EmbedError> {
        let tokenizer = WordPiece::from_json(TOKENIZER)?;
        let rows = table(MODEL, tokenizer.len())
            .ok_or_else(|| EmbedError::Configuration("model.safetensors holds another table".to_owned()))?;
        Ok(Self { tokenizer, rows })
    }

    fn vector(&self, text: &str) -> Vector {
        let mut ids = Vec::with_capacity(text.len() / 4 + 1);
        self.tokenizer.encode(text, &mut ids);
        let unknown = self.tokenizer.unknown();
        // Sums of whole numbers: the same in any order and on any machine.
        let mut sum = [0i32; SHARED_DIMENSIONS];
        for id in ids.into_iter().filter(|id| *id != unknown) {
            let row = &self.rows[id as usize * SHARED_DIMENSIONS..][..SHARED_DIMENSIONS];
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += i32::from(*value as i8);
            }
        }
        let mut vector = sum.iter().map(|sum| *sum as f32).collect::<Vector>();
        vector::normalise(&mut vector);
        vector
    }
}

/// The rows of a safetensors file that holds one table of that many rows and nothing else.
fn table(file: &'static [u8], rows: usize) -> Option<&'static [u8]> {
    #[derive(Deserialize)]
    struct Header {
        embeddings: TensorHeader,
    }
    #[derive(Deserialize)]
    struct TensorHeader {
        dtype: String,
        shape: [usize; 2],
        data_offsets: [usize; 2],
    }

    let (length, rest) = file.split_first_chunk()?;
    let (header, data) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let TensorHeader { dtype, shape, data_offsets: [start, end] } =
        serde_json::from_slice::<Header>(header).ok()?.embeddings;
    let table = data.get(start..end)?;
    let is_ours =
        dtype == "I8" && shape == [rows, SHARED_DIMENSIONS] && table.len() == rows * SHARED_DIMENSIONS;
    is_ours.then_some(table)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[derive(Deserialize)]
    struct Fixture {
        text: String,
        first8: [f32; 8],
        norm: f32,
    }

    fn norm(vector: &[f32]) -> f32 {
        vector.iter().map(|value| value * value).sum::<f32>().sqrt()
    }

    #[test]
    fn every_fixture_becomes_the_vector_it_must_become() {
        let fixtures = include_str!("../../assets/static-256/fixtures.json");
        let fixtures: Vec<Fixture> = serde_json::from_str(fixtures).unwrap();
        assert!(fixtures.len() >= 10);
        for Fixture { text, first8, norm: expected } in fixtures {
            let vector = StaticModel::vector(&text);
            assert_eq!(vector.len(), SHARED_DIMENSIONS);
            for (value, expected) in vector.iter().zip(first8) {
                assert!((value - expected).abs() < 1e-4, "{text:?}: {:?} is not {first8:?}", &vector[..8]);
            }
            assert!((norm(&vector) - expected).abs() < 1e-4, "{text:?}: {}", norm(&vector));
        }
    }

    #[test]
    fn the_table_has_a_row_for_every_token() {
        let loaded = Loaded::read().unwrap();
        assert_eq!(loaded.tokenizer.len(), 29_525);
        assert_eq!(loaded.rows.len(), 29_525 * SHARED_DIMENSIONS);
    }

    #[test]
    fn the_tail_of_a_long_text_is_not_cut() {
        let filler = "the quick brown fox ".repeat(600);
        let with_tail = format!("{filler} volcano volcano volcano");
        assert_ne!(StaticModel::vector(&filler), StaticModel::vector(&with_tail));
    }
}
