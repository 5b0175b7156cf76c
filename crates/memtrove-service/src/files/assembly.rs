//! Putting a context together from files that the caller names, and from memories that it searches for.

use super::{Admitted, Files, Reader};
use crate::memories::ShownHit;
use memtrove_core::files::assembly::{self, Budget, DropReason, FileRef, Outcome};
use memtrove_core::files::{ETag, FilePath};
use memtrove_core::memories::{MemoryCaller, SearchMemories};
use memtrove_core::{Error, Result};
use memtrove_store::files::{documents, scopes};
use std::collections::HashMap;
use std::sync::Arc;

/// A context to be put together.
#[derive(Debug, Clone)]
pub struct Assemble {
    pub files: Vec<FileRef>,
    pub budget: Budget,
    /// What to search for in the memories, for what the files leave of the budget.
    pub memories: Option<AssembleMemories>,
}

/// Memories in a context.
#[derive(Debug, Clone)]
pub struct AssembleMemories {
    pub search: SearchMemories,
    /// A result as its transport shows it: the budget counts what is sent.
    pub render: fn(ShownHit, &SearchMemories) -> Result<String>,
}

/// A context.
#[derive(Debug, Clone, Default)]
pub struct Assembled {
    /// The files that fit, in the order they were asked for.
    pub files: Vec<AssembledFile>,
    /// Those that did not.
    pub dropped: Vec<DroppedFile>,
    /// The memories that fit, strongest first, each as JSON; none if they were not asked for.
    pub memories: Option<Vec<String>>,
}

/// A file in a context.
#[derive(Debug, Clone)]
pub struct AssembledFile {
    /// Its path, as the caller wrote it.
    pub path: String,
    /// Its version.
    pub etag: ETag,
    /// What it takes of the budget.
    pub chars: usize,
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
    /// Assembles a context. All files are read from one consistent point; memories get what they leave of the budget.
    pub async fn assemble(
        &self,
        admitted: &Admitted<Reader>,
        rememberer: &MemoryCaller,
        request: Assemble,
    ) -> Result<Assembled> {
        let Assemble { files, budget, memories } = request;
        if let Some(wanted) = &memories {
            wanted.search.clone().check(self.memories.rules(), rememberer)?;
        }
        let mut assembled = self.assemble_files(admitted, files, budget).await?;
        if let Some(wanted) = memories {
            let used: usize = assembled.files.iter().map(|file| file.chars).sum();
            let left = budget.max_chars_total.saturating_sub(used);
            assembled.memories = Some(self.assemble_memories(rememberer, wanted, left).await?);
        }
        Ok(assembled)
    }

    /// The memories that a search finds, as far as there are characters left for them.
    async fn assemble_memories(
        &self,
        rememberer: &MemoryCaller,
        AssembleMemories { search, render }: AssembleMemories,
        max_chars_total: usize,
    ) -> Result<Vec<String>> {
        // The request was charged when its caller was admitted.
        let answer = self.memories.search(&rememberer.clone().charged(), search.clone()).await?;
        let show = |hit| render(self.memories.show_hit(rememberer, hit), &search);
        let shown: Vec<String> = answer.hits.into_iter().map(show).collect::<Result<_>>()?;
        let budget = Budget { max_docs: usize::MAX, max_chars_total };
        let outcomes = assembly::walk(&shown, budget, |hit| Ok(Some(hit.chars().count())))?;
        let fits = |(hit, outcome)| (outcome == Outcome::Selected).then_some(hit);
        Ok(shown.into_iter().zip(outcomes).filter_map(fits).collect())
    }

    async fn assemble_files(
        &self,
        admitted: &Admitted<Reader>,
        refs: Vec<FileRef>,
        budget: Budget,
    ) -> Result<Assembled> {
        let scope = admitted.caller().scope.clone();
        self.cx
            .store
            .read(scope.tenant().clone(), "assemble_context", move |tx| {
                let mut assembled = Assembled::default();
                let id = scopes::find(tx, &scope)?;
                let outcomes = assembly::walk(&refs, budget, |file| match id {
                    Some(id) => Ok(documents::chars(tx, id, &file.path)?),
                    None => Ok(None),
                })?;
                let mut read: HashMap<&FilePath, (ETag, usize, Arc<str>)> = HashMap::new();
                for (file, outcome) in refs.iter().zip(outcomes) {
                    let path = file.given.clone();
                    match outcome {
                        Outcome::Missing => {}
                        Outcome::Dropped(reason) => assembled.dropped.push(DroppedFile { path, reason }),
                        Outcome::Selected => {
                            if !read.contains_key(&file.path)
                                && let Some(stored) = documents::get(tx, &scope, &file.path)?
                            {
                                read.insert(&file.path, (stored.etag, stored.chars, stored.document.into()));
                            }
                            if let Some((etag, chars, document)) = read.get(&file.path).cloned() {
                                assembled.files.push(AssembledFile { path, etag, chars, document });
                            }
                        }
                    }
                }
                Ok::<_, Error>(assembled)
            })
            .await
    }
}
