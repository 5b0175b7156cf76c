//! Every file of a tenant, for admins and auditors: lists, reading, deleting, roles, reasons and the audit log.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const LIST: &str = "/v1/admin/attachments";
const SUMMARY: [&str; 10] = [
    "id",
    "storageKey",
    "filename",
    "contentType",
    "size",
    "sha256",
    "userId",
    "expiresAt",
    "createdAt",
    "status",
];

/// A tenant with its admin and a user.
struct Tenant {
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
        }
    }

    /// The ids that a list with this query shows.
    #[track_caller]
    fn listed(&self, query: &str) -> Vec<String> {
        self.admin.get(&format!("{LIST}?{query}")).expect_page().ids()
    }
}

#[test]
fn the_list_shows_everybodys_files_newest_first() {
    let t = Tenant::new();
    let first = upload(&t.alice, "a.txt", "text/plain", b"a");
    let second = upload(&t.bob, "b.txt", "text/plain", b"b");
    let page = t.admin.get(LIST).expect_page();
    assert_eq!(page.ids(), [second, first]);
    page.data.iter().for_each(|item| assert_members(item, &SUMMARY, "an AdminAttachmentSummary"));
    assert_eq!(page.all("userId"), [t.bob.user(), t.alice.user()]);
}

#[test]
fn the_list_filters_by_user_entry_and_state() {
    let t = Tenant::new();
    let conversation = start(&t.alice, "Plans");
    let loose = upload(&t.alice, "a.txt", "text/plain", b"a");
    let of_bob = upload(&t.bob, "b.txt", "text/plain", b"b");
    let uploaded = upload(&t.alice, "c.txt", "text/plain", b"c");
    let entry = try_say(&t.alice, &conversation, json!([{"attachmentId": uploaded}])).expect(201);
    let linked = referred(&entry.json)[0].clone();
    let form = Form::default().file("d.txt", "text/plain", b"d");
    let brief = t.bob.send("POST", &format!("{ATTACHMENTS}?expiresIn=PT1S"), form.body()).expect(201).id();
    until("one expires", || t.bob.get(&at(&brief)).status == 404);

    assert_eq!(t.listed(&format!("userId={}", t.alice.user())), [linked.as_str(), &loose]);
    assert_eq!(t.listed(&format!("entryId={}", entry.id())), [linked.as_str()]);
    assert_eq!(t.listed(&format!("entryId={}", fresh_id())), [""; 0]);
    assert_eq!(t.listed("status=linked"), [linked.as_str()]);
    assert!(!t.listed("status=unlinked").contains(&linked));
    assert!(t.listed("status=UNLINKED").contains(&of_bob));
    // The clean-up may have come by already.
    assert!(t.listed("status=expired").iter().all(|id| *id == brief));
    assert_eq!(t.listed(&format!("status=all&userId={}", t.alice.user())).len(), 2);
    t.admin.get(&format!("{LIST}?status=new")).expect_violation("status");
    t.admin.get(&format!("{LIST}?entryId=x")).expect_violation("entryId");
}

#[test]
fn the_list_is_paged() {
    let t = Tenant::new();
    let mut all: Vec<String> =
        (0..5).map(|n| upload(&t.alice, &format!("{n}.txt"), "text/plain", b"x")).collect();
    all.reverse();
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let page = t.admin.get(&format!("{LIST}?limit=2&after={after}")).expect_page();
        seen.extend(page.ids());
        let Some(next) = page.after else { break };
        after = next;
    }
    assert_eq!(seen, all);
    assert_eq!(t.admin.get(&format!("{LIST}?limit=5")).expect_page().after, None);
    for limit in ["0", "1001", "x", "-1"] {
        t.admin.get(&format!("{LIST}?limit={limit}")).expect_violation("limit");
    }
    t.admin.get(&format!("{LIST}?after={}", fresh_id())).expect_violation("after");
    t.admin.get(&format!("{LIST}?after=x")).expect_violation("after");
}

#[test]
fn any_file_can_be_looked_at_and_read() {
    let t = Tenant::new();
    let id = upload(&t.alice, "a.html", "text/html", b"<p>");
    let one = format!("{LIST}/{id}");

    let record = t.admin.get(&one).expect(200);
    let members = [&SUMMARY[..], &["refCount"]].concat();
    assert_members(&record.json, &members, "an AdminAttachment");
    assert_eq!(record.json["refCount"], 1);
    assert_eq!(record.json["userId"], t.alice.user());

    let content = t.admin.get(&format!("{one}/content")).expect(200);
    assert_eq!(content.text, "<p>");
    assert_eq!(content.header("content-type"), "application/octet-stream");
    assert_eq!(content.header("etag"), format!("\"{}\"", digest(b"<p>")));
    let kept = "private, max-age=86400, immutable";
    assert_eq!(content.header("cache-control"), kept, "a viewer keeps what it read");
    assert!(content.header("vary").contains("Authorization"), "{}", content.header("vary"));
    let known = t.admin.with_header("if-none-match", content.header("etag"));
    let known = known.get(&format!("{one}/content")).expect(304);
    assert_eq!((known.text.as_str(), known.header("cache-control")), ("", kept));
    assert_eq!(known.header("etag"), content.header("etag"));
    t.admin.with_header("if-none-match", "\"another\"").get(&format!("{one}/content")).expect(200);
    let part = t.admin.with_header("range", "bytes=1-1").get(&format!("{one}/content")).expect(206);
    assert_eq!(part.text, "p");

    let url = t.admin.get(&format!("{one}/download-url")).expect(200).expect_members(&["url", "expiresIn"]);
    assert_eq!(SERVER.anonymous().get(&url.text_of("url")).expect(200).text, "<p>");

    let unknown = fresh_id();
    for id in [unknown.as_str(), "not-a-uuid"] {
        for tail in ["", "/content", "/download-url"] {
            t.admin.get(&format!("{LIST}/{id}{tail}")).expect_not_found("attachment", id);
        }
        t.admin.delete(&format!("{LIST}/{id}")).expect_not_found("attachment", id);
    }
}

#[test]
fn an_admin_deletes_what_an_entry_refers_to() {
    let t = Tenant::new();
    let conversation = start(&t.alice, "Plans");
    let id = link(&t.alice, &conversation, &upload(&t.alice, "a.txt", "text/plain", b"a"));
    t.admin.delete(&format!("{LIST}/{id}")).expect(204);
    t.alice.get(&at(&id)).expect_not_found("attachment", &id);
    t.admin.get(&format!("{LIST}/{id}/content")).expect_not_found("attachment", &id);
    t.admin.delete(&format!("{LIST}/{id}")).expect_not_found("attachment", &id);
    let entries = t.alice.get(&format!("/v1/conversations/{conversation}/entries")).expect_page();
    assert_eq!(entries.data.len(), 1, "the entry stays as it is");
}

#[test]
fn roles_and_reasons_are_required_and_written_down() {
    let server = server_with("[admin]\nrequire_justification = true\n[roles.auditor]\nusers = [\"ann\"]\n");
    let (admin, auditor, alice) = (server.as_user("admin"), server.as_user("ann"), server.as_user("alice"));
    let id = upload(&alice, "a.txt", "text/plain", b"a");
    let one = format!("{LIST}/{id}");
    let reads = [LIST.to_owned(), one.clone(), format!("{one}/content"), format!("{one}/download-url")];

    for path in &reads {
        alice.get(&format!("{path}?justification=x")).expect_forbidden();
        auditor.get(path).expect_error(400, "JUSTIFICATION_REQUIRED");
        auditor.get(&format!("{path}?justification=case%2042")).expect(200);
        admin.with_header("x-justification", "case 43").get(path).expect(200);
    }
    let reason = || Body::Json(json!({"justification": "case 44"}));
    alice.send("DELETE", &one, reason()).expect_forbidden();
    auditor.send("DELETE", &one, reason()).expect_forbidden();
    admin.delete(&one).expect_error(400, "JUSTIFICATION_REQUIRED");
    admin.send("DELETE", &one, reason()).expect(204);

    for (action, reason) in [
        ("listAttachments", "case 42"),
        ("getAttachment", "case 42"),
        ("getAttachmentContent", "case 43"),
        ("getAttachmentDownloadUrl", "case 42"),
    ] {
        server.wait_for_log(&["ADMIN_READ", &format!("action={action}"), reason]);
    }
    server.wait_for_log(&["ADMIN_WRITE", "action=deleteAttachment", &id, "case 44"]);
    assert!(server.log_lines(&["ADMIN_", "a.txt"]).is_empty(), "names of files are content");
}
