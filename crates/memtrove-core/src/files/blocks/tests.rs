use super::*;
use crate::files::{Event, SearchEvents};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;
use std::collections::BTreeMap;

/// Texts that contain each other, make up a token together, hold separators, or are longer in bytes than in characters.
const TEXTS: [&str; 14] = [
    "",
    "a",
    "al",
    "pha",
    "alpha",
    "alpha beta",
    "beta\nalpha",
    "al\u{0}pha",
    "日本語のノート",
    "本",
    "straße",
    "\n",
    "i\u{307}",
    "é, ñ",
];
const TOKENS: [&str; 9] = ["a", "alph", "alpha", "beta", "日本", "本", "ß", "é", "nowhere"];
const NAMES: [&str; 4] = ["a", "b", "a\nb", ""];

#[derive(Debug, Clone)]
enum Step {
    Write(Searchable),
    Remove(String),
    Expire(Timestamp),
    Split,
}

fn id() -> impl Strategy<Value = String> {
    (0..12u8).prop_map(|n| format!("évent-{n}"))
}

fn time() -> impl Strategy<Value = Timestamp> {
    (-3..3i64).prop_map(Timestamp::from_micros)
}

fn name() -> impl Strategy<Value = String> {
    select(&NAMES[..]).prop_map(str::to_owned)
}

fn event() -> impl Strategy<Value = Searchable> {
    let text = || vec(select(&TEXTS[..]), 0..4).prop_map(|texts| texts.concat());
    (id(), time(), name(), name(), vec(name(), 0..3), text(), vec(text(), 0..4)).prop_map(
        |(id, timestamp, service, source, projects, digest, keywords)| Searchable {
            id,
            timestamp,
            service,
            source,
            projects,
            digest,
            keywords,
        },
    )
}

fn query() -> impl Strategy<Value = EventQuery> {
    let tokens = vec(select(&TOKENS[..]).prop_map(str::to_owned), 0..4);
    let filter = || option::weighted(0.2, name());
    let bound = || option::weighted(0.2, time());
    (tokens, any::<bool>(), filter(), filter(), filter(), bound(), bound(), 0..15usize).prop_map(
        |(tokens, has_query, service, source, project, from, to, top_k)| EventQuery {
            has_query: has_query || !tokens.is_empty(),
            tokens,
            service,
            source,
            project,
            from,
            to,
            top_k,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => event().prop_map(Step::Write),
        2 => id().prop_map(Step::Remove),
        1 => time().prop_map(Step::Expire),
        2 => Just(Step::Split),
    ];
    vec(step, 0..40)
}

/// What the contract says, event by event.
fn expected<'a>(events: impl Iterator<Item = &'a Searchable>, query: &EventQuery) -> Vec<String> {
    let score = |event: &Searchable| -> u32 {
        let digest = |token: &&String| event.digest.contains(token.as_str());
        let keyword = |token: &&String| event.keywords.iter().any(|word| word.contains(token.as_str()));
        (2 * query.tokens.iter().filter(digest).count() + query.tokens.iter().filter(keyword).count()) as u32
    };
    let mut found: Vec<_> = events
        .filter(|event| query.from.is_none_or(|from| event.timestamp >= from))
        .filter(|event| query.to.is_none_or(|to| event.timestamp <= to))
        .filter(|event| query.service.as_ref().is_none_or(|service| *service == event.service))
        .filter(|event| query.source.as_ref().is_none_or(|source| *source == event.source))
        .filter(|event| query.project.as_ref().is_none_or(|project| event.projects.contains(project)))
        .filter(|event| !query.has_query || score(event) > 0)
        .map(|event| (Reverse(score(event)), Reverse(event.timestamp), event.id.clone()))
        .collect();
    found.sort();
    found.truncate(query.top_k);
    found.into_iter().map(|(_, _, id)| id).collect()
}

fn ids(block: &[u8]) -> Result<Vec<&str>, Malformed> {
    ParsedBlock::read(block)?.entries.iter().map(BlockEvent::id).collect()
}

/// The blocks that events make one after the other.
fn packed(events: impl IntoIterator<Item = Searchable>) -> Vec<Vec<u8>> {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for event in events {
        match blocks.last_mut() {
            Some(newest) if !is_full(newest) => *newest = append(newest, &event).unwrap(),
            _ => blocks.push(append(&[], &event).unwrap()),
        }
    }
    blocks
}

fn found<'a>(blocks: impl Iterator<Item = &'a Vec<u8>>, query: &EventQuery) -> Vec<String> {
    let prepared = PreparedQuery::new(query);
    let mut hits = Hits::new(query.top_k);
    for block in blocks {
        search(block, &prepared, &mut hits).unwrap();
    }
    hits.into_ids()
}

/// Plays what a store does: an event that is written again leaves its old block and goes to the newest.
fn play(steps: Vec<Step>) -> (Vec<Vec<u8>>, BTreeMap<String, Searchable>) {
    let (mut blocks, mut events) = (vec![Vec::new()], BTreeMap::<String, Searchable>::new());
    for step in steps {
        match step {
            Step::Write(event) => {
                blocks.iter_mut().for_each(|block| *block = remove(block, |id| id == event.id).unwrap());
                let newest = blocks.last_mut().unwrap();
                *newest = append(newest, &event).unwrap();
                events.insert(event.id.clone(), event);
            }
            Step::Remove(id) => {
                blocks.iter_mut().for_each(|block| *block = remove(block, |one| one == id).unwrap());
                events.remove(&id);
            }
            Step::Expire(cutoff) => {
                let old = |id: &str| events[id].timestamp < cutoff;
                blocks.iter_mut().for_each(|block| *block = remove(block, old).unwrap());
                events.retain(|_, event| event.timestamp >= cutoff);
            }
            Step::Split => blocks.push(Vec::new()),
        }
    }
    (blocks, events)
}

/// Everything that reads a block; the answers do not matter here.
fn use_everywhere(block: &[u8], query: &EventQuery, event: &Searchable) {
    let _ = search(block, &PreparedQuery::new(query), &mut Hits::new(query.top_k));
    let _ = append(block, event);
    let _ = remove(block, |id| id == event.id);
    let _ = ids(block);
    let _ = is_full(block);
}

proptest! {
    #[test]
    fn blocks_find_what_a_look_at_every_event_finds(steps in steps(), query in query()) {
        let (blocks, events) = play(steps);
        let expected = expected(events.values(), &query);
        prop_assert_eq!(&found(blocks.iter(), &query), &expected);
        prop_assert_eq!(&found(blocks.iter().rev(), &query), &expected, "newest block first");
        let rebuilt = build(events.into_values());
        prop_assert_eq!(&found([&rebuilt].into_iter(), &query), &expected, "rebuilt");
    }

    #[test]
    fn building_gives_the_block_that_appending_gives(events in vec(event(), 0..100)) {
        let appended = events.iter().fold(Vec::new(), |block, event| append(&block, event).unwrap());
        let built = build(events.clone());
        prop_assert_eq!(&built, &appended);
        let expected: Vec<_> = events.iter().map(|event| event.id.as_str()).collect();
        prop_assert_eq!(ids(&built).unwrap(), expected);
    }

    #[test]
    fn a_block_with_bytes_missing_or_added_is_malformed(events in vec(event(), 1..5), cut in any::<Index>()) {
        let block = build(events);
        let cut = 1 + cut.index(block.len() - 1);
        prop_assert_eq!(ids(&block[..cut]), Err(Malformed));
        let longer = [&block[..], b"\n"].concat();
        prop_assert_eq!(ids(&longer), Err(Malformed));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in vec(any::<u8>(), 0..200),
        events in vec(event(), 0..4),
        flips in vec((any::<Index>(), 0..8u8), 1..6),
        query in query(),
        event in event(),
    ) {
        use_everywhere(&bytes, &query, &event);
        let mut block = build(events);
        block.push(0);
        for (at, bit) in flips {
            let at = at.index(block.len());
            block[at] ^= 1 << bit;
            use_everywhere(&block[..block.len() - 1], &query, &event);
        }
    }
}

#[test]
fn a_block_is_full_by_bytes_or_by_events() {
    let event = |digest: usize| Searchable {
        id: "e".to_owned(),
        timestamp: Timestamp::from_micros(0),
        service: String::new(),
        source: String::new(),
        projects: Vec::new(),
        digest: "x".repeat(digest),
        keywords: Vec::new(),
    };
    assert!(!is_full(&[]));
    let overhead = append(&[], &event(0)).unwrap().len();
    assert!(!is_full(&append(&[], &event(TARGET_BYTES - overhead - 1)).unwrap()));
    assert!(is_full(&append(&[], &event(TARGET_BYTES - overhead)).unwrap()));
    let counts: Vec<_> =
        packed((0..100).map(|_| event(1))).iter().map(|block| ids(block).unwrap().len()).collect();
    assert_eq!(counts, [TARGET_EVENTS, 100 - TARGET_EVENTS]);
    assert!(is_full(b"no block"), "nothing can be appended to it");
}

#[test]
fn words_are_found_in_any_case_and_inside_others() {
    let stored = [
        ("keyword", "Notes of the meeting", "ALPHA"),
        ("digest", "The Alphabet", "letters"),
        ("both", "alpha: first release", "Alpha"),
        ("japanese", "東京での会議", "出張"),
        ("greek", "ΟΔΟΣ ΕΡΜΟΥ", "ΑΘΗΝΑ"),
    ];
    let events = stored.map(|(id, digest, keyword)| {
        let event = json!({"event_id": id, "tenant_id": "t", "user_id": "u", "digest": digest, "keywords": [keyword]});
        Event::read(Some(event), "t", "u", "a", Timestamp::from_micros(0)).unwrap().searchable
    });
    let blocks = packed(events);
    let find = |query: &str| {
        let search = SearchEvents { query: Some(query.to_owned()), ..SearchEvents::default() };
        found(blocks.iter(), &search.check().unwrap())
    };
    assert_eq!(find("alph"), ["both", "digest", "keyword"]);
    assert_eq!(find("(MEETING), alpha!"), ["both", "keyword", "digest"], "equal scores and times go by id");
    assert_eq!(find("会議"), ["japanese"]);
    for street in ["οδος", "ΟΔΟΣ", "οδοσ", "ΕΡΜΟΥ"] {
        assert_eq!(find(street), ["greek"], "{street}");
    }
    assert_eq!(find("meeting alpha nowhere").len(), 3, "one word is enough");
    assert_eq!(find("of the"), ["keyword", "digest"]);
    assert_eq!(find("!!!"), [""; 0]);
    assert_eq!(find("nowhere"), [""; 0]);
    assert_eq!(find(" ").len(), stored.len());
}

#[test]
fn the_last_event_leaves_an_empty_block() {
    let event = json!({"event_id": "e", "tenant_id": "t", "user_id": "u", "digest": "d"});
    let event = Event::read(Some(event), "t", "u", "a", Timestamp::from_micros(0)).unwrap();
    let block = append(&[], &event.searchable).unwrap();
    assert_eq!(remove(&block, |id| id == "another").unwrap(), block);
    assert_eq!(remove(&block, |id| id == "e").unwrap(), b"");
}
