use super::*;
use crate::recorder::disk::{Disk, PLACE};
use crate::recorder::spool::{Closed, Spool};
use crate::recorder::{Address, RecordingReader};
use memtrove_core::ConversationId;
use memtrove_core::identity::Tenant;
use memtrove_store::locators::{Locator, RecordingKey};
use tokio::runtime::Handle;
use uuid::Uuid;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// A recording of which much is on the disk.
async fn long(disk: &Arc<Disk>) -> Arc<Tape> {
    let key =
        RecordingKey { tenant: Tenant::listed("tenant".into()), conversation: ConversationId(Uuid::nil()) };
    let address = Address { host: "node".into(), port: 80 };
    let locator = Locator { address, recording: Uuid::from_u128(1), node: Uuid::nil() };
    let tape = Tape::new(locator, key, GroupId(Uuid::nil()), Spool::new(Arc::clone(disk), 1 << 30));
    tape.spool.append(&"x".repeat(10 * PLACE)).await.unwrap();
    // Whoever writes holds it for a moment.
    while !tape.spool.is_on_disk() {
        tokio::task::yield_now().await;
    }
    Arc::new(tape)
}

fn disk() -> Arc<Disk> {
    Arc::new(Disk::new(None, 1 << 30, Handle::current()))
}

fn reader(readers: &Readers, tape: &Arc<Tape>) -> RecordingReader {
    RecordingReader::new(readers.seat(Arc::clone(tape), UserId("alice".into()))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stands_still_in_what_has_ended_holds_it_for_a_minute_and_is_cut_off() {
    let (disk, readers) = (disk(), Readers::default());
    let tape = long(&disk).await;
    let (mut first, mut second) = (reader(&readers, &tape), reader(&readers, &tape));
    first.next().await.unwrap().unwrap();
    tape.spool.close(Closed::Finished);
    drop(tape);
    readers.sweep(at(0));
    readers.sweep(at(59));
    second.next().await.unwrap().unwrap();
    readers.sweep(at(60));
    assert_eq!(first.next().await, Err(Error::TIMEOUT));
    assert!(disk.used() > 0, "the other one goes on");
    readers.sweep(at(119));
    assert!(second.next().await.unwrap().is_some(), "it has read since");
    readers.sweep(at(120));
    readers.sweep(at(180));
    assert_eq!(disk.used(), 0, "although both are still there");
    assert_eq!(second.next().await, Err(Error::TIMEOUT));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stands_still_in_what_goes_on_is_not_cut_off() {
    let (disk, readers) = (disk(), Readers::default());
    let tape = long(&disk).await;
    let mut reader = reader(&readers, &tape);
    readers.sweep(at(0));
    readers.sweep(at(1000));
    tape.spool.close(Closed::Finished);
    readers.sweep(at(1001));
    readers.sweep(at(1060));
    assert!(reader.next().await.unwrap().is_some(), "its minute begins with the end");
}

#[test]
fn a_reader_that_is_never_asked_again_while_it_reads_from_the_disk_holds_nothing() {
    // One thread for the disk, so that a read waits for as long as something else is on it.
    let runtime = tokio::runtime::Builder::new_multi_thread().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (disk, readers) = (disk(), Readers::default());
        let tape = long(&disk).await;
        let mut reader = reader(&readers, &tape);
        let (release, held) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv().is_err());
        let mut next = Box::pin(reader.next());
        let waits =
            std::future::poll_fn(|context| std::task::Poll::Ready(next.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        drop(release);
        assert!(busy.await.unwrap());
        tape.spool.close(Closed::Finished);
        drop(tape);
        readers.sweep(at(0));
        readers.sweep(at(60));
        while disk.used() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[tokio::test]
async fn whoever_waits_for_more_hears_at_once_that_it_was_cut_off() {
    let (disk, readers) = (disk(), Readers::default());
    let tape = long(&disk).await;
    let mut reader = reader(&readers, &tape);
    assert!(reader.skip_to(tape.spool.length()));
    let why = || Error::forbidden("no member any more");
    let cut = async { readers.all().iter().for_each(|seat| seat.cut_off(why())) };
    let (next, ()) = tokio::join!(reader.next(), cut);
    assert_eq!(next, Err(why()));
}
