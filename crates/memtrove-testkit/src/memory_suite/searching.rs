//! Searches: by meaning, by words, and never behind what was written.

use super::*;
use memtrove_core::recall::passages::{MEMORY_PIECES, cut};
use serde_json::json;
use tokio::task::JoinSet;

/// A vector with this cosine to the first axis.
fn at_cosine(cosine: f32) -> Vec<f32> {
    vec![cosine, (1.0 - cosine * cosine).sqrt(), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
}

pub async fn a_write_is_found_at_once(fixture: Fixture) {
    for number in 0..40 {
        let memory = fixture.entry(&user("u"), &format!("note {number}"), &towards(number % 8));
        fixture.insert([memory.clone()]).await;
        let hits = fixture.nearest(&[user("u")], fixture.like(&towards(number % 8))).await;
        assert_eq!((hits.total, !hits.inexact), (number + 1, true));
        assert!(hits.matches.iter().any(|near| near.id == memory.id && near.similarity() > 0.999));
        assert_eq!(fixture.scan(&[user("u")], fixture.everything()).await.total, number + 1);
    }
}

pub async fn the_least_score_is_inclusive(fixture: Fixture) {
    let entries: Vec<Memory> = [1.0, 0.75, 0.5, 0.25, 0.0]
        .map(|cosine| fixture.entry(&user("u"), "words", &at_cosine(cosine)))
        .into();
    fixture.insert(entries.clone()).await;
    let hits = fixture.nearest(&[user("u")], fixture.like(&towards(0))).await;
    for (count, near) in entries
        .iter()
        .map(|memory| hits.matches.iter().find(|near| near.id == memory.id).unwrap())
        .enumerate()
    {
        let query = ScopeQuery { threshold: near.score(), ..fixture.like(&towards(0)) };
        let passed = fixture.nearest(&[user("u")], query).await;
        assert_eq!((passed.matches.len(), passed.total), (count + 1, count + 1), "score {}", near.score());
    }
    let all = fixture.nearest(&[user("u")], ScopeQuery { threshold: 1.0, ..fixture.like(&towards(7)) }).await;
    assert_eq!(all.total, 0);
}

pub async fn a_filter_comes_before_the_limit(fixture: Fixture) {
    let mut entries: Vec<Memory> = (0..60u8)
        .map(|number| {
            fixture.entry(&user("u"), &format!("note {number}"), &at_cosine(1.0 - f32::from(number) / 100.0))
        })
        .collect();
    for memory in &mut entries[50..] {
        memory.metadata = metadata(json!({"tags": ["rare"]}));
    }
    fixture.insert(entries.clone()).await;
    let conditions = Conditions { filter: filter(&json!({"tags": ["rare"]})), ..Conditions::default() };
    let query = ScopeQuery { want: 3, conditions: conditions.clone(), ..fixture.like(&towards(0)) };
    let hits = fixture.nearest(&[user("u")], query).await;
    let expected: Vec<MemoryId> = entries[50..53].iter().map(|memory| memory.id).collect();
    assert_eq!((found(&hits), hits.total, hits.truncated), (expected, 10, true));
    let page = fixture.scan(&[user("u")], ScanQuery { limit: 3, conditions, ..fixture.everything() }).await;
    assert_eq!((contents(&page), page.total), (vec!["note 59", "note 58", "note 57"], 10));

    let hits = fixture.nearest(&[user("u")], ScopeQuery { want: 3, ..fixture.like(&towards(0)) }).await;
    assert_eq!((hits.matches.len(), hits.total, hits.truncated), (3, 60, true));
    let hits = fixture.nearest(&[user("u")], ScopeQuery { want: 60, ..fixture.like(&towards(0)) }).await;
    assert_eq!((hits.matches.len(), hits.truncated), (60, false));
}

pub async fn what_has_no_direction_is_similar_to_nothing(fixture: Fixture) {
    let (blank, some) =
        (fixture.entry(&user("u"), "blank", &[0.0; 8]), fixture.entry(&user("u"), "some", &towards(0)));
    fixture.insert([blank.clone(), some]).await;
    for query in [towards(0), vec![0.0; 8], vec![-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]] {
        let hits = fixture.nearest(&[user("u")], fixture.like(&query)).await;
        assert_eq!(hits.total, 2);
        for near in &hits.matches {
            assert!(
                (0.0..=1.0).contains(&near.score()) && (0.0..=1.0).contains(&near.similarity()),
                "{near:?}"
            );
            assert!(near.id != blank.id || near.similarity() == 0.0, "{near:?}");
        }
    }
    let above = ScopeQuery { threshold: 0.01, ..fixture.like(&[0.0; 8]) };
    assert_eq!(fixture.nearest(&[user("u")], above).await.total, 0);
}

pub async fn only_vectors_of_one_space_are_compared(fixture: Fixture) {
    let one = fixture.entry(&user("u"), "of the first space", &towards(0));
    let mut two = fixture.entry(&user("u"), "of the second space", &[]);
    two.embedding = Some(Embedding::of_whole(MODELS[1].into(), vec![0.0, 1.0, 0.0, 0.0]));
    let mut none = fixture.entry(&user("u"), "of none", &[]);
    (none.state, none.embedding) = (State::Created, None);
    let mut strange = fixture.entry(&user("u"), "of a model nobody knows", &[]);
    strange.embedding = Some(Embedding::of_whole("abacus".into(), vec![1.0, 0.0]));
    fixture.insert([one.clone(), two.clone(), none, strange]).await;

    let (first, second) = (asked(MODELS[0], &towards(0)), asked(MODELS[1], &[0.0, 1.0, 0.0, 0.0]));
    for (vectors, expected) in [
        (vec![first.clone()], vec![one.id]),
        (vec![second.clone()], vec![two.id]),
        (vec![first, second], vec![one.id, two.id]),
    ] {
        let hits = fixture.nearest(&[user("u")], ScopeQuery { vectors, ..fixture.like(&towards(0)) }).await;
        let mut ids = found(&hits);
        ids.sort();
        assert_eq!((ids, hits.total), (expected.clone(), expected.len()));
        assert!(hits.matches.iter().all(|near| near.similarity() > 0.999), "{hits:?}");
    }
    assert_eq!(fixture.scan(&[user("u")], fixture.everything()).await.total, 4);
}

/// A search by words that entries must share.
fn by_words(fixture: &Fixture, text: &str) -> ScopeQuery {
    ScopeQuery {
        vectors: Vec::new(),
        terms: words(text),
        mode: Mode::Hybrid,
        words_required: true,
        ..fixture.like(&[])
    }
}

pub async fn words_are_found_without_any_vector(fixture: Fixture) {
    let mut entries = ["ADR-042: log as JSON", "the heron waits", "三匹の猫がいる", "nothing"]
        .map(|content| fixture.entry(&user("u"), content, &towards(0)));
    for memory in &mut entries {
        (memory.state, memory.embedding) = (State::Created, None);
    }
    entries[3].metadata = metadata(json!({"title": "A title about storks", "tags": ["migration"]}));
    fixture.insert(entries.clone()).await;
    let asked = async |text: &str| found(&fixture.nearest(&[user("u")], by_words(&fixture, text)).await);
    assert_eq!(asked("adr-042").await, [entries[0].id]);
    assert_eq!(asked("waiting herons").await, [entries[1].id], "by their stems");
    assert_eq!(asked("の猫").await, [entries[2].id], "without spaces");
    assert_eq!(asked("storks").await, [entries[3].id], "a title");
    assert_eq!(asked("migration").await, [entries[3].id], "a tag");
    assert_eq!(asked("zeppelin").await, []);

    let changed = fixture.next(&entries[1], |memory| memory.content = "the stork waits".into());
    fixture.replace(changed, 1).await;
    assert_eq!(asked("heron").await, [], "the words of before are gone");
}

pub async fn words_are_found_in_other_forms_and_though_a_letter_is_wrong(fixture: Fixture) {
    let texts = [
        "the heron was found",
        "the cemetery gate",
        "the pavilion",
        "the pavilions burnt down",
        "a pavillon of old",
    ];
    let entries = texts.map(|text| fixture.entry(&user("u"), text, &towards(0)));
    fixture.insert(entries.clone()).await;
    let asked = async |text: &str| found(&fixture.nearest(&[user("u")], by_words(&fixture, text)).await);
    assert_eq!(asked("what did we find").await, [entries[0].id]);
    assert_eq!(asked("cemetary").await, [entries[1].id]);
    let mut both = [entries[2].id, entries[3].id];
    both.sort_unstable();
    let mut commonest = asked("pavillion").await;
    commonest.sort_unstable();
    assert_eq!(commonest, both, "of what may be meant, what most have");
    assert_eq!(asked("pavillon").await, [entries[4].id], "what is there is meant");
    assert_eq!(asked("camatary").await, []);

    let hidden = Memory {
        policy: AccessPolicy::new(Policy::Private),
        ..fixture.entry(&user("u"), "a zeppelin", &towards(0))
    };
    let theirs = Memory { created_by: Author { user: Some("w".into()), client: None }, ..hidden };
    fixture.insert([theirs]).await;
    assert_eq!(asked("zepelin").await, [], "what nobody shows is not meant");
}

pub async fn words_and_meaning_both_count(fixture: Fixture) {
    let texts = [
        "the heron waits in the reeds",
        "a stork in the reeds",
        "the cafeteria closes",
        "the heron, the reeds",
    ];
    let cosines = [0.2, 0.9, 0.9, 0.8];
    let entries: Vec<Memory> = texts
        .iter()
        .zip(cosines)
        .map(|(text, cosine)| fixture.entry(&user("u"), text, &at_cosine(cosine)))
        .collect();
    fixture.insert(entries.clone()).await;
    let semantic = fixture.nearest(&[user("u")], fixture.like(&towards(0))).await;
    let query = ScopeQuery { terms: words("heron reeds"), mode: Mode::Hybrid, ..fixture.like(&towards(0)) };
    let hybrid = fixture.nearest(&[user("u")], query).await;
    let score = |hits: &Matches, at: usize| {
        hits.matches.iter().find(|near| near.id == entries[at].id).unwrap().score()
    };
    for (at, cosine) in cosines.into_iter().enumerate() {
        let alone = score(&semantic, at);
        assert!((alone - f64::from(cosine)).abs() < 1e-3, "by meaning alone {alone} is not {cosine}");
    }
    let [both_far, one_near, none_near, both_near] = [0, 1, 2, 3].map(|at| score(&hybrid, at));
    assert!(both_near > both_far && both_near > one_near, "both words and the meaning");
    assert!(one_near > none_near, "one word more, the same meaning");
}

/// What is of another time and more similar must not keep it from being looked at.
pub async fn what_is_of_the_time_that_is_asked_about_is_found_among_much_else(fixture: Fixture) {
    let (from, to) = (Timestamp::from_micros(1_000_000), Timestamp::from_micros(2_000_000));
    let mut entries: Vec<Memory> = (0..400)
        .map(|number| fixture.entry(&user("u"), &format!("note {number}"), &at_cosine(0.6)))
        .collect();
    let mut then = fixture.entry(&user("u"), "then", &at_cosine(0.5));
    then.occurred_at = Some(from);
    let mut beside = fixture.entry(&user("u"), "just after", &at_cosine(0.5));
    beside.occurred_at = Some(to);
    entries.extend([then.clone(), beside.clone()]);
    fixture.insert(entries).await;
    let query = ScopeQuery { want: 3, ..fixture.like(&towards(0)) };
    let usual = fixture.nearest(&[user("u")], query.clone()).await;
    assert!(usual.matches.iter().all(|near| near.id != then.id));

    let query = ScopeQuery { time: Some(TimeWindow { from, to }), ..query };
    let hits = fixture.nearest(&[user("u")], query).await;
    let first = hits.matches.iter().max_by(|a, b| a.score().total_cmp(&b.score())).unwrap();
    assert_eq!((first.id, first.at, first.evidence.time), (then.id, from, Some(1.0)));
    assert_eq!(hits.total, usual.total, "nothing is left out");
    assert!(first.score() > first.similarity());
}

/// Where nothing but a time is asked for, neither words nor a meaning name what lies in it.
pub async fn everything_of_a_time_is_found_where_nothing_else_is_asked_for(fixture: Fixture) {
    let (from, to) = (Timestamp::from_micros(1_000_000), Timestamp::from_micros(2_000_000));
    let at = |content: &str, micros: i64| {
        let mut entry = fixture.entry(&user("u"), content, &at_cosine(0.0));
        entry.occurred_at = Some(Timestamp::from_micros(micros));
        entry
    };
    let then: Vec<Memory> = (0..40).map(|number| at(&format!("then {number}"), 1_000_000 + number)).collect();
    let mut entries: Vec<Memory> = (0..400)
        .map(|number| fixture.entry(&user("u"), &format!("note {number}"), &at_cosine(0.1)))
        .collect();
    entries.extend([at("just before", 999_999), at("just after", 2_000_000)]);
    entries.extend(then.clone());
    fixture.insert(entries).await;
    let ids: HashSet<MemoryId> = then.iter().map(|memory| memory.id).collect();
    for vectors in [fixture.like(&towards(0)).vectors, Vec::new()] {
        let query = ScopeQuery {
            vectors,
            mode: Mode::Hybrid,
            threshold: DEFAULT_THRESHOLD,
            time: Some(TimeWindow { from, to }),
            time_alone: true,
            want: 5,
            ..fixture.like(&towards(0))
        };
        let few = fixture.nearest(&[user("u")], query.clone()).await;
        assert_eq!((few.total, few.matches.len()), (40, 5), "{few:?}");
        let all = fixture.nearest(&[user("u")], ScopeQuery { want: 100, ..query.clone() }).await;
        let found: HashSet<MemoryId> = all.matches.iter().map(|near| near.id).collect();
        assert_eq!((all.total, &found), (40, &ids));
        let none = ScopeQuery { time_alone: false, ..query };
        assert_eq!(
            fixture.nearest(&[user("u")], none).await.total,
            0,
            "only where nothing else is asked for"
        );
    }
}

/// A text of several pieces, of which one alone says this.
fn long(said: &str) -> (String, usize) {
    let filler = "Nothing is said here that matters. ".repeat(40);
    let text = format!("{filler}{said} {filler}");
    let pieces = cut(&text, MEMORY_PIECES);
    let which = pieces.iter().position(|piece| text[piece.clone()].contains(said)).unwrap();
    assert!(pieces.len() > 4);
    (text, which)
}

pub async fn a_long_entry_is_found_by_its_best_piece(fixture: Fixture) {
    let (content, which) = long("The ferry leaves at nine.");
    let mut entry = fixture.entry(&user("u"), &content, &at_cosine(0.25));
    let count = cut(&content, MEMORY_PIECES).len();
    let vectors = (0..count).map(|number| if number == which { at_cosine(0.875) } else { towards(7) });
    entry.embedding.as_mut().unwrap().pieces = vectors.collect();
    let other = fixture.entry(&user("u"), "A note on ferries.", &at_cosine(0.5));
    fixture.insert([entry.clone(), other.clone()]).await;

    let check = async |entry: &Memory| {
        for want in [1, 10] {
            let query = ScopeQuery { want, ..fixture.like(&towards(0)) };
            let hits = fixture.nearest(&[user("u")], query).await;
            assert_eq!((hits.total, hits.inexact), (2, false), "counted once");
            let best = hits.matches.iter().find(|near| near.id == entry.id).unwrap();
            assert!((best.score() - 0.875).abs() < 0.01, "by its nearest piece: {best:?}");
            assert!((best.similarity() - 0.25).abs() < 1e-5, "shown as a whole: {best:?}");
        }
        let query = ScopeQuery { threshold: 0.6, ..fixture.like(&towards(0)) };
        assert_eq!(found(&fixture.nearest(&[user("u")], query).await), [entry.id]);
        let hits = fixture.nearest(&[user("u")], fixture.like(&towards(7))).await;
        assert_eq!(found(&hits)[0], entry.id, "another piece");
        assert_eq!(fixture.scan(&[user("u")], fixture.everything()).await.total, 2);
    };
    check(&entry).await;

    // What is amended keeps its pieces; what is written anew has others.
    let stored = fixture.get(&entry).await.unwrap();
    assert_eq!(stored.embedding.as_ref().unwrap().pieces.len(), count);
    let renamed = fixture.next(&stored, |memory| memory.metadata = metadata(json!({"tags": ["renamed"]})));
    assert_eq!(fixture.replace(renamed.clone(), 1).await, WriteOutcome::Done);
    check(&renamed).await;
    let short = fixture.next(&renamed, |memory| {
        memory.content = "The ferry leaves at ten.".into();
        memory.embedding.as_mut().unwrap().pieces = Vec::new();
    });
    assert_eq!(fixture.replace(short, 2).await, WriteOutcome::Done);
    assert_eq!(found(&fixture.nearest(&[user("u")], fixture.like(&towards(0))).await), [other.id, entry.id]);
}

pub async fn words_that_stand_together_outweigh_words_of_many_pieces(fixture: Fixture) {
    let (together, _) = long("Herons wait in the reeds near the harbour.");
    let filler = "Nothing is said here that matters. ".repeat(40);
    let apart = format!("Herons wait. {filler} The reeds grow. {filler} The harbour is near.");
    let mut entries = [together, apart].map(|content| fixture.entry(&user("u"), &content, &towards(0)));
    for memory in &mut entries {
        (memory.state, memory.embedding) = (State::Created, None);
    }
    fixture.insert(entries.clone()).await;
    let query = ScopeQuery { words_required: false, ..by_words(&fixture, "herons reeds harbour") };
    let hits = fixture.nearest(&[user("u")], query).await;
    assert_eq!(found(&hits), [entries[0].id, entries[1].id]);
    let [best, other] = [0, 1].map(|at| hits.matches.iter().find(|near| near.id == entries[at].id).unwrap());
    assert!(best.evidence.coverage > 0.999, "all of the words in one piece: {best:?}");
    assert!(
        (0.3..0.7).contains(&other.evidence.coverage),
        "a third of them, and a little of the rest: {other:?}"
    );
}

/// An estimate may decide what is looked at, never what is best.
pub async fn the_best_are_the_best_however_close_they_are(fixture: Fixture) {
    let query: Vec<f32> = (1..=8u8).map(f32::from).collect();
    let query = unit(&query);
    // So many at a distance no estimate tells apart, in the directions around the query.
    let entries: Vec<Memory> = (0..400usize)
        .map(|number| {
            let across: Vec<f32> = (0..8).map(|at| ((number * 7 + at * 13) % 11) as f32 - 5.0).collect();
            let along: f32 = across.iter().zip(&query).map(|(a, q)| a * q).sum();
            let across: Vec<f32> =
                unit(&across.iter().zip(&query).map(|(a, q)| a - along * q).collect::<Vec<_>>());
            let cosine = 0.8 + 1e-5 * number as f32;
            let vector: Vec<f32> = query
                .iter()
                .zip(&across)
                .map(|(q, a)| cosine * q + (1.0 - cosine * cosine).sqrt() * a)
                .collect();
            fixture.entry(&user("u"), &format!("note {number}"), &vector)
        })
        .collect();
    fixture.insert(entries.clone()).await;
    let hits = fixture.nearest(&[user("u")], ScopeQuery { want: 10, ..fixture.like(&query) }).await;
    let expected: Vec<MemoryId> = entries.iter().rev().take(10).map(|memory| memory.id).collect();
    assert_eq!(found(&hits), expected);
    let threshold = 0.8 + 1e-5 * 199.5;
    let hits =
        fixture.nearest(&[user("u")], ScopeQuery { want: 10, threshold, ..fixture.like(&query) }).await;
    assert_eq!((hits.total, !hits.inexact), (200, true), "counted exactly");
}

pub async fn among_equals_the_more_relevant_and_the_later_come_first(fixture: Fixture) {
    let mut entries: Vec<Memory> = (0..120usize)
        .map(|number| fixture.entry(&user("u"), &format!("note {number}"), &towards(0)))
        .collect();
    for number in [5, 70] {
        entries[number].metadata = metadata(json!({"relevance": 0.75}));
    }
    for memory in entries.iter_mut().filter(|memory| memory.metadata.is_empty()) {
        memory.metadata = metadata(json!({"relevance": 0.5}));
    }
    fixture.insert(entries.clone()).await;
    let hits = fixture.nearest(&[user("u")], ScopeQuery { want: 4, ..fixture.like(&towards(0)) }).await;
    assert_eq!(found(&hits), [70, 5, 119, 118].map(|number| entries[number].id));
}

pub async fn entries_that_may_conflict_are_all_named(fixture: Fixture) {
    let mut entries: Vec<Memory> = (0..40u8)
        .map(|number| {
            fixture.entry(&user("u"), &format!("note {number}"), &at_cosine(1.0 - f32::from(number) / 100.0))
        })
        .collect();
    entries[30].metadata = metadata(json!({"conflictKey": "k"}));
    entries[35].metadata = metadata(json!({"conflictKey": "k"}));
    fixture.insert(entries.clone()).await;
    let hits = fixture.nearest(&[user("u")], ScopeQuery { want: 5, ..fixture.like(&towards(0)) }).await;
    let keyed: Vec<_> = hits
        .matches
        .iter()
        .filter(|near| near.conflict_key.as_deref() == Some("k"))
        .map(|near| near.id)
        .collect();
    assert_eq!(keyed.len(), 2, "winners are chosen among all that match: {hits:?}");
    assert_eq!(hits.matches.len(), 7);

    let changed = fixture.next(&entries[30], |memory| _ = memory.metadata.remove("conflictKey"));
    fixture.replace(changed, 1).await;
    let hits = fixture.nearest(&[user("u")], ScopeQuery { want: 5, ..fixture.like(&towards(0)) }).await;
    assert_eq!(hits.matches.iter().filter(|near| near.conflict_key.is_some()).count(), 1);
}

pub async fn searches_beside_writers_see_whole_entries(fixture: Fixture) {
    // The content names the axis of the vector: one may never be seen with another's.
    let fixture = Arc::new(fixture);
    let entries: Vec<Memory> =
        (0..8).map(|axis| fixture.entry(&user("u"), &format!("axis{axis}"), &towards(axis))).collect();
    fixture.insert(entries.clone()).await;
    let mut tasks = JoinSet::new();
    for (number, memory) in entries.into_iter().enumerate().take(4) {
        let fixture = fixture.clone();
        tasks.spawn(async move {
            let mut current = memory;
            for step in 1..=15 {
                let axis = (number + step) % 8;
                let next = fixture.next(&current, |memory| {
                    memory.content = format!("axis{axis}");
                    memory.embedding = Some(Embedding::of_whole(MODELS[0].into(), towards(axis)));
                });
                assert_eq!(fixture.replace(next.clone(), current.version).await, WriteOutcome::Done);
                current = next;
            }
        });
    }
    for axis in 0..8 {
        let fixture = fixture.clone();
        tasks.spawn(async move {
            for _ in 0..10 {
                let query = ScopeQuery {
                    terms: words(&format!("axis{axis}")),
                    mode: Mode::Hybrid,
                    ..fixture.like(&towards(axis))
                };
                let hits = fixture.nearest(&[user("u")], query).await;
                assert_eq!(hits.total, 8, "nothing is missing while it changes");
                for near in &hits.matches {
                    let said = near.evidence.coverage > 0.5;
                    assert_eq!(said, near.similarity() > 0.5, "new words with an old vector: {near:?}");
                }
            }
        });
    }
    tasks.join_all().await;
}
