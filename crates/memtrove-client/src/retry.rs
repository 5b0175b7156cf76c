//! How often a call is sent again, and after how long.

use http::{HeaderMap, StatusCode, header};
use httpdate::parse_http_date;
use memtrove_core::{Clock, SystemClock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most that is added to a pause, so that those who failed together do not come back together.
const JITTER: Duration = Duration::from_millis(100);
/// Doubling ends here.
const MAX_DOUBLINGS: u32 = 8;
/// The longest that a `Retry-After` is waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// How often a call that may be repeated is sent again, and after how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// This many times after the first; 0 is never.
    pub max_retries: u32,
    /// The pause before the first retry; each further one is twice as long.
    pub base_delay: Duration,
    /// No pause is longer, unless the service asks for it with `Retry-After`.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 3, base_delay: Duration::from_millis(200), max_delay: Duration::from_secs(2) }
    }
}

impl RetryPolicy {
    /// Everything is sent once.
    pub const fn never() -> Self {
        Self { max_retries: 0, base_delay: Duration::ZERO, max_delay: Duration::ZERO }
    }

    /// The pause before retry `n`, counted from 0.
    pub(crate) fn pause(&self, n: u32) -> Duration {
        self.pause_with(n, rand::random_range(Duration::ZERO..JITTER))
    }

    /// Not by `backon`: which call may be repeated depends on its effect and its key, and a stream counts its failures over many
    /// connections, so nothing but these two lines would be its.
    fn pause_with(&self, n: u32, jitter: Duration) -> Duration {
        let doubled = self.base_delay.saturating_mul(1 << n.min(MAX_DOUBLINGS));
        doubled.saturating_add(jitter).min(self.max_delay)
    }
}

/// Whether the same request may succeed a moment later.
pub(crate) fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

/// How long the service asks to wait, as far as it is waited for.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wanted = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => until(parse_http_date(text).ok()?, headers),
    };
    Some(wanted.min(LONGEST_RETRY_AFTER))
}

/// How long it is until then, by the clock of the server if it shows it.
fn until(then: SystemTime, headers: &HeaderMap) -> Duration {
    let date = headers.get(header::DATE).and_then(|date| parse_http_date(date.to_str().ok()?).ok());
    let here = || UNIX_EPOCH + Duration::from_micros(SystemClock.now().as_micros().unsigned_abs());
    then.duration_since(date.unwrap_or_else(here)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = RetryPolicy::default();
        let millis = |n, jitter| policy.pause_with(n, Duration::from_millis(jitter)).as_millis();
        assert_eq!([millis(0, 0), millis(1, 0), millis(2, 50), millis(3, 99)], [200, 400, 850, 1699]);
        assert_eq!([millis(4, 0), millis(8, 99), millis(40, 0)], [2000, 2000, 2000]);
        let slow = RetryPolicy { max_delay: Duration::from_secs(3600), ..policy };
        let longest = |n| slow.pause_with(n, Duration::ZERO);
        assert_eq!((longest(8), longest(9)), (Duration::from_millis(51_200), Duration::from_millis(51_200)));
    }

    #[test]
    fn jitter_is_less_than_a_tenth_of_a_second() {
        for _ in 0..200 {
            let pause = RetryPolicy::default().pause(0).as_millis();
            assert!((200..300).contains(&pause), "{pause} ms");
        }
    }

    #[test]
    fn what_the_service_asks_for_is_waited_for_up_to_half_a_minute() {
        let wait = |headers: &[(&'static str, &str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
                .collect();
            retry_after(&headers).map(|wait| wait.as_secs())
        };
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "7")]), Some(7));
        assert_eq!(wait(&[("retry-after", "3600")]), Some(30));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait(&[now, ("retry-after", "Sun, 06 Nov 1994 08:49:49 GMT")]), Some(12));
        assert_eq!(wait(&[now, ("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT")]), Some(0));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT")]), Some(0), "long past");
    }

    #[test]
    fn only_what_passes_is_retried() {
        let passing: Vec<u16> =
            (100..600).filter(|code| is_passing(StatusCode::from_u16(*code).unwrap())).collect();
        assert_eq!(passing, [429, 502, 503, 504]);
    }
}
