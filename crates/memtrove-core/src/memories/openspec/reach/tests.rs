use super::*;
use crate::memories::State;
use crate::memories::openspec::tests::identifiers;
use crate::memories::requests::{client, code, gateway, user};
use crate::memories::testing::{memory, scope};
use serde_json::{Value, json};

fn reach(layer: Value, caller: &MemoryCaller) -> Result<Reach> {
    reach_under(&Rules::default(), layer, caller)
}

fn reach_under(rules: &Rules, layer: Value, caller: &MemoryCaller) -> Result<Reach> {
    let words = layer["types"].as_array().into_iter().flatten();
    let types = words.filter_map(Value::as_str).filter_map(Type::parse).collect();
    Reach::new(types, identifiers(&layer), rules, caller)
}

fn layers(reach: &Reach) -> Vec<&'static str> {
    reach.scopes.iter().map(|scope| scope.layer().as_str()).collect()
}

fn of(layer: Layer, kind: Kind) -> Memory {
    Memory { scope: scope(layer), kind, ..memory(1, "text") }
}

#[test]
fn the_user_is_the_authenticated_one_and_the_company_only_where_nothing_narrower_is_named() {
    for (layer, expected) in [
        (Value::Null, vec!["user", "company"]),
        (json!({}), vec!["user", "company"]),
        (json!({"user_id": "alice"}), vec!["user"]),
        (json!({"project_id": "p"}), vec!["user", "project"]),
        (json!({"types": ["organization"]}), vec!["company"]),
        (json!({"types": ["organization"], "team_id": "t"}), vec!["team", "company"]),
        (json!({"types": ["semantic"], "agent_id": "a"}), vec!["agent", "user"]),
        (json!({"types": ["Session"], "session_id": "s", "project_id": "p"}), vec!["session"]),
        (json!({"types": ["working"], "session_id": "s", "project_id": "p"}), vec!["user", "session"]),
    ] {
        assert_eq!(layers(&reach(layer.clone(), &user("alice")).unwrap()), expected, "{layer}");
    }
    assert_eq!(layers(&reach(Value::Null, &gateway()).unwrap()), ["company"]);
}

#[test]
fn what_a_type_needs_must_be_named_and_allowed() {
    let refused = |layer: Value, caller: &MemoryCaller| code(reach(layer, caller));
    assert_eq!(refused(json!({"types": ["session"]}), &user("alice")), "MISSING_IDENTIFIER");
    assert_eq!(refused(json!({"types": ["user"]}), &gateway()), "MISSING_IDENTIFIER");
    assert_eq!(
        refused(json!({"types": ["working"], "project_id": "p"}), &client("app")),
        "MISSING_IDENTIFIER"
    );
    assert_eq!(refused(json!({"user_id": "bob"}), &user("alice")), "FORBIDDEN");
    assert_eq!(refused(json!({"company_id": "other"}), &user("alice")), "FORBIDDEN");
    let rules = Rules { enabled_layers: vec![Layer::User], ..Rules::default() };
    let wanted = json!({"types": ["session"], "session_id": "s"});
    let disabled = reach_under(&rules, wanted, &user("alice"));
    assert_eq!(code(disabled), "INVALID_LAYER");
}

#[test]
fn the_types_it_tells_are_those_asked_for_or_those_within_reach() {
    let words = |layer: Value| {
        let reach = reach(layer, &user("alice")).unwrap();
        reach.types().into_iter().map(Type::as_str).collect::<Vec<_>>()
    };
    assert_eq!(words(json!({"types": ["user", "archival"]})), ["user", "archival"]);
    assert_eq!(
        words(json!({"user_id": "alice"})),
        ["working", "episodic", "semantic", "procedural", "user"],
        "nobody asked for what is archived"
    );
    let everything = words(json!({"session_id": "s", "project_id": "p"}));
    assert_eq!(
        everything,
        ["working", "session", "episodic", "semantic", "procedural", "user", "organization"]
    );
}

#[test]
fn a_query_finds_exactly_what_its_types_cover() {
    let sets = [
        json!(["working"]),
        json!(["semantic", "episodic"]),
        json!(["user"]),
        json!(["session", "semantic"]),
        json!(["user", "working", "archival"]),
        json!(["organization", "session"]),
    ];
    for types in sets {
        let wanted = reach(
            json!({"types": types, "agent_id": "a", "session_id": "s", "project_id": "p"}),
            &user("alice"),
        )
        .unwrap();
        let conditions = wanted.conditions(Filter::default());
        for layer in wanted.scopes.iter().map(ScopeKey::layer) {
            for kind in Kind::ALL.into_iter().filter(|kind| kind.layers().contains(&layer)) {
                let covered = wanted.types.iter().any(|of| of.covers(layer, kind));
                assert_eq!(conditions.admits(&of(layer, kind)), covered, "{types}: {layer:?} {kind:?}");
            }
        }
    }
}

#[test]
fn one_type_needs_no_look_at_the_entries() {
    for of in Type::ALL {
        let layer = json!({"types": [of.as_str()], "agent_id": "a", "session_id": "s", "project_id": "p"});
        let conditions = reach(layer, &user("alice")).unwrap().conditions(Filter::default());
        assert!(conditions.filter.is_empty(), "{of:?}");
    }
}

#[test]
fn whoever_follows_a_type_is_told_when_its_entries_are_archived() {
    let users = reach(json!({"types": ["user"]}), &user("alice")).unwrap();
    let live = of(Layer::User, Kind::UserPersonal);
    let archived = Memory {
        kind: Kind::Archival,
        origin_kind: Some(Kind::UserPersonal),
        state: State::Archived,
        ..live.clone()
    };
    assert!(users.covers(&live) && users.covers(&archived));
    assert!(!users.covers(&of(Layer::User, Kind::Working)));
    let everything = reach(Value::Null, &user("alice")).unwrap();
    assert!(everything.covers(&archived));
}
