//! Forgetting a user: one operation for the whole product.
//!
//! The first unit of work decides what is forgotten and closes it to everybody; concurrent writers either finished before it,
//! and what they wrote goes too, or find nothing there and begin anew. The rest goes in steps that let others write in
//! between, at last from the disk. A forget stays noted until that is done, so that whatever stops it on the way, the task
//! worker goes on with it.

use super::{Admitted, Files, Forgetter};
use crate::attachments::{delete_with_tree, deletion};
use crate::audit::{self, MembershipActor};
use crate::memories::forget::{Ended, end_sessions};
use crate::{Context, files_metrics, lease, tasks};
use memtrove_core::{ConversationId, Error, Result, UserId};
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::conversations::{groups, memberships};
use memtrove_store::files::forget::{self, Forget, ForgetStep, Removed};
use memtrove_store::{AllTenants, StoreError, Tx};

/// Trees that one step takes out of reach.
const STEP_TREES: i64 = 50;
/// Rows that one step removes, of each kind.
const STEP_ROWS: i64 = 200;
/// Entries that one step looks at for a name.
const STEP_ENTRIES: i64 = 1_000;
/// Changes of the feed that one step looks at.
const STEP_CHANGES: i64 = 10_000;

/// What happens to what is out of reach, in this order: names first, because others see them.
const STEPS: [(&str, ForgetStep, i64); 7] = [
    ("forget_names", forget::anonymize, STEP_ENTRIES),
    ("forget_memory_names", forget::clear_memory_names, STEP_ROWS),
    ("forget_changes", forget::blank_changes, STEP_CHANGES),
    ("forget_private_memories", forget::blank_memories, STEP_ROWS),
    ("forget_memories", forget::clear_memories, STEP_ROWS),
    ("forget_files", forget::clear_scope, STEP_ROWS),
    ("forget_entries", forget::clear_trees, STEP_ROWS),
];

/// What was removed of a user, by kind.
pub type Forgotten = Removed;

impl Files {
    /// Forgets everything of a user.
    pub async fn forget(&self, admitted: &Admitted<Forgetter>) -> Result<Forgotten> {
        let (cx, caller) = (&self.cx, admitted.caller());
        let under_way = cx.forgetting.read().await;
        let working = self.memories.forget_here(&caller.scope).await?;
        let (who, inner) = (caller.scope.clone(), cx.clone());
        let detach = cx.store.write(caller.scope.tenant(), "forget_user", move |tx| {
            let begun = forget::detach(tx, &who, inner.clock.now())?;
            for forget in &begun.forgets {
                lease::claim(tx, &inner, &turn(forget))?;
            }
            Ok::<_, Error>(begun)
        });
        let begun = detach.await?;
        self.memories.drop_lasting_indexes(&begun.memories);
        let lasting: u64 = begun.memories.iter().map(|scope| scope.entries).sum();
        let mut removed = Removed { memories: working + lasting, ..Removed::default() };
        for forget in &begun.forgets {
            removed += lease::in_turn(cx, &turn(forget), self.carry_out(forget)).await?;
        }
        scrub(cx).await;
        drop(under_way);
        files_metrics::deleted("document", "forget", removed.documents);
        files_metrics::deleted("event", "forget", removed.events);
        files_metrics::deleted("audit", "forget", removed.audit);
        files_metrics::deleted("conversation", "forget", removed.conversations);
        files_metrics::deleted("memory", "forget", removed.memories);
        // The log of the operator: that it happened and how much went, not whose it was.
        tracing::info!(
            target: "files.operator",
            by = if caller.acts_for_itself() { "the user" } else { caller.principal.as_str() },
            documents = removed.documents,
            events = removed.events,
            audit = removed.audit,
            conversations = removed.conversations,
            anonymized = removed.anonymized,
            memories = removed.memories,
            memories_anonymized = removed.memories_anonymized,
            "a user was forgotten"
        );
        Ok(removed)
    }

    /// Goes on with what was not forgotten to the end, because a process ended on the way or the disk could not be scrubbed.
    pub(crate) async fn finish_forgetting(&self) -> Result<()> {
        let cx = &self.cx;
        // Not while somebody counts what goes.
        let Ok(_alone) = cx.forgetting.try_write() else { return Ok(()) };
        for forget in
            cx.store.read(AllTenants, "forgotten", |tx| Ok::<_, Error>(forget::unfinished(tx)?)).await?
        {
            // Not what another node is at.
            lease::alone(cx, &turn(&forget), self.carry_out(&forget)).await?.transpose()?;
        }
        scrub(cx).await;
        Ok(())
    }

    /// Removes everything that belongs to a forget, wherever it stopped.
    async fn carry_out(&self, forget: &Forget) -> Result<Removed> {
        let store = &self.cx.store;
        let forget = &self.settled(forget).await?;
        let mut removed = Removed {
            memories: self.memories.forget_here(&forget.who).await?,
            conversations: self.hide_trees(forget).await?,
            ..Removed::default()
        };
        for (name, step, rows) in STEPS {
            loop {
                let forget = forget.clone();
                // What an archive brought while its forget was under way names no tenant: its parents were gone.
                let done =
                    store.write(AllTenants, name, move |tx| Ok::<_, Error>(step(tx, &forget, rows)?)).await?;
                let Some(done) = done else { break };
                removed += done;
            }
        }
        removed += self.memories.anonymize(forget).await?;
        // What pointed at files of this user points at nothing now.
        self.memories.check_pointers().await?;
        // Forgotten is gone: what names its attachments is in the rows that go with their bytes, and the disk is scrubbed next. An
        // object store that is not there must not hold up the rest.
        if let Err(error) = deletion::finish_all(&self.cx).await {
            tracing::warn!(%error, "bytes of a forgotten user's attachments could not be removed; trying again later");
        }
        let cleared = forget.clone();
        store
            .write(forget.who.tenant(), "forget_done", move |tx| {
                Ok::<_, Error>(forget::set_cleared(tx, &cleared)?)
            })
            .await?;
        Ok(removed)
    }

    /// The same forget, knowing which changes it blanks: where they get their numbers after their commits, it could not tell as it
    /// began.
    async fn settled(&self, forget: &Forget) -> Result<Forget> {
        if forget.is_settled() {
            return Ok(forget.clone());
        }
        let (store, forget) = (&self.cx.store, forget.clone());
        store.settle().await?;
        store
            .write(forget.who.tenant().clone(), "forget_settle", move |tx| {
                Ok::<_, Error>(forget::settle(tx, &forget)?)
            })
            .await
    }

    /// Takes the trees out of every list and search, with what was remembered in them; says how many.
    async fn hide_trees(&self, forget: &Forget) -> Result<u64> {
        let (cx, mut hidden) = (&self.cx, 0);
        loop {
            let (inner, forgotten) = (cx.clone(), forget.clone());
            let step = cx
                .store
                .write(forget.who.tenant(), "forget_trees", move |tx| hide_some(tx, &inner, &forgotten))
                .await?;
            let Some((trees, ended)) = step else { return Ok(hidden) };
            self.memories.sessions_ended(forget.who.tenant(), ended).await?;
            cx.tasks.notify_one();
            hidden += trees.len() as u64;
            for HiddenTree { root, members } in &trees {
                // The log must not name who is being forgotten.
                for member in members.iter().filter(|member| *member != forget.who.user()) {
                    audit::membership(&MembershipActor::unnamed(), *root, member, &audit::Change::Remove);
                }
            }
        }
    }
}

/// The name of the lease under which a forget is carried out. Two that did so would remove the same, but neither would count all
/// of it.
fn turn(forget: &Forget) -> String {
    format!("forget {}", forget.number())
}

/// A tree that is out of reach now: the conversation it began with, and who could see it until then.
struct HiddenTree {
    root: ConversationId,
    members: Vec<UserId>,
}

/// Takes the next trees out of reach; `None` if there was none left.
fn hide_some(tx: &mut dyn Tx, cx: &Context, forget: &Forget) -> Result<Option<(Vec<HiddenTree>, Ended)>> {
    let trees = forget::reachable_trees(tx, forget, STEP_TREES)?;
    if trees.is_empty() {
        return Ok(None);
    }
    let (mut hidden, mut ended) = (Vec::new(), Ended::default());
    for group in trees {
        let locked = groups::lock(tx, group)?;
        end_sessions(tx, forget.who.tenant(), group, &mut ended)?;
        if !groups::evict_forks(tx, group, STEP_ROWS)? {
            break;
        }
        if let Some((tree, root)) = locked.zip(groups::root(tx, group)?) {
            let members = match tree.deleted_at {
                None => memberships::list(tx, group, None, i64::MAX)?,
                Some(_) => Vec::new(),
            };
            let resource = &root.to_string();
            let change =
                Change { kind: ChangeKind::ConversationEvicted, user: None, resource, version: None };
            changes::record(tx, forget.who.tenant(), cx.clock.now(), &change)?;
            tasks::enqueue_vector_delete(tx, cx, group)?;
            delete_with_tree(tx, group, cx.clock.now())?;
            groups::uproot(tx, group)?;
            let members = members.into_iter().map(|member| member.user_id).collect();
            hidden.push(HiddenTree { root, members });
        }
        forget::set_unreachable(tx, group)?;
    }
    Ok(Some((hidden, ended)))
}

/// Removes from the disk what was removed from the store. If that does not work at once, because somebody reads what is to
/// go, it is tried again; the user is forgotten all the same.
async fn scrub(cx: &Context) {
    let scrubbed = async {
        let unscrubbed = cx.store.read(AllTenants, "forgotten_traces", forget::unscrubbed).await?;
        if unscrubbed.is_empty() {
            return Ok(true);
        }
        let scrubbed = cx.store.scrub(unscrubbed.traces).await?;
        let noted = if scrubbed { forget::set_scrubbed } else { forget::set_rewritten };
        cx.store.write(AllTenants, "forget_traces", move |tx| noted(tx, &unscrubbed)).await?;
        Ok::<_, StoreError>(scrubbed)
    };
    match scrubbed.await {
        Ok(true) => {}
        Ok(false) => tracing::warn!("what was forgotten is still in the write-ahead log; trying again later"),
        Err(error) => tracing::warn!(%error, "what was forgotten is still on the disk; trying again later"),
    }
}
