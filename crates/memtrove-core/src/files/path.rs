//! Names that come from a URL: the path of a file, the prefix to list by, the ids of a scope.

use super::Code;
use crate::{Error, Result};

const MAX_PATH_BYTES: usize = 1024;
const MAX_SEGMENT_BYTES: usize = 255;
const MAX_SCOPE_ID_BYTES: usize = 256;

/// Escapes that only a name that was encoded twice still has after being decoded once.
const DOUBLY_ENCODED: [&str; 4] = ["%2e", "%2f", "%5c", "%00"];

/// The path of a file within its scope: what the file is known by, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePath(String);

impl FilePath {
    /// Reads a path from a raw request target, which is percent-decoded exactly once.
    pub fn from_encoded(raw: &str) -> Result<Self> {
        Self::parse(&percent_decode(raw).ok_or_else(|| invalid("is not percent-encoded UTF-8"))?)
    }

    /// Reads a path that is not encoded.
    pub fn parse(text: &str) -> Result<Self> {
        let path = text.replace('\\', "/");
        match fault(&path) {
            Some(fault) => Err(invalid(fault)),
            None => Ok(Self(path)),
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What lists are sorted and searched by.
    pub fn folded(&self) -> String {
        fold(&self.0)
    }
}

fn invalid(fault: &str) -> Error {
    Error::new(Code::InvalidPath, format!("the file path {fault}"))
}

fn fault(path: &str) -> Option<&'static str> {
    if path.trim().is_empty() {
        return Some("is empty");
    }
    if path.len() > MAX_PATH_BYTES {
        return Some("is longer than 1024 bytes");
    }
    if path.contains("..") {
        return Some("contains '..'");
    }
    if path.bytes().any(|byte| byte.is_ascii_control()) {
        return Some("contains a control character");
    }
    let lower = path.to_ascii_lowercase();
    if DOUBLY_ENCODED.iter().any(|escape| lower.contains(escape)) {
        return Some("is percent-encoded twice");
    }
    path.split('/').find_map(|segment| match segment {
        "" => Some("begins or ends with '/' or has an empty segment"),
        "." => Some("has a segment '.'"),
        _ if segment.trim().is_empty() => Some("has a segment of white space"),
        _ if segment.len() > MAX_SEGMENT_BYTES => Some("has a segment longer than 255 bytes"),
        _ => None,
    })
}

/// Reads the prefix to list by and folds it; `None` lists everything.
pub fn list_prefix(raw: &str) -> Result<Option<String>> {
    let path = raw.replace('\\', "/");
    let prefix = path.trim().trim_start_matches('/');
    if prefix.contains("..") {
        return Err(Error::new(Code::InvalidPathPrefix, "the prefix contains '..'"));
    }
    Ok((!prefix.trim().is_empty()).then(|| fold(prefix)))
}

/// Text in lower case, each char by itself: unlike `str::to_lowercase`, where what follows a sigma changes it, the fold
/// of a prefix is then always a prefix of the fold.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Reads a tenant's or user's id from one raw segment of a request target, percent-decoded exactly once.
pub fn scope_id(raw_encoded: &str) -> Result<String> {
    let wrong = |fault: &str| Error::new(Code::InvalidPathSegment, format!("the tenant or user id {fault}"));
    let id = percent_decode(raw_encoded).ok_or_else(|| wrong("is not percent-encoded UTF-8"))?;
    if id.trim().is_empty() {
        return Err(wrong("is blank"));
    }
    if id == "." || id == ".." {
        return Err(wrong("is '.' or '..'"));
    }
    if id.contains(['/', '\\']) || id.contains(char::is_control) {
        return Err(wrong("contains a slash, a backslash or a control character"));
    }
    if id.len() > MAX_SCOPE_ID_BYTES {
        return Err(wrong("is longer than 256 bytes"));
    }
    Ok(id)
}

/// Decodes strictly: `None` where an escape is cut short or no hexadecimal, or the bytes are no UTF-8.
fn percent_decode(raw: &str) -> Option<String> {
    let hex = |byte: &u8| char::from(*byte).to_digit(16);
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let [high, low, after @ ..] = after else { return None };
            bytes.push((hex(high)? * 16 + hex(low)?) as u8);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
