//! Whoever replays gets everything, from the first character on, however late, slow or many.

use crate::recorder::support::*;

#[test]
fn a_replay_begun_in_the_middle_gets_everything_and_goes_on() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    recording.say("Once upon");
    let (mut reader, mut events) = (alice.replay(&id), alice.follow(&id));
    reader.expect("Once upon");
    events.expect("Once upon");
    recording.say(" a time");
    reader.expect(" a time");
    events.expect(" a time");
    assert!(alice.is_live(&id));
    recording.say(" there was");
    recording.complete();
    assert_eq!(reader.rest(), " there was");
    assert_eq!(events.rest(), " there was");
}

#[test]
fn three_replays_at_once_get_the_same() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let text = long_text(300_000);
    let recording = alice.record(&id);
    let pieces: Vec<String> =
        text.chars().collect::<Vec<_>>().chunks(7_001).map(|c| c.iter().collect()).collect();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (alice, id) = (alice.clone(), id.as_str());
                scope.spawn(move || (alice.replay(id).rest(), alice.follow(id).rest()))
            })
            .collect();
        for piece in &pieces {
            recording.say(piece);
        }
        recording.complete();
        for reader in readers {
            let (replayed, followed) = reader.join().expect("a reader");
            assert!(replayed == text && followed == text, "{} and {} bytes", replayed.len(), followed.len());
        }
    });
}

#[test]
fn a_finished_response_is_replayable_for_a_while() {
    let node = setup().toml("[recorder]\nfinished_retention = \"5s\"").start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let before = Instant::now();
    alice.record_whole(&id, "Hello");
    assert_eq!(alice.replay(&id).rest(), "Hello");
    assert_eq!(alice.follow(&id).rest(), "Hello");
    until("it is gone", || alice.replay(&id).rest().is_empty());
    assert!(before.elapsed() >= Duration::from_secs(5), "it was gone after {:?}", before.elapsed());
    alice.rest.get(&response_of(&id)).expect(204);
}

#[test]
fn a_replay_that_began_in_time_is_finished_whatever_happens_to_its_recording() {
    let node = setup().toml("[recorder]\nfinished_retention = \"100ms\"").start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let text = long_text(2_000_000);
    let recording = alice.record(&id);
    let (reader, events) = (alice.replay(&id), alice.follow(&id));
    recording.say(&text);
    recording.complete();
    until("its retention is over", || alice.replay(&id).rest().is_empty());
    alice.record_whole(&id, "another one");
    assert!(reader.rest() == text);
    assert!(events.rest() == text);
}

#[test]
fn a_conversation_without_a_recording_has_nothing_to_replay() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    assert_eq!(alice.replay(&id).rest(), "");
    let nothing = alice.rest.get(&response_of(&id)).expect(204);
    assert_eq!((nothing.text.as_str(), nothing.header("cache-control")), ("", "no-store"));
    assert!(alice.cancel(&id).expect("an answer").accepted);
}

#[test]
fn no_character_is_split_wherever_it_falls() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    // By one byte further each time, so that whatever the server cuts into pieces begins inside a character somewhere.
    for shift in 0..4 {
        let id = alice.start();
        let text = format!("{}{}", "x".repeat(shift), "🧵".repeat(50_000));
        let recording = alice.record(&id);
        let reader = alice.replay(&id);
        for piece in text.chars().collect::<Vec<_>>().chunks(997) {
            recording.say(&piece.iter().collect::<String>());
        }
        recording.complete();
        assert!(reader.rest() == text);
        assert!(alice.follow(&id).rest() == text);
    }
}

#[test]
fn ten_megabytes_are_replayed_whole_live_and_afterwards() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let text = long_text(10_000_000);
    let recording = alice.record(&id);
    std::thread::scope(|scope| {
        let live = scope.spawn(|| (alice.replay(&id).rest(), alice.follow(&id).rest()));
        for piece in text.chars().collect::<Vec<_>>().chunks(20_000) {
            recording.say(&piece.iter().collect::<String>());
        }
        recording.complete();
        let (replayed, followed) = live.join().expect("a reader");
        assert!(replayed == text && followed == text, "{} and {} bytes", replayed.len(), followed.len());
    });
    assert!(alice.replay(&id).rest() == text);
    assert!(alice.follow(&id).rest() == text);
}

#[test]
fn a_reader_that_stands_still_slows_nobody_and_misses_nothing() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let text = long_text(10_000_000);
    let recording = alice.record(&id);
    recording.say("first");
    let (mut slow, mut slow_events) = (alice.replay(&id), alice.follow(&id));
    slow.expect("first");
    slow_events.expect("first");
    // Neither reads on: what they do not take fills their windows, and must not fill the recorder's.
    for piece in text.chars().collect::<Vec<_>>().chunks(20_000) {
        recording.say(&piece.iter().collect::<String>());
    }
    recording.complete();
    assert_eq!(alice.replay(&id).rest().len(), "first".len() + text.len(), "others are not slowed");
    assert!(slow.rest() == text);
    assert!(slow_events.rest() == text);
}

#[test]
fn checking_answers_what_is_live_and_readable_in_the_order_of_the_request() {
    let node = setup().start();
    let (alice, bob) = (Caller::fresh(&node, "alice"), Caller::fresh(&node, "bob"));
    let [one, two, finished, silent] = [(); 4].map(|()| alice.start());
    let foreign = bob.start();
    let recordings = [alice.record(&one), alice.record(&two), bob.record(&foreign)];
    alice.record_whole(&finished, "done");
    let unknown = fresh_id();
    let asked = [two.as_str(), &unknown, &finished, &foreign, &one, &silent, &two];
    assert_eq!(alice.check(&asked), [two.as_str(), &one, &two]);
    assert_eq!(bob.check(&asked), [foreign.as_str()]);
    assert_eq!(alice.check(&[]), [""; 0]);
    drop(recordings);
}
