//! The caller's metadata. What our own metadata have other rules for, such as a `source` that is a mere word, is set aside
//! with what else only mem0 knows, so that it comes back as it was given.

use super::OWN;
use crate::memories::{GivenMetadata, Memory, metadata};
use serde_json::{Map, Value};

/// Where metadata are set aside.
const ASIDE: &str = "metadata";

/// Metadata of a request, told apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SplitMetadata {
    /// What goes among the metadata of the entry.
    pub plain: Map<String, Value>,
    /// What is set aside.
    pub aside: Map<String, Value>,
}

impl SplitMetadata {
    /// Tells metadata apart.
    pub fn new(given: Map<String, Value>) -> Self {
        let mut told = Self::default();
        for (key, value) in given {
            let one = Map::from_iter([(key.clone(), value.clone())]);
            let fits = key != OWN && GivenMetadata::new(one).is_ok();
            let place = if fits { &mut told.plain } else { &mut told.aside };
            place.insert(key, value);
        }
        told
    }

    /// What these make of the member [`OWN`] of an entry. A key that changes sides leaves the other; `null` removes one.
    pub(super) fn merge_aside(&self, own: &mut Map<String, Value>) {
        let stored = own.get(ASIDE).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut merged = metadata::merge(&stored, &self.aside);
        merged.retain(|key, _| !self.plain.contains_key(key));
        own.shift_remove(ASIDE);
        if !merged.is_empty() {
            own.insert(ASIDE.to_owned(), merged.into());
        }
    }
}

/// A member of the metadata of an entry, wherever it is.
pub(super) fn get<'a>(memory: &'a Memory, key: &str) -> Option<&'a Value> {
    let aside = memory.metadata.get(OWN).and_then(|own| own.get(ASIDE)).and_then(|aside| aside.get(key));
    aside.or_else(|| memory.metadata.get(key).filter(|_| key != OWN))
}

/// The metadata of an entry as they were given.
pub fn all(memory: &Memory) -> Map<String, Value> {
    let mut all = memory.metadata.clone();
    if let Some(Value::Object(own)) = all.shift_remove(OWN)
        && let Some(Value::Object(aside)) = own.get(ASIDE)
    {
        all.extend(aside.clone());
    }
    all
}
