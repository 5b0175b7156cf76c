"""Whose memories: the identifiers that a layer needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from memtrove.errors import InvalidInputError
from memtrove.models import MemoryIdentifiers

Identifiers: TypeAlias = MemoryIdentifiers | Mapping[str, str]
"""`MemoryIdentifiers`, or a dict with its members: `{"user_id": "alice"}`."""

_NAMES = [one.name for one in dataclasses.fields(MemoryIdentifiers) if one.name != "extra"]


def as_wire(identifiers: Identifiers) -> dict[str, Any]:
    """Identifiers in a body. A name that is none is refused: the server would pass over it and open another scope."""
    if isinstance(identifiers, MemoryIdentifiers):
        return identifiers.to_wire()
    unknown = [name for name in identifiers if name not in _NAMES]
    if unknown:
        raise InvalidInputError(f"no identifier is called {unknown[0]!r}; there are {', '.join(_NAMES)}")
    return MemoryIdentifiers(**dict[str, Any](identifiers)).to_wire()


def as_query(identifiers: Identifiers | None) -> dict[str, Any]:
    """Identifiers in an address."""
    return {} if identifiers is None else as_wire(identifiers)
