//! Leaves a provider alone that keeps failing, so that it can recover and callers do not wait in vain.
//!
//! Made by hand: `backon`, which repeats attempts, keeps nothing from one call to the next.

use super::EmbedError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Lets calls through until too many in a row have failed; then none for a pause; then one, which decides.
pub(super) struct Breaker {
    threshold: u32,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In a row.
    failures: u32,
    /// No request passes before this.
    open_until: Option<Instant>,
    /// Somebody is finding out whether the pause has helped.
    probing: bool,
}

impl Breaker {
    pub(super) fn new(threshold: u32, pause: Duration) -> Self {
        Self { threshold, pause, state: Mutex::default() }
    }

    /// Permission for one call.
    pub(super) fn enter(&self) -> Result<ProviderCall<'_>, EmbedError> {
        let mut state = self.state();
        if let Some(until) = state.open_until {
            let left = until.saturating_duration_since(Instant::now());
            if state.probing || !left.is_zero() {
                // How long the probe takes is unknown.
                return Err(EmbedError::Unavailable { retry_after: left.max(Duration::from_secs(1)) });
            }
            state.probing = true;
        }
        Ok(ProviderCall { breaker: self })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call. Dropped without a word, because its caller went away, it says nothing about the provider.
pub(super) struct ProviderCall<'a> {
    breaker: &'a Breaker,
}

impl ProviderCall<'_> {
    /// The provider is there.
    pub(super) fn succeeded(self) {
        *self.breaker.state() = State::default();
    }

    /// The provider did not do its part.
    pub(super) fn failed(self) {
        let mut state = self.breaker.state();
        state.failures += 1;
        if state.failures >= self.breaker.threshold {
            state.open_until = Some(Instant::now() + self.breaker.pause);
        }
    }
}

impl Drop for ProviderCall<'_> {
    fn drop(&mut self) {
        self.breaker.state().probing = false;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use tokio::time::advance;

    const PAUSE: Duration = Duration::from_secs(10);

    fn breaker_after(failures: u32) -> Breaker {
        let breaker = Breaker::new(3, PAUSE);
        for _ in 0..failures {
            breaker.enter().unwrap().failed();
        }
        breaker
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_forgives_earlier_failures() {
        let breaker = breaker_after(2);
        breaker.enter().unwrap().succeeded();
        breaker.enter().unwrap().failed();
        breaker.enter().unwrap().failed();
        assert!(breaker.enter().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_failures_in_a_row_open_it_for_a_pause() {
        let breaker = breaker_after(3);
        advance(PAUSE / 2).await;
        let refusal = breaker.enter().err().unwrap();
        assert_eq!(refusal, EmbedError::Unavailable { retry_after: PAUSE / 2 });
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_pause_one_call_decides() {
        let breaker = breaker_after(3);
        advance(PAUSE).await;
        let probe = breaker.enter().unwrap();
        assert!(breaker.enter().is_err(), "a second probe");
        probe.failed();
        assert!(breaker.enter().is_err(), "it is open again");
        advance(PAUSE).await;
        breaker.enter().unwrap().succeeded();
        assert!(breaker.enter().is_ok() && breaker.enter().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_whose_caller_goes_away_leaves_room_for_the_next() {
        let breaker = breaker_after(3);
        advance(PAUSE).await;
        drop(breaker.enter().unwrap());
        assert!(breaker.enter().is_ok());
    }
}
