from __future__ import annotations

import subprocess
import uuid

import pytest

from conftest import Connect
from memtrove import ApiError, IndexedText, MemtroveClient


def said(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "text": text}]


def test_conversations_are_made_renamed_listed_deleted(alice: MemtroveClient, user: str) -> None:
    made = alice.conversations.create(title="Trip", metadata={"city": "Lisbon"})
    assert made.owner_user_id == user and made.access_level == "owner"
    read = alice.conversations.get(made.id)
    assert read.title == "Trip" and read.metadata == {"city": "Lisbon"}
    assert alice.conversations.update(made.id, title="Porto").title == "Porto"
    alice.conversations.create(title="Other")
    page = alice.conversations.list(limit=1, mode="all")
    assert len(page.data) == 1 and page.after_cursor
    assert {one.title for one in alice.conversations.list_all()} == {"Porto", "Other"}
    alice.conversations.delete(made.id)
    with pytest.raises(ApiError) as gone:
        alice.conversations.get(made.id)
    assert gone.value.is_not_found and gone.value.code == "not_found" and made.id in gone.value.message


def test_entries_are_appended_and_read_in_order(alice: MemtroveClient) -> None:
    there = str(uuid.uuid4())
    entries = [alice.entries.append(there, said("USER", f"line {n}")) for n in range(5)]
    assert [entry.channel for entry in entries] == ["history"] * 5
    first = alice.entries.list(there, limit=2)
    assert [entry.id for entry in first.data] == [entry.id for entry in entries[:2]]
    behind = alice.entries.list(there, limit=2, after=first.after_cursor)
    assert [entry.id for entry in behind.data] == [entry.id for entry in entries[2:4]]
    newest = alice.entries.list(there, tail=True, limit=1)
    assert newest.data[0].content == said("USER", "line 4")
    assert alice.entries.list(there, up_to_entry_id=entries[1].id).data[-1].id == entries[1].id
    assert [entry.id for entry in alice.entries.list_all(there)] == [entry.id for entry in entries]


def test_a_retried_append_is_one_entry(alice: MemtroveClient) -> None:
    there = str(uuid.uuid4())
    first, again = (
        alice.entries.append(there, said("USER", "hello"), idempotency_key="turn-1", retry=True) for _ in range(2)
    )
    assert first.id == again.id


def test_forks_see_what_was_before(alice: MemtroveClient) -> None:
    there = str(uuid.uuid4())
    alice.entries.append(there, said("USER", "one"))
    second = alice.entries.append(there, said("AI", "two"))
    fork = alice.conversations.fork(there, second.id, title="another way")
    assert fork.forked_at_conversation_id == there and fork.title == "another way"
    alice.entries.append(fork.id, said("AI", "zwei"))
    texts = [entry.content[0]["text"] for entry in alice.entries.list_all(fork.id)]
    assert texts == ["one", "zwei"]
    assert {one.conversation_id for one in alice.conversations.forks(there).data} >= {fork.id}


def test_agents_sync_their_memory(agent: MemtroveClient) -> None:
    there = agent.conversations.create(title="sync").id
    first = agent.entries.sync(there, [{"m": 1}], content_type="agent/v1")
    assert not first.no_op and first.entry is not None and first.epoch == 1
    same = agent.entries.sync(there, [{"m": 1}], content_type="agent/v1")
    assert same.no_op and same.entry is None
    other = agent.entries.sync(there, [{"x": 9}], content_type="agent/v1")
    assert other.epoch_incremented and other.epoch == 2
    latest = agent.entries.list(there, channel="memory", epoch="latest")
    assert [entry.content for entry in latest.data] == [[{"x": 9}]]


def test_a_violation_names_the_field(alice: MemtroveClient) -> None:
    with pytest.raises(ApiError) as refused:
        alice.conversations.create(title="x" * 1000)
    assert refused.value.status == 400 and refused.value.code == "validation_error"
    assert "title" in refused.value.message and refused.value.details["violations"]


def test_conversations_are_searched(alice: MemtroveClient) -> None:
    there = str(uuid.uuid4())
    alice.entries.append(there, said("USER", "The tram to Belém leaves at nine"))
    found = alice.conversations.search("tram belém", limit=5, include_entry=True, explain=True)
    assert found.data[0].conversation_id == there
    assert found.data[0].entry is not None and found.data[0].explanation is not None


def test_indexers_say_what_entries_are_found_by(admin: MemtroveClient, alice: MemtroveClient) -> None:
    there = str(uuid.uuid4())
    entry = alice.entries.append(there, [{"role": "USER", "text": "", "events": [{"kind": "click"}]}])
    every = list[str]()
    after = None
    while True:
        page = admin.conversations.unindexed(after=after, limit=100)
        every += [one.entry.id for one in page.data]
        after = page.after_cursor
        if after is None:
            break
    assert entry.id in every
    assert admin.conversations.index([IndexedText(there, entry.id, "clicked the zebra button")]) == 1
    assert alice.conversations.search("zebra").data[0].entry_id == entry.id


def test_conversations_are_shared_and_handed_over(alice: MemtroveClient, connect: Connect, user: str) -> None:
    friend = f"friend-{user}"
    bob = connect(token=friend)
    there = alice.conversations.create(title="ours").id
    assert alice.memberships.share(there, friend, "reader").access_level == "reader"
    assert alice.memberships.update(there, friend, "writer").access_level == "writer"
    assert {one.user_id for one in alice.memberships.list(there).data} == {user, friend}
    offer = alice.transfers.create(there, friend)
    with pytest.raises(ApiError) as twice:
        alice.transfers.create(there, friend)
    assert twice.value.details["existingTransferId"] == offer.id
    alice.transfers.delete(offer.id)
    offer = alice.transfers.create(there, friend)
    assert bob.transfers.get(offer.id).conversation_title == "ours"
    assert [one.id for one in bob.transfers.list(role="recipient").data] == [offer.id]
    bob.transfers.accept(offer.id)
    assert bob.conversations.get(there).owner_user_id == friend
    bob.memberships.delete(there, user)
    with pytest.raises(ApiError):
        alice.conversations.get(there)


def record(url: str, user: str, conversation: str, content: str) -> None:
    """Mirrors an answer to the server, as an agent does over gRPC."""
    data = content.encode()
    message = b"\x0a\x10" + uuid.UUID(conversation).bytes + b"\x12" + bytes([len(data)]) + data + b"\x18\x01"
    framed = b"\0" + len(message).to_bytes(4, "big") + message
    headers = [f"Authorization: Bearer {user}", "Content-Type: application/grpc", "TE: trailers"]
    command = ["curl", "-sS", "--fail", "--http2-prior-knowledge", "-o", "/dev/null", "--data-binary", "@-"]
    command += [part for header in headers for part in ("-H", header)]
    command.append(f"{url}/memory.v1.ResponseRecorderService/Record")
    subprocess.run(command, input=framed, check=True, timeout=60)


def test_an_answer_is_replayed(alice: MemtroveClient, url: str, user: str) -> None:
    there = alice.conversations.create(title="live").id
    assert list(alice.conversations.replay(there)) == []
    record(url, user, there, "Take tram 28. ✓")
    events = list(alice.conversations.replay(there))
    assert "".join(event.content for event in events) == "Take tram 28. ✓"
    assert (events[-1].event, events[-1].status) == ("end", "success")
    assert list(alice.conversations.replay(there, last_event_id=events[-1].id)) == []
    alice.conversations.cancel_response(there)
