//! What somebody may not see changes nothing of what they find: not whether, not in which order, not by how much.

use crate::openspec::*;
use crate::support::*;

const WORDS: [&str; 24] = [
    "heron",
    "walrus",
    "invoice",
    "deploy",
    "lisbon",
    "tram",
    "oauth",
    "token",
    "ledger",
    "quartz",
    "maple",
    "saddle",
    "comet",
    "ADR-042",
    "getUserName",
    "kernel",
    "harbour",
    "violin",
    "pepper",
    "glacier",
    "router",
    "sonnet",
    "copper",
    "lantern",
];

fn sentence(dice: &mut Dice) -> String {
    let length = 2 + dice.roll(9);
    (0..length).map(|_| *dice.pick(&WORDS)).collect::<Vec<_>>().join(" ")
}

/// Everything a search says but how often the results were found before.
fn told(answer: &Value) -> String {
    let mut answer = answer.clone();
    for result in answer["results"].as_array_mut().into_iter().flatten() {
        let id =
            result["memory"]["id"].as_str().or(result["entry"]["id"].as_str()).expect("an id").to_owned();
        let result = result.as_object_mut().expect("a result");
        result.retain(|name, _| name != "memory" && name != "entry");
        result.insert("id".to_owned(), id.into());
    }
    for passing in ["query_id", "execution_time_ms"] {
        let metadata = answer.as_object_mut().expect("an answer");
        metadata.remove(passing);
        metadata.get_mut("metadata").and_then(Value::as_object_mut).map(|metadata| metadata.remove(passing));
    }
    answer.to_string()
}

/// What the user finds with some questions, in every way there is to ask.
fn found(user: &Tenant, questions: &[String], layers: &Value, identifiers: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for question in questions {
        for ways in [
            json!({"explain": true}),
            json!({"explain": true, "threshold": 0, "limit": 100, "dedupe": false}),
            json!({"explain": true, "ranking": "score", "threshold": 0.3, "limit": 3}),
            json!({"mode": "semantic", "threshold": 0.2}),
        ] {
            let body =
                merged(json!({"query": question, "layers": layers, "identifiers": identifiers}), &ways);
            all.push(told(&user.search(body).expect(200).json));
        }
        for mode in ["keyword", "hybrid", "semantic"] {
            let layer = json!({"project_id": identifiers["projectId"], "team_id": identifiers["teamId"]});
            let body = json!({"query": question, "mode": mode, "layer": layer, "options": {"limit": 20}});
            all.push(told(&user.client.post(&format!("{KNOWLEDGE}/query"), body).expect(200).json));
        }
    }
    all
}

#[test]
fn what_others_hide_moves_no_score_and_no_order() {
    for seed in [0x1111_u64, 0x5eed, 0xdead_beef, 0xfeed_f00d] {
        let tenant = Tenant::fresh();
        let mut dice = Dice(seed);
        let places = [Place::project("p"), Place::team("t")];
        let identifiers = json!({"projectId": "p", "teamId": "t"});
        let user = tenant.as_user("u");
        for n in 0..30 {
            let place = dice.pick(&places).clone();
            let author = tenant.as_user(["u", "v", "w"][n % 3]);
            let policy = match n % 10 {
                // Some that are hidden from others, and not from u.
                3 => json!({"policy": "restricted", "approvedUsers": ["u"]}),
                6 => json!({"policy": "private"}),
                9 => json!({"policy": "shared", "allowedTeams": ["t"]}),
                _ => json!({"policy": "organization"}),
            };
            author.say_with(&place, json!({"content": sentence(&mut dice), "accessPolicy": policy}));
        }
        let questions: Vec<String> = (0..5).map(|_| sentence(&mut dice)).collect();
        let layers = json!(["project", "team"]);
        let before = found(&user, &questions, &layers, &identifiers);
        let mut ids = Vec::new();
        for n in 0..12 {
            // Words that are looked for, and others.
            let content = if n % 2 == 0 { questions[n % 5].clone() } else { sentence(&mut dice) };
            let policy = match n % 4 {
                0 => json!({"policy": "restricted", "approvedUsers": ["w"]}),
                1 => json!({"policy": "shared", "allowedTeams": ["others"]}),
                _ => json!({"policy": "private"}),
            };
            let other = tenant.as_user(["v", "w"][n % 2]);
            ids.push(other.say_with(dice.pick(&places), json!({"content": content, "accessPolicy": policy})));
            if n % 3 == 0 {
                assert_eq!(
                    found(&user, &questions, &layers, &identifiers),
                    before,
                    "seed {seed:x}, after {n}"
                );
            }
        }
        assert_eq!(found(&user, &questions, &layers, &identifiers), before, "seed {seed:x}");
        for (n, id) in ids.iter().enumerate() {
            let other = tenant.as_user(["v", "w"][n % 2]);
            if n % 2 == 0 {
                other.changed(id, json!({"content": sentence(&mut dice)}));
            } else {
                other.delete(id).expect(200);
            }
        }
        assert_eq!(found(&user, &questions, &layers, &identifiers), before, "seed {seed:x}, changed");
        // What is shown to u does: the test would see it.
        tenant.as_user("v").changed(&ids[0], json!({"accessPolicy": {"policy": "organization"}}));
        assert_ne!(found(&user, &questions, &layers, &identifiers), before, "seed {seed:x}, shown");
    }
}

#[test]
fn what_becomes_hidden_or_open_is_found_by_those_who_may_see_it() {
    let tenant = Tenant::fresh();
    let (u, v) = (tenant.as_user("u"), tenant.as_user("v"));
    let place = Place::project("p");
    let body = |policy: Value| json!({"accessPolicy": policy});
    let id = v.say(&place, "the quartz heron");
    let finds =
        |who: &Tenant| who.found_ids(place.everything(json!({"query": "quartz heron"}))).contains(&id);
    let both = |u_sees: bool, what: &str| {
        assert_eq!((finds(&u), finds(&v)), (u_sees, true), "{what}");
        let total = |who: &Tenant| who.page(place.with(json!({}))).total;
        assert_eq!((total(&u), total(&v)), (usize::from(u_sees), 1), "{what}");
    };
    both(true, "open");
    for round in 0..2 {
        v.changed(&id, body(json!({"policy": "private"})));
        both(false, "private");
        v.changed(&id, body(json!({"policy": "restricted", "approvedUsers": ["u"]})));
        both(true, "restricted to u");
        v.changed(&id, body(json!({"policy": "restricted", "approvedUsers": ["x"]})));
        both(false, "restricted to x");
        v.changed(&id, body(json!({"policy": "restricted"})));
        both(false, "restricted to nobody");
        v.changed(&id, body(json!({"policy": "shared"})));
        both(true, "shared with everybody");
        v.changed(&id, body(json!({"policy": "organization"})));
        both(true, if round == 0 { "open again" } else { "open once more" });
    }
    v.delete(&id).expect(200);
    assert!(!finds(&u) && !finds(&v));
}
