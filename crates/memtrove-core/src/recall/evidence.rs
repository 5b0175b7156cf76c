//! Scores that mean the same for every query, so that a threshold can be set: for entries that stand alone.
//!
//! Meaning comes first, and words can only add to it. A small model does not know an identifier, a name or a code word,
//! but an entry that holds them is what was asked for.

use serde::Serialize;

/// Up to this share of the query's words says nothing: it is what unrelated texts have in common.
const CHANCE: f64 = 0.2;
/// From this share on, words say all they can.
const ENOUGH: f64 = 0.8;
/// The score of an entry that has the query's words and none of its meaning.
const BY_WORDS_ALONE: f64 = 0.8;

/// A score and how it came about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Evidence {
    /// From 0 to 1, never below `similarity`.
    pub score: f64,
    /// The calibrated similarity of meaning, from 0 to 1.
    pub similarity: f64,
    /// Which share of what the query's words are worth the entry holds, from 0 to 1.
    pub coverage: f64,
}

/// Raises a calibrated similarity by words in common: each kind of evidence makes up for some of what the other lacks.
pub fn score(similarity: f64, coverage: f64) -> Evidence {
    let similarity = share(similarity);
    let coverage = share(coverage);
    let words = BY_WORDS_ALONE * ((coverage - CHANCE) / (ENOUGH - CHANCE)).clamp(0.0, 1.0);
    Evidence { score: similarity + (1.0 - similarity) * words, similarity, coverage }
}

/// What is no number is no evidence.
fn share(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// Which share of a query's worth an entry holds: `found` is what the terms found in it are worth, `idfs` what each term
/// of the query is. An index that counts a term once, whatever its frequency (BM25 with `k1` 0), says the former exactly.
pub fn coverage(found: f64, idfs: impl IntoIterator<Item = f64>) -> f64 {
    let whole: f64 = idfs.into_iter().sum();
    if whole > 0.0 { share(found / whole) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::recall::lexical::idf;
    use crate::recall::terms::terms;
    use crate::text::Analyzer;
    use proptest::prelude::*;

    const THRESHOLD: f64 = 0.7;

    /// The score by words alone of one text among others.
    fn by_words(query: &str, text: &str, others: &[&str]) -> f64 {
        let analyzer = Analyzer::new("english").unwrap();
        let held =
            |text: &str| terms(&analyzer, text).counts.into_iter().map(|(hash, _)| hash).collect::<Vec<_>>();
        let texts: Vec<Vec<u64>> = others.iter().chain([&text]).map(|text| held(text)).collect();
        let query = held(query);
        let worth = |hash: &u64| idf(texts.len(), texts.iter().filter(|text| text.contains(hash)).count());
        let found = query.iter().filter(|hash| texts[texts.len() - 1].contains(hash)).map(worth).sum();
        score(0.0, coverage(found, query.iter().map(worth))).score
    }

    const OTHERS: [&str; 4] = [
        "The user prefers dark mode",
        "The service is deployed on Tuesdays",
        "Use tabs for indentation in every service",
        "The user likes concise answers",
    ];

    #[test]
    fn an_entry_that_holds_an_identifier_is_found_by_it() {
        for query in ["ADR-042", "adr-042", "what is ADR-042?"] {
            assert!(by_words(query, "ADR-042: log as JSON", &OTHERS) >= THRESHOLD, "{query}");
        }
        assert!(by_words("getUserName", "fix getUserName() for guests", &OTHERS) >= THRESHOLD);
        assert!(by_words("where is src/main.rs", "the entry point is src/main.rs", &OTHERS) >= THRESHOLD);
        assert!(
            by_words("Kowalczyk", "Ask Ms Kowalczyk about invoices", &[]) >= THRESHOLD,
            "alone in its scope"
        );
    }

    #[test]
    fn one_common_word_is_not_enough() {
        assert!(by_words("which database does the service use", OTHERS[1], &OTHERS) < 0.5);
        assert!(by_words("the user's timezone", OTHERS[0], &OTHERS) < 0.5);
    }

    #[test]
    fn both_kinds_of_evidence_add_up() {
        let both = score(0.5, 0.5);
        assert!(both.score > score(0.5, 0.0).score && both.score > score(0.0, 0.5).score);
        assert_eq!(score(0.6, 0.15).score, 0.6, "words that texts share by chance say nothing");
    }

    proptest! {
        #[test]
        fn words_only_ever_raise_a_score(similarity in prop::num::f64::ANY, coverage in prop::num::f64::ANY) {
            let evidence = score(similarity, coverage);
            prop_assert!(evidence.score >= evidence.similarity);
            prop_assert!((0.0..=1.0).contains(&evidence.score));
        }

        #[test]
        fn more_of_either_never_lowers_a_score(
            similarity in 0.0..=1.0f64, coverage in 0.0..=1.0f64, more in 0.0..=1.0f64
        ) {
            let least = score(similarity, coverage).score - 1e-12;
            prop_assert!(score(similarity.max(more), coverage).score >= least);
            prop_assert!(score(similarity, coverage.max(more)).score >= least);
        }
    }
}
