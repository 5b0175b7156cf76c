//! Changing a file that others change too.

use super::{FilePath, PatchRequest, Precondition, Scope, StoredFile, WriteRequest};
use crate::{CallOptions, Client, Result};
use std::time::Duration;

/// The longest pause before a conflict is tried again; each is a random part of it.
const PAUSE: Duration = Duration::from_millis(50);

/// How [`Client::update_with_retry`] goes about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateOptions {
    /// Who acts, as the audit trail is to name it; the client's unless given.
    pub service_id: Option<String>,
    /// So many times it starts again when somebody else was faster.
    pub max_conflict_retries: u32,
}

impl Default for UpdateOptions {
    fn default() -> Self {
        Self { service_id: None, max_conflict_retries: 3 }
    }
}

/// What to make of a file.
#[derive(Debug, Clone)]
pub enum FileUpdate {
    /// Change parts of it.
    Patch(PatchRequest),
    /// Replace it.
    Write(WriteRequest),
}

impl From<PatchRequest> for FileUpdate {
    fn from(request: PatchRequest) -> Self {
        Self::Patch(request)
    }
}

impl From<WriteRequest> for FileUpdate {
    fn from(request: WriteRequest) -> Self {
        Self::Write(request)
    }
}

impl Client {
    /// Reads a file, asks what to make of it, and writes that; if somebody else was faster, starts again with what they
    /// left. So no change is lost, neither theirs nor this one.
    ///
    /// `update` is called once per attempt with the file as it is then. It gets the file itself, so that its future can be
    /// sent to another thread. Every other error comes back at once, also that there is no such file; the last conflict
    /// comes back as it is.
    ///
    /// ```no_run
    /// # use memloom_client::{Client, FilePath, FileUpdate, PatchOp, PatchRequest, Result, Scope, UpdateOptions};
    /// # async fn example(client: Client, scope: Scope, path: FilePath) -> Result<()> {
    /// client
    ///     .update_with_retry(&scope, &path, UpdateOptions::default(), |file| async move {
    ///         let count = file.document.content.get("count").and_then(|count| count.as_i64()).unwrap_or(0);
    ///         Ok(FileUpdate::Patch(PatchRequest::ops([PatchOp::add("/content/count", count + 1)])))
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_with_retry<F, Fut>(
        &self,
        scope: &Scope,
        path: &FilePath,
        options: UpdateOptions,
        mut update: F,
    ) -> Result<StoredFile>
    where
        F: FnMut(StoredFile) -> Fut + Send,
        Fut: Future<Output = Result<FileUpdate>> + Send,
    {
        let service_id = options.service_id.or_else(|| self.options.service_id.clone());
        let client = self.with_options(CallOptions { service_id, ..self.options.clone() });
        let mut retries = 0;
        loop {
            let file = client.get_file(scope, path).await?;
            let version = Precondition::Matches(file.etag.clone());
            let outcome = match update(file).await? {
                FileUpdate::Patch(request) => client.patch_file(scope, path, request, version).await,
                FileUpdate::Write(request) => client.write_file(scope, path, request, version).await,
            };
            match outcome {
                Err(error) if error.is_conflict() && retries < options.max_conflict_retries => retries += 1,
                outcome => return outcome,
            }
            tokio::time::sleep(rand::random_range(Duration::ZERO..PAUSE)).await;
        }
    }
}
