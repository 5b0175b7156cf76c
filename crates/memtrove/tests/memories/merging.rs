//! Merging layers: the order is total, precedence comes first or score does, and the limit cuts what is left.

use crate::support::*;
use std::cmp::Ordering;

fn precedence(result: &Value) -> usize {
    LAYERS.iter().position(|(layer, _)| result["layer"] == *layer).expect("a layer")
}

fn descending(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

/// The score as far as it orders.
fn score(result: &Value) -> f64 {
    (number(&result["score"]) * 1e6).round()
}

/// What comes after layer and score: relevance, then the newer one, then the id.
fn last_resorts(a: &Value, b: &Value) -> Ordering {
    let (a, b) = (&a["memory"], &b["memory"]);
    descending(number(&a["relevance"]), number(&b["relevance"]))
        .then_with(|| text(&b["updatedAt"]).cmp(&text(&a["updatedAt"])))
        .then_with(|| id_of(a).cmp(&id_of(b)))
}

fn by_precedence(a: &Value, b: &Value) -> Ordering {
    let scores = descending(score(a), score(b));
    precedence(a).cmp(&precedence(b)).then(scores).then_with(|| last_resorts(a, b))
}

fn by_score(a: &Value, b: &Value) -> Ordering {
    let scores = descending(score(a), score(b));
    scores.then(precedence(a).cmp(&precedence(b))).then_with(|| last_resorts(a, b))
}

#[track_caller]
fn assert_ordered(results: &[Value], order: fn(&Value, &Value) -> Ordering) {
    for pair in results.windows(2) {
        assert_eq!(order(&pair[0], &pair[1]), Ordering::Less, "{} before {}", pair[0], pair[1]);
    }
}

/// Entries in every layer: some with equal texts and so with equal scores, some of less relevance.
fn crowd(tenant: &Tenant) {
    let mut dice = Dice(0x5EED_0003);
    let subjects = ["the deployment", "our database", "a walrus", "the invoice"];
    // One can need, like, lose and want several things: nothing contradicts anything.
    let verbs = ["needs", "likes", "has lost", "wants"];
    let objects = ["fresh fish", "port 5432", "the signature of Alice", "green tea"];
    let bodies = (0..160).map(|_| {
        let place = dice.pick(&tenant.every_layer()).clone();
        let content = format!("{} {} {}", dice.pick(&subjects), dice.pick(&verbs), dice.pick(&objects));
        let relevance = [1.0, 1.0, 0.5, 0.25][dice.roll(4)];
        let personal = ["agent", "user", "session"].contains(&place.layer);
        let kind = if personal && dice.roll(3) == 0 { "working" } else { "semantic" };
        place.with(json!({"content": content, "kind": kind, "metadata": {"relevance": relevance}}))
    });
    let bodies: Vec<Value> = bodies.collect();
    tenant.add_all(bodies);
}

#[test]
fn the_order_is_total_and_the_limit_cuts_it() {
    let tenant = Tenant::fresh();
    crowd(&tenant);
    let identifiers = tenant.all_identifiers();
    for query in ["who needs fish", "port of the database", "Alice"] {
        for (ranking, order) in
            [("precedence", by_precedence as fn(&Value, &Value) -> Ordering), ("score", by_score)]
        {
            for dedupe in [true, false] {
                let body = json!({
                    "query": query, "identifiers": identifiers, "threshold": 0, "limit": 100,
                    "ranking": ranking, "dedupe": dedupe,
                });
                let all = tenant.results(body.clone());
                assert_ordered(&all, order);
                let all: Vec<String> = all.iter().map(|result| id_of(&result["memory"])).collect();
                assert_eq!(tenant.found_ids(body.clone()), all, "the same question, the same answer");
                for limit in [1, 40, 99] {
                    let cut = tenant.found_ids(merged(body.clone(), &json!({"limit": limit})));
                    assert_eq!(cut, all[..limit.min(all.len())], "{query} {ranking} {dedupe} {limit}");
                }
            }
        }
    }
}

#[test]
fn counts_are_taken_before_anything_is_dropped() {
    let tenant = Tenant::fresh();
    crowd(&tenant);
    let total = |members: Value| {
        let body =
            json!({"query": "who needs fish", "identifiers": tenant.all_identifiers(), "threshold": 0});
        tenant.search(merged(body, &members)).expect(200).json["totalCount"].as_u64().unwrap()
    };
    assert_eq!(total(json!({})), 160);
    assert_eq!(total(json!({"limit": 1})), 160);
    assert_eq!(total(json!({"dedupe": false})), 160);
    let layers = LAYERS.iter().map(|(layer, _)| total(json!({"layers": [layer]}))).sum::<u64>();
    assert_eq!(layers, 160, "the layers add up");
    let some = total(json!({"threshold": 0.5}));
    assert_eq!(total(json!({"threshold": 0.5, "limit": 1})), some);
    assert_eq!(total(json!({"threshold": 0.5, "ranking": "score"})), some);
}

#[test]
fn a_stronger_layer_comes_first_unless_score_is_asked_for() {
    let tenant = Tenant::fresh();
    let places = tenant.every_layer();
    // The weaker the layer, the better the match.
    let contents = [
        "zebra",
        "we saw a zebra",
        "lunch was late",
        "lunch in Lisbon is late",
        "when lunch is served in Lisbon",
        "lunch is served in Lisbon",
        "lunch is served at noon in Lisbon",
    ];
    for (place, content) in places.iter().zip(contents) {
        tenant.added(place.with(json!({"content": content, "kind": "semantic"})));
    }
    let body = json!({"query": "lunch is served at noon in Lisbon", "identifiers": tenant.all_identifiers(), "threshold": 0, "dedupe": false});

    assert_eq!(tenant.found(body.clone()), contents);
    let scored = tenant.results(merged(body, &json!({"ranking": "score"})));
    assert_ordered(&scored, by_score);
    assert_eq!(scored[0]["memory"]["content"], contents[6]);
}

#[test]
fn equal_scores_are_ordered_by_relevance_then_by_change_then_by_id() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let say = |relevance: f64| {
        tenant.say_with(&place, json!({"content": "the same words", "metadata": {"relevance": relevance}}))
    };
    let (old, new, strong, changed) = (say(0.5), say(0.5), say(0.9), say(0.5));
    tenant.changed(&old, json!({"metadata": {"touched": true}}));

    let found = tenant.found_ids(place.everything(json!({"query": "the same words"})));

    assert_eq!(found, [strong, old, changed, new]);
}

#[test]
fn searching_some_layers_is_searching_them_all_and_leaving_out_the_rest() {
    let tenant = Tenant::fresh();
    crowd(&tenant);
    let all = json!({"query": "green tea", "identifiers": tenant.all_identifiers(), "threshold": 0, "limit": 100, "dedupe": false});
    for layers in [&["user", "team"][..], &["company"], &["agent", "session", "org"]] {
        let found = tenant.found_ids(merged(all.clone(), &json!({"layers": layers})));
        let mut expected = Vec::new();
        for layer in LAYERS.iter().filter(|(layer, _)| layers.contains(layer)) {
            expected.extend(tenant.found_ids(merged(all.clone(), &json!({"layers": [layer.0]}))));
        }
        expected.truncate(100);
        assert_eq!(found, expected, "{layers:?}");
    }
}
