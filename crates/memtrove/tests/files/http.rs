//! The rules of every endpoint: JSON, media types, error envelopes, request ids, the order of checks.

use crate::support::*;

#[test]
fn a_provider_that_is_not_built_in_is_named_on_every_route_of_a_scope() {
    let server = server_with("[files]\nprovider = \"azure\"");
    let scope = Scope::fresh(&server);
    scope.get("a.md").refused(501, "AZURE_PROVIDER_NOT_ENABLED");
    scope.put("a.md", "*", note("a")).refused(501, "AZURE_PROVIDER_NOT_ENABLED");
    scope.client.post(&scope.at("/events:search"), json!({})).refused(501, "AZURE_PROVIDER_NOT_ENABLED");
    server.anonymous().get("/").expect(200);
}
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const MIB: usize = 1024 * 1024;

/// The endpoints that take a JSON body, with one that would do.
fn endpoints_with_a_body(scope: &Scope) -> Vec<(&'static str, String, Value)> {
    let event = json!({
        "event_id": fresh_id(), "tenant_id": scope.tenant, "user_id": scope.user, "digest": "something happened",
    });
    vec![
        ("PUT", scope.file("a.md"), json!({"document": note("x")})),
        ("PATCH", scope.file("a.md"), json!({"ops": [{"op": "add", "path": "/content/n", "value": 1}]})),
        ("POST", scope.at("/context:assemble"), json!({"files": [{"path": "a.md"}]})),
        ("POST", scope.at("/events"), json!({"event": event})),
        (
            "POST",
            scope.at("/retention:apply"),
            json!({"events_days": 1, "audit_days": 1, "snapshots_days": 1}),
        ),
    ]
}

/// Sends bytes that claim to be this, to every endpoint that takes a body.
fn to_all(bytes: &[u8], content_type: Option<&'static str>, judge: impl Fn(Answer)) {
    let scope = Scope::fresh(&SERVER);
    let client = scope.client.with_header("if-match", "*");
    for (method, path, _) in endpoints_with_a_body(&scope) {
        judge(client.send(method, &path, Body::Raw { content_type, bytes: bytes.to_vec() }));
    }
}

/// JSON text that is nested so deeply, counted over the whole body of a PUT.
fn put_nested(levels: usize) -> String {
    let inner = levels - 3;
    format!(
        r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{"v":{}{}}}}}}}"#,
        "[".repeat(inner),
        "]".repeat(inner)
    )
}

// ---- status

#[test]
fn the_status_needs_no_credentials() {
    let answer = SERVER.anonymous().get("/").expect(200);

    assert_eq!(answer.json["status"], "ok");
    assert!(!answer.text_of("service").is_empty());
    assert!(answer.header("content-type").starts_with("application/json"));
    SERVER.anonymous().with_header("authorization", "Basic eHg6eHg=").get("/").expect(200);
}

// ---- JSON

#[test]
fn what_is_not_json_is_refused() {
    for bytes in [
        b"{".as_slice(),
        b"nonsense",
        b"{\"document\":}",
        b"{\"document\":{}}}",
        b"{\"document\":{}} x",
        b"{'document':1}",
        b"{\"a\":1,}",
        b"[1,]",
        b"{\"a\":01}",
        b"{\"a\":1.}",
        b"{\"a\":.5}",
        b"{\"a\":+1}",
        b"{\"a\":NaN}",
        b"{\"a\":Infinity}",
        b"{\"a\":\"line\nbreak\"}",
        b"{\"a\":\"\\x41\"}",
        b"{\"a\":\"\\u12\"}",
        b"{\"a\":tru}",
        b"// comment\n{}",
        b"\"open",
        b"\x00",
    ] {
        to_all(bytes, Some("application/json"), |answer| {
            answer.refused(400, "INVALID_JSON");
        });
    }
}

#[test]
fn a_body_that_is_not_utf_8_is_refused() {
    for bytes in [
        b"{\"a\":\"\xff\xfe\"}".as_slice(),
        b"{\"a\":\"\xc3\"}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"\xff\xfe{\x00}\x00",
    ] {
        to_all(bytes, Some("application/json"), |answer| {
            answer.refused(400, "INVALID_JSON");
        });
    }
}

#[test]
fn a_lone_surrogate_is_refused_wherever_it_stands() {
    let scope = Scope::fresh(&SERVER);
    for lone in [r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83d x", r"\ud83d\u0041", r"\uDBFF"] {
        for document in [
            format!(r#"{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{"text":"{lone}"}}}}"#),
            format!(r#"{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{"{lone}":1}}}}"#),
            format!(r#"{{"doc_id":"{lone}","schema_id":"s","schema_version":"1","content":{{}}}}"#),
        ] {
            let body = format!(r#"{{"document":{document}}}"#);
            scope.put_body("a.md", "*", Body::json_text(body)).refused(400, "INVALID_JSON");
        }
        let body = format!(
            r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{}}}},"evidence":"{lone}"}}"#
        );
        scope.put_body("a.md", "*", Body::json_text(body)).refused(400, "INVALID_JSON");
    }
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn a_missing_body_is_refused() {
    to_all(b"", Some("application/json"), |answer| {
        answer.refused(400, "INVALID_JSON");
    });
    to_all(b"  \n", Some("application/json"), |answer| {
        answer.refused(400, "INVALID_JSON");
    });
    let scope = Scope::fresh(&SERVER);
    for (method, path, _) in endpoints_with_a_body(&scope) {
        scope
            .client
            .with_header("if-match", "*")
            .send(method, &path, Body::None)
            .refused(400, "INVALID_JSON");
    }
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    for text in ["[]", "[{}]", "\"text\"", "7", "true", "null"] {
        to_all(text.as_bytes(), Some("application/json"), |answer| {
            let answer = answer.expect(400);
            assert_ne!(answer.json["error"]["code"], "INVALID_JSON", "{text}: {}", answer.describe());
        });
    }
}

#[test]
fn a_hundred_and_twenty_eight_levels_are_accepted_and_one_more_is_not() {
    let scope = Scope::fresh(&SERVER);

    let stored = scope.put_body("a.md", "*", Body::json_text(put_nested(128))).stored();
    assert!(stored.text.contains(&"[".repeat(125)), "{}", stored.text);
    assert_eq!(scope.read("a.md"), stored);
    scope.put_body("b.md", "*", Body::json_text(put_nested(129))).refused(400, "INVALID_JSON");
    scope.get("b.md").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn no_depth_brings_the_server_down() {
    let scope = Scope::fresh(&SERVER);
    for levels in [1_000, 100_000, 1_000_000] {
        scope.put_body("a.md", "*", Body::json_text(put_nested(levels))).refused(400, "INVALID_JSON");
        let open = Body::json_text("[".repeat(levels));
        scope.put_body("a.md", "*", open).refused(400, "INVALID_JSON");
        let objects = Body::json_text(r#"{"a":"#.repeat(levels));
        scope.patch_body("a.md", "*", objects).refused(400, "INVALID_JSON");
    }
    assert_eq!(scope.paths(""), [""; 0]);
}

#[test]
fn unknown_members_are_ignored_and_null_is_absence() {
    let scope = Scope::fresh(&SERVER);
    let body = json!({
        "document": note("a"), "reason": null, "evidence": null, "unknown": {"any": 1}, "Reason": 7, "ops": "x",
    });

    let created = scope.put_body("a.md", "*", Body::Json(body)).stored();

    let body = json!({
        "ops": null, "edits": [{"old_text": "a", "new_text": "b"}], "reason": null, "evidence": null, "document": 7,
    });
    assert_eq!(scope.patch("a.md", &created.etag, body).stored().content(), json!({"text": "b"}));
}

#[test]
fn member_names_are_case_sensitive() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));

    scope
        .put_body("a.md", &before.etag, Body::Json(json!({"DOCUMENT": note("b")})))
        .refused(400, "INVALID_REQUEST");
    let edits = json!({"Edits": [{"old_text": "a", "new_text": "b"}]});
    scope.patch("a.md", &before.etag, edits).refused(400, "INVALID_PATCH");
    assert_eq!(scope.read("a.md"), before);
}

// ---- media types

#[test]
fn every_json_media_type_is_json() {
    let scope = Scope::fresh(&SERVER);
    for (n, content_type) in [
        None,
        Some("application/json"),
        Some("application/json; charset=utf-8"),
        Some("application/json;charset=UTF-8"),
        Some("APPLICATION/Json"),
        Some("application/merge-patch+json"),
        Some("application/json-patch+json"),
        Some("application/vnd.acme.v1+json; charset=utf-8"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{n}.md");
        let raw = |body: Value| Body::Raw { content_type, bytes: body.to_string().into_bytes() };
        let created = scope.put_body(&path, "*", raw(json!({"document": note("a")}))).stored();
        let edits = json!({"edits": [{"old_text": "a", "new_text": "b"}]});
        scope.patch_body(&path, &created.etag, raw(edits)).stored();
    }
}

#[test]
fn every_other_media_type_is_refused() {
    for content_type in [
        "text/plain",
        "text/json",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/octet-stream",
        "application/jsonx",
        "application/json-seq",
        "application/x-ndjson",
        "json",
        "nonsense",
    ] {
        to_all(b"{}", Some(content_type), |answer| {
            answer.refused(415, "UNSUPPORTED_MEDIA_TYPE");
        });
    }
}

// ---- size

#[test]
fn a_body_of_8_mib_is_read_and_one_byte_more_is_not() {
    let scope = Scope::fresh(&SERVER);
    let padded = |body: Value, bytes: usize| {
        let text = body.to_string();
        Body::json_text(format!("{text}{}", " ".repeat(bytes - text.len())))
    };
    let put = json!({"document": note("a")});

    let created = scope.put_body("a.md", "*", padded(put.clone(), 8 * MIB)).stored();
    scope.put_body("b.md", "*", padded(put, 8 * MIB + 1)).refused(413, "PAYLOAD_TOO_LARGE");
    let patch = json!({"edits": [{"old_text": "a", "new_text": "b"}]});
    scope.patch_body("a.md", &created.etag, padded(patch, 8 * MIB + 1)).refused(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(scope.read("a.md"), created);
    scope.get("b.md").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn a_large_body_of_unknown_length_is_refused_too() {
    let scope = Scope::fresh(&SERVER);
    let mut chunks = vec![json!({"document": note("a")}).to_string().into_bytes()];
    chunks.extend(std::iter::repeat_n(vec![b' '; MIB], 9));

    // The server may answer while the client still sends; a broken pipe is then as good as the answer.
    let body = Body::Chunked { content_type: "application/json", chunks };
    let sent = scope.client.with_header("if-match", "*").try_send("PUT", &scope.file("a.md"), body);
    if let Ok(answer) = sent {
        answer.refused(413, "PAYLOAD_TOO_LARGE");
    }
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
}

// ---- routes and methods

#[test]
fn an_unknown_route_of_a_scope_is_answered_in_the_envelope() {
    let scope = Scope::fresh(&SERVER);
    let tenant = format!("/v1/tenants/{}", scope.tenant);
    for path in [
        scope.at(""),
        scope.at("/"),
        scope.at("/nothing"),
        scope.at("/nothing/at/all"),
        scope.at("/files:nothing"),
        scope.at("/file/a.md"),
        scope.at("/memory/a"),
        scope.at("/events/a/b"),
        format!("{tenant}/users"),
        format!("{tenant}/files/a.md"),
        tenant,
        "/v1/tenants".to_owned(),
    ] {
        for method in ["GET", "PUT", "POST"] {
            scope.client.send(method, &path, Body::None).refused(404, "ROUTE_NOT_FOUND");
        }
    }
}

#[test]
fn a_wrong_method_is_answered_in_the_envelope_with_the_right_ones() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    for (method, path, allowed) in [
        ("DELETE", "/files/a.md", ["GET", "PUT", "PATCH"].as_slice()),
        ("POST", "/files/a.md", &["GET", "PUT", "PATCH"]),
        ("DELETE", "/files/x/y/z.md", &["GET", "PUT", "PATCH"]),
        ("POST", "/files:list", &["GET"]),
        ("PUT", "/files:list", &["GET"]),
        ("DELETE", "/files:list", &["GET"]),
        ("GET", "/files:delete", &["POST"]),
        ("DELETE", "/files:delete", &["POST"]),
        ("PUT", "/files:move", &["POST"]),
        ("GET", "/context:assemble", &["POST"]),
        ("GET", "/events", &["POST"]),
        ("DELETE", "/events", &["POST"]),
        ("GET", "/events:search", &["POST"]),
        ("GET", "/retention:apply", &["POST"]),
        ("GET", "/memory", &["DELETE"]),
        ("POST", "/memory", &["DELETE"]),
        ("POST", "/audit", &["GET"]),
        ("GET", "/audit:reconstruct", &["POST"]),
    ] {
        let answer =
            scope.client.send(method, &scope.at(path), Body::None).refused(405, "METHOD_NOT_ALLOWED");
        let allow: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
        for method in allowed {
            assert!(allow.contains(method), "{allow:?}: {}", answer.describe());
        }
        assert!(!allow.contains(&method), "{allow:?}: {}", answer.describe());
    }
    scope.get("a.md").stored();
}

#[test]
fn every_kind_of_failure_has_the_same_envelope() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({"text": "a a"}));
    let put = |if_match: &str, body: &str| scope.put_body("a.md", if_match, Body::json_text(body));
    let patch = |body: Value| scope.patch("a.md", &stored.etag, body);

    put("*", "{").refused(400, "INVALID_JSON");
    put("*", "{}").refused(400, "INVALID_REQUEST");
    scope.raw("GET", &scope.file("a/../b"), &[], "").refused(400, "INVALID_PATH");
    scope.list("limit=0").refused(400, "INVALID_LIMIT");
    SERVER.anonymous().get(&scope.file("a.md")).refused(401, "UNAUTHENTICATED");
    SERVER.someone("alice").get(&scope.file("a.md")).refused(403, "TENANT_FORBIDDEN");
    scope.get("none.md").refused(404, "DOCUMENT_NOT_FOUND");
    scope.client.get(&scope.at("/nothing")).refused(404, "ROUTE_NOT_FOUND");
    scope.client.delete(&scope.file("a.md")).refused(405, "METHOD_NOT_ALLOWED");
    scope.put("a.md", "*", note("b")).refused(412, "ETAG_MISMATCH");
    put("*", &" ".repeat(8 * MIB + 1)).refused(413, "PAYLOAD_TOO_LARGE");
    let plain = Body::Raw { content_type: Some("text/plain"), bytes: b"{}".to_vec() };
    scope.put_body("a.md", "*", plain).refused(415, "UNSUPPORTED_MEDIA_TYPE");
    patch(json!({"edits": [{"old_text": "a", "new_text": "b"}]})).refused(422, "PATCH_MATCH_AMBIGUOUS");
    patch(json!({"ops": [{"op": "remove", "path": "/content"}]})).refused(422, "INVALID_DOCUMENT");
    assert_eq!(scope.read("a.md"), stored);
}

#[test]
fn a_message_never_repeats_what_is_stored() {
    let scope = Scope::fresh(&SERVER);
    let secret = fresh_name("secret");
    let before =
        scope.create("a.md", json!({"text": format!("{secret} {secret}"), "list": [secret], "n": 1}));
    let patch = |body: Value| scope.patch("a.md", &before.etag, body).expect(422);
    let test = |path: &str| json!({"ops": [{"op": "test", "path": path, "value": "other"}]});

    for answer in [
        patch(json!({"edits": [{"old_text": "x", "new_text": "y"}]})),
        patch(json!({"edits": [{"old_text": " ", "new_text": "y", "occurrence": 2}]})),
        patch(test("/content/text")),
        patch(test("/content/list")),
        patch(test("/content/list/0/deeper")),
        patch(json!({"ops": [{"op": "copy", "from": "/content/n", "path": "/content"}]})),
        patch(json!({"ops": [{"op": "move", "from": "/content/text", "path": "/created_at"}]})),
        scope.put("a.md", "*", note("new")).expect(412),
    ] {
        assert!(!answer.text.contains(&secret), "{}", answer.describe());
    }
}

// ---- request ids

#[test]
fn a_proper_request_id_is_adopted() {
    let longest = "x".repeat(128);
    for id in ["a", "abc.DEF_1-2", "trace:span:1", ":", "urn:uuid:0b", longest.as_str()] {
        let scope = Scope::fresh(&SERVER).with_header("x-request-id", id);
        let created = scope.put("a.md", "*", note("a")).expect(200);
        assert_eq!(created.header("x-request-id"), id);
        for answer in [
            scope.get("none.md").refused(404, "DOCUMENT_NOT_FOUND"),
            scope.put("a.md", "*", note("a")).refused(412, "ETAG_MISMATCH"),
            scope.client.get(&scope.at("/nothing")).refused(404, "ROUTE_NOT_FOUND"),
            scope.client.delete(&scope.file("a.md")).refused(405, "METHOD_NOT_ALLOWED"),
            scope.put_body("a.md", "*", Body::json_text("{")).refused(400, "INVALID_JSON"),
            SERVER
                .anonymous()
                .with_header("x-request-id", id)
                .get(&scope.file("a.md"))
                .refused(401, "UNAUTHENTICATED"),
        ] {
            assert_eq!(answer.json["error"]["request_id"], id, "{}", answer.describe());
        }
        assert_eq!(scope.audit()[0]["request_id"], id);
    }
}

#[test]
fn a_missing_or_improper_request_id_is_replaced() {
    let scope = Scope::fresh(&SERVER);
    let too_long = "x".repeat(129);
    let mut seen = Vec::new();
    for id in [None, Some(""), Some("has space"), Some("semi;colon"), Some("a/b"), Some(too_long.as_str())] {
        let asking = match id {
            Some(id) => scope.with_header("x-request-id", id),
            None => scope.clone(),
        };
        let answer = asking.get("none.md").refused(404, "DOCUMENT_NOT_FOUND");
        let given = answer.json["error"]["request_id"].as_str().unwrap().to_owned();
        assert!(
            (1..=128).contains(&given.len())
                && given.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b)),
            "{id:?} was answered with {given:?}"
        );
        assert!(!seen.contains(&given), "{given} twice");
        seen.push(given);
    }
}

// ---- the order of checks

#[test]
fn who_comes_before_what() {
    let scope = Scope::fresh(&SERVER);
    let nobody = SERVER.anonymous();
    let stranger = SERVER.someone("stranger");
    for (client, status, code) in [(&nobody, 401, "UNAUTHENTICATED"), (&stranger, 403, "TENANT_FORBIDDEN")] {
        client.get(&scope.file("a%2F%2Fb")).refused(status, code);
        client.send("PUT", &scope.file("a.md"), Body::json_text("{")).refused(status, code);
        let plain = Body::Raw { content_type: Some("text/plain"), bytes: b"{}".to_vec() };
        client.send("PATCH", &scope.file("a.md"), plain).refused(status, code);
        client.get(&scope.at("/files:list?limit=0")).refused(status, code);
    }
}

#[test]
fn the_path_comes_before_the_body() {
    let scope = Scope::fresh(&SERVER);
    let plain = || Body::Raw { content_type: Some("text/plain"), bytes: b"{}".to_vec() };

    scope.put_body("a%2F%2Fb", "*", Body::json_text("{")).refused(400, "INVALID_PATH");
    scope.put_body("a%2F%2Fb", "*", plain()).refused(400, "INVALID_PATH");
    scope.patch_body("a%2F%2Fb", "*", Body::None).refused(400, "INVALID_PATH");
    let wrong = Scope::of(&SERVER, "a%2Fb", &scope.user);
    wrong.put_body("a.md", "*", Body::json_text("{")).refused(400, "INVALID_PATH_SEGMENT");
}

#[test]
fn the_body_comes_before_the_headers() {
    let scope = Scope::fresh(&SERVER);

    scope.client.send("PUT", &scope.file("a.md"), Body::json_text("{")).refused(400, "INVALID_JSON");
    scope.client.send("PATCH", &scope.file("a.md"), Body::json_text("{")).refused(400, "INVALID_JSON");
}

#[test]
fn the_headers_come_before_the_limits_and_the_limits_before_the_file() {
    let scope = Scope::fresh(&SERVER);
    let too_many = json!({"ops": vec![json!({"op": "remove", "path": "/content/n"}); 101]});

    scope.client.patch(&scope.file("missing.md"), too_many.clone()).refused(400, "MISSING_IF_MATCH");
    scope.patch("missing.md", "*", too_many).refused(422, "PATCH_TOO_LARGE");
}

#[test]
fn the_file_comes_before_the_precondition_and_the_precondition_before_the_patch() {
    let scope = Scope::fresh(&SERVER);
    let fails = [
        json!({"edits": [{"old_text": "nope", "new_text": "x"}]}),
        json!({"edits": [{"old_text": "a", "new_text": "x", "occurrence": 9}]}),
        json!({"ops": [{"op": "test", "path": "/content/text", "value": "other"}]}),
        json!({"ops": [{"op": "remove", "path": "/content/none"}]}),
        json!({"ops": [{"op": "remove", "path": "/content"}]}),
    ];
    for body in &fails {
        scope.patch("a.md", "\"stale\"", body.clone()).refused(404, "DOCUMENT_NOT_FOUND");
    }
    let before = scope.create("a.md", json!({"text": "a a"}));
    for body in fails {
        let refused = scope.patch("a.md", "\"stale\"", body.clone()).refused(412, "ETAG_MISMATCH");
        assert_eq!(refused.detail("latest_etag"), Some(before.etag.as_str()));
        scope.patch("a.md", &before.etag, body).expect(422);
    }
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn nothing_is_observable_of_what_was_refused() {
    let scope = Scope::fresh(&SERVER);
    scope.put("a.md", "\"stale\"", note("a")).expect(412);
    scope.put("a.md", "*", json!({"content": {}})).expect(422);
    scope.patch("a.md", "*", json!({"edits": [{"old_text": "a", "new_text": "b"}]})).expect(404);

    assert_eq!(scope.paths(""), [""; 0]);
    assert_eq!(scope.audit(), [json!(null); 0]);
    scope.create("a.md", json!({}));
    assert_eq!(scope.audit().len(), 1);
}
