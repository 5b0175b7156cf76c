//! Files as texts.

use crate::support::*;
use memtrove_agent::{Envelope, MemoryEdit, PatchFileOptions, WriteFileOptions, WriteMode};
use memtrove_client::{CallOptions, FilePath, Precondition, WriteRequest};
use std::sync::{Arc, Mutex};

fn path(path: &str) -> FilePath {
    FilePath::new(path).unwrap()
}

#[tokio::test]
async fn a_text_is_written_loaded_patched_and_listed() {
    let (memory, alice) = (memory(), someone());
    let written = memory
        .write_file(&alice, "projects/tea.md", "Buy tea.\nBuy milk.", WriteFileOptions::default())
        .await
        .unwrap();
    assert_eq!((written.path.as_str(), written.content_type.as_str()), ("projects/tea.md", "text/markdown"));
    assert_eq!(memory.load_file(&alice, "projects/tea.md").await.unwrap(), written);

    let edits = vec![MemoryEdit::new("Buy", "Brew").at(1), MemoryEdit::new("milk", "oats")];
    let patched =
        memory.patch_file(&alice, "projects/tea.md", edits, PatchFileOptions::default()).await.unwrap();
    assert_eq!(patched.content, "Brew tea.\nBuy oats.");
    assert_ne!(patched.etag, written.etag);

    memory.write_file(&alice, "profile.md", "", WriteFileOptions::default()).await.unwrap();
    assert_eq!(memory.load_file(&alice, "profile.md").await.unwrap().content, "", "an empty text is a text");
    let paths = async |prefix: Option<&'static str>| {
        let files = memory.list_files(&alice, prefix, None).await.unwrap();
        files.into_iter().map(|file| file.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths(None).await, ["profile.md", "projects/tea.md"]);
    assert_eq!(paths(Some("projects/")).await, ["projects/tea.md"]);
    assert_eq!(memory.list_files(&alice, None, 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_new_file_has_the_envelope_of_a_text_and_an_old_one_keeps_its_own() {
    let (memory, alice) = (memory(), someone());
    memory.write_file(&alice, "new.md", "a", WriteFileOptions::default()).await.unwrap();
    let stored = memory.client().get_file(&alice, &path("new.md")).await.unwrap();
    assert_eq!(
        (stored.document.schema_id.as_str(), stored.document.schema_version.as_str()),
        ("memnet.file", "1.0.0")
    );
    assert_eq!(stored.document.doc_id.len(), 36, "a UUID: {}", stored.document.doc_id);
    assert_eq!(Value::Object(stored.document.content), json!({"content_type": "text/markdown", "text": "a"}));
    assert_eq!(stored.document.updated_by.as_deref(), Some("tests"));

    let document: Envelope = serde_json::from_value(json!({
        "doc_id": "mine", "schema_id": "notes", "schema_version": "7", "color": "red",
        "content": {"content_type": "text/plain", "text": "old", "other": 1}}))
    .unwrap();
    let client = memory.client();
    client
        .write_file(&alice, &path("old.txt"), WriteRequest::new(document), Precondition::CreateNew)
        .await
        .unwrap();
    memory.write_file(&alice, "old.txt", "new", WriteFileOptions::default()).await.unwrap();
    let stored = client.get_file(&alice, &path("old.txt")).await.unwrap().document;
    assert_eq!((stored.doc_id.as_str(), stored.schema_id.as_str()), ("mine", "notes"));
    assert_eq!(stored.extra["color"], "red");
    assert_eq!(Value::Object(stored.content), json!({"content_type": "text/plain", "text": "new"}));
}

#[tokio::test]
async fn what_is_no_text_is_shown_as_json() {
    let (memory, alice) = (memory(), someone());
    let document: Envelope = serde_json::from_value(json!({
        "doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"tone": "dry"}}))
    .unwrap();
    let client = memory.client();
    client
        .write_file(&alice, &path("profile.json"), WriteRequest::new(document), Precondition::CreateNew)
        .await
        .unwrap();
    let file = memory.load_file(&alice, "profile.json").await.unwrap();
    assert_eq!(
        (file.content_type.as_str(), file.content.as_str()),
        ("application/json", "{\n  \"tone\": \"dry\"\n}")
    );
}

#[tokio::test]
async fn a_write_may_insist_on_what_it_finds() {
    let (memory, alice) = (memory(), someone());
    let first = memory.write_file(&alice, "a.md", "1", WriteFileOptions::create_only()).await.unwrap();
    let again = memory.write_file(&alice, "a.md", "2", WriteFileOptions::create_only()).await;
    assert_eq!(refused(again), "ETAG_MISMATCH");

    let unchanged =
        |etag| WriteFileOptions { mode: WriteMode::IfUnchanged(etag), ..WriteFileOptions::default() };
    memory.write_file(&alice, "a.md", "2", unchanged(first.etag.clone())).await.unwrap();
    let stale = memory.write_file(&alice, "a.md", "3", unchanged(first.etag.clone())).await;
    assert_eq!(refused(stale), "ETAG_MISMATCH");
    let missing = memory.write_file(&alice, "none.md", "3", unchanged(first.etag)).await;
    assert_eq!(refused(missing), "ETAG_MISMATCH");
    assert_eq!(memory.load_file(&alice, "a.md").await.unwrap().content, "2");
}

#[tokio::test]
async fn somebody_who_writes_in_between_is_overwritten_by_a_write_and_kept_by_a_patch() {
    let alice = someone();
    memory().write_file(&alice, "a.md", "start", WriteFileOptions::default()).await.unwrap();

    let whose = alice.clone();
    let slow = interrupted(1, move |runtime| {
        let memory = memory();
        runtime
            .block_on(memory.write_file(&whose, "a.md", "theirs and start", WriteFileOptions::default()))
            .unwrap();
    });
    let patched = slow
        .patch_file(&alice, "a.md", vec![MemoryEdit::new("start", "mine")], PatchFileOptions::default())
        .await
        .unwrap();
    assert_eq!(patched.content, "theirs and mine");

    let whose = alice.clone();
    let slow = interrupted(3, move |runtime| {
        let memory = memory();
        runtime.block_on(memory.write_file(&whose, "a.md", "theirs", WriteFileOptions::default())).unwrap();
    });
    let written = slow.write_file(&alice, "a.md", "mine", WriteFileOptions::default()).await.unwrap();
    assert_eq!(written.content, "mine", "three conflicts are survived");
}

#[tokio::test]
async fn a_conflict_that_never_ends_comes_back() {
    let alice = someone();
    memory().write_file(&alice, "a.md", "x", WriteFileOptions::default()).await.unwrap();
    let busy = || {
        let whose = alice.clone();
        interrupted(usize::MAX, move |runtime| {
            let memory = memory();
            runtime.block_on(memory.write_file(&whose, "a.md", "x", WriteFileOptions::default())).unwrap();
        })
    };
    let written = busy().write_file(&alice, "a.md", "y", WriteFileOptions::default()).await;
    assert_eq!(refused(written), "ETAG_MISMATCH");
    let patch = PatchFileOptions { max_conflict_retries: 1, ..PatchFileOptions::default() };
    let patched = busy().patch_file(&alice, "a.md", vec![MemoryEdit::new("x", "y")], patch).await;
    assert_eq!(refused(patched), "ETAG_MISMATCH");
}

#[tokio::test]
async fn a_file_that_appears_in_between_is_overwritten() {
    let alice = someone();
    let whose = alice.clone();
    let slow = interrupted(1, move |runtime| {
        let memory = memory();
        runtime.block_on(memory.write_file(&whose, "a.md", "theirs", WriteFileOptions::default())).unwrap();
    });
    let written = slow.write_file(&alice, "a.md", "mine", WriteFileOptions::default()).await.unwrap();
    assert_eq!(written.content, "mine");
}

#[tokio::test]
async fn what_is_wrong_with_a_patch_is_said_here_or_by_the_service() {
    let ((memory, sent), alice) = (watched(), someone());
    memory.write_file(&alice, "a.md", "tea tea", WriteFileOptions::default()).await.unwrap();
    sent.take();
    let patch = async |edits| memory.patch_file(&alice, "a.md", edits, PatchFileOptions::default()).await;
    assert!(invalid(patch(vec![]).await).contains("no edit"));
    assert!(
        invalid(patch(vec![MemoryEdit::new("tea", ""), MemoryEdit::new("", "x")]).await).contains("edit 1")
    );
    assert!(invalid(memory.load_file(&alice, "../a").await).contains(".."));
    assert_eq!(sent.take(), Vec::<String>::new(), "nothing of this was sent");

    assert_eq!(refused(patch(vec![MemoryEdit::new("milk", "x")]).await), "PATCH_MATCH_NOT_FOUND");
    assert_eq!(refused(patch(vec![MemoryEdit::new("tea", "x")]).await), "PATCH_MATCH_AMBIGUOUS");
    assert_eq!(
        refused(patch(vec![MemoryEdit::new("tea", "x").at(3)]).await),
        "PATCH_OCCURRENCE_OUT_OF_RANGE"
    );
    let missing =
        memory.patch_file(&alice, "b.md", vec![MemoryEdit::new("a", "b")], PatchFileOptions::default());
    assert_eq!(refused(missing.await), "DOCUMENT_NOT_FOUND");
}

#[tokio::test]
async fn why_and_by_whom_is_in_the_audit_trail() {
    let (memory, alice) = (memory(), someone());
    memory.write_file(&alice, "a.md", "tea", WriteFileOptions::default()).await.unwrap();
    let edits = || vec![MemoryEdit::new("tea", "tea")];
    memory.patch_file(&alice, "a.md", edits(), PatchFileOptions::default()).await.unwrap();
    let options = PatchFileOptions {
        reason: Some("because".into()),
        evidence: Some(json!({"line": 4})),
        service_id: Some("planner".into()),
        ..PatchFileOptions::default()
    };
    memory.patch_file(&alice, "a.md", edits(), options).await.unwrap();
    let options = WriteFileOptions { service_id: Some("writer".into()), ..WriteFileOptions::default() };
    memory.write_file(&alice, "a.md", "milk", options).await.unwrap();
    let trail = memory.client().list_audit(&alice, Default::default()).await.unwrap().records;
    let trail: Vec<_> =
        trail.iter().map(|r| (r.reason.as_deref(), r.actor.as_str(), r.evidence.clone())).collect();
    assert_eq!(
        trail,
        [
            (Some("memory_write_file"), "tests", None),
            (Some("memory_patch_file"), "tests", None),
            (Some("because"), "planner", Some(json!({"line": 4}))),
            (Some("memory_write_file"), "writer", None),
        ]
    );
}

#[tokio::test]
async fn a_service_of_its_own_does_not_cost_a_write_its_key() {
    let keys: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let noted = keys.clone();
    let client = client().on_request(move |request| {
        let header =
            |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        noted.lock().unwrap().push((header("idempotency-key"), header("x-service-id")));
    });
    let client = client.build().unwrap().with_options(CallOptions::idempotent("once"));
    let options = WriteFileOptions { service_id: Some("writer".into()), ..WriteFileOptions::create_only() };
    AgentMemory::new(client).write_file(&someone(), "a.md", "tea", options).await.unwrap();
    assert_eq!(*keys.lock().unwrap(), [("once".to_owned(), "writer".to_owned())]);
}

#[tokio::test]
async fn events_are_remembered_recalled_and_forgotten() {
    let (memory, alice) = (memory(), someone());
    let mut event = alice.event("e1", "Prefers green tea");
    event.source_type = Some("chat".into());
    memory.remember(&alice, event).await.unwrap();
    let nobodys = memtrove_client::EventDigest {
        tenant_id: String::new(),
        user_id: String::new(),
        ..alice.event("e2", "Drank coffee")
    };
    memory.remember(&alice, nobodys).await.unwrap();
    let somebody_elses = someone().event("e3", "Tea");
    assert_eq!(refused(memory.remember(&alice, somebody_elses).await), "EVENT_SCOPE_MISMATCH");

    let ids =
        |events: Vec<memtrove_agent::EventDigest>| events.into_iter().map(|e| e.event_id).collect::<Vec<_>>();
    assert_eq!(ids(memory.recall(&alice, "tea", None).await.unwrap()), ["e1"]);
    assert_eq!(ids(memory.recall(&alice, "tea coffee", 1).await.unwrap()).len(), 1);
    let recall = memtrove_agent::Recall { source_type: Some("chat".into()), ..Default::default() };
    assert_eq!(ids(memory.recall_with(&alice, recall).await.unwrap()), ["e1"]);

    memory.write_file(&alice, "a.md", "tea", WriteFileOptions::default()).await.unwrap();
    let report = memory.forget_user(&alice).await.unwrap();
    assert_eq!((report.documents_deleted, report.events_deleted), (1, 2));
    assert_eq!(refused(memory.load_file(&alice, "a.md").await), "DOCUMENT_NOT_FOUND");
}
