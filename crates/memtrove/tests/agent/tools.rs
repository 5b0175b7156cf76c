//! The tools of a model, and what it is told when something is wrong.

use crate::support::*;
use memtrove_agent::{ToolOutput, WriteFileOptions};
use memtrove_client::{Client, RetryPolicy};
use std::time::Duration;

async fn call(memory: &AgentMemory, scope: &Scope, name: &str, arguments: Value) -> Value {
    let output = memory.call_tool(scope, name, &arguments).await.unwrap();
    assert!(!output.is_error, "{name} {arguments}: {}", output.text());
    output.value
}

async fn failure(memory: &AgentMemory, scope: &Scope, name: &str, arguments: Value) -> Value {
    let output = memory.call_tool(scope, name, &arguments).await.unwrap();
    assert!(output.is_error, "{name} {arguments} did not fail: {}", output.text());
    let error = output.value["error"].clone();
    for member in ["code", "message", "hint"] {
        assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {error}");
    }
    error
}

#[tokio::test]
async fn a_model_writes_loads_patches_lists_and_recalls() {
    let (memory, alice) = (memory(), someone());
    let written =
        call(&memory, &alice, "memory_write_file", json!({"path": "a.md", "content": "tea and milk"})).await;
    assert_eq!(written["content"], "tea and milk");
    let patched = call(
        &memory,
        &alice,
        "memory_patch_file",
        json!({"path": "a.md", "edits": [{"old_text": "tea", "new_text": "coffee", "occurrence": null}]}),
    )
    .await;
    let flat = json!({"path": "a.md", "old_text": "milk", "new_text": "oats", "occurrence": -3});
    let patched_again = call(&memory, &alice, "memory_patch_file", flat).await;
    assert_ne!(patched["etag"], patched_again["etag"]);
    let loaded = call(&memory, &alice, "memory_load_file", json!(r#"{"path": "a.md"}"#)).await;
    assert_eq!(
        loaded,
        json!({"path": "a.md", "content_type": "text/markdown", "content": "coffee and oats",
            "etag": patched_again["etag"]})
    );
    let listed = call(&memory, &alice, "memory_list_files", json!({"limit": 100_000})).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["path"], "a.md");
    assert!(listed[0]["last_modified_utc"].as_str().unwrap().ends_with('Z'));

    memory.remember(&alice, alice.event("e1", "Likes oats")).await.unwrap();
    let found = call(&memory, &alice, "memory_recall", json!({"query": "oats", "topK": 99})).await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    let members: Vec<&String> = found[0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["event_id", "timestamp", "source_type", "digest", "keywords", "project_ids"]);
}

#[tokio::test]
async fn failures_tell_a_model_what_to_do() {
    let (memory, alice) = (memory(), someone());
    let error = failure(&memory, &alice, "memory_load_file", json!({"path": "none.md"})).await;
    assert_eq!(error["code"], "DOCUMENT_NOT_FOUND");
    assert!(error["hint"].as_str().unwrap().contains("memory_list_files"));

    memory.write_file(&alice, "a.md", "tea tea tea", WriteFileOptions::default()).await.unwrap();
    let patch = |old: &str, occurrence: Value| json!({"path": "a.md", "edits": [{"old_text": old, "new_text": "x", "occurrence": occurrence}]});
    let error = failure(&memory, &alice, "memory_patch_file", patch("tea", Value::Null)).await;
    assert_eq!(
        (error["code"].as_str(), error["match_count"].as_u64()),
        (Some("PATCH_MATCH_AMBIGUOUS"), Some(3))
    );
    assert!(error["hint"].as_str().unwrap().contains("occurrence (1 to 3)"), "{error}");
    let error = failure(&memory, &alice, "memory_patch_file", patch("tea", json!(7))).await;
    assert_eq!(error["code"], "PATCH_OCCURRENCE_OUT_OF_RANGE");
    assert!(error["hint"].as_str().unwrap().contains("1 to 3"), "{error}");
    let error = failure(&memory, &alice, "memory_patch_file", patch("milk", Value::Null)).await;
    assert_eq!(error["code"], "PATCH_MATCH_NOT_FOUND");
    assert!(error["hint"].as_str().unwrap().contains("memory_load_file"), "{error}");
    let error = failure(&memory, &alice, "memory_write_file", json!({"path": "../x", "content": ""})).await;
    assert_eq!(error["code"], "INVALID_PATH");
    let error = failure(&memory, &alice, "memory_list_files", json!({"prefix": "../x"})).await;
    assert_eq!(error["code"], "INVALID_PATH_PREFIX");
    let long = json!({"path": "long.md", "content": "x".repeat(256_001)});
    let error = failure(&memory, &alice, "memory_write_file", long).await;
    assert_eq!(error["code"], "DOCUMENT_SIZE_EXCEEDED");
}

#[tokio::test]
async fn what_cannot_be_run_is_answered_without_a_request() {
    let ((memory, sent), alice) = (watched(), someone());
    let error = failure(&memory, &alice, "memory_forget", json!({})).await;
    assert_eq!(error["code"], "UNKNOWN_TOOL");
    assert!(error["hint"].as_str().unwrap().contains("memory_recall, memory_list_files"), "{error}");
    let error = failure(&memory, &alice, "memory_write_file", json!("{not json")).await;
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    assert!(error["hint"].as_str().unwrap().contains("memory_write_file takes"), "{error}");
    let error = failure(&memory, &alice, "memory_load_file", json!({"path": "a", "user_id": "bob"})).await;
    assert!(error["message"].as_str().unwrap().contains("user_id"), "{error}");
    assert_eq!(sent.take(), Vec::<String>::new());
}

#[tokio::test]
async fn a_memory_that_cannot_be_reached_is_an_error_of_the_call() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let retry = RetryPolicy { max_retries: 0, ..RetryPolicy::default() };
    let client =
        Client::builder().base_url(nobody).retry(retry).timeout(Duration::from_secs(30)).build().unwrap();
    let memory = AgentMemory::new(client);
    let outcome = memory.call_tool(&someone(), "memory_load_file", &json!({"path": "a.md"})).await;
    assert!(matches!(outcome, Err(Error::Transport { .. })), "{outcome:?}");
    let outcome = memory.call_memory_tool(&someone(), &json!({"command": "view", "path": "/memories"})).await;
    assert!(matches!(outcome, Err(Error::Transport { .. })), "{outcome:?}");
    let nobody = Scope::new("acme", "..");
    let outcome = memory.call_tool(&nobody, "memory_load_file", &json!({"path": "a.md"})).await;
    assert!(outcome.is_err(), "a scope that is none is not the model's mistake: {outcome:?}");
}

#[tokio::test]
async fn a_model_sees_the_files_of_its_user_alone() {
    let (memory, alice) = (memory(), someone());
    let bob = Scope::new(alice.tenant_id.clone(), fresh_name("bob"));
    memory.write_file(&bob, "secret.md", "bob's", WriteFileOptions::default()).await.unwrap();
    assert_eq!(call(&memory, &alice, "memory_list_files", json!({})).await, json!([]));
    let error = failure(&memory, &alice, "memory_load_file", json!({"path": "secret.md"})).await;
    assert_eq!(error["code"], "DOCUMENT_NOT_FOUND");
}

#[test]
fn an_output_fits_into_every_vendors_conversation() {
    let output = ToolOutput { value: json!({"path": "a.md"}), is_error: true };
    let text = r#"{"path":"a.md"}"#;
    assert_eq!(output.openai_message("c1"), json!({"role": "tool", "tool_call_id": "c1", "content": text}));
    assert_eq!(
        output.openai_item("c1"),
        json!({"type": "function_call_output", "call_id": "c1", "output": text})
    );
    assert_eq!(
        output.anthropic_block("t1"),
        json!({"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": true})
    );
    assert_eq!(output.mcp_result(), json!({"content": [{"type": "text", "text": text}], "isError": true}));
}
