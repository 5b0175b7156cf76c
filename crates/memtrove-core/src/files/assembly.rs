//! Context assembly: which of the files that were asked for fit.

use super::{Code, FilePath, body};
use crate::{Error, Result};
use serde_json::{Map, Value};

const MAX_FILES: usize = 500;
/// A budget beyond this counts as this: a char is up to four bytes, and an answer has to fit in memory.
const MAX_CHARS_TOTAL: usize = 8_000_000;
/// What assembles a context by a profile, which nothing does yet.
const OF_PROFILES: [&str; 2] = ["profile_id", "conversation_hint"];

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

/// Reads which files a context shall be made of, and how much it may hold.
pub fn read(request: &Map<String, Value>) -> Result<(Vec<FileRef>, Budget)> {
    let files = body::array(request, "files")?.unwrap_or_default();
    if files.is_empty() {
        body::refuse_unsupported(request, &OF_PROFILES)?;
        return Err(Error::new(Code::MissingAssemblyTargets, "'files' must name at least one file"));
    }
    if body::member(request, "profile_id").is_some() {
        return Err(Error::new(Code::InvalidAssemblyMode, "give either 'files' or 'profile_id', not both"));
    }
    body::refuse_unsupported(request, &OF_PROFILES)?;
    if files.len() > MAX_FILES {
        let message = format!("'files' must not name more than {MAX_FILES} files");
        return Err(Error::new(Code::InvalidRequest, message));
    }
    let files = files.iter().map(file_ref).collect::<Result<_>>()?;
    let default = Budget::default();
    let budget = Budget {
        max_docs: limit(request, "max_docs")?.unwrap_or(default.max_docs),
        max_chars_total: limit(request, "max_chars_total")?
            .map_or(default.max_chars_total, |chars| chars.min(MAX_CHARS_TOTAL)),
    };
    Ok((files, budget))
}

fn file_ref(element: &Value) -> Result<FileRef> {
    let Value::Object(members) = element else {
        return Err(Error::new(Code::InvalidRequest, "the elements of 'files' must be JSON objects"));
    };
    let given = body::text(members, "path")?.unwrap_or_default();
    Ok(FileRef { given: given.to_owned(), path: FilePath::parse(given)? })
}

fn limit(request: &Map<String, Value>, name: &str) -> Result<Option<usize>> {
    let Some(limit) = body::integer(request, name)? else { return Ok(None) };
    match usize::try_from(limit) {
        Ok(limit) => Ok(Some(limit)),
        Err(_) => Err(Error::new(Code::InvalidLimit, format!("'{name}' must not be negative"))),
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
