"""What a model sends, read with patience: numbers out of range are brought into it, an edit may stand beside the path,
and whatever cannot be read is answered with what the tool takes. Nothing here calls the server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from memtrove.models import TextEdit
from memtrove.tool_output import ToolFailure, answered, unknown_tool

MAX_QUERY_CHARS = 2000
MAX_PATH_CHARS = 1024
MAX_REASON_CHARS = 256
MAX_EDITS = 100
MAX_OCCURRENCE = 2**32 - 1

# What other languages read as a number; Python alone knows `1_000` and digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

# What a tool takes, in a line that a model can copy from.
_TAKES = {
    "memory_recall": 'memory_recall takes {"query": "plain words", "top_k": 8}; top_k (1 to 20) is optional.',
    "memory_list_files": 'memory_list_files takes {"prefix": "projects/", "limit": 100}; both are optional.',
    "memory_load_file": 'memory_load_file takes {"path": "profile.md"}.',
    "memory_patch_file": (
        'memory_patch_file takes {"path": "profile.md", "edits": [{"old_text": "as it is", "new_text": "as it should'
        ' be", "occurrence": 1}], "reason": "why"}; occurrence and reason are optional.'
    ),
    "memory_write_file": (
        'memory_write_file takes {"path": "profile.md", "content": "the whole text", "reason": "why"}; reason is'
        " optional."
    ),
}


@dataclass(frozen=True)
class RecallCall:
    """What to look for among the events."""

    query: str
    """In plain words."""
    top_k: int
    """The most events, 1 to 20."""


@dataclass(frozen=True)
class ListFilesCall:
    """Which files to list."""

    prefix: str | None
    """What their paths begin with."""
    limit: int
    """The most files, 1 to 200."""


@dataclass(frozen=True)
class LoadFileCall:
    """Which file to show."""

    path: str
    """Its path."""


@dataclass(frozen=True)
class PatchFileCall:
    """What to change in a file."""

    path: str
    """Its path."""
    edits: list[TextEdit]
    """The replacements, 1 to 100."""
    reason: str | None
    """Why, for the audit trail."""


@dataclass(frozen=True)
class WriteFileCall:
    """What to write into a file."""

    path: str
    """Its path."""
    content: str
    """The whole text."""
    reason: str | None
    """Why, for the audit trail."""


ToolCall: TypeAlias = RecallCall | ListFilesCall | LoadFileCall | PatchFileCall | WriteFileCall
"""A call that could be read."""


def read_call(name: str, given: Any) -> ToolCall:
    """Reads a call by the tool's name. Arguments are an object, or the text of one; nothing is an empty object."""
    if name not in _TAKES:
        raise unknown_tool(name, [*_TAKES])
    arguments = Arguments.read(given, _TAKES[name])
    if name == "memory_recall":
        arguments.only("query", "top_k", "topK")
        top_k = arguments.number("top_k", "topK", least=1, most=20)
        return RecallCall(arguments.text("query", MAX_QUERY_CHARS), 8 if top_k is None else top_k)
    if name == "memory_list_files":
        arguments.only("prefix", "limit")
        prefix = arguments.optional_text("prefix", MAX_PATH_CHARS)
        limit = arguments.number("limit", least=1, most=200)
        return ListFilesCall(prefix, 100 if limit is None else limit)
    if name == "memory_load_file":
        arguments.only("path")
        return LoadFileCall(arguments.text("path", MAX_PATH_CHARS))
    if name == "memory_patch_file":
        arguments.only("path", "edits", "reason", "old_text", "new_text", "occurrence")
        path, edits = arguments.text("path", MAX_PATH_CHARS), _edits(arguments)
        return PatchFileCall(path, edits, arguments.note("reason", MAX_REASON_CHARS))
    arguments.only("path", "content", "reason")
    path, content = arguments.text("path", MAX_PATH_CHARS), arguments.any_text("content")
    return WriteFileCall(path, content, arguments.note("reason", MAX_REASON_CHARS))


def _edits(arguments: Arguments) -> list[TextEdit]:
    """The list of edits, or the one that stands beside the path."""
    items = arguments.get("edits")
    flat = any(arguments.has(name) for name in ("old_text", "new_text", "occurrence"))
    if items is None:
        return [_edit(arguments)] if flat else arguments.wrong("'edits' is missing")
    if flat:
        arguments.wrong("there is an edit both in 'edits' and beside it")
    if not isinstance(items, list):
        arguments.wrong("'edits' is not a list")
    if not items:
        arguments.wrong("'edits' is empty")
    if len(items) > MAX_EDITS:
        raise answered("PATCH_TOO_LARGE", f"there are {len(items)} edits; at most {MAX_EDITS} are taken")
    edits = []
    for index, item in enumerate(items):
        one = Arguments.read(item, arguments.takes)
        try:
            one.only("old_text", "new_text", "occurrence")
            edits.append(_edit(one))
        except ToolFailure as failure:
            raise ToolFailure(failure.code, f"edit {index}: {failure.message}", failure.hint) from None
    return edits


def _edit(arguments: Arguments) -> TextEdit:
    old = arguments.any_text("old_text")
    if not old:
        arguments.wrong("'old_text' is empty")
    new = arguments.any_text("new_text")
    return TextEdit(old_text=old, new_text=new, occurrence=arguments.number("occurrence", least=1, most=MAX_OCCURRENCE))


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, by name."""

    members: Mapping[str, Any]
    """What was sent."""
    takes: str
    """What the tool takes, for whoever sent something else."""

    @classmethod
    def read(cls, given: Any, takes: str) -> Arguments:
        """Reads an object, or the text of one; nothing is an empty object."""
        nothing = cls({}, takes)
        if isinstance(given, str) and given.strip():
            try:
                given = json.loads(given, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                nothing.wrong(f"the arguments are not JSON: {error}")
        elif given is None or isinstance(given, str):
            return nothing
        if not isinstance(given, Mapping):
            nothing.wrong("the arguments are not a JSON object")
        try:
            if _has_half_characters(given):
                nothing.wrong("the arguments are not JSON: a text has half of a character")
        except RecursionError:
            nothing.wrong("the arguments are nested too deep")
        return cls(given, takes)

    def taking(self, takes: str) -> Arguments:
        """The same arguments, of something that takes these: for tools with several commands."""
        return Arguments(self.members, takes)

    def only(self, *names: str) -> None:
        """Refuses arguments of other names.

        So a model that misspells one, or wants to choose whose memory it uses, hears of it.
        """
        for name in self.members:
            if name not in names:
                self.wrong(f"there is no argument '{name}'")

    def get(self, name: str) -> Any:
        """An argument; `None` where it is not there or null."""
        return self.members.get(name)

    def has(self, name: str) -> bool:
        """Whether an argument is there and is not null."""
        return self.get(name) is not None

    def text(self, name: str, max_chars: int) -> str:
        """A required text that says something, of at most so many characters."""
        text = self.any_text(name)
        if not text.strip():
            self.wrong(f"'{name}' is blank")
        return self._short_enough(name, text, max_chars)

    def optional_text(self, name: str, max_chars: int) -> str | None:
        """A text that may be missing, or be blank, which is the same."""
        if not self.has(name) or not self.any_text(name).strip():
            return None
        return self._short_enough(name, self.any_text(name), max_chars)

    def any_text(self, name: str) -> str:
        """A required text, even an empty one."""
        value = self.get(name)
        if isinstance(value, str):
            return value
        self.wrong(f"'{name}' is missing" if value is None else f"'{name}' is not a string")

    def note(self, name: str, max_chars: int) -> str | None:
        """A remark that may be missing.

        One that is too long is cut: to send a whole file again for it would cost more than its end is worth.
        """
        note = self.any_text(name) if self.has(name) else ""
        return note[:max_chars] if note.strip() else None

    def number(self, *names: str, least: int, most: int) -> int | None:
        """A whole number under any of these names, the first that is there; brought into its range."""
        name = next((name for name in names if self.has(name)), None)
        if name is None:
            return None
        number = _as_float(self.get(name))
        if number is None or not math.isfinite(number) or not number.is_integer():
            self.wrong(f"'{name}' is not a whole number")
        return int(max(least, min(most, number)))

    def wrong(self, message: str) -> NoReturn:
        """Refuses the call, with a hint that says what the tool takes."""
        raise ToolFailure("INVALID_ARGUMENTS", message, self.takes)

    def _short_enough(self, name: str, text: str, max_chars: int) -> str:
        if len(text) > max_chars:
            self.wrong(f"'{name}' has {len(text)} characters; at most {max_chars} are taken")
        return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _has_half_characters(value: Any) -> bool:
    """Whether a text cannot be sent: JSON's escapes can say half of a pair, UTF-8 cannot."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, Mapping):
        return any(_has_half_characters(name) or _has_half_characters(inner) for name, inner in value.items())
    return isinstance(value, list) and any(_has_half_characters(inner) for inner in value)


def _as_float(value: Any) -> float | None:
    """Some models write numbers as text, and whole ones with a fraction of nothing."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value := value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
