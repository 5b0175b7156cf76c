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
        self.search_with(self.effort(probe), probe, allow)
    }

    /// The keys of the documents that [`Partition::search`] would measure, in ascending order.
    pub fn nominate(&self, probe: &Probe<'_>, allow: impl Fn(u64, &M) -> bool) -> Vec<u64> {
        let (effort, allow) = (self.effort(probe), self.by_number(&allow));
        let (vectors, words) = (VectorQuery::of(probe), WordQuery::new(self, probe));
        let (nominees, _) = self.nominees(effort, probe, &vectors, &words, &allow);
        let mut keys: Vec<u64> = nominees.into_iter().map(|number| self.documents.key(number)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Measures documents by vectors and words, in their order. Those that are not there are left out.
    pub fn measure(&self, probe: &Probe<'_>, keys: impl IntoIterator<Item = u64>) -> Vec<Candidate> {
        let (vectors, words) = (VectorQuery::of(probe), WordQuery::new(self, probe));
        let numbers = keys.into_iter().filter_map(|key| self.documents.find(key));
        numbers.map(|number| self.measured(number, &vectors, &words)).collect()
    }

    pub(super) fn search_with(
        &self,
        effort: Effort,
        probe: &Probe<'_>,
        allow: impl Fn(u64, &M) -> bool,
    ) -> ProbeResult {
        let allow = self.by_number(&allow);
        let vectors = VectorQuery::of(probe);
        let words = WordQuery::new(self, probe);
        let (mut nominees, mut exact) = self.nominees(effort, probe, &vectors, &words, &allow);

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
        let measure = |number| self.measured(number, &vectors, &words);
        let mut candidates: Vec<Candidate> = nominees.into_iter().map(measure).collect();
        candidates.sort_unstable_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
        ProbeResult { candidates, allowed, exact }
    }

    fn effort(&self, probe: &Probe<'_>) -> Effort {
        if probe.exact || self.pieces <= SMALL { Effort::Complete } else { Effort::BOUNDED }
    }

    fn by_number(&self, allow: &impl Fn(u64, &M) -> bool) -> impl Fn(u32) -> bool {
        move |number| self.documents.get(number).is_some_and(|found| allow(found.key, &found.meta))
    }

    /// What vectors and words nominate, some of it twice, and whether nobody at the floors was overlooked.
    fn nominees(
        &self,
        effort: Effort,
        probe: &Probe<'_>,
        vectors: &[VectorQuery],
        words: &WordQuery,
        allow: &impl Fn(u32) -> bool,
    ) -> (Vec<u32>, bool) {
        let mut nominees = Vec::new();
        let mut exact = true;
        for query in vectors {
            exact &= query.nominate(self, probe, effort, allow, &mut nominees);
        }
        exact &= words.nominate(self, probe, effort, allow, &mut nominees);
        (nominees, exact)
    }

    /// Whether any document has more than one piece.
    pub(super) fn has_long_documents(&self) -> bool {
        self.pieces > self.len()
    }

    fn measured(&self, number: u32, vectors: &[VectorQuery], words: &WordQuery) -> Candidate {
        let best = vectors.iter().filter_map(|query| query.similarity(self, number)).reduce(|a, b| a.or(b));
        let (similarity, error) = best.map_or((0.0, 0.0), |best| (best.similarity, best.error));
        let WordScore { best: lexical, together, terms } = words.score(self, number);
        Candidate { key: self.documents.key(number), similarity, error, lexical, together, terms }
    }
}
