//! From the vectors of all-MiniLM-L6-v2 into the space they share with the static model.

use super::encoder::Encoder;
use super::weights::Weights;
use crate::embed::{SHARED_DIMENSIONS, Vector};
use std::io::Cursor;

static FILE: &[u8] = include_bytes!("../../../assets/static-256/minilm-projection.safetensors");

/// How long vectors of MiniLM are.
const MINILM_DIMENSIONS: usize = 384;

/// A matrix, a row for each dimension of MiniLM.
pub(super) struct Projection(Vec<f32>);

impl Projection {
    /// Reads the one that is part of the program.
    pub(super) fn bundled() -> Result<Self, String> {
        let shape = [MINILM_DIMENSIONS, SHARED_DIMENSIONS];
        Weights::new(Cursor::new(FILE))?.read("projection", &shape).map(Self)
    }

    pub(super) fn dimensions(&self) -> usize {
        SHARED_DIMENSIONS
    }

    /// The vector's place in the other space. Its length means nothing there.
    pub(super) fn apply(&self, vector: &[f32]) -> Vector {
        let mut projected = vec![0.0; SHARED_DIMENSIONS];
        for (number, row) in vector.iter().zip(self.0.chunks_exact(SHARED_DIMENSIONS)) {
            for (sum, factor) in projected.iter_mut().zip(row) {
                *sum += number * factor;
            }
        }
        projected
    }
}

/// A sentence that every model has read,
const PROBE: &str = "The quick brown fox jumps over the lazy dog.";
/// and the beginning of what all-MiniLM-L6-v2 makes of it.
const ANSWER: [f32; 16] = [
    0.0439, 0.0589, 0.0482, 0.0775, 0.0267, -0.0376, -0.0026, -0.0599, -0.0025, 0.0221, 0.0480, 0.0558,
    -0.0389, -0.0266, 0.0077, -0.0262,
];

/// Whether this is all-MiniLM-L6-v2. Names and sizes are those of many models; what counts is where it puts a sentence, and
/// that is the same whatever the file was converted to and from.
pub(super) fn is_minilm(encoder: &Encoder) -> bool {
    let vector = encoder.embed(&[PROBE]).remove(0);
    vector.len() == MINILM_DIMENSIONS
        && ANSWER.iter().zip(&vector).all(|(expected, number)| (expected - number).abs() < 0.01)
}
