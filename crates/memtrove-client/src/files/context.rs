//! A context for a model, assembled from files and memories.

use super::{ETag, Envelope, FilePath, Scope};
use crate::memories::{FoundMemory, SearchMemoriesRequest};
use crate::{Client, Result, operations};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What to assemble, and how much of it.
#[derive(Debug, Clone, Default)]
pub struct Assemble {
    /// The files, the most important first.
    pub files: Vec<FilePath>,
    /// The most files; 4 unless said otherwise.
    pub max_docs: Option<u32>,
    /// The most characters of all of them; 30 000 unless said otherwise.
    pub max_chars_total: Option<u32>,
    /// What to search memories for. What is found shares the characters that the files leave.
    pub memories: Option<SearchMemoriesRequest>,
}

impl Assemble {
    /// These files, the most important first.
    pub fn files(files: impl IntoIterator<Item = FilePath>) -> Self {
        Self { files: files.into_iter().collect(), ..Self::default() }
    }
}

/// A context.
#[derive(Debug, Clone, Deserialize)]
pub struct AssembledContext {
    /// The files that fit, in the order they were asked for.
    pub files: Vec<AssembledFile>,
    /// Those that did not. A file that does not exist is in neither list.
    pub dropped_files: Vec<DroppedFile>,
    /// The memories that fit, strongest first; there if they were asked for.
    #[serde(default)]
    pub memories: Option<Vec<FoundMemory>>,
}

/// A file in a context.
#[derive(Debug, Clone, Deserialize)]
pub struct AssembledFile {
    /// Its path.
    pub path: FilePath,
    /// Its version.
    pub etag: ETag,
    /// What it holds.
    pub document: Envelope,
}

/// A file that did not fit into a context.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DroppedFile {
    /// Its path.
    pub path: FilePath,
    /// Why.
    pub reason: DropReason,
}

/// Why a file did not fit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
#[non_exhaustive]
pub enum DropReason {
    /// There were enough files already.
    MaxDocs,
    /// It would have been too many characters.
    MaxCharsTotal,
    /// A reason that this version of the client does not know.
    Other(String),
}

impl From<String> for DropReason {
    fn from(word: String) -> Self {
        match word.as_str() {
            "max_docs" => Self::MaxDocs,
            "max_chars_total" => Self::MaxCharsTotal,
            _ => Self::Other(word),
        }
    }
}

/// What is sent.
#[skip_serializing_none]
#[derive(Serialize)]
struct AssembleBody<'a> {
    files: Vec<FileRef<'a>>,
    max_docs: Option<u32>,
    max_chars_total: Option<u32>,
    memories: Option<&'a SearchMemoriesRequest>,
}

#[derive(Serialize)]
struct FileRef<'a> {
    path: &'a str,
}

impl Client {
    /// Assembles a context: files in the order they are named, and memories that are searched for, as far as the budget
    /// goes.
    pub async fn assemble_context(&self, scope: &Scope, request: Assemble) -> Result<AssembledContext> {
        let body = AssembleBody {
            files: request.files.iter().map(|file| FileRef { path: file.as_str() }).collect(),
            max_docs: request.max_docs,
            max_chars_total: request.max_chars_total,
            memories: request.memories.as_ref(),
        };
        self.call(&operations::ASSEMBLE_CONTEXT, &scope.names())?.json(&body)?.receive().await
    }
}
