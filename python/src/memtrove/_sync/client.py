# Made by scripts/generate.py. Do not edit.
"""The client: one object with a group for each kind of thing."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import httpx

from memtrove._options import MAX_EVENT_BYTES, HeaderProvider, Options, authenticates, base_url, credentials
from memtrove._pool import Pool, Timeout
from memtrove._sync.admin import Admin
from memtrove._sync.attachments import Attachments
from memtrove._sync.changes import Changes
from memtrove._sync.conversations import (
    Conversations,
    Entries,
    Memberships,
    Transfers,
)
from memtrove._sync.facts import Facts
from memtrove._sync.files import Audit, Events, Files, Lifecycle
from memtrove._sync.knowledge import Knowledge
from memtrove._sync.memories import Memories, Sessions
from memtrove._sync.transport import Transport
from memtrove._wire import UNSET, Unset
from memtrove.errors import InvalidInputError
from memtrove.retry import RetryPolicy
from memtrove.service import ServiceHealth, ServiceReadiness, ServiceStatus


class MemtroveClient:
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
        header_provider: HeaderProvider | None = None,
        on_request: Callable[[httpx.Request], None] | None = None,
        on_response: Callable[[httpx.Response], None] | None = None,
        http_client: httpx.Client | None = None,
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
        pool = Pool(http_client, 30.0 if isinstance(timeout, Unset) else timeout)
        self._transport = Transport(options, pool, header_provider)
        self.conversations = Conversations(self._transport)
        self.entries = Entries(self._transport)
        self.memberships = Memberships(self._transport)
        self.transfers = Transfers(self._transport)
        self.attachments = Attachments(self._transport)
        self.changes = Changes(self._transport)
        self.memories = Memories(self._transport)
        self.sessions = Sessions(self._transport)
        self.facts = Facts(self._transport)
        self.files = Files(self._transport)
        self.events = Events(self._transport)
        self.audit = Audit(self._transport)
        self.lifecycle = Lifecycle(self._transport)
        self.knowledge = Knowledge(self._transport)
        self.admin = Admin(self._transport)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options.shown()!r})"

    def status(self) -> ServiceStatus:
        """What the server says of itself."""
        return self._transport.model("status", ServiceStatus)

    def health(self) -> ServiceHealth:
        """Whether the server answers."""
        return self._transport.model("health", ServiceHealth)

    def ready(self) -> ServiceReadiness:
        """Whether it is ready for requests: its store answers too."""
        return self._transport.model("ready", ServiceReadiness)

    def close(self) -> None:
        """Closes connections, unless they came with `http_client`."""
        self._transport.close()

    def __enter__(self) -> MemtroveClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
