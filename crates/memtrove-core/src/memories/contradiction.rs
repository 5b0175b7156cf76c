//! Whether two texts cannot both be so: one test for what a newer memory overrides.
//!
//! Two texts contradict each other if they say one thing in the same words but for a value ("Ravi works from ten to six"), if one
//! denies what the other says, or if the newer says in other words that something changed. What is true of several things at once
//! ("likes apples", "likes pears"), what happened at different times, and what is said of different people is no
//! contradiction. Where nothing is sure there is none: a contradiction that is missed leaves an answer as it was.

mod english;

use super::duplicate::{Profile, are_alike};
use crate::recall::document::parts;
use crate::recall::stop_words::Grammar;
use crate::text::{Analyzer, fold};
use english::Table;
use std::collections::BTreeSet;
use std::ops::Range;

/// Longer texts say more than one thing.
const MOST_WORDS: usize = 30;
const MOST_BYTES: usize = 600;
/// A value has no more words.
const MOST_VALUE_WORDS: usize = 8;
/// No more words come before what a text says.
const MOST_LEADING_WORDS: usize = 6;
/// So many words with a meaning are common to texts about one thing.
const COMMON_WORDS: usize = 2;
/// The least part of what the older text says that one about a change names again.
const NAMED_AGAIN: f64 = 0.4;
/// The least raw cosine of texts about one thing, where both have a vector.
const SIMILARITY: f64 = 0.3;

/// What the test looks at in a text.
#[derive(Debug, Clone)]
pub struct Wording {
    /// Who says it, where a label names somebody.
    speaker: Option<String>,
    words: Vec<String>,
    /// The stem of each word that means something.
    stems: Vec<Option<String>>,
    /// What it is about, each stem once.
    meant: BTreeSet<String>,
    negations: BTreeSet<String>,
    /// Where its verb of the present stands, if there is one.
    verb: Option<usize>,
    /// How many sentences it has; none if it is long, or no statement.
    sentences: usize,
    says_change: bool,
    /// Whether it says what is, and not what happened.
    is_state: bool,
    /// Where its clauses begin after the first, without the words that join them, and where they end.
    clauses: Vec<Range<usize>>,
}

impl Wording {
    /// Looks at a text.
    pub fn of(analyzer: &Analyzer, content: &str) -> Self {
        let parts = parts(content);
        // A long text is not looked at: there may be a hundred of them.
        let body = if parts.body.len() <= MOST_BYTES { parts.body } else { "" };
        let profile = Profile::of(body);
        let words: Vec<String> =
            profile.words().take(MOST_WORDS + 1).map(|word| word.replace('’', "'")).collect();
        let is_short = !words.is_empty() && words.len() <= MOST_WORDS;
        let stems: Vec<Option<String>> = words.iter().map(|word| stem(analyzer, word)).collect();
        let verb = verb(&words);
        Self {
            speaker: parts.speaker.map(str::to_owned),
            meant: stems.iter().flatten().cloned().collect(),
            negations: profile.negations(),
            sentences: if is_short { sentences(body) } else { 0 },
            says_change: says_change(&words),
            is_state: is_state(&words, verb),
            clauses: if is_short { clauses(body, &words) } else { Vec::new() },
            verb,
            words,
            stems,
        }
    }

    /// What some parts of texts say together: a statement of one clause, by nobody in particular.
    fn of_parts(parts: &[(&Self, Range<usize>)]) -> Self {
        let words: Vec<String> =
            parts.iter().flat_map(|(text, part)| text.words[part.clone()].iter().cloned()).collect();
        let stems: Vec<Option<String>> =
            parts.iter().flat_map(|(text, part)| text.stems[part.clone()].iter().cloned()).collect();
        let verb = verb(&words);
        Self {
            speaker: None,
            meant: stems.iter().flatten().cloned().collect(),
            negations: BTreeSet::new(),
            sentences: 1,
            says_change: false,
            is_state: is_state(&words, verb),
            clauses: Vec::new(),
            verb,
            words,
            stems,
        }
    }

    /// Whether somebody of whom this is said may have several of it: "drinks", "is allergic to".
    pub fn is_of_several(&self) -> bool {
        self.may_be_several(self.words.len())
    }

    /// Whether what comes before a value says that there may be several: the last word there that means something.
    fn may_be_several(&self, value: usize) -> bool {
        let last = (0..value).rev().find(|at| {
            self.stems[*at].is_some()
                || has(&english::BE, &self.words[*at])
                || has(&english::HAVE, &self.words[*at])
        });
        let Some(last) = last else { return false };
        // "has lost": it may lose another one.
        if last > 0 && has(&english::HAVE, &self.words[last - 1]) && is_past(&self.words[last]) {
            return true;
        }
        let word = self.words[last].as_str();
        let is_list = self.stems[last].as_ref().is_some_and(|stem| has(&english::LISTS, stem));
        let leads_on =
            self.words[last + 1..value].first().is_some_and(|word| has(&english::PREPOSITIONS, word));
        // "Tom's friend is": what is linked is one of a sort.
        let linked = if has(&english::BE, word) && last > 0 { self.words[last - 1].as_str() } else { word };
        has(&english::HAVE, word) || has(&english::SORTS, linked) || (is_list && !leads_on)
    }

    /// What stands before "is", and after it.
    fn linked(&self) -> Option<(&[String], &[String])> {
        let link = self.words.iter().position(|word| has(&english::BE, word))?;
        Some((&self.words[..link], &self.words[link + 1..]))
    }

    /// Whether a question is about what was, not about what is.
    pub fn asks_about_before(&self) -> bool {
        self.words.iter().any(|word| has(&english::ABOUT_BEFORE, word))
            || self.words.windows(2).any(|two| ["use", "used"].contains(&two[0].as_str()) && two[1] == "to")
    }
}

/// Whether two texts contradict each other, whichever of them is newer.
pub fn contradicts(one: &Wording, other: &Wording, vectors: Option<(&[f32], &[f32])>) -> bool {
    let are_statements = one.sentences == 1 && other.sentences == 1;
    are_statements
        && may_be_about_one_thing(one, other, vectors)
        && (denies(one, other) || differs_in_value(one, other) || names_another(one, other))
}

/// Whether a clause of a newer text says what an older one says, with another value: "Ms Lund retired, and our accountant is Ms Aho".
pub fn restates(newer: &Wording, older: &Wording, vectors: Option<(&[f32], &[f32])>) -> bool {
    let are_statements =
        (1..=2).contains(&newer.sentences) && older.sentences == 1 && older.clauses.is_empty();
    let are_affirmed = newer.negations.is_empty() && older.negations.is_empty();
    let Some(verb) = older.verb.filter(|_| are_statements && are_affirmed && !newer.clauses.is_empty())
    else {
        return false;
    };
    if !may_be_about_one_thing(newer, older, vectors) {
        return false;
    }
    let subject = 0..verb;
    let is_named = |at: usize| match &older.stems[at] {
        Some(stem) => newer.meant.contains(stem),
        None => !has(&english::PRONOUNS, &older.words[at]) || newer.words.contains(&older.words[at]),
    };
    let is_about_it = verb > 0 && subject.clone().all(is_named);
    newer.clauses.iter().any(|clause| {
        let said = Wording::of_parts(&[(newer, clause.clone())]);
        if differs_in_value(&said, older) || names_another(&said, older) {
            return true;
        }
        // "Gustav handed in his notice and works for a charity": of whom it is said stands in the first clause.
        let is_stand_in =
            |word: &String| has(&english::STAND_INS, word) || older.words[..verb] == [word.clone()];
        let begin = clause.start + usize::from(newer.words.get(clause.start).is_some_and(is_stand_in));
        if !is_about_it || begin >= clause.end {
            return false;
        }
        let said = Wording::of_parts(&[(older, subject.clone()), (newer, begin..clause.end)]);
        said.verb == Some(verb) && differs_in_value(&said, older)
    })
}

/// Whether they say of two that each is the one who there is: "our captain is Sven", "Adele is our captain".
fn names_another(one: &Wording, other: &Wording) -> bool {
    let are_affirmed = one.negations.is_empty() && other.negations.is_empty();
    are_affirmed && (names_another_holder(one, other) || names_another_holder(other, one))
}

/// Whether a text says who has a role, and the other one that somebody else has it.
fn names_another_holder(text: &Wording, other: &Wording) -> bool {
    let Some((role, holder)) = text.linked() else { return false };
    let Some((another, same_role)) = other.linked() else { return false };
    let is_somebodys = role.first().is_some_and(|word| has(&english::DEFINITE, word) || word.ends_with("'s"));
    is_somebodys
        && role.len() > 1
        && role == same_role
        && holder != another
        && [holder, another].iter().all(|who| (1..=MOST_VALUE_WORDS).contains(&who.len()))
        && !text.may_be_several(role.len() + 1)
}

/// Whether a newer text says that what an older one says is so no more.
pub fn replaces(newer: &Wording, older: &Wording, vectors: Option<(&[f32], &[f32])>) -> bool {
    // "Nils sold the Yamaha. He rides a scooter."
    let are_statements = (1..=2).contains(&newer.sentences) && older.sentences == 1;
    let is_change = are_statements && newer.says_change && older.is_state;
    if !(is_change && may_be_about_one_thing(newer, older, vectors)) {
        return false;
    }
    let (now, then) = (&newer.meant, &older.meant);
    let common = now.intersection(then).count();
    // What the older text is about comes first in it, but for "we" and "my".
    let subject = older.stems.iter().flatten().next();
    let begins_with_pronoun = older.words.first().is_some_and(|word| has(&english::PRONOUNS, word));
    let is_named = begins_with_pronoun || subject.is_some_and(|subject| now.contains(subject));
    // "Case 118" is not "case 181".
    let mut numbers =
        older.words[..older.verb.unwrap_or(0)].iter().filter(|word| word.contains(char::is_numeric));
    let is_numbered = numbers.all(|number| newer.words.contains(number));
    let is_about_it = is_named && is_numbered && now != then;
    is_about_it && common >= COMMON_WORDS && common as f64 >= NAMED_AGAIN * then.len() as f64
}

/// Whether two texts are said by the same one and near each other in meaning.
fn may_be_about_one_thing(one: &Wording, other: &Wording, vectors: Option<(&[f32], &[f32])>) -> bool {
    one.speaker == other.speaker && vectors.is_none_or(|(a, b)| are_alike(a, b, SIMILARITY))
}

/// Whether one denies all that the other says.
fn denies(one: &Wording, other: &Wording) -> bool {
    let says = if one.negations.is_empty() { one } else { other };
    let denies = if one.negations.is_empty() { other } else { one };
    says.negations.is_empty()
        && !denies.negations.is_empty()
        && says.meant.len() >= COMMON_WORDS
        && says.meant.is_subset(&denies.meant)
}

/// Whether they say one thing in the same words but for a value, which can only be one.
fn differs_in_value(one: &Wording, other: &Wording) -> bool {
    // What is not so is not so of several things.
    if !one.negations.is_empty() || !other.negations.is_empty() {
        return false;
    }
    // "As of May the rent is 900" is compared from where it begins like the other one.
    let lead = |text: &Wording, other: &Wording| {
        let leads = text.words.iter().take(MOST_LEADING_WORDS + 1);
        leads.enumerate().find(|(_, word)| other.words.first() == Some(word)).map(|(at, _)| at)
    };
    match (lead(one, other), lead(other, one)) {
        (Some(0), _) => differ_from(one, other, 0),
        (_, Some(lead)) => differ_from(one, other, lead),
        (Some(lead), None) => differ_from(other, one, lead),
        (None, None) => false,
    }
}

/// Whether they say one thing in the same words but for a value, from a word of the other one on.
fn differ_from(one: &Wording, other: &Wording, lead: usize) -> bool {
    let from = &other.words[lead..];
    let shorter = one.words.len().min(from.len());
    let equal = |(a, b): (&String, &String)| a == b;
    let before = one.words.iter().zip(from).take_while(|(a, b)| equal((a, b))).count();
    let after = (one.words.iter().rev().zip(from.iter().rev()))
        .take(shorter - before)
        .take_while(|(a, b)| equal((a, b)))
        .count();
    let values = [before..one.words.len() - after, lead + before..other.words.len() - after];
    if values.iter().any(|value| value.is_empty() || value.len() > MOST_VALUE_WORDS) {
        return false;
    }
    // The verb stands before the value: then they are about one thing. What happened twice was another time.
    if !one.is_state || one.verb.is_none_or(|verb| verb >= before) {
        return false;
    }
    let framed = one.stems[..before].iter().chain(&one.stems[one.words.len() - after..]).flatten().count();
    if framed < COMMON_WORDS {
        return false;
    }
    let is_limited = |(text, value): (&Wording, &Range<usize>)| {
        text.words[value.clone()].iter().any(|word| has(&english::CONDITIONS, word))
    };
    if [one, other].into_iter().zip(&values).any(is_limited) {
        return false;
    }
    // "prefers window seats", "use tabs for indentation": what is chosen of a sort, or for one thing, is one thing.
    let rest = &one.words[one.words.len() - after..];
    let says_of_what = rest.first().is_some_and(|word| word == "for" || !has(&english::AFTER_VERBS, word))
        && one.stems[one.words.len() - after..].iter().any(Option::is_some);
    let is_chosen = says_of_what
        && one.stems[..before].iter().flatten().next_back().is_some_and(|stem| has(&english::CHOICES, stem));
    is_chosen || !one.may_be_several(before) || are_numbers_of_one_thing(one, &values[0], other, &values[1])
}

/// Whether values differ in their numbers alone.
fn are_numbers_of_one_thing(
    one: &Wording,
    value: &Range<usize>,
    other: &Wording,
    other_value: &Range<usize>,
) -> bool {
    let parts = |text: &Wording, value: &Range<usize>| -> (usize, Vec<String>) {
        let (numbers, words): (Vec<String>, Vec<String>) =
            text.words[value.clone()].iter().cloned().partition(|word| is_number(word));
        (numbers.len(), words)
    };
    let ((numbers, words), (other_numbers, other_words)) = (parts(one, value), parts(other, other_value));
    numbers > 0 && other_numbers > 0 && words == other_words
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_numeric()) || has(&english::NUMBERS, word)
}

/// Where the first verb of the present stands.
fn verb(words: &[String]) -> Option<usize> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let is_verb = |at: &usize| {
        let (before, this, after) = (at.checked_sub(1).map_or("", word), word(*at), word(at + 1));
        let is_link = has(&english::BE, this) || has(&english::HAVE, this);
        let is_base = has(&english::PRONOUNS, before) && !is_past(this);
        let is_request = *at == 0 && has(&english::REQUESTS, this);
        let ends_so = this.len() > 3 && this.ends_with('s') && !this.ends_with("ss") && !this.ends_with("'s");
        let is_followed = has(&english::AFTER_VERBS, after) || is_number(after);
        is_link
            || is_base
            || is_request
            || (*at > 0 && (ends_so && is_followed || has(&english::VERBS, this)))
    };
    (0..words.len()).find(is_verb)
}

/// Where the clauses of a text stand among its words, but for the first.
fn clauses(text: &str, words: &[String]) -> Vec<Range<usize>> {
    let mut begins = Vec::new();
    let mut count = 0;
    let mut begin = 0;
    for (end, _) in text.match_indices([',', ';', '.', ':']).filter(|(at, _)| text[at + 1..].starts_with(' '))
    {
        count += Profile::of(&text[begin..end]).words().count();
        begins.push(count);
        begin = end;
    }
    let is_joint = |at: &usize| has(&english::JOINTS, &words[*at]);
    begins.extend((1..words.len()).filter(is_joint));
    begins.retain(|begin| *begin < words.len());
    begins.sort_unstable();
    begins.dedup();
    let ends = begins.iter().skip(1).copied().chain([words.len()]);
    let clause = |(begin, end): (&usize, usize)| (begin + usize::from(is_joint(begin)))..end;
    begins.iter().zip(ends).map(clause).filter(|clause| !clause.is_empty()).collect()
}

/// How many sentences a text has; none if it asks or exclaims something. What people say to each other is not what is so.
fn sentences(text: &str) -> usize {
    let text = text.trim().trim_end_matches('.');
    if text.is_empty() || text.contains(['?', '!', '\n']) {
        return 0;
    }
    // "Mr. Vasek" goes on.
    let ends = text
        .match_indices(". ")
        .filter(|(at, _)| text[..*at].split(' ').next_back().is_some_and(|word| word.len() > 2));
    1 + ends.count()
}

/// Whether words say that something changed: by the word for it, or because something happened that still holds.
fn says_change(words: &[String]) -> bool {
    let text = format!(" {} ", words.join(" "));
    words.iter().any(|word| has(&english::CHANGES, word))
        || words.windows(2).any(has_happened)
        || english::CHANGES_IN_WORDS.iter().any(|words| text.contains(&format!(" {words} ")))
}

/// Whether words say what is, and not what happened.
fn is_state(words: &[String], verb: Option<usize>) -> bool {
    let until = verb.unwrap_or(words.len());
    let befores = std::iter::once("").chain(words.iter().map(String::as_str));
    let mut happened =
        befores.zip(&words[..until]).map(|(before, word)| is_past(word) && !has(&english::BE, before));
    !happened.any(|happened| happened) && !verb.is_some_and(|verb| has_happened(&words[verb..]))
}

/// "has visited"
fn has_happened(words: &[String]) -> bool {
    matches!(words, [have, done, ..] if ["has", "have"].contains(&have.as_str()) && is_past(done))
}

fn is_past(word: &str) -> bool {
    let has_ending = word.len() > 3 && word.ends_with("ed") && !has(&english::NOT_PAST, word);
    has_ending || has(&english::PAST, word)
}

/// The stem of a word that means something.
fn stem(analyzer: &Analyzer, word: &str) -> Option<String> {
    let word = fold(word.strip_suffix("'s").unwrap_or(word))?;
    if Grammar::of(analyzer.language()).is_stop_word(&word) {
        return None;
    }
    Some(analyzer.stem(&word).unwrap_or(word))
}

/// Whether a word is one of a table.
fn has(table: &Table, word: &str) -> bool {
    table.contains(word)
}

#[cfg(test)]
mod tests;
