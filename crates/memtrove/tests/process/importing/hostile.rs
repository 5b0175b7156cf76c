//! What is broken, or made to do harm.

use crate::importing::support::{Place, fixture, list, says, titled};
use memtrove_core::derived_uuid;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
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
            &["is not a memtrove archive", "ChatGPT or Claude", "mem0", "Markdown", "memory.jsonl", "--from"],
        );
    }
    std::fs::create_dir(place.folder().join("nothing")).unwrap();
    says(
        &place.ends_with(1, &place.folder().join("nothing"), &ALICE),
        &["nothing in", "what can be imported"],
    );
    says(&place.ends_with(1, &place.folder().join("away"), &ALICE), &["cannot read"]);
    let told = place.ends_with(3, &place.give("none.json", "[]"), &["--user", "a", "--from", "chatgpt"]);
    says(&told, &["nothing", "none.json: there is nothing in it that a ChatGPT export has"]);
    let told =
        place.ends_with(3, &place.give("odd.json", r#"{"answer": [{"memory": "x"}]}"#), &["--from", "mem0"]);
    says(&told, &["odd.json: there is nothing in it that a mem0 export has"]);
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
    says(&told, &["bomb.zip would be", "no export is like that"]);
    assert!(!place.folder().join("data/memtrove.db").exists(), "nothing was made for it");
}

/// A ZIP of files, and how long the one is that blanks are appended to.
fn zip(place: &Place, name: &str, files: &[(&str, &[u8])], blanks: Option<(&str, usize)>) -> PathBuf {
    let path = place.folder().join(name);
    let mut writer = ZipWriter::new(std::fs::File::create(&path).unwrap());
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
        let blanks = blanks.filter(|(of, _)| of == name).map_or(0, |(_, mebibytes)| mebibytes);
        (0..blanks).for_each(|_| writer.write_all(&[b' '; 1024 * 1024]).unwrap());
    }
    writer.finish().unwrap();
    path
}

#[test]
fn a_part_that_cannot_be_read_is_refused_and_the_others_are_in() {
    let place = Place::sqlite();
    let export = std::fs::read(fixture("chatgpt.json")).unwrap();
    // What cannot be packed makes the ZIP as a whole an ordinary one.
    let picture: Vec<u8> =
        (0..300_000u64).flat_map(|n| derived_uuid(&[&n.to_string()]).into_bytes()).collect();
    let files = [("conversations.json", &export[..]), ("more.json", b"["), ("picture.png", &picture[..])];
    let path = zip(&place, "bomb.zip", &files, Some(("more.json", 100)));
    let told = place.ends_with(3, &path, &ALICE);
    says(&told, &["conversations: 2 new", "left out: 1 other files in it", "refused: 1 record"]);
    says(&told, &["more.json: it would be 104857601 bytes, unpacked from", "no export is like that"]);

    let mut bytes = std::fs::read(zip(&place, "torn.zip", &files, None)).unwrap();
    let name = b"more.json";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + name.len()] = 0xff;
    let told = place.ends_with(3, &place.give("torn.zip", bytes), &ALICE);
    says(&told, &["conversations: 2 there already", "refused: 1 record", "more.json: "]);
}

#[test]
fn what_comes_after_the_end_is_in_or_refused() {
    let place = Place::sqlite();
    let chat = |id: &str| {
        json!({"conversation_id": id, "title": id, "current_node": "m", "mapping": {"m": {"id": "m", "message":
            {"id": "m", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hi"]}}}}})
        .to_string()
    };
    let [one, two, three] = ["one", "two", "three"].map(chat);
    let lines = place.give("chats.jsonl", format!("{one}\n{two}\nbroken\n{three}\n"));
    let told = place.ends_with(3, &lines, &ALICE);
    says(&told, &["conversations: 3 new", "refused: 1 record", "chats.jsonl line 3: it is not JSON"]);
    let arrays = place.give("chats.json", format!("[{one}][{two}]\n[{}]", chat("four")));
    says(&place.import(&arrays, &ALICE), &["conversations: 1 new, 2 there already"]);
    let told = place.ends_with(3, &place.give("chats.json", format!("[{one}] and so on")), &ALICE);
    says(&told, &["conversations: 1 there already", "chats.json: after its end there is something"]);
}

#[test]
fn nul_is_mended_wherever_it_is() {
    let place = Place::sqlite();
    let tool = json!({"type": "tool_use", "name": "t", "input": "x\0"});
    let said =
        json!({"uuid": "1", "sender": "assistant", "content": [{"type": "text", "text": "a\0b"}, tool]});
    let export = json!([{"uuid": "c", "name": "With NUL", "summary": "s\0", "chat_messages": [said]}]);
    says(&place.import(&place.give("claude.json", export.to_string()), &ALICE), &["entries: 1 new"]);
    let server = place.serve();
    let alice = server.as_user("alice");
    let id = titled(&alice, "With NUL")["id"].as_str().unwrap().to_owned();
    let shown = alice.get(&format!("/v1/conversations/{id}")).expect(200);
    assert_eq!(shown.json["metadata"]["summary"], "s");
}

#[test]
fn a_server_on_the_folder_is_in_the_way() {
    let place = Place::sqlite();
    let _server = place.serve();
    let told = place.ends_with(1, &fixture("chatgpt.json"), &ALICE);
    assert!(told.contains("in use") || told.contains("another memtrove"), "{told}");
}
