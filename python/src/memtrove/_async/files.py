"""Files, events, their audit trail, and how they go: everything below one user of one tenant."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memtrove._async.group import AsyncGroup, follow, scoped
from memtrove._wire import body
from memtrove.edits import AsyncUpdater, FilePatch, FileUpdate, FileWrite
from memtrove.errors import ApiError
from memtrove.models import (
    AssembledContext,
    AuditPage,
    AuditRecord,
    DeletedFile,
    Envelope,
    EventDigest,
    FileEntry,
    FileList,
    ForgetReport,
    JobStarted,
    MovedFile,
    ReconstructedFile,
    RetentionReport,
    SearchEventsResponse,
    StoredFile,
)
from memtrove.scope import Scope, file_path, file_segments


class AsyncFiles(AsyncGroup):
    """Documents under paths. Nobody overwrites what they have not seen: a change names the version it is made to."""

    async def list(
        self, scope: Scope, *, prefix: str | None = None, limit: int | None = None, after: str | None = None
    ) -> FileList:
        """A page of files, by path."""
        query = {"prefix": prefix, "limit": limit, "after": after}
        return await self._transport.model("list_files", FileList, path=scoped(scope), query=query)

    async def list_all(self, scope: Scope, *, prefix: str | None = None) -> AsyncGenerator[FileEntry]:
        """Every file, page by page."""

        async def page(after: str | None) -> FileList:
            return await self.list(scope, prefix=prefix, after=after)

        async for found in follow(page, lambda page: page.next_after):
            for entry in found.files:
                yield entry

    async def get(self, scope: Scope, path: str) -> StoredFile:
        """A file and the name of its version."""
        return await self._transport.model("get_file", StoredFile, path=_at(scope, path))

    async def get_if_changed(self, scope: Scope, path: str, etag: str) -> StoredFile | None:
        """The file, or `None` if it still has this version."""
        response = await self._transport.call("get_file", path=_at(scope, path), headers={"If-None-Match": etag})
        return None if response.status_code == 304 else self._transport.read(response, StoredFile)

    async def write(
        self,
        scope: Scope,
        path: str,
        write: FileWrite | Envelope | Mapping[str, Any],
        *,
        if_match: str,
        service_id: str | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> StoredFile:
        """Creates a file (`if_match=CREATE_NEW`) or replaces the version that `if_match` names."""
        write = write if isinstance(write, FileWrite) else FileWrite(write)
        return await self._transport.model(
            "put_file",
            StoredFile,
            path=_at(scope, path),
            body=write.to_wire(),
            headers={"If-Match": if_match},
            service_id=service_id,
            idempotency_key=idempotency_key,
            retry=retry,
        )

    async def patch(
        self,
        scope: Scope,
        path: str,
        patch: FilePatch,
        *,
        if_match: str,
        service_id: str | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> StoredFile:
        """Changes parts of the version that `if_match` names."""
        return await self._transport.model(
            "patch_file",
            StoredFile,
            path=_at(scope, path),
            body=patch.to_wire(),
            headers={"If-Match": if_match},
            service_id=service_id,
            idempotency_key=idempotency_key,
            retry=retry,
        )

    async def delete(
        self,
        scope: Scope,
        path: str,
        *,
        if_match: str = "*",
        reason: str | None = None,
        evidence: Any = None,
        service_id: str | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> DeletedFile:
        """Deletes a file; `*` is any version. What it said stays in the audit trail."""
        return await self._transport.model(
            "delete_file",
            DeletedFile,
            path=scoped(scope),
            body=body(path=file_path(path), reason=reason, evidence=evidence),
            headers={"If-Match": if_match},
            service_id=service_id,
            idempotency_key=idempotency_key,
            retry=retry,
        )

    async def move(
        self,
        scope: Scope,
        from_: str,
        to: str,
        *,
        if_match: str = "*",
        reason: str | None = None,
        evidence: Any = None,
        service_id: str | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> MovedFile:
        """Gives a file another path, where nothing may be yet; `*` is any version."""
        return await self._transport.model(
            "move_file",
            MovedFile,
            path=scoped(scope),
            body=body(to=file_path(to), reason=reason, evidence=evidence, **{"from": file_path(from_)}),
            headers={"If-Match": if_match},
            service_id=service_id,
            idempotency_key=idempotency_key,
            retry=retry,
        )

    async def update_with_retry(
        self,
        scope: Scope,
        path: str,
        update: AsyncUpdater,
        *,
        max_conflict_retries: int = 3,
        service_id: str | None = None,
    ) -> StoredFile:
        """Reads a file, lets `update` decide by what is there, and writes; again from the start if somebody was faster.

        The last conflict is raised, and so is everything else at once, a missing file included.
        """
        conflicts = 0
        while True:
            current = await self.get(scope, path)
            change: FileUpdate = await update(current)
            try:
                if isinstance(change, FilePatch):
                    return await self.patch(scope, path, change, if_match=current.etag, service_id=service_id)
                return await self.write(scope, path, change, if_match=current.etag, service_id=service_id)
            except ApiError as error:
                if not error.is_conflict or conflicts >= max_conflict_retries:
                    raise
            conflicts += 1
            # Whoever collided does not come back at the same moment.
            await asyncio.sleep(random.uniform(0.005, 0.05) * conflicts)

    async def assemble(
        self,
        scope: Scope,
        paths: Sequence[str],
        *,
        max_docs: int | None = None,
        max_chars_total: int | None = None,
        memories: Mapping[str, Any] | None = None,
    ) -> AssembledContext:
        """Several files within a budget, in the order of their importance, and memories in what is left of it.

        `memories` is a search as it goes over the wire: `{"query": …, "threshold": 0.3}`.
        """
        files = [{"path": file_path(path)} for path in paths]
        wire = body(files=files, max_docs=max_docs, max_chars_total=max_chars_total, memories=memories)
        return await self._transport.model("assemble_context", AssembledContext, path=scoped(scope), body=wire)


class AsyncEvents(AsyncGroup):
    """Notes that something happened: written once, and searched."""

    async def write(
        self,
        scope: Scope,
        event: EventDigest,
        *,
        service_id: str | None = None,
        idempotency_key: str | None = None,
        retry: bool = False,
    ) -> None:
        """Writes an event, or replaces the one with its id. It can be found at once."""
        await self._transport.call(
            "write_event",
            path=scoped(scope),
            body={"event": event.to_wire()},
            service_id=service_id,
            idempotency_key=idempotency_key,
            retry=retry,
        )

    async def search(
        self,
        scope: Scope,
        query: str | None = None,
        *,
        service_id: str | None = None,
        source_type: str | None = None,
        project_id: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        top_k: int | None = None,
    ) -> Sequence[EventDigest]:
        """The events that fit best; without a query, the newest."""
        wire = body(
            query=query,
            service_id=service_id,
            source_type=source_type,
            project_id=project_id,
            to=to,
            top_k=top_k,
            **{"from": from_},
        )
        found = await self._transport.model("search_events", SearchEventsResponse, path=scoped(scope), body=wire)
        return found.results

    async def reindex(self, scope: Scope) -> JobStarted:
        """Makes the index of a user's events anew; `admin.job` says how that is going."""
        return await self._transport.model("reindex_events", JobStarted, path=scoped(scope))


class AsyncAudit(AsyncGroup):
    """Who changed what, and every version there ever was."""

    async def list(
        self,
        scope: Scope,
        *,
        path: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> AuditPage:
        """A page of records, the oldest first."""
        query = {"path": path, "from": from_, "to": to, "after": after, "limit": limit}
        return await self._transport.model("list_audit", AuditPage, path=scoped(scope), query=query)

    async def list_all(self, scope: Scope, *, path: str | None = None) -> AsyncGenerator[AuditRecord]:
        """Every record, page by page."""

        async def page(after: int | None) -> AuditPage:
            return await self.list(scope, path=path, after=after)

        async for found in follow(page, lambda page: page.next_after):
            for record in found.records:
                yield record

    async def get(self, scope: Scope, change_id: str) -> AuditRecord:
        """One record."""
        return await self._transport.model("get_audit", AuditRecord, path=scoped(scope, change_id=change_id))

    async def reconstruct(
        self, scope: Scope, path: str, *, change_id: str | None = None, as_of: datetime | None = None
    ) -> ReconstructedFile:
        """A file as a change left it, or as it was at a time."""
        wire = body(path=file_path(path), change_id=change_id, as_of_utc=as_of)
        return await self._transport.model("reconstruct_version", ReconstructedFile, path=scoped(scope), body=wire)


class AsyncLifecycle(AsyncGroup):
    """How things go: what is old, and everything of a user."""

    async def apply_retention(
        self,
        scope: Scope,
        *,
        events_days: int,
        audit_days: int,
        snapshots_days: int,
        as_of: datetime | None = None,
        justification: str | None = None,
    ) -> RetentionReport:
        """Removes events and audit records that are older than so many days; files stay.

        The server keeps audit records longer if it has to, and says so in `adjusted`. An admin goes below that with a
        `justification`, which stays in the audit trail.
        """
        wire = body(events_days=events_days, audit_days=audit_days, snapshots_days=snapshots_days, as_of_utc=as_of)
        return await self._transport.model(
            "apply_retention",
            RetentionReport,
            path=scoped(scope),
            body=wire,
            headers={"X-Justification": justification},
        )

    async def forget_user(self, scope: Scope) -> ForgetReport:
        """Forgets everything of a user: files, events, memories, conversations. There is no way back."""
        return await self._transport.model("forget_user", ForgetReport, path=scoped(scope))

    async def forget_user_by_id(self, user_id: str) -> ForgetReport:
        """The same for a user of the caller's tenant whose id fits in no address."""
        return await self._transport.model("forget_user_by_id", ForgetReport, body={"userId": user_id})


def _at(scope: Scope, path: str) -> dict[str, str]:
    return scoped(scope, raw_path=file_segments(path))
