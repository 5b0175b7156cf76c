//! What every format is read into: conversations, memories and files, as they were elsewhere.

use memtrove_core::Timestamp;
use memtrove_core::memories::mem0::Mem0Memory;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Something that is brought in.
#[derive(Debug, Clone)]
pub enum Record {
    /// A conversation with everything that was said in it.
    Conversation(Conversation),
    /// A memory or a fact.
    Memory(Remembered),
    /// A text that becomes a file.
    File(Document),
}

/// A conversation that was held elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// What it is known by elsewhere.
    pub source_id: String,
    pub title: Option<String>,
    /// When it began.
    pub created_at: Option<Timestamp>,
    /// What else is known of it.
    pub about: Map<String, Value>,
    /// What was said, each message after the one it answers.
    pub messages: Vec<Message>,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A person.
    User,
    /// The agent, or a tool it used.
    Ai,
}

/// What was said.
#[derive(Debug, Clone)]
pub struct Message {
    /// What it is known by elsewhere.
    pub source_id: String,
    /// The place of the message it answers.
    pub parent: Option<usize>,
    /// Whether it is on the branch that was looked at last.
    pub current: bool,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// By whom.
    pub role: Speaker,
    /// In words.
    pub text: String,
    /// What is not words: calls of tools and what they gave back, thoughts, pictures and files by their names.
    pub events: Vec<Value>,
}

/// A memory that was kept elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    /// What it is known by elsewhere.
    pub source_id: String,
    /// Whose it is, if that is known.
    pub user: Option<String>,
    /// What it says; of a fact, what that says.
    pub content: Option<String>,
    /// What it states, if it is a fact.
    pub fact: Option<Stated>,
    /// What else is known of it.
    pub metadata: Map<String, Value>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// What it is in terms of mem0, if it comes from there: where it goes and what it says follows from that.
    pub kept: Option<Box<Mem0Memory>>,
}

/// What a fact states.
#[derive(Debug, Clone)]
pub struct Stated {
    pub fact_type: &'static str,
    pub subject: String,
    pub predicate: String,
    /// And which.
    pub object: String,
}

/// A text that becomes a file.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its path among the user's files.
    pub path: String,
    /// Every byte of it.
    pub text: String,
    /// When it was written, if it says so.
    pub created_at: Option<Timestamp>,
}

/// What is not brought in, or only by name, and how often.
#[derive(Debug, Clone, Default)]
pub struct LeftOut(BTreeMap<&'static str, u64>);

/// What is left out wherever bytes are.
pub const FILES: &str = "files and pictures: their entries name them, their bytes stay behind";
/// What is left out where a message has a part of an unknown kind.
pub const UNKNOWN_PARTS: &str = "parts of messages of a kind that is not known: their entries name it";

impl LeftOut {
    /// Counts one more.
    pub fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: Self) {
        for (what, times) in other.0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    /// Each reason with its number.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, times)| (*what, *times))
    }
}

/// A message before it has its place: what it is known by, what it answers, and what it says, if anything of it is kept.
#[derive(Debug)]
pub struct Unplaced {
    /// What it is known by.
    pub id: String,
    /// What the message is known by that it answers.
    pub parent: Option<String>,
    /// The message; its parent and branch are found out.
    pub message: Option<Message>,
}

/// Puts every message after the one it answers. What is not kept is skipped: whatever answers it answers what it answered.
/// What answers itself, over however many others, has no place. `last` is the message that was looked at last.
pub fn placed(messages: Vec<Unplaced>, last: Option<&str>, left_out: &mut LeftOut) -> Vec<Message> {
    let known: HashMap<String, usize> =
        messages.iter().enumerate().map(|(place, message)| (message.id.clone(), place)).collect();
    let above: Vec<Option<usize>> = messages
        .iter()
        .map(|message| message.parent.as_ref().and_then(|parent| known.get(parent)).copied())
        .collect();
    let mut current = HashSet::new();
    let mut next = last.and_then(|last| known.get(last)).copied();
    while let Some(place) = next.filter(|place| current.insert(*place)) {
        next = above[place];
    }
    let mut below: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for (place, parent) in above.iter().enumerate() {
        below.entry(*parent).or_default().push(place);
    }
    let mut messages: Vec<Option<Unplaced>> = messages.into_iter().map(Some).collect();
    let mut found = Vec::new();
    // Not by recursion: a long conversation is as deep as it is long.
    let mut waiting: Vec<(usize, Option<usize>)> = Vec::new();
    let push = |waiting: &mut Vec<(usize, Option<usize>)>, of: Option<usize>, parent: Option<usize>| {
        waiting.extend(below.get(&of).into_iter().flatten().rev().map(|place| (*place, parent)));
    };
    push(&mut waiting, None, None);
    while let Some((place, mut parent)) = waiting.pop() {
        let Some(unplaced) = messages[place].take() else { continue };
        if let Some(message) = unplaced.message {
            found.push(Message { parent, current: current.contains(&place), ..message });
            parent = Some(found.len() - 1);
        }
        push(&mut waiting, Some(place), parent);
    }
    for lost in messages.into_iter().flatten() {
        if lost.message.is_some() {
            left_out.note("messages that answer themselves, so that they have no place");
        }
    }
    found
}

/// A text among the members of an object, unless it is blank.
pub fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

/// What is in a list among the members of an object.
pub fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// A time among the members of an object: as RFC 3339 has it, with or without an offset, or in seconds since 1970.
pub fn time(of: &Value, name: &str) -> Option<Timestamp> {
    let value = of.get(name)?;
    match value.as_str() {
        Some(text) => instant(text),
        None => {
            let seconds = value.as_f64().filter(|seconds| seconds.is_finite() && *seconds > 0.0)?;
            // What the number cannot be is cut off by the conversion, and by the next line.
            Some(Timestamp::from_micros((seconds * 1e6) as i64)).filter(|at| at.is_writable())
        }
    }
}

/// A time as people and programs write it; without an offset it is UTC, and a date is the beginning of its day.
pub fn instant(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let shapes =
        [text.to_owned(), format!("{text}Z"), format!("{text}T00:00:00Z"), text.replacen(' ', "T", 1)];
    let found = shapes.iter().chain([&format!("{}Z", shapes[3])]).find_map(|text| Timestamp::parse(text));
    found.filter(|at| at.is_writable())
}

#[cfg(test)]
mod tests;
