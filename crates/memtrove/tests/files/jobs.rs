//! Rebuilding the index of events while it is used, through the API and on the command line.

use crate::support::*;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// The admin of a tenant.
#[track_caller]
fn admin(server: &TestServer, tenant: &str) -> Client {
    server.as_user("admin").with_key(AGENT).in_tenant(tenant)
}

/// The job that an answer promises.
#[track_caller]
fn job(answer: Answer) -> String {
    let answer = answer.expect(202).expect_members(&["job_id"]);
    answer.text_of("job_id")
}

/// Waits until the job has ended; its last state.
#[track_caller]
fn ended(admin: &Client, job: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = admin.get(&format!("/v1/admin/jobs/{job}")).expect(200);
        let answer = answer.expect_members(&["job_id", "kind", "status", "processed", "total", "errors"]);
        assert_eq!(answer.json["job_id"], job);
        let (processed, total) = (answer.json["processed"].as_u64(), answer.json["total"].as_u64());
        assert!(processed.is_some() && processed <= total, "{}", answer.describe());
        match answer.json["status"].as_str() {
            Some("queued" | "running") => {}
            Some("succeeded" | "failed") => return answer.json,
            _ => panic!("no status: {}", answer.describe()),
        }
        assert!(Instant::now() < deadline, "the job does not end: {}", answer.describe());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Requires that the job succeeded and saw at least so many events.
#[track_caller]
fn assert_succeeded(admin: &Client, job: &str, events: u64) {
    let state = ended(admin, job);
    assert_eq!(state["status"], "succeeded", "{state}");
    assert_eq!(state["errors"], json!([]), "{state}");
    assert_eq!(state["processed"], state["total"], "{state}");
    assert!(state["total"].as_u64() >= Some(events), "{state}");
    assert!(!state["kind"].as_str().unwrap_or_default().is_empty(), "{state}");
}

/// A scope with so many events about a walrus.
fn scope_with(server: &TestServer, count: usize) -> Scope {
    let scope = Scope::fresh(server);
    spread(count, |n| scope.tell(&format!("evt{n:04}"), json!({"digest": format!("walrus number{n}x")})));
    scope
}

fn walruses(scope: &Scope) -> Vec<String> {
    scope.found(json!({"query": "walrus", "top_k": 500}))
}

#[test]
fn a_rebuilt_index_finds_the_same() {
    let scope = scope_with(&SERVER, 120);
    scope.tell("evt0007", json!({"digest": "a penguin instead"}));
    let admin = admin(&SERVER, &scope.tenant);
    let searches = [
        json!({"top_k": 500}),
        json!({"query": "number11x"}),
        json!({"query": "walrus penguin", "top_k": 7}),
    ];
    let before: Vec<_> = searches.iter().map(|body| scope.search(body.clone())).collect();
    assert_eq!(walruses(&scope).len(), 119);

    for _ in 0..2 {
        let job = job(scope.seen_by(&admin).post("/events:reindex", json!({})));
        assert_succeeded(&admin, &job, 120);
        let after: Vec<_> = searches.iter().map(|body| scope.search(body.clone())).collect();
        assert_eq!(after, before);
    }
}

#[test]
fn a_scope_without_events_can_be_reindexed() {
    let scope = Scope::fresh(&SERVER);
    let admin = admin(&SERVER, &scope.tenant);

    let job = job(admin.post_nothing(&scope.at("/events:reindex")));

    assert_succeeded(&admin, &job, 0);
    assert_eq!(scope.found(json!({})), Vec::<String>::new());
}

#[test]
fn an_admin_reindexes_a_whole_tenant() {
    let scope = scope_with(&SERVER, 20);
    let second = Scope::of(&SERVER, &scope.tenant, &fresh_name("user"));
    second.tell("evt", json!({"digest": "walrus"}));
    let admin = admin(&SERVER, &scope.tenant);

    for body in [Body::None, Body::Json(json!({})), Body::Json(json!({"tenant_id": scope.tenant}))] {
        let job = job(admin.send("POST", "/v1/admin/reindex", body));
        assert_succeeded(&admin, &job, 21);
        assert_eq!((walruses(&scope).len(), walruses(&second).len()), (20, 1));
    }
}

#[test]
fn an_admin_has_vectors_made_anew() {
    let scope = scope_with(&SERVER, 3);
    let admin = admin(&SERVER, &scope.tenant);

    let job = job(admin.post("/v1/admin/reindex", json!({"target": "embeddings"})));

    assert_succeeded(&admin, &job, 0);
    assert_eq!(ended(&admin, &job)["kind"], "embeddings_reindex");
    for client in [SERVER.someone("alice"), scope.client.clone()] {
        client.post("/v1/admin/reindex", json!({"target": "embeddings"})).refused(403, "FORBIDDEN");
    }
    for target in [json!("everything"), json!(""), json!(7)] {
        admin.post("/v1/admin/reindex", json!({"target": target})).refused(400, "INVALID_REQUEST");
    }
}

#[test]
fn reindexing_everything_is_for_admins() {
    let scope = Scope::fresh(&SERVER);
    let job =
        job(admin(&SERVER, &scope.tenant).post("/v1/admin/reindex", json!({"tenant_id": scope.tenant})));
    for client in [SERVER.someone("alice"), scope.client.clone()] {
        assert!(
            [403, 404].contains(&client.get(&format!("/v1/admin/jobs/{job}")).status),
            "not theirs to watch"
        );
        client.post("/v1/admin/reindex", json!({})).refused(403, "FORBIDDEN");
    }
    SERVER.anonymous().post("/v1/admin/reindex", json!({})).refused(401, "UNAUTHENTICATED");
}

#[test]
fn an_unknown_job_is_not_found() {
    let admin = SERVER.as_user("admin");
    for job in [fresh_id().as_str(), "x", "job_1", "%20"] {
        admin.get(&format!("/v1/admin/jobs/{job}")).refused(404, "JOB_NOT_FOUND");
    }
}

#[test]
fn searches_and_writes_go_on_while_the_index_is_rebuilt() {
    let scope = scope_with(&SERVER, 300);
    let admin = admin(&SERVER, &scope.tenant);
    let expected = walruses(&scope);
    assert_eq!(expected.len(), 300);
    let written = AtomicUsize::new(0);
    let use_it = |n: usize| {
        if n == 0 {
            let serial = written.fetch_add(1, Ordering::Relaxed);
            let id = format!("new{serial}");
            scope.tell(&id, json!({"digest": format!("penguin number{serial}y")}));
            assert_eq!(scope.found(json!({"query": format!("number{serial}y")})), [id]);
            // A moving target: written anew all the time, found once every time.
            scope.tell("moving", json!({"digest": format!("seal version{serial}z")}));
            assert_eq!(scope.found(json!({"query": format!("version{serial}z")})), ["moving"]);
        } else {
            assert_eq!(walruses(&scope), expected);
        }
    };

    meanwhile(3, use_it, || {
        for n in 0..6 {
            let asked = match n % 2 {
                0 => scope.seen_by(&admin).post("/events:reindex", json!({})),
                _ => admin.post("/v1/admin/reindex", json!({"tenant_id": scope.tenant})),
            };
            assert_succeeded(&admin, &job(asked), 300);
        }
    });

    for serial in 0..written.load(Ordering::Relaxed) {
        assert_eq!(scope.found(json!({"query": format!("number{serial}y")})), [format!("new{serial}")]);
    }
    assert_eq!(scope.found(json!({"query": "seal"})), ["moving"]);
    assert_eq!(walruses(&scope), expected);
}

#[test]
fn what_goes_during_a_rebuild_does_not_come_back() {
    let scope = scope_with(&SERVER, 200);
    let admin = admin(&SERVER, &scope.tenant);
    for round in 0..3 {
        let kept = format!("kept{round}");
        scope.tell(&kept, json!({"digest": "walrus", "timestamp": "2026-03-01T00:00:00Z"}));
        let job = job(scope.seen_by(&admin).post("/events:reindex", json!({})));
        if round == 1 {
            scope.forget().expect(200);
        } else {
            let rules = json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": "2026-02-20T00:00:00Z"});
            scope.retain(rules).expect(200);
        }
        ended(&admin, &job);
        let expected: &[String] = if round == 1 { &[] } else { &[kept] };
        assert_eq!(walruses(&scope), expected);
        scope.forget().expect(200);
        spread(200, |n| scope.tell(&format!("evt{n:04}"), json!({"digest": "walrus"})));
    }
}

// ---- on the command line

fn memtrove(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("the command runs")
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memtrove"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEMTROVE_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).args(args);
    command
}

#[track_caller]
fn assert_success(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!output.stdout.is_empty(), "it says what it did");
}

/// Throws the index away while the server is stopped.
#[track_caller]
fn lose_index(server: &mut TestServer) {
    server.stop();
    assert!(server.stored().execute("DELETE FROM event_blocks", &[]) > 0, "there was no index");
}

#[test]
fn a_lost_index_is_rebuilt_in_the_store() {
    let mut server = local_server();
    let scope = scope_with(&server, 60);
    let elsewhere = Scope::fresh(&server);
    elsewhere.tell("evt", json!({"digest": "walrus"}));
    lose_index(&mut server);
    let folder = tempfile::tempdir().unwrap();

    let mut reindex = command(folder.path(), &["reindex"]);
    server.stored().aim(&mut reindex);
    assert_success(&reindex.output().expect("the command runs"));

    server.restart();
    assert_eq!(walruses(&Scope::of(&server, &scope.tenant, &scope.user)).len(), 60);
    assert_eq!(walruses(&Scope::of(&server, &elsewhere.tenant, &elsewhere.user)), ["evt"]);
}

#[test]
fn a_lost_index_is_rebuilt_through_the_server() {
    let mut server = local_server();
    let scope = scope_with(&server, 60);
    let at_home = Scope::of(&server, "default", &fresh_name("user"));
    at_home.tell("evt", json!({"digest": "walrus"}));
    lose_index(&mut server);
    server.restart();
    let [scope, at_home] = [scope, at_home].map(|lost| Scope::of(&server, &lost.tenant, &lost.user));
    let folder = tempfile::tempdir().unwrap();
    let reindex = |more: &[&str]| {
        memtrove(folder.path(), &[&["reindex", "--url", server.url(), "--token", "admin"], more].concat())
    };

    assert_success(&reindex(&[]));
    assert_eq!(walruses(&at_home), ["evt"]);
    assert_success(&reindex(&["--tenant", &scope.tenant]));
    assert_eq!(walruses(&scope).len(), 60);
}

#[test]
fn reindex_explains_why_it_cannot() {
    let server = local_server();
    let folder = tempfile::tempdir().unwrap();
    let complaint = |args: &[&str]| {
        let output = memtrove(folder.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };

    let missing = complaint(&["reindex", "--data-dir", folder.path().join("nowhere").to_str().unwrap()]);
    assert!(missing.contains("nowhere"), "{missing}");
    assert!(!folder.path().join("nowhere").exists(), "nothing was made");
    let nobody = complaint(&["reindex", "--url", server.url(), "--token", "alice"]);
    assert!(!nobody.is_empty());
    let unreachable = complaint(&["reindex", "--url", "http://127.0.0.1:1", "--token", "admin"]);
    assert!(unreachable.contains("127.0.0.1:1"), "{unreachable}");
}

#[test]
fn reindex_leaves_a_folder_alone_that_a_server_uses() {
    let server = local_server();
    let folder = tempfile::tempdir().unwrap();

    let output = memtrove(folder.path(), &["reindex", "--data-dir", server.data_dir().to_str().unwrap()]);

    assert_eq!(output.status.code(), Some(1));
    let taken = String::from_utf8(output.stderr).unwrap();
    assert!(taken.contains("--url"), "{taken}");
}
