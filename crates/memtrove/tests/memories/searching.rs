//! Searching: the request, thresholds, counts, modes and what narrows a search.

use crate::support::*;

/// A few memories that have nothing to do with each other.
const NOTES: [&str; 8] = [
    "Use PostgreSQL for all new services",
    "Deploys happen on Tuesdays",
    "My dog is called Rex",
    "User prefers dark mode in the editor",
    "The invoice for March was paid late",
    "Alice plays the cello in an orchestra",
    "Error E4711-QX means that the cartridge is empty",
    "The build cache lives in tmp_cache_dir_v2",
];

fn notes() -> (Tenant, Place) {
    let (tenant, place) = (Tenant::fresh(), Place::project("p"));
    tenant.add_all(NOTES.map(|content| place.with(json!({"content": content}))));
    (tenant, place)
}

#[test]
fn the_answer_has_the_shape_of_the_contract() {
    let (tenant, place) = notes();
    let answer =
        tenant.search(place.everything(json!({"limit": 3, "query": "When do we deploy?"}))).expect(200);

    let members = ["results", "totalCount", "totalCountExact", "searchedLayers", "thresholdUsed"];
    assert_members(&answer.json, &members);
    assert_eq!(answer.json["totalCount"], NOTES.len());
    assert_eq!(answer.json["totalCountExact"], true);
    assert_eq!(answer.json["searchedLayers"], json!(["project"]));
    assert_eq!(number(&answer.json["thresholdUsed"]), 0.0);
    let results = list(&answer.json["results"]);
    assert_eq!(results.len(), 3);
    for result in &results {
        for name in ["memory", "score", "similarity", "layer"] {
            assert!(names(result).contains(name), "no {name} in {result}");
        }
        assert!(result["overriddenBy"].is_null(), "{result}");
    }
    assert_eq!(results[0]["memory"]["content"], "Deploys happen on Tuesdays");
    let default = tenant.search(json!({"query": "a", "identifiers": place.identifiers})).expect(200);
    assert_eq!(number(&default.json["thresholdUsed"]), 0.7);
}

#[test]
fn a_question_finds_its_memory_out_of_the_box() {
    let (tenant, place) = notes();
    for (question, memory) in [
        ("Which database should a new service use?", NOTES[0]),
        ("When do we deploy?", NOTES[1]),
        ("name of my pet", NOTES[2]),
        ("Does the user like a dark theme?", NOTES[3]),
    ] {
        let found = tenant.found(json!({"query": question, "identifiers": place.identifiers}));
        assert_eq!(found.first().map(String::as_str), Some(memory), "{question}: {found:?}");
    }
    let nothing = tenant.found(json!({"query": "volcanoes of Iceland", "identifiers": place.identifiers}));
    assert_eq!(nothing, Vec::<String>::new());
}

#[test]
fn what_a_model_does_not_know_is_found_by_its_letters() {
    let (tenant, place) = notes();
    for (word, memory) in [("E4711-QX", NOTES[6]), ("tmp_cache_dir_v2", NOTES[7]), ("e4711-qx", NOTES[6])] {
        let scored = |mode: &str| {
            let results = tenant.results(place.everything(json!({"query": word, "mode": mode})));
            let best = text(&results[0]["memory"]["content"]);
            let of = |result: &&Value| result["memory"]["content"] == memory;
            (best, number(&results.iter().find(of).expect("threshold 0 finds everything")["score"]))
        };
        let (best, hybrid) = scored("hybrid");
        let (_, semantic) = scored("semantic");
        assert_eq!(best, memory, "{word}");
        assert!(hybrid >= semantic, "{word}: {hybrid} below {semantic}");
        let found = tenant.found(json!({"query": word, "identifiers": place.identifiers}));
        assert_eq!(found.first().map(String::as_str), Some(memory), "{word} at the default threshold");
    }
}

#[test]
fn names_paths_and_words_of_any_script_are_found_at_the_default_threshold() {
    let (tenant, place) = notes();
    for (content, queries) in [
        ("Die Rechnungen werden am Monatsende bezahlt", &["Rechnungen", "Monatsende"][..]),
        ("東京の会議は火曜日です", &["東京", "会議", "火曜日"]),
        ("The handler getUserById throws NotFoundError", &["getUserById", "NotFoundError"]),
        ("nginx reads /etc/nginx/conf.d/site.conf", &["/etc/nginx", "site.conf"]),
        ("Contact Żółć Kowalska about the lease", &["Kowalska", "Żółć"]),
        ("ticket JIRA-4821 blocks the release", &["JIRA-4821", "jira-4821"]),
        ("sends mail to ops@example.org", &["ops@example.org"]),
        ("Пётр любит чай", &["чай", "Пётр"]),
        ("v2.13.7 broke the importer", &["v2.13.7"]),
    ] {
        tenant.say(&place, content);
        for query in queries {
            let found = tenant.found(json!({"query": query, "identifiers": place.identifiers}));
            assert_eq!(found.first().map(String::as_str), Some(content), "{query}: {found:?}");
        }
    }
}

#[test]
fn the_mode_changes_the_score_and_not_the_similarity() {
    let (tenant, place) = notes();
    for query in [
        "Deploys happen on Tuesdays",
        "the dog",
        "PostgreSQL",
        "E4711-QX cartridge",
        "cello or invoice",
        "?!",
        "und der Hund",
    ] {
        let scores = |mode: &str| {
            let results = tenant.results(place.everything(json!({"query": query, "mode": mode})));
            let mut scores: Vec<_> = results
                .iter()
                .map(|r| (id_of(&r["memory"]), number(&r["score"]), number(&r["similarity"])))
                .collect();
            scores.sort_by(|a, b| a.0.cmp(&b.0));
            scores
        };
        for (hybrid, semantic) in scores("hybrid").iter().zip(scores("semantic")) {
            assert!((0.0..=1.0).contains(&hybrid.1), "{query}: {hybrid:?} {semantic:?}");
            assert_eq!(hybrid.2, semantic.2, "{query}: the raw similarity does not depend on the mode");
        }
    }
}

/// The calibration is published; a semantic score is the published curve at the raw similarity.
#[test]
fn a_semantic_score_is_the_calibrated_similarity() {
    let (tenant, place) = notes();
    let capabilities = tenant.client.get("/v1/memories:capabilities").expect(200).json;
    let curve: Vec<(f64, f64)> = list(&capabilities["embedding"]["calibration"])
        .iter()
        .map(|point| (number(&point[0]), number(&point[1])))
        .collect();
    let calibrated = |raw: f64| {
        let after = curve.iter().position(|point| point.0 >= raw).unwrap_or(curve.len() - 1).max(1);
        let ((x0, y0), (x1, y1)) = (curve[after - 1], curve[after]);
        if x1 > x0 { (y0 + (raw - x0) / (x1 - x0) * (y1 - y0)).clamp(0.0, 1.0) } else { y1 }
    };
    assert_eq!((curve[0], curve[curve.len() - 1]), ((0.0, 0.0), (1.0, 1.0)), "{curve:?}");
    assert!(curve.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1), "monotone: {curve:?}");
    for query in ["When do we deploy?", "the dog", NOTES[4]] {
        for result in tenant.results(place.everything(json!({"query": query, "mode": "semantic"}))) {
            let (score, raw) = (number(&result["score"]), number(&result["similarity"]));
            assert!((score - calibrated(raw)).abs() < 1e-3, "{raw} gives {score}, not {}", calibrated(raw));
        }
    }
    let same = tenant.results(place.everything(json!({"query": NOTES[2], "mode": "semantic"})));
    assert!(number(&same[0]["similarity"]) > 0.999, "{}", same[0]);
}

#[test]
fn a_threshold_is_inclusive_to_the_last_bit() {
    let (tenant, place) = notes();
    for mode in ["hybrid", "semantic"] {
        for query in ["Which database should a new service use?", "the dog of Alice"] {
            let body = place.everything(json!({"query": query, "mode": mode}));
            for (rank, result) in tenant.results(body.clone()).iter().enumerate() {
                let score = number(&result["score"]);
                let at = |threshold: Value| {
                    let answer =
                        tenant.search(merged(body.clone(), &json!({"threshold": threshold}))).expect(200);
                    (answer.json["totalCount"].as_u64().unwrap(), list(&answer.json["results"]))
                };
                // The very number that was answered goes back.
                let (total, found) = at(result["score"].clone());
                assert!(total > rank as u64, "{score} {mode}");
                assert!(found.iter().any(|other| other["memory"]["id"] == result["memory"]["id"]), "{score}");
                if score < 1.0 {
                    let (total, found) = at(json!(score.next_up()));
                    assert_eq!(total, found.len() as u64);
                    assert!(found.iter().all(|other| number(&other["score"]) > score), "{score}");
                }
            }
        }
    }
}

#[test]
fn with_threshold_zero_everything_matches_also_texts_without_words() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    for content in ["?!", "…", "🦭", "\u{1}\u{2}", "\u{200b}x", "normal words"] {
        tenant.say(&place, content);
    }
    for query in ["?!", "…", "🦭", "\u{1}", "zzqxv", "normal words"] {
        for mode in ["hybrid", "semantic"] {
            let answer = tenant.search(place.everything(json!({"query": query, "mode": mode}))).expect(200);
            assert_eq!(answer.json["totalCount"], 6, "{query:?} {mode}");
            assert!(
                !answer.text.contains("null,\"similarity\"") && !answer.text.contains("NaN"),
                "{}",
                answer.text
            );
        }
    }
}

#[test]
fn a_bad_request_names_the_member() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    for (member, values) in [
        ("query", vec![json!(null), json!(""), json!(" \n"), json!(5), json!(["a"])]),
        ("layers", vec![json!([]), json!("user"), json!({}), json!(5)]),
        ("threshold", vec![json!(-0.01), json!(1.01), json!("0.5"), json!(true), json!([0.5])]),
        ("filter", vec![json!([]), json!("x"), json!(5)]),
        (
            "timeRange",
            vec![
                json!("today"),
                json!([]),
                json!({"from": "x"}),
                json!({"to": 5}),
                json!({"from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
            ],
        ),
        ("includeArchived", vec![json!("true"), json!(1)]),
        ("includeEmbedding", vec![json!("true"), json!(1)]),
        ("includeOverridden", vec![json!("true"), json!(1)]),
        ("dedupe", vec![json!("true"), json!(1)]),
        ("explain", vec![json!("true"), json!(1)]),
        ("ranking", vec![json!("best"), json!(5), json!("")]),
        ("mode", vec![json!("keyword"), json!(5), json!("")]),
    ] {
        for value in values {
            let mut body = place.everything(json!({}));
            body[member] = value.clone();
            let refused = tenant.search(body).refused(400, "INVALID_REQUEST");
            let field = refused.details()["field"].as_str().unwrap_or_default();
            assert!(
                field.contains(member) || member == "timeRange",
                "{member} {value}: {}",
                refused.describe()
            );
        }
    }
    for fine in [
        json!({"threshold": 0}),
        json!({"threshold": 1}),
        json!({"timeRange": {}}),
        json!({"filter": {}}),
        json!({"layers": null}),
        json!({"limit": null, "threshold": null, "filter": null, "kinds": null, "timeRange": null}),
    ] {
        tenant.search(place.everything(fine)).expect(200);
    }
}

#[test]
fn a_time_range_is_inclusive_and_about_when_it_happened() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    for month in 1..=6 {
        let at = format!("2026-0{month}-01T00:00:00Z");
        tenant.added(
            place.with(json!({"content": format!("month {month}"), "kind": "episodic", "occurredAt": at})),
        );
    }
    let undated = tenant.added(place.with(json!({"content": "undated"})));
    let found = |range: Value| sorted(tenant.found(place.everything(json!({"timeRange": range}))));

    assert_eq!(
        found(json!({"from": "2026-02-01T00:00:00Z", "to": "2026-04-01T00:00:00Z"})),
        ["month 2", "month 3", "month 4"]
    );
    assert_eq!(
        found(json!({"from": "2026-02-01T00:00:00.000001Z", "to": "2026-03-31T23:59:59.999999Z"})),
        ["month 3"]
    );
    assert_eq!(found(json!({"to": "2026-01-01T00:00:00Z"})), ["month 1"]);
    assert_eq!(found(json!({"from": undated["createdAt"], "to": undated["createdAt"]})), ["undated"]);
    assert_eq!(
        found(json!({"from": "2026-03-01T01:00:00+01:00", "to": "2026-03-01T00:00:00Z"})),
        ["month 3"]
    );
    assert_eq!(found(json!({})).len(), 7);
}

#[test]
fn what_is_of_the_time_that_is_asked_about_comes_first() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    for (year, colour) in [(2019, "red"), (2021, "yellow"), (2023, "green")] {
        let content = format!("Painted the front door {colour}");
        tenant
            .added(place.with(json!({"content": content, "occurredAt": format!("{year}-06-01T00:00:00Z")})));
    }
    let asked = |more: Value| {
        let query = json!({"query": "How did we paint the front door in 2021?", "ranking": "score"});
        tenant.search(place.everything(merged(query, &more))).expect(200).json
    };
    let understood = asked(json!({"explain": true}));
    assert_eq!(
        understood["time"],
        json!({"from": "2021-01-01T00:00:00.000000Z", "to": "2022-01-01T00:00:00.000000Z", "words": "in 2021"})
    );
    let results = list(&understood["results"]);
    assert_eq!(results.len(), 3, "the time that is asked about is no filter");
    assert_eq!(results[0]["memory"]["content"], "Painted the front door yellow");
    let fits: Vec<f64> = results.iter().map(|hit| number(&hit["explanation"]["time"])).collect();
    assert!(fits[0] == 1.0 && fits[1..].iter().all(|fit| (0.0..1.0).contains(fit)), "{fits:?}");

    // A range that is given is meant; words by themselves say nothing about time.
    let ranged = asked(json!({"timeRange": {"from": "2022-01-01T00:00:00Z"}, "explain": true}));
    assert!(ranged["time"].is_null());
    let results = list(&ranged["results"]);
    assert_eq!(results.len(), 1);
    assert!(results[0]["explanation"]["time"].is_null());
    assert!(asked(json!({"mode": "semantic"}))["time"].is_null());
}

#[test]
fn words_that_say_when_are_not_looked_for_as_words() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    for (content, at) in [
        ("March 2024 calendar of the choir", "2019-06-01T00:00:00Z"),
        ("Bought a lamp", "2024-03-12T00:00:00Z"),
        ("Bought a calendar of the Pyrenees", "2023-06-01T00:00:00Z"),
    ] {
        tenant.added(place.with(json!({"content": content, "occurredAt": at})));
    }
    let query = json!({"query": "What was bought in March 2024?", "ranking": "score", "explain": true});
    let answer = tenant.search(place.everything(query)).expect(200).json;
    assert_eq!(answer["time"]["words"], "in March 2024");
    let results = list(&answer["results"]);
    assert_eq!(results[0]["memory"]["content"], "Bought a lamp");
    let choir = results.iter().find(|hit| hit["memory"]["content"] == "March 2024 calendar of the choir");
    let choir = choir.unwrap_or_else(|| panic!("a time is no filter: {answer}"));
    assert!(number(&choir["explanation"]["lexical"]) <= 0.21, "they are little evidence: {choir}");
}

#[test]
fn a_memory_that_names_the_day_that_is_asked_about_is_found() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    let lunch = "Lunch with the Berlin team is on Friday at Nami";
    for content in [lunch, "Use tabs, not spaces, in the Go code", "The car goes to the garage on Monday"] {
        tenant.added(place.with(json!({"content": content})));
    }
    for query in ["what is on Friday?", "what happens on Friday?", "where do we eat on Friday?"] {
        let answer =
            tenant.search(place.everything(json!({"query": query, "threshold": 0.7}))).expect(200).json;
        assert_eq!(answer["results"][0]["memory"]["content"], lunch, "{query}: {answer}");
    }
}

#[test]
fn a_question_for_nothing_but_a_time_finds_what_was_then() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    for (content, at) in [
        ("Bought a lamp", "2024-03-12T00:00:00Z"),
        ("Anna moved to Sintra", "2024-11-12T09:00:00Z"),
        ("The roof leaks", "2023-12-31T23:59:59Z"),
        ("Room 2024 is on the third floor", "2019-06-01T00:00:00Z"),
    ] {
        tenant.added(place.with(json!({"content": content, "occurredAt": at})));
    }
    let asked = |query: &str| {
        let members = json!({"query": query, "threshold": 0.7, "ranking": "score"});
        let answer = tenant.search(place.everything(members)).expect(200).json;
        let found: Vec<String> =
            list(&answer["results"]).iter().map(|hit| text(&hit["memory"]["content"])).collect();
        assert_eq!(answer["totalCount"], found.len(), "{answer}");
        found
    };
    let mut of_2024 = asked("What happened in 2024?");
    of_2024.sort();
    assert_eq!(of_2024, ["Anna moved to Sintra", "Bought a lamp"]);
    assert_eq!(asked("What did she do on 12 November 2024?"), ["Anna moved to Sintra"]);
    let of_anna = asked("What did Anna do in 2024?");
    assert_eq!(of_anna[0], "Anna moved to Sintra");
    assert!(!of_anna.contains(&"Bought a lamp".to_owned()), "a name is asked for besides: {of_anna:?}");
    assert_eq!(asked("What happened in 2022?"), Vec::<String>::new());
}

#[test]
fn an_explanation_comes_on_request() {
    let (tenant, place) = notes();
    let query = json!({"query": "When do we deploy?"});
    let plain = tenant.results(place.everything(query.clone()));
    let explained = tenant.results(place.everything(merged(query, &json!({"explain": true}))));

    assert_eq!(plain.len(), explained.len());
    for (plain, explained) in plain.iter().zip(&explained) {
        assert_eq!(plain["memory"]["id"], explained["memory"]["id"]);
        assert_eq!(plain["score"], explained["score"]);
        let added: Vec<&str> = names(explained).difference(&names(plain)).copied().collect();
        assert_eq!(added.len(), 1, "one more member says how the score came about: {explained}");
        assert!(explained[added[0]].is_object(), "{explained}");
    }
}

/// Many enough that an index might take shortcuts: what is found is what a full scan finds.
#[test]
fn a_search_finds_what_a_full_scan_finds() {
    let (tenant, place) = (Tenant::fresh(), Place::project("p"));
    let mut dice = Dice(0x5EED_0006);
    let people = ["Alice", "Bob", "the team", "a customer", "the walrus", "our lawyer", "nobody"];
    let verbs = ["ordered", "lost", "painted", "repaired", "forgot", "sold", "invented"];
    let things =
        ["the bicycle", "a contract", "green tea", "the database", "a cello", "the invoice", "an island"];
    let places = ["in Berlin", "at home", "on Tuesday", "without reason", "before lunch", "in version 2"];
    let mut said = || {
        let words = [dice.pick(&people), dice.pick(&verbs), dice.pick(&things), dice.pick(&places)];
        words.map(|word| *word).join(" ")
    };
    let question = "Bob painted a cello before lunch";
    let bodies: Vec<Value> = (0..1200).map(|_| place.with(json!({"content": said()}))).collect();
    tenant.add_all(bodies);
    tenant.say(&place, question);
    let all = tenant.all(place.with(json!({"includeEmbedding": true})));
    let vector = |entry: &Value| list(&entry["embedding"]).iter().map(number).collect::<Vec<f64>>();
    let asked = vector(all.iter().find(|entry| entry["content"] == question).expect("the question itself"));
    let cosine = |entry: &Value| vector(entry).iter().zip(&asked).map(|(a, b)| a * b).sum::<f64>();
    let mut expected: Vec<f64> = all.iter().map(cosine).collect();
    expected.sort_by(|a, b| b.total_cmp(a));

    let found = tenant
        .results(place.everything(json!({"query": question, "mode": "semantic", "includeEmbedding": true})));

    assert_eq!(found.len(), 100);
    for (n, result) in found.iter().enumerate() {
        let similarity = number(&result["similarity"]);
        assert!((similarity - cosine(&result["memory"]).clamp(0.0, 1.0)).abs() < 1e-3, "{result}");
        assert!(
            (similarity - expected[n].clamp(0.0, 1.0)).abs() < 1e-3,
            "rank {n}: {similarity} for {}",
            expected[n]
        );
    }
}
