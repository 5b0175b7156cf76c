"""Server-sent events, read from bytes as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memtrove.errors import DecodeError


@dataclass(frozen=True)
class ServerEvent:
    """One event of a stream."""

    event: str
    """Its name; `message` where it has none."""
    data: str
    """What it says."""
    id: str | None
    """Where to go on from, if the stream breaks off here."""


class EventDecoder:
    """Bytes in, events out. Lines end at `\\n`, `\\r` or both and nowhere else, unlike those of `str.splitlines`."""

    def __init__(self, max_event_bytes: int) -> None:
        self.last_id: str | None = None
        """The last id seen, also one that came without an event."""
        self._max = max_event_bytes
        self._rest: list[bytes] = []
        self._waiting = 0
        self._id: str | None = None
        self._name = ""
        self._data: list[str] = []
        self._kept = 0

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that are complete with these bytes. An event that is not, and is too long already, is an error."""
        ends = any(b"\n" in piece or b"\r" in piece for piece in (*self._rest[-1:], chunk))
        self._rest.append(chunk)
        self._waiting += len(chunk)
        # A line that comes in many pieces is put together once.
        if ends:
            text = b"".join(self._rest)
            # A `\r` at the very end may be half of a `\r\n`.
            held = text.endswith(b"\r")
            lines = (text[:-1] if held else text).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            self._rest = [lines.pop() + (b"\r" if held else b"")]
            self._waiting = len(self._rest[0])
            for line in lines:
                if event := self._line(line.decode("utf-8", "replace"), len(line) + 1):
                    yield event
        if self._kept + self._waiting > self._max:
            raise DecodeError(f"an event of the stream is longer than {self._max} bytes (max_event_bytes)")

    def _line(self, line: str, size: int) -> ServerEvent | None:
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            # With its name and its end: lines without a value are kept too.
            self._kept += size
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _end(self) -> ServerEvent | None:
        # An id counts when its event is complete: what broke off in the middle was not seen.
        self.last_id = self.last_id if self._id is None else self._id
        name, data = self._name or "message", self._data
        self._id, self._name, self._data, self._kept = None, "", [], 0
        return ServerEvent(name, "\n".join(data), self.last_id) if data else None
