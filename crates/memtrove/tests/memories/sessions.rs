//! The end of a session: what matters is carried to the person once, the rest is kept or cleared as asked.

use crate::instants::*;
use crate::support::*;

/// The session most tests end.
fn session() -> Place {
    Place::session("u", "s")
}

/// Sends a request to end this session.
#[track_caller]
fn ask(tenant: &Tenant, place: &Place, members: Value) -> Answer {
    tenant.client.post("/v1/sessions:end", merged(json!({"identifiers": place.identifiers}), &members))
}

/// Ends a session.
#[track_caller]
fn end(tenant: &Tenant, place: &Place, members: Value) -> Value {
    let answer = ask(tenant, place, members).expect(200);
    let members =
        ["userId", "sessionId", "endedAt", "evaluated", "promoted", "blocked", "deleted", "retained"];
    assert_members(&answer.json, &members);
    assert_timestamp(&answer.json["endedAt"]);
    for promoted in list(&answer.json["promoted"]) {
        assert_members(&promoted, &["from", "to", "score", "deduplicated"]);
    }
    for blocked in list(&answer.json["blocked"]) {
        assert_members(&blocked, &["id", "reason"]);
    }
    answer.json
}

/// Evaluated, deleted, retained.
fn counts(ended: &Value) -> [u64; 3] {
    ["evaluated", "deleted", "retained"].map(|member| ended[member].as_u64().expect("a count"))
}

/// From where to where something was promoted, with which score.
fn promotions(ended: &Value) -> Vec<(String, String, f64)> {
    let promoted = list(&ended["promoted"]);
    promoted.iter().map(|one| (text(&one["from"]), text(&one["to"]), number(&one["score"]))).collect()
}

#[track_caller]
fn important(tenant: &Tenant, place: &Place, content: &str, importance: f64) -> String {
    tenant.say_with(place, json!({"content": content, "metadata": {"importance": importance}}))
}

#[test]
fn the_important_is_copied_to_the_person_and_the_rest_stays() {
    let tenant = Tenant::fresh();
    let (place, person) = (session(), Place::user("u"));
    let metadata = json!({"importance": 0.9, "tags": ["seat"], "source": {"type": "conversation", "reference": "e1"}, "own": {"k": null}});
    let worth = tenant.say_with(&place, json!({"content": "prefers window seats", "metadata": metadata}));
    let just = important(&tenant, &place, "travels with a dog", 0.8);
    let trifle = important(&tenant, &place, "asked about the weather", 0.79);
    let plain = tenant.say(&place, "says hello");
    let before = tenant.entry(&worth);

    let ended = end(&tenant, &place, json!({}));

    assert_eq!((&ended["userId"], &ended["sessionId"]), (&json!("u"), &json!("s")));
    assert_eq!(counts(&ended), [4, 0, 4]);
    assert_eq!(ended["blocked"], json!([]));
    let promoted = promotions(&ended);
    let scores: Vec<_> = sorted(promoted.iter().map(|(from, _, score)| (from.clone(), score.to_bits())));
    assert_eq!(scores, sorted([(worth.clone(), 0.9_f64.to_bits()), (just, 0.8_f64.to_bits())]), "inclusive");
    let copy = promoted.iter().find(|(from, ..)| *from == worth).map(|(_, to, _)| tenant.entry(to)).unwrap();
    assert_ne!(copy["id"], before["id"]);
    assert_eq!((&copy["layer"], &copy["kind"]), (&json!("user"), &json!("user_personal")));
    for member in ["content", "metadata", "contentHash", "embeddingModel"] {
        assert_eq!(copy[member], before[member], "{member}");
    }
    assert_eq!((&copy["version"], &copy["state"]), (&json!(1), &json!("active")));
    assert_eq!(copy["lineage"], json!({"promotedFrom": worth}));
    assert!(!names(&copy).contains("ttlSeconds"), "the lifetime is not copied: {copy}");
    assert!(instant(&copy["createdAt"]) > instant(&before["createdAt"]));
    assert_eq!(copy["createdAt"], copy["updatedAt"]);

    let original = tenant.entry(&worth);
    assert_eq!(original["lineage"], json!({"promotedTo": copy["id"]}));
    for member in ["version", "updatedAt", "expiresAt", "state", "kind", "metadata"] {
        assert_eq!(original[member], before[member], "{member} of the original");
    }
    for id in [&trifle, &plain] {
        assert!(!names(&tenant.entry(id)).contains("lineage"));
    }
    assert_eq!(tenant.page(person.with(json!({}))).total, 2);
}

#[test]
fn a_second_end_promotes_nothing_and_the_session_goes_on() {
    let tenant = Tenant::fresh();
    let place = session();
    important(&tenant, &place, "prefers window seats", 0.9);
    assert_eq!(promotions(&end(&tenant, &place, json!({}))).len(), 1);
    let again = end(&tenant, &place, json!({}));
    assert_eq!((promotions(&again), counts(&again)), (vec![], [1, 0, 1]));

    let later = important(&tenant, &place, "has moved to Lisbon", 0.9);

    let third = promotions(&end(&tenant, &place, json!({})));
    assert_eq!(third.len(), 1);
    assert_eq!(third[0].0, later);
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 2);
}

#[test]
fn many_ends_at_once_promote_once() {
    let tenant = Tenant::fresh();
    let place = session();
    for n in 0..5 {
        important(&tenant, &place, ["red", "green", "blue", "amber", "violet"][n], 0.9);
    }
    let ends = at_once(4, |_| promotions(&end(&tenant, &place, json!({}))).len());
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 5, "{ends:?}");
}

#[test]
fn what_has_no_importance_is_scored_by_use_and_relevance() {
    let tenant = Tenant::fresh();
    let place = session();
    let plain = tenant.say(&place, "never looked at");
    let faint = tenant.say_with(&place, json!({"content": "faint", "metadata": {"relevance": 0.5}}));
    assert_eq!(promotions(&end(&tenant, &place, json!({"promotionThreshold": 0.31}))), []);

    let promoted = promotions(&end(&tenant, &place, json!({"promotionThreshold": 0.3})));
    let [(from, _, score)] = &promoted[..] else { panic!("{promoted:?}") };
    assert_eq!((from, *score), (&plain, 0.3 * 1.0));

    let promoted = promotions(&end(&tenant, &place, json!({"promotionThreshold": 0})));
    let [(from, _, score)] = &promoted[..] else { panic!("{promoted:?}") };
    assert_eq!((from, *score), (&faint, 0.3 * 0.5));
}

#[test]
fn every_kind_but_scratch_can_be_promoted() {
    let tenant = Tenant::fresh();
    let place = session();
    let kinds = ["session", "episodic", "semantic"];
    for kind in kinds {
        let metadata = json!({"importance": 1});
        tenant.say_with(
            &place,
            json!({"content": format!("{kind} words"), "kind": kind, "metadata": metadata}),
        );
    }
    let scratch = tenant
        .say_with(&place, json!({"content": "scratch", "kind": "working", "metadata": {"importance": 1}}));

    let ended = end(&tenant, &place, json!({}));

    assert_eq!((promotions(&ended).len(), counts(&ended)), (3, [3, 1, 3]));
    tenant.get(&scratch).not_found();
    let copies = tenant.all(Place::user("u").with(json!({})));
    assert!(copies.iter().all(|copy| copy["kind"] == "user_personal"), "{copies:?}");
    let contents = sorted(copies.iter().map(|copy| text(&copy["content"])));
    assert_eq!(contents, sorted(kinds.map(|kind| format!("{kind} words"))));
}

#[test]
fn what_is_sensitive_or_private_never_leaves() {
    let tenant = Tenant::fresh();
    let place = session();
    let mut expected = Vec::new();
    for metadata in [json!({"importance": 1, "sensitive": true}), json!({"importance": 1, "private": true})] {
        expected.push(tenant.say_with(&place, json!({"content": "a secret", "metadata": metadata})));
    }
    let metadata = json!({"importance": 1, "sensitive": false, "private": false});
    let open = tenant.say_with(&place, json!({"content": "known to all", "metadata": metadata}));

    let ended = end(&tenant, &place, json!({}));

    let blocked = list(&ended["blocked"]);
    assert_eq!(sorted(blocked.iter().map(id_of)), sorted(expected));
    assert!(blocked.iter().all(|one| one["reason"] == "sensitive"), "{ended}");
    assert_eq!(promotions(&ended).iter().map(|(from, ..)| from).collect::<Vec<_>>(), [&open]);
    assert_eq!(tenant.contents(Place::user("u").with(json!({}))), ["known to all"]);
}

#[test]
fn what_the_person_already_knows_is_not_told_again() {
    let tenant = Tenant::fresh();
    let (place, person) = (session(), Place::user("u"));
    let known = tenant.say(&person, "Prefers window seats.");
    let said = important(&tenant, &place, "prefers  window seats", 0.9);
    let (one, two) =
        (important(&tenant, &place, "Has a dog", 0.9), important(&tenant, &place, "has a dog!", 0.9));
    let opposite = important(&tenant, &place, "never prefers window seats", 0.9);

    let ended = end(&tenant, &place, json!({}));

    let promoted = list(&ended["promoted"]);
    let of = |id: &str| promoted.iter().find(|one| one["from"] == id).unwrap_or_else(|| panic!("{ended}"));
    assert_eq!((&of(&said)["to"], &of(&said)["deduplicated"]), (&json!(known), &json!(true)));
    assert_eq!(of(&one)["to"], of(&two)["to"], "one copy for both");
    assert_ne!(of(&one)["deduplicated"], of(&two)["deduplicated"]);
    assert_eq!(of(&opposite)["deduplicated"], false);
    assert_eq!(tenant.page(person.with(json!({}))).total, 3);
    assert_eq!(tenant.entry(&known)["version"], 1, "the entry that was there is as it was");
    assert_eq!(promotions(&end(&tenant, &place, json!({}))), []);
}

#[test]
fn promotion_can_be_switched_off() {
    let tenant = Tenant::fresh();
    let place = session();
    important(&tenant, &place, "prefers window seats", 1.0);
    let ended = end(&tenant, &place, json!({"promoteImportant": false}));
    assert_eq!((promotions(&ended), counts(&ended)[2]), (vec![], 1));
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 0);
}

#[test]
fn retention_qualifies_deletion() {
    let tenant = Tenant::fresh();
    let cases = [
        (json!({}), None),
        (json!({"retentionPeriod": "60s"}), None),
        (json!({"autoDelete": true}), Some(7.0 * DAY)),
        (json!({"autoDelete": true, "retentionPeriod": "10m"}), Some(600.0)),
        (json!({"autoDelete": true, "retentionPeriod": "2h"}), Some(7200.0)),
        (json!({"autoDelete": true, "retentionPeriod": "1d"}), Some(DAY)),
    ];
    for (members, retention) in cases {
        let place = Place::session("u", &fresh_name("session"));
        let hour = tenant.added(place.with(json!({"content": "an hour"})));
        let for_ever = tenant.added(place.with(json!({"content": "for ever", "kind": "semantic"})));
        let scratch = tenant.say_with(&place, json!({"content": "scratch", "kind": "working"}));

        let ended = end(&tenant, &place, members.clone());

        assert_eq!(counts(&ended), [2, 1, 2], "{members}");
        tenant.get(&scratch).not_found();
        // Not through the usual checks: what expires here never had a lifetime of its own.
        let now = |entry: &Value| tenant.get(&id_of(entry)).expect(200).json["memory"].clone();
        let (hour_now, for_ever_now) = (now(&hour), now(&for_ever));
        assert_eq!((&hour_now["version"], &for_ever_now["version"]), (&json!(1), &json!(1)), "{members}");
        match retention {
            None => {
                assert_eq!(hour_now["expiresAt"], hour["expiresAt"], "{members}");
                assert!(!names(&for_ever_now).contains("expiresAt"), "{for_ever_now}");
            }
            Some(seconds) => {
                let left = |entry: &Value| seconds_between(&ended["endedAt"], &entry["expiresAt"]);
                assert!((left(&for_ever_now) - seconds).abs() < 1e-3, "{members} {for_ever_now}");
                if seconds < 3600.0 {
                    assert!((left(&hour_now) - seconds).abs() < 1e-3, "{members} {hour_now}");
                } else {
                    assert_eq!(hour_now["expiresAt"], hour["expiresAt"], "it only ever tightens");
                }
            }
        }
    }
}

#[test]
fn without_retention_everything_goes_at_once_and_the_copies_stay() {
    let tenant = Tenant::fresh();
    let place = session();
    let gone = [
        important(&tenant, &place, "prefers window seats", 0.9),
        tenant.say(&place, "says hello"),
        tenant.say_with(&place, json!({"content": "for ever", "kind": "semantic"})),
        tenant.say_with(&place, json!({"content": "scratch", "kind": "working"})),
        tenant.say_with(
            &place,
            json!({"content": "a secret", "metadata": {"sensitive": true, "importance": 1}}),
        ),
    ];

    let ended = end(&tenant, &place, json!({"autoDelete": true, "retentionPeriod": "0s"}));

    assert_eq!(counts(&ended), [4, 5, 0]);
    for id in &gone {
        tenant.get(id).not_found();
    }
    assert_eq!(tenant.page(place.with(json!({"includeArchived": true}))).total, 0);
    assert_eq!(tenant.contents(Place::user("u").with(json!({}))), ["prefers window seats"]);
    assert_eq!(
        counts(&end(&tenant, &place, json!({"autoDelete": true, "retentionPeriod": "0s"}))),
        [0, 0, 0]
    );
}

#[test]
fn others_are_left_alone() {
    let tenant = Tenant::fresh();
    let others = [
        Place::session("v", "s"),
        Place::session("u", "t"),
        Place::user("u"),
        Place::agent("s", "u"),
        Place::project("s"),
    ];
    let untouched: Vec<Value> = others
        .iter()
        .flat_map(|place| {
            let metadata = json!({"importance": 1});
            let working = matches!(place.layer, "session" | "user" | "agent")
                .then(|| json!({"content": "scratch", "kind": "working"}));
            [Some(json!({"content": "theirs", "metadata": metadata})), working]
                .into_iter()
                .flatten()
                .map(|members| tenant.added(place.with(members)))
                .collect::<Vec<_>>()
        })
        .collect();
    let elsewhere = Tenant::fresh();
    let foreign =
        elsewhere.added(session().with(json!({"content": "elsewhere", "metadata": {"importance": 1}})));
    important(&tenant, &session(), "mine", 1.0);

    let ended = end(&tenant, &session(), json!({"autoDelete": true, "retentionPeriod": "0s"}));

    assert_eq!((promotions(&ended).len(), counts(&ended)), (1, [1, 1, 0]));
    for entry in untouched {
        assert_eq!(tenant.entry(&id_of(&entry)), entry);
    }
    assert_eq!(elsewhere.entry(&id_of(&foreign)), foreign);
    assert_eq!(tenant.page(Place::user("v").with(json!({}))).total, 0);
}

#[test]
fn a_long_session_ends_as_a_short_one_does() {
    let tenant = Tenant::fresh();
    let place = session();
    let bodies = (0..640).map(|n| {
        let importance = if n % 2 == 0 { 0.9 } else { 0.1 };
        place.with(json!({"content": format!("ticket {n}"), "metadata": {"importance": importance}}))
    });
    tenant.add_all(bodies);
    let ended = end(&tenant, &place, json!({"autoDelete": true, "retentionPeriod": "0s"}));
    assert_eq!((promotions(&ended).len(), counts(&ended)), (320, [640, 640, 0]));
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 320);
    assert_eq!(tenant.page(place.with(json!({}))).total, 0);
}

#[test]
fn the_end_may_be_dated() {
    let tenant = Tenant::fresh();
    let place = session();
    let entry = tenant.added(place.with(json!({"content": "for ever", "kind": "semantic"})));
    let as_of = after(&entry["createdAt"], 1000.0);
    let ended = end(&tenant, &place, json!({"asOf": as_of, "autoDelete": true, "retentionPeriod": "60s"}));
    assert_eq!(instant(&ended["endedAt"]), instant(&as_of));
    let kept = tenant.get(&id_of(&entry)).expect(200).json;
    let left = seconds_between(&as_of, &kept["memory"]["expiresAt"]);
    assert!((left - 60.0).abs() < 1e-3, "{left}");
}

#[test]
fn what_is_malformed_is_refused() {
    let tenant = Tenant::fresh();
    let place = session();
    for period in ["7", "7w", "-1d", "1.5h", "", " 7d", "7D", "P7D", "d", "7d "] {
        ask(&tenant, &place, json!({"retentionPeriod": period})).invalid("retentionPeriod");
    }
    ask(&tenant, &place, json!({"retentionPeriod": 7})).invalid("retentionPeriod");
    for threshold in [json!(1.1), json!(-1), json!("0.5")] {
        ask(&tenant, &place, json!({"promotionThreshold": threshold})).invalid("promotionThreshold");
    }
    ask(&tenant, &place, json!({"autoDelete": 1})).invalid("autoDelete");
    ask(&tenant, &place, json!({"promoteImportant": "yes"})).invalid("promoteImportant");
    ask(&tenant, &place, json!({"asOf": "soon"})).invalid("asOf");
    let missing = tenant.client.post("/v1/sessions:end", json!({"identifiers": {"userId": "u"}}));
    assert_eq!(missing.refused(400, "MISSING_IDENTIFIER").details()["missing"], json!(["sessionId"]));
    let missing = tenant.client.post("/v1/sessions:end", json!({"identifiers": {}}));
    assert_eq!(
        missing.refused(400, "MISSING_IDENTIFIER").details()["missing"],
        json!(["userId", "sessionId"])
    );
    ask(&tenant.as_user("v"), &place, json!({})).refused(403, "FORBIDDEN");
    // Absurd, but a duration all the same.
    let body = json!({"autoDelete": true, "retentionPeriod": "99999999999999999999d"});
    let answer = ask(&tenant, &place, body);
    assert!(answer.status == 200 || answer.status == 400, "{}", answer.describe());
    assert_eq!(counts(&end(&tenant, &Place::session("u", "unheard of"), json!({}))), [0, 0, 0]);
}

#[test]
fn a_user_ends_its_own_session() {
    let tenant = Tenant::fresh();
    important(&tenant, &session(), "prefers window seats", 0.9);
    assert_eq!(promotions(&end(&tenant.as_user("u"), &session(), json!({}))).len(), 1);
}
