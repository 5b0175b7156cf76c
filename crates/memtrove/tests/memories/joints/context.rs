//! A context of files and memories.

use super::*;

#[track_caller]
fn assemble(tenant: &Tenant, user: &str, body: Value) -> Answer {
    tenant.client.post(&at(tenant, user, "/context:assemble"), body)
}

fn files() -> Value {
    json!([{"path": "profile.md"}])
}

#[test]
fn memories_that_are_searched_for_come_with_the_files() {
    let tenant = Tenant::fresh();
    put(&tenant, "dana", "profile.md", "*", "# Dana");
    let id = tenant.say(&Place::user("dana"), "Dana drinks her coffee black.");
    tenant.say(&Place::user("bob"), "Bob drinks his coffee black.");
    let project = tenant.say(&Place::project("p1"), "The coffee machine is on the second floor.");

    let context =
        assemble(&tenant, "dana", json!({"files": files(), "memories": {"query": "coffee"}})).expect(200);
    assert_members(&context.json, &["files", "dropped_files", "memories"]);
    let found = tenant.results(json!({"query": "coffee", "identifiers": {"userId": "dana"}}));
    let shown = |results: &[Value]| -> Vec<Value> {
        results
            .iter()
            .map(|result| merged(result.clone(), &json!({"memory": settled(&result["memory"])})))
            .collect()
    };
    assert_eq!(shown(&list(&context.json["memories"])), shown(&found));
    assert_eq!(context.json["memories"][0]["memory"]["id"], json!(id));

    let wanted = json!({"query": "coffee", "identifiers": {"projectId": "p1"}, "layers": ["project"], "limit": 1, "threshold": 0});
    let context = assemble(&tenant, "dana", json!({"files": files(), "memories": wanted})).expect(200);
    assert_eq!(context.json["memories"][0]["memory"]["id"], json!(project));
    let context = assemble(&tenant, "dana", json!({"files": files(), "memories": null})).expect(200);
    assert_members(&context.json, &["files", "dropped_files"]);
}

#[test]
fn memories_get_what_the_files_leave() {
    let tenant = Tenant::fresh();
    put(&tenant, "dana", "profile.md", "*", &"words ".repeat(100));
    let long = tenant.say(&Place::user("dana"), &format!("coffee {}", "and more coffee ".repeat(50)));
    let short = tenant.say(&Place::user("dana"), "coffee");
    let wanted = json!({"query": "coffee", "threshold": 0, "dedupe": false});
    let ask = |max_chars_total: usize| {
        let body = json!({"files": files(), "memories": wanted, "max_chars_total": max_chars_total});
        assemble(&tenant, "dana", body).expect(200).json
    };
    let all = ask(100_000);
    let size = |value: &Value| value.to_string().chars().count();
    let file = size(&all["files"][0]["document"]);
    let result = |id: &str| list(&all["memories"]).into_iter().find(|one| one["memory"]["id"] == id).unwrap();
    let (long_size, short_size) = (size(&result(&long)), size(&result(&short)));
    let ids = |context: &Value| sorted(list(&context["memories"]).iter().map(|one| id_of(&one["memory"])));

    // Counting uses may change how long a result is; a few characters decide nothing here.
    assert_eq!(ids(&all), sorted([long.clone(), short.clone()]));
    assert_eq!(ids(&ask(file + long_size + short_size + 200)), sorted([long, short.clone()]));
    assert_eq!(ids(&ask(file + short_size + 100)), [short], "a smaller one may still fit");
    assert_eq!(ids(&ask(file)), Vec::<String>::new());
    let nothing = ask(10);
    assert_eq!(nothing["dropped_files"][0]["reason"], "max_chars_total");
}

#[test]
fn a_bad_search_or_a_strange_user_is_refused() {
    let tenant = Tenant::fresh();
    let refused = |caller: &Tenant, memories: Value| {
        let answer = assemble(caller, "dana", json!({"files": files(), "memories": memories}));
        (answer.status, answer.json["error"]["code"].clone())
    };
    for bad in
        [json!([]), json!({}), json!({"query": " "}), json!({"query": "x", "limit": 0}), json!("coffee")]
    {
        assert_eq!(refused(&tenant, bad), (400, json!("INVALID_REQUEST")));
    }
    let foreign = json!({"query": "x", "identifiers": {"userId": "bob"}});
    assert_eq!(refused(&tenant.as_user("dana"), foreign), (403, json!("FORBIDDEN")));
    let company = json!({"query": "x", "identifiers": {"companyId": "another"}});
    assert_eq!(refused(&tenant, company), (403, json!("FORBIDDEN")));
}
