//! Whom there are memories about.

use crate::support::*;

fn told(mem0: &Mem0) -> Vec<(String, String, i64)> {
    let page = mem0.0.get("/v1/entities/").expect(200).json;
    let results = page["results"].as_array().unwrap();
    assert_eq!(page["count"], results.len());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    results
        .iter()
        .map(|one| (text(&one["type"]), text(&one["name"]), one["total_memories"].as_i64().unwrap()))
        .collect()
}

fn leave(mem0: &Mem0) {
    mem0.say("a", json!({"user_id": "u"}));
    mem0.say("b", json!({"user_id": "u", "agent_id": "helper"}));
    mem0.say("c", json!({"user_id": "v", "run_id": "r 1/2"}));
    mem0.say("d", json!({"agent_id": "helper"}));
    mem0.say("e", json!({"app_id": "shop"}));
}

fn one(kind: &str, name: &str, memories: i64) -> (String, String, i64) {
    (kind.to_owned(), name.to_owned(), memories)
}

#[test]
fn they_are_listed_with_the_number_of_their_memories_and_can_be_deleted() {
    let mem0 = Mem0::fresh();
    assert_eq!(told(&mem0), []);
    leave(&mem0);
    let all = [
        one("user", "u", 2),
        one("user", "v", 1),
        one("agent", "helper", 2),
        one("app", "shop", 1),
        one("run", "r 1/2", 1),
    ];
    assert_eq!(told(&mem0), all);
    let page = mem0.0.get("/v1/entities/?page=2&page_size=2").expect(200).json;
    assert_eq!((page["count"].as_i64(), page["results"][0]["name"].as_str()), (Some(5), Some("helper")));
    assert_eq!(page["next"], "/v1/entities/?page=3&page_size=2");

    mem0.0.delete("/v2/entities/agent/helper/").expect(200);
    assert_eq!(
        told(&mem0),
        [one("user", "u", 1), one("user", "v", 1), one("app", "shop", 1), one("run", "r 1/2", 1)]
    );
    mem0.0.delete("/v2/entities/run/r%201%2F2/").expect(200);
    mem0.0.delete("/v2/entities/user/u/").expect(200);
    assert_eq!(told(&mem0), [one("app", "shop", 1)]);
    mem0.0.delete("/v2/entities/user/u/").expect(200);
    mem0.0.delete("/v2/entities/robot/u/").refused(404, "about nothing else");
}

#[test]
fn a_reset_leaves_what_belongs_to_nobody_named_here() {
    let mem0 = Mem0::fresh();
    let other = Mem0::fresh();
    leave(&mem0);
    leave(&other);
    let team = json!({"layer": "team", "identifiers": {"teamId": "t"}, "content": "of the team"});
    let team =
        mem0.0.post("/v1/memories", team).expect(201).json["memory"]["id"].as_str().unwrap().to_owned();
    mem0.0.post_nothing("/reset").expect(200);
    assert_eq!(told(&mem0), []);
    assert_eq!(told(&other).len(), 5);
    assert_eq!(mem0.get(&team)["memory"], "of the team");
}

#[test]
fn ids_that_are_kept_with_memories_lead_to_them_too() {
    let mem0 = Mem0::fresh();
    mem0.say("of the run", json!({"user_id": "u", "run_id": "r", "agent_id": "ag1", "app_id": "shop"}));
    mem0.say("of the agent", json!({"agent_id": "ag1", "app_id": "shop"}));
    mem0.say("of another", json!({"user_id": "u", "run_id": "r", "agent_id": "ag2", "app_id": "shop"}));
    mem0.0.delete("/v2/entities/agent/ag1/").expect(200);
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["of another"]);
    assert_eq!(mem0.texts(json!({"agent_id": "ag1"})), Vec::<String>::new());
    mem0.0.delete("/v2/entities/app/shop/").expect(200);
    assert_eq!(mem0.texts(json!({"user_id": "u"})), Vec::<String>::new());
}

#[test]
fn all_that_are_told_of_can_be_deleted_one_after_the_other() {
    let mem0 = Mem0::fresh();
    leave(&mem0);
    mem0.say("f", json!({"user_id": "u", "agent_id": "only with u", "run_id": "s", "app_id": "kept"}));
    // Of names that could not be given here, but elsewhere.
    for (layer, identifiers) in [
        ("user", json!({"userId": "*"})),
        ("project", json!({"projectId": "*"})),
        ("project", json!({"projectId": "agent:*"})),
    ] {
        let body = json!({"layer": layer, "identifiers": identifiers, "content": "a star"});
        mem0.0.post("/v1/memories", body).expect(201);
    }
    let all = told(&mem0);
    assert_eq!(all.len(), 9, "{all:?}");
    for (kind, name, _) in all {
        let name = name.replace(' ', "%20").replace('/', "%2F");
        mem0.0.delete(&format!("/v2/entities/{kind}/{name}/")).expect(200);
    }
    assert_eq!(told(&mem0), []);
}

#[test]
fn ids_that_are_too_long_for_a_project_can_be_deleted_as_well() {
    let mem0 = Mem0::fresh();
    let long = "r".repeat(255);
    mem0.say("of the run", json!({"user_id": "u", "run_id": long}));
    mem0.say("of the agent", json!({"user_id": "u", "agent_id": long}));
    mem0.say("of the user", json!({"user_id": "u"}));
    assert_eq!(told(&mem0), [one("user", "u", 3), one("agent", &long, 1), one("run", &long, 1)]);
    mem0.0.delete(&format!("/v2/entities/run/{long}/")).expect(200);
    assert_eq!(told(&mem0), [one("user", "u", 2), one("agent", &long, 1)]);
    mem0.0.delete(&format!("/v1/memories/?agent_id={long}")).expect(200);
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["of the user"]);
    mem0.0.delete(&format!("/v2/entities/run/{long}r/")).refused(400, "run_id");
}

#[test]
fn a_user_is_told_of_its_own_and_of_projects_where_it_made_something() {
    let mem0 = Mem0::fresh();
    let [carol, dave, robot] =
        [("authorization", "Bearer carol"), ("authorization", "Bearer dave"), ("x-user-id", "erin")]
            .map(|(name, value)| Mem0(mem0.0.with_header(name, value)));
    for ids in [
        json!({"app_id": "merger"}),
        json!({"agent_id": "spy"}),
        json!({"run_id": "r-1"}),
        json!({"user_id": "bob"}),
    ] {
        mem0.say("not for all", ids);
    }
    mem0.say("of the shop", json!({"app_id": "shop"}));
    carol.say("of carol", json!({"user_id": "carol", "agent_id": "helper"}));
    carol.say("by carol", json!({"app_id": "shop"}));
    let secret = json!({
        "layer": "project", "identifiers": {"projectId": "shop"}, "content": "dave's own", "accessPolicy": {"policy": "private"},
    });
    dave.0.post("/v1/memories", secret).expect(201);
    robot.say("of erin", json!({"user_id": "erin"}));

    assert_eq!(told(&carol), [one("user", "carol", 1), one("agent", "helper", 1), one("app", "shop", 2)]);
    assert_eq!(told(&dave), [one("app", "shop", 3)]);
    assert_eq!(told(&robot), [one("user", "erin", 1)]);
    assert_eq!(told(&mem0).iter().filter(|(kind, ..)| kind != "user").count(), 5);

    let page = carol.0.get("/v1/entities/?page=3&page_size=1").expect(200).json;
    assert_eq!((page["count"].as_i64(), page["results"][0]["total_memories"].as_i64()), (Some(3), Some(2)));
    assert_eq!((&page["results"][0]["name"], &page["next"]), (&json!("shop"), &Value::Null));

    // What is not told of can be asked for by its name, and deleting what is told of leaves it.
    assert_eq!(carol.texts(json!({"app_id": "merger"})), ["not for all"]);
    for (kind, name, _) in told(&carol) {
        carol.0.delete(&format!("/v2/entities/{kind}/{name}/")).expect(200);
    }
    assert_eq!(told(&carol), []);
    assert_eq!(mem0.texts(json!({"app_id": "merger"})), ["not for all"]);
    assert_eq!(mem0.texts(json!({"user_id": "bob"})), ["not for all"]);
    assert_eq!(told(&dave), [one("app", "shop", 1)]);
}
