//! Real object stores: S3 by SeaweedFS and Azure Blob by Azurite, which `scripts/seaweedfs.sh` and `scripts/azurite.sh`
//! install and start.
//!
//! `make test` starts one of each for everybody and names them in `MEMTROVE_TEST_S3` and `MEMTROVE_TEST_AZURE`; without that
//! the first test that needs one starts it, and the next ones find it. Every test has a prefix of its own.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// A place in a bucket of an S3 server.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// The address of the server.
    pub endpoint: String,
    /// The name of the bucket.
    pub bucket: String,
    /// A fresh prefix.
    pub prefix: String,
    /// Where the server says it is.
    pub region: &'static str,
    /// The id of the key.
    pub access_key_id: &'static str,
    /// The key.
    pub secret_access_key: &'static str,
}

impl Bucket {
    /// A place of its own on the server that all tests share.
    pub fn fresh() -> Self {
        static URL: LazyLock<String> = LazyLock::new(|| url("MEMTROVE_TEST_S3", "seaweedfs.sh"));
        let (endpoint, bucket) = split(&URL);
        Self {
            endpoint,
            bucket,
            prefix: fresh_prefix(),
            region: "us-east-1",
            access_key_id: "memtrove",
            secret_access_key: "memtrove-secret",
        }
    }
}

/// A place in a container of an Azure storage account.
#[derive(Debug, Clone)]
pub struct Container {
    /// The address of the account.
    pub endpoint: String,
    /// The account.
    pub account: &'static str,
    /// The name of the container.
    pub container: String,
    /// A fresh prefix.
    pub prefix: String,
    /// The key of the account, which Azurite is known by.
    pub access_key: &'static str,
}

impl Container {
    /// A place of its own on the server that all tests share.
    pub fn fresh() -> Self {
        static URL: LazyLock<String> = LazyLock::new(|| url("MEMTROVE_TEST_AZURE", "azurite.sh"));
        let (endpoint, container) = split(&URL);
        Self {
            endpoint,
            account: "devstoreaccount1",
            container,
            prefix: fresh_prefix(),
            access_key: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        }
    }
}

/// Tests of other runs may have left something on the same server.
fn fresh_prefix() -> String {
    format!("test-{:016x}", RandomState::new().hash_one(std::process::id()))
}

fn split(url: &str) -> (String, String) {
    match url.rsplit_once('/') {
        Some((endpoint, name)) => (endpoint.to_owned(), name.to_owned()),
        None => panic!("{url:?} names no bucket"),
    }
}

/// Where the server is that all tests share; started by the first.
fn url(variable: &str, script: &str) -> String {
    if let Ok(url) = std::env::var(variable) {
        return url;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
    let output = Command::new(&path).arg("start").output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        output.status.success(),
        "scripts/{script} start failed, and this test needs an object store; run it by hand to see why:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
