# Made by scripts/generate.py. Do not edit.
"""The change feed: what happens in a tenant, in order."""

from __future__ import annotations

from collections.abc import Generator

from memtrove._sync.group import Group
from memtrove.models import ChangesPage
from memtrove.replay import ChangeNotice, change_notice


class Changes(Group):
    """Follows everything; for admins, auditors and trusted services."""

    def list(self, *, after: int | None = None, limit: int | None = None) -> ChangesPage:
        """A page of changes behind a number, the oldest first."""
        return self._transport.model("list_changes", ChangesPage, query={"after": after, "limit": limit})

    def stream(self, *, after: int | None = None) -> Generator[ChangeNotice]:
        """Changes as they happen, from the next one on or behind a number. It goes on until you stop reading.

        If the connection breaks, it goes on where it was.
        """
        # As the header and not as a parameter: when the stream is taken up again, it must not begin there once more.
        last = None if after is None else str(after)
        for event in self._transport.events("list_changes", last_event_id=last):
            yield change_notice(event)
