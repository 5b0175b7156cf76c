//! Duplicates: dropped from results where a stronger or better one says the same, kept where they say something else.

use crate::support::*;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn sentences_that_sound_alike_and_say_different_things_are_both_kept() {
    let pairs = [
        ("The timeout of the gateway is 30 seconds", "The timeout of the gateway is 60 seconds"),
        ("Always use MySQL for the new services", "Never use MySQL for the new services"),
        ("You may deploy on Fridays", "You may not deploy on Fridays"),
        ("Alice reports to Bob", "Bob reports to Alice"),
        ("Version 1.2 of the library works", "Version 1.3 of the library works"),
        ("The service can restart itself", "The service can't restart itself"),
        ("Deploy with a review", "Deploy without a review"),
    ];
    for (one, two) in pairs {
        for (first, second) in [(Place::user("u"), Place::user("u")), (Place::user("u"), Place::project("p"))]
        {
            let tenant = Tenant::fresh();
            tenant.added(first.with(json!({"content": one})));
            tenant.added(second.with(json!({"content": two})));
            let identifiers = json!({"userId": "u", "projectId": "p"});
            let found = tenant.found(json!({"query": one, "identifiers": identifiers, "threshold": 0}));
            assert_eq!(sorted(found), sorted([one.to_owned(), two.to_owned()]));
        }
    }
}

#[test]
fn one_text_in_other_dress_is_a_duplicate() {
    let pairs = [
        ("Use PostgreSQL for new services", "use postgresql  for new\tservices"),
        ("Use PostgreSQL for new services", "Use PostgreSQL for new services."),
        ("Use PostgreSQL for new services!?", "  USE POSTGRESQL FOR NEW SERVICES;:"),
        ("Ärger mit der Straße", "ärger mit der straße..."),
        ("???", "???"),
    ];
    for (one, two) in pairs {
        let tenant = Tenant::fresh();
        tenant.added(Place::user("u").with(json!({"content": one})));
        tenant.added(Place::project("p").with(json!({"content": two})));
        let body = json!({"query": one, "identifiers": {"userId": "u", "projectId": "p"}, "threshold": 0});
        let answer = tenant.search(body.clone()).expect(200);
        assert_eq!(answer.json["totalCount"], 2, "counted before duplicates are dropped");
        let kept = list(&answer.json["results"]);
        assert_eq!(kept.len(), 1, "{one:?} {two:?}");
        assert_eq!(kept[0]["layer"], "user", "the more specific layer survives");
        assert_eq!(tenant.found(merged(body.clone(), &json!({"ranking": "score"}))), [one], "also by score");
        assert_eq!(tenant.found(merged(body, &json!({"dedupe": false}))).len(), 2);
    }
}

#[test]
fn texts_of_nothing_but_punctuation_are_compared_to_the_letter() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for content in ["?", "...", "...", "!"] {
        tenant.say(&place, content);
    }
    let found = tenant.found(place.everything(json!({"query": "?", "dedupe": true})));
    assert_eq!(sorted(found), ["!", "...", "?"]);
}

#[test]
fn twenty_duplicates_do_not_hide_what_is_distinct() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let colours =
        ["red", "green", "blue", "amber", "violet", "black", "white", "brown", "pink", "grey", "teal"];
    tenant.add_all((0..20).map(|_| place.with(json!({"content": "the walrus wears a hat"}))));
    let distinct =
        colours.map(|colour| format!("the walrus wears a {colour} hat and ticket {}", colour.len() * 100));
    tenant.add_all(distinct.iter().map(|content| place.with(json!({"content": content}))));
    tenant.add_all((0..20).map(|_| Place::project("p").with(json!({"content": "The walrus wears a hat!"}))));

    for ranking in ["precedence", "score"] {
        let body = json!({
            "query": "the walrus wears a hat", "identifiers": {"userId": "u", "projectId": "p"}, "threshold": 0,
            "limit": 12, "ranking": ranking,
        });
        let answer = tenant.search(body).expect(200);
        assert_eq!(answer.json["totalCount"], 51);
        let found: Vec<String> =
            list(&answer.json["results"]).iter().map(|r| text(&r["memory"]["content"])).collect();
        assert_eq!(
            found.iter().filter(|content| **content == "the walrus wears a hat").count(),
            1,
            "{found:?}"
        );
        let unique: BTreeSet<&String> = found.iter().collect();
        assert_eq!(unique.len(), found.len(), "{found:?}");
        assert!(found.len() > 5, "distinct texts come after the duplicates: {found:?}");
    }
}

// ---- against a model

/// The words of a text, in lower case.
fn words(content: &str) -> Vec<String> {
    let lower = content.to_lowercase();
    lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect()
}

fn common_subsequence(a: &[String], b: &[String]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (n, y) in b.iter().enumerate() {
            let longest = if x == y { diagonal + 1 } else { row[n].max(row[n + 1]) };
            diagonal = std::mem::replace(&mut row[n + 1], longest);
        }
    }
    row[b.len()]
}

/// Whether the texts say different things although they sound alike.
fn vetoed(one: &str, two: &str) -> bool {
    let (a, b) = (words(one), words(two));
    let numbers = |w: &[String]| -> Vec<String> {
        w.iter().filter(|w| w.contains(|c: char| c.is_ascii_digit())).cloned().collect()
    };
    let negations = |w: &[String]| -> BTreeSet<String> {
        let negation = |w: &&String| {
            ["no", "not", "never", "none", "nor", "without", "cannot"].contains(&w.as_str())
                || w.ends_with("n't")
        };
        w.iter().filter(negation).cloned().collect()
    };
    let mut counts: BTreeMap<&String, i64> = BTreeMap::new();
    a.iter().for_each(|w| *counts.entry(w).or_default() += 1);
    let overlap = b
        .iter()
        .filter(|w| {
            counts.get_mut(w).is_some_and(|n| {
                *n -= 1;
                *n >= 0
            })
        })
        .count();
    let longer = a.len().max(b.len()) as f64;
    let reordered = overlap as f64 >= 0.8 * longer && (common_subsequence(&a, &b) as f64) < 0.8 * longer;
    numbers(&a) != numbers(&b) || negations(&a) != negations(&b) || reordered
}

fn plain(content: &str) -> String {
    let lower = content.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    lower.trim_end_matches(['.', '!', '?', ',', ';', ':']).to_owned()
}

fn cosine(one: &Value, two: &Value) -> f64 {
    list(&one["embedding"]).iter().zip(&list(&two["embedding"])).map(|(a, b)| number(a) * number(b)).sum()
}

/// Random memories over all layers, walked by a model that knows nothing but the contract.
#[test]
fn what_is_kept_is_what_the_contract_keeps() {
    let tenant = Tenant::fresh();
    let mut dice = Dice(0x5EED_0004);
    let starts = [
        "The user prefers",
        "the User prefers",
        "User prefers",
        "The user never prefers",
        "A user does not prefer",
    ];
    let middles = ["dark mode", "a dark mode", "tea over coffee", "coffee over tea", "port 80", "port 8080"];
    let ends = ["", ".", "!", " in the evening", " at home"];
    let places = tenant.every_layer();
    let bodies: Vec<Value> = (0..140)
        .map(|_| {
            let content = format!("{} {}{}", dice.pick(&starts), dice.pick(&middles), dice.pick(&ends));
            dice.pick(&places).with(json!({"content": content, "kind": "semantic"}))
        })
        .collect();
    tenant.add_all(bodies);
    let body = |members: Value| {
        let all = json!({"query": "what does the user prefer", "identifiers": tenant.all_identifiers(), "threshold": 0});
        merged(all, &members)
    };
    let walk = || -> Vec<Value> {
        let each = LAYERS.iter().flat_map(|(layer, _)| {
            let members = json!({"layers": [layer], "dedupe": false, "limit": 100, "includeEmbedding": true});
            tenant.results(body(members)).into_iter().map(|result| result["memory"].clone())
        });
        each.collect()
    };
    // A pair so near the border that rounding decides is taken out of the question.
    let all = walk();
    for (n, one) in all.iter().enumerate() {
        if all[..n].iter().any(|two| (cosine(one, two) - 0.95).abs() < 1e-4) {
            tenant.delete(&id_of(one)).expect(200);
        }
    }
    let all = walk();
    assert!(all.len() > 60, "too few are left: {}", all.len());

    let mut kept: Vec<&Value> = Vec::new();
    let mut by_meaning = 0;
    for entry in &all {
        let content = text(&entry["content"]);
        let duplicate = kept.iter().any(|other| {
            let other_content = text(&other["content"]);
            let equal = plain(&content) == plain(&other_content);
            let alike = cosine(entry, other) >= 0.95 && !vetoed(&content, &other_content);
            by_meaning += usize::from(alike && !equal);
            equal || alike
        });
        if !duplicate {
            kept.push(entry);
        }
    }
    assert!(by_meaning > 0, "the sample has no duplicate by meaning");
    let expected: Vec<String> = kept.iter().map(|entry| text(&entry["content"])).collect();
    // What contradicts each other comes together, so only which are kept is compared.
    assert_eq!(sorted(tenant.found(body(json!({"limit": 100})))), sorted(expected.clone()));
    assert_eq!(sorted(tenant.found(body(json!({"limit": 9})))), sorted(expected[..9].to_vec()));
    let scored = tenant.found_ids(body(json!({"limit": 100, "ranking": "score"})));
    assert_eq!(
        sorted(scored),
        sorted(kept.iter().map(|entry| id_of(entry))),
        "the same survivors, in another order"
    );
}
