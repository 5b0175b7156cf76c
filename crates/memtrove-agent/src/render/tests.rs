use super::*;
use crate::tools;

#[test]
fn chat_completions_have_a_function_in_each_tool() {
    let rendered = ToolFormat::OpenAiChat { strict: false }.render(&tools());
    assert_eq!(rendered.len(), 5);
    for (rendered, tool) in rendered.iter().zip(tools()) {
        assert_eq!(
            *rendered,
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters}})
        );
    }
}

#[test]
fn responses_say_whether_they_are_strict() {
    for strict in [false, true] {
        for rendered in (ToolFormat::OpenAiResponses { strict }).render(&tools()) {
            assert_eq!(rendered["type"], "function");
            assert_eq!(rendered["strict"], strict);
            assert!(rendered["name"].is_string() && rendered["parameters"].is_object());
        }
    }
}

#[test]
fn anthropic_and_mcp_name_the_schema_their_way() {
    let tool = &tools()[2];
    assert_eq!(
        ToolFormat::Anthropic.render(&tools())[2],
        json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
    );
    assert_eq!(
        ToolFormat::Mcp.render(&tools())[2],
        json!({"name": tool.name, "description": tool.description, "inputSchema": tool.parameters,
            "annotations": {"readOnlyHint": true, "openWorldHint": false}})
    );
    assert_eq!(ToolFormat::Mcp.render(&tools())[4]["annotations"]["readOnlyHint"], false);
}

/// Every object of a schema.
fn objects(schema: &Value) -> Vec<&Value> {
    let below = schema["properties"].as_object().into_iter().flat_map(|properties| properties.values());
    let mut all: Vec<&Value> = below.chain(schema.get("items")).flat_map(objects).collect();
    if schema["type"] == "object" {
        all.push(schema);
    }
    all
}

#[test]
fn strict_schemas_require_everything_and_let_what_was_optional_be_null() {
    let strict_tools = ToolFormat::OpenAiChat { strict: true }.render(&tools());
    for (rendered, tool) in strict_tools.iter().zip(tools()) {
        assert_eq!(rendered["function"]["strict"], true);
        let strict = &rendered["function"]["parameters"];
        let (strict_objects, loose_objects) = (objects(strict), objects(&tool.parameters));
        assert_eq!(strict_objects.len(), loose_objects.len());
        for (strict, loose) in strict_objects.into_iter().zip(loose_objects) {
            let names: Vec<&String> = strict["properties"].as_object().unwrap().keys().collect();
            assert_eq!(strict["required"], json!(names), "{}", tool.name);
            assert_eq!(strict["additionalProperties"], false);
            for name in names {
                let was_required =
                    loose["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name));
                let types = &strict["properties"][name]["type"];
                let may_be_null = types.as_array().is_some_and(|types| types.contains(&json!("null")));
                assert_eq!(may_be_null, !was_required, "{} {name}", tool.name);
            }
        }
        let text = strict.to_string();
        for keyword in NOT_IN_STRICT_SCHEMAS {
            assert!(!text.contains(&format!("\"{keyword}\":")), "{} {keyword}", tool.name);
        }
    }
}

#[test]
fn what_a_strict_model_sends_is_taken() {
    use memtrove_wire::tools::ToolCall;
    for (name, arguments) in [
        ("memory_recall", json!({"query": "tea", "top_k": null})),
        ("memory_list_files", json!({"prefix": null, "limit": null})),
        (
            "memory_patch_file",
            json!({"path": "a", "reason": null,
            "edits": [{"old_text": "a", "new_text": "b", "occurrence": null}]}),
        ),
        ("memory_write_file", json!({"path": "a", "content": "", "reason": null})),
    ] {
        assert!(ToolCall::read(name, &arguments).is_ok(), "{name}");
    }
}
