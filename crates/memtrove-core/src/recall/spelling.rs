//! Words that somebody may have mistyped: what no text has is read as what some text has, if a letter makes the difference.
//!
//! One letter more, less or another, or two neighbours changed over, but for the first letter, which people get right. Letters are
//! those from a to z: the words of texts are kept as hashes, so all that may be meant are tried.

use super::terms::hash;
use crate::text::Analyzer;
use std::collections::HashSet;

/// Shorter words have too many neighbours that mean something else.
const LEAST_LETTERS: usize = 5;
/// Names differ in a letter, so only long ones are read as others.
const LEAST_LETTERS_OF_NAMES: usize = 7;
const MOST_LETTERS: usize = 24;

/// A word of a query as it was written, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenWord {
    /// The term that it is.
    pub term: u64,
    /// The word.
    pub word: String,
    /// Its stem.
    pub stem: String,
}

impl WrittenWord {
    /// A word that may be mistyped, if it may.
    pub(super) fn new(analyzer: &Analyzer, word: String, is_name: bool) -> Option<Self> {
        let least = if is_name { LEAST_LETTERS_OF_NAMES } else { LEAST_LETTERS };
        let is_usual = (least..=MOST_LETTERS).contains(&word.len()) && word.bytes().all(is_letter);
        let stem = analyzer.stem(&word).unwrap_or_else(|| word.clone());
        is_usual.then(|| Self { term: hash(&stem), word, stem })
    }

    /// The terms of what may be meant, each once.
    pub fn meant(&self, analyzer: &Analyzer) -> Vec<u64> {
        let mut known = HashSet::from([self.term]);
        let terms = neighbours(&self.word)
            .into_iter()
            .map(|word| hash(analyzer.stem_anew(&word).as_deref().unwrap_or(&word)));
        terms.filter(|term| known.insert(*term)).collect()
    }
}

/// All that a letter makes of a word of letters from a to z, but for its first one.
fn neighbours(word: &str) -> Vec<String> {
    let letters = || (b'a'..=b'z').map(char::from);
    let mut all = Vec::with_capacity(54 * word.len() + 25);
    for at in 1..=word.len() {
        let (before, after) = word.split_at(at);
        all.extend(letters().map(|letter| format!("{before}{letter}{after}")));
        let mut rest = after.chars();
        if let Some(first) = rest.next() {
            let rest = rest.as_str();
            all.push(format!("{before}{rest}"));
            all.extend(letters().filter(|one| *one != first).map(|one| format!("{before}{one}{rest}")));
            if let Some(second) = rest.chars().next() {
                all.push(format!("{before}{second}{first}{}", &rest[1..]));
            }
        }
    }
    all
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::recall::terms::query_for_entries;
    use proptest::prelude::*;

    /// Whether a word of a query may stand for one of a text.
    fn may_mean(query: &str, text: &str) -> bool {
        let analyzer = Analyzer::new("english").unwrap();
        let meant = query_for_entries(&analyzer, text).words;
        let asked = query_for_entries(&analyzer, query);
        asked.written.iter().any(|one| one.meant(&analyzer).iter().any(|term| meant.contains(term)))
    }

    #[test]
    fn a_word_is_found_though_a_letter_is_wrong() {
        for (query, text) in [
            ("the cemetary", "cemetery"),
            ("occurence", "occurrences"),
            ("pavillion", "pavilion"),
            ("flourescent tubes", "a fluorescent tube"),
            ("what does Kuberentes evict", "Kubernetes"),
            ("shceduler", "The scheduler drops jobs"),
            ("certifcates", "certificate"),
        ] {
            assert!(may_mean(query, text), "{query}");
        }
    }

    #[test]
    fn short_words_names_and_identifiers_are_not_read_as_others() {
        for (query, text) in [
            ("the care", "the cars"),
            ("Where does Jonna live?", "Donna"),
            ("INV-20261", "INV-20262"),
            ("user_naem", "user_name"),
            ("tournament", "turnement"),
            ("vegan", "began"),
        ] {
            assert!(!may_mean(query, text), "{query}");
        }
    }

    proptest! {
        #[test]
        fn neighbours_are_words_of_letters_one_letter_apart(word in "[a-z]{5,24}") {
            let neighbours = neighbours(&word);
            prop_assert!(neighbours.len() <= 54 * word.len() + 25);
            for other in neighbours {
                prop_assert!(other.len().abs_diff(word.len()) <= 1 && other.bytes().all(is_letter));
                prop_assert_eq!(other.bytes().next(), word.bytes().next());
                // What is equal at the beginning and at the end leaves two letters at most.
                let before = other.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
                let after = other[before.min(other.len())..].bytes().rev().zip(word[before.min(word.len())..].bytes().rev());
                let after = after.take_while(|(a, b)| a == b).count();
                prop_assert!(word.len() - before - after <= 2 && other.len() - before - after <= 2);
            }
        }

        #[test]
        fn who_mistypes_a_letter_finds_the_word(
            word in "[a-z]{6,24}", at in 1..6usize, letter in "[a-z]", which in 0..3usize
        ) {
            let mut mistyped = word.clone();
            match which {
                0 => { mistyped.remove(at); }
                1 => mistyped.insert_str(at, &letter),
                _ => mistyped.replace_range(at..=at, &letter),
            }
            prop_assert!(mistyped == word || neighbours(&mistyped).contains(&word));
        }
    }
}
