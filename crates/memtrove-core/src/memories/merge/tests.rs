use super::*;
use crate::recall::relevance::Relevance;
use proptest::prelude::*;
use uuid::Uuid;

#[derive(Debug, Clone)]
struct Entry {
    matched: Match,
    content: String,
    vector: Option<Vec<f32>>,
}

impl Entry {
    fn text(&self) -> Text {
        Text { profile: Profile::of(&self.content), vector: self.vector.clone() }
    }
}

fn entry(id: u128, layer: Layer, score: f64, content: &str) -> Entry {
    let id = MemoryId(Uuid::from_u128(id));
    let updated_at = Timestamp::from_micros(0);
    Entry {
        matched: Match {
            id,
            key: 0,
            layer,
            evidence: Relevance::of_meaning(score),
            cosine: score,
            relevance: 1.0,
            at: updated_at,
            is_dated: false,
            updated_at,
            conflict_key: None,
            overridden_by: None,
        },
        content: content.to_owned(),
        vector: None,
    }
}

const ALL: Options = Options {
    limit: 100,
    ranking: Ranking::Precedence,
    dedupe: true,
    include_overridden: false,
    clusters: false,
};

/// Walks as a caller does: batch by batch, reading only what is wanted. Also returns how many texts were read.
fn walk(entries: &[Entry], options: Options) -> (Vec<Match>, usize) {
    let mut ordered: Vec<&Entry> = entries.iter().collect();
    ordered.sort_by(|a, b| a.matched.by_precedence(&b.matched));
    let mut walk = Walk::new(options, ordered.iter().map(|entry| &entry.matched));
    let mut read = 0;
    for batch in ordered.chunks(4) {
        if walk.is_full() {
            break;
        }
        let wanted: Vec<bool> = batch.iter().map(|entry| walk.wants_text(&entry.matched)).collect();
        for (entry, wanted) in batch.iter().zip(wanted) {
            read += usize::from(wanted);
            walk.offer(entry.matched.clone(), wanted.then(|| entry.text()));
        }
    }
    (walk.finish(), read)
}

fn ids(entries: &[Entry], options: Options) -> Vec<u128> {
    walk(entries, options).0.iter().map(|survivor| survivor.id.0.as_u128()).collect()
}

#[test]
fn the_layer_comes_first_then_score_relevance_latest_change_and_id() {
    let mut entries = vec![
        entry(1, Layer::Project, 0.99, "a"),
        entry(2, Layer::User, 0.7, "b"),
        entry(3, Layer::User, 0.8, "c"),
        entry(4, Layer::User, 0.8, "d"),
        entry(5, Layer::User, 0.8, "e"),
        entry(6, Layer::User, 0.8, "f"),
    ];
    entries[3].matched.relevance = 0.5;
    entries[4].matched.updated_at = Timestamp::from_micros(1);
    (entries[5].matched.is_dated, entries[5].matched.at) = (true, Timestamp::from_micros(-1));
    assert_eq!(ids(&entries, ALL), [5, 3, 6, 4, 2, 1], "the sixth happened before the third was changed");
    assert_eq!(ids(&entries, Options { ranking: Ranking::Score, ..ALL }), [1, 5, 3, 6, 4, 2]);
    assert_eq!(ids(&entries, Options { ranking: Ranking::Score, limit: 2, ..ALL }), [1, 5]);
}

#[test]
fn the_more_specific_layer_survives_also_when_scores_rank() {
    let entries = [entry(1, Layer::Company, 0.9, "Use tabs."), entry(2, Layer::User, 0.8, "use tabs")];
    assert_eq!(ids(&entries, ALL), [2]);
    assert_eq!(ids(&entries, Options { ranking: Ranking::Score, ..ALL }), [2]);
    assert_eq!(ids(&entries, Options { dedupe: false, ..ALL }), [2, 1]);
}

#[test]
fn twenty_duplicates_do_not_hide_distinct_results() {
    let mut entries: Vec<Entry> = (0..20).map(|id| entry(id, Layer::User, 0.9, "the same again")).collect();
    entries.extend((20..30).map(|id| entry(id, Layer::User, 0.8, &format!("distinct {id}"))));
    let expected: Vec<u128> = std::iter::once(0).chain(20..29).collect();
    assert_eq!(ids(&entries, Options { limit: 10, ..ALL }), expected);
}

#[test]
fn no_more_is_read_than_the_answer_needs() {
    let mut entries: Vec<Entry> =
        (0..1000).map(|id| entry(id, Layer::User, 0.9, &format!("text {id}"))).collect();
    let options = Options { limit: 10, ..ALL };
    assert_eq!(walk(&entries, options).1, 12, "three batches of four");
    assert_eq!(walk(&entries, Options { dedupe: false, ..options }).1, 0);
    entries.iter_mut().skip(1).for_each(|entry| entry.matched.conflict_key = Some("all the same".into()));
    let (survivors, read) = walk(&entries, options);
    assert_eq!((survivors.len(), read), (2, 2), "what is overridden need not be read");
}

#[test]
fn of_those_with_one_conflict_key_the_strongest_survives() {
    let with_key = |id, layer, micros| {
        let mut entry = entry(id, layer, 1.0 / id as f64, &format!("text {id}"));
        entry.matched.conflict_key = Some("indentation".into());
        entry.matched.updated_at = Timestamp::from_micros(micros);
        entry
    };
    let company = with_key(1, Layer::Company, 9);
    let (older, newer) = (with_key(2, Layer::User, 1), with_key(3, Layer::User, 2));
    assert_eq!(ids(&[company.clone(), older.clone(), newer.clone()], ALL), [3]);
    assert_eq!(
        ids(&[company.clone(), with_key(4, Layer::User, 2), newer.clone()], ALL),
        [4],
        "the larger id"
    );
    let mut other = older.clone();
    other.matched.conflict_key = Some("line length".into());
    assert_eq!(ids(&[company.clone(), other, newer.clone()], ALL), [2, 3]);

    let (survivors, _) = walk(&[company, older, newer], Options { include_overridden: true, ..ALL });
    let winner = Some(MemoryId(Uuid::from_u128(3)));
    let shown: Vec<_> = survivors.iter().map(|s| (s.id.0.as_u128(), s.overridden_by)).collect();
    assert_eq!(shown, [(2, winner), (3, None), (1, winner)], "in place");
}

#[test]
fn a_winner_that_is_dropped_as_a_duplicate_still_beats_its_rivals() {
    let keyed = |mut entry: Entry| {
        entry.matched.conflict_key = Some("k".into());
        entry
    };
    let entries = [
        entry(1, Layer::Agent, 0.9, "use tabs"),
        keyed(entry(2, Layer::User, 0.9, "Use tabs.")),
        keyed(entry(3, Layer::Company, 0.9, "use spaces")),
    ];
    assert_eq!(ids(&entries, ALL), [1]);
}

#[test]
fn asking_for_what_is_overridden_only_adds() {
    let keyed = |mut entry: Entry| {
        entry.matched.conflict_key = Some("k".into());
        entry
    };
    let entries = [
        keyed(entry(1, Layer::User, 0.9, "use spaces")),
        keyed(entry(2, Layer::Project, 0.9, "use tabs")),
        entry(3, Layer::Company, 0.9, "use tabs"),
    ];
    assert_eq!(ids(&entries, ALL), [1, 3]);
    assert_eq!(ids(&entries, Options { include_overridden: true, ..ALL }), [1, 2, 3]);
}

/// The contract read aloud: take everything, step by step.
fn naive(entries: &[Entry], options: Options) -> Vec<Match> {
    let mut ordered = entries.to_vec();
    ordered.sort_by(|a, b| {
        let (a, b) = (&a.matched, &b.matched);
        (a.layer.precedence().cmp(&b.layer.precedence()))
            .then(b.score().partial_cmp(&a.score()).unwrap())
            .then(b.relevance.partial_cmp(&a.relevance).unwrap())
            .then(b.updated_at.cmp(&a.updated_at))
            .then(a.id.cmp(&b.id))
    });
    let beaten_by = |entry: &Entry| {
        let key = entry.matched.conflict_key.as_ref()?;
        let rivals = entries.iter().filter(|rival| rival.matched.conflict_key.as_ref() == Some(key));
        let winner = rivals.min_by_key(|rival| {
            let Match { layer, updated_at, id, .. } = &rival.matched;
            (layer.precedence(), std::cmp::Reverse((*updated_at, *id)))
        })?;
        (winner.matched.id != entry.matched.id).then_some(winner.matched.id)
    };
    let mut kept: Vec<(Entry, Option<MemoryId>)> = Vec::new();
    for entry in ordered {
        match beaten_by(&entry) {
            Some(winner) if options.include_overridden => kept.push((entry, Some(winner))),
            Some(_) => {}
            None => {
                let text = entry.text();
                let said = |(other, overridden_by): &(Entry, Option<MemoryId>)| {
                    let (a, b) = (other.vector.as_deref(), text.vector.as_deref());
                    let same = duplicate::duplicates(&Profile::of(&other.content), a, &text.profile, b, 0.95);
                    overridden_by.is_none() && same
                };
                if !options.dedupe || !kept.iter().any(said) {
                    kept.push((entry, None));
                }
            }
        }
    }
    if options.ranking == Ranking::Score {
        // Stable: equal scores stay in the order of the walk, which is by layer, relevance, time and id.
        kept.sort_by(|a, b| b.0.matched.score().partial_cmp(&a.0.matched.score()).unwrap());
    }
    kept.truncate(options.limit);
    kept.into_iter().map(|(entry, overridden_by)| Match { overridden_by, ..entry.matched }).collect()
}

/// Entries with ties in everything, some alike in their words and some in their meaning only: 18 degrees between two vectors
/// make duplicates, so a duplicate of a duplicate need not be one.
fn some_entries() -> impl Strategy<Value = Vec<Entry>> {
    let matched = (0usize..7, 0u8..4, 0u8..2, 0i64..2);
    let vector = prop::option::of((0u8..6).prop_map(|steps| {
        let (y, x) = (f32::from(steps) * 17.0).to_radians().sin_cos();
        vec![x, y]
    }));
    let one = (matched, prop::option::of("[xyz]"), "[abAB]{1,2}", vector);
    prop::collection::vec(one, 0..40).prop_map(|drawn| {
        let entry = |(at, ((layer, score, relevance, micros), key, content, vector))| Entry {
            matched: Match {
                // Ids that do not follow the order in which entries are drawn.
                id: MemoryId(Uuid::from_u128((at as u128 * 17) % 41)),
                layer: Layer::ALL[layer],
                key: at as u64,
                evidence: Relevance::of_meaning(f64::from(score) / 4.0),
                cosine: 0.0,
                relevance: f64::from(relevance),
                at: Timestamp::from_micros(micros),
                is_dated: false,
                updated_at: Timestamp::from_micros(micros),
                conflict_key: Option::<String>::map(key, Into::into),
                overridden_by: None,
            },
            content,
            vector,
        };
        drawn.into_iter().enumerate().map(entry).collect()
    })
}

proptest! {
    #[test]
    fn the_walk_finds_what_taking_everything_finds(
        entries in some_entries(),
        limit in 1usize..12,
        by_score: bool,
        dedupe: bool,
        include_overridden: bool,
    ) {
        let ranking = if by_score { Ranking::Score } else { Ranking::Precedence };
        let options = Options { limit, ranking, dedupe, include_overridden, clusters: false };
        prop_assert_eq!(walk(&entries, options).0, naive(&entries, options));
    }
}
