//! One whole life of a file in each of the object stores that are not a directory.

use crate::support::*;
use memtrove_testkit::object_stores::{Bucket, Container};

fn s3(bucket: &Bucket, more: &str) -> String {
    let Bucket { endpoint, bucket, prefix, region, access_key_id, secret_access_key } = bucket;
    format!(
        "[attachments]\nstore = \"s3\"\ncleanup_interval = \"1s\"\n\
         [attachments.s3]\nbucket = \"{bucket}\"\nprefix = \"{prefix}\"\nregion = \"{region}\"\nendpoint = \"{endpoint}\"\n\
         access_key_id = \"{access_key_id}\"\nsecret_access_key = \"{secret_access_key}\"\nallow_http = true\n{more}"
    )
}

fn azure(container: &Container, more: &str) -> String {
    let Container { endpoint, account, container, prefix, access_key } = container;
    format!(
        "[attachments]\nstore = \"azure\"\ncleanup_interval = \"1s\"\n\
         [attachments.azure]\naccount = \"{account}\"\ncontainer = \"{container}\"\nprefix = \"{prefix}\"\n\
         access_key = \"{access_key}\"\nendpoint = \"{endpoint}\"\nallow_http = true\n{more}"
    )
}

/// Everything that can happen to a file. Only the server knows where its bytes are.
fn a_whole_life(server: &TestServer) {
    let (alice, bob) = (server.as_user("alice"), server.as_user("bob"));
    let conversation = start(&alice, "Plans");
    // Larger than a part of an upload, so that it goes up in several.
    let large = noise(9_500_000, 1);
    let id = upload(&alice, "large.bin", "application/octet-stream", &large);
    assert_eq!(digest(&read(server, &alice, &at(&id), &[]).expect(200).bytes), digest(&large));
    let part = read(server, &alice, &at(&id), &[("range", "bytes=5242870-5242890")]).expect(206);
    assert!(part.bytes == large[5_242_870..=5_242_890]);
    assert!(files_in(server).is_empty(), "nothing of it is in the data folder");

    let first = link(&alice, &conversation, &id);
    let second = link(&alice, &conversation, &first);
    share(&alice, &conversation, &bob, "reader");
    let url = bob.get(&format!("{}/download-url", at(&second))).expect(200).text_of("url");
    assert_eq!(digest(&raw("GET", &format!("{}{url}", server.url()), &[]).expect(200).bytes), digest(&large));

    let admin = server.as_user("admin");
    admin.delete(&format!("/v1/admin/attachments/{first}")).expect(204);
    assert_eq!(read(server, &bob, &at(&second), &[("range", "bytes=0-9")]).expect(206).bytes, large[..10]);
    admin.delete(&format!("/v1/admin/attachments/{second}")).expect(204);
    until("its records go", || records(&server.stored()) == 0);

    let empty = upload(&alice, "empty.txt", "text/plain", b"");
    assert!(read(server, &alice, &at(&empty), &[]).expect(200).bytes.is_empty());
    alice.delete(&at(&empty)).expect(204);
    until("its record goes", || records(&server.stored()) == 0);
}

/// What the store holds under the prefix of a test.
fn objects(blobs: &memtrove_blobs::Blobs) -> usize {
    use futures_util::StreamExt;
    RUNTIME.block_on(async { blobs.list("").filter(|found| std::future::ready(found.is_ok())).count().await })
}

fn seen_in_s3(bucket: &Bucket) -> memtrove_blobs::Blobs {
    memtrove_blobs::Blobs::s3(memtrove_blobs::S3Config {
        bucket: bucket.bucket.clone(),
        prefix: Some(bucket.prefix.clone()),
        region: Some(bucket.region.to_owned()),
        endpoint: Some(bucket.endpoint.clone()),
        access_key_id: Some(bucket.access_key_id.to_owned()),
        secret_access_key: Some(bucket.secret_access_key.to_owned()),
        allow_http: true,
        ..Default::default()
    })
    .expect("the bucket")
}

#[test]
fn a_file_lives_its_life_in_s3() {
    let bucket = Bucket::fresh();
    let server = server_with(&s3(&bucket, ""));
    let looking = seen_in_s3(&bucket);
    let id = upload(&server.as_user("alice"), "seen.txt", "text/plain", b"seen");
    assert_eq!(objects(&looking), 1);
    server.as_user("alice").delete(&at(&id)).expect(204);
    a_whole_life(&server);
    assert_eq!(objects(&looking), 0, "and nothing is left there");
}

#[test]
fn a_file_lives_its_life_in_azure() {
    a_whole_life(&server_with(&azure(&Container::fresh(), "")));
}

/// A reader is sent to the object store, which gives out the bytes as safely as the server does.
fn bytes_come_straight_from_the_store(server: &TestServer) {
    let alice = server.as_user("alice");
    let picture = upload(&alice, "größe.png", "image/png", b"picture");
    let page = upload(&alice, "page.html", "text/html", b"<script>");

    let redirect = read(server, &alice, &at(&picture), &[]).expect(307);
    assert_eq!(redirect.header("cache-control"), "private, max-age=150", "half as long as the link is good");
    assert!(redirect.header("vary").contains("Authorization"), "{redirect:?}");
    let got = raw("GET", redirect.header("location"), &[]).expect(200);
    assert_eq!((got.bytes.as_slice(), got.header("content-type")), (&b"picture"[..], "image/png"));
    let link = alice.get(&format!("{}/download-url", at(&page))).expect(200);
    assert_eq!(link.json["expiresIn"], 300);
    let got = raw("GET", &link.text_of("url"), &[]).expect(200);
    assert_eq!(
        (got.bytes.as_slice(), got.header("content-type")),
        (&b"<script>"[..], "application/octet-stream")
    );
    assert!(got.header("content-disposition").starts_with("attachment; filename=\"page.html\""), "{got:?}");

    server.as_user("bob").get(&at(&picture)).expect_forbidden();
}

#[test]
fn s3_gives_out_bytes_itself_where_it_may() {
    bytes_come_straight_from_the_store(&server_with(&s3(&Bucket::fresh(), "direct_download = true\n")));
}

#[test]
fn azure_gives_out_bytes_itself_where_it_may() {
    bytes_come_straight_from_the_store(&server_with(&azure(&Container::fresh(), "direct_download = true\n")));
}

#[test]
fn sealed_bytes_never_come_straight_from_the_store() {
    let key = "KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=";
    let more = format!("direct_download = true\n[encryption.dek]\nkey = \"{key}\"\n");
    let server = server_with(&s3(&Bucket::fresh(), &more));
    let alice = server.as_user("alice");
    let id = upload(&alice, "a.txt", "text/plain", b"sealed");
    assert_eq!(read(&server, &alice, &at(&id), &[]).expect(200).bytes, b"sealed");
    let url = alice.get(&format!("{}/download-url", at(&id))).expect(200).text_of("url");
    assert_eq!(raw("GET", &format!("{}{url}", server.url()), &[]).expect(200).bytes, b"sealed");
}
