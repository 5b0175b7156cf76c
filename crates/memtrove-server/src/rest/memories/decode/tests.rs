use super::*;
use crate::rest::testing::{code, memory, params, scope};
use memtrove_core::memories::Memory;

type Pairs = &'static [(&'static str, &'static str)];

fn asserted(pairs: &[(&str, &str)]) -> Result<Assertion> {
    assertion(&params(pairs))
}

#[test]
fn an_entry_of_another_scope_is_not_the_one_that_was_meant() {
    // Every identifier of these scopes is `x`.
    let entry = |layer| Memory { scope: scope(layer), ..memory(1, "x") };
    let rows: [(Pairs, Layer, bool); 11] = [
        (&[], Layer::Agent, true),
        (&[("layer", "User"), ("userId", "x")], Layer::User, true),
        (&[("layer", "project")], Layer::User, false),
        (&[("userId", "y")], Layer::User, false),
        (&[("userId", "X")], Layer::User, false),
        (&[("userId", "x"), ("agentId", "y")], Layer::Agent, false),
        (&[("agentId", "x")], Layer::Agent, true),
        (&[("userId", "x"), ("agentId", "y"), ("projectId", "z")], Layer::User, true),
        (&[("userId", "y"), ("projectId", "x")], Layer::Project, true),
        (&[("userId", "")], Layer::User, true),
        (&[("includeEmbedding", "true")], Layer::User, true),
    ];
    for (pairs, layer, holds) in rows {
        assert_eq!(asserted(pairs).unwrap().holds(&entry(layer)), holds, "{pairs:?} {layer:?}");
    }
}

#[test]
fn what_is_no_assertion() {
    assert_eq!(code(asserted(&[("layer", "planet")])), "INVALID_LAYER");
    assert_eq!(code(asserted(&[("layer", "")])), "INVALID_LAYER");
    assert_eq!(code(asserted(&[("userId", "a\0")])), "INVALID_REQUEST userId");
    assert_eq!(code(asserted(&[("userId", "a"), ("userId", "b")])), "INVALID_REQUEST userId");
}

#[test]
fn a_range_ends_no_earlier_than_it_begins() {
    let body = serde_json::json!({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T23:59:59.999999Z"});
    assert_eq!(code(range(Members::body(&body).unwrap())), "INVALID_REQUEST from");
}
