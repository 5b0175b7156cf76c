//! The other streams: notifications of what entries come to, and the results of a query; and what is no stream.

use crate::openspec::*;
use crate::sse::*;
use crate::support::*;
use std::time::Duration;

#[track_caller]
fn follow(tenant: &Tenant, query: &str) -> Follower {
    Follower::of(&SERVER, tenant, query)
}

#[test]
fn turning_points_are_notified() {
    let tenant = Tenant::fresh();
    let (user, session) = (Place::user("u"), Place::session("u", "s"));
    let mut stream = follow(&tenant, "type=notifications&user_id=u&session_id=s");
    let mut expected: Vec<(&str, String)> = Vec::new();

    let id = tenant.say(&user, "the heron waits");
    tenant.changed(&id, json!({"metadata": {"n": 1}}));
    for (verb, name) in [("archive", "archived"), ("restore", "restored")] {
        tenant.client.post_nothing(&format!("/v1/memories/{id}/{verb}")).expect(200);
        expected.push((name, id.clone()));
    }
    let fading = tenant.say_with(&user, json!({"content": "fades", "metadata": {"relevance": 0.4}}));
    let pass = json!({"identifiers": user.identifiers, "ratePerDay": 0});
    tenant.client.post("/v1/memories:decay", pass.clone()).expect(200);
    expected.push(("decayed", fading.clone()));
    let gone = merged(pass, &json!({"archiveThreshold": 0.45}));
    tenant.client.post("/v1/memories:decay", gone).expect(200);
    expected.push(("archived", fading));
    tenant.say_with(&session, json!({"content": "important", "metadata": {"importance": 1}}));
    let ended =
        tenant.client.post("/v1/sessions:end", json!({"identifiers": session.identifiers})).expect(200).json;
    let promoted = [text(&ended["promoted"][0]["from"]), text(&ended["promoted"][0]["to"])];
    let copies = [tenant.say(&user, "twice told"), tenant.say(&user, "Twice told.")];
    tenant.client.post("/v1/memories:consolidate", user.with(json!({}))).expect(200);
    let last = tenant.say(&user, "the last one");
    tenant.client.post_nothing(&format!("/v1/memories/{last}/archive")).expect(200);

    let events = stream.until(&last);

    for event in &events {
        assert_members(&event.data, &["type", "entry_id", "timestamp", "details"]);
        assert_eq!(event.data["type"], event.name.as_str());
        assert!(event.data["details"].is_object() && event.id.is_some(), "{event:?}");
        assert_timestamp(&event.data["timestamp"]);
        assert!(!event.data.to_string().contains("heron"), "content is not told: {event:?}");
    }
    let told: Vec<(&str, String)> = events.iter().map(|event| (event.name.as_str(), event.entry())).collect();
    assert_eq!(told[..4], expected);
    let (name, id) = &told[4];
    assert!(*name == "promoted" && promoted.contains(id), "{told:?}");
    let consolidated: Vec<_> = told[5..].iter().filter(|(name, _)| *name == "consolidated").collect();
    assert!(!consolidated.is_empty() && consolidated.iter().all(|(_, id)| copies.contains(id)), "{told:?}");
    assert!(
        told[5..]
            .iter()
            .all(|(name, id)| matches!(*name, "consolidated" | "archived") && copies.contains(id)),
        "{told:?}"
    );
}

#[test]
fn notifications_of_others_are_not_told() {
    let tenant = Tenant::fresh();
    let mut stream = follow(&tenant, "type=notifications&user_id=u");
    let archive = |place: &Place| {
        let id = tenant.say(place, "old");
        tenant.client.post_nothing(&format!("/v1/memories/{id}/archive")).expect(200);
        id
    };
    archive(&Place::user("v"));
    archive(&Place::project("p"));
    let last = archive(&Place::user("u"));
    assert_eq!(stream.until(&last), []);
}

#[test]
fn the_results_of_a_query_come_one_by_one_and_then_the_stream_ends() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for content in ["Deploys happen on Tuesdays", "My dog is called Rex", "The cafeteria closes at three"] {
        tenant.say(&place, content);
    }
    let body = json!({"query": "When do we deploy?", "options": {"limit": 2}, "layer": {"user_id": "u"}});
    let expected = tenant.client.post(&format!("{KNOWLEDGE}/query"), body.clone()).expect(200).json;
    let asked = [
        (format!("type=query&user_id=u&query={}", encoded("When do we deploy?")), 3),
        (format!("type=query&user_id=u&query={}", encoded(&body.to_string())), 2),
    ];
    for (query, count) in asked {
        let mut stream = follow(&tenant, &query);
        let events = stream.take(count);
        for (n, event) in events.iter().enumerate() {
            assert_eq!(event.name, "result");
            assert_members(&event.data, &["query_id", "result", "is_final"]);
            assert_eq!(event.data["query_id"], events[0].data["query_id"]);
            assert_eq!(event.data["is_final"], n + 1 == count);
        }
        for (event, result) in events.iter().zip(list(&expected["results"])) {
            assert_eq!(event.data["result"]["entry"]["id"], result["entry"]["id"]);
            assert_eq!(event.data["result"]["score"], result["score"]);
        }
        assert!(stream.next_within(Duration::from_secs(2)).is_none(), "the server closes");
    }
}

#[test]
fn a_query_without_hits_ends_with_nothing() {
    let tenant = Tenant::fresh();
    let mut stream = follow(&tenant, "type=query&user_id=u&query=anything");
    let only = stream.next();
    assert_eq!(
        (only.name.as_str(), &only.data["result"], &only.data["is_final"]),
        ("result", &json!(null), &json!(true))
    );
    assert!(stream.next_within(Duration::from_secs(2)).is_none());
}

#[test]
fn what_is_no_stream_is_refused() {
    let tenant = Tenant::fresh();
    let ask = |tenant: &Tenant, query: &str| tenant.client.get(&format!("{KNOWLEDGE}/stream?{query}"));
    ask(&tenant, "type=rumours").fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, "format=websocket").fails(501, 501, "NOT_IMPLEMENTED");
    ask(&tenant, "format=morse").fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, "types=galaxy").expect(400);
    ask(&tenant, "type=query&user_id=u").fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, "type=query&user_id=u&query=").fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, "company_id=another").fails(403, 403, "FORBIDDEN");
    ask(&tenant.as_user("u"), "user_id=v").fails(403, 403, "FORBIDDEN");
    ask(&tenant, "types=session&user_id=u").fails(400, 400, "MISSING_IDENTIFIER");
    let upgrade = tenant.with_header("connection", "Upgrade").with_header("upgrade", "websocket");
    let answer = upgrade.client.get(&format!("{KNOWLEDGE}/stream?format=websocket&user_id=u"));
    assert_eq!(answer.status, 501, "{}", answer.describe());
}

#[test]
fn a_stream_that_names_nobody_is_the_tenant_s() {
    let tenant = Tenant::fresh();
    let mut stream = follow(&tenant, "");
    tenant.say(&Place::user("u"), "of a user");
    tenant.say(&Place::project("p"), "of a project");
    let last = tenant.say(&tenant.company(), "of the company");
    assert_eq!(stream.until(&last), []);

    let mut mine = Follower::as_user(&SERVER, &tenant, "u", "types=user");
    let last = tenant.say(&Place::user("u"), "of the user who asks");
    assert_eq!(mine.until(&last), []);
}

#[test]
fn strange_beginnings_are_no_error_of_the_server() {
    let tenant = Tenant::fresh();
    for last in ["abc", "-1", "18446744073709551616", "9223372036854775807", "1.5"] {
        let status = Follower::status(&SERVER, &tenant, "user_id=u", last);
        assert!(matches!(status, 200 | 400), "{last:?} is answered {status}");
    }
    let malformed = format!("{KNOWLEDGE}/stream?type=query&user_id=u&query={}", encoded("{not json"));
    let status = tenant.client.get(&malformed).status;
    assert!(matches!(status, 200 | 400), "{status}");
    let mut stream = Follower::resuming(&SERVER, &tenant, "user_id=u", Some(u64::MAX / 2));
    let live = tenant.say(&Place::user("u"), "now");
    let next = stream.next();
    let next = if next.name == "reset" { stream.next() } else { next };
    assert_eq!(next.entry(), live, "a number from the future hides nothing");
}

#[test]
fn a_silent_stream_breathes() {
    let tenant = Tenant::fresh();
    let mut stream = follow(&tenant, "user_id=u");
    assert!(stream.next_within(Duration::from_secs(17)).is_none());
    assert!(stream.comments > 0, "a comment every fifteen seconds");
}
