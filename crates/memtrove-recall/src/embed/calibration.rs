//! What a similarity is worth.

use std::borrow::Cow;

/// From the raw cosine of a question and a text to the score that callers compare with a threshold.
///
/// Piecewise linear and monotone, from 0 ↦ 0 to 1 ↦ 1. Models differ in what they call similar: small ones give related
/// sentences a cosine of 0.4 where large ones give 0.8. Scores mean the same for all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// From (0, 0) to (1, 1); the first value rises from point to point, the second never falls.
    points: Cow<'static, [(f64, f64)]>,
}

/// Fitted to `tests/fixtures/questions.tsv`, so that the default threshold of 0.7 keeps related and unrelated texts apart.
///
/// One for the whole space, not one per model: in whichever way the static model and the transformer make query and
/// document, a cosine of 0.35 is the cut. Questions that find their memory there, and unrelated memories found:
///
/// | query → document | related | unrelated |
/// |---|---|---|
/// | static → static | 88 % | 0.3 % |
/// | static → transformer | 89 % | 0.2 % |
/// | transformer → static | 85 % | 0.2 % |
/// | transformer → transformer | 96 % | 0.3 % |
const SHARED: [(f64, f64); 4] = [(0.0, 0.0), (0.35, 0.7), (0.65, 0.9), (1.0, 1.0)];

const IDENTITY: [(f64, f64); 2] = [(0.0, 0.0), (1.0, 1.0)];

impl Calibration {
    /// For the space of the static model and the local transformer.
    pub fn shared() -> Self {
        Self { points: Cow::Borrowed(&SHARED) }
    }

    /// Scores are cosines: for models without a measurement.
    pub fn identity() -> Self {
        Self { points: Cow::Borrowed(&IDENTITY) }
    }

    /// Whether the model was measured; a cosine of another may mean anything.
    pub fn is_measured(&self) -> bool {
        *self.points != IDENTITY
    }

    /// The points between which scores are interpolated, as (raw, score).
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The score of a raw cosine: 0 for one below zero (and for what is no number), 1 for one above one.
    pub fn score(&self, raw: f64) -> f64 {
        let raw = if raw.is_nan() { 0.0 } else { raw.clamp(0.0, 1.0) };
        let end = self.points.partition_point(|(x, _)| *x < raw).clamp(1, self.points.len() - 1);
        let ((x0, y0), (x1, y1)) = (self.points[end - 1], self.points[end]);
        let part = (raw - x0) / (x1 - x0);
        // So, and not by the difference, the ends are met exactly.
        y0 * (1.0 - part) + y1 * part
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::embed::static_model::StaticModel;
    use proptest::prelude::*;

    /// The threshold of a search that names none.
    const THRESHOLD: f64 = 0.7;

    fn cosine(one: &[f32], other: &[f32]) -> f64 {
        one.iter().zip(other).map(|(a, b)| f64::from(a * b)).sum()
    }

    #[test]
    fn the_default_threshold_tells_related_texts_from_unrelated_ones() {
        let pairs: Vec<_> = include_str!("../../tests/fixtures/questions.tsv")
            .lines()
            .map(|line| line.split_once('\t').unwrap())
            .map(|(memory, question)| (StaticModel::vector(memory), StaticModel::vector(question)))
            .collect();
        let calibration = Calibration::shared();
        let is_hit =
            |memory: &[f32], question: &[f32]| calibration.score(cosine(memory, question)) >= THRESHOLD;
        let (mut related, mut unrelated) = (0, 0);
        for (row, (_, question)) in pairs.iter().enumerate() {
            for (column, (memory, _)) in pairs.iter().enumerate() {
                let hit = usize::from(is_hit(memory, question));
                if row == column { related += hit } else { unrelated += hit }
            }
        }
        let count = pairs.len();
        assert!(count >= 60);
        let recall = related as f64 / count as f64;
        let noise = unrelated as f64 / (count * (count - 1)) as f64;
        assert!(recall >= 0.8 && noise <= 0.06, "recall {recall:.3}, unrelated {noise:.4}");
    }

    #[test]
    fn a_cosine_at_the_cut_is_worth_the_default_threshold() {
        assert_eq!(Calibration::shared().score(0.35), THRESHOLD);
    }

    /// A line through points in between.
    fn through(mut between: Vec<(f64, f64)>) -> Calibration {
        between.splice(0..0, [(0.0, 0.0)]);
        between.push((1.0, 1.0));
        Calibration { points: between.into() }
    }

    fn any_calibration() -> impl Strategy<Value = Calibration> {
        prop::collection::vec((0.001..0.999f64, 0.0..=1.0f64), 0..6).prop_map(|points| {
            let (mut raw, mut scores): (Vec<_>, Vec<_>) = points.into_iter().unzip();
            raw.sort_by(f64::total_cmp);
            raw.dedup();
            scores.sort_by(f64::total_cmp);
            through(raw.into_iter().zip(scores).collect())
        })
    }

    #[test]
    fn what_ships_is_monotone() {
        for calibration in [Calibration::shared(), Calibration::identity()] {
            let points = calibration.points();
            assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
            assert_eq!((points[0], points[points.len() - 1]), ((0.0, 0.0), (1.0, 1.0)));
        }
    }

    proptest! {
        #[test]
        fn scores_stay_between_nought_and_one_and_the_ends_are_fixed(
            calibration in any_calibration(), raw in prop::num::f64::ANY
        ) {
            prop_assert!((0.0..=1.0).contains(&calibration.score(raw)));
            prop_assert_eq!(calibration.score(0.0), 0.0);
            prop_assert_eq!(calibration.score(1.0), 1.0);
        }

        #[test]
        fn what_is_more_similar_never_scores_less(
            calibration in any_calibration(), one in -1.0..=1.0f64, other in -1.0..=1.0f64
        ) {
            let (less, more) = (one.min(other), one.max(other));
            prop_assert!(calibration.score(less) <= calibration.score(more) + 1e-12);
        }

        #[test]
        fn every_point_lies_on_the_line(calibration in any_calibration()) {
            for (raw, score) in calibration.points() {
                prop_assert!((calibration.score(*raw) - score).abs() < 1e-12);
            }
        }
    }
}
