//! What is found among 30,000 entries, compared with looking at all of them.

use super::world::{Dice, Node, best, like, memory, ranked};
use memtrove_core::memories::{
    AccessPolicy, Author, Conditions, Filter, Kind, MemberConditions, Memory, MemoryId, Policy, Viewer,
};
use memtrove_service::memories::scope_search::{Matches, ScopeQuery};
use memtrove_testkit::postgres::Database;
use serde_json::{Map, json};
use std::collections::{HashMap, HashSet};

const ENTRIES: u128 = 30_000;
const EXACT: usize = 19_000;
const QUERIES: usize = 40;
const DIMENSIONS: usize = 64;
const WORDS: [&str; 12] = [
    "walrus", "seal", "otter", "penguin", "puffin", "gannet", "heron", "bittern", "curlew", "plover",
    "dunlin", "knot",
];

/// Entries that mean one of some hundred things, more or less, and say some words, the first ones often.
fn entries(dice: &mut Dice) -> Vec<Memory> {
    let topics: Vec<Vec<f32>> = (0..200).map(|_| dice.direction(DIMENSIONS)).collect();
    (0..ENTRIES)
        .map(|number| {
            let topic = &topics[(dice.roll() * topics.len() as f32) as usize];
            let vector = dice.near(topic, 0.9);
            let word = |dice: &mut Dice| WORDS[(dice.roll().powi(3) * WORDS.len() as f32) as usize];
            let content = format!("{} {} {}", word(dice), word(dice), word(dice));
            let mut memory = memory(number, &content, vector);
            if number % 100 == 42 {
                memory.kind = Kind::Episodic;
            }
            if number % 100 == 17 {
                memory.metadata.insert("rare".into(), json!(true));
            }
            memory
        })
        .collect()
}

fn queries(dice: &mut Dice, entries: &[Memory]) -> Vec<Vec<f32>> {
    (0..QUERIES)
        .map(|_| {
            let one = &entries[(dice.roll() * entries.len() as f32) as usize];
            dice.near(&one.embedding.as_ref().unwrap().vector, 0.5)
        })
        .collect()
}

/// The ten most similar of those that pass.
fn exactly<'a>(entries: impl Iterator<Item = &'a Memory>, query: &[f32]) -> HashSet<MemoryId> {
    let cosine = |memory: &Memory| -> f32 {
        memory.embedding.as_ref().unwrap().vector.iter().zip(query).map(|(a, b)| a * b).sum()
    };
    let mut all: Vec<(f32, MemoryId)> = entries.map(|memory| (cosine(memory), memory.id)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().take(10).map(|(_, id)| id).collect()
}

/// Which share of the ten best was found among the first ten.
async fn recall(
    node: &Node,
    entries: &[Memory],
    queries: &[Vec<f32>],
    conditions: &Conditions,
    passes: fn(&Memory) -> bool,
) -> f64 {
    let mut found = 0;
    for query in queries {
        let asked = ScopeQuery { conditions: conditions.clone(), ..like(super::world::MODEL, query, "", 42) };
        let hits = node.nearest(asked).await;
        let ten = best(&hits, 10);
        assert_eq!(ten.len(), 10, "the page is full");
        let expected = exactly(entries.iter().filter(|memory| passes(memory)), query);
        found += ten.iter().filter(|id| expected.contains(id)).count();
    }
    found as f64 / (10 * queries.len()) as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_scopes_are_searched_as_well_as_small_ones() {
    let (database, mut dice) = (Database::fresh(), Dice(1));
    let node = Node::open(database.config(), 10_000).await;
    let entries = entries(&mut dice);
    let queries = queries(&mut dice, &entries);
    // So many a node still looks at one by one.
    node.pour(entries[..EXACT].to_vec()).await;
    let asked: Vec<ScopeQuery> =
        queries.iter().map(|query| like(super::world::MODEL, query, "puffin heron knot", 42)).collect();
    let mut by_node = Vec::new();
    for query in &asked {
        by_node.push(node.nearest(query.clone()).await);
    }
    node.tend().await;
    assert_eq!(super::world::searched(&database), ("2".into(), EXACT.to_string(), "1".into()));

    // Nothing is said that is not so: what both find has the same score and the same place.
    let mut shared = 0;
    for (query, by_node) in asked.iter().zip(&by_node) {
        shared += same_ranking(by_node, &node.nearest(query.clone()).await);
    }
    assert!(shared >= 95 * 10 * QUERIES / 100, "of {} only {shared} are found both ways", 10 * QUERIES);

    node.pour(entries[EXACT..].to_vec()).await;
    assert_eq!(super::world::searched(&database), ("2".into(), ENTRIES.to_string(), "1".into()));
    assert_eq!(super::world::differences(&database), [] as [Vec<_>; 0]);
    let all = recall(&node, &entries, &queries, &Conditions::default(), |_| true).await;
    assert!(all >= 0.95, "recall {all}");
    let episodic = Conditions { kinds: Some(vec![Kind::Episodic]), ..Conditions::default() };
    let some =
        recall(&node, &entries, &queries[..10], &episodic, |memory| memory.kind == Kind::Episodic).await;
    assert!(some >= 0.95, "recall {some} behind a condition that one in a hundred passes");
    let is_rare = Map::from_iter([("rare".to_owned(), true.into())]);
    let filter = Filter { custom: MemberConditions::new(is_rare).unwrap(), ..Filter::default() };
    let rare = Conditions { filter, ..Conditions::default() };
    let some = recall(&node, &entries, &queries[..10], &rare, |memory| !memory.metadata.is_empty()).await;
    assert!(some >= 0.95, "recall {some} behind a filter that one in a hundred passes");
    println!("recall: {all} of all, {some} behind a filter; {shared} of {} as by nodes", 10 * QUERIES);
}

/// How many of the ten best two answers share; panics if they rank or score those differently.
fn same_ranking(by_node: &Matches, by_database: &Matches) -> usize {
    let scores: HashMap<MemoryId, f64> = by_node.matches.iter().map(|near| (near.id, near.score())).collect();
    let database: Vec<_> =
        ranked(by_database).into_iter().filter(|near| scores.contains_key(&near.id)).collect();
    let ids: HashSet<MemoryId> = database.iter().map(|near| near.id).collect();
    let node: Vec<_> = ranked(by_node).into_iter().filter(|near| ids.contains(&near.id)).collect();
    for (one, other) in node.iter().zip(&database) {
        assert_eq!(one.id, other.id, "ranked differently");
        assert!((one.score() - other.score()).abs() < 1e-9, "{one:?} is not {other:?}");
    }
    let (one, other) = (best(by_node, 10), best(by_database, 10));
    one.iter().filter(|id| other.contains(id)).count()
}

/// Neither which words are rare nor how much there is may tell of what others hide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_hide_moves_no_score_of_a_large_scope() {
    const OPEN: usize = 1_200;
    let (database, mut dice) = (Database::fresh(), Dice(7));
    let node = Node::open(database.config(), 1_000).await;
    let word = |dice: &mut Dice| WORDS[(dice.roll() * WORDS.len() as f32) as usize];
    let sentence = |dice: &mut Dice| format!("{} {} {}", word(dice), word(dice), word(dice));
    let directions: Vec<Vec<f32>> = (0..OPEN + 60).map(|_| dice.direction(64)).collect();
    let open = (0..OPEN).map(|n| memory(n as u128, &sentence(&mut dice), directions[n].clone()));
    node.pour(open.collect()).await;
    node.tend().await;
    assert_eq!(super::world::searched(&database).0, "2", "the database searches it");
    let viewer = Viewer { user: Some("carol".into()), client: None, team: None, all: false };
    let asked: Vec<ScopeQuery> = (0..20)
        .map(|n| ScopeQuery {
            viewer: viewer.clone(),
            ..like(super::world::MODEL, &directions[n * 7], &sentence(&mut dice), 42)
        })
        .collect();
    let answers = async || {
        let mut answers = Vec::new();
        for query in &asked {
            let hits = node.nearest(query.clone()).await;
            let best = ranked(&hits).into_iter().take(10);
            let best: Vec<_> = best.map(|near| (near.id, near.score().to_bits())).collect();
            answers.push((best, hits.total));
        }
        answers
    };
    let before = answers().await;

    let hidden = (OPEN..OPEN + 60).map(|n| {
        let policy = match n % 3 {
            0 => AccessPolicy { approved_users: vec!["bob".into()], ..AccessPolicy::new(Policy::Restricted) },
            _ => AccessPolicy::new(Policy::Private),
        };
        let made = memory(n as u128, &sentence(&mut dice), directions[n].clone());
        Memory { policy, created_by: Author { user: Some("bob".into()), client: None }, ..made }
    });
    node.pour(hidden.collect()).await;

    assert_eq!(answers().await, before);
    assert!(before.iter().all(|(_, total)| *total == OPEN), "{before:?}");
    // What is shown does move them: the test would see it.
    let shown = (0..60).map(|n| memory(5_000 + n, "puffin heron knot", directions[n as usize].clone()));
    node.pour(shown.collect()).await;
    assert_ne!(answers().await, before);
}
