use super::*;
use crate::rest::testing::{client, code, refusal, user, with};
use memtrove_core::memories::{Code, Kind, Layer, MemoryCaller, ScopeKey, Search};
use serde_json::json;

fn body(members: Value) -> Value {
    with(json!({"query": "tea", "identifiers": {"userId": "alice", "projectId": "p"}}), members)
}

fn checked(body: &Value, caller: &MemoryCaller) -> Result<Search> {
    let rules = Rules::default();
    search(body, &rules)?.check(&rules, caller)
}

fn read(members: Value) -> Result<Search> {
    checked(&body(members), &user("alice"))
}

fn layers(search: &Search) -> Vec<Layer> {
    search.scopes.iter().map(ScopeKey::layer).collect()
}

#[test]
fn the_smallest_search_has_the_contracts_defaults() {
    let smallest = read(json!({})).unwrap();
    assert_eq!((smallest.query.as_str(), smallest.limit, smallest.threshold), ("tea", 10, 0.7));
    assert_eq!(layers(&smallest), [Layer::User, Layer::Project]);
    assert_eq!(smallest.conditions, Conditions::default());
    assert_eq!((smallest.ranking, smallest.mode, smallest.dedupe), (Ranking::Precedence, Mode::Hybrid, true));
    let request = search(&body(json!({})), &Rules::default()).unwrap();
    assert_eq!(request, SearchMemories::new(request.identifiers.clone(), "tea".to_owned()));
    assert_eq!(smallest.viewer.user.as_deref(), Some("alice"));
}

#[test]
fn everything_can_be_said() {
    let said = body(json!({
        "layers": ["project", "user", "PROJECT"], "limit": 100, "threshold": 0, "filter": {"tags": ["a"]},
        "kinds": ["semantic", "archival"], "timeRange": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
        "includeArchived": true, "includeEmbedding": true, "includeOverridden": true, "dedupe": false,
        "ranking": "Score", "mode": "SEMANTIC", "explain": true,
    }));
    let request = search(&said, &Rules::default()).unwrap();
    assert!(request.include_embedding && request.explain);
    let search = checked(&said, &user("alice")).unwrap();
    assert_eq!(layers(&search), [Layer::User, Layer::Project]);
    assert_eq!((search.limit, search.threshold), (100, 0.0));
    assert_eq!(search.conditions.kinds, Some(vec![Kind::Semantic, Kind::Archival]));
    assert!(search.conditions.include_archived && search.conditions.from == search.conditions.to);
    assert!(search.conditions.from.is_some() && !search.conditions.filter.is_empty());
    assert!(search.include_overridden && !search.dedupe);
    assert_eq!((search.ranking, search.mode), (Ranking::Score, Mode::Semantic));
}

#[test]
fn types_and_ranges() {
    let rows = [
        (json!({"query": null}), "query"),
        (json!({"query": " "}), "query"),
        (json!({"query": 5}), "query"),
        (json!({"query": "a\0"}), "query"),
        (json!({"layers": []}), "layers"),
        (json!({"layers": "user"}), "layers"),
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 101}), "limit"),
        (json!({"limit": "10"}), "limit"),
        (json!({"limit": 1.0}), "limit"),
        (json!({"threshold": -0.1}), "threshold"),
        (json!({"threshold": 1.1}), "threshold"),
        (json!({"threshold": "0.5"}), "threshold"),
        (json!({"filter": {"unknown": 1}}), "filter.unknown"),
        (json!({"kinds": []}), "kinds"),
        (json!({"kinds": "semantic"}), "kinds"),
        (json!({"timeRange": "today"}), "timeRange"),
        (json!({"timeRange": {"from": "today"}}), "timeRange.from"),
        (
            json!({"timeRange": {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}}),
            "timeRange.from",
        ),
        (json!({"includeArchived": "no"}), "includeArchived"),
        (json!({"includeEmbedding": 1}), "includeEmbedding"),
        (json!({"includeOverridden": 0}), "includeOverridden"),
        (json!({"dedupe": "x"}), "dedupe"),
        (json!({"ranking": "best"}), "ranking"),
        (json!({"mode": "keyword"}), "mode"),
        (json!({"explain": []}), "explain"),
        (json!({"identifiers": 5}), "identifiers"),
    ];
    for (members, field) in rows {
        assert_eq!(code(read(members)), format!("INVALID_REQUEST {field}"));
    }
}

#[test]
fn explicit_layers_need_their_identifiers_and_others_are_left_out() {
    let refused = refusal(read(json!({"layers": ["user", "session", "team"]})));
    assert_eq!(refused.code, Code::MissingIdentifier);
    assert_eq!(refused.details["layers"], json!({"session": ["sessionId"], "team": ["teamId"]}));
    let nothing = refusal(read(json!({"identifiers": {"sessionId": "s"}})));
    assert_eq!(nothing.details["missing"].as_array().map(Vec::len), Some(7));
    assert_eq!(code(read(json!({"identifiers": null}))), "MISSING_IDENTIFIER");
}

#[test]
fn one_bad_request_has_one_code() {
    let bad = json!({
        "query": "x".repeat(8193), "limit": 0, "layers": ["planet"], "kinds": ["none"], "identifiers": {"userId": "bob"},
    });
    let rows = [
        (json!({}), "INVALID_REQUEST limit"),
        (json!({"limit": 1}), "INVALID_LAYER"),
        (json!({"layers": ["session"]}), "INVALID_KIND"),
        (json!({"kinds": null}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob", "sessionId": "s"}}), "FORBIDDEN"),
        (json!({"identifiers": {"userId": "alice", "sessionId": "s"}}), "QUERY_TOO_LONG"),
    ];
    let mut request = bad;
    for (mended, expected) in rows {
        request = with(request, mended);
        assert_eq!(code(checked(&request, &user("alice"))), expected);
    }
    let fitting = with(request, json!({"query": "é".repeat(8192)}));
    assert!(checked(&fitting, &user("alice")).is_ok());
}

#[test]
fn who_searches_where() {
    let plain = |caller| checked(&body(json!({})), &caller);
    assert_eq!(code(plain(user("bob"))), "FORBIDDEN");
    assert_eq!(code(plain(client("robot"))), "FORBIDDEN");
    assert_eq!(plain(client("gateway")).unwrap().viewer.user.as_deref(), Some("alice"));
    let shared = body(json!({"identifiers": {"projectId": "p", "teamId": "t"}}));
    let search = checked(&shared, &client("robot")).unwrap();
    assert_eq!((search.viewer.user, search.viewer.team.as_deref()), (None, Some("t")));
}
