"""How a client reaches the server and who it says it is."""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

import httpx

from memtrove.errors import InvalidInputError
from memtrove.retry import RetryPolicy

DEFAULT_URL = "http://127.0.0.1:7077"
"""Where a server listens that was started without configuration."""

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""How long an event of a stream may be. The server tells 32 MiB of content at once at most, which JSON can double."""

HeaderProvider: TypeAlias = Callable[[], Mapping[str, str]]
"""Gives headers for one attempt, such as a token that is renewed now and then."""

AsyncHeaderProvider: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""The same, and may wait for something."""


@dataclass(frozen=True)
class Options:
    """What every call of a client has in common."""

    base_url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    user_id: str | None = None
    tenant_id: str | None = None
    service_id: str | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_event_bytes: int = MAX_EVENT_BYTES
    on_request: Callable[[httpx.Request], None] | None = None
    on_response: Callable[[httpx.Response], None] | None = None

    def __post_init__(self) -> None:
        # What cannot be sent is told where it was given, and not with the first call.
        if self.token:
            header("Authorization", self.token)
        for name, value in self.headers().items():
            header(name, value)
        if self.service_id:
            header("X-Service-Id", self.service_id)

    def headers(self) -> dict[str, str]:
        """Who is calling."""
        given = {
            "Authorization": f"Bearer {self.token}" if self.token else None,
            "X-API-Key": self.api_key,
            "X-User-ID": self.user_id,
            "X-Tenant-Id": self.tenant_id,
        }
        return {name: value for name, value in given.items() if value}

    def shown(self) -> str:
        """The address without a name and a password, if somebody wrote them into it."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def base_url(given: str | None) -> str:
    """The address to call: the one given, that of `MEMTROVE_URL`, or the local one."""
    url = (given or os.environ.get("MEMTROVE_URL") or DEFAULT_URL).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInputError("base_url must begin with http:// or https:// and name a host")
    return url


def credentials(token: str | None, api_key: str | None, user_id: str | None = None) -> tuple[str | None, str | None]:
    """The token and the key to call with: those that are given, or those of `MEMTROVE_TOKEN` and `MEMTROVE_API_KEY`.

    For a `user_id` the key of the environment is enough: a token beside it could be that of somebody else.
    """
    if token is not None or api_key is not None:
        return token, api_key
    token, api_key = os.environ.get("MEMTROVE_TOKEN") or None, os.environ.get("MEMTROVE_API_KEY") or None
    return (None if user_id and api_key else token), api_key


def authenticates(http: httpx.Client | httpx.AsyncClient | None) -> bool:
    """Whether a caller's own client says by itself who is calling."""
    return http is not None and (http.auth is not None or bool({"authorization", "x-api-key"} & http.headers.keys()))


@functools.cache
def certificates() -> ssl.SSLContext:
    """Whom to trust. Reading that takes longer than many calls do, so all clients share it."""
    return httpx.create_ssl_context()


def header(name: str, value: str) -> tuple[bytes, bytes]:
    """A header as it is sent: names of users and tenants may have letters beyond ASCII.

    What is refused is not shown, because it may be a credential.
    """
    if value.strip(" \t\r\n") != value:
        raise InvalidInputError(f"the header {name} begins or ends with space, which cannot be sent")
    if any(character < " " or character == "\x7f" for character in value):
        raise InvalidInputError(f"the header {name} has a control character, which cannot be sent")
    try:
        return name.encode("ascii"), value.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"the header {name!r} has a character that cannot be sent") from None
