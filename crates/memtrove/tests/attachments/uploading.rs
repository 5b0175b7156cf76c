//! Bringing a file: what a form may look like, what comes back, and what is refused.

use crate::support::*;
use memtrove_core::Timestamp;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const MIB: usize = 1024 * 1024;
const UPLOADED: [&str; 8] =
    ["id", "href", "contentType", "filename", "size", "sha256", "expiresAt", "status"];

#[track_caller]
fn send(who: &Client, form: Form) -> Answer {
    who.send("POST", ATTACHMENTS, form.body())
}

/// The bytes that are kept under an id.
#[track_caller]
fn kept(who: &Client, id: &str) -> Vec<u8> {
    read(&SERVER, who, &at(id), &[]).expect(200).bytes
}

#[test]
fn an_upload_says_what_was_stored_and_for_how_long() {
    let alice = SERVER.someone("alice");
    let bytes = noise(3000, 1);

    let answer = try_upload(&alice, "plan.png", "image/png", &bytes).expect(201).expect_members(&UPLOADED);

    assert_eq!(answer.json["href"], format!("/v1/attachments/{}", answer.id()));
    assert_eq!(answer.json["contentType"], "image/png");
    assert_eq!(answer.json["filename"], "plan.png");
    assert_eq!(answer.json["size"], 3000);
    assert_eq!(answer.json["sha256"], digest(&bytes));
    assert_eq!(answer.json["status"], "ready");
    assert_eq!(kept(&alice, &answer.id()), bytes);
}

#[test]
fn a_file_is_kept_an_hour_unless_said_otherwise_and_a_day_at_most() {
    let alice = SERVER.someone("alice");
    let lasting = |query: &str| {
        let form = Form::default().file("a.txt", "text/plain", b"a");
        alice.send("POST", &format!("{ATTACHMENTS}{query}"), form.body())
    };
    let minutes = |answer: Answer| {
        let id = answer.expect(201).id();
        let admin = SERVER.as_user("admin").get(&format!("/v1/admin/attachments/{id}")).expect(200);
        let instant =
            |member: &str| Timestamp::parse(&admin.text_of(member)).expect("an instant").as_micros();
        (instant("expiresAt") - instant("createdAt") + 30_000_000) / 60_000_000
    };
    assert_eq!(minutes(lasting("")), 60);
    assert_eq!(minutes(lasting("?expiresIn=")), 60);
    assert_eq!(minutes(lasting("?expiresIn=PT10M")), 10);
    assert_eq!(minutes(lasting("?expiresIn=PT24H")), 24 * 60);
    for wrong in ["PT24H1S", "P2D", "PT0S", "-PT1H", "1h", "soon", "P1Y", "%00"] {
        let answer = lasting(&format!("?expiresIn={wrong}"));
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.describe());
    }
}

#[test]
fn the_file_may_stand_anywhere_in_the_form() {
    let alice = SERVER.someone("alice");
    let field = "Content-Disposition: form-data; name=\"comment\"";
    let decoy =
        "Content-Disposition: form-data; name=\"other\"; filename=\"decoy.txt\"\r\nContent-Type: text/plain";
    let form = Form::default()
        .part(field, b"before")
        .part(decoy, &noise(100_000, 2))
        .file("real.txt", "text/plain", b"real")
        .part(field, b"after");

    let answer = send(&alice, form).expect(201);

    assert_eq!(answer.json["filename"], "real.txt");
    assert_eq!(kept(&alice, &answer.id()), b"real");
}

#[test]
fn a_form_without_a_file_is_refused() {
    let alice = SERVER.someone("alice");
    send(&alice, Form::default()).expect_violation("file");
    send(&alice, Form::default().part("Content-Disposition: form-data; name=\"files\"", b"x"))
        .expect_violation("file");
    send(&alice, Form::default().part("Content-Disposition: form-data; filename=\"file\"", b"x"))
        .expect_violation("file");
    send(&alice, Form::default().part("Content-Type: text/plain", b"x")).expect_violation("file");
}

#[test]
fn a_second_file_is_refused_and_the_first_is_not_kept() {
    let (server, alice) = (local_server(), "alice");
    let alice = server.as_user(alice);
    let form = Form::default().file("a.txt", "text/plain", b"one").file("b.txt", "text/plain", b"two");

    alice.send("POST", ATTACHMENTS, form.body()).expect_violation("file");

    until("nothing is left", || records(&server.stored()) == 0 && files_in(&server).is_empty());
}

#[test]
fn a_file_without_a_name_or_type_is_bytes() {
    let alice = SERVER.someone("alice");
    let answer =
        send(&alice, Form::default().part("Content-Disposition: form-data; name=\"file\"", b"x")).expect(201);
    let without_name: Vec<&str> = UPLOADED.into_iter().filter(|name| *name != "filename").collect();
    let answer = answer.expect_members(&without_name);
    assert_eq!(answer.json["contentType"], "application/octet-stream");
}

#[test]
fn an_empty_file_is_a_file() {
    let alice = SERVER.someone("alice");
    let answer = try_upload(&alice, "empty.txt", "text/plain", b"").expect(201);
    assert_eq!(answer.json["size"], 0);
    assert_eq!(answer.json["sha256"], digest(b""));
    let read = read(&SERVER, &alice, &at(&answer.id()), &[]).expect(200);
    assert_eq!((read.bytes.as_slice(), read.header("content-length")), (&b""[..], "0"));
}

#[test]
fn bytes_that_look_like_the_form_are_kept_as_they_are() {
    let alice = SERVER.someone("alice");
    for bytes in [
        &b"\r\n"[..],
        b"\r\n--memtrove-test",
        b"--memtrove-test-boundary",
        b"\r\n\r\n--memtrove-test-boundar\r\n-",
        b"Content-Disposition: form-data; name=\"file\"\r\n\r\nx",
    ] {
        // Byte by byte, so that every border falls between two pieces.
        for piece in [1, 7, 10_000] {
            let form = Form::default().file("x.bin", "application/octet-stream", bytes);
            let id = alice.send("POST", ATTACHMENTS, form.chunked(piece)).expect(201).id();
            assert_eq!(kept(&alice, &id), bytes, "in pieces of {piece}");
        }
    }
}

#[test]
fn names_are_kept_without_folders_and_in_any_script() {
    let alice = SERVER.someone("alice");
    for (disposition, name) in [
        (r#"filename="../../etc/passwd""#, Some("passwd")),
        (r#"filename="C:\\photos\\cat.png""#, Some("cat.png")),
        (r#"filename="größe 猫.png""#, Some("größe 猫.png")),
        (r#"filename*=UTF-8''gr%C3%B6%C3%9Fe.png"#, Some("größe.png")),
        (r#"filename="plain.png"; filename*=UTF-8''%E7%8C%AB.png"#, Some("猫.png")),
        (r#"filename="a\"b;c=d.txt""#, Some("a\"b;c=d.txt")),
        (r#"filename="""#, None),
        (r#"filename="..""#, None),
    ] {
        let head = format!(
            "Content-Disposition: form-data; name=\"file\"; {disposition}\r\nContent-Type: image/png"
        );
        let answer = send(&alice, Form::default().part(&head, b"x")).expect(201);
        assert_eq!(answer.json.get("filename").and_then(Value::as_str), name, "{disposition}");
    }
}

#[test]
fn names_and_types_that_could_not_be_given_back_are_refused() {
    let alice = SERVER.someone("alice");
    let long = format!("{}.png", "ä".repeat(252));
    for name in [long.as_str(), "a%0D%0ASet-Cookie:%20x", "a%00b"] {
        let head = match name.contains('%') {
            true => format!("Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''{name}"),
            false => format!("Content-Disposition: form-data; name=\"file\"; filename=\"{name}\""),
        };
        send(&alice, Form::default().part(&head, b"x")).expect_violation("filename");
    }
    let fits = "ä".repeat(255);
    assert_eq!(try_upload(&alice, &fits, "image/png", b"x").expect(201).json["filename"], fits);
    let long = format!("image/{}", "x".repeat(122));
    for content_type in
        ["image", "image/", "no type", "image/png, text/html", "image/png;a=b,text/html", &long]
    {
        try_upload(&alice, "a.png", content_type, b"x").expect_violation("contentType");
    }
    let fits = format!("image/{}", "x".repeat(121));
    assert_eq!(try_upload(&alice, "a.png", &fits, b"x").expect(201).json["contentType"], fits);
}

#[test]
fn a_broken_form_is_refused() {
    let server = local_server();
    let alice = server.as_user("alice");
    let whole = Form::default().file("a.txt", "text/plain", b"some bytes").bytes();
    let cases = [
        (FORM, whole[..whole.len() / 2].to_vec()),
        (FORM, whole[..whole.len() - 6].to_vec()),
        (FORM, Vec::new()),
        (FORM, b"no form at all".to_vec()),
        ("multipart/form-data", whole.clone()),
        ("multipart/form-data; boundary=another", whole.clone()),
    ];
    for (content_type, bytes) in cases {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let answer = alice.send("POST", ATTACHMENTS, Body::Raw { content_type: Some(content_type), bytes });
        assert_eq!(answer.status, 400, "{content_type}: {shown}: {}", answer.describe());
    }
    for content_type in [Some("text/plain"), Some("multipart/mixed; boundary=memtrove-test-boundary")] {
        let body = Body::Raw { content_type, bytes: whole.clone() };
        alice.send("POST", ATTACHMENTS, body).expect_error(415, "unsupported_media_type");
    }
    until("nothing is left", || records(&server.stored()) == 0 && files_in(&server).is_empty());
}

#[test]
fn what_does_not_become_a_part_is_not_waited_for() {
    let alice = SERVER.someone("alice");
    let letters = vec![b'x'; 5 * MIB];
    let before = Form(letters.clone()).file("a.txt", "text/plain", b"a");
    let head = Form::default().part(&format!("X-Head: {}", "x".repeat(5 * MIB)), b"a");
    for form in [before, head] {
        for body in [form.clone().body(), form.chunked(100_000)] {
            let answer = alice.send("POST", ATTACHMENTS, body);
            answer.expect_message(400, "bad_request", "the head of a part is too long");
        }
    }
}

#[test]
fn ten_mebibytes_fit_and_one_more_byte_does_not() {
    let server = local_server();
    let alice = server.as_user("alice");
    let bytes = noise(10 * MIB + 1, 3);
    let fits = try_upload(&alice, "big.bin", "application/octet-stream", &bytes[..10 * MIB]).expect(201);
    assert_eq!(fits.json["sha256"], digest(&bytes[..10 * MIB]));

    for body in [
        Form::default().file("big.bin", "application/octet-stream", &bytes).body(),
        Form::default().file("big.bin", "application/octet-stream", &bytes).chunked(100_000),
    ] {
        let answer = alice.send("POST", ATTACHMENTS, body).expect_error(413, "file_too_large");
        assert_eq!(answer.json["details"]["maxBytes"], 10 * MIB);
        assert!(
            answer.json["details"]["actualBytes"].as_u64() > Some(10 * MIB as u64),
            "{}",
            answer.describe()
        );
    }
    until("what was refused is gone", || records(&server.stored()) == 1 && files_in(&server).len() == 1);
}

#[test]
fn whoever_sends_far_too_much_is_told_so() {
    let server = server_with("[attachments]\nmax_size = \"100 KiB\"");
    let alice = server.as_user("alice");
    let form = || Form::default().file("big.bin", "application/octet-stream", &noise(8 * MIB, 4));
    for body in [form().body(), form().chunked(64 * 1024)] {
        let answer = alice.send("POST", ATTACHMENTS, body).expect_error(413, "file_too_large");
        assert_eq!(answer.json["details"]["maxBytes"], 100 * 1024);
    }
    // Not the file is too long here, but everything around it.
    let around = Form::default()
        .part("Content-Disposition: form-data; name=\"comment\"", &noise(4 * MIB, 5))
        .file("a.txt", "text/plain", b"a");
    alice.send("POST", ATTACHMENTS, around.chunked(64 * 1024)).expect_error(413, "payload_too_large");
    let json = format!("{{\"sourceUrl\": \"{}\"}}", "x".repeat(200_000));
    alice.send("POST", ATTACHMENTS, Body::json_text(json)).expect_error(413, "payload_too_large");
}

#[test]
fn where_there_are_no_attachments_none_are_taken() {
    let server = server_with("[attachments]\nstore = \"none\"");
    let alice = server.as_user("alice");
    try_upload(&alice, "a.txt", "text/plain", b"a").expect_error(409, "conflict");
    let id = fresh_id();
    alice.get(&at(&id)).expect_not_found("attachment", &id);
}

#[test]
fn uploads_at_the_same_time_do_not_mix() {
    let users = ["alice", "bob"].map(|role| SERVER.someone(role));
    let ids = at_once(12, |n| {
        let bytes = noise(300_000 + n, n as u64);
        let form = Form::default().file(&format!("{n}.bin"), "application/octet-stream", &bytes);
        users[n % 2].send("POST", ATTACHMENTS, form.chunked(10_000)).expect(201).id()
    });
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(digest(&kept(&users[n % 2], id)), digest(&noise(300_000 + n, n as u64)), "upload {n}");
    }
}

#[test]
fn a_large_file_is_never_held_in_memory() {
    let server = server_with("[attachments]\nmax_size = \"256 MiB\"");
    let alice = server.as_user("alice");
    upload(&alice, "warm.bin", "application/octet-stream", &noise(2 * MIB, 6));
    let before = peak_kib(&server);
    let bytes = noise(160 * MIB, 7);

    let form = Form::default().file("large.bin", "application/octet-stream", &bytes);
    let id = alice.send("POST", ATTACHMENTS, form.body()).expect(201).id();
    assert_eq!(digest(&read(&server, &alice, &at(&id), &[]).expect(200).bytes), digest(&bytes));

    let grown = peak_kib(&server).saturating_sub(before);
    assert!(grown < 64 * 1024, "160 MiB went through, and the process grew by {grown} KiB");
}

/// The most memory a process has ever had.
fn peak_kib(server: &TestServer) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
