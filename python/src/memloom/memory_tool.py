"""Anthropic's memory tool: how its commands are read and answered. Nothing here calls the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memloom.errors import InvalidInputError

ROOT = "/memories"
"""Where the model believes its files are."""

MEMORY_TOOL = {"type": "memory_20250818", "name": "memory"}
"""What goes into the `tools` of a request."""

SNIPPET_LINES = 4
MAX_LINES = 999_999


class Refused(Exception):
    """What the model is told instead of a result."""


def parse_path(path: Any) -> str:
    """The path of a file in the store, without a slash at its ends: `memories/notes.md`."""
    if not isinstance(path, str) or not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise Refused(f"Error: The path {path} must begin with {ROOT}")
    if any(part in (".", "..") for part in path.split("/")) or "\\" in path or "%2e" in path.lower():
        raise Refused(f"Error: The path {path} must not lead out of {ROOT}")
    return path.strip("/")


def shown(path: str) -> str:
    """The path as the model knows it."""
    return f"/{path}"


def text_of(arguments: Mapping[str, Any], name: str) -> str:
    """A text that must be given."""
    value = arguments.get(name)
    if isinstance(value, str):
        return value
    raise Refused(f"Error: The command needs `{name}`, a text")


def numbered(lines: Sequence[str], first: int = 1) -> str:
    """Lines with their numbers."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def view_file(path: str, text: str, view_range: Any) -> str:
    """A file, or the lines of it that were asked for; -1 is the last."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise Refused(f"File {shown(path)} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range is not None:
        if not (isinstance(view_range, list) and len(view_range) == 2 and all(isinstance(n, int) for n in view_range)):
            raise Refused("Error: `view_range` must be two line numbers")
        first, last = view_range[0], len(lines) if view_range[1] == -1 else min(view_range[1], len(lines))
        if not 1 <= first <= last:
            raise Refused(f"Error: Invalid `view_range` {view_range}. The file has the lines [1, {len(lines)}]")
    return f"Here's the content of {shown(path)} with line numbers:\n{numbered(lines[first - 1 : last], first)}"


def view_directory(path: str, files: Sequence[str]) -> str:
    """The files below a path and the directories they make, two levels deep."""
    found = set[str]()
    for file in files:
        below = file.removeprefix(f"{path}/").split("/")
        if any(part.startswith(".") or part == "node_modules" for part in below):
            continue
        found |= {f"{path}/{'/'.join(below[:depth])}/" for depth in range(1, min(len(below), 3))}
        if len(below) <= 2:
            found.add(file)
    head = f"Here're the files and directories up to 2 levels deep in {shown(path)}, excluding hidden items:"
    return "\n".join([head, shown(path), *(shown(one) for one in sorted(found))])


def replaced(path: str, text: str, old: str, new: str) -> str:
    """What is said after a text was replaced: the lines around it."""
    position = text.find(old)
    result = text.replace(old, new, 1).split("\n")
    line = text.count("\n", 0, position)
    first = max(0, line - SNIPPET_LINES)
    snippet = result[first : line + new.count("\n") + SNIPPET_LINES + 1]
    return f"The memory file has been edited. Here's a snippet of {shown(path)}:\n{numbered(snippet, first + 1)}"


def check_unique(path: str, text: str, old: str) -> None:
    """A replacement must know what it replaces."""
    if not old:
        raise Refused("No replacement was performed: `old_str` is empty.")
    count = text.count(old)
    if count == 0:
        raise Refused(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {shown(path)}. View it first."
        )
    if count > 1:
        at, lines = -1, list[str]()
        while (at := text.find(old, at + 1)) >= 0:
            lines.append(str(text.count("\n", 0, at) + 1))
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {', '.join(lines)}."
            " Please ensure it is unique"
        )


def inserted(text: str, line: Any, new: str) -> str:
    """The text with new lines behind a line; 0 is before the first."""
    lines = text.split("\n")
    # A text that ends with a line break has no line behind it.
    count = len(lines) - 1 if lines[-1] == "" else len(lines)
    if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= count:
        raise Refused(
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file:"
            f" [0, {count}]"
        )
    return "\n".join([*lines[:line], *new.removesuffix("\n").split("\n"), *lines[line:]])


def told(error: InvalidInputError) -> str:
    """A path that the store does not take, for the model."""
    return f"Error: {error}"
