"""When a call is made again, and after how long."""

from __future__ import annotations

import email.utils
import random
from dataclasses import dataclass
from datetime import datetime, timezone

RETRIED_STATUS = frozenset({429, 502, 503, 504})
"""Answers after which the same request may succeed."""

MAX_RETRY_AFTER = 30.0
"""How many seconds a server can make a caller wait."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often calls that change nothing are made again, after failures of the network and answers that say "later".

    A call that changes something is made again only if it says so and carries an idempotency key.
    """

    max_retries: int = 3
    """How many times, after the first."""
    base_delay: float = 0.2
    """Seconds before the first retry; twice as many before each further one."""
    max_delay: float = 2.0
    """The most seconds, unless the server asks for more."""

    def delay(self, retry: int, retry_after: float | None = None) -> float:
        """Seconds to wait before a retry, counted from 0. The server's word is taken, up to half a minute."""
        jitter = random.uniform(0, 0.1)
        own: float = min(self.base_delay * 2 ** min(retry, 8) + jitter, self.max_delay)
        return own if retry_after is None else min(retry_after, MAX_RETRY_AFTER)


NEVER = RetryPolicy(max_retries=0)
"""Makes every call once."""


def retry_after(header: str | None) -> float | None:
    """What `Retry-After` says, in seconds: a number, or a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())
