//! What every vector must be, of whatever model.

use super::{EmbedError, Space, Vector};

/// Makes sure that these are as many vectors of the space as texts, and that the length of each is one (or zero).
pub(super) fn check(vectors: &mut [Vector], count: usize, space: &Space) -> Result<(), EmbedError> {
    let unusable = |what: String| Err(EmbedError::Unusable(what.into()));
    if vectors.len() != count {
        return unusable(format!("it has {} vectors for {count} texts", vectors.len()));
    }
    for vector in vectors {
        let (found, expected) = (vector.len(), space.dimensions);
        if found != expected {
            return unusable(format!("a vector has {found} dimensions where {expected} are expected"));
        }
        if !vector.iter().all(|value| value.is_finite()) {
            return unusable("a vector holds a value that is no number".to_owned());
        }
        normalise(vector);
    }
    Ok(())
}

/// Scales to unit length; what is all zero stays so.
pub(super) fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if norm > 0.0 {
        for value in vector {
            *value = (f64::from(*value) / norm) as f32;
        }
    }
}
