"""The agent facade: memory as files that a model reads and edits, and events that it looks up."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memtrove._async.client import AsyncMemtroveClient
from memtrove._async.session import AsyncMemorySession
from memtrove.agent import (
    AgentMemoryOptions,
    CreateOnly,
    IfUnchanged,
    MemoryEdit,
    MemoryFile,
    MemoryFileEntry,
    Overwrite,
    PreparedTurn,
    SlotDocument,
    WriteMode,
    text_document,
    text_instead,
)
from memtrove.edits import CREATE_NEW, FilePatch, FileUpdate, FileWrite, PatchOp
from memtrove.errors import ApiError, InvalidInputError
from memtrove.models import DroppedFile, Envelope, EventDigest, ForgetReport, StoredFile
from memtrove.policy import MemoryPolicy
from memtrove.scope import Scope, file_path

MAX_CONFLICT_RETRIES = 3

PAUSE = 0.05
"""The longest pause before that, in seconds; each is a random part of it."""


class AsyncAgentMemory:
    """What an agent does with its memory. The scope is the host's to give, never the model's."""

    def __init__(
        self,
        client: AsyncMemtroveClient,
        policy: MemoryPolicy | None = None,
        options: AgentMemoryOptions | None = None,
    ) -> None:
        self.client = client
        self.policy = policy or MemoryPolicy()
        self.options = options or AgentMemoryOptions()

    async def recall(self, scope: Scope, query: str, top_k: int | None = None) -> Sequence[EventDigest]:
        """The events that fit a query best."""
        return await self.recall_with(scope, query, top_k=top_k)

    async def recall_with(
        self,
        scope: Scope,
        query: str | None = None,
        *,
        top_k: int | None = None,
        service_id: str | None = None,
        source_type: str | None = None,
        project_id: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
    ) -> Sequence[EventDigest]:
        """The same, of one service, source, project or time."""
        return await self.client.events.search(
            scope,
            query,
            service_id=service_id,
            source_type=source_type,
            project_id=project_id,
            from_=from_,
            to=to,
            top_k=self.options.recall_top_k if top_k is None else top_k,
        )

    async def remember(self, scope: Scope, event: EventDigest) -> None:
        """Notes that something happened. An event that names nobody belongs to the scope."""
        if not event.tenant_id and not event.user_id:
            event = dataclasses.replace(event, tenant_id=scope.tenant_id, user_id=scope.user_id)
        await self.client.events.write(scope, event)

    async def list_files(self, scope: Scope, prefix: str | None = None, limit: int = 100) -> Sequence[MemoryFileEntry]:
        """The files whose path begins with a prefix."""
        found = await self.client.files.list(scope, prefix=prefix, limit=limit)
        return [MemoryFileEntry(one.path, one.last_modified_utc) for one in found.files]

    async def load_file(self, scope: Scope, path: str) -> MemoryFile:
        """A file as text."""
        path = file_path(path)
        return MemoryFile.of(path, await self.client.files.get(scope, path))

    async def write_file(
        self,
        scope: Scope,
        path: str,
        content: str,
        *,
        mode: WriteMode | None = None,
        content_type: str | None = None,
        reason: str | None = None,
        evidence: Any = None,
        service_id: str | None = None,
    ) -> MemoryFile:
        """Creates a file or replaces its text. Unless another mode is given, whoever comes last wins.

        `content_type` is what the file has, or `text/markdown`, unless it is given.
        """
        path, mode = file_path(path), mode or Overwrite()
        reason, conflicts = reason or "memory_write_file", 0
        while True:
            current = None if isinstance(mode, CreateOnly) else await self._find(scope, path)
            found = CREATE_NEW if current is None else current.etag
            if_match = mode.etag if isinstance(mode, IfUnchanged) else found
            try:
                if current is None:
                    write = FileWrite(text_document(content, content_type), reason, evidence)
                    stored = await self.client.files.write(scope, path, write, if_match=if_match, service_id=service_id)
                else:
                    ops = [text_instead(current.document, content, content_type)]
                    patch = FilePatch(ops=ops, reason=reason, evidence=evidence)
                    stored = await self.client.files.patch(scope, path, patch, if_match=if_match, service_id=service_id)
                return MemoryFile.of(path, stored)
            except ApiError as error:
                # Somebody else changed the file meanwhile, or deleted it.
                overtaken = error.is_conflict or (current is not None and error.is_not_found)
                if not overtaken or mode != Overwrite() or conflicts >= MAX_CONFLICT_RETRIES:
                    raise
            conflicts += 1
            # Whoever collided does not come back at the same moment.
            await asyncio.sleep(random.uniform(0, PAUSE))

    async def _find(self, scope: Scope, path: str) -> StoredFile | None:
        try:
            return await self.client.files.get(scope, path)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def patch_file(
        self,
        scope: Scope,
        path: str,
        edits: Sequence[MemoryEdit],
        *,
        reason: str | None = None,
        evidence: Any = None,
        max_conflict_retries: int = MAX_CONFLICT_RETRIES,
        service_id: str | None = None,
    ) -> MemoryFile:
        """Replaces text in a file: all edits or none. Edits name what they replace, so a conflict is tried again."""
        path = file_path(path)
        if not edits:
            raise InvalidInputError("there is no edit: give at least one")
        for index, edit in enumerate(edits):
            if not edit.old_text:
                raise InvalidInputError(f"edit {index} has no old_text: give the text that it replaces")
        patch = FilePatch(edits=edits, reason=reason or "memory_patch_file", evidence=evidence)

        async def change(current: StoredFile) -> FileUpdate:
            return patch

        stored = await self.client.files.update_with_retry(
            scope, path, change, max_conflict_retries=max_conflict_retries, service_id=service_id
        )
        return MemoryFile.of(path, stored)

    async def load_slot(
        self, scope: Scope, slot_id: str, template_variables: Mapping[str, str] | None = None
    ) -> SlotDocument:
        """The document of a slot."""
        path = self.policy.slot(slot_id).resolve(template_variables)
        stored = await self.client.files.get(scope, path)
        return SlotDocument(slot_id, path, stored.etag, stored.document)

    async def patch_slot(
        self,
        scope: Scope,
        slot_id: str,
        ops: Sequence[PatchOp],
        *,
        if_match: str,
        reason: str | None = None,
        evidence: Any = None,
        template_variables: Mapping[str, str] | None = None,
        service_id: str | None = None,
    ) -> SlotDocument:
        """Changes parts of a slot, where its rules allow it."""
        slot = self.policy.slot(slot_id)
        path = slot.resolve(template_variables)
        slot.check_patch(ops)
        patch = FilePatch(ops=ops, reason=reason, evidence=evidence)
        stored = await self.client.files.patch(scope, path, patch, if_match=if_match, service_id=service_id)
        return SlotDocument(slot_id, path, stored.etag, stored.document)

    async def replace_slot(
        self,
        scope: Scope,
        slot_id: str,
        document: Envelope,
        *,
        if_match: str,
        reason: str | None = None,
        evidence: Any = None,
        template_variables: Mapping[str, str] | None = None,
        service_id: str | None = None,
    ) -> SlotDocument:
        """Puts another document into a slot, if its rules allow it."""
        slot = self.policy.slot(slot_id)
        path = slot.resolve(template_variables)
        slot.check_content(document.content)
        write = FileWrite(document, reason, evidence)
        stored = await self.client.files.write(scope, path, write, if_match=if_match, service_id=service_id)
        return SlotDocument(slot_id, path, stored.etag, stored.document)

    async def prepare_turn(
        self,
        scope: Scope,
        *,
        recall_query: str | None = None,
        recall_top_k: int | None = None,
        additional_slot_ids: Sequence[str] = (),
        template_variables: Mapping[str, str] | None = None,
        service_id: str | None = None,
        source_type: str | None = None,
        project_id: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        max_docs: int | None = None,
        max_chars_total: int | None = None,
    ) -> PreparedTurn:
        """What a turn begins with: the default slots, those named, and events that fit a query."""
        ids = [slot.slot_id for slot in self.policy.slots if slot.load_by_default]
        ids = list(dict.fromkeys([*ids, *additional_slot_ids]))
        slots = [(slot_id, self.policy.slot(slot_id).resolve(template_variables)) for slot_id in ids]
        documents: list[SlotDocument] = []
        dropped: list[DroppedFile] = []
        if slots:
            found = await self.client.files.assemble(
                scope,
                [path for _, path in slots],
                max_docs=self.options.assemble_max_docs if max_docs is None else max_docs,
                max_chars_total=self.options.assemble_max_chars_total if max_chars_total is None else max_chars_total,
            )
            # Files come in the order they were asked for; what is missing or dropped is passed over. Two slots may be
            # one file.
            asked = iter(slots)
            for one in found.files:
                slot_id = next((slot_id for slot_id, path in asked if path == one.path), None)
                documents.append(SlotDocument(slot_id, one.path, one.etag, one.document))
            dropped = found.dropped_files
        events: Sequence[EventDigest] = ()
        if recall_query and recall_query.strip():
            events = await self.recall_with(
                scope,
                recall_query,
                top_k=recall_top_k,
                service_id=service_id,
                source_type=source_type,
                project_id=project_id,
                from_=from_,
                to=to,
            )
        return PreparedTurn(documents, events, dropped)

    async def forget_user(self, scope: Scope) -> ForgetReport:
        """Forgets everything of a user."""
        return await self.client.lifecycle.forget_user(scope)

    def session(
        self, scope: Scope, files: Sequence[str] = (), prefix: str | None = None, limit: int = 100
    ) -> AsyncMemorySession:
        """What a conversation is told of the memory: some files, and which others there are.

        `files` are those whose text is told, the most important first. `prefix` says which other files are named: those
        whose path begins with it, `""` for all of them, at most `limit`.
        """
        return AsyncMemorySession(self, scope, files, prefix, limit)
