//! What speaks for an entry that stands alone, and how much: one order, and the scores that are shown of it.
//!
//! Order and score are two questions. The order is a sum in which words and meaning both count, so that neither hides the
//! other. The score is a rising curve over that order, made so that a threshold means the same for every query.
//!
//! The constants are fitted on LoCoMo and MADial-Bench (English and Chinese), the curve on `tests/fixtures/questions.tsv` of
//! `memtrove-recall`, November 2026.

use serde::Serialize;

/// What words count where the model understands the query; meaning counts the rest.
const WORDS: f64 = 0.6;
/// What a word of the query counts that no entry has, of what it would be worth. Nothing, and one shared word would answer
/// every question; all, and a long question would be found by its meaning alone.
const UNKNOWN_WORDS: f64 = 0.15;
/// The least score of a result where neither a search nor the deployment says otherwise: one for all interfaces.
pub const DEFAULT_THRESHOLD: f64 = 0.7;
/// From the order to the score. The first point between the ends is the default threshold: there is an entry that shares no word
/// with the query and has a cosine of 0.25.
const CURVE: [(f64, f64); 4] = [(0.0, 0.0), (0.1, DEFAULT_THRESHOLD), (0.5, 0.9), (1.0, 1.0)];

/// How much it says that an entry is of the time that is asked about: so many more times what is missing of its score is
/// multiplied by itself. An entry that is a poor answer stays one.
const IN_TIME: f64 = 1.0;

/// What it says by itself that an entry is of that time, where nothing else is asked for.
const BY_TIME_ALONE: f64 = DEFAULT_THRESHOLD;

/// For models that were not measured: up to this share of the query's words says nothing, it is what unrelated texts have in
/// common; from that share on, words say all they can; and that is what they say by themselves.
const CHANCE: f64 = 0.2;
const ENOUGH: f64 = 0.8;
const BY_WORDS_ALONE: f64 = 0.8;

/// What the words of a long entry count that stand in other pieces than its best one.
const REST: f32 = 0.2;

/// What the words of an entry are worth: those of its best piece, and a little of the rest, of what all of them are worth
/// `together`.
pub fn of_pieces(best: f32, together: f32) -> f32 {
    best + REST * (together - best).max(0.0)
}

/// How much is known of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// What its words are worth that some entry has.
    pub known: f64,
    /// What its other words are worth.
    pub unknown: f64,
    /// Which share of it the model understands that its vector is of; nothing without a vector.
    pub understood: f64,
}

/// How well an entry answers, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Relevance {
    /// What is shown and compared with a threshold, from 0 to 1.
    pub score: f64,
    /// The calibrated similarity of meaning, from 0 to 1.
    pub similarity: f64,
    /// Which share of what the query's words are worth the entry holds, from 0 to 1.
    pub coverage: f64,
    /// How well its time fits the one that is asked about, from 0 to 1, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
}

impl Asked {
    /// How well an entry answers that has words worth `found` and a meaning as near as `cosine`, whose calibrated value is
    /// `similarity`.
    pub fn relevance(&self, found: f64, cosine: f64, similarity: f64) -> Relevance {
        let coverage = self.coverage(found);
        let meaning = self.meaning();
        let order = (1.0 - meaning) * coverage + meaning * share(cosine);
        Relevance { score: curve(order), similarity: share(similarity), coverage, time: None }
    }

    /// As [`relevance`](Self::relevance), where nobody measured what the model's cosines are worth: words can only raise the
    /// similarity, and a threshold means what it means for that model.
    pub fn relevance_unmeasured(&self, found: f64, similarity: f64) -> Relevance {
        let all = self.known + self.unknown;
        let coverage = if all > 0.0 { share(found / all) } else { 0.0 };
        let similarity = share(similarity);
        let words = BY_WORDS_ALONE * ((coverage - CHANCE) / (ENOUGH - CHANCE)).clamp(0.0, 1.0);
        Relevance { score: similarity + (1.0 - similarity) * words, similarity, coverage, time: None }
    }

    /// What meaning counts.
    fn meaning(&self) -> f64 {
        (1.0 - WORDS) * share(self.understood)
    }

    /// Which share of the query's worth is found.
    pub fn coverage(&self, found: f64) -> f64 {
        let whole = self.known + UNKNOWN_WORDS * self.unknown;
        if whole > 0.0 { share(found / whole) } else { 0.0 }
    }

    /// The least cosine with which an entry scores so much without a word of the query; above 1 if none does.
    pub fn least_cosine(&self, score: f64) -> f64 {
        if score <= 0.0 { 0.0 } else { inverse(score) / self.meaning() }
    }
}

impl Relevance {
    /// How well an entry answers by its meaning alone.
    pub fn of_meaning(similarity: f64) -> Self {
        Self { score: share(similarity), similarity: share(similarity), coverage: 0.0, time: None }
    }

    /// The same of an entry whose time fits so well the one that is asked about. It only ever raises the score, so a time that is
    /// asked about hides nothing.
    pub fn in_time(self, fit: f64) -> Self {
        let fit = share(fit);
        let score = 1.0 - (1.0 - self.score).powf(1.0 + IN_TIME * fit);
        Self { score, time: Some(fit), ..self }
    }

    /// The same where nothing else is asked for: an entry that is of that time answers by this alone. Those beside it do not.
    pub fn in_time_alone(self, fit: f64) -> Self {
        let score = match fit >= 1.0 {
            true => BY_TIME_ALONE + (1.0 - BY_TIME_ALONE) * self.score,
            false => self.score,
        };
        Self { score, ..self }.in_time(fit)
    }
}

/// The score of an entry that nothing speaks for but that it is of the time that is asked about, and nothing else.
pub fn score_by_time_alone() -> f64 {
    Relevance::default().in_time_alone(1.0).score
}

/// The least score of an entry that reaches a threshold because it is of the time that is asked about.
pub fn least_score_in_time(threshold: f64) -> f64 {
    1.0 - (1.0 - share(threshold)).powf(1.0 / (1.0 + IN_TIME))
}

/// What is no number is no evidence.
fn share(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// The score of an order.
fn curve(order: f64) -> f64 {
    let order = share(order);
    let end = CURVE.partition_point(|(x, _)| *x < order).clamp(1, CURVE.len() - 1);
    let ((x0, y0), (x1, y1)) = (CURVE[end - 1], CURVE[end]);
    let part = (order - x0) / (x1 - x0);
    // So, and not by the difference, the ends are met exactly.
    y0 * (1.0 - part) + y1 * part
}

/// The order that has this score.
fn inverse(score: f64) -> f64 {
    let score = share(score);
    let end = CURVE.partition_point(|(_, y)| *y < score).clamp(1, CURVE.len() - 1);
    let ((x0, y0), (x1, y1)) = (CURVE[end - 1], CURVE[end]);
    x0 + (x1 - x0) * (score - y0) / (y1 - y0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::Timestamp;
    use crate::recall::lexical::idf;
    use crate::recall::terms::of_entry;
    use crate::recall::time_words::TimeWindow;
    use crate::text::Analyzer;
    use proptest::prelude::*;

    /// The score by words alone of one text among others.
    fn by_words(query: &str, text: &str, others: &[&str]) -> f64 {
        let analyzer = Analyzer::new("english").unwrap();
        let held = |text: &str| {
            of_entry(&analyzer, text).counts.into_iter().map(|(hash, _)| hash).collect::<Vec<_>>()
        };
        let texts: Vec<Vec<u64>> = others.iter().chain([&text]).map(|text| held(text)).collect();
        let query = held(query);
        let frequency = |hash: &u64| texts.iter().filter(|text| text.contains(hash)).count();
        let worth = |hash: &u64| idf(texts.len(), frequency(hash));
        let sum = |of: &dyn Fn(&&u64) -> bool| query.iter().filter(of).map(worth).sum::<f64>();
        let asked = Asked {
            known: sum(&|hash| frequency(hash) > 0),
            unknown: sum(&|hash| frequency(hash) == 0),
            understood: 1.0,
        };
        asked.relevance(sum(&|hash| texts[texts.len() - 1].contains(hash)), 0.0, 0.0).score
    }

    const OTHERS: [&str; 4] = [
        "The user prefers dark mode",
        "The service is deployed on Tuesdays",
        "Use tabs for indentation in every service",
        "The user likes concise answers",
    ];

    #[test]
    fn an_entry_that_holds_an_identifier_is_found_by_it() {
        for query in ["ADR-042", "adr-042", "what is ADR-042?", "ADR042"] {
            assert!(by_words(query, "ADR-042: log as JSON", &OTHERS) >= DEFAULT_THRESHOLD, "{query}");
        }
        assert!(by_words("getUserName", "fix getUserName() for guests", &OTHERS) >= DEFAULT_THRESHOLD);
        assert!(
            by_words("where is src/main.rs", "the entry point is src/main.rs", &OTHERS) >= DEFAULT_THRESHOLD
        );
        assert!(
            by_words("Kowalczyk", "Ask Ms Kowalczyk about invoices", &[]) >= DEFAULT_THRESHOLD,
            "alone in its scope"
        );
    }

    #[test]
    fn one_common_word_of_many_is_not_enough() {
        let question = "which indentation and answers does the dark service mode use";
        assert!(by_words(question, OTHERS[1], &OTHERS) < DEFAULT_THRESHOLD);
    }

    #[test]
    fn what_the_model_does_not_understand_is_judged_by_its_words() {
        let asked = |understood| Asked { known: 10.0, unknown: 0.0, understood };
        let (words, meaning) = (asked(0.0).relevance(5.0, 0.1, 0.1), asked(0.0).relevance(1.0, 0.9, 0.9));
        assert!(words.score > meaning.score);
        assert!(asked(1.0).relevance(5.0, 0.1, 0.1).score < asked(0.0).relevance(5.0, 0.1, 0.1).score);
    }

    fn any_query() -> impl Strategy<Value = Asked> {
        (0.0..50.0f64, 0.0..50.0f64, 0.0..=1.0f64).prop_map(|(known, unknown, understood)| Asked {
            known,
            unknown,
            understood,
        })
    }

    proptest! {
        #[test]
        fn scores_stay_between_nought_and_one(
            asked in any_query(), found in prop::num::f64::ANY, cosine in prop::num::f64::ANY
        ) {
            let relevance = asked.relevance(found, cosine, cosine);
            prop_assert!((0.0..=1.0).contains(&relevance.score));
            prop_assert!((0.0..=1.0).contains(&relevance.coverage));
        }

        #[test]
        fn more_of_either_never_lowers_a_score(
            asked in any_query(), found in 0.0..50.0f64, cosine in 0.0..=1.0f64, more in 0.0..=1.0f64
        ) {
            let least = asked.relevance(found, cosine, cosine).score - 1e-12;
            prop_assert!(asked.relevance(found + more, cosine, cosine).score >= least);
            prop_assert!(asked.relevance(found, cosine.max(more), cosine).score >= least);
        }

        #[test]
        fn what_reaches_a_score_by_meaning_is_at_least_that_near(
            asked in any_query(), cosine in 0.0..=1.0f64, score in 0.01..1.0f64
        ) {
            if asked.relevance(0.0, cosine, cosine).score >= score {
                prop_assert!(cosine >= asked.least_cosine(score) - 1e-9);
            }
        }

        #[test]
        fn the_scores_of_a_query_are_in_its_order(
            asked in any_query(), one in (0.0..50.0f64, 0.0..=1.0f64), other in (0.0..50.0f64, 0.0..=1.0f64)
        ) {
            let order = |(found, cosine): (f64, f64)| {
                (1.0 - asked.meaning()) * asked.coverage(found) + asked.meaning() * cosine
            };
            let score = |(found, cosine): (f64, f64)| asked.relevance(found, cosine, cosine).score;
            if order(one) > order(other) {
                prop_assert!(score(one) >= score(other));
            }
        }

        #[test]
        fn words_only_raise_the_similarity_of_a_model_that_was_not_measured(
            asked in any_query(), found in prop::num::f64::ANY, similarity in 0.0..=1.0f64
        ) {
            let relevance = asked.relevance_unmeasured(found, similarity);
            prop_assert!(relevance.score >= similarity && relevance.score <= 1.0);
        }

        #[test]
        fn being_of_the_time_that_is_asked_about_only_raises_a_score(
            scores in [0.0..=1.0f64, 0.0..=1.0f64], fits in [0.0..=1.0f64, 0.0..=1.0f64]
        ) {
            let in_time = |score: f64, fit: f64| Relevance::of_meaning(score).in_time(fit).score;
            prop_assert_eq!(in_time(0.0, fits[0]), 0.0);
            prop_assert_eq!(in_time(1.0, fits[0]), 1.0);
            prop_assert!(in_time(scores[0], fits[0]) >= scores[0] - 1e-12);
            prop_assert!(in_time(scores[0], fits[0]) <= 1.0);
            // The order by relevance stays among entries of one time, and the order by time among those as relevant.
            prop_assert!(in_time(scores[0].min(scores[1]), fits[0]) <= in_time(scores[0].max(scores[1]), fits[0]));
            prop_assert!(in_time(scores[0], fits[0].min(fits[1])) <= in_time(scores[0], fits[0].max(fits[1])) + 1e-12);
            let least = least_score_in_time(scores[1]);
            prop_assert!(in_time(least, 1.0) >= scores[1] - 1e-12);
            prop_assert!(scores[0] >= least - 1e-9 || in_time(scores[0], fits[0]) < scores[1]);
        }

        #[test]
        fn where_nothing_else_is_asked_for_what_is_of_the_time_answers_by_that(
            scores in [0.0..=1.0f64, 0.0..=1.0f64], fits in [0.0..=1.0f64, 0.0..=1.0f64], from in -1i64 << 50..1 << 50,
            length in 1i64..1 << 50, beside in 1i64..1 << 50
        ) {
            let alone = |score: f64, fit: f64| Relevance::of_meaning(score).in_time_alone(fit).score;
            let in_time = |score: f64, fit: f64| Relevance::of_meaning(score).in_time(fit).score;
            prop_assert!((DEFAULT_THRESHOLD..=1.0).contains(&alone(scores[0], 1.0)));
            prop_assert!(alone(scores[0], fits[0].min(fits[1])) <= alone(scores[0], fits[0].max(fits[1])) + 1e-12);
            prop_assert!(alone(scores[0], fits[0]) <= alone(scores[0], 1.0) + 1e-12);
            prop_assert!(alone(scores[0].min(scores[1]), 1.0) <= alone(scores[0].max(scores[1]), 1.0) + 1e-12);
            // Outside the window, however near, nothing is raised.
            let at = Timestamp::from_micros;
            let window = TimeWindow { from: at(from), to: at(from + length) };
            for outside in [at(from - beside), at(from - 1), window.to, at(from + length + beside)] {
                let fit = window.fit(outside);
                prop_assert_eq!(alone(scores[0], fit), in_time(scores[0], fit));
            }
        }

        #[test]
        fn the_order_of_a_score_has_that_score(score in 0.0..=1.0f64) {
            prop_assert!((curve(inverse(score)) - score).abs() < 1e-12);
        }
    }
}
