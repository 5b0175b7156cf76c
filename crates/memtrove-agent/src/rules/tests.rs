use super::*;
use proptest::prelude::*;
use serde_json::json;

fn allowing(paths: &[&str]) -> SlotRules {
    SlotRules { allowed_paths: paths.iter().map(|path| (*path).to_owned()).collect(), ..SlotRules::default() }
}

fn content(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(content) => content,
        other => panic!("{other}"),
    }
}

#[test]
fn patches_change_what_is_allowed_and_what_is_below() {
    let rules = allowing(&["/preferences", "notes/*/text", "/a~1b"]);
    for path in [
        "/content/preferences",
        "/content/preferences/tone",
        "/content/preferences/list/-",
        "/content/notes/3/text",
        "/content/a~1b/c",
    ] {
        assert_eq!(rules.check_patch(&[PatchOp::add(path, 1)]), Ok(()), "{path}");
    }
    for path in [
        "/content",
        "/content/preferences_x",
        "/contentx/preferences",
        "/preferences",
        "/doc_id",
        "",
        "/content/notes/3",
        "/content/notes/3/texts",
        "/content/a/b",
    ] {
        let refusal = rules.check_patch(&[PatchOp::test("/content", 1), PatchOp::remove(path)]).unwrap_err();
        assert!(refusal.starts_with(&format!("operation 1 may not change '{path}'")), "{refusal}");
    }
}

#[test]
fn moving_takes_away_and_copying_and_testing_do_not() {
    let rules = allowing(&["/mine"]);
    assert!(rules.check_patch(&[PatchOp::r#move("/content/other", "/content/mine/x")]).is_err());
    assert!(rules.check_patch(&[PatchOp::copy("/content/mine", "/content/other")]).is_err());
    let allowed = [
        PatchOp::copy("/content/other", "/content/mine/x"),
        PatchOp::r#move("/content/mine/x", "/content/mine/y"),
        PatchOp::test("/content/other", 1),
        PatchOp::replace("/content/mine", 1),
    ];
    assert_eq!(rules.check_patch(&allowed), Ok(()));
}

#[test]
fn no_rule_allows_everything_and_a_slash_all_of_the_content() {
    assert_eq!(SlotRules::default().check_patch(&[PatchOp::remove("/doc_id")]), Ok(()));
    for all in ["", "/"] {
        assert_eq!(allowing(&[all]).check_patch(&[PatchOp::remove("/content/x")]), Ok(()));
        assert!(allowing(&[all]).check_patch(&[PatchOp::remove("/doc_id")]).is_err());
    }
}

#[test]
fn a_replacement_has_what_is_required_and_no_more_than_fits() {
    let rules = SlotRules {
        required_content_paths: vec!["/preferences/tone".into(), "name".into()],
        max_content_chars: Some(60),
        max_array_items: Some(2),
        ..SlotRules::default()
    };
    let good = content(json!({"preferences": {"tone": "dry"}, "name": "é", "l": [[1, 2], 3]}));
    assert_eq!(rules.check_content(&good), Ok(()));
    for (bad, about) in [
        (json!({"preferences": {"tone": "dry"}}), "lacks 'name'"),
        (json!({"preferences": {"tone": null}, "name": "x"}), "lacks '/preferences/tone'"),
        (json!({"preferences": {"tone": ""}, "name": {"deep": [{"er": [1, 2, 3]}]}}), "has 3 items"),
        (json!({"preferences": {"tone": "dry"}, "name": "x".repeat(60)}), "characters; at most 60"),
    ] {
        let refusal = rules.check_content(&content(bad)).unwrap_err();
        assert!(refusal.contains(about), "{refusal}");
    }
}

#[test]
fn characters_are_counted_not_bytes() {
    let rules = SlotRules { max_content_chars: Some(13), ..SlotRules::default() };
    assert_eq!(rules.check_content(&content(json!({"name": "你好"}))), Ok(()));
    assert!(rules.check_content(&content(json!({"name": "你好你"}))).is_err());
}

proptest! {
    #[test]
    fn a_rule_allows_exactly_what_has_its_names_first(
        rule in prop::collection::vec("[ab~/]{1,2}", 1..3), target in prop::collection::vec("[ab~/]{1,2}", 0..4)
    ) {
        let pointer = |names: &[String]| -> String {
            names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
        };
        let rules = allowing(&[&pointer(&rule)]);
        let op = PatchOp::remove(format!("/content{}", pointer(&target)));
        prop_assert_eq!(rules.check_patch(&[op]).is_ok(), target.starts_with(&rule));
    }
}
