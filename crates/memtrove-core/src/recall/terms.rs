//! Which words a text is ranked by.
//!
//! A word counts as its stem alone. Identifiers, paths and versions (`user_id`, `src/main.rs`, `ADR-042`, `v1.2.3`,
//! `getUserName`) count as a whole and by their parts: the whole is rare and so worth most, the parts find it from afar.
//! Scripts without spaces count as pairs of characters.

use super::fusion::MAX_TERMS;
use super::stop_words;
use crate::text::{Analyzer, fold, humps, is_unspaced, spans};
use std::ops::Range;

/// What may stand between the parts of one identifier.
const JOINTS: [&str; 8] = ["_", "-", ".", "/", "\\", ":", "::", "@"];

/// The terms of a text, each by a hash that never changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Each term once, with how often it stands there; sorted by hash.
    pub counts: Vec<(u64, u32)>,
    /// How many terms the text has, repeats included.
    pub length: u32,
}

/// Analyses a text for ranking.
pub fn terms(analyzer: &Analyzer, text: &str) -> Terms {
    let mut hashes = Vec::with_capacity(text.len() / 6);
    scan(analyzer, text, |term| hashes.push(hash(term)));
    let length = hashes.len() as u32;
    hashes.sort_unstable();
    let counts = hashes.chunk_by(|one, other| one == other).map(|run| (run[0], run.len() as u32)).collect();
    Terms { counts, length }
}

/// The terms of a query, each once, in the order in which they stand there; as many as the ranker can tell apart.
pub fn query(analyzer: &Analyzer, text: &str) -> Vec<u64> {
    let mut hashes = Vec::new();
    scan(analyzer, text, |term| {
        let hash = hash(term);
        if hashes.len() < MAX_TERMS && !hashes.contains(&hash) {
            hashes.push(hash);
        }
    });
    hashes
}

fn scan(analyzer: &Analyzer, text: &str, mut each: impl FnMut(&str)) {
    let mut whole = Whole::default();
    let mut pair_end = None;
    spans(text, |at, part| {
        let written = &text[part.clone()];
        if written.starts_with(is_unspaced) {
            whole.finish(text, &mut each);
            // The last character of a run is in the pair before it.
            if pair_end != Some(part.end)
                && let Some(pair) = fold(written)
            {
                each(&pair);
            }
            pair_end = Some(part.end);
            return;
        }
        whole.extend(text, &at, &mut each);
        for word in std::iter::once(written).chain(humps(written)).filter_map(fold) {
            if !stop_words::contains(analyzer.language(), &word) {
                each(analyzer.stem(&word).as_deref().unwrap_or(&word));
            }
        }
    });
    whole.finish(text, &mut each);
}

/// Words that joints hold together.
#[derive(Default)]
struct Whole {
    range: Range<usize>,
    words: usize,
}

impl Whole {
    /// Takes one more word in, or begins anew with it.
    fn extend(&mut self, text: &str, word: &Range<usize>, each: &mut impl FnMut(&str)) {
        if self.words == 0 || !JOINTS.contains(&&text[self.range.end..word.start]) {
            self.finish(text, each);
            self.range.start = word.start;
        }
        self.range.end = word.end;
        self.words += 1;
    }

    fn finish(&mut self, text: &str, each: &mut impl FnMut(&str)) {
        if self.words > 1
            && let Some(term) = fold(&text[self.range.clone()])
        {
            each(&term);
        }
        self.words = 0;
    }
}

/// FNV-1a: the same on every machine and in every version, for hashes are stored.
fn hash(term: &str) -> u64 {
    term.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn english() -> Analyzer {
        Analyzer::new("english").unwrap()
    }

    fn written(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        scan(&english(), text, |term| terms.push(term.to_owned()));
        terms
    }

    #[test]
    fn words_count_as_stems_and_stop_words_not_at_all() {
        assert_eq!(written("What were the runners running for?"), ["runner", "run"]);
        assert_eq!(written("Isn't it Caroline's café"), ["carolin", "cafe"]);
        assert!(written("What is it?").is_empty());
    }

    #[test]
    fn identifiers_count_whole_and_by_their_parts() {
        assert_eq!(written("user_id"), ["user", "id", "user_id"]);
        assert_eq!(written("src/main.rs"), ["src", "main", "rs", "src/main.rs"]);
        assert_eq!(
            written("see ADR-042, v1.2.3."),
            ["see", "adr", "042", "adr-042", "v1", "2", "3", "v1.2.3"]
        );
        assert_eq!(
            written("std::fmt getUserName"),
            ["std", "fmt", "std::fmt", "getusernam", "get", "user", "name"]
        );
        assert_eq!(written("over. Then - so: done"), ["done"], "sentences are not held together");
    }

    #[test]
    fn scripts_without_spaces_count_as_pairs() {
        assert_eq!(written("东京塔"), ["东京", "京塔"]);
        assert_eq!(written("会"), ["会"]);
        assert_eq!(written("去 Tokyo塔"), ["去", "tokyo", "塔"]);
    }

    #[test]
    fn hashes_never_change() {
        assert_eq!(terms(&english(), "a").counts, []);
        assert_eq!(query(&english(), "foobar"), [0x85944171f73967e8], "the published value of FNV-1a");
    }

    #[test]
    fn a_query_keeps_its_order_and_says_everything_once() {
        let [whale, ship] = ["whale", "ship"].map(|word| query(&english(), word)[0]);
        assert_eq!(query(&english(), "whales, ships and a whale"), [whale, ship]);
        let long: String = (0..200).map(|number| format!("w{number} ")).collect();
        assert_eq!(query(&english(), &long).len(), MAX_TERMS);
    }

    proptest! {
        #[test]
        fn a_text_has_the_terms_of_its_own_words(text in "\\PC{0,120}") {
            let whole = terms(&english(), &text);
            prop_assert_eq!(whole.length, whole.counts.iter().map(|(_, count)| count).sum::<u32>());
            prop_assert!(whole.counts.is_sorted_by(|one, other| one.0 < other.0));
            for hash in query(&english(), &text) {
                prop_assert!(whole.counts.binary_search_by_key(&hash, |(hash, _)| *hash).is_ok());
            }
        }

        #[test]
        fn case_makes_no_difference_to_ordinary_words(text in "[a-zäöü ]{0,60}") {
            prop_assert_eq!(terms(&english(), &text), terms(&english(), &text.to_uppercase()));
        }
    }
}
