//! The stream of updates: everything acknowledged after `ready`, once, in order, and nothing of others.

use crate::openspec::*;
use crate::sse::*;
use crate::support::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

#[track_caller]
fn follow(tenant: &Tenant, query: &str) -> Follower {
    Follower::of(&SERVER, tenant, query)
}

#[test]
fn a_write_is_told_with_what_it_wrote() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let mut stream = follow(&tenant, "user_id=u");
    let id = tenant.say_with(&place, json!({"content": "the heron waits", "metadata": {"title": "Herons"}}));
    tenant.changed(&id, json!({"metadata": {"title": "Storks"}}));
    let shown = tenant.knowledge(&id);
    tenant.delete(&id).expect(200);

    let [created, updated, deleted] = &stream.take(3)[..] else { unreachable!() };

    for (event, name) in [(created, "created"), (updated, "updated"), (deleted, "deleted")] {
        assert_eq!(event.name, name);
        assert_members(&event.data, &["type", "entry", "timestamp"]);
        assert_eq!(event.data["type"], name);
        assert_timestamp(&event.data["timestamp"]);
        assert_eq!(event.entry(), id);
    }
    assert_knowledge(&created.data["entry"]);
    assert_eq!(created.data["entry"]["metadata"]["title"], "Herons");
    assert_eq!(updated.data["entry"], shown);
    assert_eq!(deleted.data["entry"], json!({"id": id, "layer": shown["layer"]}));
    let ids: Vec<_> = [created, updated, deleted].map(|event| event.id.expect("a number")).into();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[test]
fn every_way_to_write_is_told() {
    let tenant = Tenant::fresh();
    let (user, session) = (Place::user("u"), Place::session("u", "s"));
    let mut stream = follow(&tenant, "user_id=u&session_id=s");
    let mut expected: Vec<(&str, String)> = Vec::new();

    let bulk = tenant.add_all([user.with(json!({"content": "one"})), user.with(json!({"content": "two"}))]);
    expected.extend(bulk.iter().map(|id| ("created", id.clone())));
    let scratch = tenant.say_with(&user, json!({"content": "scratch", "kind": "working"}));
    expected.push(("created", scratch.clone()));
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let fact_id = id_of(&tenant.stated(&user, fact.clone()));
    expected.push(("created", fact_id.clone()));
    tenant.fact(user.with(fact)).expect(200);
    expected.push(("updated", fact_id));
    for verb in ["archive", "restore"] {
        tenant.client.post_nothing(&format!("/v1/memories/{}/{verb}", bulk[0])).expect(200);
        expected.push(("updated", bulk[0].clone()));
    }
    let said = tenant.say_with(&session, json!({"content": "important", "metadata": {"importance": 1}}));
    expected.push(("created", said.clone()));
    let body = json!({"targetLayer": "user"});
    let copy =
        id_of(&tenant.client.post(&format!("/v1/memories/{said}/promote"), body).expect(201).json["memory"]);
    expected.push(("created", copy));
    tenant.client.post("/v1/memories:bulkDelete", json!({"ids": [bulk[1]]})).expect(200);
    expected.push(("deleted", bulk[1].clone()));
    tenant.client.post("/v1/memories:clear", user.with(json!({}))).expect(200);
    expected.push(("deleted", scratch));
    let made = tenant.created(json!({"content": "three"}), json!({"type": "user", "user_id": "u"}));
    expected.push(("created", id_of(&made)));
    tenant.replace(&id_of(&made), json!({"content": "four"})).expect(200);
    expected.push(("updated", id_of(&made)));
    let last = tenant.say(&user, "the last one");

    let told: Vec<(String, String)> =
        stream.until(&last).iter().map(|event| (event.name.clone(), event.entry())).collect();

    // A lineage link is no version of the original, so it may or may not be told.
    let told: Vec<_> = told.into_iter().filter(|one| *one != ("updated".to_owned(), said.clone())).collect();
    let expected: Vec<_> = expected.into_iter().map(|(name, id)| (name.to_owned(), id)).collect();
    assert_eq!(told, expected);
}

#[test]
fn many_writers_are_told_once_each_and_in_order() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let mut streams = [follow(&tenant, "user_id=u"), follow(&tenant, "user_id=u")];

    let written: Vec<Vec<String>> = at_once(4, |writer| {
        let write = |n: usize| {
            let kind = if n.is_multiple_of(5) { "working" } else { "semantic" };
            let id = tenant.say_with(&place, json!({"content": format!("{writer} {n}"), "kind": kind}));
            tenant.changed(&id, json!({"metadata": {"n": n}}));
            if n.is_multiple_of(3) {
                tenant.delete(&id).expect(200);
            }
            id
        };
        (0..25).map(write).collect()
    });
    let last = tenant.say(&place, "the last one");

    for stream in &mut streams {
        let events = stream.until(&last);
        let ids: Vec<_> = events.iter().map(|event| event.id.expect("a number")).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        let mut lives: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for event in &events {
            lives.entry(event.entry()).or_default().push(&event.name);
        }
        assert_eq!(lives.len(), 100);
        for (n, id) in written.iter().flat_map(|ids| ids.iter().enumerate()) {
            let expected: &[&str] = if n.is_multiple_of(3) {
                &["created", "updated", "deleted"]
            } else {
                &["created", "updated"]
            };
            assert_eq!(lives[id], expected);
        }
        // What one writer did after the other is told after it.
        let created: Vec<String> =
            events.iter().filter(|event| event.name == "created").map(Event::entry).collect();
        for ids in &written {
            let places: Vec<_> = ids.iter().map(|id| created.iter().position(|one| one == id)).collect();
            assert!(places.is_sorted(), "{places:?}");
        }
    }
}

#[test]
fn nothing_foreign_is_told() {
    let tenant = Tenant::fresh();
    let elsewhere = Tenant::of(&SERVER, &fresh_name("tenant"));
    let mut stream = Follower::as_user(&SERVER, &tenant, "u", "user_id=u&project_id=p");
    let (theirs, mine) = (tenant.as_user("v"), tenant.as_user("u"));

    theirs.say(&Place::user("v"), "of another user");
    tenant.say(&Place::session("u", "s"), "of a session that was not named");
    tenant.say(&Place::agent("a", "u"), "of an agent that was not named");
    tenant.say(&Place::project("q"), "of another project");
    tenant.say(&tenant.company(), "of the company");
    elsewhere.say(&Place::user("u"), "of another tenant");
    elsewhere.say(&Place::project("p"), "of another tenant's project");
    let private = json!({"accessPolicy": {"policy": "private"}});
    let hidden = theirs.say_with(&Place::project("p"), merged(json!({"content": "for v alone"}), &private));
    theirs.changed(&hidden, json!({"metadata": {"n": 1}}));
    theirs.delete(&hidden).expect(200);
    let restricted = json!({"accessPolicy": {"policy": "restricted", "approvedUsers": ["u"]}});
    let shown = [
        theirs.say_with(&Place::project("p"), merged(json!({"content": "for u too"}), &restricted)),
        mine.say_with(&Place::project("p"), merged(json!({"content": "for u alone"}), &private)),
        theirs.say(&Place::project("p"), "for all"),
        mine.say(&Place::user("u"), "mine"),
    ];
    let last = mine.say(&Place::user("u"), "the last one");

    let told: Vec<String> = stream.until(&last).iter().map(Event::entry).collect();

    assert_eq!(told, shown);
}

#[test]
fn a_trusted_client_without_a_user_is_told_nothing_private() {
    let tenant = Tenant::fresh();
    let mut stream = follow(&tenant, "project_id=p");
    let place = Place::project("p");
    let private = json!({"content": "for v alone", "accessPolicy": {"policy": "private"}});
    tenant.as_user("v").say_with(&place, private);
    let open = tenant.as_user("v").say(&place, "for all");
    let last = tenant.say(&place, "the last one");
    assert_eq!(stream.until(&last).iter().map(Event::entry).collect::<Vec<_>>(), [open]);
}

#[test]
fn types_and_tags_narrow_a_stream() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let mut tagged = follow(&tenant, "user_id=u&tags=red,blue%20sky");
    let mut typed = follow(&tenant, "user_id=u&types=episodic,working");
    let say = |content: &str, kind: &str, tags: Value| {
        tenant.say_with(&place, json!({"content": content, "kind": kind, "metadata": {"tags": tags}}))
    };
    let red = say("a", "semantic", json!(["green", "red"]));
    let blue = say("b", "episodic", json!(["blue sky"]));
    say("c", "semantic", json!(["blue"]));
    say("d", "user_personal", json!([]));
    let scratch = say("e", "working", json!(["Red"]));
    let last = say("f", "episodic", json!(["red"]));
    assert_eq!(tagged.until(&last).iter().map(Event::entry).collect::<Vec<_>>(), [red, blue.clone()]);
    assert_eq!(typed.until(&last).iter().map(Event::entry).collect::<Vec<_>>(), [blue, scratch]);
}

#[test]
fn a_stream_resumes_where_it_was_left() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let mut stream = follow(&tenant, "user_id=u");
    let ids: Vec<String> = (0..3).map(|n| tenant.say(&place, &format!("note {n}"))).collect();
    let seen = stream.take(2);
    drop(stream);
    tenant.say(&Place::user("v"), "of another");
    let missed: Vec<String> = (3..6).map(|n| tenant.say(&place, &format!("note {n}"))).collect();

    let mut resumed = Follower::resuming(&SERVER, &tenant, "user_id=u", seen[1].id);

    let expected: Vec<&String> = ids[2..].iter().chain(&missed).collect();
    let told = resumed.take(4);
    assert_eq!(told.iter().map(Event::entry).collect::<Vec<_>>().iter().collect::<Vec<_>>(), expected);
    assert!(told.iter().all(|event| event.name == "created"));
    let live = tenant.say(&place, "now");
    assert_eq!(resumed.next().entry(), live, "and goes on");

    // With nothing missed, nothing is told.
    let mut idle = Follower::resuming(&SERVER, &tenant, "user_id=u", told.last().and_then(|event| event.id));
    assert_eq!(idle.next().entry(), live);
    assert!(idle.next_within(Duration::from_millis(200)).is_none());
}

#[test]
fn a_reader_that_comes_and_goes_misses_nothing_while_others_write() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let mut stream = follow(&tenant, "user_id=u");
    let mut dice = Dice(0xf00d);
    let (told, written) = std::thread::scope(|scope| {
        let write = |writer: usize| {
            let (tenant, place) = (&tenant, &place);
            move || (0..40).map(|n| tenant.say(place, &format!("{writer} {n}"))).collect::<Vec<_>>()
        };
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(write(writer))).collect();
        let mut told: Vec<Event> = Vec::new();
        while told.len() < 120 {
            let some = (1 + dice.roll(15)).min(120 - told.len());
            told.extend(stream.take(some));
            let last = told.last().and_then(|event| event.id);
            stream = Follower::resuming(&SERVER, &tenant, "user_id=u", last);
        }
        let written: Vec<String> =
            writers.into_iter().flat_map(|one| one.join().expect("no writer fails")).collect();
        (told, written)
    });
    assert!(told.is_sorted_by(|a, b| a.id < b.id), "in order");
    assert_eq!(sorted(told.iter().map(Event::entry)), sorted(written), "every one once");
    assert!(stream.next_within(Duration::from_millis(200)).is_none(), "and nothing twice");
}

#[test]
fn where_a_stream_begins_is_where_it_can_be_resumed() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    tenant.say(&place, "before");
    let stream = follow(&tenant, "user_id=u");
    let begin = match &stream.ready["last_event_id"] {
        Value::String(id) => id.parse().expect("a number"),
        id => id.as_u64().unwrap_or_else(|| panic!("{}", stream.ready)),
    };
    drop(stream);
    let missed = tenant.say(&place, "missed");
    let mut resumed = Follower::resuming(&SERVER, &tenant, "user_id=u", Some(begin));
    assert_eq!(resumed.next().entry(), missed);
}

#[test]
fn what_is_too_long_ago_is_a_reset() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let mut stream = follow(&tenant, "user_id=u");
    tenant.say(&place, "the first");
    let first = stream.next();
    drop(stream);
    for part in 0..3 {
        tenant.add_all((0..400).map(|n| place.with(json!({"content": format!("note {part} {n}")}))));
    }

    let mut resumed = Follower::resuming(&SERVER, &tenant, "user_id=u", first.id);

    assert_eq!(resumed.next().name, "reset");
    let live = tenant.say(&place, "now");
    assert_eq!(resumed.next().entry(), live, "from now on");
}

#[test]
fn a_restart_forgets_the_buffer_and_says_so() {
    let mut server = server_with("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    let mut stream = Follower::of(&server, &tenant, "user_id=u");
    tenant.say(&place, "one");
    let seen = stream.next().id.expect("a number");
    tenant.say(&place, "two");
    drop(stream);
    server.restart();
    let tenant = Tenant::of(&server, "acme");
    let three = tenant.say(&place, "three");

    let mut resumed = Follower::resuming(&server, &tenant, "user_id=u", Some(seen));

    // Either everything that was missed is there, or it is said that it is not.
    let next = resumed.next();
    if next.name != "reset" {
        assert_ne!(next.entry(), three, "\"two\" was lost without a word");
    }
    let four = tenant.say(&place, "four");
    let event = resumed.until(&four);
    assert!(event.iter().all(|event| event.id.expect("a number") > seen), "numbers never begin again");
}

#[test]
fn ids_are_one_sequence_of_the_tenant() {
    let tenant = Tenant::fresh();
    let (mut one, mut two) = (follow(&tenant, "user_id=u"), follow(&tenant, "user_id=v"));
    let mut ids = BTreeSet::new();
    for n in 0..4 {
        let user = if n % 2 == 0 { "u" } else { "v" };
        tenant.say(&Place::user(user), &format!("note {n}"));
        let stream = if n % 2 == 0 { &mut one } else { &mut two };
        ids.insert((n, stream.next().id));
    }
    let numbers: Vec<_> = ids.iter().map(|(_, id)| id.expect("a number")).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[test]
fn positions_do_not_count_what_others_write() {
    let tenant = Tenant::fresh();
    let (mine, theirs) = (tenant.as_user("u"), tenant.as_user("v"));
    let place = Place::project("p");
    let hidden = place.with(json!({"content": "for v alone", "accessPolicy": {"policy": "private"}}));
    let mut stream = Follower::as_user(&SERVER, &tenant, "u", "project_id=p");
    let begin: u64 = text(&stream.ready["last_event_id"]).parse().expect("digits");
    let mut last = begin;
    let mut near = 0;
    for others in [0, 1, 2, 7, 40] {
        theirs.add_all((0..others).map(|_| hidden.clone()));
        theirs.say(&Place::user("v"), "v's own");
        let id = mine.say(&place, "mine");
        let event = stream.next();
        assert_eq!(event.entry(), id);
        let position = event.id.expect("a position");
        assert!(position > last, "positions grow");
        // The upper half is when it was told; the lower half is as good as thrown. A number of changes would be near the last one.
        let [before, now] = [last, position].map(|position| position % (1 << 22));
        near += u32::from(before.abs_diff(now) < 1000);
        last = position;
    }
    assert!(near < 3, "the positions of {near} of 5 events are as far apart as what was written");
    drop(stream);
    // And one can go on from any of them.
    let mut resumed = Follower::resuming(&SERVER, &mine, "project_id=p", Some(begin));
    assert_eq!(resumed.take(5).len(), 5);
}

#[test]
fn a_position_of_an_older_version_is_a_reset() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    drop(follow(&tenant, "user_id=u"));
    tenant.say(&place, "before");
    let mut from_the_start = Follower::resuming(&SERVER, &tenant, "user_id=u", Some(0));
    assert_eq!(from_the_start.next().name, "created");
    for old in [1, 2, 4711, 1 << 40] {
        let mut resumed = Follower::resuming(&SERVER, &tenant, "user_id=u", Some(old));
        assert_eq!(resumed.next().name, "reset", "{old}");
        let live = tenant.say(&place, "now");
        assert_eq!(resumed.next().entry(), live, "from now on");
    }
    assert_eq!(Follower::status(&SERVER, &tenant, "user_id=u", "-5"), 400);
    assert_eq!(Follower::status(&SERVER, &tenant, "user_id=u", "x"), 400);
}

#[test]
fn a_consumer_that_does_not_read_holds_up_nobody() {
    // A writer that waited for the reader would wait until that is given up: for so long that no slow machine looks like it.
    let server = server_with("[server]\nstall_timeout = \"10m\"\n");
    let tenant = Tenant::of(&server, "t");
    let place = Place::user("u");
    let mut slow = Follower::of(&server, &tenant, "user_id=u");
    // One long word: quick to embed, slow to send.
    let long = "x".repeat(12_000);
    let begin = Instant::now();
    let mut written = 0;
    for _ in 0..10 {
        written +=
            tenant.add_all((0..250).map(|n| place.with(json!({"content": format!("{n} {long}")})))).len();
    }
    assert!(begin.elapsed() < Duration::from_secs(300), "writers wait for readers: {:?}", begin.elapsed());
    let mut quick = Follower::of(&server, &tenant, "user_id=u");
    let live = tenant.say(&place, "now");
    assert_eq!(quick.next().entry(), live);

    // It gets what was on its way and then nothing more: the stream has ended before all was told.
    let mut told = 0;
    while slow.next_within(Duration::from_secs(5)).is_some() {
        told += 1;
    }
    assert!(told < written, "{told} events were kept for a consumer that did not read");
}
