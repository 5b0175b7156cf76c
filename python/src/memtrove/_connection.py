"""The clients behind an adapter that is called with and without `await`."""

from __future__ import annotations

import asyncio
from typing import Any

from memtrove._async.client import AsyncMemtroveClient
from memtrove._sync.client import MemtroveClient
from memtrove.errors import InvalidInputError

_OWN = "own"


class Connection:
    """A client, and one for each event loop: connections that were opened in one loop cannot be used in another."""

    def __init__(
        self, client: MemtroveClient | None, async_client: AsyncMemtroveClient | None, settings: dict[str, Any]
    ) -> None:
        self._given, self._given_async = client, async_client
        self._settings = {name: value for name, value in settings.items() if value is not None}
        if self._settings and (client is not None or async_client is not None):
            raise InvalidInputError(f"{', '.join(self._settings)}: say that to the client, or give no client")
        # Made at once, because it looks at the settings. It opens nothing until it is used.
        self._own: dict[str, MemtroveClient] = {}
        if client is None and async_client is None:
            self._own[_OWN] = MemtroveClient(**self._settings)
        self._own_async: dict[asyncio.AbstractEventLoop, AsyncMemtroveClient] = {}

    @property
    def only_waits(self) -> bool:
        """Whether there is a client for calls that wait and none for calls that are awaited."""
        return self._given is not None and self._given_async is None

    def client(self) -> MemtroveClient:
        """For calls that wait."""
        if self._given is not None:
            return self._given
        if self._given_async is not None:
            raise InvalidInputError("this was made with an async_client only; give it a client as well, or use await")
        # No lock, which a fork could find closed. All threads get the one that was there first; another has no
        # connections yet.
        return self._own.get(_OWN) or self._own.setdefault(_OWN, MemtroveClient(**self._settings))

    def async_client(self) -> AsyncMemtroveClient:
        """For calls in the event loop that is running."""
        if self._given_async is not None:
            return self._given_async
        if self._given is not None:
            raise InvalidInputError("this was made with a client only; give it an async_client as well")
        loop = asyncio.get_running_loop()
        # A client knows its loop, so nothing but this ever lets go of one that has ended.
        for ended in [one for one in list(self._own_async) if one.is_closed()]:
            self._own_async.pop(ended, None)
        if loop not in self._own_async:
            self._own_async[loop] = AsyncMemtroveClient(**self._settings)
        return self._own_async[loop]

    def close(self) -> None:
        """Closes what was opened here for calls that wait."""
        own = self._own.pop(_OWN, None)
        if own is not None:
            own.close()

    async def aclose(self) -> None:
        """Closes what was opened here, in this event loop and for calls that wait."""
        self.close()
        own = self._own_async.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.aclose()
