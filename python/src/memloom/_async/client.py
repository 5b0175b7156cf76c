"""The client: one object with a group for each kind of thing."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import httpx

from memloom._async.admin import AsyncAdmin
from memloom._async.attachments import AsyncAttachments
from memloom._async.changes import AsyncChanges
from memloom._async.conversations import (
    AsyncConversations,
    AsyncEntries,
    AsyncMemberships,
    AsyncTransfers,
)
from memloom._async.facts import AsyncFacts
from memloom._async.files import AsyncAudit, AsyncEvents, AsyncFiles, AsyncLifecycle
from memloom._async.knowledge import AsyncKnowledge
from memloom._async.memories import AsyncMemories, AsyncSessions
from memloom._async.transport import AsyncTransport
from memloom._options import AsyncHeaderProvider, Options, base_url, certificates
from memloom.retry import RetryPolicy


class AsyncMemloomClient:
    """Every operation of a Memloom server.

    `token` says which user is calling (in local mode just the user's name), `api_key` which service. A service that is
    trusted names the user it works for with `user_id`. Make one client and share it; close it, or use it in a `with`.
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
        timeout: float = 30.0,
        header_provider: AsyncHeaderProvider | None = None,
        on_request: Callable[[httpx.Request], None] | None = None,
        on_response: Callable[[httpx.Response], None] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        options = Options(
            base_url=base_url(url),
            token=token,
            api_key=api_key,
            user_id=user_id,
            tenant_id=tenant_id,
            service_id=service_id,
            retry=retry or RetryPolicy(),
            on_request=on_request,
            on_response=on_response,
        )
        http = http_client or httpx.AsyncClient(timeout=timeout, verify=certificates())
        self._options = options
        self._transport = AsyncTransport(options, http, header_provider, owns_http=http_client is None)
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

    async def status(self) -> dict[str, Any]:
        """What the server says of itself: `service`, `status`, `version`, and where it is described."""
        answer: dict[str, Any] = await self._transport.json("status")
        return answer

    async def health(self) -> dict[str, Any]:
        """Whether the server answers."""
        answer: dict[str, Any] = await self._transport.json("health")
        return answer

    async def ready(self) -> dict[str, Any]:
        """Whether it is ready for requests: its store answers too."""
        answer: dict[str, Any] = await self._transport.json("ready")
        return answer

    async def aclose(self) -> None:
        """Closes connections, unless they came with `http_client`."""
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncMemloomClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
