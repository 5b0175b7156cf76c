//! Whoever may write may stop a response, and its agent hears of it at once.

use crate::recorder::support::*;

/// Over both transports: from asking to the agent's answer takes less than a second.
#[test]
fn a_cancel_reaches_the_agent_within_a_second_and_ends_every_replay() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let over_grpc = |id: &str| {
        let answer = alice.cancel(id).expect("an answer");
        assert!(answer.accepted && answer.redirect_address.is_empty(), "{answer:?}");
    };
    let over_rest = |id: &str| {
        let answer = alice.rest.delete(&response_of(id)).expect(200);
        assert_eq!(answer.text, "");
    };
    let ways: [&dyn Fn(&str); 2] = [&over_grpc, &over_rest];
    for cancel in ways {
        let id = alice.start();
        let recording = alice.record(&id);
        recording.say("Hello");
        let (mut reader, mut events) = (alice.replay(&id), alice.follow(&id));
        reader.expect("Hello");
        events.expect("Hello");

        let asked = Instant::now();
        cancel(&id);
        // The agent has not half-closed and sends nothing.
        recording.expect_cancelled();
        assert!(asked.elapsed() < Duration::from_secs(1), "it took {:?}", asked.elapsed());
        assert!(!alice.is_live(&id), "it is closed when the cancel is answered");
        assert_eq!((reader.rest(), events.rest()), (String::new(), String::new()));
        assert_eq!(alice.replay(&id).rest(), "Hello", "what was said stays for a while");
        cancel(&id);
    }
}

#[test]
fn an_agent_that_talks_on_is_told_too() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    let mut reader = alice.replay(&id);
    std::thread::scope(|scope| {
        let talking = scope.spawn(|| {
            while !recording.has_ended() {
                recording.say("and so on ");
            }
        });
        assert!(reader.next().is_some());
        assert!(alice.cancel(&id).expect("an answer").accepted);
        talking.join().expect("the agent");
    });
    recording.expect_cancelled();
}

#[test]
fn cancelling_what_does_not_run_changes_nothing() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    alice.rest.delete(&response_of(&id)).expect(200);
    assert!(alice.cancel(&id).expect("an answer").accepted);
    alice.record_whole(&id, "Hello");
    alice.rest.delete(&response_of(&id)).expect(200);
    assert!(alice.cancel(&id).expect("an answer").accepted);
    assert_eq!(alice.replay(&id).rest(), "Hello");
}

#[test]
fn a_server_that_records_nothing_says_so() {
    let node = setup().toml("[recorder]\nbackend = \"none\"").start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    assert!(!alice.is_enabled());
    let message = RecordRequest { conversation_id: bytes_of(&id), ..RecordRequest::default() };
    let answer = alice.recorded(vec![message]).expect("a response");
    assert_eq!(
        (answer.status(), answer.error_message.as_str()),
        (RecordStatus::Error, "Response recorder is not enabled")
    );
    assert_eq!(alice.replay(&id).rest(), "");
    alice.rest.get(&response_of(&id)).expect(204);
    assert_eq!(alice.cancel(&id).unwrap_err().code(), Code::FailedPrecondition);
    alice.rest.delete(&response_of(&id)).expect_message(409, "conflict", "Response resumer is not enabled");
    assert_eq!(alice.check(&[&id]), [""; 0]);
}
