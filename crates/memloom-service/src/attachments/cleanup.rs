//! What has to be done again and again: records whose time is over, deletions that were interrupted, and bytes that nobody
//! knows.

use super::{Attachments, deletion, failed, micros};
use futures_util::TryStreamExt;
use memloom_core::{Error, Result, Timestamp};
use memloom_store::attachments;
use std::convert::Infallible;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Records that one unit of work deletes at most: nobody else can write meanwhile.
const BATCH: i64 = 500;
/// A source is not waited for so long, so whoever fetched it is gone.
const LONGEST_DOWNLOAD: Duration = Duration::from_secs(15 * 60);
/// How often bytes are looked for that nobody knows, and how old they must be: an upload may not be noted yet.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Keys that are looked up together.
const KEYS: usize = 500;

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

    /// Cleans up once; `thoroughly` also looks for what nobody knows, which takes a look at every blob.
    pub(crate) async fn clean_up(&self, thoroughly: bool) -> Result<()> {
        if !self.is_enabled() {
            return Ok(());
        }
        let (cx, now) = (&self.cx, self.cx.clock.now());
        let then = now.saturating_add_micros(-micros(LONGEST_DOWNLOAD));
        cx.store
            .write("give_up_downloads", move |tx| Ok::<_, Error>(attachments::give_up_downloads(tx, then)?))
            .await?;
        self.mark("expire_attachments", move |tx| attachments::mark_expired_deleted(tx, now, BATCH)).await?;
        if thoroughly {
            let uprooted =
                move |tx: &mut dyn memloom_store::Tx| attachments::mark_uprooted_deleted(tx, now, BATCH);
            self.mark("uprooted_attachments", uprooted).await?;
        }
        let finished = deletion::finish_all(cx).await;
        if thoroughly {
            self.remove_unknown(now).await?;
        }
        finished.map(drop)
    }

    /// Repeats a step until it finds nothing more.
    async fn mark(
        &self,
        name: &'static str,
        step: impl Fn(&mut dyn memloom_store::Tx) -> Result<u64, memloom_store::StoreError>
        + Copy
        + Send
        + 'static,
    ) -> Result<()> {
        while self.cx.store.write(name, move |tx| Ok::<_, Error>(step(tx)?)).await? >= BATCH as u64 {}
        Ok(())
    }

    /// Removes old bytes that no record knows: what was between two steps when a process ended.
    async fn remove_unknown(&self, now: Timestamp) -> Result<()> {
        let before = now.saturating_add_micros(-micros(DAY));
        let mut listed = self.blobs()?.list(&self.place);
        let mut keys = Vec::new();
        let mut removed = 0;
        while let Some(blob) = listed.try_next().await.map_err(failed)? {
            if written_at(blob.modified) < before {
                keys.push(blob.key);
            }
            if keys.len() == KEYS {
                removed += self.remove_if_unknown(std::mem::take(&mut keys)).await?;
            }
        }
        removed += self.remove_if_unknown(keys).await?;
        if removed > 0 {
            tracing::info!(removed, "bytes that no attachment had were removed");
        }
        Ok(())
    }

    async fn remove_if_unknown(&self, keys: Vec<String>) -> Result<usize> {
        let unknown = self
            .cx
            .store
            .read("unknown_attachments", move |tx| Ok::<_, Error>(attachments::unknown_keys(tx, &keys)?))
            .await?;
        for key in &unknown {
            self.blobs()?.delete(key).await.map_err(failed)?;
        }
        Ok(unknown.len())
    }
}

fn written_at(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(micros(since))
}
