//! Memories that contradict each other: together, the newest first, and nothing is hidden.

use crate::support::*;

/// What a search answers: the contents, each with the content of what overrides it.
fn answered(tenant: &Tenant, body: Value) -> Vec<(String, Option<String>)> {
    let results = list(&tenant.search(body).expect(200).json["results"]);
    let content_of = |id: &Value| {
        let named = results.iter().find(|hit| hit["memory"]["id"] == *id);
        named.map(|hit| text(&hit["memory"]["content"]))
    };
    results.iter().map(|hit| (text(&hit["memory"]["content"]), content_of(&hit["overriddenBy"]))).collect()
}

fn says(content: &str, overridden_by: Option<&str>) -> (String, Option<String>) {
    (content.to_owned(), overridden_by.map(str::to_owned))
}

fn add(tenant: &Tenant, place: &Place, content: &str, at: &str) {
    tenant.added(place.with(json!({"content": content, "occurredAt": at})));
}

#[test]
fn the_newest_of_what_contradicts_comes_first_and_the_older_after_it() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    add(&tenant, &place, "Alice lives in Lisbon", "2024-02-01T00:00:00Z");
    add(&tenant, &place, "Alice moved from Lisbon to Porto", "2025-06-01T00:00:00Z");
    add(&tenant, &place, "Alice likes pears", "2025-07-01T00:00:00Z");
    add(&tenant, &place, "Alice likes apples", "2024-07-01T00:00:00Z");
    let now = [says("Alice moved from Lisbon to Porto", None)];
    let then = [says("Alice lives in Lisbon", Some("Alice moved from Lisbon to Porto"))];
    for ranking in ["score", "precedence"] {
        let query = json!({"query": "Where does Alice live?", "ranking": ranking});
        let all = answered(&tenant, place.everything(query));
        assert_eq!(all.len(), 4, "nothing is hidden");
        assert_eq!(all[..2], [now.clone(), then.clone()].concat(), "{ranking}");
        assert!(all[2..].iter().all(|(_, overridden_by)| overridden_by.is_none()), "{all:?}");
    }
    // What was is asked, not what is.
    for query in ["Where did Alice live previously?", "Where did Alice live in February 2024?"] {
        let found = answered(&tenant, place.everything(json!({"query": query, "ranking": "score"})));
        assert_eq!(found.len(), 4);
        assert_eq!(found[0], says("Alice lives in Lisbon", None), "{query}");
    }
}

#[test]
fn a_project_overrides_its_company_without_a_key() {
    let tenant = Tenant::fresh();
    let (project, company) = (Place::project("p1"), tenant.every_layer().pop().expect("the company"));
    tenant.added(project.with(json!({"content": "Use tabs for indentation"})));
    tenant.added(company.with(json!({"content": "Use spaces for indentation"})));
    for ranking in ["score", "precedence"] {
        let body = json!({
            "query": "Do we use spaces for indentation?", "identifiers": tenant.all_identifiers(), "threshold": 0,
            "ranking": ranking,
        });
        let expected = [
            says("Use tabs for indentation", None),
            says("Use spaces for indentation", Some("Use tabs for indentation")),
        ];
        assert_eq!(answered(&tenant, body), expected, "{ranking}");
    }
}

#[test]
fn of_facts_the_newest_statement_comes_first() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    for (object, at) in [("Lisbon", "2024-02-01T00:00:00Z"), ("Porto", "2025-06-01T00:00:00Z")] {
        let fact = json!({
            "factType": "profile", "subject": "dana", "predicate": "lives in", "object": object, "confidence": 0.9,
        });
        let content = format!("dana lives in {object}");
        tenant.added(
            place.with(json!({"content": content, "kind": "procedural", "fact": fact, "occurredAt": at})),
        );
    }
    let body = place.everything(json!({"query": "dana lives in Lisbon", "ranking": "score"}));
    let expected =
        [says("dana lives in Porto", None), says("dana lives in Lisbon", Some("dana lives in Porto"))];
    assert_eq!(answered(&tenant, body), expected);
}
