//! How fast the index is, how large, and how much of the truth it finds.
//!
//! ```text
//! cargo run --release -p memtrove-recall --example index_speed -- [--kernels avx2] [1000 10000 …]
//! ```
//!
//! Texts are made up as people make them: of words that are common or rare by Zipf's law and belong to topics. A text's
//! vector is the sum of its words' vectors, as in a static model, all leaning to one side as those of real models do.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program to be looked at")]

use memtrove_recall::index::{Bm25, Partition, Piece, Probe, QueryTerm, SpaceNo, rescore};
use memtrove_simd::search::Kernels;
use std::time::{Duration, Instant};

const DIMENSIONS: usize = 256;
const WORDS: usize = 200_000;
const WORD_VECTORS: usize = 30_000;
const TOPICS: u64 = 2000;
const WORDS_PER_TEXT: usize = 13;
const WORDS_PER_QUERY: usize = 7;
const QUERIES: usize = 200;
const SPACE: SpaceNo = SpaceNo(0);

type Meta = [u64; 8];

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--kernels") {
        let name = arguments.drain(at..at + 2).nth(1).unwrap();
        Kernels::available().into_iter().find(|set| set.name() == name).unwrap().prefer();
    }
    let sizes: Vec<usize> = match arguments.as_slice() {
        [] => vec![1000, 10_000, 100_000, 1_000_000],
        sizes => sizes.iter().map(|size| size.parse().unwrap()).collect(),
    };
    println!("kernels: {}", Kernels::best().name());
    println!(
        "documents |  build s |    MB | vectors p50   p99 ms | + words p50   p99 ms | 1 % allowed p50 | recall@10"
    );
    let language = Language::new();
    sizes.into_iter().for_each(|size| measure(&language, size));
}

fn measure(language: &Language, size: usize) {
    let mut dice = Dice(size as u64);
    let mut partition = Partition::<Meta>::new();
    let mut vectors = Vec::with_capacity(size * DIMENSIONS);
    let mut building = Duration::ZERO;
    for key in 0..size as u64 {
        let (vector, terms) = language.text(&mut dice, WORDS_PER_TEXT);
        let piece = Piece { vector: Some(&vector), terms: &terms, length: WORDS_PER_TEXT as u32 };
        let started = Instant::now();
        partition.put(key, [key; 8], Some(SPACE), &[piece]);
        building += started.elapsed();
        vectors.extend(vector);
    }
    let [mut by_vectors, mut by_both, mut filtered] = [(); 3].map(|()| Vec::with_capacity(QUERIES));
    let mut hits = 0;
    for _ in 0..QUERIES {
        let (query, words) = language.text(&mut dice, WORDS_PER_QUERY);
        let query_vectors = [(SPACE, query.as_slice())];
        let probe = Probe {
            vectors: &query_vectors,
            terms: &[],
            bm25: Bm25::new(1.0),
            want: 50,
            floor: None,
            lexical_floor: None,
            exact: false,
        };
        let started = Instant::now();
        let found = partition.search(&probe, |_, meta| meta[0] < u64::MAX);
        by_vectors.push(started.elapsed());

        let started = Instant::now();
        let hashes: Vec<u64> = words.iter().map(|(hash, _)| *hash).collect();
        let statistics = partition.statistics(&hashes);
        let weigh = |(n, &hash)| QueryTerm { hash, weight: statistics.idf(n) };
        let terms: Vec<QueryTerm> = hashes.iter().enumerate().map(weigh).collect();
        let both = Probe { terms: &terms, bm25: Bm25::new(statistics.average_length()), ..probe };
        std::hint::black_box(partition.search(&both, |_, meta| meta[0] < u64::MAX));
        by_both.push(started.elapsed());

        let started = Instant::now();
        std::hint::black_box(partition.search(&both, |_, meta| meta[0] % 100 == 1));
        filtered.push(started.elapsed());

        let mut truth: Vec<(f32, u64)> =
            vectors.chunks_exact(DIMENSIONS).map(|vector| rescore(&query, vector)).zip(0..).collect();
        truth.select_nth_unstable_by(10, |a, b| b.0.total_cmp(&a.0));
        let is_found = |key: u64| found.candidates.iter().any(|candidate| candidate.key == key);
        hits += truth[..10].iter().filter(|(_, key)| is_found(*key)).count();
    }
    let [(vectors_50, vectors_99), (both_50, both_99), (filtered_50, _)] =
        [by_vectors, by_both, filtered].map(percentiles);
    println!(
        "{size:9} | {:8.2} | {:5.1} | {vectors_50:11.3} {vectors_99:8.3} | {both_50:11.3} {both_99:8.3} | {filtered_50:15.3} | {:.4}",
        building.as_secs_f64(),
        partition.bytes() as f64 / 1e6,
        hits as f64 / (10 * QUERIES) as f64,
    );
}

/// The median and the 99th percentile in milliseconds.
fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let at = |part: f64| times[(times.len() as f64 * part) as usize].as_secs_f64() * 1e3;
    (at(0.5), at(0.99))
}

/// Words with their vectors.
struct Language {
    vectors: Vec<f32>,
}

impl Language {
    fn new() -> Self {
        let mut dice = Dice(1);
        let lean: Vec<f32> = (0..DIMENSIONS).map(|_| dice.normal()).collect();
        // As in real models, some directions tell much more than others.
        let spread: Vec<f32> = (0..DIMENSIONS).map(|n| 1.5 / (1.0 + n as f32 / 40.0)).collect();
        let word = |n: usize| {
            let mut topic = Dice(1000 + n as u64 % TOPICS);
            let mut own = Dice(1_000_000 + n as u64);
            let parts: Vec<f32> = (0..DIMENSIONS)
                .map(|d| 0.12 * lean[d] + spread[d] * (0.5 * topic.normal() + 0.8 * own.normal()))
                .collect();
            parts
        };
        Self { vectors: (0..WORD_VECTORS).flat_map(word).collect() }
    }

    /// A text's vector, and its words.
    fn text(&self, dice: &mut Dice, words: usize) -> (Vec<f32>, Vec<(u64, u32)>) {
        let topic = dice.next() % TOPICS;
        let mut ids: Vec<u64> = (0..words)
            .map(|_| {
                let word = dice.zipf(WORDS);
                // Every other word is about the topic.
                if dice.next().is_multiple_of(2) { word } else { word - word % TOPICS + topic }
            })
            .collect();
        let mut vector = vec![0.0; DIMENSIONS];
        for &id in &ids {
            let word = &self.vectors[id as usize % WORD_VECTORS * DIMENSIONS..][..DIMENSIONS];
            // Rare words say more.
            let weight = 1.0 + (1.0 + id as f32).ln() / 4.0;
            vector.iter_mut().zip(word).for_each(|(sum, x)| *sum += weight * x);
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
        ids.sort_unstable();
        let terms = ids.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect();
        (vector, terms)
    }
}

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Nearly normal.
    fn normal(&mut self) -> f32 {
        ((0..6).map(|_| self.unit()).sum::<f64>() - 3.0) as f32 * 1.4
    }

    /// A rank by Zipf's law.
    fn zipf(&mut self, ranks: usize) -> u64 {
        ((ranks as f64).powf(self.unit()) - 1.0) as u64
    }
}
