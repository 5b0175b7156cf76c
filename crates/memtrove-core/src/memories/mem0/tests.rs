use super::*;
use crate::Timestamp;
use crate::memories::requests::{client, gateway, user};
use crate::memories::testing::{members, memory};
use crate::memories::{Identifiers, Layer, Memory, MemoryCaller, ScopeKey, resolve};
use serde_json::{Map, json};

/// 2026-01-31T12:00:00Z
const NOON: Timestamp = Timestamp::from_micros(1_769_860_800_000_000);

fn filters(given: Value) -> Result<Filters> {
    Filters::read(Members::body(&json!({"filters": given}))?)
}

/// The ids of each place, by their members.
fn places(given: Value) -> Vec<Map<String, Value>> {
    let ids = |place: &Entities| {
        place.given().map(|(entity, id)| (entity.member().to_owned(), json!(id))).collect()
    };
    filters(given).unwrap().places.iter().map(ids).collect()
}

#[test]
fn every_way_through_a_tree_leads_to_a_place() {
    for (given, expected) in [
        (json!({"user_id": "u"}), json!([{"user_id": "u"}])),
        (
            json!({"AND": [{"user_id": "u"}, {"n": 1}, {"run_id": "r"}]}),
            json!([{"user_id": "u", "run_id": "r"}]),
        ),
        (json!({"OR": [{"user_id": "u"}, {"app_id": "p"}]}), json!([{"user_id": "u"}, {"app_id": "p"}])),
        (
            json!({"AND": [{"OR": [{"user_id": "u"}, {"user_id": "v"}]}, {"agent_id": {"in": ["a", "b"]}}, {"user_id": "u"}]}),
            json!([{"user_id": "u", "agent_id": "a"}, {"user_id": "u", "agent_id": "b"}]),
        ),
        (json!({"user_id": "u", "NOT": [{"run_id": "r"}]}), json!([{"user_id": "u"}])),
        (json!({"user_id": {"eq": "u", "ne": "v"}}), json!([{"user_id": "u"}])),
        (json!({"AND": [{"user_id": "u"}, {"user_id": "v"}]}), json!([])),
    ] {
        assert_eq!(json!(places(given.clone())), expected, "{given}");
    }
    for given in [json!({}), json!({"OR": [{"user_id": "u"}, {"n": 1}]}), json!({"user_id": {"ne": "u"}})] {
        assert!(filters(given.clone()).is_err(), "{given}");
    }
}

#[test]
fn too_many_ids_or_values_are_refused_before_they_are_compared() {
    let ids = |many: usize| (0..many).map(|number| json!(format!("u{number}"))).collect::<Vec<_>>();
    let message = |given: Value| filters(given).unwrap_err().to_string();
    assert_eq!(places(json!({"user_id": {"in": ids(32)}})).len(), 32);
    assert!(message(json!({"user_id": {"in": ids(33)}})).contains("more than 32 combinations"));
    let one_of = |many: usize| ids(many).into_iter().map(|id| json!({"user_id": id})).collect::<Vec<_>>();
    assert!(message(json!({"OR": one_of(33)})).contains("more than 32 combinations"));
    let product = json!({"user_id": {"in": ids(6)}, "agent_id": {"in": ids(6)}});
    assert!(message(product).contains("more than 32 combinations"));
    // The same id again is no other place.
    assert_eq!(places(json!({"user_id": {"in": vec![json!("u"); 100]}})).len(), 1);
    for list in ["in", "nin"] {
        assert!(filters(json!({"user_id": "u", "n": {list: ids(1000)}})).is_ok());
        assert!(message(json!({"user_id": "u", "n": {list: ids(1001)}})).contains("at most 1000 values"));
        let two = json!({"user_id": "u", "n": {list: ids(600)}, "m": {list: ids(600)}});
        assert!(message(two).contains("at most 1000 values"));
    }
    let categories = json!({"filters": {"user_id": "u"}, "categories": ids(1001)});
    assert!(Filters::read(Members::body(&categories).unwrap()).is_err());
}

#[test]
fn a_star_is_nobodys_id() {
    let mut ids = Entities::default();
    for entity in Entity::ALL {
        assert!(ids.set(entity, "*").unwrap_err().to_string().contains("must be one id"));
    }
    assert!(filters(json!({"user_id": {"in": ["*"]}})).is_err());
    assert!(filters(json!({"user_id": "u", "agent_id": "*"})).is_ok());
}

#[test]
fn where_the_place_says_it_all_no_entry_is_asked() {
    let asked = |given: Value| filters(given).unwrap().conditions(&gateway()).filter;
    for given in [
        json!({"user_id": "u"}),
        json!({"AND": [{"user_id": "u"}, {"run_id": "r"}]}),
        json!({"agent_id": "a"}),
    ] {
        assert!(asked(given.clone()).is_empty(), "{given}");
    }
    for given in [
        json!({"user_id": "u", "agent_id": "a"}),
        json!({"user_id": "u", "n": 1}),
        json!({"app_id": "p", "run_id": "r"}),
    ] {
        assert!(!asked(given.clone()).is_empty(), "{given}");
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
        let given = Entities::read(Members::body(&ids).unwrap()).unwrap();
        let Home { layer, identifiers, rest, .. } = given.home().unwrap();
        let tenant = crate::identity::Tenant::listed("t".into());
        let mut stored = memory(1, "a");
        stored.scope = crate::memories::resolve(&tenant, &identifiers, &[layer]).unwrap().remove(0);
        stored.metadata = members(json!({OWN: rest}));
        assert_eq!(Entities::of(&stored), given, "{ids}");
    }
}

fn ids(given: Value) -> Entities {
    Entities::read(Members::body(&given).unwrap()).unwrap()
}

fn scope(layer: Layer, given: Value) -> ScopeKey {
    let identifiers = Identifiers::read(Some(&given)).unwrap();
    resolve(client("robot").tenant(), &identifiers, &[layer]).unwrap().remove(0)
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
    let listed = filters(json!({"user_id": "u"})).unwrap();
    let admitted = |caller: &MemoryCaller| {
        let deleted = in_scope(&ids(json!({"user_id": "u"})), &run, caller).unwrap();
        all.each_ref().map(|one| [listed.conditions(caller).admits(one), deleted.admits(one)])
    };
    assert_eq!(admitted(&gateway()), [[true; 2]; 3]);
    assert_eq!(admitted(&bound), [[true; 2], [true; 2], [false; 2]]);
    // Who has no name may speak for nobody.
    let nameless = user("u").binding_agent(true);
    assert_eq!(admitted(&nameless), [[true; 2], [false; 2], [false; 2]]);
    assert!(filters(json!({"agent_id": "gateway"})).unwrap().conditions(&bound).filter.is_empty());
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
fn added(body: Value) -> Memory {
    let add = Add::read(&body, &gateway(), NOON).unwrap();
    let mut stored = memory(1, "a");
    stored.metadata = members(add.bodies[0]["metadata"].clone());
    stored
}

#[test]
fn metadata_change_sides_and_come_back() {
    let mut stored = added(
        json!({"messages": "a", "infer": false, "user_id": "u", "metadata": {"source": "chat", "n": 1}}),
    );
    let show = |memory: &Memory| Value::Object(all_metadata(memory));
    assert_eq!(show(&stored), json!({"source": "chat", "n": 1}));
    let mut change = |given: Value, expected: Value| {
        let body = json!({"metadata": given});
        let update = Update::read(Members::body(&body).unwrap(), NOON).unwrap().body(&stored);
        let change = crate::memories::GivenMetadata::read(Members::body(&update).unwrap()).unwrap();
        stored.metadata = change.merged_into(&stored.metadata);
        assert_eq!(show(&stored), expected, "{given}");
    };
    change(json!({"n": "two"}), json!({"source": "chat", "n": "two"}));
    change(json!({"source": {"type": "manual"}}), json!({"n": "two", "source": {"type": "manual"}}));
    change(json!({"source": ["list"], "_hidden": 1}), json!({"n": "two", "source": ["list"], "_hidden": 1}));
    change(json!({"source": null, "n": null}), json!({"_hidden": 1}));
}

#[test]
fn the_last_day_of_an_entry_is_absolute() {
    let body = json!({"messages": "a", "infer": false, "user_id": "u", "expiration_date": "2026-02-01"});
    let add = Add::read(&body, &gateway(), NOON).unwrap();
    assert_eq!(add.bodies[0]["ttlSeconds"], 36 * 3600);
    let stored = added(body);
    let later = NOON.saturating_add_micros(3600 * 1_000_000);
    let update = Update::read(Members::body(&json!({"text": "b"})).unwrap(), later).unwrap();
    assert_eq!(update.body(&stored), json!({"content": "b", "ttlSeconds": 35 * 3600}));
}
