"""How an item of a store is kept: as one fact.

Facts are unique by type, subject, predicate and object, and stating one again changes it. So an item is the fact that a
namespace (subject) *holds* a key (object): puts that race end in one item, and asking for one fact per subject and
predicate lists the namespaces. The value is one member of the fact's metadata, because metadata is merged member by
member: a value that loses a member must lose it. The content of the fact is the text that the item is found by.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path

from memtrove._wire import decode, timestamp
from memtrove.errors import InvalidInputError

FACT_TYPE = "langgraph.item"
HOLDS = "holds"

ITEM = "langgraph.item"
"""Member of the metadata: the item itself."""
WITHIN = "langgraph.within"
"""Member of the metadata: every namespace that the item is below, for searches by prefix."""
ADDRESS = "langgraph.address"
"""Member of the metadata: what names the item, in a form that is short."""
INDEXED = "langgraph.indexed"
"""Member of the metadata: whether the item is found by meaning."""
WRITTEN_AT = "langgraph.written_at"
"""Member of the metadata: when it was put, where its lifetime was renewed since; empty otherwise."""

MAX_FIELD = 1024
"""Characters of a subject or an object."""
MAX_SHORT = 128
"""Characters of a name that is one of many."""
MAX_CONTENT = 100_000
"""Characters of a content."""
MAX_TTL_SECONDS = 31_536_000
MAX_DEPTH = 62
"""Objects and lists in each other: the server takes 64, and an item is two of them."""

WHOLE = "$"
"""The path of everything in a value."""


def name(parts: Sequence[str] | str, longest: int = MAX_FIELD) -> str:
    """A namespace or a key as one text that no other one has. Too long ones become a digest."""
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    try:
        wire = text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError("a namespace or a key has half a character, which cannot be sent") from None
    return text if len(text) <= longest else "sha256:" + hashlib.sha256(wire).hexdigest()


def address(namespace: Sequence[str], key: str) -> str:
    """What names an item, in a form that is short."""
    return name([*namespace, key], MAX_SHORT)


def statement(namespace: Sequence[str], key: str) -> dict[str, str]:
    """What the fact of an item states."""
    return {"factType": FACT_TYPE, "subject": name(list(namespace)), "predicate": HOLDS, "object": name(key)}


def ttl_seconds(minutes: float | None) -> int | None:
    """A lifetime in whole seconds: at least what was asked for."""
    if minutes is None:
        return None
    if not 0 < minutes <= MAX_TTL_SECONDS / 60:
        raise InvalidInputError(
            f"ttl must be more than 0 and at most {MAX_TTL_SECONDS // 60} minutes (a year), but got {minutes}"
        )
    return math.ceil(minutes * 60)


def new_memory(put: PutOp, fields: Sequence[str]) -> dict[str, Any]:
    """The memory that a put makes, or makes of the one there is; without whose it is."""
    value, ttl = dict(put.value or {}), ttl_seconds(put.ttl)
    _check(value)
    paths = fields if put.index is None else put.index or ()
    text = _text(value, paths)
    item: dict[str, Any] = {"namespace": list(put.namespace), "key": put.key, "value": value}
    if ttl is not None:
        item["ttl"] = ttl
    memory: dict[str, Any] = {
        "kind": "procedural",
        "fact": statement(put.namespace, put.key),
        "metadata": {
            # An item stays until it is deleted, or its time is over; it does not fade.
            "decayFactor": 0,
            ITEM: item,
            WITHIN: [name(list(put.namespace[:depth]), MAX_SHORT) for depth in range(1, len(put.namespace) + 1)],
            ADDRESS: address(put.namespace, put.key),
            INDEXED: text is not None,
            WRITTEN_AT: "",
        },
    }
    if text is not None:
        memory["content"] = text
    if ttl is not None:
        memory["ttlSeconds"] = ttl
    return memory


def _check(value: object, depth: int = 1) -> None:
    """Refuses what would come back as something else, or cannot be kept, before anything is put."""
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            raise InvalidInputError("a number of a value is too large: its absolute value is over 1.8e308") from None
    if not isinstance(value, (Mapping, list, tuple)):
        return
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"a value has at most {MAX_DEPTH} objects and lists in each other")
    for inner in value:
        if isinstance(value, Mapping) and not isinstance(inner, str):
            raise InvalidInputError(f"the members of a value have texts as names, not {type(inner).__name__}")
        _check(value[inner] if isinstance(value, Mapping) else inner, depth + 1)


def _text(value: Mapping[str, Any], paths: Iterable[str]) -> str | None:
    """What an item is found by, or nothing."""
    texts: list[str] = []
    for path in paths:
        texts.extend(_lines(value) if path == WHOLE else get_text_at_path(value, path))
    text = "\n".join(text for text in texts if text.strip())
    return text[:MAX_CONTENT] or None


def _lines(value: Mapping[str, Any], prefix: str = "") -> Iterable[str]:
    """A whole value as text. The signs that JSON needs mean nothing to a model."""
    for member, inner in value.items():
        at = f"{prefix}{member}"
        if isinstance(inner, Mapping):
            yield from _lines(inner, f"{at} ")
        elif isinstance(inner, (list, tuple)):
            yield from _lines({str(number): item for number, item in enumerate(inner, 1)}, f"{at} ")
        elif inner is not None:
            yield f"{at}: {inner}"


@dataclass(frozen=True)
class Stored:
    """An item as the server has it."""

    id: str
    version: int
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    ttl: int | None
    created_at: datetime
    updated_at: datetime
    """When it was put last."""
    changed_at: datetime
    """When the server changed it last: later than that, where its lifetime was renewed."""

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> Stored | None:
        """Reads a fact, or a memory that is one; nothing if somebody else stated it in another form."""
        item = shown["metadata"].get(ITEM)
        if not isinstance(item, dict) or not {"namespace", "key", "value"} <= item.keys():
            return None
        return cls(
            id=shown["id"],
            version=shown["version"],
            namespace=tuple(item["namespace"]),
            key=item["key"],
            value=item["value"],
            ttl=item.get("ttl"),
            created_at=decode(datetime, shown["createdAt"]),
            updated_at=decode(datetime, shown["metadata"].get(WRITTEN_AT) or shown["updatedAt"]),
            changed_at=decode(datetime, shown["updatedAt"]),
        )

    @property
    def address(self) -> str:
        """What names it."""
        return address(self.namespace, self.key)

    def renewed(self) -> dict[str, Any]:
        """The change that lets it live as long again. It is not written anew: the time of that is kept."""
        return {
            "version": self.version,
            "ttlSeconds": self.ttl,
            "metadata": {WRITTEN_AT: timestamp(self.updated_at)},
        }

    def item(self) -> Item:
        """As LangGraph has it."""
        return Item(
            value=self.value,
            key=self.key,
            namespace=self.namespace,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )

    def search_item(self, score: float | None) -> SearchItem:
        """As LangGraph has it, found by a search."""
        return SearchItem(
            namespace=self.namespace,
            key=self.key,
            value=self.value,
            created_at=self.created_at,
            updated_at=self.updated_at,
            score=score,
        )
