//! What one node does on its own.

use super::{AT_ONCE, conversation, ended_within, goes_on, in_progress, read, reader, record, replayed};
use crate::world::{World, caller, principal};
use memtrove_core::conversations::AccessLevel;
use memtrove_core::identity::Caller;
use memtrove_core::{Code, ConversationId, Details, Error, Json, Resource};
use memtrove_service::conversations::{AppendRequest, MemberLevel};
use memtrove_service::recorder::{Cancel, EndReason, Replay};
use memtrove_service::{RecorderBackend, RecorderSettings, Services, Settings};
use memtrove_store::AllTenants;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

const SECOND: i64 = 1_000_000;

async fn world(recorder: RecorderSettings) -> World {
    World::new(Settings { recorder, ..Settings::default() }).await
}

#[tokio::test]
async fn a_replay_begins_at_the_first_word_and_follows_until_the_end() {
    let world = world(RecorderSettings::default()).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let mut recording = record(&world.services, &alice, id).await;
    recording.append("Once upon").await.unwrap();
    let mut early = reader(&world.services, &alice, id).await;
    assert_eq!(early.recording_id(), recording.id());
    assert_eq!(early.next().await.unwrap().unwrap(), "Once upon");
    recording.append(" a ti").await.unwrap();
    assert_eq!(early.next().await.unwrap().unwrap(), " a ti");
    let late = reader(&world.services, &alice, id).await;
    assert!(in_progress(&world.services, &alice, id).await);
    recording.append("me").await.unwrap();
    recording.finish().await;
    assert_eq!((read(early).await, read(late).await), ("me".into(), "Once upon a time".into()));
    assert!(!in_progress(&world.services, &alice, id).await);
}

#[tokio::test]
async fn a_finished_recording_is_replayed_for_its_retention_and_a_replay_that_began_is_finished() {
    let world =
        world(RecorderSettings { finished_retention: Duration::from_secs(5), ..Default::default() }).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let mut recording = record(&world.services, &alice, id).await;
    recording.append("the end").await.unwrap();
    recording.finish().await;
    world.clock.advance_micros(5 * SECOND - 1);
    assert_eq!(replayed(&world.services, &alice, id).await.unwrap(), "the end");
    let begun = reader(&world.services, &alice, id).await;
    world.clock.advance_micros(1);
    assert_eq!(replayed(&world.services, &alice, id).await, None);
    assert_eq!(read(begun).await, "the end");
}

#[tokio::test]
async fn a_recorder_that_hangs_up_has_finished() {
    let world = world(RecorderSettings::default()).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let mut recording = record(&world.services, &alice, id).await;
    recording.append("half a sen").await.unwrap();
    let reading = reader(&world.services, &alice, id).await;
    drop(recording);
    assert_eq!(read(reading).await, "half a sen");
    assert!(!in_progress(&world.services, &alice, id).await);
    assert_eq!(replayed(&world.services, &alice, id).await.unwrap(), "half a sen");
}

#[tokio::test]
async fn a_new_recording_supersedes_the_running_one_whose_replays_end_normally() {
    let world = world(RecorderSettings::default()).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let mut old = record(&world.services, &alice, id).await;
    old.append("old").await.unwrap();
    let of_old = reader(&world.services, &alice, id).await;
    let mut new = record(&world.services, &alice, id).await;
    assert_eq!(ended_within(&old, AT_ONCE).await, EndReason::Superseded);
    assert_eq!(old.append("er").await, Err(EndReason::Superseded));
    assert_eq!(read(of_old).await, "old");
    old.finish().await;
    assert!(in_progress(&world.services, &alice, id).await, "the new one goes on");
    new.append("new").await.unwrap();
    new.finish().await;
    assert_eq!(replayed(&world.services, &alice, id).await.unwrap(), "new");
}

#[tokio::test]
async fn a_cancelled_recording_stops_at_once_and_what_was_recorded_is_replayed() {
    let world = world(RecorderSettings::default()).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let recorder = &world.services.recorder;
    assert_eq!(recorder.cancel(&alice, id, None).await.unwrap(), Cancel::Done, "nothing is recorded");
    let mut recording = record(&world.services, &alice, id).await;
    recording.append("half a sen").await.unwrap();
    let reading = reader(&world.services, &alice, id).await;
    assert!(goes_on(&recording).await);
    let (ended, cancelled) =
        tokio::join!(ended_within(&recording, AT_ONCE), recorder.cancel(&alice, id, None));
    assert_eq!((ended, cancelled.unwrap()), (EndReason::Cancelled, Cancel::Done));
    assert_eq!(recording.append("tence").await, Err(EndReason::Cancelled));
    assert_eq!(read(reading).await, "half a sen");
    assert!(!in_progress(&world.services, &alice, id).await);
    assert_eq!(replayed(&world.services, &alice, id).await.unwrap(), "half a sen");
    assert_eq!(recorder.cancel(&alice, id, None).await.unwrap(), Cancel::Done, "again");
}

#[tokio::test]
async fn members_may_replay_and_writers_may_record_and_cancel() {
    let world = world(RecorderSettings::default()).await;
    let (alice, rita, will, eve) =
        (caller("alice", None), caller("rita", None), caller("will", None), caller("eve", Some("agent")));
    let id = conversation(&world.services, &alice).await;
    for (user, level) in [("rita", AccessLevel::Reader), ("will", AccessLevel::Writer)] {
        let member = MemberLevel::share(Some(user.to_owned()), Some(level)).unwrap();
        world.services.conversations.share(&alice, id, member).await.unwrap();
    }
    let recorder = &world.services.recorder;
    let recording = recorder.record(&will, id, None).await.unwrap();
    for (who, may_read, may_write) in
        [(&alice, true, true), (&will, true, true), (&rita, true, false), (&eve, false, false)]
    {
        let name = &who.user;
        let refused =
            |error: Error| assert!(matches!(error, Error { code: Code::Forbidden, .. }), "{name}: {error}");
        match recorder.replay(who, id, None).await {
            Ok(Replay::Here(_)) if may_read => {}
            Err(error) if !may_read => refused(error),
            _ => panic!("{name} replays"),
        }
        assert_eq!(
            recorder.check(who, vec![id]).await.unwrap().len(),
            usize::from(may_read),
            "{name} checks"
        );
        if !may_write {
            refused(recorder.record(who, id, None).await.err().unwrap());
            refused(recorder.cancel(who, id, None).await.unwrap_err());
        }
    }
    assert!(goes_on(&recording).await);
    let unknown = ConversationId(Uuid::from_u128(7));
    for error in [
        recorder.record(&alice, unknown, None).await.err().unwrap(),
        recorder.replay(&alice, unknown, None).await.err().unwrap(),
        recorder.cancel(&alice, unknown, None).await.unwrap_err(),
    ] {
        assert!(
            matches!(error, Error { details: Details::Resource(Resource::Conversation, _), .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_in_progress_is_answered_in_the_order_in_which_it_was_asked() {
    let world = world(RecorderSettings::default()).await;
    let (alice, bob) = (caller("alice", None), caller("bob", None));
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(conversation(&world.services, &alice).await);
    }
    let of_bob = conversation(&world.services, &bob).await;
    let _recordings = [
        record(&world.services, &alice, ids[0]).await,
        record(&world.services, &alice, ids[1]).await,
        record(&world.services, &alice, ids[3]).await,
        record(&world.services, &bob, of_bob).await,
    ];
    record(&world.services, &alice, ids[2]).await.finish().await;
    let unknown = ConversationId(Uuid::from_u128(7));
    let asked = vec![ids[3], ids[2], of_bob, ids[0], unknown, ids[3], ids[1]];
    let found = world.services.recorder.check(&alice, asked).await.unwrap();
    assert_eq!(found, [ids[3], ids[0], ids[3], ids[1]]);
    assert!(world.services.recorder.check(&alice, Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_recorder_that_is_off_says_so_and_has_nothing() {
    let world = world(RecorderSettings { backend: RecorderBackend::Off, ..Default::default() }).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let recorder = &world.services.recorder;
    assert!(!recorder.is_enabled());
    assert_eq!(recorder.record(&alice, id, None).await.err(), Some(Error::RECORDER_DISABLED));
    assert_eq!(recorder.cancel(&alice, id, None).await.unwrap_err(), Error::RECORDER_DISABLED);
    assert_eq!(replayed(&world.services, &alice, id).await, None);
    assert!(!in_progress(&world.services, &alice, id).await);
}

#[tokio::test]
async fn a_store_that_is_not_shared_has_one_node() {
    let world = world(RecorderSettings { backend: RecorderBackend::Store, ..Default::default() }).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let recording = record(&world.services, &alice, id).await;
    assert!(in_progress(&world.services, &alice, id).await);
    recording.finish().await;
}

/// A conversation and a fork of it.
async fn forked(services: &Services, owner: &Caller) -> [ConversationId; 2] {
    let id = conversation(services, owner).await;
    let mut last = None;
    for _ in 0..2 {
        let request = AppendRequest {
            content_type: Some("history".into()),
            content: Some(Json::parse(r#"[{"role": "USER", "text": "hello"}]"#.into()).unwrap()),
            ..AppendRequest::default()
        };
        last = Some(services.conversations.append(owner, id, request, None).await.unwrap().id);
    }
    [id, services.conversations.fork(owner, id, last.unwrap(), None).await.unwrap().id]
}

#[tokio::test]
async fn deleting_a_tree_ends_the_recordings_of_all_its_branches() {
    let world = world(RecorderSettings::default()).await;
    let (services, alice, admin) = (&world.services, caller("alice", None), principal("admin", None));
    for by_admin in [false, true] {
        let kept = record(services, &alice, conversation(services, &alice).await).await;
        let [root, fork] = forked(services, &alice).await;
        let recordings = [record(services, &alice, root).await, record(services, &alice, fork).await];
        match by_admin {
            false => services.conversations.delete(&alice, root).await.unwrap(),
            true => services.conversations.admin_delete(&admin, root, None).await.unwrap(),
        }
        for recording in &recordings {
            assert_eq!(ended_within(recording, AT_ONCE).await, EndReason::Cancelled);
        }
        assert!(goes_on(&kept).await);
        services.conversations.admin_restore(&admin, root, None).await.unwrap();
        assert_eq!(replayed(services, &alice, fork).await, None, "what was recorded is gone for good");
    }
}

#[tokio::test]
async fn a_tree_that_went_in_another_way_takes_its_recordings_with_it_too() {
    let recorder = RecorderSettings { locator_ttl: Duration::from_millis(100), ..Default::default() };
    let world = world(recorder).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let recording = record(&world.services, &alice, id).await;
    let (_stop, stopped) = oneshot::channel::<()>();
    let services = world.services.clone();
    tokio::spawn(async move { services.run_tasks(async { drop(stopped.await) }).await });
    let delete = "UPDATE groups SET deleted_at = 1";
    world.store.write(AllTenants, "test", move |tx| tx.execute(delete, &[])).await.unwrap();
    assert_eq!(ended_within(&recording, AT_ONCE * 5).await, EndReason::Cancelled);
}

#[tokio::test]
async fn a_recording_has_to_stop_when_it_is_too_large() {
    let world = world(RecorderSettings { max_bytes: 8, ..Default::default() }).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let mut recording = record(&world.services, &alice, id).await;
    recording.append("12345678").await.unwrap();
    let ended = recording.append("9").await.unwrap_err();
    assert_eq!(ended.to_string(), "a recording may have 8 bytes at most");
    assert!(!in_progress(&world.services, &alice, id).await);
    assert_eq!(replayed(&world.services, &alice, id).await.unwrap(), "12345678");
}

#[tokio::test]
async fn a_node_that_stops_ends_its_recordings_and_takes_no_more() {
    let world = world(RecorderSettings::default()).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let mut recording = record(&world.services, &alice, id).await;
    recording.append("half a sen").await.unwrap();
    let reading = reader(&world.services, &alice, id).await;
    world.services.recorder.close();
    assert_eq!(ended_within(&recording, AT_ONCE).await, EndReason::Stopped);
    assert_eq!(read(reading).await, "half a sen");
    let refused = world.services.recorder.record(&alice, id, None).await.err().unwrap();
    assert!(matches!(refused, Error { code: Code::StorageUnavailable, .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_begin_at_once_one_goes_on() {
    let world = world(RecorderSettings::default()).await;
    let alice = caller("alice", None);
    let id = conversation(&world.services, &alice).await;
    let begun = (0..50).map(|_| {
        let (services, alice) = (world.services.clone(), alice.clone());
        tokio::spawn(async move { record(&services, &alice, id).await })
    });
    let mut live = Vec::new();
    for recording in begun.collect::<Vec<_>>() {
        live.push(recording.await.unwrap());
    }
    let mut on = Vec::new();
    for recording in &live {
        if goes_on(recording).await {
            on.push(recording.id());
        }
    }
    assert_eq!(on, [reader(&world.services, &alice, id).await.recording_id()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_finds_room_where_finished_ones_were_that_nobody_reads() {
    let world = world(RecorderSettings { disk: 1 << 20, max_bytes: 1 << 20, ..Default::default() }).await;
    let (services, alice) = (&world.services, caller("alice", None));
    let text = "x".repeat(400_000);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = conversation(services, &alice).await;
        let mut recording = record(services, &alice, id).await;
        recording.append(&text).await.unwrap();
        recording.finish().await;
        ids.push(id);
    }
    let first = reader(services, &alice, ids[0]).await;
    let id = conversation(services, &alice).await;
    let mut recording = record(services, &alice, id).await;
    recording.append(&text).await.unwrap();
    assert_eq!(replayed(services, &alice, ids[1]).await, None, "it made room");
    assert_eq!(recording.append(&text).await, Err(EndReason::NoRoom), "what is read makes none");
    assert!(read(first).await == text);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_no_member_any_more_is_cut_off_from_the_replay_that_runs() {
    let recorder = RecorderSettings { locator_ttl: Duration::from_millis(100), ..Default::default() };
    let world = world(recorder).await;
    let (services, alice, bob) = (&world.services, caller("alice", None), caller("bob", None));
    let id = conversation(services, &alice).await;
    let member = MemberLevel::share(Some("bob".into()), Some(AccessLevel::Reader)).unwrap();
    services.conversations.share(&alice, id, member).await.unwrap();
    let mut recording = record(services, &alice, id).await;
    recording.append("for members").await.unwrap();
    let (mut of_alice, mut of_bob) = (reader(services, &alice, id).await, reader(services, &bob, id).await);
    let (_stop, stopped) = oneshot::channel::<()>();
    let running = services.clone();
    tokio::spawn(async move { running.run_tasks(async { drop(stopped.await) }).await });
    for reading in [&mut of_alice, &mut of_bob] {
        assert_eq!(reading.next().await.unwrap().unwrap(), "for members");
    }
    services.conversations.delete_membership(&alice, id, bob.user.clone()).await.unwrap();
    let cut = tokio::time::timeout(AT_ONCE * 5, of_bob.next()).await.expect("that it is cut off");
    assert!(matches!(cut, Err(Error { code: Code::Forbidden, .. })), "{cut:?}");
    recording.append(" only").await.unwrap();
    assert_eq!(of_alice.next().await.unwrap().unwrap(), " only");
}
