use super::*;
use crate::recorder::disk::Disk;
use crate::recorder::spool::Closed;
use memloom_core::ConversationId;
use memloom_core::identity::Tenant;
use tokio::runtime::Handle;

const PLENTY: usize = 1 << 30;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// A recording of a conversation, both by their numbers.
fn tape(id: u128, conversation: u128) -> Arc<Tape> {
    let disk = Arc::new(Disk::new(None, 0, Handle::current()));
    let conversation = ConversationId(Uuid::from_u128(conversation));
    let key = Key { tenant: Tenant::listed("tenant".into()), conversation };
    let address = Address { host: "node".into(), port: 80 };
    let group = GroupId(Uuid::from_u128(conversation.0.as_u128() % 2));
    Arc::new(Tape::new(Uuid::from_u128(id), key, group, address, Spool::new(disk, 1 << 20)))
}

/// A recording that began and came to its end.
async fn finished(registry: &Registry, id: u128, conversation: u128, text: &str, until: i64) -> Key {
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
