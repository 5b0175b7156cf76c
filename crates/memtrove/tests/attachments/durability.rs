//! Uploads that stop half-way: because the sender hangs up, or because the server dies.

use crate::support::*;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A connection on which one half of an upload of alice's was sent, and the other half.
fn half_an_upload(server: &TestServer) -> (TcpStream, Vec<u8>) {
    half_an_upload_of(server, "alice")
}

fn half_an_upload_of(server: &TestServer, user: &str) -> (TcpStream, Vec<u8>) {
    let address = server.url().strip_prefix("http://").expect("an address");
    let mut form = Form::default().file("half.bin", "application/octet-stream", &noise(3_000_000, 1)).bytes();
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "POST {ATTACHMENTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {user}\r\nContent-Type: {FORM}\r\n\
         Content-Length: {}\r\n\r\n",
        form.len()
    );
    stream.write_all(head.as_bytes()).expect("the head");
    let rest = form.split_off(form.len() / 2);
    stream.write_all(&form).expect("one half");
    (stream, rest)
}

#[test]
fn an_upload_may_take_longer_than_a_request_may() {
    let server = server_with("[server]\nrequest_timeout = \"1s\"");
    let (mut stream, rest) = half_an_upload(&server);
    // There is nothing to wait for but the time.
    std::thread::sleep(Duration::from_millis(1500));
    stream.write_all(&rest).expect("the other half");
    assert_eq!(status(&mut stream), "HTTP/1.1 201");
}

/// What the first line of an answer begins with.
fn status(stream: &mut TcpStream) -> String {
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer");
    String::from_utf8_lossy(&status).into_owned()
}

#[test]
fn whoever_uploads_a_lot_at_a_time_is_asked_to_come_again() {
    let server = local_server();
    let mut halves: Vec<_> = (0..8).map(|_| half_an_upload(&server)).collect();
    until("they have begun", || records(&server.stored()) == 8);

    let refused = try_upload(&server.as_user("alice"), "one-more.txt", "text/plain", b"x");
    assert_eq!(refused.expect_error(503, "overloaded").header("retry-after"), "5");
    upload(&server.as_user("bob"), "of-somebody-else.txt", "text/plain", b"x");

    let (mut stream, rest) = halves.pop().expect("a half");
    stream.write_all(&rest).expect("the other half");
    assert_eq!(status(&mut stream), "HTTP/1.1 201");
    until("there is room again", || {
        try_upload(&server.as_user("alice"), "one-more.txt", "text/plain", b"x").status == 201
    });
}

#[test]
fn a_node_takes_no_more_uploads_at_a_time_than_it_may() {
    let server = server_with("[attachments]\nuploads = 2");
    let halves = ["alice", "bob"].map(|user| half_an_upload_of(&server, user));
    until("they have begun", || records(&server.stored()) == 2);

    let carol = server.as_user("carol");
    try_upload(&carol, "a.txt", "text/plain", b"x").expect_error(503, "overloaded");
    drop(halves);
    until("there is room again", || try_upload(&carol, "a.txt", "text/plain", b"x").status == 201);
}

#[test]
fn an_upload_that_is_broken_off_leaves_nothing() {
    let server = local_server();
    for end in ["closed", "half closed"] {
        let (mut stream, _) = half_an_upload(&server);
        until("it has begun", || records(&server.stored()) == 1);
        match end {
            "closed" => drop(stream),
            _ => {
                stream.shutdown(Shutdown::Write).expect("no more bytes");
                let mut answer = String::new();
                let _ = stream.read_to_string(&mut answer);
                assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
            }
        }
        until(end, || records(&server.stored()) == 0 && files_in(&server).is_empty());
    }
}

#[test]
fn an_upload_of_a_server_that_dies_is_cleaned_up_by_the_next() {
    let quick = "[attachments]\nupload_expires_in = \"2s\"\nupload_refresh_interval = \"1s\"\ncleanup_interval = \"1s\"";
    let mut server = server_with(quick);
    let alice = server.as_user("alice");
    let kept = upload(&alice, "kept.bin", "application/octet-stream", &noise(100_000, 2));
    let (stream, _) = half_an_upload(&server);
    until("it has begun", || records(&server.stored()) == 2);

    server.kill();
    drop(stream);
    server.restart();

    until("nothing is left of it", || records(&server.stored()) == 1 && files_in(&server).len() == 1);
    let alice = server.as_user("alice");
    let got = read(&server, &alice, &at(&kept), &[]).expect(200);
    assert_eq!(digest(&got.bytes), digest(&noise(100_000, 2)), "and what was acknowledged is there");
}

#[test]
fn an_acknowledged_upload_survives_the_death_of_the_server() {
    let mut server = local_server();
    let conversation = start(&server.as_user("alice"), "Plans");
    for round in 0..3 {
        let alice = server.as_user("alice");
        let bytes = noise(50_000, round);
        let id = link(&alice, &conversation, &upload(&alice, "a.bin", "application/octet-stream", &bytes));
        server.kill();
        server.restart();
        let alice = server.as_user("alice");
        assert_eq!(read(&server, &alice, &at(&id), &[]).expect(200).bytes, bytes, "round {round}");
    }
}
