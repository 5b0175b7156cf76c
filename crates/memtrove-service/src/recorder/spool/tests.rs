use super::*;
use crate::recorder::disk::PLACE;
use crate::recorder::readers::Seat;
use crate::recorder::registry::Tape;
use crate::recorder::{Address, RecordingReader};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, GroupId, UserId};
use memtrove_store::locators::{Locator, RecordingKey};
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Handle;
use uuid::Uuid;

const PLENTY: u64 = 1 << 30;

fn disk(directory: &Path, bytes: u64) -> Arc<Disk> {
    Arc::new(Disk::new(Some(directory.to_owned()), bytes, Handle::current()))
}

fn tape(disk: &Arc<Disk>, max_bytes: u64) -> Arc<Tape> {
    let key =
        RecordingKey { tenant: Tenant::listed("tenant".into()), conversation: ConversationId(Uuid::nil()) };
    let address = Address { host: "node".into(), port: 80 };
    let locator = Locator { address, recording: Uuid::from_u128(1), node: Uuid::nil() };
    Arc::new(Tape::new(locator, key, GroupId(Uuid::nil()), Spool::new(Arc::clone(disk), max_bytes)))
}

fn reader_of(tape: Arc<Tape>) -> RecordingReader {
    RecordingReader::new(Arc::new(Seat::new(tape, UserId("alice".into())))).unwrap()
}

/// Reads to the end, a little later each time.
async fn read(mut reader: RecordingReader, pace: usize) -> String {
    let mut text = String::new();
    while let Some(more) = reader.next().await.unwrap() {
        assert!(!more.is_empty());
        text.push_str(&more);
        assert_eq!(reader.position(), text.len() as u64);
        for _ in 0..pace {
            tokio::task::yield_now().await;
        }
    }
    text
}

/// Text of so many bytes, about, that no other number gives.
fn text(number: usize, length: usize) -> String {
    let word = format!("{number}-aß語🦀 ");
    word.repeat(length / word.len() + 1)
}

/// Waits until so many places are taken: whoever wrote to one may hold it a moment longer than anybody can tell.
async fn until_used(disk: &Disk, places: u32) {
    let used = async {
        while disk.used() != places {
            tokio::task::yield_now().await;
        }
    };
    let late = |_| panic!("{} places are taken, not {places}", disk.used());
    tokio::time::timeout(Duration::from_secs(5), used).await.unwrap_or_else(late);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

proptest! {
    #[test]
    fn every_reader_reads_all_that_was_appended_whatever_its_pace_and_beginning(
        appends in prop::collection::vec(prop_oneof![
            "\\PC{0,12}",
            (0usize..9, 0usize..3 * PLACE).prop_map(|(number, length)| text(number, length)),
        ], 0..24),
        readers in prop::collection::vec((0usize..24, 0usize..4, any::<prop::sample::Index>()), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let whole = appends.concat();
        let read = runtime().block_on(async {
            let tape = tape(&disk(folder.path(), PLENTY), PLENTY);
            let mut read_by = Vec::new();
            for (number, content) in appends.iter().enumerate() {
                for (_, pace, skipped) in readers.iter().filter(|(begin, ..)| *begin == number) {
                    let mut reader = reader_of(Arc::clone(&tape));
                    // Only where a character begins: nobody is ever told another position.
                    let length = tape.spool.length() as usize;
                    let skipped = last_boundary(&whole[..length], skipped.index(length + 1));
                    assert!(reader.skip_to(skipped as u64));
                    read_by.push((skipped, tokio::spawn(read_from(reader, *pace, skipped))));
                }
                tape.spool.append(content).await.unwrap();
            }
            tape.spool.close(Closed::Finished);
            for (_, pace, _) in readers.iter().filter(|(begin, ..)| *begin >= appends.len()) {
                read_by.push((0, tokio::spawn(read(reader_of(Arc::clone(&tape)), *pace))));
            }
            let mut read = Vec::new();
            for (skipped, reading) in read_by {
                read.push((skipped, reading.await.unwrap()));
            }
            read
        });
        for (skipped, text) in read {
            prop_assert!(text == whole[skipped..], "{} bytes of {} from {skipped}", text.len(), whole.len());
        }
    }
}

async fn read_from(mut reader: RecordingReader, pace: usize, skipped: usize) -> String {
    let mut text = String::new();
    while let Some(more) = reader.next().await.unwrap() {
        text.push_str(&more);
        assert_eq!(reader.position(), (skipped + text.len()) as u64);
        for _ in 0..pace {
            tokio::task::yield_now().await;
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_megabytes_take_the_memory_of_two_pieces_and_are_read_by_several() {
    let folder = tempfile::tempdir().unwrap();
    let tape = tape(&disk(folder.path(), PLENTY), PLENTY);
    let early = tokio::spawn(read(reader_of(Arc::clone(&tape)), 0));
    let (mut whole, mut most) = (String::new(), 0);
    for number in 0.. {
        let more = text(number, 700);
        tape.spool.append(&more).await.unwrap();
        whole.push_str(&more);
        most = most.max(tape.spool.memory());
        if whole.len() > 10_000_000 {
            break;
        }
    }
    tape.spool.close(Closed::Finished);
    assert!(most <= 3 * PLACE, "{most} bytes");
    assert!(early.await.unwrap() == whole);
    let (late, slow) = (read(reader_of(Arc::clone(&tape)), 0), read(reader_of(Arc::clone(&tape)), 3));
    let (late, slow) = tokio::join!(late, slow);
    assert!(late == whole && slow == whole);
}

#[tokio::test]
async fn a_reader_goes_on_where_another_one_stopped_and_nowhere_beyond_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let tape = tape(&disk(folder.path(), PLENTY), PLENTY);
    tape.spool.append("Grüße").await.unwrap();
    let mut reader = reader_of(Arc::clone(&tape));
    assert_eq!(reader.next().await.unwrap().unwrap(), "Grüße");
    tape.spool.append(", Welt").await.unwrap();
    tape.spool.close(Closed::Finished);
    let mut other = reader_of(Arc::clone(&tape));
    assert!(other.skip_to(reader.position()));
    assert_eq!(other.next().await.unwrap().unwrap(), ", Welt");
    assert!(!other.skip_to(14));
    assert_eq!(other.next().await.unwrap(), None);
    // Inside the ü: nobody was given that, and it is no reason to fail.
    assert!(other.skip_to(3));
    assert_eq!(other.next().await.unwrap().unwrap(), "ße, Welt");
}

#[tokio::test]
async fn what_would_make_a_recording_too_large_is_refused_as_a_whole_and_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let tape = tape(&disk(folder.path(), PLENTY), 10);
    tape.spool.append("12345678").await.unwrap();
    let refused = EndReason::TooLarge { max_bytes: 10 };
    assert_eq!(tape.spool.append("9ab").await, Err(refused));
    assert_eq!(tape.spool.append("9").await, Err(refused));
    assert_eq!(tape.spool.ended().await, refused);
    assert_eq!(read(reader_of(tape), 0).await, "12345678");
}

#[tokio::test]
async fn recordings_end_where_the_disk_they_may_use_ends_and_the_next_ones_find_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(folder.path(), 3 * PLACE as u64);
    let (first, second) = (tape(&disk, PLENTY), tape(&disk, PLENTY));
    let piece = "x".repeat(PIECE);
    // The last piece of each is in memory.
    for _ in 0..3 {
        first.spool.append(&piece).await.unwrap();
    }
    second.spool.append(&piece).await.unwrap();
    second.spool.append(&piece).await.unwrap();
    assert_eq!(second.spool.append("more").await, Err(EndReason::NoRoom));
    assert_eq!(second.spool.ended().await, EndReason::NoRoom);
    assert_eq!(read(reader_of(Arc::clone(&second)), 0).await.len(), 2 * PIECE);
    assert_eq!(first.spool.append("more").await, Err(EndReason::NoRoom));
    let mut reader = reader_of(Arc::clone(&first));
    drop(first);
    reader.next().await.unwrap();
    until_used(&disk, 3).await;
    drop(reader);
    until_used(&disk, 1).await;
    let third = tape(&disk, PLENTY);
    for _ in 0..3 {
        third.spool.append(&piece).await.unwrap();
    }
    third.spool.close(Closed::Finished);
    assert_eq!(read(reader_of(third), 0).await.len(), 3 * PIECE);
    drop(second);
    until_used(&disk, 0).await;
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_ends_and_what_was_recorded_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder.path().join("missing"), PLENTY);
    let tape = tape(&disk, PLENTY);
    let whole = text(1, PIECE + 10);
    tape.spool.append(&whole).await.unwrap();
    assert_eq!(tape.spool.ended().await, EndReason::Failed);
    assert_eq!(tape.spool.append("more").await, Err(EndReason::Failed));
    assert!(read(reader_of(Arc::clone(&tape)), 0).await == whole);
    until_used(&disk, 0).await;
    // As soon as it can be written again, it is.
    std::fs::create_dir(folder.path().join("missing")).unwrap();
    let next = self::tape(&disk, PLENTY);
    next.spool.append(&whole).await.unwrap();
    next.spool.close(Closed::Finished);
    assert!(read(reader_of(next), 0).await == whole);
}

#[tokio::test]
async fn what_is_on_the_disk_has_no_name_and_cannot_be_read_there() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(folder.path(), PLENTY);
    let tape = tape(&disk, PLENTY);
    tape.spool.append(&"a secret that nobody may read ".repeat(4000)).await.unwrap();
    tape.spool.append(&"x".repeat(PIECE)).await.unwrap();
    tape.spool.close(Closed::Finished);
    assert!(read(reader_of(Arc::clone(&tape)), 0).await.contains("secret"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let mut found = vec![0; PLACE];
    disk.read(0, &mut found).unwrap();
    assert!(found.iter().any(|byte| *byte != 0));
    assert!(!found.windows(6).any(|bytes| bytes == b"secret"));
}

#[tokio::test]
async fn whoever_waits_for_more_is_woken_by_an_append_and_by_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let tape = tape(&disk(folder.path(), PLENTY), PLENTY);
    let mut reader = reader_of(Arc::clone(&tape));
    let (next, ()) = tokio::join!(reader.next(), async { tape.spool.append("a").await.unwrap() });
    assert_eq!(next.unwrap().unwrap(), "a");
    let (next, ()) = tokio::join!(reader.next(), async { tape.spool.close(Closed::Finished) });
    assert_eq!(next.unwrap(), None);
}

#[tokio::test]
async fn a_recording_goes_on_where_others_can_do_without_their_room() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(folder.path(), 2 * PLACE as u64);
    let (old, live) = (tape(&disk, PLENTY), tape(&disk, PLENTY));
    let piece = "x".repeat(PIECE);
    for _ in 0..3 {
        old.spool.append(&piece).await.unwrap();
    }
    old.spool.close(Closed::Finished);
    // Whoever writes holds it for a moment.
    while !old.spool.is_on_disk() {
        tokio::task::yield_now().await;
    }
    let spare = Mutex::new(Some(old));
    disk.let_make_room(move || spare.lock().unwrap().take().is_some());
    for _ in 0..3 {
        live.spool.append(&piece).await.unwrap();
    }
    assert_eq!(live.spool.append("more").await, Err(EndReason::NoRoom), "nothing else is there to give");
    assert_eq!(read(reader_of(live), 0).await.len(), 3 * PIECE);
}
