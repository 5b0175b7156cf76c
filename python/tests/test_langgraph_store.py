"""What is ours about the store: whose items they are, how long they live, and who else is writing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from langgraph.store.base import GetOp, PutOp

from memtrove import AsyncMemtroveClient, MemtroveClient
from memtrove.errors import ApiError, InvalidInputError, MemtroveError, TransportError
from memtrove.langgraph import MemtroveStore, plans
from memtrove.langgraph.items import ADDRESS, new_memory, statement
from memtrove.langgraph.plans import GONE, Call
from memtrove.models import Memory

HERE = ("notes", "inner")
SECOND = 1 / 60
"""A lifetime, in LangGraph's minutes."""


@pytest.fixture
def store(url: str, user: str) -> Iterator[MemtroveStore]:
    with MemtroveStore(url, user_id=user) as store:
        yield store


@pytest.fixture
def kept(url: str, user: str) -> Iterator[Callable[[str], Memory | None]]:
    """The memory behind an item, as the server shows it."""
    with MemtroveClient(url, api_key="planner") as client:

        def kept(key: str) -> Memory | None:
            wire = statement(HERE, key)
            facts = client.facts.query(
                identifiers={"user_id": user},
                fact_type=wire["factType"],
                subject=wire["subject"],
                object=wire["object"],
            ).facts
            assert len(facts) <= 1
            try:
                return client.memories.get(facts[0].id) if facts else None
            except ApiError as error:
                # Its time may be over just now.
                if error.is_not_found:
                    return None
                raise

        yield kept


def lifetime(memory: Memory | None) -> float | None:
    """Seconds from its last change until it expires."""
    assert memory is not None
    return None if memory.expires_at is None else (memory.expires_at - memory.updated_at).total_seconds()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that within a minute"
        time.sleep(0.1)


# Whose they are


def test_no_namespace_leads_to_somebody_elses_items(url: str, user: str) -> None:
    scopes: list[dict[str, Any]] = [
        {"user_id": user},
        {"user_id": f"{user}-2"},
        {"user_id": user, "agent_id": "planner"},
        {"user_id": user, "agent_id": "writer"},
        {"user_id": user, "session_id": "s"},
        {"project_id": user},
        {"team_id": user},
        {"org_id": user},
        {"user_id": user, "project_id": "p", "layer": "project"},
    ]
    stores = [MemtroveStore(url, **scope) for scope in scopes]
    for number, store in enumerate(stores):
        store.put(HERE, "key", {"number": number})
    for number, store in enumerate(stores):
        assert [item.value for item in store.search(())] == [{"number": number}]
        assert [item.value for item in store.search((), query="number")] == [{"number": number}]
        assert store.list_namespaces() == [HERE]
    stores[0].delete(HERE, "key")
    assert stores[0].get(HERE, "key") is None
    for number, store in enumerate(stores[1:], 1):
        found = store.get(HERE, "key")
        assert found is not None and found.value == {"number": number}
    for store in stores:
        store.close()


def test_a_project_is_shared_by_its_users(url: str, user: str) -> None:
    with (
        MemtroveStore(url, project_id=user, token=f"{user}-a") as one,
        MemtroveStore(url, project_id=user, token=f"{user}-b") as other,
    ):
        one.put(HERE, "key", {"by": "one"})
        other.put(HERE, "key", {"by": "other"})
        found = one.get(HERE, "key")
        assert found is not None and found.value == {"by": "other"}


def test_a_user_cannot_name_another_one(url: str, user: str) -> None:
    with MemtroveStore(url, user_id=f"{user}-2", token=user) as store, pytest.raises(ApiError) as told:
        store.put(HERE, "key", {})
    assert told.value.status == 403


def test_items_are_no_other_memories(url: str, user: str, store: MemtroveStore) -> None:
    with MemtroveClient(url, api_key="planner") as client:
        client.memories.add("Dana drinks tea", layer="user", identifiers={"user_id": user})
        client.facts.add(
            fact_type="langgraph.item",
            subject="tea",
            predicate="holds",
            object="x",
            layer="user",
            identifiers={"user_id": user},
        )
    assert store.search((), query="tea") == []
    assert store.search(()) == []
    assert store.list_namespaces() == []


@pytest.mark.parametrize(
    "scope",
    [
        {},
        {"session_id": "s"},
        {"user_id": "u", "project_id": "p"},
        {"user_id": "u", "layer": "agent"},
        {"layer": "planet"},
    ],
    ids=repr,
)
def test_it_must_be_clear_whose_it_is(scope: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        MemtroveStore(**scope)


# How long they live


def test_items_live_as_long_as_they_were_given(url: str, user: str, store: MemtroveStore, kept: Any) -> None:
    store.put(HERE, "for ever", {})
    store.put(HERE, "two minutes", {}, ttl=2)
    store.put(HERE, "a bit more than one", {}, ttl=1.001)
    assert [lifetime(kept(key)) for key in ("for ever", "two minutes", "a bit more than one")] == [None, 120, 61]
    with MemtroveStore(url, user_id=user, ttl={"default_ttl": 5}) as given:
        given.put(HERE, "default", {})
        given.put(HERE, "for ever after all", {}, ttl=None)
    assert [lifetime(kept(key)) for key in ("default", "for ever after all")] == [300, None]


def test_a_put_decides_the_lifetime_anew(store: MemtroveStore, kept: Any) -> None:
    lifetimes = []
    for ttl in (2, None, 3, 4, None):
        store.put(HERE, "key", {"ttl": ttl}, ttl=ttl)
        lifetimes.append(lifetime(kept("key")))
    assert lifetimes == [120, None, 180, 240, None]
    # So does one among many.
    store.put(HERE, "key", {}, ttl=1)
    store.batch([PutOp(HERE, "key", {}), PutOp(HERE, "other", {}, ttl=2)])
    assert [lifetime(kept(key)) for key in ("key", "other")] == [None, 120]


def test_reads_renew_the_lifetime_and_nothing_else(store: MemtroveStore, kept: Any) -> None:
    store.put(HERE, "key", {"text": "tea"}, ttl=2)
    put = store.get(HERE, "key", refresh_ttl=False)
    assert put is not None
    reads: list[Callable[[], Any]] = [
        lambda: store.get(HERE, "key"),
        lambda: store.search(HERE)[0],
        lambda: store.search(HERE, query="tea")[0],
        lambda: store.search(HERE, query="tea", filter={"text": "tea"})[0],
    ]
    for read in reads:
        before = kept("key").expires_at
        found = read()
        assert kept("key").expires_at > before
        # It was not written: it is as old as it was.
        assert (found.value, found.created_at, found.updated_at) == (put.value, put.created_at, put.updated_at)
    store.put(HERE, "key", {"text": "coffee"}, ttl=2)
    written = store.get(HERE, "key")
    assert written is not None and written.updated_at > put.updated_at and written.created_at == put.created_at


def test_reads_that_are_not_to_renew_do_not(url: str, user: str, store: MemtroveStore, kept: Any) -> None:
    store.put(HERE, "key", {"text": "tea"}, ttl=2)
    store.put(HERE, "for ever", {"text": "tea"})
    before = kept("key").version, kept("for ever").version
    store.get(HERE, "key", refresh_ttl=False)
    store.search(HERE, refresh_ttl=False)
    store.list_namespaces()
    with MemtroveStore(url, user_id=user, ttl={"refresh_on_read": False}) as still:
        still.get(HERE, "key")
        still.search(HERE, query="tea")
    assert (kept("key").version, kept("for ever").version) == before


def test_an_item_whose_time_is_over_is_gone_for_every_read(store: MemtroveStore) -> None:
    store.put(HERE, "key", {"text": "tea"}, ttl=SECOND)
    eventually(lambda: store.get(HERE, "key", refresh_ttl=False) is None)
    assert store.search(HERE) == []
    assert store.search(HERE, query="tea") == []
    assert store.list_namespaces() == []
    # Its key is free, for one and for many.
    store.put(HERE, "key", {"text": "coffee"}, ttl=SECOND)
    eventually(lambda: store.get(HERE, "key", refresh_ttl=False) is None)
    store.batch([PutOp(HERE, "key", {"text": "wine"}), PutOp(HERE, "other", {"text": "water"})])
    assert sorted(item.value["text"] for item in store.search(HERE)) == ["water", "wine"]


@pytest.mark.parametrize("ttl", [0, -1, 525_601, float("inf"), float("nan")])
def test_a_lifetime_that_cannot_be_is_refused_before_anything_is_put(store: MemtroveStore, ttl: float) -> None:
    with pytest.raises(ValueError, match="ttl must be"):
        store.batch([PutOp(HERE, "first", {}), PutOp(HERE, "second", {}, ttl=ttl)])
    assert store.search(()) == []
    with pytest.raises(ValueError, match="ttl must be"):
        MemtroveStore(user_id="dana", ttl={"default_ttl": ttl})


# Who else is writing


def test_puts_that_race_end_in_one_item(url: str, user: str, kept: Any) -> None:
    start = threading.Barrier(8)
    with MemtroveStore(url, user_id=user) as store:

        def put(writer: int) -> None:
            start.wait(60)
            for turn in range(5):
                store.put(HERE, "key", {f"writer {writer}": turn, "writer": writer})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, range(8)))
        [item] = store.search(())
        # All of it is by one of them, in its last turn.
        assert item.value == {f"writer {item.value['writer']}": 4, "writer": item.value["writer"]}
    assert kept("key").version == 40


def test_puts_that_race_in_one_event_loop_end_in_one_item(url: str, user: str) -> None:
    async def race() -> list[Any]:
        async with MemtroveStore(url, user_id=user) as store:
            await asyncio.gather(*(store.aput(HERE, "key", {str(number): number}) for number in range(20)))
            return [item.value for item in await store.asearch(())]

    [value] = asyncio.run(race())
    assert len(value) == 1


def test_a_read_that_renews_does_not_undo_a_put(store: MemtroveStore, kept: Any) -> None:
    store.put(HERE, "key", {"turn": 1}, ttl=2)
    read = plans.batch(store._scope, ["$"], [GetOp(HERE, "key")])
    answers = store._make_all(next(read))
    # Between the read and the renewal somebody else puts it, for longer.
    store.put(HERE, "key", {"turn": 2}, ttl=9)
    put = kept("key")
    store._make_all(read.send(answers))
    assert kept("key") == put
    store.delete(HERE, "key")
    # Nor does it matter if it is gone by then.
    gone = Call("update_memory", {"ttlSeconds": 9}, {"id": put.id})
    assert store._make_all([gone._replace(optional=True), gone._replace(overtaken=True)]) == [None, plans.GONE]


def test_one_store_works_in_threads_and_in_one_event_loop_after_another(url: str, user: str) -> None:
    store = MemtroveStore(url, user_id=user)

    async def put(key: str) -> None:
        await store.aput(HERE, key, {})
        # Those that wait can be called where somebody awaits, too.
        assert store.get(HERE, key) is not None
        await store.aclose()

    for key in ("one", "two"):
        asyncio.run(put(key))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda key: store.put(HERE, key, {}), "abcd"))
    assert len(store.search(HERE)) == 6
    store.close()


# Many of them


def test_a_batch_may_be_large_and_of_old_and_new(store: MemtroveStore) -> None:
    store.batch([PutOp(HERE, str(number), {"turn": 1}) for number in range(0, 130, 10)])
    store.batch([PutOp(HERE, str(number), {"turn": 2, "number": number}) for number in range(130)])
    found = store.search(HERE, limit=1000)
    assert sorted(item.value["number"] for item in found) == list(range(130))
    store.batch([PutOp(HERE, str(number), None) for number in range(20)])
    assert len(store.search(HERE, limit=1000)) == 110


def test_a_thousand_items_are_all_there(store: MemtroveStore) -> None:
    places = [("users", f"user {number}", kind) for number in range(25) for kind in ("notes", "facts")]
    store.batch(
        [PutOp(places[number % 50], str(number), {"text": f"note {number}", "n": number}) for number in range(1000)]
    )
    assert len(store.search((), limit=2000)) == 1000
    assert store.list_namespaces() == sorted(places)
    assert store.list_namespaces(max_depth=1) == [("users",)]
    assert [item.key for item in store.search(("users",), filter={"n": {"$gte": 998}})] == ["999", "998"]
    assert store.search(("users",), query="note 137", limit=1)[0].key == "137"
    assert len(store.search(("users", "user 3"), query="note", limit=100)) == 40


def test_only_what_is_asked_for_is_sent(url: str, user: str) -> None:
    sent: list[int] = []

    def count(response: httpx.Response) -> None:
        answer = response.json()
        sent.append(len(answer.get("facts", answer.get("results", []))))

    with MemtroveClient(url, api_key="planner", on_response=count) as client:
        store = MemtroveStore(user_id=user, client=client)
        store.batch([PutOp(("a", str(number % 4)), str(number), {"n": number}) for number in range(40)])
        reads: list[Callable[[], Any]] = [
            lambda: store.list_namespaces(),
            lambda: store.list_namespaces(prefix=("a", "1")),
            lambda: store.list_namespaces(prefix=("*", "1")),
            lambda: store.search(("a",), limit=7),
            lambda: store.search(("a", "1"), limit=70),
            lambda: store.search(("a", "1"), query="n", limit=3),
            lambda: store.get(("a", "1"), "1"),
        ]
        requests = []
        for read in reads:
            sent.clear()
            read()
            requests.append(list(sent))
    # One item of each namespace, or so many as wanted; one request each.
    assert requests == [[4], [1], [4], [7], [10], [3], [1]]


def test_many_operations_are_few_requests(url: str, user: str) -> None:
    asked: list[str] = []
    with MemtroveClient(url, api_key="planner", on_request=lambda one: asked.append(one.url.path)) as client:
        store = MemtroveStore(user_id=user, client=client)

        def requests(ops: list[Any]) -> tuple[list[str], list[Any]]:
            asked.clear()
            results: list[Any] = store.batch(ops)
            return [path.rpartition("/")[2] for path in asked], results

        where = [(("a", str(number % 3)), str(number)) for number in range(250)]
        assert requests([PutOp(*one, {"n": number}) for number, one in enumerate(where)])[0] == ["memories:bulkAdd"] * 3
        made, found = requests([GetOp(*one) for one in [*where, (("a", "0"), "nobody"), where[7]]])
        assert made == ["facts:query"] * 3
        assert [item and item.value["n"] for item in found] == [*range(250), None, 7]
        # Up to two hundred are looked up one by one.
        made, found = requests([GetOp(*one) for one in [*where[:199], (("a", "0"), "nobody")]])
        assert made == ["facts:query"] * 200
        assert [item and item.value["n"] for item in found] == [*range(199), None]
        made, _ = requests([PutOp(*one, None) for one in [*where[:220], (("a", "0"), "nobody")]])
        assert made == [*["facts:query"] * 3, "memories:bulkDelete"]
        made, _ = requests([PutOp(*one, None) for one in where[220:225]])
        assert made == [*["facts:query"] * 5, "memories:bulkDelete"]
        assert sorted(item.value["n"] for item in store.search((), limit=200)) == [*range(225, 250)]


@pytest.mark.parametrize("count", [1, 2, plans.FEW + 1])
def test_of_several_facts_for_one_place_the_newest_counts(count: int) -> None:
    scope = plans.Scope("session", {"userId": "dana", "sessionId": "fork"})
    ops = [PutOp(HERE, str(number), {"turn": 0}) for number in range(count)]

    def fact(op: PutOp, turn: int) -> dict[str, Any]:
        stated = new_memory(PutOp(op.namespace, op.key, {"turn": turn}), ["$"])
        at = f"2026-01-0{turn}T00:00:00Z"
        return {
            **stated["fact"],
            "id": f"{op.key}-{turn}",
            "version": 1,
            "metadata": stated["metadata"],
            "createdAt": at,
            "updatedAt": at,
        }

    def answers(calls: list[Call]) -> list[Any]:
        facts = [fact(op, turn) for turn in (2, 1) for op in ops]
        pages = [[one for one in facts if _asks_for(call, one)] for call in calls]
        return [{"facts": page, "nextCursor": None} for page in pages]

    get = plans.batch(scope, ["$"], [GetOp(op.namespace, op.key) for op in ops])
    with pytest.raises(StopIteration) as done:
        get.send(answers(next(get)))
    assert [item.value["turn"] for item in done.value.value] == [2] * count

    delete = plans.batch(scope, ["$"], [PutOp(op.namespace, op.key, None) for op in ops])
    calls = delete.send(answers(next(delete)))
    ids = [one for call in calls for one in ((call.body or {}).get("ids") or [(call.path or {})["id"]])]
    assert sorted(ids) == sorted(f"{op.key}-2" for op in ops)


def _asks_for(call: Call, fact: dict[str, Any]) -> bool:
    body: dict[str, Any] = call.body or {}
    if "filter" in body:
        return fact["metadata"][ADDRESS] in body["filter"]["custom"][ADDRESS]["$in"]
    return bool(body["object"] == fact["object"])


def test_filters_and_offsets_reach_beyond_what_a_search_returns(store: MemtroveStore) -> None:
    # More than the server returns at once are better matches than the two that pass.
    ops = [PutOp(HERE, str(number), {"text": "green tea", "rare": False}) for number in range(140)]
    ops += [PutOp(HERE, key, {"text": "a train to Lisbon", "rare": True}) for key in ("x", "y")]
    ops += [PutOp(("elsewhere",), "z", {"text": "green tea", "rare": True})]
    store.batch(ops)
    found = store.search(HERE, query="green tea", filter={"rare": True})
    assert sorted(item.key for item in found) == ["x", "y"]
    assert all(item.score is not None for item in found)
    whole = store.search(HERE, query="green tea", limit=200)
    assert [item.key for item in whole] == [item.key for item in sorted(whole, key=lambda one: -(one.score or 0))]
    assert len({item.key for item in whole}) == 142 and {item.key for item in whole[-2:]} == {"x", "y"}
    assert len(store.search(HERE, query="green tea", limit=50, offset=130)) == 12


def test_the_newest_comes_first_without_a_query(store: MemtroveStore) -> None:
    for key in ("a", "b", "c"):
        store.put(HERE, key, {})
    store.put(HERE, "a", {"changed": True})
    assert [item.key for item in store.search(HERE)] == ["a", "c", "b"]


def test_reading_does_not_change_the_order(store: MemtroveStore) -> None:
    keys = [f"{number:02}" for number in range(12)]
    for key in keys:
        store.put(HERE, key, {"n": int(key)}, ttl=None if key in ("03", "07") else 5)
    for key in ("00", "05", "02", "10"):
        store.get(HERE, key)
    expected = keys[::-1]
    assert [item.key for item in store.search(HERE, refresh_ttl=False, limit=100)] == expected
    for size in (1, 2, 5):
        # Each page renews what it shows.
        pages = [store.search(HERE, limit=size, offset=offset) for offset in range(0, 12, size)]
        assert [item.key for page in pages for item in page] == expected, size
    odd = store.search(HERE, filter={"n": {"$lt": 6}}, limit=3, offset=1)
    assert [item.key for item in odd] == ["04", "03", "02"]
    store.put(HERE, "01", {"n": 1}, ttl=5)
    assert [item.key for item in store.search(HERE, limit=2)] == ["01", "11"]


def test_a_renewal_that_fails_does_not_fail_the_read(url: str, user: str) -> None:
    refused: list[str] = []

    def refuse(request: httpx.Request) -> None:
        if request.method == "PATCH":
            refused.append(request.url.path)
            raise httpx.ConnectError("gone") if len(refused) % 2 else httpx.ReadTimeout("slow")

    with httpx.Client(event_hooks={"request": [refuse]}) as http:
        store = MemtroveStore(user_id=user, client=MemtroveClient(url, api_key="planner", http_client=http))
        store.put(HERE, "key", {"text": "tea"}, ttl=5)
        assert store.get(HERE, "key") is not None
        assert len(store.search(HERE)) == len(store.search(HERE, query="tea")) == 1
    # Once each: nobody waits for it.
    assert len(refused) == 3


def test_a_put_without_a_lifetime_stays_even_if_the_old_one_ends_meanwhile(store: MemtroveStore, kept: Any) -> None:
    store.put(HERE, "key", {"turn": 1}, ttl=SECOND)
    put = plans.batch(store._scope, ["$"], [PutOp(HERE, "key", {"turn": 2})])
    answers = store._make_all(next(put))
    lasting = put.send(answers)
    assert [call.operation for call in lasting] == ["update_memory"]
    eventually(lambda: kept("key") is None)
    again = put.send(store._make_all(lasting))
    with pytest.raises(StopIteration):
        put.send(store._make_all(again))
    found = store.get(HERE, "key")
    assert found is not None and found.value == {"turn": 2} and lifetime(kept("key")) is None


def test_a_put_of_what_is_always_gone_ends(store: MemtroveStore) -> None:
    put = plans.batch(store._scope, ["$"], [PutOp(HERE, "key", {})])
    expiring = {"memory": {"id": "m1", "version": 1, "ttlSeconds": 5}}
    steps = [next(put), put.send([expiring]), put.send([GONE]), put.send([expiring])]
    assert [call.operation for [call] in steps] == ["add_memory", "update_memory"] * 2
    with pytest.raises(MemtroveError, match='"key" could not be ended'):
        put.send([GONE])


def test_a_query_may_be_a_whole_message(store: MemtroveStore) -> None:
    store.put(HERE, "key", {"text": "tea"})
    assert store.search(HERE, query="tea " * 5000)[0].key == "key"
    # One without a word asks for nothing.
    assert store.search(HERE, query=" \n ")[0].score is None


def test_fields_say_what_is_embedded(url: str, user: str, kept: Any) -> None:
    with MemtroveStore(url, user_id=user, index={"fields": ["text", "list[*].name"]}) as store:
        value = {"text": "tea", "list": [{"name": "Ann"}, {"name": "Bob"}], "secret": "hidden"}
        store.put(HERE, "fields", value)
        store.put(HERE, "own", value, index=["secret"])
        store.put(HERE, "none", value, index=False)
    with MemtroveStore(url, user_id=user) as store:
        store.put(HERE, "whole", value)
    contents = [kept(key).content for key in ("fields", "own", "none", "whole")]
    rendered = '["notes","inner"] holds "none"'
    whole = "text: tea\nlist 1 name: Ann\nlist 2 name: Bob\nsecret: hidden"
    assert contents == ["tea\nAnn\nBob", "hidden", rendered, whole]


def test_an_index_with_a_model_of_its_own_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the server embeds"):
        MemtroveStore(user_id="dana", index={"dims": 3, "embed": lambda texts: [[0.0] * 3 for _ in texts]})


# What goes wrong


def test_what_cannot_be_kept_is_told(store: MemtroveStore) -> None:
    with pytest.raises(ApiError) as told:
        store.put(HERE, "large", {"text": "x" * 70_000})
    assert told.value.code == "METADATA_TOO_LARGE"
    # In a batch it is told too, by its own code.
    with pytest.raises(ApiError) as told:
        store.batch([PutOp(HERE, "large", {"text": "x" * 70_000}), PutOp(HERE, "small", {})])
    assert told.value.code == "METADATA_TOO_LARGE"
    with pytest.raises(InvalidInputError):
        store.put(HERE, "set", {"text": {1, 2}})
    with pytest.raises(InvalidInputError):
        store.put(HERE, "nan", {"number": float("nan")})
    assert [item.key for item in store.search(())] == ["small"]


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels > 1 else {}


@pytest.mark.parametrize(
    "value",
    [{"set": {1}}, {"nan": float("nan")}, {1: "x"}, {"a": [{None: 1}]}, {"n": 10**400}, nested(63)],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_put(store: MemtroveStore, value: dict[str, Any]) -> None:
    ops = [PutOp(HERE, str(number), {}) for number in range(101)]
    with pytest.raises(InvalidInputError):
        store.batch([*ops, PutOp(HERE, "last", value)])
    assert store.search(HERE) == []


def test_what_can_just_be_kept_is(store: MemtroveStore) -> None:
    for value in (nested(62), {"n": [10**308, -(10**308)]}):
        store.put(HERE, "key", value)
        found = store.get(HERE, "key")
        assert found is not None and found.value == value


def test_what_is_no_text_and_no_number_is_told_as_an_error_of_ours(store: MemtroveStore) -> None:
    for key in ("\ud800", "\ud800" * 2000):
        with pytest.raises(InvalidInputError):
            store.get(HERE, key)
    store.put(HERE, "key", {"n": 5})
    assert store.search(HERE, filter={"n": {"$gt": 10**400}}) == []
    assert len(store.search(HERE, filter={"n": {"$gt": -(10**400)}})) == 1


def test_credentials_of_the_environment_count(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    def headers(**options: Any) -> dict[str, str]:
        with MemtroveStore(user_id=user, **options) as store:
            return store._connection.client()._options.headers()

    monkeypatch.delenv("MEMTROVE_TOKEN", raising=False)
    monkeypatch.delenv("MEMTROVE_API_KEY", raising=False)
    assert headers() == {"X-API-Key": "langgraph"}
    monkeypatch.setenv("MEMTROVE_API_KEY", "key")
    assert headers() == {"X-API-Key": "key"} and headers(token="own") == {"Authorization": "Bearer own"}
    # A key may work for any user, a token is that of one.
    monkeypatch.setenv("MEMTROVE_TOKEN", "jwt")
    assert headers() == {"X-API-Key": "key"}
    with MemtroveStore(project_id="p") as store:
        both = {"Authorization": "Bearer jwt", "X-API-Key": "key"}
        assert store._connection.client()._options.headers() == both
    monkeypatch.delenv("MEMTROVE_API_KEY")
    assert headers() == {"Authorization": "Bearer jwt"}


def test_settings_are_looked_at_where_they_are_given() -> None:
    for wrong in ({"url": "localhost:7077"}, {"token": "sk-live-1\n"}):
        with pytest.raises(InvalidInputError):
            MemtroveStore(user_id="dana", **wrong)  # type: ignore[arg-type]


def test_without_a_server_it_is_told(user: str) -> None:
    with MemtroveStore("http://127.0.0.1:9", user_id=user) as store, pytest.raises(TransportError):
        store.put(HERE, "key", {})


def _late(requests: list[str], failures: int) -> Callable[[httpx.Request], httpx.Response]:
    """A server that has no time for the first requests."""

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.path)
        if len(requests) <= failures:
            error = {"code": "PROVIDER_ERROR", "message": "contended", "details": {}}
            return httpx.Response(503, json={"error": error})
        return httpx.Response(201, json={"memory": {"id": "1", "version": 1}})

    return answer


@pytest.mark.parametrize(("failures", "made"), [(2, 3), (9, 4)])
def test_a_put_is_made_again_when_the_server_says_later(failures: int, made: int) -> None:
    requests: list[str] = []
    http = httpx.Client(transport=httpx.MockTransport(_late(requests, failures)))
    store = MemtroveStore(user_id="dana", client=MemtroveClient(api_key="k", http_client=http))
    if failures < made:
        store.put(HERE, "key", {})
    else:
        with pytest.raises(ApiError):
            store.put(HERE, "key", {})
    assert requests == ["/v1/memories"] * made


@pytest.mark.parametrize(("failures", "made"), [(2, 3), (9, 4)])
def test_an_awaited_put_is_made_again_when_the_server_says_later(failures: int, made: int) -> None:
    requests: list[str] = []

    async def put() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(_late(requests, failures)))
        store = MemtroveStore(user_id="dana", async_client=AsyncMemtroveClient(api_key="k", http_client=http))
        await store.aput(HERE, "key", {})

    if failures < made:
        asyncio.run(put())
    else:
        with pytest.raises(ApiError):
            asyncio.run(put())
    assert requests == ["/v1/memories"] * made


def test_a_client_that_was_given_is_used_and_left_open(url: str, user: str) -> None:
    with MemtroveClient(url, api_key="planner") as client:
        with MemtroveStore(user_id=user, client=client) as store:
            store.put(HERE, "key", {})
        assert client.health()
        # Where it is awaited it waits in a thread.
        assert asyncio.run(store.aget(HERE, "key")) == store.get(HERE, "key")
        with pytest.raises(InvalidInputError, match="url"):
            MemtroveStore(url, user_id=user, client=client)


def test_it_does_not_show_its_credentials(user: str) -> None:
    store = MemtroveStore(user_id=user, token="s3cret")
    assert "s3cret" not in repr(store) and user in repr(store)


def test_times_are_those_of_the_server(store: MemtroveStore, kept: Any) -> None:
    store.put(HERE, "key", {})
    found = store.get(HERE, "key")
    assert found is not None and found.created_at == found.updated_at == kept("key").created_at
    assert found.created_at.utcoffset() == timedelta(0)
