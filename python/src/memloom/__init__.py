"""Memloom for Python: one memory for AI agents.

- `Memloom` is memory in ten lines: remember, recall, forget, a transcript, notes.
- `MemloomClient` has every operation of the server, in groups: `client.memories.search(…)`.
- `AgentMemory`, `Toolbox` and `AnthropicMemoryTool` are for those who build agents.

Each has a twin that begins with `Async`.
"""

from memloom._async.agent import AsyncAgentMemory
from memloom._async.client import AsyncMemloomClient
from memloom._async.facade import AsyncMemloom, AsyncNotes
from memloom._async.memory_tool import AsyncAnthropicMemoryTool
from memloom._async.session import AsyncMemorySession
from memloom._async.toolbox import AsyncToolbox
from memloom._sse import ServerEvent
from memloom._sync.agent import AgentMemory
from memloom._sync.client import MemloomClient
from memloom._sync.facade import Memloom, Notes
from memloom._sync.memory_tool import AnthropicMemoryTool
from memloom._sync.session import MemorySession
from memloom._sync.toolbox import Toolbox
from memloom._version import __version__
from memloom._wire import UNSET
from memloom.agent import (
    AgentMemoryOptions,
    CreateOnly,
    IfUnchanged,
    MemoryEdit,
    MemoryFile,
    MemoryFileEntry,
    Overwrite,
    PreparedTurn,
    SlotDocument,
)
from memloom.content import Content
from memloom.edits import CREATE_NEW, FilePatch, FileWrite, PatchOp
from memloom.errors import ApiError, DecodeError, InvalidInputError, MemloomError, TransportError
from memloom.facade import Hit, Message
from memloom.models import (
    Envelope,
    EventDigest,
    Memory,
    MemoryFilter,
    MemoryIdentifiers,
    MemoryMetadata,
    NewMemory,
    TextEdit,
)
from memloom.policy import MemoryPolicy, SlotPolicy, SlotRules
from memloom.replay import ChangeNotice, IndexedText, Progress, ReplayEvent
from memloom.retry import RetryPolicy
from memloom.scope import Scope
from memloom.service import ServiceHealth, ServiceReadiness, ServiceStatus
from memloom.tool_definitions import Tool, anthropic_tools, mcp_tools, openai_chat_tools, openai_responses_tools, tools
from memloom.tool_output import ToolOutput

__all__ = [
    "CREATE_NEW",
    "UNSET",
    "AgentMemory",
    "AgentMemoryOptions",
    "AnthropicMemoryTool",
    "ApiError",
    "AsyncAgentMemory",
    "AsyncAnthropicMemoryTool",
    "AsyncMemloom",
    "AsyncMemloomClient",
    "AsyncMemorySession",
    "AsyncNotes",
    "AsyncToolbox",
    "ChangeNotice",
    "Content",
    "CreateOnly",
    "DecodeError",
    "Envelope",
    "EventDigest",
    "FilePatch",
    "FileWrite",
    "Hit",
    "IfUnchanged",
    "IndexedText",
    "InvalidInputError",
    "Memloom",
    "MemloomClient",
    "MemloomError",
    "Memory",
    "MemoryEdit",
    "MemoryFile",
    "MemoryFileEntry",
    "MemoryFilter",
    "MemoryIdentifiers",
    "MemoryMetadata",
    "MemoryPolicy",
    "MemorySession",
    "Message",
    "NewMemory",
    "Notes",
    "Overwrite",
    "PatchOp",
    "PreparedTurn",
    "Progress",
    "ReplayEvent",
    "RetryPolicy",
    "Scope",
    "ServerEvent",
    "ServiceHealth",
    "ServiceReadiness",
    "ServiceStatus",
    "SlotDocument",
    "SlotPolicy",
    "SlotRules",
    "TextEdit",
    "Tool",
    "ToolOutput",
    "Toolbox",
    "TransportError",
    "__version__",
    "anthropic_tools",
    "mcp_tools",
    "openai_chat_tools",
    "openai_responses_tools",
    "tools",
]
