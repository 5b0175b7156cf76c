"""Conversations that are known by a name: whose they are."""

from __future__ import annotations

import contextlib
import uuid

from memtrove._async.client import AsyncMemtroveClient
from memtrove.errors import ApiError, MemtroveError, TransportError

BEGUN = "history/begun"
"""The content type of the entry that such a conversation begins with; it says nothing."""

TITLE_CHARS = 40
"""Characters of a title that the server makes of the first message."""


class AsyncNamed:
    """A conversation whose id was made from a name.

    Whoever knows the name can make the conversation first, and share it. So it is looked at before it is read or
    written, and it must be the caller's own.
    """

    def __init__(self, name: str, conversation_id: str) -> None:
        self.name = name
        self.id = conversation_id
        self.owner: str | None = None
        """The caller, as soon as it is known that this is the owner."""

    async def is_there(self, client: AsyncMemtroveClient) -> bool:
        """Whether there is such a conversation; raises an error if it is somebody else's."""
        if self.owner is not None:
            return True
        try:
            found = await client.conversations.get(self.id)
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        if found.access_level != "owner":
            raise MemtroveError(
                f"the conversation {self.id}, which is meant by {self.name!r}, belongs to {found.owner_user_id!r}; "
                "what is known by a name must be your own. If you gave it away, or somebody shares it with you, say "
                "its id instead of the name"
            )
        self.owner = found.owner_user_id
        return True

    async def begin(self, client: AsyncMemtroveClient) -> bool:
        """Makes it, if there is none, before anything is told to it; whether that was needed."""
        if await self.is_there(client):
            return False
        nothing = {"role": "USER", "events": [{"type": "begun"}]}
        key = str(uuid.uuid4())
        await client.entries.append(self.id, [nothing], content_type=BEGUN, idempotency_key=key, retry=True)
        # Somebody may have been faster.
        await self.is_there(client)
        return True

    async def entitle(self, client: AsyncMemtroveClient, text: str) -> None:
        """Gives it the title that its first message would have given it, if that can be done."""
        title = " ".join(text.split())[:TITLE_CHARS]
        if title:
            with contextlib.suppress(ApiError, TransportError):
                await client.conversations.update(self.id, title=title)
