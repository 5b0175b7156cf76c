//! Memories that point at files: they are marked when the file changes or goes. Working memory, which lives for an hour, is
//! not marked.

use super::Memories;
use super::access::Writable;
use super::journal::{Actor, Told};
use super::writing::Write;
use memtrove_core::files::{ETag, FilePath};
use memtrove_core::memories::pointer::{self, Pointer};
use memtrove_core::memories::{Memory, metadata};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::AllTenants;
use memtrove_store::Tx;
use memtrove_store::files::scopes::ScopeId;
use memtrove_store::files::{documents, scopes};
use memtrove_store::memories::entries::{self, Stored};
use memtrove_store::memories::index;
use memtrove_store::memories::pointers::{self, Due};
use memtrove_store::memories::writing::Writing;
use std::sync::Arc;

/// Entries that are looked at together: for each of them a document is hashed.
const STEP: i64 = 50;

/// An entry whose document changed, as a reader saw both.
struct Looked {
    due: Due,
    /// Where it points, and the version that the document is at.
    document: Option<(FilePath, Option<ETag>)>,
    /// What is to become of it.
    change: Option<(Stored, Arc<Memory>)>,
}

impl Memories {
    /// Looks at what points at files that changed, in the background.
    pub(crate) fn check_pointers_later(&self) {
        let memories = self.clone();
        tokio::spawn(async move {
            if let Err(error) = memories.check_pointers().await {
                tracing::warn!(%error, "memories that point at files could not be looked at; trying again later");
            }
        });
    }

    /// Looks at everything that points at a file which changed since it was looked at.
    pub(crate) async fn check_pointers(&self) -> Result<()> {
        loop {
            let now = self.now();
            let looked = self.cx.store.read(AllTenants, "look_at_pointers", move |tx| look(tx, now)).await?;
            if looked.is_empty() {
                return Ok(());
            }
            let (journal, publish) = (
                self.journal(Actor::system("pointers"), now, looked.len(), "document changed"),
                self.publish(),
            );
            let work = move |tx: &mut dyn Tx| {
                let (mut writing, mut writes, mut seen) = (Writing::default(), Vec::new(), 0);
                for one in &looked {
                    if one.is_current(tx)? && one.mark(tx, &mut writing, &mut writes)? {
                        pointers::set_seen(tx, one.due)?;
                        seen += 1;
                    }
                }
                writing.finish(tx)?;
                Ok::<_, Error>((seen, journal.tell(tx, &writes)?))
            };
            let marked =
                self.cx.store.write_then(AllTenants, "mark_pointers", work, move |(_, told): &(_, Told)| {
                    publish(told)
                });
            if marked.await?.0 == 0 {
                // All of them changed again meanwhile; that change looks at them.
                return Ok(());
            }
        }
    }
}

fn look(tx: &mut dyn Tx, now: Timestamp) -> Result<Vec<Looked>> {
    let mut looked = Vec::new();
    for due in pointers::due(tx, STEP)? {
        let mut one = Looked { due, document: None, change: None };
        let stored = entries::by_no(tx, due.no)?.filter(|stored| stored.memory.is_live(now));
        if let Some(stored) = stored
            && let Some(path) = Pointer::among(&stored.memory.metadata).and_then(|pointer| pointer.file())
        {
            let file = match scopes::get(tx, due.scope)? {
                Some(scope) => documents::get(tx, &scope, &path)?,
                None => None,
            };
            let hashes = file.as_ref().map(|file| pointer::hashes(&file.document));
            if let Some(change) = pointer::mark(&stored.memory.metadata, hashes.as_deref()) {
                let stored = entries::with_embedding(tx, stored)?;
                let mut next = stored.memory.clone();
                next.metadata = metadata::merge(&next.metadata, &change);
                next.touch(now);
                one.change = Some((stored, Arc::new(next)));
            }
            one.document = Some((path, file.map(|file| file.etag)));
        }
        looked.push(one);
    }
    Ok(looked)
}

/// The version that a document is at; none once its user was forgotten.
fn version(tx: &mut dyn Tx, scope: ScopeId, path: &FilePath) -> Result<Option<ETag>> {
    match scopes::lock_known(tx, scope)? {
        Some(_) => Ok(documents::version(tx, scope, path)?),
        None => Ok(None),
    }
}

impl Looked {
    /// Whether the document is still at the version that was looked at.
    fn is_current(&self, tx: &mut dyn Tx) -> Result<bool> {
        match &self.document {
            Some((path, etag)) => Ok(version(tx, self.due.scope, path)? == *etag),
            None => Ok(true),
        }
    }

    /// Writes what is to become of the entry, if it has not changed since; says whether.
    fn mark(&self, tx: &mut dyn Tx, writing: &mut Writing, writes: &mut Vec<Write>) -> Result<bool> {
        let Some((stored, next)) = &self.change else { return Ok(true) };
        if entries::load(tx, stored.scope_no, stored.no, stored.seq)?.is_none() {
            return Ok(false);
        }
        let terms = index::terms(tx, stored.scope_no, stored.seq)?;
        let done = writing.replace(tx, next, &terms, stored.memory.version)?;
        let current = || Writable::by_task(stored.memory.clone());
        writes.extend(done.then(|| Write::Replace { memory: next.clone(), current: current() }));
        Ok(done)
    }
}
