//! What has to be done again and again: records whose time is over, and deletions that were interrupted.
//!
//! Bytes that no record knows are left alone: another store, or a later state of this one, may know them.

use super::{Attachments, deletion, micros};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::AllTenants;
use memtrove_store::attachments;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;

/// Records that one unit of work deletes at most: other writes wait meanwhile.
const BATCH: i64 = 500;
/// Trees that are looked for at once.
const TREES: i64 = 100;
/// No source is waited for so long, its turn included, so its worker is gone.
const LONGEST_DOWNLOAD: Duration = Duration::from_secs(30 * 60);
/// How often it is looked for what belongs to trees that are gone.
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Attachments {
    /// Whether there is anything to clean up after.
    pub(crate) fn is_enabled(&self) -> bool {
        self.settings().blobs.is_some()
    }

    /// Cleans up at once and then every interval, for as long as it is polled.
    pub(crate) async fn run_cleanup(&self) -> Infallible {
        let mut searched: Option<Instant> = None;
        loop {
            let thoroughly = searched.is_none_or(|at| at.elapsed() >= DAY);
            match self.clean_up(thoroughly).await {
                Ok(()) if thoroughly => searched = Some(Instant::now()),
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, "attachments could not be cleaned up; trying again later")
                }
            }
            tokio::time::sleep(self.settings().cleanup_interval).await;
        }
    }

    /// Cleans up once; `thoroughly` also looks for what belongs to trees that are gone, which takes a look at every record.
    pub(crate) async fn clean_up(&self, thoroughly: bool) -> Result<()> {
        if !self.is_enabled() {
            return Ok(());
        }
        let (cx, now) = (&self.cx, self.cx.clock.now());
        let then = now.saturating_add_micros(-micros(LONGEST_DOWNLOAD));
        cx.store
            .write(AllTenants, "give_up_downloads", move |tx| {
                Ok::<_, Error>(attachments::give_up_downloads(tx, then)?)
            })
            .await?;
        let expire = move |tx: &mut dyn memtrove_store::Tx| {
            Ok::<_, Error>(attachments::mark_expired_deleted(tx, now, BATCH)?)
        };
        while cx.store.write(AllTenants, "expire_attachments", expire).await? >= BATCH as u64 {}
        if thoroughly {
            self.delete_uprooted(now).await?;
        }
        deletion::finish_all(cx).await
    }

    /// Deletes what belongs to trees that are gone. They are looked for while others write.
    async fn delete_uprooted(&self, now: Timestamp) -> Result<()> {
        let store = &self.cx.store;
        loop {
            let look = |tx: &mut dyn memtrove_store::Tx| Ok::<_, Error>(attachments::uprooted(tx, TREES)?);
            let trees = store.read(AllTenants, "uprooted_attachments", look).await?;
            if trees.is_empty() {
                return Ok(());
            }
            for tree in trees {
                let delete = move |tx: &mut dyn memtrove_store::Tx| super::delete_with_tree(tx, tree, now);
                store.write(AllTenants, "delete_uprooted", delete).await?;
            }
        }
    }
}
