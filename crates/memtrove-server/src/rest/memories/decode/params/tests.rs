use super::*;
use crate::rest::testing::{code, params};
use serde_json::json;

#[test]
fn parameters_stand_for_the_members_of_a_body() {
    let given = params(&[("limit", "5"), ("on", "true"), ("off", "yes"), ("state", "5"), ("other", "x")]);
    let members =
        Params::new(&given).unwrap().members(&["state", "cursor"], &["limit", "on", "off"]).unwrap();
    assert_eq!(Value::Object(members), json!({"state": "5", "limit": 5, "on": true, "off": "yes"}));
}

#[test]
fn only_a_number_or_a_truth_value_is_read_as_one() {
    for text in ["", " 5", "5 ", "0x5", "+5", "TRUE", "null", "[]", "\"5\"", "NaN"] {
        assert_eq!(scalar(text), json!(text));
    }
    assert_eq!((scalar("5"), scalar("0.5"), scalar("false")), (json!(5), json!(0.5), json!(false)));
}

#[test]
fn a_filter_is_said_by_three_parameters() {
    let given =
        params(&[("tag", "a"), ("sourceType", "manual"), ("tag", "b"), ("hasKnowledgePointer", "true")]);
    let filter = Params::new(&given).unwrap().filter().unwrap();
    assert_eq!(
        Value::Object(filter),
        json!({"sourceType": "manual", "hasKnowledgePointer": true, "tags": ["a", "b"]})
    );
}

#[test]
fn what_is_empty_names_nobody_and_what_is_given_twice_is_refused() {
    let given = params(&[("userId", ""), ("teamId", "t"), ("limit", "1"), ("limit", "2"), ("flag", "1")]);
    let read = Params::new(&given).unwrap();
    let identifiers = read.identifiers().unwrap();
    assert_eq!((identifiers.get(Identifier::User), identifiers.get(Identifier::Team)), (None, Some("t")));
    assert_eq!(code(read.members(&[], &["limit"])), "INVALID_REQUEST limit");
    assert_eq!(code(read.flag("flag")), "INVALID_REQUEST flag");
    assert_eq!((read.flag("missing"), read.one("missing")), (Ok(false), Ok(None)));
    assert_eq!(code(Params::new(&params(&[("tag", "a\0")]))), "INVALID_REQUEST tag");
    let control = params(&[("userId", "a\n")]);
    assert_eq!(code(Params::new(&control).unwrap().identifiers()), "INVALID_REQUEST userId");
}
