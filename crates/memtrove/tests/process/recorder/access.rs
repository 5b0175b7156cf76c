//! Who may record, replay and cancel.

use crate::recorder::support::*;

/// What each level may do: record and cancel, replay.
const LEVELS: [(&str, bool, bool); 5] = [
    ("owner", true, true),
    ("manager", true, true),
    ("writer", true, true),
    ("reader", false, true),
    ("nobody", false, false),
];

#[test]
fn writers_record_and_cancel_readers_replay_and_others_do_nothing() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    for (level, writes, reads) in LEVELS {
        let id = alice.start();
        let caller = match level {
            "owner" => alice.clone(),
            "nobody" => Caller::fresh(&node, level),
            _ => {
                let member = Caller::fresh(&node, level);
                alice.share(&id, &member, level);
                member
            }
        };
        let code = |allowed: bool| if allowed { None } else { Some(Code::PermissionDenied) };
        let message =
            RecordRequest { conversation_id: bytes_of(&id), content: "Hello".into(), complete: true };
        assert_eq!(caller.recorded(vec![message]).err().map(|s| s.code()), code(writes), "{level} records");

        let recording = alice.record(&id);
        recording.say("Hello");
        assert_eq!(caller.try_replay(&id).err().map(|s| s.code()), code(reads), "{level} replays");
        assert_eq!(caller.is_live(&id), reads, "{level} checks");
        match reads {
            true => drop(caller.follow(&id).expect("Hello")),
            false => drop(caller.rest.get(&response_of(&id)).expect_forbidden()),
        }
        assert_eq!(caller.cancel(&id).err().map(|s| s.code()), code(writes), "{level} cancels");
        match writes {
            true => recording.expect_cancelled(),
            false => {
                caller.rest.delete(&response_of(&id)).expect_forbidden();
                assert!(alice.is_live(&id), "a cancel that is refused cancels nothing");
            }
        }
    }
}

#[test]
fn an_agent_has_no_more_rights_than_its_user() {
    let node = setup().start();
    let (alice, stranger) = (Caller::fresh(&node, "alice"), Caller::fresh(&node, "stranger"));
    let id = alice.start();
    let agent = stranger.rest.with_key("agent-a");
    agent.get(&response_of(&id)).expect_forbidden();
    agent.delete(&response_of(&id)).expect_forbidden();
}

#[test]
fn what_does_not_exist_is_not_found() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let unknown = fresh_id();
    let message = RecordRequest { conversation_id: bytes_of(&unknown), ..RecordRequest::default() };
    assert_eq!(alice.recorded(vec![message]).unwrap_err().code(), Code::NotFound);
    assert_eq!(alice.try_replay(&unknown).err().map(|s| s.code()), Some(Code::NotFound));
    assert_eq!(alice.cancel(&unknown).unwrap_err().code(), Code::NotFound);
    for id in [unknown.as_str(), "no-uuid"] {
        alice.rest.get(&response_of(id)).expect_not_found("conversation", id);
        alice.rest.delete(&response_of(id)).expect_not_found("conversation", id);
    }
}

#[test]
fn nobody_is_refused() {
    let node = setup().start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    node.anonymous().get(&response_of(&id)).expect_error(401, "unauthorized");
    node.anonymous().delete(&response_of(&id)).expect_error(401, "unauthorized");
}

#[test]
fn a_member_that_is_removed_cannot_begin_another_replay() {
    let node = setup().start();
    let (alice, bob) = (Caller::fresh(&node, "alice"), Caller::fresh(&node, "bob"));
    let id = alice.start();
    alice.share(&id, &bob, "reader");
    let recording = alice.record(&id);
    bob.replay(&id);
    alice.rest.delete(&format!("/v1/conversations/{id}/memberships/{}", bob.user)).expect(204);
    assert_eq!(bob.try_replay(&id).err().map(|s| s.code()), Some(Code::PermissionDenied));
    recording.complete();
}
