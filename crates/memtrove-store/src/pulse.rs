//! Whether a store answers, for those who ask often and do not wait for long.

use crate::{AllTenants, Store, StoreError, meta};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A store that takes longer than this to answer is away, whatever it answers then.
const PATIENCE: Duration = Duration::from_millis(800);
/// For so long an answer holds.
const FRESH: Duration = Duration::from_millis(500);

/// What was found, and when.
type LastProbe = Option<(Instant, Result<(), StoreError>)>;

/// The last look at a store. There is one at a time: a database that says nothing must not take up one connection after the
/// other with the question whether it is there.
#[derive(Clone, Default)]
pub(crate) struct Pulse(Arc<Mutex<Option<Look>>>);

#[derive(Clone)]
struct Look {
    begun: Instant,
    found: watch::Receiver<LastProbe>,
}

impl Look {
    /// Whether it says how things are: it is under way, or has just ended.
    fn is_current(&self) -> bool {
        // The last caller may be gone without a word, with its runtime.
        let is_under_way = self.found.borrow().is_none() && self.found.has_changed().is_ok();
        is_under_way || self.found.borrow().as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH)
    }
}

impl Store {
    /// Whether the store reads and writes. Answers within a second, however long that takes; the answer may be half a second old.
    pub async fn pulse(&self) -> Result<(), StoreError> {
        let Look { begun, mut found } = self.look();
        let away = || StoreError::Unavailable("the store does not answer".into());
        let looked = tokio::time::timeout_at(begun + PATIENCE, found.wait_for(Option::is_some)).await;
        match looked {
            Ok(Ok(found)) => found.as_ref().map_or_else(|| Err(away()), |(_, outcome)| outcome.clone()),
            Ok(Err(_)) | Err(_) => Err(away()),
        }
    }

    /// The look that is under way or has just ended; else a new one.
    fn look(&self) -> Look {
        let mut last = self.pulse.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(look) = last.as_ref().filter(|look| look.is_current()) {
            return look.clone();
        }
        let (told, found) = watch::channel(None);
        let store = self.clone();
        tokio::spawn(async move {
            let outcome = store.probe().await;
            // The caller may have gone away.
            let _ = told.send(Some((Instant::now(), outcome)));
        });
        let look = Look { begun: Instant::now(), found };
        *last = Some(look.clone());
        look
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.read(AllTenants, "readiness", meta::probe).await?;
        self.write(AllTenants, "readiness", meta::probe_writing).await
    }
}
