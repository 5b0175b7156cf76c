"""Anthropic's memory tool: how its commands are read and answered. Nothing here calls the server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memtrove.errors import InvalidInputError
from memtrove.scope import file_path
from memtrove.tool_calls import Arguments
from memtrove.tool_output import ToolFailure

ROOT = "/memories"
"""Where the model believes its files are."""

MEMORY_TOOL = {"type": "memory_20250818", "name": "memory"}
"""What goes into the `tools` of a request."""

CONTEXT = 2
MAX_LINES = 999_999
DEPTH = 2
REASON = "memory_tool"
"""What the audit trail is told."""


class Refused(Exception):
    """What the model is told instead of a result."""


def parse_path(path: str) -> str:
    """The path of a file in the store: `memories/notes.md`, or `memories` for all of them."""
    if not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise Refused(f"Error: Path must start with {ROOT}, got: {path}")
    if ".." in path or any(escape in path.lower() for escape in ("%2e", "%2f", "%5c", "%00")):
        raise Refused(f"Error: Path {path} would escape {ROOT} directory")
    if path.strip("/") == ROOT.strip("/"):
        return ROOT.strip("/")
    try:
        return file_path(path)
    except InvalidInputError as error:
        raise Refused(f"Error: The path {path} is not valid: {error}") from None


def is_root(path: str) -> bool:
    """Whether a path is the directory of everything."""
    return path == ROOT.strip("/")


def shown(path: str) -> str:
    """The path as the model knows it."""
    return f"/{path}"


# What each command takes, for whoever sent something else.
_COMMANDS = {
    "view": 'view takes {"path", "view_range": [first, last]}; view_range is optional.',
    "create": 'create takes {"path", "file_text"}.',
    "str_replace": 'str_replace takes {"path", "old_str", "new_str"}.',
    "insert": 'insert takes {"path", "insert_line", "insert_text"}.',
    "delete": 'delete takes {"path"}.',
    "rename": 'rename takes {"old_path", "new_path"}.',
}


@dataclass(frozen=True)
class Command:
    """A command that could be read; members that it does not take are empty."""

    name: str
    """Which of the six."""
    path: str
    """The file or directory in the store: `memories/notes.md`, or `memories` for all of them."""
    new_path: str = ""
    """Where it goes, for `rename`."""
    text: str = ""
    """What it puts in, for `create`, `insert` and `str_replace`."""
    old: str = ""
    """What it replaces, for `str_replace`."""
    line: int = 0
    """After how many lines, for `insert`."""
    lines: tuple[int, int] | None = None
    """From which line to which, for `view`."""


def read_command(given: Any) -> Command:
    """Reads what a model sends: an object, or the text of one."""
    names = ", ".join(_COMMANDS)
    try:
        arguments = Arguments.read(given, f"Give a command: {names}.")
        name = arguments.any_text("command")
        if name not in _COMMANDS:
            raise Refused(f"Error: Unknown command: {name}. Valid commands are: {names}")
        return _read(name, arguments.taking(_COMMANDS[name]))
    except ToolFailure as failure:
        raise Refused(f"Error: {failure.message}. {failure.hint}") from None


def _read(name: str, arguments: Arguments) -> Command:
    text = arguments.any_text
    if name == "rename":
        return Command(name, parse_path(text("old_path")), new_path=parse_path(text("new_path")))
    if name == "view":
        return Command(name, parse_path(text("path")), lines=_range(arguments))
    if name == "create":
        return Command(name, parse_path(text("path")), text=text("file_text"))
    if name == "str_replace":
        old = text("old_str")
        if not old:
            arguments.wrong("'old_str' is empty")
        # Without a new text, the old one is deleted.
        new = text("new_str") if arguments.has("new_str") else ""
        return Command(name, parse_path(text("path")), old=old, text=new)
    if name == "insert":
        line = _whole(arguments.get("insert_line"))
        if line is None:
            arguments.wrong("'insert_line' is not a whole number")
        return Command(name, parse_path(text("path")), line=line, text=text("insert_text"))
    return Command(name, parse_path(text("path")))


def changes(given: Any) -> bool:
    """Whether a command may change something."""
    return not (isinstance(given, Mapping) and given.get("command") == "view")


def _range(arguments: Arguments) -> tuple[int, int] | None:
    given = arguments.get("view_range")
    if given is None:
        return None
    first, last = map(_whole, given) if isinstance(given, (list, tuple)) and len(given) == 2 else (None, None)
    if first is None or last is None:
        arguments.wrong("'view_range' is not a list of two line numbers")
    return first, last


def _whole(value: Any) -> int | None:
    """A whole number, which some models write as text."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def numbered(lines: Sequence[str], first: int = 1) -> str:
    """Lines with their numbers."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def view_file(path: str, text: str, view_range: tuple[int, int] | None) -> str:
    """A file, or the lines of it that were asked for; -1 is the last."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise Refused(f"File {shown(path)} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range is not None:
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else min(view_range[1], len(lines))
        if not first <= last:
            raise Refused(
                f"Error: Invalid `view_range` parameter: [{view_range[0]}, {view_range[1]}]. It should be within the"
                f" range of lines of the file: [1, {len(lines)}]"
            )
    return f"Here's the content of {shown(path)} with line numbers:\n{numbered(lines[first - 1 : last], first)}"


def view_directory(path: str, sizes: Mapping[str, int]) -> str:
    """The files below a path and the directories they make, two levels deep, with their sizes."""
    total, found = 0, dict[tuple[str, ...], int]()
    for file, size in sizes.items():
        below = file.removeprefix(f"{path}/").split("/")
        if any(part.startswith(".") or part == "node_modules" for part in below):
            continue
        total += size
        for depth in range(1, min(len(below), DEPTH) + 1):
            # A directory ends with an empty name. Paths are flat: one may be a file and a directory.
            names = (*below[:depth], "") if depth < len(below) else (*below,)
            found[names] = found.get(names, 0) + size
    head = (
        f"Here're the files and directories up to 2 levels deep in {shown(path)},"
        " excluding hidden items and node_modules:"
    )
    listed = [f"{human(size)}\t{shown(path)}/{'/'.join(names)}" for names, size in sorted(found.items())]
    return "\n".join([head, f"{human(total)}\t{shown(path)}", *listed])


def human(size: float) -> str:
    """A size for people: `37B`, `5.5K`, `1.2M`."""
    for unit in "BKM":
        if size < 1024:
            return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}G"


def only_match(path: str, text: str, old: str) -> int:
    """The line, counted from 0, where the only match begins: a replacement must know what it replaces."""
    lines, at = list[int](), text.find(old)
    while at >= 0:
        lines.append(text.count("\n", 0, at))
        at = text.find(old, at + len(old))
    if not lines:
        raise Refused(f"No replacement was performed, old_str `{old}` did not appear verbatim in {shown(path)}.")
    if len(lines) > 1:
        every = ", ".join(str(line + 1) for line in lines)
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {every}."
            " Please ensure it is unique"
        )
    return lines[0]


def snippet(text: str, line: int) -> str:
    """The lines around one."""
    first = max(0, line - CONTEXT)
    return numbered(text.split("\n")[first : line + CONTEXT + 1], first + 1)


def with_line(text: str, line: int, new: str) -> str:
    """The text with new lines behind so many; the last one ends too."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if not 0 <= line <= len(lines):
        raise Refused(
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file:"
            f" [0, {len(lines)}]"
        )
    return "\n".join([*lines[:line], new.rstrip("\n"), *lines[line:]]) + "\n"
