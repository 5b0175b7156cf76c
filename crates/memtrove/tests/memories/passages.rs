//! Long memories: what of them a search shows.

use crate::support::*;

/// A text of 1,200 words, and one sentence in its midst that says when the ferry leaves.
fn long() -> String {
    let line = |number: usize| format!("In line {number} of the report nothing is said that matters. ");
    let lines = |from: usize| (from..from + 55).map(line).collect::<String>();
    format!("{}The ferry to the island leaves at nine from quay four. {}", lines(0), lines(55))
}

fn hits(tenant: &Tenant, place: &Place, members: Value) -> Vec<Value> {
    let query = json!({"query": "when does the ferry leave?", "limit": 5});
    list(&tenant.search(place.everything(merged(query, &members))).expect(200).json["results"])
}

#[test]
fn a_long_memory_is_shown_by_the_passage_that_answers() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    let content = long();
    tenant.add_all([place.with(json!({"content": content}))]);
    for members in [json!({}), json!({"mode": "semantic"}), json!({"ranking": "score", "explain": true})] {
        let hit = &hits(&tenant, &place, members)[0];
        assert_eq!(hit["memory"]["content"], content);
        let passage = text(&hit["passage"]);
        assert!(passage.contains("leaves at nine from quay four."), "{passage}");
        assert!(content.contains(&passage), "as it stands in the memory: {passage}");
        assert!((60..=120).contains(&passage.split_whitespace().count()), "{passage}");
        assert!(passage.ends_with('.') && passage.starts_with("In line"), "whole sentences: {passage}");
    }
}

#[test]
fn a_memory_of_120_words_is_its_own_passage() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    let words = |count: usize| {
        format!("The ferry leaves at nine.{}", " Enough is said here.".repeat((count - 5) / 4))
    };
    tenant.add_all([place.with(json!({"content": words(120)}))]);
    tenant.add_all([place.with(json!({"content": words(125)}))]);
    let hits = hits(&tenant, &place, json!({"dedupe": false}));
    let with_passage = |hit: &Value| text(&hit["memory"]["content"]).split_whitespace().count() > 120;
    assert_eq!(hits.len(), 2);
    for hit in &hits {
        assert_eq!(hit["passage"].is_string(), with_passage(hit), "{hit}");
        assert_eq!(names(hit).contains("passage"), with_passage(hit), "{hit}");
    }
}

#[test]
fn scripts_without_spaces_have_passages_too() {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    let lines = "报告的这一行没有什么重要的内容。".repeat(40);
    let content = format!("{lines}去岛上的渡轮九点从四号码头出发。{lines}");
    tenant.add_all([place.with(json!({"content": content}))]);
    let found = tenant.search(place.everything(json!({"query": "渡轮几点出发？"}))).expect(200);
    let passage = text(&found.json["results"][0]["passage"]);
    assert!(passage.contains("渡轮九点从四号码头出发。"), "{passage}");
    assert!((100..=260).contains(&passage.chars().count()), "{passage}");
}

#[test]
fn words_alone_choose_a_passage_where_nothing_is_embedded() {
    let server = server_with("[embedding]\nprovider = \"none\"\n");
    let (tenant, place) = (Tenant::of(&server, "t"), Place::user("u"));
    tenant.add_all([place.with(json!({"content": long()}))]);
    assert!(text(&hits(&tenant, &place, json!({}))[0]["passage"]).contains("quay four"));
}
