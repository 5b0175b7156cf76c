"""Conversations: what was said, who may read it, and answers that are still being given."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from memtrove._async.group import AsyncGroup, follow
from memtrove._wire import body
from memtrove.models import (
    AccessLevel,
    Channel,
    ChannelFilter,
    Conversation,
    ConversationMembership,
    ConversationPage,
    ConversationSummary,
    Entry,
    EntryPage,
    ForkPage,
    Forks,
    IndexConversationsResponse,
    ListMode,
    MembershipPage,
    OwnershipTransfer,
    SearchPage,
    SearchType,
    SearchWeights,
    SyncEntryResponse,
    TransferPage,
    TransferRole,
    UnindexedPage,
)
from memtrove.replay import IndexedText, ReplayEvent, replay_event


class AsyncConversations(AsyncGroup):
    """Conversations, their forks, and searching in them."""

    async def list(
        self,
        *,
        mode: ListMode | None = None,
        after: str | None = None,
        limit: int | None = None,
        query: str | None = None,
    ) -> ConversationPage:
        """A page of the conversations that the user may read, the latest first."""
        parameters = {"mode": mode, "afterCursor": after, "limit": limit, "query": query}
        return await self._transport.model("list_conversations", ConversationPage, query=parameters)

    async def list_all(
        self, *, mode: ListMode | None = None, query: str | None = None
    ) -> AsyncGenerator[ConversationSummary]:
        """All of them, page by page."""

        async def page(after: str | None) -> ConversationPage:
            return await self.list(mode=mode, query=query, after=after)

        async for found in follow(page, lambda page: page.after_cursor):
            for conversation in found.data:
                yield conversation

    async def create(self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None) -> Conversation:
        """Makes one. An append to an id that is not there makes one too."""
        wire = body(title=title, metadata=metadata)
        return await self._transport.model("create_conversation", Conversation, body=wire)

    async def get(self, conversation_id: str) -> Conversation:
        """One of them."""
        return await self._transport.model("get_conversation", Conversation, path={"conversationId": conversation_id})

    async def update(self, conversation_id: str, *, title: str | None) -> Conversation:
        """Renames it; `None` takes its title away."""
        return await self._transport.model(
            "update_conversation", Conversation, path={"conversationId": conversation_id}, body={"title": title}
        )

    async def delete(self, conversation_id: str) -> None:
        """Deletes it with its whole tree of forks. An admin can bring it back for a while."""
        await self._transport.call("delete_conversation", path={"conversationId": conversation_id})

    async def fork(self, conversation_id: str, entry_id: str, *, title: str | None = None) -> Conversation:
        """A conversation that sees everything before this entry, and goes its own way."""
        return await self._transport.model(
            "fork_conversation",
            Conversation,
            path={"conversationId": conversation_id, "entryId": entry_id},
            body=body(title=title),
        )

    async def forks(self, conversation_id: str, *, after: str | None = None, limit: int | None = None) -> ForkPage:
        """A page of the forks of its tree."""
        return await self._transport.model(
            "list_forks",
            ForkPage,
            path={"conversationId": conversation_id},
            query={"afterCursor": after, "limit": limit},
        )

    async def search(
        self,
        query: str,
        *,
        search_type: SearchType | None = None,
        after: str | None = None,
        limit: int | None = None,
        include_entry: bool | None = None,
        group_by_conversation: bool | None = None,
        explain: bool | None = None,
        actor: bool | None = None,
        weights: SearchWeights | None = None,
    ) -> SearchPage:
        """Entries of all conversations that the user may read, the best first."""
        wire = body(
            query=query,
            searchType=search_type,
            afterCursor=after,
            limit=limit,
            includeEntry=include_entry,
            groupByConversation=group_by_conversation,
            explain=explain,
            actor=actor,
            weights=weights,
        )
        return await self._transport.model("search_conversations", SearchPage, body=wire)

    async def index(self, texts: Sequence[IndexedText]) -> int:
        """Says what entries are to be found by; for indexers. How many were taken."""
        wire = [one.to_wire() for one in texts]
        return (await self._transport.model("index_conversations", IndexConversationsResponse, body=wire)).indexed

    async def unindexed(self, *, after: str | None = None, limit: int | None = None) -> UnindexedPage:
        """A page of entries that nobody gave a text for; for indexers."""
        return await self._transport.model(
            "list_unindexed", UnindexedPage, query={"afterCursor": after, "limit": limit}
        )

    async def replay(self, conversation_id: str, *, last_event_id: str | None = None) -> AsyncGenerator[ReplayEvent]:
        """The answer that is being given, from its beginning (or behind `last_event_id`) to its end.

        If the connection breaks, it goes on where it was. No event at all: no answer is being given.
        """
        events = self._transport.events(
            "replay_response", path={"conversationId": conversation_id}, last_event_id=last_event_id, end="end"
        )
        async for event in events:
            yield replay_event(event)

    async def cancel_response(self, conversation_id: str) -> None:
        """Stops the answer that is being given, if there is one."""
        await self._transport.call("cancel_response", path={"conversationId": conversation_id})


class AsyncEntries(AsyncGroup):
    """What was said in a conversation (`history`), and what agents keep with it (`memory`)."""

    async def list(
        self,
        conversation_id: str,
        *,
        channel: ChannelFilter | None = None,
        epoch: str | int | None = None,
        after: str | None = None,
        before: str | None = None,
        tail: bool | None = None,
        up_to_entry_id: str | None = None,
        limit: int | None = None,
        forks: Forks | None = None,
    ) -> EntryPage:
        """A page of entries, the oldest first; with `tail` the newest page."""
        query = {
            "channel": channel,
            "epoch": epoch,
            "afterCursor": after,
            "beforeCursor": before,
            "tail": tail,
            "upToEntryId": up_to_entry_id,
            "limit": limit,
            "forks": forks,
        }
        return await self._transport.model(
            "list_entries", EntryPage, path={"conversationId": conversation_id}, query=query
        )

    async def list_all(
        self, conversation_id: str, *, channel: ChannelFilter | None = None, forks: Forks | None = None
    ) -> AsyncGenerator[Entry]:
        """All of them, page by page."""

        async def page(after: str | None) -> EntryPage:
            return await self.list(conversation_id, channel=channel, forks=forks, after=after)

        async for found in follow(page, lambda page: page.after_cursor):
            for entry in found.data:
                yield entry

    async def append(
        self,
        conversation_id: str,
        content: Sequence[Any],
        *,
        content_type: str = "history",
        channel: Channel | None = None,
        user_id: str | None = None,
        indexed_content: str | None = None,
        forked_at_conversation_id: str | None = None,
        forked_at_entry_id: str | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> Entry:
        """Appends an entry, and makes the conversation if there is none with this id."""
        wire = body(
            content=content,
            contentType=content_type,
            channel=channel,
            userId=user_id,
            indexedContent=indexed_content,
            forkedAtConversationId=forked_at_conversation_id,
            forkedAtEntryId=forked_at_entry_id,
        )
        return await self._transport.model(
            "append_entry",
            Entry,
            path={"conversationId": conversation_id},
            body=wire,
            idempotency_key=idempotency_key,
            retry=retry,
        )

    async def sync(
        self,
        conversation_id: str,
        content: Sequence[Any],
        *,
        content_type: str,
        user_id: str | None = None,
        forked_at_conversation_id: str | None = None,
        forked_at_entry_id: str | None = None,
    ) -> SyncEntryResponse:
        """Makes an agent's memory be this; only what is new is stored. Needs an API key."""
        wire = body(
            content=content,
            contentType=content_type,
            channel="memory",
            userId=user_id,
            forkedAtConversationId=forked_at_conversation_id,
            forkedAtEntryId=forked_at_entry_id,
        )
        return await self._transport.model(
            "sync_entries", SyncEntryResponse, path={"conversationId": conversation_id}, body=wire
        )


class AsyncMemberships(AsyncGroup):
    """Who may read a conversation, and write in it."""

    async def list(self, conversation_id: str, *, after: str | None = None, limit: int | None = None) -> MembershipPage:
        """A page of members."""
        return await self._transport.model(
            "list_memberships",
            MembershipPage,
            path={"conversationId": conversation_id},
            query={"afterCursor": after, "limit": limit},
        )

    async def share(self, conversation_id: str, user_id: str, access_level: AccessLevel) -> ConversationMembership:
        """Shares it, its forks included."""
        return await self._transport.model(
            "share_conversation",
            ConversationMembership,
            path={"conversationId": conversation_id},
            body=body(userId=user_id, accessLevel=access_level),
        )

    async def update(self, conversation_id: str, user_id: str, access_level: AccessLevel) -> ConversationMembership:
        """Lets a member do more, or less."""
        return await self._transport.model(
            "update_membership",
            ConversationMembership,
            path={"conversationId": conversation_id, "userId": user_id},
            body=body(accessLevel=access_level),
        )

    async def delete(self, conversation_id: str, user_id: str) -> None:
        """Ends a membership."""
        await self._transport.call("delete_membership", path={"conversationId": conversation_id, "userId": user_id})


class AsyncTransfers(AsyncGroup):
    """Conversations that are to have another owner."""

    async def list(
        self, *, role: TransferRole | None = None, after: str | None = None, limit: int | None = None
    ) -> TransferPage:
        """A page of those that wait to be accepted."""
        return await self._transport.model(
            "list_transfers", TransferPage, query={"role": role, "afterCursor": after, "limit": limit}
        )

    async def create(self, conversation_id: str, new_owner_user_id: str) -> OwnershipTransfer:
        """Offers a conversation to a member."""
        wire = body(conversationId=conversation_id, newOwnerUserId=new_owner_user_id)
        return await self._transport.model("create_transfer", OwnershipTransfer, body=wire)

    async def get(self, transfer_id: str) -> OwnershipTransfer:
        """One of them."""
        return await self._transport.model("get_transfer", OwnershipTransfer, path={"transferId": transfer_id})

    async def accept(self, transfer_id: str) -> None:
        """Takes a conversation over."""
        await self._transport.call("accept_transfer", path={"transferId": transfer_id})

    async def delete(self, transfer_id: str) -> None:
        """Withdraws an offer, or declines it."""
        await self._transport.call("delete_transfer", path={"transferId": transfer_id})
