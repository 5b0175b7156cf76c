//! What is broken, or made to do harm.

use crate::support::{Place, fixture, list, says};
use serde_json::json;
use std::io::Write;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const ALICE: [&str; 2] = ["--user", "alice"];

#[test]
fn what_is_not_known_says_what_is() {
    let place = Place::sqlite();
    for (name, content) in [("a.json", "{\"hello\": 1}"), ("a.txt", "hello"), ("empty.json", "[]")] {
        let told = place.ends_with(1, &place.give(name, content), &ALICE);
        says(
            &told,
            &["is not a memloom archive", "ChatGPT or Claude", "mem0", "Markdown", "memory.jsonl", "--from"],
        );
    }
    std::fs::create_dir(place.folder().join("nothing")).unwrap();
    says(
        &place.ends_with(1, &place.folder().join("nothing"), &ALICE),
        &["nothing in", "what can be imported"],
    );
    says(&place.ends_with(1, &place.folder().join("away"), &ALICE), &["cannot read"]);
    says(&place.import(&place.give("none.json", "[]"), &["--user", "a", "--from", "chatgpt"]), &["nothing"]);
    says(&place.ends_with(1, &fixture("chatgpt.json"), &[]), &["add --user NAME"]);
    says(
        &place.ends_with(1, &fixture("chatgpt.json"), &["--user", "a", "--overwrite"]),
        &["--overwrite is for files"],
    );
}

#[test]
fn a_bad_record_is_named_and_the_others_are_in() {
    let place = Place::sqlite();
    let good = |id: &str| {
        json!({"conversation_id": id, "title": id, "current_node": "m", "mapping": {"m": {"id": "m", "message":
            {"id": "m", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hi"]}}}}})
        .to_string()
    };
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let records: Vec<Vec<u8>> = vec![
        good("one").into(),
        br#"{"conversation_id": "no mapping"}"#.to_vec(),
        b"{\"conversation_id\": \"\xff\xfe\", \"mapping\": {}}".to_vec(),
        format!("{{\"conversation_id\": \"deep\", \"mapping\": {deep}}}").into(),
        b"7".to_vec(),
        good("two").into(),
    ];
    let mut export = b"[".to_vec();
    export.extend(records.join(&b","[..]));
    export.push(b']');
    let told = place.ends_with(3, &place.give("mixed.json", &export), &ALICE);
    says(&told, &["conversations: 2 new", "refused: 4 records", "mixed.json[1]: it has no mapping"]);
    says(&told, &["mixed.json[2]: it is not JSON", "mixed.json[3]: it is not JSON", "mixed.json[4]: "]);
    export.truncate(export.len() - 20);
    let told = place.ends_with(3, &place.give("mixed.json", &export), &ALICE);
    says(&told, &["conversations: 1 there already", "mixed.json: the file is cut off"]);
    let server = place.serve();
    assert_eq!(list(&server.as_user("alice"), "/v1/conversations?mode=roots").len(), 2);
}

#[test]
fn names_in_a_zip_lead_nowhere() {
    let place = Place::sqlite();
    let path = place.folder().join("sub/evil.zip");
    std::fs::create_dir(place.folder().join("sub")).unwrap();
    let mut writer = ZipWriter::new(std::fs::File::create(&path).unwrap());
    for name in ["../evil.md", "/tmp/evil.md", "a/../../evil.md", "good/note.md", "x\\..\\evil.md"] {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(b"# Evil").unwrap();
    }
    writer.finish().unwrap();
    let told = place.ends_with(3, &path, &ALICE);
    says(&told, &["files: 1 new", "refused: 4 records", "contains '..'"]);
    assert!(!place.folder().join("evil.md").exists());
}

#[test]
fn a_zip_bomb_is_refused() {
    let place = Place::sqlite();
    let path = place.folder().join("bomb.zip");
    let mut writer = ZipWriter::new(std::fs::File::create(&path).unwrap());
    writer.start_file("conversations.json", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"[{\"conversation_id\":\"c\",\"mapping\":{").unwrap();
    let blank = vec![b' '; 1024 * 1024];
    for _ in 0..100 {
        writer.write_all(&blank).unwrap();
    }
    writer.write_all(b"}}]").unwrap();
    writer.finish().unwrap();
    let told = place.ends_with(1, &path, &["--user", "alice", "--from", "chatgpt"]);
    says(&told, &["nothing in"]);
    assert!(!place.folder().join("data/memloom.db").exists(), "nothing was made for it");
}

#[test]
fn a_server_on_the_folder_is_in_the_way() {
    let place = Place::sqlite();
    let _server = place.serve();
    let told = place.ends_with(1, &fixture("chatgpt.json"), &ALICE);
    assert!(told.contains("in use") || told.contains("another memloom"), "{told}");
}
