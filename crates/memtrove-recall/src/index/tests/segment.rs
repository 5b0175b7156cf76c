//! Partitions that were written down and read again, against those that were not.

use super::super::search::Effort;
use super::super::{Partition, SegmentPart, SpaceNo};
use super::model::{Part, Text, put};
use super::properties::{history, play, question, search};
use proptest::prelude::*;

fn parts(partition: &Partition<u32>) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let write = |meta: &u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&meta.to_le_bytes());
    let kept = partition.snapshot().write(write, |part| {
        parts.push(part.to_vec());
        Ok::<_, ()>(())
    });
    assert_eq!(kept, Ok(()));
    parts
}

fn read(part: &[u8]) -> Option<SegmentPart<u32>> {
    SegmentPart::read(part, |bytes| {
        let (meta, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u32::from_le_bytes(*meta))
    })
}

fn assemble<'a>(parts: impl IntoIterator<Item = &'a Vec<u8>>) -> Option<Partition<u32>> {
    let parts: Option<Vec<_>> = parts.into_iter().map(|part| read(part)).collect();
    Partition::assemble(parts?)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_was_written_down_finds_the_same_and_goes_on_the_same(
        (before, after) in (history(), history()),
        question in question(),
        (promising, postings) in (1..20usize, 0..40usize),
        backwards in any::<bool>(),
    ) {
        let (mut partition, _) = play(&before);
        let mut parts = parts(&partition);
        if backwards {
            parts.reverse();
        }
        let mut restored = assemble(&parts).expect("all parts are there");
        let efforts = [Effort::Complete, Effort::Bounded { promising, postings }];
        for effort in efforts {
            prop_assert_eq!(search(&restored, &question, effort), search(&partition, &question, effort));
        }
        for (key, text) in &after {
            match text {
                Some(text) => {
                    put(&mut partition, *key, text);
                    put(&mut restored, *key, text);
                }
                None => assert_eq!(restored.remove(*key), partition.remove(*key)),
            }
        }
        prop_assert_eq!(restored.len(), partition.len());
        prop_assert_eq!(restored.pieces(), partition.pieces());
        prop_assert_eq!(restored.statistics(&question.terms), partition.statistics(&question.terms));
        let documents = partition.document_statistics(&question.terms);
        prop_assert_eq!(restored.document_statistics(&question.terms), documents);
        for effort in efforts {
            prop_assert_eq!(search(&restored, &question, effort), search(&partition, &question, effort));
        }
        let keys: Vec<u64> = partition.iter().map(|(key, _)| key).collect();
        keys.iter().for_each(|key| assert!(restored.remove(*key).is_some()));
        prop_assert_eq!(restored.bytes(), Partition::<u32>::new().bytes());
    }

    #[test]
    fn a_snapshot_is_of_the_moment_it_was_taken((before, after) in (history(), history()), question in question()) {
        let (mut partition, _) = play(&before);
        let (then, snapshot) = (search(&partition, &question, Effort::Complete), partition.snapshot());
        for (key, text) in &after {
            match text {
                Some(text) => put(&mut partition, *key, text),
                None => drop(partition.remove(*key)),
            }
        }
        let mut parts = Vec::new();
        let write = |meta: &u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&meta.to_le_bytes());
        snapshot.write(write, |part| { parts.push(part.to_vec()); Ok::<_, ()>(()) }).unwrap();
        let restored = assemble(&parts).expect("all parts are there");
        prop_assert_eq!(search(&restored, &question, Effort::Complete), then);
    }

    #[test]
    fn parts_that_are_cut_doubled_or_missing_are_refused(
        history in history(),
        which in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
    ) {
        let (partition, _) = play(&history);
        let parts = parts(&partition);
        let number = which.index(parts.len());
        let cut = &parts[number][..end.index(parts[number].len())];
        prop_assert!(read(cut).is_none());
        prop_assert!(read(&[&parts[number][..], &[0]].concat()).is_none());
        let missing = parts.iter().enumerate().filter(|(at, _)| *at != number).map(|(_, part)| part);
        prop_assert!(assemble(missing).is_none());
        if number > 0 {
            prop_assert!(assemble(parts.iter().chain([&parts[number]])).is_none());
        }
    }
}

/// More than one chunk of pieces and of documents, holes in both, and long lists of postings.
#[test]
fn a_large_partition_is_written_down_and_read() {
    let text = |key: u64| Text {
        meta: key as u32,
        space: Some(SpaceNo(0)),
        parts: vec![Part {
            vector: Some((0..16).map(|n| ((key * 31 + n * 17) % 23) as f32 - 11.0).collect()),
            terms: vec![(key % 7, 1), (100 + key % 1000, 2), (5000 + key, 1)],
            length: 3,
        }],
    };
    let mut partition = Partition::new();
    (0..20_000).for_each(|key| put(&mut partition, key, &text(key)));
    (0..20_000)
        .filter(|key| key % 5 == 0 || *key > 9000 && *key < 14_000)
        .for_each(|key| assert_eq!(partition.remove(key), Some(key as u32)));
    let mut restored = assemble(&parts(&partition)).expect("all parts are there");
    (3000..12_000).for_each(|key| {
        put(&mut partition, key, &text(key + 1));
        put(&mut restored, key, &text(key + 1));
    });
    let terms: Vec<u64> = (0..7).chain(100..1100).chain(5000..25_000).collect();
    assert_eq!(restored.statistics(&terms), partition.statistics(&terms));
    assert_eq!(restored.len(), partition.len());
    assert!(restored.iter().all(|(key, meta)| partition.meta(key) == Some(meta)));
}

/// Bytes that another version wrote are read as long as this holds: if it does not, raise `SEGMENT_FORMAT`.
#[test]
fn the_format_is_that_of_its_number() {
    let parts = ["a", "b"].map(|_| Part {
        vector: Some((0..37).map(|n| (n as f32 - 11.5) / 7.0).collect()),
        terms: vec![(0xfeed_beef, 2), (7, 1)],
        length: 9,
    });
    let mut partition = Partition::new();
    put(&mut partition, 77, &Text { meta: 5, space: Some(SpaceNo(3)), parts: parts.to_vec() });
    let bytes = self::parts(&partition).concat();
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    assert_eq!((super::super::SEGMENT_FORMAT, bytes.len(), digest), (1, 614, 16_764_743_332_369_082_819));
}
