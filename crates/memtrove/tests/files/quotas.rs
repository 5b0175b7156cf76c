//! Quotas: off until configured, then counted per user and per service.

use crate::support::*;
use std::time::Duration;

/// Requires 429 with what the caller needs to know; the seconds after which to try again.
#[track_caller]
fn assert_exceeded(answer: Answer, scope: &str, resource: &str, limit: &str, window_seconds: &str) -> u64 {
    let answer = answer.refused(429, "QUOTA_EXCEEDED");
    for (name, expected) in
        [("scope", scope), ("resource", resource), ("limit", limit), ("window_seconds", window_seconds)]
    {
        assert_eq!(answer.detail(name), Some(expected), "{name}: {}", answer.describe());
    }
    answer.header("retry-after").parse().unwrap_or_else(|_| panic!("no Retry-After: {:?}", answer.headers))
}

fn message(answer: &Answer) -> &str {
    answer.json["error"]["message"].as_str().unwrap_or_default()
}

#[track_caller]
fn write(scope: &Scope) -> Answer {
    scope.put(&fresh_name("file"), "*", note("one"))
}

/// Every kind of read, in the order of the contract.
#[track_caller]
fn reads(scope: &Scope) -> Vec<Answer> {
    vec![
        scope.get("a.md"),
        scope.list(""),
        scope.post("/context:assemble", json!({"files": [{"path": "a.md"}]})),
        scope.post("/events:search", json!({})),
    ]
}

/// Every kind of write that a user's agent does all day.
#[track_caller]
fn writes(scope: &Scope, etag: &str) -> Vec<Answer> {
    vec![
        write(scope),
        scope.patch("a.md", etag, json!({"ops": [{"op": "add", "path": "/content/x", "value": 1}]})),
        scope.write_event(scope.event("evt_01", json!({}))),
        scope.rename("a.md", "b.md", etag),
        scope.delete("a.md", etag),
    ]
}

#[test]
fn without_configuration_there_is_no_quota() {
    let server = local_server();
    let scope = Scope::fresh(&server);
    spread(300, |_| {
        write(&scope).expect(200);
        scope.list("limit=1").expect(200);
    });
}

#[test]
fn a_user_has_so_many_writes_in_a_window() {
    let server = server_with("[quotas]\nuser_writes = {limit = 3, window = \"1h\"}\n");
    let scope = Scope::fresh(&server);
    let stored = scope.create("a.md", json!({}));
    write(&scope).expect(200);
    write(&scope).expect(200);

    for answer in writes(&scope, &stored.etag) {
        let retry_after = assert_exceeded(answer, "user", "writes", "3", "3600");
        assert!((1..=3600).contains(&retry_after), "{retry_after}");
    }
    for answer in reads(&scope) {
        answer.expect(200);
    }
    assert_eq!(scope.paths("").len(), 3);
    assert_eq!(scope.found(json!({})), Vec::<String>::new());
    write(&Scope::of(&server, &scope.tenant, &fresh_name("user"))).expect(200);
    write(&Scope::of(&server, &fresh_name("tenant"), &scope.user)).expect(200);
    let other_service = scope.seen_by(&server.anonymous().with_key("agent-b"));
    assert_exceeded(write(&other_service), "user", "writes", "3", "3600");
}

#[test]
fn a_user_has_so_many_reads_in_a_window() {
    let server = server_with("[quotas]\nuser_reads = {limit = 4, window = \"90s\"}\n");
    let scope = Scope::fresh(&server);
    scope.create("a.md", json!({}));
    for answer in reads(&scope) {
        answer.expect(200);
    }

    for answer in reads(&scope) {
        let retry_after = assert_exceeded(answer, "user", "reads", "4", "90");
        assert!((1..=90).contains(&retry_after), "{retry_after}");
    }
    for _ in 0..10 {
        write(&scope).expect(200);
    }
}

#[test]
fn a_service_has_its_share_over_all_users() {
    let server = server_with(
        "[quotas]\nservice_writes = {limit = 3, window = \"1h\"}\nservice_reads = {limit = 2, window = \"1h\"}\n",
    );
    let tenant = fresh_name("tenant");
    let scope = |key: &str| {
        Scope::of(&server, &tenant, &fresh_name("user")).seen_by(&server.anonymous().with_key(key))
    };
    for _ in 0..3 {
        write(&scope("agent-a")).expect(200);
    }
    scope("agent-a").list("").expect(200);
    scope("agent-a").list("").expect(200);

    assert_exceeded(write(&scope("agent-a")), "service", "writes", "3", "3600");
    assert_exceeded(scope("agent-a").list(""), "service", "reads", "2", "3600");
    // The name a caller gives itself is not who it is.
    let renamed = scope("agent-a").with_header("x-service-id", "agent-c");
    assert_exceeded(write(&renamed), "service", "writes", "3", "3600");
    write(&scope("agent-b")).expect(200);
    scope("agent-b").list("").expect(200);
}

#[test]
fn a_refused_call_consumes_nothing() {
    let server = server_with(
        "[quotas]\nuser_writes = {limit = 2, window = \"1h\"}\nservice_writes = {limit = 5, window = \"1h\"}\n",
    );
    let tenant = fresh_name("tenant");
    let users: Vec<Scope> = (0..4).map(|_| Scope::of(&server, &tenant, &fresh_name("user"))).collect();
    for user in &users[..2] {
        write(user).expect(200);
        write(user).expect(200);
        for _ in 0..4 {
            assert_exceeded(write(user), "user", "writes", "2", "3600");
        }
    }
    write(&users[2]).expect(200);
    for _ in 0..4 {
        assert_exceeded(write(&users[3]), "service", "writes", "5", "3600");
    }
    let other_service = users[3].seen_by(&server.anonymous().with_key("agent-b"));
    write(&other_service).expect(200);
    write(&other_service).expect(200);
    assert_exceeded(write(&other_service), "user", "writes", "2", "3600");
}

#[test]
fn a_call_is_charged_after_its_caller_is_known_and_before_it_is_read() {
    let server = server_with("[quotas]\nuser_writes = {limit = 2, window = \"1h\"}\n");
    let scope = Scope::fresh(&server);
    for _ in 0..4 {
        write(&scope.seen_by(&server.anonymous())).refused(401, "UNAUTHENTICATED");
        let stranger = server.someone("stranger");
        assert_eq!(write(&scope.seen_by(&stranger)).status, 403);
    }
    scope.put_body("a.md", "*", Body::json_text("{")).refused(400, "INVALID_JSON");
    scope.put("a.md", "*", json!({})).refused(422, "INVALID_DOCUMENT");

    let unread = scope.put_body("a.md", "*", Body::json_text("{"));
    assert_exceeded(unread, "user", "writes", "2", "3600");
}

#[test]
fn waiting_as_long_as_told_is_enough() {
    let server = server_with("[quotas]\nuser_writes = {limit = 2, window = \"2s\"}\n");
    let scope = Scope::fresh(&server);
    let mut refused = None;
    for _ in 0..100 {
        let answer = write(&scope);
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let retry_after = assert_exceeded(refused.expect("a refusal"), "user", "writes", "2", "2");

    assert!((1..=2).contains(&retry_after), "{retry_after}");
    std::thread::sleep(Duration::from_secs(retry_after));
    write(&scope).expect(200);
}

#[test]
fn there_can_be_so_many_files_of_a_user() {
    let server = server_with("[quotas]\nmax_files = 2\n");
    let scope = Scope::fresh(&server);
    let stored = scope.create("a.md", json!({"text": "n0;"}));
    scope.create("b.md", json!({}));

    for _ in 0..2 {
        let answer = scope.put("c.md", "*", note("one")).refused(429, "QUOTA_EXCEEDED");
        assert_eq!(answer.detail("scope"), Some("user"));
        assert_eq!(answer.detail("resource"), Some("files"));
        assert_eq!(answer.detail("limit"), Some("2"));
        answer.header("retry-after").parse::<u64>().expect("seconds");
        let said = "the user has 2 files, as many as allowed; waiting does not help: ";
        assert!(message(&answer).starts_with(said), "{}", answer.describe());
        assert!(message(&answer).contains("quotas.max_files"), "{}", answer.describe());
    }
    assert_eq!(scope.paths(""), ["a.md", "b.md"]);
    assert_eq!(scope.audit().len(), 2);
    let stored = scope.put("a.md", &stored.etag, note("n0;")).stored();
    scope.patch("a.md", &stored.etag, json!({"edits": [{"old_text": "n0", "new_text": "n1"}]})).expect(200);
    scope.put("a.md", "*", note("one")).refused(412, "ETAG_MISMATCH");
    Scope::of(&server, &scope.tenant, &fresh_name("user")).create("a.md", json!({}));
    scope.forget().expect(200);
    scope.create("c.md", json!({}));
}

#[test]
fn the_cap_holds_when_many_create_at_once() {
    let server = server_with("[quotas]\nmax_files = 5\nmax_events = 5\n");
    let scope = Scope::fresh(&server);

    let files = at_once(12, |n| scope.put(&format!("{n}.md"), "*", note("one")).status);
    let events = at_once(12, |n| scope.write_event(scope.event(&format!("evt{n}"), json!({}))).status);

    for (answers, success) in [(files, 200), (events, 202)] {
        let succeeded = answers.iter().filter(|status| **status == success).count();
        let refused = answers.iter().filter(|status| **status == 429).count();
        assert_eq!((succeeded, refused), (5, 7), "{answers:?}");
    }
    assert_eq!((scope.paths("").len(), scope.found(json!({})).len()), (5, 5));
}

#[test]
fn there_can_be_so_many_events_of_a_user() {
    let server = server_with("[quotas]\nmax_events = 2\n");
    let scope = Scope::fresh(&server);
    scope.tell("a", json!({"timestamp": "2026-03-01T00:00:00Z"}));
    scope.tell("b", json!({"timestamp": "2026-03-09T00:00:00Z"}));

    let answer = scope.write_event(scope.event("c", json!({}))).refused(429, "QUOTA_EXCEEDED");

    assert_eq!(answer.detail("scope"), Some("user"));
    assert_eq!(answer.detail("resource"), Some("events"));
    assert_eq!(answer.detail("limit"), Some("2"));
    assert!(message(&answer).contains("retention"), "{}", answer.describe());
    assert_eq!(scope.found(json!({})), ["b", "a"]);
    scope.tell("b", json!({"timestamp": "2026-03-09T00:00:00Z", "digest": "replaced"}));
    let old =
        json!({"events_days": 3, "audit_days": 0, "snapshots_days": 0, "as_of_utc": "2026-03-10T00:00:00Z"});
    assert_eq!(scope.retain(old).expect(200).json["events_deleted"], 1);
    scope.tell("c", json!({"timestamp": "2026-03-08T00:00:00Z"}));
    scope.write_event(scope.event("d", json!({}))).refused(429, "QUOTA_EXCEEDED");
    assert_eq!(scope.found(json!({})), ["b", "c"]);
}

#[test]
fn what_a_cap_refuses_costs_no_rate() {
    let server = server_with(
        "[quotas]\nmax_files = 1\nmax_events = 1\nuser_writes = {limit = 4, window = \"1h\"}\n\
         service_writes = {limit = 5, window = \"1h\"}\n",
    );
    let scope = Scope::fresh(&server);
    write(&scope).expect(200);
    scope.write_event(scope.event("a", json!({}))).expect(202);
    for _ in 0..4 {
        assert_exceeded(write(&scope), "user", "files", "1", "0");
        assert_exceeded(scope.write_event(scope.event("b", json!({}))), "user", "events", "1", "0");
    }
    scope.write_event(scope.event("a", json!({}))).expect(202);
    scope.write_event(scope.event("a", json!({}))).expect(202);
    assert_exceeded(write(&scope), "user", "writes", "4", "3600");
    let other = Scope::of(&server, &scope.tenant, &fresh_name("user"));
    write(&other).expect(200);
    assert_exceeded(write(&other), "service", "writes", "5", "3600");
}

#[test]
fn a_tenant_may_have_quotas_of_its_own() {
    let server = server_with(
        r#"
        [quotas]
        user_writes = {limit = 2, window = "1h"}
        [quotas.tenants."generous"]
        user_writes = {limit = 4, window = "30m"}
        [quotas.tenants."strict"]
        max_files = 1
        "#,
    );
    let in_tenant = |tenant: &str| Scope::of(&server, tenant, &fresh_name("user"));

    let generous = in_tenant("generous");
    for _ in 0..4 {
        write(&generous).expect(200);
    }
    assert_exceeded(write(&generous), "user", "writes", "4", "1800");
    let usual = in_tenant(&fresh_name("tenant"));
    for _ in 0..2 {
        write(&usual).expect(200);
    }
    assert_exceeded(write(&usual), "user", "writes", "2", "3600");
    let strict = in_tenant("strict");
    write(&strict).expect(200);
    assert_eq!(write(&strict).refused(429, "QUOTA_EXCEEDED").detail("resource"), Some("files"));
}

#[test]
fn only_the_tenant_that_has_quotas_is_limited() {
    let server = server_with("[quotas.tenants.\"limited\"]\nuser_reads = {limit = 1, window = \"1h\"}\n");
    let limited = Scope::of(&server, "limited", &fresh_name("user"));
    limited.list("").expect(200);
    assert_exceeded(limited.list(""), "user", "reads", "1", "3600");
    let free = Scope::fresh(&server);
    for _ in 0..10 {
        free.list("").expect(200);
    }
}
