//! Pages of entries, and what a session makes visible.

use super::memory_store::{MemoryPage, ScanQuery};
use super::scope_search::Span;
use super::{Memories, count};
use crate::quota::CallKind;
use memtrove_core::memories::cursor::Position;
use memtrove_core::memories::{Identifier, Layer, ListMemories, Memory, MemoryCaller, ScopeKey};
use memtrove_core::{Error, Result};
use memtrove_store::Tx;
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
    pub async fn list(&self, caller: &MemoryCaller, list: ListMemories) -> Result<Listed> {
        let list = list.check(self.rules(), caller)?;
        let caller = &*self.charge(caller, CallKind::Read, |_| list.viewer.user.clone()).await?;
        count("memory.list", list.scope.layer());
        let (fingerprint, key) = (list.fingerprint(), self.parts.keys.cursors);
        let after =
            list.cursor.as_deref().map(|text| Position::decode(text, fingerprint, &key)).transpose()?;
        let spans = self.spans(caller, vec![list.scope.clone()]).await?;
        let query = ScanQuery {
            viewer: list.viewer,
            conditions: list.conditions,
            after,
            // One more, to know whether anything follows.
            limit: list.limit + 1,
            with_embeddings: true,
            now: self.now(),
        };
        let MemoryPage { mut memories, total } = self.parts.store.scan(spans, query).await?;
        let more = memories.len() > list.limit;
        memories.truncate(list.limit);
        let next_cursor =
            memories.last().filter(|_| more).map(|last| Position::of(last).encode(fingerprint, &key));
        Ok(Listed { memories, next_cursor, total })
    }

    /// The scopes that a request reads: of a deleted conversation none, of a fork its ancestors' too.
    pub(super) async fn spans(&self, caller: &MemoryCaller, scopes: Vec<ScopeKey>) -> Result<Vec<Span>> {
        self.spans_for(Onlooker::of(caller), scopes).await
    }

    async fn spans_for(&self, onlooker: Onlooker, scopes: Vec<ScopeKey>) -> Result<Vec<Span>> {
        let Some(session) = scopes.iter().find(|scope| scope.layer() == Layer::Session) else {
            return Ok(scopes.into_iter().map(|scope| Span { scope, until: None }).collect());
        };
        let tenant = session.tenant().clone();
        let found = self.look_up_session(onlooker, session).await?;
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
    pub(super) async fn own_span(&self, onlooker: Onlooker, scope: &ScopeKey) -> Result<Vec<Span>> {
        let mut spans = self.spans_for(onlooker, vec![scope.clone()]).await?;
        spans.retain(|span| span.scope == *scope);
        Ok(spans)
    }

    /// Whether the session of an entry, if it is a conversation, was not deleted.
    pub(super) async fn session_exists(&self, caller: &MemoryCaller, memory: &Memory) -> Result<bool> {
        let found = self.look_up_session(Onlooker::of(caller), &memory.scope).await?;
        Ok(found != Session::Deleted)
    }

    /// What the session of a scope is, as far as the onlooker may know.
    async fn look_up_session(&self, onlooker: Onlooker, scope: &ScopeKey) -> Result<Session> {
        let Some(session) = scope.get(Identifier::Session).map(str::to_owned) else {
            return Ok(Session::Plain);
        };
        let (tenant, member) = (scope.tenant().clone(), onlooker.member(scope).map(str::to_owned));
        let look_up = move |tx: &mut dyn Tx| sessions::look_up(tx, &tenant, member.as_deref(), &session);
        self.cx.store.read(scope.tenant(), "look_up_session", move |tx| Ok::<_, Error>(look_up(tx)?)).await
    }
}

/// Who looks at sessions that may be conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onlooker {
    /// Somebody who may know of all conversations.
    All,
    /// Somebody who may know of those only that the user of the session is a member of; or a background job, of which such a
    /// user sees what it did.
    Member,
}

impl Onlooker {
    pub fn of(caller: &MemoryCaller) -> Self {
        if caller.acts_for_all() { Self::All } else { Self::Member }
    }

    /// The user whose conversations alone may be known.
    pub fn member(self, scope: &ScopeKey) -> Option<&str> {
        match self {
            Self::All => None,
            // A session always has a user.
            Self::Member => Some(scope.user().unwrap_or_default()),
        }
    }
}
