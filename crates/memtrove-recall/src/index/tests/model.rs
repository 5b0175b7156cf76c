//! What a partition should answer, computed the plainest way.

use super::super::{Bm25, Partition, Piece, Probe, QueryTerm, SpaceNo, TermStatistics};
use std::collections::BTreeMap;

/// A piece that owns what it is made of.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub vector: Option<Vec<f32>>,
    pub terms: Vec<(u64, u32)>,
    pub length: u32,
}

/// A document.
#[derive(Clone, Debug)]
pub struct Text {
    pub meta: u32,
    pub space: Option<SpaceNo>,
    pub parts: Vec<Part>,
}

/// All documents by key.
#[derive(Clone, Debug, Default)]
pub struct Model(pub BTreeMap<u64, Text>);

/// A query that owns what it is made of.
#[derive(Clone, Debug)]
pub struct Question {
    pub vectors: Vec<(SpaceNo, Vec<f32>)>,
    pub terms: Vec<u64>,
    pub want: usize,
    pub floor: Option<f32>,
    pub lexical_floor: Option<f32>,
    /// Only documents whose `meta` is below this are allowed.
    pub below: u32,
}

pub fn put(partition: &mut Partition<u32>, key: u64, text: &Text) {
    let pieces: Vec<Piece<'_>> = text
        .parts
        .iter()
        .map(|part| Piece { vector: part.vector.as_deref(), terms: &part.terms, length: part.length })
        .collect();
    partition.put(key, text.meta, text.space, &pieces);
}

impl Question {
    /// Asks with the weights that the statistics give.
    pub fn ask<R>(&self, statistics: &TermStatistics, ask: impl FnOnce(&Probe<'_>) -> R) -> R {
        let vectors: Vec<_> =
            self.vectors.iter().map(|(space, vector)| (*space, vector.as_slice())).collect();
        let terms = self.terms.iter().enumerate();
        let terms: Vec<_> = terms.map(|(n, &hash)| QueryTerm { hash, weight: statistics.idf(n) }).collect();
        ask(&Probe {
            vectors: &vectors,
            terms: &terms,
            bm25: Bm25::new(statistics.average_length()),
            want: self.want,
            floor: self.floor,
            lexical_floor: self.lexical_floor,
            exact: false,
        })
    }
}

impl Model {
    pub fn build<'a>(texts: impl Iterator<Item = (&'a u64, &'a Text)>) -> Partition<u32> {
        let mut partition = Partition::new();
        texts.for_each(|(&key, text)| put(&mut partition, key, text));
        partition
    }

    pub fn statistics(&self, terms: &[u64]) -> TermStatistics {
        let parts = || self.0.values().flat_map(|text| &text.parts).filter(|part| !part.terms.is_empty());
        let having =
            |term: &u64| parts().filter(|part| part.terms.iter().any(|(hash, _)| hash == term)).count();
        TermStatistics {
            pieces: parts().count() as u64,
            length: parts().map(|part| u64::from(part.length)).sum(),
            frequencies: terms.iter().map(|term| having(term) as u64).collect(),
        }
    }

    /// The same, where a document counts once however many of its pieces have a term.
    pub fn document_statistics(&self, terms: &[u64], below: u32) -> TermStatistics {
        let allowed = || self.0.values().filter(|text| text.meta < below);
        let has = |text: &&Text, is: &dyn Fn(u64) -> bool| {
            text.parts.iter().flat_map(|part| &part.terms).any(|(hash, _)| is(*hash))
        };
        let having = |term: u64| allowed().filter(|text| has(text, &|hash| hash == term)).count() as u64;
        TermStatistics {
            pieces: allowed().filter(|text| has(text, &|_| true)).count() as u64,
            length: 0,
            frequencies: terms.iter().map(|term| having(*term)).collect(),
        }
    }

    /// The cosine of a document's best piece; `None` without a vector to compare.
    pub fn similarity(&self, key: u64, question: &Question) -> Option<f64> {
        let text = &self.0[&key];
        let queries = question
            .vectors
            .iter()
            .filter(|(space, query)| Some(*space) == text.space && length(query) > 0.0);
        let cosines = queries.flat_map(|(_, query)| {
            let vectors = text.parts.iter().filter_map(|part| part.vector.as_ref());
            vectors.filter(|vector| vector.len() == query.len()).map(|vector| cosine(query, vector))
        });
        cosines.reduce(f64::max)
    }

    /// The BM25 score of a document's best piece, and of each term where it scores most.
    pub fn lexical(&self, key: u64, question: &Question) -> (f64, f64) {
        let statistics = self.statistics(&question.terms);
        let bm25 = Bm25::new(statistics.average_length());
        let (k1, b) = (f64::from(bm25.k1), f64::from(bm25.b));
        let scores = |part: &Part| {
            let norm = k1 * (1.0 - b + b * f64::from(part.length) / f64::from(bm25.average_length.max(1.0)));
            let terms = question.terms.iter().enumerate().map(|(n, term)| {
                let of_term = part.terms.iter().filter(|(hash, _)| hash == term);
                let frequency = f64::from(of_term.map(|(_, frequency)| frequency).sum::<u32>().min(15));
                f64::from(statistics.idf(n)) * (k1 + 1.0) * frequency / (frequency + norm)
            });
            terms.collect::<Vec<f64>>()
        };
        let parts: Vec<Vec<f64>> = self.0[&key].parts.iter().map(scores).collect();
        let best = parts.iter().map(|part| part.iter().sum()).fold(0.0, f64::max);
        let most = |n: usize| parts.iter().map(|part| part[n]).fold(0.0, f64::max);
        (best, (0..question.terms.len()).map(most).sum())
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    let lengths = length(a) * length(b);
    if lengths == 0.0 { 0.0 } else { dot / lengths }
}

fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}
