//! Context assembly: which of the files that were asked for fit.

use super::FilePath;
use crate::Result;

/// How much a context may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How many files.
    pub max_docs: usize,
    /// How many chars in all of them together.
    pub max_chars_total: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_docs: 4, max_chars_total: 30_000 }
    }
}

/// A file that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRef {
    /// Its path as the request spells it, which is how the answer spells it.
    pub given: String,
    /// The path that is.
    pub path: FilePath,
}

/// What became of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is part of the context.
    Selected,
    /// It is there but does not fit.
    Dropped(DropReason),
    /// There is no such file.
    Missing,
}

/// Why a file is not part of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// Enough files were selected before it.
    MaxDocs,
    /// It has more chars than are left.
    MaxCharsTotal,
}

impl DropReason {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            DropReason::MaxDocs => "max_docs",
            DropReason::MaxCharsTotal => "max_chars_total",
        }
    }
}

/// Walks the files in the order they were asked for; `chars` says how large one is, if it is there. A file that does
/// not fit does not end the walk: a smaller one may come. Once there are enough, the rest is not even looked at.
pub fn walk<F>(
    files: &[F],
    budget: Budget,
    mut chars: impl FnMut(&F) -> Result<Option<usize>>,
) -> Result<Vec<Outcome>> {
    let (mut docs_left, mut chars_left) = (budget.max_docs, budget.max_chars_total);
    let mut decide = |file| {
        if docs_left == 0 {
            return Ok(Outcome::Dropped(DropReason::MaxDocs));
        }
        let Some(size) = chars(file)? else { return Ok(Outcome::Missing) };
        let Some(rest) = chars_left.checked_sub(size) else {
            return Ok(Outcome::Dropped(DropReason::MaxCharsTotal));
        };
        (docs_left, chars_left) = (docs_left - 1, rest);
        Ok(Outcome::Selected)
    };
    files.iter().map(&mut decide).collect()
}

#[cfg(test)]
mod tests;
