//! What operators see: the status, the metrics, the log.

use crate::support::*;

#[test]
fn the_root_tells_the_service_and_its_status_to_anybody() {
    let server = local_server();

    let answer = server.anonymous().get("/").expect(200);

    assert_eq!(answer.json["service"].as_str().unwrap().to_lowercase(), "memtrove");
    assert_eq!(answer.json["status"], "ok");
    assert!(answer.header("content-type").starts_with("application/json"), "{:?}", answer.headers);
}

/// The sum of all samples of this name whose labels have all of these parts; `None` if there is none.
fn sample(metrics: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let samples = metrics.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (of, with) = series.split_once('{').unwrap_or((series, ""));
        (of == name && labels.iter().all(|label| with.contains(label))).then(|| value.parse::<f64>().unwrap())
    });
    samples.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

#[test]
fn the_metrics_count_what_happens_and_name_nobody() {
    let server =
        server_with("[quotas.tenants.\"small-tenant\"]\nuser_reads = {limit = 1, window = \"1h\"}\n");
    let scope = Scope::fresh(&server);
    let created =
        scope.with_header("idempotency-key", "key").put("secret-path.md", "*", note("n0;")).expect(200);
    scope.with_header("idempotency-key", "key").put("secret-path.md", "*", note("n0;")).expect(200);
    scope.with_header("idempotency-key", "key").put("other.md", "*", note("n0;")).expect(409);
    scope.put("secret-path.md", "*", note("x")).expect(412);
    let etag = created.header("etag");
    scope.patch("secret-path.md", etag, json!({"edits": [{"old_text": "no", "new_text": ""}]})).expect(422);
    scope
        .patch("secret-path.md", etag, json!({"edits": [{"old_text": "n0;", "new_text": "n1;"}]}))
        .expect(200);
    scope.patch("missing.md", etag, json!({"edits": [{"old_text": "n0;", "new_text": "n1;"}]})).expect(404);
    scope.tell("secret-event", json!({"digest": "walrus"}));
    scope.tell("old-event", json!({"timestamp": "2001-01-01T00:00:00Z"}));
    assert_eq!(scope.found(json!({"query": "walrus"})).len(), 1);
    assert_eq!(scope.found(json!({"query": "penguin"})).len(), 0);
    let rules = json!({"events_days": 365, "audit_days": 0, "snapshots_days": 0, "as_of_utc": "2026-03-01T00:00:00Z"});
    assert_eq!(scope.retain(rules).expect(200).json["events_deleted"], 1);
    scope.forget().expect(200);
    let limited = Scope::of(&server, "small-tenant", &fresh_name("user"));
    limited.list("").expect(200);
    limited.list("").expect(429);

    let metrics = server.anonymous().get("/metrics").expect(200).text;

    let count = |name: &str, labels: &[&str]| sample(&metrics, &format!("memtrove_files_{name}"), labels);
    for (name, labels, expected) in [
        ("mutations_total", &["layer=\"files\"", "op=", "outcome=\"412\""][..], 1.0),
        ("mutations_total", &["layer=\"files\"", "outcome=\"422\""], 1.0),
        ("mutations_total", &["layer=\"files\"", "outcome=\"409\""], 1.0),
        ("mutations_total", &["layer=\"files\"", "outcome=\"other\""], 1.0),
        ("idempotency_total", &["outcome=\"replay\""], 1.0),
        ("idempotency_total", &["outcome=\"conflict\""], 1.0),
        ("event_search_duration_seconds_count", &[], 2.0),
        ("event_search_empty_total", &[], 1.0),
        ("quota_rejections_total", &["scope=\"user\""], 1.0),
        ("request_duration_seconds_count", &["route=", "method=\"PUT\"", "status=\"412\""], 1.0),
        ("request_duration_seconds_count", &["route=", "method=\"GET\"", "status=\"429\""], 1.0),
    ] {
        assert_eq!(count(name, labels), Some(expected), "{name} {labels:?} in\n{metrics}");
    }
    assert!(count("mutations_total", &["layer=\"files\"", "outcome=\"ok\""]) >= Some(2.0), "{metrics}");
    for cause in ["retention", "forget"] {
        let deleted = count("lifecycle_deleted_total", &["kind=", &format!("cause=\"{cause}\"")]);
        assert!(deleted >= Some(1.0), "{cause}: {deleted:?} in\n{metrics}");
    }
    for name in ["memtrove_files_event_search_results", "memtrove_files_index_lag_seconds"] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "no {name} in\n{metrics}");
    }
    for private in
        [scope.tenant.as_str(), scope.user.as_str(), "small-tenant", "secret-", "missing.md", "walrus"]
    {
        assert!(!metrics.contains(private), "{private} is in\n{metrics}");
    }
}

#[test]
fn every_request_leaves_one_line_in_the_log() {
    let server = server_with("[log]\nlevel = \"info,memtrove::access=debug\"\n");
    let scope = Scope::fresh(&server);
    let (first, second) = (fresh_name("request"), fresh_name("request"));
    let named = |id: &str| scope.with_header("x-request-id", id).with_header("x-service-id", "assistant-b");
    named(&first).put("dir/a.md", "*", note("a secret walrus")).expect(200);
    named(&second).put("dir/a.md", "*", note("a secret walrus")).expect(412);

    for (request, status) in [(&first, "200"), (&second, "412")] {
        let line = server.wait_for_log(&[request, status]);
        for part in [scope.tenant.as_str(), &scope.user, "dir/a.md", "assistant-b"] {
            assert!(line.contains(part), "no {part} in {line}");
        }
    }
    assert!(!server.log().contains("walrus"), "content is in the log");
}
