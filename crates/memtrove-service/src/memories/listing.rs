//! Pages of entries, and what a session makes visible.

use super::provider::{Page, ScanQuery, Span};
use super::{Memories, count};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::cursor::Position;
use memtrove_core::memories::{Identifier, Layer, List, Memory, MemoryCaller, ScopeKey};
use memtrove_core::{Error, Result};
use memtrove_store::memories::sessions::{self, Session};

/// A page.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The entries.
    pub memories: Vec<Memory>,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
    /// How many there are altogether.
    pub total: usize,
}

impl Memories {
    /// A page of the entries of a scope, newest first.
    pub async fn list(&self, caller: &MemoryCaller, list: List) -> Result<Listed> {
        count("memory.list", list.scope.layer());
        let (fingerprint, key) = (list.fingerprint(), self.parts.keys.cursors);
        let after =
            list.cursor.as_deref().map(|text| Position::decode(text, fingerprint, &key)).transpose()?;
        let spans = self.spans(caller.tenant(), vec![list.scope.clone()]).await?;
        let query = ScanQuery {
            viewer: list.viewer,
            conditions: list.conditions,
            after,
            // One more, to know whether anything follows.
            limit: list.limit + 1,
            with_embeddings: true,
            now: self.now(),
        };
        let Page { mut memories, total } = self.scan(spans, query).await?;
        let more = memories.len() > list.limit;
        memories.truncate(list.limit);
        let next_cursor =
            memories.last().filter(|_| more).map(|last| Position::of(last).encode(fingerprint, &key));
        Ok(Listed { memories, next_cursor, total })
    }

    /// A page from every provider that may have something.
    pub(super) async fn scan(&self, spans: Vec<Span>, query: ScanQuery) -> Result<Page> {
        let mut page = Page::default();
        for provider in self.parts.catalogue.for_conditions(&query.conditions, &spans) {
            let part = provider.scan(spans.clone(), query.clone()).await?;
            page.memories.extend(part.memories);
            page.total += part.total;
        }
        page.memories.sort_by(|a, b| Position::of(a).compare(&Position::of(b)));
        page.memories.truncate(query.limit);
        Ok(page)
    }

    /// The scopes that a request reads: of a deleted conversation none, of a fork its ancestors' too.
    pub(super) async fn spans(&self, tenant: &Tenant, scopes: Vec<ScopeKey>) -> Result<Vec<Span>> {
        let session = |scope: &ScopeKey| {
            (scope.layer() == Layer::Session)
                .then(|| scope.get(Identifier::Session))
                .flatten()
                .map(str::to_owned)
        };
        let Some(id) = scopes.iter().find_map(session) else {
            return Ok(scopes.into_iter().map(|scope| Span { scope, until: None }).collect());
        };
        let of = tenant.clone();
        let found = self
            .cx
            .store
            .read("look_up_session", move |tx| Ok::<_, Error>(sessions::look_up(tx, &of, &id)?))
            .await?;
        let mut spans = Vec::with_capacity(scopes.len());
        for scope in scopes {
            if scope.layer() != Layer::Session {
                spans.push(Span { scope, until: None });
                continue;
            }
            match &found {
                Session::Deleted => {}
                Session::Plain => spans.push(Span { scope, until: None }),
                Session::Fork(ancestors) => {
                    for (ancestor, until) in ancestors {
                        let values = [scope.user().unwrap_or_default().to_owned(), ancestor.clone()];
                        let inherited = ScopeKey::listed(tenant.clone(), Layer::Session, values.to_vec());
                        spans.extend(inherited.map(|scope| Span { scope, until: Some(*until) }));
                    }
                    spans.push(Span { scope, until: None });
                }
            }
        }
        Ok(spans)
    }

    /// A scope by itself, without what a fork inherits; none if it is the session of a deleted conversation.
    pub(super) async fn own_span(&self, scope: &ScopeKey) -> Result<Vec<Span>> {
        let mut spans = self.spans(scope.tenant(), vec![scope.clone()]).await?;
        spans.retain(|span| span.scope == *scope);
        Ok(spans)
    }

    /// Whether the session of an entry, if it is a conversation, was not deleted.
    pub(super) async fn session_exists(&self, memory: &Memory) -> Result<bool> {
        let Some(session) = memory.scope.get(Identifier::Session).map(str::to_owned) else { return Ok(true) };
        let tenant = memory.scope.tenant().clone();
        let found = self
            .cx
            .store
            .read("look_up_session", move |tx| Ok::<_, Error>(sessions::look_up(tx, &tenant, &session)?))
            .await?;
        Ok(found != Session::Deleted)
    }
}
