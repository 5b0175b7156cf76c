from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest

from memtrove import (
    UNSET,
    ApiError,
    InvalidInputError,
    MemoryFilter,
    MemoryMetadata,
    MemtroveClient,
    NewMemory,
)
from memtrove.models import FactStatement, MemoryAccessPolicy, MemoryIdentifiers, MemorySource, MemoryTimeRange


def test_what_is_added_is_found_changed_and_forgotten(alice: MemtroveClient, user: str) -> None:
    me = {"user_id": user}
    added = alice.memories.add("prefers window seats", layer="user", identifiers=me, metadata={"tags": ["seats"]})
    assert added.embedding_generated
    memory = added.memory
    assert (memory.content, memory.layer, memory.kind, memory.version) == (
        "prefers window seats",
        "user",
        "user_personal",
        1,
    )
    assert memory.identifiers == MemoryIdentifiers(user_id=user)
    assert memory.created_at.tzinfo is not None and abs(memory.created_at - datetime.now(timezone.utc)) < timedelta(
        hours=1
    )

    found = alice.memories.search("where does she like to sit?", identifiers=me, threshold=0.0, explain=True)
    assert [hit.memory.id for hit in found.results] == [memory.id]
    assert found.searched_layers == ["user"] and found.results[0].explanation is not None

    updated = alice.memories.update(memory.id, content="prefers aisle seats", metadata={"mood": "firm"}, version=1)
    assert updated.embedding_regenerated and updated.memory.version == 2
    assert updated.memory.metadata.extra == {"mood": "firm"} and updated.memory.metadata.tags == ["seats"]
    assert alice.memories.get(memory.id).content == "prefers aisle seats"

    assert alice.memories.delete(memory.id)
    assert not alice.memories.delete(memory.id)
    with pytest.raises(ApiError) as gone:
        alice.memories.get(memory.id)
    assert gone.value.is_not_found and gone.value.code == "MEMORY_NOT_FOUND" and gone.value.request_id


def test_a_memory_carries_the_etag_it_came_with(alice: MemtroveClient, user: str) -> None:
    memory = alice.memories.add("tea", layer="user", identifiers={"user_id": user}).memory
    first = memory.etag
    assert first and alice.memories.get(memory.id).etag == first
    assert alice.memories.get_if_changed(memory.id, first) is None
    second = alice.memories.update(memory.id, content="coffee", if_match=first).memory.etag
    assert second and second != first
    changed = alice.memories.get_if_changed(memory.id, first)
    assert changed is not None and changed.content == "coffee" and changed.etag == second
    with pytest.raises(ApiError) as late:
        alice.memories.update(memory.id, content="water", if_match=first)
    assert late.value.is_conflict and late.value.latest_etag == second
    with pytest.raises(ApiError) as late:
        alice.memories.delete(memory.id, if_match=first)
    assert late.value.is_conflict


def test_metadata_of_both_kinds_comes_back(alice: MemtroveClient, user: str) -> None:
    metadata = MemoryMetadata(
        tags=["a"],
        importance=0.9,
        conflict_key="k",
        source=MemorySource(type="manual"),
        extra={"camelKey": {"x": None}},
    )
    memory = alice.memories.add("x", layer="user", identifiers={"user_id": user}, metadata=metadata).memory
    assert memory.metadata == metadata
    plain = alice.memories.add("y", layer="user", identifiers={"user_id": user}, metadata={"snake_key": 1}).memory
    assert plain.metadata.extra == {"snake_key": 1}
    removed = alice.memories.update(plain.id, metadata={"snake_key": None, "other": 2}).memory
    assert removed.metadata.extra == {"other": 2}


def test_a_time_to_live_can_be_given_and_taken_away(alice: MemtroveClient, user: str) -> None:
    memory = alice.memories.add("soon gone", layer="user", identifiers={"user_id": user}, ttl_seconds=3600).memory
    assert memory.ttl_seconds == 3600 and memory.expires_at is not None
    kept = alice.memories.update(memory.id, ttl_seconds=None).memory
    assert kept.expires_at is None
    assert alice.memories.update(memory.id, content="z", ttl_seconds=UNSET).memory.expires_at is None
    with pytest.raises(InvalidInputError):
        alice.memories.update(memory.id)


def test_a_memory_of_the_year_0_keeps_no_other_from_being_read(alice: MemtroveClient, user: str) -> None:
    me = {"user_id": user}
    alice.memories.add("the beginning", layer="user", identifiers=me, occurred_at=cast(Any, "0000-01-01T00:00:00Z"))
    alice.memories.add("today", layer="user", identifiers=me)
    newest, oldest = alice.memories.list_all(layer="user", identifiers=me)
    assert (newest.content, oldest.content) == ("today", "the beginning")
    assert oldest.occurred_at == datetime.min.replace(tzinfo=timezone.utc)


def test_lists_filter_and_turn_pages(alice: MemtroveClient, user: str) -> None:
    me = {"user_id": user}
    many = [
        NewMemory(content=f"note {n}", layer="user", identifiers=MemoryIdentifiers(user_id=user), metadata={"n": n})
        for n in range(5)
    ]
    added = alice.memories.bulk_add(many)
    assert added.added == 5 and [result.index for result in added.results] == [0, 1, 2, 3, 4]
    page = alice.memories.list(layer="user", identifiers=me, limit=2)
    assert page.total_count == 5 and len(page.memories) == 2 and page.next_cursor
    rest = alice.memories.list(layer="user", identifiers=me, limit=3, cursor=page.next_cursor)
    assert rest.next_cursor is None
    contents = [memory.content for memory in page.memories + rest.memories]
    assert sorted(contents) == [f"note {n}" for n in range(5)]
    large = alice.memories.filter(layer="user", identifiers=me, filter=MemoryFilter(custom={"n": {"$gte": 3}}))
    assert sorted(memory.content for memory in large.memories) == ["note 3", "note 4"]
    assert len(list(alice.memories.list_all(layer="user", identifiers=me))) == 5
    deleted = alice.memories.bulk_delete([page.memories[0].id, "00000000-0000-7000-8000-000000000000"])
    assert deleted.deleted == 1 and deleted.failed == ["00000000-0000-7000-8000-000000000000"]


def test_lists_take_tags_kinds_times_and_states(alice: MemtroveClient, user: str) -> None:
    me = {"user_id": user}
    long_ago = datetime(2020, 5, 1, tzinfo=timezone.utc)
    alice.memories.add(
        "then", layer="user", identifiers=me, kind="episodic", occurred_at=long_ago, metadata={"tags": ["x"]}
    )
    alice.memories.add("now", layer="user", identifiers=me, metadata={"tags": ["y", "z"]})
    listed = alice.memories.list(layer="user", identifiers=me, tags=["z", "nothing"])
    assert [memory.content for memory in listed.memories] == ["now"]
    listed = alice.memories.list(layer="user", identifiers=me, kinds=["episodic"], state="active")
    assert [memory.occurred_at for memory in listed.memories] == [long_ago]
    listed = alice.memories.list(layer="user", identifiers=me, to=long_ago, include_embedding=True)
    assert [memory.content for memory in listed.memories] == ["then"] and listed.memories[0].embedding
    searched = alice.memories.search(
        "then", identifiers=me, threshold=0.0, time_range=MemoryTimeRange(from_=long_ago, to=long_ago)
    )
    assert [hit.memory.content for hit in searched.results] == ["then"]


def test_a_failed_item_of_many_says_why(alice: MemtroveClient, user: str) -> None:
    me = MemoryIdentifiers(user_id=user)
    items = [
        NewMemory(content="good", layer="user", identifiers=me),
        NewMemory(content=" ", layer="user", identifiers=me),
    ]
    added = alice.memories.bulk_add(items)
    assert (added.added, added.failed) == (1, 1)
    assert added.results[1].memory is None and added.results[1].error is not None
    with pytest.raises(ApiError) as refused:
        alice.memories.bulk_add(items, atomic=True)
    assert refused.value.status == 400


def test_memories_are_archived_restored_promoted(alice: MemtroveClient, user: str) -> None:
    there = {"user_id": user, "session_id": "s1"}
    memory = alice.memories.add("wants a quiet room", layer="session", identifiers=there).memory
    promoted = alice.memories.promote(memory.id, "user")
    assert promoted.memory.layer == "user" and not promoted.deduplicated
    assert promoted.memory.lineage is not None and promoted.memory.lineage.promoted_from == memory.id
    archived = alice.memories.archive(promoted.memory.id)
    assert archived.state == "archived" and archived.kind == "archival" and archived.origin_kind == "user_personal"
    restored = alice.memories.restore(promoted.memory.id, if_match=archived.etag)
    assert restored.state == "active"


def test_sessions_end(alice: MemtroveClient, user: str) -> None:
    there = {"user_id": user, "session_id": "s2"}
    alice.memories.add("important", layer="session", identifiers=there, metadata={"importance": 0.95})
    alice.memories.add("small talk", layer="session", identifiers=there, metadata={"importance": 0.1})
    ended = alice.sessions.end(identifiers=there, auto_delete=True, retention_period="0s")
    assert ended.evaluated == 2 and len(ended.promoted) == 1 and ended.promoted[0].from_
    assert alice.memories.list(layer="session", identifiers=there).total_count == 0


def test_working_memory_is_cleared(alice: MemtroveClient, user: str) -> None:
    me = {"user_id": user}
    alice.memories.add("scratch", layer="user", identifiers=me, kind="working")
    assert alice.memories.clear(layer="user", identifiers=me) == 1


def test_memories_fade_and_are_merged(alice: MemtroveClient, user: str) -> None:
    me = {"user_id": user}
    alice.memories.add("likes jazz", layer="user", identifiers=me)
    alice.memories.add("Likes jazz.", layer="user", identifiers=me)
    later = datetime.now(timezone.utc) + timedelta(days=400)
    faded = alice.memories.decay(identifiers=me, as_of=later, dry_run=True, rate_per_day=0.05)
    assert faded.processed == 2 and faded.dry_run and faded.entries[0].state == "archived"
    merged = alice.memories.consolidate(layer="user", identifiers=me)
    assert merged.merged == 1 and len(merged.groups[0].absorbed_ids) == 1


def test_facts_can_be_added_as_memories_and_policies_given(agent: MemtroveClient, user: str) -> None:
    memory = agent.memories.add(
        layer="project",
        identifiers={"project_id": f"p-{user}", "user_id": user},
        kind="procedural",
        fact=FactStatement(fact_type="rule", subject="build", predicate="uses", object="make"),
        access_policy=MemoryAccessPolicy(policy="shared"),
    ).memory
    assert memory.content == "build uses make" and memory.fact is not None and memory.fact.object == "make"
    assert memory.access_policy.policy == "shared"


def test_a_repeated_key_gives_the_first_answer(alice: MemtroveClient, user: str) -> None:
    first, again = (
        alice.memories.add("once", layer="user", identifiers={"user_id": user}, idempotency_key="k1", retry=True)
        for _ in range(2)
    )
    assert first.memory.id == again.memory.id
    assert alice.memories.list(layer="user", identifiers={"user_id": user}).total_count == 1


def test_a_misspelt_identifier_is_refused_before_it_opens_another_scope(alice: MemtroveClient) -> None:
    with pytest.raises(InvalidInputError, match="userId"):
        alice.memories.add("x", layer="user", identifiers={"userId": "u"})


def test_the_server_says_what_it_can(alice: MemtroveClient) -> None:
    capabilities = alice.memories.capabilities()
    assert [layer.name for layer in capabilities.layers][:2] == ["agent", "user"]
    assert alice.memories.health().status
    assert alice.health().status == "ok" and alice.ready().status == "ok"
    status = alice.status()
    assert (status.service, status.status, status.openapi) == ("memtrove", "ok", "/openapi.json") and status.version
