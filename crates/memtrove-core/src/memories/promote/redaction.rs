//! Taking e-mail addresses and phone numbers out of a text. Every character is looked at a fixed number of times.

use crate::text::is_unspaced;
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

const EMAIL: &str = "[REDACTED_EMAIL]";
const PHONE: &str = "[REDACTED_PHONE]";

/// The digits of a phone number.
const PHONE_DIGITS: RangeInclusive<usize> = 7..=15;
/// The most characters that may stand between two groups of its digits: `) `, ` - `.
const MAX_BETWEEN_GROUPS: usize = 3;

/// A text without e-mail addresses and phone numbers.
pub fn redact(text: &str) -> Cow<'_, str> {
    let without_emails = replace(text, &emails(text), EMAIL);
    let phones = phones(&without_emails);
    if phones.is_empty() {
        without_emails
    } else {
        replace(&without_emails, &phones, PHONE).into_owned().into()
    }
}

fn replace<'a>(text: &'a str, places: &[Range<usize>], by: &str) -> Cow<'a, str> {
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for place in places {
        out.push_str(&text[done..place.start]);
        out.push_str(by);
        done = place.end;
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Where addresses stand: a name, `@`, and a domain of at least two labels.
fn emails(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in memchr::memchr_iter(b'@', text.as_bytes()) {
        let done = found.last().map_or(0, |email| email.end);
        if at < done {
            continue;
        }
        let before = text[done..at].trim_end_matches(is_of_name);
        let name = text[done + before.len()..at].trim_start_matches(|c: char| !c.is_alphanumeric());
        let domain = domain(&text[at + 1..]);
        if !name.is_empty() && domain > 0 {
            found.push(at - name.len()..at + 1 + domain);
        }
    }
    found
}

fn is_of_name(c: char) -> bool {
    is_letter_or_digit(c) || matches!(c, '.' | '_' | '%' | '+' | '-' | '\'' | '\u{300}'..='\u{36f}')
}

/// How much of the beginning of a text is a domain; 0 if none. It ends with a label of letters: `library@1.2.3` is a version,
/// and a full stop may end the sentence.
fn domain(text: &str) -> usize {
    let end = text.find(|c: char| !matches!(c, '-' | '.') && !is_letter_or_digit(c)).unwrap_or(text.len());
    let (mut at, mut domain) = (0, 0);
    for label in text[..end].split('.') {
        let length = label.trim_end_matches('-').len();
        if length == 0 || label.starts_with('-') {
            break;
        }
        let is_top_level =
            label.starts_with("xn--") || (length >= 2 && label[..length].chars().all(char::is_alphabetic));
        if at > 0 && is_top_level {
            domain = at + length;
        }
        if length < label.len() {
            break;
        }
        at += length + 1;
    }
    domain
}

/// Neighbouring words of scripts without spaces belong to no address.
fn is_letter_or_digit(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}

/// A run of digits.
struct DigitRun {
    at: Range<usize>,
    digits: usize,
    /// Whether it may be part of a phone number.
    free: bool,
}

/// Where phone numbers stand: groups of digits, as many as one number can have.
fn phones(text: &str) -> Vec<Range<usize>> {
    let groups = groups(text);
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(first) = groups.get(index) {
        let (mut last, mut digits) = (index, first.digits);
        while first.free
            && let Some(next) = groups.get(last + 1)
            && next.free
            && digits + next.digits <= *PHONE_DIGITS.end()
            && separate(&text[groups[last].at.end..next.at.start])
        {
            (last, digits) = (last + 1, digits + next.digits);
        }
        let is_phone = first.free && PHONE_DIGITS.contains(&digits);
        if is_phone {
            found.push(with_prefix(text, first.at.start..groups[last].at.end));
        }
        index = if is_phone { last + 1 } else { index + 1 };
    }
    found
}

/// The groups of digits of a text. Those of a word with letters are an identifier's, and those of a date a date's.
fn groups(text: &str) -> Vec<DigitRun> {
    let mut groups = Vec::new();
    for word in runs(text, |c| is_letter_or_digit(c) || matches!(c, '_' | '-')) {
        let written = &text[word.clone()];
        let free = written.chars().all(|c| c.is_numeric() || c == '-') && !is_date(written);
        for part in runs(written, char::is_numeric) {
            let digits = written[part.clone()].chars().count();
            groups.push(DigitRun { at: word.start + part.start..word.start + part.end, digits, free });
        }
    }
    groups
}

/// The longest runs of characters that belong together.
fn runs(text: &str, belong: impl Fn(char) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let start = done + text[done..].find(&belong)?;
        done = start + text[start..].find(|c| !belong(c)).unwrap_or(text.len() - start);
        Some(start..done)
    })
}

/// `2026-01-31`: as many digits as a phone number has, and far more common.
fn is_date(word: &str) -> bool {
    let shaped = word.len() == 10
        && word
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    shaped && ("01"..="12").contains(&&word[5..7]) && ("01"..="31").contains(&&word[8..])
}

fn separate(between: &str) -> bool {
    let separates = |c: char| {
        (c.is_whitespace() && c != '\n') || matches!(c, '.' | '-' | '(' | ')' | '\u{2010}'..='\u{2015}')
    };
    between.chars().count() <= MAX_BETWEEN_GROUPS && between.chars().all(separates)
}

/// The place of a number together with the bracket that its first group closes, and its `+`.
fn with_prefix(text: &str, digits: Range<usize>) -> Range<usize> {
    let opened = digits.start.checked_sub(1).filter(|at| text.as_bytes()[*at] == b'(');
    let number = &text[digits.clone()];
    let closes = number.find(')').is_some_and(|close| number.find('(').is_none_or(|open| close < open));
    let start = opened.filter(|_| closes).unwrap_or(digits.start);
    let plus = start.checked_sub(1).filter(|at| text.as_bytes()[*at] == b'+');
    plus.unwrap_or(start)..digits.end
}
