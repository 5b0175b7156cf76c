//! Files that the server is to fetch from the web, and what it must not be made to reach.

use crate::support::*;
use std::net::TcpListener;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// Has a file fetched; its id.
#[track_caller]
fn fetch(who: &Client, url: &str) -> String {
    who.post(ATTACHMENTS, json!({"sourceUrl": url})).expect(201).id()
}

#[track_caller]
fn assert_fails(who: &Client, id: &str, why: &str) {
    until(why, || who.get(&at(id)).status == 422);
    who.get(&at(id)).expect_error(422, "download_failed");
    who.get(&format!("{}/download-url", at(id))).expect_error(422, "download_failed");
}

#[test]
fn a_source_is_answered_before_it_is_fetched() {
    let alice = SERVER.someone("alice");
    let body = json!({"sourceUrl": "http://nowhere.invalid/plan.png", "name": "plan.png", "contentType": "image/png"});
    let answer = alice.post(&format!("{ATTACHMENTS}?expiresIn=PT2H"), body).expect(201);
    let members = ["id", "href", "contentType", "filename", "expiresAt", "status", "sourceUrl"];
    let answer = answer.expect_members(&members);
    assert_eq!(answer.json["status"], "downloading");
    assert_eq!(answer.json["sourceUrl"], "http://nowhere.invalid/plan.png");
    assert_eq!(
        (&answer.json["filename"], &answer.json["contentType"]),
        (&json!("plan.png"), &json!("image/png"))
    );
    assert_eq!(answer.json["href"], at(&answer.id()));
}

#[test]
fn only_the_web_is_a_source() {
    let alice = SERVER.someone("alice");
    for url in [
        "ftp://example.org/x",
        "file:///etc/passwd",
        "gopher://example.org",
        "data:text/plain,x",
        "javascript:alert(1)",
        "//example.org/x",
        "example.org/x",
        "",
        "http://example.org/\r\nX-Evil: 1",
        "http://example.org/a b",
        "http://example.org/\u{0}",
    ] {
        alice.post(ATTACHMENTS, json!({"sourceUrl": url})).expect_violation("sourceUrl");
    }
    alice.post(ATTACHMENTS, json!({})).expect_violation("sourceUrl");
    alice.post(ATTACHMENTS, json!({"sourceUrl": null})).expect_violation("sourceUrl");
    alice.post(ATTACHMENTS, json!({"sourceUrl": 7})).expect_violation("sourceUrl");
    alice.send("POST", ATTACHMENTS, Body::None).expect_violation("body");
    let long = format!("http://example.org/{}", "x".repeat(2048));
    alice.post(ATTACHMENTS, json!({"sourceUrl": long})).expect_violation("sourceUrl");
    let named = |name: &str, value: &str| json!({"sourceUrl": "https://example.org/x", name: value});
    alice.post(ATTACHMENTS, named("name", &"ä".repeat(256))).expect_violation("name");
    alice.post(ATTACHMENTS, named("contentType", "nothing")).expect_violation("contentType");
    let late = alice.post(&format!("{ATTACHMENTS}?expiresIn=P2D"), named("name", "x"));
    assert_eq!(late.status, 400, "{}", late.describe());
}

#[test]
fn nothing_on_this_machine_or_its_network_is_reached() {
    // Whoever knocks is seen.
    let listeners = ["127.0.0.1:0", "[::1]:0"].map(|address| TcpListener::bind(address).ok());
    let ports: Vec<u16> = listeners
        .iter()
        .flatten()
        .map(|listener| listener.local_addr().expect("its address").port())
        .collect();
    let port = ports[0];
    // The port is not what keeps it away.
    let server = server_with(&format!("[attachments]\nfetch_ports = {:?}", [&ports[..], &[80]].concat()));
    let alice = server.as_user("alice");
    let mut urls = vec![
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://LOCALHOST.:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.0.0.1:{port}/"),
        format!("http://0177.0.0.1:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://127.8.9.10:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://[::127.0.0.1]:{port}/"),
        format!("http://[64:ff9b::7f00:1]:{port}/"),
        format!("http://[2002:7f00:1::]:{port}/"),
        format!("http://user:secret@127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
    ];
    urls.extend(ports.iter().map(|port| format!("http://[::1]:{port}/")));
    urls.extend(ports.iter().map(|port| format!("http://[::]:{port}/")));
    urls.extend(
        [
            "10.0.0.1",
            "172.16.0.1",
            "192.168.0.1",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "[fd00::1]",
            "[fe80::1]",
        ]
        .map(|host| format!("http://{host}/")),
    );
    urls.push("http://169.254.169.254/latest/meta-data/".to_owned());
    let ids: Vec<(String, Answer)> = urls
        .into_iter()
        .map(|url| (url.clone(), alice.post(ATTACHMENTS, json!({"sourceUrl": url}))))
        .collect();
    for (url, answer) in ids {
        match answer.status {
            // Refused before anything was tried.
            400 => {}
            _ => assert_fails(&alice, &answer.expect(201).id(), &url),
        }
    }
    for listener in listeners.iter().flatten() {
        listener.set_nonblocking(true).expect("a listener that does not wait");
        let knocked = listener.accept();
        assert!(knocked.is_err(), "somebody came: {knocked:?}");
    }
    let log = server.log();
    assert!(!log.contains("secret@"), "credentials of an address stay out of the log");
}

#[test]
fn what_an_address_says_of_itself_is_refused_at_once() {
    let alice = SERVER.someone("alice");
    for url in [
        "http://127.0.0.1/x",
        "http://0x7f.1/x",
        "https://[::1]/x",
        "http://10.0.0.1/x",
        "http://169.254.169.254/latest/meta-data/",
        "http://168.63.129.16/machine",
        "https://me:secret@example.org/x",
        "http://example.org:22/x",
    ] {
        let answer = alice.post(ATTACHMENTS, json!({"sourceUrl": url})).expect_violation("sourceUrl");
        assert!(!answer.text.contains("secret"), "{}", answer.describe());
    }
}

#[test]
fn a_name_that_leads_nowhere_is_a_failed_file_and_can_be_deleted() {
    let alice = SERVER.someone("alice");
    let id = fetch(&alice, "http://nowhere.invalid/x");
    assert_fails(&alice, &id, "it fails");
    alice.delete(&at(&id)).expect(204);
    alice.get(&at(&id)).expect_not_found("attachment", &id);
}

#[test]
fn while_it_is_fetched_its_source_has_the_bytes() {
    let server = local_server();
    let (alice, bob) = (server.as_user("alice"), server.as_user("bob"));
    let source = "http://nowhere.invalid/plan.png?a=b";
    let id = fetch(&alice, source);
    assert_fails(&alice, &id, "it fails");
    // As it is while its source keeps the server waiting.
    let stored = server.stored();
    assert_eq!(
        stored.execute(&format!("UPDATE attachments SET status = 2 WHERE id = {}", stored.id(&id)), b""),
        1
    );

    let answer = alice.get(&at(&id)).expect(307);
    assert_eq!((answer.header("location"), answer.header("cache-control")), (source, "no-cache"));
    let url = alice.get(&format!("{}/download-url", at(&id))).expect(200);
    assert_eq!(url.json, json!({"url": source, "expiresIn": 0}));
    bob.get(&at(&id)).expect_forbidden();

    // Whoever brought it knows where it leads; others, whose browser may take their credentials along, are not sent there.
    let conversation = start(&alice, "Plans");
    let id = link(&alice, &conversation, &id);
    share(&alice, &conversation, &bob, "reader");
    alice.get(&at(&id)).expect(307);
    let admin = server.as_user("admin");
    for (who, path) in [(&bob, at(&id)), (&admin, format!("/v1/admin/attachments/{id}"))] {
        let bytes = if who.user() == "admin" { format!("{path}/content") } else { path.clone() };
        who.get(&bytes).expect_error(409, "upload_in_progress");
        who.get(&format!("{path}/download-url")).expect_error(409, "upload_in_progress");
    }

    stored.execute(&format!("UPDATE attachments SET status = 1 WHERE id = {}", stored.id(&id)), b"");
    alice.get(&at(&id)).expect_error(409, "upload_in_progress");
    alice.get(&format!("{}/download-url", at(&id))).expect_error(409, "upload_in_progress");
}

#[test]
fn fetching_can_be_switched_off() {
    let server = server_with("[attachments]\nfetch_sources = false");
    let alice = server.as_user("alice");
    let answer = alice.post(ATTACHMENTS, json!({"sourceUrl": "https://example.org/x"}));
    assert!((400..500).contains(&answer.status), "{}", answer.describe());
    upload(&alice, "a.txt", "text/plain", b"a");
}
