"""Memories: what is worth keeping, found by meaning and by words."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memtrove._async.group import AsyncGroup, follow
from memtrove._wire import UNSET, Unset, body, changes
from memtrove.errors import InvalidInputError
from memtrove.identifiers import Identifiers, as_query, as_wire
from memtrove.models import (
    AddedMemory,
    BulkAdded,
    BulkDeleted,
    ClearedMemories,
    Consolidated,
    DecayedMemories,
    DeletedMemory,
    EndedSession,
    FactStatement,
    Memory,
    MemoryAccessPolicy,
    MemoryCapabilities,
    MemoryFilter,
    MemoryHealth,
    MemoryKind,
    MemoryLayer,
    MemoryMetadata,
    MemoryPage,
    MemoryRanking,
    MemorySearchMode,
    MemorySourceType,
    MemoryState,
    MemoryTimeRange,
    NewMemory,
    PromotedMemory,
    SearchedMemories,
    UpdatedMemory,
)


class AsyncMemories(AsyncGroup):
    """Remembers, searches, changes and forgets.

    `layer` says whose a memory is, and `identifiers` who that is: `layer="user", identifiers={"user_id": "alice"}`.
    A dict given as metadata is sent as it is; `MemoryMetadata` has the members that the server knows.
    """

    async def add(
        self,
        content: str | None = None,
        *,
        layer: MemoryLayer,
        identifiers: Identifiers,
        metadata: MemoryMetadata | Mapping[str, Any] | None = None,
        kind: MemoryKind | None = None,
        ttl_seconds: int | None = None,
        occurred_at: datetime | None = None,
        access_policy: MemoryAccessPolicy | None = None,
        fact: FactStatement | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> AddedMemory:
        """Remembers something. The same text twice is two memories; `Memtrove.remember` looks first."""
        wire = body(
            content=content,
            layer=layer,
            identifiers=as_wire(identifiers),
            metadata=metadata,
            kind=kind,
            ttlSeconds=ttl_seconds,
            occurredAt=occurred_at,
            accessPolicy=access_policy,
            fact=fact,
        )
        return await self._transport.model(
            "add_memory", AddedMemory, body=wire, idempotency_key=idempotency_key, retry=retry
        )

    async def bulk_add(
        self,
        memories: Sequence[NewMemory],
        *,
        atomic: bool = False,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> BulkAdded:
        """Remembers up to 500 at once; with `atomic` all of them or none."""
        wire = body(memories=memories, atomic=atomic)
        return await self._transport.model(
            "bulk_add", BulkAdded, body=wire, idempotency_key=idempotency_key, retry=retry
        )

    async def search(
        self,
        query: str,
        *,
        identifiers: Identifiers,
        layers: Sequence[MemoryLayer] | None = None,
        limit: int | None = None,
        threshold: float | None = None,
        filter: MemoryFilter | None = None,
        kinds: Sequence[MemoryKind] | None = None,
        time_range: MemoryTimeRange | None = None,
        include_archived: bool | None = None,
        include_embedding: bool | None = None,
        include_overridden: bool | None = None,
        dedupe: bool | None = None,
        ranking: MemoryRanking | None = None,
        mode: MemorySearchMode | None = None,
        explain: bool | None = None,
    ) -> SearchedMemories:
        """Finds memories by what they mean and say, in every layer that the identifiers open."""
        wire = body(
            query=query,
            identifiers=as_wire(identifiers),
            layers=layers,
            limit=limit,
            threshold=threshold,
            filter=filter,
            kinds=kinds,
            timeRange=time_range,
            includeArchived=include_archived,
            includeEmbedding=include_embedding,
            includeOverridden=include_overridden,
            dedupe=dedupe,
            ranking=ranking,
            mode=mode,
            explain=explain,
        )
        return await self._transport.model("search_memories", SearchedMemories, body=wire)

    async def list(
        self,
        *,
        layer: MemoryLayer,
        identifiers: Identifiers,
        limit: int | None = None,
        cursor: str | None = None,
        kinds: Sequence[MemoryKind] | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        state: MemoryState | None = None,
        tags: Sequence[str] | None = None,
        source_type: MemorySourceType | None = None,
        has_knowledge_pointer: bool | None = None,
        include_archived: bool | None = None,
        include_embedding: bool | None = None,
    ) -> MemoryPage:
        """A page of the memories of one layer, the newest first."""
        query = {
            "layer": layer,
            **as_query(identifiers),
            "limit": limit,
            "cursor": cursor,
            "kind": tuple(kinds or ()),
            "from": from_,
            "to": to,
            "state": state,
            "tag": tuple(tags or ()),
            "sourceType": source_type,
            "hasKnowledgePointer": has_knowledge_pointer,
            "includeArchived": include_archived,
            "includeEmbedding": include_embedding,
        }
        return await self._transport.model("list_memories", MemoryPage, query=query)

    async def filter(
        self,
        *,
        layer: MemoryLayer,
        identifiers: Identifiers,
        filter: MemoryFilter | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        kinds: Sequence[MemoryKind] | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        state: MemoryState | None = None,
        include_archived: bool | None = None,
        include_embedding: bool | None = None,
    ) -> MemoryPage:
        """The same, with a filter that may look at custom metadata."""
        wire = body(
            layer=layer,
            identifiers=as_wire(identifiers),
            filter=filter,
            limit=limit,
            cursor=cursor,
            kinds=kinds,
            to=to,
            state=state,
            includeArchived=include_archived,
            includeEmbedding=include_embedding,
            **{"from": from_},
        )
        return await self._transport.model("filter_memories", MemoryPage, body=wire)

    async def list_all(
        self,
        *,
        layer: MemoryLayer,
        identifiers: Identifiers,
        filter: MemoryFilter | None = None,
        kinds: Sequence[MemoryKind] | None = None,
        state: MemoryState | None = None,
        include_archived: bool | None = None,
    ) -> AsyncGenerator[Memory]:
        """Every memory of one layer, page by page, the newest first."""

        async def page(cursor: str | None) -> MemoryPage:
            return await self.filter(
                layer=layer,
                identifiers=identifiers,
                filter=filter,
                kinds=kinds,
                state=state,
                include_archived=include_archived,
                limit=100,
                cursor=cursor,
            )

        async for found in follow(page, lambda page: page.next_cursor):
            for memory in found.memories:
                yield memory

    async def get(
        self,
        memory_id: str,
        *,
        layer: MemoryLayer | None = None,
        identifiers: Identifiers | None = None,
        include_embedding: bool | None = None,
    ) -> Memory:
        """One memory. With `layer` or `identifiers` it is found only there."""
        query = {"layer": layer, **as_query(identifiers), "includeEmbedding": include_embedding}
        return await self._transport.model("get_memory", Memory, "memory", path={"id": memory_id}, query=query)

    async def get_if_changed(self, memory_id: str, etag: str) -> Memory | None:
        """The memory, or `None` if it still has this ETag."""
        response = await self._transport.call("get_memory", path={"id": memory_id}, headers={"If-None-Match": etag})
        return None if response.status_code == 304 else self._transport.read(response, Memory, "memory")

    async def update(
        self,
        memory_id: str,
        *,
        content: str | Unset = UNSET,
        metadata: MemoryMetadata | Mapping[str, Any] | Unset = UNSET,
        ttl_seconds: int | Unset | None = UNSET,
        access_policy: MemoryAccessPolicy | Unset = UNSET,
        version: int | Unset = UNSET,
        if_match: str | None = None,
        layer: MemoryLayer | None = None,
        identifiers: Identifiers | None = None,
    ) -> UpdatedMemory:
        """Changes what is given. Metadata is merged: in a dict, a member that is `None` is removed."""
        wire = changes(
            content=content,
            metadata=metadata,
            ttlSeconds=ttl_seconds,
            accessPolicy=access_policy,
            version=version,
        )
        if not wire:
            raise InvalidInputError("an update changes nothing: give content, metadata, ttl_seconds or access_policy")
        return await self._transport.model(
            "update_memory",
            UpdatedMemory,
            path={"id": memory_id},
            query={"layer": layer, **as_query(identifiers)},
            body=wire,
            headers={"If-Match": if_match},
        )

    async def delete(
        self,
        memory_id: str,
        *,
        if_match: str | None = None,
        layer: MemoryLayer | None = None,
        identifiers: Identifiers | None = None,
    ) -> bool:
        """Forgets one memory; whether there was one."""
        found = await self._transport.model(
            "delete_memory",
            DeletedMemory,
            path={"id": memory_id},
            query={"layer": layer, **as_query(identifiers)},
            headers={"If-Match": if_match},
        )
        return found.deleted

    async def bulk_delete(self, memory_ids: Sequence[str]) -> BulkDeleted:
        """Forgets up to 1000 at once, and says which were not there."""
        return await self._transport.model("bulk_delete", BulkDeleted, body={"ids": [*memory_ids]})

    async def clear(
        self, *, layer: MemoryLayer, identifiers: Identifiers, kinds: Sequence[MemoryKind] | None = None
    ) -> int:
        """Forgets everything of these kinds (`working`, unless others are named) in one scope; how many there were."""
        wire = body(layer=layer, identifiers=as_wire(identifiers), kinds=kinds)
        return (await self._transport.model("clear_memories", ClearedMemories, body=wire)).cleared

    async def archive(self, memory_id: str, *, if_match: str | None = None) -> Memory:
        """Puts a memory away: it is found only by who asks for archived ones."""
        return await self._transport.model(
            "archive_memory", Memory, "memory", path={"id": memory_id}, headers={"If-Match": if_match}
        )

    async def restore(self, memory_id: str, *, if_match: str | None = None) -> Memory:
        """Brings an archived memory back."""
        return await self._transport.model(
            "restore_memory", Memory, "memory", path={"id": memory_id}, headers={"If-Match": if_match}
        )

    async def promote(
        self,
        memory_id: str,
        target_layer: MemoryLayer,
        *,
        identifiers: Identifiers | None = None,
        if_match: str | None = None,
    ) -> PromotedMemory:
        """Copies a memory into another layer, unless it is known there already."""
        wire = body(targetLayer=target_layer, identifiers=as_wire(identifiers) if identifiers else None)
        return await self._transport.model(
            "promote_memory", PromotedMemory, path={"id": memory_id}, body=wire, headers={"If-Match": if_match}
        )

    async def consolidate(
        self,
        *,
        layer: MemoryLayer,
        identifiers: Identifiers,
        similarity_threshold: float | None = None,
        dry_run: bool | None = None,
    ) -> Consolidated:
        """Merges memories of one scope that say the same."""
        wire = body(
            layer=layer,
            identifiers=as_wire(identifiers),
            similarityThreshold=similarity_threshold,
            dryRun=dry_run,
        )
        return await self._transport.model("consolidate_memories", Consolidated, body=wire)

    async def decay(
        self,
        *,
        as_of: datetime | None = None,
        layers: Sequence[MemoryLayer] | None = None,
        identifiers: Identifiers | None = None,
        dry_run: bool | None = None,
        rate_per_day: float | None = None,
        archive_threshold: float | None = None,
        decayed_below: float | None = None,
        exempt_layers: Sequence[MemoryLayer] | None = None,
    ) -> DecayedMemories:
        """Lets memories fade as they would at a time. Without identifiers: those of the whole tenant, for admins."""
        wire = body(
            asOf=as_of,
            layers=layers,
            identifiers=as_wire(identifiers) if identifiers else None,
            dryRun=dry_run,
            ratePerDay=rate_per_day,
            archiveThreshold=archive_threshold,
            decayedBelow=decayed_below,
            exemptLayers=exempt_layers,
        )
        return await self._transport.model("decay_memories", DecayedMemories, body=wire)

    async def capabilities(self) -> MemoryCapabilities:
        """What this server offers: layers, kinds, limits, the model."""
        return await self._transport.model("memory_capabilities", MemoryCapabilities)

    async def health(self) -> MemoryHealth:
        """Whether memories can be stored and found."""
        return await self._transport.model("memory_health", MemoryHealth)


class AsyncSessions(AsyncGroup):
    """Sessions: conversations, as far as memories are concerned."""

    async def end(
        self,
        *,
        identifiers: Identifiers,
        auto_delete: bool | None = None,
        retention_period: str | None = None,
        promote_important: bool | None = None,
        promotion_threshold: float | None = None,
        as_of: datetime | None = None,
    ) -> EndedSession:
        """Ends a session: what was important in it becomes the user's."""
        wire = body(
            identifiers=as_wire(identifiers),
            autoDelete=auto_delete,
            retentionPeriod=retention_period,
            promoteImportant=promote_important,
            promotionThreshold=promotion_threshold,
            asOf=as_of,
        )
        return await self._transport.model("end_session", EndedSession, body=wire)
