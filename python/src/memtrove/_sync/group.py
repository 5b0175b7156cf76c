# Made by scripts/generate.py. Do not edit.
"""What the groups of a client have in common."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from memtrove._sync.transport import Transport
from memtrove.scope import Scope

P = TypeVar("P")


class Group:
    """The operations on one kind of thing."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport!r})"


def scoped(scope: Scope, **more: str) -> dict[str, str]:
    """The parts of an address below one user."""
    return {"tenant_id": scope.tenant_id, "user_id": scope.user_id, **more}


def follow(page: Callable[[Any], P], cursor: Callable[[P], Any]) -> Generator[P]:
    """Every page, from the first to the last."""
    after = None
    while True:
        found = page(after)
        yield found
        after = cursor(found)
        if after is None:
            return
