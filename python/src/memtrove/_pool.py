"""The connections of a client. They belong to one process, and where they are awaited to one event loop.

A process that was forked has its parent's connections too, and both would read each other's answers. So it leaves them
alone and opens its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any, TypeAlias

import httpx

from memtrove._options import certificates
from memtrove._version import __version__
from memtrove.errors import InvalidInputError

CALLS_AT_ONCE = 64
"""Calls of one event loop that are on their way at the same time; more of them wait for their turn."""

Timeout: TypeAlias = float | httpx.Timeout | None
"""How long to wait: for each step in seconds, for some of them as httpx says it, or for ever."""

_CLOSED = "this client is closed; make another one"
_GIVEN_CLOSED = "the http_client is closed"
_FORKED = (
    "the http_client was made before this process was forked off, and its connections are the parent's: make one here"
)

_LEFT_ALONE: list[Any] = []
"""What a parent opened: neither used nor closed, so also not collected."""


def _settings(timeout: httpx.Timeout) -> dict[str, Any]:
    # As many connections as there are streams and calls: a stream that goes on for hours is in nobody's way.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=CALLS_AT_ONCE)
    agent = {"User-Agent": f"memtrove-client/{__version__}"}
    return {"timeout": timeout, "verify": certificates(), "limits": limits, "headers": agent}


def _patience(timeout: Timeout) -> httpx.Timeout:
    # Whoever waits for a turn has not failed.
    return timeout if isinstance(timeout, httpx.Timeout) else httpx.Timeout(timeout, pool=None)


class Pool:
    """For calls that wait, from any thread."""

    def __init__(self, given: httpx.Client | None, timeout: Timeout) -> None:
        self._given = given
        self._made_in = os.getpid()
        self._own: dict[int, httpx.Client] = {}
        self._closed = False
        self.timeout = _patience(timeout) if given is None else given.timeout

    def http(self) -> httpx.Client:
        """What sends requests, in this process."""
        process = os.getpid()
        if self._given is not None:
            _check(self._given.is_closed, process != self._made_in)
            return self._given
        if self._closed:
            raise InvalidInputError(_CLOSED)
        own = self._own.get(process)
        if own is None:
            _LEFT_ALONE.extend(self._own.pop(other, None) for other in list(self._own) if other != process)
            # No lock, which a fork could find closed. One that another thread was faster with has no connections yet.
            own = self._own.setdefault(process, httpx.Client(**_settings(self.timeout)))
        return own

    def turn(self) -> contextlib.AbstractContextManager[None]:
        """To be held while a call is on its way. Threads are few enough by themselves."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Closes connections, unless they are the caller's."""
        self._closed = True
        if (own := self._own.pop(os.getpid(), None)) is not None:
            own.close()


class AsyncPool:
    """For calls that are awaited, in any event loop."""

    def __init__(self, given: httpx.AsyncClient | None, timeout: Timeout) -> None:
        self._given = given
        self._made_in = os.getpid()
        self._own: dict[asyncio.AbstractEventLoop, tuple[int, httpx.AsyncClient, asyncio.Semaphore]] = {}
        self._closed = False
        self.timeout = _patience(timeout) if given is None else given.timeout

    def http(self) -> httpx.AsyncClient:
        """What sends requests, in this event loop."""
        return self._here()[1]

    def turn(self) -> contextlib.AbstractAsyncContextManager[None]:
        """To be held while a call is on its way."""
        return self._here()[2]

    async def aclose(self) -> None:
        """Closes connections of this event loop, unless they are the caller's."""
        self._closed = True
        process, own, _ = self._own.pop(asyncio.get_running_loop(), (0, None, None))
        if own is not None and own is not self._given and process == os.getpid():
            await own.aclose()

    def _here(self) -> tuple[int, httpx.AsyncClient, asyncio.Semaphore]:
        process, loop = os.getpid(), asyncio.get_running_loop()
        if self._given is not None:
            _check(self._given.is_closed, process != self._made_in)
        elif self._closed:
            raise InvalidInputError(_CLOSED)
        for other, made in list(self._own.items()):
            if made[0] != process:
                _LEFT_ALONE.append(self._own.pop(other, None))
            elif other.is_closed():
                # Nothing of it can be closed any more.
                self._own.pop(other, None)
        if loop not in self._own:
            http = self._given or httpx.AsyncClient(**_settings(self.timeout))
            self._own[loop] = process, http, asyncio.Semaphore(CALLS_AT_ONCE)
        return self._own[loop]


def _check(closed: bool, forked: bool) -> None:
    if forked:
        raise InvalidInputError(_FORKED)
    if closed:
        raise InvalidInputError(_GIVEN_CLOSED)
