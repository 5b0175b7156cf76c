//! Whether two entries say the same: one test for search, consolidation and promotion.
//!
//! A model sees "30 seconds" and "60 seconds", or "may" and "may not", as all but equal. So what is positive evidence of
//! another meaning vetoes what the vectors say; a veto only ever keeps more.

mod subsequence;

use crate::text::is_unspaced;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The raw cosine from which vectors count as equal, unless a caller says otherwise.
pub const SIMILARITY: f64 = 0.95;

const NEGATIONS: [&str; 7] = ["no", "not", "never", "none", "nor", "without", "cannot"];

/// Words that hold only for a part of what is said without them.
const LIMITS: [&str; 13] = [
    "almost",
    "barely",
    "except",
    "hardly",
    "if",
    "maybe",
    "nearly",
    "only",
    "perhaps",
    "rarely",
    "seldom",
    "sometimes",
    "unless",
];

/// Small words that decide what a sentence says, in alphabetical order. Models hardly see them, because every text is full of
/// them.
const SMALL_WORDS: [&str; 107] = [
    "about", "above", "after", "against", "all", "also", "always", "am", "and", "any", "are", "around", "as",
    "at", "be", "because", "been", "before", "behind", "below", "beside", "between", "both", "but", "by",
    "can", "could", "did", "do", "does", "down", "during", "each", "either", "even", "every", "few", "fewer",
    "for", "from", "had", "has", "have", "he", "her", "hers", "him", "his", "i", "in", "inside", "into",
    "is", "it", "its", "just", "less", "many", "may", "me", "might", "mine", "more", "most", "much", "must",
    "my", "neither", "of", "off", "often", "on", "onto", "or", "our", "out", "outside", "over", "shall",
    "she", "should", "since", "some", "still", "than", "their", "them", "they", "through", "till", "to",
    "toward", "towards", "under", "until", "up", "us", "was", "we", "were", "while", "will", "with", "would",
    "yet", "you", "your",
];

/// What the test looks at in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Lower case, single spaces, no sentence punctuation at the end; the text itself where that leaves nothing.
    normalised: String,
    /// Where its words stand.
    words: Vec<Range<usize>>,
}

impl Profile {
    /// Looks at a text.
    pub fn of(content: &str) -> Self {
        let normalised = normalise(content);
        let words = words(&normalised);
        Self { normalised, words }
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|at| &self.normalised[at.clone()])
    }

    /// The words with a digit, in order.
    fn numbers(&self) -> impl Iterator<Item = &str> {
        self.words().filter(|word| word.contains(char::is_numeric))
    }

    fn limits(&self) -> BTreeSet<&str> {
        self.words().filter(|word| LIMITS.contains(word)).collect()
    }

    /// The small words, and the others, each as often as it is there. Articles are neither.
    fn small_and_large(&self) -> (HashMap<&str, usize>, HashMap<&str, usize>) {
        let (mut small, mut large) = (HashMap::new(), HashMap::new());
        for word in self.words().filter(|word| !["a", "an", "the"].contains(word)) {
            let kind = if SMALL_WORDS.binary_search(&word).is_ok() { &mut small } else { &mut large };
            *kind.entry(word).or_default() += 1;
        }
        (small, large)
    }

    pub(super) fn negations(&self) -> BTreeSet<String> {
        self.words()
            .map(|word| word.replace('’', "'"))
            .filter(|word| NEGATIONS.contains(&word.as_str()) || word.ends_with("n't"))
            .collect()
    }
}

/// Whether two texts say the same, given what they mean: their vectors, where both have one and both are of one space.
pub fn duplicates(
    a: &Profile,
    a_vector: Option<&[f32]>,
    b: &Profile,
    b_vector: Option<&[f32]>,
    threshold: f64,
) -> bool {
    let alike = || matches!((a_vector, b_vector), (Some(a), Some(b)) if are_alike(a, b, threshold));
    a.normalised == b.normalised || (alike() && !contradict(a, b))
}

/// Whether the raw cosine of two vectors of unit length, or of none, reaches the threshold.
pub(super) fn are_alike(a: &[f32], b: &[f32], threshold: f64) -> bool {
    /// What rounding may take from the cosine of equal vectors.
    const ROUNDING: f64 = 1e-6;
    a.len() == b.len() && f64::from(dot(a, b)) >= threshold - ROUNDING
}

/// The inner product, in lanes that the compiler turns into vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    let mut lanes = [0.0; 8];
    for (a, b) in a.zip(b) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// Whether texts that mean nearly the same differ in what matters: numbers, negations and limits, who does what to whom, or a
/// small word in place of another.
fn contradict(a: &Profile, b: &Profile) -> bool {
    !a.numbers().eq(b.numbers())
        || a.negations() != b.negations()
        || a.limits() != b.limits()
        || are_reordered(a, b)
        || are_turned(a, b)
}

/// The same but for small words: four fifths of the other words of the longer text are in both, and each has a small word that the
/// other has not. One that has more of them may just say it at greater length.
fn are_turned(a: &Profile, b: &Profile) -> bool {
    let ((a_small, a_large), (b_small, b_large)) = (a.small_and_large(), b.small_and_large());
    let total = |words: &HashMap<&str, usize>| words.values().sum::<usize>();
    let common = |a: &HashMap<&str, usize>, b: &HashMap<&str, usize>| {
        a.iter().map(|(word, count)| (*count).min(b.get(word).copied().unwrap_or_default())).sum::<usize>()
    };
    let small = common(&a_small, &b_small);
    let is_replaced = small < total(&a_small) && small < total(&b_small);
    is_replaced && common(&a_large, &b_large) * 5 >= total(&a_large).max(total(&b_large)) * 4
}

/// Same words, other order: four fifths of the longer text are in both, but not as many in the same order.
fn are_reordered(a: &Profile, b: &Profile) -> bool {
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut number = |word| {
        let next = known.len() as u32;
        *known.entry(word).or_insert(next)
    };
    let a: Vec<u32> = a.words().map(&mut number).collect();
    let b: Vec<u32> = b.words().map(&mut number).collect();
    let most = |words: usize| words * 5 >= a.len().max(b.len()) * 4;
    most(shared(&a, &b, known.len())) && !most(subsequence::length(&a, &b))
}

/// How many words two texts share, each as often as it is in both.
fn shared(a: &[u32], b: &[u32], known: usize) -> usize {
    let mut left = vec![0usize; known];
    a.iter().for_each(|word| left[*word as usize] += 1);
    let mut take = |word: &&u32| {
        let count = &mut left[**word as usize];
        let is_left = *count > 0;
        *count -= usize::from(is_left);
        is_left
    };
    b.iter().filter(|word| take(word)).count()
}

/// What two texts have in common that differ in case, spacing and sentence punctuation at the end only.
pub fn normalise(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    for word in content.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    let text = text.to_lowercase();
    let kept = text.trim_end_matches(['.', '!', '?', ',', ';', ':', ' ']);
    // Punctuation alone says something only as it is; no other text can be equal to it.
    if kept.is_empty() { content.to_owned() } else { kept.to_owned() }
}

/// The words of a normalised text: letters and digits with the apostrophes between them, numbers with their sign and what
/// separates their digits, and in scripts without spaces each character.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((start, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next).unwrap_or_default();
        let is_sign = matches!(c, '-' | '+' | '−') && next.is_numeric() && !before.is_alphanumeric();
        before = c;
        if !c.is_alphanumeric() && !is_sign {
            continue;
        }
        let mut end = start + c.len_utf8();
        if !is_unspaced(c) {
            while let Some((at, more)) = chars.next_if(|(at, more)| continues(text, before, *at, *more)) {
                end = at + more.len_utf8();
                before = more;
            }
        }
        words.push(start..end);
    }
    words
}

/// Whether a character that follows a word's `before` still belongs to the word.
fn continues(text: &str, before: char, at: usize, c: char) -> bool {
    let after = || text[at + c.len_utf8()..].chars().next().unwrap_or_default();
    match c {
        '\'' | '’' => before.is_alphabetic() && after().is_alphabetic(),
        '.' | ',' | ':' => before.is_numeric() && after().is_numeric(),
        _ => (c.is_alphanumeric() || is_combining(c)) && !is_unspaced(c),
    }
}

/// Marks that belong to the letter before them, where a text writes an accent as a character of its own.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests;
