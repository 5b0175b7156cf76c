"""For admins and auditors: conversations of everybody, attachments, jobs, figures."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

from memtrove._async.attachments import download
from memtrove._async.group import AsyncGroup
from memtrove._wire import body, decode
from memtrove.content import Content
from memtrove.errors import MemtroveError
from memtrove.models import (
    AdminAttachment,
    AdminAttachmentPage,
    AdminConversation,
    AdminConversationPage,
    AdminEntryPage,
    AdminSearchPage,
    AttachmentFilter,
    ChannelFilter,
    DownloadUrl,
    ForkPage,
    Forks,
    Job,
    JobStarted,
    ListMode,
    MembershipPage,
    SearchType,
    SearchWeights,
    StatsResponse,
    StatsSummary,
)
from memtrove.replay import Progress, data


class AsyncAdmin(AsyncGroup):
    """Calls that need a role. Every one is in the audit log, with its `justification` where one is given."""

    async def list_conversations(
        self,
        *,
        mode: ListMode | None = None,
        user_id: str | None = None,
        include_deleted: bool | None = None,
        only_deleted: bool | None = None,
        deleted_after: datetime | None = None,
        deleted_before: datetime | None = None,
        after: str | None = None,
        limit: int | None = None,
        justification: str | None = None,
    ) -> AdminConversationPage:
        """A page of conversations of everybody, or of one user."""
        query = {
            "mode": mode,
            "userId": user_id,
            "includeDeleted": include_deleted,
            "onlyDeleted": only_deleted,
            "deletedAfter": deleted_after,
            "deletedBefore": deleted_before,
            "afterCursor": after,
            "limit": limit,
        }
        return await self._transport.model(
            "admin_list_conversations", AdminConversationPage, query=query, headers=_why(justification)
        )

    async def get_conversation(self, conversation_id: str, *, justification: str | None = None) -> AdminConversation:
        """One conversation, also one that was deleted."""
        return await self._transport.model(
            "admin_get_conversation",
            AdminConversation,
            path={"conversationId": conversation_id},
            headers=_why(justification),
        )

    async def delete_conversation(self, conversation_id: str, *, justification: str | None = None) -> None:
        """Deletes a tree of conversations."""
        await self._transport.call(
            "admin_delete_conversation", path={"conversationId": conversation_id}, headers=_why(justification)
        )

    async def restore_conversation(
        self, conversation_id: str, *, justification: str | None = None
    ) -> AdminConversation:
        """Brings a deleted tree back."""
        return await self._transport.model(
            "restore_conversation",
            AdminConversation,
            path={"conversationId": conversation_id},
            headers=_why(justification),
        )

    async def list_entries(
        self,
        conversation_id: str,
        *,
        channel: ChannelFilter | None = None,
        epoch: str | int | None = None,
        after: str | None = None,
        limit: int | None = None,
        forks: Forks | None = None,
        justification: str | None = None,
    ) -> AdminEntryPage:
        """A page of entries of any conversation, with who wrote them."""
        query = {"channel": channel, "epoch": epoch, "afterCursor": after, "limit": limit, "forks": forks}
        return await self._transport.model(
            "admin_list_entries",
            AdminEntryPage,
            path={"conversationId": conversation_id},
            query=query,
            headers=_why(justification),
        )

    async def list_forks(
        self,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        justification: str | None = None,
    ) -> ForkPage:
        """A page of forks of any conversation."""
        return await self._transport.model(
            "admin_list_forks",
            ForkPage,
            path={"conversationId": conversation_id},
            query={"afterCursor": after, "limit": limit},
            headers=_why(justification),
        )

    async def list_memberships(
        self,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        justification: str | None = None,
    ) -> MembershipPage:
        """A page of members of any conversation."""
        return await self._transport.model(
            "admin_list_memberships",
            MembershipPage,
            path={"conversationId": conversation_id},
            query={"afterCursor": after, "limit": limit},
            headers=_why(justification),
        )

    async def search_conversations(
        self,
        query: str,
        *,
        search_type: SearchType | None = None,
        after: str | None = None,
        limit: int | None = None,
        include_entry: bool | None = None,
        group_by_conversation: bool | None = None,
        explain: bool | None = None,
        actor: bool | None = None,
        weights: SearchWeights | None = None,
        user_id: str | None = None,
        include_deleted: bool | None = None,
        justification: str | None = None,
    ) -> AdminSearchPage:
        """Entries of everybody, or of one user, the best first."""
        wire = body(
            query=query,
            searchType=search_type,
            afterCursor=after,
            limit=limit,
            includeEntry=include_entry,
            groupByConversation=group_by_conversation,
            explain=explain,
            actor=actor,
            weights=weights,
            userId=user_id,
            includeDeleted=include_deleted,
        )
        return await self._transport.model(
            "admin_search_conversations", AdminSearchPage, body=wire, headers=_why(justification)
        )

    async def list_attachments(
        self,
        *,
        user_id: str | None = None,
        entry_id: str | None = None,
        status: AttachmentFilter | None = None,
        after: str | None = None,
        limit: int | None = None,
        justification: str | None = None,
    ) -> AdminAttachmentPage:
        """A page of attached files of everybody."""
        query = {"userId": user_id, "entryId": entry_id, "status": status, "afterCursor": after, "limit": limit}
        return await self._transport.model(
            "admin_list_attachments", AdminAttachmentPage, query=query, headers=_why(justification)
        )

    async def get_attachment(self, attachment_id: str, *, justification: str | None = None) -> AdminAttachment:
        """What is known of one file."""
        return await self._transport.model(
            "admin_get_attachment",
            AdminAttachment,
            path={"attachmentId": attachment_id},
            headers=_why(justification),
        )

    async def attachment_content(
        self,
        attachment_id: str,
        *,
        start: int | None = None,
        end: int | None = None,
        if_none_match: str | None = None,
        justification: str | None = None,
    ) -> Content | None:
        """Its bytes, as `attachments.download` gives them."""
        path = {"attachmentId": attachment_id}
        # As a parameter, because a header would go along to where the bytes are kept.
        query = {"justification": justification}
        return await download(self._transport, "admin_get_attachment_content", path, start, end, if_none_match, query)

    async def attachment_download_url(self, attachment_id: str, *, justification: str | None = None) -> DownloadUrl:
        """A link to its bytes that works without credentials for a while."""
        return await self._transport.model(
            "admin_get_attachment_download_url",
            DownloadUrl,
            path={"attachmentId": attachment_id},
            headers=_why(justification),
        )

    async def delete_attachment(self, attachment_id: str, *, justification: str | None = None) -> None:
        """Deletes a file, whether an entry refers to it or not."""
        await self._transport.call(
            "admin_delete_attachment", path={"attachmentId": attachment_id}, headers=_why(justification)
        )

    async def evict(
        self, *, retention_period: str, resource_types: Sequence[str], justification: str | None = None
    ) -> None:
        """Removes for good what was deleted longer ago than the period (`P30D`), and returns when that is done."""
        wire = body(retentionPeriod=retention_period, resourceTypes=resource_types)
        await self._transport.call("evict", body=wire, headers=_why(justification))

    async def evict_with_progress(
        self, *, retention_period: str, resource_types: Sequence[str], justification: str | None = None
    ) -> AsyncGenerator[Progress]:
        """The same, and tells how far it is."""
        wire = body(retentionPeriod=retention_period, resourceTypes=resource_types)
        events = self._transport.events(
            "evict", query={"async": True}, body=wire, headers=_why(justification), resume=False
        )
        async for event in events:
            if event.event == "error":
                raise MemtroveError(f"the eviction failed: {data(event).get('error')}")
            yield Progress(int(data(event).get("progress", 0)))

    async def reindex(
        self, *, tenant_id: str | None = None, target: str | None = None, justification: str | None = None
    ) -> JobStarted:
        """Makes the index of events anew, or with `target="embeddings"` the vectors."""
        wire = body(tenant_id=tenant_id, target=target)
        return await self._transport.model("reindex_tenant", JobStarted, body=wire, headers=_why(justification))

    async def job(self, job_id: str) -> Job:
        """How a job is going."""
        return await self._transport.model("get_job", Job, path={"job_id": job_id})

    async def stats_summary(self, *, justification: str | None = None) -> StatsSummary:
        """How many conversations and entries there are."""
        return await self._transport.model("stats_summary", StatsSummary, headers=_why(justification))

    async def stats(
        self,
        name: str,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        step: str | None = None,
        justification: str | None = None,
    ) -> StatsResponse:
        """A figure over time: `request-rate`, `error-rate`, `latency-p95` and others."""
        answer: Any = await self._transport.json(
            "stats",
            path={"name": name},
            query={"start": start, "end": end, "step": step},
            headers=_why(justification),
        )
        found: StatsResponse = decode(StatsResponse, answer)
        return found


def _why(justification: str | None) -> dict[str, str | None]:
    return {"X-Justification": justification}
