from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone

import pytest

from conftest import Connect
from memtrove import (
    CREATE_NEW,
    ApiError,
    Envelope,
    EventDigest,
    FilePatch,
    FileWrite,
    InvalidInputError,
    MemtroveClient,
    PatchOp,
    Scope,
    TextEdit,
)
from memtrove.models import StoredFile


def note(text: str, **extra: object) -> Envelope:
    return Envelope(doc_id="n", schema_id="note", schema_version="1", content={"text": text}, extra=dict(extra))


def test_a_file_is_written_read_patched_moved_and_deleted(agent: MemtroveClient, scope: Scope) -> None:
    path = "trips/Porto und Köln 100%.md"
    written = agent.files.write(scope, path, FileWrite(note("- Friday", mine=[1]), reason="first"), if_match=CREATE_NEW)
    assert written.document.extra == {"mine": [1]} and written.document.updated_by == "planner"
    read = agent.files.get(scope, path)
    assert read == written
    assert agent.files.get_if_changed(scope, path, read.etag) is None

    patch = FilePatch(
        ops=[
            PatchOp.add("/content/tags", ["x"]),
            PatchOp.test("/content/tags/0", "x"),
            PatchOp.add("/content/none", None),
        ],
        edits=[TextEdit(old_text="Friday", new_text="Saturday")],
        reason="later",
        evidence={"m": 1},
    )
    patched = agent.files.patch(scope, path, patch, if_match=read.etag, service_id="other")
    assert patched.document.content == {"text": "- Saturday", "tags": ["x"], "none": None}
    assert patched.document.updated_by == "other"
    with pytest.raises(ApiError) as late:
        agent.files.patch(scope, path, patch, if_match=read.etag)
    assert late.value.is_conflict and late.value.latest_etag == patched.etag

    moved = agent.files.move(scope, path, "porto.md", if_match=patched.etag, reason="tidy")
    assert moved.path == "porto.md" and moved.document.content == patched.document.content
    deleted = agent.files.delete(scope, "porto.md", if_match=moved.etag)
    assert deleted.deleted and deleted.etag == moved.etag
    with pytest.raises(ApiError) as gone:
        agent.files.get(scope, "porto.md")
    assert gone.value.is_not_found and gone.value.code == "DOCUMENT_NOT_FOUND" and not gone.value.is_conflict


def test_files_are_listed_page_by_page(agent: MemtroveClient, scope: Scope) -> None:
    for name in ("a/1", "a/2", "a/3", "b/1"):
        agent.files.write(scope, name, note(name), if_match=CREATE_NEW)
    first = agent.files.list(scope, prefix="a/", limit=2)
    assert [entry.path for entry in first.files] == ["a/1", "a/2"] and first.next_after
    assert [entry.path for entry in agent.files.list(scope, prefix="a/", after=first.next_after).files] == ["a/3"]
    assert [entry.path for entry in agent.files.list_all(scope)] == ["a/1", "a/2", "a/3", "b/1"]


def test_a_context_has_files_and_memories(agent: MemtroveClient, scope: Scope) -> None:
    agent.files.write(scope, "profile.md", note("# Dana"), if_match=CREATE_NEW)
    agent.files.write(scope, "long.md", note("x" * 1000), if_match=CREATE_NEW)
    agent.memories.add("likes night trains", layer="user", identifiers={"user_id": scope.user_id})
    found = agent.files.assemble(
        scope,
        ["profile.md", "long.md", "none.md"],
        max_docs=4,
        max_chars_total=900,
        memories={"query": "trains", "threshold": 0.0},
    )
    assert [one.path for one in found.files] == ["profile.md"] and found.files[0].etag
    assert [(one.path, one.reason) for one in found.dropped_files] == [("long.md", "max_chars_total")]
    assert found.memories is not None and found.memories[0].memory.content == "likes night trains"


def test_update_with_retry_loses_no_update_of_many(
    agent: MemtroveClient, connect: Connect, scope: Scope, half: str
) -> None:
    agent.files.write(scope, "counter.md", note("0"), if_match=CREATE_NEW)
    rivals = 6

    def change(current: StoredFile) -> FileWrite:
        return FileWrite(note(str(int(current.document.content["text"]) + 1)))

    async def achange(current: StoredFile) -> FileWrite:
        return change(current)

    if half == "async":
        # Asynchronous rivals run side by side in one loop.
        import asyncio

        async def race() -> None:
            files = agent.files._inner  # type: ignore[attr-defined]
            await asyncio.gather(
                *(files.update_with_retry(scope, "counter.md", achange, max_conflict_retries=50) for _ in range(rivals))
            )

        agent._loop.run_until_complete(race())  # type: ignore[attr-defined]
    else:
        threads = [
            threading.Thread(
                target=agent.files.update_with_retry,
                args=(scope, "counter.md", change),
                kwargs={"max_conflict_retries": 50},
            )
            for _ in range(rivals)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert agent.files.get(scope, "counter.md").document.content["text"] == str(rivals)


def test_update_with_retry_gives_up_and_says_so(connect: Connect, url: str, half: str, scope: Scope) -> None:
    agent = connect(api_key="planner")
    agent.files.write(scope, "busy.md", note("0"), if_match=CREATE_NEW)
    calls = 0
    with MemtroveClient(url, api_key="rival") as rival:

        def change(current: StoredFile) -> FilePatch:
            nonlocal calls
            calls += 1
            rival.files.write(scope, "busy.md", note(f"rival {calls}"), if_match=current.etag)
            return FilePatch(ops=[PatchOp.add("/content/x", calls)])

        async def achange(current: StoredFile) -> FilePatch:
            return change(current)

        update = change if half == "sync" else achange
        with pytest.raises(ApiError) as lost:
            agent.files.update_with_retry(scope, "busy.md", update, max_conflict_retries=2)  # type: ignore[arg-type]
        assert lost.value.is_conflict and calls == 3
        with pytest.raises(ApiError) as missing:
            agent.files.update_with_retry(scope, "none.md", update)  # type: ignore[arg-type]
        assert missing.value.is_not_found and calls == 3


@pytest.mark.parametrize("path", ["", "/", "a//b", "../up", "a/./b", "a..b", "x\ny", "a%2Fb", "x" * 256])
def test_bad_paths_are_refused_before_they_are_sent(path: str, connect: Connect, scope: Scope) -> None:
    sent: list[object] = []
    client = connect(api_key="k", on_request=sent.append)
    with pytest.raises(InvalidInputError):
        client.files.get(scope, path)
    assert sent == []


def test_an_id_of_dots_stays_an_id(connect: Connect) -> None:
    sent: list[str] = []
    client = connect(api_key="k", on_request=lambda request: sent.append(request.url.raw_path.decode()))
    with pytest.raises(ApiError):
        client.files.get(Scope("..", "a/b"), "x.md")
    assert sent == ["/v1/tenants/%2E%2E/users/a%2Fb/files/x.md"]


def test_events_are_written_and_found(agent: MemtroveClient, scope: Scope) -> None:
    when = datetime(2026, 1, 30, 18, 0, tzinfo=timezone.utc)
    # A time belongs to whoever wrote it, with its zone and however fine it is.
    as_written = "2026-01-30T19:00:00.000000001+01:00"
    event = EventDigest(
        event_id="e1",
        tenant_id=scope.tenant_id,
        user_id=scope.user_id,
        timestamp=as_written,
        source_type="chat",
        digest="Dana booked the night train to Porto.",
        keywords=["train"],
        project_ids=["porto"],
        evidence={"messages": ["m1"]},
        extra={"snapshot_uri": "s://1"},
    )
    agent.events.write(scope, event, service_id="bookings", idempotency_key="e1", retry=True)
    found = agent.events.search(
        scope,
        "night train",
        project_id="porto",
        source_type="chat",
        from_=when,
        to=when + timedelta(seconds=1),
        top_k=3,
    )
    assert [one.event_id for one in found] == ["e1"]
    assert (
        found[0].timestamp == as_written
        and found[0].service_id == "bookings"
        and found[0].extra["snapshot_uri"] == "s://1"
    )
    assert agent.events.search(scope, "night train", service_id="nobody") == []
    assert [one.event_id for one in agent.events.search(scope)] == ["e1"]
    job = agent.events.reindex(scope)
    assert agent.admin.job(job.job_id).kind == "events_reindex"


def test_the_trail_proves_versions(agent: MemtroveClient, scope: Scope) -> None:
    first = agent.files.write(scope, "p.md", note("one"), if_match=CREATE_NEW)
    agent.files.patch(
        scope, "p.md", FilePatch(edits=[TextEdit(old_text="one", new_text="two")], reason="why"), if_match=first.etag
    )
    page = agent.audit.list(scope, path="p.md", limit=1)
    assert page.records[0].action == "create" and page.next_after is not None
    records = list(agent.audit.list_all(scope))
    assert [record.action for record in records] == ["create", "patch"] and records[1].reason == "why"
    assert agent.audit.get(scope, records[1].change_id) == records[1]
    old = agent.audit.reconstruct(scope, "p.md", change_id=records[0].change_id)
    assert old.document == first.document and old.etag == first.etag
    now = agent.audit.reconstruct(scope, "p.md", as_of=datetime.now(timezone.utc) + timedelta(hours=1))
    assert now.document.content == {"text": "two"}


def test_old_things_go_and_users_are_forgotten(
    agent: MemtroveClient, admin: MemtroveClient, scope: Scope, connect: Connect
) -> None:
    agent.files.write(scope, "p.md", note("one"), if_match=CREATE_NEW)
    later = datetime.now(timezone.utc) + timedelta(days=3)
    report = agent.lifecycle.apply_retention(scope, events_days=1, audit_days=1, snapshots_days=1)
    assert (report.audit_deleted, report.adjusted) == (0, ["audit_days"])
    with pytest.raises(ApiError, match="as_of_utc"):
        agent.lifecycle.apply_retention(scope, events_days=1, audit_days=1, snapshots_days=1, as_of=later)
    report = admin.lifecycle.apply_retention(
        scope, events_days=1, audit_days=1, snapshots_days=1, as_of=later, justification="ticket 4711"
    )
    assert (report.audit_deleted, report.adjusted) == (1, None)
    [left] = agent.audit.list(scope).records
    assert (left.action, left.count, left.justification) == ("audit_truncated", 1, "ticket 4711")
    forgotten = agent.lifecycle.forget_user(scope)
    assert forgotten.documents_deleted == 1
    other = f"someone/{scope.user_id}"
    agent = connect(api_key="planner", user_id=other)
    agent.memories.add("x", layer="user", identifiers={"user_id": other})
    assert agent.lifecycle.forget_user_by_id(other).memories.deleted == 1
