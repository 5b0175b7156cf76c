//! The order of results where scores do not decide: it is total, and a limit cuts it and nothing else.

use crate::support::*;

#[test]
fn among_equals_the_more_relevant_and_the_later_come_first() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let ids = tenant.add_all((0..120).map(|n| {
        let relevance = if n == 5 || n == 70 { 0.75 } else { 0.5 };
        place.with(json!({"content": "the heron waits", "metadata": {"relevance": relevance}}))
    }));
    tenant.changed(&ids[33], json!({"metadata": {"touched": true}}));
    tenant.changed(&ids[5], json!({"metadata": {"touched": true}}));
    for query in ["the heron waits", "a bird", "zeppelin"] {
        for ranking in ["precedence", "score"] {
            let body = place.everything(json!({"query": query, "limit": 3, "ranking": ranking}));
            let found = tenant.found_ids(body);
            assert_eq!(found, [5, 70, 33].map(|n| ids[n].clone()), "{query} by {ranking}");
        }
    }
}

#[test]
fn a_limit_cuts_the_order_and_changes_nothing_else() {
    let tenant = Tenant::fresh();
    let (user, project) = (Place::user("u"), Place::project("p"));
    let words = ["heron", "stork", "crane", "egret"];
    let mut dice = Dice(0xbead);
    let bodies: Vec<Value> = (0..90)
        .map(|n| {
            let content = format!("the {} and the {}", dice.pick(&words), dice.pick(&words));
            let metadata = json!({"relevance": dice.roll(3) as f64 / 4.0});
            let place = if n % 3 == 0 { &project } else { &user };
            place.with(json!({"content": content, "metadata": metadata}))
        })
        .collect();
    tenant.add_all(bodies);
    let identifiers = json!({"userId": "u", "projectId": "p"});
    for members in [
        json!({"dedupe": false}),
        json!({"dedupe": false, "ranking": "score"}),
        json!({"dedupe": true}),
        json!({"dedupe": true, "ranking": "score"}),
        json!({"dedupe": false, "mode": "semantic"}),
    ] {
        let body = |limit: usize| {
            let body = json!({"query": "a heron beside a crane", "identifiers": identifiers, "threshold": 0, "limit": limit});
            merged(body, &members)
        };
        let whole = tenant.found_ids(body(100));
        for limit in [1, 2, 7, 20, 61] {
            let expected = &whole[..limit.min(whole.len())];
            assert_eq!(tenant.found_ids(body(limit)), expected, "{members} limit {limit}");
        }
    }
}
