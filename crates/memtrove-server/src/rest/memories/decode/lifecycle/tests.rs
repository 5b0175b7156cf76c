use super::*;
use crate::rest::testing::{client, code, memory, refusal, user, with};
use memtrove_core::Timestamp;
use memtrove_core::memories::{
    Clear, Code, Consolidation, Decay, DecayRules, Kind, Layer, Memory, ScopeKey, SessionEnd, SessionRules,
    State,
};
use serde_json::{Map, json};

fn end(members: Value) -> Result<SessionEnd> {
    let body = with(json!({"identifiers": {"userId": "alice", "sessionId": "s"}}), members);
    end_session(&body)?.check(&Rules::default(), &user("alice"))
}

fn cleared(members: Value) -> Result<Clear> {
    let body = with(json!({"layer": "user", "identifiers": {"userId": "alice"}}), members);
    clear(&body, &Rules::default())?.check(&Rules::default(), &user("alice"))
}

#[test]
fn a_session_ends_as_configured_unless_told_otherwise() {
    let usual = end(json!({})).unwrap();
    assert_eq!((usual.scope.layer(), usual.scope.values().len()), (Layer::Session, 2));
    assert_eq!((usual.rules, usual.as_of), (SessionRules::default(), None));
    let told = end(json!({
        "autoDelete": true, "retentionPeriod": "0s", "promoteImportant": false, "promotionThreshold": 0, "asOf": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    let rules = SessionRules {
        auto_delete: true,
        retention_seconds: 0,
        promote_important: false,
        promotion_threshold: 0.0,
    };
    assert_eq!(told.rules, rules);
    assert_eq!(told.as_of, Timestamp::parse("2026-01-01T00:00:00Z"));
}

#[test]
fn what_ends_no_session() {
    let rows = [
        (json!({"autoDelete": "yes"}), "INVALID_REQUEST autoDelete"),
        (json!({"retentionPeriod": "P7D"}), "INVALID_REQUEST retentionPeriod"),
        (json!({"retentionPeriod": 7}), "INVALID_REQUEST retentionPeriod"),
        (json!({"promoteImportant": 1}), "INVALID_REQUEST promoteImportant"),
        (json!({"promotionThreshold": 1.5}), "INVALID_REQUEST promotionThreshold"),
        (json!({"asOf": "now"}), "INVALID_REQUEST asOf"),
        (json!({"identifiers": {"userId": "alice"}}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob", "sessionId": "s"}}), "FORBIDDEN"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(end(members)), expected);
    }
    let without = Rules { enabled_layers: vec![Layer::User], ..Rules::default() };
    let body = json!({"identifiers": {"userId": "alice", "sessionId": "s"}});
    assert_eq!(code(end_session(&body).unwrap().check(&without, &user("alice"))), "INVALID_LAYER");
}

#[test]
fn durations_are_a_number_and_a_unit() {
    for (text, seconds) in
        [("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800), ("007d", 604_800)]
    {
        assert_eq!(duration_seconds(text), Some(seconds), "{text}");
    }
    for text in [
        "",
        "s",
        "7",
        "7D",
        "-1s",
        "+1s",
        "1.5h",
        " 1s",
        "1s ",
        "1w",
        "1m30s",
        "٣s",
        "1é",
        "99999999999999999999s",
        "9999999999999d",
    ] {
        assert_eq!(duration_seconds(text), None, "{text}");
    }
}

#[test]
fn clearing_is_for_working_entries_unless_told_otherwise() {
    assert_eq!(cleared(json!({})).unwrap().kinds, [Kind::Working]);
    assert_eq!(
        cleared(json!({"kinds": ["semantic", "working", "Semantic"]})).unwrap().kinds,
        [Kind::Working, Kind::Semantic]
    );
    let rows = [
        (json!({"kinds": []}), "INVALID_REQUEST kinds"),
        (json!({"kinds": "working"}), "INVALID_REQUEST kinds"),
        (json!({"kinds": ["all"]}), "INVALID_KIND"),
        (json!({"layer": null}), "INVALID_LAYER"),
        (json!({"identifiers": null}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob"}}), "FORBIDDEN"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(cleared(members)), expected);
    }
    let project = json!({"layer": "project", "identifiers": {"projectId": "p"}});
    let reader = client("robot").writing_in(Vec::new());
    assert_eq!(
        code(clear(&project, &Rules::default()).unwrap().check(&Rules::default(), &reader)),
        "FORBIDDEN"
    );
}

/// What becomes of a user-layer entry of alice.
fn promoted(body: Value, if_match: Option<&str>, entry: &Memory) -> Result<ScopeKey> {
    let precondition = Precondition::if_match(if_match);
    promote(&body, precondition, &Rules::default())?.target(entry, &user("alice"))
}

fn marked(key: &str, mark: bool) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), mark.into())])
}

fn entry() -> Memory {
    memory(1, "x")
}

#[test]
fn a_promotion_completes_its_identifiers_by_the_entrys() {
    let to_agent =
        promoted(json!({"targetLayer": "agent", "identifiers": {"agentId": "a"}}), None, &entry()).unwrap();
    assert_eq!(
        (to_agent.layer(), to_agent.values()),
        (Layer::Agent, &["a".to_owned(), "alice".to_owned()][..])
    );
    let to_team =
        promoted(json!({"targetLayer": "TEAM", "identifiers": {"teamId": "t"}}), Some("\"v1\""), &entry());
    assert_eq!(to_team.unwrap().values(), ["t"]);
}

#[test]
fn what_is_not_promoted() {
    let team = json!({"targetLayer": "team", "identifiers": {"teamId": "t"}});
    assert_eq!(code(promoted(json!({"targetLayer": "user"}), None, &entry())), "INVALID_REQUEST targetLayer");
    assert_eq!(code(promoted(json!({}), None, &entry())), "INVALID_LAYER");
    assert_eq!(code(promoted(json!({"targetLayer": "team"}), None, &entry())), "MISSING_IDENTIFIER");
    let foreign = json!({"targetLayer": "company", "identifiers": {"companyId": "other"}});
    assert_eq!(code(promoted(foreign, None, &entry())), "FORBIDDEN");
    assert_eq!(code(promoted(team.clone(), Some("\"v2\""), &entry())), "ETAG_MISMATCH");

    for key in ["sensitive", "private"] {
        let sensitive = Memory { metadata: marked(key, true), ..entry() };
        let refusal = refusal(promoted(team.clone(), None, &sensitive));
        assert_eq!((refusal.code, &refusal.details["reason"]), (Code::Forbidden, &json!("sensitive")));
        let open = Memory { metadata: marked(key, false), ..entry() };
        assert!(promoted(team.clone(), None, &open).is_ok());
    }
    let archived = Memory { kind: Kind::Archival, state: State::Archived, ..entry() };
    let refusal = refusal(promoted(team, None, &archived));
    assert_eq!((refusal.code, &refusal.details["state"]), (Code::InvalidState, &json!("archived")));
}

fn decayed(body: Value, caller: &str) -> Result<Decay> {
    decay(&body, &Rules::default())?.check(&Rules::default(), &user(caller))
}

fn consolidated(members: Value) -> Result<Consolidation> {
    let body = with(json!({"layer": "user", "identifiers": {"userId": "alice"}}), members);
    consolidate(&body, &Rules::default())?.check(&Rules::default(), &user("alice"))
}

#[test]
fn a_pass_over_the_whole_tenant_is_for_admins() {
    let whole = decayed(json!({}), "root").unwrap();
    assert_eq!((whole.scopes, whole.layers.as_slice()), (None, &Layer::ALL[..]));
    assert_eq!((whole.as_of, whole.dry_run, whole.rules), (None, false, DecayRules::default()));
    let some = decayed(json!({"layers": ["user"], "identifiers": {}}), "root").unwrap();
    assert_eq!((some.scopes, some.layers), (None, vec![Layer::User]));
    for body in [json!({}), json!({"identifiers": {}}), json!({"layers": ["user"]})] {
        assert_eq!(code(decayed(body, "alice")), "FORBIDDEN");
    }
}

#[test]
fn a_pass_over_some_scopes_says_what_it_changes() {
    let body = json!({
        "asOf": "2031-01-01T00:00:00Z", "layers": ["user"], "identifiers": {"userId": "alice", "projectId": "p"},
        "dryRun": true, "ratePerDay": 0.05, "archiveThreshold": 0.2, "decayedBelow": 1, "exemptLayers": [],
    });
    let pass = decayed(body, "alice").unwrap();
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
    let accessible = decayed(json!({"identifiers": {"userId": "alice", "projectId": "p"}}), "alice").unwrap();
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
        assert_eq!(code(decayed(body, "root")), expected);
    }
}

#[test]
fn a_consolidation_is_for_one_scope() {
    let usual = consolidated(json!({})).unwrap();
    assert_eq!((usual.scope.layer(), usual.similarity_threshold, usual.dry_run), (Layer::User, 0.95, false));
    let told = consolidated(json!({"similarityThreshold": 0.5, "dryRun": true})).unwrap();
    assert_eq!((told.similarity_threshold, told.dry_run), (0.5, true));
    let rows = [
        (json!({"similarityThreshold": 1.1}), "INVALID_REQUEST similarityThreshold"),
        (json!({"dryRun": 1}), "INVALID_REQUEST dryRun"),
        (json!({"layer": "x"}), "INVALID_LAYER"),
        (json!({"identifiers": {}}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob"}}), "FORBIDDEN"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(consolidated(members)), expected);
    }
}
