//! Formats are told by content.

use super::*;
use proptest::prelude::*;

#[test]
fn content_tells() {
    let known = |text: &str, format: Format, shape: Shape| {
        assert_eq!(recognise(text.as_bytes()), Seen::Known(format), "{text}");
        assert_eq!(super::shape(format, text.as_bytes()), shape, "{text}");
    };
    known(r#"[{"title":"t","create_time":1.5,"mapping":{"a":{}}}]"#, Format::Chatgpt, Shape::Array);
    known(r#"[{"title":"t","mapping":{"cut off"#, Format::Chatgpt, Shape::Array);
    known(r#"{"title":"t","mapping":{}}"#, Format::Chatgpt, Shape::Single);
    known(r#" [{"uuid":"u","chat_messages":[]}]"#, Format::Claude, Shape::Array);
    known(
        r#"{"account":{},"conversations":[{"uuid":"u","chat_messages":[]}]}"#,
        Format::Claude,
        Shape::Members,
    );
    known(r#"[{"conversations_memory":"x","project_memories":{}}]"#, Format::Claude, Shape::Array);
    known(r#"{"uuid":"u","name":"n","docs":[]}"#, Format::Claude, Shape::Single);
    known(r#"{"count":1,"results":[{"id":"1","memory":"x"}]}"#, Format::Mem0, Shape::Members);
    known(r#"[{"id":"1","memory":"x"}]"#, Format::Mem0, Shape::Array);
    known(r#"[{"id":1,"payload":{"data":"x"}}]"#, Format::Mem0, Shape::Array);
    known(r#"{"points":[{"id":1,"payload":{"data":"x"}}]}"#, Format::Mem0, Shape::Members);
    known(r#"{"data":[{"id":"1","memory":"x"}],"total":1}"#, Format::Mem0, Shape::Members);
    known(
        r#"{"result":{"points":[{"id":1,"payload":{"data":"x"}}],"next_page_offset":null},"status":"ok"}"#,
        Format::Mem0,
        Shape::Members,
    );
    known("{\"id\":\"1\",\"memory\":\"x\"}\n{\"id\":\"2\",\"memory\":\"y\"}\n", Format::Mem0, Shape::Lines);
    known("{\n \"id\": \"1\",\n \"memory\": \"x\"\n}\n", Format::Mem0, Shape::Single);
    known(
        "{\"title\":\"a\",\"mapping\":{}}\n{\"title\":\"b\",\"mapping\":{}}",
        Format::Chatgpt,
        Shape::Lines,
    );
    known(
        "{\"type\":\"entity\",\"name\":\"n\",\"entityType\":\"t\",\"observations\":[]}\n",
        Format::Mcp,
        Shape::Lines,
    );
    known(r#"{"entities":[{"name":"n","entityType":"t"}],"relations":[]}"#, Format::Mcp, Shape::Members);
    assert_eq!(recognise(b"PK\x03\x04 and so on"), Seen::Zip);
    assert_eq!(recognise(b""), Seen::Known(Format::Archive), "the archive says itself that it is empty");
    assert_eq!(recognise(b"\x28\xb5\x2f\xfd\0"), Seen::Known(Format::Archive));
    for unknown in [
        "hello",
        "[]",
        "{}",
        "[1,2]",
        r#"{"mappings":1}"#,
        r#"["mapping"]"#,
        r#"[{"a":"mapping"}]"#,
        r#"{"memory":"4G"}"#,
    ] {
        assert_eq!(recognise(unknown.as_bytes()), Seen::Unknown, "{unknown}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let seen = recognise(&bytes);
        if let Seen::Known(format) = seen {
            shape(format, &bytes);
        }
    }
}

#[test]
fn nesting_does_no_harm() {
    assert_eq!(recognise(&vec![b'['; LOOK]), Seen::Unknown);
}
