//! A JSON parser that keeps numbers as they are written. `serde_json` with `arbitrary_precision` very nearly does, but
//! makes `1E400` a `1e+400`; its own nesting limit is one level short of ours; and it takes an object with a member of
//! one of its private names for something else than an object, which here is an object like any other. Strings with
//! escapes are left to it.

use crate::json::end_of_string;
use serde_json::{Map, Number, Value};

/// Why text is no acceptable JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonFault {
    /// It is no JSON, seen at this byte.
    Syntax(usize),
    /// It is nested too deeply.
    TooDeep,
}

/// Reads JSON text that is nested no deeper than this many levels.
pub(super) fn parse(text: &str, levels: usize) -> Result<Value, JsonFault> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(levels)?;
    match parser.next_token() {
        Some(_) => Err(parser.fault()),
        None => Ok(value),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, levels: usize) -> Result<Value, JsonFault> {
        match self.next_token() {
            Some(b'{') => self.object(levels.checked_sub(1).ok_or(JsonFault::TooDeep)?).map(Value::Object),
            Some(b'[') => self.array(levels.checked_sub(1).ok_or(JsonFault::TooDeep)?).map(Value::Array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.fault()),
        }
    }

    fn object(&mut self, levels: usize) -> Result<Map<String, Value>, JsonFault> {
        let mut members = Map::new();
        self.at += 1;
        if self.take(b'}') {
            return Ok(members);
        }
        loop {
            if self.next_token() != Some(b'"') {
                return Err(self.fault());
            }
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.fault());
            }
            members.insert(name, self.value(levels)?);
            if self.take(b'}') {
                return Ok(members);
            }
            if !self.take(b',') {
                return Err(self.fault());
            }
        }
    }

    fn array(&mut self, levels: usize) -> Result<Vec<Value>, JsonFault> {
        let mut items = Vec::new();
        self.at += 1;
        if self.take(b']') {
            return Ok(items);
        }
        loop {
            items.push(self.value(levels)?);
            if self.take(b']') {
                return Ok(items);
            }
            if !self.take(b',') {
                return Err(self.fault());
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        let fault = self.fault();
        let from = self.at + 1;
        let end = end_of_string(self.text, from).ok_or(fault)?;
        let quoted = &self.text[self.at..end];
        let content = &self.text[from..end - 1];
        self.at = end;
        if content.contains('\\') {
            return serde_json::from_str(quoted).map_err(|_| fault);
        }
        // Without a way out in the middle this is done many bytes at a time, and texts are long.
        let has_control = content.bytes().fold(false, |found, byte| found | (byte < b' '));
        if has_control { Err(fault) } else { Ok(content.to_owned()) }
    }

    fn number(&mut self) -> Result<Number, JsonFault> {
        let from = self.at;
        self.skip(b"-");
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            return Err(self.fault());
        }
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            self.digits()?;
        }
        // Every other way to make a number spells its exponent anew.
        Ok(Number::from_string_unchecked(self.text[from..self.at].to_owned()))
    }

    fn digits(&mut self) -> Result<&'a str, JsonFault> {
        let rest = &self.text[self.at..];
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        if count == 0 { Err(self.fault()) } else { Ok(&rest[..count]) }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonFault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.fault());
        }
        self.at += word.len();
        Ok(value)
    }

    /// The first byte after white space, which is passed over.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn take(&mut self, token: u8) -> bool {
        let found = self.next_token() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn skip(&mut self, any_of: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| any_of.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self) -> JsonFault {
        JsonFault::Syntax(self.at)
    }
}
