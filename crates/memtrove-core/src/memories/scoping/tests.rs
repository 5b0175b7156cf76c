use super::*;
use crate::memories::requests::{client, code, gateway, refusal, user};
use crate::memories::testing::identifiers;
use serde_json::json;

#[test]
fn what_is_missing_is_said_before_what_is_forbidden() {
    let bob = identifiers(json!({"userId": "bob"}));
    let layers = [Layer::Agent, Layer::User];
    assert_eq!(code(user("alice").scopes(&bob, &layers)), "MISSING_IDENTIFIER");
    assert_eq!(code(user("alice").scope(&bob, Layer::User)), "FORBIDDEN");
    assert_eq!(code(client("robot").scope(&bob, Layer::User)), "FORBIDDEN");
    let scope = gateway().scope(&bob, Layer::User).unwrap();
    assert_eq!((scope.layer(), scope.user(), scope.tenant().as_str()), (Layer::User, Some("bob"), "acme"));
}

#[test]
fn scopes_come_in_the_order_of_their_layers() {
    let given = identifiers(json!({"userId": "bob", "projectId": "p", "agentId": "a"}));
    let rules = Rules::default();
    let scopes = gateway().scopes(&given, &rules.accessible(&given).unwrap()).unwrap();
    let layers: Vec<Layer> = scopes.iter().map(ScopeKey::layer).collect();
    assert_eq!(layers, [Layer::Agent, Layer::User, Layer::Project]);
    let some = Rules { enabled_layers: vec![Layer::Project, Layer::Company], ..rules };
    assert_eq!(some.accessible(&given), Ok(vec![Layer::Project]));
}

#[test]
fn layers_come_once_each_and_strongest_first() {
    let rules = Rules { enabled_layers: vec![Layer::Agent, Layer::User, Layer::Company], ..Rules::default() };
    let named = vec![Layer::Company, Layer::User, Layer::User, Layer::Agent];
    assert_eq!(rules.in_order(named), Ok(vec![Layer::Agent, Layer::User, Layer::Company]));
    assert_eq!(code(rules.in_order(vec![Layer::User, Layer::Team])), "INVALID_LAYER");
}

#[test]
fn identifiers_that_open_nothing_are_told_of_all_seven() {
    for given in [json!({}), json!({"sessionId": "s"}), json!({"agentId": "a"})] {
        let refusal = refusal(Rules::default().accessible(&identifiers(given)));
        assert_eq!(refusal.code, Code::MissingIdentifier);
        let seven = json!(["agentId", "userId", "sessionId", "projectId", "teamId", "orgId", "companyId"]);
        assert_eq!(refusal.details["missing"], seven);
    }
}

#[test]
fn a_layer_that_may_only_be_read_is_not_written() {
    let given = identifiers(json!({"projectId": "p", "teamId": "t"}));
    let caller = || user("alice").writing_in(vec![Layer::Team]);
    assert!(caller().writable_scope(&given, Layer::Team).is_ok());
    assert!(caller().scope(&given, Layer::Project).is_ok());
    assert_eq!(code(caller().writable_scope(&given, Layer::Project)), "FORBIDDEN");
}
