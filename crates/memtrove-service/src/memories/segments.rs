//! Keeping the indexes of large scopes in files, so that the first search after a start need not make them anew: where the store has
//! a place for them, which is on the disk of a node that has the store to itself.
//!
//! A file may be behind: its reader takes in what changed since from the store. So it is written again only now and then, the less
//! often the larger it is, and at the end. Something that is removed takes the file with it.

use super::Memories;
use super::memory_store::Half;
use super::scope_search;
use memtrove_core::{Error, Result};
use memtrove_store::memories::ScopeNo;
use memtrove_store::memories::scopes;
use memtrove_store::memories::segments::{SegmentDraft, SegmentFolder, Standing};
use memtrove_store::{AllTenants, Tx};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Smaller scopes are loaded as quickly without.
const LEAST_ENTRIES: usize = 2_000;
/// A file is left alone while it is so few changes behind: they are read in some milliseconds.
const FEW_CHANGES: i64 = 1_000;
/// How often scopes are looked at.
const ROUND: Duration = Duration::from_secs(10);
/// A file is not written more often than this, and for each of its megabytes.
const SHORTEST_PAUSE: Duration = Duration::from_secs(60);
const PAUSE_PER_MEGABYTE: Duration = Duration::from_secs(5);
/// At the end no file is begun later than this, and none is written for longer: a stop does not wait.
const LAST_MOMENT: Duration = Duration::from_secs(2);
const LONGEST_WRITING: Duration = Duration::from_secs(5);

impl Memories {
    /// Keeps indexes in files, for as long as it is polled.
    pub(crate) async fn run_segments(&self) -> Infallible {
        loop {
            tokio::time::sleep(ROUND).await;
            let is_due = |standing: Option<Standing>| {
                standing.is_none_or(|standing| {
                    let megabytes = u32::try_from(standing.bytes >> 20).unwrap_or(u32::MAX);
                    standing.since.elapsed() >= SHORTEST_PAUSE + PAUSE_PER_MEGABYTE * megabytes
                })
            };
            self.keep_segments(is_due).await;
        }
    }

    /// Brings the files up to date: the node stops.
    pub async fn keep_last_segments(&self) {
        let begun = Instant::now();
        let last = async {
            // One that is being written is not lost.
            drop(self.parts.keeping.lock().await);
            self.keep_segments(|_| begun.elapsed() < LAST_MOMENT).await;
        };
        if tokio::time::timeout(LONGEST_WRITING, last).await.is_err()
            && let Some(folder) = self.parts.store.durable.store().segments()
        {
            folder.give_up();
        }
    }

    async fn keep_segments(&self, may: impl Fn(Option<Standing>) -> bool) {
        let half = &self.parts.store.durable;
        let Some(folder) = half.store().segments().cloned() else { return };
        for (scope, seq) in half.loaded_scopes() {
            let standing = folder.standing(scope);
            let behind = standing.and_then(|standing| standing.seq).map(|known| seq - known);
            if behind.is_some_and(|behind| behind < FEW_CHANGES) || !may(standing) {
                continue;
            }
            // A task of its own: the end of this one must not leave a file that was written and never named.
            let (memories, folder) = (self.clone(), folder.clone());
            let keeping = tokio::spawn(async move {
                let _turn = memories.parts.keeping.lock().await;
                if let Err(error) = memories.parts.store.durable.keep_segment(&folder, scope).await {
                    tracing::warn!(scope = scope.0, %error, "the index of a scope was not kept; trying again later");
                }
            });
            if keeping.await.is_err() {
                tracing::error!(scope = scope.0, "keeping the index of a scope panicked");
            }
        }
    }
}

impl Half {
    /// The scopes whose index is in memory and worth being kept, each with the last change it has seen; the largest first.
    fn loaded_scopes(&self) -> Vec<(ScopeNo, i64)> {
        let mut loaded = Vec::new();
        self.indexes.look(|scope, state, open| {
            let entries = state.entries(open);
            if entries >= LEAST_ENTRIES {
                loaded.push((entries, *scope, state.seq()));
            }
        });
        loaded.sort_unstable_by(|a, b| b.cmp(a));
        loaded.into_iter().map(|(_, scope, seq)| (scope, seq)).collect()
    }

    /// Writes the file of a scope.
    async fn keep_segment(&self, folder: &Arc<SegmentFolder>, scope: ScopeNo) -> Result<()> {
        let draft = Arc::new(SegmentDraft::begin(folder.clone(), scope)?);
        // Writes, so that whatever removed something before the draft was begun is over when the index is read.
        let drafted = draft.clone();
        let key = move |tx: &mut dyn Tx| match scopes::numbered(tx, scope)? {
            Some((_, key)) => Ok::<_, Error>(Some(drafted.key(tx, key.tenant())?)),
            None => Ok(None),
        };
        let Some(key) = self.store().write(AllTenants, "seal_index", key).await? else { return Ok(()) };
        let indexes = self.indexes.clone();
        let snapshot = move |tx: &mut dyn Tx| match scopes::numbered(tx, scope)? {
            Some((row, _)) => scope_search::snapshot(tx, &indexes, row),
            None => Ok(None),
        };
        let Some(snapshot) = self.store().read(AllTenants, "copy_index", snapshot).await? else {
            return Ok(());
        };
        let (seq, writing) = (snapshot.seq, draft.clone());
        let write = move || writing.write(key, |each| snapshot.write(each));
        let bytes = tokio::task::spawn_blocking(write)
            .await
            .map_err(|_| Error::internal("writing an index panicked"))??;
        let naming = draft.clone();
        let name = move |tx: &mut dyn Tx| Ok::<_, Error>(naming.name(tx)?);
        let is_named = self.store().write(AllTenants, "name_index", name).await?;
        draft.settle(is_named, seq, bytes);
        Ok(())
    }
}
