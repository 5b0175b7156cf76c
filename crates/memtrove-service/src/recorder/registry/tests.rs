use super::*;
use crate::recorder::Address;
use crate::recorder::disk::Disk;
use crate::recorder::spool::Closed;
use memtrove_core::ConversationId;
use memtrove_core::identity::Tenant;
use tokio::runtime::Handle;

const PLENTY: usize = 1 << 30;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// A recording of a conversation, both by their numbers.
fn tape(id: u128, conversation: u128) -> Arc<Tape> {
    tape_on(&Arc::new(Disk::new(None, 1 << 30, Handle::current())), id, conversation)
}

fn tape_on(disk: &Arc<Disk>, id: u128, conversation: u128) -> Arc<Tape> {
    let conversation = ConversationId(Uuid::from_u128(conversation));
    let key = RecordingKey { tenant: Tenant::listed("tenant".into()), conversation };
    let address = Address { host: "node".into(), port: 80 };
    let group = GroupId(Uuid::from_u128(conversation.0.as_u128() % 2));
    let locator = Locator { address, recording: Uuid::from_u128(id), node: Uuid::nil() };
    Arc::new(Tape::new(locator, key, group, Spool::new(Arc::clone(disk), 1 << 20)))
}

/// A recording that began and came to its end.
async fn finished(registry: &Registry, id: u128, conversation: u128, text: &str, until: i64) -> RecordingKey {
    let tape = tape(id, conversation);
    registry.begin(&tape).unwrap();
    tape.spool.append(text).await.unwrap();
    tape.spool.close(Closed::Finished);
    registry.end(&tape, Some(at(until)));
    tape.key.clone()
}

#[tokio::test]
async fn a_finished_recording_is_kept_until_its_time_is_over_and_then_let_go() {
    let registry = Registry::new(PLENTY);
    let key = finished(&registry, 1, 1, "text", 10).await;
    let tape = Arc::downgrade(&registry.get(&key, at(9)).unwrap());
    assert!(registry.get(&key, at(10)).is_none());
    registry.sweep(at(9));
    assert!(tape.upgrade().is_some());
    registry.sweep(at(10));
    assert!(tape.upgrade().is_none(), "nobody holds it");
}

#[tokio::test]
async fn what_begins_takes_the_place_of_what_was_there() {
    let registry = Registry::new(PLENTY);
    let key = finished(&registry, 1, 1, "text", 10).await;
    let (second, third) = (tape(2, 1), tape(3, 1));
    assert!(registry.begin(&second).unwrap().is_none(), "nothing has to stop");
    assert_eq!(registry.get(&key, at(0)).unwrap().id, second.id);
    assert_eq!(registry.begin(&third).unwrap().unwrap().id, second.id);
    // The end of one that has lost its place is nobody's business.
    registry.end(&second, Some(at(10)));
    assert_eq!(registry.get(&key, at(0)).unwrap().id, third.id);
    registry.end(&third, None);
    assert!(registry.get(&key, at(0)).is_none());
    // Nor is that of one whose time is over while another has its place.
    registry.begin(&tape(4, 1)).unwrap();
    registry.sweep(at(100));
    assert!(registry.live(&key).is_some());
}

#[tokio::test]
async fn the_oldest_finished_recordings_go_when_all_take_too_much_memory() {
    let registry = Registry::new(3 * (10_000 + OVERHEAD));
    let text = "x".repeat(10_000);
    let mut keys = Vec::new();
    for number in 1..=4 {
        keys.push(finished(&registry, number, number, &text, 10).await);
    }
    let kept: Vec<bool> = keys.iter().map(|key| registry.get(key, at(0)).is_some()).collect();
    assert_eq!(kept, [false, true, true, true]);
}

#[tokio::test]
async fn the_recordings_of_a_tree_are_found_and_its_finished_ones_let_go() {
    let registry = Registry::new(PLENTY);
    let (odd, even) =
        (finished(&registry, 1, 1, "text", 10).await, finished(&registry, 2, 2, "text", 10).await);
    let (live, other) = (tape(3, 3), tape(4, 4));
    registry.begin(&live).unwrap();
    registry.begin(&other).unwrap();
    let found = registry.of_tree(live.group);
    assert_eq!(found.iter().map(|tape| tape.id).collect::<Vec<_>>(), [live.id]);
    assert!(registry.get(&odd, at(0)).is_none());
    assert!(registry.get(&even, at(0)).is_some());
}

#[tokio::test]
async fn nothing_begins_on_a_node_that_stops() {
    let registry = Registry::new(PLENTY);
    let live = tape(1, 1);
    registry.begin(&live).unwrap();
    assert_eq!(registry.close().len(), 1);
    assert!(registry.begin(&tape(2, 2)).is_err());
}

#[tokio::test]
async fn one_that_took_the_place_of_others_does_not_hide_what_is_kept_of_them() {
    // Room for three that are remembered, with or without a text.
    let registry = Registry::new(3 * OVERHEAD);
    for number in 1..=100 {
        finished(&registry, number, 1, "", 10).await;
    }
    assert!(registry.held().order.len() <= 3, "{} are remembered", registry.held().order.len());
    registry.sweep(at(10));
    assert_eq!(registry.held().memory, 0);
}

#[tokio::test]
async fn what_was_begun_elsewhere_takes_the_place_of_what_ended_here() {
    let registry = Registry::new(PLENTY);
    let key = finished(&registry, 1, 1, "text", 10).await;
    registry.forget_others(&key, Uuid::from_u128(1));
    assert!(registry.get(&key, at(0)).is_some(), "that is the one");
    registry.forget_others(&key, Uuid::from_u128(2));
    assert!(registry.get(&key, at(0)).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn room_is_made_by_the_oldest_on_the_disk_that_nobody_has() {
    let disk = Arc::new(Disk::new(None, 1 << 30, Handle::current()));
    let registry = Registry::new(PLENTY);
    let mut keys = Vec::new();
    for (number, length) in [(1, 10), (2, 100_000), (3, 100_000), (4, 100_000)] {
        let tape = tape_on(&disk, number, number);
        registry.begin(&tape).unwrap();
        tape.spool.append(&"x".repeat(length)).await.unwrap();
        tape.spool.close(Closed::Finished);
        registry.end(&tape, Some(at(10)));
        keys.push(tape.key.clone());
        // Whoever writes holds it for a moment.
        while length > 10 && !tape.spool.is_on_disk() {
            tokio::task::yield_now().await;
        }
    }
    let kept = || keys.iter().map(|key| registry.get(key, at(0)).is_some()).collect::<Vec<_>>();
    let read = registry.get(&keys[1], at(0)).unwrap();
    let used = disk.used();
    assert!(registry.make_room());
    assert_eq!(kept(), [true, true, false, true]);
    assert!(disk.used() < used, "at once");
    drop(read);
    assert!(registry.make_room() && registry.make_room());
    assert_eq!(kept(), [true, false, false, false]);
    assert!(!registry.make_room(), "one in memory makes no room");
}
