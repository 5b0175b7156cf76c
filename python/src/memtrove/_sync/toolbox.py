# Made by scripts/generate.py. Do not edit.
"""Runs the tool calls of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memtrove._wire import timestamp
from memtrove.agent import event_for_model
from memtrove.errors import ApiError, InvalidInputError
from memtrove.scope import Scope, file_path
from memtrove.tool_calls import ListFilesCall, LoadFileCall, PatchFileCall, RecallCall, ToolCall, read_call
from memtrove.tool_output import ToolFailure, ToolOutput, answered, told

if TYPE_CHECKING:
    from memtrove._sync.agent import AgentMemory


class Toolbox:
    """The five tools, for one scope that the host has chosen."""

    def __init__(self, memory: AgentMemory, scope: Scope) -> None:
        self._memory = memory
        self._scope = scope

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolOutput:
        """Runs one. Arguments are an object, or its JSON text as OpenAI gives it.

        Whatever the model can do something about comes back as an output, with a hint; so does every refusal of the
        server. Only that the server was not reached, or that its answer could not be read, is raised.
        """
        try:
            call = read_call(name, arguments)
            _check_path(call)
            return ToolOutput(self._run(call))
        except ToolFailure as failure:
            return failure.output()
        except ApiError as error:
            return told(error).output()

    def _run(self, call: ToolCall) -> Any:
        if isinstance(call, RecallCall):
            return [event_for_model(one) for one in self._memory.recall(self._scope, call.query, call.top_k)]
        if isinstance(call, ListFilesCall):
            found = self._memory.list_files(self._scope, call.prefix, call.limit)
            return [{"path": one.path, "last_modified_utc": timestamp(one.last_modified_utc)} for one in found]
        if isinstance(call, LoadFileCall):
            file = self._memory.load_file(self._scope, call.path)
        elif isinstance(call, PatchFileCall):
            file = self._memory.patch_file(self._scope, call.path, call.edits, reason=call.reason)
        else:
            file = self._memory.write_file(self._scope, call.path, call.content, reason=call.reason)
        return file.to_wire()


def _check_path(call: ToolCall) -> None:
    """Looks at the path here, because whatever else cannot be sent is the host's business."""
    if isinstance(call, (RecallCall, ListFilesCall)):
        return
    try:
        file_path(call.path)
    except InvalidInputError as error:
        raise answered("INVALID_PATH", str(error)) from None
