"""What the agent facade works with: files as text, prepared turns, and how a write treats what is there."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memtrove.edits import PatchOp
from memtrove.models import DroppedFile, Envelope, EventDigest, StoredFile, TextEdit

TEXT = "text/markdown"
"""What files are unless they say otherwise."""

MemoryEdit = TextEdit
"""A replacement of text that is in a file: `old_text`, `new_text`, `occurrence`."""


@dataclass(frozen=True)
class AgentMemoryOptions:
    """How much an agent takes in; the server's own defaults are smaller."""

    assemble_max_docs: int = 8
    """The most files of a turn."""
    assemble_max_chars_total: int = 40_000
    """Their most characters."""
    recall_top_k: int = 8
    """The most events of a recall."""


@dataclass(frozen=True)
class MemoryFile:
    """A file as text."""

    path: str
    """Where it is."""
    content_type: str
    """What the content is: `text/markdown`, or `application/json` where the file has no text."""
    content: str
    """The content."""
    etag: str
    """Its version."""

    @classmethod
    def of(cls, path: str, stored: StoredFile) -> MemoryFile:
        """A document as text. An empty text is a text too."""
        content = stored.document.content
        text = content.get("text")
        if isinstance(text, str):
            kind = content.get("content_type")
            return cls(path, kind if isinstance(kind, str) else TEXT, text, stored.etag)
        return cls(path, "application/json", json.dumps(content, ensure_ascii=False, indent=2), stored.etag)

    def to_wire(self) -> dict[str, Any]:
        """What a model is shown of it."""
        return {"path": self.path, "content_type": self.content_type, "content": self.content, "etag": self.etag}


@dataclass(frozen=True)
class MemoryFileEntry:
    """A file of a list."""

    path: str
    """Where it is."""
    last_modified_utc: datetime
    """When it was changed last."""


@dataclass(frozen=True)
class IfUnchanged:
    """As the mode of a write: only if the file still has this version."""

    etag: str
    """The version."""


@dataclass(frozen=True)
class CreateOnly:
    """As the mode of a write: only if there is no such file yet."""


@dataclass(frozen=True)
class Overwrite:
    """As the mode of a write: whatever is there."""


WriteMode = Overwrite | IfUnchanged | CreateOnly
"""How a write treats what is there."""


@dataclass(frozen=True)
class SlotDocument:
    """A slot as it was loaded."""

    slot_id: str | None
    """Its name."""
    path: str
    """Where its file is."""
    etag: str
    """Its version: give it back as `if_match` when you change it."""
    envelope: Envelope
    """The document."""


@dataclass(frozen=True)
class PreparedTurn:
    """What a turn begins with."""

    documents: Sequence[SlotDocument]
    """The slots, in their order."""
    events: Sequence[EventDigest]
    """What happened that has to do with it."""
    dropped_files: Sequence[DroppedFile]
    """What did not fit."""


def text_document(content: str, content_type: str | None = None) -> Envelope:
    """A new document that holds a text."""
    return Envelope(
        doc_id=str(uuid.uuid4()),
        schema_id="memnet.file",
        schema_version="1.0.0",
        content={"content_type": content_type or TEXT, "text": content},
    )


def text_instead(document: Envelope, content: str, content_type: str | None = None) -> PatchOp:
    """What gives a document another text; what else its content holds goes, as the whole text is new.

    It names the content alone, so that everything around it stays as it was written.
    """
    known = document.content.get("content_type") if isinstance(document.content.get("text"), str) else None
    kind = content_type or (known if isinstance(known, str) else TEXT)
    return PatchOp.add("/content", {"content_type": kind, "text": content})


def event_for_model(event: EventDigest) -> dict[str, Any]:
    """What a model is shown of an event."""
    shown: Mapping[str, Any] = event.to_wire()
    names = ("event_id", "timestamp", "source_type", "digest", "keywords", "project_ids")
    return {name: shown.get(name, [] if name in ("keywords", "project_ids") else None) for name in names}
