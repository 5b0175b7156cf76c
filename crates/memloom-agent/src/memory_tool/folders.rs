//! Folders: all files whose paths begin the same, and what is done with all of them.

use super::place::Place;
use super::{Refusal, Stop, refuse};
use crate::AgentMemory;
use crate::dispatch::told;
use futures_util::TryStreamExt as _;
use memloom_client::{Assemble, DeleteRequest, ETag, Error, FilePath, ListFiles, MoveRequest, Result, Scope};
use memloom_wire::tools::shown;

/// Files that are measured with one request. A file has 256 000 characters at most.
const MEASURED_AT_ONCE: usize = 20;
const MAX_FILE_CHARS: u32 = 256_000;

/// The most that a list has.
const LISTED_AT_ONCE: u32 = 500;

/// What the audit trail is told.
const REASON: &str = "memory_tool";

/// A precondition that every version of an existing file meets.
fn any_version() -> ETag {
    ETag::from("*")
}

impl AgentMemory {
    /// All files in a folder, however deep.
    pub(super) async fn files_under(&self, scope: &Scope, place: &Place) -> Result<Vec<FilePath>> {
        let prefix = place.prefix();
        let request = ListFiles { limit: Some(LISTED_AT_ONCE), ..ListFiles::under(&prefix) };
        let files: Vec<_> = self.client.list_files_all(scope, request).try_collect().await?;
        // Lists do not mind the letter case; folders do.
        Ok(files
            .into_iter()
            .map(|file| file.path)
            .filter(|path| path.as_str().starts_with(&prefix))
            .collect())
    }

    /// The sizes of files, in bytes of what they show.
    pub(super) async fn sizes(&self, scope: &Scope, files: Vec<FilePath>) -> Result<Vec<(String, u64)>> {
        let mut sizes = Vec::with_capacity(files.len());
        for some in files.chunks(MEASURED_AT_ONCE) {
            let request = Assemble {
                files: some.to_vec(),
                max_docs: Some(some.len() as u32),
                max_chars_total: Some(some.len() as u32 * MAX_FILE_CHARS),
                ..Assemble::default()
            };
            let context = self.client.assemble_context(scope, request).await?;
            sizes.extend(context.files.into_iter().map(|file| {
                let (_, content) = shown(&file.document.content);
                (file.path.to_string(), content.len() as u64)
            }));
        }
        Ok(sizes)
    }

    /// Deletes a file, or all files of a folder. One that somebody else deletes meanwhile is as good as deleted.
    pub(super) async fn delete(&self, scope: &Scope, place: &Place) -> Result<String, Stop> {
        let Some(path) = place.file() else {
            return refuse("Error: Cannot delete the /memories directory itself");
        };
        if self.delete_if_there(scope, path).await? {
            return Ok(format!("Successfully deleted {place}"));
        }
        let files = self.files_under(scope, place).await?;
        if files.is_empty() {
            return refuse(format!("Error: The path {place} does not exist"));
        }
        for (deleted, path) in files.iter().enumerate() {
            if let Err(error) = self.delete_if_there(scope, path).await {
                let why = told(error)?;
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

    /// Gives a file another path, or all files of a folder.
    pub(super) async fn rename(&self, scope: &Scope, old: &Place, new: &Place) -> Result<String, Stop> {
        let (Some(from), Some(to)) = (old.file(), new.file()) else {
            return refuse("Error: Cannot rename the /memories directory itself");
        };
        let renamed = format!("Successfully renamed {old} to {new}");
        let taken = format!("Error: The destination {new} already exists");
        if old == new || !self.files_under(scope, new).await?.is_empty() {
            return refuse(taken);
        }
        match self.move_if_there(scope, from, to).await? {
            Moved::Yes => return Ok(renamed),
            Moved::TargetExists => return refuse(taken),
            Moved::NoSuchFile => {}
        }
        let files = self.files_under(scope, old).await?;
        if files.is_empty() {
            return refuse(format!("Error: The path {old} does not exist"));
        }
        if new.prefix().starts_with(&old.prefix()) {
            return refuse(format!("Error: Cannot rename {old} to {new}, which is inside it"));
        }
        match self.client.get_file(scope, to).await {
            Ok(_) => return refuse(taken),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        self.move_all(scope, old, new, files).await?;
        Ok(renamed)
    }

    /// Moves the files of a folder, one by one. If one cannot be moved, those that were are moved back.
    async fn move_all(
        &self,
        scope: &Scope,
        old: &Place,
        new: &Place,
        files: Vec<FilePath>,
    ) -> Result<(), Stop> {
        let mut moved: Vec<(FilePath, FilePath)> = Vec::with_capacity(files.len());
        for from in files {
            let below = from.as_str().strip_prefix(&old.prefix()).unwrap_or(from.as_str());
            let fault = match FilePath::new(format!("{}{below}", new.prefix())) {
                Err(error) => Fault::Told(error.to_string()),
                Ok(to) => match self.move_if_there(scope, &from, &to).await {
                    Ok(Moved::Yes) => {
                        moved.push((from, to));
                        continue;
                    }
                    // Somebody else deleted it meanwhile.
                    Ok(Moved::NoSuchFile) => continue,
                    Ok(Moved::TargetExists) => Fault::Told(format!("there is a file in the way of /{from}")),
                    Err(error) => Fault::of(error),
                },
            };
            let stuck = self.move_back(scope, &moved).await;
            return Err(fault.stop(old, new, &stuck));
        }
        Ok(())
    }

    /// Moves files back to where they were, the last first. Returns those that could not be.
    async fn move_back<'a>(&self, scope: &Scope, moved: &'a [(FilePath, FilePath)]) -> Vec<&'a FilePath> {
        let mut stuck = Vec::new();
        for (from, to) in moved.iter().rev() {
            // Gone is no longer in the way; everything else is still where it was moved to.
            if !matches!(self.move_if_there(scope, to, from).await, Ok(Moved::Yes | Moved::NoSuchFile)) {
                stuck.push(to);
            }
        }
        stuck
    }

    /// Deletes a file, whatever its version; says whether there was one.
    async fn delete_if_there(&self, scope: &Scope, path: &FilePath) -> Result<bool> {
        let request = DeleteRequest { reason: Some(REASON.to_owned()), ..DeleteRequest::default() };
        match self.client.delete_file(scope, path, request, &any_version()).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Moves a file, whatever its version.
    async fn move_if_there(&self, scope: &Scope, from: &FilePath, to: &FilePath) -> Result<Moved> {
        let request = MoveRequest { reason: Some(REASON.to_owned()), ..MoveRequest::from(to.clone()) };
        match self.client.move_file(scope, from, request, &any_version()).await {
            Ok(_) => Ok(Moved::Yes),
            Err(error) if error.is_not_found() => Ok(Moved::NoSuchFile),
            Err(error) if error.api().is_some_and(|error| error.code == "DOCUMENT_EXISTS") => {
                Ok(Moved::TargetExists)
            }
            Err(error) => Err(error),
        }
    }
}

/// What became of a file that was to be moved.
enum Moved {
    Yes,
    NoSuchFile,
    TargetExists,
}

/// Why a folder was not moved.
enum Fault {
    /// For the model.
    Told(String),
    /// For the host: the memory cannot be reached.
    Failed(Error),
}

impl Fault {
    fn of(error: Error) -> Self {
        match told(error) {
            Ok(failure) => Self::Told(format!("{} ({})", failure.message, failure.code)),
            Err(error) => Self::Failed(error),
        }
    }

    fn stop(self, old: &Place, new: &Place, stuck: &[&FilePath]) -> Stop {
        match (self, stuck) {
            (Self::Failed(error), _) => Stop::Failed(error),
            (Self::Told(why), []) => {
                Refusal(format!("Error: {old} could not be renamed to {new}: {why}. Nothing was moved."))
                    .into()
            }
            (Self::Told(why), stuck) => {
                let stuck: Vec<String> = stuck.iter().map(|path| format!("/{path}")).collect();
                Refusal(format!(
                    "Error: {old} could not be renamed to {new}: {why}. These files are already at the new path and could not be moved back: {}",
                    stuck.join(", ")
                ))
                .into()
            }
        }
    }
}
