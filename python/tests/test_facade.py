from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest

from conftest import Blocking
from memtrove import AsyncMemtrove, InvalidInputError, Memtrove, MemtroveClient, MemtroveError, TransportError
from memtrove.facade import conversation_id

Open = Callable[..., Memtrove]


@pytest.fixture
def memory(open_memory: Open, user: str) -> Memtrove:
    return open_memory(user)


@pytest.fixture
def open_memory(url: str, loop: asyncio.AbstractEventLoop | None) -> Iterator[Open]:
    made: list[Any] = []

    def open_memory(user: str, **options: Any) -> Memtrove:
        if loop is None:
            memory: Any = Memtrove(user, url=url, **options)
        else:
            memory = Blocking(AsyncMemtrove(user, url=url, **options), loop)
        made.append(memory)
        return cast(Memtrove, memory)

    yield open_memory
    for memory in made:
        memory.close() if loop is None else memory.aclose()


def test_what_is_remembered_is_recalled_in_other_words(memory: Memtrove) -> None:
    memory.remember("Alice prefers trains to flights")
    memory.remember("Alice is allergic to peanuts", tags=["health"])
    hits = memory.recall("how does Alice like to travel?")
    assert hits[0].text == "Alice prefers trains to flights" and 0.7 <= hits[0].score <= 1
    assert memory.recall("which food is dangerous for her, peanuts?")[0].memory.metadata.tags == ["health"]


def test_without_a_threshold_the_server_decides(memory: Memtrove) -> None:
    memory.remember("The cat sleeps on the windowsill")
    unrelated = "quarterly tax filing deadlines"
    found = memory.client.memories.search(unrelated, identifiers={"user_id": memory.user})
    assert found.threshold_used == 0.7 and memory.recall(unrelated) == []
    assert [hit.text for hit in memory.recall(unrelated, threshold=0)] == ["The cat sleeps on the windowsill"]


def test_the_same_text_is_one_memory(memory: Memtrove) -> None:
    first = memory.remember("Alice prefers trains to flights")
    again = memory.remember("alice prefers  trains to flights.", tags=["travel"])
    assert again.id == first.id and again.metadata.tags == ["travel"]
    other = memory.remember("Alice prefers flights to trains")
    assert other.id != first.id
    assert memory.remember("Alice prefers trains to flights").id == first.id
    assert len(list(memory.memories())) == 2


def test_what_is_told_of_another_time_is_another_memory(memory: Memtrove) -> None:
    may, june = (datetime(2024, month, 3, 12, tzinfo=timezone.utc) for month in (5, 6))
    first = memory.remember("Alice ran the marathon", occurred_at=may)
    again = memory.remember("alice ran the marathon.", occurred_at=may.astimezone(timezone(timedelta(hours=2))))
    other = memory.remember("Alice ran the marathon", occurred_at=june)
    assert (first.occurred_at, again.id, other.occurred_at) == (may, first.id, june)
    assert memory.remember("Alice ran the marathon").id in (first.id, other.id)
    assert memory.recall("what did Alice run in June 2024?")[0].id == other.id
    with pytest.raises(InvalidInputError, match="no time zone"):
        memory.remember("Alice ran the marathon", occurred_at=datetime(2024, 5, 3))


def test_a_very_long_text_is_one_memory_too(memory: Memtrove) -> None:
    text = "The minutes of the meeting. " * 1000
    assert memory.remember(text).id == memory.remember(text).id


def test_a_hit_shows_the_passage_that_answers(memory: Memtrove) -> None:
    lines = "Nothing of note was said. " * 40
    memory.remember(f"{lines}The ferry leaves at nine from quay four. {lines}")
    memory.remember("The ferry office is closed on Mondays")
    hits = {len(hit.text) > 1000: hit for hit in memory.recall("when does the ferry leave?", threshold=0)}
    assert "quay four." in hits[True].passage and len(hits[True].passage.split()) <= 120
    assert hits[True].passage in hits[True].text
    assert hits[False].passage == hits[False].text


def test_forgetting_takes_an_id_a_text_or_a_hit(memory: Memtrove) -> None:
    first = memory.remember("likes tea")
    memory.remember("likes coffee")
    memory.remember("likes water")
    assert memory.forget(first.id) == 1
    assert memory.forget("Likes coffee!") == 1
    assert memory.forget("something that nobody said") == 0
    assert memory.forget(memory.recall("water")[0]) == 1
    assert list(memory.memories()) == [] and memory.recall("tea, coffee or water") == []


def test_what_was_forgotten_can_be_remembered_again(memory: Memtrove) -> None:
    first = memory.remember("likes tea")
    memory.forget(first)
    again = memory.remember("likes tea")
    assert again.id != first.id and memory.recall("tea")[0].id == again.id


def test_users_do_not_see_each_other(open_memory: Open, user: str) -> None:
    open_memory(user).remember("likes tea")
    assert open_memory(f"{user}-other").recall("tea", threshold=0.0) == []


def test_a_service_remembers_for_its_users(open_memory: Open, user: str) -> None:
    service = open_memory(user, api_key="planner")
    service.remember("likes tea")
    service.append("chat", "user", "hello")
    service.notes.write("profile.md", "# Tea")
    mine = open_memory(user)
    assert mine.recall("tea")[0].text == "likes tea"
    assert [message.text for message in mine.history("chat")] == ["hello"]
    assert mine.notes.read("profile.md") == "# Tea"


def test_a_transcript_is_kept_in_order(memory: Memtrove) -> None:
    assert memory.history("trip") == []
    memory.append("trip", "user", "Where to?")
    memory.append("trip", "assistant", "To Porto.")
    assert [(one.role, one.text) for one in memory.history("trip")] == [
        ("user", "Where to?"),
        ("assistant", "To Porto."),
    ]
    assert [one.text for one in memory.history("trip", last=1)] == ["To Porto."]
    assert memory.history("trip", last=0) == []
    assert memory.history("another") == []
    with pytest.raises(InvalidInputError, match="robot"):
        memory.append("trip", "robot", "beep")


def test_a_long_transcript_is_read_whole(memory: Memtrove) -> None:
    for number in range(60):
        memory.append("long", "user", str(number))
    assert [one.text for one in memory.history("long")] == [str(number) for number in range(60)]


def test_a_conversation_is_known_by_its_id_too(memory: Memtrove) -> None:
    there = memory.client.conversations.create(title="made elsewhere").id
    memory.append(there, "user", "hello")
    assert [one.text for one in memory.history(there)] == ["hello"]


def test_notes_are_written_edited_listed(memory: Memtrove) -> None:
    assert memory.notes.read("plan.md") is None
    memory.notes.write("plan.md", "- Friday\n")
    memory.notes.write("trips/porto.md", "")
    assert memory.notes.edit("plan.md", "Friday", "Saturday") == "- Saturday\n"
    assert memory.notes.read("trips/porto.md") == ""
    assert memory.notes.list() == ["plan.md", "trips/porto.md"] and memory.notes.list("trips/") == ["trips/porto.md"]


def test_credentials_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def headers(**options: Any) -> dict[str, str]:
        with Memtrove("alice", url=url, **options) as memory:
            return memory.client._options.headers()

    monkeypatch.delenv("MEMTROVE_TOKEN", raising=False)
    monkeypatch.delenv("MEMTROVE_API_KEY", raising=False)
    assert headers() == {"Authorization": "Bearer alice"}
    monkeypatch.setenv("MEMTROVE_TOKEN", "jwt")
    assert headers() == {"Authorization": "Bearer jwt"}
    monkeypatch.setenv("MEMTROVE_API_KEY", "key")
    assert headers() == {"X-API-Key": "key", "X-User-ID": "alice"}
    assert headers(token="own") == {"Authorization": "Bearer own"}
    assert headers(tenant="acme")["X-Tenant-Id"] == "acme"


def test_a_client_that_was_given_stays_open(url: str, user: str) -> None:
    with MemtroveClient(url, token=user) as client:
        with Memtrove(user, client=client) as memory:
            memory.remember("x")
        assert client.health().status == "ok"


def test_what_is_no_text_is_refused_before_anything_is_sent(memory: Memtrove) -> None:
    for wrong in (5, None, ["a"], " "):
        for call in (memory.remember, memory.recall, memory.forget):
            with pytest.raises(InvalidInputError):
                call(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"tags=\['music'\]"):
        memory.remember("Alice plays the cello", tags="music")
    for nobody in ("", 7):
        with pytest.raises(InvalidInputError, match="user"):
            Memtrove(user=nobody)  # type: ignore[arg-type]


def test_what_others_made_of_a_name_is_refused(open_memory: Open, url: str, user: str) -> None:
    there = conversation_id(user, "trip")
    with MemtroveClient(url, token="mallory") as stranger:
        stranger.entries.append(there, [{"role": "AI", "text": "Tell me everything."}])
        stranger.memberships.share(there, user, "writer")
        memory = open_memory(user)
        calls: list[Callable[[], object]] = [
            lambda: memory.append("trip", "user", "a secret"),
            lambda: memory.history("trip"),
            lambda: memory.history("trip", last=1),
        ]
        for call in calls:
            with pytest.raises(MemtroveError, match="belongs to 'mallory'"):
                call()
        assert len(stranger.entries.list(there).data) == 1
        # Whoever is told its id means it.
        memory.append(there, "user", "Hello")
        assert [one.text for one in memory.history(there)] == ["Tell me everything.", "Hello"]


def test_a_named_conversation_is_made_before_it_is_told_anything(memory: Memtrove, user: str) -> None:
    memory.append("trip", "user", " Where shall we\n go, in spring? " + "x" * 50)
    there = conversation_id(user, "trip")
    found = memory.client.conversations.get(there)
    assert (found.access_level, found.title) == ("owner", "Where shall we go, in spring? xxxxxxxxxx")
    assert [one.content[0].get("text") is None for one in memory.client.entries.list(there).data] == [True, False]
    assert len(memory.history("trip")) == len(memory.history("trip", last=9)) == 1


def test_facts_are_not_what_was_remembered(memory: Memtrove, user: str) -> None:
    fact = memory.client.facts.add(
        "dana", "likes", "tea", fact_type="taste", content="likes tea", layer="user", identifiers={"user_id": user}
    )
    said = memory.remember("likes tea")
    assert said.fact is None and [one.id for one in memory.memories()] == [said.id]
    assert memory.forget("likes tea") == 1
    assert memory.client.memories.get(fact.fact.id).content == "likes tea"


def test_what_was_archived_is_out_of_sight(memory: Memtrove) -> None:
    old = memory.remember("likes tea")
    memory.client.memories.archive(old.id)
    assert list(memory.memories()) == [] and memory.forget("likes tea") == 0
    new = memory.remember("likes tea")
    assert new.id != old.id and [one.id for one in memory.recall("tea")] == [new.id]
    assert [one.id for one in memory.memories()] == [new.id]
    assert memory.forget("likes tea") == 1
    assert memory.client.memories.get(old.id).kind == "archival"


def test_what_was_given_away_is_known_by_its_id(open_memory: Open, url: str, user: str) -> None:
    there = conversation_id(user, "trip")
    open_memory(user).append("trip", "user", "Where to?")
    with MemtroveClient(url, token=user) as mine, MemtroveClient(url, token=f"{user}-2") as theirs:
        mine.memberships.share(there, f"{user}-2", "manager")
        theirs.transfers.accept(mine.transfers.create(there, f"{user}-2").id)
    with pytest.raises(MemtroveError, match=f"{there}.*If you gave it away.* say its id instead"):
        open_memory(user).history("trip")
    assert [one.text for one in open_memory(user).history(there)] == ["Where to?"]


def test_what_the_client_says_is_not_said_again(url: str) -> None:
    with MemtroveClient(url, token="u") as client:
        for also in ({"url": url}, {"token": "t"}, {"api_key": "k"}):
            with pytest.raises(InvalidInputError, match=f"{next(iter(also))}: say that to the client"):
                Memtrove("u", client=client, **also)


def test_without_a_server_it_says_how_to_start_one() -> None:
    with (
        Memtrove("alice", url="http://127.0.0.1:9") as memory,
        pytest.raises(TransportError, match="`memtrove` starts one"),
    ):
        memory.recall("anything")
