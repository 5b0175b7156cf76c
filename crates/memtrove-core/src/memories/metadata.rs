//! Metadata: the members the product knows, the caller's own, and how a change is merged into what is stored.

use super::limits::{MAX_CONFLICT_KEY_CHARS, MAX_METADATA_DEPTH, MAX_TAG_CHARS, MAX_TAGS};
use super::members::{Members, refuse_flaws};
use super::pointer::{self, SourceType};
use super::{Code, Layer, Memory};
use crate::{Error, Result};
use serde_json::{Map, Value};
use std::io;

/// Where a memory may come from (`source.type`).
pub const SOURCE_TYPES: [&str; 5] = ["conversation", "tool_result", "knowledge_sync", "manual", "import"];

/// The layers that a pointer's document may belong to.
const POINTER_LAYERS: [Layer; 4] = [Layer::Project, Layer::Team, Layer::Org, Layer::Company];

/// Metadata as a request gives them: checked, words in lower case, each tag once. A `null` stays, because in a change it removes
/// a key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenMetadata(pub(super) Map<String, Value>);

impl GivenMetadata {
    /// Checks metadata.
    pub fn new(given: Map<String, Value>) -> Result<Self> {
        refuse_flaws(&given, "metadata.")?;
        if let Some(key) = given.keys().find(|key| key.starts_with('_')) {
            let problem = "is reserved: no key of metadata may begin with '_'";
            return Err(Error::field(format!("metadata.{key}"), problem));
        }
        if depth(&given) > MAX_METADATA_DEPTH {
            let problem = format!("must be nested at most {MAX_METADATA_DEPTH} levels");
            return Err(Error::field("metadata", problem));
        }
        let members = Members::within(&given, "metadata.");
        check_plain(members)?;
        let known = [
            ("tags", tags(members)?.map(Value::from)),
            ("source", source(members)?.map(Value::from)),
            (pointer::KEY, knowledge_pointer(members)?.map(Value::from)),
        ];
        let mut metadata = given;
        for (key, value) in known {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value);
            }
        }
        Ok(Self(metadata))
    }

    /// What an entry has: it was checked when it came in.
    pub fn of(memory: &Memory) -> Self {
        Self(memory.metadata.clone())
    }

    /// What is stored, with these in place of it: each key as a whole, `null` removes it.
    pub fn merged_into(&self, stored: &Map<String, Value>) -> Map<String, Value> {
        merge(stored, &self.0)
    }

    /// The members.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// The source type a word stands for, in any letter case.
pub fn source_type(word: &str) -> Option<&'static str> {
    SOURCE_TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(word))
}

/// What is stored, with a change to it: each key as a whole, `null` removes it.
pub fn merge(stored: &Map<String, Value>, change: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = stored.clone();
    for (key, value) in change {
        if value.is_null() {
            merged.shift_remove(key);
        } else {
            merged.insert(key.clone(), value.clone());
        }
    }
    merged
}

/// Refuses metadata of more than so many bytes as compact JSON.
pub fn check_size(metadata: &Map<String, Value>, max_bytes: usize) -> Result<()> {
    let actual = bytes(metadata)?;
    if actual > max_bytes {
        return Err(Error::too_long(Code::MetadataTooLarge, max_bytes, actual));
    }
    Ok(())
}

/// The known members that are one value each.
fn check_plain(members: Members<'_>) -> Result<()> {
    for name in ["relevance", "confidence", "importance"] {
        members.number(name, 0.0..=1.0)?;
    }
    members.number("decayFactor", 0.0..=10.0)?;
    for name in ["title", "description", "language", "author"] {
        members.text(name)?;
    }
    for name in ["sensitive", "private"] {
        members.boolean(name)?;
    }
    members.text_of("conflictKey", 1..=MAX_CONFLICT_KEY_CHARS)?;
    Ok(())
}

fn tags(members: Members<'_>) -> Result<Option<Vec<&str>>> {
    let Some(mut tags) = members.texts("tags")? else { return Ok(None) };
    if tags.len() > MAX_TAGS {
        return Err(members.refuse("tags", &format!("must have at most {MAX_TAGS} items")));
    }
    if tags.iter().any(|tag| !(1..=MAX_TAG_CHARS).contains(&tag.chars().count())) {
        return Err(members.refuse("tags", &format!("must hold texts of 1 to {MAX_TAG_CHARS} characters")));
    }
    let mut seen = std::collections::HashSet::new();
    tags.retain(|tag| seen.insert(*tag));
    Ok(Some(tags))
}

fn source(members: Members<'_>) -> Result<Option<Map<String, Value>>> {
    let Some(source) = members.object("source", "metadata.source.")? else { return Ok(None) };
    let kind = source.required("type", source.word("type", source_type, &SOURCE_TYPES))?;
    source.text("reference")?;
    Ok(Some(with(source, &[("type", Some(kind))])))
}

fn knowledge_pointer(members: Members<'_>) -> Result<Option<Map<String, Value>>> {
    let Some(pointer) = members.object(pointer::KEY, "metadata.knowledgePointer.")? else {
        return Ok(None);
    };
    let kinds = SourceType::ALL.map(SourceType::as_str);
    let kind = pointer.required("sourceType", pointer.word("sourceType", SourceType::parse, &kinds))?;
    for name in ["sourceId", "contentHash"] {
        if pointer.required(name, pointer.text(name))?.is_empty() {
            return Err(pointer.refuse(name, "must not be empty"));
        }
    }
    pointer.required("syncedAt", pointer.instant("syncedAt"))?;
    let layer = |word: &str| Layer::parse(word).filter(|layer| POINTER_LAYERS.contains(layer));
    let layer = pointer.word("sourceLayer", layer, &POINTER_LAYERS.map(Layer::as_str))?;
    for name in ["isOrphaned", "isStale"] {
        pointer.boolean(name)?;
    }
    let words = [("sourceType", Some(kind.as_str())), ("sourceLayer", layer.map(Layer::as_str))];
    Ok(Some(with(pointer, &words)))
}

/// An object as it was given, with some words in the contract's spelling.
fn with(members: Members<'_>, words: &[(&str, Option<&'static str>)]) -> Map<String, Value> {
    let mut object = members.to_map();
    for (name, word) in words {
        if let Some(word) = word {
            object.insert((*name).to_owned(), (*word).into());
        }
    }
    object
}

/// How many levels there are, the object itself being the first. No body is deep enough to exhaust the stack.
pub(super) fn depth(object: &Map<String, Value>) -> usize {
    fn below(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(below).max().unwrap_or(0),
            Value::Object(members) => depth(members),
            _ => 0,
        }
    }
    1 + object.values().map(below).max().unwrap_or(0)
}

/// The length of metadata as compact JSON.
fn bytes(metadata: &Map<String, Value>) -> Result<usize> {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, metadata).map_err(|error| Error::internal(error.to_string()))?;
    Ok(count.0)
}

#[cfg(test)]
mod tests;
