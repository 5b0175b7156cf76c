"""Memloom for Python: one memory for AI agents.

`MemloomClient` and `AsyncMemloomClient` have every operation of the server, in groups.
"""

from memloom._async.client import AsyncMemloomClient
from memloom._sync.client import MemloomClient
from memloom._wire import UNSET
from memloom.edits import CREATE_NEW, FilePatch, FileWrite, PatchOp
from memloom.errors import ApiError, DecodeError, InvalidInputError, MemloomError, TransportError
from memloom.models import EventDigest, MemoryFilter, MemoryIdentifiers, MemoryMetadata, NewMemory, TextEdit
from memloom.retry import RetryPolicy
from memloom.scope import Scope

__all__ = [
    "CREATE_NEW",
    "UNSET",
    "ApiError",
    "AsyncMemloomClient",
    "DecodeError",
    "EventDigest",
    "FilePatch",
    "FileWrite",
    "InvalidInputError",
    "MemloomClient",
    "MemloomError",
    "MemoryFilter",
    "MemoryIdentifiers",
    "MemoryMetadata",
    "NewMemory",
    "PatchOp",
    "RetryPolicy",
    "Scope",
    "TextEdit",
    "TransportError",
]
