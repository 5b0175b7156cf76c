//! Request bodies: JSON that keeps the order of its members and the spelling of its numbers.

mod parser;

use super::Code;
use crate::{Error, Result, Timestamp};
use parser::JsonFault;
use serde_json::{Map, Value};

/// How deep a body may be nested.
pub const MAX_DEPTH: usize = 128;

/// Reads a body. What was stored as JSON text is to be read with this too, or its numbers may change their spelling.
pub fn parse(bytes: &[u8]) -> Result<Value> {
    let not_json = |fault: &str| Error::new(Code::InvalidJson, format!("the body {fault}"));
    let text = std::str::from_utf8(bytes).map_err(|_| not_json("is not UTF-8"))?;
    if text.trim_ascii().is_empty() {
        return Err(not_json("is missing"));
    }
    parser::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax(at) => not_json(&format!("is not valid JSON at byte {at}")),
        JsonFault::TooDeep => not_json(&format!("is nested deeper than {MAX_DEPTH} levels")),
    })
}

/// Reads a body that has to be an object.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>> {
    match parse(bytes)? {
        Value::Object(members) => Ok(members),
        _ => Err(Error::new(Code::InvalidRequest, "the body must be a JSON object")),
    }
}

/// A member's value; `null` is as good as absent.
pub fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

/// Refuses members of the contract that nothing is done about yet: a caller who sends one counts on it.
pub fn refuse_unsupported(members: &Map<String, Value>, names: &[&str]) -> Result<()> {
    match names.iter().find(|name| member(members, name).is_some()) {
        None => Ok(()),
        Some(name) => {
            let message = format!("'{name}' is not supported yet: leave it out");
            Err(Error::new(Code::InvalidRequest, message).with_text("field", name))
        }
    }
}

/// An optional member that is a text.
pub fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>> {
    typed(members, name, "a string", Value::as_str)
}

/// An optional member that is an array.
pub fn array<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Option<&'a [Value]>> {
    typed(members, name, "an array", |value| value.as_array().map(Vec::as_slice))
}

/// An optional member that is an integer; see [`as_integer`].
pub fn integer(members: &Map<String, Value>, name: &str) -> Result<Option<i64>> {
    typed(members, name, "an integer", as_integer)
}

/// An optional member that is an RFC 3339 timestamp.
pub fn instant(members: &Map<String, Value>, name: &str) -> Result<Option<Timestamp>> {
    typed(members, name, "an RFC 3339 timestamp with an offset", |value| {
        value.as_str().and_then(Timestamp::parse)
    })
}

fn typed<'a, T>(
    members: &'a Map<String, Value>,
    name: &str,
    kind: &str,
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<Option<T>> {
    let Some(value) = member(members, name) else { return Ok(None) };
    match read(value) {
        Some(value) => Ok(Some(value)),
        None => {
            Err(Error::new(Code::InvalidRequest, format!("'{name}' must be {kind}")).with_text("field", name))
        }
    }
}

/// The integer a value is, if it is written as one: `1.0` is not. One too large for the type becomes the type's end,
/// because nothing here has a range that reaches so far: it is out of range, not malformed.
pub fn as_integer(value: &Value) -> Option<i64> {
    let digits = value.as_number()?.as_str();
    let (negative, magnitude) = digits.strip_prefix('-').map_or((false, digits), |rest| (true, rest));
    if !magnitude.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(if negative { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests;
