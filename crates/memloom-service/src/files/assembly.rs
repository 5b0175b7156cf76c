//! Putting a context together from files that the caller names.

use super::Files;
use memloom_core::files::assembly::{self, DropReason, Outcome};
use memloom_core::files::{ETag, FilePath, ScopedCaller};
use memloom_core::{Error, Result};
use memloom_store::files::{documents, scopes};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// A context.
#[derive(Debug, Clone, Default)]
pub struct Assembled {
    /// The files that fit, in the order they were asked for.
    pub files: Vec<AssembledFile>,
    /// Those that did not.
    pub dropped: Vec<DroppedFile>,
}

/// A file in a context.
#[derive(Debug, Clone)]
pub struct AssembledFile {
    /// Its path, as the caller wrote it.
    pub path: String,
    /// Its version.
    pub etag: ETag,
    /// Its envelope: compact JSON. A file that was asked for twice shares it.
    pub document: Arc<str>,
}

/// A file that did not fit.
#[derive(Debug, Clone)]
pub struct DroppedFile {
    /// Its path, as the caller wrote it.
    pub path: String,
    /// Why.
    pub reason: DropReason,
}

impl Files {
    /// Assembles a context. All files are read from one consistent point.
    pub async fn assemble(&self, caller: &ScopedCaller, request: &Map<String, Value>) -> Result<Assembled> {
        let (refs, budget) = assembly::read(request)?;
        let scope = caller.scope.clone();
        self.cx
            .store
            .read("assemble_context", move |tx| {
                let mut assembled = Assembled::default();
                let id = scopes::find(tx, &scope)?;
                let outcomes = assembly::walk(&refs, budget, |file| match id {
                    Some(id) => Ok(documents::chars(tx, id, &file.path)?),
                    None => Ok(None),
                })?;
                let mut read: HashMap<&FilePath, (ETag, Arc<str>)> = HashMap::new();
                for (file, outcome) in refs.iter().zip(outcomes) {
                    let path = file.given.clone();
                    match outcome {
                        Outcome::Missing => {}
                        Outcome::Dropped(reason) => assembled.dropped.push(DroppedFile { path, reason }),
                        Outcome::Selected => {
                            if !read.contains_key(&file.path)
                                && let Some(stored) = documents::get(tx, &scope, &file.path)?
                            {
                                read.insert(&file.path, (stored.etag, stored.document.into()));
                            }
                            if let Some((etag, document)) = read.get(&file.path).cloned() {
                                assembled.files.push(AssembledFile { path, etag, document });
                            }
                        }
                    }
                }
                Ok::<_, Error>(assembled)
            })
            .await
    }
}
