from __future__ import annotations

import itertools
import json

from memtrove import MemtroveClient
from memtrove.models import (
    KnowledgeBatchOptions,
    KnowledgeIdentifiers,
    KnowledgeLayer,
    KnowledgeMetadata,
    KnowledgeQueryLayer,
    KnowledgeQueryOptions,
    KnowledgeWriteOptions,
    NewKnowledgeEntry,
)


def test_the_feed_tells_every_change(agent: MemtroveClient, user: str, connect: object) -> None:
    client: MemtroveClient = connect(api_key="webhooks")  # type: ignore[operator]
    before = client.changes.list(after=0, limit=1000)
    seen = before.changes[-1].sequence if before.changes else 0
    while before.next_after is not None:
        before = client.changes.list(after=before.next_after, limit=1000)
        seen = before.changes[-1].sequence if before.changes else seen
    conversation = agent.conversations.create(title="told").id
    memory = agent.memories.add("told", layer="user", identifiers={"user_id": user}).memory
    page = client.changes.list(after=seen)
    told = [(change.kind, change.resource) for change in page.changes]
    assert told == [("conversation.created", conversation), ("memory.created", memory.id)]
    streamed = list(itertools.islice(client.changes.stream(after=seen), 2))
    assert [notice.change for notice in streamed] == page.changes


def test_knowledge_is_written_found_and_streamed(agent: MemtroveClient, user: str) -> None:
    assert agent.knowledge.discover().provider.version
    mine = KnowledgeWriteOptions(layer=KnowledgeLayer(type="user", user_id=user))
    entry = NewKnowledgeEntry(content="The castle opens at nine", metadata=KnowledgeMetadata(tags=["castle"]))
    written = agent.knowledge.create(entry, options=mine).entry
    assert written.etag and agent.knowledge.get(written.id).content == "The castle opens at nine"

    found = agent.knowledge.query(
        "castle opening",
        layer=KnowledgeQueryLayer(user_id=user),
        options=KnowledgeQueryOptions(limit=3, distance_threshold=1.0),
    )
    assert [result.entry.id for result in found.results] == [written.id]

    changed = agent.knowledge.replace(written.id, NewKnowledgeEntry(content="It opens at ten"), if_match=written.etag)
    assert changed.entry.content == "It opens at ten" and changed.entry.version == 2
    history = agent.knowledge.metadata(written.id, include_custom=True)
    assert [version.version for version in history.version_history][-1] == 2

    events = list(
        agent.knowledge.stream(
            type="query",
            query=json.dumps({"query": "opens", "options": {"distance_threshold": 1.0}}),
            identifiers=KnowledgeIdentifiers(user_id=user),
        )
    )
    assert [event.event for event in events if event.event == "result"] == ["result"]

    live = agent.knowledge.stream(identifiers=KnowledgeIdentifiers(user_id=user))
    assert next(live).event == "ready"
    batch = agent.knowledge.batch(
        "create",
        [{"entry": {"content": "second"}, "options": mine.to_wire()}],
        options=KnowledgeBatchOptions(continue_on_error=True),
    )
    assert (batch.results.succeeded, batch.results.failed) == (1, 0)
    assert next(live).event == "created"
    live.close()
    assert agent.knowledge.delete(written.id, hard_delete=True).deleted
