use super::*;
use crate::Timestamp;
use crate::memories::requests::{client, gateway, user};
use crate::memories::testing::{identifiers, members, memory};
use crate::memories::{Change, Layer, Memory, MemoryCaller, ScopeKey, resolve};
use serde_json::{Value, json};

/// 2026-01-31T12:00:00Z
const NOON: Timestamp = Timestamp::from_micros(1_769_860_800_000_000);

#[test]
fn a_star_is_nobodys_id() {
    let mut ids = Entities::default();
    for entity in Entity::ALL {
        assert!(ids.set(entity, "*").unwrap_err().to_string().contains("must be one id"));
    }
}

#[test]
fn ids_lead_to_a_scope_and_back() {
    for ids in [
        json!({"user_id": "u"}),
        json!({"user_id": "u", "agent_id": "a", "app_id": "p"}),
        json!({"user_id": "u", "agent_id": "a", "app_id": "p", "run_id": "r"}),
        json!({"run_id": "r", "agent_id": "a"}),
        json!({"agent_id": "a", "app_id": "p"}),
        json!({"app_id": "p"}),
    ] {
        let given = self::ids(ids.clone());
        let Home { layer, identifiers, rest, .. } = given.home().unwrap();
        let tenant = crate::identity::Tenant::listed("t".into());
        let mut stored = memory(1, "a");
        stored.scope = crate::memories::resolve(&tenant, &identifiers, &[layer]).unwrap().remove(0);
        stored.metadata = members(json!({OWN: rest}));
        assert_eq!(Entities::of(&stored), given, "{ids}");
    }
}

fn ids(given: Value) -> Entities {
    let mut ids = Entities::default();
    for entity in Entity::ALL {
        ids.set(entity, given[entity.member()].as_str().unwrap_or_default()).unwrap();
    }
    ids
}

/// Filters that ask for one id.
fn filters(entity: Entity, id: &str) -> Filters {
    Filters::new(Test::On(Field::Entity(entity), Mem0Operator::Eq(json!(id)))).unwrap()
}

fn scope(layer: Layer, given: Value) -> ScopeKey {
    resolve(client("robot").tenant(), &identifiers(given), &[layer]).unwrap().remove(0)
}

#[test]
fn ids_are_kept_only_where_entries_with_them_live() {
    let user = scope(Layer::User, json!({"userId": "u"}));
    let agent = scope(Layer::Agent, json!({"userId": "u", "agentId": "a"}));
    let run = scope(Layer::Session, json!({"userId": "u", "sessionId": "r"}));
    let app = scope(Layer::Project, json!({"projectId": "p"}));
    let team = scope(Layer::Team, json!({"teamId": "t"}));
    let kept =
        |entity| [&user, &agent, &run, &app, &team].map(|scope| Entities::may_be_kept_in(entity, scope));
    assert_eq!(kept(Entity::User), [false; 5]);
    assert_eq!(kept(Entity::Run), [false; 5]);
    assert_eq!(kept(Entity::Agent), [false, false, true, false, false]);
    assert_eq!(kept(Entity::App), [true, true, true, false, false]);

    let (everything, kept, nothing) = (Some(true), Some(false), None);
    let of_scope = |given: Value, scope: &ScopeKey| {
        in_scope(&ids(given), scope, &gateway()).map(|conditions| conditions.filter.is_empty())
    };
    assert_eq!(of_scope(json!({}), &app), everything);
    assert_eq!(of_scope(json!({}), &team), nothing);
    assert_eq!(of_scope(json!({"user_id": "u"}), &run), everything);
    assert_eq!(of_scope(json!({"user_id": "v"}), &run), nothing);
    assert_eq!(of_scope(json!({"agent_id": "a"}), &agent), everything);
    assert_eq!(of_scope(json!({"agent_id": "a"}), &run), kept);
    assert_eq!(of_scope(json!({"agent_id": "a"}), &user), nothing);
    assert_eq!(of_scope(json!({"agent_id": "a", "app_id": "p"}), &agent), kept);
    assert_eq!(of_scope(json!({"agent_id": "b", "app_id": "p"}), &agent), nothing);
    assert_eq!(of_scope(json!({"app_id": "p"}), &app), everything);
}

#[test]
fn a_bound_agent_speaks_for_itself_in_whatever_shape_it_is_named() {
    let (robot, trusted) = (client("robot").binding_agent(true), gateway().binding_agent(true));
    let agents = [
        scope(Layer::Agent, json!({"userId": "u", "agentId": "gateway"})),
        scope(Layer::Project, json!({"projectId": "agent:gateway"})),
    ];
    for agent in &agents {
        assert!(may_look_into(&trusted, agent) && !may_look_into(&robot, agent), "{agent:?}");
    }
    for given in [
        json!({"agent_id": "gateway"}),
        json!({"user_id": "u", "agent_id": "gateway"}),
        json!({"user_id": "u", "agent_id": "gateway", "run_id": "r"}),
    ] {
        assert!(ids(given.clone()).authorise(&trusted).is_ok(), "{given}");
        assert!(ids(given.clone()).authorise(&robot).is_err(), "{given}");
        assert!(ids(given.clone()).authorise(&client("robot")).is_ok(), "{given}");
    }
}

#[test]
fn a_bound_agent_is_shown_no_entries_that_are_kept_for_others() {
    let bound = gateway().binding_agent(true);
    let run = scope(Layer::Session, json!({"userId": "u", "sessionId": "r"}));
    let entry = |kept: Value| {
        let mut stored = memory(1, "a");
        stored.scope = run.clone();
        stored.metadata = members(json!({OWN: kept}));
        stored
    };
    let all = [json!({}), json!({"agent_id": "gateway"}), json!({"agent_id": "robot"})].map(entry);
    let listed = filters(Entity::User, "u");
    let admitted = |caller: &MemoryCaller| {
        let deleted = in_scope(&ids(json!({"user_id": "u"})), &run, caller).unwrap();
        all.each_ref().map(|one| [listed.conditions(caller).admits(one), deleted.admits(one)])
    };
    assert_eq!(admitted(&gateway()), [[true; 2]; 3]);
    assert_eq!(admitted(&bound), [[true; 2], [true; 2], [false; 2]]);
    // A caller without a name may speak for no agent.
    let nameless = user("u").binding_agent(true);
    assert_eq!(admitted(&nameless), [[true; 2], [false; 2], [false; 2]]);
    assert!(filters(Entity::Agent, "gateway").conditions(&bound).filter.is_empty());
}

#[test]
fn a_run_may_have_an_id_that_is_too_long_for_a_project() {
    let (long, too_long) = ("r".repeat(255), "r".repeat(256));
    for entity in [Entity::Agent, Entity::Run] {
        assert_eq!(Entities::listed(entity, &long).possible_home().unwrap(), None);
        assert!(Entities::listed(entity, "r").possible_home().unwrap().is_some());
        assert!(Entities::listed(entity, &too_long).possible_home().is_err());
    }
    assert!(Entities::listed(Entity::App, &long).possible_home().unwrap().is_some());
}

/// An entry with the metadata that an add makes.
fn added(metadata: Value, last_day: Option<&str>) -> Memory {
    let home = ids(json!({"user_id": "u"})).home().unwrap();
    let said = Utterance { text: "a", role: Some("user"), expires: last_day, ..Utterance::default() };
    let add = said.add(&home, &SplitMetadata::new(members(metadata))).unwrap();
    Memory { metadata: add.metadata.as_map().clone(), ..memory(1, "a") }
}

#[test]
fn metadata_change_sides_and_come_back() {
    let mut stored = added(json!({"source": "chat", "n": 1}), None);
    assert_eq!(Value::Object(all_metadata(&stored)), json!({"source": "chat", "n": 1}));
    let mut change = |given: Value, expected: Value| {
        let metadata = Some(SplitMetadata::new(members(given.clone())));
        let update = Update { text: None, metadata, last_day: None, now: NOON };
        stored.metadata = update.change(&stored).unwrap().metadata.unwrap().merged_into(&stored.metadata);
        assert_eq!(Value::Object(all_metadata(&stored)), expected, "{given}");
    };
    change(json!({"n": "two"}), json!({"source": "chat", "n": "two"}));
    change(json!({"source": {"type": "manual"}}), json!({"n": "two", "source": {"type": "manual"}}));
    change(json!({"source": ["list"], "_hidden": 1}), json!({"n": "two", "source": ["list"], "_hidden": 1}));
    change(json!({"source": null, "n": null}), json!({"_hidden": 1}));
}

#[test]
fn the_last_day_of_an_entry_is_absolute() {
    let tomorrow = date("2026-02-01").unwrap();
    assert_eq!(seconds_left(tomorrow, NOON), 36 * 3600);
    let stored = added(json!({}), Some("2026-02-01"));
    let now = NOON.saturating_add_micros(3600 * 1_000_000);
    let update = Update { text: Some("b".to_owned()), metadata: None, last_day: None, now };
    let expected = Change { content: Some("b".to_owned()), ttl: Some(Some(35 * 3600)), ..Change::default() };
    assert_eq!(update.change(&stored).unwrap(), expected);
}
