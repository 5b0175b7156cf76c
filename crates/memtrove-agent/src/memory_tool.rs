//! Anthropic's memory tool (`memory_20250818`) on top of files: its six commands, answered in the words that its
//! documentation has, which are the words that models know.
//!
//! `/memories/notes.md` is the file `memories/notes.md`; a folder is what paths have in common, and exists while it
//! has files. A file may be changed by others at any time: edits are made to the version that was read, and start
//! again if another change was faster.
//!
//! Files change one by one, so a command on a folder can fail half way. `delete` can then be called again. `rename` first
//! moves back what it moved, and names the files that may not be back.
//!
//! A path is a file or a folder, never both: nothing is created or moved below a file. Other clients know no folders and may
//! have made both; then `delete` and `rename` take the file with everything below it.

mod command;
mod folders;
mod listing;
mod path;
mod renaming;
mod text;

use crate::dispatch::{ToolOutput, to_failure};
use crate::{AgentMemory, WriteFileOptions};
use command::Command;
use memtrove_client::{
    Error, FilePath, FileUpdate, PatchOp, PatchRequest, Result, Scope, StoredFile, TextEdit, UpdateOptions,
};
use memtrove_wire::tools::shown;
use path::MemoryPath;
use serde_json::{Value, json};

/// What the audit trail is told.
const REASON: &str = "memory_tool";

/// The most files that are named in a sentence.
const NAMED_FILES: usize = 20;

/// What is put among the `tools` of a request to Anthropic's messages.
pub fn memory_tool() -> Value {
    json!({"type": "memory_20250818", "name": "memory"})
}

/// Whether a command may change something.
pub(crate) fn changes(input: &Value) -> bool {
    input.get("command").and_then(Value::as_str) != Some("view")
}

/// What a model is told instead of what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

/// What stops a command: something to tell the model, or a memory that cannot be reached.
#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        // What `edit` refuses comes back through the client's retries.
        match error {
            Error::Update(cause) => match cause.downcast::<Refusal>() {
                Ok(refusal) => Self::Refused(*refusal),
                Err(cause) => Self::Failed(Error::Update(cause)),
            },
            error => Self::Failed(error),
        }
    }
}

/// Files in a sentence.
fn named<'a>(files: impl ExactSizeIterator<Item = &'a FilePath>) -> String {
    let more = files.len().saturating_sub(NAMED_FILES);
    let named: Vec<String> = files.take(NAMED_FILES).map(|path| format!("/{path}")).collect();
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &and
}

fn refuse<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Refused(Refusal(text.into())))
}

impl AgentMemory {
    /// Runs a command of the memory tool for the user that the host says: `input` is what the model sent.
    ///
    /// What the model can do something about is a text of the output, as for [`call_tool`](Self::call_tool); an error
    /// means that the memory was not reached, or that its answer could not be read. After an error a command on a folder
    /// may have been carried out in part.
    pub async fn call_memory_tool(&self, scope: &Scope, input: &Value) -> Result<ToolOutput> {
        match self.run_command(scope, input).await {
            Ok(text) => Ok(ToolOutput::said(text)),
            Err(Stop::Refused(Refusal(text))) => Ok(ToolOutput::refused(text)),
            Err(Stop::Failed(error)) => {
                let failure = to_failure(error)?;
                Ok(ToolOutput::refused(format!("Error: {} ({})", failure.message, failure.code)))
            }
        }
    }

    async fn run_command(&self, scope: &Scope, input: &Value) -> Result<String, Stop> {
        match Command::read(input)? {
            Command::View { place, range } => self.view(scope, &place, range).await,
            Command::Create { place, file_text } => self.create(scope, &place, &file_text).await,
            Command::StrReplace { place, old_str, new_str } => {
                self.str_replace(scope, &place, &old_str, &new_str).await
            }
            Command::Insert { place, line, text } => self.insert(scope, &place, line, &text).await,
            Command::Delete { place } => self.delete(scope, &place).await,
            Command::Rename { old, new } => self.rename(scope, &old, &new).await,
        }
    }

    async fn view(
        &self,
        scope: &Scope,
        place: &MemoryPath,
        range: Option<(i64, i64)>,
    ) -> Result<String, Stop> {
        if let Some(path) = place.file() {
            match self.client.get_file(scope, path).await {
                Ok(file) => {
                    let (_, content) = shown(&file.document.content);
                    let text = text::numbered(place, &content, range)?;
                    let inside = self.some_under(scope, place, NAMED_FILES).await?;
                    return Ok(match inside.as_slice() {
                        [] => text,
                        some => {
                            format!("{text}\n\n{place} is also a directory, with: {}", named(some.iter()))
                        }
                    });
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let files = self.files_under(scope, place).await?;
        if files.is_empty() && place.file().is_some() {
            return refuse(match self.file_above(scope, place).await? {
                None => format!("The path {place} does not exist. Please provide a valid path."),
                Some(file) => {
                    format!(
                        "The path {place} does not exist: /{file} is a file. Please provide a valid path."
                    )
                }
            });
        }
        Ok(self.list(scope, place, files).await?)
    }

    async fn create(&self, scope: &Scope, place: &MemoryPath, file_text: &str) -> Result<String, Stop> {
        let exists = || refuse(format!("Error: File {place} already exists"));
        let Some(path) = place.file() else { return exists() };
        if let Some(file) = self.file_above(scope, place).await? {
            return refuse(format!(
                "Error: Cannot create {place}: /{file} is a file, and nothing can be inside a file. Choose another path."
            ));
        }
        // A folder of this name would hide behind the file.
        if !self.some_under(scope, place, 1).await?.is_empty() {
            return exists();
        }
        match self.write_file(scope, path.as_str(), file_text, WriteFileOptions::create_only()).await {
            Ok(_) => Ok(format!("File created successfully at: {place}")),
            Err(error) if error.is_conflict() => exists(),
            Err(error) => Err(error.into()),
        }
    }

    async fn str_replace(
        &self,
        scope: &Scope,
        place: &MemoryPath,
        old_str: &str,
        new_str: &str,
    ) -> Result<String, Stop> {
        let mut line = 0;
        let missing = format!("Error: The path {place} does not exist. Please provide a valid path.");
        let edited = self
            .edit(scope, place, &missing, |content| {
                line = text::only_match(place, content, old_str)?;
                Ok(PatchRequest::edits([TextEdit::new(old_str, new_str)]))
            })
            .await?;
        let (_, content) = shown(&edited.document.content);
        let snippet = text::snippet(&content, line);
        Ok(format!(
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        ))
    }

    async fn insert(
        &self,
        scope: &Scope,
        place: &MemoryPath,
        line: i64,
        inserted: &str,
    ) -> Result<String, Stop> {
        let missing = format!("Error: The path {place} does not exist");
        self.edit(scope, place, &missing, |content| {
            let text = text::with_line(content, line, inserted)?;
            Ok(PatchRequest::ops([PatchOp::replace("/content/text", text)]))
        })
        .await?;
        Ok(format!("The file {place} has been edited."))
    }

    /// Changes the text of a file, starting again if somebody else was faster.
    async fn edit(
        &self,
        scope: &Scope,
        place: &MemoryPath,
        missing: &str,
        mut change: impl FnMut(&str) -> Result<PatchRequest, Refusal> + Send,
    ) -> Result<StoredFile, Stop> {
        let Some(path) = place.file() else { return refuse(missing) };
        let update = |file: StoredFile| {
            let request = match file.text() {
                Some(content) => change(content),
                None => Err(Refusal(format!("Error: The file {place} holds no text to edit."))),
            };
            std::future::ready(
                request.map(|request| FileUpdate::Patch(request.because(REASON))).map_err(Error::update),
            )
        };
        match self.client.update_with_retry(scope, path, UpdateOptions::default(), update).await {
            Err(error) if error.is_not_found() => refuse(missing),
            outcome => Ok(outcome?),
        }
    }
}
