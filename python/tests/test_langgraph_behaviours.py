"""What LangGraph's own store in memory does, ours does too: the same scenario on both, and the same is seen.

A scenario is a function of a store that returns what it saw. It runs on `InMemoryStore`, on ours, and on ours awaited.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from memtrove.langgraph import MemtroveStore

Scenario = Callable[[BaseStore], Any]


class Awaited(BaseStore):
    """A store whose methods are the awaited ones of another."""

    def __init__(self, store: BaseStore, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._loop = store, loop

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._loop.run_until_complete(self._store.abatch(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError

    def get(self, *args: Any, **named: Any) -> Item | None:
        return self._loop.run_until_complete(self._store.aget(*args, **named))

    def put(self, *args: Any, **named: Any) -> None:
        self._loop.run_until_complete(self._store.aput(*args, **named))

    def delete(self, *args: Any, **named: Any) -> None:
        self._loop.run_until_complete(self._store.adelete(*args, **named))

    def search(self, *args: Any, **named: Any) -> list[SearchItem]:
        return self._loop.run_until_complete(self._store.asearch(*args, **named))

    def list_namespaces(self, **named: Any) -> list[tuple[str, ...]]:
        return self._loop.run_until_complete(self._store.alist_namespaces(**named))


def embed(texts: Sequence[str]) -> list[list[float]]:
    """A model for the store in memory: texts with the same words are alike."""
    places = [[zlib.crc32(word.encode()) % 64 for word in text.lower().split()] for text in texts]
    return [[float(found.count(place)) for place in range(64)] for found in places]


@pytest.fixture
def store(url: str, user: str, loop: asyncio.AbstractEventLoop | None) -> Iterator[BaseStore]:
    ours = MemtroveStore(url, user_id=user)
    if loop is None:
        with ours:
            yield ours
    else:
        yield Awaited(ours, loop)
        loop.run_until_complete(ours.aclose())


def both(store: BaseStore, scenario: Scenario) -> Any:
    """What a scenario sees, on both stores alike."""
    expected = scenario(InMemoryStore(index={"dims": 64, "embed": embed}))
    assert scenario(store) == expected
    return expected


Seen = tuple[tuple[str, ...], str, dict[str, Any]]


def seen(items: Iterable[Item | None]) -> list[Seen | None]:
    """Items without what differs from store to store: times, and scores."""
    return [None if item is None else (item.namespace, item.key, item.value) for item in items]


def in_order(items: Iterable[Item]) -> list[Seen | None]:
    """The same, where nothing is said about the order."""
    return sorted(seen(items), key=repr)


def test_a_put_is_read_replaced_and_deleted(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        item = ("users", "dana"), "prefs"
        before = store.get(*item)
        store.put(*item, {"seat": "window", "meal": "any"})
        first = store.get(*item)
        # A value that loses a member loses it.
        store.put(*item, {"seat": "aisle"})
        second = store.get(*item)
        store.delete(*item)
        store.delete(*item)
        return seen([before, first, second, store.get(*item)]), in_order(store.search(("users",)))

    assert both(store, scenario)[0][2] == (("users", "dana"), "prefs", {"seat": "aisle"})


VALUES: list[dict[str, Any]] = [
    {},
    {"null": None, "false": False, "zero": 0, "empty": "", "list": [], "object": {}},
    {"integers": [2**31, -(2**63), 2**64, 2**70, 10**30]},
    {"floats": [0.1, 1.0, -0.0, 1e-7, 1e300, 5e-324]},
    {"deep": {"a": [{"b": [None, {"c": "ü"}]}]}},
    {"unicode": "Grüße, 世界 😀 \u2028 \u0001 \\ \" '", "ключ": "значение"},
    {"$eq": 1, "_private": 2, "a.b": 3, "": 4, "tags": "not a list", "relevance": "high"},
    {"long": "x" * 30_000},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: next(iter(value), "empty"))
def test_a_value_comes_back_as_it_was(store: BaseStore, value: dict[str, Any]) -> None:
    def scenario(store: BaseStore) -> Any:
        store.put(("values",), "one", value)
        return seen([store.get(("values",), "one")]), in_order(store.search(("values",)))

    [stored] = both(store, scenario)[0]
    assert stored[2] == value


def test_integers_and_floats_stay_what_they_are(store: BaseStore) -> None:
    store.put(("numbers",), "one", {"integer": 1, "float": 1.0})
    found = store.get(("numbers",), "one")
    assert found is not None
    assert [type(number) for number in found.value.values()] == [int, float]


KEYS = [
    "",
    " ",
    "*",
    "a.b",
    'quo"te',
    "back\\slash",
    "new\nline",
    "ключ",
    "😀",
    "x" * 900,
    "x" * 5000,
    "x" * 4999 + "y",
]


def test_every_text_is_a_key(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        for number, key in enumerate(KEYS):
            store.put(("keys",), key, {"number": number})
        store.delete(("keys",), KEYS[-2])
        return seen(store.get(("keys",), key) for key in KEYS), in_order(store.search(("keys",), limit=100))

    both(store, scenario)


NAMESPACES = [
    ("a",),
    ("a", "b"),
    ("a,b",),
    ('a"', 'b"'),
    ('a","b',),
    ("*",),
    ("[]", "{}"),
    ("A",),
    ("a ",),
    ("ä", "世界"),
    ("langgraphs", "langgraph"),
    tuple(f"level{depth}" for depth in range(80)),
    ("long", "x" * 3000),
    ("long", "x" * 2999 + "y"),
]


def test_namespaces_do_not_run_into_each_other(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        for number, namespace in enumerate(NAMESPACES):
            store.put(namespace, "one", {"number": number})
        below = {prefix: in_order(store.search(prefix)) for one in NAMESPACES for prefix in (one, one[:1])}
        return seen(store.get(namespace, "one") for namespace in NAMESPACES), below, store.list_namespaces()

    both(store, scenario)


def test_what_is_no_text_becomes_a_key(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        store.put(("keys",), 5, {"a": 1})  # type: ignore[arg-type]
        return seen([store.get(("keys",), "5"), store.get(("keys",), 5)])  # type: ignore[arg-type]

    both(store, scenario)


def refuses(label: str) -> bool:
    try:
        InMemoryStore().get((label,), "key")
        InMemoryStore().put((label,), "key", {})
    except InvalidNamespaceError:
        return True
    return False


WRONG: list[Any] = [
    (),
    ("a", ""),
    ("a.b",),
    ("a", "b.c"),
    (1,),
    ("a", None),
    ("langgraph",),
    ("langgraph", "a"),
    # What older versions let pass.
    *([("a\0",)] if refuses("a\0") else []),
]


@pytest.mark.parametrize("namespace", WRONG, ids=repr)
def test_a_wrong_namespace_is_refused_in_langgraphs_words(store: BaseStore, namespace: Any) -> None:
    def scenario(store: BaseStore) -> Any:
        calls: list[Callable[[], Any]] = [
            lambda: store.put(namespace, "key", {"a": 1}),
            lambda: store.get(namespace, "key"),
            lambda: store.delete(namespace, "key"),
            lambda: store.search(namespace),
            lambda: store.list_namespaces(prefix=namespace),
            lambda: store.list_namespaces(suffix=namespace),
        ]
        told: list[str | None] = []
        for call in calls:
            try:
                call()
                told.append(None)
            except InvalidNamespaceError as error:
                told.append(str(error))
        return told

    assert any(both(store, scenario))


PLACES = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("users", "123"),
    ("users", "456", "settings"),
    ("admin", "users", "789"),
]
PATHS = [None, ("a", "b"), ("a", "*", "f"), ("*", "f"), ("users", "123"), ("nobody",), ("*",) * 4]


def test_namespaces_are_listed_by_prefix_and_suffix_and_depth(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        assert store.list_namespaces() == []
        for number, namespace in enumerate(PLACES):
            store.put(namespace, f"id {number}", {"number": number})
            store.put(namespace, "another", {"number": number})
        listed: dict[Any, Any] = {}
        for prefix, suffix in itertools.product(PATHS, repeat=2):
            listed[prefix, suffix] = store.list_namespaces(prefix=prefix, suffix=suffix)
        for depth, limit, offset in itertools.product([None, 1, 2, 9], [3, 100], [0, 2]):
            listed[depth, limit, offset] = store.list_namespaces(max_depth=depth, limit=limit, offset=offset)
        return listed

    assert both(store, scenario)[2, 3, 0] == [("a", "b"), ("a", "c"), ("admin", "users")]


DOCUMENTS: list[dict[str, Any]] = [
    {"kind": "report", "score": 4, "tags": ["a", "b"], "author": {"name": "Ann", "age": 41}, "done": True},
    {"kind": "report", "score": 4.5, "tags": [], "author": {"name": "Bob", "age": 30}, "done": False},
    {"kind": "letter", "score": -1, "tags": ["a"], "author": {"name": "Ann", "age": 17}, "done": None},
    {"kind": "", "score": 0, "tags": ["b", "a"], "author": {"name": None, "age": 0}, "done": 1},
]
FILTERS: list[dict[str, Any]] = [
    {},
    {"kind": "report"},
    {"kind": "Report"},
    {"kind": {"$eq": "letter"}},
    {"kind": {"$ne": "report"}},
    {"score": 4},
    {"score": 4.0},
    {"score": {"$gt": 4}},
    {"score": {"$gte": 4, "$lt": 4.5}},
    {"score": {"$lt": 0}},
    {"score": {"$lte": "0"}},
    {"kind": "report", "score": {"$gt": 4.2}},
    {"tags": ["a", "b"]},
    {"tags": []},
    {"author": {"name": "Ann"}},
    {"author": {"name": "Ann", "age": {"$gte": 18}}},
    {"author": "Ann"},
    {"done": True},
    {"done": None},
    {"missing": None},
    {"missing": {"$eq": None}},
    {"missing": {"$ne": 1}},
    {"author": {"missing": {"$ne": 1}}},
]


def test_filters_let_the_same_items_pass(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        for number, document in enumerate(DOCUMENTS):
            store.put(("documents",), str(number), document)
        without = [in_order(store.search(("documents",), filter=one)) for one in FILTERS]
        ranked = [in_order(store.search(("documents",), query="report", filter=one)) for one in FILTERS]
        return without, ranked

    assert len(both(store, scenario)[0][8]) == 1


def test_an_unknown_operator_is_refused_in_langgraphs_words(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        store.put(("documents",), "one", {"score": 1})
        with pytest.raises(ValueError) as told:
            store.search(("documents",), filter={"score": {"$near": 1}})
        return str(told.value)

    both(store, scenario)


def test_pages_hold_every_item_once(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        for number in range(23):
            store.put(("pages", str(number % 3)), str(number), {"number": number})
        walks: list[Any] = []
        for query, limit in itertools.product([None, "number"], [5, 10, 100]):
            pages = [store.search(("pages",), query=query, limit=limit, offset=at) for at in range(0, 30, limit)]
            walks.append(([len(page) for page in pages], in_order(item for page in pages for item in page)))
        nothing: list[Any] = [store.search(("pages",), limit=0), store.search(("pages",), offset=100)]
        return walks, nothing

    assert all(len(found) == 23 for _, found in both(store, scenario)[0])


INDEX: list[Literal[False] | list[str] | None] = [None, False, ["text"], ["missing"], ["nested.text", "list[*]"]]


def test_items_that_are_not_indexed_are_found_last_and_without_a_score(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        value = {"text": "green tea", "nested": {"text": "black coffee"}, "list": ["water", "wine"]}
        for index in INDEX:
            store.put(("drinks",), str(index), value, index=index)
        found = store.search(("drinks",), query="green tea")
        scored = [item.key for item in found if item.score is not None]
        # Those without one come behind those with one.
        assert [item.key for item in found][: len(scored)] == scored
        return sorted(scored), in_order(found), in_order(store.search(("drinks",)))

    assert both(store, scenario)[0] == ["None", "['nested.text', 'list[*]']", "['text']"]


def test_the_nearest_comes_first(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        texts = {"tea": "dana drinks green tea", "trains": "the train leaves at nine", "cats": "two cats sleep all day"}
        for key, text in texts.items():
            store.put(("notes",), key, {"text": text}, index=["text"])
        first = [store.search(("notes",), query=text)[0].key for text in texts.values()]
        # A put with another text is found by that one.
        store.put(("notes",), "tea", {"text": "two cats sleep all day"}, index=["text"])
        store.put(("notes",), "cats", {"text": "dana drinks green tea"}, index=["text"])
        return first, [store.search(("notes",), query=text, limit=1)[0].key for text in texts.values()]

    assert both(store, scenario) == (["tea", "trains", "cats"], ["cats", "trains", "tea"])


def test_a_batch_reads_first_and_the_last_put_of_a_key_counts(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        here = ("batch",)
        store.put(here, "old", {"number": 0})
        ops: list[Op] = [
            PutOp(here, "old", {"number": 1}),
            GetOp(here, "old"),
            PutOp(here, "new", {"number": 2}),
            SearchOp(here),
            PutOp(here, "new", {"number": 3}),
            PutOp(here, "gone", {"number": 4}),
            PutOp(here, "gone", None),
            ListNamespacesOp((MatchCondition("prefix", here),)),
            GetOp(here, "new"),
        ]
        results = store.batch(ops)
        got, found, listed, new = (results[index] for index in (1, 3, 7, 8))
        assert isinstance(got, Item) and isinstance(found, list)
        first = seen([got]), in_order(found), listed, new  # type: ignore[arg-type]
        second = in_order(store.search(here))
        written = store.batch([PutOp(here, "old", None), PutOp(here, "new", None)])
        return first, second, written, store.search(here), store.batch([])

    both(store, scenario)


def test_an_unknown_operation_is_refused_in_langgraphs_words(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        with pytest.raises(ValueError) as told:
            store.batch(["put"])  # type: ignore[list-item]
        return str(told.value)

    both(store, scenario)


def test_a_batch_may_name_what_a_put_may_not(store: BaseStore) -> None:
    def scenario(store: BaseStore) -> Any:
        namespace = ("langgraph", "inner")
        store.batch([PutOp(namespace, "key", {"a": 1})])
        found = seen([store.get(namespace, "key")]), in_order(store.search(namespace))
        store.delete(namespace, "key")
        return found, store.get(namespace, "key")

    both(store, scenario)


@pytest.mark.parametrize("seed", range(2))
def test_any_sequence_of_operations_leads_to_the_same_items(store: BaseStore, seed: int) -> None:
    chance = random.Random(seed)
    places = [("a",), ("a", "b"), ("a", "b", "c"), ("b",)]
    model = InMemoryStore()
    for _ in range(25):
        ops: list[Op] = []
        for _ in range(chance.choice([1, 1, 1, 4])):
            place, key = chance.choice(places), chance.choice("xyz")
            value = {"n": chance.randrange(3), chance.choice("pq"): chance.random()} if chance.random() < 0.7 else None
            ops.append(PutOp(place, key, value))
        model.batch(ops)
        store.batch(ops)
        prefix, wanted = chance.choice([(), *places]), {"n": chance.randrange(3)}
        assert in_order(store.search(prefix)) == in_order(model.search(prefix))
        assert in_order(store.search(prefix, filter=wanted)) == in_order(model.search(prefix, filter=wanted))
        # The store in memory lists namespaces that were emptied, those in databases do not.
        assert store.list_namespaces() == sorted({item.namespace for item in model.search((), limit=100)})
