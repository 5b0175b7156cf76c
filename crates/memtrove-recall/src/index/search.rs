//! How a partition is searched.
//!
//! Vectors and words each nominate documents; then every nominee is measured by both. Small partitions are looked
//! through completely. In large ones only the sketches are, and the vectors where these are promising; and of the
//! query's words the rarest nominate, until they have been looked up in enough pieces. Words that did not nominate
//! count all the same where they occur in a nominee.

use super::by_vector::VectorQuery;
use super::by_words::{WordQuery, WordScore};
use super::partition::Partition;
use super::probe::{Candidate, Probe, ProbeResult};

/// Partitions with no more pieces are looked through completely: it takes half a millisecond.
const SMALL: usize = 20_000;

/// This many documents are asked about together, so that several are on their way from memory at once.
pub(super) const ASKED_TOGETHER: usize = 512;

/// How closely a partition is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    Complete,
    Bounded {
        /// This many documents with promising sketches are looked at more closely.
        promising: usize,
        /// This many postings are read, or those of the rarest term.
        postings: usize,
    },
}

impl Effort {
    /// For large partitions. A closer look at a thousand documents takes a tenth of a millisecond, and misses 0.4 % of
    /// the true ten best among 768,000 sentences; reading the postings takes half a millisecond.
    const BOUNDED: Self = Self::Bounded { promising: 1024, postings: 1 << 18 };
}

impl<M> Partition<M> {
    /// Finds candidates among the documents that `allow` lets through. It may be asked more than once about one of
    /// them, and not at all about those that nothing speaks for.
    pub fn search(&self, probe: &Probe<'_>, allow: impl Fn(u64, &M) -> bool) -> ProbeResult {
        let small = probe.exact || self.pieces <= SMALL;
        self.search_with(if small { Effort::Complete } else { Effort::BOUNDED }, probe, allow)
    }

    pub(super) fn search_with(
        &self,
        effort: Effort,
        probe: &Probe<'_>,
        allow: impl Fn(u64, &M) -> bool,
    ) -> ProbeResult {
        let allow = |number| self.documents.get(number).is_some_and(|found| allow(found.key, &found.meta));
        let vectors = VectorQuery::of(probe);
        let words = WordQuery::new(self, probe);
        let mut nominees = Vec::new();
        let mut exact = true;
        for query in &vectors {
            exact &= query.nominate(self, probe, effort, &allow, &mut nominees);
        }
        exact &= words.nominate(self, probe, effort, &allow, &mut nominees);

        let mut allowed = None;
        let everybody = probe.floor.is_some_and(|floor| floor <= 0.0);
        if effort == Effort::Complete {
            let all: Vec<u32> = self.documents.numbers().filter(|&number| allow(number)).collect();
            allowed = Some(all.len());
            if everybody {
                nominees = all;
            }
        } else {
            exact &= !everybody;
        }
        nominees.sort_unstable();
        nominees.dedup();
        let measure = |number| self.measure(number, &vectors, &words);
        let mut candidates: Vec<Candidate> = nominees.into_iter().map(measure).collect();
        candidates.sort_unstable_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
        ProbeResult { candidates, allowed, exact }
    }

    /// Whether any document has more than one piece.
    pub(super) fn has_long_documents(&self) -> bool {
        self.pieces > self.len()
    }

    fn measure(&self, number: u32, vectors: &[VectorQuery], words: &WordQuery) -> Candidate {
        let best = vectors.iter().filter_map(|query| query.similarity(self, number)).reduce(|a, b| a.or(b));
        let (similarity, error) = best.map_or((0.0, 0.0), |best| (best.similarity, best.error));
        let WordScore { best: lexical, together } = words.score(self, number);
        Candidate { key: self.documents.key(number), similarity, error, lexical, together }
    }
}
