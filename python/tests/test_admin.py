from __future__ import annotations

import time
import uuid

import pytest

from memtrove import ApiError, MemtroveClient


def test_admins_see_delete_and_restore_conversations(alice: MemtroveClient, admin: MemtroveClient, user: str) -> None:
    there = str(uuid.uuid4())
    entry = alice.entries.append(there, [{"role": "USER", "text": f"about the walrus of {user}"}])
    page = admin.admin.list_conversations(user_id=user, mode="all", justification="a test")
    assert [one.id for one in page.data] == [there]
    assert admin.admin.get_conversation(there).owner_user_id == user
    assert [one.id for one in admin.admin.list_entries(there, channel="history", limit=10).data] == [entry.id]
    assert admin.admin.list_forks(there).data is not None
    assert [one.user_id for one in admin.admin.list_memberships(there).data] == [user]
    found = admin.admin.search_conversations("walrus", user_id=user, include_entry=True)
    assert [one.entry_id for one in found.data] == [entry.id]

    admin.admin.delete_conversation(there, justification="a test")
    deleted = admin.admin.list_conversations(user_id=user, only_deleted=True).data
    assert [one.id for one in deleted] == [there] and deleted[0].deleted_at is not None
    assert admin.admin.restore_conversation(there).deleted_at is None
    assert alice.conversations.get(there).id == there


def test_what_was_deleted_is_evicted(alice: MemtroveClient, admin: MemtroveClient) -> None:
    def is_there(conversation: str) -> bool:
        try:
            return bool(admin.admin.get_conversation(conversation))
        except ApiError as error:
            assert error.is_not_found
            return False

    first, second = alice.conversations.create().id, alice.conversations.create().id
    alice.conversations.delete(first)
    # A period is at least a second, so it may take a second try.
    deadline = time.monotonic() + 60
    while is_there(first):
        assert time.monotonic() < deadline
        admin.admin.evict(retention_period="PT1S", resource_types=["conversations"], justification="a test")
        time.sleep(0.3)
    alice.conversations.delete(second)
    while is_there(second):
        assert time.monotonic() < deadline
        progress = list(admin.admin.evict_with_progress(retention_period="PT1S", resource_types=["conversations"]))
        assert progress[-1].percent == 100
        time.sleep(0.3)


def test_admins_ask_for_figures_and_jobs(admin: MemtroveClient) -> None:
    assert admin.admin.stats_summary().conversations.total >= 0
    job = admin.admin.reindex(justification="a test")
    assert admin.admin.job(job.job_id).status in ("queued", "running", "succeeded")
    # Without a Prometheus there are no figures over time; the server says so.
    with pytest.raises(ApiError) as missing:
        admin.admin.stats("request-rate", step="60s")
    assert missing.value.status in (501, 503)


def test_others_may_not(alice: MemtroveClient) -> None:
    with pytest.raises(ApiError) as refused:
        alice.admin.stats_summary()
    assert refused.value.status == 403 and refused.value.code == "forbidden"
