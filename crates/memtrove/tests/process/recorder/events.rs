//! A response as a browser reads it: server-sent events that go on where the connection broke.

use crate::recorder::support::*;

/// The id of a recording, out of the id of an event of it.
fn recording_of(id: &str) -> String {
    id.split_once(':').expect("a recording and a place").0.to_owned()
}

#[test]
fn events_carry_the_text_and_where_it_ends() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    alice.record_whole(&id, "déjà \"vu\"\n\u{2028}");
    let mut events = alice.follow(&id);
    let piece = events.next().expect("a piece");
    assert_eq!((piece.name.as_str(), piece.content()), ("", "déjà \"vu\"\n\u{2028}".to_owned()));
    let recording = recording_of(&piece.id);
    assert_eq!(piece.id, format!("{recording}:{}", "déjà \"vu\"\n\u{2028}".len()));
    let end = events.next().expect("the end");
    let expected = SentEvent {
        id: format!("{recording}:end"),
        name: "end".into(),
        data: r#"{"status":"success"}"#.into(),
    };
    assert_eq!(end, expected, "with data, without which a browser does not tell of it");
    assert_eq!(events.next(), None);
}

#[test]
fn a_reader_that_comes_back_goes_on_where_it_was() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    recording.say("Once upon");
    let last = alice.follow(&id).expect("Once upon");
    recording.say(" a time");
    let mut events = alice.follow_after(&id, Some(&last));
    let last = events.expect(" a time");
    // The connection breaks while nothing is said, and after the end.
    drop(events);
    let mut events = alice.follow_after(&id, Some(&last));
    recording.say(" there was");
    let last = events.expect(" there was");
    recording.complete();
    assert_eq!(events.rest(), "");
    assert_eq!(alice.follow_after(&id, Some(&last)).rest(), "", "whoever missed the end is told of it");
    let by_query = format!("{}?lastEventId={}:9", response_of(&id), recording_of(&last));
    let answer = alice.rest.get(&by_query).expect(200);
    assert!(answer.text.contains(r#"data: {"content":" a time there was"}"#), "{}", answer.text);
    let stronger = alice.rest.with_header("last-event-id", &last).get(&by_query).expect(200);
    assert!(!stronger.text.contains("content"), "{}", stronger.text);
}

#[test]
fn a_reader_that_has_seen_the_end_is_told_that_there_is_nothing_more() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    alice.record_whole(&id, "Hello");
    let mut events = alice.follow(&id);
    let end = std::iter::from_fn(|| events.next()).last().expect("the end").id;
    alice.rest.with_header("last-event-id", &end).get(&response_of(&id)).expect(204);
}

#[test]
fn a_reader_of_another_recording_begins_anew_and_knows_it() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    alice.record_whole(&id, "the first answer");
    let mut events = alice.follow(&id);
    let last = events.expect("the first answer");
    alice.record_whole(&id, "the second answer");
    let current = recording_of(&alice.follow(&id).expect("the second answer"));
    let beyond = format!("{current}:999");
    let nonsense = [last.as_str(), &beyond, "yesterday", ":", "a:b:c"];
    for last in nonsense {
        let mut events = alice.follow_after(&id, Some(last));
        let restart = events.next().expect("an event");
        assert_eq!((restart.name.as_str(), restart.data.as_str()), ("restart", "{}"), "{last}");
        assert_eq!(events.rest(), "the second answer", "{last}");
    }
    assert_eq!(alice.follow_after(&id, Some("")).rest(), "the second answer", "an empty id is none");
}

#[test]
fn a_place_inside_a_character_leads_behind_it() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    alice.record_whole(&id, "a🧵b");
    let recording = recording_of(&alice.follow(&id).expect("a🧵b"));
    // Nobody was told of the places 2 to 4.
    for place in 2..=5 {
        assert_eq!(alice.follow_after(&id, Some(&format!("{recording}:{place}"))).rest(), "b", "{place}");
    }
}
