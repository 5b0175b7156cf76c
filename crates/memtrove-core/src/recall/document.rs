//! The forms of a text: what of it is searched by its words, and what by its meaning.

use super::actors::{is_agent, is_user};

/// A text of at most this many words is embedded as a whole; a longer one in pieces.
pub const PIECE_WORDS: usize = 90;
/// A longer bracket is no stamp.
const STAMP_CHARS: usize = 60;
/// A longer label is no name.
const NAME_CHARS: usize = 40;
/// Words that a name has at most; without a stamp nothing but a single word is sure to be one.
const NAME_WORDS: usize = 3;
/// Labels that name no speaker.
const NO_NAMES: [&str; 58] = [
    "action",
    "actions",
    "answer",
    "bug",
    "caution",
    "code",
    "conclusion",
    "context",
    "danger",
    "date",
    "debug",
    "decision",
    "error",
    "example",
    "fact",
    "faq",
    "file",
    "fix",
    "fixme",
    "from",
    "goal",
    "hint",
    "idea",
    "important",
    "info",
    "input",
    "issue",
    "link",
    "next",
    "note",
    "notes",
    "observation",
    "output",
    "path",
    "plan",
    "preference",
    "problem",
    "question",
    "reason",
    "reminder",
    "result",
    "rule",
    "solution",
    "source",
    "status",
    "step",
    "subject",
    "summary",
    "tags",
    "task",
    "tip",
    "title",
    "tldr",
    "todo",
    "topic",
    "update",
    "url",
    "warning",
];

/// A text taken apart: "[1:56 pm on 8 May, 2023] Caroline: Hey Mel!".
///
/// The stamp and the label are words a text may be found by, but they would drown its meaning: they are not embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Everything before the body, as it stands.
    pub head: &'a str,
    /// What a leading bracket holds: a time.
    pub stamp: Option<&'a str>,
    /// Whom the label names.
    pub speaker: Option<&'a str>,
    /// The rest; never blank where the text is not.
    pub body: &'a str,
}

/// Takes a text apart. In doubt something belongs to the body: a bracket is a stamp only with a digit in it, and a label a
/// name only when it is one capitalised word (after a stamp up to three), and not one like "Note". Roles need no capital.
pub fn parts(text: &str) -> Parts<'_> {
    let (stamp, rest) = match stamp(text.trim_start()) {
        Some((stamp, rest)) => (Some(stamp), rest),
        None => (None, text),
    };
    let most = if stamp.is_some() { NAME_WORDS } else { 1 };
    let (speaker, body) = match label(rest.trim_start(), most) {
        Some((speaker, body)) => (Some(speaker), body),
        None => (None, rest),
    };
    if body.trim().is_empty() {
        return Parts { head: "", stamp: None, speaker: None, body: text };
    }
    Parts { head: &text[..text.len() - body.len()], stamp, speaker, body }
}

/// "[8 May 2023] …".
fn stamp(text: &str) -> Option<(&str, &str)> {
    let (stamp, rest) = text.strip_prefix('[')?.split_once(']')?;
    let is_time = stamp.len() <= STAMP_CHARS
        && stamp.contains(|c: char| c.is_ascii_digit())
        && !stamp.contains(['[', '\n'])
        && rest.starts_with(char::is_whitespace);
    is_time.then(|| (stamp.trim(), rest.trim_start()))
}

/// "Caroline: …", "Dr. Anna O'Neil: …".
fn label(text: &str, most: usize) -> Option<(&str, &str)> {
    let (name, body) = text.split_once(':')?;
    let is_name = name.len() <= NAME_CHARS
        && name.split(' ').count() <= most
        && (name.split(' ').all(is_name_word) || is_role(name))
        && !NO_NAMES.iter().any(|no_name| name.eq_ignore_ascii_case(no_name))
        && body.starts_with(char::is_whitespace);
    is_name.then(|| (name, body.trim_start()))
}

/// "user: …", "assistant: …".
fn is_role(name: &str) -> bool {
    is_user(name) || (!name.is_empty() && is_agent(name))
}

/// Scripts without case have names too, so the first letter must only not be a small one.
fn is_name_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() && !c.is_lowercase())
        && word.chars().all(|c| c.is_alphanumeric() || "'’.-_".contains(c))
}

impl<'a> Parts<'a> {
    /// The body in pieces of at most [`PIECE_WORDS`] words; at least one. What is embedded.
    pub fn pieces(&self) -> Vec<&'a str> {
        pieces(self.body, PIECE_WORDS)
    }

    /// Whether it ends with a question.
    pub fn asks(&self) -> bool {
        self.body.trim_end().ends_with(['?', '？', '؟'])
    }

    /// A piece with the head of its text: what is searched by its words.
    pub fn searched(&self, piece: &str) -> String {
        format!("{}{piece}", self.head)
    }
}

/// Cuts a text into pieces of at most `most` words, at the ends of sentences or lines where that is possible. There is
/// at least one, and between them they hold every word.
pub fn pieces(text: &str, most: usize) -> Vec<&str> {
    let text = text.trim();
    let mut pieces = Vec::new();
    let (mut start, mut count) = (0, 0);
    for sentence in sentences(text) {
        let offsets: Vec<usize> = word_starts(sentence).map(|at| offset(text, sentence) + at).collect();
        for part in offsets.chunks(most.max(1)) {
            if count > 0 && count + part.len() > most {
                pieces.push(text[start..part[0]].trim_end());
                (start, count) = (part[0], 0);
            }
            count += part.len();
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Where `part`, a slice of `text`, begins in it.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut last = None;
    text.split_inclusive(move |c: char| {
        let ends = c == '\n' || (c.is_whitespace() && last.is_some_and(|l| ".!?".contains(l)));
        last = Some(c);
        ends
    })
}

fn word_starts(text: &str) -> impl Iterator<Item = usize> {
    text.split_whitespace().map(move |word| offset(text, word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_turn_of_a_transcript_has_a_stamp_and_a_speaker() {
        let turn = parts("[1:56 pm on 8 May, 2023] Caroline: Hey Mel! How are you?");
        assert_eq!(turn.head, "[1:56 pm on 8 May, 2023] Caroline: ");
        assert_eq!((turn.stamp, turn.speaker), (Some("1:56 pm on 8 May, 2023"), Some("Caroline")));
        assert_eq!(turn.body, "Hey Mel! How are you?");
        assert!(turn.asks());
        assert_eq!(turn.searched("Hey Mel!"), "[1:56 pm on 8 May, 2023] Caroline: Hey Mel!");
    }

    #[test]
    fn each_may_stand_alone() {
        let head = |text| {
            let parts = parts(text);
            (parts.stamp, parts.speaker)
        };
        assert_eq!(head("[2024-05-08] went home"), (Some("2024-05-08"), None));
        assert_eq!(head("[9:00] Dr. Anna O'Neil: come in"), (Some("9:00"), Some("Dr. Anna O'Neil")));
        assert_eq!(head("田中: こんにちは"), (None, Some("田中")));
        assert_eq!(head("  User:\nhello"), (None, Some("User")));
        assert_eq!(
            head("[2024/05/08 (Wed) 09:00] assistant: hello"),
            (Some("2024/05/08 (Wed) 09:00"), Some("assistant"))
        );
    }

    #[test]
    fn in_doubt_it_is_the_body() {
        for text in [
            "",
            "no head at all",
            "[shares a photo of a dog]",
            "[shares a photo] look",
            "[x][1] a link",
            "[1] ",
            "Caroline: ",
            "note: lower case",
            "Note: a remark",
            "TODO: a task",
            "The meeting is at: noon",
            "Release Notes: all is new",
            "https://example.com",
            "Ratio 3:4 of it",
            "12:30 lunch",
            "std::fmt is a module",
        ] {
            let parts = parts(text);
            assert_eq!((parts.head, parts.stamp, parts.speaker, parts.body), ("", None, None, text));
        }
    }

    #[test]
    fn pieces_end_where_sentences_end() {
        assert_eq!(pieces("One two three. Four five! Six", 4), ["One two three.", "Four five! Six"]);
        assert_eq!(pieces("a b c d e", 2), ["a b", "c d", "e"]);
        assert_eq!(pieces("one line\nanother line", 3), ["one line", "another line"]);
        assert_eq!(pieces("  ", 3), [""]);
        assert_eq!(pieces("v1.2 is out", 90), ["v1.2 is out"]);
    }

    proptest! {
        #[test]
        fn head_and_body_make_the_text(text in "(\\[[0-9a-z ]{0,9}\\] ?)?([A-Z][a-z]{0,5}: ?)?\\PC{0,40}") {
            let parts = parts(&text);
            prop_assert_eq!(format!("{}{}", parts.head, parts.body), text.as_str());
            prop_assert!(text.trim().is_empty() || !parts.body.trim().is_empty());
            prop_assert!(!parts.head.is_empty() || (parts.stamp.is_none() && parts.speaker.is_none()));
        }

        #[test]
        fn pieces_hold_every_word_in_order_and_none_is_too_long(text in "([a-z.!?]{1,4}[ \n]){0,60}", most in 1..20usize) {
            let pieces = pieces(&text, most);
            prop_assert!(pieces.iter().all(|piece| piece.split_whitespace().count() <= most));
            let words: Vec<&str> = pieces.iter().flat_map(|piece| piece.split_whitespace()).collect();
            prop_assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
        }

        #[test]
        fn no_text_breaks_the_cutting(text in "\\PC{0,80}", most in 0..4usize) {
            prop_assert!(!pieces(&text, most).is_empty());
        }
    }
}
