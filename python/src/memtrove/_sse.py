"""Server-sent events, read from bytes as they come."""

from __future__ import annotations

from dataclasses import dataclass


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

    def __init__(self) -> None:
        self.last_id: str | None = None
        """The last id seen, also one that came without an event."""
        self._rest = b""
        self._id: str | None = None
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are complete with these bytes."""
        text = self._rest + chunk
        # A `\r` at the very end may be half of a `\r\n`.
        held = text.endswith(b"\r")
        lines = (text[:-1] if held else text).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + (b"\r" if held else b"")
        return [event for line in lines if (event := self._line(line.decode("utf-8", "replace")))]

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _end(self) -> ServerEvent | None:
        # An id counts when its event is complete: what broke off in the middle was not seen.
        self.last_id = self.last_id if self._id is None else self._id
        name, data = self._name or "message", self._data
        self._id, self._name, self._data = None, "", []
        return ServerEvent(name, "\n".join(data), self.last_id) if data else None
