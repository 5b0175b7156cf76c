//! How a call that records begins and ends.

use crate::recorder::support::*;

fn message(content: &str) -> RecordRequest {
    RecordRequest { content: content.to_owned(), ..RecordRequest::default() }
}

fn first(conversation: &str, content: &str) -> RecordRequest {
    RecordRequest { conversation_id: bytes_of(conversation), ..message(content) }
}

#[test]
fn a_response_is_recorded_until_it_is_complete() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    assert!(alice.is_enabled());
    assert_eq!(alice.check(&[&id]), [""; 0]);
    let last = RecordRequest { complete: true, ..message(" world") };
    let answer = alice.recorded(vec![first(&id, "Hello"), last, message(" and more")]).expect("a response");
    assert_eq!((answer.status(), answer.error_message.as_str()), (RecordStatus::Success, ""));
    assert_eq!(alice.replay(&id).rest(), "Hello world", "messages after the end are ignored");
    assert_eq!(alice.check(&[&id]), [""; 0], "what has ended is not in progress");
}

#[test]
fn an_agent_that_half_closes_has_recorded_what_it_said() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let answer = alice.recorded(vec![first(&id, "Hello"), message(" world")]).expect("a response");
    assert_eq!(answer.status(), RecordStatus::Success);
    assert_eq!(alice.replay(&id).rest(), "Hello world");
}

#[test]
fn an_agent_that_hangs_up_leaves_what_it_said_and_nothing_in_progress() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    recording.say("Hello");
    let mut reader = alice.replay(&id);
    reader.expect("Hello");
    recording.hang_up();
    assert_eq!(reader.rest(), "", "a replay ends when its recording does");
    until("nothing is in progress", || !alice.is_live(&id));
    assert_eq!(alice.replay(&id).rest(), "Hello");
}

#[test]
fn an_agent_whose_connection_breaks_leaves_what_it_said_and_nothing_in_progress() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let line = Runtime::new().unwrap();
    let recording = Caller::over(&line, &node, &alice.user).record(&id);
    recording.say("Hello");
    let mut reader = alice.replay(&id);
    reader.expect("Hello");
    line.shutdown_background();
    assert_eq!(reader.rest(), "");
    assert!(recording.answer().is_err());
    until("nothing is in progress", || !alice.is_live(&id));
    assert_eq!(alice.replay(&id).rest(), "Hello");
}

#[test]
fn a_deadline_ends_a_recording_too() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.begin_within(&id, Some(Duration::from_secs(2)));
    recording.say("Hello");
    until("it is live", || alice.is_live(&id));
    let mut reader = alice.replay(&id);
    reader.expect("Hello");
    assert!(recording.answer().is_err());
    assert_eq!(reader.rest(), "");
    until("nothing is in progress", || !alice.is_live(&id));
    assert_eq!(alice.replay(&id).rest(), "Hello");
}

#[test]
fn the_first_message_must_say_which_conversation() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    for messages in [vec![], vec![message("Hello")]] {
        let refused = alice.recorded(messages).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    }
    let malformed =
        RecordRequest { conversation_id: bytes::Bytes::from_static(b"five5"), ..message("Hello") };
    assert_eq!(alice.recorded(vec![malformed]).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn an_id_may_be_repeated_and_may_be_written_as_text() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let as_text = RecordRequest { conversation_id: id.clone().into(), ..message(" world") };
    let answer = alice.recorded(vec![first(&id, "Hello"), as_text, first(&id, "!")]).expect("a response");
    assert_eq!(answer.status(), RecordStatus::Success);
    assert_eq!(alice.replay(&id).rest(), "Hello world!");
}

#[test]
fn a_later_message_with_another_id_is_refused_and_ends_the_recording() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let (id, other) = (alice.start(), alice.start());
    let refused = alice.recorded(vec![first(&id, "Hello"), first(&other, " world")]).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    until("nothing is in progress", || alice.check(&[&id, &other]).is_empty());
    assert_eq!(alice.replay(&id).rest(), "Hello");
}

#[test]
fn a_new_recording_takes_the_place_of_the_one_that_runs() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let old = alice.record(&id);
    old.say("the first answer");
    let mut reader = alice.replay(&id);
    reader.expect("the first answer");
    let new = alice.begin(&id);
    old.expect_cancelled();
    assert_eq!(reader.rest(), "", "its replays end");
    new.say("the second answer");
    let mut reader = alice.replay(&id);
    reader.expect("the second answer");
    new.complete();
    assert_eq!(reader.rest(), "");
    assert_eq!(alice.replay(&id).rest(), "the second answer");
}

#[test]
fn a_response_that_grows_too_large_ends_with_a_sentence_and_is_kept_so_far() {
    let node = setup().toml("[recorder]\nmax_bytes = \"100KiB\"").start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    let fits = "x".repeat(60_000);
    recording.say(&fits);
    recording.say(&fits);
    let answer = recording.answer().expect("a response, while the agent has not half-closed");
    assert_eq!(answer.status(), RecordStatus::Error);
    assert!(answer.error_message.contains("102400 bytes"), "{}", answer.error_message);
    let kept = alice.replay(&id).rest();
    assert!(kept.starts_with(&fits) && kept.len() <= 102_400, "{} bytes", kept.len());
}

#[test]
fn recordings_of_a_node_share_its_disk() {
    let node = setup().toml("[recorder]\nmax_bytes = \"1MiB\"\ndisk = \"1MiB\"").start();
    let alice = Caller::fresh(&node, "alice");
    let (one, other) = (alice.start(), alice.start());
    let piece = "x".repeat(900 << 10);
    let running = alice.record(&one);
    running.say(&piece);
    alice.replay(&one).expect(&piece);
    let recording = alice.record(&other);
    recording.say(&piece);
    let answer = recording.answer().expect("a response");
    assert_eq!(answer.status(), RecordStatus::Error);
    assert!(answer.error_message.contains("no room"), "{}", answer.error_message);
    running.complete();
    assert_eq!(alice.replay(&one).rest().len(), piece.len(), "others lose nothing");
}

#[test]
fn what_has_ended_makes_room_for_what_goes_on() {
    let node = setup().toml("[recorder]\nmax_bytes = \"1MiB\"\ndisk = \"1MiB\"").start();
    let alice = Caller::fresh(&node, "alice");
    let (one, other) = (alice.start(), alice.start());
    let piece = "x".repeat(900 << 10);
    alice.record_whole(&one, &piece);
    alice.record_whole(&other, &piece);
    assert_eq!(alice.replay(&other).rest().len(), piece.len());
    assert_eq!(alice.replay(&one).rest(), "", "its minute is over early");
}

#[test]
fn deleting_a_conversation_ends_the_recordings_of_its_tree() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let entry =
        json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": "Hi"}]});
    let entry = alice.rest.post(&format!("/v1/conversations/{id}/entries"), entry).expect(201).id();
    let fork =
        alice.rest.post(&format!("/v1/conversations/{id}/entries/{entry}/fork"), json!({})).expect(201).id();
    let recordings = [alice.record(&id), alice.record(&fork)];
    let reader = alice.replay(&fork);
    alice.rest.delete(&format!("/v1/conversations/{id}")).expect(204);
    recordings.into_iter().for_each(Recording::expect_cancelled);
    assert_eq!(reader.rest(), "");
    for id in [&id, &fork] {
        assert_eq!(alice.try_replay(id).err().map(|status| status.code()), Some(Code::NotFound));
    }
    assert_eq!(alice.check(&[&id, &fork]), [""; 0]);
}

#[test]
fn a_server_that_stops_ends_recordings_and_replays_first() {
    let mut node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    recording.say("Hello");
    let (mut reader, mut events) = (alice.replay(&id), alice.follow(&id));
    reader.expect("Hello");
    events.expect("Hello");
    let asked = Instant::now();
    assert!(node.stop().success());
    // The grace for what does not end is 10 s.
    assert!(asked.elapsed() < Duration::from_secs(5), "it took {:?}", asked.elapsed());
    let answer = recording.answer().expect("a response");
    assert_eq!((answer.status(), answer.error_message.as_str()), (RecordStatus::Error, "the server stops"));
    assert_eq!((reader.rest(), events.rest()), (String::new(), String::new()));
}
