//! What is deleted is gone, with everything it ever said.

use crate::support::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn a_deleted_memory_is_not_there_and_neither_is_its_history() {
    let server = server_with("");
    let mem0 = Mem0(server.anonymous().with_header("authorization", "Token key"));
    let (first, second) = ("zwieback morning", "knaeckebrot evening");
    let id = mem0.say(first, json!({"user_id": "u"}));
    mem0.put(&format!("/v1/memories/{id}/"), json!({"text": second})).expect(200);
    let holds = |text: &str| !server.stored().holding(text).is_empty();
    assert!(holds(first) && holds(second));

    let done = mem0.0.delete(&format!("/v1/memories/{id}/")).expect(200);
    assert_eq!(done.json, json!({"message": "Memory deleted successfully!"}));

    mem0.0.get(&format!("/v1/memories/{id}/")).refused(404, "there is no such memory");
    mem0.0.get(&format!("/v1/memories/{id}/history/")).refused(404, "there is no such memory");
    mem0.0.delete(&format!("/v1/memories/{id}/")).refused(404, "there is no such memory");
    assert_eq!(server.stored().bytes("SELECT text FROM memory_texts LIMIT 1"), None);
}

#[test]
fn what_a_memory_absorbed_goes_with_it_where_asked_for() {
    let mem0 = Mem0::fresh();
    let absorbed = |linked: &str| {
        let user = fresh_name("user");
        let ids = [0, 1].map(|_| mem0.say("the cat sleeps", json!({"user_id": user})));
        let body = json!({"layer": "user", "identifiers": {"userId": user}});
        let merged = mem0.0.post("/v1/memories:consolidate", body).expect(200).json;
        let survivor = merged["groups"][0]["survivorId"].as_str().expect("a survivor").to_owned();
        mem0.0.delete(&format!("/v1/memories/{survivor}/{linked}")).expect(200);
        let other = ids.into_iter().find(|id| *id != survivor).unwrap();
        mem0.0.get(&format!("/v1/memories/{other}/")).status
    };
    assert_eq!(absorbed(""), 200);
    assert_eq!(absorbed("?delete_linked=True"), 404);
}

#[test]
fn deleting_all_is_about_the_ids_that_are_named() {
    let mem0 = Mem0::fresh();
    let leave = || {
        mem0.say("user", json!({"user_id": "u"}));
        mem0.say("agent", json!({"user_id": "u", "agent_id": "a"}));
        mem0.say("run", json!({"user_id": "u", "run_id": "r"}));
        mem0.say("both", json!({"user_id": "u", "run_id": "r", "agent_id": "a"}));
        mem0.say("other", json!({"user_id": "v"}));
    };
    let left = || {
        let mut left = mem0.texts(json!({"OR": [{"user_id": "u"}, {"user_id": "v"}]}));
        left.sort();
        left
    };
    leave();
    mem0.0.delete("/v1/memories/?user_id=u&agent_id=a").expect(200);
    assert_eq!(left(), ["other", "run", "user"]);
    mem0.0.delete("/v1/memories/?user_id=u&run_id=r").expect(200);
    assert_eq!(left(), ["other", "user"]);
    leave();
    let done = mem0.0.delete("/v1/memories/?user_id=u").expect(200);
    assert_eq!(done.json, json!({"message": "Memories deleted successfully!"}));
    assert_eq!(left(), ["other", "other"]);

    mem0.0.delete("/v1/memories/").refused(400, "at least one of user_id");
    mem0.0.delete("/v1/memories/?user_id=").refused(400, "at least one of user_id");
    mem0.0.delete("/v1/memories/?user_id=*").refused(400, "must be one id");
    mem0.add(json!("a"), json!({"user_id": "*"})).refused(400, "must be one id");
    // The client would send a filter like this, and without it everything would go.
    mem0.0.delete("/v1/memories/?user_id=v&filters=%7B%7D").refused(400, "'filters' is not known here");
    assert_eq!(left(), ["other", "other"]);
}

#[test]
fn without_a_user_deleting_all_reaches_whatever_has_the_ids() {
    let mem0 = Mem0::fresh();
    let leave = || {
        mem0.say("agent", json!({"user_id": "u", "agent_id": "bot"}));
        mem0.say("run of agent", json!({"user_id": "v", "run_id": "r", "agent_id": "bot", "app_id": "shop"}));
        mem0.say("agent alone", json!({"agent_id": "bot"}));
        mem0.say("run", json!({"user_id": "u", "run_id": "r"}));
        mem0.say("run alone", json!({"run_id": "r", "app_id": "shop"}));
        mem0.say("other agent", json!({"user_id": "u", "agent_id": "poet"}));
    };
    let left = || {
        let everywhere = [
            json!({"user_id": "u"}),
            json!({"user_id": "v"}),
            json!({"agent_id": "bot"}),
            json!({"run_id": "r"}),
        ];
        let mut left = mem0.texts(json!({"OR": everywhere}));
        left.sort();
        left
    };
    let delete_all = |ids: &str, expected: &[&str]| {
        leave();
        mem0.0.delete(&format!("/v1/memories/?{ids}")).expect(200);
        assert_eq!(left(), expected, "{ids}");
        mem0.0.post_nothing("/reset").expect(200);
        assert_eq!(left(), Vec::<String>::new());
    };
    delete_all("agent_id=bot", &["other agent", "run", "run alone"]);
    delete_all("run_id=r", &["agent", "agent alone", "other agent"]);
    delete_all("app_id=shop", &["agent", "agent alone", "other agent", "run"]);
    delete_all("agent_id=bot&app_id=shop", &["agent", "agent alone", "other agent", "run", "run alone"]);
    delete_all("agent_id=bot&run_id=r", &["agent", "agent alone", "other agent", "run", "run alone"]);
}

#[test]
fn all_is_deleted_or_nothing_where_some_of_it_may_not_be() {
    let server = server_with("[memories.write_roles]\nproject = [\"admin\"]\n");
    let [admin, alice] = ["admin", "alice"]
        .map(|name| Mem0(server.anonymous().with_header("authorization", &format!("Bearer {name}"))));
    // Scopes come in no particular order, so that one of these would be before what may not be deleted.
    let own: Vec<String> = (0..8)
        .map(|run| {
            alice.say("mine", json!({"user_id": "alice", "run_id": format!("r-{run}"), "agent_id": "bot"}))
        })
        .collect();
    let mut law = admin.say("the law", json!({"agent_id": "bot"}));
    for path in ["/v1/memories/?agent_id=bot", "/v2/entities/agent/bot/"] {
        alice.0.delete(path).refused(403, "a role is required");
        assert_eq!(alice.texts(json!({"user_id": "alice"})).len(), own.len());
        assert_eq!(alice.get(&law)["memory"], "the law");
    }
    alice.0.delete("/v1/memories/?user_id=alice&agent_id=bot").expect(200);
    assert_eq!(alice.texts(json!({"user_id": "alice"})), Vec::<String>::new());

    // What may not be written has nothing of it: nothing is in the way.
    admin.0.delete(&format!("/v1/memories/{law}/")).expect(200);
    law = admin.say("the law of others", json!({"agent_id": "other"}));
    let mine = alice.say("mine", json!({"user_id": "alice", "agent_id": "bot"}));
    alice.0.delete("/v1/memories/?agent_id=bot").expect(200);
    alice.0.get(&format!("/v1/memories/{mine}/")).refused(404, "there is no such memory");
    assert_eq!(alice.get(&law)["memory"], "the law of others");
}

#[test]
fn what_is_in_working_memory_goes_too() {
    let mem0 = Mem0::fresh();
    let working = |session: &str| {
        let body = json!({
            "layer": "session", "kind": "working", "identifiers": {"userId": "u", "sessionId": session}, "content": "now",
        });
        mem0.0.post("/v1/memories", body).expect(201).json["memory"]["id"].as_str().unwrap().to_owned()
    };
    for path in ["/v1/memories/?user_id=u", "/v1/memories/?run_id=s", "/v2/entities/user/u/"] {
        let id = working("s");
        mem0.0.delete(path).expect(200);
        mem0.0.get(&format!("/v1/memories/{id}")).expect(404);
    }
    let id = working("s");
    mem0.0.post_nothing("/reset").expect(200);
    mem0.0.get(&format!("/v1/memories/{id}")).expect(404);
}

/// Says that it is over when it goes, also by a panic: those who wait for it would go on for ever.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_is_being_changed_is_deleted_too() {
    let mem0 = Mem0::fresh();
    for path in ["/v1/memories/?user_id=u", "/v2/entities/user/u/"] {
        let messages: Vec<Value> =
            (0..120).map(|number| json!({"role": "user", "content": format!("number {number}")})).collect();
        let added = mem0.add(json!(messages), json!({"user_id": "u"})).expect(200).json;
        let ids: Vec<String> = added["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        let over = AtomicBool::new(false);
        thread::scope(|threads| {
            let _ending = Ending(&over);
            for part in ids.chunks(30) {
                let (mem0, over) = (&mem0, &over);
                threads.spawn(move || {
                    for round in 0.. {
                        for id in part {
                            if over.load(Ordering::Relaxed) {
                                return;
                            }
                            let changed = mem0
                                .put(&format!("/v1/memories/{id}/"), json!({"metadata": {"round": round}}));
                            assert!([200, 404].contains(&changed.status), "{}", changed.describe());
                        }
                    }
                });
            }
            mem0.0.delete(path).expect(200);
            let left = mem0.texts(json!({"user_id": "u"}));
            assert_eq!(left, Vec::<String>::new(), "{path}");
        });
    }
}

#[test]
fn a_user_may_have_had_any_number_of_runs() {
    let mem0 = Mem0::fresh();
    let runs: Vec<usize> = (0..2_100).collect();
    for part in runs.chunks(500) {
        let memories: Vec<Value> = (part.iter())
            .map(|run| {
                let identifiers = json!({"userId": "u", "sessionId": format!("r-{run}")});
                json!({"layer": "session", "kind": "semantic", "identifiers": identifiers, "content": format!("run {run} went well")})
            })
            .collect();
        mem0.0.post("/v1/memories:bulkAdd", json!({"memories": memories})).expect(200);
    }
    let page = mem0.0.post("/v3/memories/?page=21", json!({"filters": {"user_id": "u"}})).expect(200).json;
    assert_eq!((page["count"].as_i64(), texts(&page).len(), &page["next"]), (Some(2_100), 100, &Value::Null));
    assert_eq!(mem0.found("run 7 went well", json!({"user_id": "u"}))[0], "run 7 went well");
    assert_eq!(mem0.found("run 2099 went well", json!({"user_id": "u"}))[0], "run 2099 went well");

    mem0.0.delete("/v1/memories/?user_id=u").expect(200);
    assert_eq!(mem0.texts(json!({"user_id": "u"})), Vec::<String>::new());
    mem0.say("a new beginning", json!({"user_id": "u"}));
    assert_eq!(mem0.found("beginning", json!({"user_id": "u"})), ["a new beginning"]);
}
