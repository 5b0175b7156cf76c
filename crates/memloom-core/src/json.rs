//! JSON text that is known to be well-formed, and the rules that look at its values.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One JSON value, kept as the text it arrived as. It is copied to the wire as it is: stored content is never parsed
/// and re-serialised on its way out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

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
}

impl Json {
    /// Takes JSON text, checking that it is well-formed.
    pub fn parse(text: String) -> Result<Self, JsonError> {
        RawValue::from_string(text).map(Self).map_err(|e| JsonError::Syntax(e.to_string()))
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Writes a value as JSON text.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, JsonError> {
        serde_json::value::to_raw_value(value).map(Self).map_err(|e| JsonError::Syntax(e.to_string()))
    }

    /// The parsed value.
    pub fn value(&self) -> Result<serde_json::Value, JsonError> {
        serde_json::from_str(self.get()).map_err(|e| JsonError::Syntax(e.to_string()))
    }

    /// The items, when this is an array; each keeps its own text.
    pub fn items(&self) -> Result<Vec<&RawValue>, JsonError> {
        serde_json::from_str(self.get()).map_err(|e| JsonError::Syntax(e.to_string()))
    }

    /// Checks what every stored value must fulfil: no deeper than `levels`, no NUL in any string.
    pub fn check(&self, levels: usize) -> Result<(), JsonError> {
        let mut depth = 0usize;
        let mut bytes = self.get().bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'[' | b'{' => {
                    depth += 1;
                    if depth > levels {
                        return Err(JsonError::TooDeep(levels));
                    }
                }
                b']' | b'}' => depth -= 1,
                b'"' => skip_string(&mut bytes)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// Walks to the closing quote. Well-formed JSON can hold U+0000 only as the escape `\u0000`.
fn skip_string(bytes: &mut std::str::Bytes<'_>) -> Result<(), JsonError> {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return Ok(()),
            b'\\' => {
                if bytes.next() == Some(b'u') {
                    let mut code = [0u8; 4];
                    for slot in &mut code {
                        *slot = bytes.next().unwrap_or_default();
                    }
                    if &code == b"0000" {
                        return Err(JsonError::Nul);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
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
    }

    #[test]
    fn numbers_and_order_survive_as_text() {
        let text = r#"{"b":1.10,"a":123456789012345678901234567890}"#;
        assert_eq!(serde_json::to_string(&Json::parse(text.to_owned()).unwrap()).unwrap(), text);
    }
}
