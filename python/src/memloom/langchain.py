"""LangChain's chat message history, kept as a Memloom conversation.

    from memloom.langchain import MemloomChatMessageHistory

    history = MemloomChatMessageHistory("trip-1", user_id="dana")
    history.add_user_message("Three days in Lisbon, please")

Every message is one entry of the conversation's history: its text is what people read and search, and beside it is the
whole message. Whatever others append to the conversation is read as a message too.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    message_to_dict,
    messages_from_dict,
)

from memloom._async.client import AsyncMemloomClient
from memloom._connection import Connection
from memloom._sync.client import MemloomClient
from memloom.errors import ApiError, InvalidInputError
from memloom.models import Entry, EntryPage

MESSAGE = "history/langchain"
"""The content type of a message."""
CLEARED = "history/langchain-cleared"
"""The content type of the entry before which there are no messages any more."""

AGENT = "langchain"
"""Who is calling, where nothing else was said; a server in local mode believes it."""

ENTRIES_AT_ONCE = 200
"""Entries on a page, at most."""

SESSIONS = uuid.UUID("6f1dbb0e-6a3c-5a0e-9d0c-3f1f5a7f2b61")
"""The name space of conversation ids that are made from session ids. Another one would lose every session."""


class MemloomChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session.

    `session_id` is the id of a conversation, or any text: then the conversation's id is made from it and `user_id`, so
    that it is the same one wherever it is asked for. The conversation is made by the first message. `user_id` is for
    whom it is; a `token` says that by itself, and then session ids that are no UUIDs must not be another user's too.
    """

    def __init__(
        self,
        session_id: str,
        url: str | None = None,
        *,
        user_id: str | None = None,
        token: str | None = None,
        api_key: str | None = None,
        tenant_id: str | None = None,
        client: MemloomClient | None = None,
        async_client: AsyncMemloomClient | None = None,
    ) -> None:
        super().__init__()
        given = client or async_client
        if given is None and token is None:
            if user_id is None:
                raise InvalidInputError("whose history is it? Give a user_id, a token, or a client")
            api_key = api_key or AGENT
        settings = {"url": url, "user_id": user_id, "token": token, "api_key": api_key, "tenant_id": tenant_id}
        self._connection = Connection(client, async_client, settings)
        self.session_id = session_id
        self.conversation_id = _conversation_id(session_id, user_id if given is None else given._options.user_id)
        """The conversation, for everything else that can be done with one: fork it, share it, search it."""

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages since the last `clear`, the oldest first."""
        entries, after = self._connection.client().entries, None
        found: list[Entry] = []
        while True:
            try:
                page = entries.list(self.conversation_id, limit=ENTRIES_AT_ONCE, after=after)
            except ApiError as error:
                page = _nothing(error)
            found.extend(page.data)
            if page.after_cursor is None:
                return _messages(found)
            after = page.after_cursor

    async def aget_messages(self) -> list[BaseMessage]:
        """The same, awaited."""
        entries, after = self._connection.async_client().entries, None
        found: list[Entry] = []
        while True:
            try:
                page = await entries.list(self.conversation_id, limit=ENTRIES_AT_ONCE, after=after)
            except ApiError as error:
                page = _nothing(error)
            found.extend(page.data)
            if page.after_cursor is None:
                return _messages(found)
            after = page.after_cursor

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages, one after the other."""
        for message in messages:
            self._append(MESSAGE, _content(message))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """The same, awaited."""
        for message in messages:
            await self._aappend(MESSAGE, _content(message))

    def clear(self) -> None:
        """Lets the messages begin anew. What was said stays in the conversation, for its members; see `delete`."""
        self._append(CLEARED, _CLEARED)

    async def aclear(self) -> None:
        """The same, awaited."""
        await self._aappend(CLEARED, _CLEARED)

    def delete(self) -> None:
        """Deletes the conversation with all its forks, as only its owner may. The session cannot be used again."""
        try:
            self._connection.client().conversations.delete(self.conversation_id)
        except ApiError as error:
            _nothing(error)

    async def adelete(self) -> None:
        """The same, awaited."""
        try:
            await self._connection.async_client().conversations.delete(self.conversation_id)
        except ApiError as error:
            _nothing(error)

    def close(self) -> None:
        """Closes connections, unless they are those of a client that was given."""
        self._connection.close()

    async def aclose(self) -> None:
        """The same for the connections of this event loop too."""
        await self._connection.aclose()

    def __enter__(self) -> MemloomChatMessageHistory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> MemloomChatMessageHistory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _append(self, content_type: str, content: dict[str, Any]) -> None:
        entries, key = self._connection.client().entries, uuid.uuid4().hex
        entries.append(self.conversation_id, [content], content_type=content_type, idempotency_key=key, retry=True)

    async def _aappend(self, content_type: str, content: dict[str, Any]) -> None:
        entries, key = self._connection.async_client().entries, uuid.uuid4().hex
        await entries.append(
            self.conversation_id, [content], content_type=content_type, idempotency_key=key, retry=True
        )


_CLEARED: dict[str, Any] = {"role": "USER", "events": [{"type": "cleared"}]}


def _conversation_id(session_id: str, user_id: str | None) -> str:
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        return str(uuid.uuid5(SESSIONS, json.dumps([user_id, session_id])))


def _content(message: BaseMessage) -> dict[str, Any]:
    """A message as people see it in a transcript, and the whole of it. What tools say is nothing that people said."""
    said = isinstance(message, (HumanMessage, AIMessage))
    text = str(message.text) if said else ""
    return {
        "role": "USER" if isinstance(message, HumanMessage) else "AI",
        **({"text": text} if text.strip() else {"events": []}),
        "message": message_to_dict(message),
    }


def _messages(entries: Iterable[Entry]) -> list[BaseMessage]:
    found: list[BaseMessage] = []
    for entry in entries:
        if entry.content_type == CLEARED:
            found.clear()
        else:
            found.extend(_own(entry) or _foreign(entry))
    return found


def _own(entry: Entry) -> list[BaseMessage]:
    """The message of an entry that was made here. Whoever may append can say that of anything; then it is foreign."""
    if entry.content_type != MESSAGE:
        return []
    try:
        return messages_from_dict([entry.content[0]["message"]])
    except (LookupError, TypeError, ValueError):
        return []


def _foreign(entry: Entry) -> Iterable[BaseMessage]:
    """What others appended: a text that somebody said. Whatever has none is no message."""
    for content in entry.content:
        if isinstance(content, dict) and isinstance(content.get("text"), str):
            kind = HumanMessage if content.get("role") == "USER" else AIMessage
            yield kind(content=content["text"], id=entry.id)


def _nothing(error: ApiError) -> EntryPage:
    """A conversation that is not there has no entries; everything else is an error."""
    if error.is_not_found:
        return EntryPage(data=[])
    raise error
