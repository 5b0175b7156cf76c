//! Finding entries of a large scope, which the database searches: it names candidates, by meaning and by words. What is
//! admitted, how it is scored and in which order it comes is decided here, from what is stored, as for every other scope.

use super::{Admission, Matches, ScopeSearch, Words, nearest, passing_filter};
use memtrove_core::memories::{Kind, Viewer};
use memtrove_core::recall::relevance::score_by_time_alone;
use memtrove_core::{Error, Result, Timestamp};
use memtrove_recall::embed::Space;
use memtrove_recall::index::{QueryTerm, TermStatistics};
use memtrove_store::memories::index::Indexed;
use memtrove_store::memories::scopes::ScopeRow;
use memtrove_store::memories::{entries, index};
use memtrove_store::vectors::{
    Care, Named, PrivateOwner, TermCounts, VectorFilter, VectorIndex, VisibleTo, WordQuery,
};
use memtrove_store::{StoreError, Tx};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// The fewest and the most entries that are named.
const NAMED: (usize, usize) = (128, 4_096);
/// The factor by which more entries are named when too few of those named are admitted.
const MORE: usize = 8;
/// The most entries that are counted where an estimate will do.
const COUNTED: i64 = 10_000;
/// The rarest words name all entries that have them, as long as these are no more than this together.
const COMMON_WORDS: u64 = 2_048;
/// How far a similarity in half precision may be from what it is in full.
const ERROR: f32 = 5e-4;
/// Entries that are read at a time.
const BATCH: i64 = 1_000;

/// How common some words are in a scope, among what everybody sees who has it; of words that are rare, also among what the
/// viewer alone sees.
pub(super) fn statistics(
    tx: &mut dyn Tx,
    row: ScopeRow,
    viewer: &Viewer,
    terms: &[u64],
) -> Result<TermStatistics> {
    let owner = PrivateOwner { user: viewer.user.as_deref(), client: viewer.client.as_deref() };
    let TermCounts { entries, counts } = vectors(tx)?.term_counts(row.no.0, owner, terms)?;
    Ok(TermStatistics {
        pieces: entries.unsigned_abs(),
        // How long entries are decides nothing here.
        length: 0,
        frequencies: counts.into_iter().map(i64::unsigned_abs).collect(),
    })
}

/// How many entries of a scope are admitted.
pub(super) fn count(tx: &mut dyn Tx, row: ScopeRow, admission: &Admission<'_>) -> Result<usize> {
    let kinds = kinds(admission);
    count_filtered(tx, row, admission, filter(admission, kinds.as_deref()), None)
}

fn count_filtered(
    tx: &mut dyn Tx,
    row: ScopeRow,
    admission: &Admission<'_>,
    filter: VectorFilter<'_>,
    most: Option<i64>,
) -> Result<usize> {
    let VisibleTo::Perhaps(owner) = filter.visible_to else {
        return Ok(vectors(tx)?.count(row.no.0, &filter, most)? as usize);
    };
    let certain = VectorFilter { visible_to: VisibleTo::Surely(owner), ..filter };
    let mut counted = vectors(tx)?.count(row.no.0, &certain, most)? as usize;
    let unsure = VectorFilter { visible_to: VisibleTo::Unsure, ..filter };
    let mut after = 0;
    while most.is_none_or(|most| counted < most as usize) {
        let named = vectors(tx)?.list(row.no.0, &unsure, after, BATCH)?;
        let Some(last) = named.last() else { break };
        after = last.no;
        counted += load(tx, row, &named)?.iter().filter(|one| admission.admits_indexed(one)).count();
    }
    Ok(counted)
}

fn vectors(tx: &mut dyn Tx) -> Result<&mut dyn VectorIndex> {
    tx.vectors().ok_or_else(|| Error::internal("the store finds no vectors"))
}

/// The kinds that conditions admit, unless they are all.
fn kinds(admission: &Admission<'_>) -> Option<Vec<i64>> {
    let admitted: Vec<i64> = Kind::ALL
        .into_iter()
        .filter(|kind| admission.conditions.admits_kind(*kind))
        .map(Kind::code)
        .collect();
    (admitted.len() < Kind::ALL.len()).then_some(admitted)
}

fn filter<'a>(admission: &Admission<'a>, kinds: Option<&'a [i64]>) -> VectorFilter<'a> {
    let Viewer { user, client, team: _, all } = admission.viewer;
    let owner = PrivateOwner { user: user.as_deref(), client: client.as_deref() };
    VectorFilter {
        now: admission.now.as_micros(),
        kinds,
        state: admission.conditions.state.map(|state| state.code()),
        from: admission.conditions.from.map(Timestamp::as_micros),
        to: admission.conditions.to.map(Timestamp::as_micros),
        until: admission.until.map(Timestamp::as_micros),
        visible_to: if *all { VisibleTo::Everything } else { VisibleTo::Perhaps(owner) },
        only: None,
        with_vector: false,
        terms: &[],
    }
}

fn load(tx: &mut dyn Tx, row: ScopeRow, named: &[Named]) -> Result<Vec<Indexed>, StoreError> {
    let changes: Vec<i64> = named.iter().map(|named| named.seq).collect();
    index::at(tx, row.no, &changes)
}

/// Those that were named in a scope so far.
struct Nominees<'a> {
    row: ScopeRow,
    admission: Admission<'a>,
    filter: VectorFilter<'a>,
    /// `None` for those that are not admitted.
    named: HashMap<i64, Option<Indexed>>,
}

impl Nominees<'_> {
    /// Looks at some; answers how similar those are that are admitted and match.
    fn take(
        &mut self,
        tx: &mut dyn Tx,
        named: &[Named],
        similarity: impl Fn(&Indexed) -> Option<f32>,
    ) -> Result<Vec<f32>> {
        let fresh: Vec<Named> =
            named.iter().filter(|one| !self.named.contains_key(&one.no)).copied().collect();
        let mut loaded = load(tx, self.row, &fresh)?;
        loaded.retain(|one| self.admission.admits_indexed(one));
        let conditions = &self.admission.conditions.filter;
        if !conditions.is_empty() {
            let numbers: Vec<i64> = loaded.iter().map(|one| one.no.0).collect();
            let entries = entries::with_numbers(tx, &numbers)?;
            let passing = entries.iter().filter(|stored| conditions.matches(&stored.memory));
            let passing: HashSet<i64> = passing.map(|stored| stored.no.0).collect();
            loaded.retain(|one| passing.contains(&one.no.0));
        }
        self.named.extend(fresh.iter().map(|one| (one.no, None)));
        self.named.extend(loaded.into_iter().map(|one| (one.no.0, Some(one))));
        let mut counted = HashSet::with_capacity(named.len());
        // An entry is named once for each of its pieces that is near.
        let named = named.iter().filter(|one| counted.insert(one.no));
        let admitted = named.filter_map(|one| self.named.get(&one.no)?.as_ref());
        Ok(admitted.filter_map(similarity).collect())
    }

    /// Looks at all that the filter lets pass, as far as these are not too many; says whether they were not.
    fn take_all(&mut self, tx: &mut dyn Tx) -> Result<bool> {
        let mut after = 0;
        let mut looked_at = 0;
        while looked_at < NAMED.1 {
            let named = vectors(tx)?.list(self.row.no.0, &self.filter, after, BATCH)?;
            let Some(last) = named.last() else { return Ok(true) };
            after = last.no;
            looked_at += named.len();
            self.take(tx, &named, |_| None)?;
        }
        Ok(false)
    }

    /// Looks at more and more, until enough are admitted; says whether there are no others, and whether those are enough.
    fn ask(
        &mut self,
        tx: &mut dyn Tx,
        want: usize,
        list: impl Fn(&mut dyn VectorIndex, &VectorFilter<'_>, usize) -> Result<Vec<Named>, StoreError>,
        similarity: impl Fn(&Indexed) -> Option<f32>,
    ) -> Result<(bool, bool)> {
        let (mut limit, most) = (limit(want), NAMED.1);
        loop {
            let named = list(vectors(tx)?, &self.filter, limit)?;
            let similar = self.take(tx, &named, &similarity)?;
            let (all, enough) = (named.len() < limit, similar.len() >= want);
            if all || (enough && tells_apart(similar, want)) || limit == most {
                return Ok((all, enough));
            }
            limit = (limit * MORE).min(most);
        }
    }
}

/// How many are named at first to find `want`. There are few different limits, since each makes a statement.
fn limit(want: usize) -> usize {
    (2 * want).next_power_of_two().clamp(NAMED.0, NAMED.1)
}

/// Whether the best are so far from the last that no entry that was not named can be among them. Words tell apart by themselves.
fn tells_apart(mut similar: Vec<f32>, want: usize) -> bool {
    similar.sort_unstable_by(|a, b| b.total_cmp(a));
    match (want.checked_sub(1).and_then(|at| similar.get(at)), similar.last()) {
        (Some(wanted), Some(last)) => wanted - last > ERROR,
        _ => true,
    }
}

impl ScopeSearch<'_> {
    /// As [`ScopeSearch::search_ram`], where the database has the index.
    pub(super) fn search_database(
        &self,
        tx: &mut dyn Tx,
        words: &Words,
        here: &TermStatistics,
        matches: &mut Matches,
    ) -> Result<()> {
        let query = self.query;
        let admission = query.admission(self.span.until);
        let kinds = kinds(&admission);
        let filter = filter(&admission, kinds.as_deref());
        let mut nominees = Nominees { row: self.row, admission, filter, named: HashMap::new() };
        let asked = if query.uses_words() { words.rarest_first(&here.frequencies) } else { Vec::new() };
        let exact = self.name(tx, &mut nominees, words, &asked)?;
        let has_vector = !query.vectors.is_empty();
        if let Some(window) = query.time.filter(|_| !exact) {
            // The best of that time may not be among the best of all times.
            let last = window.to.saturating_add_micros(-1);
            nominees.filter =
                VectorFilter { from: Some(window.from.as_micros()), to: Some(last.as_micros()), ..filter };
            self.name(tx, &mut nominees, words, &asked)?;
        }
        let mut exact = exact;
        let mut total = None;
        if let Some(window) = query.time.filter(|_| query.time_alone && !(exact && has_vector)) {
            // It is found by a time that what was written again later may have left.
            exact = false;
            let last = window.to.saturating_add_micros(-1);
            nominees.filter = VectorFilter {
                from: Some(window.from.as_micros()),
                to: Some(last.as_micros()),
                with_vector: has_vector,
                ..filter
            };
            let all = nominees.take_all(tx)?;
            if !all && score_by_time_alone() >= query.threshold && query.conditions.filter.is_empty() {
                let filter = nominees.filter;
                total = Some(count_filtered(tx, self.row, &nominees.admission, filter, Some(COUNTED))?);
            }
        }
        if query.matches_everything() && !exact && query.conditions.filter.is_empty() {
            let filter = VectorFilter { with_vector: true, ..filter };
            let counted = count_filtered(tx, self.row, &nominees.admission, filter, Some(COUNTED))?;
            exact = counted < COUNTED as usize;
            // Beyond that it is about as much as there is for everybody. How much there is altogether, the viewer may not know.
            total = Some(counted.max(if exact { 0 } else { here.pieces as usize }));
        }
        let admitted = nominees.named.into_values().flatten();
        // In the order in which an index in memory adds up what they are worth.
        let mut terms: Vec<QueryTerm> = asked.iter().map(|word| word.term).collect();
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.hash.cmp(&b.hash)));
        let estimates = admitted.filter_map(|one| self.exact(words, &terms, one)).collect();
        self.keep(estimates, total, exact, matches);
        Ok(())
    }

    /// Names those that mean what is looked for or have some of its words; says whether none was overlooked.
    fn name(
        &self,
        tx: &mut dyn Tx,
        nominees: &mut Nominees<'_>,
        words: &Words,
        asked: &[QueryWord],
    ) -> Result<bool> {
        let mut exact = true;
        if !self.query.words_required {
            for vector in &self.query.vectors {
                exact &= self.name_by_vector(tx, nominees, &vector.space, &vector.vector)?;
            }
        }
        if self.query.uses_words() {
            exact &= self.name_by_words(tx, nominees, words, asked)?;
        }
        Ok(exact)
    }

    /// Names those that mean what is looked for; says whether none was overlooked.
    fn name_by_vector(
        &self,
        tx: &mut dyn Tx,
        nominees: &mut Nominees<'_>,
        space: &Space,
        vector: &[f32],
    ) -> Result<bool> {
        let scope = self.row.no;
        let similarity = |one: &Indexed| {
            let made = one.embedding.as_ref()?;
            (Space::of(&made.model).as_ref() == Some(space)).then(|| nearest(vector, made))
        };
        let list = |care: Care| {
            move |index: &mut dyn VectorIndex, filter: &VectorFilter<'_>, limit: usize| {
                index.nearest(scope.0, vector, filter, limit, care)
            }
        };
        let (all, enough) = nominees.ask(tx, self.query.want, list(Care::Quick), similarity)?;
        if !all && enough {
            return Ok(false);
        }
        // So few are admitted that the walk along the index ended before it had enough of them: now they are looked at one by
        // one, those only that a filter lets pass.
        let passing = passing_filter(tx, scope, self.query)?;
        let passing: Option<Vec<i64>> = passing.map(|only| only.into_iter().map(|no| no as i64).collect());
        let before = nominees.filter;
        let named = {
            let filter = VectorFilter { only: passing.as_deref(), ..before };
            vectors(tx)?.nearest(scope.0, vector, &filter, NAMED.1, Care::Exact)?
        };
        nominees.take(tx, &named, similarity)?;
        Ok(named.len() < NAMED.1)
    }

    /// Names those that have some of the rarest words, and of those that have others the most similar; says whether none was
    /// overlooked.
    fn name_by_words(
        &self,
        tx: &mut dyn Tx,
        nominees: &mut Nominees<'_>,
        words: &Words,
        asked: &[QueryWord],
    ) -> Result<bool> {
        let query = self.query;
        let mut together = 0;
        let there = asked.iter().filter(|word| word.frequency > 0);
        let (rare, common): (Vec<&QueryWord>, Vec<&QueryWord>) = there.partition(|word| {
            together += word.frequency;
            together <= COMMON_WORDS
        });
        let all = self.name_by(tx, nominees, asked, &rare, &[])?;
        // Entries that have only words that many have: all of those words, or the rarest of them.
        let rarest = if common.len() > 1 { &common[..1] } else { &[] };
        for some in [&common[..], rarest] {
            let worth: f32 = some.iter().map(|word| word.term.weight).sum();
            if some.is_empty() || words.asked(None).coverage(f64::from(worth)) <= 0.0 {
                continue;
            }
            let hashes: Vec<u64> = some.iter().map(|word| word.term.hash).collect();
            match query.vectors.first().filter(|_| !query.words_required) {
                Some(vector) => {
                    let filter = VectorFilter { terms: &hashes, ..nominees.filter };
                    let limit = limit(query.want) / 2;
                    let named =
                        vectors(tx)?.nearest(self.row.no.0, &vector.vector, &filter, limit, Care::Brief)?;
                    nominees.take(tx, &named, |_| None)?;
                }
                None => {
                    self.name_by(tx, nominees, asked, &some[..1], &hashes)?;
                }
            }
        }
        Ok(all && common.is_empty())
    }

    /// Names those that have some of these words and all of those; says whether none was overlooked.
    fn name_by(
        &self,
        tx: &mut dyn Tx,
        nominees: &mut Nominees<'_>,
        asked: &[QueryWord],
        some: &[&QueryWord],
        all: &[u64],
    ) -> Result<bool> {
        let query = self.query;
        if some.is_empty() {
            return Ok(true);
        }
        let some: Vec<u64> = some.iter().map(|word| word.term.hash).collect();
        let worth: Vec<(u64, f64)> =
            asked.iter().map(|word| (word.term.hash, f64::from(word.term.weight))).collect();
        let vector = query.vectors.first().filter(|_| !query.words_required);
        let vector = vector.map(|vector| vector.vector.as_slice());
        let words = WordQuery { some: &some, worth: &worth, vector };
        let list = |index: &mut dyn VectorIndex, filter: &VectorFilter<'_>, limit: usize| {
            index.with_terms(self.row.no.0, &words, &VectorFilter { terms: all, ..*filter }, limit)
        };
        // The further down, the fewer of the words.
        let rank = Cell::new(0.0);
        let (complete, _) = nominees.ask(tx, query.want, list, |_| {
            rank.set(rank.get() - 1.0);
            Some(rank.get())
        })?;
        Ok(complete)
    }
}

/// A word of a query.
struct QueryWord {
    term: QueryTerm,
    /// How many entries of the scope have it.
    frequency: u64,
}

impl Words {
    fn rarest_first(&self, frequencies: &[u64]) -> Vec<QueryWord> {
        let words = self.terms.iter().zip(frequencies.iter().copied());
        let mut words: Vec<QueryWord> =
            words.map(|(term, frequency)| QueryWord { term: *term, frequency }).collect();
        words.sort_by_key(|word| (word.frequency, word.term.hash));
        words
    }
}
