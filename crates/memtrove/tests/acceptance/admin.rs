//! The admin API: filters, deleted trees, roles, justification, audit, statistics.

use crate::support::*;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const LIST: &str = "/v1/admin/conversations";
const SUMMARY: [&str; 6] = ["id", "title", "ownerUserId", "createdAt", "updatedAt", "accessLevel"];

/// A tenant with its admin and two users.
struct Tenant {
    name: String,
    admin: Client,
    alice: Client,
    bob: Client,
}

impl Tenant {
    fn new() -> Self {
        let name = fresh_name("tenant");
        Self {
            admin: admin_in(&SERVER, &name),
            alice: someone_in(&SERVER, "alice", &name),
            bob: someone_in(&SERVER, "bob", &name),
            name,
        }
    }

    /// The titles that a list with this query shows.
    #[track_caller]
    fn listed(&self, query: &str) -> Vec<String> {
        titles(&self.admin.get(&format!("{LIST}?{query}")).expect_page())
    }
}

#[track_caller]
fn delete(owner: &Client, id: &str) {
    owner.delete(&format!("/v1/conversations/{id}")).expect(204);
}

// ---- list

#[test]
fn the_list_shows_everybodys_live_conversations_latest_first() {
    let t = Tenant::new();
    start(&t.alice, "A");
    start(&t.bob, "B");
    let gone = start(&t.alice, "Gone");
    delete(&t.alice, &gone);

    let page = t.admin.get(LIST).expect_page();

    assert_eq!(titles(&page), ["B", "A"]);
    assert_eq!(page.all("accessLevel"), ["owner", "owner"], "always owner in admin objects");
    page.data.iter().for_each(|item| assert_members(item, &SUMMARY, "an AdminConversationSummary"));
}

#[test]
fn the_list_has_the_three_modes() {
    let t = Tenant::new();
    let root = start(&t.alice, "Root");
    let entry = say(&t.alice, &root, "one");
    let branch = fork(&t.alice, &root, &entry);
    t.alice.patch(&format!("/v1/conversations/{branch}"), json!({"title": "Branch"})).expect(200);

    assert_eq!(t.listed(""), ["Branch"]);
    assert_eq!(t.listed("mode=latest-fork"), ["Branch"]);
    assert_eq!(t.listed("mode=ALL"), ["Branch", "Root"]);
    assert_eq!(t.listed("mode=roots"), ["Root"]);
    t.admin.get(&format!("{LIST}?mode=newest")).expect_violation("mode");
}

#[test]
fn the_list_filters_by_owner_and_deletion() {
    let t = Tenant::new();
    start(&t.alice, "live of alice");
    start(&t.bob, "live of bob");
    let gone = start(&t.alice, "gone of alice");
    delete(&t.alice, &gone);
    let gone = start(&t.bob, "gone of bob");
    delete(&t.bob, &gone);
    let alice = format!("userId={}", t.alice.user());

    assert_eq!(t.listed(""), ["live of bob", "live of alice"]);
    assert_eq!(t.listed(&alice), ["live of alice"]);
    assert_eq!(
        t.listed("includeDeleted=true"),
        ["gone of bob", "gone of alice", "live of bob", "live of alice"]
    );
    assert_eq!(t.listed("onlyDeleted=true"), ["gone of bob", "gone of alice"]);
    assert_eq!(t.listed("onlyDeleted=true&includeDeleted=true"), ["gone of bob", "gone of alice"]);
    assert_eq!(t.listed("onlyDeleted=true&includeDeleted=false"), ["gone of bob", "gone of alice"]);
    assert_eq!(t.listed(&format!("{alice}&includeDeleted=true")), ["gone of alice", "live of alice"]);
    assert_eq!(t.listed(&format!("{alice}&onlyDeleted=true")), ["gone of alice"]);
    assert_eq!(t.listed("userId=nobody"), Vec::<String>::new());
}

#[test]
fn the_list_filters_by_time_of_deletion() {
    let t = Tenant::new();
    start(&t.alice, "live");
    let (first, second) = (start(&t.alice, "first"), start(&t.alice, "second"));
    delete(&t.alice, &first);
    std::thread::sleep(std::time::Duration::from_millis(5));
    delete(&t.alice, &second);
    let deleted_at = |id: &str| t.admin.get(&format!("{LIST}/{id}")).expect(200).text_of("deletedAt");
    let (one, two) = (deleted_at(&first), deleted_at(&second));

    assert_eq!(t.listed(&format!("onlyDeleted=true&deletedAfter={two}")), ["second"], "at or after");
    assert_eq!(t.listed(&format!("onlyDeleted=true&deletedBefore={two}")), ["first"], "strictly before");
    assert_eq!(t.listed(&format!("onlyDeleted=true&deletedAfter={one}")), ["second", "first"]);
    assert_eq!(t.listed(&format!("onlyDeleted=true&deletedBefore={one}")), Vec::<String>::new());
    assert_eq!(t.listed(&format!("onlyDeleted=true&deletedAfter={one}&deletedBefore={two}")), ["first"]);
    assert_eq!(
        t.listed(&format!("includeDeleted=true&deletedAfter={two}")),
        ["second", "live"],
        "live rows stay"
    );
    assert_eq!(t.listed(&format!("deletedAfter={two}")), ["live"], "without a flag the filter has no effect");
    assert_eq!(t.listed(&format!("deletedBefore={one}")), ["live"]);
    t.admin.get(&format!("{LIST}?onlyDeleted=true&deletedAfter=yesterday")).expect_violation("deletedAfter");
    t.admin.get(&format!("{LIST}?onlyDeleted=true&deletedBefore=2024")).expect_violation("deletedBefore");
    let offset = "onlyDeleted=true&deletedAfter=2000-01-01T00:00:00%2B02:00";
    assert_eq!(t.listed(offset), ["second", "first"], "any RFC 3339 offset");
}

#[test]
fn deleted_conversations_carry_the_time_of_their_deletion() {
    let t = Tenant::new();
    let gone = start(&t.alice, "gone");
    delete(&t.alice, &gone);

    let page = t.admin.get(&format!("{LIST}?onlyDeleted=true")).expect_page();

    assert_members(&page.data[0], &[&SUMMARY[..], &["deletedAt"]].concat(), "a deleted conversation");
    assert_timestamp(&page.data[0]["deletedAt"]);
}

#[test]
fn latest_fork_collapses_after_the_filters_and_before_the_limit() {
    let t = Tenant::new();
    let other = start(&t.bob, "Other");
    let root = start(&t.alice, "Root");
    let entry = say(&t.alice, &root, "one");
    for _ in 0..10 {
        fork(&t.alice, &root, &entry);
    }
    delete(&t.alice, &root);

    let page = t.admin.get(&format!("{LIST}?includeDeleted=true&limit=2")).expect_page();

    assert_eq!(page.data.len(), 2);
    assert_eq!(page.ids()[1], other);
    assert_eq!(page.after, None);
}

// ---- one conversation

#[test]
fn an_admin_reads_any_conversation_live_or_deleted() {
    let t = Tenant::new();
    let root = start(&t.alice, "Root");
    say(&t.alice, &root, "one");
    let entry = say(&t.alice, &root, "two");
    let branch = fork(&t.alice, &root, &entry);

    let live = t.admin.get(&format!("{LIST}/{branch}")).expect(200).expect_members(&[
        "id",
        "title",
        "ownerUserId",
        "createdAt",
        "updatedAt",
        "accessLevel",
        "forkedAtEntryId",
        "forkedAtConversationId",
    ]);
    assert_eq!(live.json["accessLevel"], "owner");
    assert_eq!(live.json["ownerUserId"], t.alice.user());

    delete(&t.alice, &root);
    let deleted = t.admin.get(&format!("{LIST}/{branch}?includeDeleted=false")).expect(200);
    assert_timestamp(&deleted.json["deletedAt"]);
}

#[test]
fn an_admin_reads_entries_of_all_channels_clients_and_epochs_with_client_ids() {
    let t = Tenant::new();
    let (a, b) = (t.alice.clone(), t.alice.with_key("agent-b"));
    let id = start(&a, "Chat");
    say(&a, &id, "h1");
    sync(&a, &id, json!(["a1"])).expect(200);
    sync(&a, &id, json!(["a2"])).expect(200);
    sync(&b, &id, json!(["b1"])).expect(200);
    let read = |query: &str| t.admin.get(&format!("{LIST}/{id}/entries?{query}")).expect_page();

    let page = read("");

    assert_eq!(said(&page), ["h1", "a1", "a2", "b1"]);
    assert_eq!(page.all("clientId"), ["gateway", "gateway", "gateway", "agent-b"]);
    assert_members(
        &page.data[1],
        &[
            "id",
            "conversationId",
            "userId",
            "clientId",
            "channel",
            "epoch",
            "contentType",
            "content",
            "createdAt",
        ],
        "an admin entry of memory",
    );
    assert_eq!(said(&read("channel=history")), ["h1"]);
    assert_eq!(said(&read("channel=memory")), ["a1", "a2", "b1"]);
    assert_eq!(said(&read("channel=CONTEXT")), ["a1", "a2", "b1"]);
    assert_eq!(said(&read("channel=memory&epoch=1")), ["a1", "b1"]);
    assert_eq!(said(&read("channel=memory&epoch=2")), ["a2"]);
    assert_eq!(said(&read("channel=memory&epoch=all")), ["a1", "a2", "b1"]);
    t.admin.get(&format!("{LIST}/{id}/entries?channel=nonsense")).expect_violation("channel");
    let walked = walk(&t.admin, &format!("{LIST}/{id}/entries?limit=1"));
    assert_eq!(walked.len(), 4);
}

#[test]
fn a_users_own_history_entry_has_no_client_id() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    say(&alice, &id, "by hand");

    let page = SERVER.as_user("admin").get(&format!("{LIST}/{id}/entries")).expect_page();

    assert_eq!(page.data[0].get("clientId"), None);
}

#[test]
fn an_admin_reads_entries_forks_and_memberships_of_a_deleted_tree() {
    let t = Tenant::new();
    let root = start(&t.alice, "Root");
    say(&t.alice, &root, "one");
    let entry = say(&t.alice, &root, "two");
    let branch = fork(&t.alice, &root, &entry);
    say(&t.alice, &branch, "three");
    share(&t.alice, &root, &t.bob, "reader");
    delete(&t.alice, &root);
    let read = |rest: &str| t.admin.get(&format!("{LIST}/{rest}")).expect_page();

    assert_eq!(said(&read(&format!("{root}/entries"))), ["one", "two"]);
    assert_eq!(said(&read(&format!("{branch}/entries"))), ["one", "three"]);
    assert_eq!(said(&read(&format!("{branch}/entries?forks=all"))), ["one", "two", "three"]);
    assert_eq!(read(&format!("{branch}/forks")).data.len(), 2);
    let members = read(&format!("{root}/memberships"));
    assert_eq!(members.all("userId"), [t.alice.user(), t.bob.user()]);
    assert_eq!(members.all("accessLevel"), ["owner", "reader"]);
}

#[test]
fn an_admin_is_told_when_there_is_no_such_conversation() {
    let admin = SERVER.as_user("admin");
    for id in [fresh_id(), "nonsense".to_owned()] {
        for rest in ["", "/entries", "/memberships", "/forks"] {
            admin.get(&format!("{LIST}/{id}{rest}")).expect_not_found("conversation", &id);
        }
    }
}

// ---- search

#[test]
fn an_admin_searches_everybodys_entries() {
    let t = Tenant::new();
    let (a, b) = (start(&t.alice, "A"), start(&t.bob, "B"));
    say(&t.alice, &a, "a walrus");
    say(&t.bob, &b, "another walrus");
    let gone = start(&t.bob, "Gone");
    say(&t.bob, &gone, "a third walrus");
    delete(&t.bob, &gone);
    let search = |body: Value| {
        let mut found = t.admin.post(&format!("{LIST}/search"), body).expect_page().all("conversationTitle");
        found.sort();
        found
    };

    assert_eq!(search(json!({"query": "walrus"})), ["A", "B"]);
    assert_eq!(search(json!({"query": "walrus", "userId": t.alice.user()})), ["A"]);
    assert_eq!(search(json!({"query": "walrus", "includeDeleted": true})), ["A", "B", "Gone"]);
    assert_eq!(
        search(json!({"query": "walrus", "includeDeleted": true, "userId": t.bob.user()})),
        ["B", "Gone"]
    );
    t.admin.post(&format!("{LIST}/search"), json!({"query": "x", "limit": 1_001})).expect_violation("limit");
    t.admin.post(&format!("{LIST}/search"), json!({"query": "x", "limit": 1_000})).expect_page();
    t.admin.post(&format!("{LIST}/search"), json!({"query": "x", "userId": "u".repeat(256)})).expect(400);
}

// ---- roles

#[test]
fn the_admin_api_is_closed_to_everybody_else() {
    let t = Tenant::new();
    let id = start(&t.alice, "Chat");
    let evict = json!({"retentionPeriod": "P1D", "resourceTypes": ["conversations"]});
    // The owner of the conversation, and somebody who is not even sure that it exists.
    for who in [&t.alice, &t.bob] {
        for answer in [
            who.get(LIST),
            who.get(&format!("{LIST}/{id}")),
            who.get(&format!("{LIST}/{}", fresh_id())),
            who.get(&format!("{LIST}/{id}/entries")),
            who.get(&format!("{LIST}/{id}/memberships")),
            who.get(&format!("{LIST}/{id}/forks")),
            who.post(&format!("{LIST}/search"), json!({"query": "x"})),
            who.delete(&format!("{LIST}/{id}")),
            who.post(&format!("{LIST}/{id}/restore"), json!({})),
            who.post("/v1/admin/evict", evict.clone()),
            who.get("/v1/admin/stats/request-rate"),
        ] {
            answer.expect_forbidden();
        }
    }
    t.alice.get(&format!("/v1/conversations/{id}")).expect(200);
}

#[test]
fn an_auditor_reads_everything_and_changes_nothing() {
    let server = server_with("[roles.auditor]\nusers = [\"ann\"]\n");
    let (alice, ann) = (server.someone("alice"), server.as_user("ann"));
    let id = start(&alice, "Chat");
    say(&alice, &id, "walrus");

    ann.get(LIST).expect_page();
    ann.get(&format!("{LIST}/{id}")).expect(200);
    assert_eq!(said(&ann.get(&format!("{LIST}/{id}/entries")).expect_page()), ["walrus"]);
    ann.get(&format!("{LIST}/{id}/memberships")).expect_page();
    ann.get(&format!("{LIST}/{id}/forks")).expect_page();
    assert_eq!(ann.post(&format!("{LIST}/search"), json!({"query": "walrus"})).expect_page().data.len(), 1);
    ann.get("/v1/admin/stats/request-rate").expect(501);

    ann.delete(&format!("{LIST}/{id}")).expect_forbidden();
    ann.post(&format!("{LIST}/{id}/restore"), json!({})).expect_forbidden();
    ann.post("/v1/admin/evict", json!({"retentionPeriod": "P1D", "resourceTypes": ["conversations"]}))
        .expect_forbidden();
    ann.get("/v1/conversations/unindexed").expect_forbidden();
    ann.get(&format!("/v1/conversations/{id}")).expect_forbidden();
    assert!(
        server.wait_for_log(&["ADMIN_READ", "user=ann", "action=getConversation"]).contains("role=auditor")
    );
}

// ---- justification

static STRICT: LazyLock<TestServer> = LazyLock::new(|| {
    server_with("[admin]\nrequire_justification = true\n[roles.auditor]\nusers = [\"ann\"]\n")
});

#[test]
fn when_required_a_missing_or_blank_justification_is_refused_before_any_data_is_touched() {
    let (admin, alice) = (STRICT.as_user("admin"), STRICT.someone("alice"));
    let id = start(&alice, "Chat");
    let unknown = fresh_id();
    let evict = json!({"retentionPeriod": "P1D", "resourceTypes": ["conversations"]});

    for answer in [
        admin.get(LIST),
        admin.get(&format!("{LIST}?justification=")),
        admin.get(&format!("{LIST}?justification=%20%20")),
        admin.get(&format!("{LIST}/{id}")),
        admin.get(&format!("{LIST}/{unknown}")),
        admin.get(&format!("{LIST}/{id}/entries")),
        admin.get(&format!("{LIST}/{id}/memberships")),
        admin.get(&format!("{LIST}/{id}/forks")),
        admin.post(&format!("{LIST}/search"), json!({"query": "x"})),
        admin.delete(&format!("{LIST}/{id}")),
        admin.send("DELETE", &format!("{LIST}/{id}"), Body::Json(json!({"justification": " "}))),
        admin.post(&format!("{LIST}/{id}/restore"), json!({})),
        admin.post_nothing(&format!("{LIST}/{id}/restore")),
        admin.post("/v1/admin/evict", evict),
    ] {
        let answer = answer.expect_error(400, "JUSTIFICATION_REQUIRED");
        assert_eq!(answer.json.get("details"), None, "{}", answer.describe());
    }
    alice.get(&format!("/v1/conversations/{id}")).expect(200);
    // The role comes first.
    alice.get(LIST).expect_forbidden();
}

#[test]
fn a_justification_is_taken_from_the_query_the_body_or_the_header() {
    let (admin, alice) = (STRICT.as_user("admin"), STRICT.someone("alice"));
    let id = start(&alice, "Chat");
    let body = |reason: &str| Body::Json(json!({"justification": reason}));

    admin.get(&format!("{LIST}?justification=case%2042")).expect_page();
    admin.get(&format!("{LIST}/{id}?justification=case%2042")).expect(200);
    admin.post(&format!("{LIST}/search?justification=case"), json!({"query": "x"})).expect_page();
    admin.send("DELETE", &format!("{LIST}/{id}"), body("spam")).expect(204);
    admin.send("POST", &format!("{LIST}/{id}/restore"), body("not spam")).expect(200);
    admin
        .post(
            "/v1/admin/evict",
            json!({"retentionPeriod": "P1D", "resourceTypes": ["conversations"], "justification": "cleaning"}),
        )
        .expect(204);

    let by_header = admin.with_header("x-justification", "case 42");
    by_header.get(LIST).expect_page();
    by_header.get(&format!("{LIST}/{id}/entries")).expect_page();
    by_header.delete(&format!("{LIST}/{id}")).expect(204);
    by_header.post_nothing(&format!("{LIST}/{id}/restore")).expect(200);
}

// ---- audit

#[test]
fn every_admin_call_writes_an_audit_line_with_its_action() {
    let t = Tenant::new();
    let root = start(&t.alice, "Chat");
    say(&t.alice, &root, "contents stay out of the log: aardvark");
    let tag = fresh_name("because");
    let reason = format!("justification={tag}");
    let by_body = Body::Json(json!({"justification": tag}));

    t.admin.get(&format!("{LIST}?{reason}")).expect(200);
    t.admin.get(&format!("{LIST}/{root}?{reason}")).expect(200);
    t.admin.get(&format!("{LIST}/{root}/entries?{reason}")).expect(200);
    t.admin.get(&format!("{LIST}/{root}/memberships?{reason}")).expect(200);
    t.admin.get(&format!("{LIST}/{root}/forks?{reason}")).expect(200);
    t.admin.post(&format!("{LIST}/search?{reason}"), json!({"query": "sought-after-words"})).expect(200);
    t.admin.send("DELETE", &format!("{LIST}/{root}"), by_body.clone()).expect(204);
    t.admin.send("POST", &format!("{LIST}/{root}/restore"), by_body).expect(200);
    t.admin
        .post(
            "/v1/admin/evict",
            json!({"retentionPeriod": "P9Y", "resourceTypes": ["conversations"], "justification": tag}),
        )
        .expect(204);

    let justification = format!("justification=\"{tag}\"");
    for action in [
        "listConversations",
        "getConversation",
        "getEntries",
        "getMemberships",
        "listForks",
        "searchConversations",
    ] {
        let line = SERVER.wait_for_log(&["ADMIN_READ", &format!("action={action}"), &justification]);
        assert!(line.contains("user=admin") && line.contains("role=admin"), "{line}");
        assert!(line.contains("client=gateway"), "{line}");
        assert!(line.contains("params={"), "{line}");
    }
    let search = SERVER.wait_for_log(&["ADMIN_READ", "action=searchConversations", &justification]);
    assert!(search.contains("sought-after-words"), "{search}");
    for action in ["deleteConversation", "restoreConversation"] {
        let line = SERVER.wait_for_log(&["ADMIN_WRITE", &format!("action={action}"), &justification]);
        assert!(line.contains(&format!("target={root}")), "{line}");
    }
    SERVER.wait_for_log(&["ADMIN_WRITE", "action=evict", &justification]);
    assert!(SERVER.log_lines(&["aardvark"]).is_empty(), "entry contents are never logged");
}

#[test]
fn an_audit_line_without_a_justification_says_so() {
    let alice = SERVER.someone("alice");
    let id = start(&alice, "Chat");
    SERVER.as_user("admin").get(&format!("{LIST}/{id}")).expect(200);

    let line = SERVER.wait_for_log(&["ADMIN_READ", "action=getConversation", &id]);

    assert!(line.contains("justification=\"<none>\"") || line.contains("justification=<none>"), "{line}");
    assert!(!line.contains("client="), "no client, no client: {line}");
}

#[test]
fn a_refused_admin_call_is_not_recorded_as_accepted() {
    let mallory = SERVER.someone("mallory");
    mallory.get(LIST).expect_forbidden();

    SERVER.as_user("admin").get(&format!("{LIST}?justification=marker-{}", mallory.user())).expect(200);
    SERVER.wait_for_log(&["ADMIN_READ", &format!("marker-{}", mallory.user())]);
    assert!(SERVER.log_lines(&["ADMIN_READ", &format!("user={}", mallory.user())]).is_empty());
}

#[test]
fn a_justification_or_a_query_cannot_forge_a_line() {
    let marker = fresh_name("forged");
    let forged = format!("x\"\r\nADMIN_WRITE user={marker} action=evict \u{1b}[31m\u{2028}");
    let encoded: String = forged.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let admin = SERVER.as_user("admin");

    admin.get(&format!("{LIST}?justification={encoded}")).expect(200);
    admin.get(&format!("{LIST}?userId={encoded}")).expect(200);
    admin.post(&format!("{LIST}/search"), json!({"query": forged})).expect(200);

    SERVER.wait_for_log(&["ADMIN_READ", "action=listConversations", &marker]);
    SERVER.wait_for_log(&["ADMIN_READ", "action=searchConversations", &marker]);
    for line in SERVER.log_lines(&[&marker]) {
        assert!(line.contains("ADMIN_READ") && line.contains("user=admin"), "a forged line: {line:?}");
        assert!(!line.contains("x\"\r") && !line.contains('\u{1b}'), "raw control characters: {line:?}");
        // A reader that understands quoting must not see the forged part as fields of its own.
        assert!(line.contains("x\\\"") || !line.contains("x\""), "an unescaped quote: {line:?}");
    }
}

#[test]
fn keys_never_appear_in_the_log() {
    let key = fresh_name("secret-key-that-nobody-may-see");
    // In local mode a key is its own client id, which the audit names; so ask a server that has real keys.
    let server = server_with(&format!(
        "[auth]\nmode = \"jwt\"\n[auth.jwt]\nhmac_secret = \"an-hmac-secret-of-32-characters!!\"\n\
         [auth.api_keys]\nrobot = [\"{key}\"]\n[roles.admin]\nclients = [\"robot\"]\n"
    ));

    server.anonymous().with_key(&key).get(LIST).expect(200);
    server.anonymous().with_key(&format!("{key}x")).get(LIST).expect(401);

    server.wait_for_log(&["ADMIN_READ", "client=robot"]);
    assert!(server.log_lines(&[&key]).is_empty());
    assert!(server.log_lines(&["an-hmac-secret"]).is_empty());
}

// ---- statistics

const SINGLE: [(&str, &str, &str); 5] = [
    ("request-rate", "request_rate", "requests/sec"),
    ("error-rate", "error_rate", "percent"),
    ("latency-p95", "latency_p95", "seconds"),
    ("cache-hit-rate", "cache_hit_rate", "percent"),
    ("db-pool-utilization", "db_pool_utilization", "percent"),
];
const MULTI: [(&str, &str, &str); 2] = [
    ("store-latency-p95", "store_latency_p95", "seconds"),
    ("store-throughput", "store_throughput", "operations/sec"),
];

#[test]
fn statistics_without_a_prometheus_server_are_not_available() {
    for (name, _, _) in SINGLE.into_iter().chain(MULTI) {
        let answer = SERVER
            .as_user("admin")
            .get(&format!("/v1/admin/stats/{name}"))
            .expect_error(501, "prometheus_not_configured");
        assert!(answer.json["details"]["message"].is_string(), "{}", answer.describe());
    }
    SERVER.as_user("admin").get("/v1/admin/stats/no-such-thing").expect(404);
}

#[test]
fn statistics_from_a_prometheus_server_that_is_gone_are_unavailable() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let server = server_with(&format!("[prometheus]\nurl = \"{url}\"\n"));

    let answer = server
        .as_user("admin")
        .get("/v1/admin/stats/request-rate")
        .expect_error(503, "prometheus_unavailable");
    assert!(answer.json["details"]["message"].is_string());
}

/// A Prometheus that knows two series, one of them with values that are not numbers.
fn prometheus() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length, mut request) = (String::new(), 0, String::new());
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                if request.is_empty() {
                    request = line.clone();
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                line.clear();
            }
            let mut form = vec![0; length];
            let _ = std::io::Read::read_exact(&mut reader, &mut form);
            let asked = format!("{request}{}", String::from_utf8_lossy(&form));
            let values = json!([[1_700_000_000, "1.5"], [1_700_000_060, "NaN"], [1_700_000_120.5, "+Inf"]]);
            let result = if asked.contains("operation") {
                json!([
                    {"metric": {"operation": "append"}, "values": values},
                    {"metric": {"operation": "sync"}, "values": [[1_700_000_000, "2"]]},
                ])
            } else {
                json!([{"metric": {}, "values": values}])
            };
            let body =
                json!({"status": "success", "data": {"resultType": "matrix", "result": result}}).to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

#[test]
fn statistics_have_the_contracts_shapes() {
    let server = server_with(&format!("[prometheus]\nurl = \"{}\"\n", prometheus()));
    let admin = server.as_user("admin");
    let range = "start=2023-11-14T22:13:20Z&end=2023-11-14T22:15:20Z&step=60s";
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);

    for (name, metric, unit) in SINGLE {
        let answer = admin
            .get(&format!("/v1/admin/stats/{name}?{range}"))
            .expect(200)
            .expect_members(&["metric", "unit", "data"]);
        assert_eq!((&answer.json["metric"], &answer.json["unit"]), (&json!(metric), &json!(unit)));
        let data = answer.json["data"].as_array().unwrap();
        assert_eq!(data.len(), 3, "{}", answer.describe());
        assert_eq!(number(&data[0]["value"]), 1.5);
        assert!(data[0]["timestamp"].as_str().unwrap().starts_with("2023-11-14T22:13:20"), "{}", data[0]);
        for point in &data[1..] {
            assert_eq!(point.as_object().map(|o| o.len()), Some(2), "{point}");
            assert_eq!(point.get("value"), Some(&Value::Null), "NaN and infinities are null: {point}");
        }
    }
    for (name, metric, unit) in MULTI {
        let answer = admin
            .get(&format!("/v1/admin/stats/{name}?{range}"))
            .expect(200)
            .expect_members(&["metric", "unit", "series"]);
        assert_eq!((&answer.json["metric"], &answer.json["unit"]), (&json!(metric), &json!(unit)));
        let series = answer.json["series"].as_array().unwrap();
        assert_eq!(series.len(), 2, "{}", answer.describe());
        assert_members(&series[0], &["label", "data"], &answer.describe());
        assert_eq!((&series[0]["label"], &series[1]["label"]), (&json!("append"), &json!("sync")));
        assert_eq!(number(&series[1]["data"][0]["value"]), 2.0);
    }
    admin.get("/v1/admin/stats/request-rate").expect(200);
    admin.get("/v1/admin/stats/request-rate?start=yesterday").expect(400);
    admin.get("/v1/admin/stats/request-rate?step=often").expect(400);
}

#[test]
fn tenants_have_admins_of_their_own_lists() {
    let (one, two) = (Tenant::new(), Tenant::new());
    let id = start(&one.alice, "One");

    assert_eq!(one.listed("includeDeleted=true"), ["One"]);
    assert!(two.listed("includeDeleted=true").is_empty(), "tenant {} sees {}", two.name, one.name);
    two.admin.get(&format!("{LIST}/{id}")).expect_not_found("conversation", &id);
    two.admin.delete(&format!("{LIST}/{id}")).expect_not_found("conversation", &id);
}
