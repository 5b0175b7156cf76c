//! The service around the endpoints: health, metrics, request ids, error envelopes, bodies.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

// ---- health and metrics

#[test]
fn health_needs_no_credentials() {
    assert_eq!(SERVER.anonymous().get("/v1/health").expect(200).json, json!({"status": "ok"}));
    SERVER.anonymous().get("/health/live").expect(200);
    SERVER.anonymous().get("/health/ready").expect(200);
}

#[test]
fn health_does_not_care_about_bad_credentials() {
    let odd = SERVER.anonymous().with_header("authorization", "Basic eHg6eHg=");

    odd.get("/v1/health").expect(200);
}

#[test]
fn metrics_need_no_credentials_and_have_bounded_labels() {
    let alice = SERVER.someone("alice").with_key(&fresh_name("agent"));
    let id = start(&alice, "Chat");
    say(&alice, &id, "x");
    entries(&alice, &id, "");
    alice.get(&format!("/v1/conversations/{}", fresh_name("odd"))).expect(404);
    alice.get(&format!("/{}", fresh_name("route"))).expect(404);

    let metrics = SERVER.anonymous().get("/metrics").expect(200).text;

    for name in [
        "http_server_requests_seconds",
        "memory_store_operation_seconds",
        "db_pool_active",
        "db_pool_available",
    ] {
        assert!(metrics.contains(name), "no {name} in\n{metrics}");
    }
    assert!(metrics.contains("/v1/conversations/{"), "uri is a template:\n{metrics}");
    assert!(!metrics.contains(&id), "an id is a label");
    assert!(!metrics.contains(alice.user()), "a user is a label");
    assert!(!metrics.contains("odd-") && !metrics.contains("route-"), "a raw path is a label");
}

// ---- request ids

#[test]
fn a_proper_request_id_is_echoed() {
    let longest = "x".repeat(128);
    for id in ["a", "abc.DEF_1-2", longest.as_str()] {
        let client = SERVER.someone("alice").with_header("x-request-id", id);
        for answer in [
            client.get("/v1/conversations"),
            client.get("/v1/conversations/nonsense"),
            client.get("/no/such/route"),
            client.send("PUT", "/v1/conversations", Body::None),
            client.send("POST", "/v1/conversations", Body::json_text("{")),
            SERVER.anonymous().with_header("x-request-id", id).get("/v1/conversations"),
            SERVER.anonymous().with_header("x-request-id", id).get("/v1/health"),
        ] {
            assert_eq!(answer.header("x-request-id"), id, "{}", answer.describe());
        }
    }
}

#[test]
fn a_missing_or_improper_request_id_is_replaced() {
    let alice = SERVER.someone("alice");
    let too_long = "x".repeat(129);
    let mut seen = Vec::new();
    for id in [None, Some(""), Some("has space"), Some("semi;colon"), Some("a/b"), Some(too_long.as_str())] {
        let client = match id {
            Some(id) => alice.with_header("x-request-id", id),
            None => alice.clone(),
        };
        let given = client.get("/v1/conversations").expect(200).header("x-request-id").to_owned();
        assert!(
            (1..=128).contains(&given.len())
                && given.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)),
            "{id:?} was answered with {given:?}"
        );
        assert!(!seen.contains(&given), "{given} twice");
        seen.push(given);
    }
}

// ---- envelopes

#[test]
fn an_unknown_route_is_not_found_in_the_envelope() {
    let alice = SERVER.someone("alice");
    for path in ["/v1", "/v1/", "/v2/conversations", "/v1/conversation", "/v1/conversations/a/b/c/d/e"] {
        alice.get(path).expect_error(404, "not_found");
    }
}

#[test]
fn a_wrong_method_is_answered_in_the_envelope() {
    let alice = SERVER.someone("alice");
    for (method, path) in [
        ("PUT", "/v1/conversations".to_owned()),
        ("DELETE", "/v1/conversations".to_owned()),
        ("POST", format!("/v1/conversations/{}", fresh_id())),
        ("GET", "/v1/conversations/search".to_owned()),
        ("PATCH", format!("/v1/conversations/{}/entries", fresh_id())),
        ("GET", format!("/v1/conversations/{}/entries/sync", fresh_id())),
        ("DELETE", "/v1/conversations/unindexed".to_owned()),
    ] {
        let answer = alice.send(method, &path, Body::None).expect(405);
        assert!(answer.json["error"].is_string() && answer.json["code"].is_string(), "{}", answer.describe());
        assert!(
            !answer.header("allow").is_empty(),
            "405 must name the allowed methods: {:?}",
            answer.headers
        );
    }
}

#[test]
fn literal_segments_win_over_ids() {
    let alice = SERVER.someone("alice");

    alice.get("/v1/conversations/unindexed").expect_forbidden();
    alice.post("/v1/conversations/index", json!([])).expect(403);
    alice.post("/v1/conversations/search", json!({"query": "x"})).expect_page();
}

#[test]
fn every_answer_is_json_in_utf_8() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Zürich");
    for answer in [
        alice.get(&format!("/v1/conversations/{id}")).expect(200),
        alice.get("/v1/conversations").expect(200),
        alice.get("/v1/conversations/nonsense").expect(404),
        alice.get("/no/such/route").expect(404),
        alice.send("PUT", "/v1/conversations", Body::None).expect(405),
        SERVER.anonymous().get("/v1/conversations").expect(401),
        SERVER.anonymous().get("/v1/health").expect(200),
        alice.send("POST", "/v1/conversations", Body::json_text("{")).expect(400),
    ] {
        let content_type = answer.header("content-type").to_ascii_lowercase().replace(' ', "");
        assert_eq!(content_type, "application/json;charset=utf-8", "{}", answer.describe());
    }
}

#[test]
fn an_answer_without_content_has_no_body() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");

    let answer = alice.delete(&format!("/v1/conversations/{id}")).expect(204);

    assert_eq!(answer.text, "");
    assert_eq!(answer.header("content-type"), "");
}

// ---- bodies

/// Every endpoint that requires a JSON body.
fn endpoints_with_a_body(alice: &Client) -> Vec<(&'static str, String)> {
    let id = start(alice, "Chat");
    vec![
        ("POST", format!("/v1/conversations/{id}/entries")),
        ("POST", format!("/v1/conversations/{id}/entries/sync")),
        ("PATCH", format!("/v1/conversations/{id}")),
        ("POST", format!("/v1/conversations/{id}/memberships")),
        ("POST", "/v1/ownership-transfers".to_owned()),
        ("POST", "/v1/conversations/search".to_owned()),
    ]
}

#[test]
fn malformed_json_is_a_bad_request() {
    let alice = SERVER.someone("alice").with_key("agent-a");
    let mut endpoints = endpoints_with_a_body(&alice);
    endpoints.push(("POST", "/v1/conversations".to_owned()));
    for (method, path) in endpoints {
        for text in ["{", "{\"title\":}", "nonsense", "{\"a\":1}}", "{\"a\":1} x", "{'a':1}", "[1,]"] {
            let answer = alice.send(method, &path, Body::json_text(text)).expect(400);
            assert!(
                answer.json["error"].is_string() && answer.json["code"].is_string(),
                "{text:?}: {}",
                answer.describe()
            );
        }
    }
}

#[test]
fn a_body_that_is_not_utf_8_is_a_bad_request() {
    let alice = SERVER.someone("alice");
    let body =
        Body::Raw { content_type: Some("application/json"), bytes: b"{\"title\":\"\xff\xfe\"}".to_vec() };

    alice.send("POST", "/v1/conversations", body).expect(400);
}

#[test]
fn a_lone_surrogate_is_a_bad_request_or_survives() {
    let agent = SERVER.someone("alice").with_key("agent-a");
    let id = start(&agent, "Chat");
    let text = r#"{"channel":"memory","contentType":"T","content":["\ud83d"]}"#;

    let answer = agent.send("POST", &format!("/v1/conversations/{id}/entries"), Body::json_text(text));

    assert!(matches!(answer.status, 201 | 400), "{}", answer.describe());
    agent.get(&format!("/v1/conversations/{id}/entries?channel=memory")).expect(200);
}

#[test]
fn a_body_of_the_wrong_kind_is_a_bad_request() {
    let alice = SERVER.someone("alice").with_key("agent-a");
    let mut endpoints = endpoints_with_a_body(&alice);
    endpoints.push(("POST", "/v1/conversations".to_owned()));
    for (method, path) in endpoints {
        for text in ["[]", "\"text\"", "7", "null", "true"] {
            let answer = alice.send(method, &path, Body::json_text(text));
            assert_eq!(answer.status, 400, "{text}: {}", answer.describe());
        }
    }
}

#[test]
fn a_missing_body_is_a_bad_request() {
    let alice = SERVER.someone("alice").with_key("agent-a");
    for (method, path) in endpoints_with_a_body(&alice) {
        alice.send(method, &path, Body::None).expect(400);
        alice.send(method, &path, Body::json_text("")).expect(400);
    }
}

#[test]
fn a_body_of_another_media_type_is_refused() {
    let alice = SERVER.someone("alice").with_key("agent-a");
    let mut endpoints = endpoints_with_a_body(&alice);
    endpoints.push(("POST", "/v1/conversations".to_owned()));
    for (method, path) in endpoints {
        for content_type in ["text/plain", "application/xml", "application/x-www-form-urlencoded", "nonsense"]
        {
            let body = Body::Raw { content_type: Some(content_type), bytes: b"{}".to_vec() };
            alice.send(method, &path, body).expect_error(415, "unsupported_media_type");
        }
    }
}

#[test]
fn json_with_parameters_is_json() {
    let alice = SERVER.someone("alice");
    for content_type in
        ["application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"]
    {
        let body = Body::Raw { content_type: Some(content_type), bytes: b"{\"title\":\"x\"}".to_vec() };
        alice.send("POST", "/v1/conversations", body).expect(201);
    }
}

#[test]
fn an_optional_body_may_be_missing_or_empty() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "one");
    let path = format!("/v1/conversations/{id}/entries/{entry}/fork");

    alice.send("POST", &path, Body::None).expect(201);
    alice.send("POST", &path, Body::json_text("")).expect(201);
    alice.send("POST", &path, Body::json_text("{}")).expect(201);
    alice.send("POST", &path, Body::json_text("{")).expect(400);
    alice.send("POST", &path, Body::json_text("[]")).expect(400);
}

#[test]
fn internals_never_leak() {
    let alice = SERVER.someone("alice").with_key("agent-a");
    let id = start(&alice, "Chat");
    for answer in [
        alice.send(
            "POST",
            &format!("/v1/conversations/{id}/entries"),
            Body::json_text("{\"content\": 1e999}"),
        ),
        alice.get(&format!("/v1/conversations/{id}/entries?after=';drop%20table%20entries;--")),
        alice.get("/v1/conversations?query=%27%22%3B--"),
        alice.post("/v1/conversations/search", json!({"query": "\" OR 1=1 --"})),
        alice.post("/v1/conversations", json!({"title": "x'; drop table conversations; --"})),
    ] {
        assert!(answer.status < 500, "{}", answer.describe());
        let text = answer.text.to_lowercase();
        for word in ["sqlite", "rusqlite", "panicked", ".rs:", "fts5"] {
            assert!(!text.contains(word), "leaks {word:?}: {}", answer.describe());
        }
    }
    alice.get(&format!("/v1/conversations/{id}")).expect(200);
}

#[test]
fn a_path_that_is_not_utf_8_is_not_found() {
    let alice = SERVER.someone("alice");
    for path in ["/v1/conversations/%FF", "/v1/conversations/%C3%28/entries", "/v1/ownership-transfers/%FF"] {
        let answer = alice.get(path);
        assert!(matches!(answer.status, 400 | 404), "{}", answer.describe());
        assert!(answer.json["code"].is_string(), "{}", answer.describe());
    }
}

// ---- web pages of other origins

#[test]
fn a_preflight_is_answered_before_authentication_when_enabled() {
    let server = server_with("[cors]\nenabled = true\norigins = [\"https://app.example.org\"]\n");
    let preflight = |origin: &str| {
        server
            .anonymous()
            .with_header("origin", origin)
            .with_header("access-control-request-method", "POST")
            .with_header("access-control-request-headers", "authorization, content-type, x-api-key")
            .send("OPTIONS", "/v1/conversations", Body::None)
    };

    let allowed = preflight("https://app.example.org");
    assert!(matches!(allowed.status, 200 | 204), "{}", allowed.describe());
    assert_eq!(allowed.header("access-control-allow-origin"), "https://app.example.org");
    assert!(allowed.header("access-control-allow-headers").to_lowercase().contains("x-api-key"));
    assert_eq!(preflight("https://evil.example.org").header("access-control-allow-origin"), "");
    let page =
        server.someone("alice").with_header("origin", "https://app.example.org").get("/v1/conversations");
    assert_eq!(page.expect(200).header("access-control-allow-origin"), "https://app.example.org");
    let refused =
        server.anonymous().with_header("origin", "https://app.example.org").get("/v1/conversations");
    assert_eq!(refused.expect(401).header("access-control-allow-origin"), "https://app.example.org");
}

#[test]
fn by_default_no_other_origin_is_allowed() {
    let answer =
        SERVER.someone("alice").with_header("origin", "https://app.example.org").get("/v1/conversations");

    assert_eq!(answer.expect(200).header("access-control-allow-origin"), "");
}

#[test]
fn every_origin_with_credentials_stops_the_start() {
    let failed = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .toml("[cors]\nenabled = true\norigins = [\"*\"]\nallow_credentials = true\n")
        .try_start()
        .expect_err("* never goes together with credentials");

    assert!(failed.status.is_some_and(|status| !status.success()), "{}", failed.reason);
    assert!(failed.log.contains("credentials"), "{}", failed.log);
}

// ---- the process

#[test]
fn a_graceful_stop_ends_with_success_and_keeps_everything() {
    let mut server = local_server();
    let user = fresh_name("alice");
    let id = fresh_id();
    say(&server.as_user(&user), &id, "hello");

    let status = server.stop();

    assert!(status.success(), "{status}");
    server.restart();
    assert_eq!(transcript(&server.as_user(&user), &id), ["hello"]);
}

#[test]
fn local_mode_says_so_loudly() {
    let log = SERVER.log().to_lowercase();

    assert!(log.contains("local mode") || log.contains("local"), "{log}");
}

#[test]
fn local_mode_refuses_an_address_that_others_can_reach() {
    let failed = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .variable("MEMTROVE_SERVER__LISTEN", "0.0.0.0:0")
        .try_start()
        .expect_err("local mode must not listen for others");

    assert!(failed.status.is_some_and(|status| !status.success()), "{}", failed.reason);
    assert!(failed.log.contains("loopback") || failed.log.contains("127.0.0.1"), "{}", failed.log);
    assert!(!failed.log.contains("panicked"), "{}", failed.log);
}
