//! Who a query is about.

use std::borrow::Cow;

/// Whom a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The one participant it names.
    Named(&'a str),
    /// The one who asks: the query names no one and speaks of "I" or "my".
    Asker,
    /// The agent that is asked: the query names no one and speaks to "you".
    Agent,
}

/// Words by which one speaks of oneself.
const FIRST_PERSON: [&str; 6] = ["i", "my", "me", "mine", "we", "our"];
/// Words by which one speaks to the other.
const SECOND_PERSON: [&str; 3] = ["you", "your", "yours"];
/// Before "you" these only ask politely: "Can you tell where I live?" is about who asks.
const POLITE: [&str; 6] = ["can", "could", "do", "thank", "will", "would"];
/// Labels of turns that an agent said.
const AGENTS: [&str; 4] = ["agent", "ai", "assistant", "bot"];
/// Labels of turns that the user said who writes them down.
const USERS: [&str; 2] = ["human", "user"];

/// Whether an agent speaks, by its label; agents without one have no name.
pub fn is_agent(name: &str) -> bool {
    name.is_empty() || AGENTS.iter().any(|label| name.eq_ignore_ascii_case(label))
}

/// Whether a label says no more than that a user speaks.
pub fn is_user(name: &str) -> bool {
    USERS.iter().any(|label| name.eq_ignore_ascii_case(label))
}

/// Whom a query is about, given the names of those who take part in what is searched. `None` when it names several, or
/// no one and speaks of nobody, or of both: "What did you tell me?"
pub fn subject<'a>(query: &str, names: impl IntoIterator<Item = &'a str>) -> Option<Subject<'a>> {
    let mut named = names.into_iter().filter(|name| find(query, name).is_some());
    match (named.next(), named.next()) {
        (Some(name), None) => Some(Subject::Named(name)),
        (None, _) => match (says(query, &FIRST_PERSON), speaks_to_other(query)) {
            (true, false) => Some(Subject::Asker),
            (false, true) => Some(Subject::Agent),
            _ => None,
        },
        _ => None,
    }
}

/// Whether one of these words stands in a query.
fn says(query: &str, words: &[&str]) -> bool {
    words.iter().any(|word| find(query, word).is_some())
}

/// The query as a participant would put it: names become "I" and "my". For embedding: a name says who, not what, and in a
/// short query it would outweigh everything else ("Hey Caroline!" being the best match for whatever is asked about her).
pub fn in_first_person<'q, 'a>(query: &'q str, names: impl IntoIterator<Item = &'a str>) -> Cow<'q, str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    // "Anna Maria" before "Anna".
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut said = String::new();
    let mut rest = query;
    let mut done = 0;
    while let Some((at, name)) = first(query, done, &names) {
        said.push_str(&query[done..at]);
        rest = &query[at + name.len()..];
        let possessive = ["'s", "\u{2019}s"]
            .iter()
            .find_map(|ending| rest.strip_prefix(ending).filter(|after| !after.starts_with(is_word)));
        said.push_str(if possessive.is_some() { "my" } else { "I" });
        rest = possessive.unwrap_or(rest);
        done = query.len() - rest.len();
    }
    if done == 0 { Cow::Borrowed(query) } else { Cow::Owned(said + rest) }
}

/// The first name from a place on; of those that begin together the one that comes first in the list.
fn first<'a>(query: &str, from: usize, names: &[&'a str]) -> Option<(usize, &'a str)> {
    let places = names.iter().filter_map(|name| find_from(query, from, name).map(|at| (at, *name)));
    places.min_by_key(|(at, _)| *at)
}

fn find(text: &str, name: &str) -> Option<usize> {
    find_from(text, 0, name)
}

/// Where a name stands as a whole word. Will is not meant where "will" is said, unless the whole text is in small letters.
fn find_from(text: &str, from: usize, name: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let is_small = |text: &str| !text.contains(char::is_uppercase);
    let any_case = is_small(text) || is_small(name);
    let stands = |at: &usize| {
        let end = at + name.len();
        text.get(*at..end)
            .is_some_and(|part| part.eq_ignore_ascii_case(name) && (any_case || !is_small(part)))
            && !text[..*at].ends_with(is_word)
            && !text[end..].starts_with(is_word)
    };
    text.char_indices().map(|(at, _)| at).filter(|at| *at >= from).find(stands)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a query is about what the other one says or does.
fn speaks_to_other(query: &str) -> bool {
    let is = |word: &str, list: &[&str]| list.iter().any(|other| word.eq_ignore_ascii_case(other));
    let mut before = "";
    query.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).any(|word| {
        let is_meant = is(word, &SECOND_PERSON) && !is(before, &POLITE);
        before = word;
        is_meant
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 3] = ["Caroline", "Melanie", "Anna Maria"];

    #[test]
    fn a_query_is_about_the_one_it_names() {
        assert_eq!(subject("When did CAROLINE move?", NAMES), Some(Subject::Named("Caroline")));
        assert_eq!(subject("when did caroline move", NAMES), Some(Subject::Named("Caroline")));
        assert_eq!(subject("Melanie's kids", NAMES), Some(Subject::Named("Melanie")));
        assert_eq!(subject("Did Caroline meet Melanie?", NAMES), None, "several");
        assert_eq!(subject("What about Carolines?", NAMES), None, "another word");
        assert_eq!(subject("When did I move?", NAMES), Some(Subject::Asker));
        assert_eq!(subject("Where is Caroline's gift to me?", NAMES), Some(Subject::Named("Caroline")));
        assert_eq!(subject("When is the conference?", NAMES), None);
        assert_eq!(subject("What did you recommend for my knee?", NAMES), None, "both");
        assert_eq!(subject("Which museum did you recommend?", NAMES), Some(Subject::Agent));
        assert_eq!(subject("Could you tell me where I live?", NAMES), Some(Subject::Asker), "polite");
        assert_eq!(subject("What will Mark do?", ["Will", "Mark"]), Some(Subject::Named("Mark")));
        assert_eq!(subject("When is it?", [""]), None);
    }

    #[test]
    fn labels_of_roles_are_no_names() {
        assert!(is_agent("") && is_agent("Assistant") && is_agent("ai") && !is_agent("Ada"));
        assert!(is_user("user") && is_user("Human") && !is_user("Ursula"));
    }

    #[test]
    fn names_become_the_first_person() {
        let said = |query| in_first_person(query, NAMES);
        assert_eq!(said("What is Caroline's identity?"), "What is my identity?");
        assert_eq!(said("What are Melanie\u{2019}s plans with Caroline?"), "What are my plans with I?");
        assert_eq!(said("Did Anna Maria run?"), "Did I run?");
        assert!(matches!(said("Did anybody run?"), Cow::Borrowed(_)));
        assert_eq!(in_first_person("I met Ann and Anna", ["Ann", "Anna", "I"]), "I met I and I");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_rewriting(query in "\\PC{0,40}", name in "\\PC{0,4}") {
            let _ = subject(&query, [name.as_str()]);
            let _ = in_first_person(&query, [name.as_str()]);
        }

        #[test]
        fn what_names_nobody_stays_as_it_is(query in "[a-z ]{0,40}") {
            prop_assert_eq!(in_first_person(&query, ["Zoë", "X1"]), query.as_str());
        }
    }
}
