//! Addresses at which a file can be read without credentials, for a short time.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// The address of a file, and for how many seconds it is good.
#[track_caller]
fn address(who: &Client, id: &str) -> (String, u64) {
    let answer =
        who.get(&format!("{}/download-url", at(id))).expect(200).expect_members(&["url", "expiresIn"]);
    (answer.text_of("url"), answer.json["expiresIn"].as_u64().expect("seconds"))
}

#[track_caller]
fn follow(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Download {
    raw("GET", &format!("{}{path}", server.url()), headers)
}

#[test]
fn whoever_has_the_address_reads_the_file() {
    let alice = SERVER.someone("alice");
    let bytes = noise(100_000, 1);
    let id = upload(&alice, "größe 1.png", "image/png", &bytes);

    let (url, seconds) = address(&alice, &id);

    assert_eq!(seconds, 300);
    assert!(
        url.starts_with("/v1/attachments/download/") && url.ends_with("/gr%C3%B6%C3%9Fe%201.png"),
        "{url}"
    );
    let got = follow(&SERVER, &url, &[]).expect(200);
    assert_eq!(got.bytes, bytes);
    assert_eq!(got.header("content-type"), "image/png");
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert_eq!(got.header("content-security-policy"), "sandbox; default-src 'none'");
    let caching = got.header("cache-control").to_owned();
    let left: u64 =
        caching.strip_prefix("private, max-age=").and_then(|left| left.parse().ok()).expect(&caching);
    assert!((200..=300).contains(&left), "as long as the address can be used: {caching}");
    assert!(!got.header("vary").contains("Authorization"), "whoever reads it");
}

#[test]
fn parts_and_conditions_work_as_with_credentials() {
    let alice = SERVER.someone("alice");
    let (url, _) = address(&alice, &upload(&alice, "a.txt", "text/html", b"0123456789"));
    let part = follow(&SERVER, &url, &[("range", "bytes=2-4")]).expect(206);
    assert_eq!((part.bytes.as_slice(), part.header("content-range")), (&b"234"[..], "bytes 2-4/10"));
    assert_eq!(part.header("content-type"), "application/octet-stream");
    follow(&SERVER, &url, &[("range", "bytes=10-")]).expect(416);
    follow(&SERVER, &url, &[("if-none-match", &format!("\"{}\"", digest(b"0123456789")))]).expect(304);
}

#[test]
fn the_name_in_the_address_is_for_people() {
    let alice = SERVER.someone("alice");
    let (url, _) = address(&alice, &upload(&alice, "a.txt", "text/plain", b"a"));
    let (signed, _) = url.rsplit_once('/').expect("a name");
    let got = follow(&SERVER, &format!("{signed}/anything%20else.html"), &[]).expect(200);
    assert_eq!(got.header("content-disposition"), "inline; filename=\"a.txt\"");
    let (unnamed, _) = address(&alice, &{
        let form = Form::default().part("Content-Disposition: form-data; name=\"file\"", b"x");
        alice.send("POST", ATTACHMENTS, form.body()).expect(201).id()
    });
    follow(&SERVER, &unnamed, &[]).expect(200);
}

#[test]
fn an_address_that_was_changed_leads_nowhere() {
    let alice = SERVER.someone("alice");
    let (url, _) = address(&alice, &upload(&alice, "a.txt", "text/plain", b"a"));
    let (other, _) = address(&alice, &upload(&alice, "a.txt", "text/plain", b"b"));
    let token = |url: &str| url.split('/').nth(4).expect("a token").to_owned();
    let (one, two) = (token(&url), token(&other));
    let half = one.len() / 2;
    let mut wrong = vec![
        String::from("x"),
        one[..one.len() - 1].to_owned(),
        one[1..].to_owned(),
        format!("{one}A"),
        format!("{}{}", &one[..half], &two[half..]),
        "%00".to_owned(),
        "%F0%9F%A6%80".to_owned(),
        "A".repeat(5000),
    ];
    // Every character counts.
    wrong.extend((0..one.len() - 1).step_by(7).map(|at| {
        let other = if &one[at..=at] == "A" { "B" } else { "A" };
        format!("{}{other}{}", &one[..at], &one[at + 1..])
    }));
    for token in wrong.into_iter().filter(|token| *token != one) {
        let answer = SERVER.anonymous().get(&format!("/v1/attachments/download/{token}/a.txt"));
        assert_eq!(answer.status, 403, "{token}: {}", answer.describe());
    }
    follow(&SERVER, &url, &[]).expect(200);
}

#[test]
fn an_address_is_good_for_its_time_and_no_longer() {
    let server = server_with("[attachments]\ndownload_url_expires_in = \"2s\"");
    let alice = server.as_user("alice");
    let (url, seconds) = address(&alice, &upload(&alice, "a.txt", "text/plain", b"a"));
    assert_eq!(seconds, 2);
    follow(&server, &url, &[]).expect(200);
    until("it expires", || server.anonymous().get(&url).status == 403);
    server.anonymous().get(&url).expect_forbidden();
}

#[test]
fn an_address_of_what_is_gone_is_refused() {
    let alice = SERVER.someone("alice");
    let id = upload(&alice, "a.txt", "text/plain", b"a");
    let (url, _) = address(&alice, &id);
    alice.delete(&at(&id)).expect(204);
    SERVER.anonymous().get(&url).expect_forbidden();
}

#[test]
fn addresses_survive_a_restart_and_a_secret_makes_others() {
    let mut server = local_server();
    let alice = server.as_user("alice");
    let id = upload(&alice, "a.txt", "text/plain", b"a");
    let (url, _) = address(&alice, &id);
    server.restart();
    follow(&server, &url, &[]).expect(200);

    let other = server_with("[attachments]\ndownload_url_secret = \"another secret of thirty-two bytes\"");
    assert_eq!(other.anonymous().get(&url).status, 403, "of another server");
}
