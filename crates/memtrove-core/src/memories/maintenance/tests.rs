use super::*;
use crate::memories::requests::{code, user, with};
use serde_json::json;

fn decay(body: Value, caller: &str) -> Result<Decay> {
    DecayRequest::read(&body, &Rules::default())?.check(&Rules::default(), &user(caller))
}

fn consolidate(members: Value) -> Result<Consolidation> {
    let body = with(json!({"layer": "user", "identifiers": {"userId": "alice"}}), members);
    ConsolidateRequest::read(&body, &Rules::default())?.check(&Rules::default(), &user("alice"))
}

#[test]
fn a_pass_over_the_whole_tenant_is_for_admins() {
    let whole = decay(json!({}), "root").unwrap();
    assert_eq!((whole.scopes, whole.layers.as_slice()), (None, &Layer::ALL[..]));
    assert_eq!((whole.as_of, whole.dry_run, whole.rules), (None, false, DecayRules::default()));
    let some = decay(json!({"layers": ["user"], "identifiers": {}}), "root").unwrap();
    assert_eq!((some.scopes, some.layers), (None, vec![Layer::User]));
    for body in [json!({}), json!({"identifiers": {}}), json!({"layers": ["user"]})] {
        assert_eq!(code(decay(body, "alice")), "FORBIDDEN");
    }
}

#[test]
fn a_pass_over_some_scopes_says_what_it_changes() {
    let body = json!({
        "asOf": "2031-01-01T00:00:00Z", "layers": ["user"], "identifiers": {"userId": "alice", "projectId": "p"},
        "dryRun": true, "ratePerDay": 0.05, "archiveThreshold": 0.2, "decayedBelow": 1, "exemptLayers": [],
    });
    let pass = decay(body, "alice").unwrap();
    assert_eq!(pass.scopes.map(|scopes| scopes.len()), Some(1));
    assert_eq!((pass.as_of, pass.dry_run), (Timestamp::parse("2031-01-01T00:00:00Z"), true));
    let rules = DecayRules {
        enabled: false,
        rate_per_day: 0.05,
        archive_threshold: 0.2,
        decayed_below: 1.0,
        exempt_layers: Vec::new(),
    };
    assert_eq!(pass.rules, rules);
    let accessible = decay(json!({"identifiers": {"userId": "alice", "projectId": "p"}}), "alice").unwrap();
    assert_eq!(accessible.layers, [Layer::User, Layer::Project]);
}

#[test]
fn what_is_no_decay_pass() {
    let rows = [
        (json!({"asOf": 5}), "INVALID_REQUEST asOf"),
        (json!({"dryRun": "yes"}), "INVALID_REQUEST dryRun"),
        (json!({"ratePerDay": 1.5}), "INVALID_REQUEST ratePerDay"),
        (json!({"archiveThreshold": -1}), "INVALID_REQUEST archiveThreshold"),
        (json!({"decayedBelow": "0.5"}), "INVALID_REQUEST decayedBelow"),
        (json!({"exemptLayers": "org"}), "INVALID_REQUEST exemptLayers"),
        (json!({"exemptLayers": ["x"]}), "INVALID_LAYER"),
        (json!({"layers": []}), "INVALID_REQUEST layers"),
        (json!({"layers": ["x"]}), "INVALID_LAYER"),
        (json!({"layers": ["team"], "identifiers": {"userId": "root"}}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"sessionId": "s"}}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"companyId": "other"}}), "FORBIDDEN"),
    ];
    for (body, expected) in rows {
        assert_eq!(code(decay(body, "root")), expected);
    }
}

#[test]
fn a_consolidation_is_for_one_scope() {
    let usual = consolidate(json!({})).unwrap();
    assert_eq!((usual.scope.layer(), usual.similarity_threshold, usual.dry_run), (Layer::User, 0.95, false));
    let told = consolidate(json!({"similarityThreshold": 0.5, "dryRun": true})).unwrap();
    assert_eq!((told.similarity_threshold, told.dry_run), (0.5, true));
    let rows = [
        (json!({"similarityThreshold": 1.1}), "INVALID_REQUEST similarityThreshold"),
        (json!({"dryRun": 1}), "INVALID_REQUEST dryRun"),
        (json!({"layer": "x"}), "INVALID_LAYER"),
        (json!({"identifiers": {}}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob"}}), "FORBIDDEN"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(consolidate(members)), expected);
    }
}
