//! Slots: files by name, with rules.

use crate::support::*;
use memtrove_agent::{
    Envelope, MemoryPolicy, PatchOp, Precondition, SlotPatch, SlotPolicy, SlotReplace, SlotRules,
    TemplateVariables,
};

fn policy() -> MemoryPolicy {
    let rules = SlotRules {
        allowed_paths: vec!["/preferences".into()],
        required_content_paths: vec!["/preferences".into()],
        max_content_chars: Some(200),
        max_array_items: Some(2),
    };
    MemoryPolicy {
        policy_id: "assistant".into(),
        slots: vec![
            SlotPolicy::at("profile", "profile.json").with_rules(rules),
            SlotPolicy::template("project", "projects/{project}.json"),
        ],
    }
}

fn document(content: Value) -> Envelope {
    let document = json!({"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": content});
    serde_json::from_value(document).unwrap()
}

fn project(name: &str) -> TemplateVariables {
    TemplateVariables::from_iter([("project".to_owned(), name.to_owned())])
}

#[tokio::test]
async fn a_slot_is_replaced_loaded_and_patched() {
    let (memory, alice) = (memory().with_policy(policy()), someone());
    let first = document(json!({"preferences": {"tone": "dry"}}));
    let created = memory.replace_slot(&alice, "profile", first, Precondition::CreateNew).await.unwrap();
    assert_eq!((created.slot_id.as_deref(), created.path.as_str()), (Some("profile"), "profile.json"));

    let patch = SlotPatch {
        ops: vec![PatchOp::replace("/content/preferences/tone", "warm")],
        reason: Some("asked to".into()),
        ..SlotPatch::default()
    };
    let patched = memory.patch_slot(&alice, "profile", patch.clone(), created.etag.clone()).await.unwrap();
    assert_eq!(patched.envelope.content["preferences"]["tone"], "warm");
    let stale = memory.patch_slot(&alice, "profile", patch, created.etag).await;
    assert_eq!(refused(stale), "ETAG_MISMATCH", "a slot is changed at the version that the caller says");
    let loaded = memory.load_slot(&alice, "profile", &TemplateVariables::new()).await.unwrap();
    assert_eq!(loaded.etag, patched.etag);
}

#[tokio::test]
async fn variables_say_which_file_a_slot_is() {
    let (memory, alice) = (memory().with_policy(policy()), someone());
    let replacement = SlotReplace {
        template_variables: project("memtrove"),
        ..SlotReplace::from(document(json!({"goal": "remember"})))
    };
    memory.replace_slot(&alice, "project", replacement, Precondition::CreateNew).await.unwrap();
    let loaded = memory.load_slot(&alice, "project", &project("memtrove")).await.unwrap();
    assert_eq!(loaded.path, "projects/memtrove.json");
    let other = memory.load_slot(&alice, "project", &project("other")).await;
    assert_eq!(refused(other), "DOCUMENT_NOT_FOUND");
}

#[tokio::test]
async fn what_the_rules_forbid_is_never_sent() {
    let ((memory, sent), alice) = (watched(), someone());
    let memory = memory.with_policy(policy());
    let patch = |op| SlotPatch { ops: vec![op], ..SlotPatch::default() };
    for op in [
        PatchOp::replace("/content/name", "x"),
        PatchOp::replace("/content", json!({})),
        PatchOp::replace("/doc_id", "x"),
        PatchOp::add("/content/preferences_x", 1),
        PatchOp::r#move("/content/name", "/content/preferences/name"),
    ] {
        let message = invalid(memory.patch_slot(&alice, "profile", patch(op), Precondition::CreateNew).await);
        assert!(message.starts_with("slot 'profile': operation 0 may not change"), "{message}");
    }
    let none = SlotPatch::default();
    invalid(memory.patch_slot(&alice, "profile", none, Precondition::CreateNew).await);
    for content in [
        json!({}),
        json!({"preferences": null}),
        json!({"preferences": {"list": [1, 2, 3]}}),
        json!({"preferences": "x".repeat(200)}),
    ] {
        let outcome =
            memory.replace_slot(&alice, "profile", document(content), Precondition::CreateNew).await;
        assert!(invalid(outcome).starts_with("slot 'profile': "));
    }
    assert!(invalid(memory.load_slot(&alice, "diary", &project("x")).await).contains("profile, project"));
    for name in ["", "a/b", ".."] {
        invalid(memory.load_slot(&alice, "project", &project(name)).await);
    }
    assert_eq!(sent.take(), Vec::<String>::new());
}

#[tokio::test]
async fn clones_share_a_policy_that_is_looked_at_once() {
    let policy = |ids: [&str; 2]| MemoryPolicy {
        policy_id: "p".into(),
        slots: ids.map(|id| SlotPolicy::at(id, format!("{id}.md"))).to_vec(),
    };
    let (memory, alice) = (memory().with_policy(policy(["a", "b"])), someone());
    assert!(std::ptr::eq(memory.policy(), memory.clone().policy()));
    let unclear = memory.with_policy(policy(["a", "a"]));
    let none = TemplateVariables::new();
    assert!(invalid(unclear.load_slot(&alice, "a", &none).await).contains("two slots 'a'"));
    assert!(invalid(unclear.prepare_turn(&alice, Default::default()).await).contains("two slots 'a'"));
}
