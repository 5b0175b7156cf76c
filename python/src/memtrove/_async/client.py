"""The client: one object with a group for each kind of thing."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import httpx

from memtrove._async.admin import AsyncAdmin
from memtrove._async.attachments import AsyncAttachments
from memtrove._async.changes import AsyncChanges
from memtrove._async.conversations import (
    AsyncConversations,
    AsyncEntries,
    AsyncMemberships,
    AsyncTransfers,
)
from memtrove._async.facts import AsyncFacts
from memtrove._async.files import AsyncAudit, AsyncEvents, AsyncFiles, AsyncLifecycle
from memtrove._async.knowledge import AsyncKnowledge
from memtrove._async.memories import AsyncMemories, AsyncSessions
from memtrove._async.transport import AsyncTransport
from memtrove._options import MAX_EVENT_BYTES, AsyncHeaderProvider, Options, authenticates, base_url, credentials
from memtrove._pool import AsyncPool, Timeout
from memtrove._wire import UNSET, Unset
from memtrove.errors import InvalidInputError
from memtrove.retry import RetryPolicy
from memtrove.service import ServiceHealth, ServiceReadiness, ServiceStatus


class AsyncMemtroveClient:
    """Every operation of a Memtrove server.

    `token` says which user is calling (in local mode just the user's name), `api_key` which service. A service that is
    trusted names the user it works for with `user_id`. Where neither is given, `MEMTROVE_TOKEN` and `MEMTROVE_API_KEY`
    count, unless a `header_provider` or an `http_client` says who is calling. A call waits `timeout` seconds, 30 unless
    said otherwise. A stream with an event of more than `max_event_bytes`, 64 MiB, fails. Make one client and share it;
    close it, or use it in a `with`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        api_key: str | None = None,
        user_id: str | None = None,
        tenant_id: str | None = None,
        service_id: str | None = None,
        retry: RetryPolicy | None = None,
        timeout: Timeout | Unset = UNSET,
        max_event_bytes: int = MAX_EVENT_BYTES,
        header_provider: AsyncHeaderProvider | None = None,
        on_request: Callable[[httpx.Request], None] | None = None,
        on_response: Callable[[httpx.Response], None] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        if http_client is not None and timeout is not UNSET:
            raise InvalidInputError("timeout: say that to the http_client, or give no http_client")
        if header_provider is None and not authenticates(http_client):
            token, api_key = credentials(token, api_key)
        options = Options(
            base_url=base_url(url),
            token=token,
            api_key=api_key,
            user_id=user_id,
            tenant_id=tenant_id,
            service_id=service_id,
            retry=retry or RetryPolicy(),
            max_event_bytes=max_event_bytes,
            on_request=on_request,
            on_response=on_response,
        )
        self._options = options
        pool = AsyncPool(http_client, 30.0 if isinstance(timeout, Unset) else timeout)
        self._transport = AsyncTransport(options, pool, header_provider)
        self.conversations = AsyncConversations(self._transport)
        self.entries = AsyncEntries(self._transport)
        self.memberships = AsyncMemberships(self._transport)
        self.transfers = AsyncTransfers(self._transport)
        self.attachments = AsyncAttachments(self._transport)
        self.changes = AsyncChanges(self._transport)
        self.memories = AsyncMemories(self._transport)
        self.sessions = AsyncSessions(self._transport)
        self.facts = AsyncFacts(self._transport)
        self.files = AsyncFiles(self._transport)
        self.events = AsyncEvents(self._transport)
        self.audit = AsyncAudit(self._transport)
        self.lifecycle = AsyncLifecycle(self._transport)
        self.knowledge = AsyncKnowledge(self._transport)
        self.admin = AsyncAdmin(self._transport)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options.shown()!r})"

    async def status(self) -> ServiceStatus:
        """What the server says of itself."""
        return await self._transport.model("status", ServiceStatus)

    async def health(self) -> ServiceHealth:
        """Whether the server answers."""
        return await self._transport.model("health", ServiceHealth)

    async def ready(self) -> ServiceReadiness:
        """Whether it is ready for requests: its store answers too."""
        return await self._transport.model("ready", ServiceReadiness)

    async def aclose(self) -> None:
        """Closes connections, unless they came with `http_client`."""
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncMemtroveClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
