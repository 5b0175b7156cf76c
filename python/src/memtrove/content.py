"""The bytes of a file that was attached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Content:
    """What a download gave."""

    data: bytes
    """The bytes, or the part of them that was asked for."""
    content_type: str | None
    """What they are."""
    etag: str | None
    """The name of these bytes, for `if_none_match`."""
    partial: bool = False
    """Whether this is only a part."""


def byte_range(start: int | None, end: int | None) -> str | None:
    """A `Range` header: from `start` to before `end`, as slices in Python; a negative start counts from the end."""
    if start is None and end is None:
        return None
    if start is not None and start < 0:
        return f"bytes={start}"
    return f"bytes={start or 0}-{'' if end is None else end - 1}"
