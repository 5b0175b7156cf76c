//! Preparing a turn.

use crate::support::*;
use memtrove_agent::{
    AgentMemoryOptions, MemoryPolicy, PrepareTurn, SlotPolicy, TemplateVariables, WriteFileOptions,
};

fn policy() -> MemoryPolicy {
    MemoryPolicy {
        policy_id: "assistant".into(),
        slots: vec![
            SlotPolicy::at("extra", "extra.md"),
            SlotPolicy::at("profile", "profile.md").loaded_by_default(),
            SlotPolicy::at("missing", "missing.md").loaded_by_default(),
            SlotPolicy::template("project", "projects/{project}.md"),
            SlotPolicy::at("habits", "habits.md").loaded_by_default(),
        ],
    }
}

async fn filled(memory: &AgentMemory, scope: &Scope) {
    for path in ["extra.md", "profile.md", "habits.md", "projects/tea.md"] {
        memory
            .write_file(scope, path, &format!("text of {path}"), WriteFileOptions::default())
            .await
            .unwrap();
    }
    memory.remember(scope, scope.event("e1", "Likes tea")).await.unwrap();
    let chat =
        memtrove_agent::EventDigest { source_type: Some("chat".into()), ..scope.event("e2", "More tea") };
    memory.remember(scope, chat).await.unwrap();
}

#[tokio::test]
async fn a_turn_has_its_slots_in_order_each_once_with_a_version() {
    let ((memory, sent), alice) = (watched(), someone());
    let memory = memory.with_policy(policy());
    filled(&memory, &alice).await;
    sent.take();
    let turn = PrepareTurn {
        additional_slot_ids: vec!["project".into(), "profile".into(), "extra".into(), "project".into()],
        template_variables: TemplateVariables::from_iter([("project".into(), "tea".into())]),
        recall_query: Some("tea".into()),
        source_type: Some("chat".into()),
        ..PrepareTurn::default()
    };
    let prepared = memory.prepare_turn(&alice, turn).await.unwrap();
    let slots: Vec<_> =
        prepared.documents.iter().map(|d| (d.slot_id.as_deref().unwrap(), d.path.as_str())).collect();
    assert_eq!(
        slots,
        [
            ("profile", "profile.md"),
            ("habits", "habits.md"),
            ("project", "projects/tea.md"),
            ("extra", "extra.md")
        ]
    );
    for document in &prepared.documents {
        let loaded = memory.load_file(&alice, &document.path).await.unwrap();
        assert_eq!(loaded.etag, document.etag);
        assert_eq!(document.envelope.content["text"], loaded.content);
    }
    let events: Vec<_> = prepared.events.iter().map(|event| event.event_id.as_str()).collect();
    assert_eq!(events, ["e2"], "the filters go along");
    let requests = sent.take();
    assert_eq!(requests[..2], ["POST context:assemble", "POST events:search"]);
}

#[tokio::test]
async fn what_does_not_fit_is_named() {
    let (memory, alice) = (memory().with_policy(policy()), someone());
    filled(&memory, &alice).await;
    let turn = PrepareTurn { max_docs: Some(1), ..PrepareTurn::default() };
    let prepared = memory.prepare_turn(&alice, turn).await.unwrap();
    assert_eq!(prepared.documents.len(), 1);
    let dropped: Vec<_> = prepared.dropped_files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(dropped, ["missing.md", "habits.md"], "what comes after the last that fits is not looked at");
    assert!(prepared.events.is_empty());

    let small = AgentMemoryOptions { assemble_max_chars_total: 10, ..AgentMemoryOptions::default() };
    let prepared = memory.with_options(small).prepare_turn(&alice, PrepareTurn::default()).await.unwrap();
    assert_eq!((prepared.documents.len(), prepared.dropped_files.len()), (0, 2));
}

#[tokio::test]
async fn eight_files_and_forty_thousand_characters_are_asked_for() {
    let alice = someone();
    let slots = (0..9).map(|n| SlotPolicy::at(format!("s{n}"), format!("{n}.md")).loaded_by_default());
    let policy = MemoryPolicy { policy_id: "many".into(), slots: slots.collect() };
    let memory = memory().with_policy(policy);
    for n in 0..9 {
        let text = "x".repeat(4_400);
        memory.write_file(&alice, &format!("{n}.md"), &text, WriteFileOptions::default()).await.unwrap();
    }
    let prepared = memory.prepare_turn(&alice, PrepareTurn::default()).await.unwrap();
    assert_eq!(
        (prepared.documents.len(), prepared.dropped_files.len()),
        (8, 1),
        "not the service's 4 and 30 000"
    );
}

#[tokio::test]
async fn nothing_is_asked_where_nothing_is_wanted() {
    let ((memory, sent), alice) = (watched(), someone());
    let turn = PrepareTurn { recall_query: Some("  ".into()), ..PrepareTurn::default() };
    let prepared = memory.prepare_turn(&alice, turn).await.unwrap();
    assert!(prepared.documents.is_empty() && prepared.events.is_empty());
    let memory = memory.with_policy(policy());
    let unknown = PrepareTurn { additional_slot_ids: vec!["diary".into()], ..PrepareTurn::default() };
    assert!(invalid(memory.prepare_turn(&alice, unknown).await).contains("diary"));
    let unfilled = PrepareTurn { additional_slot_ids: vec!["project".into()], ..PrepareTurn::default() };
    assert!(invalid(memory.prepare_turn(&alice, unfilled).await).contains("'project' is missing"));
    assert_eq!(sent.take(), Vec::<String>::new());
}
