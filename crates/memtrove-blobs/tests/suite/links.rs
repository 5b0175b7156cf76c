//! Links that let anybody read for a while, and what stores say to those whom they do not know.

use super::{Store, azure_config, body, s3_config, seal};
use memtrove_blobs::{AzureConfig, BlobError, Blobs, S3Config};
use reqwest::StatusCode;
use std::time::{Duration, Instant};

const FIVE_MINUTES: Duration = Duration::from_secs(300);
const DISPOSITION: &str = "attachment; filename=\"a b.txt\"; filename*=UTF-8''%E2%82%AC%20b.txt";

fn browser() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn a_link_leads_to_the_bytes_and_says_what_they_are(store: Store) {
    let body = body(100_000);
    store.put("a/linked", None, &body).await;
    let link = async |kind, disposition| {
        store.blobs.signed_url("a/linked", FIVE_MINUTES, kind, disposition).await.unwrap().unwrap()
    };
    let answer =
        browser().get(link(Some("text/plain; charset=utf-8"), Some(DISPOSITION)).await).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(answer.headers()["content-disposition"], DISPOSITION);
    assert!(answer.bytes().await.unwrap() == body);

    let plain = browser().get(link(None, None).await).send().await.unwrap();
    assert!(plain.bytes().await.unwrap() == body);
}

async fn a_link_is_good_for_one_blob_and_nothing_else(store: Store) {
    store.put("one", None, b"one").await;
    store.put("two", None, b"two").await;
    let link = store.blobs.signed_url("one", FIVE_MINUTES, Some("text/plain"), None).await.unwrap().unwrap();
    let answers = [
        ("without its signature", browser().get(link.split('?').next().unwrap())),
        ("for another blob", browser().get(link.replace("/one?", "/two?"))),
        ("for another type", browser().get(link.replace("text%2Fplain", "text%2Fhtml"))),
        ("to write", browser().put(&link).header("x-ms-blob-type", "BlockBlob").body("three")),
        ("to delete", browser().delete(&link)),
    ];
    for (how, request) in answers {
        let status = request.send().await.unwrap().status();
        assert!(status.is_client_error(), "{how}: {status}");
    }
    assert_eq!(store.get("one", None).await.unwrap(), &b"one"[..]);
}

async fn a_link_ends(store: Store) {
    store.put("short-lived", None, b"soon gone").await;
    let link =
        store.blobs.signed_url("short-lived", Duration::from_secs(1), None, None).await.unwrap().unwrap();
    let begin = Instant::now();
    // Until the store's clock has come that far.
    while browser().get(&link).send().await.unwrap().status() != StatusCode::FORBIDDEN {
        assert!(begin.elapsed() < Duration::from_secs(30), "the link does not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

macro_rules! for_every_store_with_links {
    ($($behaviour:ident),* $(,)?) => {
        mod s3 { $(#[tokio::test] async fn $behaviour() { super::$behaviour(crate::Store::s3()).await; })* }
        mod azure { $(#[tokio::test] async fn $behaviour() { super::$behaviour(crate::Store::azure()).await; })* }
    };
}

for_every_store_with_links![
    a_link_leads_to_the_bytes_and_says_what_they_are,
    a_link_is_good_for_one_blob_and_nothing_else,
    a_link_ends,
];

#[tokio::test]
async fn a_directory_and_memory_have_no_links() {
    for store in [Store::directory(), Store::memory()] {
        store.put("here", Some(&seal()), b"here").await;
        assert_eq!(store.blobs.signed_url("here", FIVE_MINUTES, None, None).await, Ok(None));
    }
}

#[tokio::test]
async fn links_to_s3_lead_to_the_address_that_others_know() {
    let outside = "https://files.example.com:8443";
    let blobs = Blobs::s3(S3Config { external_endpoint: Some(outside.into()), ..s3_config() }).unwrap();
    let link = blobs.signed_url("a", FIVE_MINUTES, None, None).await.unwrap().unwrap();
    assert!(link.starts_with(outside), "{link}");
    blobs.check().await.unwrap();
}

#[tokio::test]
async fn wrong_keys_are_denied() {
    let s3 = Blobs::s3(S3Config { secret_access_key: Some("wrong".into()), ..s3_config() }).unwrap();
    let azure = Blobs::azure(AzureConfig { access_key: Some("d3Jvbmc=".into()), ..azure_config() }).unwrap();
    for blobs in [s3, azure] {
        assert_eq!(blobs.check().await, Err(BlobError::Denied), "{blobs:?}");
        assert_eq!(blobs.get("a", None, None).await.map(drop), Err(BlobError::Denied));
        assert_eq!(blobs.put("a", None).await.unwrap().finish().await, Err(BlobError::Denied));
    }
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_no_missing_blob() {
    let s3 = Blobs::s3(S3Config { bucket: "nowhere".into(), ..s3_config() }).unwrap();
    let azure = Blobs::azure(AzureConfig { container: "nowhere".into(), ..azure_config() }).unwrap();
    for blobs in [s3, azure] {
        assert!(matches!(blobs.check().await, Err(BlobError::Unavailable(_))), "{blobs:?}");
        let put = blobs.put("a", None).await.unwrap().finish().await;
        assert!(matches!(put, Err(BlobError::Unavailable(_))), "{put:?}");
    }
}

#[tokio::test]
async fn a_configuration_shows_nobody_its_keys() {
    let shown = format!("{:?} {:?}", s3_config(), azure_config());
    assert!(!shown.contains("secret") && !shown.contains("Eby8"), "{shown}");
}

#[test]
fn a_prefix_that_could_lead_astray_is_refused() {
    for prefix in ["..", "a//b", "a b"] {
        let made =
            Blobs::s3(S3Config { prefix: Some(prefix.into()), bucket: "b".into(), ..S3Config::default() });
        assert!(matches!(made, Err(BlobError::Invalid(_))), "{prefix}");
    }
}
