use super::super::search::Effort;
use super::super::{Partition, ProbeResult, SpaceNo};
use super::model::{Model, Part, Question, Text, put};
use proptest::prelude::*;
use std::collections::HashSet;

/// Two spaces, one of them with an odd number of dimensions.
const DIMENSIONS: [usize; 2] = [16, 37];

fn vector(dimensions: usize) -> impl Strategy<Value = Vec<f32>> {
    // Coarse values make equal similarities, so that ties are tested too; some vectors have no direction.
    prop_oneof![
        8 => prop::collection::vec((-2..=2i8).prop_map(f32::from), dimensions),
        1 => Just(vec![0.0; dimensions]),
    ]
}

fn part(dimensions: Option<usize>) -> impl Strategy<Value = Part> {
    let vector = match dimensions {
        Some(dimensions) => prop::option::weighted(0.9, vector(dimensions)).boxed(),
        None => Just(None).boxed(),
    };
    let terms = prop::collection::btree_map(0..30u64, 1..20u32, 0..6);
    (vector, terms, 0..100u32).prop_map(|(vector, terms, length)| Part {
        vector,
        terms: terms.into_iter().collect(),
        length,
    })
}

fn text() -> impl Strategy<Value = Text> {
    (0..100u32, prop::option::weighted(0.9, 0..2usize)).prop_flat_map(|(meta, space)| {
        let parts = prop::collection::vec(part(space.map(|space| DIMENSIONS[space])), 0..4);
        parts.prop_map(move |parts| Text { meta, space: space.map(|space| SpaceNo(space as u16)), parts })
    })
}

pub fn question() -> impl Strategy<Value = Question> {
    let query =
        |space: usize| vector(DIMENSIONS[space]).prop_map(move |vector| (SpaceNo(space as u16), vector));
    let vectors = (prop::option::of(query(0)), prop::option::of(query(1)));
    (
        vectors.prop_map(|(a, b)| a.into_iter().chain(b).collect()),
        prop::collection::hash_set(0..32u64, 0..5),
        0..20usize,
        prop::option::of(-0.2..1.0f32),
        prop::option::of(0.0..4.0f32),
        prop_oneof![Just(100), Just(50), Just(3), Just(0)],
    )
        .prop_map(|(vectors, terms, want, floor, lexical_floor, below)| Question {
            vectors,
            terms: terms.into_iter().collect(),
            want,
            floor,
            lexical_floor,
            below,
        })
}

/// Documents put (again) and removed.
pub fn history() -> impl Strategy<Value = Vec<(u64, Option<Text>)>> {
    prop::collection::vec((0..60u64, prop::option::weighted(0.75, text())), 0..120)
}

pub fn play(history: &[(u64, Option<Text>)]) -> (Partition<u32>, Model) {
    let (mut partition, mut model) = (Partition::new(), Model::default());
    for (key, text) in history {
        match text {
            Some(text) => {
                put(&mut partition, *key, text);
                model.0.insert(*key, text.clone());
            }
            None => assert_eq!(partition.remove(*key), model.0.remove(key).map(|text| text.meta)),
        }
    }
    (partition, model)
}

pub fn search(partition: &Partition<u32>, question: &Question, effort: Effort) -> ProbeResult {
    let statistics = partition.statistics(&question.terms);
    question.ask(&statistics, |probe| partition.search_with(effort, probe, |_, &meta| meta < question.below))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_complete_search_finds_what_the_model_finds(history in history(), question in question()) {
        let (partition, model) = play(&history);
        prop_assert_eq!(partition.len(), model.0.len());
        prop_assert_eq!(partition.statistics(&question.terms), model.statistics(&question.terms));
        let documents = model.document_statistics(&question.terms, u32::MAX);
        prop_assert_eq!(partition.document_statistics(&question.terms), documents);
        let some = partition.document_statistics_of(&question.terms, |_, &meta| meta < question.below);
        prop_assert_eq!(some, model.document_statistics(&question.terms, question.below));
        let found = search(&partition, &question, Effort::Complete);

        let allowed: Vec<u64> =
            model.0.iter().filter(|(_, text)| text.meta < question.below).map(|(&key, _)| key).collect();
        prop_assert_eq!(found.allowed, Some(allowed.len()));
        prop_assert!(found.exact);
        let keys: HashSet<u64> = found.candidates.iter().map(|candidate| candidate.key).collect();
        prop_assert_eq!(keys.len(), found.candidates.len(), "nobody twice");

        for candidate in &found.candidates {
            prop_assert!(allowed.contains(&candidate.key));
            let similarity = model.similarity(candidate.key, &question).unwrap_or(0.0);
            prop_assert!((similarity - f64::from(candidate.similarity)).abs() <= f64::from(candidate.error));
            let (lexical, together) = model.lexical(candidate.key, &question);
            prop_assert!((lexical - f64::from(candidate.lexical)).abs() <= 1e-4, "{lexical} for {candidate:?}");
            prop_assert!((together - f64::from(candidate.together)).abs() <= 1e-4, "{together} for {candidate:?}");
            prop_assert!(candidate.together >= candidate.lexical);
            let parts = || model.0[&candidate.key].parts.iter().flat_map(|part| &part.terms);
            let has = |term: &u64| parts().any(|(hash, frequency)| hash == term && *frequency > 0);
            let terms = question.terms.iter().enumerate().filter(|(_, term)| has(term));
            prop_assert_eq!(candidate.terms, terms.fold(0, |bits, (n, _)| bits | 1 << n));
        }
        let at_least = |score: &dyn Fn(u64) -> f64, least: f64| keys.iter().filter(|&&key| score(key) >= least).count();
        for key in allowed.iter().copied().filter(|key| !keys.contains(key)) {
            if let Some(similarity) = model.similarity(key, &question) {
                // Both may be off by some two hundredths with so few dimensions.
                let as_good = at_least(&|key| model.similarity(key, &question).unwrap_or(-1.0), similarity - 0.05);
                prop_assert!(as_good >= question.want, "{key} is more similar than those that were found");
                prop_assert!(question.floor.is_none_or(|floor| similarity < f64::from(floor)));
            }
            let (lexical, _) = model.lexical(key, &question);
            let as_good = at_least(&|key| model.lexical(key, &question).0, lexical - 1e-4);
            prop_assert!(lexical == 0.0 || as_good >= question.want, "{key} has better words");
            prop_assert!(question.lexical_floor.is_none_or(|floor| lexical <= f64::from(floor) + 1e-4));
            prop_assert!(question.floor.is_none_or(|floor| floor > 0.0), "at floor 0 everybody is wanted");
        }
    }

    #[test]
    fn a_bounded_search_finds_the_same_while_its_bounds_are_not_reached(
        history in history(),
        question in question(),
    ) {
        let (partition, _) = play(&history);
        let complete = search(&partition, &question, Effort::Complete);
        let bounded = search(&partition, &question, Effort::Bounded { promising: 1000, postings: 1000 });
        if question.floor.is_some_and(|floor| floor <= 0.0) {
            prop_assert!(!bounded.exact);
        } else {
            prop_assert_eq!(bounded, ProbeResult { allowed: None, ..complete });
        }
    }

    #[test]
    fn what_is_nominated_and_measured_is_what_a_search_finds(history in history(), question in question()) {
        // At floor 0 a search also measures those that nobody nominates.
        let question = Question { floor: question.floor.filter(|floor| *floor > 0.0), ..question };
        let (partition, _) = play(&history);
        let statistics = partition.statistics(&question.terms);
        let allow = |_, meta: &u32| *meta < question.below;
        let (mut found, measured, nobody) = question.ask(&statistics, |probe| {
            let found = partition.search(probe, allow).candidates;
            let keys = partition.nominate(probe, allow);
            (found, partition.measure(probe, keys), partition.measure(probe, [u64::MAX]))
        });
        found.sort_unstable_by_key(|candidate| candidate.key);
        prop_assert_eq!(measured, found);
        prop_assert!(nobody.is_empty(), "what is not there is left out");
    }

    #[test]
    fn what_is_found_depends_on_the_documents_alone(
        history in history(),
        question in question(),
        promising in 1..20usize,
        postings in 0..40usize,
        backwards in any::<bool>(),
    ) {
        let (partition, model) = play(&history);
        let anew = if backwards { Model::build(model.0.iter().rev()) } else { Model::build(model.0.iter()) };
        for effort in [Effort::Complete, Effort::Bounded { promising, postings }] {
            prop_assert_eq!(search(&partition, &question, effort), search(&anew, &question, effort));
        }
    }

    #[test]
    fn a_bounded_search_claims_to_be_exact_only_if_it_is(
        history in history(),
        question in question(),
        promising in 1..20usize,
        postings in 0..40usize,
    ) {
        let (partition, model) = play(&history);
        let found = search(&partition, &question, Effort::Bounded { promising, postings });
        let keys: HashSet<u64> = found.candidates.iter().map(|candidate| candidate.key).collect();
        for (&key, _) in model.0.iter().filter(|(key, text)| text.meta < question.below && !keys.contains(key)) {
            let similarity = model.similarity(key, &question).unwrap_or(0.0);
            let above = question.floor.is_some_and(|floor| similarity >= f64::from(floor))
                || question.lexical_floor.is_some_and(|floor| model.lexical(key, &question).0 > f64::from(floor) + 1e-4);
            prop_assert!(!(found.exact && above), "{key} was overlooked");
        }
    }

    #[test]
    fn the_content_is_what_was_put(history in history()) {
        let (mut partition, model) = play(&history);
        let mut seen: Vec<(u64, u32)> = partition.iter().map(|(key, meta)| (key, *meta)).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, model.0.iter().map(|(&key, text)| (key, text.meta)).collect::<Vec<_>>());
        for (&key, text) in &model.0 {
            prop_assert_eq!(partition.meta(key), Some(&text.meta));
            if let Some(meta) = partition.meta_mut(key) {
                *meta += 1;
            }
            prop_assert_eq!(partition.remove(key), Some(text.meta + 1));
        }
        prop_assert!(partition.is_empty());
        prop_assert_eq!(partition.bytes(), Partition::<u32>::new().bytes());
    }
}
