//! Trees of conditions.

use crate::support::*;

fn leave(mem0: &Mem0) {
    mem0.say("plain", json!({"user_id": "u"}));
    mem0.say("agent", json!({"user_id": "u", "agent_id": "a", "metadata": {"n": 1, "tags": ["x"]}}));
    mem0.say("run", json!({"user_id": "u", "run_id": "r", "metadata": {"n": 2, "word": "Hello"}}));
    mem0.say("run of agent", json!({"user_id": "u", "run_id": "r", "agent_id": "a", "app_id": "p"}));
    mem0.say("other user", json!({"user_id": "v", "metadata": {"n": 1}}));
    mem0.say("agent alone", json!({"agent_id": "a"}));
}

#[test]
fn a_tree_finds_what_it_says() {
    let mem0 = Mem0::fresh();
    leave(&mem0);
    let check = |filters: Value, expected: &[&str]| {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        let mut listed = mem0.texts(filters.clone());
        listed.sort();
        assert_eq!(listed, expected, "listed by {filters}");
        let body = json!({"query": "anything", "filters": filters, "threshold": 0, "top_k": 100});
        let mut found = texts(&mem0.0.post("/v3/memories/search/", body).expect(200).json);
        found.sort();
        assert_eq!(found, expected, "found by {filters}");
    };
    let all = ["plain", "agent", "run", "run of agent"];
    check(json!({"user_id": "u"}), &all);
    check(json!({"user_id": "u", "agent_id": "a"}), &["agent", "run of agent"]);
    check(json!({"user_id": "u", "run_id": "r"}), &["run", "run of agent"]);
    check(json!({"AND": [{"user_id": "u"}, {"run_id": "r"}, {"agent_id": "a"}]}), &["run of agent"]);
    check(json!({"AND": [{"user_id": "u"}, {"app_id": "p"}]}), &["run of agent"]);
    check(json!({"user_id": "u", "run_id": "*"}), &["run", "run of agent"]);
    check(json!({"user_id": "u", "run_id": null}), &["plain", "agent"]);
    check(json!({"AND": [{"user_id": "u"}, {"NOT": [{"agent_id": "a"}]}]}), &["plain", "run"]);
    check(json!({"AND": [{"user_id": "u"}, {"NOT": {"run_id": "r"}}]}), &["plain", "agent"]);
    check(
        json!({"OR": [{"user_id": "v"}, {"AND": [{"user_id": "u"}, {"n": {"gt": 1}}]}]}),
        &["other user", "run"],
    );
    check(json!({"user_id": {"in": ["u", "v"]}, "n": 1}), &["agent", "other user"]);
    check(json!({"user_id": ["v", "nobody"]}), &["other user"]);
    check(json!({"user_id": "u", "n": {"gte": 1, "lte": 1}}), &["agent"]);
    check(json!({"user_id": "u", "n": {"in": [2, 3]}}), &["run"]);
    check(json!({"user_id": "u", "n": {"nin": [1]}}), &["plain", "run", "run of agent"]);
    check(json!({"user_id": "u", "n": {"ne": 1}}), &["plain", "run", "run of agent"]);
    check(json!({"user_id": "u", "word": {"contains": "ell"}}), &["run"]);
    check(json!({"user_id": "u", "word": {"contains": "HELL"}}), &[]);
    check(json!({"user_id": "u", "word": {"icontains": "HELL"}}), &["run"]);
    check(json!({"user_id": "u", "categories": {"in": ["x", "y"]}}), &["agent"]);
    check(json!({"user_id": "u", "keywords": {"icontains": "OF AGENT"}}), &["run of agent"]);
    check(json!({"user_id": "u", "created_at": {"gt": "2020-01-01"}}), &all);
    check(json!({"user_id": "u", "created_at": {"lt": "2020-01-01T00:00:00"}}), &[]);
    check(json!({"agent_id": "a"}), &["agent alone"]);
    check(json!({"AND": [{"user_id": "u"}, {"user_id": "v"}]}), &[]);
}

#[test]
fn a_filter_that_could_mean_everybody_is_refused() {
    let mem0 = Mem0::fresh();
    for filters in [
        json!({}),
        json!({"n": 1}),
        json!({"user_id": "*"}),
        json!({"user_id": {"ne": "u"}}),
        json!({"NOT": [{"user_id": "u"}]}),
        json!({"OR": [{"user_id": "u"}, {"n": 1}]}),
        json!({"user_id": null}),
    ] {
        mem0.0.post("/v3/memories/", json!({"filters": filters})).refused(400, "at least one of user_id");
        let body = json!({"query": "q", "filters": filters});
        mem0.0.post("/v3/memories/search/", body).refused(400, "at least one of user_id");
    }
}

#[test]
fn what_a_filter_does_not_know_it_refuses() {
    let mem0 = Mem0::fresh();
    let many: Vec<Value> = (0..40).map(|number| json!(number.to_string())).collect();
    let mut deep = json!({"user_id": "u"});
    for _ in 0..40 {
        deep = json!({"AND": [deep]});
    }
    for (filters, problem) in [
        (json!({"user_id": {"like": "u"}}), "is no operator"),
        (json!({"user_id": {}}), "must name an operator"),
        (json!({"user_id": 7}), "must be a string"),
        (json!({"user_id": "u", "n": [1]}), "is a list"),
        (json!({"user_id": "u", "n": {"in": 1}}), "must be a list"),
        (json!({"AND": []}), "with something in it"),
        (json!({"AND": {"user_id": "u"}}), "must be a list of conditions"),
        (json!({"OR": ["u"]}), "must hold conditions"),
        (json!({"user_id": "u", "created_at": {"gt": "soon"}}), "must be a date"),
        (json!({"user_id": "u", "created_at": {"in": []}}), "is no operator on times"),
        (json!({"user_id": {"in": many}}), "more than 32 combinations"),
        (deep, "nested at most"),
        (json!({"app_id": "run:7"}), "must not begin with"),
    ] {
        mem0.0.post("/v3/memories/", json!({"filters": filters})).refused(400, problem);
    }
    for member in ["user", "only_mine", "org_id"] {
        let mut body = json!({"query": "q", "filters": {"user_id": "u"}});
        body[member] = json!("x");
        mem0.0.post("/v3/memories/search/", body).refused(400, "is not known here");
    }
}
