//! Forgetting: what of a user is in memories, and what goes with a conversation.
//!
//! The store puts scopes out of reach; here goes what was made of them: working memory, indexes, the stream's past, vectors
//! that are remembered. In layers that others share, what the user made stays without its name.

use super::Memories;
use super::access::Writable;
use super::journal::Told;
use super::memory_store::Half;
use super::stream::Update;
use super::writing::Write;
use memtrove_core::files::Scope;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Author, Identifier, Memory, Policy, ScopeKey};
use memtrove_core::{Error, GroupId, Result, Timestamp, UserId};
use memtrove_store::AllTenants;
use memtrove_store::Tx;
use memtrove_store::files::forget::{Forget, Removed, begun};
use memtrove_store::idempotency;
use memtrove_store::memories::entries::{self, Stored};
use memtrove_store::memories::purge::{self, Detached, Selector};
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{index, sessions, texts};
use std::collections::HashSet;
use std::sync::Arc;

/// Rows that a step works on.
const STEP: i64 = 200;

/// What a copy is made from. An entry that changes is looked at again where it is written, but a copy is a new entry: written
/// after its source was forgotten, it would bring that back.
#[derive(Debug, Clone)]
pub enum Source {
    /// An entry of the primary store, at the version that was read.
    Lasting(Arc<Memory>),
    /// Something in working memory, and how many forgets had begun, on whichever node, before it was read. A forget clears working
    /// memory before it begins, so what was read there and is written after the beginning was counted as before it. And whose it
    /// is; without an owner it is part of no forget.
    Working(i64, Option<Scope>),
}

impl Source {
    /// Whose forgetting must not begin while a copy is written, because it is not seen where that is.
    pub fn of(&self) -> Option<&Scope> {
        match self {
            Self::Lasting(_) => None,
            Self::Working(_, of) => of.as_ref(),
        }
    }

    /// Whether a copy may be written. To be asked in a unit of work of the primary store.
    pub fn is_there(&self, tx: &mut dyn Tx) -> Result<bool> {
        match self {
            Self::Lasting(memory) => {
                Ok(entries::version(tx, memory.scope.tenant(), memory.id)? == Some(memory.version))
            }
            Self::Working(before, _) => Ok(begun(tx)? == *before),
        }
    }
}

/// Sessions that ended with their conversations, and what was remembered in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    /// Each of a user.
    sessions: HashSet<(String, String)>,
    scopes: Vec<Detached>,
}

/// Puts what the members of a tree remembered in its conversations out of reach, in the unit of work that removes it. What
/// others remembered under the same ids stays: they know nothing of the tree, and must not learn of its end.
pub(crate) fn end_sessions(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    ended: &mut Ended,
) -> Result<()> {
    let members = sessions::members(tx, group.0)?;
    for session in sessions::of_tree(tx, group.0)? {
        for user in &members {
            let theirs = Selector::Session { user, session: &session };
            ended.scopes.extend(purge::detach(tx, tenant, &theirs)?);
            ended.sessions.insert((user.clone(), session.clone()));
        }
    }
    Ok(())
}

impl Memories {
    /// Reads entries of a tenant again that are to be copied; none for one that is not what it was any more, or was copied before
    /// and is to be copied `once`.
    pub(super) async fn sources(&self, memories: &[Memory], once: bool) -> Result<Vec<Option<Source>>> {
        let Some(tenant) = memories.first().map(|memory| memory.scope.tenant()) else {
            return Ok(Vec::new());
        };
        let begun = |tx: &mut dyn Tx| Ok::<_, Error>(begun(tx)?);
        let before = match memories.iter().any(|memory| Self::is_volatile(memory.kind)) {
            true => self.cx.store.read(tenant, "forgets_begun", begun).await?,
            false => 0,
        };
        let mut sources = vec![None; memories.len()];
        for (half, volatile) in self.parts.store.all().into_iter().zip([false, true]) {
            let here: Vec<usize> =
                (0..memories.len()).filter(|at| Self::is_volatile(memories[*at].kind) == volatile).collect();
            let current = half.get_all(tenant, here.iter().map(|at| memories[*at].id).collect()).await?;
            for (at, current) in here.into_iter().zip(current) {
                let is_as_read = |current: &Memory| current.version == memories[at].version;
                let Some(current) = current.filter(is_as_read) else { continue };
                if once && current.lineage.promoted_to.is_some() {
                    continue;
                }
                sources[at] = Some(match volatile {
                    true => Source::Working(before, owner(&current.scope)),
                    false => Source::Lasting(Arc::new(current)),
                });
            }
        }
        Ok(sources)
    }

    /// Drops what this process keeps of a user; says how many entries that were in working memory. To be done before a forget
    /// begins, so that nothing is copied from there to where it would outlive it, and again on the node that carries it out.
    pub(crate) async fn forget_here(&self, who: &Scope) -> Result<u64> {
        let (tenant, user) = (who.tenant().clone(), who.user().as_str().to_owned());
        let detach = self.parts.store.volatile.store().write(who.tenant(), "forget_working", move |tx| {
            Ok::<_, Error>(purge::detach(tx, &tenant, &Selector::User(&user))?)
        });
        let gone = detach.await?;
        self.parts.store.volatile.drop_indexes(&gone);
        self.clear_working().await?;
        self.forget_working_keys(who).await?;
        let user = who.user().as_str();
        self.parts.bus.forget(who.tenant(), |memory| {
            memory.scope.user() == Some(user) || memory.created_by.user.as_deref() == Some(user)
        });
        // Vectors are remembered by digests of their texts, which do not tell whose they were.
        self.cx.embeddings.forget_all();
        Ok(gone.iter().map(|scope| scope.entries).sum())
    }

    /// Drops the indexes of scopes of the primary store that are out of reach.
    pub(crate) fn drop_lasting_indexes(&self, gone: &[Detached]) {
        self.parts.store.durable.drop_indexes(gone);
    }

    /// Drops everything that this node keeps in memory of what is stored: a user was forgotten on another node, and this one does
    /// not know what was whose. It is loaded again as it is needed.
    pub(crate) fn drop_everything_kept(&self) {
        self.parts.store.all().into_iter().for_each(Half::drop_all_indexes);
        self.cx.trees.clear();
        self.cx.embeddings.forget_all();
    }

    /// Forgets what requests were answered that made working memories of a user.
    async fn forget_working_keys(&self, who: &Scope) -> Result<()> {
        let step = || {
            let (tenant, user) = (who.tenant().clone(), who.user().as_str().to_owned());
            let work =
                move |tx: &mut dyn Tx| Ok::<_, Error>(idempotency::forget_user(tx, &tenant, &user, STEP)?);
            self.parts.store.volatile.store().write(who.tenant(), "forget_memory_keys", work)
        };
        while step().await? > 0 {}
        Ok(())
    }

    async fn clear_working(&self) -> Result<()> {
        let step = || {
            self.parts
                .store
                .volatile
                .store()
                .write(AllTenants, "clear_memories", |tx| Ok::<_, Error>(purge::step(tx, STEP)?))
        };
        while step().await?.is_some() {}
        Ok(())
    }

    /// Takes a user's name off what it made in scopes that are not its own, and removes what only it could see there.
    pub(crate) async fn anonymize(&self, forget: &Forget) -> Result<Removed> {
        let mut all = Removed::default();
        loop {
            let (forgotten, journal, now) = (forget.clone(), self.unaudited("forget"), self.now());
            let publish = self.publish();
            let work = move |tx: &mut dyn Tx| {
                let (tenant, user) = (forgotten.who.tenant(), forgotten.who.user().as_str());
                let made = entries::shared_by(tx, tenant, user, forgotten.last_memory, STEP)?;
                let (mut writing, mut writes) = (Writing::default(), Vec::with_capacity(made.len()));
                for stored in made {
                    writes.push(anonymize(tx, &mut writing, stored, user, now)?);
                }
                writing.finish(tx)?;
                journal.tell(tx, &writes)
            };
            let told: Told =
                self.cx.store.write_then(forget.who.tenant(), "forget_authors", work, publish).await?;
            if told.is_empty() {
                return Ok(all);
            }
            let deleted = told.iter().filter(|(_, event)| event.update == Update::Deleted).count() as u64;
            all += Removed {
                memories: deleted,
                memories_anonymized: told.len() as u64 - deleted,
                ..Removed::default()
            };
        }
    }

    /// Drops what this process keeps of sessions that ended with their conversations.
    pub(crate) async fn sessions_ended(&self, tenant: &Tenant, ended: Ended) -> Result<()> {
        self.drop_lasting_indexes(&ended.scopes);
        let (tenant, sessions) = (tenant.clone(), ended.sessions);
        self.parts.bus.forget(&tenant, |memory| {
            let whose = memory.scope.user().zip(memory.scope.get(Identifier::Session));
            whose.is_some_and(|(user, session)| sessions.contains(&(user.to_owned(), session.to_owned())))
        });
        let detach = self.parts.store.volatile.store().write(tenant.clone(), "end_sessions", move |tx| {
            let mut gone = Vec::new();
            for (user, session) in &sessions {
                gone.extend(purge::detach(tx, &tenant, &Selector::Session { user, session })?);
            }
            Ok::<_, Error>(gone)
        });
        let gone = detach.await?;
        self.parts.store.volatile.drop_indexes(&gone);
        Ok(())
    }
}

/// The user whom a scope of memories belongs to.
pub(super) fn owner(scope: &ScopeKey) -> Option<Scope> {
    scope.user().map(|user| Scope::listed(scope.tenant().clone(), UserId(user.to_owned())))
}

/// Takes the author's name off an entry and unsays what it said before, or removes one that only the author could see. Answers what
/// was done, without what was said where that is gone.
fn anonymize(
    tx: &mut dyn Tx,
    writing: &mut Writing,
    stored: Stored,
    user: &str,
    now: Timestamp,
) -> Result<Write> {
    let terms = index::terms(tx, stored.scope_no, stored.seq)?;
    let scope_no = stored.scope_no;
    let Stored { memory, .. } = entries::with_embedding(tx, stored)?;
    let mut next = Memory { created_by: Author::default(), ..memory.clone() };
    if memory.policy.policy == Policy::Private {
        writing.remove(tx, &memory, None)?;
        next.content.clear();
        next.metadata.clear();
        return Ok(Write::Remove(Writable::by_task(next)));
    }
    if next.metadata.get("author").and_then(|author| author.as_str()) == Some(user) {
        next.metadata.shift_remove("author");
    }
    next.policy.approved_users.retain(|approved| approved != user);
    next.touch(now);
    texts::unsay(tx, memory.scope.tenant(), scope_no, memory.id)?;
    let next = Arc::new(next);
    writing.replace(tx, &next, &terms, memory.version)?;
    Ok(Write::Replace { memory: next, current: Writable::by_task(memory) })
}
