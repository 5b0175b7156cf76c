use super::super::search::Effort;
use super::super::{Bm25, Partition, Piece, Probe, QueryTerm, SpaceNo, TermStatistics, rescore};

const SPACE: SpaceNo = SpaceNo(0);
const DIMENSIONS: usize = 64;

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS)
            .map(|_| (0..4).map(|_| self.roll() as f32 / (1u64 << 31) as f32 - 0.5).sum())
            .collect()
    }

    /// A vector around one of some hundred centres.
    fn clustered(&mut self) -> Vec<f32> {
        let centre = Dice(self.roll() % 200).vector();
        self.vector().iter().zip(centre).map(|(x, centre)| x * 0.7 + centre).collect()
    }
}

fn probe<'a>(vectors: &'a [(SpaceNo, &'a [f32])], terms: &'a [QueryTerm], want: usize) -> Probe<'a> {
    Probe { vectors, terms, bm25: Bm25::new(10.0), want, floor: None, lexical_floor: None, exact: false }
}

/// A large partition of clustered vectors, with the vectors.
fn large(count: u64) -> (Partition<u64>, Vec<Vec<f32>>) {
    let mut dice = Dice(7);
    let vectors: Vec<Vec<f32>> = (0..count).map(|_| dice.clustered()).collect();
    let mut partition = Partition::new();
    for (key, vector) in (0..).zip(&vectors) {
        let terms = [(key % 7, 1), (1000 + key % 1000, 1)];
        partition.put(key, key, Some(SPACE), &[Piece { vector: Some(vector), terms: &terms, length: 10 }]);
    }
    (partition, vectors)
}

#[test]
fn a_large_partition_finds_nearly_all_of_the_true_ten_best() {
    let (partition, vectors) = large(30_000);
    let (mut dice, mut hits) = (Dice(99), 0);
    for _ in 0..50 {
        let query = dice.clustered();
        let mut truth: Vec<(f32, u64)> =
            vectors.iter().map(|vector| rescore(&query, vector)).zip(0..).collect();
        truth.sort_by(|a, b| b.0.total_cmp(&a.0));
        let found = partition.search(&probe(&[(SPACE, &query)], &[], 40), |_, _| true);
        assert_eq!(found.allowed, None, "a large partition is not looked through");
        hits += truth[..10]
            .iter()
            .filter(|(_, key)| found.candidates.iter().any(|found| found.key == *key))
            .count();
    }
    assert!(hits >= 490, "{hits} of 500");
}

#[test]
fn a_filter_that_lets_few_through_gets_all_of_them() {
    let (partition, vectors) = large(30_000);
    let query = [(SPACE, &vectors[3][..])];
    let probe = Probe { floor: Some(0.1), ..probe(&query, &[], 2000) };
    let found = partition.search(&probe, |key, &meta| key == meta && key % 100 == 3);
    assert!(found.exact, "three hundred were looked at one by one");
    assert_eq!(found.candidates.len(), 300);
    assert_eq!(found.candidates[0].key, 3);
}

#[test]
fn frequent_words_count_for_what_rarer_words_found() {
    let (partition, _) = large(30_000);
    let statistics = partition.statistics(&[2, 1009]);
    assert_eq!(statistics.frequencies, [4286, 30]);
    let terms = [QueryTerm { hash: 2, weight: 1.0 }, QueryTerm { hash: 1009, weight: 5.0 }];
    let found = partition.search(&probe(&[], &terms, 5), |_, _| true);
    let mut best = found.candidates.clone();
    best.sort_by(|a, b| b.lexical.total_cmp(&a.lexical));
    assert!(best[0].lexical > 5.9, "both words: {:?}", best[0]);
    assert_eq!((best[0].key % 7, best[0].key % 1000), (2, 9));
}

#[test]
fn a_hundred_thousand_equal_vectors_are_no_trouble() {
    let mut partition = Partition::new();
    let vector = Dice(1).vector();
    for key in (0..100_000u64).rev() {
        partition.put(key, (), Some(SPACE), &[Piece { vector: Some(&vector), terms: &[], length: 0 }]);
    }
    let found = partition.search(&probe(&[(SPACE, &vector)], &[], 3), |_, ()| true);
    let keys: Vec<u64> = found.candidates.iter().map(|candidate| candidate.key).collect();
    assert_eq!(keys, [0, 1, 2], "among equals those with the lowest keys");
}

#[test]
fn strange_input_finds_nothing_and_breaks_nothing() {
    let mut partition = Partition::new();
    let inputs: [&[f32]; 4] = [&[], &[f32::NAN; 3], &[f32::INFINITY, 0.0, 1.0], &[f32::MAX; 3]];
    for (key, vector) in (0..).zip(inputs) {
        let piece = Piece { vector: Some(vector), terms: &[(1, 0), (2, u32::MAX), (2, 5)], length: u32::MAX };
        partition.put(key, (), Some(SPACE), &[piece]);
    }
    partition.put(9, (), None, &[]);
    assert_eq!(partition.statistics(&[1, 2]).frequencies, [0, 4]);
    let weights = [f32::NAN, f32::INFINITY, -1.0, 0.0];
    let terms = weights.map(|weight| QueryTerm { hash: 2, weight });
    for vector in inputs {
        let vectors = [(SPACE, vector), (SpaceNo(5), vector)];
        let probe = Probe { bm25: Bm25::new(0.0), floor: Some(0.5), ..probe(&vectors, &terms, 10) };
        for candidate in partition.search(&probe, |_, ()| true).candidates {
            assert!(candidate.similarity.is_finite() && candidate.error.is_finite());
            assert_eq!(candidate.lexical, 0.0);
        }
    }
}

#[test]
fn slots_of_documents_that_went_are_used_again() {
    let mut dice = Dice(3);
    let mut partition = Partition::new();
    let mut put = |partition: &mut Partition<[u64; 8]>, key: u64| {
        let vector = dice.vector();
        let terms: Vec<(u64, u32)> = (0..12).map(|_| (dice.roll() % 5000, 1)).collect();
        partition.put(
            key,
            [key; 8],
            Some(SPACE),
            &[Piece { vector: Some(&vector), terms: &terms, length: 20 }],
        );
    };
    (0..5000).for_each(|key| put(&mut partition, key));
    let before = partition.bytes();
    for round in 1..10 {
        for key in 0..4000 {
            assert!(partition.remove((round - 1) * 10_000 + key).is_some());
            put(&mut partition, round * 10_000 + key);
        }
    }
    assert_eq!(partition.len(), 5000);
    assert!(partition.bytes() < before + before / 5, "{} after {before}", partition.bytes());
}

#[test]
fn moving_to_another_space_gives_the_memory_of_the_old_one_back() {
    let (mut partition, vectors) = large(20_000);
    let before = partition.bytes();
    for (key, vector) in (0..).zip(&vectors) {
        let terms = [(key % 7, 1), (1000 + key % 1000, 1)];
        partition.put(
            key,
            key,
            Some(SpaceNo(1)),
            &[Piece { vector: Some(vector), terms: &terms, length: 10 }],
        );
    }
    assert!(partition.bytes() < before + before / 10, "{} after {before}", partition.bytes());
}

#[test]
fn statistics_of_partitions_add_up() {
    let mut sum = TermStatistics::default();
    assert_eq!((sum.average_length(), sum.idf(0)), (1.0, (2.0f32).ln()));
    sum.add(&TermStatistics { pieces: 10, length: 100, frequencies: vec![1, 10] });
    sum.add(&TermStatistics { pieces: 30, length: 100, frequencies: vec![1, 30] });
    assert_eq!(sum, TermStatistics { pieces: 40, length: 200, frequencies: vec![2, 40] });
    assert_eq!(sum.average_length(), 5.0);
    assert!((sum.idf(0) - (1.0f32 + 38.5 / 2.5).ln()).abs() < 1e-6);
    assert!(sum.idf(1) > 0.0 && sum.idf(1) < 0.02);
}

#[test]
fn what_is_known_of_one_piece_does_not_help_another_over_the_floor() {
    // The first is similar enough for nobody, but known exactly; the second is known less exactly, but far away.
    let (exact, far) = ([0.0, 1.0, 0.0], [-1.0, 0.3, 0.4]);
    let pieces = [&exact, &far].map(|vector| Piece { vector: Some(vector), terms: &[], length: 0 });
    let mut partition = Partition::new();
    partition.put(1, (), Some(SPACE), &pieces);
    let query = [(SPACE, &[1.0, 0.0, 0.0][..])];
    let probe = Probe { floor: Some(1e-4), ..probe(&query, &[], 0) };
    for effort in [Effort::Complete, Effort::Bounded { promising: 1000, postings: 1000 }] {
        assert_eq!(partition.search_with(effort, &probe, |_, ()| true).candidates, []);
    }
}

#[test]
fn a_bounded_search_adds_words_up_as_a_complete_one_does() {
    // Words weigh by what the caller may see. Here the one that weighs most is the most frequent of all the same.
    let words = [1, 2, 3];
    let mut partition = Partition::new();
    partition.put(0, (), None, &[Piece { vector: None, terms: &words.map(|word| (word, 1)), length: 7 }]);
    for key in 1..60 {
        let terms = [(if key < 10 { 3 } else { 1 + key % 2 }, 1)];
        partition.put(key, (), None, &[Piece { vector: None, terms: &terms, length: 7 }]);
    }
    let mut dice = Dice(11);
    for _ in 0..100 {
        let mut weight = 4.0;
        let terms = words.map(|hash| {
            weight *= dice.roll() as f32 / (1u64 << 31) as f32;
            QueryTerm { hash, weight }
        });
        let best = partition.search_with(Effort::Complete, &probe(&[], &terms, 1), |_, ()| true);
        assert_eq!(best.candidates[0].key, 0, "it has all words");
        let above = Probe { lexical_floor: Some(best.candidates[0].lexical), ..probe(&[], &terms, 0) };
        for effort in [Effort::Complete, Effort::Bounded { promising: 1000, postings: 1000 }] {
            assert_eq!(partition.search_with(effort, &above, |_, ()| true).candidates, [], "for {terms:?}");
        }
    }
}
