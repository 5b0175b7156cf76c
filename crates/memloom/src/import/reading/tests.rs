//! Whatever an item is, reading it gives records or a reason.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const FORMATS: [Format; 4] = [Format::Chatgpt, Format::Claude, Format::Mem0, Format::Mcp];

/// Any JSON whose members have names that mean something to some format.
fn values() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 40] = [
        "id",
        "conversation_id",
        "mapping",
        "title",
        "create_time",
        "current_node",
        "message",
        "parent",
        "children",
        "author",
        "role",
        "name",
        "content",
        "content_type",
        "parts",
        "recipient",
        "metadata",
        "attachments",
        "uuid",
        "chat_messages",
        "sender",
        "text",
        "created_at",
        "parent_message_uuid",
        "type",
        "input",
        "thoughts",
        "conversations_memory",
        "project_memories",
        "docs",
        "prompt_template",
        "memory",
        "payload",
        "data",
        "categories",
        "user_id",
        "entityType",
        "observations",
        "relationType",
        "files",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(
            &["user", "assistant", "tool", "text", "entity", "relation", "a", "", "\0", "code"][..]
        )
        .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&NAMES[..]), inner), 0..8).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_makes_a_format_panic(value in values()) {
        let bytes = serde_json::to_vec(&value).unwrap();
        for format in FORMATS {
            let _ = read(format, None, &bytes, &mut LeftOut::default());
        }
    }

    #[test]
    fn no_bytes_make_a_format_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        for format in FORMATS {
            prop_assert!(read(format, None, &bytes, &mut LeftOut::default()).is_err());
        }
        let _ = markdown::read("a.md", bytes);
    }
}

#[test]
fn nesting_is_refused_and_not_followed() {
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    for format in FORMATS {
        let why = read(format, None, &deep, &mut LeftOut::default()).unwrap_err();
        assert!(why.contains("recursion limit"), "{why}");
    }
}

#[test]
fn members_that_nobody_wants_are_passed_over() {
    let bytes = json!(3).to_string();
    assert!(read(Format::Mem0, Some("count"), bytes.as_bytes(), &mut LeftOut::default()).unwrap().is_empty());
}
