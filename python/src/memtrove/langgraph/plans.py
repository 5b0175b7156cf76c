"""Which requests an operation of a store takes, and what comes of their answers.

A plan is a generator: it yields calls that may be made at the same time, is sent their answers, and returns its result.
So everything is said once, for the store that waits and for the one that is awaited.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, TypeVar

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from memtrove._wire import decode, dumps
from memtrove.errors import InvalidInputError, MemtroveError
from memtrove.langgraph.filters import passes
from memtrove.langgraph.items import (
    ADDRESS,
    FACT_TYPE,
    HOLDS,
    INDEXED,
    ITEM,
    MAX_SHORT,
    WITHIN,
    Stored,
    address,
    name,
    new_memory,
    statement,
)

T = TypeVar("T")

FACTS_AT_ONCE = 1000
"""Facts on a page, at most."""
FOUND_AT_ONCE = 100
"""Results of a search, at most."""
PUTS_AT_ONCE = 100
"""New items in one request: each may have 64 KiB, the request 20 MiB."""
FEW = 200
"""So many items are looked up with a request each: for a list of them the server looks at all of the layer."""
NAMES_AT_ONCE = 100
"""Items that are asked for by name in one request."""
DELETES_AT_ONCE = 1000
"""Items that are deleted with one request."""
MAX_QUERY = 8192
"""Characters of a query; of a longer one, such as a whole message, the beginning decides."""


class Call(NamedTuple):
    """One request."""

    operation: str
    """By its name in the OpenAPI document."""
    body: dict[str, Any] | None = None
    """The JSON object it carries."""
    path: dict[str, str] | None = None
    """The ids in its address."""
    overtaken: bool = False
    """Whether it does not matter if somebody else changed or deleted it; the answer is then `None` or `GONE`."""
    optional: bool = False
    """Whether it does not matter if it fails for whatever reason; it is made once then."""


GONE = "gone"
"""Instead of an answer: there is no such thing any more."""


Plan: TypeAlias = Generator[list[Call], list[Any], T]
"""Yields calls, is sent their answers in the same order, returns its result."""


class Scope(NamedTuple):
    """Whose items."""

    layer: str
    """The layer of memories."""
    identifiers: Mapping[str, str]
    """The identifiers that the layer needs."""

    def one(self) -> dict[str, Any]:
        """In a request that is about one layer."""
        return {"layer": self.layer, "identifiers": dict(self.identifiers)}

    def all(self) -> dict[str, Any]:
        """In a request that may be about several."""
        return {"layers": [self.layer], "identifiers": dict(self.identifiers)}


def batch(scope: Scope, fields: Sequence[str], ops: Iterable[Op]) -> Plan[list[Result]]:
    """Carries out operations: as in LangGraph's own stores reads first, and of several puts of one key the last."""
    ops = list(ops)
    reads: dict[int, Plan[Any]] = {}
    gets: dict[int, GetOp] = {}
    puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
    for index, op in enumerate(ops):
        if isinstance(op, GetOp):
            gets[index] = op
        elif isinstance(op, SearchOp):
            reads[index] = _search(scope, op)
        elif isinstance(op, ListNamespacesOp):
            reads[index] = _list_namespaces(scope, op)
        elif isinstance(op, PutOp):
            puts[(tuple(op.namespace), op.key)] = op
        else:
            raise InvalidInputError(f"Unknown operation type: {type(op)}")
    # What cannot be put is refused before anything is read or written.
    new = [new_memory(put, fields) for put in puts.values() if put.value is not None]
    for memory in new:
        dumps(memory)
    gone = [where for where, put in puts.items() if put.value is None]
    results: list[Result] = [None] * len(ops)
    read: list[Any] = yield from _together([*reads.values(), _get(scope, list(gets.values()))])
    for index, result in [*zip(reads, read, strict=False), *zip(gets, read[-1], strict=True)]:
        results[index] = result
    yield from _together([_put(scope, new), _delete(scope, gone)])
    return results


def _together(plans: Sequence[Plan[T]]) -> Plan[list[T]]:
    """Several plans at the same time, step by step."""
    results: dict[int, T] = {}
    steps: dict[int, list[Call]] = {}

    def advance(index: int, answers: list[Any] | None) -> None:
        try:
            steps[index] = next(plans[index]) if answers is None else plans[index].send(answers)
        except StopIteration as done:
            steps.pop(index, None)
            results[index] = done.value

    for index in range(len(plans)):
        advance(index, None)
    while steps:
        waiting = {index: len(calls) for index, calls in steps.items()}
        answers = iter((yield [call for calls in steps.values() for call in calls]))
        for index, count in waiting.items():
            advance(index, [next(answers) for _ in range(count)])
    return [results[index] for index in range(len(plans))]


def _get(scope: Scope, ops: Sequence[GetOp]) -> Plan[list[Item | None]]:
    """Several items, each as often as it is asked for."""
    wanted = [(tuple(op.namespace), op.key) for op in ops]
    facts = yield from _find(scope, wanted)
    found = {where: Stored.read(fact) for where, fact in facts.items()}
    refreshed = {where for where, op in zip(wanted, ops, strict=True) if op.refresh_ttl}
    yield from _renew([stored for where, stored in found.items() if stored is not None and where in refreshed])
    items = (found.get(where) for where in wanted)
    return [stored.item() if stored else None for stored in items]


Where: TypeAlias = tuple[tuple[str, ...], str]
"""What names an item: its namespace, and its key."""


def _find(scope: Scope, wanted: Iterable[Where]) -> Plan[dict[Where, Mapping[str, Any]]]:
    """The facts of the items that there are of those: a few with a request each, many by the hundred.

    The session of a fork has those of its ancestors too. The server has the newest first, and that is the item.
    """
    stated = {(fact["subject"], fact["object"]): where for where in wanted for fact in [statement(*where)]}
    places = list(stated.values())
    if not places:
        return {}
    query = {**scope.all(), "factType": FACT_TYPE, "predicate": HOLDS, "limit": FACTS_AT_ONCE}
    if len({namespace for namespace, _ in places}) == 1:
        query["subject"] = statement(*places[0])["subject"]
    if len(places) <= FEW:
        calls = [Call("query_facts", {**query, **statement(*where), "limit": 1}) for where in places]
    else:
        names = [address(*where) for where in places]
        parts = [names[start : start + NAMES_AT_ONCE] for start in range(0, len(names), NAMES_AT_ONCE)]
        calls = [Call("query_facts", {**query, "filter": {"custom": {ADDRESS: {"$in": part}}}}) for part in parts]
    found: dict[Where, Mapping[str, Any]] = {}
    for fact in [fact for page in (yield calls) for fact in page["facts"]]:
        where = stated.get((fact["subject"], fact["object"]))
        if where is not None:
            found.setdefault(where, fact)
    return found


def _search(scope: Scope, op: SearchOp) -> Plan[list[SearchItem]]:
    wanted = op.offset + op.limit
    if op.limit <= 0:
        return []
    found: list[tuple[Stored, float | None]]
    if op.query and op.query.strip():
        found = [*(yield from _ranked(scope, op, wanted))]
        if len(found) < wanted:
            rest = yield from _listed(scope, op, wanted - len(found), {INDEXED: False})
            found.extend((stored, None) for stored in rest)
    else:
        found = [(stored, None) for stored in (yield from _listed(scope, op, wanted, {}))]
    found = found[op.offset : wanted]
    if op.refresh_ttl:
        yield from _renew([stored for stored, _ in found])
    return [stored.search_item(score) for stored, score in found]


def _listed(scope: Scope, op: SearchOp, wanted: int | None, custom: dict[str, Any]) -> Plan[list[Stored]]:
    """The items that a search without a query finds, the one that was put last first; not many more than wanted.

    The server has them in the order of their last change, which for one that was renewed is later than its last put. So
    the place of such a one is certain only when the server is at changes that are older than its put.
    """
    found: list[Stored] = []
    certain = 0
    query = {**scope.all(), "factType": FACT_TYPE, "predicate": HOLDS}
    query["filter"] = {"custom": {**_below(op.namespace_prefix), **custom}}
    while True:
        missing = FACTS_AT_ONCE if wanted is None else wanted - certain
        # The server looks at all of them for every page, so pages of which some will not count are large.
        large = op.filter or certain < len(found)
        query["limit"] = FACTS_AT_ONCE if large else min(missing, FACTS_AT_ONCE)
        [page] = yield [Call("query_facts", dict(query))]
        found.extend(stored for stored in _read(page["facts"]) if passes(stored.value, op.filter))
        found.sort(key=lambda stored: stored.updated_at, reverse=True)
        if page["nextCursor"] is None:
            return found
        at = decode(datetime, page["facts"][-1]["updatedAt"])
        certain = sum(stored.updated_at == stored.changed_at or stored.updated_at > at for stored in found)
        if wanted is not None and certain >= wanted:
            return found[:certain]
        query["cursor"] = page["nextCursor"]


def _ranked(scope: Scope, op: SearchOp, wanted: int) -> Plan[list[tuple[Stored, float]]]:
    """The best items by meaning. What the server cannot filter, or not return at once, is told to it by name."""
    custom = {**_below(op.namespace_prefix), INDEXED: True}
    asked = FOUND_AT_ONCE if op.filter else min(wanted, FOUND_AT_ONCE)
    nearest = yield from _nearest(scope, op, asked, custom)
    found = [one for one in nearest if passes(one[0].value, op.filter)]
    if len(nearest) < asked or len(found) >= wanted:
        return found
    # Others are further away than all of these, so only they are asked for.
    candidates = yield from _listed(scope, op, None, {INDEXED: True})
    names = {stored.address for stored in candidates}
    while nearest and len(found) < wanted:
        names.difference_update(stored.address for stored, _ in nearest)
        if not names:
            break
        asked = min(wanted - len(found), FOUND_AT_ONCE)
        nearest = yield from _nearest(scope, op, asked, {**custom, ADDRESS: {"$in": sorted(names)}})
        # One may have been put meanwhile, with another value.
        found.extend(one for one in nearest if passes(one[0].value, op.filter))
    return found


def _nearest(scope: Scope, op: SearchOp, limit: int, custom: dict[str, Any]) -> Plan[list[tuple[Stored, float]]]:
    query = {
        **scope.all(),
        "query": (op.query or "")[:MAX_QUERY],
        "limit": limit,
        # Every item is a result, also one that says the same as another.
        "threshold": 0,
        "dedupe": False,
        "kinds": ["procedural"],
        "filter": {"custom": custom},
    }
    [answer] = yield [Call("search_memories", query)]
    found = ((Stored.read(result["memory"]), float(result["score"])) for result in answer["results"])
    return [(stored, score) for stored, score in found if stored is not None]


def _below(prefix: Sequence[str]) -> dict[str, Any]:
    """The condition that an item is in a namespace or below it."""
    return {WITHIN: name(list(prefix), MAX_SHORT)} if prefix else {ITEM: {"$exists": True}}


def _renew(found: Sequence[Stored]) -> Plan[None]:
    """Lets items that expire live as long again, if that can be done: who reads has read anyway.

    Where one was changed meanwhile, its time has begun anew.
    """
    expiring = [stored for stored in found if stored.ttl is not None]
    if expiring:
        yield [Call("update_memory", one.renewed(), {"id": one.id}, optional=True) for one in expiring]


def _list_namespaces(scope: Scope, op: ListNamespacesOp) -> Plan[list[tuple[str, ...]]]:
    conditions = op.match_conditions or ()
    query = {**scope.all(), "factType": FACT_TYPE, "predicate": HOLDS, "limit": FACTS_AT_ONCE}
    # One fact of each subject: every namespace once.
    query["resolve"] = True
    query["filter"] = {"custom": _below(_certain_prefix(conditions))}
    namespaces: set[tuple[str, ...]] = set()
    while True:
        [page] = yield [Call("query_facts", dict(query))]
        namespaces.update(stored.namespace for stored in _read(page["facts"]))
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    matching = [namespace for namespace in namespaces if all(_matches(namespace, one) for one in conditions)]
    shown = {namespace[: op.max_depth] for namespace in matching} if op.max_depth is not None else matching
    return sorted(shown)[op.offset : op.offset + op.limit]


def _certain_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    """The longest prefix that all conditions agree every match has: what comes before a wildcard."""
    longest: tuple[str, ...] = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            path = tuple(condition.path)
            certain = path[: path.index("*")] if "*" in path else path
            longest = max(longest, certain, key=len)
    return longest


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))


def _put(scope: Scope, new: Sequence[dict[str, Any]]) -> Plan[None]:
    """Puts items. Many at once are tried as new ones first; those that are there already are changed one by one."""
    memories = [{**scope.one(), **memory} for memory in new]
    if len(memories) > 1:
        parts = [memories[start : start + PUTS_AT_ONCE] for start in range(0, len(memories), PUTS_AT_ONCE)]
        answers = yield [Call("bulk_add", {"memories": part}) for part in parts]
        # A failure that is not for that reason is met again, and told by the request that has it to itself.
        memories = [
            part[result["index"]]
            for part, answer in zip(parts, answers, strict=True)
            for result in answer["results"]
            if "error" in result
        ]
    for _ in range(2):
        if not memories:
            return
        answers = yield [Call("add_memory", memory) for memory in memories]
        # The server keeps the lifetime of what is stated again without one, and begins it anew.
        expiring = [
            (memory, answer["memory"])
            for memory, answer in zip(memories, answers, strict=True)
            if "ttlSeconds" in answer["memory"] and "ttlSeconds" not in memory
        ]
        if not expiring:
            return
        answers = yield [_lasting(stored) for _, stored in expiring]
        # One whose time was over before that is put again: now it is a new one, without a lifetime.
        memories = [memory for (memory, _), answer in zip(expiring, answers, strict=True) if answer == GONE]
    if memories:
        keys = ", ".join(sorted(memory["fact"]["object"] for memory in memories))
        raise MemtroveError(
            f"the lifetime of {keys} could not be ended: the server said twice that there is no such item. Others put "
            "or delete it at the same time, or you may not change it"
        )


def _lasting(stored: Mapping[str, Any]) -> Call:
    """The change that lets something stay. If somebody else put it meanwhile, that is the last word."""
    change = {"ttlSeconds": None, "version": stored["version"]}
    return Call("update_memory", change, {"id": stored["id"]}, overtaken=True)


def _delete(scope: Scope, gone: Sequence[Where]) -> Plan[None]:
    facts = yield from _find(scope, gone)
    ids = [fact["id"] for fact in facts.values()]
    if len(ids) > 1:
        parts = [ids[start : start + DELETES_AT_ONCE] for start in range(0, len(ids), DELETES_AT_ONCE)]
        answers = yield [Call("bulk_delete", {"ids": part}) for part in parts]
        # What is not there is deleted. Any other failure is met again, and told by the request that has it to itself.
        failed = [error for answer in answers for error in answer["errors"]]
        ids = [error["id"] for error in failed if error["code"] != "MEMORY_NOT_FOUND"]
    if ids:
        yield [Call("delete_memory", path={"id": one}) for one in ids]


def _read(facts: Iterable[Mapping[str, Any]]) -> list[Stored]:
    return [stored for stored in map(Stored.read, facts) if stored is not None]
