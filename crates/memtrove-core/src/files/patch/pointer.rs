//! RFC 6901 pointers.

use serde_json::Value;

/// A place in a document, below its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonPointer(Vec<String>);

impl JsonPointer {
    /// Reads a pointer. The root itself has none: an envelope is never moved, removed or replaced as a whole.
    pub(super) fn read(text: &str) -> Option<Self> {
        text.strip_prefix('/')?.split('/').map(unescape).collect::<Option<_>>().map(Self)
    }

    /// How many levels below the root this is.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether the other place is inside this one.
    pub(super) fn contains(&self, other: &JsonPointer) -> bool {
        other.0.len() > self.0.len() && other.0.starts_with(&self.0)
    }

    /// What is there.
    pub(super) fn target<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, token| match value {
            Value::Object(members) => members.get(token),
            Value::Array(items) => items.get(index(token)?),
            _ => None,
        })
    }

    /// What is there, to be changed.
    pub(super) fn target_mut<'a>(&self, root: &'a mut Value) -> Option<&'a mut Value> {
        self.0.iter().try_fold(root, step)
    }

    /// What holds it, and its name or index there.
    pub(super) fn parent_mut<'a>(&self, root: &'a mut Value) -> Option<(&'a mut Value, &str)> {
        let (last, parents) = self.0.split_last()?;
        Some((parents.iter().try_fold(root, step)?, last))
    }
}

fn step<'a>(value: &'a mut Value, token: &String) -> Option<&'a mut Value> {
    match value {
        Value::Object(members) => members.get_mut(token),
        Value::Array(items) => items.get_mut(index(token)?),
        _ => None,
    }
}

/// The index a token is: digits without a leading zero.
pub(super) fn index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    (canonical && token.bytes().all(|byte| byte.is_ascii_digit())).then(|| token.parse().ok()).flatten()
}

fn unescape(token: &str) -> Option<String> {
    let mut pieces = token.split('~');
    let mut text = pieces.next()?.to_owned();
    for piece in pieces {
        let (escaped, rest) = match piece.as_bytes().first()? {
            b'0' => ('~', &piece[1..]),
            b'1' => ('/', &piece[1..]),
            _ => return None,
        };
        text.push(escaped);
        text.push_str(rest);
    }
    Some(text)
}
