"""LangChain's chat message history, kept as a Memtrove conversation.

    from memtrove.langchain import MemtroveChatMessageHistory

    history = MemtroveChatMessageHistory("trip-1", user_id="dana")
    history.add_user_message("Three days in Lisbon, please")

Every message is one entry of the conversation's history: its text is what people read and search, and beside it is the
whole message. Whatever others append to the conversation is read as a message too.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Generator, Iterable, Sequence
from types import TracebackType
from typing import Any

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        message_to_dict,
        messages_from_dict,
    )
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "memtrove.langchain needs langchain-core: install memtrove[langchain]", name=missing.name
    ) from missing

from memtrove._async.client import AsyncMemtroveClient
from memtrove._async.named import AsyncNamed
from memtrove._connection import Connection
from memtrove._options import authenticates, credentials
from memtrove._sync.client import MemtroveClient
from memtrove._sync.named import Named
from memtrove._wire import dumps
from memtrove.errors import ApiError, DecodeError, InvalidInputError
from memtrove.facade import given_id
from memtrove.models import Conversation, ConversationSummary, Entry, EntryPage, MembershipPage

MESSAGE = "history/langchain"
"""The content type of a message."""
CLEARED = "history/langchain-cleared"
"""The content type of the entry before which there are no messages any more, for who wrote it."""

AGENT = "langchain"
"""Who is calling, where nothing else was said; a server in local mode believes it."""

AT_ONCE = 200
"""Entries, members or conversations on a page, at most."""

SESSIONS = uuid.UUID("6f1dbb0e-6a3c-5a0e-9d0c-3f1f5a7f2b61")
"""The name space of conversation ids that are made from session ids. Another one would lose every session."""


Reading = Generator[dict[str, Any], EntryPage, list[BaseMessage]]
"""Yields what to ask for, is sent a page of entries, returns the messages."""


class MemtroveChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session.

    `session_id` is the id of a conversation, or any text: then the conversation's id is made from it and `user_id`, so
    that it is the same one wherever it is asked for, and it must be the user's own. The conversation is made by the
    first message. `user_id` is for whom it is. A `token` says that by itself; beside one, and beside a client, it is
    only a part of what the id is made from, and sessions with a name need it. Of the environment `MEMTROVE_API_KEY`
    counts before `MEMTROVE_TOKEN` where a `user_id` is given.
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
        client: MemtroveClient | None = None,
        async_client: AsyncMemtroveClient | None = None,
    ) -> None:
        super().__init__()
        given = client or async_client
        if given is None:
            token, api_key = credentials(token, api_key, user_id)
            if token is None and user_id is None:
                raise InvalidInputError("whose history is it? Give a user_id, a token, or a client")
            if token is None and api_key is None:
                api_key = AGENT
        asserted = user_id if given is None and token is None else None
        settings = {"url": url, "user_id": asserted, "token": token, "api_key": api_key, "tenant_id": tenant_id}
        self._connection = Connection(client, async_client, settings)
        self._user = asserted if given is None else _asserted(given)
        """The caller, as soon as it is known. Beside a token nobody looks at `user_id`, so that does not say it."""
        self._looked = False
        self.session_id = session_id
        self.conversation_id = given_id(session_id) or _made_id(session_id, _named_user(user_id, given))
        """The conversation, for everything else that can be done with one: fork it, share it, search it."""
        self._named: tuple[Named, AsyncNamed] | None = None
        if given_id(session_id) is None:
            self._named = Named(session_id, self.conversation_id), AsyncNamed(session_id, self.conversation_id)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages since the last `clear`, the oldest first."""
        if not self._is_there():
            return []
        entries, reading = self._connection.client().entries, _read_back(self._user)
        try:
            asked = next(reading)
            while True:
                try:
                    page = entries.list(self.conversation_id, limit=AT_ONCE, **asked)
                except ApiError as error:
                    page = _nothing(error)
                asked = reading.send(page)
        except StopIteration as done:
            found: list[BaseMessage] = done.value
            return found

    async def aget_messages(self) -> list[BaseMessage]:
        """The same, awaited."""
        if self._connection.only_waits:
            return await asyncio.to_thread(lambda: self.messages)
        if not await self._ais_there():
            return []
        entries, reading = self._connection.async_client().entries, _read_back(self._user)
        try:
            asked = next(reading)
            while True:
                try:
                    page = await entries.list(self.conversation_id, limit=AT_ONCE, **asked)
                except ApiError as error:
                    page = _nothing(error)
                asked = reading.send(page)
        except StopIteration as done:
            found: list[BaseMessage] = done.value
            return found

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages, one after the other; what others append meanwhile may come in between.

        What cannot be kept is refused before the first of them is sent.
        """
        contents = [_content(message) for message in messages]
        if not contents:
            return
        client = self._connection.client()
        begun = self._named is not None and self._named[0].begin(client)
        for content in contents:
            self._append(MESSAGE, content)
        if self._named is not None and begun:
            self._named[0].entitle(client, _first_text(contents))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """The same, awaited."""
        if self._connection.only_waits:
            return await asyncio.to_thread(self.add_messages, messages)
        contents = [_content(message) for message in messages]
        if not contents:
            return
        client = self._connection.async_client()
        begun = self._named is not None and await self._named[1].begin(client)
        for content in contents:
            await self._aappend(MESSAGE, content)
        if self._named is not None and begun:
            await self._named[1].entitle(client, _first_text(contents))

    def clear(self) -> None:
        """Lets the messages begin anew, for this user. What was said stays in the conversation; see `delete`."""
        if self._is_there() and (self._named is not None or self._is_made()):
            self._append(CLEARED, _CLEARED)

    async def aclear(self) -> None:
        """The same, awaited."""
        if self._connection.only_waits:
            return await asyncio.to_thread(self.clear)
        if await self._ais_there() and (self._named is not None or await self._ais_made()):
            await self._aappend(CLEARED, _CLEARED)

    def delete(self) -> None:
        """Deletes the conversation with all its forks, as only its owner may. The session cannot be used again."""
        try:
            self._connection.client().conversations.delete(self.conversation_id)
        except ApiError as error:
            _nothing(error)

    async def adelete(self) -> None:
        """The same, awaited."""
        if self._connection.only_waits:
            return await asyncio.to_thread(self.delete)
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

    def __enter__(self) -> MemtroveChatMessageHistory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> MemtroveChatMessageHistory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _is_there(self) -> bool:
        """Whether there may be something to read; then it is known whose messages are the caller's own."""
        client = self._connection.client()
        if self._named is not None:
            there = self._named[0].is_there(client)
            self._user = self._named[0].owner or self._user
            return there
        if self._user is None and not self._looked:
            try:
                self._user = self._caller(client)
                self._looked = True
            except ApiError as error:
                _nothing(error)
        return True

    async def _ais_there(self) -> bool:
        client = self._connection.async_client()
        if self._named is not None:
            there = await self._named[1].is_there(client)
            self._user = self._named[1].owner or self._user
            return there
        if self._user is None and not self._looked:
            try:
                self._user = await self._acaller(client)
                self._looked = True
            except ApiError as error:
                _nothing(error)
        return True

    def _caller(self, client: MemtroveClient) -> str | None:
        """Who is calling, if that can be seen without a change."""
        here = client.conversations.get(self.conversation_id)
        if (owner := _owner([here])) is not None:
            return owner
        members = client.memberships.list(self.conversation_id, limit=AT_ONCE)
        guest = _only_guest(members, here.owner_user_id)
        return guest if guest is not None else _owner(client.conversations.list(mode="roots", limit=AT_ONCE).data)

    async def _acaller(self, client: AsyncMemtroveClient) -> str | None:
        here = await client.conversations.get(self.conversation_id)
        if (owner := _owner([here])) is not None:
            return owner
        members = await client.memberships.list(self.conversation_id, limit=AT_ONCE)
        guest = _only_guest(members, here.owner_user_id)
        if guest is not None:
            return guest
        return _owner((await client.conversations.list(mode="roots", limit=AT_ONCE)).data)

    def _is_made(self) -> bool:
        """Whether there is a conversation."""
        try:
            self._connection.client().conversations.get(self.conversation_id)
        except ApiError as error:
            return bool(_nothing(error).data)
        return True

    async def _ais_made(self) -> bool:
        try:
            await self._connection.async_client().conversations.get(self.conversation_id)
        except ApiError as error:
            return bool(_nothing(error).data)
        return True

    def _append(self, content_type: str, content: dict[str, Any]) -> None:
        entries, key = self._connection.client().entries, uuid.uuid4().hex
        entry = entries.append(
            self.conversation_id, [content], content_type=content_type, idempotency_key=key, retry=True
        )
        # The server says for whom it was written.
        self._user = entry.user_id or self._user

    async def _aappend(self, content_type: str, content: dict[str, Any]) -> None:
        entries, key = self._connection.async_client().entries, uuid.uuid4().hex
        entry = await entries.append(
            self.conversation_id, [content], content_type=content_type, idempotency_key=key, retry=True
        )
        self._user = entry.user_id or self._user


_CLEARED: dict[str, Any] = {"role": "USER", "events": [{"type": "cleared"}]}


def _asserted(given: MemtroveClient | AsyncMemtroveClient) -> str | None:
    """The user that a client works for, if it says so and nothing else of what it sends can say otherwise."""
    transport = given._transport
    others = transport._header_provider is not None or authenticates(transport._pool._given)
    return None if others or transport._options.token is not None else transport._options.user_id


def _named_user(user_id: str | None, given: MemtroveClient | AsyncMemtroveClient | None) -> str | None:
    """The user whose sessions have names, if somebody said who it is."""
    asserted = given._options.user_id if given is not None and given._options.token is None else None
    if user_id is not None and asserted is not None and user_id != asserted:
        raise InvalidInputError("the client works for another user than user_id")
    return user_id if user_id is not None else asserted


def _made_id(session_id: str, user_id: str | None) -> str:
    if user_id is None:
        raise InvalidInputError(
            f"{session_id!r} is no UUID, and who is calling cannot be seen from here: give a user_id, or the id of a "
            "conversation as the session_id"
        )
    return str(uuid.uuid5(SESSIONS, json.dumps([user_id, session_id])))


def _owner(conversations: Iterable[Conversation | ConversationSummary]) -> str | None:
    """Who is calling, if that is the owner of one of them."""
    return next((one.owner_user_id for one in conversations if one.access_level == "owner"), None)


def _only_guest(members: MembershipPage, owner: str) -> str | None:
    """Who is calling, if that is a member and not the owner, and there is one such member."""
    guests = [one.user_id for one in members.data if one.user_id != owner]
    # Whoever became the owner meanwhile may be calling.
    same_owner = [one.user_id for one in members.data if one.access_level == "owner"] == [owner]
    return guests[0] if same_owner and len(guests) == 1 and members.after_cursor is None else None


def _content(message: BaseMessage) -> dict[str, Any]:
    """A message as people see it in a transcript, and the whole of it. What tools say is nothing that people said."""
    said = isinstance(message, (HumanMessage, AIMessage))
    text = str(message.text) if said else ""
    content: dict[str, Any] = {
        "role": "USER" if isinstance(message, HumanMessage) else "AI",
        **({"text": text} if text.strip() else {"events": []}),
        "message": message_to_dict(message),
    }
    dumps(content)
    try:
        messages_from_dict([content["message"]])
    except Exception as error:
        raise InvalidInputError(f"a {type(message).__name__} could not be read again: {error}") from error
    return content


def _first_text(contents: Iterable[dict[str, Any]]) -> str:
    return next((content["text"] for content in contents if "text" in content), "")


def _read_back(user: str | None) -> Reading:
    """Reads from the end to where the user cleared the messages, or to the beginning."""
    newest_first: list[Entry] = []
    page = yield {"tail": True}
    while True:
        for entry in reversed(page.data):
            if entry.content_type == CLEARED and _is_own(entry, user):
                return _messages(reversed(newest_first), user)
            newest_first.append(entry)
        if page.before_cursor is None:
            return _messages(reversed(newest_first), user)
        page = yield {"before": page.before_cursor}


def _messages(entries: Iterable[Entry], user: str | None) -> list[BaseMessage]:
    return [
        message
        for entry in entries
        for message in (_own(entry) if entry.content_type == MESSAGE and _is_own(entry, user) else _foreign(entry))
    ]


def _is_own(entry: Entry, user: str | None) -> bool:
    """Whether an entry was written for the user. Others who may append could speak in the name of the system."""
    return user is not None and entry.user_id == user


def _own(entry: Entry) -> list[BaseMessage]:
    """The message of an entry that was made here, as it was."""
    try:
        return messages_from_dict([entry.content[0]["message"]])
    except Exception as error:
        raise DecodeError(f"the entry {entry.id} holds no message that can be read ({type(error).__name__})") from error


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
