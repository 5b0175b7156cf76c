use super::*;
use crate::memories::requests::{code, params};
use crate::memories::testing::{memory, scope};

type Pairs = &'static [(&'static str, &'static str)];

fn assertion(pairs: &[(&str, &str)]) -> Result<Assertion> {
    Assertion::read(&params(pairs))
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
        assert_eq!(assertion(pairs).unwrap().holds(&entry(layer)), holds, "{pairs:?} {layer:?}");
    }
}

#[test]
fn what_is_no_assertion() {
    assert_eq!(code(assertion(&[("layer", "planet")])), "INVALID_LAYER");
    assert_eq!(code(assertion(&[("layer", "")])), "INVALID_LAYER");
    assert_eq!(code(assertion(&[("userId", "a\0")])), "INVALID_REQUEST userId");
    assert_eq!(code(assertion(&[("userId", "a"), ("userId", "b")])), "INVALID_REQUEST userId");
}
