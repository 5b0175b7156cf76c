//! What is written: messages become entries as they are, and an entry changes.

use super::instant::{DAY, Instant, date};
use super::metadata::SplitMetadata;
use super::{Entities, Entity, Home, OWN};
use crate::memories::limits::MAX_TTL_SECONDS;
use crate::memories::members::Members;
use crate::memories::{Code, Kind, Memory, MemoryCaller};
use crate::{Error, Result, Timestamp};
use serde_json::{Map, Value, json};

/// What a language model would be needed for, wherever it is asked for.
const FOR_A_MODEL: [&str; 10] = [
    "custom_categories",
    "custom_instructions",
    "agent_custom_instructions",
    "structured_data_schema",
    "includes",
    "excludes",
    "prompt",
    "memory_type",
    "enable_graph",
    "custom_prompt",
];

/// What else the body of an add may say. The last four are about how it is answered, and change nothing here.
const OF_AN_ADD: [&str; 11] = [
    "messages",
    "infer",
    "filters",
    "metadata",
    "expiration_date",
    "timestamp",
    "immutable",
    "version",
    "api_version",
    "output_format",
    "async_mode",
];

/// The refusal of what only a language model can do.
pub fn needs_a_model(what: &str) -> Error {
    let message = format!(
        "{what}, and no language model is configured; nothing was stored. To store messages as they are, pass infer=False"
    );
    Error::new(Code::InvalidRequest, message).with("reason", "no_language_model")
}

/// Messages to be remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Add {
    /// A body of `/v1/memories` for each.
    pub bodies: Vec<Value>,
    /// How many messages are left out, as mem0 does: instructions to the model are no memories.
    pub system: usize,
    /// How many more are, as in mem0, because nobody said anything: they have no role, or no text, as calls of tools have none.
    pub unsaid: usize,
}

impl Add {
    /// Reads the body of an add.
    pub fn read(body: &Value, caller: &MemoryCaller, now: Timestamp) -> Result<Self> {
        let members = Members::body(body)?;
        if members.boolean("infer")?.unwrap_or(true) {
            return Err(needs_a_model("infer=True has a language model extract facts from the messages"));
        }
        refuse_what_needs_a_model(members)?;
        refuse_unknown(members)?;
        if members.flag("immutable")? {
            return Err(members.refuse("immutable", "cannot be asked for: every memory here can be changed"));
        }
        let entities = entities(members)?.required()?;
        entities.authorise(caller)?;
        let home = entities.home()?;
        let given = SplitMetadata::read(members)?.unwrap_or_default();
        let expires = match expiration(members)? {
            Some(date) => Some((date, ttl(members, date, now)?)),
            None => None,
        };
        let happened = match members.get("timestamp") {
            Some(value) => Some(instant(members, "timestamp", value)?),
            None => None,
        };
        let (mut bodies, mut system, mut unsaid) = (Vec::new(), 0, 0);
        for message in messages(members)? {
            let (role, name, text) = match message {
                Message::Said { role, name, text } => (role, name, text),
                Message::Instruction => {
                    system += 1;
                    continue;
                }
                Message::Unsaid => {
                    unsaid += 1;
                    continue;
                }
            };
            let saying = Saying {
                text: &text,
                role: Some(role),
                name,
                expires: expires.map(|(date, _)| date),
                ttl: expires.map(|(_, ttl)| ttl),
                happened,
            };
            bodies.push(saying.body(&home, &given, home.rest.clone()));
        }
        if bodies.is_empty() {
            let problem = "holds nothing to remember; messages of the system, and those without a role or a text, are left out";
            return Err(members.refuse("messages", problem));
        }
        Ok(Self { bodies, system, unsaid })
    }

    /// What was left out, for people.
    pub fn left_out(&self) -> Option<String> {
        let told = [
            (self.system, "system message(s) were not stored: instructions are no memories"),
            (self.unsaid, "message(s) were not stored: they have no role or no text"),
        ];
        let told: Vec<String> = (told.into_iter())
            .filter(|(many, _)| *many > 0)
            .map(|(many, what)| format!("{many} {what}"))
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// What an entry is made of, besides where it lives and its metadata.
pub(super) struct Saying<'a> {
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

impl Saying<'_> {
    /// The body of `/v1/memories` for it; `own` is what else is kept in [`OWN`].
    pub(super) fn body(&self, home: &Home, given: &SplitMetadata, mut own: Map<String, Value>) -> Value {
        let said = [("role", self.role), ("actor_id", self.name), ("expiration_date", self.expires)];
        for (name, value) in said {
            own.extend(value.map(|value| (name.to_owned(), json!(value))));
        }
        given.merge_aside(&mut own);
        let mut metadata = given.plain.clone();
        if !own.is_empty() {
            metadata.insert(OWN.to_owned(), own.into());
        }
        let Home { layer, kind, identifiers, .. } = home;
        let kind = if self.happened.is_some() { Kind::Episodic } else { *kind };
        let identifiers: Map<_, _> =
            identifiers.given().map(|(name, value)| (name.as_str().to_owned(), json!(value))).collect();
        json!({
            "content": self.text,
            "layer": layer.as_str(),
            "kind": kind.as_str(),
            "identifiers": identifiers,
            "metadata": metadata,
            "ttlSeconds": self.ttl,
            "occurredAt": self.happened,
        })
    }
}

/// The ids of an add: beside the messages, or in `filters`.
fn entities(members: Members<'_>) -> Result<Entities> {
    let named = Entities::read(members)?;
    let Some(filters) = members.object("filters", "filters.")? else { return Ok(named) };
    let known = |name: &&str| Entity::ALL.iter().any(|entity| entity.member() == *name);
    if let Some(unknown) = filters.names().find(|name| !known(name)) {
        return Err(filters.refuse(unknown, "says nothing about whose a new memory is"));
    }
    let contradiction = || Error::field("filters", "contradict the ids beside them");
    named.and(&Entities::read(filters)?).ok_or_else(contradiction)
}

/// A message.
enum Message<'a> {
    /// Somebody says something.
    Said { role: &'a str, name: Option<&'a str>, text: String },
    /// The system instructs the model.
    Instruction,
    /// Nobody says anything, or nobody knows who.
    Unsaid,
}

impl<'a> Message<'a> {
    fn of(role: Option<&'a str>, name: Option<&'a str>, text: String) -> Self {
        match role {
            Some("system") => Self::Instruction,
            Some(role) if !role.is_empty() && !text.trim().is_empty() => Self::Said { role, name, text },
            _ => Self::Unsaid,
        }
    }
}

fn messages(members: Members<'_>) -> Result<Vec<Message<'_>>> {
    let given = members.required("messages", Ok(members.get("messages")))?;
    match given {
        Value::String(text) => Ok(vec![Message::of(Some("user"), None, text.clone())]),
        Value::Object(_) => Ok(vec![message(members, given)?]),
        Value::Array(items) => items.iter().map(|item| message(members, item)).collect(),
        _ => Err(members.refuse("messages", "must be a string, a message, or a list of messages")),
    }
}

fn message<'a>(members: Members<'_>, given: &'a Value) -> Result<Message<'a>> {
    let Value::Object(message) = given else {
        return Err(members.refuse("messages", "must hold objects with 'role' and 'content'"));
    };
    let message = Members::within(message, "messages[].");
    let text = match message.get("content") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(text_of_part).collect::<Result<Vec<_>>>()?.join("\n"),
        Some(part @ Value::Object(_)) => text_of_part(part)?,
        Some(_) => return Err(message.refuse("content", "must be a string")),
    };
    Ok(Message::of(message.text("role")?, message.text("name")?, text))
}

/// The text of a part of a message. Pictures and documents are put into words by a model.
fn text_of_part(part: &Value) -> Result<String> {
    match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
        (Some("text") | None, Some(text)) => Ok(text.to_owned()),
        _ => Err(needs_a_model(
            "a part of a message that is no text has to be put into words by a language model",
        )),
    }
}

/// A change of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    text: Option<String>,
    metadata: Option<SplitMetadata>,
    /// `Some(None)` removes it.
    expiration: Option<Option<(String, i64)>>,
    now: Timestamp,
}

impl Update {
    /// Reads the body of an update.
    pub fn read(members: Members<'_>, now: Timestamp) -> Result<Self> {
        const KNOWN: [&str; 7] =
            ["text", "data", "metadata", "expiration_date", "timestamp", "memory_id", "enable_graph"];
        if let Some(unknown) = members.names().find(|name| !KNOWN.contains(name)) {
            return Err(
                members.refuse(unknown, "cannot be changed; there are text, metadata, expiration_date")
            );
        }
        if members.get("timestamp").is_some() {
            return Err(
                members.refuse("timestamp", "cannot be changed; add the memory anew with another one")
            );
        }
        // The server that mem0 publishes calls the text 'data'.
        let text = members.spoken("text")?.or(members.spoken("data")?).map(str::to_owned);
        let metadata = SplitMetadata::read(members)?;
        let expiration = match members.raw("expiration_date") {
            None => None,
            Some(Value::Null) => Some(None),
            Some(_) => {
                let date = members.required("expiration_date", expiration(members))?;
                Some(Some((date.to_owned(), ttl(members, date, now)?)))
            }
        };
        if text.is_none() && metadata.is_none() && expiration.is_none() {
            let message = "an update needs at least one of text, metadata, expiration_date";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        Ok(Self { text, metadata, expiration, now })
    }

    /// The body of a change of `/v1/memories` that this is for an entry. The day on which an entry expires stays what it is:
    /// for us a change would put it off.
    pub fn body(&self, memory: &Memory) -> Value {
        let mut own = memory.metadata.get(OWN).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut body = Map::new();
        let mut metadata = Map::new();
        if let Some(text) = &self.text {
            body.insert("content".to_owned(), json!(text));
        }
        if let Some(given) = &self.metadata {
            given.merge_aside(&mut own);
            metadata.clone_from(&given.plain);
            // What is set aside now stands among the others no more.
            metadata.extend(given.aside.keys().map(|key| (key.clone(), Value::Null)));
            metadata.retain(|key, _| !key.starts_with('_'));
        }
        match &self.expiration {
            Some(None) => {
                own.shift_remove("expiration_date");
                body.insert("ttlSeconds".to_owned(), Value::Null);
            }
            Some(Some((date, ttl))) => {
                own.insert("expiration_date".to_owned(), json!(date));
                body.insert("ttlSeconds".to_owned(), json!(ttl));
            }
            None => {
                let last = own.get("expiration_date").and_then(Value::as_str);
                let left = last.and_then(date).map(|day| seconds_left(day, self.now));
                if let Some(left) = left.filter(|left| (1..=MAX_TTL_SECONDS).contains(left)) {
                    body.insert("ttlSeconds".to_owned(), json!(left));
                }
            }
        }
        let known = memory.metadata.get(OWN).and_then(Value::as_object);
        if known.cloned().unwrap_or_default() != own {
            let own = if own.is_empty() { Value::Null } else { own.into() };
            metadata.insert(OWN.to_owned(), own);
        }
        if self.metadata.is_some() || !metadata.is_empty() {
            body.insert("metadata".to_owned(), metadata.into());
        }
        body.into()
    }
}

/// Refuses what nobody here knows: it would be dropped without a word.
fn refuse_unknown(members: Members<'_>) -> Result<()> {
    let is_known = |name: &str| {
        OF_AN_ADD.contains(&name)
            || FOR_A_MODEL.contains(&name)
            || Entity::ALL.iter().any(|entity| entity.member() == name)
    };
    match members.names().find(|name| !is_known(name)) {
        Some(unknown) => Err(members.refuse(unknown, "is not known here; nothing was stored")),
        None => Ok(()),
    }
}

/// Refuses what would be dropped without a word.
fn refuse_what_needs_a_model(members: Members<'_>) -> Result<()> {
    let asked = |name: &&str| {
        members.get(name).is_some_and(|value| match value {
            Value::Bool(asked) => *asked,
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        })
    };
    match FOR_A_MODEL.iter().find(|name| asked(name)) {
        Some(name) => Err(needs_a_model(&format!("'{name}' is for a language model"))),
        None => Ok(()),
    }
}

fn instant(members: Members<'_>, name: &str, value: &Value) -> Result<Timestamp> {
    let problem = "must be seconds since 1970, a date, or an RFC 3339 timestamp";
    Ok(Instant::read(value).ok_or_else(|| members.refuse(name, problem))?.first())
}

fn expiration(members: Members<'_>) -> Result<Option<&str>> {
    members.text("expiration_date")
}

/// The seconds from now to the end of a day, which must be within a year.
fn ttl(members: Members<'_>, text: &str, now: Timestamp) -> Result<i64> {
    let refuse = |problem: &str| members.refuse("expiration_date", problem);
    let day = date(text).ok_or_else(|| refuse("must be a date such as 2030-12-31"))?;
    match seconds_left(day, now) {
        ..=0 => Err(refuse("must not be in the past")),
        1..=MAX_TTL_SECONDS => Ok(seconds_left(day, now)),
        _ => Err(refuse("must be within a year from now; leave it out for what is to stay")),
    }
}

pub(super) fn seconds_left(day: Timestamp, now: Timestamp) -> i64 {
    (day.as_micros() - now.as_micros()).div_euclid(1_000_000) + DAY
}
