# Made by scripts/generate.py. Do not edit.
"""Memory in ten lines: one user, one object, five verbs."""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, get_args

from memtrove._sync.agent import AgentMemory
from memtrove._sync.client import MemtroveClient
from memtrove._sync.named import BEGUN, Named
from memtrove.errors import ApiError, InvalidInputError
from memtrove.facade import Hit, Message, a_text, conversation_id, given_id, is_id, same, wire_role
from memtrove.models import Memory, MemoryKind, TextEdit
from memtrove.scope import Scope

QUERY_CHARS = 8192
"""The most characters that the server takes as a query."""

SAID: Sequence[MemoryKind] = [kind for kind in get_args(MemoryKind) if kind not in ("procedural", "archival")]
"""The kinds of what was remembered here. Facts are others': what they state is theirs to change and to delete.

What was archived is out of sight, for `recall` too, until somebody restores it.
"""


class Memtrove:
    """What is remembered of one user.

    In local mode the user's name is enough. Elsewhere give a `token` of the user, or the `api_key` of a service that is
    trusted to say for whom it works; or set `MEMTROVE_TOKEN` or `MEMTROVE_API_KEY`. `client` has everything else.
    """

    def __init__(
        self,
        user: str,
        *,
        url: str | None = None,
        tenant: str = "default",
        token: str | None = None,
        api_key: str | None = None,
        client: MemtroveClient | None = None,
    ) -> None:
        a_text("user", user)
        given = {"url": url, "token": token, "api_key": api_key}
        if client is not None and (also := [name for name, value in given.items() if value is not None]):
            raise InvalidInputError(f"{', '.join(also)}: say that to the client, or give no client")
        api_key = api_key or (None if token else os.environ.get("MEMTROVE_API_KEY"))
        token = token or (None if api_key else os.environ.get("MEMTROVE_TOKEN") or user)
        # A token says who the user is, a key does not.
        asserted = user if api_key and not token else None
        self.user = user
        self.client = client or MemtroveClient(
            url, token=token, api_key=api_key, user_id=asserted, tenant_id=None if tenant == "default" else tenant
        )
        self.notes = Notes(AgentMemory(self.client), Scope(tenant, user))
        self._owns_client = client is None
        self._identifiers = {"user_id": user}
        self._named: dict[str, Named] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(user={self.user!r}, client={self.client!r})"

    def remember(
        self,
        text: str,
        *,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        occurred_at: datetime | None = None,
    ) -> Memory:
        """Remembers something for good. The same text again is the same memory, and gets these tags and metadata.

        `occurred_at` is when what it tells of was, for questions about a time; the same text of another time is another
        memory. Whoever remembers it at the same moment elsewhere does not see it yet: then there are two.
        """
        a_text("what to remember", text)
        if isinstance(tags, str):
            raise InvalidInputError(f"tags are a list of texts: write tags=[{tags!r}]")
        given = {**(metadata or {}), **({"tags": [*tags]} if tags else {})}
        known = self._equal(text)
        if occurred_at is not None:
            known = [one for one in known if one.occurred_at == occurred_at]
        if known and given:
            return (self.client.memories.update(known[0].id, metadata=given)).memory
        if known:
            return known[0]
        added = self.client.memories.add(
            text,
            layer="user",
            identifiers=self._identifiers,
            metadata=given or None,
            occurred_at=occurred_at,
            idempotency_key=str(uuid.uuid4()),
            retry=True,
        )
        return added.memory

    def recall(self, query: str, *, limit: int = 5, threshold: float | None = None) -> Sequence[Hit]:
        """What is remembered that has to do with it, the best first.

        Without a `threshold` the server's applies: 0.7, unless it is configured otherwise.
        """
        found = self.client.memories.search(
            a_text("the question", query)[:QUERY_CHARS],
            identifiers=self._identifiers,
            limit=limit,
            threshold=threshold,
            ranking="score",
        )
        return [Hit.of(one) for one in found.results]

    def forget(self, what: str | Hit | Memory) -> int:
        """Forgets a memory by its id, by its text, or as it was found; how many there were."""
        if isinstance(what, (Hit, Memory)):
            ids = [what.id]
        elif is_id(a_text("what to forget", what)):
            ids = [what]
        else:
            ids = [memory.id for memory in self._equal(what)]
        return sum([self.client.memories.delete(one) for one in ids])

    def memories(self) -> Generator[Memory]:
        """Everything that is remembered of the user, the newest first; facts are not among it."""
        for memory in self.client.memories.list_all(layer="user", identifiers=self._identifiers, kinds=SAID):
            yield memory

    def append(self, conversation: str, role: str, text: str) -> Message:
        """Adds to a conversation what the `user` or the `assistant` said. It is known by a name, or by its id.

        One that is known by a name must be the user's own.
        """
        said = {"role": wire_role(role), "text": text}
        named = self._known(conversation)
        begun = named is not None and named.begin(self.client)
        entry = self.client.entries.append(
            conversation_id(self.user, conversation), [said], idempotency_key=str(uuid.uuid4()), retry=True
        )
        if named is not None and begun:
            named.entitle(self.client, text)
        return Message.of(entry)

    def history(self, conversation: str, *, last: int | None = None) -> Sequence[Message]:
        """What was said in a conversation, the oldest first; all of it, or the last so many. None is an empty one."""
        there = conversation_id(self.user, conversation)
        if last is not None and last <= 0:
            return []
        named = self._known(conversation)
        if named is not None and not named.is_there(self.client):
            return []
        try:
            if last is not None and last <= 200:
                page = self.client.entries.list(there, tail=True, limit=last)
                return [Message.of(entry) for entry in page.data if entry.content_type != BEGUN]
            entries = [entry for entry in self.client.entries.list_all(there)]
            every = [Message.of(entry) for entry in entries if entry.content_type != BEGUN]
            return every if last is None else every[-last:]
        except ApiError as error:
            if error.is_not_found:
                return []
            raise

    def close(self) -> None:
        """Closes connections, unless they came with `client`."""
        if self._owns_client:
            self.client.close()

    def __enter__(self) -> Memtrove:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _known(self, conversation: str) -> Named | None:
        """The conversation, if it is known by a name."""
        if given_id(conversation) is not None:
            return None
        there = conversation_id(self.user, conversation)
        return self._named.setdefault(there, Named(conversation, there))

    def _equal(self, text: str) -> Sequence[Memory]:
        """The memories that say the same. They mean the same too, so a search finds them first."""
        if not text.strip():
            return []
        found = self.client.memories.search(
            text[:QUERY_CHARS],
            identifiers=self._identifiers,
            layers=["user"],
            kinds=SAID,
            limit=100,
            # What has every word of a text scores more than this, with any model.
            threshold=0.5 if len(text) <= QUERY_CHARS else 0.0,
            dedupe=False,
            include_overridden=True,
            ranking="score",
        )
        return [one.memory for one in found.results if same(one.memory.content, text)]


class Notes:
    """Files of the user, as text."""

    def __init__(self, memory: AgentMemory, scope: Scope) -> None:
        self._memory = memory
        self.scope = scope

    def write(self, path: str, text: str) -> None:
        """Creates a note or replaces it."""
        self._memory.write_file(self.scope, path, text)

    def read(self, path: str) -> str | None:
        """The text of a note; `None` if there is none."""
        try:
            return (self._memory.load_file(self.scope, path)).content
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    def edit(self, path: str, old: str, new: str) -> str:
        """Replaces a text that is there once; the whole note after it."""
        edit = TextEdit(old_text=old, new_text=new)
        return (self._memory.patch_file(self.scope, path, [edit])).content

    def list(self, prefix: str | None = None) -> Sequence[str]:
        """The paths of notes."""
        return [one.path for one in self._memory.client.files.list_all(self.scope, prefix=prefix)]
