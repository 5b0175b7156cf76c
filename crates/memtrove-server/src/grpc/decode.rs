//! What requests carry: ids, pages, words, JSON.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use memtrove_core::conversations::{AccessLevel, Channel, MAX_NESTING};
use memtrove_core::{ConversationId, Error, Json, Result, parse_uuid};
use memtrove_proto::json::{Struct, Value};
use memtrove_proto::v1;
use memtrove_service::PageRequest;
use tonic::metadata::MetadataMap;
use uuid::Uuid;

/// An id: 16 bytes, or its text; none where empty.
pub(super) fn id(field: &str, bytes: &[u8]) -> Result<Option<Uuid>> {
    match bytes.len() {
        0 => Ok(None),
        16 => Ok(Uuid::from_slice(bytes).ok()),
        36 => match std::str::from_utf8(bytes).ok().and_then(parse_uuid) {
            Some(id) => Ok(Some(id)),
            None => Err(not_an_id(field)),
        },
        _ => Err(not_an_id(field)),
    }
}

fn not_an_id(field: &str) -> Error {
    Error::invalid(field, "must be a UUID: 16 bytes, most significant byte first")
}

/// An id that must be there.
pub(super) fn required_id(field: &str, bytes: &[u8]) -> Result<Uuid> {
    id(field, bytes)?.ok_or_else(|| Error::invalid(field, "is required"))
}

/// The conversation that a request is about.
pub(super) fn conversation_id(bytes: &[u8]) -> Result<ConversationId> {
    required_id("conversation_id", bytes).map(ConversationId)
}

/// An id in an optional field, which may also be empty.
pub(super) fn optional_id(field: &str, bytes: Option<Bytes>) -> Result<Option<Uuid>> {
    bytes.map_or(Ok(None), |bytes| id(field, &bytes))
}

/// A text that counts as absent when it is empty; NUL is refused.
pub(super) fn given(field: &str, text: String) -> Result<Option<String>> {
    if text.contains('\0') {
        return Err(Error::invalid(field, "must not contain NUL characters"));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Which page: the cursor of the one before, and a size whose bounds the service knows.
pub(super) fn page(page: Option<v1::PageRequest>) -> Result<PageRequest<String>> {
    let v1::PageRequest { page_token, page_size } = page.unwrap_or_default();
    Ok(PageRequest { after: given("page_token", page_token)?, limit: size(page_size) })
}

/// The same, where the cursor is an id.
pub(super) fn page_after_id(asked: Option<v1::PageRequest>) -> Result<PageRequest<Uuid>> {
    let PageRequest { after, limit } = page(asked)?;
    let after = after.map(|text| cursor_id("page_token", &text)).transpose()?;
    Ok(PageRequest { after, limit })
}

/// An id as a cursor: its text, or what a message that holds it becomes as JSON, which generated clients pass on.
pub(super) fn cursor_id(field: &str, text: &str) -> Result<Uuid> {
    parse_uuid(text)
        .or_else(|| rendered_id(text))
        .ok_or_else(|| Error::invalid(field, "must be a UUID: its text, or its 16 bytes in base64"))
}

/// The id of a bytes field that was rendered as JSON: base64, of either alphabet, padded or not.
fn rendered_id(text: &str) -> Option<Uuid> {
    let unpadded = text.strip_suffix("==").unwrap_or(text);
    let bytes = STANDARD_NO_PAD.decode(unpadded).or_else(|_| URL_SAFE_NO_PAD.decode(unpadded)).ok()?;
    Uuid::from_slice(&bytes).ok()
}

/// How many; 0 is as many as the list gives by itself.
pub(super) fn size(number: i32) -> Option<i64> {
    Some(i64::from(number)).filter(|number| *number != 0)
}

/// A member of an enum that is known here.
pub(super) fn word<T: TryFrom<i32>>(field: &str, number: i32) -> Result<T> {
    T::try_from(number).map_err(|_| Error::invalid(field, format!("{number} is not one of its values")))
}

/// A channel, where one is named.
pub(super) fn channel(number: i32) -> Result<Option<Channel>> {
    Ok(match word("channel", number)? {
        v1::Channel::Unspecified => None,
        v1::Channel::History => Some(Channel::History),
        v1::Channel::Memory => Some(Channel::Memory),
    })
}

/// What a member shall be allowed; that it must be said is the service's to say.
pub(super) fn access_level(number: i32) -> Result<Option<AccessLevel>> {
    Ok(match word("access_level", number)? {
        v1::AccessLevel::Unspecified => None,
        v1::AccessLevel::Owner => Some(AccessLevel::Owner),
        v1::AccessLevel::Manager => Some(AccessLevel::Manager),
        v1::AccessLevel::Writer => Some(AccessLevel::Writer),
        v1::AccessLevel::Reader => Some(AccessLevel::Reader),
    })
}

/// Values as a JSON array.
pub(super) fn content(values: &[Value]) -> Result<Json> {
    let bytes: usize = values.iter().map(|value| value.as_wire().len() + 4).sum();
    let mut json = String::with_capacity(bytes + 2);
    json.push('[');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        // The array is a level of its own.
        value
            .write_json(&mut json, MAX_NESTING - 1)
            .map_err(|error| Error::invalid("content", error.to_string()))?;
    }
    json.push(']');
    Ok(Json::stored(json))
}

/// An object as JSON.
pub(super) fn object(field: &str, object: &Struct) -> Result<Json> {
    let mut json = String::new();
    object.write_json(&mut json, MAX_NESTING).map_err(|error| Error::invalid(field, error.to_string()))?;
    Ok(Json::stored(json))
}

/// The text of a header that may be sent once.
pub(super) fn header(metadata: &MetadataMap, name: &str) -> Result<Option<String>> {
    let mut values = metadata.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Error::invalid(name, "must be ASCII")),
        },
        (Some(_), Some(_)) => Err(Error::invalid(name, "was sent more than once: send it once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_an_id_as_text_or_as_json_renders_its_bytes() {
        // Both alphabets differ in every group of these bytes.
        let id = Uuid::from_bytes([
            0xfb, 0xef, 0xbe, 0xff, 0xff, 0xff, 0xfb, 0xef, 0xbe, 0xff, 0xff, 0xff, 1, 2, 3, 4,
        ]);
        let standard = base64::engine::general_purpose::STANDARD.encode(id.as_bytes());
        let url_safe = base64::engine::general_purpose::URL_SAFE.encode(id.as_bytes());
        assert!(standard.contains(['+', '/']) && url_safe.contains(['-', '_']) && standard.ends_with("=="));
        let texts = [id.to_string(), id.to_string().to_uppercase(), standard, url_safe];
        for text in texts.iter().flat_map(|text| [text.as_str(), text.trim_end_matches('=')]) {
            assert_eq!(cursor_id("page_token", text).unwrap(), id, "{text}");
        }
        for text in [
            "no",
            "fbefbeffffff-fbef-beff-ffff01020304",
            &id.simple().to_string(),
            &texts[2][..21],
            &texts[2].replace("==", "="),
            &texts[2].replace("==", "==="),
            &format!(" {}", texts[2]),
            &base64::engine::general_purpose::STANDARD.encode([7; 15]),
            &base64::engine::general_purpose::STANDARD.encode([7; 17]),
            "++++_____++++____wECAwQ=",
        ] {
            assert!(cursor_id("page_token", text).is_err(), "{text}");
        }
    }
}
