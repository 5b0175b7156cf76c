//! Folders: all files whose paths begin the same. What is in them, how large it is, and their end.

use super::path::MemoryPath;
use super::{REASON, Stop, listing, refuse};
use crate::AgentMemory;
use crate::dispatch::to_failure;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, future, stream};
use memtrove_client::{Assemble, DeleteRequest, FilePath, FileVersion, ListFiles, Result, Scope};
use memtrove_wire::tools::shown;

/// Files that are measured with one request. A file has 256 000 characters at most.
const MEASURED_AT_ONCE: usize = 20;
const MAX_FILE_CHARS: u32 = 256_000;

/// This many requests measure at a time.
const MEASURING: usize = 4;

/// The most files that a folder shows. Each of them is read to be measured.
const MAX_SHOWN: usize = 500;

/// The most that a list has.
const LISTED_AT_ONCE: u32 = 500;

impl AgentMemory {
    /// The files in a folder, however deep, as they are asked for.
    fn walk(
        &self,
        scope: &Scope,
        place: &MemoryPath,
        at_once: u32,
    ) -> impl Stream<Item = Result<FilePath>> + Send + use<> {
        let prefix = place.prefix();
        let request = ListFiles { limit: Some(at_once), ..ListFiles::under(&prefix) };
        // Lists do not mind the letter case; folders do.
        self.client.list_files_all(scope, request).try_filter_map(move |file| {
            future::ready(Ok(file.path.as_str().starts_with(&prefix).then_some(file.path)))
        })
    }

    /// All files in a folder.
    pub(super) async fn files_under(&self, scope: &Scope, place: &MemoryPath) -> Result<Vec<FilePath>> {
        self.walk(scope, place, LISTED_AT_ONCE).try_collect().await
    }

    /// The first files in a folder, at most this many.
    pub(super) async fn some_under(
        &self,
        scope: &Scope,
        place: &MemoryPath,
        most: usize,
    ) -> Result<Vec<FilePath>> {
        self.walk(scope, place, most as u32).take(most).try_collect().await
    }

    /// Which of these files are there. Nothing of them is sent: there is room for this many files, but not for a character.
    pub(super) async fn existing(&self, scope: &Scope, files: Vec<FilePath>) -> Result<Vec<FilePath>> {
        if files.is_empty() {
            return Ok(files);
        }
        let request = Assemble {
            max_docs: Some(files.len() as u32),
            max_chars_total: Some(0),
            ..Assemble::files(files)
        };
        let context = self.client.assemble_context(scope, request).await?;
        let fits = context.files.into_iter().map(|file| file.path);
        Ok(fits.chain(context.dropped_files.into_iter().map(|file| file.path)).collect())
    }

    /// The file in whose folder a place would be, if there is one: a file is no folder.
    pub(super) async fn file_above(&self, scope: &Scope, place: &MemoryPath) -> Result<Option<FilePath>> {
        Ok(self.existing(scope, place.above()).await?.into_iter().next())
    }

    /// A folder as a list.
    pub(super) async fn list(
        &self,
        scope: &Scope,
        place: &MemoryPath,
        files: Vec<FilePath>,
    ) -> Result<String> {
        let mut files = files;
        files.retain(|path| listing::is_shown(place, path.as_str()));
        let more = files.len().saturating_sub(MAX_SHOWN);
        files.truncate(MAX_SHOWN);
        let some: Vec<Vec<FilePath>> = files.chunks(MEASURED_AT_ONCE).map(<[_]>::to_vec).collect();
        let sizes = stream::iter(some).map(|some| self.sizes(scope, some)).buffered(MEASURING);
        Ok(listing::render(place, &sizes.try_concat().await?, more))
    }

    /// The sizes of files, in bytes of what they show.
    async fn sizes(&self, scope: &Scope, files: Vec<FilePath>) -> Result<Vec<(String, u64)>> {
        let request = Assemble {
            max_docs: Some(files.len() as u32),
            max_chars_total: Some(files.len() as u32 * MAX_FILE_CHARS),
            ..Assemble::files(files)
        };
        let context = self.client.assemble_context(scope, request).await?;
        let size = |content: &_| shown(content).1.len() as u64;
        let sizes = context.files.into_iter();
        Ok(sizes.map(|file| (file.path.to_string(), size(&file.document.content))).collect())
    }

    /// Deletes what is at a place: a file, a folder with all files in it, or both. What somebody else deletes meanwhile is as
    /// good as deleted.
    pub(super) async fn delete(&self, scope: &Scope, place: &MemoryPath) -> Result<String, Stop> {
        let Some(path) = place.file() else {
            return refuse("Error: Cannot delete the /memories directory itself");
        };
        let was_file = self.delete_if_there(scope, path).await?;
        let files = self.files_under(scope, place).await?;
        if files.is_empty() && !was_file {
            return refuse(format!("Error: The path {place} does not exist"));
        }
        for (deleted, path) in files.iter().enumerate() {
            if let Err(error) = self.delete_if_there(scope, path).await {
                let why = to_failure(error)?;
                return refuse(format!(
                    "Error: {deleted} of {} files in {place} were deleted, then it failed: {} ({}). Delete {place} again to go on.",
                    files.len(),
                    why.message,
                    why.code,
                ));
            }
        }
        Ok(format!("Successfully deleted {place}"))
    }

    /// Deletes a file, whatever its version; says whether there was one.
    async fn delete_if_there(&self, scope: &Scope, path: &FilePath) -> Result<bool> {
        let request = DeleteRequest { reason: Some(REASON.to_owned()), ..DeleteRequest::default() };
        match self.client.delete_file(scope, path, request, FileVersion::Any).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
