//! How text becomes searchable: words, stems, n-grams, and the fragment that shows why something was found.
//!
//! Analysis happens here and not in an engine, so that every engine finds the same things and a highlight marks exactly
//! what matched. A word is indexed as it is written (folded) and, where it differs, as its stem; an identifier like
//! `getUserName` also by its parts. Scripts without spaces are indexed as overlapping pairs of characters.

use crate::recall::passages::sentence_ends;
use rust_stemmers::{Algorithm, Stemmer};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;

/// Fragments shown to people have at most this many words.
const FRAGMENT_WORDS: usize = 40;
/// This many words stand before the first match of a fragment.
const LEAD_WORDS: usize = 8;
/// More words make a search slower, not better.
const MAX_QUERY_WORDS: usize = 32;
/// Longer words are cut: they are blobs, not words.
const MAX_WORD_CHARS: usize = 64;

/// How soon more of the same word stops counting.
const SATURATION: f64 = 1.2;
/// How much the length of a text counts.
const LENGTH_WEIGHT: f64 = 0.4;
/// A text of this many words is neither long nor short.
const USUAL_LENGTH: f64 = 60.0;

/// Turns text into terms, for documents and queries alike.
pub struct Analyzer {
    stemmer: Option<Stemmer>,
    language: Option<&'static str>,
}

/// How many stems a thread remembers.
const REMEMBERED_STEMS: usize = 4096;

/// The stems of one language.
type Stems = (Option<&'static str>, HashMap<Box<str>, Option<Box<str>>>);

thread_local! {
    static STEMS: RefCell<Stems> = RefCell::default();
}

/// The languages that have stems.
const LANGUAGES: [(&str, Algorithm); 18] = [
    ("arabic", Algorithm::Arabic),
    ("danish", Algorithm::Danish),
    ("dutch", Algorithm::Dutch),
    ("english", Algorithm::English),
    ("finnish", Algorithm::Finnish),
    ("french", Algorithm::French),
    ("german", Algorithm::German),
    ("greek", Algorithm::Greek),
    ("hungarian", Algorithm::Hungarian),
    ("italian", Algorithm::Italian),
    ("norwegian", Algorithm::Norwegian),
    ("portuguese", Algorithm::Portuguese),
    ("romanian", Algorithm::Romanian),
    ("russian", Algorithm::Russian),
    ("spanish", Algorithm::Spanish),
    ("swedish", Algorithm::Swedish),
    ("tamil", Algorithm::Tamil),
    ("turkish", Algorithm::Turkish),
];

/// A query after analysis: for each word the terms that may stand for it.
pub type Words = Vec<Vec<String>>;

struct Token<'a> {
    written: &'a str,
    word: String,
    stem: Option<String>,
}

impl Analyzer {
    /// An analyser for a language named in English (`english`, `german`, …); `none` does not stem. `None` when the
    /// language is unknown.
    pub fn new(language: &str) -> Option<Self> {
        if ["none", "simple"].iter().any(|none| language.eq_ignore_ascii_case(none)) {
            return Some(Self { stemmer: None, language: None });
        }
        let (language, algorithm) =
            LANGUAGES.into_iter().find(|(name, _)| language.eq_ignore_ascii_case(name))?;
        Some(Self { stemmer: Some(Stemmer::create(algorithm)), language: Some(language) })
    }

    /// The terms of a document, separated by spaces.
    pub fn terms(&self, text: &str) -> String {
        let mut terms = String::with_capacity(text.len() + text.len() / 4);
        let mut add = |word: String, stem: Option<String>| {
            for term in std::iter::once(word).chain(stem) {
                terms.push_str(&term);
                terms.push(' ');
            }
        };
        self.tokens(text, |token| {
            for part in humps(token.written) {
                if let Some(word) = fold(part) {
                    let stem = self.stem(&word);
                    add(word, stem);
                }
            }
            add(token.word, token.stem);
        });
        terms
    }

    /// The words of a query, at most 32 of them. Empty when nothing in it can be searched for.
    pub fn query(&self, text: &str) -> Words {
        let mut words = Vec::new();
        self.tokens(text, |token| {
            if words.len() == MAX_QUERY_WORDS {
                return;
            }
            let alternatives: Vec<String> = std::iter::once(token.word).chain(token.stem).collect();
            if !words.contains(&alternatives) {
                words.push(alternatives);
            }
        });
        words
    }

    /// Judges how well texts answer a query.
    pub fn scorer<'a>(&'a self, query: &'a Words) -> Scorer<'a> {
        let beginnings = query.iter().flatten().filter_map(|term| Beginning::of(term)).collect();
        Scorer { analyzer: self, query, beginnings }
    }

    /// The part of a text around what a query matched, matches wrapped in `**`: the part where the query's words are worth most
    /// that stand there. `worth` has a number for each word of the query; one that is worth nothing is not marked.
    pub fn highlight(&self, text: &str, query: &Words, worth: &[f64]) -> String {
        let scorer = self.scorer(query);
        let mut tokens = Vec::new();
        spans(text, |at, part| {
            let word = scorer.matching(&text[part]);
            tokens.push(ShownWord {
                at,
                word: word.filter(|word| worth.get(*word).is_some_and(|worth| *worth > 0.0)),
            });
        });
        let sentences = sentences(text, &tokens);
        let window = fragment(&tokens, &sentences, worth);
        let (Some(start), Some(end)) = (tokens[window.clone()].first(), tokens[window.clone()].last()) else {
            return String::new();
        };
        // A fragment that reaches an end of the text keeps what stands there, brackets for instance; one that ends with a
        // sentence its full stop.
        let from = if window.start == 0 { 0 } else { start.at.start };
        let stop = sentences.iter().find(|sentence| sentence.words.end == window.end);
        let to = stop.map_or(end.at.end, |sentence| sentence.end);
        mark(text, from..to, &tokens[window])
    }

    /// The language whose stems and stop words are known.
    pub(crate) fn language(&self) -> Option<&'static str> {
        self.language
    }

    fn tokens<'a>(&self, text: &'a str, mut each: impl FnMut(Token<'a>)) {
        spans(text, |at, part| {
            let written = &text[part.clone()];
            if let Some(word) = fold(written) {
                // A pair of characters is no word that could have a stem.
                let stem = if part == at { self.stem(&word) } else { None };
                each(Token { written, word, stem });
            }
        });
    }

    /// The stem of a word that is likely no word, so that it is not worth remembering.
    pub(crate) fn stem_anew(&self, word: &str) -> Option<String> {
        Some(self.stemmer.as_ref()?.stem(word).into_owned()).filter(|stem| !stem.is_empty())
    }

    /// The stem of a word, where it differs. Few words make most of every text, so the last ones are remembered: stemming
    /// was a tenth of the cost of an append.
    pub(crate) fn stem(&self, word: &str) -> Option<String> {
        let stemmer = self.stemmer.as_ref()?;
        STEMS.with_borrow_mut(|(language, stems)| {
            if *language != self.language || stems.len() > REMEMBERED_STEMS {
                stems.clear();
                *language = self.language;
            }
            if let Some(stem) = stems.get(word) {
                return stem.as_deref().map(str::to_owned);
            }
            let stem = stemmer.stem(word);
            let stem = (stem != word && !stem.is_empty()).then(|| stem.into_owned());
            stems.insert(word.into(), stem.as_deref().map(Into::into));
            stem
        })
    }
}

/// Finds the words of a text: where each stands, and which part of the text makes its term. They differ in runs without
/// spaces, where each character makes a term together with its successor, and the last one alone: then one character, as
/// a prefix, finds every place it stands at, and two find exactly their sequence.
pub(crate) fn spans(text: &str, mut each: impl FnMut(Range<usize>, Range<usize>)) {
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if !c.is_alphanumeric() {
            continue;
        }
        let mut end = start + c.len_utf8();
        if !is_unspaced(c) {
            while let Some((at, next)) = chars.next_if(|(_, n)| is_word(*n) && !is_unspaced(*n)) {
                end = at + next.len_utf8();
            }
            each(start..end, start..end);
            continue;
        }
        let mut at = start;
        while let Some((next_at, next)) = chars.next_if(|(_, n)| n.is_alphanumeric() && is_unspaced(*n)) {
            let next_end = next_at + next.len_utf8();
            each(at..end, at..next_end);
            (at, end) = (next_at, next_end);
        }
        each(at..end, at..end);
    }
}

/// The parts of an identifier that is written with humps (`getUserName`, `HTTPServer`); none of an ordinary word, nor of
/// one so long that it is a blob. A part of one letter says nothing.
pub(crate) fn humps(word: &str) -> impl Iterator<Item = &str> {
    let is_identifier = word.len() <= MAX_WORD_CHARS && word.chars().skip(1).any(char::is_uppercase);
    let mut rest = if is_identifier { word } else { "" };
    let parts = std::iter::from_fn(move || {
        let (part, after) = rest.split_at(hump_end(rest));
        rest = after;
        (!part.is_empty()).then_some(part)
    });
    // All in capitals is one hump, and then no part.
    parts.filter(move |part| part.len() < word.len() && part.chars().nth(1).is_some())
}

/// Where the first hump ends: before a capital that follows a small letter, or that a small letter follows.
fn hump_end(word: &str) -> usize {
    let mut chars = word.char_indices().peekable();
    let mut before = None;
    while let Some((at, c)) = chars.next() {
        let begins = |before: char| {
            before.is_lowercase()
                || before.is_numeric()
                || chars.peek().is_some_and(|(_, next)| next.is_lowercase())
        };
        if c.is_uppercase() && before.is_some_and(begins) {
            return at;
        }
        before = Some(c);
    }
    word.len()
}

/// How much a word counts towards a query's word: most when it is that word, less when it shares its stem, least when it
/// only begins like it.
fn likeness(word: &str, stem: Option<&str>, alternatives: &[String]) -> f64 {
    let is = |term: &str| alternatives.iter().any(|a| a == term);
    let begins = |term: &str| alternatives.iter().any(|a| term.starts_with(a.as_str()));
    match alternatives.first() {
        Some(asked) if asked == word => 1.0,
        _ if is(word) || stem.is_some_and(is) => 0.8,
        _ if begins(word) || stem.is_some_and(begins) => 0.4,
        _ => 0.0,
    }
}

/// Judges how well texts answer one query.
pub struct Scorer<'a> {
    analyzer: &'a Analyzer,
    query: &'a Words,
    beginnings: Vec<Beginning>,
}

impl Scorer<'_> {
    /// 0 where no word of the query is there, towards 1 the more often and the more exactly its words are there and the
    /// shorter the text is.
    ///
    /// Only the text and the query count. Rarity is left out on purpose: every hit has every word, so it would hardly
    /// change their order, and it would let what others store move everybody's ranking from one page to the next.
    pub fn score(&self, text: &str) -> f64 {
        let mut found = vec![0.0; self.query.len()];
        let mut length = 0.0;
        spans(text, |_, part| {
            length += 1.0;
            let written = &text[part];
            for form in std::iter::once(written).chain(humps(written)) {
                if let Some((word, stem)) = self.terms(form) {
                    for (weight, alternatives) in found.iter_mut().zip(self.query) {
                        *weight += likeness(&word, stem.as_deref(), alternatives);
                    }
                }
            }
        });
        let damping = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / USUAL_LENGTH);
        let sum: f64 = found.iter().map(|weight| weight / (weight + damping)).sum();
        sum / found.len().max(1) as f64
    }
}

impl Scorer<'_> {
    /// The word of the query that a word, or a part of it, is found by.
    fn matching(&self, written: &str) -> Option<usize> {
        std::iter::once(written).chain(humps(written)).find_map(|form| {
            let (word, stem) = self.terms(form)?;
            let likeness = |alternatives: &Vec<String>| likeness(&word, stem.as_deref(), alternatives);
            let all = self.query.iter().map(likeness).enumerate().filter(|(_, likeness)| *likeness > 0.0);
            // The first of those that it is most like.
            all.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(number, _)| number)
        })
    }

    /// The terms of a word, unless its beginning already says that it cannot match: most words are passed over so.
    fn terms(&self, word: &str) -> Option<(String, Option<String>)> {
        if !self.beginnings.iter().any(|beginning| beginning.fits(word)) {
            return None;
        }
        let word = fold(word)?;
        let stem = self.analyzer.stem(&word);
        Some((word, stem))
    }
}

/// The first two letters of a term. A stem keeps those of its word, but for a handful of words like "dying".
struct Beginning(u8, Option<u8>);

impl Beginning {
    fn of(term: &str) -> Option<Self> {
        let mut bytes = term.bytes();
        Some(Self(bytes.next()?, bytes.next()))
    }

    /// Folding changes letters beyond ASCII, so those words are never passed over.
    fn fits(&self, word: &str) -> bool {
        let mut bytes = word.bytes();
        let (first, second) = (bytes.next().unwrap_or_default(), bytes.next().unwrap_or_default());
        !word.is_ascii()
            || (first.to_ascii_lowercase() == self.0
                && self.1.is_none_or(|wanted| second.to_ascii_lowercase() == wanted))
    }
}

/// Lower case, without the accents that people leave out when they search.
pub(crate) fn fold(word: &str) -> Option<String> {
    if word.is_ascii() {
        let end = word.len().min(MAX_WORD_CHARS);
        return Some(word[..end].to_ascii_lowercase());
    }
    let folded: String = word
        .nfkd()
        .filter(|c| !is_accent(*c))
        .flat_map(char::to_lowercase)
        .filter(|c| c.is_alphanumeric() || !c.is_ascii())
        .nfc()
        .filter(|c| !c.is_whitespace())
        .take(MAX_WORD_CHARS)
        .collect();
    (!folded.is_empty()).then_some(folded)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_accent(c)
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Scripts that are written without spaces between words.
pub fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'        // Thai, Lao
        | '\u{1000}'..='\u{109f}'      // Myanmar
        | '\u{1780}'..='\u{17ff}'      // Khmer
        | '\u{3040}'..='\u{30ff}'      // Hiragana, Katakana
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'      // Han
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9d}'
        | '\u{20000}'..='\u{3ffff}')
}

/// A word of a text that is shown.
struct ShownWord {
    at: Range<usize>,
    /// The word of the query that it matches.
    word: Option<usize>,
}

/// A sentence of a text that is shown.
struct ShownSentence {
    /// Its words, which are some.
    words: Range<usize>,
    /// Its end in the text.
    end: usize,
}

fn sentences(text: &str, tokens: &[ShownWord]) -> Vec<ShownSentence> {
    let mut sentences: Vec<ShownSentence> = Vec::new();
    let mut start = 0;
    for end in sentence_ends(text).chain([text.len()]) {
        let count = tokens[start..].iter().take_while(|token| token.at.start < end).count();
        match sentences.last_mut() {
            Some(last) if count == 0 => last.end = end,
            _ if count == 0 => {}
            _ => sentences.push(ShownSentence { words: start..start + count, end }),
        }
        start += count;
    }
    sentences
}

/// The words of a text that are shown: of the sentences that stand together and fit, those where the words of the query are worth
/// most, each once; of equals the fewest, and the first; with as many around them as fit. Of a sentence that does not fit a part.
fn fragment(tokens: &[ShownWord], sentences: &[ShownSentence], worth: &[f64]) -> Range<usize> {
    if tokens.len() <= FRAGMENT_WORDS {
        return 0..tokens.len();
    }
    let words = |run: &Range<usize>| sentences[run.start].words.start..sentences[run.end - 1].words.end;
    let (mut best, mut most) = (0..1, 0.0);
    let mut known = vec![false; worth.len()];
    for first in 0..sentences.len() {
        known.fill(false);
        let mut sum = 0.0;
        for last in first..sentences.len() {
            if last > first && words(&(first..last + 1)).len() > FRAGMENT_WORDS {
                break;
            }
            for word in tokens[sentences[last].words.clone()].iter().filter_map(|token| token.word) {
                sum += if known[word] { 0.0 } else { worth[word] };
                known[word] = true;
            }
            let run = first..last + 1;
            // Sums of the same words may differ by their order.
            let is_as_much = sum > 0.0 && sum > most - 1e-9 && words(&run).len() < words(&best).len();
            if sum > most + 1e-9 || is_as_much {
                (best, most) = (run, sum);
            }
        }
    }
    let shown = words(&best);
    if shown.len() > FRAGMENT_WORDS {
        let first = shown.start + densest_window(&tokens[shown], worth);
        return first..first + FRAGMENT_WORDS;
    }
    let fits = |run: &Range<usize>| run.end <= sentences.len() && words(run).len() <= FRAGMENT_WORDS;
    loop {
        let longer = [Some(best.start..best.end + 1), best.start.checked_sub(1).map(|start| start..best.end)];
        match longer.into_iter().flatten().find(fits) {
            Some(run) => best = run,
            None => return words(&best),
        }
    }
}

/// Where the window begins in which the words of the query are worth most, each once; the earliest of equals, with some words of
/// lead.
fn densest_window(tokens: &[ShownWord], worth: &[f64]) -> usize {
    if tokens.len() <= FRAGMENT_WORDS {
        return 0;
    }
    let mut counts = vec![0usize; worth.len()];
    tokens[..FRAGMENT_WORDS].iter().filter_map(|token| token.word).for_each(|word| counts[word] += 1);
    let (mut best, mut most) = (0, 0.0);
    for first in 0..=tokens.len() - FRAGMENT_WORDS {
        let sum =
            counts.iter().zip(worth).filter(|(count, _)| **count > 0).map(|(_, worth)| worth).sum::<f64>();
        if sum > most {
            (best, most) = (first, sum);
        }
        if let Some(word) = tokens[first].word {
            counts[word] -= 1;
        }
        if let Some(word) = tokens.get(first + FRAGMENT_WORDS).and_then(|token| token.word) {
            counts[word] += 1;
        }
    }
    let hit =
        tokens[best..].iter().position(|token| token.word.is_some()).map_or(best, |offset| best + offset);
    hit.saturating_sub(LEAD_WORDS)
        .min(tokens.len() - FRAGMENT_WORDS)
        .max(best.min(hit.saturating_sub(LEAD_WORDS)))
}

fn mark(text: &str, part: Range<usize>, tokens: &[ShownWord]) -> String {
    let mut out = String::with_capacity(part.len() + 16);
    let mut done = part.start;
    let mut tokens =
        tokens.iter().filter(|token| token.word.is_some()).map(|token| token.at.clone()).peekable();
    while let Some(mut hit) = tokens.next() {
        // Neighbouring characters of one run are one match.
        while let Some(next) = tokens.next_if(|next| next.start <= hit.end) {
            hit.end = hit.end.max(next.end);
        }
        out.push_str(&text[done..hit.start]);
        out.push_str("**");
        out.push_str(&text[hit.clone()]);
        out.push_str("**");
        done = hit.end;
    }
    out.push_str(&text[done..part.end]);
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn english() -> Analyzer {
        Analyzer::new("english").unwrap()
    }

    fn found(document: &str, query: &str) -> bool {
        let analyzer = english();
        let terms = analyzer.terms(document);
        let words = analyzer.query(query);
        !words.is_empty()
            && words.iter().all(|alternatives| {
                terms
                    .split(' ')
                    .any(|term| alternatives.iter().any(|prefix| term.starts_with(prefix.as_str())))
            })
    }

    #[test]
    fn words_are_found_by_prefix_stem_and_without_accents() {
        assert!(found("The runners were running late", "run"));
        assert!(found("The runners were running late", "runs late"));
        assert!(found("running", "runni"));
        assert!(found("Über den Café-Tisch", "uber cafe"));
        assert!(!found("The runners", "walk"));
        assert!(!found("The runners were late", "runners early"));
    }

    #[test]
    fn operator_characters_mean_nothing() {
        assert!(found("alpha beta", "\"alpha\" AND* (beta)") == found("alpha beta", "alpha and beta"));
        assert!(english().query("\"()*:^- +").is_empty());
    }

    #[test]
    fn scripts_without_spaces_are_found_by_part() {
        assert!(found("我们明天去东京开会", "东京"));
        assert!(found("我们明天去东京开会", "会"));
        assert!(!found("我们明天去东京开会", "京东"));
        assert!(found("東京タワー、きれい", "タワー"));
    }

    #[test]
    fn identifiers_are_found_whole_and_by_their_parts() {
        assert!(found("call getUserName() first", "getusername"));
        assert!(found("call getUserName() first", "user name"));
        assert!(found("an HTTPServer2Go thing", "http server2"));
        assert!(found("user_id in src/main.rs, see ADR-042 and v1.2.3", "user id main.rs ADR-042 v1.2.3"));
        assert!(!found("call getUserName() first", "ser"));
        assert!(!found("getusername", "name"), "nothing says where its parts begin");
    }

    #[test]
    fn humps_are_where_a_reader_sees_them() {
        let parts = |word| humps(word).collect::<Vec<_>>();
        assert_eq!(parts("getUserName"), ["get", "User", "Name"]);
        assert_eq!(parts("HTTPServer"), ["HTTP", "Server"]);
        assert_eq!(parts("utf8Text"), ["utf8", "Text"]);
        assert_eq!(parts("iPhone"), ["Phone"]);
        assert_eq!(parts("größeÄndern"), ["größe", "Ändern"]);
        for plain in ["user", "User", "NASA", "x", "", "東京"] {
            assert!(parts(plain).is_empty(), "{plain}");
        }
        assert!(parts(&"aB".repeat(40)).is_empty(), "a blob");
    }

    #[test]
    fn a_highlight_marks_what_matched() {
        let analyzer = english();
        let highlight = |text: &str, query: &str| {
            let words = analyzer.query(query);
            analyzer.highlight(text, &words, &vec![1.0; words.len()])
        };
        assert_eq!(highlight("The runners were running.", "run"), "The **runners** were **running**.");
        assert_eq!(highlight("我们明天去东京开会", "东京"), "我们明天去**东京**开会");
        assert_eq!(highlight("call getUserName() first", "user"), "call **getUserName**() first");
        let long = format!("{} needle {}", "hay ".repeat(500), "straw ".repeat(500));
        let fragment = highlight(&long, "needle");
        assert!(fragment.contains("**needle**"), "{fragment}");
        assert!((20..=50).contains(&fragment.split_whitespace().count()), "{fragment}");
    }

    #[test]
    fn a_highlight_shows_what_is_worth_most() {
        let analyzer = english();
        let words = analyzer.query("where is the needle of the barn");
        let text = format!(
            "The barn is where the hay of the barn is. {} Here the needle lies. {}",
            "hay ".repeat(60),
            "straw ".repeat(60)
        );
        let fragment = analyzer.highlight(&text, &words, &[0.0, 0.0, 0.0, 3.0, 0.0, 1.0]);
        assert!(fragment.contains("Here the **needle** lies."), "{fragment}");
        assert_eq!(analyzer.highlight("the barn", &words, &[0.0; 6]), "the barn", "nothing is worth marking");
    }

    #[test]
    fn a_highlight_is_of_whole_sentences() {
        let analyzer = english();
        let words = analyzer.query("needle barn");
        let idle = "Nobody knows what that is good for. ";
        let text =
            format!("{0}{0}{0}{0}{0}In the old barn, they say (but who?), lies a needle. {0}{0}{0}", idle);
        let fragment = analyzer.highlight(&text, &words, &[1.0, 1.0]);
        let answer = "In the old **barn**, they say (but who?), lies a **needle**.";
        assert_eq!(fragment, format!("{idle}{answer} {idle}{idle}{idle}").trim());
    }

    #[test]
    fn scores_follow_exactness_frequency_and_brevity() {
        let score = |text: &str, query: &str| english().scorer(&english().query(query)).score(text);
        assert_eq!(score("nothing of it", "whale"), 0.0);
        assert!(score("the whale", "whale") > score("the whales", "whale"), "exact before stem");
        assert!(score("the whales", "whale") > score("the whalebone", "whale"), "stem before prefix");
        assert!(score("whale whale song", "whale") > score("whale song here", "whale"), "more often");
        assert!(
            score("a whale", "whale") > score(&format!("a whale {}", "filler ".repeat(200)), "whale"),
            "shorter"
        );
        assert!(score("whale and ship", "whale ship") > score("whale and boat", "whale ship"));
        assert!(score("东京塔", "东京") > 0.0);
    }

    proptest! {
        #[test]
        fn a_score_is_between_0_and_1_and_positive_for_what_matches(text in "[a-zA-Zäöü東京 ]{1,60}", query in "[a-zäö東京]{1,6}") {
            let words = english().query(&query);
            let score = english().scorer(&words).score(&text);
            prop_assert!((0.0..1.0).contains(&score));
            if words.len() == 1 {
                prop_assert_eq!(score > 0.0, found(&text, &query));
            }
        }

        #[test]
        fn no_text_breaks_the_analysis(text in "\\PC{0,200}", query in "\\PC{0,20}") {
            let analyzer = english();
            let terms = analyzer.terms(&text);
            prop_assert!(terms.split(' ').all(|t| !t.contains('"')));
            let words = analyzer.query(&query);
            let _ = analyzer.highlight(&text, &words, &vec![1.0; words.len()]);
            let _ = analyzer.highlight(&text, &words, &[]);
        }

        #[test]
        fn every_document_is_found_by_its_own_words(text in "[a-zA-Zäöü ]{1,60}") {
            let words = english().query(&text);
            prop_assert!(words.is_empty() || found(&text, &text));
        }
    }
}
