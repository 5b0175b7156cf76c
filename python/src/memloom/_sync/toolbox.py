# Made by scripts/generate.py. Do not edit.
"""Runs the tool calls of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memloom._sync.agent import AgentMemory
from memloom._wire import timestamp
from memloom.agent import event_for_model
from memloom.errors import ApiError, InvalidInputError
from memloom.scope import Scope
from memloom.tool_definitions import (
    BadArguments,
    bad_arguments_for_model,
    bad_path_for_model,
    edits_argument,
    error_for_model,
    number_argument,
    text_argument,
    tools,
    unknown_tool_for_model,
)


class Toolbox:
    """The five tools, for one scope that the host has chosen.

    What goes wrong comes back as data that helps the model to go on; only that the server cannot be reached is raised.
    """

    def __init__(self, memory: AgentMemory, scope: Scope) -> None:
        self._memory = memory
        self._scope = scope

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> Any:
        """Runs one. Arguments are an object, or its JSON text as OpenAI gives it."""
        if name not in [tool.name for tool in tools()]:
            return unknown_tool_for_model(name)
        try:
            return self._run(name, _arguments(arguments))
        except BadArguments as error:
            return bad_arguments_for_model(name, str(error))
        except ApiError as error:
            return error_for_model(error)
        except InvalidInputError as error:
            # All that is left to be wrong with arguments that could be read is the path.
            return bad_path_for_model(str(error))

    def _run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name == "memory_recall":
            query = text_argument(arguments, "query")[:2000]
            top_k = number_argument(arguments, ("top_k", "topK"), 1, 20, 8)
            return [event_for_model(one) for one in self._memory.recall(self._scope, query, top_k)]
        if name == "memory_list_files":
            prefix = arguments.get("prefix")
            limit = number_argument(arguments, ("limit",), 1, 200, 100)
            found = self._memory.list_files(self._scope, prefix if isinstance(prefix, str) else None, limit)
            return [{"path": one.path, "last_modified_utc": timestamp(one.last_modified_utc)} for one in found]
        if name == "memory_load_file":
            path = text_argument(arguments, "path")
            return (self._memory.load_file(self._scope, path)).to_wire()
        if name == "memory_patch_file":
            path, edits = text_argument(arguments, "path"), edits_argument(arguments)
            reason = _reason(arguments, "memory_patch_file")
            return (self._memory.patch_file(self._scope, path, edits, reason=reason)).to_wire()
        path, content = text_argument(arguments, "path"), text_argument(arguments, "content")
        reason = _reason(arguments, "memory_write_file")
        return (self._memory.write_file(self._scope, path, content, reason=reason)).to_wire()


def _arguments(given: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            raise BadArguments("the arguments are not JSON") from None
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    raise BadArguments("the arguments must be a JSON object")


def _reason(arguments: Mapping[str, Any], default: str) -> str:
    reason = arguments.get("reason")
    return reason[:256] if isinstance(reason, str) and reason.strip() else default
