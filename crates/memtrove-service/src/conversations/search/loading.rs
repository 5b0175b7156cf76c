//! Reading on, in the background, what a search had no time for: so that the next one finds it in memory.

use super::turn::{Budget, Wanted};
use super::view::{SearchedScope, View};
use crate::Context;
use memtrove_core::{Error, Result};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A reader is held so long at once: those who search the same wait for it.
const SLICE: Duration = Duration::from_millis(50);
/// Scopes that wait to be read on. Of more, those that waited longest read on when they are searched again.
const MOST_UNREAD: usize = 16;

/// Scopes that are not all in memory, although somebody searched them.
#[derive(Default)]
pub(crate) struct Unread {
    scopes: Mutex<VecDeque<SearchedScope>>,
    wake: Notify,
}

impl Unread {
    /// Notes that somebody searches what is not all in memory.
    pub(super) fn read_later(&self, searched: SearchedScope) {
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.retain(|other| *other != searched);
        if scopes.len() == MOST_UNREAD {
            scopes.pop_front();
        }
        scopes.push_back(searched);
        drop(scopes);
        self.wake.notify_one();
    }

    fn next(&self) -> Option<SearchedScope> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Reads on whatever a search had to leave, for as long as it is polled.
pub(crate) async fn run(cx: &Arc<Context>) -> Infallible {
    loop {
        work_off(cx).await;
        cx.unread.wake.notified().await;
    }
}

/// Reads on what there is to read on.
pub(crate) async fn work_off(cx: &Arc<Context>) {
    while let Some(searched) = cx.unread.next() {
        if let Err(error) = read_on(cx, searched).await {
            tracing::debug!(%error, "an index could not be read on; the next search does it");
        }
    }
}

/// Reads the indexes of a scope a slice at a time, and leaves others as much time as it takes.
async fn read_on(cx: &Arc<Context>, searched: SearchedScope) -> Result<()> {
    let mut turns_before = None;
    loop {
        let (inner, of, turn) = (cx.clone(), searched.clone(), cx.search_turns.take(true).await?);
        let started = Instant::now();
        let read = cx.store.read(&searched.tenant, "read_index", move |tx| {
            let _ends_with_the_work = &turn;
            let mut turns = 0;
            let slice = View::of(tx, &inner, of.clone(), Budget::begin(&Wanted::default(), SLICE))?;
            let is_complete = slice.each(tx, &inner, |_, _, partition| turns += partition.len())?;
            Ok::<_, Error>((turns, is_complete))
        });
        let (turns, is_complete) = read.await?;
        // Where there is not memory enough for all of it, it would never end.
        if is_complete || turns_before.is_some_and(|before| turns <= before) {
            return Ok(());
        }
        turns_before = Some(turns);
        tokio::time::sleep(started.elapsed()).await;
    }
}
