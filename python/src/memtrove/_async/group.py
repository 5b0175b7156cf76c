"""What the groups of a client have in common."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

from memtrove._async.transport import AsyncTransport
from memtrove.scope import Scope

P = TypeVar("P")


class AsyncGroup:
    """The operations on one kind of thing."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport!r})"


def scoped(scope: Scope, **more: str) -> dict[str, str]:
    """The parts of an address below one user."""
    return {"tenant_id": scope.tenant_id, "user_id": scope.user_id, **more}


async def follow(page: Callable[[Any], Awaitable[P]], cursor: Callable[[P], Any]) -> AsyncGenerator[P]:
    """Every page, from the first to the last."""
    after = None
    while True:
        found = await page(after)
        yield found
        after = cursor(found)
        if after is None:
            return
