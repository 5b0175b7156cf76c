use super::*;
use proptest::prelude::*;

fn refused(outcome: Result<impl std::fmt::Debug>) -> String {
    match outcome {
        Err(Error::InvalidInput(message)) => message,
        other => panic!("not refused as invalid: {other:?}"),
    }
}

fn variables(pairs: &[(&str, &str)]) -> TemplateVariables {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_policy_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.json");
    std::fs::write(
        &file,
        r#"{"policy_id": "assistant", "slots": [
            {"slot_id": "profile", "path": "profile.json", "load_by_default": true,
             "patch_rules": {"allowed_paths": ["/preferences"], "max_array_items": 3}},
            {"slot_id": "project", "path_template": "projects/{project}.md", "load_by_default": false, "patch_rules": null}]}"#,
    )
    .unwrap();
    let policy = MemoryPolicy::from_json_file(&file).unwrap();
    let rules = SlotRules {
        allowed_paths: vec!["/preferences".into()],
        max_array_items: Some(3),
        ..SlotRules::default()
    };
    let expected = MemoryPolicy {
        policy_id: "assistant".into(),
        slots: vec![
            SlotPolicy::at("profile", "profile.json").loaded_by_default().with_rules(rules),
            SlotPolicy::template("project", "projects/{project}.md"),
        ],
    };
    assert_eq!(policy, expected);
    let written = serde_json::to_string(&policy).unwrap();
    assert_eq!(MemoryPolicy::from_json(&written).unwrap(), policy, "what is written can be read");
    assert!(refused(MemoryPolicy::from_json_file(folder.path().join("none.json"))).contains("none.json"));
}

#[test]
fn a_policy_that_makes_no_sense_is_refused() {
    for (slots, about) in [
        (r#"[{"slot_id": "a", "path": "a", "path_template": "b"}]"#, "both path and path_template"),
        (r#"[{"slot_id": "a"}]"#, "neither path nor path_template"),
        (r#"[{"slot_id": "a", "path": "a"}, {"slot_id": "a", "path": "b"}]"#, "two slots 'a'"),
        (r#"[{"slot_id": " ", "path": "a"}]"#, "blank slot_id"),
        (r#"[{"slot_id": "a", "path": "a", "load_by_defualt": true}]"#, "load_by_defualt"),
        (r#"[{"slot_id": "a", "path": "a", "patch_rules": {"allowed": []}}]"#, "allowed"),
        (r#"[{"path": "a"}]"#, "slot_id"),
    ] {
        let json = format!(r#"{{"policy_id": "p", "slots": {slots}}}"#);
        let message = refused(MemoryPolicy::from_json(&json));
        assert!(message.contains(about), "{message}");
    }
    let twice = MemoryPolicy {
        policy_id: "p".into(),
        slots: vec![SlotPolicy::at("a", "a.md"), SlotPolicy::at("a", "b.md")],
    };
    assert!(refused(twice.slot("a")).contains("two slots"));
    assert!(refused(MemoryPolicy::default().slot("profile")).contains("no slot 'profile'"));
}

#[test]
fn variables_choose_the_file() {
    let slot = SlotPolicy::template("note", "projects/{project}/{day}.md");
    let path = slot.file_path(&variables(&[("project", "memtrove"), ("day", "mon day")])).unwrap();
    assert_eq!(path.as_str(), "projects/memtrove/mon day.md");
    for (given, about) in [
        (vec![("project", "memtrove")], "'day' is missing"),
        (vec![("project", "memtrove"), ("day", "  ")], "'day' is missing"),
        (vec![("project", "a/b"), ("day", "x")], "'project' has a slash"),
        (vec![("project", "a\\b"), ("day", "x")], "'project' has a slash"),
        (vec![("project", ".."), ("day", "x")], "'..'"),
        (vec![("project", "."), ("day", "x")], "'.'"),
    ] {
        let message = refused(slot.file_path(&variables(&given)));
        assert!(message.starts_with("slot 'note'") && message.contains(about), "{message}");
    }
    assert!(refused(SlotPolicy::template("x", "a/{b").file_path(&variables(&[]))).contains("without"));
    assert_eq!(SlotPolicy::at("x", "a/{b}.md").file_path(&variables(&[])).unwrap().as_str(), "a/{b}.md");
}

proptest! {
    #[test]
    fn a_value_never_leads_out_of_its_place_in_the_template(value in "\\PC{0,12}") {
        let slot = SlotPolicy::template("note", "notes/{name}/text.md");
        if let Ok(path) = slot.file_path(&variables(&[("name", &value)])) {
            let segments: Vec<&str> = path.as_str().split('/').collect();
            prop_assert_eq!(segments, vec!["notes", value.as_str(), "text.md"]);
        }
    }
}
