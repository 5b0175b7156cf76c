//! Messages, memories and projects of an export.

use super::*;

fn records(item: Value) -> Vec<Record> {
    read(&item, &mut LeftOut::default()).unwrap()
}

#[test]
fn blocks_become_words_and_events() {
    let item = json!({"uuid": "c", "name": "n", "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "old words", "content": []},
        {"uuid": "2", "sender": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "name": "search", "input": {"q": "x"}},
            {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "found"}]},
            {"type": "text", "text": "Here."}]},
    ]});
    let Record::Conversation(found) = records(item).remove(0) else { panic!("no conversation") };
    assert_eq!(found.messages[0].text, "old words");
    assert_eq!(found.messages[0].role, Speaker::User);
    assert_eq!(found.messages[1].text, "Let me look.\n\nHere.");
    assert_eq!(found.messages[1].parent, Some(0));
    let kinds: Vec<&str> =
        found.messages[1].events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "tool_call", "tool_result"]);
}

#[test]
fn parents_make_branches_where_they_are_named() {
    let root = "00000000-0000-4000-8000-000000000000";
    let message = |id: &str, parent: &str| json!({"uuid": id, "sender": "human", "text": id, "parent_message_uuid": parent});
    let item =
        json!({"uuid": "c", "chat_messages": [message("1", root), message("2", "1"), message("3", "1")]});
    let Record::Conversation(found) = records(item).remove(0) else { panic!("no conversation") };
    let told: Vec<_> =
        found.messages.iter().map(|one| (one.source_id.as_str(), one.parent, one.current)).collect();
    assert_eq!(told, [("1", None, true), ("2", Some(0), false), ("3", Some(0), true)]);
}

#[test]
fn memories_are_paragraphs_below_their_headings() {
    let item = json!({"conversations_memory": "**Work**\n\nBuilds boats.\n\nLikes oak.", "project_memories": {"p": "Ship it."}});
    let told: Vec<_> = records(item)
        .into_iter()
        .map(|record| match record {
            Record::Memory(memory) => (memory.content.unwrap(), memory.metadata.get("title").cloned()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            ("Builds boats.".to_owned(), Some(json!("Work"))),
            ("Likes oak.".to_owned(), Some(json!("Work"))),
            ("Ship it.".to_owned(), None),
        ]
    );
}

#[test]
fn lines_end_as_they_do_on_any_machine() {
    let of = |lines: &str| {
        let said = ["# Work", "", "Builds boats.", "", "Likes oak."].join(lines);
        let item = json!({"conversations_memory": said});
        let told = |record| match record {
            Record::Memory(memory) => (memory.source_id, memory.content.unwrap(), memory.metadata),
            other => panic!("{other:?}"),
        };
        records(item).into_iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(of("\n").len(), 2);
    assert_eq!(of("\r\n"), of("\n"));
}

#[test]
fn names_of_projects_cannot_leave_their_folder() {
    let item = json!({"uuid": "p", "name": "../../etc", "prompt_template": "Be brief.",
        "docs": [{"filename": "..\\..\\passwd", "content": "x"}, {"filename": "empty"}]});
    let paths: Vec<String> = records(item)
        .into_iter()
        .map(|record| match record {
            Record::File(document) => document.path,
            other => panic!("{other:?}"),
        })
        .collect();
    for path in &paths {
        assert!(memtrove_core::files::FilePath::parse(path).is_ok(), "{path}");
        assert!(path.starts_with("claude/projects/"), "{path}");
    }
    assert_eq!(paths.len(), 2);
}

/// The paths of a project's files, each with what is in it.
fn files(item: Value) -> Vec<(String, String)> {
    let file = |record| match record {
        Record::File(document) => (document.path, document.text),
        other => panic!("{other:?}"),
    };
    records(item).into_iter().map(file).collect()
}

#[test]
fn the_same_name_twice_is_two_places() {
    let project = |id: &str| json!({"uuid": id, "name": "Notes", "prompt_template": id, "docs": []});
    let (one, two) = (files(project("1")), files(project("2")));
    assert_ne!(one[0].0, two[0].0);
    assert_eq!(files(project("1")), one, "the place follows from the project alone");

    let document = |id: &str, day: u32| json!({"uuid": id, "filename": "readme.md", "content": id, "created_at": format!("2024-01-0{day}T00:00:00Z")});
    let of = |documents: &[Value]| files(json!({"uuid": "1", "name": "Notes", "docs": documents}));
    let first = of(&[document("a", 1)]);
    assert!(first[0].0.ends_with("/documents/readme.md"), "{first:?}");
    let mut both = of(&[document("a", 1), document("b", 2)]);
    let mut turned = of(&[document("b", 2), document("a", 1)]);
    assert!(both.contains(&first[0]), "what was there stays there");
    assert_ne!(both[0].0, both[1].0);
    both.sort();
    turned.sort();
    assert_eq!(both, turned);
    assert!(both.iter().all(|(path, _)| path.ends_with(".md")), "{both:?}");
}
