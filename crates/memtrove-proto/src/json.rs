//! JSON in messages: `google.protobuf.Value` and `Struct`, kept as the bytes they have on the wire.
//!
//! The usual types for these make a tree of maps out of every value, only to be written out again as JSON or bytes. Here a
//! message keeps the bytes, and two functions go from them to JSON text and back in one pass each, so that an entry's
//! content costs no more over gRPC than over REST.
//!
//! Numbers are doubles on the wire. Whole ones up to 2⁵³ become integers in JSON; what no double can hold becomes the
//! nearest one.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, decode_varint, encode_key, encode_varint};
use prost::{DecodeError, Message};

/// The fields of the messages, as `google/protobuf/struct.proto` numbers them.
mod field {
    pub const NULL: u32 = 1;
    pub const NUMBER: u32 = 2;
    pub const STRING: u32 = 3;
    pub const BOOL: u32 = 4;
    pub const STRUCT: u32 = 5;
    pub const LIST: u32 = 6;
    /// Of a `Struct` its members, of a `ListValue` its items.
    pub const PARTS: u32 = 1;
    pub const NAME: u32 = 1;
    pub const MEMBER: u32 = 2;
}

/// Text that is nested deeper ends there, so that no text can use up the stack. Nothing that is stored comes near it.
const DEEPEST: usize = 1000;
/// Down to here lengths are as short as they can be.
const MOVED_DEPTH: usize = 16;
/// The bytes of a length that is not shortened: enough for any message.
const WIDEST: usize = 5;
/// The most bytes of a field that are not its content.
const KEY_AND_LENGTH: usize = 15;
/// Room for the first item of an array. Each of the others gets as much as the one before it took, and no more than this.
const ITEM: usize = 512;
/// Integers up to here are the same as doubles.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Why bytes are no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotJson {
    /// A message does not end where it should, or holds something else than it should.
    Malformed,
    /// Deeper than the limit.
    TooDeep,
    /// NaN or infinite: JSON has no word for it.
    NotFinite,
}

impl std::fmt::Display for NotJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "is not a well-formed value",
            Self::TooDeep => "is nested too deeply",
            Self::NotFinite => "has a number that is not finite",
        })
    }
}

impl std::error::Error for NotJson {}

/// A JSON value in a message: `google.protobuf.Value`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Value(Vec<u8>);

/// A JSON object in a message: `google.protobuf.Struct`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Struct(Vec<u8>);

impl Value {
    /// The value that a JSON text says.
    ///
    /// The text must be well-formed. What is not comes out as some value or other; nothing panics.
    pub fn from_json(text: &str) -> Self {
        let mut writer = Writer::new(text, Vec::with_capacity(text.len() + 16));
        writer.value();
        Self(writer.wire)
    }

    /// The items of a JSON array, each as a value.
    pub fn items_from_json(array: &str) -> Vec<Self> {
        let mut writer = Writer::new(array, Vec::new());
        let mut items = Vec::new();
        let mut room = ITEM.min(array.len());
        writer.array(|writer| {
            writer.wire.reserve(room);
            writer.value();
            let item = std::mem::take(&mut writer.wire);
            room = item.len().min(ITEM);
            items.push(Self(item));
        });
        items
    }

    /// Appends the value as JSON text; not if it is deeper than `levels`.
    pub fn write_json(&self, json: &mut String, levels: usize) -> Result<(), NotJson> {
        value_to_json(&self.0, json, levels)
    }

    /// The bytes it has on the wire. The same bytes are the same value.
    pub fn as_wire(&self) -> &[u8] {
        &self.0
    }
}

impl Struct {
    /// The object that a JSON text says, under the terms of [`Value::from_json`].
    pub fn from_json(text: &str) -> Self {
        let mut writer = Writer::new(text, Vec::with_capacity(text.len() + 16));
        writer.members();
        Self(writer.wire)
    }

    /// Appends the object as JSON text; not if it is deeper than `levels`.
    pub fn write_json(&self, json: &mut String, levels: usize) -> Result<(), NotJson> {
        struct_to_json(&self.0, json, levels)
    }
}

macro_rules! kept_as_wire {
    ($($name:ident)*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut json = String::new();
                match self.write_json(&mut json, DEEPEST) {
                    Ok(()) => f.write_str(&json),
                    Err(error) => write!(f, "<{error}>"),
                }
            }
        }

        impl Message for $name {
            fn encode_raw(&self, buf: &mut impl BufMut) {
                buf.put_slice(&self.0);
            }

            fn merge_field(
                &mut self,
                tag: u32,
                wire_type: WireType,
                buf: &mut impl Buf,
                _: DecodeContext,
            ) -> Result<(), DecodeError> {
                keep_field(&mut self.0, tag, wire_type, buf)
            }

            fn encoded_len(&self) -> usize {
                self.0.len()
            }

            fn clear(&mut self) {
                self.0.clear();
            }
        }
    )*};
}

kept_as_wire!(Value Struct);

/// Copies a field as it is. What is in it is looked at when somebody wants to know.
fn keep_field(
    wire: &mut Vec<u8>,
    tag: u32,
    wire_type: WireType,
    buf: &mut impl Buf,
) -> Result<(), DecodeError> {
    let length = match wire_type {
        WireType::Varint => {
            encode_key(tag, wire_type, wire);
            encode_varint(decode_varint(buf)?, wire);
            return Ok(());
        }
        WireType::LengthDelimited => decode_varint(buf)?,
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::StartGroup | WireType::EndGroup => return Err(malformed()),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= buf.remaining());
    let length = length.ok_or_else(malformed)?;
    // Most values are one field, and there are hundreds in a message: one allocation each.
    wire.reserve(length + KEY_AND_LENGTH);
    encode_key(tag, wire_type, wire);
    if wire_type == WireType::LengthDelimited {
        encode_varint(length as u64, wire);
    }
    wire.put(buf.take(length));
    Ok(())
}

#[allow(deprecated, reason = "there is no other way to make one outside of prost")]
fn malformed() -> DecodeError {
    DecodeError::new("a JSON value is not well-formed")
}

// ---- From the wire to JSON.

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bits(u64),
    Bytes(&'a [u8]),
}

/// Takes the next field off a message.
fn next_field<'a>(wire: &mut &'a [u8]) -> Result<(u32, Field<'a>), NotJson> {
    let bad = |_| NotJson::Malformed;
    let key = decode_varint(wire).map_err(bad)?;
    let tag = u32::try_from(key >> 3).map_err(|_| NotJson::Malformed)?;
    let mut take = |length: u64| {
        let length = usize::try_from(length).map_err(|_| NotJson::Malformed)?;
        let (taken, rest) = wire.split_at_checked(length).ok_or(NotJson::Malformed)?;
        *wire = rest;
        Ok(taken)
    };
    let field = match key & 7 {
        0 => Field::Number(decode_varint(wire).map_err(bad)?),
        1 => {
            let bytes = take(8)?;
            Field::Bits(u64::from_le_bytes(bytes.try_into().map_err(|_| NotJson::Malformed)?))
        }
        2 => {
            let length = decode_varint(wire).map_err(bad)?;
            let (taken, rest) = usize::try_from(length)
                .ok()
                .and_then(|length| wire.split_at_checked(length))
                .ok_or(NotJson::Malformed)?;
            *wire = rest;
            Field::Bytes(taken)
        }
        5 => {
            take(4)?;
            Field::Bits(0)
        }
        _ => return Err(NotJson::Malformed),
    };
    Ok((tag, field))
}

fn value_to_json(mut wire: &[u8], json: &mut String, levels: usize) -> Result<(), NotJson> {
    // Of several kinds the last one holds, as everywhere in this format; of none it is null.
    let mut kind = (field::NULL, Field::Number(0));
    while !wire.is_empty() {
        let next = next_field(&mut wire)?;
        if (field::NULL..=field::LIST).contains(&next.0) {
            kind = next;
        }
    }
    match kind {
        (field::NULL, Field::Number(_)) => json.push_str("null"),
        (field::NUMBER, Field::Bits(bits)) => number_to_json(f64::from_bits(bits), json)?,
        (field::STRING, Field::Bytes(text)) => string_to_json(text, json)?,
        (field::BOOL, Field::Number(yes)) => json.push_str(if yes == 0 { "false" } else { "true" }),
        (field::STRUCT, Field::Bytes(members)) => struct_to_json(members, json, levels)?,
        (field::LIST, Field::Bytes(items)) => list_to_json(items, json, levels)?,
        _ => return Err(NotJson::Malformed),
    }
    Ok(())
}

fn list_to_json(mut wire: &[u8], json: &mut String, levels: usize) -> Result<(), NotJson> {
    let levels = levels.checked_sub(1).ok_or(NotJson::TooDeep)?;
    json.push('[');
    let mut first = true;
    while !wire.is_empty() {
        let (field::PARTS, Field::Bytes(item)) = next_field(&mut wire)? else { continue };
        if !std::mem::take(&mut first) {
            json.push(',');
        }
        value_to_json(item, json, levels)?;
    }
    json.push(']');
    Ok(())
}

fn struct_to_json(mut wire: &[u8], json: &mut String, levels: usize) -> Result<(), NotJson> {
    let levels = levels.checked_sub(1).ok_or(NotJson::TooDeep)?;
    let mut members: Vec<(&[u8], &[u8])> = Vec::new();
    while !wire.is_empty() {
        let (field::PARTS, Field::Bytes(mut member)) = next_field(&mut wire)? else { continue };
        let (mut name, mut value): (&[u8], &[u8]) = (&[], &[]);
        while !member.is_empty() {
            match next_field(&mut member)? {
                (field::NAME, Field::Bytes(bytes)) => name = bytes,
                (field::MEMBER, Field::Bytes(bytes)) => value = bytes,
                _ => {}
            }
        }
        members.push((name, value));
    }
    keep_last_of_each_name(&mut members);
    json.push('{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        string_to_json(name, json)?;
        json.push(':');
        value_to_json(value, json, levels)?;
    }
    json.push('}');
    Ok(())
}

/// A map may be sent with a name in it twice, and then the last one holds.
fn keep_last_of_each_name(members: &mut Vec<(&[u8], &[u8])>) {
    let mut names: Vec<&[u8]> = members.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    if names.windows(2).all(|pair| pair[0] != pair[1]) {
        return;
    }
    let mut seen = std::collections::HashSet::new();
    members.reverse();
    members.retain(|(name, _)| seen.insert(*name));
    members.reverse();
}

fn number_to_json(number: f64, json: &mut String) -> Result<(), NotJson> {
    use std::fmt::Write;
    if !number.is_finite() {
        return Err(NotJson::NotFinite);
    }
    // Writing to a `String` cannot fail.
    let _ = if number.fract() == 0.0
        && number.abs() <= LARGEST_WHOLE
        && !(number == 0.0 && number.is_sign_negative())
    {
        write!(json, "{}", number as i64)
    } else {
        write!(json, "{number:?}")
    };
    Ok(())
}

fn string_to_json(text: &[u8], json: &mut String) -> Result<(), NotJson> {
    use std::fmt::Write;
    let text = std::str::from_utf8(text).map_err(|_| NotJson::Malformed)?;
    json.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        json.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            // Writing to a `String` cannot fail.
            _ => drop(write!(json, "\\u{byte:04x}")),
        }
    }
    json.push_str(&text[plain..]);
    json.push('"');
    Ok(())
}

// ---- From JSON to the wire.

/// Reads JSON text and writes what it says as messages.
struct Writer<'a> {
    text: &'a [u8],
    at: usize,
    wire: Vec<u8>,
    depth: usize,
}

impl<'a> Writer<'a> {
    fn new(text: &'a str, wire: Vec<u8>) -> Self {
        Self { text: text.as_bytes(), at: 0, wire, depth: 0 }
    }

    fn peek(&mut self) -> u8 {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// The fields of a `Value`.
    fn value(&mut self) {
        match self.peek() {
            b'{' => self.within(field::STRUCT, Self::members),
            b'[' => self.within(field::LIST, |writer| {
                writer.array(|writer| writer.within(field::PARTS, Self::value));
            }),
            b'"' => self.within(field::STRING, Self::string),
            b't' => self.word(field::BOOL, 1, 4),
            b'f' => self.word(field::BOOL, 0, 5),
            b'n' => self.word(field::NULL, 0, 4),
            _ => self.number(),
        }
    }

    /// Writes a message, whose length is known once it is written, after that length.
    fn within(&mut self, tag: u32, message: impl FnOnce(&mut Self)) {
        if self.depth == DEEPEST {
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        encode_key(tag, WireType::LengthDelimited, &mut self.wire);
        let start = self.wire.len();
        // Most are shorter than 128 bytes; only the others have to make room for a longer length. Deep down they do not, so that
        // no text is moved more than some dozen times.
        let kept = if self.depth > MOVED_DEPTH { WIDEST } else { 1 };
        self.wire.resize(start + kept, 0);
        message(self);
        let (mut length, mut encoded) = (self.wire.len() - start - kept, [0u8; 10]);
        let mut width = 0;
        while length >= 0x80 || width + 1 < kept {
            encoded[width] = length as u8 | 0x80;
            length >>= 7;
            width += 1;
        }
        encoded[width] = length as u8;
        width += 1;
        if width > kept {
            let end = self.wire.len();
            self.wire.resize(end + width - kept, 0);
            self.wire.copy_within(start + kept..end, start + width);
        }
        self.wire[start..start + width].copy_from_slice(&encoded[..width]);
        self.depth -= 1;
    }

    /// The items of an array, one after the other.
    fn array(&mut self, mut item: impl FnMut(&mut Self)) {
        self.peek();
        self.at += 1;
        while !matches!(self.peek(), b']' | 0) {
            item(self);
            self.skip_comma();
        }
        self.at += 1;
    }

    /// The fields of a `Struct`: its members.
    fn members(&mut self) {
        self.peek();
        self.at += 1;
        while self.peek() == b'"' {
            self.within(field::PARTS, |writer| {
                writer.within(field::NAME, Self::string);
                // The colon.
                writer.peek();
                writer.at += 1;
                writer.within(field::MEMBER, Self::value);
            });
            self.skip_comma();
        }
        self.peek();
        self.at += 1;
    }

    fn skip_comma(&mut self) {
        if self.peek() == b',' {
            self.at += 1;
        }
    }

    fn word(&mut self, tag: u32, value: u64, length: usize) {
        self.at += length;
        encode_key(tag, WireType::Varint, &mut self.wire);
        encode_varint(value, &mut self.wire);
    }

    fn number(&mut self) {
        let start = self.at;
        while let Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
        }
        // Never stand still, whatever is there.
        self.at = self.at.max(start + 1);
        let text = self.text.get(start..self.at).and_then(|text| std::str::from_utf8(text).ok());
        let number: f64 = text.and_then(|text| text.parse().ok()).unwrap_or(0.0);
        encode_key(field::NUMBER, WireType::SixtyFourBit, &mut self.wire);
        self.wire.put_f64_le(number.clamp(f64::MIN, f64::MAX));
    }

    /// The characters of a string, without its quotes and escapes.
    fn string(&mut self) {
        self.at += 1;
        loop {
            let start = self.at;
            let rest = self.text.get(start..).unwrap_or_default();
            let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            self.at += plain;
            self.wire.extend_from_slice(&rest[..plain]);
            match self.text.get(self.at) {
                Some(b'\\') => self.escape(),
                _ => break,
            }
        }
        self.at += 1;
    }

    fn escape(&mut self) {
        let escaped = self.text.get(self.at + 1).copied().unwrap_or(0);
        self.at += 2;
        let character = match escaped {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => self.unicode(),
            other => char::from(other),
        };
        let mut utf8 = [0; 4];
        self.wire.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
    }

    /// Four digits, or twice four where they are half of a character.
    fn unicode(&mut self) -> char {
        let first = self.four_digits();
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
        }
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u")) {
            return char::REPLACEMENT_CHARACTER;
        }
        self.at += 2;
        let second = self.four_digits().wrapping_sub(0xdc00);
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second & 0x3ff))
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn four_digits(&mut self) -> u32 {
        let digits = self.text.get(self.at..self.at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        self.at += 4;
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
