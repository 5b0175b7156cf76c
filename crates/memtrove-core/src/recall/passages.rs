//! Long texts: the pieces that they are searched by, and the passage of them that is shown.
//!
//! A text of 2,000 words is about many things, and what it means as a whole is none of them. So it is cut into pieces that
//! overlap, each as long as a paragraph, and a query is compared with each. Of what is found a passage is shown: whole
//! sentences around what matches.
//!
//! Length is counted in words. Scripts without spaces have none to count: there two characters are one.

use super::fusion::MAX_TERMS;
use super::relevance::Asked;
use super::terms::of_entry;
use crate::text::{Analyzer, is_unspaced};
use std::ops::Range;

/// A text of at most this many words is one piece, and a passage is no longer.
pub const WHOLE_WORDS: usize = 120;
/// A memory has at most this many pieces.
pub const MEMORY_PIECES: usize = 64;
/// How many words a piece has about.
const PIECE_WORDS: usize = 90;
/// The part of a piece that the next one may repeat.
const OVERLAP: usize = 3;
/// A longer run without a space is no word: it is cut after this many characters.
const WORD_CHARS: usize = 32;
/// Lengths are counted in this part of a word: what a character counts where there are no spaces.
const WORD: usize = 2;
/// A long text takes at least this many bytes: a letter for each word, and what parts it from the next.
pub const LONG_BYTES: usize = 2 * WHOLE_WORDS;

/// After these a full stop ends no sentence.
const SHORTENED: [&str; 12] =
    ["mr", "mrs", "ms", "dr", "prof", "st", "e.g", "i.e", "cf", "vs", "approx", "fig"];
/// What may stand between the end of a sentence and the space after it.
const CLOSING: [char; 12] = ['"', '\'', ')', ']', '”', '’', '»', '」', '』', '）', '】', '*'];

/// Whether a text has more than one piece.
pub fn is_long(text: &str) -> bool {
    if text.len() < LONG_BYTES || (text.is_ascii() && most_words(text) <= WHOLE_WORDS) {
        return false;
    }
    sentences(text).iter().map(|one| one.length).sum::<usize>() > WHOLE
}

/// The most words that a text in ASCII can have: what spaces part, and the parts of what is too long for a word.
fn most_words(text: &str) -> usize {
    text.split_whitespace().count() + text.len() / WORD_CHARS
}

/// Cuts a text into at most `most` pieces, each a range of its bytes. They come in its order, and each begins where the one
/// before it ends, or before that. A text that would have more gets longer ones.
pub fn cut(text: &str, most: usize) -> Vec<Range<usize>> {
    let sentences = sentences(text);
    let most = most.max(1);
    let mut size = PIECE_WORDS * WORD;
    loop {
        let pieces = pieces_of_size(&sentences, size);
        if pieces.len() <= most {
            return pieces.into_iter().map(|piece| bytes(&sentences, piece)).collect();
        }
        size += size * (pieces.len() - most) / most + 1;
    }
}

/// A text of this length is one piece.
const WHOLE: usize = WHOLE_WORDS * WORD;

/// The pieces of about this length, as ranges of sentences.
fn pieces_of_size(sentences: &[Sentence], size: usize) -> Vec<Range<usize>> {
    let mut left: usize = sentences.iter().map(|one| one.length).sum();
    let (mut pieces, mut start) = (Vec::new(), 0);
    // A last piece takes what would be too little for one more.
    while left > size + size / OVERLAP {
        let (mut end, mut length) = (start, 0);
        while end == start || length + sentences[end].length <= size {
            length += sentences[end].length;
            end += 1;
        }
        pieces.push(start..end);
        let next = end - repeated(&sentences[start + 1..=end], size);
        left -= sentences[start..next].iter().map(|one| one.length).sum::<usize>();
        start = next;
    }
    pieces.push(start..sentences.len());
    pieces
}

/// How many of the sentences before the last one a piece begins with that is made for the last.
fn repeated(sentences: &[Sentence], size: usize) -> usize {
    let Some((new, before)) = sentences.split_last() else { return 0 };
    let mut length = 0;
    let fits = |one: &&Sentence| {
        // One sentence may be longer than what is usually repeated.
        let is_little = length + one.length <= size / OVERLAP || (length == 0 && one.length <= size / 2);
        length += one.length;
        is_little && length + new.length <= size
    };
    before.iter().rev().take_while(fits).count()
}

/// Sentences as a range of bytes.
fn bytes(sentences: &[Sentence], range: Range<usize>) -> Range<usize> {
    let end_of =
        |number: usize| number.checked_sub(1).and_then(|at| sentences.get(at)).map_or(0, |one| one.end);
    end_of(range.start)..end_of(range.end)
}

/// A sentence, or a part of one that is no shorter than a piece. It begins where the one before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sentence {
    /// Its end in the text.
    end: usize,
    /// In parts of a [`WORD`].
    length: usize,
}

/// The sentences of a text; together they are the text.
fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut start = 0;
    for end in sentence_ends(text).chain([text.len()]) {
        if start < end {
            push_sentence(&text[start..end], start, &mut found);
            start = end;
        }
    }
    found
}

/// Adds a sentence; a monstrous one in parts, so that pieces of it can overlap.
fn push_sentence(sentence: &str, at: usize, found: &mut Vec<Sentence>) {
    let words = words(sentence);
    let whole: usize = words.iter().map(|word| word.length).sum();
    let most = if whole > PIECE_WORDS * WORD { PIECE_WORDS * WORD / 2 } else { whole };
    let mut length = 0;
    for word in words {
        if length + word.length > most {
            found.push(Sentence { end: at + word.start, length });
            length = 0;
        }
        length += word.length;
    }
    found.push(Sentence { end: at + sentence.len(), length });
}

/// A word, or a character of a script without spaces.
struct Word {
    start: usize,
    length: usize,
}

fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::with_capacity(text.len() / 5);
    // How many characters the word has by now; none between words.
    let mut chars = 0;
    let mut is_character = false;
    for (start, c) in text.char_indices() {
        if c.is_whitespace() {
            chars = 0;
            continue;
        }
        let unspaced = is_unspaced(c);
        let begins = chars == 0 || chars == WORD_CHARS || unspaced || (is_character && c.is_alphanumeric());
        if begins {
            words.push(Word { start, length: if unspaced { 1 } else { WORD } });
            (chars, is_character) = (0, unspaced);
        }
        chars += 1;
    }
    words
}

/// Where sentences end, the space after them included: after a full stop and its like, and at the end of each line.
pub(crate) fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    let mut chars = text.char_indices().peekable();
    // Where the stop is that may end the sentence.
    let mut stop = None;
    std::iter::from_fn(move || {
        while let Some((at, c)) = chars.next() {
            let end = at + c.len_utf8();
            let next = chars.peek().map(|(_, next)| *next);
            if c == '\n' {
                stop = None;
                return Some(end);
            }
            if ends_by_itself(c) {
                stop = Some((end, true));
            } else if matches!(c, '.' | '!' | '?' | '…' | '؟' | '।') {
                stop = Some((end, false));
            } else if !CLOSING.contains(&c) && !c.is_whitespace() {
                stop = None;
            }
            let Some((stopped, by_itself)) = stop else { continue };
            let is_end = match next {
                Some(next) if by_itself => {
                    !CLOSING.contains(&next) && !next.is_whitespace() && !ends_by_itself(next)
                }
                Some(next) => {
                    c.is_whitespace() && !next.is_whitespace() && begins_sentence(next, &text[..stopped])
                }
                None => false,
            };
            if is_end {
                stop = None;
                return Some(end);
            }
        }
        None
    })
}

/// The stops of scripts without spaces: none follows them.
fn ends_by_itself(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '｡')
}

/// Whether a sentence may begin with this, after what was said up to a stop.
fn begins_sentence(first: char, before: &str) -> bool {
    if first.is_lowercase() {
        return false;
    }
    let Some(said) = before.strip_suffix('.') else { return true };
    let start = said.rfind(|c: char| c.is_whitespace() || CLOSING.contains(&c) || c == '(');
    let last = start.map_or(said, |at| said[at..].trim_start_matches(|c: char| !c.is_alphanumeric()));
    let is_initial = last.chars().count() == 1 && last.starts_with(char::is_uppercase);
    !is_initial && !SHORTENED.iter().any(|short| last.eq_ignore_ascii_case(short))
}

/// What is looked for in long texts.
#[derive(Debug, Clone)]
pub struct PassageQuery {
    /// By hash: the terms that are worth most, each with its worth.
    terms: Vec<(u64, f64)>,
    asked: Asked,
}

impl PassageQuery {
    /// A query of these terms, each with what it is worth.
    pub fn new(mut terms: Vec<(u64, f64)>, asked: Asked) -> Self {
        terms.retain(|(_, worth)| *worth > 0.0);
        terms.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        terms.truncate(MAX_TERMS);
        terms.sort_unstable_by_key(|(hash, _)| *hash);
        terms.dedup_by_key(|(hash, _)| *hash);
        Self { terms, asked }
    }

    /// Which of these pieces of a text answers best, by its words and by how near its meaning is; the first of equals.
    pub fn best_piece(
        &self,
        analyzer: &Analyzer,
        text: &str,
        pieces: &[Range<usize>],
        cosine: impl Fn(usize, &str) -> f64,
    ) -> Option<Range<usize>> {
        let mut best: Option<(f64, &Range<usize>)> = None;
        for (number, piece) in pieces.iter().enumerate() {
            let part = &text[piece.clone()];
            let (found, cosine) = (self.worth(self.said_in(analyzer, part)), cosine(number, part));
            let score = self.asked.relevance(found, cosine, cosine).score;
            if best.is_none_or(|(other, _)| score > other) {
                best = Some((score, piece));
            }
        }
        best.map(|(_, piece)| piece.clone())
    }

    /// The passage of a text that shows one of its pieces: whole sentences, with as many around them as fit, those first that
    /// say more of what is asked.
    pub fn passage(&self, analyzer: &Analyzer, text: &str, piece: &Range<usize>) -> Range<usize> {
        let sentences = sentences(text);
        let said = |number: usize| self.said_in(analyzer, &text[bytes(&sentences, number..number + 1)]);
        let first = sentences.partition_point(|one| one.end <= piece.start);
        let end = first + sentences[first..].partition_point(|one| one.end <= piece.end);
        let mut shown = self.densest(&sentences, first..end.max(first + 1).min(sentences.len()), said);
        let mut length: usize = sentences[shown.clone()].iter().map(|one| one.length).sum();
        let mut known = shown.clone().map(said).fold(0, |all, one| all | one);
        loop {
            let fits =
                |number: &usize| sentences.get(*number).is_some_and(|one| length + one.length <= WHOLE);
            let (before, after) = (shown.start.checked_sub(1).filter(fits), Some(shown.end).filter(fits));
            let more = |number: Option<usize>| number.map_or(0.0, |number| self.worth(said(number) & !known));
            let next = match (before, after) {
                (None, None) => break,
                (Some(before), after) if after.is_none() || more(Some(before)) > more(after) => {
                    shown.start = before;
                    before
                }
                _ => {
                    shown.end += 1;
                    shown.end - 1
                }
            };
            length += sentences[next].length;
            known |= said(next);
        }
        trimmed(text, bytes(&sentences, shown))
    }

    /// Of some sentences those that stand together, fit into a passage and say the most; the first of equals.
    fn densest(
        &self,
        sentences: &[Sentence],
        all: Range<usize>,
        said: impl Fn(usize) -> u64,
    ) -> Range<usize> {
        let said: Vec<u64> = all.clone().map(said).collect();
        let (mut best, mut most) = (all.start..all.start, -1.0);
        let (mut start, mut length) = (all.start, 0);
        for end in all.clone() {
            length += sentences[end].length;
            while length > WHOLE {
                length -= sentences[start].length;
                start += 1;
            }
            let terms = said[start - all.start..=end - all.start].iter().fold(0, |all, one| all | one);
            let worth = self.worth(terms);
            // While nothing has to go, more is better.
            if worth > most || best.start == start {
                (best, most) = (start..end + 1, worth.max(most));
            }
        }
        best
    }

    /// Which of the terms a text has: bit `n` for the `n`th.
    fn said_in(&self, analyzer: &Analyzer, text: &str) -> u64 {
        if self.terms.is_empty() {
            return 0;
        }
        let said = of_entry(analyzer, text).counts;
        let has = |hash: &u64| said.binary_search_by_key(hash, |(hash, _)| *hash).is_ok();
        self.terms.iter().enumerate().filter(|(_, (hash, _))| has(hash)).fold(0, |all, (n, _)| all | 1 << n)
    }

    fn worth(&self, terms: u64) -> f64 {
        self.terms.iter().enumerate().filter(|(n, _)| terms >> n & 1 == 1).map(|(_, (_, worth))| worth).sum()
    }
}

/// A range without the space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests;
