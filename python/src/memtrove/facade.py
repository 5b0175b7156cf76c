"""What the ten-line facade gives back, and how it names things."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memtrove.errors import InvalidInputError
from memtrove.models import Entry, FoundMemory, Memory

_NAMES = uuid.UUID("6d656d6c-6f6f-5d20-8000-636f6e766572")
_ROLES = {"user": "USER", "assistant": "AI", "ai": "AI"}


@dataclass(frozen=True)
class Hit:
    """Something that was remembered and fits what was asked."""

    text: str
    """What was remembered."""
    score: float
    """How well it fits, from 0 to 1."""
    id: str
    """By which it is forgotten."""
    memory: Memory
    """All that is known of it."""
    passage: str
    """The part of the text that answers, at most 120 words; all of a text that is no longer."""

    @classmethod
    def of(cls, found: FoundMemory) -> Hit:
        """A result of a search."""
        memory = found.memory
        return cls(memory.content, found.score, memory.id, memory, found.passage or memory.content)


@dataclass(frozen=True)
class Message:
    """Something that was said."""

    role: str
    """Who said it: `user` or `assistant`."""
    text: str
    """What."""
    created_at: datetime
    """When."""
    id: str
    """The entry it is."""

    @classmethod
    def of(cls, entry: Entry) -> Message:
        """An entry of the transcript."""
        said: Any = entry.content[0] if entry.content else {}
        said = said if isinstance(said, Mapping) else {}
        role = "user" if str(said.get("role")).upper() == "USER" else "assistant"
        return cls(role, str(said.get("text") or ""), entry.created_at, entry.id)


def a_text(name: str, value: object) -> str:
    """What was given, if it is a text with something in it."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidInputError(f"{name} is blank")
    return value


def same(one: str, other: str) -> bool:
    """Whether two texts say the same, by the server's rule: letter case, space and the end do not matter."""
    return one == other or (plain(one) == plain(other) != "")


def plain(text: str) -> str:
    """A text without what does not matter."""
    return re.sub(r"\s+", " ", text).strip().lower().rstrip(".!?,;: ")


def conversation_id(user: str, name: str) -> str:
    """The id of a conversation: one that is given, or the one that a name of this user always has."""
    return given_id(name) or str(uuid.uuid5(_NAMES, f"{len(user)}:{user}:{name}"))


def given_id(name: str) -> str | None:
    """The id that a text is, in whichever way it is written."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return None


def is_id(text: str) -> bool:
    """Whether this is the id of a memory rather than a text."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def wire_role(role: str) -> str:
    """The server's word for who says something."""
    found = _ROLES.get(role.lower())
    if found is None:
        raise InvalidInputError(f"there is no role {role!r}; say user or assistant")
    return found
