# Made by scripts/generate.py. Do not edit.
"""What the server answers with, and what goes into requests as a part of them.

Members that this version does not know are kept in `extra`, and sent back with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

from memtrove._wire import Model

AccessLevel: TypeAlias = Literal["owner", "manager", "writer", "reader"]
"""What a member may do."""


AccessPolicyWord: TypeAlias = Literal["private", "restricted", "shared", "organization", "public"]
"""Who of those who have the scope may see a memory."""


AttachmentFilter: TypeAlias = Literal["all", "linked", "unlinked", "expired"]
"""Which files an admin lists."""


AttachmentStatus: TypeAlias = Literal["uploading", "downloading", "ready", "failed"]
"""Where the bytes of a file are."""


Channel: TypeAlias = Literal["history", "memory"]
"""Which stream of a conversation an entry belongs to."""


ChannelFilter: TypeAlias = Literal["history", "memory", "all"]
"""Which streams a list shows."""


Forks: TypeAlias = Literal["none", "all"]
"""Which branches a list of entries shows."""


ListMode: TypeAlias = Literal["all", "roots", "latest-fork"]
"""Which conversations of each fork tree a list shows."""


MemoryKind: TypeAlias = Literal["working", "session", "episodic", "semantic", "procedural", "user_personal", "archival"]
"""How a memory is kept, and for how long."""


MemoryLayer: TypeAlias = Literal["agent", "user", "session", "project", "team", "org", "company"]
"""Whose memory it is; the first is strongest."""


MemoryRanking: TypeAlias = Literal["precedence", "score"]
"""What decides the order of results."""


MemorySearchMode: TypeAlias = Literal["hybrid", "semantic"]
"""What decides the score of a result."""


MemorySourceType: TypeAlias = Literal["conversation", "tool_result", "knowledge_sync", "manual", "import"]
"""Where a memory comes from."""


MemoryState: TypeAlias = Literal["created", "active", "decayed", "archived"]
"""Where a memory is in its life."""


SearchType: TypeAlias = Literal["auto", "semantic", "fulltext"]
"""How to search."""


TransferRole: TypeAlias = Literal["sender", "recipient", "all"]
"""From which side transfers are listed."""


@dataclass(kw_only=True, repr=False)
class NewMemory(Model):
    """A request to remember something."""

    _wire_names: ClassVar[dict[str, str]] = {
        "ttl_seconds": "ttlSeconds",
        "occurred_at": "occurredAt",
        "access_policy": "accessPolicy",
    }

    content: str | None = None
    """The text; a procedural memory without it says what its fact states."""
    layer: MemoryLayer | None = None
    """Whose it is."""
    identifiers: MemoryIdentifiers | None = None
    """Those that the layer needs."""
    metadata: MemoryMetadata | dict[str, Any] | None = None
    """What is known about it."""
    kind: MemoryKind | None = None
    """How it is kept; the layer's own kind unless said otherwise."""
    ttl_seconds: int | None = None
    """How long it lives after each change."""
    occurred_at: datetime | None = None
    """When it happened (RFC 3339). An episodic memory happened now unless said otherwise."""
    access_policy: MemoryAccessPolicy | None = None
    """Who may see it: whoever made it in personal layers, everybody in the others, unless said otherwise."""
    fact: FactStatement | None = None
    """Procedural only: what it states."""


@dataclass(kw_only=True, repr=False)
class AddedFact(Model):
    """A fact that is stored."""

    fact: Fact
    """The fact."""
    created: bool
    """Whether nobody had stated it before."""


@dataclass(kw_only=True, repr=False)
class AddedMemory(Model):
    """A memory that was stored."""

    _wire_names: ClassVar[dict[str, str]] = {"embedding_generated": "embeddingGenerated"}

    memory: Memory
    """The memory."""
    embedding_generated: bool
    """Whether it can be found by its meaning."""


@dataclass(kw_only=True, repr=False)
class AdminAttachment(Model):
    """A file with how many records share its bytes, as an admin sees it."""

    _wire_names: ClassVar[dict[str, str]] = {
        "storage_key": "storageKey",
        "content_type": "contentType",
        "created_at": "createdAt",
        "ref_count": "refCount",
        "user_id": "userId",
        "entry_id": "entryId",
        "expires_at": "expiresAt",
        "deleted_at": "deletedAt",
        "source_url": "sourceUrl",
    }

    id: str
    """Its id."""
    storage_key: str
    """Where its bytes are kept; several records may share them."""
    content_type: str
    """What kind of file it is."""
    created_at: datetime
    """When it was made."""
    status: AttachmentStatus
    """Where its bytes are."""
    ref_count: int
    """How many records share its bytes, itself included."""
    filename: str | None = None
    """Its name, if it has one."""
    size: int | None = None
    """How many bytes it has, once they are here."""
    sha256: str | None = None
    """The digest of its bytes in hexadecimal digits, once they are here."""
    user_id: str | None = None
    """Who brought it; absent once that user was forgotten."""
    entry_id: str | None = None
    """The entry it belongs to."""
    expires_at: datetime | None = None
    """When it goes by itself; absent once it belongs to an entry."""
    deleted_at: datetime | None = None
    """When it was deleted, if only its bytes are left to go."""
    source_url: str | None = None
    """Where it was fetched from."""


@dataclass(kw_only=True, repr=False)
class AdminAttachmentPage(Model):
    """A part of a list."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[AdminAttachmentSummary]
    """The items."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""


@dataclass(kw_only=True, repr=False)
class AdminAttachmentSummary(Model):
    """A file, as an admin sees it."""

    _wire_names: ClassVar[dict[str, str]] = {
        "storage_key": "storageKey",
        "content_type": "contentType",
        "created_at": "createdAt",
        "user_id": "userId",
        "entry_id": "entryId",
        "expires_at": "expiresAt",
        "deleted_at": "deletedAt",
        "source_url": "sourceUrl",
    }

    id: str
    """Its id."""
    storage_key: str
    """Where its bytes are kept; several records may share them."""
    content_type: str
    """What kind of file it is."""
    created_at: datetime
    """When it was made."""
    status: AttachmentStatus
    """Where its bytes are."""
    filename: str | None = None
    """Its name, if it has one."""
    size: int | None = None
    """How many bytes it has, once they are here."""
    sha256: str | None = None
    """The digest of its bytes in hexadecimal digits, once they are here."""
    user_id: str | None = None
    """Who brought it; absent once that user was forgotten."""
    entry_id: str | None = None
    """The entry it belongs to."""
    expires_at: datetime | None = None
    """When it goes by itself; absent once it belongs to an entry."""
    deleted_at: datetime | None = None
    """When it was deleted, if only its bytes are left to go."""
    source_url: str | None = None
    """Where it was fetched from."""


@dataclass(kw_only=True, repr=False)
class AdminConversation(Model):
    """A conversation, as an admin sees it."""

    _wire_names: ClassVar[dict[str, str]] = {
        "owner_user_id": "ownerUserId",
        "created_at": "createdAt",
        "updated_at": "updatedAt",
        "access_level": "accessLevel",
        "last_message_preview": "lastMessagePreview",
        "deleted_at": "deletedAt",
        "forked_at_entry_id": "forkedAtEntryId",
        "forked_at_conversation_id": "forkedAtConversationId",
    }

    id: str
    """Its id."""
    owner_user_id: str
    """The owner of the whole tree."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When its history or title changed last."""
    access_level: AccessLevel
    """What the caller may do."""
    title: str | None = None
    """Its title, given or derived from the first message."""
    last_message_preview: str | None = None
    """The beginning of its newest message."""
    deleted_at: datetime | None = None
    """When its tree was deleted, if it was."""
    forked_at_entry_id: str | None = None
    """The last entry it shares with its parent."""
    forked_at_conversation_id: str | None = None
    """The conversation it was forked from."""


@dataclass(kw_only=True, repr=False)
class AdminConversationPage(Model):
    """A part of a list."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[AdminConversationSummary]
    """The items."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""


@dataclass(kw_only=True, repr=False)
class AdminConversationSummary(Model):
    """A conversation in an admin's list."""

    _wire_names: ClassVar[dict[str, str]] = {
        "owner_user_id": "ownerUserId",
        "created_at": "createdAt",
        "updated_at": "updatedAt",
        "access_level": "accessLevel",
        "last_message_preview": "lastMessagePreview",
        "deleted_at": "deletedAt",
    }

    id: str
    """Its id."""
    owner_user_id: str
    """The owner of the whole tree."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When its history or title changed last."""
    access_level: AccessLevel
    """What the caller may do."""
    title: str | None = None
    """Its title, given or derived from the first message."""
    last_message_preview: str | None = None
    """The beginning of its newest message."""
    deleted_at: datetime | None = None
    """When its tree was deleted, if it was."""


@dataclass(kw_only=True, repr=False)
class AdminEntry(Model):
    """An entry of a conversation, as an admin sees it."""

    _wire_names: ClassVar[dict[str, str]] = {
        "conversation_id": "conversationId",
        "content_type": "contentType",
        "created_at": "createdAt",
        "user_id": "userId",
        "client_id": "clientId",
    }

    id: str
    """Its id."""
    conversation_id: str
    """The conversation that stores it: an ancestor's for inherited entries."""
    channel: Channel
    """Its stream."""
    content_type: str
    """What kind of content it holds."""
    content: list[Any]
    """The content, value for value as it was sent."""
    created_at: datetime
    """When it was written."""
    user_id: str | None = None
    """The user it was written for."""
    client_id: str | None = None
    """The agent that wrote it."""
    epoch: int | None = None
    """Its epoch, in the memory channel."""


@dataclass(kw_only=True, repr=False)
class AdminEntryPage(Model):
    """A part of a list of entries, oldest first."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor", "before_cursor": "beforeCursor"}

    data: list[AdminEntry]
    """The entries."""
    after_cursor: str | None = None
    """What to send as `after` for newer entries; null where there are none."""
    before_cursor: str | None = None
    """What to send as `before` for older entries; only there when `tail` or `before` was used."""


@dataclass(kw_only=True, repr=False)
class AdminSearchPage(Model):
    """A part of what a search found, best first."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[AdminSearchResult]
    """The results."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""
    degraded: bool | None = None
    """`true` where not everything could be looked at in time, so that something better may be missing; else not
    there. What is missing is read meanwhile: the same search again finds it soon.
    """


@dataclass(kw_only=True, repr=False)
class AdminSearchResult(Model):
    """An entry that was found."""

    _wire_names: ClassVar[dict[str, str]] = {
        "conversation_id": "conversationId",
        "entry_id": "entryId",
        "conversation_title": "conversationTitle",
    }

    conversation_id: str
    """The conversation that stores it."""
    entry_id: str
    """The entry."""
    score: float
    """How well it matches; larger is better."""
    conversation_title: str | None = None
    """That conversation's title."""
    highlights: str | None = None
    """The part of its text that matched, matches wrapped in `**`."""
    passage: str | None = None
    """The part of its text that matters, if that is longer than 120 words: whole sentences, as they stand there."""
    entry: AdminEntry | None = None
    """The entry."""
    explanation: SearchExplanation | None = None
    """How the score came about, where asked for."""


@dataclass(kw_only=True, repr=False)
class AskedTime(Model):
    """A time that a query asks about: memories of that time are preferred."""

    _wire_names: ClassVar[dict[str, str]] = {"from_": "from"}

    from_: datetime
    """Its first instant."""
    to: datetime
    """The first instant after it."""
    words: str
    """The words of the query that say so."""


@dataclass(kw_only=True, repr=False)
class AssembledContext(Model):
    """A context."""

    files: list[AssembledFile]
    """The files that fit, in the order they were asked for."""
    dropped_files: list[DroppedFile]
    """Those that did not."""
    memories: list[FoundMemory] | None = None
    """The memories that fit, strongest first; there if they were asked for."""


@dataclass(kw_only=True, repr=False)
class AssembledFile(Model):
    """A file in a context."""

    path: str
    """Its path, as it was asked for."""
    etag: str
    """Its version."""
    document: Envelope
    """What it holds."""


@dataclass(kw_only=True, repr=False)
class Attachment(Model):
    """A file that belongs to an entry, or will."""

    _wire_names: ClassVar[dict[str, str]] = {
        "content_type": "contentType",
        "expires_at": "expiresAt",
        "source_url": "sourceUrl",
    }

    id: str
    """Its id."""
    href: str
    """Where its bytes are."""
    content_type: str
    """What kind of file it is."""
    status: AttachmentStatus
    """Where its bytes are."""
    filename: str | None = None
    """Its name, if it has one."""
    size: int | None = None
    """How many bytes it has, once they are here."""
    sha256: str | None = None
    """The digest of its bytes in hexadecimal digits, once they are here."""
    expires_at: datetime | None = None
    """When it goes, unless an entry refers to it by then."""
    source_url: str | None = None
    """Where it is fetched from."""


@dataclass(kw_only=True, repr=False)
class AuditPage(Model):
    """A part of the audit trail."""

    records: list[AuditRecord]
    """The records, in the order of their sequence."""
    next_after: int | None = None
    """Where to go on (`after`), if there are more."""


@dataclass(kw_only=True, repr=False)
class AuditRecord(Model):
    """One change of a file or of a memory, as the audit trail keeps it."""

    change_id: str
    """The change's id."""
    sequence: int
    """Its place in the scope's trail: 1, 2, 3…"""
    timestamp: datetime
    """When."""
    tenant_id: str
    """The tenant."""
    user_id: str
    """The user."""
    path: str
    """The file, or `memories/{id}`; empty where the trail itself was changed."""
    layer: str
    """`files` or `memories`; `lifecycle` where the trail itself was changed."""
    action: str
    """`create`, `replace`, `patch`, `delete` or `move`; of a memory `create`, `replace` or `delete`; of the trail
    `audit_truncated`.
    """
    actor: str
    """Who acted, as the caller said."""
    principal: str
    """Who really called."""
    ops: list[Any]
    """The operations, as applied."""
    edits: list[Any]
    """The text edits, as applied."""
    document_sha256: str
    """SHA-256 of the canonical JSON of the document after the change, or of a memory's content."""
    ops_hash: str
    """SHA-256 of the canonical JSON of `{"edits": …, "ops": …}`."""
    request_id: str
    """The request's id."""
    reason: str | None = None
    """Why."""
    justification: str | None = None
    """Of a truncation of the trail: why."""
    cutoff: datetime | None = None
    """Of a truncation of the trail: records from before this went."""
    count: int | None = None
    """Of a truncation of the trail: how many records went."""
    moved_from: str | None = None
    """The path that a moved file came from, in the record at its new one."""
    moved_to: str | None = None
    """The path that a moved file went to, in the record at its old one."""
    previous_etag: str | None = None
    """The version before; null for the first."""
    new_etag: str | None = None
    """The version after; null if there is none any more."""
    document: Any = None
    """The document after the change, where this record keeps it; every version can be made again from the last one
    kept.
    """
    evidence: Any = None
    """What it rests on."""
    confidence: Any = None
    """How sure the caller was; of the governed layer."""
    profile_id: str | None = None
    """Of the governed layer."""
    profile_revision: int | None = None
    """Of the governed layer."""
    binding_id: str | None = None
    """Of the governed layer."""
    idempotency_key_hash: str | None = None
    """SHA-256 of the request's `Idempotency-Key`."""
    replay_id: str | None = None
    """Of the governed layer."""


@dataclass(kw_only=True, repr=False)
class BlockedPromotion(Model):
    """A memory that must not leave its session."""

    id: str
    """The memory."""
    reason: str
    """Why."""


@dataclass(kw_only=True, repr=False)
class BulkAddResult(Model):
    """What became of one memory: it, or the error."""

    _wire_names: ClassVar[dict[str, str]] = {"embedding_generated": "embeddingGenerated"}

    index: int
    """Its place in the request, counted from 0."""
    memory: Memory | None = None
    """The memory."""
    embedding_generated: bool | None = None
    """Whether it can be found by its meaning."""
    error: dict[str, Any] | None = None
    """What is wrong with it: `code`, `message`, `retryable`, `details`."""


@dataclass(kw_only=True, repr=False)
class BulkAdded(Model):
    """What became of each memory, in the order they were sent."""

    results: list[BulkAddResult]
    """One per memory."""
    added: int
    """How many were stored."""
    failed: int
    """How many were not."""


@dataclass(kw_only=True, repr=False)
class BulkDeleteFailure(Model):
    """Why an id was not deleted."""

    id: str
    """The id."""
    code: str
    """A constant of the error catalogue."""


@dataclass(kw_only=True, repr=False)
class BulkDeleted(Model):
    """What became of the ids: each counts once."""

    deleted: int
    """How many were deleted."""
    failed: list[str]
    """Those that were not."""
    errors: list[BulkDeleteFailure]
    """Why not."""


@dataclass(kw_only=True, repr=False)
class Change(Model):
    """Something that happened: references, never content."""

    sequence: int
    """Its number: 1, 2, 3… in each tenant, in the order of the commits and without gaps."""
    at: datetime
    """When it happened."""
    kind: str
    """What happened. More kinds will come: pass over those you do not know."""
    user: str | None = None
    """Whose it is, who did it, or which member it is about."""
    resource: str | None = None
    """What it happened to: a path, an event's id, a conversation's id. Null once its user was forgotten."""
    version: str | None = None
    """Which version or part of it: an ETag, an entry's id, a transfer's id."""


@dataclass(kw_only=True, repr=False)
class ChangesPage(Model):
    """A page of the change feed."""

    changes: list[Change]
    """The changes, oldest first."""
    oldest: int
    """The oldest number that is kept."""
    next_after: int | None = None
    """What to send as `after` for the next page; null when there is nothing newer yet."""
    gap: bool | None = None
    """There, and true, when what came after `after` is not kept any more: the page begins at `oldest`, and
    whatever was derived from the feed must be made anew.
    """


@dataclass(kw_only=True, repr=False)
class ClearedMemories(Model):
    """What was cleared."""

    cleared: int
    """How many memories went."""


@dataclass(kw_only=True, repr=False)
class Consolidated(Model):
    """What was merged, or would be."""

    groups: list[ConsolidationGroup]
    """The memories that became one."""
    merged: int
    """How many were absorbed."""
    examined: int
    """How many were looked at."""


@dataclass(kw_only=True, repr=False)
class ConsolidationGroup(Model):
    """Memories that became one."""

    _wire_names: ClassVar[dict[str, str]] = {"survivor_id": "survivorId", "absorbed_ids": "absorbedIds"}

    survivor_id: str
    """The one that stays."""
    absorbed_ids: list[str]
    """Those it absorbed, which are archived."""


@dataclass(kw_only=True, repr=False)
class Conversation(Model):
    """A conversation."""

    _wire_names: ClassVar[dict[str, str]] = {
        "owner_user_id": "ownerUserId",
        "created_at": "createdAt",
        "updated_at": "updatedAt",
        "access_level": "accessLevel",
        "last_message_preview": "lastMessagePreview",
        "forked_at_entry_id": "forkedAtEntryId",
        "forked_at_conversation_id": "forkedAtConversationId",
    }

    id: str
    """Its id."""
    owner_user_id: str
    """The owner of the whole tree."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When its history or title changed last."""
    access_level: AccessLevel
    """What the caller may do."""
    title: str | None = None
    """Its title, given or derived from the first message."""
    last_message_preview: str | None = None
    """The beginning of its newest message."""
    forked_at_entry_id: str | None = None
    """The last entry it shares with its parent."""
    forked_at_conversation_id: str | None = None
    """The conversation it was forked from."""
    metadata: dict[str, Any] | None = None
    """What its creator noted; only where one conversation is read, and only when there is any."""


@dataclass(kw_only=True, repr=False)
class ConversationForkSummary(Model):
    """A branch of a tree."""

    _wire_names: ClassVar[dict[str, str]] = {
        "conversation_id": "conversationId",
        "created_at": "createdAt",
        "forked_at_entry_id": "forkedAtEntryId",
        "forked_at_conversation_id": "forkedAtConversationId",
    }

    conversation_id: str
    """The conversation."""
    created_at: datetime
    """When it was made."""
    forked_at_entry_id: str | None = None
    """The last entry it shares with its parent."""
    forked_at_conversation_id: str | None = None
    """The conversation it was forked from; the root has none."""
    title: str | None = None
    """Its title."""


@dataclass(kw_only=True, repr=False)
class ConversationMembership(Model):
    """A member of a conversation's tree."""

    _wire_names: ClassVar[dict[str, str]] = {
        "conversation_id": "conversationId",
        "user_id": "userId",
        "access_level": "accessLevel",
        "created_at": "createdAt",
    }

    conversation_id: str
    """The conversation that was asked for."""
    user_id: str
    """Who."""
    access_level: AccessLevel
    """What they may do."""
    created_at: datetime
    """Since when."""


@dataclass(kw_only=True, repr=False)
class ConversationPage(Model):
    """A part of a list."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[ConversationSummary]
    """The items."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""


@dataclass(kw_only=True, repr=False)
class ConversationSummary(Model):
    """A conversation in a list."""

    _wire_names: ClassVar[dict[str, str]] = {
        "owner_user_id": "ownerUserId",
        "created_at": "createdAt",
        "updated_at": "updatedAt",
        "access_level": "accessLevel",
        "last_message_preview": "lastMessagePreview",
    }

    id: str
    """Its id."""
    owner_user_id: str
    """The owner of the whole tree."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When its history or title changed last."""
    access_level: AccessLevel
    """What the caller may do."""
    title: str | None = None
    """Its title, given or derived from the first message."""
    last_message_preview: str | None = None
    """The beginning of its newest message."""


@dataclass(kw_only=True, repr=False)
class DecayedMemories(Model):
    """What a decay pass did, or would do."""

    _wire_names: ClassVar[dict[str, str]] = {"as_of": "asOf", "dry_run": "dryRun"}

    as_of: datetime
    """The time it looked from."""
    dry_run: bool
    """Whether it only says so."""
    processed: int
    """How many memories it looked at."""
    decayed: int
    """How many became decayed."""
    archived: int
    """How many became archived."""
    skipped: int
    """How many do not fade."""
    entries: list[DecayedMemory]
    """Those it looked at, by id; a thousand at most."""


@dataclass(kw_only=True, repr=False)
class DecayedMemory(Model):
    """One memory of a decay pass."""

    _wire_names: ClassVar[dict[str, str]] = {"previous_state": "previousState"}

    id: str
    """Its id."""
    layer: MemoryLayer
    """Whose it is."""
    relevance: float
    """How relevant it is at that time."""
    previous_state: MemoryState
    """Its state before."""
    state: MemoryState
    """Its state after."""


@dataclass(kw_only=True, repr=False)
class DeleteKnowledgeOptions(Model):
    """How an entry is to be deleted."""

    hard_delete: bool | None = None
    """Without a trace. The content is gone at once either way."""


@dataclass(kw_only=True, repr=False)
class DeletedFile(Model):
    """A file that is gone."""

    path: str
    """Where it was."""
    etag: str
    """The version that was deleted."""
    deleted: bool
    """`true`."""
    idempotency_replay: bool | None = None
    """`true` when this is the answer to an earlier request with the same `Idempotency-Key`."""


@dataclass(kw_only=True, repr=False)
class DeletedKnowledge(Model):
    """What became of a request to delete."""

    deleted: bool
    """Whether something was there."""
    entry_id: str
    """The id."""


@dataclass(kw_only=True, repr=False)
class DeletedMemory(Model):
    """What became of a request to delete: it always succeeds."""

    success: bool
    """Always true."""
    deleted: bool
    """Whether something was there."""


@dataclass(kw_only=True, repr=False)
class DownloadUrl(Model):
    """Where the bytes of a file can be read without credentials, for a short time."""

    _wire_names: ClassVar[dict[str, str]] = {"expires_in": "expiresIn"}

    url: str
    """The address; without a scheme it is one of this server."""
    expires_in: int
    """For how many seconds it can be used. 0 while the file is fetched: then it is the address of its source."""


@dataclass(kw_only=True, repr=False)
class DroppedFile(Model):
    """A file that did not fit into a context."""

    path: str
    """Its path, as it was asked for."""
    reason: str
    """`max_docs` or `max_chars_total`."""


@dataclass(kw_only=True, repr=False)
class EndedSession(Model):
    """What became of a session's memories."""

    _wire_names: ClassVar[dict[str, str]] = {"user_id": "userId", "session_id": "sessionId", "ended_at": "endedAt"}

    user_id: str
    """The user."""
    session_id: str
    """The session."""
    ended_at: datetime
    """When it ended."""
    evaluated: int
    """How many could be promoted."""
    promoted: list[SessionPromotion]
    """Those that were."""
    blocked: list[BlockedPromotion]
    """Those that must not be."""
    deleted: int
    """How many went."""
    retained: int
    """How many stay."""


@dataclass(kw_only=True, repr=False)
class Entry(Model):
    """An entry of a conversation."""

    _wire_names: ClassVar[dict[str, str]] = {
        "conversation_id": "conversationId",
        "content_type": "contentType",
        "created_at": "createdAt",
        "user_id": "userId",
    }

    id: str
    """Its id."""
    conversation_id: str
    """The conversation that stores it: an ancestor's for inherited entries."""
    channel: Channel
    """Its stream."""
    content_type: str
    """What kind of content it holds."""
    content: list[Any]
    """The content, value for value as it was sent."""
    created_at: datetime
    """When it was written."""
    user_id: str | None = None
    """The user it was written for."""
    epoch: int | None = None
    """Its epoch, in the memory channel."""


@dataclass(kw_only=True, repr=False)
class EntryPage(Model):
    """A part of a list of entries, oldest first."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor", "before_cursor": "beforeCursor"}

    data: list[Entry]
    """The entries."""
    after_cursor: str | None = None
    """What to send as `after` for newer entries; null where there are none."""
    before_cursor: str | None = None
    """What to send as `before` for older entries; only there when `tail` or `before` was used."""


@dataclass(kw_only=True, repr=False)
class Envelope(Model):
    """A document: what every file holds."""

    doc_id: str
    """The caller's id of the document."""
    schema_id: str
    """The caller's name for what the content looks like; not interpreted."""
    schema_version: str
    """Its version."""
    content: dict[str, Any]
    """The content itself. Text edits work on its `text`."""
    created_at: str | None = None
    """When it was created (RFC 3339); the time of the first write where absent."""
    updated_at: str | None = None
    """When it was last changed; set by the server."""
    updated_by: str | None = None
    """Who changed it last; set by the server."""


@dataclass(kw_only=True, repr=False)
class EventDigest(Model):
    """What happened, in short."""

    event_id: str
    """The caller's id of the event."""
    tenant_id: str
    """The tenant of the route."""
    user_id: str
    """The user of the route."""
    digest: str
    """The text it is found by."""
    service_id: str | None = None
    """Who wrote it; the actor unless said otherwise."""
    timestamp: str | None = None
    """When it happened (RFC 3339); now unless said otherwise."""
    source_type: str | None = None
    """What kind of source it comes from; `unknown` unless said otherwise."""
    keywords: list[str] | None = None
    """Words it is found by."""
    project_ids: list[str] | None = None
    """Projects it belongs to."""
    evidence: Any = None
    """What it rests on: any JSON."""


@dataclass(kw_only=True, repr=False)
class Fact(Model):
    """A fact: a memory of kind procedural."""

    _wire_names: ClassVar[dict[str, str]] = {
        "fact_type": "factType",
        "created_at": "createdAt",
        "updated_at": "updatedAt",
    }

    id: str
    """Its id, as a memory."""
    fact_type: str
    """What kind of fact."""
    subject: str
    """Of whom or what."""
    predicate: str
    """What is said of it."""
    object: str
    """The value."""
    confidence: float
    """How sure."""
    content: str
    """The text it is found by."""
    layer: MemoryLayer
    """Whose it is."""
    identifiers: MemoryIdentifiers
    """Exactly those that the layer needs."""
    metadata: MemoryMetadata
    """What is known about it."""
    state: MemoryState
    """Where it is in its life."""
    version: int
    """1, and one more with each change."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When it was last changed."""
    etag: str | None = field(default=None, compare=False)
    """The `ETag` it was answered with; none where it came with others."""


@dataclass(kw_only=True, repr=False)
class FactPage(Model):
    """A page of facts."""

    _wire_names: ClassVar[dict[str, str]] = {"total_count": "totalCount", "next_cursor": "nextCursor"}

    facts: list[Fact]
    """The facts."""
    total_count: int
    """How many there are on all pages."""
    next_cursor: str | None = None
    """Where the next page begins; null at the end."""


@dataclass(kw_only=True, repr=False)
class FactStatement(Model):
    """What a procedural memory states."""

    _wire_names: ClassVar[dict[str, str]] = {"fact_type": "factType"}

    fact_type: str
    """What kind of fact."""
    subject: str
    """Of whom or what."""
    predicate: str
    """What is said of it."""
    object: str
    """The value."""
    confidence: float | None = None
    """How sure; 1 unless said otherwise."""


@dataclass(kw_only=True, repr=False)
class FileEntry(Model):
    """A file in a list."""

    path: str
    """Its path."""
    last_modified_utc: datetime
    """When it was last changed."""


@dataclass(kw_only=True, repr=False)
class FileList(Model):
    """A list of files, by lower-cased path."""

    files: list[FileEntry]
    """The files."""
    next_after: str | None = None
    """Where to go on (`after`), if there are more."""


@dataclass(kw_only=True, repr=False)
class FileRef(Model):
    """A file by its path."""

    path: str
    """The path."""


@dataclass(kw_only=True, repr=False)
class ForgetReport(Model):
    """What was removed of a forgotten user."""

    documents_deleted: int
    """Files."""
    events_deleted: int
    """Events."""
    audit_deleted: int
    """Audit records."""
    snapshots_deleted: int
    """Snapshots."""
    search_documents_deleted: int
    """Entries of the event index."""
    conversations: ForgottenConversations
    """Conversations."""
    memories: ForgottenMemories
    """Memories."""


@dataclass(kw_only=True, repr=False)
class ForgottenConversations(Model):
    """What became of a forgotten user's conversations."""

    deleted: int
    """Trees it owned, which are gone."""
    anonymized: int
    """Entries it wrote in the trees of others, which stay without its name."""


@dataclass(kw_only=True, repr=False)
class ForgottenMemories(Model):
    """What became of a forgotten user's memories."""

    deleted: int
    """Its own, and those in shared layers that only it could see, which are gone."""
    anonymized: int
    """Those it made in shared layers, which stay without its name."""


@dataclass(kw_only=True, repr=False)
class ForkPage(Model):
    """A part of a list."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[ConversationForkSummary]
    """The items."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""


@dataclass(kw_only=True, repr=False)
class FoundMemory(Model):
    """A memory that a search found."""

    _wire_names: ClassVar[dict[str, str]] = {"overridden_by": "overriddenBy"}

    memory: Memory
    """The memory."""
    score: float
    """How well it matches."""
    similarity: float
    """How near its meaning is: the raw cosine."""
    layer: MemoryLayer
    """Whose it is."""
    passage: str | None = None
    """The part of its content that matters, if that is longer than 120 words: whole sentences, as they stand
    there.
    """
    overridden_by: str | None = None
    """The one that contradicts it and is newer, or of a more specific layer."""
    explanation: dict[str, Any] | None = None
    """How the score came about."""


@dataclass(kw_only=True, repr=False)
class IndexConversationsResponse(Model):
    """How many entries were indexed."""

    indexed: int
    """The number of items processed."""


@dataclass(kw_only=True, repr=False)
class Job(Model):
    """How a job is doing."""

    job_id: str
    """Its id."""
    kind: str
    """What it does."""
    status: str
    """`queued`, `running`, `succeeded` or `failed`."""
    processed: int
    """How much is done."""
    total: int
    """How much there is to do."""
    errors: list[str]
    """What went wrong."""


@dataclass(kw_only=True, repr=False)
class JobStarted(Model):
    """A job that was started."""

    job_id: str
    """Its id, for `GET /v1/admin/jobs/{job_id}`."""


@dataclass(kw_only=True, repr=False)
class KnowledgeBatch(Model):
    """What became of a batch."""

    operation_id: str
    """The id of this batch."""
    status: str
    """`completed`, or `failed` where it stopped early or nothing succeeded."""
    results: KnowledgeBatchResults
    """What became of its items."""


@dataclass(kw_only=True, repr=False)
class KnowledgeBatchError(Model):
    """Why an item failed."""

    index: int
    """Its place in the batch, counted from 0."""
    code: int
    """The protocol's number."""
    name: str
    """A constant of the error catalogue."""
    message: str
    """For people."""
    id: str | None = None
    """The id it named."""


@dataclass(kw_only=True, repr=False)
class KnowledgeBatchItem(Model):
    """What became of an item."""

    index: int
    """Its place in the batch, counted from 0."""
    status: str
    """`created`, `updated`, `deleted`, `failed` or `skipped`."""
    id: str | None = None
    """The entry."""


@dataclass(kw_only=True, repr=False)
class KnowledgeBatchOptions(Model):
    """How a batch is carried out."""

    continue_on_error: bool | None = None
    """Whether to go on after an item that fails."""


@dataclass(kw_only=True, repr=False)
class KnowledgeBatchResults(Model):
    """What became of the items of a batch."""

    succeeded: int
    """How many succeeded."""
    failed: int
    """How many failed."""
    errors: list[KnowledgeBatchError]
    """Why."""
    items: list[KnowledgeBatchItem]
    """One per item, in their order."""


@dataclass(kw_only=True, repr=False)
class KnowledgeCapabilities(Model):
    """What a provider can do."""

    query: KnowledgeQueryCapabilities
    """Querying."""
    storage: KnowledgeStorageCapabilities
    """Storing."""
    metadata: KnowledgeMetadataCapabilities
    """Metadata."""
    streaming: KnowledgeStreamingCapabilities
    """Streaming."""


@dataclass(kw_only=True, repr=False)
class KnowledgeDiscovery(Model):
    """What a provider says about itself."""

    provider: KnowledgeProvider
    """The provider."""


@dataclass(kw_only=True, repr=False)
class KnowledgeEntry(Model):
    """An entry."""

    id: str
    """Its id, as a memory."""
    metadata: KnowledgeMetadata
    """What is known about it."""
    source: KnowledgeSource
    """Where it comes from."""
    access_policy: str
    """Who of those who have the scope may see it."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When it was last changed."""
    version: int
    """1, and one more with each change."""
    layer: KnowledgeLayer
    """Where it is."""
    content: str | None = None
    """The text; absent where it was not wanted."""
    embedding: list[float] | None = None
    """What it means, as the model sees it; where asked for."""
    etag: str | None = field(default=None, compare=False)
    """The `ETag` it was answered with; none where it came with others."""


@dataclass(kw_only=True, repr=False)
class KnowledgeEntryMetadata(Model):
    """What is known about an entry, without what it says."""

    entry_id: str
    """The entry."""
    metadata: KnowledgeMetadata
    """What is known about it."""
    source: KnowledgeSource
    """Where it comes from."""
    version_history: list[KnowledgeVersion]
    """Its versions, oldest first; the last hundred."""


@dataclass(kw_only=True, repr=False)
class KnowledgeFeatures(Model):
    """What a provider has."""

    semantic_search: bool
    """Queries by meaning."""
    hybrid_search: bool
    """Queries by meaning and words."""
    reranking: bool
    """A second model that orders results."""
    cross_layer_query: bool
    """Queries over several layers."""
    versioning: bool
    """Versions."""
    promotion: bool
    """Promotion from layer to layer."""


@dataclass(kw_only=True, repr=False)
class KnowledgeFilters(Model):
    """Conditions that all must hold. A member that is not known is refused."""

    source_type: str | None = None
    """From this type of source."""
    access_policy: str | None = None
    """With this policy."""
    created_after: datetime | None = None
    """Made no earlier (RFC 3339)."""
    created_before: datetime | None = None
    """Made no later (RFC 3339)."""
    tags: list[str] | None = None
    """With at least one of these."""
    author: str | None = None
    """By this author."""
    custom_filters: dict[str, Any] | None = None
    """Conditions on other metadata: a value, or operators `$eq $ne $gt $gte $lt $lte $in $contains $exists`."""


@dataclass(kw_only=True, repr=False)
class KnowledgeGovernance(Model):
    """What is asked for besides storing. Auditing is always on; there is no approval."""

    require_approval: bool | None = None
    """Not offered: true is answered with 501."""
    verification_required: bool | None = None
    """Not offered: true is answered with 501."""
    audit_log: bool | None = None
    """Always on."""


@dataclass(kw_only=True, repr=False)
class KnowledgeIdentifiers(Model):
    """What a scope is named by."""

    agent_id: str | None = None
    """The agent."""
    user_id: str | None = None
    """The user; the authenticated one unless said otherwise."""
    session_id: str | None = None
    """The session."""
    project_id: str | None = None
    """The project."""
    team_id: str | None = None
    """The team."""
    org_id: str | None = None
    """The organisation."""
    company_id: str | None = None
    """The tenant; no other may be named."""


@dataclass(kw_only=True, repr=False)
class KnowledgeLayer(Model):
    """Where an entry is, or is to be."""

    agent_id: str | None = None
    """The agent."""
    user_id: str | None = None
    """The user; the authenticated one unless said otherwise."""
    session_id: str | None = None
    """The session."""
    project_id: str | None = None
    """The project."""
    team_id: str | None = None
    """The team."""
    org_id: str | None = None
    """The organisation."""
    company_id: str | None = None
    """The tenant; no other may be named."""
    type: str | None = None
    """`working`, `session`, `episodic`, `semantic`, `procedural`, `archival`, `user` or `organization`."""
    scope: str | None = None
    """Whose: `agent`, `user`, `session`, `project`, `team`, `org` or `company`."""


@dataclass(kw_only=True, repr=False)
class KnowledgeLimits(Model):
    """How much of everything there may be."""

    max_entry_size: int
    """The bytes of an entry."""
    max_batch_size: int
    """The items of a batch."""
    max_embeddings_dim: int
    """The length of a vector."""
    query_rate_limit: int | None = None
    """Queries per second that a caller may go on with for one user, rounded down; null where they are not limited."""


@dataclass(kw_only=True, repr=False)
class KnowledgeMetadata(Model):
    """What is known about an entry."""

    title: str | None = None
    """A headline."""
    description: str | None = None
    """A description."""
    tags: list[str] | None = None
    """What it is filtered by."""
    language: str | None = None
    """The language of the content."""
    author: str | None = None
    """Who wrote it."""
    confidence: float | None = None
    """How sure it is."""
    importance: float | None = None
    """How much it matters."""
    custom: dict[str, Any] | None = None
    """Everything else. A procedural entry states its `fact` here."""


@dataclass(kw_only=True, repr=False)
class KnowledgeMetadataCapabilities(Model):
    """What a provider keeps beside content."""

    custom: bool
    """The caller's own members."""
    version_history: bool
    """Who made which version."""


@dataclass(kw_only=True, repr=False)
class KnowledgePointer(Model):
    """A document that a memory points at."""

    _wire_names: ClassVar[dict[str, str]] = {
        "source_type": "sourceType",
        "source_id": "sourceId",
        "content_hash": "contentHash",
        "synced_at": "syncedAt",
        "source_layer": "sourceLayer",
        "is_orphaned": "isOrphaned",
        "is_stale": "isStale",
    }

    source_type: str
    """`adr`, `policy`, `pattern` or `spec`."""
    source_id: str
    """Which one; `file:<path>` is a document of the files surface."""
    content_hash: str
    """The version that the memory tells of."""
    synced_at: datetime
    """When that was read."""
    source_layer: str | None = None
    """`project`, `team`, `org` or `company`."""
    is_orphaned: bool | None = None
    """Whether the document is gone."""
    is_stale: bool | None = None
    """Whether the document says something else by now."""


@dataclass(kw_only=True, repr=False)
class KnowledgeProvider(Model):
    """A provider."""

    name: str
    """Its name."""
    version: str
    """Its version."""
    description: str
    """What it is."""
    capabilities: KnowledgeCapabilities
    """What it can do."""
    supported_sources: list[str]
    """The types of source it takes."""
    limits: KnowledgeLimits
    """How much of everything there may be."""
    features: KnowledgeFeatures
    """What it has."""


@dataclass(kw_only=True, repr=False)
class KnowledgeProviderName(Model):
    """Who answered."""

    name: str
    """The provider."""
    version: str
    """Its version."""


@dataclass(kw_only=True, repr=False)
class KnowledgeQueryCapabilities(Model):
    """How a provider can be queried."""

    modes: list[str]
    """By what."""
    distance_metrics: list[str]
    """Measured how."""
    layers: list[str]
    """Where."""


@dataclass(kw_only=True, repr=False)
class KnowledgeQueryLayer(Model):
    """Where a query looks."""

    agent_id: str | None = None
    """The agent."""
    user_id: str | None = None
    """The user; the authenticated one unless said otherwise."""
    session_id: str | None = None
    """The session."""
    project_id: str | None = None
    """The project."""
    team_id: str | None = None
    """The team."""
    org_id: str | None = None
    """The organisation."""
    company_id: str | None = None
    """The tenant; no other may be named."""
    types: list[str] | None = None
    """The layer types; all unless said otherwise."""


@dataclass(kw_only=True, repr=False)
class KnowledgeQueryMetadata(Model):
    """About a query."""

    total_results: int
    """How many entries match."""
    execution_time_ms: float
    """How long it took."""
    layers_queried: list[str]
    """The layer types that were looked at."""
    provider: KnowledgeProviderName
    """Who answered."""


@dataclass(kw_only=True, repr=False)
class KnowledgeQueryOptions(Model):
    """How many results, how near, with what."""

    limit: int | None = None
    """The most results; 10 unless said otherwise."""
    offset: int | None = None
    """So many are left out first."""
    distance_threshold: float | None = None
    """The greatest distance."""
    distance_metric: str | None = None
    """`cosine`, `euclidean` or `dot`."""
    include_content: bool | None = None
    """With their text; true unless said otherwise."""
    include_embeddings: bool | None = None
    """With their vectors."""
    top_k: int | None = None
    """So many candidates are looked at, before `offset` and `limit`."""


@dataclass(kw_only=True, repr=False)
class KnowledgeResult(Model):
    """A result."""

    entry: KnowledgeEntry
    """The entry."""
    score: float
    """How well it matches."""
    distance: float | None = None
    """How far its meaning is away."""


@dataclass(kw_only=True, repr=False)
class KnowledgeResults(Model):
    """What a query found, best first."""

    query_id: str
    """The id of this query."""
    results: list[KnowledgeResult]
    """The results."""
    metadata: KnowledgeQueryMetadata
    """About the query."""


@dataclass(kw_only=True, repr=False)
class KnowledgeSource(Model):
    """Where an entry comes from. Further members, such as `version` and `provider_id`, are kept."""

    type: str
    """`user_upload`, `git_repository`, `notebooklm`, `dust_ai`, `perplexity`, `web_scrape`, `api_import`,
    `agent_generated` or `custom_provider`.
    """
    identifier: str | None = None
    """Which one."""


@dataclass(kw_only=True, repr=False)
class KnowledgeStorageCapabilities(Model):
    """What a provider can store."""

    layers: list[str]
    """Where."""
    batch_operations: list[str]
    """What a batch may do."""


@dataclass(kw_only=True, repr=False)
class KnowledgeStreamingCapabilities(Model):
    """How a provider tells of changes."""

    formats: list[str]
    """In which formats."""
    types: list[str]
    """Of what."""


@dataclass(kw_only=True, repr=False)
class KnowledgeVersion(Model):
    """A version of an entry."""

    version: int
    """Its number."""
    created_at: datetime
    """When it was made."""
    created_by: str | None = None
    """Who made it; null where that is not known, or not for this caller."""


@dataclass(kw_only=True, repr=False)
class KnowledgeWriteOptions(Model):
    """How an entry is to be stored."""

    generate_embedding: bool | None = None
    """Whether it is to be found by its meaning; true unless said otherwise. Said explicitly, the answer carries
    the vector.
    """
    access_policy: dict[str, Any] | None = None
    """Who may see it, with lists: `policy`, `approved_users`, `allowed_teams`."""
    layer: KnowledgeLayer | None = None
    """Where it is to be."""


@dataclass(kw_only=True, repr=False)
class MembershipPage(Model):
    """A part of a list."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[ConversationMembership]
    """The items."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""


@dataclass(kw_only=True, repr=False)
class Memory(Model):
    """A memory."""

    _wire_names: ClassVar[dict[str, str]] = {
        "content_hash": "contentHash",
        "access_policy": "accessPolicy",
        "created_at": "createdAt",
        "updated_at": "updatedAt",
        "origin_kind": "originKind",
        "created_by": "createdBy",
        "occurred_at": "occurredAt",
        "expires_at": "expiresAt",
        "ttl_seconds": "ttlSeconds",
        "embedding_model": "embeddingModel",
        "access_count": "accessCount",
        "last_accessed_at": "lastAccessedAt",
    }

    id: str
    """Its id."""
    content: str
    """The text, byte for byte as it was given."""
    content_hash: str
    """`sha256:` and the digest of the content."""
    layer: MemoryLayer
    """Whose it is."""
    kind: MemoryKind
    """How it is kept."""
    identifiers: MemoryIdentifiers
    """Exactly those that the layer needs."""
    metadata: MemoryMetadata
    """What is known about it."""
    state: MemoryState
    """Where it is in its life."""
    relevance: float
    """How relevant it is now."""
    access_policy: MemoryAccessPolicy
    """Who may see it."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When it was last changed."""
    version: int
    """1, and one more with each change."""
    origin_kind: MemoryKind | None = None
    """Its kind before it was archived."""
    created_by: MemoryAuthor | None = None
    """Who made it; for trusted clients, admins and whoever made it."""
    occurred_at: datetime | None = None
    """When it happened."""
    expires_at: datetime | None = None
    """When it ceases to exist."""
    ttl_seconds: int | None = None
    """How long it lives after each change."""
    embedding: list[float] | None = None
    """What it means, as the model sees it; where asked for."""
    embedding_model: str | None = None
    """The model that made the embedding."""
    fact: FactStatement | None = None
    """Procedural only: what it states."""
    lineage: MemoryLineage | None = None
    """Where it came from and what became of it."""
    access_count: int | None = None
    """How often it was found, as far as that is counted."""
    last_accessed_at: datetime | None = None
    """When it was last found."""
    etag: str | None = field(default=None, compare=False)
    """The `ETag` it was answered with; none where it came with others."""


@dataclass(kw_only=True, repr=False)
class MemoryAccessPolicy(Model):
    """Who of those who have the scope may see a memory."""

    _wire_names: ClassVar[dict[str, str]] = {"approved_users": "approvedUsers", "allowed_teams": "allowedTeams"}

    policy: AccessPolicyWord
    """The rule."""
    approved_users: list[str] | None = None
    """For `restricted`: who else may see it."""
    allowed_teams: list[str] | None = None
    """For `shared`: whose members may see it."""


@dataclass(kw_only=True, repr=False)
class MemoryAuthor(Model):
    """Who made a memory; shown to those who may know."""

    _wire_names: ClassVar[dict[str, str]] = {"user_id": "userId", "client_id": "clientId"}

    user_id: str | None = None
    """The user."""
    client_id: str | None = None
    """The API-key client."""


@dataclass(kw_only=True, repr=False)
class MemoryCapabilities(Model):
    """What this server can do."""

    _wire_names: ClassVar[dict[str, str]] = {"fork_inheritance": "forkInheritance"}

    layers: list[MemoryLayerInfo]
    """The layers, strongest first."""
    kinds: list[MemoryKindInfo]
    """The kinds."""
    limits: dict[str, Any]
    """How much of everything there may be, by name."""
    defaults: dict[str, Any]
    """What is assumed where a request does not say."""
    embedding: MemoryEmbedding
    """What makes vectors of texts."""
    providers: list[MemoryProvider]
    """What stores memories."""
    fork_inheritance: bool
    """Whether a session that is a fork remembers what its ancestors did."""


@dataclass(kw_only=True, repr=False)
class MemoryComponent(Model):
    """A part of the service."""

    status: str
    """`healthy`, `degraded` or `unhealthy`."""
    message: str | None = None
    """What there is to say about it."""


@dataclass(kw_only=True, repr=False)
class MemoryEmbedding(Model):
    """What makes vectors of texts."""

    provider: str
    """`static`, `local`, `openai` or `none`."""
    calibration: list[list[float]]
    """How a raw cosine becomes a score: points of a line."""
    model: str | None = None
    """The model; null without one."""
    dimensions: int | None = None
    """How long its vectors are; null without one."""


@dataclass(kw_only=True, repr=False)
class MemoryFilter(Model):
    """Conditions that all must hold. A member that is not known is refused."""

    _wire_names: ClassVar[dict[str, str]] = {
        "source_type": "sourceType",
        "has_knowledge_pointer": "hasKnowledgePointer",
    }

    tags: list[str] | None = None
    """At least one of these tags; none is no condition."""
    source_type: MemorySourceType | None = None
    """From this kind of source."""
    has_knowledge_pointer: bool | None = None
    """Only those that point at a document, or only those that do not."""
    custom: dict[str, Any] | None = None
    """Conditions on members of the metadata: a value, or operators `$eq $ne $gt $gte $lt $lte $in $contains
    $exists`.
    """


@dataclass(kw_only=True, repr=False)
class MemoryHealth(Model):
    """Whether memories can be stored and found."""

    _wire_names: ClassVar[dict[str, str]] = {"latency_ms": "latencyMs"}

    status: str
    """`healthy`, `degraded` or `unhealthy`."""
    latency_ms: float
    """How long it took to find out."""
    components: dict[str, MemoryComponent]
    """The same of each part: `embedding`, and `provider:` with its name."""


@dataclass(kw_only=True, repr=False)
class MemoryIdentifiers(Model):
    """What a scope is named by. Which of them a layer needs is fixed; others do no harm. Empty is as good as
    absent.
    """

    _wire_names: ClassVar[dict[str, str]] = {
        "agent_id": "agentId",
        "user_id": "userId",
        "session_id": "sessionId",
        "project_id": "projectId",
        "team_id": "teamId",
        "org_id": "orgId",
        "company_id": "companyId",
    }

    agent_id: str | None = None
    """The agent."""
    user_id: str | None = None
    """The user."""
    session_id: str | None = None
    """The session: a conversation's id, or any other."""
    project_id: str | None = None
    """The project."""
    team_id: str | None = None
    """The team."""
    org_id: str | None = None
    """The organisation."""
    company_id: str | None = None
    """The tenant; no other may be named."""


@dataclass(kw_only=True, repr=False)
class MemoryKindInfo(Model):
    """A kind."""

    _wire_names: ClassVar[dict[str, str]] = {"default_ttl_seconds": "defaultTtlSeconds"}

    name: MemoryKind
    """Its name."""
    layers: list[MemoryLayer]
    """The layers it may stand in."""
    provider: str
    """What stores it."""
    default_ttl_seconds: int | None = None
    """How long it lives unless a memory says otherwise."""


@dataclass(kw_only=True, repr=False)
class MemoryLayerInfo(Model):
    """A layer."""

    _wire_names: ClassVar[dict[str, str]] = {"default_kind": "defaultKind"}

    name: MemoryLayer
    """Its name."""
    precedence: int
    """1 is strongest."""
    requires: list[str]
    """The identifiers it needs."""
    default_kind: MemoryKind
    """The kind of a memory that names none."""


@dataclass(kw_only=True, repr=False)
class MemoryLineage(Model):
    """Where a memory came from and what became of it."""

    _wire_names: ClassVar[dict[str, str]] = {
        "promoted_from": "promotedFrom",
        "promoted_to": "promotedTo",
        "consolidated_from": "consolidatedFrom",
        "superseded_by": "supersededBy",
        "mirror_of": "mirrorOf",
    }

    promoted_from: str | None = None
    """The memory this one is a copy of."""
    promoted_to: str | None = None
    """The copy of this one."""
    consolidated_from: list[str] | None = None
    """The memories this one absorbed."""
    superseded_by: str | None = None
    """The memory that absorbed this one."""
    mirror_of: str | None = None
    """The event that this memory mirrors."""


@dataclass(kw_only=True, repr=False)
class MemoryMetadata(Model):
    """What is known about a memory. Further members are the caller's own and kept as they are; no name may begin
    with `_`.
    """

    _wire_names: ClassVar[dict[str, str]] = {
        "knowledge_pointer": "knowledgePointer",
        "decay_factor": "decayFactor",
        "conflict_key": "conflictKey",
    }

    tags: list[str] | None = None
    """What it is filtered by."""
    source: MemorySource | None = None
    """Where it comes from."""
    knowledge_pointer: KnowledgePointer | None = None
    """The document it points at."""
    relevance: float | None = None
    """How relevant it is to begin with; 1 unless said otherwise."""
    decay_factor: float | None = None
    """How fast it fades, as a multiple; 0 is never."""
    title: str | None = None
    """A headline."""
    description: str | None = None
    """A description."""
    language: str | None = None
    """The language of the content."""
    author: str | None = None
    """Who wrote it."""
    confidence: float | None = None
    """How sure it is."""
    importance: float | None = None
    """How much it matters: from a threshold on, it outlives its session."""
    sensitive: bool | None = None
    """Whether it must not leave its scope."""
    private: bool | None = None
    """The same."""
    conflict_key: str | None = None
    """Memories with the same key contradict each other; a search shows the strongest."""


@dataclass(kw_only=True, repr=False)
class MemoryPage(Model):
    """A page of memories."""

    _wire_names: ClassVar[dict[str, str]] = {"total_count": "totalCount", "next_cursor": "nextCursor"}

    memories: list[Memory]
    """The memories."""
    total_count: int
    """How many there are on all pages."""
    next_cursor: str | None = None
    """Where the next page begins; null at the end."""


@dataclass(kw_only=True, repr=False)
class MemoryProvider(Model):
    """What stores memories."""

    id: str
    """Its name."""
    version: str
    """Its version."""
    capabilities: dict[str, Any]
    """What it can do."""


@dataclass(kw_only=True, repr=False)
class MemorySource(Model):
    """Where a memory comes from. Further members are kept."""

    type: MemorySourceType
    """What kind of source."""
    reference: str | None = None
    """Which one: an entry's id, a path, an address."""


@dataclass(kw_only=True, repr=False)
class MemoryTimeRange(Model):
    """A stretch of time; both ends belong to it."""

    _wire_names: ClassVar[dict[str, str]] = {"from_": "from"}

    from_: datetime | None = None
    """No earlier (RFC 3339)."""
    to: datetime | None = None
    """No later (RFC 3339)."""


@dataclass(kw_only=True, repr=False)
class MovedFile(Model):
    """A file at its new path."""

    path: str
    """Where it is now."""
    etag: str
    """Its version there, for `If-Match`; opaque."""
    document: Envelope
    """What it holds."""
    idempotency_replay: bool | None = None
    """`true` when this is the answer to an earlier request with the same `Idempotency-Key`."""


@dataclass(kw_only=True, repr=False)
class MultiStats(Model):
    """A statistic with a line per operation."""

    metric: str
    """Its name."""
    unit: str
    """What its values count."""
    series: list[StatsSeries]
    """The lines, ordered by label."""


@dataclass(kw_only=True, repr=False)
class NewKnowledgeEntry(Model):
    """What is to be stored."""

    content: str | None = None
    """The text."""
    metadata: KnowledgeMetadata | None = None
    """What is known about it."""
    source: KnowledgeSource | None = None
    """Where it comes from."""
    access_policy: str | None = None
    """Who of those who have the scope may see it."""


@dataclass(kw_only=True, repr=False)
class OwnershipTransfer(Model):
    """An ownership transfer that waits for its recipient."""

    _wire_names: ClassVar[dict[str, str]] = {
        "conversation_id": "conversationId",
        "from_user_id": "fromUserId",
        "to_user_id": "toUserId",
        "created_at": "createdAt",
        "conversation_title": "conversationTitle",
    }

    id: str
    """Its id."""
    conversation_id: str
    """The conversation that was named when it was made."""
    from_user_id: str
    """The owner."""
    to_user_id: str
    """The owner to be."""
    created_at: datetime
    """When it was made."""
    conversation_title: str | None = None
    """That conversation's title."""


@dataclass(kw_only=True, repr=False)
class PromotedMemory(Model):
    """The copy."""

    memory: Memory
    """The copy, or what said the same there already."""
    deduplicated: bool
    """Whether it was there already."""


@dataclass(kw_only=True, repr=False)
class ReconstructedFile(Model):
    """A version of a file, made again from the audit trail and proved by its hashes."""

    change_id: str
    """The change that made it."""
    etag: str
    """Its ETag."""
    document: Envelope
    """What it held, byte for byte."""


@dataclass(kw_only=True, repr=False)
class RetentionReport(Model):
    """What retention removed, and up to when."""

    events_deleted: int
    """Events."""
    audit_deleted: int
    """Audit records."""
    snapshots_deleted: int
    """Snapshots."""
    search_documents_deleted: int
    """Entries of the event index."""
    cutoff_events_utc: str
    """Events before this went."""
    cutoff_audit_utc: str
    """Audit records before this went."""
    cutoff_snapshots_utc: str
    """Snapshots before this went."""
    adjusted: list[str] | None = None
    """The numbers that were changed because fewer days may not be kept: `audit_days`, or not there."""


@dataclass(kw_only=True, repr=False)
class SearchEventsResponse(Model):
    """The events found, best first."""

    results: list[EventDigest]
    """Each exactly as it is stored."""


@dataclass(kw_only=True, repr=False)
class SearchExplanation(Model):
    """How a score came about. `fulltext`: how often and how exactly the query's words are there. `semantic`: the
    score is the similarity. `fused`: the words and the similarity, both with what was said around the entry,
    weighed by `meaning`; then multiplied by what the entry keeps for who said it, for being a long one of an
    agent and for being a question.
    """

    _wire_names: ClassVar[dict[str, str]] = {
        "words_nearby": "wordsNearby",
        "similarity_nearby": "similarityNearby",
        "by_another": "byAnother",
        "by_agent": "byAgent",
    }

    ranker: str
    """What ranked: `fulltext`, `semantic` or `fused`."""
    words: float | None = None
    """Which share of what the query's words are worth the entry says."""
    words_nearby: float | None = None
    """Which share more is said nearby, less for being farther."""
    similarity: float | None = None
    """The cosine of the query's vector and the entry's."""
    similarity_nearby: float | None = None
    """The same together with what was said nearby."""
    meaning: float | None = None
    """What the similarity counts; words count the rest."""
    by_another: float | None = None
    """What the entry keeps for who said it."""
    by_agent: float | None = None
    """What the entry keeps for being a long one of an agent."""
    asks: float | None = None
    """What the entry keeps for being a question."""


@dataclass(kw_only=True, repr=False)
class SearchPage(Model):
    """A part of what a search found, best first."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[SearchResult]
    """The results."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""
    degraded: bool | None = None
    """`true` where not everything could be looked at in time, so that something better may be missing; else not
    there. What is missing is read meanwhile: the same search again finds it soon.
    """


@dataclass(kw_only=True, repr=False)
class SearchResult(Model):
    """An entry that was found."""

    _wire_names: ClassVar[dict[str, str]] = {
        "conversation_id": "conversationId",
        "entry_id": "entryId",
        "conversation_title": "conversationTitle",
    }

    conversation_id: str
    """The conversation that stores it."""
    entry_id: str
    """The entry."""
    score: float
    """How well it matches; larger is better."""
    conversation_title: str | None = None
    """That conversation's title."""
    highlights: str | None = None
    """The part of its text that matched, matches wrapped in `**`."""
    passage: str | None = None
    """The part of its text that matters, if that is longer than 120 words: whole sentences, as they stand there."""
    entry: Entry | None = None
    """The entry."""
    explanation: SearchExplanation | None = None
    """How the score came about, where asked for."""


@dataclass(kw_only=True, repr=False)
class SearchWeights(Model):
    """What each kind of evidence counts when a search ranks by words and meaning together. What is left out is as
    the deployment has it.
    """

    _wire_names: ClassVar[dict[str, str]] = {"by_another": "byAnother"}

    lexical: float | None = None
    """The share of the words; the rest is meaning."""
    context: float | None = None
    """How much the meaning of what was said around an entry counts."""
    by_another: float | None = None
    """What an entry keeps that somebody else said than whom the query is about."""
    asks: float | None = None
    """What an entry keeps that ends with a question."""


@dataclass(kw_only=True, repr=False)
class SearchedMemories(Model):
    """What a search found, strongest first."""

    _wire_names: ClassVar[dict[str, str]] = {
        "total_count": "totalCount",
        "total_count_exact": "totalCountExact",
        "searched_layers": "searchedLayers",
        "threshold_used": "thresholdUsed",
    }

    results: list[FoundMemory]
    """The results."""
    total_count: int
    """How many memories match, before duplicates, overridden ones and the limit are taken away."""
    total_count_exact: bool
    """Whether that is exactly so many."""
    searched_layers: list[MemoryLayer]
    """Where was looked, strongest first."""
    threshold_used: float
    """The least score."""
    time: AskedTime | None = None
    """The time that the query was understood to ask about; not there if it asks about none."""


@dataclass(kw_only=True, repr=False)
class SessionPromotion(Model):
    """A memory that outlives its session."""

    _wire_names: ClassVar[dict[str, str]] = {"from_": "from"}

    from_: str
    """The memory."""
    to: str
    """Its copy."""
    score: float
    """How much it matters."""
    deduplicated: bool
    """Whether the copy was there already."""


@dataclass(kw_only=True, repr=False)
class SingleStats(Model):
    """A statistic with one line."""

    metric: str
    """Its name."""
    unit: str
    """What its values count."""
    data: list[StatsPoint]
    """The line, oldest point first; empty where nothing was recorded."""


@dataclass(kw_only=True, repr=False)
class StatsPoint(Model):
    """One value in time."""

    timestamp: datetime
    """When."""
    value: float | None = None
    """How much; null where it is undefined, such as a share of nothing."""


@dataclass(kw_only=True, repr=False)
class StatsSeries(Model):
    """One of several lines."""

    label: str
    """The operation it is about."""
    data: list[StatsPoint]
    """The line, oldest point first."""


@dataclass(kw_only=True, repr=False)
class StatsSummary(Model):
    """How much there is in the tenant."""

    _wire_names: ClassVar[dict[str, str]] = {"conversation_groups": "conversationGroups"}

    conversation_groups: StatsSummaryGroups
    """Fork trees."""
    conversations: StatsSummaryCount
    """Conversations."""
    entries: StatsSummaryCount
    """Entries."""


@dataclass(kw_only=True, repr=False)
class StatsSummaryCount(Model):
    """How many."""

    total: int
    """All of them."""


@dataclass(kw_only=True, repr=False)
class StatsSummaryGroups(Model):
    """Fork trees."""

    _wire_names: ClassVar[dict[str, str]] = {"oldest_deleted_at": "oldestDeletedAt"}

    total: int
    """All of them."""
    deleted: int
    """Those that are deleted and not yet evicted."""
    oldest_deleted_at: datetime | None = None
    """When the oldest of those was deleted."""


@dataclass(kw_only=True, repr=False)
class StoredFile(Model):
    """A file at a version."""

    etag: str
    """The version, for `If-Match`; opaque."""
    document: Envelope
    """What the file holds."""
    idempotency_replay: bool | None = None
    """`true` when this is the answer to an earlier request with the same `Idempotency-Key`."""


@dataclass(kw_only=True, repr=False)
class SyncEntryResponse(Model):
    """What a sync did."""

    _wire_names: ClassVar[dict[str, str]] = {"no_op": "noOp", "epoch_incremented": "epochIncremented"}

    no_op: bool
    """Nothing was written."""
    epoch_incremented: bool
    """The epoch is a new one."""
    epoch: int | None = None
    """The epoch that is current now."""
    entry: Entry | None = None
    """What was written."""


@dataclass(kw_only=True, repr=False)
class TextEdit(Model):
    """A replacement in a text."""

    old_text: str
    """Text that is there now, exactly."""
    new_text: str
    """What replaces it; empty deletes."""
    occurrence: int | None = None
    """Which match, counted from 1; needed where there are several."""


@dataclass(kw_only=True, repr=False)
class TransferPage(Model):
    """A part of a list."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[OwnershipTransfer]
    """The items."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""


@dataclass(kw_only=True, repr=False)
class UnindexedEntry(Model):
    """A history entry that nobody has given a text to be found by."""

    _wire_names: ClassVar[dict[str, str]] = {"conversation_id": "conversationId"}

    conversation_id: str
    """The conversation that stores it."""
    entry: Entry
    """The entry."""


@dataclass(kw_only=True, repr=False)
class UnindexedPage(Model):
    """A part of a list."""

    _wire_names: ClassVar[dict[str, str]] = {"after_cursor": "afterCursor"}

    data: list[UnindexedEntry]
    """The items."""
    after_cursor: str | None = None
    """What to send as `after` for the next part; null on the last one."""


@dataclass(kw_only=True, repr=False)
class UpdatedMemory(Model):
    """A memory that was changed."""

    _wire_names: ClassVar[dict[str, str]] = {"embedding_regenerated": "embeddingRegenerated"}

    memory: Memory
    """The memory."""
    embedding_regenerated: bool
    """Whether its text is another, and what it means with it."""


@dataclass(kw_only=True, repr=False)
class WrittenKnowledge(Model):
    """An entry that was written."""

    entry: KnowledgeEntry
    """The entry."""
    status: str
    """`created` or `updated`."""


StatsResponse: TypeAlias = SingleStats | MultiStats
"""A statistic over time."""
