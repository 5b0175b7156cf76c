//! Retention: what is older than the caller's days goes, and nothing else.

use crate::support::*;
use memtrove_core::Timestamp;
use std::sync::LazyLock;
use std::time::Duration;

/// A server that keeps no audit record longer than it is told: what most of these tests are about is which ones go.
static SERVER: LazyLock<TestServer> = LazyLock::new(|| server_with("[retention]\naudit_min_days = 0\n"));

/// A server with the floor that nobody has to configure.
static FLOORED: LazyLock<TestServer> = LazyLock::new(local_server);

/// Rules with these days for events and for the audit trail.
fn rules(events_days: u32, audit_days: u32, as_of: &str) -> Value {
    json!({"events_days": events_days, "audit_days": audit_days, "snapshots_days": 0, "as_of_utc": as_of})
}

/// Events at these times, each with its time for an id.
fn scope_with_events(times: &[&str]) -> Scope {
    let scope = Scope::fresh(&SERVER);
    for time in times {
        scope.tell(time, json!({"timestamp": time, "digest": "walrus"}));
    }
    scope
}

/// Requires the contract's seven members, these counts, and that the index lost as many entries as there were events
/// (or none, where events are their own index).
#[track_caller]
fn assert_deleted(answer: Answer, events: u64, audit: u64) -> Answer {
    let answer = answer.expect(200).expect_members(&[
        "events_deleted",
        "audit_deleted",
        "snapshots_deleted",
        "search_documents_deleted",
        "cutoff_events_utc",
        "cutoff_audit_utc",
        "cutoff_snapshots_utc",
    ]);
    let count =
        |member: &str| answer.json[member].as_u64().unwrap_or_else(|| panic!("{}", answer.describe()));
    assert_eq!(
        (count("events_deleted"), count("audit_deleted"), count("snapshots_deleted")),
        (events, audit, 0),
        "{}",
        answer.describe()
    );
    assert!([0, events].contains(&count("search_documents_deleted")), "{}", answer.describe());
    answer
}

#[test]
fn an_event_goes_when_it_is_strictly_older_than_the_cutoff() {
    let times = [
        "2026-03-06T23:59:59.999999Z",
        "2026-03-07T01:30:00+02:00", // half past eleven in UTC, the day before
        "2026-03-07T00:00:00Z",
        "2026-03-06T19:00:00-05:00", // the very cutoff too
        "2026-03-07T00:00:00.000001Z",
        "2026-03-09T00:00:00Z",
    ];
    let scope = scope_with_events(&times);

    let answer = assert_deleted(scope.retain(rules(3, 0, "2026-03-10T00:00:00Z")), 2, 0);

    assert_eq!(answer.json["cutoff_events_utc"], "2026-03-07T00:00:00.000000Z");
    let left = [times[5], times[4], times[3], times[2]];
    assert_eq!(scope.found(json!({})), left);
    assert_eq!(scope.found(json!({"query": "walrus"})), left, "the index forgets with the events");
    assert_eq!(scope.found(json!({"to": "2026-03-06T23:59:59.999999Z"})), Vec::<String>::new());
}

#[test]
fn cutoffs_are_told_in_utc_each_for_its_own_days() {
    let scope = Scope::fresh(&SERVER);
    let rules = json!({"events_days": 1, "audit_days": 30, "snapshots_days": 36_500,
                       "as_of_utc": "2026-03-10T01:00:00.5+02:00"});

    let answer = assert_deleted(scope.retain(rules), 0, 0);

    assert_eq!(answer.json["cutoff_events_utc"], "2026-03-08T23:00:00.500000Z");
    assert_eq!(answer.json["cutoff_audit_utc"], "2026-02-07T23:00:00.500000Z");
    assert_eq!(answer.json["cutoff_snapshots_utc"], "1926-04-03T23:00:00.500000Z");
}

#[test]
fn without_a_time_the_days_are_counted_from_now() {
    let scope = scope_with_events(&["2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"]);
    let created = scope.create("a.md", json!({}));
    let body = json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": null});

    let answer = assert_deleted(scope.retain(body), 1, 1);

    assert_timestamp(&answer.json["cutoff_events_utc"]);
    assert_eq!(answer.json["cutoff_events_utc"], answer.json["cutoff_audit_utc"]);
    assert!(answer.json["cutoff_events_utc"].as_str() > created.document()["updated_at"].as_str());
    assert_eq!(scope.found(json!({})), ["2099-01-01T00:00:00Z"]);
    assert_eq!(scope.audit(), Vec::<Value>::new());
}

#[test]
fn a_record_goes_by_the_time_of_its_change() {
    let scope = Scope::fresh(&SERVER);
    for n in 0..4 {
        scope.create(&format!("{n}.md"), json!({}));
        // Apart enough that no two records share an instant.
        std::thread::sleep(Duration::from_millis(2));
    }
    let records = scope.audit();

    let cutoff = records[2]["timestamp"].as_str().unwrap();
    let answer = assert_deleted(scope.retain(rules(0, 0, cutoff)), 0, 2);

    assert_eq!(answer.json["cutoff_audit_utc"], cutoff);
    assert_eq!(scope.audit(), records[2..]);
    assert_deleted(scope.retain(rules(0, 1, cutoff)), 0, 0);
    assert_eq!(scope.audit(), records[2..]);
}

#[test]
fn the_kinds_have_days_of_their_own() {
    let scope = scope_with_events(&["2026-03-01T00:00:00Z"]);
    scope.create("a.md", json!({}));

    assert_deleted(scope.as_admin().retain(rules(36_500, 0, "2099-01-01T00:00:00Z")), 0, 1);
    assert_eq!(scope.found(json!({})).len(), 1);
    scope.create("b.md", json!({}));
    assert_deleted(scope.as_admin().retain(rules(0, 36_500, "2099-01-01T00:00:00Z")), 1, 0);
    assert_eq!(scope.audit().len(), 1);
}

#[test]
fn files_are_never_touched() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({"text": "one"}));

    assert_deleted(scope.as_admin().retain(rules(0, 0, "9999-12-31T23:59:59Z")), 0, 1);

    assert_eq!(scope.read("a.md"), stored);
    assert_eq!(scope.paths(""), ["a.md"]);
    scope.put("a.md", &stored.etag, note("two")).expect(200);
    assert_eq!(scope.audit().len(), 1);
}

#[test]
fn applying_the_same_rules_again_deletes_nothing() {
    let scope = scope_with_events(&["2026-03-01T00:00:00Z", "2026-03-09T00:00:00Z"]);
    scope.create("a.md", json!({}));
    let rules = rules(3, 36_500, "2026-03-10T00:00:00Z");

    let first = assert_deleted(scope.retain(rules.clone()), 1, 0);
    let again = assert_deleted(scope.retain(rules), 0, 0);

    assert_eq!(again.json["cutoff_events_utc"], first.json["cutoff_events_utc"]);
    assert_eq!(scope.found(json!({})), ["2026-03-09T00:00:00Z"]);
}

#[test]
fn an_unknown_scope_has_nothing_to_delete() {
    let answer = assert_deleted(Scope::fresh(&SERVER).retain(rules(1, 2, "2026-03-10T00:00:00Z")), 0, 0);
    assert_eq!(answer.json["cutoff_events_utc"], "2026-03-09T00:00:00.000000Z");
    assert_eq!(answer.json["cutoff_audit_utc"], "2026-03-08T00:00:00.000000Z");
    assert_eq!(answer.json["cutoff_snapshots_utc"], "2026-03-10T00:00:00.000000Z");
}

#[test]
fn other_scopes_keep_what_they_have() {
    let scope = scope_with_events(&["2026-03-01T00:00:00Z"]);
    let others = [
        Scope::of(&SERVER, &scope.tenant, &fresh_name("user")),
        Scope::of(&SERVER, &fresh_name("tenant"), &scope.user),
    ];
    for other in &others {
        other.tell("evt", json!({"timestamp": "2026-03-01T00:00:00Z"}));
        other.create("a.md", json!({}));
    }

    assert_deleted(scope.as_admin().retain(rules(0, 0, "2099-01-01T00:00:00Z")), 1, 0);

    for other in &others {
        assert_eq!(other.found(json!({})), ["evt"]);
        assert_eq!(other.audit().len(), 1);
    }
}

#[test]
fn an_event_that_was_deleted_can_be_written_again() {
    let scope = scope_with_events(&["2026-03-01T00:00:00Z"]);
    assert_deleted(scope.as_admin().retain(rules(0, 0, "2099-01-01T00:00:00Z")), 1, 0);

    scope.tell("2026-03-01T00:00:00Z", json!({"digest": "penguin"}));

    assert_eq!(scope.found(json!({})).len(), 1);
    assert_eq!(scope.found(json!({"query": "walrus"})), Vec::<String>::new());
    assert_eq!(scope.found(json!({"query": "penguin"})).len(), 1);
}

#[test]
fn an_event_goes_by_the_time_it_has_now() {
    let scope = scope_with_events(&["2026-03-01T00:00:00Z", "2026-03-09T00:00:00Z"]);
    scope.tell("2026-03-01T00:00:00Z", json!({"timestamp": "2026-03-10T00:00:00Z", "digest": "moved"}));
    scope.tell("2026-03-09T00:00:00Z", json!({"timestamp": "2026-02-01T00:00:00Z", "digest": "moved"}));

    assert_deleted(scope.retain(rules(3, 0, "2026-03-10T00:00:00Z")), 1, 0);

    assert_eq!(scope.found(json!({"query": "moved"})), ["2026-03-01T00:00:00Z"]);
}

#[test]
fn many_events_go_at_once() {
    let scope = Scope::fresh(&SERVER);
    spread(300, |n| {
        let timestamp = if n % 3 == 0 { "2026-03-01T00:00:00Z" } else { "2026-03-09T00:00:00Z" };
        scope.tell(&format!("evt{n:03}"), json!({"timestamp": timestamp, "digest": format!("walrus w{n}x")}));
    });

    assert_deleted(scope.retain(rules(3, 0, "2026-03-10T00:00:00Z")), 100, 0);

    let expected: Vec<String> = (0..300).filter(|n| n % 3 != 0).map(|n| format!("evt{n:03}")).collect();
    assert_eq!(scope.found(json!({"query": "walrus", "top_k": 500})), expected);
    assert_eq!(scope.found(json!({"top_k": 500})), expected);
    assert_eq!(scope.found(json!({"query": "w299x"})), ["evt299"]);
    assert_eq!(scope.found(json!({"query": "w297x"})), Vec::<String>::new());
}

// ---- the floor of the audit trail

const DISTANT: &str = "2999-01-01T00:00:00Z";

fn nothing_kept() -> Value {
    json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0})
}

/// How many days of audit records a report says were kept, where no events were.
fn days_of_audit(report: &Answer) -> i64 {
    let [events, audit] = ["cutoff_events_utc", "cutoff_audit_utc"].map(|member| {
        let cutoff = report.json[member].as_str().unwrap_or_default();
        Timestamp::parse(cutoff).unwrap_or_else(|| panic!("{}", report.describe())).as_micros()
    });
    let (days, rest) = ((events - audit) / 86_400_000_000, (events - audit) % 86_400_000_000);
    assert_eq!(rest, 0, "{}", report.describe());
    days
}

/// A scope with three records in its trail.
fn trailed(server: &TestServer) -> Scope {
    let scope = Scope::fresh(server);
    for path in ["a.md", "b.md", "c.md"] {
        scope.create(path, json!({"text": "walrus"}));
    }
    assert_eq!(scope.audit().len(), 3);
    scope
}

#[test]
fn a_writer_removes_no_record_that_the_floor_keeps() {
    let scope = trailed(&FLOORED);
    let trail = scope.audit();
    let writers = [
        scope.clone(),
        scope.seen_by(&FLOORED.as_user(&scope.user).with_key(AGENT).in_tenant(&scope.tenant)),
        scope.with_header("x-justification", "I would rather not be seen"),
        // Who may go below it has to say why.
        scope.as_admin(),
        scope.as_admin().with_header("x-justification", "  "),
    ];
    for writer in writers {
        let report = writer.retain(nothing_kept()).expect(200);
        assert_eq!(
            (&report.json["audit_deleted"], &report.json["adjusted"]),
            (&json!(0), &json!(["audit_days"]))
        );
        assert_eq!(days_of_audit(&report), 365, "the cutoffs are those that were used: {}", report.text);
    }
    assert_eq!(scope.audit(), trail);
    let kept = json!({"events_days": 0, "audit_days": 365, "snapshots_days": 0});
    assert_eq!(scope.retain(kept).expect(200).json.get("adjusted"), None, "nothing was changed");
}

#[test]
fn only_an_admin_counts_from_a_time_to_come() {
    let scope = trailed(&FLOORED);
    scope.tell("evt", json!({}));
    let refused = scope.retain(rules(0, 0, DISTANT)).refused(400, "INVALID_RETENTION_VALUE");
    assert_eq!(refused.detail("field"), Some("as_of_utc"), "{}", refused.describe());
    assert_eq!((scope.found(json!({})).len(), scope.audit().len()), (1, 3));

    let report = scope.as_admin().retain(rules(0, 0, DISTANT)).expect(200);
    assert_eq!(report.json["events_deleted"], 1);
    assert_eq!(
        (&report.json["audit_deleted"], &report.json["adjusted"]),
        (&json!(0), &json!(["audit_days"]))
    );
    assert_eq!(scope.audit().len(), 3, "a time to come does not undercut the floor");
}

#[test]
fn an_admin_who_says_why_goes_below_the_floor_and_the_trail_says_so() {
    for server in [&*FLOORED, &encrypted_server()] {
        let scope = trailed(server);
        let admin = scope.as_admin().with_header("x-justification", " ticket 4711 ");
        let report = admin.retain(rules(0, 0, DISTANT)).expect(200);
        assert_eq!(report.json["audit_deleted"], 3);
        assert_eq!(
            (report.json.get("adjusted"), &report.json["cutoff_audit_utc"]),
            (None, &json!("2999-01-01T00:00:00.000000Z"))
        );

        let trail = scope.audit();
        assert_eq!(trail.len(), 1, "{trail:?}");
        let left = &trail[0];
        for (member, value) in [
            ("layer", json!("lifecycle")),
            ("action", json!("audit_truncated")),
            ("path", json!("")),
            ("cutoff", json!("2999-01-01T00:00:00.000000Z")),
            ("count", json!(3)),
            ("justification", json!("ticket 4711")),
            ("actor", json!(AGENT)),
            ("principal", json!(format!("client:{AGENT} user:admin"))),
            ("previous_etag", Value::Null),
            ("new_etag", Value::Null),
            ("document", Value::Null),
            ("sequence", json!(4)),
            ("request_id", json!(report.header("x-request-id"))),
        ] {
            assert_eq!(left[member], value, "{member}: {left}");
        }
        let change = left["change_id"].as_str().unwrap();
        let shown = scope.as_admin().client.get(&scope.at(&format!("/audit/{change}"))).expect(200);
        assert_eq!(shown.json, *left);
        scope.reconstruct("a.md", change).refused(404, "AUDIT_NOT_FOUND");

        // The floor keeps it, whoever asks, and whoever finds nothing to remove leaves no trace.
        assert_eq!(admin.retain(rules(0, 0, DISTANT)).expect(200).json["audit_deleted"], 0);
        assert_eq!(scope.audit(), trail);
        let stored = scope.read("a.md");
        scope.put("a.md", &stored.etag, note("two")).expect(200);
        assert_eq!(admin.retain(rules(0, 0, DISTANT)).expect(200).json["audit_deleted"], 1);
        let counts: Vec<Value> = scope.audit().iter().map(|record| record["count"].clone()).collect();
        assert_eq!(counts, [3, 1]);

        assert_eq!(scope.forget().expect(200).json["audit_deleted"], 2, "forgetting leaves nothing");
        assert_eq!(scope.audit(), Vec::<Value>::new());
    }
}

#[test]
fn a_justification_is_a_sentence() {
    let scope = trailed(&FLOORED);
    let admin = scope.as_admin().with_header("x-justification", &"x".repeat(1001));
    admin.retain(nothing_kept()).refused(400, "INVALID_REQUEST");
    assert_eq!(scope.audit().len(), 3);
}

#[test]
fn an_operator_sets_the_floor() {
    let server = server_with("[retention]\naudit_days = 30\n");
    let scope = trailed(&server);
    let report = scope.retain(nothing_kept()).expect(200);
    assert_eq!(days_of_audit(&report), 30, "{}", report.text);
    assert_eq!(scope.audit().len(), 3);
}

#[test]
fn profiles_do_not_rule_yet() {
    let mut both = nothing_kept();
    both["profile_id"] = json!("p");
    for (body, code) in [(both, "INVALID_RETENTION_MODE"), (json!({"profile_id": "p"}), "INVALID_REQUEST")] {
        let scope = trailed(&SERVER);
        let refused = scope.retain(body).refused(400, code);
        assert_eq!(refused.detail("field"), Some("profile_id"));
        assert!(refused.text.contains("'profile_id' is not supported yet"), "{}", refused.describe());
        assert_eq!(scope.audit().len(), 3);
    }
}

// ---- what is refused

/// Requires that this request deletes nothing.
#[track_caller]
fn refused(body: Value, code: &str) {
    let scope = scope_with_events(&["2001-01-01T00:00:00Z"]);
    scope.create("a.md", json!({}));
    scope.retain(body).refused(400, code);
    assert_eq!((scope.found(json!({})).len(), scope.audit().len()), (1, 1));
}

#[test]
fn upstream_defect_4_an_empty_body_deletes_nothing() {
    refused(json!({}), "MISSING_RETENTION_RULES");
    refused(
        json!({"events_days": null, "audit_days": null, "snapshots_days": null}),
        "MISSING_RETENTION_RULES",
    );
    refused(json!({"as_of_utc": "2026-01-01T00:00:00Z"}), "MISSING_RETENTION_RULES");
    let scope = scope_with_events(&["2001-01-01T00:00:00Z"]);
    let answer = scope.client.post_nothing(&scope.at("/retention:apply")).expect(400);
    assert!(matches!(
        answer.json["error"]["code"].as_str(),
        Some("INVALID_JSON" | "MISSING_RETENTION_RULES")
    ));
    assert_eq!(scope.found(json!({})).len(), 1);
}

#[test]
fn all_three_days_are_needed() {
    let members = ["events_days", "audit_days", "snapshots_days"];
    for absent in members {
        let mut body = json!({"events_days": 1, "audit_days": 1, "snapshots_days": 1});
        body[absent] = Value::Null;
        refused(body.clone(), "INCOMPLETE_RETENTION_RULES");
        body.as_object_mut().unwrap().remove(absent);
        refused(body, "INCOMPLETE_RETENTION_RULES");
        refused(json!({absent: 1}), "INCOMPLETE_RETENTION_RULES");
    }
}

#[test]
fn days_are_between_none_and_a_hundred_years() {
    for member in ["events_days", "audit_days", "snapshots_days"] {
        for days in [json!(-1), json!(36_501), json!(i64::MAX), json!(i64::MIN)] {
            let mut body = json!({"events_days": 1, "audit_days": 1, "snapshots_days": 1});
            body[member] = days;
            refused(body, "INVALID_RETENTION_VALUE");
        }
        for days in [json!("1"), json!(1.5), json!([1]), json!(true)] {
            let scope = scope_with_events(&["2001-01-01T00:00:00Z"]);
            let mut body = json!({"events_days": 1, "audit_days": 1, "snapshots_days": 1});
            body[member] = days;
            let code = scope.retain(body).expect(400).json["error"]["code"].clone();
            assert!(matches!(code.as_str(), Some("INVALID_REQUEST" | "INVALID_RETENTION_VALUE")), "{code}");
            assert_eq!(scope.found(json!({})).len(), 1);
        }
    }
    let most = json!({"events_days": 36_500, "audit_days": 36_500, "snapshots_days": 36_500});
    assert_deleted(scope_with_events(&["2001-01-01T00:00:00Z"]).retain(most), 0, 0);
}

#[test]
fn the_time_to_count_from_is_a_time() {
    for as_of in [json!("yesterday"), json!("2026-01-01"), json!("2026-01-01T00:00:00"), json!(5), json!("")]
    {
        let body = json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": as_of});
        refused(body, "INVALID_REQUEST");
    }
    // A cutoff that no calendar has is no reason to fail.
    let answer = Scope::fresh(&SERVER).retain(rules(36_500, 36_500, "0001-01-01T00:00:00Z"));
    assert!(answer.status < 500, "{}", answer.describe());
}
