//! Remembering and forgetting by words: the same words again are the same memory, not a second one.
//!
//! What says some words is looked up by their digest (`store/memories/statements.rs`), where it is stored anew in the unit of work
//! that does so: of two that remember the same at once, one finds what the other stored.

use super::Memories;
use super::entries::settle_state;
use super::memory_store::Half;
use super::scope_search::Span;
use super::writing::{Write, WriteOutcome};
use crate::quota::CallKind;
use memtrove_core::memories::{
    AddMemory, Assertion, Conditions, Memory, MemoryCaller, MemoryId, Precondition, Search, SearchMemories,
    Statement, Viewer,
};
use memtrove_core::{Error, Result};
use memtrove_store::memories::{ScopeNo, scopes, statements};
use memtrove_store::{AllTenants, Store, TenantScope, Tx};
use std::sync::Arc;

/// Entries that a step makes found by their words.
const STEP: i64 = 500;

/// What became of something to remember.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// The entry that says it now.
    pub memory: Memory,
    /// Whether nothing said it before.
    pub created: bool,
}

impl Memories {
    /// Stores an entry unless one in the same scope that the caller sees states the same already.
    pub async fn remember(&self, caller: &MemoryCaller, add: AddMemory) -> Result<Remembered> {
        let new = add.check(self.rules(), caller)?;
        let caller = &*self.charge_once(caller, &new.identifiers, CallKind::Write).await?;
        let viewer = caller.viewer(&new.identifiers);
        // A fork says what its ancestors said before it. The scope itself counts, even when it is closed to readers.
        let mut spans = self.spans(caller, vec![new.scope.clone()]).await?;
        spans.retain(|span| span.scope != new.scope);
        spans.push(Span { scope: new.scope.clone(), until: None });
        let (mut memory, actor) = self.draft(caller, new, false).await?;
        let mut is_embedded = false;
        loop {
            if let Some(memory) = self.stating_already(&spans, &memory, &viewer).await? {
                return Ok(Remembered { memory, created: false });
            }
            if !is_embedded {
                memory.embedding = self.embed(caller.tenant().as_str(), &memory.content).await?;
                settle_state(&mut memory);
                is_embedded = true;
            }
            let journal = self.journal(actor.clone(), memory.created_at, 1, "add");
            let stored = Arc::new(memory.clone());
            let write = Write::Remember { memory: stored.clone(), viewer: viewer.clone() };
            if self.write(vec![write], journal).await? == WriteOutcome::Done {
                self.added(&[stored]).await;
                return Ok(Remembered { memory, created: true });
            }
            // Somebody was faster; or it is a fact that somebody states out of sight.
            self.refuse_restated(&memory).await?;
        }
    }

    /// The entry that a viewer sees and that states what another one would.
    async fn stating_already(&self, spans: &[Span], new: &Memory, viewer: &Viewer) -> Result<Option<Memory>> {
        let store = self.parts.store.of(new.kind).store();
        let new = Arc::new((new.clone(), viewer.clone()));
        let look_up = move |tx: &mut dyn Tx, span: &Span| {
            Ok(stating_already(tx, span, &new.0, &new.1)?.into_iter().collect())
        };
        Ok(self.look_up(store, spans, look_up).await?.into_iter().next())
    }

    /// Deletes the entries of some layers that say these very words, whatever their case, their spacing and the punctuation
    /// at their end; says which they were. They are looked for as by a search.
    pub async fn forget_words(&self, caller: &MemoryCaller, words: SearchMemories) -> Result<Vec<MemoryId>> {
        let Search { query, scopes, viewer, conditions, .. } = words.check(self.rules(), caller)?;
        let caller = &*self.charge(caller, CallKind::Write, |_| viewer.user.clone()).await?;
        let spans = self.spans(caller, scopes).await?;
        let (now, wanted) = (self.now(), Arc::new((query, viewer, conditions)));
        let mut forgotten = Vec::new();
        for store in self.parts.store.all().map(Half::store) {
            let wanted = wanted.clone();
            let look_up = move |tx: &mut dyn Tx, span: &Span| {
                let (query, viewer, conditions) = &*wanted;
                let mut found = saying(tx, span, query)?;
                found.retain(|memory| {
                    memory.is_live(now)
                        && viewer.sees(&memory.policy, &memory.created_by)
                        && conditions.admits(memory)
                });
                Ok(found)
            };
            for memory in self.look_up(store, &spans, look_up).await? {
                if self.delete(caller, memory.id, &Assertion::default(), &Precondition::default()).await? {
                    forgotten.push(memory.id);
                }
            }
        }
        Ok(forgotten)
    }

    /// Looks something up by its words in each of some scopes, whose entries are all made found by theirs first.
    async fn look_up(
        &self,
        store: &Store,
        spans: &[Span],
        look_up: impl Fn(&mut dyn Tx, &Span) -> Result<Vec<Memory>> + Clone + Send + 'static,
    ) -> Result<Vec<Memory>> {
        let Some(tenant) = spans.first().map(|span| span.scope.tenant()) else { return Ok(Vec::new()) };
        loop {
            let (spans, look_up) = (spans.to_vec(), look_up.clone());
            let looked_up = store.read(tenant, "find_words", move |tx| {
                let mut found = Vec::new();
                for span in &spans {
                    if let Some(scope) = scopes::find(tx, &span.scope)?
                        && !statements::is_registered(tx, scope.no)?
                    {
                        return Ok::<_, Error>(Err(scope.no));
                    }
                    found.extend(look_up(tx, span)?);
                }
                Ok(Ok(found))
            });
            match looked_up.await? {
                Ok(found) => return Ok(found),
                Err(scope) => register(store, tenant.into(), Some(scope)).await?,
            };
        }
    }

    /// Makes every entry found by its words: those that an older version wrote, for example.
    pub(super) async fn register_words(&self) -> Result<()> {
        while register(&self.cx.store, AllTenants.into(), None).await? > 0 {}
        Ok(())
    }
}

/// Makes some entries found by their words; says how many.
async fn register(store: &Store, tenants: TenantScope, scope: Option<ScopeNo>) -> Result<usize> {
    store
        .write(tenants, "register_words", move |tx| Ok::<_, Error>(statements::register(tx, scope, STEP)?))
        .await
}

/// The entries of a scope that say the very words.
fn saying(tx: &mut dyn Tx, span: &Span, words: &str) -> Result<Vec<Memory>> {
    let Some(scope) = scopes::find(tx, &span.scope)? else { return Ok(Vec::new()) };
    let found = statements::saying(tx, span.scope.tenant(), scope.no, words)?.into_iter();
    let found = found.map(|stored| stored.memory);
    Ok(found.filter(|memory| span.until.is_none_or(|until| memory.created_at <= until)).collect())
}

/// The entry of a scope that states what a new one would, and that the viewer sees.
pub(super) fn stating_already(
    tx: &mut dyn Tx,
    span: &Span,
    new: &Memory,
    viewer: &Viewer,
) -> Result<Option<Memory>> {
    let conditions = Conditions { kinds: Some(vec![new.kind]), ..Conditions::default() };
    let is_the_same = |other: &Memory| {
        other.is_live(new.created_at)
            && viewer.sees(&other.policy, &other.created_by)
            && conditions.admits(other)
            && Statement::of(other).is_like(&Statement::of(new))
    };
    Ok(saying(tx, span, &new.content)?.into_iter().find(is_the_same))
}
