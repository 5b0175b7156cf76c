//! How slow the other side may be before it is given up.

use std::time::Duration;
use tokio::time::Instant;

/// What is demanded of somebody we wait for, be it for bytes to come or for bytes to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long nothing may move at all.
    pub stall: Duration,
    /// How many bytes must move for every second that we wait.
    pub rate: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { stall: Duration::from_secs(30), rate: 16 * 1024 }
    }
}

/// How a peer gets on. Waiting uses credit up and bytes earn it. There is never more of it than for one stall, so a peer that
/// sent much at first cannot rest on it later. Only the time counts that we wait.
#[derive(Debug)]
pub(super) struct Pace {
    patience: Patience,
    credit: Duration,
    since: Option<Instant>,
}

impl Pace {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, credit: patience.stall, since: None }
    }

    /// Begins to wait, unless it waits already. Says until when.
    pub(super) fn wait(&mut self, now: Instant) -> Instant {
        *self.since.get_or_insert(now) + self.credit
    }

    /// This many bytes have moved, and the wait is over.
    pub(super) fn moved(&mut self, bytes: usize) {
        if let Some(since) = self.since.take() {
            self.credit = self.credit.saturating_sub(since.elapsed());
        }
        if self.credit < self.patience.stall {
            let earned = Duration::from_secs_f64(bytes as f64 / self.patience.rate.max(1) as f64);
            self.credit = self.patience.stall.min(self.credit + earned);
        }
    }

    /// Begins anew.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.patience);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const PATIENCE: Patience = Patience { stall: Duration::from_secs(30), rate: 16 * 1024 };

    /// After how many seconds a peer is given up that moves a number of bytes at a regular interval.
    async fn given_up_after(bytes: usize, every: Duration) -> Option<u64> {
        let (mut pace, start) = (Pace::new(PATIENCE), Instant::now());
        while start.elapsed() < Duration::from_secs(3600) {
            let until = pace.wait(Instant::now());
            if until < Instant::now() + every {
                return Some((until - start).as_secs());
            }
            advance(every).await;
            pace.moved(bytes);
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_moves_enough_may_go_on_for_ever_and_whoever_does_not_is_given_up() {
        let second = Duration::from_secs(1);
        assert_eq!(given_up_after(64_000, second).await, None);
        assert_eq!(given_up_after(16 * 1024, second).await, None);
        assert_eq!(given_up_after(20 * 16 * 1024, 20 * second).await, None);
        assert_eq!(given_up_after(8 * 1024, second).await, Some(59));
        assert_eq!(given_up_after(1, second).await, Some(30));
        assert_eq!(given_up_after(1 << 30, 40 * second).await, Some(30));
    }

    #[tokio::test(start_paused = true)]
    async fn what_moved_fast_at_first_is_no_excuse_later() {
        let mut pace = Pace::new(PATIENCE);
        pace.moved(1 << 30);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(pace.wait(Instant::now()), Instant::now() + PATIENCE.stall);
    }
}
