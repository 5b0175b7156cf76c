"""Memtrove for Python: one memory for AI agents.

- `Memtrove` is memory in ten lines: remember, recall, forget, a transcript, notes.
- `MemtroveClient` has every operation of the server, in groups: `client.memories.search(…)`.
- `AgentMemory`, `Toolbox` and `AnthropicMemoryTool` are for those who build agents.

Each has a twin that begins with `Async`.
"""

from memtrove._async.agent import AsyncAgentMemory
from memtrove._async.client import AsyncMemtroveClient
from memtrove._async.facade import AsyncMemtrove, AsyncNotes
from memtrove._async.memory_tool import AsyncAnthropicMemoryTool
from memtrove._async.session import AsyncMemorySession
from memtrove._async.toolbox import AsyncToolbox
from memtrove._sse import ServerEvent
from memtrove._sync.agent import AgentMemory
from memtrove._sync.client import MemtroveClient
from memtrove._sync.facade import Memtrove, Notes
from memtrove._sync.memory_tool import AnthropicMemoryTool
from memtrove._sync.session import MemorySession
from memtrove._sync.toolbox import Toolbox
from memtrove._version import __version__
from memtrove._wire import UNSET
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
)
from memtrove.content import Content
from memtrove.edits import CREATE_NEW, FilePatch, FileWrite, PatchOp
from memtrove.errors import ApiError, DecodeError, InvalidInputError, MemtroveError, TransportError
from memtrove.facade import Hit, Message
from memtrove.models import (
    Envelope,
    EventDigest,
    Memory,
    MemoryFilter,
    MemoryIdentifiers,
    MemoryMetadata,
    NewMemory,
    TextEdit,
)
from memtrove.policy import MemoryPolicy, SlotPolicy, SlotRules
from memtrove.replay import ChangeNotice, IndexedText, Progress, ReplayEvent
from memtrove.retry import RetryPolicy
from memtrove.scope import Scope
from memtrove.service import ServiceHealth, ServiceReadiness, ServiceStatus
from memtrove.tool_definitions import Tool, anthropic_tools, mcp_tools, openai_chat_tools, openai_responses_tools, tools
from memtrove.tool_output import ToolOutput

__all__ = [
    "CREATE_NEW",
    "UNSET",
    "AgentMemory",
    "AgentMemoryOptions",
    "AnthropicMemoryTool",
    "ApiError",
    "AsyncAgentMemory",
    "AsyncAnthropicMemoryTool",
    "AsyncMemorySession",
    "AsyncMemtrove",
    "AsyncMemtroveClient",
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
    "Memory",
    "MemoryEdit",
    "MemoryFile",
    "MemoryFileEntry",
    "MemoryFilter",
    "MemoryIdentifiers",
    "MemoryMetadata",
    "MemoryPolicy",
    "MemorySession",
    "Memtrove",
    "MemtroveClient",
    "MemtroveError",
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
