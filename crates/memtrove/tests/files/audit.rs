//! The audit trail: one record for every change, and every version again from the records alone.

use crate::support::*;
use aws_lc_rs::digest;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

/// A server that keeps no audit record longer than it is told.
static SERVER: LazyLock<TestServer> = LazyLock::new(|| server_with("[retention]\naudit_min_days = 0\n"));

/// The page of the trail that this query asks for.
#[track_caller]
fn page(scope: &Scope, query: &str) -> Vec<Value> {
    let answer = scope.as_admin().client.get(&scope.at(&format!("/audit?{query}"))).expect(200);
    answer.json["records"].as_array().unwrap_or_else(|| panic!("no records: {}", answer.describe())).clone()
}

#[track_caller]
fn sequences(records: &[Value]) -> Vec<u64> {
    records.iter().map(|record| record["sequence"].as_u64().expect("a sequence")).collect()
}

#[track_caller]
fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record[member].as_str().unwrap_or_else(|| panic!("no text {member} in {record}"))
}

/// Members sorted, nothing between them, every number as it is spelt.
fn canonical(json: &str) -> String {
    match json.as_bytes()[0] {
        b'{' => {
            let sorted: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap();
            let member =
                |(name, value): (String, &RawValue)| format!("{}:{}", json!(name), canonical(value.get()));
            format!("{{{}}}", sorted.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap();
            format!("[{}]", items.iter().map(|item| canonical(item.get())).collect::<Vec<_>>().join(","))
        }
        b'"' => json!(serde_json::from_str::<String>(json).unwrap()).to_string(),
        _ => json.to_owned(),
    }
}

fn sha256(json: &str) -> String {
    let digest = digest::digest(&digest::SHA256, canonical(json).as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An edit that turns the text `n` of a note into `n + 1`.
fn count_up(n: usize) -> Value {
    json!({"edits": [{"old_text": format!("n{n};"), "new_text": format!("n{};", n + 1)}]})
}

/// Requires that this change is reproduced letter by letter.
#[track_caller]
fn assert_reconstructs(scope: &Scope, path: &str, record: &Value, version: &Stored) {
    let change = text(record, "change_id");
    let answer = scope.reconstruct(path, change).expect(200);
    assert_eq!(reconstructed(&answer), (change.to_owned(), version.clone()), "{record}");
}

/// The change and the version that an answer to `audit:reconstruct` tells.
#[track_caller]
fn reconstructed(answer: &Answer) -> (String, Stored) {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Reconstructed {
        change_id: String,
        etag: String,
        document: Box<RawValue>,
    }
    let told: Reconstructed =
        serde_json::from_str(&answer.text).unwrap_or_else(|e| panic!("{e}: {}", answer.describe()));
    (told.change_id, Stored { etag: told.etag, text: told.document.get().to_owned() })
}

// ---- what a record says

#[test]
fn a_record_says_everything_about_a_change() {
    let scope = Scope::fresh(&SERVER);
    let caller = scope.with_header("x-service-id", "assistant-b").with_header("x-request-id", "request-1");
    let evidence = json!({"conversation_id": "c_123", "message_ids": ["m1"]});
    let document = envelope(json!({"text": "n0;", "number": 1.5, "list": [3, {"b": 1, "a": null}]}));
    let body = json!({"document": document, "reason": "manual_rewrite", "evidence": evidence});
    let created = caller.put_body("dir/a.md", "*", Body::Json(body)).stored();
    let replaced = scope.put("dir/a.md", &created.etag, note("n0;")).stored();
    let ops = json!([{"op": "add", "path": "/content/x", "value": {"z": 1, "a": [2]}},
                     {"op": "test", "path": "/content/x/z", "value": 1.0}]);
    let edits = json!([{"old_text": "n0;", "new_text": "n1;", "occurrence": 1}]);
    let patch = json!({"ops": ops, "edits": edits, "reason": "preference_update", "evidence": [1, null]});
    let patched =
        caller.with_header("idempotency-key", "key-of-mine").patch("dir/a.md", &replaced.etag, patch);
    let patched = patched.expect(200);

    let records = scope.audit();

    let [create, replace, patch] = records.as_slice() else { panic!("three changes, but {records:?}") };
    for record in &records {
        let change = text(record, "change_id").strip_prefix("chg_").expect("a change id").replace('-', "");
        assert!(change.len() == 32 && change.chars().all(|c| c.is_ascii_hexdigit()), "{record}");
        assert_eq!(&change[12..13], "7", "a UUID of version 7: {record}");
        assert_timestamp(&record["timestamp"]);
        assert_eq!(record["tenant_id"], scope.tenant);
        assert_eq!(record["user_id"], scope.user);
        assert_eq!(record["path"], "dir/a.md");
        assert_eq!(record["layer"], "files");
        let principal = text(record, "principal");
        assert!(
            principal.contains(AGENT) && !principal.contains("assistant-b"),
            "who really called: {record}"
        );
        for governed in
            ["requested_ops", "confidence", "profile_id", "profile_revision", "binding_id", "replay_id"]
        {
            assert!(record[governed].is_null(), "{governed} is of the governed layer: {record}");
        }
    }
    assert_eq!(records.iter().map(|r| text(r, "action")).collect::<Vec<_>>(), ["create", "replace", "patch"]);
    assert_eq!(
        records.iter().map(|r| text(r, "actor")).collect::<Vec<_>>(),
        ["assistant-b", AGENT, "assistant-b"]
    );
    assert_eq!(create["reason"], "manual_rewrite");
    assert_eq!(create["evidence"], evidence);
    assert_eq!(create["request_id"], "request-1");
    assert!(create["previous_etag"].is_null());
    assert_eq!(create["new_etag"], created.etag);
    assert_eq!(create["document"], created.document());
    assert!(create["idempotency_key_hash"].is_null());
    assert!(replace["reason"].is_null() && replace["evidence"].is_null(), "{replace}");
    assert_eq!(replace["previous_etag"], created.etag);
    assert_eq!(replace["new_etag"], replaced.etag);
    assert_eq!(replace["document"], replaced.document());
    assert!(!text(replace, "request_id").is_empty());
    assert_eq!(patch["reason"], "preference_update");
    assert_eq!(patch["evidence"], json!([1, null]));
    assert_eq!(patch["ops"], ops);
    assert_eq!(patch["edits"], edits);
    assert_eq!(patch["previous_etag"], replaced.etag);
    assert_eq!(patch["new_etag"], patched.json["etag"]);
    let hash = text(patch, "idempotency_key_hash");
    assert!(!hash.is_empty() && !hash.contains("key-of-mine"), "{patch}");
}

#[test]
fn the_hashes_of_a_record_can_be_computed_by_anybody() {
    let scope = Scope::fresh(&SERVER);
    let content = r#"{"text":"quote \" tab \t 茶 🦀 é","z":{"b":1.10,"a":[1E400,null,true]},"a":-0}"#;
    let body = format!(
        r#"{{"document":{{"schema_version":"1","doc_id":"d","more":7,"schema_id":"s","content":{content}}}}}"#
    );
    let created = scope.put_body("a.md", "*", Body::json_text(body)).stored();
    let ops = json!([{"value": {"d": 1, "c": [{"b": 2, "a": 1}]}, "path": "/content/é", "op": "add"}]);
    let edits = json!([{"old_text": "tab \t", "new_text": "no tab"}, {"new_text": "", "old_text": "no "}]);
    let patched = scope.patch("a.md", &created.etag, json!({"ops": ops, "edits": edits})).stored();
    let edited = scope
        .patch("a.md", &patched.etag, json!({"edits": [{"old_text": "quote", "new_text": "q"}]}))
        .stored();

    let records = scope.audit();

    for (record, version) in records.iter().zip([&created, &patched, &edited]) {
        assert_eq!(text(record, "document_sha256"), sha256(&version.text), "{record}");
    }
    assert_eq!(text(&records[0], "ops_hash"), sha256(&json!({"edits": [], "ops": []}).to_string()));
    assert_eq!(text(&records[1], "ops_hash"), sha256(&json!({"edits": edits, "ops": ops}).to_string()));
    let one_edit = json!([{"old_text": "quote", "new_text": "q"}]);
    assert_eq!(text(&records[2], "ops_hash"), sha256(&json!({"edits": one_edit, "ops": []}).to_string()));
}

#[test]
fn evidence_and_operations_are_kept_letter_by_letter() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", json!({}));
    let evidence = r#"{"z":1.10,"a":[1E400,null],"m":123456789012345678901234567890}"#;
    let op = r#"{"op":"add","path":"/content/x","value":{"z":1.0,"b":[-0.50],"a":1e2}}"#;
    let body = format!(r#"{{"ops":[{op}],"evidence":{evidence}}}"#);
    scope.patch_body("a.md", &created.etag, Body::json_text(body)).expect(200);

    let trail = scope.as_admin().client.get(&scope.at("/audit?limit=10")).expect(200).text;

    assert!(trail.contains(evidence), "{trail}");
    assert!(trail.contains(op), "{trail}");
}

#[test]
fn a_record_tells_the_time_and_the_actor_that_the_document_got() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", json!({"text": "n0;"}));
    let patched =
        scope.with_header("x-service-id", "other").patch("a.md", &created.etag, count_up(0)).stored();

    for (record, version) in scope.audit().iter().zip([created, patched]) {
        assert_eq!(record["timestamp"], version.document()["updated_at"]);
        assert_eq!(record["actor"], version.document()["updated_by"]);
    }
}

#[test]
fn what_fails_leaves_no_record() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", json!({"text": "n0;"}));
    let etag = created.etag.as_str();

    scope.put("a.md", "*", note("x")).refused(412, "ETAG_MISMATCH");
    scope.put("new.md", etag, note("x")).refused(412, "ETAG_MISMATCH");
    scope.put("a.md", etag, json!({"content": {}})).refused(422, "INVALID_DOCUMENT");
    scope.put("a.md", etag, note(&"x".repeat(256_001))).refused(422, "DOCUMENT_SIZE_EXCEEDED");
    scope.put_body("a.md", etag, Body::json_text("{")).refused(400, "INVALID_JSON");
    scope.put("a..md", "*", note("x")).refused(400, "INVALID_PATH");
    scope.patch("a.md", "\"other\"", count_up(0)).refused(412, "ETAG_MISMATCH");
    scope.patch("missing.md", etag, count_up(0)).refused(404, "DOCUMENT_NOT_FOUND");
    scope.patch("a.md", etag, count_up(7)).refused(422, "PATCH_MATCH_NOT_FOUND");
    scope.patch("a.md", etag, json!({"ops": []})).refused(400, "INVALID_PATCH");
    let half = json!({"ops": [{"op": "add", "path": "/content/x", "value": 1}, {"op": "remove", "path": "/content/y"}]});
    scope.patch("a.md", etag, half).refused(422, "INVALID_PATCH_PATH");
    scope.tell("evt_01", json!({}));
    scope.search(json!({}));

    assert_eq!(scope.audit().len(), 1);
    assert_eq!(scope.read("a.md"), created);
}

#[test]
fn the_etags_of_a_path_form_a_chain_and_sequences_grow_over_all_paths() {
    let scope = Scope::fresh(&SERVER);
    let mut etags: BTreeMap<String, String> = BTreeMap::new();
    for n in 0..30 {
        let path = format!("{}.md", n % 3);
        let before = etags.get(&path).cloned().unwrap_or_else(|| "*".into());
        etags.insert(path.clone(), scope.put(&path, &before, note(&format!("n{n};"))).stored().etag);
    }

    let records = scope.audit();

    assert_eq!(records.len(), 30);
    assert!(sequences(&records).windows(2).all(|pair| pair[0] < pair[1]), "{:?}", sequences(&records));
    assert!(records.windows(2).all(|pair| text(&pair[0], "timestamp") <= text(&pair[1], "timestamp")));
    let mut last: BTreeMap<&str, Value> = BTreeMap::new();
    for record in &records {
        let before = last.insert(text(record, "path"), record["new_etag"].clone()).unwrap_or(Value::Null);
        assert_eq!(record["previous_etag"], before, "{record}");
    }
    for (path, etag) in etags {
        assert_eq!(last[path.as_str()], etag);
    }
}

#[test]
fn every_winner_among_many_writers_has_one_record() {
    let scope = Scope::fresh(&SERVER);
    let mut etag = scope.create("a.md", json!({"text": "n0;"})).etag;
    for n in 0..5 {
        let answers = at_once(8, |_| scope.patch("a.md", &etag, count_up(n)));
        etag =
            answers.iter().find(|answer| answer.status == 200).expect("a winner").header("etag").to_owned();
    }

    let records = scope.audit();

    assert_eq!(records.len(), 6);
    assert!(records.windows(2).all(|pair| pair[0]["new_etag"] == pair[1]["previous_etag"]), "{records:?}");
    assert_eq!(records[5]["new_etag"], etag);
}

// ---- reading the trail

#[test]
fn the_trail_comes_in_pages() {
    let scope = Scope::fresh(&SERVER);
    spread(105, |n| {
        scope.create(&format!("{n}.md"), json!({}));
    });
    let all = sequences(&scope.audit());

    assert_eq!(all.len(), 105);
    assert_eq!(sequences(&page(&scope, "")), all[..100]);
    assert_eq!(sequences(&page(&scope, "limit=1")), all[..1]);
    assert_eq!(sequences(&page(&scope, "limit=500")), all);
    assert_eq!(sequences(&page(&scope, &format!("after={}", all[99]))), all[100..]);
    assert_eq!(sequences(&page(&scope, &format!("limit=2&after={}", all[9]))), all[10..12]);
    assert_eq!(page(&scope, &format!("after={}", all[104])), Vec::<Value>::new());
    for limit in ["0", "501", "-1", "x", "", "1.5"] {
        let refused = scope.as_admin().client.get(&scope.at(&format!("/audit?limit={limit}")));
        refused.refused(400, "INVALID_LIMIT");
    }
    for query in ["after=x", "from=yesterday", "to=2026-01-01"] {
        scope.as_admin().client.get(&scope.at(&format!("/audit?{query}"))).refused(400, "INVALID_REQUEST");
    }
}

#[test]
fn the_trail_is_filtered_by_path_and_time() {
    let scope = Scope::fresh(&SERVER);
    let mut etag = scope.create("a.md", json!({"text": "n0;"})).etag;
    for n in 0..4 {
        // Apart enough that no two records share an instant.
        std::thread::sleep(Duration::from_millis(2));
        scope.create(&format!("dir/{n}.md"), json!({}));
        etag = scope.patch("a.md", &etag, count_up(n)).stored().etag;
    }
    let all = scope.audit();
    let of_path = |path: &str| -> Vec<u64> {
        sequences(&all.iter().filter(|record| record["path"] == path).cloned().collect::<Vec<_>>())
    };

    assert_eq!(sequences(&page(&scope, "path=a.md")), of_path("a.md"));
    assert_eq!(sequences(&page(&scope, "path=dir%2F2.md")), of_path("dir/2.md"));
    assert_eq!(page(&scope, "path=dir"), Vec::<Value>::new(), "a path, not a prefix");
    assert_eq!(page(&scope, "path=A.md"), Vec::<Value>::new());
    let (third, sixth) = (text(&all[2], "timestamp"), text(&all[5], "timestamp"));
    assert_eq!(sequences(&page(&scope, &format!("from={third}"))), sequences(&all[2..]));
    assert_eq!(sequences(&page(&scope, &format!("to={sixth}"))), sequences(&all[..6]));
    assert_eq!(sequences(&page(&scope, &format!("from={third}&to={sixth}"))), sequences(&all[2..6]));
    assert_eq!(page(&scope, &format!("from={sixth}&to={third}")), Vec::<Value>::new());
    let expected: Vec<u64> =
        of_path("a.md").into_iter().filter(|n| sequences(&all[2..6]).contains(n)).collect();
    assert_eq!(sequences(&page(&scope, &format!("path=a.md&from={third}&to={sixth}"))), expected);
    let second = all[1]["sequence"].as_u64().unwrap();
    let expected: Vec<u64> = of_path("a.md").into_iter().filter(|n| *n > second).take(2).collect();
    assert_eq!(sequences(&page(&scope, &format!("path=a.md&after={second}&limit=2"))), expected);
}

#[test]
fn a_record_can_be_read_alone() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    scope.create("b.md", json!({}));

    for record in scope.audit() {
        let alone = scope.as_admin().client.get(&scope.at(&format!("/audit/{}", text(&record, "change_id"))));
        assert_eq!(alone.expect(200).json, record);
    }
    for unknown in ["chg_0199c7e2-7a70-7000-8000-000000000000", "chg_x", "x"] {
        let answer = scope.as_admin().client.get(&scope.at(&format!("/audit/{unknown}")));
        answer.refused(404, "AUDIT_NOT_FOUND");
    }
}

#[test]
fn an_unknown_scope_has_an_empty_trail() {
    assert_eq!(Scope::fresh(&SERVER).audit(), Vec::<Value>::new());
}

#[test]
fn nobody_finds_the_changes_of_another_scope() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    let change = text(&scope.audit()[0], "change_id").to_owned();

    for other in [
        Scope::of(&SERVER, &scope.tenant, &fresh_name("user")),
        Scope::of(&SERVER, &fresh_name("tenant"), &scope.user),
    ] {
        other.create("a.md", json!({"other": true}));
        assert_eq!(other.audit().len(), 1);
        other.as_admin().client.get(&other.at(&format!("/audit/{change}"))).refused(404, "AUDIT_NOT_FOUND");
        other.reconstruct("a.md", &change).refused(404, "AUDIT_NOT_FOUND");
    }
}

#[test]
fn the_trail_is_for_auditors() {
    let server = server_with(
        r#"
        [auth]
        mode = "jwt"
        [auth.jwt]
        hmac_secret = "a secret that is long enough for a test of roles"
        [auth.api_keys]
        agent = ["agent-key"]
        examiner = ["examiner-key"]
        boss = ["boss-key"]
        [roles.auditor]
        clients = ["examiner"]
        [roles.admin]
        clients = ["boss"]
        "#,
    );
    let by = |key: &str| Scope::of(&server, "default", "alice").seen_by(&server.anonymous().with_key(key));
    by("agent-key").create("a.md", json!({}));
    let records = by("boss-key").client.get(&by("boss-key").at("/audit")).expect(200).json["records"].clone();
    let change = text(&records[0], "change_id").to_owned();

    let asked = |scope: &Scope| {
        [
            scope.client.get(&scope.at("/audit")),
            scope.client.get(&scope.at(&format!("/audit/{change}"))),
            scope.post("/audit:reconstruct", json!({"path": "a.md", "change_id": change})),
        ]
    };

    for answer in asked(&by("agent-key")) {
        answer.refused(403, "FORBIDDEN");
    }
    for answer in asked(&by("examiner-key")).into_iter().chain(asked(&by("boss-key"))) {
        answer.expect(200);
    }
    for answer in asked(&by("no-key")) {
        answer.refused(401, "UNAUTHENTICATED");
    }
}

// ---- every version again

#[test]
fn a_hundred_patches_can_all_be_reproduced() {
    let scope = Scope::fresh(&SERVER);
    let mut versions = vec![scope.create("a.md", json!({"text": "n0;", "log": [], "number": 1.5}))];
    for n in 0..100 {
        let body = match n % 4 {
            0 => count_up(n),
            1 => {
                json!({"ops": [{"op": "add", "path": "/content/log/-", "value": {"n": n, "z": null, "a": 1.50}}],
                        "edits": count_up(n)["edits"]})
            }
            2 => json!({"ops": [{"op": "copy", "from": "/content/log/0", "path": "/content/log/0"},
                                {"op": "move", "from": "/content/number", "path": "/content/moved"},
                                {"op": "add", "path": "/content/number", "value": n}],
                        "edits": count_up(n)["edits"]}),
            _ => {
                json!({"ops": [{"op": "remove", "path": "/content/moved"}, {"op": "replace", "path": "/doc_id", "value": format!("doc-{n}")}],
                        "edits": count_up(n)["edits"]})
            }
        };
        let actor = scope.with_header("x-service-id", &format!("assistant-{}", n % 3));
        versions.push(actor.patch("a.md", &versions[n].etag, body).stored());
    }

    let records = scope.audit();

    assert_eq!(records.len(), 101);
    for (n, (record, version)) in records.iter().zip(&versions).enumerate() {
        assert_eq!(record["new_etag"], version.etag);
        assert_eq!(text(record, "document_sha256"), sha256(&version.text));
        if n == 0 || (n + 1) % 32 == 0 {
            assert_eq!(record["document"], version.document(), "change {} of the path has an image", n + 1);
        }
        assert_reconstructs(&scope, "a.md", record, version);
    }
}

#[test]
fn a_version_is_found_by_its_time() {
    let scope = Scope::fresh(&SERVER);
    let mut versions = vec![scope.create("a.md", json!({"text": "n0;"}))];
    for n in 0..3 {
        std::thread::sleep(Duration::from_millis(2));
        versions.push(scope.patch("a.md", &versions[n].etag, count_up(n)).stored());
    }
    let records = scope.audit();
    let at = |instant: &str| {
        scope.as_admin().post("/audit:reconstruct", json!({"path": "a.md", "as_of_utc": instant}))
    };

    for (record, version) in records.iter().zip(&versions) {
        let answer = at(text(record, "timestamp")).expect(200);
        assert_eq!(reconstructed(&answer), (text(record, "change_id").to_owned(), version.clone()));
        let later = text(record, "timestamp").replace('Z', "9Z"); // a part of a microsecond later
        assert_eq!(reconstructed(&at(&later).expect(200)).1, *version);
    }
    assert_eq!(reconstructed(&at("2099-01-01T00:00:00+05:00").expect(200)).1, versions[3]);
    at("2020-01-01T00:00:00Z").refused(404, "AUDIT_NOT_FOUND");
    at("yesterday").refused(400, "INVALID_REQUEST");
}

#[test]
fn what_was_never_written_cannot_be_reconstructed() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    scope.create("b.md", json!({}));
    let of_b = text(&scope.audit()[1], "change_id").to_owned();
    let ask = |body: Value| scope.as_admin().post("/audit:reconstruct", body);

    ask(json!({"path": "a.md", "change_id": of_b})).refused(404, "AUDIT_NOT_FOUND");
    ask(json!({"path": "c.md", "change_id": of_b})).refused(404, "AUDIT_NOT_FOUND");
    ask(json!({"path": "c.md", "as_of_utc": "2099-01-01T00:00:00Z"})).refused(404, "AUDIT_NOT_FOUND");
    ask(json!({"path": "a.md", "change_id": "chg_x"})).refused(404, "AUDIT_NOT_FOUND");
    ask(json!({"path": "../a.md", "change_id": of_b})).refused(400, "INVALID_PATH");
    ask(json!({"path": "a.md"})).refused(400, "INVALID_REQUEST");
    ask(json!({"path": "a.md", "change_id": 7})).refused(400, "INVALID_REQUEST");
}

#[test]
fn what_retention_leaves_can_still_be_reproduced() {
    let scope = Scope::fresh(&SERVER);
    let mut versions = vec![scope.create("a.md", json!({"text": "n0;"}))];
    for n in 0..40 {
        versions.push(scope.patch("a.md", &versions[n].etag, count_up(n)).stored());
        if n == 20 {
            scope.create("other.md", json!({}));
        }
    }
    let records: Vec<Value> = scope.audit().into_iter().filter(|record| record["path"] == "a.md").collect();
    let mut seen = records.len() + 1;

    for oldest in [9, 10, 30, 31, 33, 40] {
        let cutoff = text(&records[oldest], "timestamp");
        let rules = json!({"events_days": 36_500, "audit_days": 0, "snapshots_days": 0, "as_of_utc": cutoff});
        let deleted = scope.retain(rules).expect(200).json["audit_deleted"].as_u64().unwrap();

        let left = scope.audit();
        assert_eq!(left.len(), seen - usize::try_from(deleted).unwrap());
        seen = left.len();
        let left: Vec<&Value> = left.iter().filter(|record| record["path"] == "a.md").collect();
        assert_eq!(left.len(), records.len() - oldest);
        assert_eq!(left[0]["document"], versions[oldest].document(), "the oldest has an image of its own");
        for (record, version) in records.iter().zip(&versions).skip(oldest) {
            assert_reconstructs(&scope, "a.md", record, version);
        }
        let gone = &records[oldest - 1];
        scope.reconstruct("a.md", text(gone, "change_id")).refused(404, "AUDIT_NOT_FOUND");
        let before = json!({"path": "a.md", "as_of_utc": gone["timestamp"]});
        scope.as_admin().post("/audit:reconstruct", before).refused(404, "AUDIT_NOT_FOUND");
    }
    assert_eq!(scope.read("a.md"), versions[40], "files are never touched");
}

#[test]
fn a_page_ends_where_memory_would() {
    let scope = Scope::fresh(&SERVER);
    let text = "𝄞".repeat(250_000);
    for n in 0..40 {
        scope.create(&format!("{n}.md"), json!({"text": text}));
    }

    let page = scope.as_admin().client.get(&scope.at("/audit?limit=500")).expect(200);

    assert!(page.text.len() < 33 * 1024 * 1024, "{}", page.text.len());
    let shown = page.json["records"].as_array().unwrap().len();
    assert!((30..40).contains(&shown), "{shown}");
    assert_eq!(page.json["next_after"], shown);
    let sequences: Vec<u64> =
        scope.audit().iter().map(|record| record["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=40).collect::<Vec<_>>(), "the pages miss nothing");
}

#[test]
fn changes_after_all_records_were_deleted_can_be_reproduced() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "n0;"}));
    let rules =
        json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": "2099-01-01T00:00:00Z"});
    assert_eq!(scope.as_admin().retain(rules).expect(200).json["audit_deleted"], 1);
    assert_eq!(scope.audit(), Vec::<Value>::new());
    let second = scope.patch("a.md", &first.etag, count_up(0)).stored();
    let third = scope.patch("a.md", &second.etag, count_up(1)).stored();

    let records = scope.audit();

    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["previous_etag"], first.etag);
    assert!(records[0]["sequence"].as_u64() > Some(1), "a sequence is never used twice: {}", records[0]);
    assert_reconstructs(&scope, "a.md", &records[0], &second);
    assert_reconstructs(&scope, "a.md", &records[1], &third);
}

#[test]
fn encrypted_records_prove_as_much() {
    let mut server = encrypted_server();
    let scope = Scope::fresh(&server);
    let mut versions = vec![scope.create("a.md", json!({"text": "n0;"}))];
    for n in 0..35 {
        versions.push(scope.patch("a.md", &versions[n].etag, count_up(n)).stored());
    }
    let records = scope.audit();
    server.restart();
    let scope = Scope::of(&server, &scope.tenant, &scope.user);

    assert_eq!(scope.audit(), records);
    let cutoff = text(&records[10], "timestamp");
    let rules = json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": cutoff});
    assert_eq!(
        scope.as_admin().with_header("x-justification", "a test").retain(rules).expect(200).json["audit_deleted"],
        10
    );
    for (record, version) in records.iter().zip(&versions).skip(10) {
        assert_eq!(text(record, "document_sha256"), sha256(&version.text));
        assert_reconstructs(&scope, "a.md", record, version);
    }
}

#[test]
fn a_record_that_was_tampered_with_proves_nothing() {
    let mut server = local_server();
    let scope = Scope::fresh(&server);
    let first = scope.create("a.md", json!({"text": "n0; walrus"}));
    let second = scope.patch("a.md", &first.etag, count_up(0)).stored();
    scope.create("b.md", json!({}));
    let changes: Vec<String> =
        scope.audit().iter().map(|record| text(record, "change_id").to_owned()).collect();
    server.stop();
    let one = "path = 'a.md' AND image IS NOT NULL";
    let image = server.stored().bytes(&format!("SELECT image FROM audit WHERE {one}")).unwrap();
    let at = image.windows(6).position(|bytes| bytes == b"walrus").expect("the text in the image");
    let mut forged = image.clone();
    forged[at] = b'W';
    assert_eq!(server.stored().execute(&format!("UPDATE audit SET image = $1 WHERE {one}"), &forged), 1);
    server.restart();
    let scope = Scope::of(&server, &scope.tenant, &scope.user);

    scope.reconstruct("a.md", &changes[0]).refused(409, "AUDIT_CHAIN_INCOMPLETE");
    scope.reconstruct("a.md", &changes[1]).refused(409, "AUDIT_CHAIN_INCOMPLETE");
    scope.reconstruct("b.md", &changes[2]).expect(200);
    assert_eq!(scope.read("a.md"), second);
}
