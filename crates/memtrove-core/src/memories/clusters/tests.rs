#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::memories::testing::{memory, scope};
use proptest::prelude::*;
use std::collections::HashSet;

/// An entry of a layer that says what was so at a second.
fn said(id: u128, layer: Layer, second: i64, content: &str) -> Memory {
    let at = Timestamp::from_micros(second * 1_000_000);
    Memory { scope: scope(layer), created_at: at, updated_at: at, anchor: at, ..memory(id, content) }
}

fn fact(id: u128, second: i64, predicate: &str, object: &str) -> Memory {
    let fact = Fact {
        fact_type: "profile".to_owned(),
        subject: "dana".to_owned(),
        predicate: predicate.to_owned(),
        object: object.to_owned(),
        confidence: 1.0,
    };
    Memory { fact: Some(fact), ..said(id, Layer::User, second, &format!("dana {predicate} {object}")) }
}

/// The ids in their new order, each with the id that overrides it.
fn arranged(memories: &[Memory], ranking: Ranking) -> Vec<(u128, Option<u128>)> {
    let analyzer = Analyzer::new("english").unwrap();
    let hits: Vec<ClusterHit<'_>> =
        memories.iter().map(|memory| ClusterHit::of(&analyzer, memory, None, false)).collect();
    let number = |id: MemoryId| id.0.as_u128();
    let placed = arrange(&hits, ranking).into_iter();
    placed.map(|placed| (number(memories[placed.hit].id), placed.overridden_by.map(number))).collect()
}

const USER: Layer = Layer::User;

#[test]
fn the_newest_comes_first_and_the_others_directly_after_it() {
    let hits = [
        said(1, USER, 10, "Alice lives in Lisbon"),
        said(2, USER, 50, "Alice likes pears"),
        said(3, USER, 30, "Alice moved from Lisbon to Porto"),
        said(4, USER, 20, "Alice lives in Faro"),
        said(5, USER, 40, "Bob lives in Porto"),
    ];
    let expected = [(3, None), (4, Some(3)), (1, Some(3)), (2, None), (5, None)];
    assert_eq!(arranged(&hits, Ranking::Score), expected);
    assert_eq!(arranged(&hits, Ranking::Precedence), expected);
}

#[test]
fn what_was_told_together_is_a_list() {
    let mut hits = [said(1, USER, 10, "Alice lives in Lisbon"), said(2, USER, 10, "Alice lives in Porto")];
    assert_eq!(arranged(&hits, Ranking::Score), [(1, None), (2, None)]);
    hits[1].occurred_at = Some(Timestamp::from_micros(99_000_000));
    assert_eq!(arranged(&hits, Ranking::Score), [(2, None), (1, Some(2))], "it happened later");
}

#[test]
fn the_more_specific_layer_overrides_whatever_is_newer() {
    let hits = [
        said(1, Layer::Company, 90, "Use spaces for indentation"),
        said(2, Layer::Project, 20, "Use tabs for indentation"),
        said(3, Layer::Company, 95, "Company holidays are in August"),
    ];
    assert_eq!(arranged(&hits, Ranking::Score), [(2, None), (1, Some(2)), (3, None)]);
    let by_layer = [hits[1].clone(), hits[0].clone(), hits[2].clone()];
    assert_eq!(arranged(&by_layer, Ranking::Precedence), [(2, None), (1, Some(2)), (3, None)]);
}

#[test]
fn a_layer_keeps_its_place_where_layers_decide() {
    let hits = [
        said(1, Layer::Project, 20, "Use tabs for indentation"),
        said(2, Layer::Project, 10, "The project is called Atlas"),
        said(3, Layer::Company, 30, "Use spaces for indentation"),
        said(4, Layer::Company, 40, "Use dots for indentation"),
    ];
    let expected = [(1, None), (2, None), (4, Some(1)), (3, Some(1))];
    assert_eq!(arranged(&hits, Ranking::Precedence), expected);
}

#[test]
fn what_contradicts_a_member_alone_stays_apart() {
    let hits = [
        said(1, USER, 10, "Alice lives in Lisbon"),
        said(2, USER, 30, "Alice lives in Porto"),
        said(3, USER, 40, "Alice does not live in Porto"),
    ];
    assert_eq!(arranged(&hits, Ranking::Score), [(2, None), (1, Some(2)), (3, None)]);
}

#[test]
fn facts_contradict_each_other_by_what_they_state() {
    let lives = [fact(1, 10, "lives in", "Lisbon"), fact(2, 20, "lives in", "Porto")];
    assert_eq!(arranged(&lives, Ranking::Score), [(2, None), (1, Some(2))]);
    let drinks = [fact(1, 10, "drinks", "tea"), fact(2, 20, "drinks", "coffee")];
    assert_eq!(arranged(&drinks, Ranking::Score), [(1, None), (2, None)]);
    let others = [fact(1, 10, "lives in", "Lisbon"), fact(2, 20, "works in", "Porto")];
    assert_eq!(arranged(&others, Ranking::Score), [(1, None), (2, None)]);
}

#[test]
fn events_pointers_and_what_is_overridden_take_no_part() {
    let analyzer = Analyzer::new("english").unwrap();
    let older = said(1, USER, 10, "Alice lives in Lisbon");
    let newer = said(2, USER, 20, "Alice lives in Porto");
    let mut event = newer.clone();
    event.lineage.mirror_of = Some("event".to_owned());
    let mut pointer = newer.clone();
    pointer.metadata.insert("knowledgePointer".to_owned(), serde_json::json!({}));
    for (other, is_overridden) in [(&event, false), (&pointer, false), (&newer, true)] {
        let hits = [
            ClusterHit::of(&analyzer, &older, None, false),
            ClusterHit::of(&analyzer, other, None, is_overridden),
        ];
        let placed = [Placed { hit: 0, overridden_by: None }, Placed { hit: 1, overridden_by: None }];
        assert_eq!(arrange(&hits, Ranking::Score), placed);
    }
}

fn some_hits() -> impl Strategy<Value = Vec<Memory>> {
    let content = prop::sample::select(vec![
        "Alice lives in Lisbon",
        "Alice lives in Porto",
        "Alice moved from Lisbon to Porto",
        "Alice does not live in Porto",
        "Alice likes pears",
        "Bob lives in Porto",
        "Use tabs for indentation",
        "Use spaces for indentation",
        "We switched indentation from tabs to spaces",
    ]);
    let hit = (0usize..3, 0i64..5, content);
    prop::collection::vec(hit, 0..12).prop_map(|drawn| {
        let hit = |(number, (layer, second, content)): (usize, (usize, i64, &str))| {
            said(number as u128 + 1, Layer::ALL[layer], second, content)
        };
        drawn.into_iter().enumerate().map(hit).collect()
    })
}

proptest! {
    #[test]
    fn every_hit_is_placed_once(mut hits in some_hits(), by_score: bool) {
        let ranking = if by_score { Ranking::Score } else { Ranking::Precedence };
        if !by_score {
            hits.sort_by_key(|hit| hit.scope.layer());
        }
        let placed = arranged(&hits, ranking);
        prop_assert_eq!(placed.len(), hits.len());
        prop_assert_eq!(placed.iter().map(|(id, _)| *id).collect::<HashSet<_>>().len(), hits.len());
        prop_assert_eq!(&placed, &arranged(&hits, ranking), "the same hits, the same order");
        if !by_score {
            let layer = |id: &u128| hits.iter().find(|hit| hit.id.0.as_u128() == *id).unwrap().scope.layer();
            prop_assert!(placed.iter().map(|(id, _)| layer(id)).is_sorted(), "layers stay in their order");
        }
    }

    #[test]
    fn what_overrides_is_no_older_of_its_layer_and_its_cluster_is_not_separated(hits in some_hits()) {
        let placed = arranged(&hits, Ranking::Score);
        let memory = |id: u128| hits.iter().find(|hit| hit.id.0.as_u128() == id).unwrap();
        for (at, (id, winner)) in placed.iter().enumerate() {
            let Some(winner) = *winner else { continue };
            let (loser, stronger) = (memory(*id), memory(winner));
            let (layers, times) = ((stronger.scope.layer(), loser.scope.layer()), (stronger.told_at(), loser.told_at()));
            prop_assert!(layers.0 < layers.1 || (layers.0 == layers.1 && times.0 >= times.1));
            // From the one that overrides it down to it there is nothing else.
            let first = placed.iter().position(|(id, _)| *id == winner).unwrap();
            prop_assert!(first < at && placed[first].1.is_none());
            prop_assert!(placed[first + 1..=at].iter().all(|(_, other)| *other == Some(winner)));
        }
    }
}
