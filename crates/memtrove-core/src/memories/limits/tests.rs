use super::*;
use crate::memories::requests::{code, refusal};
use serde_json::json;

#[test]
fn a_layer_that_is_missing_unknown_or_switched_off_is_refused() {
    let rules = Rules { enabled_layers: vec![Layer::User, Layer::Project], ..Rules::default() };
    assert_eq!(rules.layer(Some(&json!("PROJECT"))), Ok(Layer::Project));
    assert_eq!(code(rules.layer(None)), "INVALID_LAYER");
    for given in [json!("team"), json!("nobody"), json!(""), json!(5), json!(true)] {
        let refusal = refusal(rules.layer(Some(&given)));
        assert_eq!((refusal.code, &refusal.details["layer"]), (Code::InvalidLayer, &given));
    }
    for given in [json!(["user"]), json!({}), json!("x".repeat(1000))] {
        assert_eq!(refusal(rules.layer(Some(&given))).details["layer"], Value::Null);
    }
}

#[test]
fn layers_come_once_each_and_strongest_first() {
    let given = [json!("company"), json!("user"), json!("User"), json!("agent")];
    assert_eq!(Rules::default().layers(&given), Ok(vec![Layer::Agent, Layer::User, Layer::Company]));
    assert_eq!(code(Rules::default().layers(&[json!("user"), json!("planet")])), "INVALID_LAYER");
}

#[test]
fn only_working_and_session_entries_expire_unless_told_to() {
    let rules = Rules { session_ttl_seconds: 60, ..Rules::default() };
    for kind in Kind::ALL {
        let expected = match kind {
            Kind::Working => Some(3_600),
            Kind::Session => Some(60),
            _ => None,
        };
        assert_eq!(rules.default_ttl(kind), expected, "{kind:?}");
        assert_eq!(rules.default_ttl(kind).is_some(), kind.expires());
    }
}
