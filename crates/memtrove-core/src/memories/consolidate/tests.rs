use super::*;
use crate::memories::duplicate::SIMILARITY;
use crate::memories::testing::{members, memory};
use crate::memories::{AccessPolicy, Embedding, Lineage};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn made(id: u128, micros: i64, content: &str, metadata: Value) -> Memory {
    let (created_at, updated_at) = (at(micros), at(micros));
    Memory { created_at, updated_at, metadata: members(metadata), ..memory(id, content) }
}

/// A vector at an angle, in degrees: 18 of them are a cosine of 0.951.
fn pointing(degrees: f32, memory: Memory) -> Memory {
    let (y, x) = degrees.to_radians().sin_cos();
    let embedding = Some(Embedding::of_whole("test".into(), vec![x, y]));
    Memory { embedding, ..memory }
}

fn candidates(entries: &[Memory]) -> Vec<MergeCandidate<'_>> {
    fn vector(memory: &Memory) -> Option<&[f32]> {
        memory.embedding.as_ref().map(|embedding| embedding.vector.as_slice())
    }
    entries.iter().map(|memory| MergeCandidate { memory, vector: vector(memory) }).collect()
}

/// Each group as the leader and what it absorbs.
fn grouped(entries: &[Memory]) -> Vec<Vec<u128>> {
    let ids = |group: &MergeGroup<'_>| {
        std::iter::once(group.leader)
            .chain(group.absorbed.clone())
            .map(|memory| memory.id.0.as_u128())
            .collect()
    };
    groups(&candidates(entries), SIMILARITY).iter().map(ids).collect()
}

#[test]
fn importance_then_the_latest_change_then_the_larger_id_leads() {
    let same = |id, micros, metadata| made(id, micros, "the same", metadata);
    let entries = [
        same(1, 5, json!({})),
        same(2, 9, json!({})),
        same(3, 9, json!({})),
        same(4, 1, json!({"importance": 0.2})),
        same(5, 0, json!({"importance": 0})),
    ];
    assert_eq!(grouped(&entries), [[4, 3, 2, 1, 5]]);
}

#[test]
fn only_what_is_like_the_leader_is_absorbed_not_what_is_like_the_absorbed() {
    let entry = |id, degrees| {
        let content = ["north", "brisk", "mellow", "violet"][id as usize % 4];
        pointing(degrees, made(id, -(id as i64), content, json!({})))
    };
    assert_eq!(grouped(&[entry(1, 0.0), entry(2, 17.0), entry(3, 34.0)]), [[1, 2]]);
    assert_eq!(grouped(&[entry(1, 17.0), entry(2, 0.0), entry(3, 34.0)]), [[1, 2, 3]]);
    assert_eq!(grouped(&[entry(1, 0.0), entry(2, 40.0)]), [[0u128; 0]; 0]);
}

#[test]
fn what_happened_at_another_time_stays_apart() {
    let swum =
        |id, occurred_at| Memory { occurred_at, ..made(id, id as i64, "Alice swam a mile", json!({})) };
    let day = |number: i64| Some(at(number * 1_000));
    let entries = [swum(1, None), swum(2, day(1)), swum(3, day(2)), swum(4, day(2)), swum(5, None)];
    assert_eq!(grouped(&entries), [[5, 1], [4, 3]]);
    let untimed = [swum(1, Some(at(1))), swum(2, Some(at(2)))];
    assert_eq!(grouped(&untimed), [[2, 1]], "the times of their making are none that somebody gave");
}

#[test]
fn entries_that_contradict_each_other_stay_apart() {
    let entries = [
        made(1, 0, "The timeout is 30 seconds", json!({})),
        made(2, 0, "The timeout is 60 seconds", json!({})),
        made(3, 0, "Alice reports to Bob", json!({})),
        made(4, 0, "Bob reports to Alice", json!({})),
    ];
    assert_eq!(grouped(&entries[..2]), [[0u128; 0]; 0]);
    assert_eq!(grouped(&entries[2..]), [[0u128; 0]; 0]);
}

#[test]
fn only_live_knowledge_of_one_kind_takes_part() {
    let entry = memory(1, "text");
    let mirrored = Lineage { mirror_of: Some("event".to_owned()), ..Lineage::default() };
    for (other, may) in [
        (Memory { state: State::Decayed, ..memory(2, "text") }, true),
        (Memory { kind: Kind::Semantic, ..memory(2, "text") }, false),
        (Memory { kind: Kind::Procedural, ..memory(2, "text") }, false),
        (Memory { kind: Kind::Working, ..memory(2, "text") }, false),
        (Memory { state: State::Created, embedding: None, ..memory(2, "text") }, false),
        (Memory { kind: Kind::Archival, state: State::Archived, ..memory(2, "text") }, false),
        (made(2, 0, "text", json!({"knowledgePointer": {}})), false),
        (Memory { lineage: mirrored, ..memory(2, "text") }, false),
    ] {
        let absorbs = !grouped(&[entry.clone(), other.clone()]).is_empty();
        assert_eq!(absorbs, may, "{other:?}");
    }
    let two_facts = [1, 2].map(|id| Memory { kind: Kind::Procedural, ..memory(id, "text") });
    assert!(grouped(&two_facts).is_empty());
    let two_sessions = [1, 2].map(|id| Memory { kind: Kind::Session, ..memory(id, "text") });
    assert_eq!(grouped(&two_sessions), [[2, 1]]);
}

#[test]
fn merging_neither_shows_nor_takes_anything() {
    let by = |id, user: &str, policy| Memory {
        created_by: Author { user: Some(user.to_owned()), client: Some(format!("client {id}")) },
        policy: AccessPolicy::new(policy),
        ..memory(id, "text")
    };
    assert!(grouped(&[by(1, "alice", Policy::Private), by(2, "bob", Policy::Private)]).is_empty());
    assert!(grouped(&[by(1, "alice", Policy::Private), by(2, "alice", Policy::Organization)]).is_empty());
    assert_eq!(grouped(&[by(1, "alice", Policy::Private), by(2, "alice", Policy::Private)]), [[2, 1]]);
    assert_eq!(
        grouped(&[by(1, "alice", Policy::Organization), by(2, "bob", Policy::Organization)]),
        [[2, 1]]
    );
}

#[test]
fn the_survivor_keeps_what_the_others_knew() {
    let newest = made(3, 30, "Text", json!({"tags": ["c", "a"], "importance": 0.4, "colour": "red"}));
    let leader = made(
        2,
        20,
        "text",
        json!({"tags": ["b", "a"], "importance": 0.9, "confidence": 0.5, "title": "T", "source": {"type": "manual"}}),
    );
    let oldest = made(
        1,
        10,
        "TEXT.",
        json!({"tags": ["a"], "confidence": 0.8, "colour": "blue", "source": {"type": "import", "reference": "r"}}),
    );
    let entries = [newest, leader.clone(), oldest];
    let entries = candidates(&entries);
    let found = groups(&entries, SIMILARITY);
    assert_eq!(found.len(), 1);
    let survivor = survivor(&found[0], at(99));
    assert_eq!(
        Value::Object(survivor.metadata.clone()),
        json!({"tags": ["a", "b", "c"], "confidence": 0.8, "importance": 0.9, "colour": "red", "title": "T",
               "source": {"type": "manual"}})
    );
    assert_eq!(
        survivor.lineage.consolidated_from,
        [MemoryId(Uuid::from_u128(3)), MemoryId(Uuid::from_u128(1))]
    );
    let expected = Memory {
        metadata: survivor.metadata.clone(),
        lineage: survivor.lineage.clone(),
        version: 2,
        updated_at: at(99),
        ..leader
    };
    assert_eq!(survivor, expected, "nothing else changes");

    let gone = absorbed(found[0].absorbed[0], survivor.id, at(99));
    assert_eq!(
        (gone.kind, gone.origin_kind, gone.state),
        (Kind::Archival, Some(Kind::UserPersonal), State::Archived)
    );
    assert_eq!((gone.lineage.superseded_by, gone.version), (Some(survivor.id), 2));
}

#[test]
fn an_add_starts_it_beyond_the_limit_where_it_is_wanted() {
    let rules = ConsolidationRules { enabled: true, ..ConsolidationRules::default() };
    assert!(rules.is_due(Layer::User, 1001));
    assert!(!rules.is_due(Layer::User, 1000));
    assert!(!rules.is_due(Layer::Project, 1001));
    assert!(!ConsolidationRules::default().is_due(Layer::User, 1001));
}

fn some_entries() -> impl Strategy<Value = Vec<Memory>> {
    let metadata =
        prop_oneof![Just(json!({})), (0u8..3).prop_map(|importance| json!({"importance": importance}))];
    let tags = prop::collection::vec("[xyz]", 0..3);
    let one = (0i64..5, "[ab]{1,2}", 0u8..40, metadata, tags).prop_map(
        |(micros, content, degrees, mut metadata, tags)| {
            metadata["tags"] = json!(tags);
            pointing(f32::from(degrees), made(0, micros, &content, metadata))
        },
    );
    prop::collection::vec(one, 0..25).prop_map(|entries| {
        let numbered = |(id, entry)| Memory { id: MemoryId(Uuid::from_u128(id as u128)), ..entry };
        entries.into_iter().enumerate().map(numbered).collect()
    })
}

/// What a scope holds after a consolidation.
fn consolidated(entries: &[Memory], now: Timestamp) -> Vec<Memory> {
    let mut after = entries.to_vec();
    let mut put = |memory: Memory| {
        let place = after.iter_mut().find(|other| other.id == memory.id).unwrap();
        *place = memory;
    };
    for group in groups(&candidates(entries), SIMILARITY) {
        put(survivor(&group, now));
        group.absorbed.iter().for_each(|memory| put(absorbed(memory, group.leader.id, now)));
    }
    after
}

proptest! {
    #[test]
    fn running_it_again_changes_nothing(entries in some_entries()) {
        let once = consolidated(&entries, at(100));
        prop_assert_eq!(consolidated(&once, at(200)), once);
    }

    #[test]
    fn the_order_in_which_entries_are_read_does_not_matter(entries in some_entries().prop_shuffle()) {
        let sorted = |mut entries: Vec<Memory>| {
            entries.sort_by_key(|memory| memory.id);
            entries
        };
        let by_id = sorted(entries.clone());
        prop_assert_eq!(sorted(consolidated(&entries, at(100))), sorted(consolidated(&by_id, at(100))));
    }

    #[test]
    fn no_tag_and_no_text_is_lost(entries in some_entries()) {
        let after = consolidated(&entries, at(100));
        prop_assert_eq!(after.len(), entries.len());
        let tags = |entries: &[Memory], live: bool| -> std::collections::BTreeSet<String> {
            let shown = entries.iter().filter(|memory| !live || memory.state != State::Archived);
            shown.flat_map(|memory| memory.metadata["tags"].as_array().unwrap()).map(Value::to_string).collect()
        };
        prop_assert_eq!(tags(&entries, false), tags(&after, true));
        for (before, after) in entries.iter().zip(&after) {
            prop_assert_eq!(&before.content, &after.content);
        }
    }
}
