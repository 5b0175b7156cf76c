//! Vectors as 8-bit integers, with a bound on what that costs.

/// What sums of floats may add to an error, here and where the exact cosine is computed.
const ROUNDING: f32 = 4e-6;

/// A unit vector in whole steps of a grid.
pub(super) struct Quantised {
    pub(super) codes: Vec<i8>,
    pub(super) grid: Grid,
}

/// What the codes of a vector mean.
#[derive(Clone, Copy, Default)]
pub(super) struct Grid {
    /// The length of a step; 0 for a vector without a direction.
    pub(super) scale: f32,
    /// How far the steps lead away from the vector.
    pub(super) error: f32,
}

impl Quantised {
    /// Quantises a [`unit()`] vector. One without a direction is similar to nothing.
    pub(super) fn new(unit: &[f32]) -> Self {
        let scale = largest(unit) / 127.0;
        if scale == 0.0 {
            return Self { codes: vec![0; unit.len()], grid: Grid::default() };
        }
        // Rounds; without SSE4.1 `round` would be a call for each.
        let codes: Vec<i8> = unit.iter().map(|x| (x / scale + 0.5f32.copysign(*x)) as i8).collect();
        let squares = unit.iter().zip(&codes).map(|(x, &code)| (x - scale * f32::from(code)).powi(2));
        let error = squares.sum::<f32>().sqrt();
        Self { codes, grid: Grid { scale, error } }
    }
}

impl Grid {
    /// The cosine of two vectors, by the product of their codes.
    pub(super) fn cosine(self, other: Self, dot: i32) -> f32 {
        dot as f32 * (self.scale * other.scale)
    }

    /// How far that may be from the truth (by Cauchy and Schwarz, on each of the parts that were rounded away).
    pub(super) fn error_with(self, other: Self) -> f32 {
        self.error + other.error * (1.0 + self.error) + ROUNDING
    }

    /// Whether the vector points anywhere.
    pub(super) fn has_direction(self) -> bool {
        self.scale > 0.0
    }
}

/// The vector with length 1; all zero if it has no direction, being all zero or not finite.
pub(super) fn unit(vector: &[f32]) -> Vec<f32> {
    // Scaled by the largest component first, so that no square overflows or vanishes.
    let largest = largest(vector);
    if largest == 0.0 || !vector.iter().all(|x| x.is_finite()) {
        return vec![0.0; vector.len()];
    }
    let mut unit: Vec<f32> = vector.iter().map(|x| x / largest).collect();
    // Not by a kernel, so that codes are the same on every machine.
    let length = unit.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt() as f32;
    unit.iter_mut().for_each(|x| *x /= length);
    unit
}

fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |largest, x| if x.abs() > largest { x.abs() } else { largest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrove_simd::search;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cosine_is_within_the_error_of_its_estimate(
            pairs in prop::collection::vec((-1.0..1.0f32, -1.0..1.0f32), 1..300),
            stretch in prop_oneof![Just(1.0f32), Just(1e-30), Just(1e30)],
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().map(|(a, b)| (a * stretch, b)).unzip();
            let (query, stored) = (Quantised::new(&unit(&a)), Quantised::new(&unit(&b)));
            let estimate = query.grid.cosine(stored.grid, search::dot_i8(&query.codes, &stored.codes));
            let exact = crate::index::rescore(&a, &b);
            prop_assert!((exact - estimate).abs() <= query.grid.error_with(stored.grid), "{estimate} for {exact}");
        }
    }

    #[test]
    fn what_has_no_direction_is_zero() {
        for vector in [[0.0, 0.0], [f32::NAN, 1.0], [f32::INFINITY, 1.0]] {
            let quantised = Quantised::new(&unit(&vector));
            assert!(!quantised.grid.has_direction());
            assert_eq!(quantised.codes, [0, 0]);
        }
    }
}
