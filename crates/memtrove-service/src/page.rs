//! Pages: a part of a list, and where the next part begins.

use memtrove_core::{Error, Result};

/// A request for a part of a list, by the cursor `C`.
#[derive(Debug, Clone)]
pub struct PageRequest<C> {
    /// Go on after this item.
    pub after: Option<C>,
    /// The size of the page.
    pub limit: Option<i64>,
}

impl<C> PageRequest<C> {
    /// The same request, by another cursor.
    pub fn map<D>(self, f: impl FnOnce(C) -> D) -> PageRequest<D> {
        PageRequest { after: self.after.map(f), limit: self.limit }
    }
}

impl<C> Default for PageRequest<C> {
    fn default() -> Self {
        Self { after: None, limit: None }
    }
}

/// A part of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The items.
    pub data: Vec<T>,
    /// What to ask for next, if there is more.
    pub after: Option<String>,
}

impl<T> Page<T> {
    /// Cuts what was fetched (one more than the limit, where there is more) to a page.
    pub(crate) fn cut(mut data: Vec<T>, limit: usize, cursor: impl Fn(&T) -> String) -> Self {
        let more = data.len() > limit;
        data.truncate(limit);
        let after = if more { data.last().map(cursor) } else { None };
        Self { data, after }
    }

    /// The same page of other things.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        Page { data: self.data.into_iter().map(f).collect(), after: self.after }
    }
}

/// The size of a page: what was asked for, within bounds.
pub(crate) fn limit(asked: Option<i64>, default: usize, max: usize) -> Result<usize> {
    match asked {
        None => Ok(default),
        Some(n) if n >= 1 && n <= max as i64 => Ok(n as usize),
        Some(_) => Err(Error::invalid("limit", format!("must be between 1 and {max}"))),
    }
}

/// A cursor that names nothing in this list.
pub(crate) fn unknown_cursor(field: &str) -> Error {
    Error::invalid(field, "does not name an item of this list; start again without it")
}
