# Made by scripts/generate.py. Do not edit.
"""The knowledge provider: memories as the OpenSpec protocol shows them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from memtrove._sse import ServerEvent
from memtrove._sync.group import Group
from memtrove._wire import body
from memtrove.models import (
    DeletedKnowledge,
    KnowledgeBatch,
    KnowledgeBatchOptions,
    KnowledgeDiscovery,
    KnowledgeEntry,
    KnowledgeEntryMetadata,
    KnowledgeFilters,
    KnowledgeGovernance,
    KnowledgeIdentifiers,
    KnowledgeQueryLayer,
    KnowledgeQueryOptions,
    KnowledgeResults,
    KnowledgeWriteOptions,
    NewKnowledgeEntry,
    WrittenKnowledge,
)


class Knowledge(Group):
    """Entries of the knowledge provider, which are memories."""

    def discover(self) -> KnowledgeDiscovery:
        """What this provider can do."""
        return self._transport.model("discover_knowledge", KnowledgeDiscovery)

    def query(
        self,
        query: str,
        *,
        mode: str | None = None,
        filters: KnowledgeFilters | None = None,
        options: KnowledgeQueryOptions | None = None,
        layer: KnowledgeQueryLayer | None = None,
    ) -> KnowledgeResults:
        """Finds entries."""
        wire = body(query=query, mode=mode, filters=filters, options=options, layer=layer)
        return self._transport.model("query_knowledge", KnowledgeResults, body=wire)

    def create(
        self,
        entry: NewKnowledgeEntry,
        *,
        options: KnowledgeWriteOptions | None = None,
        governance: KnowledgeGovernance | None = None,
    ) -> WrittenKnowledge:
        """Adds an entry."""
        wire = body(entry=entry, options=options, governance=governance)
        return self._transport.model("create_knowledge", WrittenKnowledge, body=wire)

    def get(self, entry_id: str) -> KnowledgeEntry:
        """One entry."""
        return self._transport.model("get_knowledge", KnowledgeEntry, "entry", path={"id": entry_id})

    def replace(
        self,
        entry_id: str,
        entry: NewKnowledgeEntry,
        *,
        options: KnowledgeWriteOptions | None = None,
        governance: KnowledgeGovernance | None = None,
        if_match: str | None = None,
    ) -> WrittenKnowledge:
        """Puts another content and other metadata in its place."""
        return self._transport.model(
            "replace_knowledge",
            WrittenKnowledge,
            path={"id": entry_id},
            body=body(entry=entry, options=options, governance=governance),
            headers={"If-Match": if_match},
        )

    def delete(
        self, entry_id: str, *, hard_delete: bool | None = None, if_match: str | None = None
    ) -> DeletedKnowledge:
        """Archives an entry, or with `hard_delete` removes it."""
        return self._transport.model(
            "delete_knowledge",
            DeletedKnowledge,
            path={"id": entry_id},
            query={"hard_delete": hard_delete},
            headers={"If-Match": if_match},
        )

    def batch(
        self,
        operation: str,
        entries: Sequence[Mapping[str, Any]],
        *,
        options: KnowledgeBatchOptions | None = None,
    ) -> KnowledgeBatch:
        """Does the same to many: `create`, `update` or `delete`. Entries are given as they go over the wire."""
        wire = body(operation=operation, entries=entries, options=options)
        return self._transport.model("batch_knowledge", KnowledgeBatch, body=wire)

    def metadata(self, entry_id: str, *, include_custom: bool | None = None) -> KnowledgeEntryMetadata:
        """What is known about an entry, without its content; with its versions."""
        return self._transport.model(
            "knowledge_metadata",
            KnowledgeEntryMetadata,
            path={"id": entry_id},
            query={"include_custom": include_custom},
        )

    def stream(
        self,
        *,
        type: str | None = None,
        types: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        query: str | None = None,
        identifiers: KnowledgeIdentifiers | None = None,
        last_event_id: str | None = None,
    ) -> Generator[ServerEvent]:
        """Changes of entries as they happen (`updates`, `notifications`), or results as they are found (`query`)."""
        parameters = {
            "type": type,
            "types": ",".join(types) if types else None,
            "tags": ",".join(tags) if tags else None,
            "query": query,
            **(identifiers.to_wire() if identifiers else {}),
        }
        # The results of a query are told once; whoever wants them again asks again.
        events = self._transport.events(
            "stream_knowledge", query=parameters, last_event_id=last_event_id, resume=type != "query"
        )
        for event in events:
            yield event
