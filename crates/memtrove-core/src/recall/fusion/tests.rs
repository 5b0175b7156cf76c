use super::*;
use proptest::prelude::*;

const WORTH: [f64; 3] = [2.0, 1.0, 1.0];

fn turn(position: u32, terms: u64, similarity: f64) -> Candidate {
    Candidate {
        terms,
        similarity: Some(similarity),
        understood: 1.0,
        length: 10,
        by_agent: false,
        by_another: false,
        asks: false,
        session: 1,
        position,
    }
}

fn scores(candidates: &[Candidate]) -> Vec<f64> {
    rank(&WORTH, candidates, &Weights::default()).iter().map(|score| score.score).collect()
}

#[test]
fn words_and_meaning_count_alike() {
    assert_eq!(scores(&[turn(0, 0b111, 0.0)]), [0.5]);
    assert_eq!(scores(&[turn(0, 0, 1.0)]), [0.5]);
    assert_eq!(scores(&[turn(0, 0b111, 1.0)]), [1.0]);
    assert_eq!(scores(&[turn(0, 0b001, 0.0)]), [0.25], "a rare word is worth more");
}

#[test]
fn an_answer_is_found_by_the_words_of_its_question() {
    let question = Candidate { asks: true, ..turn(4, 0b111, 0.6) };
    let [question, answer, elsewhere] =
        scores(&[question, turn(5, 0, 0.2), turn(9, 0, 0.2)]).try_into().unwrap_or_default();
    assert!(answer > 3.0 * elsewhere, "{answer} {elsewhere}");
    assert!(question > answer, "what has everything itself stays first");
}

#[test]
fn a_word_counts_once_where_it_is_said_nearest() {
    let ranked =
        rank(&WORTH, &[turn(1, 0b001, 0.0), turn(2, 0b001, 0.0), turn(3, 0b010, 0.0)], &Weights::default());
    assert_eq!((ranked[2].words, ranked[2].words_nearby), (0.25, 0.5 * 0.8));
}

#[test]
fn what_was_said_before_is_nearer_than_what_comes_after() {
    let nearby = |at: u32| {
        let ranked = rank(&WORTH, &[turn(10, 0b111, 0.0), turn(at, 0, 0.0)], &Weights::default());
        ranked[1].words_nearby
    };
    assert_eq!([7, 8, 9].map(nearby), [0.0, 0.4, 0.6]);
    assert_eq!([11, 12, 13, 14].map(nearby), [0.8, 0.6, 0.4, 0.0]);
}

#[test]
fn other_sessions_lend_nothing() {
    let other = Candidate { session: 2, ..turn(1, 0b111, 1.0) };
    assert_eq!(scores(&[turn(0, 0b010, 0.5), other])[0], scores(&[turn(0, 0b010, 0.5)])[0]);
}

#[test]
fn who_speaks_counts_unless_it_is_said_not_to() {
    let another = Candidate { by_another: true, ..turn(0, 0b111, 0.5) };
    assert!(scores(&[another])[0] < scores(&[turn(0, 0b111, 0.5)])[0]);
    let indifferent = Weights { by_another: 1.0, ..Weights::default() };
    assert_eq!(rank(&WORTH, &[another], &indifferent)[0].score, scores(&[turn(0, 0b111, 0.5)])[0]);
}

#[test]
fn without_vectors_the_words_decide() {
    let lexical = |position, terms| Candidate { similarity: None, ..turn(position, terms, 0.0) };
    assert_eq!(scores(&[lexical(0, 0b001), lexical(9, 0b111)]), [0.5, 1.0]);
    assert_eq!(rank(&[], &[lexical(0, 0)], &Weights::default())[0].score, 0.0, "nothing to go by");
}

#[test]
fn a_long_turn_takes_less_from_its_neighbours_and_lends_them_less() {
    let long = |position, terms| Candidate { length: 120, ..turn(position, terms, 0.0) };
    let nearby = |before: Candidate, after: Candidate| {
        rank(&WORTH, &[before, after], &Weights::default())[1].words_nearby
    };
    assert_eq!(nearby(turn(1, 0b111, 0.0), turn(2, 0, 0.0)), 0.8);
    assert_eq!(nearby(long(1, 0b111), turn(2, 0, 0.0)), 0.4);
    assert_eq!(nearby(turn(1, 0b111, 0.0), long(2, 0)), 0.2);
}

#[test]
fn a_question_to_an_agent_is_no_worse_than_a_statement() {
    let asks = Candidate { asks: true, ..turn(1, 0b111, 0.5) };
    let by_agent = |position| Candidate { by_agent: true, ..turn(position, 0, 0.0) };
    let asks_of = |turns: &[Candidate]| rank(&WORTH, turns, &Weights::default())[0].asks;
    assert_eq!(asks_of(&[asks, by_agent(2)]), 1.0);
    assert_eq!(asks_of(&[asks, turn(2, 0, 0.0)]), 0.85);
    assert_eq!(asks_of(&[asks, by_agent(6)]), 0.85, "far away");
    assert_eq!(asks_of(&[Candidate { by_agent: true, ..asks }, by_agent(2)]), 0.85, "the agent asks");
}

#[test]
fn what_a_user_says_outweighs_long_turns_of_an_agent() {
    let said = |by_agent, length| Candidate { by_agent, length, ..turn(0, 0b111, 0.5) };
    let [user, short, long] =
        [said(false, 400), said(true, 30), said(true, 400)].map(|turn| scores(&[turn])[0]);
    assert_eq!(user, short);
    assert!(long < short && long > 0.9 * short);
}

#[test]
fn meaning_counts_as_far_as_the_model_knows_the_query() {
    let understood = |understood, terms, similarity| {
        let turn = Candidate { understood, ..turn(0, terms, similarity) };
        scores(&[turn])[0]
    };
    assert_eq!(understood(1.0, 0b001, 1.0), 0.75);
    assert_eq!(understood(0.5, 0b001, 1.0), 0.625);
    assert_eq!(understood(0.0, 0b001, 1.0), 0.5);
}

#[test]
fn an_answer_without_a_word_of_the_query_is_enough_after_its_question() {
    let question = Candidate { asks: true, ..turn(4, 0b111, 0.6) };
    let weights = Weights::default();
    let is_enough = |turns: &[Candidate]| {
        let ranked = rank(&WORTH, turns, &weights);
        ranked.iter().map(|score| score.is_enough(0.35, &weights)).collect::<Vec<_>>()
    };
    let others = [turn(3, 0, 0.1), turn(5, 0, 0.1), turn(6, 0, 0.1), turn(7, 0, 0.1)];
    let [before, next, second, third] = others;
    assert_eq!(is_enough(&[before, question, next, second, third])[0..1], [false], "before it");
    assert_eq!(is_enough(&[question, next, second, third])[1..], [true, true, false]);
    assert_eq!(is_enough(&[turn(4, 0b111, 0.6), next])[1..], [false], "nobody asked");
    assert_eq!(is_enough(&[Candidate { terms: 0, ..question }, next])[1..], [false], "of something else");
    assert!(rank(&WORTH, &[next], &weights)[0].is_enough(0.0, &weights), "no floor");
}

#[test]
fn what_a_user_says_to_an_agent_is_enough_by_what_the_agent_says_of_it() {
    let weights = Weights::default();
    let agent = Candidate { by_agent: true, ..turn(5, 0b111, 0.6) };
    let ranked =
        rank(&WORTH, &[turn(4, 0, 0.1), agent, Candidate { by_agent: true, ..turn(6, 0, 0.1) }], &weights);
    let is_enough: Vec<bool> = ranked.iter().map(|score| score.is_enough(0.35, &weights)).collect();
    assert_eq!(is_enough, [true, false, false], "not what an agent says");
}

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let candidate =
        (any::<u64>(), prop::option::of(prop::num::f64::ANY), any::<[bool; 3]>(), 0..3u64, 0..12u32);
    let candidate = (candidate, 0..300u32, 0.0..=1.0f64).prop_map(|(candidate, length, understood)| {
        let (terms, similarity, [by_agent, by_another, asks], session, position) = candidate;
        Candidate { terms, similarity, understood, length, by_agent, by_another, asks, session, position }
    });
    prop::collection::vec(candidate, 0..20).prop_map(|mut candidates| {
        let mut places = std::collections::HashSet::new();
        candidates.retain(|candidate| places.insert((candidate.session, candidate.position)));
        candidates
    })
}

proptest! {
    #[test]
    fn every_candidate_has_a_score_from_0_to_1(
        candidates in candidates(), worth in prop::collection::vec(0.01..10.0f64, 0..80)
    ) {
        let scores = rank(&worth, &candidates, &Weights::default());
        prop_assert_eq!(scores.len(), candidates.len());
        prop_assert!(scores.iter().all(|score| (0.0..=1.0 + 1e-9).contains(&score.score)), "{scores:?}");
    }

    #[test]
    fn a_score_does_not_depend_on_what_else_was_found(candidates in candidates()) {
        let far = candidates.iter().map(|c| Candidate { session: c.session + 10, ..*c });
        let all: Vec<Candidate> = candidates.iter().copied().chain(far).collect();
        let alone = rank(&WORTH, &candidates, &Weights::default());
        prop_assert_eq!(&rank(&WORTH, &all, &Weights::default())[..candidates.len()], &alone[..]);
    }

    #[test]
    fn a_score_is_what_its_parts_explain(candidates in candidates(), lexical in 0.0..=1.0f64) {
        let weights = Weights { lexical, ..Weights::default() };
        for score in rank(&WORTH, &candidates, &weights) {
            let Score { words, words_nearby, similarity_nearby, meaning, by_another, by_agent, asks, .. } = score;
            let evidence = (1.0 - meaning) * (words + words_nearby) + meaning * similarity_nearby.unwrap_or_default();
            prop_assert!((score.score - evidence * by_another * by_agent * asks).abs() < 1e-12);
            prop_assert!((0.0..=1.0 - lexical + 1e-12).contains(&meaning));
        }
    }

    #[test]
    fn a_longer_turn_never_gains_from_its_neighbours(candidates in candidates(), which in 0..20usize, more in 0..300u32) {
        prop_assume!(which < candidates.len());
        let mut longer = candidates.clone();
        longer[which].length += more;
        let weights = Weights { context: 0.0, ..Weights::default() };
        let (before, after) = (rank(&WORTH, &candidates, &weights), rank(&WORTH, &longer, &weights));
        prop_assert!(after[which].words_nearby <= before[which].words_nearby + 1e-12);
        prop_assert!(after[which].score <= before[which].score + 1e-12);
    }

    #[test]
    fn holding_a_word_more_never_lowers_anybody(candidates in candidates(), which in 0..20usize) {
        prop_assume!(which < candidates.len());
        let mut more = candidates.clone();
        more[which].terms = u64::MAX;
        let (before, after) = (rank(&WORTH, &candidates, &Weights::default()), rank(&WORTH, &more, &Weights::default()));
        prop_assert!(before.iter().zip(&after).all(|(before, after)| after.score >= before.score - 1e-12));
    }
}
