//! What the content of a history entry must look like, and what is read out of it.

use crate::attachments::MAX_LINKED;
use crate::{AttachmentId, Error, Json, Resource, Result, parse_uuid};
use serde_json::Value;
use std::collections::HashMap;

const TITLE_CHARS: usize = 40;
const PREVIEW_CHARS: usize = 200;

/// Whether the format rules of the history channel apply: the caller said `history`, or the content type does.
pub fn is_checked(channel_given: bool, content_type: &str) -> bool {
    channel_given || content_type == "history" || content_type.starts_with("history/")
}

fn is_history_type(content_type: &str) -> bool {
    content_type == "history"
        || content_type.strip_prefix("history/").is_some_and(|subtype| !subtype.is_empty())
}

/// Checks a history entry. The messages are compared literally by existing clients.
pub fn check_history(content_type: &str, items: &[Value]) -> Result<()> {
    let wrong = |message: &'static str| Err(Error::bad_request(message));
    if !is_history_type(content_type) {
        return wrong("History channel entries must use 'history' or 'history/<subtype>' as the contentType");
    }
    let [item] = items else {
        return wrong("History channel entries must contain exactly 1 content object");
    };
    let Value::Object(item) = item else {
        return wrong("History channel entries must contain exactly 1 content object");
    };
    if !matches!(item.get("role"), Some(Value::String(role)) if role == "USER" || role == "AI") {
        return wrong("History channel content must have a 'role' field with value 'USER' or 'AI'");
    }
    let present = |name: &str| item.get(name).filter(|value| !value.is_null());
    if present("text").is_none() && present("events").is_none() && present("attachments").is_none() {
        return wrong("History channel content must have at least one of 'text', 'events', or 'attachments'");
    }
    if present("events").is_some_and(|events| !events.is_array()) {
        return wrong("History channel 'events' field must be an array");
    }
    match present("attachments") {
        None => Ok(()),
        Some(Value::Array(attachments)) => attachments.iter().enumerate().try_for_each(check_attachment),
        Some(_) => wrong("History channel 'attachments' field must be an array"),
    }
}

fn check_attachment((index, attachment): (usize, &Value)) -> Result<()> {
    let text = |name: &str| attachment.get(name).is_some_and(Value::is_string);
    if !text("href") && !text("attachmentId") {
        return Err(Error::bad_request(format!(
            "History channel attachment at index {index} must have an 'href' or 'attachmentId' field"
        )));
    }
    if text("href") && !text("contentType") {
        return Err(Error::bad_request(format!(
            "History channel attachment at index {index} must have a 'contentType' field"
        )));
    }
    Ok(())
}

/// The attachments that an entry names by their ids, each once.
pub fn attachment_ids(items: &[Value]) -> Result<Vec<AttachmentId>> {
    let mut ids = Vec::new();
    for attachment in items.iter().filter_map(attachments).flatten() {
        let Some(text) = attachment.get(ATTACHMENT_ID).and_then(Value::as_str) else { continue };
        let id = parse_uuid(text).map(AttachmentId);
        let id = id.ok_or_else(|| Error::not_found(Resource::Attachment, text))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
        if ids.len() > MAX_LINKED {
            return Err(Error::invalid("content", format!("must name at most {MAX_LINKED} attachments")));
        }
    }
    Ok(ids)
}

/// What stored content says of an attachment instead of its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Where it is found.
    pub href: String,
    /// What kind of file it is, if that is known yet.
    pub content_type: Option<String>,
    /// Its name, if it has one.
    pub name: Option<String>,
}

/// The content of an entry with every id of an attachment replaced by where it is found. What the caller said of an
/// attachment stays; what it left out is filled in.
pub fn refer(content: &Json, to: &HashMap<AttachmentId, Reference>) -> Result<Json> {
    let broken = |error: crate::JsonError| Error::invalid("content", error.to_string());
    let mut items = content.value().map_err(broken)?;
    for item in items.as_array_mut().into_iter().flatten() {
        let attachments = item.get_mut("attachments").and_then(Value::as_array_mut);
        for attachment in attachments.into_iter().flatten().filter_map(Value::as_object_mut) {
            let id = attachment.get(ATTACHMENT_ID).and_then(Value::as_str).and_then(parse_uuid);
            let Some(reference) = id.and_then(|id| to.get(&AttachmentId(id))) else { continue };
            attachment.shift_remove(ATTACHMENT_ID);
            attachment.insert("href".into(), reference.href.clone().into());
            let mut fill = |name: &str, value: &str| {
                let member = attachment.entry(name).or_insert(Value::Null);
                if member.is_null() {
                    *member = value.into();
                }
            };
            if let Some(content_type) = &reference.content_type {
                fill("contentType", content_type);
            }
            if let Some(name) = &reference.name {
                fill("name", name);
            }
        }
    }
    Json::of(&items).map_err(broken)
}

const ATTACHMENT_ID: &str = "attachmentId";

fn attachments(item: &Value) -> Option<&Vec<Value>> {
    item.get("attachments").and_then(Value::as_array)
}

/// The texts of an entry: the string `text` of each item, or the item itself where it is a string.
fn texts(items: &[Value]) -> impl Iterator<Item = &str> {
    items
        .iter()
        .filter_map(|item| match item {
            Value::String(text) => Some(text.as_str()),
            item => item.get("text").and_then(Value::as_str),
        })
        .filter(|text| !text.trim().is_empty())
}

/// A title for a conversation, from its first message.
pub fn title(items: &[Value]) -> Option<String> {
    texts(items).next().map(|text| collapsed(text).take(TITLE_CHARS).collect())
}

/// The beginning of a message, for lists.
pub fn preview(items: &[Value]) -> Option<String> {
    let text = texts(items).next()?;
    let mut chars = collapsed(text);
    let mut preview: String = chars.by_ref().take(PREVIEW_CHARS).collect();
    if chars.next().is_some() {
        preview.push('…');
    }
    Some(preview)
}

/// The searchable text of an entry without `indexedContent`.
pub fn derived_text(items: &[Value]) -> Option<String> {
    let text: Vec<&str> = texts(items).collect();
    (!text.is_empty()).then(|| text.join("\n").chars().take(super::MAX_INDEXED_CHARS).collect())
}

/// Whether the agent said it and not the user, as the role of the first item tells, if it has one.
pub fn is_by_agent(items: &[Value]) -> Option<bool> {
    match items.first()?.get("role")?.as_str()? {
        "AI" => Some(true),
        "USER" => Some(false),
        _ => None,
    }
}

/// The characters of a text, trimmed, every run of white space as one space.
fn collapsed(text: &str) -> impl Iterator<Item = char> {
    text.split_whitespace()
        .enumerate()
        .flat_map(|(i, word)| (i > 0).then_some(' ').into_iter().chain(word.chars()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;
    use serde_json::json;

    fn check(content: Value) -> String {
        match check_history("history", content.as_array().unwrap()) {
            Ok(()) => "ok".into(),
            Err(Error { code: Code::BadRequest, message, .. }) => message.into_owned(),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_rule_has_its_sentence() {
        assert_eq!(check(json!([{"role": "USER", "text": "hi"}])), "ok");
        assert_eq!(check(json!([{"role": "AI", "events": [], "extra": 1}])), "ok");
        assert_eq!(check(json!([{"role": "AI", "attachments": [{"attachmentId": "x"}]}])), "ok");
        let cases = [
            (json!([]), "exactly 1 content object"),
            (json!(["text"]), "exactly 1 content object"),
            (json!([{"text": "hi"}]), "'role' field"),
            (json!([{"role": "user", "text": "hi"}]), "'role' field"),
            (json!([{"role": "USER"}]), "at least one of"),
            (json!([{"role": "USER", "text": null}]), "at least one of"),
            (json!([{"role": "USER", "events": {}}]), "'events' field must be an array"),
            (json!([{"role": "USER", "attachments": "x"}]), "'attachments' field must be an array"),
            (
                json!([{"role": "USER", "attachments": [{"href": "x", "contentType": "y"}, {}]}]),
                "index 1 must have an 'href'",
            ),
            (json!([{"role": "USER", "attachments": [{"href": "x"}]}]), "index 0 must have a 'contentType'"),
        ];
        for (content, expected) in cases {
            assert!(check(content.clone()).contains(expected), "{content}: {}", check(content.clone()));
        }
    }

    fn id(number: u128) -> AttachmentId {
        AttachmentId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn attachments_are_named_in_arrays_of_that_name_and_nowhere_else() {
        let ids = |content: Value| attachment_ids(content.as_array().unwrap());
        let (one, two) = (id(1), id(2));
        assert_eq!(
            ids(json!([{"text": "hi"}, "text", {"attachments": "x"}, {"attachments": [1]}])),
            Ok(vec![])
        );
        assert_eq!(ids(json!([{"attachmentId": one}, {"attachments": [{"href": "x"}]}])), Ok(vec![]));
        let twice = json!([{"attachments": [{"attachmentId": two}, {"attachmentId": one}]},
                           {"attachments": [{"attachmentId": two}]}]);
        assert_eq!(ids(twice), Ok(vec![two, one]));
        let malformed = Err(Error::not_found(Resource::Attachment, "x"));
        assert_eq!(ids(json!([{"attachments": [{"attachmentId": "x"}]}])), malformed);
        let named = |count: u128| (1..=count).map(|n| json!({"attachmentId": id(n)})).collect::<Vec<_>>();
        assert!(ids(json!([{ "attachments": named(100) }])).is_ok());
        assert!(matches!(
            ids(json!([{ "attachments": named(101) }])),
            Err(Error { code: Code::Invalid, .. })
        ));
    }

    #[test]
    fn ids_of_attachments_are_replaced_and_everything_else_stays() {
        let text = format!(
            r#"[{{"role":"USER","n":1.10,"attachments":[{{"attachmentId":"{}","x":1}},{{"attachmentId":"{}","contentType":"a/b","name":"mine"}},{{"href":"h","contentType":"c/d"}},{{"attachmentId":"{}","contentType":null}}]}}]"#,
            id(1),
            id(1),
            id(2),
        );
        let reference = |number: u128, name: Option<&str>| Reference {
            href: format!("/{number}"),
            content_type: Some("image/png".into()),
            name: name.map(str::to_owned),
        };
        let to = HashMap::from([(id(1), reference(1, Some("cat.png"))), (id(2), reference(2, None))]);
        let referring = refer(&Json::parse(text).unwrap(), &to).unwrap();
        assert_eq!(
            referring.get(),
            r#"[{"role":"USER","n":1.10,"attachments":[{"x":1,"href":"/1","contentType":"image/png","name":"cat.png"},{"contentType":"a/b","name":"mine","href":"/1"},{"href":"h","contentType":"c/d"},{"contentType":"image/png","href":"/2"}]}]"#
        );
    }

    #[test]
    fn what_is_not_known_of_an_attachment_is_not_filled_in() {
        let text = format!(r#"[{{"attachments":[{{"attachmentId":"{}"}}]}}]"#, id(1));
        let to = HashMap::from([(id(1), Reference { href: "/1".into(), content_type: None, name: None })]);
        let referring = refer(&Json::parse(text).unwrap(), &to).unwrap();
        assert_eq!(referring.get(), r#"[{"attachments":[{"href":"/1"}]}]"#);
    }

    #[test]
    fn content_types_of_the_history_channel() {
        for (content_type, ok) in [
            ("history", true),
            ("history/lc4j", true),
            ("history/", false),
            ("message", false),
            ("HISTORY", false),
        ] {
            assert_eq!(
                check_history(content_type, &[json!({"role": "AI", "text": "x"})]).is_ok(),
                ok,
                "{content_type}"
            );
        }
    }

    #[test]
    fn titles_are_cut_on_characters() {
        let title_of = |text: &str| title(&[json!({ "text": text })]);
        assert_eq!(
            title_of("Sensitive information about the new compliance project").unwrap(),
            "Sensitive information about the new comp"
        );
        assert_eq!(title_of("  a \n\t b  ").unwrap(), "a b");
        assert_eq!(title_of(&"ä".repeat(50)).unwrap(), "ä".repeat(40));
        assert_eq!(title_of("   "), None);
        assert_eq!(title(&[json!({"x": 1}), json!("plain")]).unwrap(), "plain");
    }

    #[test]
    fn previews_say_when_they_are_cut() {
        assert_eq!(preview(&[json!({"text": "x".repeat(200)})]).unwrap(), "x".repeat(200));
        assert_eq!(preview(&[json!({"text": "x".repeat(201)})]).unwrap(), format!("{}…", "x".repeat(200)));
        assert_eq!(preview(&[json!({"events": []})]), None);
    }
}
