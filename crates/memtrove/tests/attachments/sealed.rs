//! Files of a server that encrypts what it stores.

use crate::support::*;

const KEY: &str = "KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=";
/// What is in every file here, and must be nowhere on the disk.
const SECRET: &str = "zinnober";

#[test]
fn bytes_names_and_sources_are_sealed_and_read_as_before() {
    let server = server_with(&format!("[encryption.dek]\nkey = \"{KEY}\""));
    let alice = server.as_user("alice");
    let text = format!("{SECRET} ").repeat(40_000).into_bytes();
    let conversation = start(&alice, "Plans");
    let id = link(&alice, &conversation, &upload(&alice, &format!("{SECRET}.txt"), "text/plain", &text));
    alice.post(ATTACHMENTS, json!({"sourceUrl": format!("http://{SECRET}.invalid/")})).expect(201);

    let whole = read(&server, &alice, &at(&id), &[]).expect(200);
    assert!(whole.bytes == text);
    assert_eq!(whole.header("content-disposition"), format!("inline; filename=\"{SECRET}.txt\""));
    for (from, to) in [(0, 1), (65_535, 65_537), (131_072, 200_000), (text.len() - 1, text.len())] {
        let part =
            read(&server, &alice, &at(&id), &[("range", &format!("bytes={from}-{}", to - 1))]).expect(206);
        assert!(part.bytes == text[from..to], "{from}..{to}");
    }
    assert!(!files_in(&server).is_empty());
    for file in files_in(&server) {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()), "{}", file.display());
    }
    assert_eq!(server.stored().holding(SECRET), [""; 0]);
}

#[test]
fn bytes_that_were_changed_behind_its_back_are_not_given_out() {
    let server = server_with(&format!("[encryption.dek]\nkey = \"{KEY}\""));
    let alice = server.as_user("alice");
    let id = upload(&alice, "a.bin", "application/octet-stream", &noise(200_000, 1));
    let read_whole = || {
        RUNTIME.block_on(async {
            let client = reqwest::Client::builder().no_proxy().build()?;
            let request = client.get(format!("{}{}", server.url(), at(&id)));
            let response = request.header("authorization", "Bearer alice").send().await?;
            Ok::<_, reqwest::Error>((response.status().as_u16(), response.bytes().await?.len()))
        })
    };
    assert_eq!(read_whole().expect("what was uploaded"), (200, 200_000));
    let file = files_in(&server).pop().expect("its file");
    let mut bytes = std::fs::read(&file).expect("its bytes");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("other bytes");

    // Where it breaks off, before or after the head, is a matter of time.
    let changed = read_whole();
    assert!(changed.is_err(), "it breaks off instead of giving out other bytes: {changed:?}");
    assert!(server.anonymous().get("/v1/health").status == 200, "and the server goes on");
}
