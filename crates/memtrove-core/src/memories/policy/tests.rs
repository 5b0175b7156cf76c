use super::*;
use crate::memories::limits::MAX_POLICY_NAMES;
use crate::memories::requests::code;
use serde_json::{Value, json};

fn read(policy: Value) -> Result<Option<AccessPolicy>> {
    let body = json!({"accessPolicy": policy});
    AccessPolicy::read(Members::body(&body)?)
}

#[test]
fn a_policy_is_a_word_with_the_names_it_may_need() {
    assert_eq!(read(json!(null)), Ok(None));
    for policy in Policy::ALL {
        let given = json!({"policy": policy.as_str().to_uppercase()});
        assert_eq!(read(given), Ok(Some(AccessPolicy::new(policy))));
    }
    let named = json!({"policy": "restricted", "approvedUsers": ["b", "a", "b"], "allowedTeams": null});
    let expected = AccessPolicy {
        approved_users: vec!["b".to_owned(), "a".to_owned()],
        ..AccessPolicy::new(Policy::Restricted)
    };
    assert_eq!(read(named), Ok(Some(expected)));
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
    for (policy, field) in rows {
        assert_eq!(code(read(policy)), format!("INVALID_REQUEST {field}"));
    }
}
