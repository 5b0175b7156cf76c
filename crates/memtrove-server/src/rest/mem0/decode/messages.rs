//! Messages that are to be remembered as they are.

use super::instant::Instant;
use super::{entities, is_entity, last_day, metadata, needs_a_model};
use memtrove_core::memories::AddMemory;
use memtrove_core::memories::mem0::{Entities, Utterance};
use memtrove_core::memories::members::Members;
use memtrove_core::{Error, Result, Timestamp};
use serde_json::Value;

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

/// Messages to be remembered.
#[derive(Debug)]
pub(in crate::rest::mem0) struct NewMemories {
    /// Whom and what they are about.
    pub about: Entities,
    /// One for each message, up to the most that one request may add.
    pub adds: Vec<Result<AddMemory>>,
    /// How many there would be without that.
    pub count: usize,
    /// What is left out, as mem0 does, for people: instructions to the model, and messages in which nobody said anything.
    pub left_out: Option<String>,
}

/// Reads the body of an add, and of its messages `most`.
pub(in crate::rest::mem0) fn add(body: &Value, most: usize, now: Timestamp) -> Result<NewMemories> {
    let members = Members::body(body)?;
    if members.boolean("infer")?.unwrap_or(true) {
        return Err(needs_a_model("infer=True has a language model extract facts from the messages"));
    }
    refuse_what_needs_a_model(members)?;
    refuse_unknown(members)?;
    if members.flag("immutable")? {
        return Err(members.refuse("immutable", "cannot be asked for: every memory here can be changed"));
    }
    let about = whose(members)?.required()?;
    let home = about.home()?;
    let given = metadata(members)?.unwrap_or_default();
    let last_day = last_day(members, now)?;
    let happened = members.get("timestamp").map(|value| instant(members, value)).transpose()?;
    let (mut adds, mut count, mut system, mut unsaid) = (Vec::new(), 0, 0, 0);
    for message in messages(members)? {
        match message {
            Message::Said { .. } if adds.len() == most => count += 1,
            Message::Said { role, name, text } => {
                count += 1;
                let utterance = Utterance {
                    id: None,
                    text: &text,
                    role: Some(role),
                    name,
                    expires: last_day.as_ref().map(|day| day.date.as_str()),
                    ttl: last_day.as_ref().map(|day| day.seconds_left),
                    happened,
                };
                adds.push(utterance.add(&home, &given));
            }
            Message::Instruction => system += 1,
            Message::Unsaid => unsaid += 1,
        }
    }
    if adds.is_empty() {
        let problem = "holds nothing to remember; messages of the system, and those without a role or a text, are left out";
        return Err(members.refuse("messages", problem));
    }
    Ok(NewMemories { about, adds, count, left_out: left_out(system, unsaid) })
}

fn left_out(system: usize, unsaid: usize) -> Option<String> {
    let told = [
        (system, "system message(s) were not stored: instructions are no memories"),
        (unsaid, "message(s) were not stored: they have no role or no text"),
    ];
    let told: Vec<String> = (told.into_iter())
        .filter(|(many, _)| *many > 0)
        .map(|(many, what)| format!("{many} {what}"))
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The ids of an add: beside the messages, or in `filters`.
fn whose(members: Members<'_>) -> Result<Entities> {
    let named = entities(members)?;
    let Some(filters) = members.object("filters", "filters.")? else { return Ok(named) };
    if let Some(unknown) = filters.names().find(|name| !is_entity(name)) {
        return Err(filters.refuse(unknown, "says nothing about whose a new memory is"));
    }
    let contradiction = || Error::field("filters", "contradict the ids beside them");
    named.and(&entities(filters)?).ok_or_else(contradiction)
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

/// Refuses what nobody here knows: it would be dropped without a word.
fn refuse_unknown(members: Members<'_>) -> Result<()> {
    let is_known = |name: &str| OF_AN_ADD.contains(&name) || FOR_A_MODEL.contains(&name) || is_entity(name);
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

fn instant(members: Members<'_>, value: &Value) -> Result<Timestamp> {
    let problem = "must be seconds since 1970, a date, or an RFC 3339 timestamp";
    Ok(Instant::read(value).ok_or_else(|| members.refuse("timestamp", problem))?.first())
}
