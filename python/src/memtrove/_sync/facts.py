# Made by scripts/generate.py. Do not edit.
"""Facts: memories that say what, about what, in three words."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from memtrove._sync.group import Group, follow
from memtrove._wire import UNSET, Unset, body, changes
from memtrove.errors import InvalidInputError
from memtrove.identifiers import Identifiers, as_query, as_wire
from memtrove.models import (
    AddedFact,
    DeletedMemory,
    Fact,
    FactPage,
    MemoryAccessPolicy,
    MemoryFilter,
    MemoryLayer,
    MemoryMetadata,
    MemorySourceType,
)


class Facts(Group):
    """States facts and looks them up."""

    def add(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        fact_type: str,
        layer: MemoryLayer,
        identifiers: Identifiers,
        confidence: float | None = None,
        content: str | None = None,
        metadata: MemoryMetadata | Mapping[str, Any] | None = None,
        ttl_seconds: int | None = None,
        access_policy: MemoryAccessPolicy | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> AddedFact:
        """States a fact. The same one again is the same fact, with what is new about it."""
        wire = body(
            layer=layer,
            identifiers=as_wire(identifiers),
            factType=fact_type,
            subject=subject,
            predicate=predicate,
            object=object,
            confidence=confidence,
            content=content,
            metadata=metadata,
            ttlSeconds=ttl_seconds,
            accessPolicy=access_policy,
        )
        return self._transport.model("add_fact", AddedFact, body=wire, idempotency_key=idempotency_key, retry=retry)

    def list(
        self,
        *,
        layer: MemoryLayer,
        identifiers: Identifiers,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        fact_type: str | None = None,
        min_confidence: float | None = None,
        resolve: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tags: Sequence[str] | None = None,
        source_type: MemorySourceType | None = None,
        has_knowledge_pointer: bool | None = None,
    ) -> FactPage:
        """A page of the facts of one layer; every text that is given must be equal."""
        query = {
            "layer": layer,
            **as_query(identifiers),
            "subject": subject,
            "predicate": predicate,
            "object": object,
            "factType": fact_type,
            "minConfidence": min_confidence,
            "resolve": resolve,
            "limit": limit,
            "cursor": cursor,
            "tag": tuple(tags or ()),
            "sourceType": source_type,
            "hasKnowledgePointer": has_knowledge_pointer,
        }
        return self._transport.model("list_facts", FactPage, query=query)

    def query(
        self,
        *,
        identifiers: Identifiers,
        layers: Sequence[MemoryLayer] | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        fact_type: str | None = None,
        min_confidence: float | None = None,
        filter: MemoryFilter | None = None,
        resolve: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> FactPage:
        """A page of the facts of several layers. With `resolve`, one per subject and predicate: the strongest."""
        wire = body(
            identifiers=as_wire(identifiers),
            layers=layers,
            subject=subject,
            predicate=predicate,
            object=object,
            factType=fact_type,
            minConfidence=min_confidence,
            filter=filter,
            resolve=resolve,
            limit=limit,
            cursor=cursor,
        )
        return self._transport.model("query_facts", FactPage, body=wire)

    def query_all(
        self,
        *,
        identifiers: Identifiers,
        layers: Sequence[MemoryLayer] | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        fact_type: str | None = None,
    ) -> Generator[Fact]:
        """Every fact that fits, page by page."""

        def page(cursor: str | None) -> FactPage:
            return self.query(
                identifiers=identifiers,
                layers=layers,
                subject=subject,
                predicate=predicate,
                object=object,
                fact_type=fact_type,
                cursor=cursor,
            )

        for found in follow(page, lambda page: page.next_cursor):
            for fact in found.facts:
                yield fact

    def get(self, fact_id: str, *, layer: MemoryLayer | None = None, identifiers: Identifiers | None = None) -> Fact:
        """One fact. With `layer` or `identifiers` it is found only there."""
        query = {"layer": layer, **as_query(identifiers)}
        return self._transport.model("get_fact", Fact, "fact", path={"id": fact_id}, query=query)

    def update(
        self,
        fact_id: str,
        *,
        subject: str | Unset = UNSET,
        predicate: str | Unset = UNSET,
        object: str | Unset = UNSET,
        fact_type: str | Unset = UNSET,
        confidence: float | Unset = UNSET,
        content: str | Unset = UNSET,
        metadata: MemoryMetadata | Mapping[str, Any] | Unset = UNSET,
        version: int | Unset = UNSET,
        if_match: str | None = None,
        layer: MemoryLayer | None = None,
        identifiers: Identifiers | None = None,
    ) -> Fact:
        """Changes what is given."""
        wire = changes(
            subject=subject,
            predicate=predicate,
            object=object,
            factType=fact_type,
            confidence=confidence,
            content=content,
            metadata=metadata,
            version=version,
        )
        if not wire:
            raise InvalidInputError("an update changes nothing: give a member of the fact")
        return self._transport.model(
            "update_fact",
            Fact,
            "fact",
            path={"id": fact_id},
            query={"layer": layer, **as_query(identifiers)},
            body=wire,
            headers={"If-Match": if_match},
        )

    def delete(
        self,
        fact_id: str,
        *,
        if_match: str | None = None,
        layer: MemoryLayer | None = None,
        identifiers: Identifiers | None = None,
    ) -> bool:
        """Forgets a fact; whether there was one."""
        found = self._transport.model(
            "delete_fact",
            DeletedMemory,
            path={"id": fact_id},
            query={"layer": layer, **as_query(identifiers)},
            headers={"If-Match": if_match},
        )
        return found.deleted
