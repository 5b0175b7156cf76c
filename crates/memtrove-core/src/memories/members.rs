//! Reading JSON objects strictly, and saying which member is not what it should be: bodies, which only transports read, and
//! metadata, which are JSON wherever they come from.

use super::Code;
use crate::files::body;
use crate::{Error, Result, Timestamp};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// The members of an object in a request. A member that is `null` is as good as absent.
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    members: &'a Map<String, Value>,
    /// What stands before the names of members in messages: `filter.`
    within: &'static str,
}

impl<'a> Members<'a> {
    /// The members of a whole body, in which no string holds a NUL and no number is beyond all measure.
    pub fn body(body: &'a Value) -> Result<Self> {
        let Value::Object(members) = body else {
            return Err(Error::new(Code::InvalidRequest, "the body must be a JSON object"));
        };
        refuse_flaws(members, "")?;
        Ok(Self::within(members, ""))
    }

    /// The members of an object whose place in the request is `within`, such as `filter.`
    pub fn within(members: &'a Map<String, Value>, within: &'static str) -> Self {
        Self { members, within }
    }

    /// One of them, of whatever type.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        body::member(self.members, name)
    }

    /// A member as it was given, `null` included.
    pub fn raw(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name)
    }

    /// The names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.members.keys().map(String::as_str)
    }

    /// All of them as they were given.
    pub fn to_map(&self) -> Map<String, Value> {
        self.members.clone()
    }

    /// Refuses members of the contract that nothing is done about yet: a caller who sends one counts on it.
    pub fn refuse_unsupported(&self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.get(name).is_some()) {
            None => Ok(()),
            Some(name) => Err(self.refuse(name, "is not supported yet: leave it out")),
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, "must be a string", Value::as_str)
    }

    /// A text with something to read in it.
    pub fn spoken(&self, name: &str) -> Result<Option<&'a str>> {
        match self.text(name)? {
            Some(text) if text.trim().is_empty() => Err(self.refuse(name, "must not be blank")),
            text => Ok(text),
        }
    }

    /// A text of so many characters.
    pub fn text_of(&self, name: &str, chars: RangeInclusive<usize>) -> Result<Option<&'a str>> {
        match self.text(name)? {
            Some(text) if !chars.contains(&text.chars().count()) => {
                Err(self.refuse(name, &format!("must have {} to {} characters", chars.start(), chars.end())))
            }
            text => Ok(text),
        }
    }

    /// An integer, written as one: neither `1.0` nor `"1"`.
    pub fn integer(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>> {
        match self.typed(name, "must be an integer", body::as_integer)? {
            Some(number) if !range.contains(&number) => {
                Err(self.refuse(name, &format!("must be from {} to {}", range.start(), range.end())))
            }
            number => Ok(number),
        }
    }

    /// How many of something are wanted: 1 to `max`.
    pub fn at_most(&self, name: &str, max: usize) -> Result<Option<usize>> {
        let most = i64::try_from(max).unwrap_or(i64::MAX);
        Ok(self.integer(name, 1..=most)?.and_then(|limit| usize::try_from(limit).ok()))
    }

    /// The same, with what is meant where it is not said.
    pub fn limit(&self, name: &str, default: usize, max: usize) -> Result<usize> {
        Ok(self.at_most(name, max)?.unwrap_or(default))
    }

    /// A number.
    pub fn number(&self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f64>> {
        match self.typed(name, "must be a number", Value::as_f64)? {
            Some(number) if !range.contains(&number) => {
                Err(self.refuse(name, &format!("must be from {} to {}", range.start(), range.end())))
            }
            number => Ok(number),
        }
    }

    /// A truth value.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "must be true or false", Value::as_bool)
    }

    /// A truth value that is false unless something else is said.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    /// An instant.
    pub fn instant(&self, name: &str) -> Result<Option<Timestamp>> {
        self.typed(name, "must be an RFC 3339 timestamp with an offset", |value| {
            value.as_str().and_then(Timestamp::parse).filter(|at| at.is_writable())
        })
    }

    /// A list.
    pub fn array(&self, name: &str) -> Result<Option<&'a [Value]>> {
        self.typed(name, "must be an array", |value| value.as_array().map(Vec::as_slice))
    }

    /// A list with something in it.
    pub fn items(&self, name: &str) -> Result<Option<&'a [Value]>> {
        match self.array(name)? {
            Some([]) => Err(self.refuse(name, "must not be empty; leave it out instead")),
            items => Ok(items),
        }
    }

    /// A list of texts.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        self.typed(name, "must be an array of strings", |value| {
            value.as_array()?.iter().map(Value::as_str).collect()
        })
    }

    /// An object; its own members are named with `within` in messages.
    pub fn object(&self, name: &str, within: &'static str) -> Result<Option<Members<'a>>> {
        let object = self.typed(name, "must be an object", Value::as_object)?;
        Ok(object.map(|members| Members::within(members, within)))
    }

    /// One of a few words, in any letter case.
    pub fn word<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
        words: &[&str],
    ) -> Result<Option<T>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match parse(text) {
            Some(word) => Ok(Some(word)),
            None => Err(self.refuse(name, &format!("must be one of {}", words.join(", ")))),
        }
    }

    /// Requires what one of the readers above finds.
    pub fn required<T>(&self, name: &str, found: Result<Option<T>>) -> Result<T> {
        found?.ok_or_else(|| self.refuse(name, "is required"))
    }

    /// The refusal of a member.
    pub fn refuse(&self, name: &str, problem: &str) -> Error {
        Error::field(format!("{}{name}", self.within), problem)
    }

    fn typed<T>(
        &self,
        name: &str,
        problem: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.refuse(name, problem))
    }
}

/// Why a text is refused that holds one.
pub(super) const NUL: &str = "must not contain the character NUL";

/// What no request may hold, wherever it stands.
struct Flaw {
    field: String,
    problem: &'static str,
}

/// Refuses an object with a NUL in it, which some stores cannot hold, or a number that no machine holds.
pub(super) fn refuse_flaws(members: &Map<String, Value>, within: &str) -> Result<()> {
    match members.iter().find_map(|(name, value)| flaw_of(name, value)) {
        Some(flaw) => Err(Error::field(format!("{within}{}", flaw.field), flaw.problem)),
        None => Ok(()),
    }
}

fn flaw_of(name: &str, value: &Value) -> Option<Flaw> {
    if has_nul(name) {
        return Some(Flaw { field: name.replace('\0', "\u{fffd}"), problem: NUL });
    }
    let Flaw { field, problem } = flaw(value)?;
    Some(Flaw { field: format!("{name}{}{field}", dot(&field)), problem })
}

fn flaw(value: &Value) -> Option<Flaw> {
    let at = |field: String, problem| Some(Flaw { field, problem });
    match value {
        Value::String(text) if has_nul(text) => at(String::new(), NUL),
        Value::Number(number) if number.as_f64().is_none() => at(String::new(), "is too large a number"),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let flaw = flaw(item)?;
            at(format!("[{index}]{}{}", dot(&flaw.field), flaw.field), flaw.problem)
        }),
        Value::Object(members) => members.iter().find_map(|(name, value)| flaw_of(name, value)),
        _ => None,
    }
}

/// What stands between the path to a member and a path below it.
fn dot(below: &str) -> &'static str {
    if below.is_empty() || below.starts_with('[') { "" } else { "." }
}

fn has_nul(text: &str) -> bool {
    memchr::memchr(0, text.as_bytes()).is_some()
}

#[cfg(test)]
mod tests;
