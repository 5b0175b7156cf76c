//! What is written: what somebody says becomes an entry as it is, and an entry changes.

use super::last_day::{LastDay, date, seconds_left};
use super::metadata::SplitMetadata;
use super::{Home, OWN};
use crate::memories::limits::MAX_TTL_SECONDS;
use crate::memories::{AddMemory, Change, GivenMetadata, Kind, Memory};
use crate::{Result, Timestamp};
use serde_json::{Map, Value, json};

/// What an entry is made of, besides where it lives and its metadata.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Utterance<'a> {
    /// Its id in mem0, if it was kept there.
    pub id: Option<&'a str>,
    /// What it says.
    pub text: &'a str,
    /// Who said it: the role.
    pub role: Option<&'a str>,
    /// Who said it: the name.
    pub name: Option<&'a str>,
    /// Its last day.
    pub expires: Option<&'a str>,
    /// The seconds until it expires.
    pub ttl: Option<i64>,
    /// When it happened.
    pub happened: Option<Timestamp>,
}

impl Utterance<'_> {
    /// The entry to add for it.
    pub fn add(&self, home: &Home, given: &SplitMetadata) -> Result<AddMemory> {
        let mut own = home.rest.clone();
        let said = [
            ("id", self.id),
            ("role", self.role),
            ("actor_id", self.name),
            ("expiration_date", self.expires),
        ];
        for (name, value) in said {
            own.extend(value.map(|value| (name.to_owned(), json!(value))));
        }
        given.merge_aside(&mut own);
        let mut metadata = given.plain.clone();
        if !own.is_empty() {
            metadata.insert(OWN.to_owned(), own.into());
        }
        Ok(AddMemory {
            kind: Some(if self.happened.is_some() { Kind::Episodic } else { home.kind }),
            metadata: GivenMetadata::new(metadata)?,
            ttl_seconds: self.ttl,
            occurred_at: self.happened,
            ..AddMemory::new(home.layer, home.identifiers.clone(), self.text.to_owned())
        })
    }
}

/// A change of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// What it is to say.
    pub text: Option<String>,
    /// Members to replace, or with `null` to remove.
    pub metadata: Option<SplitMetadata>,
    /// Its last day; `Some(None)` lets it stay.
    pub last_day: Option<Option<LastDay>>,
    /// When this is asked for.
    pub now: Timestamp,
}

impl Update {
    /// The change that this is for an entry. The day on which an entry expires stays what it is: for us a change would put it
    /// off.
    pub fn change(&self, memory: &Memory) -> Result<Change> {
        let stored = memory.metadata.get(OWN).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut own = stored.clone();
        let mut metadata = Map::new();
        if let Some(given) = &self.metadata {
            given.merge_aside(&mut own);
            metadata.clone_from(&given.plain);
            // What is set aside now stands among the others no more.
            metadata.extend(given.aside.keys().map(|key| (key.clone(), Value::Null)));
            metadata.retain(|key, _| !key.starts_with('_'));
        }
        let ttl = match &self.last_day {
            Some(None) => {
                own.shift_remove("expiration_date");
                Some(None)
            }
            Some(Some(LastDay { date, seconds_left })) => {
                own.insert("expiration_date".to_owned(), json!(date));
                Some(Some(*seconds_left))
            }
            None => {
                let last = own.get("expiration_date").and_then(Value::as_str);
                let left = last.and_then(date).map(|day| seconds_left(day, self.now));
                left.filter(|left| (1..=MAX_TTL_SECONDS).contains(left)).map(Some)
            }
        };
        if stored != own {
            let own = if own.is_empty() { Value::Null } else { own.into() };
            metadata.insert(OWN.to_owned(), own);
        }
        let is_changed = self.metadata.is_some() || !metadata.is_empty();
        let metadata = is_changed.then(|| GivenMetadata::new(metadata)).transpose()?;
        Ok(Change { content: self.text.clone(), metadata, ttl, ..Change::default() })
    }
}
