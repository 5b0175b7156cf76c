use super::*;
use crate::files::EventDigest;
use proptest::prelude::*;
use serde_json::Map;

/// The definitions as the contract has them.
const CONTRACT: &str = r#"
[{"name": "memory_recall", "description": "Search earlier events and return the best matching digests.",
  "parameters": {"type": "object", "additionalProperties": false, "required": ["query"], "properties": {
    "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "What to look for, in plain words."},
    "top_k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 8}}}},
 {"name": "memory_list_files", "description": "List memory files, optionally only those whose path starts with a prefix.",
  "parameters": {"type": "object", "additionalProperties": false, "properties": {
    "prefix": {"type": ["string", "null"], "maxLength": 1024, "description": "For example projects/"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 100}}}},
 {"name": "memory_load_file", "description": "Return the full text of one memory file.",
  "parameters": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "For example profile.md"}}}},
 {"name": "memory_patch_file", "description": "Change parts of a memory file by exact text replacement. All edits succeed or none does.",
  "parameters": {"type": "object", "additionalProperties": false, "required": ["path", "edits"], "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 1024},
    "edits": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "object", "additionalProperties": false,
      "required": ["old_text", "new_text"], "properties": {
        "old_text": {"type": "string", "minLength": 1, "description": "Text that is in the file now, exactly."},
        "new_text": {"type": "string", "description": "What replaces it; empty deletes."},
        "occurrence": {"type": ["integer", "null"], "minimum": 1, "description": "Which match, counted from 1; needed only if there are several."}}}},
    "reason": {"type": "string", "maxLength": 256}}}},
 {"name": "memory_write_file", "description": "Create a memory file or replace its whole text.",
  "parameters": {"type": "object", "additionalProperties": false, "required": ["path", "content"], "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 1024},
    "content": {"type": "string", "description": "The complete new text, usually Markdown."},
    "reason": {"type": "string", "maxLength": 256}}}}]
"#;

#[test]
fn the_definitions_are_the_contracts() {
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    assert_eq!(serde_json::to_value(definitions()).unwrap(), contract);
}

#[test]
fn every_schema_is_a_closed_object_that_has_what_it_requires() {
    for tool in FileTool::ALL {
        let schema = tool.parameters();
        assert_eq!(schema["type"], "object", "{}", tool.name());
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name());
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(
                schema["properties"].get(required.as_str().unwrap()).is_some(),
                "{} {required}",
                tool.name()
            );
        }
        assert_eq!(FileTool::named(tool.name()), Some(tool));
    }
}

fn read(name: &str, arguments: Value) -> ToolCall {
    ToolCall::read(name, &arguments).unwrap_or_else(|failure| panic!("{name} {arguments}: {failure}"))
}

fn refused(name: &str, arguments: Value) -> ToolFailure {
    match ToolCall::read(name, &arguments) {
        Ok(call) => panic!("{name} {arguments} was read: {call:?}"),
        Err(failure) => failure,
    }
}

#[test]
fn what_is_not_said_has_its_default() {
    let ToolCall::Recall(recall) = read("memory_recall", json!({"query": "tea"})) else { panic!() };
    assert_eq!(recall, RecallCall { query: "tea".into(), top_k: 8 });
    for nothing in [json!({}), Value::Null, json!(""), json!("{}"), json!({"prefix": null, "limit": null})] {
        let ToolCall::ListFiles(list) = read("memory_list_files", nothing) else { panic!() };
        assert_eq!(list, ListFilesCall { prefix: None, limit: 100 });
    }
}

#[test]
fn numbers_are_clamped_and_may_be_written_as_text() {
    for (given, taken) in [
        (json!(0), 1),
        (json!(-5), 1),
        (json!(20), 20),
        (json!(21), 20),
        (json!(1e30), 20),
        (json!(7.0), 7),
        (json!("7"), 7),
        (serde_json::from_str("123456789012345678901234567890").unwrap(), 20),
    ] {
        let ToolCall::Recall(recall) = read("memory_recall", json!({"query": "tea", "top_k": given})) else {
            panic!()
        };
        assert_eq!(recall.top_k, taken, "{given}");
    }
    for given in [json!(1.5), json!("many"), json!([3]), json!(true), json!("NaN"), json!("inf")] {
        let failure = refused("memory_recall", json!({"query": "tea", "top_k": given}));
        assert_eq!(failure.code, "INVALID_ARGUMENTS", "{given}");
    }
}

#[test]
fn the_other_spelling_of_top_k_is_taken() {
    let ToolCall::Recall(recall) = read("memory_recall", json!({"query": "tea", "topK": 3})) else {
        panic!()
    };
    assert_eq!(recall.top_k, 3);
    let both = json!({"query": "tea", "topK": 3, "top_k": 5});
    let ToolCall::Recall(recall) = read("memory_recall", both) else { panic!() };
    assert_eq!(recall.top_k, 5);
}

#[test]
fn one_edit_may_stand_beside_the_path() {
    let flat = json!({"path": "a.md", "old_text": "x", "new_text": "", "occurrence": 0});
    let listed = json!({"path": "a.md", "edits": [{"old_text": "x", "new_text": "", "occurrence": 1}]});
    for arguments in [flat, listed] {
        let ToolCall::PatchFile(patch) = read("memory_patch_file", arguments) else { panic!() };
        assert_eq!(patch.path, "a.md");
        let [edit] = patch.edits.as_slice() else { panic!("{:?}", patch.edits) };
        assert_eq!((edit.old_text.as_str(), edit.new_text.as_str(), edit.occurrence), ("x", "", Some(1)));
    }
    let both =
        json!({"path": "a", "old_text": "x", "new_text": "y", "edits": [{"old_text": "x", "new_text": "y"}]});
    assert!(refused("memory_patch_file", both).message.contains("both"));
}

#[test]
fn arguments_may_be_the_text_of_an_object() {
    let text = json!(r#"{"path": "a.md", "content": "tea"}"#);
    let ToolCall::WriteFile(write) = read("memory_write_file", text) else { panic!() };
    assert_eq!(write, WriteFileCall { path: "a.md".into(), content: "tea".into(), reason: None });
    for broken in [json!("{\"path\": "), json!("[1]"), json!([]), json!(4), json!(true)] {
        let failure = refused("memory_write_file", broken);
        assert_eq!(failure.code, "INVALID_ARGUMENTS");
        assert!(failure.hint.contains("memory_write_file takes"), "{failure}");
    }
}

#[test]
fn whose_memory_it_is_cannot_be_said() {
    for name in ["user_id", "tenant_id", "scope"] {
        let failure = refused("memory_load_file", json!({"path": "a.md", name: "bob"}));
        assert!(failure.message.contains(name), "{failure}");
    }
}

#[test]
fn what_cannot_be_read_says_what_the_tool_takes() {
    for (tool, arguments, about) in [
        ("memory_recall", json!({}), "'query' is missing"),
        ("memory_recall", json!({"query": "  "}), "'query' is blank"),
        ("memory_recall", json!({"query": "x".repeat(2001)}), "2001 characters"),
        ("memory_recall", json!({"query": 4}), "'query' is not a string"),
        ("memory_list_files", json!({"prefix": "x".repeat(1025)}), "1025 characters"),
        ("memory_load_file", json!({"path": ""}), "'path' is blank"),
        ("memory_patch_file", json!({"path": "a"}), "'edits' is missing"),
        ("memory_patch_file", json!({"path": "a", "edits": []}), "'edits' is empty"),
        ("memory_patch_file", json!({"path": "a", "edits": "x"}), "'edits' is not a list"),
        (
            "memory_patch_file",
            json!({"path": "a", "edits": [{"old_text": "", "new_text": ""}]}),
            "edit 0: 'old_text' is empty",
        ),
        (
            "memory_patch_file",
            json!({"path": "a", "edits": [{"old_text": "x"}]}),
            "edit 0: 'new_text' is missing",
        ),
        ("memory_patch_file", json!({"path": "a", "old_text": "x"}), "'new_text' is missing"),
        ("memory_write_file", json!({"path": "a"}), "'content' is missing"),
        ("memory_write_file", json!({"path": "a", "content": "", "mode": "append"}), "no argument 'mode'"),
    ] {
        let failure = refused(tool, arguments);
        assert_eq!(failure.code, "INVALID_ARGUMENTS");
        assert!(failure.message.contains(about), "{failure}");
        assert!(failure.hint.starts_with(tool), "{failure}");
    }
    let edits = vec![json!({"old_text": "x", "new_text": "y"}); 101];
    let failure = refused("memory_patch_file", json!({"path": "a", "edits": edits}));
    assert_eq!(failure.code, "PATCH_TOO_LARGE");
}

#[test]
fn a_long_reason_is_cut_not_refused() {
    let reason = "é".repeat(300);
    let ToolCall::WriteFile(write) =
        read("memory_write_file", json!({"path": "a", "content": "", "reason": reason}))
    else {
        panic!()
    };
    assert_eq!(write.reason.unwrap().chars().count(), 256);
}

#[test]
fn an_unknown_tool_hears_which_exist() {
    let failure = refused("memory_delete", json!({}));
    assert_eq!(failure.code, "UNKNOWN_TOOL");
    for tool in FileTool::ALL {
        assert!(failure.hint.contains(tool.name()), "{failure}");
    }
}

#[test]
fn failures_of_the_service_carry_what_helps() {
    let details = Map::from_iter([
        ("match_count".to_owned(), json!("3")),
        ("edit_index".to_owned(), json!("0")),
        ("code".to_owned(), json!("never in place of the code")),
    ]);
    let failure = ToolFailure::answered("PATCH_MATCH_AMBIGUOUS", "several matches", &details).to_json();
    assert_eq!(
        failure,
        json!({"error": {
            "code": "PATCH_MATCH_AMBIGUOUS",
            "message": "several matches",
            "hint": "old_text is there 3 times: give occurrence (1 to 3), or a longer old_text that is there once.",
            "match_count": 3,
            "edit_index": 0,
        }})
    );
    for (code, tools) in [
        ("DOCUMENT_NOT_FOUND", ["memory_list_files", "memory_write_file"]),
        ("PATCH_MATCH_NOT_FOUND", ["memory_load_file", "old_text"]),
        ("ETAG_MISMATCH", ["memory_load_file", "repeat"]),
    ] {
        let failure = ToolFailure::answered(code, "no", &Map::new());
        for tool in tools {
            assert!(failure.hint.contains(tool), "{failure}");
        }
    }
    assert!(!ToolFailure::answered("SOMETHING_NEW", "no", &Map::new()).hint.is_empty());
}

#[test]
fn a_file_shows_its_text_even_an_empty_one_and_else_its_json() {
    let file = |content: Value| {
        let Value::Object(content) = content else { panic!() };
        let file = MemoryFile::of("a.md", "\"1-x\"", &file_envelope("d".into(), content));
        (file.content_type, file.content)
    };
    let shows = |content_type: &str, text: &str| (content_type.to_owned(), text.to_owned());
    assert_eq!(file(json!({"content_type": "text/plain", "text": "tea"})), shows("text/plain", "tea"));
    assert_eq!(file(json!({"text": ""})), shows("text/markdown", ""));
    assert_eq!(file(json!({"text": 4})), shows("application/json", "{\n  \"text\": 4\n}"));
    assert_eq!(file(json!({})), shows("application/json", "{}"));
}

#[test]
fn an_event_is_shown_without_whose_it_is() {
    let event: EventDigest = serde_json::from_value(json!({
        "event_id": "e1", "tenant_id": "t", "user_id": "u", "digest": "Tea", "keywords": ["tea"],
        "timestamp": "2026-01-01T00:00:00Z", "source_type": "chat", "evidence": {"long": true}, "more": 1,
    }))
    .unwrap();
    assert_eq!(
        serde_json::to_value(RecalledEvent::from(event)).unwrap(),
        json!({"event_id": "e1", "timestamp": "2026-01-01T00:00:00Z", "source_type": "chat", "digest": "Tea",
            "keywords": ["tea"], "project_ids": []})
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("path"),
        Just("query"),
        Just("edits"),
        Just("old_text"),
        Just("new_text"),
        Just("content"),
        Just("occurrence"),
        Just("top_k"),
        Just("limit"),
        Just("prefix"),
        Just("reason"),
        Just("other"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..5).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_model_sends_is_either_in_range_or_answered_with_a_hint(
        tool in prop::sample::select(FileTool::ALL.to_vec()), arguments in any_json()
    ) {
        match ToolCall::of(tool, &arguments) {
            Ok(ToolCall::Recall(call)) => {
                prop_assert!((1..=20).contains(&call.top_k) && !call.query.trim().is_empty());
            }
            Ok(ToolCall::ListFiles(call)) => prop_assert!((1..=200).contains(&call.limit)),
            Ok(ToolCall::LoadFile(call)) => prop_assert!(!call.path.is_empty()),
            Ok(ToolCall::PatchFile(call)) => {
                prop_assert!((1..=100).contains(&call.edits.len()));
                for edit in &call.edits {
                    prop_assert!(!edit.old_text.is_empty() && edit.occurrence.is_none_or(|n| n >= 1));
                }
            }
            Ok(ToolCall::WriteFile(call)) => prop_assert!(!call.path.is_empty()),
            Err(failure) => prop_assert!(!failure.hint.is_empty() && !failure.message.is_empty()),
        }
    }
}
