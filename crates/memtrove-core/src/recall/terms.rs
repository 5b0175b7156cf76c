//! Which words a text is ranked by.
//!
//! A word counts as its stem alone. Identifiers, paths and versions (`user_id`, `src/main.rs`, `ADR-042`, `v1.2.3`,
//! `getUserName`) count as a whole and by their parts: the whole is rare and so worth most, the parts find it from afar.
//! Scripts without spaces count as pairs of characters.
//!
//! Entries that stand alone have *marks* besides: who says them, that they deny something, and identifiers without their
//! joints, so that `INV-2026` is found by `INV2026`, `user_id` by `userId` and `12,750` by `12750`.

use super::document::parts;
use super::forms;
use super::fusion::MAX_TERMS;
use super::spelling::WrittenWord;
use super::stop_words::Grammar;
use crate::text::{Analyzer, Words, fold, humps, is_unspaced, spans};
use std::collections::HashSet;
use std::ops::Range;

/// What may stand between the parts of one identifier.
const JOINTS: [&str; 8] = ["_", "-", ".", "/", "\\", ":", "::", "@"];
/// What may stand between the groups of digits of one number.
const DIGIT_JOINTS: [&str; 5] = [",", "'", "\u{2019}", " ", "\u{a0}"];
/// The term of a text that denies something, whichever word it does that with. No text has it as a word.
const NEGATION: &str = "\u{2}not";
/// A term that begins with it is the name of the one who says the text.
const SPEAKER: char = '\u{1}';
/// A longer query is cut.
const MOST_QUERY_TERMS: usize = 256;
/// No more words of a query are looked at to see whether they are mistyped.
const MOST_WRITTEN: usize = 64;
/// A query names no more people.
const MOST_NAMES: usize = 16;

/// The terms of a text, each by a hash that never changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Each term once, with how often it stands there; sorted by hash.
    pub counts: Vec<(u64, u32)>,
    /// How many terms the text has, repeats included.
    pub length: u32,
}

/// What an entry is found by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryTerms {
    /// The terms of all of it.
    pub whole: Terms,
    /// Of a long one, the terms of each of its pieces.
    pub pieces: Vec<Terms>,
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

/// Analyses an entry that stands alone: its words and its marks.
pub fn of_entry(analyzer: &Analyzer, text: &str) -> Terms {
    let mut found = terms(analyzer, text);
    let mut marks = marks(analyzer, text);
    marks.extend(parts(text).speaker.into_iter().flat_map(names));
    found.counts.extend(marks.into_iter().map(|mark| (mark, 1)));
    // The words stand before the marks, and a stable order leaves them there: a mark that is a word keeps the word's count.
    found.counts.sort_by_key(|(hash, _)| *hash);
    found.counts.dedup_by_key(|(hash, _)| *hash);
    found
}

/// The terms of a query, each once, in the order in which they stand there. [`worthiest`] says which of many count.
pub fn query(analyzer: &Analyzer, text: &str) -> Vec<u64> {
    all_of_query(analyzer, text)
}

/// Of the terms of a query the places of those that a ranker tells apart, in their order: as many as it can, those first that
/// some text has, and of these the rarest. `worth` and `found` are about each term.
pub fn worthiest(worth: &[f64], found: &[u64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..worth.len().min(found.len())).collect();
    if places.len() > MAX_TERMS {
        places.sort_by(|a, b| (found[*b] > 0).cmp(&(found[*a] > 0)).then(worth[*b].total_cmp(&worth[*a])));
        places.truncate(MAX_TERMS);
        places.sort_unstable();
    }
    places
}

/// What each word of a query is worth where it is shown, by the terms that have been weighed. Words of grammar are worth nothing,
/// unless there are no others.
pub fn worth_of_words(analyzer: &Analyzer, words: &Words, weighed: &[(u64, f64)]) -> Vec<f64> {
    let grammar = Grammar::of(analyzer.language());
    let worth = |alternatives: &Vec<String>| {
        let is_grammar = alternatives.first().is_some_and(|word| grammar.is_stop_word(word));
        let term = alternatives.last().map(|term| hash(term));
        let known = weighed.iter().find(|(hash, _)| Some(*hash) == term).map(|(_, worth)| *worth);
        if is_grammar { 0.0 } else { known.unwrap_or(1.0) }
    };
    let worth: Vec<f64> = words.iter().map(worth).collect();
    if worth.iter().any(|worth| *worth > 0.0) { worth } else { vec![1.0; words.len()] }
}

/// What entries that stand alone are searched by.
pub fn query_for_entries(analyzer: &Analyzer, text: &str) -> EntryQuery {
    let words = all_of_query(analyzer, text);
    let mut marks = marks(analyzer, text);
    // Names are written large, but for somebody who writes nothing large.
    let is_small = !text.contains(char::is_uppercase);
    let large = text.split_whitespace().map(|word| word.trim_start_matches(|c: char| !c.is_alphanumeric()));
    let large = large.filter(|word| is_small || word.starts_with(char::is_uppercase));
    marks.extend(large.flat_map(names).take(MOST_NAMES));
    let mut known: HashSet<u64> = words.iter().copied().collect();
    marks.retain(|mark| known.insert(*mark));
    marks.truncate(MOST_QUERY_TERMS);
    let of_word = |(word, term): (usize, &u64)| {
        let others = forms::others(analyzer.language(), *term);
        others.iter().map(move |term| WordForm { word, term: *term })
    };
    let mut forms: Vec<WordForm> = words.iter().enumerate().flat_map(of_word).collect();
    forms.retain(|form| known.insert(form.term));
    EntryQuery { written: written(analyzer, text), words, marks, forms }
}

/// The words of a query that may be mistyped. An identifier is meant as it is written.
fn written(analyzer: &Analyzer, text: &str) -> Vec<WrittenWord> {
    let grammar = Grammar::of(analyzer.language());
    let mut found: Vec<WrittenWord> = Vec::new();
    let mut sentence_begins = true;
    for part in text.split_whitespace() {
        let word = part.trim_matches(|c: char| !c.is_alphanumeric());
        let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("\u{2019}s")).unwrap_or(word);
        let is_name = !sentence_begins && word.starts_with(char::is_uppercase);
        sentence_begins = part.ends_with(['.', '?', '!']);
        let Some(word) = fold(word).filter(|_| word.chars().all(char::is_alphabetic)) else { continue };
        if found.len() == MOST_WRITTEN || grammar.is_stop_word(&word) {
            continue;
        }
        found.extend(WrittenWord::new(analyzer, word, is_name));
    }
    found
}

/// What entries are searched by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryQuery {
    /// The words of the query.
    pub words: Vec<u64>,
    /// What else is evidence where an entry has it. That no entry has it says nothing.
    pub marks: Vec<u64>,
    /// Other terms that say the same as one of the words.
    pub forms: Vec<WordForm>,
    /// The words as they were written, of those that may be mistyped.
    pub written: Vec<WrittenWord>,
}

/// A term that says what a word of a query says: "found" where that is "find".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordForm {
    /// Which of the words.
    pub word: usize,
    /// The term.
    pub term: u64,
}

impl EntryQuery {
    /// All terms: the words, the marks, and the other forms of the words.
    pub fn all(&self) -> Vec<u64> {
        let forms = self.forms.iter().map(|form| &form.term);
        self.words.iter().chain(&self.marks).chain(forms).copied().collect()
    }

    /// In how many texts each word stands in any of its forms, and each mark; in how many each of [`all`](Self::all) stands is given.
    pub fn frequencies(&self, all: &[u64]) -> Vec<u64> {
        let asked = self.words.len() + self.marks.len();
        let mut sums: Vec<u64> = all.iter().take(asked).copied().collect();
        sums.resize(asked, 0);
        for (form, frequency) in self.forms.iter().zip(all.iter().skip(asked)) {
            sums[form.word] = sums[form.word].saturating_add(*frequency);
        }
        sums
    }

    /// The words that may be mistyped, of those that stand in no text, each with its place.
    pub fn mistyped<'a>(&'a self, frequencies: &'a [u64]) -> impl Iterator<Item = (usize, &'a WrittenWord)> {
        let place = |one: &WrittenWord| self.words.iter().position(|term| *term == one.term);
        let written = self.written.iter().filter_map(move |one| Some((place(one)?, one)));
        written.filter(|(word, _)| frequencies.get(*word).is_none_or(|frequency| *frequency == 0))
    }
}

fn all_of_query(analyzer: &Analyzer, text: &str) -> Vec<u64> {
    let mut hashes = Vec::new();
    let mut known = HashSet::new();
    scan(analyzer, text, |term| {
        let hash = hash(term);
        if hashes.len() < MOST_QUERY_TERMS && known.insert(hash) {
            hashes.push(hash);
        }
    });
    hashes
}

/// Each word of a name as the mark of the one who speaks.
fn names(name: &str) -> Vec<u64> {
    let mut marks = Vec::new();
    spans(name, |_, part| {
        // Of "Caroline's" the rest is a letter.
        marks.extend(
            fold(&name[part]).filter(|word| word.len() > 1).map(|word| hash(&format!("{SPEAKER}{word}"))),
        );
    });
    marks
}

/// The identifiers of a text without their joints, and whether it denies something.
fn marks(analyzer: &Analyzer, text: &str) -> Vec<u64> {
    let mut marks = Vec::new();
    let grammar = Grammar::of(analyzer.language());
    let mut denies = false;
    let mut whole = Whole { groups_digits: true, ..Whole::default() };
    let mut note = |term: &str| {
        let joined: String = term.chars().filter(|c| c.is_alphanumeric()).collect();
        marks.push(hash(analyzer.stem(&joined).as_deref().unwrap_or(&joined)));
    };
    spans(text, |at, part| {
        let written = &text[part.clone()];
        if written.starts_with(is_unspaced) {
            whole.finish(text, &mut note);
            return;
        }
        whole.extend(text, &at, &mut note);
        denies = denies || is_shortened_not(analyzer, &text[part.end..]) || grammar.denies(written);
    });
    whole.finish(text, &mut note);
    marks.extend(denies.then(|| hash(NEGATION)));
    marks
}

/// Whether what follows a word makes it "isn't" or "won't". By itself "won" denies nothing.
fn is_shortened_not(analyzer: &Analyzer, rest: &str) -> bool {
    let after = ["'t", "\u{2019}t"].iter().find_map(|not| rest.strip_prefix(not));
    analyzer.language() == Some("english")
        && after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
}

fn scan(analyzer: &Analyzer, text: &str, mut each: impl FnMut(&str)) {
    let grammar = Grammar::of(analyzer.language());
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
            if !grammar.is_stop_word(&word) {
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
    /// Whether groups of digits are held together too.
    groups_digits: bool,
    /// Whether it is groups of digits so far, of which the first has three at most.
    is_number: bool,
}

impl Whole {
    /// Takes one more word in, or begins anew with it.
    fn extend(&mut self, text: &str, word: &Range<usize>, each: &mut impl FnMut(&str)) {
        let written = &text[word.clone()];
        let is_digits = written.len() <= 3 && written.bytes().all(|byte| byte.is_ascii_digit());
        let between = &text[self.range.end.min(word.start)..word.start];
        let is_group = self.groups_digits
            && self.is_number
            && is_digits
            && written.len() == 3
            && DIGIT_JOINTS.contains(&between);
        if self.words == 0 || !(is_group || JOINTS.contains(&between)) {
            self.finish(text, each);
            self.range.start = word.start;
            self.is_number = is_digits;
        } else {
            self.is_number = is_group;
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
pub(super) fn hash(term: &str) -> u64 {
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

    /// Whether an entry has something that a query asks for besides its words.
    fn has_mark_of(entry: &str, query: &str) -> bool {
        let entry = of_entry(&english(), entry);
        let asked = query_for_entries(&english(), query);
        let marks = &asked.marks;
        entry.counts.iter().any(|(hash, _)| marks.contains(hash))
    }

    #[test]
    fn one_identifier_is_found_however_it_is_written() {
        for (one, other) in [
            ("INV-2026", "INV2026"),
            ("user_name", "userName"),
            ("get-user-name", "getUserName"),
            ("12,750", "12750"),
            ("12 750", "12750"),
            ("1,234,567", "1234567"),
            ("3'500", "3500"),
        ] {
            assert!(has_mark_of(other, one), "{one} asked, {other} written");
            let asked = query_for_entries(&english(), other).words;
            let written = of_entry(&english(), one);
            assert!(
                written.counts.iter().any(|(hash, _)| asked.contains(hash)),
                "{other} asked, {one} written"
            );
        }
        assert!(marks(&english(), "2024 300").is_empty(), "a year is no group of digits");
    }

    #[test]
    fn what_denies_counts_alike_whichever_word_does_it() {
        for text in ["does not eat fish", "doesn't eat fish", "never eats fish", "won\u{2019}t do"] {
            assert!(has_mark_of(text, "who does not cook?"), "{text}");
        }
        for text in ["he won the cup", "o'toole", "f'text'", "eats fish"] {
            assert!(!has_mark_of(text, "who does not cook?"), "{text}");
        }
    }

    #[test]
    fn who_says_something_is_a_mark_of_an_entry() {
        let said = "[8 May 2023] Caroline: Hey Mel!";
        assert!(has_mark_of(said, "What did Caroline say?") && has_mark_of(said, "caroline's dog"));
        assert!(!has_mark_of(said, "What did Mel say?"));
        assert_eq!(of_entry(&english(), said).length, terms(&english(), said).length);
    }

    #[test]
    fn a_form_of_a_word_is_asked_for_besides_it() {
        let asked = query_for_entries(&english(), "Who found the children and broke it?");
        let term = |word: &str| query(&english(), word)[0];
        let form = |word: usize, term| WordForm { word, term };
        assert_eq!(asked.words, ["found", "children", "broke"].map(term));
        let expected = [(0, "find"), (1, "child"), (2, "break"), (2, "broken")];
        assert_eq!(asked.forms, expected.map(|(word, other)| form(word, term(other))));
        let none = query_for_entries(&english(), "find and found");
        assert!(none.forms.is_empty(), "what is asked for already is not asked for again");
    }

    #[test]
    fn a_word_stands_where_one_of_its_forms_does() {
        let asked = query_for_entries(&english(), "find Anna's kettle");
        assert_eq!((asked.words.len(), asked.marks.len(), asked.forms.len()), (3, 1, 1));
        assert_eq!(asked.frequencies(&[2, 1, 0, 5, 3]), [5, 1, 0, 5]);
        let mistyped: Vec<_> = asked.mistyped(&[5, 1, 0, 5]).map(|(word, one)| (word, &*one.word)).collect();
        assert_eq!(mistyped, [(2, "kettle")]);
    }

    #[test]
    fn a_long_list_of_numbers_is_read_in_time_that_grows_with_it() {
        let text = "123 ".repeat(200_000);
        assert_eq!(marks(&english(), &text).len(), 1);
    }

    #[test]
    fn a_long_list_of_identifiers_is_read_in_time_that_grows_with_it() {
        let text: String = (0..100_000).map(|number| format!("{number}a.1 ")).collect();
        let timed = |read: fn(&Analyzer, &str) -> Terms| {
            let begun = std::time::Instant::now();
            (read(&english(), &text), begun.elapsed())
        };
        let (words, reading) = timed(terms);
        let (entry, marking) = timed(of_entry);
        assert!(entry.counts.len() > words.counts.len());
        assert!(entry.counts.is_sorted_by(|one, other| one.0 < other.0));
        assert!(marking < 4 * reading, "marks took {marking:?}, words {reading:?}");
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
        let long: String = (0..300).map(|number| format!("w{number} ")).collect();
        assert_eq!(query(&english(), &long).len(), MOST_QUERY_TERMS);
    }

    #[test]
    fn of_many_terms_the_rarest_count_that_some_text_has() {
        let worth: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(worthiest(&worth[..3], &[0, 0, 0]), [0, 1, 2], "all that can be told apart");
        let found: Vec<u64> = (0..100).map(|place| u64::from(place < 70)).collect();
        assert_eq!(worthiest(&worth, &found), (6..70).collect::<Vec<_>>());
        assert_eq!(worthiest(&worth, &[0; 100]), (36..100).collect::<Vec<_>>());
    }

    #[test]
    fn words_of_grammar_are_worth_nothing_beside_others() {
        let analyzer = english();
        let worth =
            |query: &str, weighed: &[(u64, f64)]| worth_of_words(&analyzer, &analyzer.query(query), weighed);
        let whale = query(&analyzer, "whale")[0];
        assert_eq!(worth("where is the whales ship", &[(whale, 3.5)]), [0.0, 0.0, 0.0, 3.5, 1.0]);
        assert_eq!(worth("what is it", &[]), [1.0; 3]);
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
