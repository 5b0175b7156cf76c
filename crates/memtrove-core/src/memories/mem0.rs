//! The mem0 API in terms of memories, and back. The same entries in other words: `user_id`, `agent_id`, `app_id` and `run_id`
//! say whose they are, messages become entries, and filters are trees of conditions.
//!
//! Requests become bodies of `/v1/memories` and are checked there: there is one set of rules. What mem0 knows of an entry and
//! we have no place for is kept in one member of its metadata, [`OWN`].

mod entities;
mod filter;
mod instant;
mod kept;
mod metadata;
mod shown;
mod writing;

pub use entities::{Entities, Entity, Home, may_look_into};
pub use filter::{Filters, Test, in_scope};
pub use kept::{Lifetime, Mem0Memory};
pub use metadata::all as all_metadata;
pub use shown::{SaidBy, expiration_date, said_by};
pub use writing::{Add, Update, needs_a_model};

use super::add::check_length;
use super::members::Members;
use super::{Code, Conditions, Filter, Kind, Rules};
use crate::{Error, Result};
use serde_json::Value;

/// The member of metadata that holds what only mem0 knows.
pub const OWN: &str = "mem0";

/// Results of a search that names no number of them: as many as mem0 gives.
const TOP_K: usize = 20;
/// The least score of a search that names none: as low as mem0's, which ranks and hardly cuts.
const THRESHOLD: f64 = 0.1;
/// Entries on a page that names no number of them.
const PAGE_SIZE: usize = 100;
/// The last page there is.
const LAST_PAGE: i64 = 1_000_000;

/// Members that say how an answer is made and never which entries are in it; what they ask for is always so, or has no
/// meaning here: what has expired is gone, whoever asks for it.
const HARMLESS: [&str; 5] = ["version", "api_version", "output_format", "latest_only", "show_expired"];

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What to look for.
    pub query: String,
    /// Whose entries.
    pub filters: Filters,
    /// How many results at most.
    pub limit: usize,
    /// The least score.
    pub threshold: f64,
    /// The members that results show; none is all of them.
    pub fields: Option<Vec<String>>,
}

impl Search {
    /// Reads the body of a search.
    pub fn read(body: &Value, rules: &Rules) -> Result<Self> {
        const KNOWN: [&str; 11] = [
            "query",
            "filters",
            "metadata",
            "categories",
            "top_k",
            "limit",
            "threshold",
            "fields",
            "rerank",
            "keyword_search",
            "explain",
        ];
        let members = Members::body(body)?;
        refuse_unknown(members, &KNOWN)?;
        let query = members.required("query", members.spoken("query"))?.trim();
        let most = rules.limits.search_limit;
        let limit = match members.get("top_k") {
            Some(_) => members.limit("top_k", TOP_K, most)?,
            None => members.limit("limit", TOP_K, most)?,
        };
        let threshold = members.number("threshold", 0.0..=1.0)?.unwrap_or(THRESHOLD);
        let fields = members.texts("fields")?.map(|names| names.into_iter().map(str::to_owned).collect());
        for name in ["rerank", "keyword_search", "explain"] {
            members.boolean(name)?;
        }
        let filters = Filters::read(members)?;
        check_length(Code::QueryTooLong, query, rules.limits.query_length)?;
        Ok(Self { query: query.to_owned(), filters, limit, threshold, fields })
    }
}

/// A page of entries.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// Whose entries.
    pub filters: Filters,
    /// Which page, from 1 on.
    pub page: usize,
    /// How many are on one.
    pub page_size: usize,
}

impl List {
    /// Reads the body of a list.
    pub fn read(body: &Value, rules: &Rules) -> Result<Self> {
        const KNOWN: [&str; 8] =
            ["filters", "metadata", "categories", "start_date", "end_date", "page", "page_size", "limit"];
        let members = Members::body(body)?;
        refuse_unknown(members, &KNOWN)?;
        let most = rules.limits.list_limit;
        let page = members.integer("page", 1..=LAST_PAGE)?.unwrap_or(1);
        let page_size = match members.get("page_size") {
            Some(_) => members.limit("page_size", PAGE_SIZE, most)?,
            None => members.limit("limit", PAGE_SIZE.min(most), most)?,
        };
        let filters = Filters::read(members)?;
        Ok(Self { filters, page: usize::try_from(page).unwrap_or(1), page_size })
    }
}

/// Which of the entries of a scope these conditions are about: everything that lasts and is not put away.
pub(super) fn conditions(test: Option<Test>) -> Conditions {
    let kinds = Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Working | Kind::Archival));
    Conditions { kinds: Some(kinds.collect()), filter: Filter::asking(test), ..Conditions::default() }
}

/// Refuses members that nobody here knows: one that is not looked at would widen the result.
fn refuse_unknown(members: Members<'_>, known: &[&str]) -> Result<()> {
    if members.flag("enable_graph")? {
        return Err(members.refuse("enable_graph", "cannot be asked for: there is no graph here"));
    }
    if members.get("reference_date").is_some() {
        return Err(members.refuse("reference_date", "is not known here; filter by created_at instead"));
    }
    let ignored = ["enable_graph", "reference_date"];
    let is_known = |name: &str| {
        known.contains(&name)
            || HARMLESS.contains(&name)
            || ignored.contains(&name)
            || Entity::ALL.iter().any(|entity| entity.member() == name)
    };
    match members.names().find(|name| !is_known(name)) {
        Some(unknown) => {
            let message =
                format!("'{unknown}' is not known here, and leaving it out could find more than was meant");
            Err(Error::new(Code::InvalidRequest, message).with("field", unknown))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
