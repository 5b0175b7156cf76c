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
    /// This many times it starts again when somebody else was faster.
    pub max_conflict_retries: u32,
}

impl Default for UpdateOptions {
    fn default() -> Self {
        Self { service_id: None, max_conflict_retries: 3 }
    }
}

/// What to make of a file.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "one lives at a time, and a box would stand in every caller's way"
)]
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
    /// # use memtrove_client::{Client, FilePath, FileUpdate, PatchOp, PatchRequest, Result, Scope, UpdateOptions};
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
        let client = self.updating(options.service_id);
        let mut conflicts = Conflicts { left: options.max_conflict_retries };
        loop {
            let file = client.get_file(scope, path).await?;
            let version = Precondition::Matches(file.etag.clone());
            let outcome = match update(file).await? {
                FileUpdate::Patch(request) => client.patch_file(scope, path, request, version).await,
                FileUpdate::Write(request) => client.write_file(scope, path, request, version).await,
            };
            if !conflicts.again(&outcome).await {
                return outcome;
            }
        }
    }

    /// The same for a file that may not be there yet: `write` gets it if it is, and says what it is to hold as a whole. A file
    /// that appears or goes away meanwhile is a conflict like every other.
    pub async fn write_with_retry<F, Fut>(
        &self,
        scope: &Scope,
        path: &FilePath,
        options: UpdateOptions,
        mut write: F,
    ) -> Result<StoredFile>
    where
        F: FnMut(Option<StoredFile>) -> Fut + Send,
        Fut: Future<Output = Result<WriteRequest>> + Send,
    {
        let client = self.updating(options.service_id);
        let mut conflicts = Conflicts { left: options.max_conflict_retries };
        loop {
            let file = match client.get_file(scope, path).await {
                Err(error) if error.is_not_found() => None,
                file => Some(file?),
            };
            let version = file.as_ref().map_or(Precondition::CreateNew, |file| (&file.etag).into());
            let outcome = client.write_file(scope, path, write(file).await?, version).await;
            if !conflicts.again(&outcome).await {
                return outcome;
            }
        }
    }

    /// This client in the name of a service, if one is given. Whatever else its calls are told stays.
    fn updating(&self, service_id: Option<String>) -> Self {
        let service_id = service_id.or_else(|| self.options.service_id.clone());
        self.with_options(CallOptions { service_id, ..self.options.clone() })
    }
}

/// The conflicts that an update may still have.
struct Conflicts {
    left: u32,
}

impl Conflicts {
    /// Whether to start again, which is so after a conflict and a pause.
    async fn again<T: Sync>(&mut self, outcome: &Result<T>) -> bool {
        let conflict = outcome.as_ref().is_err_and(crate::Error::is_conflict);
        if !conflict || self.left == 0 {
            return false;
        }
        self.left -= 1;
        tokio::time::sleep(rand::random_range(Duration::ZERO..PAUSE)).await;
        true
    }
}
