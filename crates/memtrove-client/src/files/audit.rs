//! The audit trail: who changed which file, when and why, and every version again.

use super::{AuditPage, AuditRecord, ETag, Envelope, FilePath, Scope};
use crate::paging::pages;
use crate::{Client, Result, operations};
use futures_util::Stream;
use memtrove_core::Timestamp;
use memtrove_wire::files::ReconstructRequest;
use serde::Deserialize;

/// Which records to list; by default the first hundred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only of this file.
    pub path: Option<String>,
    /// Only at or after.
    pub from: Option<Timestamp>,
    /// Only at or before.
    pub to: Option<Timestamp>,
    /// Only those with a greater sequence.
    pub after: Option<i64>,
    /// The most records; 100 unless said otherwise, 500 at most.
    pub limit: Option<u32>,
}

/// Which version of a file to make again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reconstruct {
    /// The one that this change made.
    Change(String),
    /// The last one at this time.
    AsOf(Timestamp),
}

/// A version of a file, made again from the audit trail and proved by its hashes.
#[derive(Debug, Clone, Deserialize)]
pub struct ReconstructedFile {
    /// The change that made it.
    pub change_id: String,
    /// Its version.
    pub etag: ETag,
    /// What it held, byte for byte.
    pub document: Envelope,
}

impl Client {
    /// Lists the audit trail, in the order of its sequence.
    pub async fn list_audit(&self, scope: &Scope, query: AuditQuery) -> Result<AuditPage> {
        self.call(&operations::LIST_AUDIT, &scope.names())?
            .query("path", query.path)
            .query("from", query.from)
            .query("to", query.to)
            .query("after", query.after)
            .query("limit", query.limit)
            .receive()
            .await
    }

    /// Lists the audit trail to the last record, asking for more as they are taken.
    pub fn list_audit_all(
        &self,
        scope: &Scope,
        query: AuditQuery,
    ) -> impl Stream<Item = Result<AuditRecord>> + Send + use<> {
        let (client, scope) = (self.clone(), scope.clone());
        pages(query.after, move |after| {
            let (client, scope, query) = (client.clone(), scope.clone(), query.clone());
            async move {
                let page = client.list_audit(&scope, AuditQuery { after, ..query }).await?;
                Ok((page.records, page.next_after))
            }
        })
    }

    /// Reads the record of one change.
    pub async fn get_audit(&self, scope: &Scope, change_id: &str) -> Result<AuditRecord> {
        self.call(&operations::GET_AUDIT, &scope.names_with(change_id))?.receive().await
    }

    /// Makes a version of a file again from the audit trail, byte for byte.
    pub async fn reconstruct_version(
        &self,
        scope: &Scope,
        path: &FilePath,
        version: Reconstruct,
    ) -> Result<ReconstructedFile> {
        let (change_id, as_of_utc) = match version {
            Reconstruct::Change(id) => (Some(id), None),
            Reconstruct::AsOf(time) => (None, Some(time.to_string())),
        };
        let request = ReconstructRequest { path: path.as_str().to_owned(), change_id, as_of_utc };
        self.call(&operations::RECONSTRUCT_VERSION, &scope.names())?.json(&request)?.receive().await
    }
}
