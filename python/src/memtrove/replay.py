"""The events of streams, and what an indexer sends."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memtrove._sse import ServerEvent
from memtrove.errors import DecodeError
from memtrove.models import Change


@dataclass(frozen=True)
class IndexedText:
    """What an entry is to be found by."""

    conversation_id: str
    """The conversation."""
    entry_id: str
    """The entry."""
    indexed_content: str
    """The text."""

    def to_wire(self) -> dict[str, Any]:
        """The JSON object it stands for."""
        return {
            "conversationId": self.conversation_id,
            "entryId": self.entry_id,
            "indexedContent": self.indexed_content,
        }


@dataclass(frozen=True)
class ReplayEvent:
    """A piece of an answer that is being given, or how it ended."""

    event: str
    """`message` for a piece; `restart`: what follows is another answer; `end`: that was all."""
    content: str
    """The piece; empty with the others. Pieces follow each other without a gap."""
    status: str | None
    """With `end`: `success`, `cancelled` or `error`."""
    id: str | None
    """Where to go on from."""


@dataclass(frozen=True)
class ChangeNotice:
    """A change as the feed tells it; or, without one, that older changes are not kept any more."""

    change: Change | None
    """What happened."""
    oldest: int | None
    """Where there is a gap: the oldest change that is kept."""


@dataclass(frozen=True)
class Progress:
    """How far something is that takes its time."""

    percent: int
    """0 to 100."""


def replay_event(event: ServerEvent) -> ReplayEvent:
    """An event of a response that is replayed."""
    value = data(event)
    return ReplayEvent(event.event, str(value.get("content", "")), value.get("status"), event.id)


def change_notice(event: ServerEvent) -> ChangeNotice:
    """An event of the change feed."""
    value = data(event)
    if event.event == "gap":
        return ChangeNotice(None, value.get("oldest"))
    return ChangeNotice(Change.from_wire(value), None)


def data(event: ServerEvent) -> dict[str, Any]:
    """The JSON object of an event."""
    try:
        value = json.loads(event.data)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    raise DecodeError(f"the event {event.event} is not a JSON object")
