//! What servers keep until somebody gives it up, and what is said when nobody answers or keys are mixed up.

use super::{azure_config, body, s3_config};
use bytes::Bytes;
use memtrove_blobs::{AzureConfig, BlobError, Blobs, S3Config};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::signer::{Method, SignedUrlOptions, Signer};
use std::time::{Duration, Instant};

/// More than a part.
const SOME: usize = 6 * 1024 * 1024;

/// The keys of uploads whose parts the bucket holds.
async fn unfinished(config: &S3Config) -> String {
    let bucket: AmazonS3 = AmazonS3Builder::new()
        .with_bucket_name(&config.bucket)
        .with_endpoint(config.endpoint.clone().unwrap())
        .with_region(config.region.clone().unwrap())
        .with_access_key_id(config.access_key_id.clone().unwrap())
        .with_secret_access_key(config.secret_access_key.clone().unwrap())
        .with_allow_http(true)
        .build()
        .unwrap();
    let query = SignedUrlOptions::default().with_query([("uploads", "")]);
    let url =
        bucket.signed_url_opts(Method::GET, &Path::default(), Duration::from_secs(60), &query).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(url).send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_an_upload_that_is_given_up_are_removed() {
    let config = s3_config();
    let blobs = Blobs::s3(config.clone()).unwrap();
    let key = |name: &str| format!("{}/{name}", config.prefix.clone().unwrap());

    let mut aborted = blobs.put("aborted", None).await.unwrap();
    aborted.write(Bytes::from(body(SOME))).await.unwrap();
    assert!(unfinished(&config).await.contains(&key("aborted")), "it is seen while it is under way");
    aborted.abort().await.unwrap();
    assert!(!unfinished(&config).await.contains(&key("aborted")));

    let mut dropped = blobs.put("dropped", None).await.unwrap();
    dropped.write(Bytes::from(body(SOME))).await.unwrap();
    drop(dropped);
    let begin = Instant::now();
    while unfinished(&config).await.contains(&key("dropped")) {
        assert!(begin.elapsed() < Duration::from_secs(30), "its parts stay");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_unavailable_and_spoils_an_upload() {
    let nobody = Some("http://127.0.0.1:1".to_owned());
    let s3 = Blobs::s3(S3Config { endpoint: nobody.clone(), ..s3_config() }).unwrap();
    let azure = Blobs::azure(AzureConfig { endpoint: nobody, ..azure_config() }).unwrap();
    for blobs in [s3, azure] {
        let mut upload = blobs.put("lost", None).await.unwrap();
        let written = upload.write(Bytes::from(body(SOME))).await;
        assert!(matches!(written, Err(BlobError::Unavailable(_))), "{blobs:?}: {written:?}");
        let again = upload.write(Bytes::from_static(b"more")).await;
        assert!(matches!(again, Err(BlobError::Invalid(_))), "{again:?}");
        assert!(matches!(upload.finish().await, Err(BlobError::Invalid(_))), "no blob without its middle");
        let read = blobs.get("lost", None, None).await.map(drop);
        assert!(matches!(read, Err(BlobError::Unavailable(_))), "{read:?}");
    }
}

#[tokio::test]
async fn keys_that_are_configured_win_over_the_environment() {
    if std::env::var_os("AWS_SESSION_TOKEN").is_some() {
        Blobs::s3(s3_config()).unwrap().check().await.unwrap();
        Blobs::azure(azure_config()).unwrap().check().await.unwrap();
        return;
    }
    // Variables belong to a process, so another one is asked.
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "on_servers::keys_that_are_configured_win_over_the_environment"])
        .env("AWS_SESSION_TOKEN", "somebody else's")
        .env("AWS_ACCESS_KEY_ID", "somebody")
        .env("AWS_SECRET_ACCESS_KEY", "else")
        .env("AZURE_STORAGE_TOKEN", "somebody else's")
        .env("AZURE_STORAGE_ACCOUNT_KEY", "c29tZWJvZHk=")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}
