//! What a conversation was told of the memory. Loaded once, kept fresh by its own changes, told again when it changed.

use crate::dispatch::may_have_happened;
use crate::memory_tool;
use crate::{AgentMemory, MemoryFile, PatchFileOptions, ToolOutput, WriteFileOptions};
use memtrove_client::{Assemble, FileEntry, FilePath, ListFiles, Result, Scope, TextEdit};
use memtrove_wire::tools::{FileTool, shown};
use serde_json::Value;
use std::fmt::Write as _;

/// What a session tells a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// Files whose text is told, the most important first.
    pub files: Vec<String>,
    /// Which other files are named: those whose path begins with this. `Some("")` is all of them.
    pub catalogue_prefix: Option<String>,
    /// The most files that are named.
    pub catalogue_limit: u32,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { files: Vec::new(), catalogue_prefix: None, catalogue_limit: 100 }
    }
}

/// The memory as one conversation sees it.
///
/// Before each request to the model, ask for [`next_turn`](Self::next_turn): it has the text when the model must see it (at
/// first, and after a change), and nothing when what the model saw is still true.
#[derive(Debug)]
pub struct Session {
    memory: AgentMemory,
    scope: Scope,
    files: Vec<FilePath>,
    options: SessionOptions,
    snapshot: String,
    /// A change was made, or may have been, and the snapshot was not loaded anew since.
    stale: bool,
    /// The model has not seen the snapshot as it is.
    due: bool,
}

impl Session {
    /// Loads the named files and the catalogue.
    pub async fn prime(memory: AgentMemory, scope: Scope, options: SessionOptions) -> Result<Self> {
        let files = options.files.iter().map(FilePath::new).collect::<Result<_>>()?;
        let mut session =
            Self { memory, scope, files, options, snapshot: String::new(), stale: false, due: true };
        session.refresh().await?;
        session.due = true;
        Ok(session)
    }

    /// What the memory says, as text for a prompt.
    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// Whether the next turn must carry the snapshot: the model has not seen it, or not as it is now. It is also due while
    /// it is unknown whether it still is what the memory says; then [`next_turn`](Self::next_turn) finds out.
    pub fn is_due(&self) -> bool {
        self.due || self.stale
    }

    /// The snapshot, if the next turn must carry it. The caller sends it: it is due no more.
    pub async fn next_turn(&mut self) -> Result<Option<String>> {
        if self.stale {
            self.refresh().await?;
        }
        Ok(std::mem::take(&mut self.due).then(|| self.snapshot.clone()))
    }

    /// Has the next turn carry the snapshot again, for example because the conversation was shortened.
    pub fn carry_again(&mut self) {
        self.due = true;
    }

    /// Loads everything again. If it says something else than before, the next turn must carry it.
    pub async fn refresh(&mut self) -> Result<()> {
        let files = self.named_files().await?;
        let catalogue = self.catalogue().await?;
        let snapshot = render(&files, catalogue.as_ref());
        self.stale = false;
        if snapshot != self.snapshot {
            self.snapshot = snapshot;
            self.due = true;
        }
        Ok(())
    }

    /// Writes a file; see [`AgentMemory::write_file`].
    pub async fn write_file(
        &mut self,
        path: &str,
        content: &str,
        options: WriteFileOptions,
    ) -> Result<MemoryFile> {
        let was_stale = self.begin_change();
        let outcome = self.memory.write_file(&self.scope, path, content, options).await;
        self.end_change(was_stale, outcome).await
    }

    /// Patches a file; see [`AgentMemory::patch_file`].
    pub async fn patch_file(
        &mut self,
        path: &str,
        edits: Vec<TextEdit>,
        options: PatchFileOptions,
    ) -> Result<MemoryFile> {
        let was_stale = self.begin_change();
        let outcome = self.memory.patch_file(&self.scope, path, edits, options).await;
        self.end_change(was_stale, outcome).await
    }

    /// Runs a tool; see [`AgentMemory::call_tool`].
    pub async fn call_tool(&mut self, name: &str, arguments: &Value) -> Result<ToolOutput> {
        if FileTool::named(name).is_none_or(FileTool::only_reads) {
            return self.memory.call_tool(&self.scope, name, arguments).await;
        }
        let was_stale = self.begin_change();
        let outcome = self.memory.call_tool(&self.scope, name, arguments).await;
        self.end_change(was_stale, outcome).await
    }

    /// Runs a command of the memory tool; see [`AgentMemory::call_memory_tool`].
    pub async fn call_memory_tool(&mut self, input: &Value) -> Result<ToolOutput> {
        if !memory_tool::changes(input) {
            return self.memory.call_memory_tool(&self.scope, input).await;
        }
        self.begin_change();
        let output = self.memory.call_memory_tool(&self.scope, input).await;
        // A command on a folder may have changed something before it failed.
        self.reload().await;
        output
    }

    /// What the session knows is in doubt from here on: a change that is dropped half way does not report back.
    /// Returns whether it was before.
    fn begin_change(&mut self) -> bool {
        std::mem::replace(&mut self.stale, true)
    }

    /// What became of a change. Only one that was refused leaves everything as it was.
    async fn end_change<T>(&mut self, was_stale: bool, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Ok(_) => self.reload().await,
            Err(error) if may_have_happened(error) => {}
            Err(_) => self.stale = was_stale,
        }
        outcome
    }

    /// Loads anew after a change. The change is made whatever becomes of this; so a failure is remembered and loading is
    /// tried again before the next turn.
    async fn reload(&mut self) {
        self.stale = self.refresh().await.is_err();
    }

    /// The named files, as far as they exist and fit.
    async fn named_files(&self) -> Result<Vec<NamedFile>> {
        if self.files.is_empty() {
            return Ok(Vec::new());
        }
        let options = self.memory.options();
        let request = Assemble {
            files: self.files.clone(),
            max_docs: Some(options.assemble_max_docs),
            max_chars_total: Some(options.assemble_max_chars_total),
            ..Assemble::default()
        };
        let context = self.memory.client().assemble_context(&self.scope, request).await?;
        Ok(self
            .files
            .iter()
            .map(|path| {
                let says = if let Some(file) = context.files.iter().find(|file| file.path == *path) {
                    Says::Text(shown(&file.document.content).1)
                } else if context.dropped_files.iter().any(|file| file.path == *path) {
                    Says::TooLong
                } else {
                    Says::Missing
                };
                NamedFile { path: path.to_string(), says }
            })
            .collect())
    }

    async fn catalogue(&self) -> Result<Option<Catalogue>> {
        let Some(prefix) = &self.options.catalogue_prefix else { return Ok(None) };
        let request = ListFiles {
            prefix: Some(prefix.clone()),
            limit: Some(self.options.catalogue_limit),
            after: None,
        };
        let list = self.memory.client().list_files(&self.scope, request).await?;
        Ok(Some(Catalogue { prefix: prefix.clone(), files: list.files, more: list.next_after.is_some() }))
    }
}

/// A named file.
struct NamedFile {
    path: String,
    says: Says,
}

enum Says {
    Text(String),
    TooLong,
    Missing,
}

/// The files that are only named.
struct Catalogue {
    prefix: String,
    files: Vec<FileEntry>,
    more: bool,
}

fn render(files: &[NamedFile], catalogue: Option<&Catalogue>) -> String {
    let mut text = String::new();
    for NamedFile { path, says } in files {
        let path = attribute(path);
        // Writing into a string cannot fail.
        let _ = match says {
            Says::Text(content) => {
                let content = untagged(content.trim_end_matches('\n'));
                writeln!(text, "<file path=\"{path}\">\n{content}\n</file>")
            }
            Says::TooLong => {
                writeln!(text, "<file path=\"{path}\" omitted=\"does not fit; load it when needed\"/>")
            }
            Says::Missing => writeln!(text, "<file path=\"{path}\" omitted=\"does not exist yet\"/>"),
        };
    }
    if let Some(Catalogue { prefix, files, more }) = catalogue {
        let _ = writeln!(text, "<files prefix=\"{}\">", attribute(prefix));
        for file in files {
            let _ = writeln!(text, "{}", untagged(file.path.as_str()));
        }
        if *more {
            let _ = writeln!(text, "(and more: list them with {})", FileTool::ListFiles.name());
        }
        let _ = writeln!(text, "</files>");
    }
    text
}

/// A path between quotation marks, which it cannot end.
fn attribute(path: &str) -> String {
    path.replace('"', "&quot;").replace('<', "&lt;")
}

/// A text in which nothing looks like the tags around it, so that no file can end itself and go on as another.
fn untagged(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        safe.push_str(before);
        let name = after.trim_start().trim_start_matches('/').trim_start();
        let tag = name.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("file"));
        safe.push_str(if tag { "&lt;" } else { "<" });
        rest = after;
    }
    safe.push_str(rest);
    safe
}

#[cfg(test)]
mod tests;
