//! Several nodes: a recording is on one of them, and reached through all. Where they note who has what is a Redis or the
//! database that they share; every test is run with both.

use crate::recorder::support::*;
use std::sync::Arc;

/// Longer than a locator lives that nobody confirms, and shorter than a second more of waiting would be noticed.
const EXPIRY: Duration = Duration::from_secs(13);

/// Where nodes note who records what.
#[derive(Debug, Clone, Copy)]
enum Noted {
    InRedis,
    InDatabase,
}

struct Cluster {
    nodes: Vec<TestServer>,
    redis: Option<Arc<Redis>>,
}

impl Cluster {
    fn of(count: usize, noted: Noted) -> Self {
        match noted {
            Noted::InDatabase => Self { nodes: setup().nodes(count), redis: None },
            Noted::InRedis => {
                let redis = Redis::start();
                let nodes = setup().toml(&format!("[redis]\nurl = \"{}\"", redis.url())).nodes(count);
                Self { nodes, redis: Some(redis) }
            }
        }
    }

    /// `host:port` of a node.
    fn address(&self, node: usize) -> String {
        self.nodes[node].url().trim_start_matches("http://").to_owned()
    }

    /// The same new user at every node.
    fn everywhere(&self, role: &str) -> Vec<Caller> {
        let first = Caller::fresh(&self.nodes[0], role);
        self.nodes.iter().map(|node| first.at(node)).collect()
    }
}

macro_rules! noted_in_redis_and_in_the_database {
    ($($name:ident)*) => {
        mod noted_in_redis {
            $(#[test] fn $name() { super::$name(super::Noted::InRedis); })*
        }
        mod noted_in_the_database {
            $(#[test] fn $name() { super::$name(super::Noted::InDatabase); })*
        }
    };
}

noted_in_redis_and_in_the_database! {
    a_replay_is_sent_to_the_node_that_records
    a_browser_reads_through_any_node
    a_cancel_is_sent_to_the_node_that_records
    a_cancel_over_rest_reaches_the_agent_through_any_node_within_a_second
    whoever_may_not_is_refused_at_every_node
    a_recording_on_another_node_takes_the_place_of_the_one_that_runs
    what_a_killed_node_recorded_is_nobodys_after_a_while
    a_killed_node_does_not_keep_its_conversations
    deleting_a_conversation_on_another_node_ends_its_recording
    a_node_that_stops_lets_go_of_what_it_passes_on
    a_node_that_cannot_be_reached_is_said_to_be_so
}

fn a_replay_is_sent_to_the_node_that_records(noted: Noted) {
    let cluster = Cluster::of(3, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    recording.say("Hello");
    for other in &alice[1..] {
        assert!(other.is_live(&id), "every node knows what is live");
        assert_eq!(other.replay(&id).redirect(), cluster.address(0));
    }
    alice[0].replay(&id).expect("Hello");
    recording.complete();
    for other in &alice {
        assert!(!other.is_live(&id), "every node knows at once that it has ended");
    }
    assert_eq!(alice[1].replay(&id).rest(), "", "what has ended is replayed by its own node");
    assert_eq!(alice[0].replay(&id).rest(), "Hello");
}

fn a_browser_reads_through_any_node(noted: Noted) {
    let cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    recording.say("Once upon");
    let mut through = alice[1].follow(&id);
    through.expect("Once upon");
    recording.say(" a time");
    let last = through.expect(" a time");
    drop(through);
    let (resumed, direct) =
        (alice[1].follow_after(&id, Some(&last)), alice[0].follow_after(&id, Some(&last)));
    let text = long_text(1_000_000);
    recording.say(&text);
    recording.complete();
    assert!(resumed.rest() == text && direct.rest() == text);
}

fn a_cancel_is_sent_to_the_node_that_records(noted: Noted) {
    let cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    let answer = alice[1].cancel(&id).expect("an answer");
    assert_eq!((answer.accepted, answer.redirect_address), (false, cluster.address(0)));
    assert!(alice[1].is_live(&id));
    assert!(alice[0].cancel(&id).expect("an answer").accepted);
    recording.expect_cancelled();
    assert!(alice[1].cancel(&id).expect("an answer").accepted, "nothing runs any more");
}

fn a_cancel_over_rest_reaches_the_agent_through_any_node_within_a_second(noted: Noted) {
    let cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    recording.say("Hello");
    let mut reader = alice[0].replay(&id);
    reader.expect("Hello");
    let asked = Instant::now();
    let answer = alice[1].rest.delete(&response_of(&id)).expect(200);
    recording.expect_cancelled();
    assert!(asked.elapsed() < Duration::from_secs(1), "it took {:?}", asked.elapsed());
    assert_eq!(answer.text, "");
    assert!(!alice[1].is_live(&id));
    assert_eq!(reader.rest(), "");
}

fn whoever_may_not_is_refused_at_every_node(noted: Noted) {
    let cluster = Cluster::of(2, noted);
    let (alice, bob) = (cluster.everywhere("alice"), cluster.everywhere("bob"));
    let stranger = cluster.everywhere("stranger");
    let id = alice[0].start();
    alice[0].share(&id, &bob[0], "reader");
    let recording = alice[0].record(&id);
    recording.say("Hello");
    bob[1].follow(&id).expect("Hello");
    bob[1].rest.delete(&response_of(&id)).expect_forbidden();
    assert_eq!(bob[1].cancel(&id).unwrap_err().code(), Code::PermissionDenied);
    stranger[1].rest.get(&response_of(&id)).expect_forbidden();
    assert_eq!(stranger[1].try_replay(&id).err().map(|s| s.code()), Some(Code::PermissionDenied));
    assert!(alice[1].is_live(&id) && !stranger[1].is_live(&id));
    recording.complete();
}

fn a_recording_on_another_node_takes_the_place_of_the_one_that_runs(noted: Noted) {
    let cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let old = alice[0].record(&id);
    old.say("the first answer");
    let (mut reader, mut events) = (alice[0].replay(&id), alice[0].follow(&id));
    reader.expect("the first answer");
    events.expect("the first answer");

    let new = alice[1].begin(&id);
    until("the new one is known", || {
        alice[0].replay(&id).next().is_some_and(|m| !m.redirect_address.is_empty())
    });
    let begun = Instant::now();
    old.expect_cancelled();
    assert!(begun.elapsed() < EXPIRY, "it took {:?}", begun.elapsed());
    assert_eq!(
        (reader.rest(), events.rest()),
        (String::new(), String::new()),
        "its replays end as they should"
    );

    assert_eq!(alice[0].replay(&id).redirect(), cluster.address(1));
    new.say("the second answer");
    alice[0].follow(&id).expect("the second answer");
    alice[1].replay(&id).expect("the second answer");
    // The node that lost it does not take it back when it confirms what it has.
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(alice[0].replay(&id).redirect(), cluster.address(1));
    new.complete();
    assert!(!alice[0].is_live(&id));
}

fn what_a_killed_node_recorded_is_nobodys_after_a_while(noted: Noted) {
    let mut cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let (replayed, cancelled) = (alice[0].start(), alice[0].start());
    let recordings = [alice[0].record(&replayed), alice[0].record(&cancelled)];
    recordings[0].say("Hello");
    let mut through = alice[1].follow(&replayed);
    let last = through.expect("Hello");

    cluster.nodes[0].kill();
    let killed = Instant::now();
    assert_eq!(through.next(), None, "the stream breaks off, without an end, so that a browser comes back");
    let other = &alice[1];
    std::thread::scope(|scope| {
        // Asked while the dead node is still said to have it, they wait, and nobody gets an error.
        scope.spawn(|| {
            other.rest.with_header("last-event-id", &last).get(&response_of(&replayed)).expect(204);
        });
        scope.spawn(|| other.rest.delete(&response_of(&cancelled)).expect(200));
    });
    until("nothing is live", || other.check(&[&replayed, &cancelled]).is_empty());
    assert_eq!(other.replay(&replayed).rest(), "");
    assert!(killed.elapsed() < EXPIRY, "it took {:?}", killed.elapsed());
    for recording in recordings {
        assert!(recording.answer().is_err(), "its agents hear that the connection is gone");
    }
}

fn a_killed_node_does_not_keep_its_conversations(noted: Noted) {
    let mut cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    recording.say("the first answer");
    alice[0].replay(&id).expect("the first answer");
    cluster.nodes[0].kill();
    let killed = Instant::now();
    let again = alice[1].begin(&id);
    again.say("the second answer");
    until("it is replayed", || alice[1].replay(&id).next().is_some_and(|m| m.content == "the second answer"));
    assert!(killed.elapsed() < Duration::from_secs(5), "nobody waits for the dead: {:?}", killed.elapsed());
    again.complete();
}

fn deleting_a_conversation_on_another_node_ends_its_recording(noted: Noted) {
    let cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    alice[1].rest.delete(&format!("/v1/conversations/{id}")).expect(204);
    let deleted = Instant::now();
    recording.expect_cancelled();
    assert!(deleted.elapsed() < EXPIRY, "it took {:?}", deleted.elapsed());
}

fn a_node_that_stops_lets_go_of_what_it_passes_on(noted: Noted) {
    let mut cluster = Cluster::of(2, noted);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    recording.say("Hello");
    let mut through = alice[1].follow(&id);
    let last = through.expect("Hello");
    let asked = Instant::now();
    assert!(cluster.nodes[1].stop().success());
    // The grace for what does not end is 10 s.
    assert!(asked.elapsed() < Duration::from_secs(5), "it took {:?}", asked.elapsed());
    assert_eq!(through.next(), None, "without an end: the reader goes on at another node");
    let rest = alice[0].follow_after(&id, Some(&last));
    recording.say(" world");
    recording.complete();
    assert_eq!(rest.rest(), " world");
}

/// A node that advertises an address where nobody listens.
fn a_node_that_cannot_be_reached_is_said_to_be_so(noted: Noted) {
    let database = Database::fresh();
    let redis = matches!(noted, Noted::InRedis).then(Redis::start);
    let node = || {
        let setup = setup().database(&database);
        match &redis {
            Some(redis) => setup.toml(&format!("[redis]\nurl = \"{}\"", redis.url())),
            None => setup,
        }
    };
    let hidden = node().variable("MEMTROVE_RECORDER__ADVERTISED_ADDRESS", "[::1]:9").start();
    let other = node().start();
    let alice = Caller::fresh(&hidden, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    recording.say("Hello");
    assert_eq!(alice.at(&other).replay(&id).redirect(), "[::1]:9");
    alice.replay(&id).expect("Hello");
    let asked = Instant::now();
    alice.at(&other).rest.get(&response_of(&id)).expect_error(502, "bad_gateway");
    assert!(asked.elapsed() > Duration::from_secs(10), "it might have been about to expire");
    recording.complete();
}

#[test]
fn a_quiet_stream_says_that_it_lives_through_another_node_too() {
    let cluster = Cluster::of(2, Noted::InDatabase);
    let alice = cluster.everywhere("alice");
    let id = alice[0].start();
    let recording = alice[0].record(&id);
    let mut through = alice[1].follow(&id);
    through.expect_comment();
    recording.say("Hello");
    through.expect("Hello");
    recording.complete();
    assert_eq!(through.rest(), "");
}

#[test]
fn while_redis_is_away_recordings_go_on_and_new_ones_are_refused() {
    let cluster = Cluster::of(2, Noted::InRedis);
    let redis = cluster.redis.as_ref().expect("a Redis");
    let alice = cluster.everywhere("alice");
    let (id, other) = (alice[0].start(), alice[0].start());
    let recording = alice[0].record(&id);
    recording.say("Hello");
    let mut reader = alice[0].replay(&id);
    reader.expect("Hello");

    redis.kill();
    recording.say(" world");
    reader.expect(" world");
    alice[0].replay(&id).expect("Hello world");
    let message = RecordRequest { conversation_id: bytes_of(&other), ..RecordRequest::default() };
    assert_eq!(alice[0].recorded(vec![message]).unwrap_err().code(), Code::Unavailable);
    assert_eq!(alice[1].try_replay(&id).err().map(|s| s.code()), Some(Code::Unavailable));
    alice[1].rest.get(&response_of(&id)).expect_error(503, "storage_unavailable");
    cluster.nodes[0].anonymous().get("/health/ready").expect(200);

    redis.restart();
    until("others find it again", || alice[1].is_live(&id));
    alice[1].follow(&id).expect("Hello world");
    recording.complete();
    assert_eq!(reader.rest(), "");
}

#[test]
fn a_node_starts_without_its_redis() {
    let redis = Redis::start();
    redis.kill();
    let node = setup().toml(&format!("[redis]\nurl = \"{}\"", redis.url())).start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    assert!(alice.is_enabled());
    let message = || RecordRequest { conversation_id: bytes_of(&id), ..RecordRequest::default() };
    assert_eq!(alice.recorded(vec![message()]).unwrap_err().code(), Code::Unavailable);
    redis.restart();
    until("it records", || alice.recorded(vec![message()]).is_ok());
}
