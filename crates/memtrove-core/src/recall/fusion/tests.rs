use super::*;
use proptest::prelude::*;

const WORTH: [f64; 3] = [2.0, 1.0, 1.0];

fn turn(position: u32, terms: u64, similarity: f64) -> Candidate {
    Candidate { terms, similarity: Some(similarity), by_another: false, asks: false, session: 1, position }
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

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let candidate =
        (any::<u64>(), prop::option::of(prop::num::f64::ANY), any::<(bool, bool)>(), 0..3u64, 0..12u32);
    let candidate = candidate.prop_map(|(terms, similarity, (by_another, asks), session, position)| {
        Candidate { terms, similarity, by_another, asks, session, position }
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
    fn holding_a_word_more_never_lowers_anybody(candidates in candidates(), which in 0..20usize) {
        prop_assume!(which < candidates.len());
        let mut more = candidates.clone();
        more[which].terms = u64::MAX;
        let (before, after) = (rank(&WORTH, &candidates, &Weights::default()), rank(&WORTH, &more, &Weights::default()));
        prop_assert!(before.iter().zip(&after).all(|(before, after)| after.score >= before.score - 1e-12));
    }
}
