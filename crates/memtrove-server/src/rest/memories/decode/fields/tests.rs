use super::*;
use crate::rest::testing::{code, refusal};
use serde_json::json;

#[test]
fn a_layer_that_is_missing_unknown_or_switched_off_is_refused() {
    let rules = Rules { enabled_layers: vec![Layer::User, Layer::Project], ..Rules::default() };
    assert_eq!(one_layer(&json!("PROJECT"), &rules), Ok(Layer::Project));
    assert_eq!(code(layer(Members::body(&json!({})).unwrap(), "layer", &rules)), "INVALID_LAYER");
    for given in [json!("team"), json!("nobody"), json!(""), json!(5), json!(true)] {
        let refusal = refusal(one_layer(&given, &rules));
        assert_eq!((refusal.code, &refusal.details["layer"]), (Code::InvalidLayer, &given));
    }
    for given in [json!(["user"]), json!({}), json!("x".repeat(1000))] {
        assert_eq!(refusal(one_layer(&given, &rules)).details["layer"], Value::Null);
    }
}

#[test]
fn one_layer_of_a_list_that_is_none_is_refused() {
    let given = [json!("company"), json!("User")];
    assert_eq!(layers(&given, &Rules::default()), Ok(vec![Layer::Company, Layer::User]));
    assert_eq!(code(layers(&[json!("user"), json!("planet")], &Rules::default())), "INVALID_LAYER");
}

#[test]
fn kinds_are_words() {
    for given in [json!("nothing"), json!(3), json!([])] {
        assert_eq!(code(kind(&given)), "INVALID_KIND");
        assert_eq!(code(kinds(&[json!("semantic"), given])), "INVALID_KIND");
    }
    let named = [json!("archival"), json!("working"), json!("Working")];
    assert_eq!(kinds(&named), Ok(vec![Kind::Working, Kind::Archival]));
}

fn given(identifiers: Value) -> Result<Identifiers> {
    super::identifiers(Members::body(&json!({"identifiers": identifiers}))?)
}

#[test]
fn what_is_null_missing_or_empty_was_not_given() {
    for named in [json!({}), json!({"userId": null}), json!({"userId": ""}), json!({"other": 5}), json!(null)]
    {
        assert!(given(named.clone()).unwrap().is_empty(), "{named}");
    }
    assert!(super::identifiers(Members::body(&json!({})).unwrap()).unwrap().is_empty());
}

#[test]
fn identifiers_are_texts() {
    assert_eq!(given(json!({"userId": "a"})).unwrap().get(Identifier::User), Some("a"));
    for named in [json!({"userId": 5}), json!({"userId": ["a"]}), json!({"userId": "a\n"})] {
        assert_eq!(code(given(named.clone())), "INVALID_REQUEST identifiers.userId", "{named}");
    }
    assert_eq!(code(given(json!("userId"))), "INVALID_REQUEST identifiers");
}

fn policy(given: Value) -> Result<Option<AccessPolicy>> {
    let body = json!({"accessPolicy": given});
    access_policy(Members::body(&body)?)
}

#[test]
fn a_policy_is_a_word_with_the_names_it_may_need() {
    assert_eq!(policy(json!(null)), Ok(None));
    for one in Policy::ALL {
        let given = json!({"policy": one.as_str().to_uppercase()});
        assert_eq!(policy(given), Ok(Some(AccessPolicy::new(one))));
    }
    let named = json!({"policy": "restricted", "approvedUsers": ["b", "a", "b"], "allowedTeams": null});
    let expected = AccessPolicy {
        approved_users: vec!["b".to_owned(), "a".to_owned()],
        ..AccessPolicy::new(Policy::Restricted)
    };
    assert_eq!(policy(named), Ok(Some(expected)));
}

#[test]
fn what_is_no_policy() {
    let many: Vec<String> = (0..=MAX_POLICY_NAMES).map(|index| index.to_string()).collect();
    let rows = [
        (json!("private"), "accessPolicy"),
        (json!([]), "accessPolicy"),
        (json!({}), "accessPolicy.policy"),
        (json!({"policy": "secret"}), "accessPolicy.policy"),
        (json!({"policy": 1}), "accessPolicy.policy"),
        (json!({"policy": "shared", "allowedTeams": "red"}), "accessPolicy.allowedTeams"),
        (json!({"policy": "shared", "allowedTeams": [1]}), "accessPolicy.allowedTeams"),
        (json!({"policy": "restricted", "approvedUsers": [""]}), "accessPolicy.approvedUsers"),
        (json!({"policy": "restricted", "approvedUsers": ["a\tb"]}), "accessPolicy.approvedUsers"),
        (json!({"policy": "restricted", "approvedUsers": many}), "accessPolicy.approvedUsers"),
    ];
    for (given, field) in rows {
        assert_eq!(code(policy(given)), format!("INVALID_REQUEST {field}"));
    }
}

fn filter(given: Value) -> Result<Filter> {
    let body = json!({"filter": given});
    metadata_filter(Members::body(&body)?.object("filter", "filter.")?)
}

#[test]
fn a_filter_says_what_it_asks_for() {
    for given in [json!(null), json!({}), json!({"tags": []}), json!({"tags": null, "custom": {}})] {
        assert!(filter(given.clone()).unwrap().is_empty(), "{given}");
    }
    let said =
        json!({"tags": ["a", "b"], "sourceType": "IMPORT", "hasKnowledgePointer": false, "custom": {"k": 1}});
    let expected = Filter {
        tags: vec!["a".to_owned(), "b".to_owned()],
        source_type: Some("import"),
        has_knowledge_pointer: Some(false),
        custom: MemberConditions::new(said["custom"].as_object().unwrap().clone()).unwrap(),
        ..Filter::default()
    };
    assert_eq!(filter(said), Ok(expected));
}

#[test]
fn what_a_filter_does_not_know_it_refuses() {
    let rows = [
        (json!([]), "filter"),
        (json!("tags"), "filter"),
        (json!({"tag": ["a"]}), "filter.tag"),
        (json!({"unknown": null}), "filter.unknown"),
        (json!({"tags": "a"}), "filter.tags"),
        (json!({"tags": [1]}), "filter.tags"),
        (json!({"sourceType": "web"}), "filter.sourceType"),
        (json!({"sourceType": 1}), "filter.sourceType"),
        (json!({"hasKnowledgePointer": "true"}), "filter.hasKnowledgePointer"),
        (json!({"custom": []}), "filter.custom"),
        (json!({"custom": {"k": [1]}}), "filter.custom.k"),
        (json!({"custom": {"k": [1]}, "tags": 1}), "filter.tags"),
    ];
    for (given, field) in rows {
        assert_eq!(code(filter(given)), format!("INVALID_REQUEST {field}"));
    }
}
