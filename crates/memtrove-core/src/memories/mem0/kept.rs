//! A memory that mem0 kept, brought in: placed and told apart as if it had been added here.

use super::last_day::{date, seconds_left};
use super::metadata::SplitMetadata;
use super::{Entities, Entity, Utterance};
use crate::memories::AddMemory;
use crate::memories::limits::{MAX_TAG_CHARS, MAX_TAGS, MAX_TTL_SECONDS};
use crate::{Result, Timestamp};
use serde_json::{Map, Value, json};

/// A memory as mem0 shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mem0Memory {
    /// Its id there.
    pub id: String,
    /// Whom it is about.
    pub entities: Entities,
    /// What it says.
    pub text: String,
    /// Its metadata.
    pub metadata: Map<String, Value>,
    /// Its categories, which are tags here.
    pub categories: Vec<String>,
    /// Who said it: the role, and the name.
    pub said_by: [Option<String>; 2],
    /// Its last day.
    pub expiration_date: Option<String>,
}

/// For how long a memory lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is deleted.
    Lasting,
    /// For this many seconds.
    Seconds(i64),
    /// Its last day is further away than a lifetime can be here, so it lasts.
    TooLong,
    /// Its last day is over.
    Over,
}

impl Mem0Memory {
    /// How long it lives from now on. What is no date has no meaning there either.
    pub fn lifetime(&self, now: Timestamp) -> Lifetime {
        // A time of the day may stand behind the date.
        let day = self.expiration_date.as_deref().and_then(|text| text.get(..10)).and_then(date);
        match day.map(|day| seconds_left(day, now)) {
            None => Lifetime::Lasting,
            Some(..=0) => Lifetime::Over,
            Some(left @ 1..=MAX_TTL_SECONDS) => Lifetime::Seconds(left),
            Some(_) => Lifetime::TooLong,
        }
    }

    /// The entry to add for it, of a user where it names none itself.
    pub fn add(&self, user: Option<&str>, now: Timestamp) -> Result<AddMemory> {
        let mut entities = self.entities.clone();
        if let (None, Some(user)) = (entities.get(Entity::User), user) {
            entities.set(Entity::User, user)?;
        }
        let home = entities.home()?;
        let mut given = SplitMetadata::new(self.metadata.clone());
        let mut tags = self.categories.clone();
        tags.retain(|tag| (1..=MAX_TAG_CHARS).contains(&tag.chars().count()));
        tags.truncate(MAX_TAGS);
        if !tags.is_empty()
            && let Some(own) = given.plain.insert("tags".to_owned(), json!(tags))
        {
            given.aside.insert("tags".to_owned(), own);
        }
        let ttl = match self.lifetime(now) {
            Lifetime::Seconds(left) => Some(left),
            Lifetime::Lasting | Lifetime::TooLong | Lifetime::Over => None,
        };
        let [role, name] = &self.said_by;
        let utterance = Utterance {
            id: Some(&self.id),
            text: &self.text,
            role: role.as_deref(),
            name: name.as_deref(),
            expires: self.expiration_date.as_deref().and_then(|text| text.get(..10)),
            ttl,
            happened: None,
        };
        utterance.add(&home, &given)
    }
}
