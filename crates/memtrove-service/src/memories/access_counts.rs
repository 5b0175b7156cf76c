//! How often entries are found: counted in memory, written behind. A crash may lose some of it.

use super::Memories;
use memtrove_core::memories::{Kind, MemoryId};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::AllTenants;
use memtrove_store::memories::access_counts;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most entries that have unwritten counts; until these are written, nothing more is counted.
const MOST: usize = 100_000;
/// Entries that one unit of work counts.
const STEP: usize = 500;

/// What was found since it was last written.
#[derive(Default)]
pub struct AccessCounts(Mutex<HashMap<MemoryId, (i64, Timestamp)>>);

impl AccessCounts {
    pub fn note(&self, ids: impl IntoIterator<Item = MemoryId>, at: Timestamp) {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            if uses.len() < MOST || uses.contains_key(&id) {
                let (count, last) = uses.entry(id).or_insert((0, at));
                *count += 1;
                *last = (*last).max(at);
            }
        }
    }

    /// When an entry was last found, unless that was written down already.
    pub fn last(&self, id: MemoryId) -> Option<Timestamp> {
        let uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uses.get(&id).map(|(_, last)| *last)
    }

    fn take(&self) -> Vec<(MemoryId, i64, Timestamp)> {
        let uses = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        uses.into_iter().map(|(id, (count, at))| (id, count, at)).collect()
    }
}

impl Memories {
    /// Writes down what was found.
    pub(crate) async fn write_uses(&self) -> Result<()> {
        let noted = self.parts.uses.take();
        for step in noted.chunks(STEP) {
            for half in self.parts.store.all() {
                let step = step.to_vec();
                half.store()
                    .write(AllTenants, "count_uses", move |tx| {
                        for (id, count, at) in &step {
                            access_counts::add(tx, *id, *count, *at)?;
                        }
                        Ok::<_, Error>(())
                    })
                    .await?;
            }
        }
        Ok(())
    }

    /// Whether working memory keeps an entry's kind.
    pub(super) fn is_volatile(kind: Kind) -> bool {
        kind == Kind::Working
    }
}
