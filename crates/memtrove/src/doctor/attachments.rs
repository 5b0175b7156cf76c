//! The place where the bytes of attachments are kept.

use super::Check;
use super::sqlite::folder_check;
use crate::config::{AttachmentStore, Config};
use std::time::Duration;

const NAME: &str = "attachments";
/// How long a store may take to show that it is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether it can be used. A configuration that cannot be is told about elsewhere.
pub(super) async fn check(config: &Config) -> Option<Check> {
    if config.problems().iter().any(|problem| problem.key.starts_with("attachments.")) {
        return None;
    }
    let attachments = &config.attachments;
    let (place, fix) = match attachments.store {
        AttachmentStore::None => {
            return Some(Check::ok(NAME, "attachments.store is none, so there are none"));
        }
        AttachmentStore::Directory => {
            let folder = attachments.directory(&config.server.data_dir);
            return Some(folder_check(NAME, &folder, "attachments.directory"));
        }
        AttachmentStore::S3 => {
            let bucket = attachments.s3.bucket.as_deref().unwrap_or_default();
            (format!("the bucket {bucket}"), "check attachments.s3: bucket, region, endpoint and keys")
        }
        AttachmentStore::Azure => {
            let container = attachments.azure.container.as_deref().unwrap_or_default();
            let fix = "check attachments.azure: account, container, endpoint and access_key";
            (format!("the container {container}"), fix)
        }
    };
    let blobs = match attachments.blobs(&config.server.data_dir) {
        Ok(blobs) => blobs?,
        Err(error) => return Some(Check::problem(NAME, format!("{place} cannot be used: {error}"), fix)),
    };
    // A server starts all the same, and everything but attachments works without it.
    let away = |reason: String| Check::advice(NAME, format!("{place} cannot be used now: {reason}"), fix);
    Some(match tokio::time::timeout(PATIENCE, blobs.check()).await {
        Ok(Ok(())) => Check::ok(NAME, format!("{place} can be read")),
        Ok(Err(error)) => away(error.to_string()),
        Err(_) => away(format!("it does not answer within {} s", PATIENCE.as_secs())),
    })
}
