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
            let _ = read(format, &bytes, &mut LeftOut::default());
        }
    }

    #[test]
    fn no_bytes_make_a_format_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        for format in FORMATS {
            prop_assert!(read(format, &bytes, &mut LeftOut::default()).is_err());
        }
        let _ = markdown::read("a.md", bytes);
    }
}

#[test]
fn nesting_is_refused_and_not_followed() {
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    for format in FORMATS {
        let why = read(format, &deep, &mut LeftOut::default()).unwrap_err();
        assert!(why.contains("recursion limit"), "{why}");
    }
}

#[test]
fn members_that_nobody_wants_are_passed_over() {
    assert!(!is_wanted(Format::Mem0, Some("count"), Some(b"3")));
    assert!(
        !is_wanted(Format::Mem0, Some("relations"), Some(b"null")),
        "where there is nothing, some say so"
    );
    assert!(is_wanted(Format::Mem0, Some("result.points"), Some(b"{}")));
    assert!(is_wanted(Format::Mem0, None, Some(b"null")));
}

#[test]
fn nul_is_taken_out_of_everything() {
    let said = json!({"uuid": "1", "sender": "human", "content": [{"type": "text", "text": "a\0b"},
        {"type": "tool_use", "name": "t\0", "input": {"q\0": "x\0"}}]});
    let item = json!({"uuid": "c", "summary": "s\0", "chat_messages": [said]});
    let found = read(Format::Claude, item.to_string().as_bytes(), &mut LeftOut::default()).unwrap();
    let [Record::Conversation(found)] = &found[..] else { panic!("not one conversation") };
    assert_eq!((found.about["summary"].as_str(), found.messages[0].text.as_str()), (Some("s"), "ab"));
    assert_eq!(
        found.messages[0].events,
        [json!({"type": "tool_call", "name": "t", "input": "{\"q\":\"x\"}"})]
    );
}

/// What is found in a folder or file, each place with how many records are there or why there are none.
fn everything(path: &std::path::Path, between: impl FnOnce()) -> Vec<(String, Result<usize, String>)> {
    let mut source = Source::open(path).unwrap();
    let selection = source.select(path, None).unwrap();
    between();
    let mut told = Vec::new();
    each(&mut source, selection, &ProgressBar::hidden(), &mut |found| {
        told.push((found.place, found.records.map(|records| records.len())));
        Ok(())
    })
    .unwrap();
    told
}

#[test]
fn a_file_that_goes_away_is_one_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let notes = ["a.md", "b.md"].map(|name| folder.path().join(name));
    notes.iter().for_each(|note| std::fs::write(note, "x").unwrap());
    let told = everything(folder.path(), || std::fs::remove_file(&notes[0]).unwrap());
    assert!(told[0].1.as_ref().is_err_and(|why| why.contains("cannot be read")), "{told:?}");
    assert_eq!(told[1], ("b.md".to_owned(), Ok(1)));

    let chats = ["c.json", "d.json"].map(|name| folder.path().join(name));
    let chat = |id: &str| json!([{"conversation_id": id, "mapping": {}}]).to_string();
    chats.iter().zip(["1", "2"]).for_each(|(path, id)| std::fs::write(path, chat(id)).unwrap());
    let told = everything(folder.path(), || std::fs::remove_file(&chats[0]).unwrap());
    assert!(told[0].1.as_ref().is_err_and(|why| why.contains("cannot be read")), "{told:?}");
    assert_eq!(told[1], ("d.json[0]".to_owned(), Ok(1)));
}
