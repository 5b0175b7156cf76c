"""What changes a file: a whole new document, or parts of the one there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from memtrove._wire import UNSET, Unset, body, encode
from memtrove.models import Envelope, StoredFile, TextEdit

CREATE_NEW = "*"
"""As `if_match`: only if there is no such file yet."""


@dataclass(frozen=True)
class PatchOp:
    """An operation of JSON Patch (RFC 6902) on the document; content is below `/content`."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    """What it does."""
    path: str
    """Where: a JSON pointer."""
    from_: str | None = None
    """From where, for `move` and `copy`."""
    value: Any | Unset = UNSET
    """What, for `add`, `replace` and `test`; `None` is JSON's null."""

    @classmethod
    def add(cls, path: str, value: Any) -> PatchOp:
        """Adds a member, or an item before the one at this index; `-` is behind the last."""
        return cls("add", path, value=value)

    @classmethod
    def remove(cls, path: str) -> PatchOp:
        """Removes what is there."""
        return cls("remove", path)

    @classmethod
    def replace(cls, path: str, value: Any) -> PatchOp:
        """Puts something else in its place."""
        return cls("replace", path, value=value)

    @classmethod
    def move(cls, from_: str, path: str) -> PatchOp:
        """Moves what is at `from_`."""
        return cls("move", path, from_=from_)

    @classmethod
    def copy(cls, from_: str, path: str) -> PatchOp:
        """Copies what is at `from_`."""
        return cls("copy", path, from_=from_)

    @classmethod
    def test(cls, path: str, value: Any) -> PatchOp:
        """Goes on only if this is what is there."""
        return cls("test", path, value=value)

    def to_wire(self) -> dict[str, Any]:
        """The operation as JSON."""
        wire = body(op=self.op, path=self.path, **{"from": self.from_})
        return wire if self.value is UNSET else {**wire, "value": encode(self.value)}


@dataclass(frozen=True)
class FilePatch:
    """A change of parts: operations first, then text edits. It happens as a whole, or not at all."""

    ops: Sequence[PatchOp] = ()
    """On the document."""
    edits: Sequence[TextEdit] = ()
    """On `content.text`."""
    reason: str | None = None
    """Why, for the audit trail."""
    evidence: Any = None
    """What it rests on: any JSON."""

    def to_wire(self) -> dict[str, Any]:
        """The body of the request."""
        ops = [op.to_wire() for op in self.ops] or None
        edits = [edit.to_wire() for edit in self.edits] or None
        return body(ops=ops, edits=edits, reason=self.reason, evidence=self.evidence)


@dataclass(frozen=True)
class FileWrite:
    """A whole new document."""

    document: Envelope | Mapping[str, Any]
    """The document."""
    reason: str | None = None
    """Why, for the audit trail."""
    evidence: Any = None
    """What it rests on: any JSON."""

    def to_wire(self) -> dict[str, Any]:
        """The body of the request."""
        return body(document=self.document, reason=self.reason, evidence=self.evidence)


FileUpdate: TypeAlias = FilePatch | FileWrite
"""One or the other, so that "neither" cannot be said."""

Updater: TypeAlias = Callable[[StoredFile], FileUpdate]
"""Decides what to change, by the version there is."""

AsyncUpdater: TypeAlias = Callable[[StoredFile], Awaitable[FileUpdate]]
"""The same, and may wait for something."""
