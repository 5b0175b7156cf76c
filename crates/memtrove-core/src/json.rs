//! JSON text that is known to be well-formed, and the rules that look at its values.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::ops::Range;

/// One JSON value, kept as the text it arrived as. It is copied to the wire as it is: stored content is never parsed
/// and re-serialised on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

/// Why text is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON at all.
    #[error("is not valid JSON: {0}")]
    Syntax(String),
    /// Deeper than the limit.
    #[error("is nested deeper than {0} levels")]
    TooDeep(usize),
    /// Contains U+0000.
    #[error("must not contain NUL characters")]
    Nul,
    /// Has a member whose name our JSON library keeps for itself: it would be read as something else.
    #[error("must not have members whose names begin with '{RESERVED_NAMES}'")]
    Reserved,
}

/// How the names begin that `serde_json` gives a meaning of their own.
pub(crate) const RESERVED_NAMES: &str = "$serde_json::private::";

impl Json {
    /// Takes JSON text, checking that it is well-formed.
    pub fn parse(text: String) -> Result<Self, JsonError> {
        serde_json::from_str::<IgnoredAny>(&text).map_err(|e| JsonError::Syntax(e.to_string()))?;
        Ok(Self::stored(text))
    }

    /// Takes JSON text that was checked when it was stored.
    pub fn stored(text: String) -> Self {
        Self(text.into_boxed_str())
    }

    /// The text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Writes a value as JSON text.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, JsonError> {
        serde_json::to_string(value).map(Self::stored).map_err(|e| JsonError::Syntax(e.to_string()))
    }

    /// The parsed value.
    pub fn value(&self) -> Result<serde_json::Value, JsonError> {
        serde_json::from_str(self.get()).map_err(|e| JsonError::Syntax(e.to_string()))
    }

    /// The items, when this is an array; each keeps its own text.
    pub fn items(&self) -> Result<Vec<&RawValue>, JsonError> {
        serde_json::from_str(self.get()).map_err(|e| JsonError::Syntax(e.to_string()))
    }

    /// Checks what every stored value must fulfil: no deeper than `levels`, no NUL in any string, no reserved name.
    pub fn check(&self, levels: usize) -> Result<(), JsonError> {
        let text = self.get();
        let (mut depth, mut at) = (0usize, 0usize);
        while let Some(byte) = text.as_bytes().get(at) {
            at += 1;
            match byte {
                b'[' | b'{' => {
                    depth += 1;
                    if depth > levels {
                        return Err(JsonError::TooDeep(levels));
                    }
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'"' => {
                    let end = end_of_string(text, at).unwrap_or(text.len());
                    check_string(text, at - 1..end)?;
                    at = end;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.get()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(raw.into()))
    }
}

/// The place after the closing quote of a string whose content begins at `from`, if it is closed.
pub(crate) fn end_of_string(text: &str, mut from: usize) -> Option<usize> {
    loop {
        let found = from + memchr::memchr2(b'"', b'\\', text.as_bytes().get(from..)?)?;
        if text.as_bytes()[found] == b'"' {
            return Some(found + 1);
        }
        from = found + 2;
    }
}

/// Checks one string, quotes included. Only one with escapes has to be read to know what it says.
fn check_string(text: &str, at: Range<usize>) -> Result<(), JsonError> {
    let quoted = &text[at.clone()];
    let decoded: Option<String> =
        if quoted.contains("\\u") { serde_json::from_str(quoted).ok() } else { None };
    let content = decoded.as_deref().unwrap_or_else(|| quoted.trim_matches('"'));
    if content.contains('\0') {
        return Err(JsonError::Nul);
    }
    let is_name = || text.as_bytes()[at.end..].trim_ascii_start().first() == Some(&b':');
    if content.starts_with(RESERVED_NAMES) && is_name() { Err(JsonError::Reserved) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_nul_are_found_outside_and_inside_strings() {
        let check = |text: &str| Json::parse(text.to_owned()).unwrap().check(3);
        assert_eq!(check(r#"[[["[[[["]]]"#), Ok(()));
        assert_eq!(check("[[[[]]]]"), Err(JsonError::TooDeep(3)));
        assert_eq!(check(r#"["a\u0000"]"#), Err(JsonError::Nul));
        assert_eq!(check(r#"["a\\u0000"]"#), Ok(()), "an escaped backslash followed by text");
        assert_eq!(check(r#"{"a\"[[[[":1}"#), Ok(()));
        assert_eq!(check(r#"["\\","[[[["]"#), Ok(()));
    }

    #[test]
    fn names_that_mean_something_to_our_json_library_are_refused() {
        let check = |text: &str| Json::parse(text.to_owned()).unwrap().check(3);
        assert_eq!(check(r#"[{"$serde_json::private::Number":"1"}]"#), Err(JsonError::Reserved));
        assert_eq!(check(r#"[{"\u0024serde_json::private::RawValue" : "1"}]"#), Err(JsonError::Reserved));
        assert_eq!(
            check(r#"["$serde_json::private::Number"]"#),
            Ok(()),
            "as a value it is a text like any other"
        );
    }

    #[test]
    fn numbers_and_order_survive_as_text() {
        let text = r#"{"b":1.10,"a":123456789012345678901234567890}"#;
        assert_eq!(serde_json::to_string(&Json::parse(text.to_owned()).unwrap()).unwrap(), text);
    }
}
