//! What a word in common is worth.

/// A word is judged as if this many more texts were there without it. Otherwise three texts would make their every word a
/// common one, and a word that none of them has worth more than all they share with a query.
const UNSEEN_TEXTS: f64 = 100.0;

/// What a term is worth for being rare, where `found` of `texts` texts hold it. Always above 0.
pub fn idf(texts: usize, found: usize) -> f64 {
    let found_in = found as f64;
    let without = texts.saturating_sub(found) as f64 + UNSEEN_TEXTS;
    (1.0 + (without + 0.5) / (found_in + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_word_no_text_has_does_not_outweigh_the_words_a_few_texts_share() {
        let (shared, unknown) = (idf(1, 1), idf(1, 0));
        assert!(shared < unknown && unknown < 1.3 * shared, "{shared} and {unknown}");
    }

    proptest! {
        #[test]
        fn rarer_words_are_worth_more(texts in 1..1_000_000usize, one in 0..1_000_000usize, other in 0..1_000_000usize) {
            let (rare, common) = (one.min(other).min(texts), one.max(other).min(texts));
            prop_assert!(idf(texts, rare) >= idf(texts, common));
            prop_assert!(idf(texts, common) > 0.0);
        }

        #[test]
        fn counts_that_contradict_each_other_do_no_harm(texts: usize, found: usize) {
            prop_assert!(idf(texts, found).is_finite() && idf(texts, found) >= 0.0);
        }
    }
}
