"""Whose files and events, and where a file is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from memtrove.errors import InvalidInputError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ENCODED = re.compile(r"%(2e|2f|5c|00)", re.IGNORECASE)


@dataclass(frozen=True)
class Scope:
    """Whose files and events: one user of one tenant."""

    tenant_id: str
    """The tenant."""
    user_id: str
    """The user."""


def _check(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError("an id or a path has half a character, which cannot be sent") from None


def segment(value: str) -> str:
    """An id as one segment of an address. Dots are encoded, because `..` would lead elsewhere before it is sent."""
    if not value:
        raise InvalidInputError("an id is empty")
    _check(value)
    encoded = quote(value, safe="")
    return encoded.replace(".", "%2E") if set(value) == {"."} else encoded


def file_path(path: str) -> str:
    """The path of a file, checked as the server checks it; `/` at its ends is dropped."""
    _check(path)
    path = path.replace("\\", "/").strip("/")
    parts = path.split("/")
    if not path.strip():
        raise InvalidInputError("the path of a file is empty")
    if ".." in path or any(part == "." or not part.strip() for part in parts):
        raise InvalidInputError(f"the path {path!r} has an empty part, `.` or `..`")
    if _CONTROL.search(path) or _ENCODED.search(path):
        raise InvalidInputError(f"the path {path!r} has a control character or something encoded")
    if len(path.encode()) > 1024 or any(len(part.encode()) > 255 for part in parts):
        raise InvalidInputError("a path has at most 1024 bytes, and 255 between two `/`")
    return path


def file_segments(path: str) -> str:
    """The path of a file in an address."""
    return "/".join(quote(part, safe="") for part in file_path(path).split("/"))
