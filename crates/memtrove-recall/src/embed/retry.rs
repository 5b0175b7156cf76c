//! Asking again.

use super::{EmbedError, RetryConfig};
use backon::{ExponentialBuilder, Retryable as _};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// How far a delay may be from what was computed, so that callers who failed together do not come back together.
const JITTER: f64 = 0.2;

impl RetryConfig {
    /// Makes attempts until one succeeds, none is left, or the next would come after the deadline.
    pub(super) async fn run<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, EmbedError>
    where
        F: Future<Output = Result<T, EmbedError>>,
    {
        let deadline = Instant::now() + self.deadline;
        let delays = ExponentialBuilder::new()
            .with_factor(self.backoff_multiplier as f32)
            .with_min_delay(self.initial_delay.min(self.max_delay))
            .with_max_delay(self.max_delay)
            .with_max_times(self.max_attempts.saturating_sub(1) as usize);
        attempt
            .retry(delays)
            .when(EmbedError::is_worth_retrying)
            .adjust(|error, delay| {
                // Without a delay no attempt is left.
                let delay = jittered(delay?);
                let wait = error.retry_after().unwrap_or(delay);
                (wait <= deadline.saturating_duration_since(Instant::now())).then_some(wait)
            })
            .notify(|error, wait| tracing::debug!(%error, ?wait, "an embedding is tried again"))
            .await
    }
}

fn jittered(delay: Duration) -> Duration {
    // Every `RandomState` hashes differently: enough randomness for this.
    let random = RandomState::new().hash_one(()) as f64 / u64::MAX as f64;
    delay.mul_f64(1.0 + JITTER * (2.0 * random - 1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::future::ready;

    /// Attempts that fail one way for ever: how many there were, and how long after the first they came, in seconds.
    async fn attempts(retry: RetryConfig, error: EmbedError) -> Vec<f64> {
        let started = Instant::now();
        let mut seen = Vec::new();
        let result = retry
            .run(|| {
                seen.push(started.elapsed().as_secs_f64());
                ready(Err::<(), _>(error.clone()))
            })
            .await;
        assert_eq!(result, Err(error));
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_give_or_take_a_fifth() {
        let seen = attempts(RetryConfig::default(), EmbedError::transient("down")).await;
        assert_eq!(seen.len(), 3);
        let (first, second) = (seen[1] - seen[0], seen[2] - seen[1]);
        assert!((0.8..1.21).contains(&first), "{first}");
        assert!((1.6..2.41).contains(&second), "{second}");
    }

    #[tokio::test(start_paused = true)]
    async fn delays_stop_growing() {
        let retry =
            RetryConfig { max_attempts: 9, max_delay: Duration::from_secs(2), ..RetryConfig::default() };
        let seen = attempts(retry, EmbedError::transient("down")).await;
        assert_eq!(seen.len(), 9);
        assert!(seen.windows(2).all(|pair| pair[1] - pair[0] < 2.41), "{seen:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_provider_asks_for_wins_over_what_was_computed() {
        let limited = EmbedError::RateLimited { retry_after: Some(Duration::from_secs(7)) };
        let seen = attempts(RetryConfig::default(), limited).await;
        assert_eq!(seen.iter().map(|at| at.round()).collect::<Vec<_>>(), [0.0, 7.0, 14.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_what_comes_after_the_deadline() {
        let limited = EmbedError::RateLimited { retry_after: Some(Duration::from_secs(31)) };
        assert_eq!(attempts(RetryConfig::default(), limited).await, [0.0]);
        let retry = RetryConfig { max_attempts: 100, ..RetryConfig::default() };
        let seen = attempts(retry, EmbedError::transient("down")).await;
        assert!(*seen.last().unwrap() <= 30.0, "{seen:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_not_change_is_not_tried_again() {
        let refused = EmbedError::Permanent("400".into());
        assert_eq!(attempts(RetryConfig::default(), refused).await.len(), 1);
        let open = EmbedError::Unavailable { retry_after: Duration::from_secs(1) };
        assert_eq!(attempts(RetryConfig::default(), open).await.len(), 1);
    }
}
