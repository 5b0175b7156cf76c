//! The guide `docs/tools.md`: its Rust stands here word for word, and runs.

use crate::support;
use memtrove_agent::{
    AgentMemory, MemoryEdit, MemoryPolicy, PatchFileOptions, PatchOp, PrepareTurn, Scope, Session,
    SessionOptions, SlotPatch, TemplateVariables, ToolFormat, WriteFileOptions, memory_tool, tools,
};
use serde_json::{Value, json};

const GUIDE: &str = include_str!("../../../../docs/tools.md");
const SOURCE: &str = include_str!("guide.rs");

#[test]
fn every_block_of_rust_in_the_guide_stands_here() {
    let plain = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let source = plain(SOURCE);
    let blocks: Vec<&str> = GUIDE
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("a block that ends").0)
        .collect();
    assert!(blocks.len() >= 8, "the guide has {} blocks", blocks.len());
    let fences = GUIDE.matches("```rust").count();
    assert_eq!(blocks.len(), fences, "a block of Rust begins with ```rust and nothing behind it");
    for block in blocks {
        assert!(source.contains(plain(block).trim()), "this block is not in guide.rs:\n{block}");
    }
}

fn memory() -> (AgentMemory, Scope) {
    (support::memory(), support::someone())
}

/// A vendor's API that answers with what a model would: first a call, then a text.
#[derive(Default)]
struct Vendor {
    asked: usize,
}

impl Vendor {
    fn complete(&mut self, request: &Value) -> Value {
        assert_eq!(request["tools"].as_array().map(Vec::len), Some(5));
        self.asked += 1;
        match self.asked {
            1 => json!({"content": [{"type": "tool_use", "id": "toolu_1", "name": "memory_write_file",
                "input": {"path": "profile.md", "content": "Likes tea."}}]}),
            2 => {
                let result = &request["messages"][2]["content"][0];
                assert_eq!((&result["tool_use_id"], &result["is_error"]), (&json!("toolu_1"), &json!(false)));
                json!({"content": [{"type": "text", "text": "Noted."}]})
            }
            _ => panic!("asked too often"),
        }
    }
}

#[tokio::test]
async fn the_memory_of_an_agent() {
    let (memory, alice) = memory();
    memory.write_file(&alice, "profile.md", "Likes tea.", WriteFileOptions::default()).await.unwrap();
    let edits = vec![MemoryEdit::new("tea", "green tea")];
    memory.patch_file(&alice, "profile.md", edits, PatchFileOptions::default()).await.unwrap();
    let profile = memory.load_file(&alice, "profile.md").await.unwrap();
    assert_eq!(profile.content, "Likes green tea.");

    memory.remember(&alice, alice.event("evt-1", "Ordered green tea")).await.unwrap();
    let events = memory.recall(&alice, "tea", 5).await.unwrap();
    assert_eq!(events[0].digest, "Ordered green tea");
}

#[test]
fn the_tools_of_each_vendor() {
    let openai = ToolFormat::OpenAiChat { strict: false }.render(&tools());
    let responses = ToolFormat::OpenAiResponses { strict: true }.render(&tools());
    let anthropic = ToolFormat::Anthropic.render(&tools());
    let mcp = ToolFormat::Mcp.render(&tools());
    for rendered in [openai, responses, anthropic, mcp] {
        assert_eq!(rendered.len(), 5);
    }
}

#[tokio::test]
async fn the_loop_of_an_agent() {
    let (memory, alice) = memory();
    let mut vendor = Vendor::default();
    let mut messages = vec![json!({"role": "user", "content": "I like tea."})];
    let answer = loop {
        let request = json!({"messages": messages, "tools": ToolFormat::Anthropic.render(&tools())});
        let answer = vendor.complete(&request);
        let blocks = answer["content"].as_array().cloned().unwrap_or_default();
        let mut results = Vec::new();
        for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
            let (id, name) = (block["id"].as_str().unwrap(), block["name"].as_str().unwrap());
            let output = memory.call_tool(&alice, name, &block["input"]).await.unwrap();
            results.push(output.anthropic_block(id));
        }
        if results.is_empty() {
            break answer;
        }
        messages.push(json!({"role": "assistant", "content": blocks}));
        messages.push(json!({"role": "user", "content": results}));
    };
    assert_eq!(answer["content"][0]["text"], "Noted.");
    assert_eq!(memory.load_file(&alice, "profile.md").await.unwrap().content, "Likes tea.");
}

#[tokio::test]
async fn a_failure_is_data() {
    let (memory, alice) = memory();
    let output = memory.call_tool(&alice, "memory_load_file", &json!({"path": "plan.md"})).await.unwrap();
    assert!(output.is_error);
    assert_eq!(output.value["error"]["code"], "DOCUMENT_NOT_FOUND");
    assert_eq!(
        output.value["error"]["hint"],
        "See which files exist with memory_list_files, or create this one with memory_write_file."
    );
}

#[tokio::test]
async fn the_memory_tool() {
    let (memory, alice) = memory();
    let tools = [memory_tool()];
    assert_eq!(tools[0], json!({"type": "memory_20250818", "name": "memory"}));
    let input = json!({"command": "create", "path": "/memories/notes.md", "file_text": "Likes tea.\n"});
    let output = memory.call_memory_tool(&alice, &input).await.unwrap();
    assert_eq!(output.text(), "File created successfully at: /memories/notes.md");
    let view = json!({"command": "view", "path": "/memories"});
    let output = memory.call_memory_tool(&alice, &view).await.unwrap();
    assert!(output.text().ends_with("11B\t/memories/notes.md"));
}

#[tokio::test]
async fn slots_and_the_turn() {
    let (memory, alice) = memory();
    memory.write_file(&alice, "profile.md", "Likes tea.", WriteFileOptions::default()).await.unwrap();
    memory.write_file(&alice, "projects/memtrove.md", "Ship it.", WriteFileOptions::default()).await.unwrap();

    let policy = MemoryPolicy::from_json(
        r#"{"policy_id": "assistant", "slots": [
            {"slot_id": "profile", "path": "profile.md", "load_by_default": true,
             "patch_rules": {"allowed_paths": ["/text"]}},
            {"slot_id": "project", "path_template": "projects/{project}.md"}]}"#,
    )
    .unwrap();
    let memory = memory.with_policy(policy);

    let turn = PrepareTurn {
        additional_slot_ids: vec!["project".into()],
        template_variables: TemplateVariables::from([("project".into(), "memtrove".into())]),
        recall_query: Some("tea".into()),
        ..PrepareTurn::default()
    };
    let prepared = memory.prepare_turn(&alice, turn).await.unwrap();
    let slots: Vec<_> = prepared.documents.iter().filter_map(|slot| slot.slot_id.as_deref()).collect();
    assert_eq!(slots, ["profile", "project"]);

    let profile = &prepared.documents[0];
    let patch = SlotPatch {
        ops: vec![PatchOp::replace("/content/text", "Likes green tea.")],
        ..SlotPatch::default()
    };
    memory.patch_slot(&alice, "profile", patch, &profile.etag).await.unwrap();
}

#[tokio::test]
async fn the_session() {
    let (memory, alice) = memory();
    let options = SessionOptions {
        files: vec!["profile.md".into()],
        catalogue_prefix: Some("projects/".into()),
        ..SessionOptions::default()
    };
    let mut session = Session::prime(memory, alice, options).await.unwrap();
    let prompt = session.next_turn().await.unwrap().expect("the first turn carries it");
    assert!(prompt.contains("profile.md"));
    assert!(session.next_turn().await.unwrap().is_none());

    let call = json!({"path": "profile.md", "content": "Likes tea."});
    session.call_tool("memory_write_file", &call).await.unwrap();
    assert!(session.next_turn().await.unwrap().unwrap().contains("Likes tea."));
}
