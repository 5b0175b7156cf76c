"""What a tool answers, and what went wrong as data that a model can act on. Nothing here calls the server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memtrove.errors import ApiError


@dataclass(frozen=True)
class ToolOutput:
    """What a tool answers."""

    value: Any
    """The answer, or `{"error": {"code", "message", "hint", …}}`. The memory tool answers with a text."""
    is_error: bool = False
    """Whether it is an error."""

    def text(self) -> str:
        """The answer as the text that a model reads: compact JSON, or the text itself."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))

    def openai_message(self, tool_call_id: str) -> dict[str, Any]:
        """A message of OpenAI's Chat Completions."""
        return {"role": "tool", "tool_call_id": tool_call_id, "content": self.text()}

    def openai_item(self, call_id: str) -> dict[str, Any]:
        """An input item of OpenAI's Responses."""
        return {"type": "function_call_output", "call_id": call_id, "output": self.text()}

    def anthropic_block(self, tool_use_id: str) -> dict[str, Any]:
        """A content block of Anthropic's Messages."""
        said = {"content": self.text(), "is_error": self.is_error}
        return {"type": "tool_result", "tool_use_id": tool_use_id, **said}

    def mcp_result(self) -> dict[str, Any]:
        """A result of MCP's `tools/call`."""
        return {"content": [{"type": "text", "text": self.text()}], "isError": self.is_error}


class ToolFailure(Exception):
    """A failure that is told to the model: what kind, what happened, and what to do now."""

    def __init__(self, code: str, message: str, hint: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details or {}

    def output(self) -> ToolOutput:
        """What the model is given."""
        error = {"code": self.code, "message": self.message, "hint": self.hint}
        return ToolOutput({"error": {**self.details, **error}}, is_error=True)


_NOT_ALLOWED = "This is not allowed here. Do not try again; tell the user."
_NOT_NOW = "The memory is not available right now. Try again later; go on without it meanwhile."
_DEFECT = "Something is wrong with the memory itself. Go on without it and tell the user."
_SHORTER = "Make it shorter, or split it into several files."
_EDITS = "Give at least one edit, each with a non-empty old_text and a new_text."

# What a model can do about an answer; the same words as over MCP.
_HINTS = {
    "DOCUMENT_NOT_FOUND": "See which files exist with memory_list_files, or create this one with memory_write_file.",
    "PATCH_MATCH_AMBIGUOUS": "Give occurrence, or a longer old_text that is there once.",
    "PATCH_OCCURRENCE_OUT_OF_RANGE": "Load the file again with memory_load_file and count the matches.",
    "PATCH_MATCH_NOT_FOUND": (
        "Load the file again with memory_load_file and copy old_text from it exactly; earlier edits of the same call"
        " count."
    ),
    "PATCH_TEXT_NOT_FOUND": (
        "The file holds no text to edit. Look at it with memory_load_file; replace it with memory_write_file."
    ),
    "PATCH_TOO_LARGE": "Send at most 100 edits in one call; the rest in further calls.",
    "INVALID_TEXT_PATCH": _EDITS,
    "INVALID_PATCH": _EDITS,
    "ETAG_MISMATCH": (
        "Somebody else changed the file meanwhile. Load it again with memory_load_file, then repeat the change."
    ),
    "INVALID_PATH": (
        "Use a relative path such as projects/plan.md: no leading or trailing '/', no '..', no empty part."
    ),
    "INVALID_PATH_PREFIX": "Use the beginning of a path, such as projects/, without '..'.",
    "DOCUMENT_SIZE_EXCEEDED": _SHORTER,
    "PAYLOAD_TOO_LARGE": _SHORTER,
    "GOVERNED_PATH": _NOT_ALLOWED,
    "FORBIDDEN": _NOT_ALLOWED,
    "TENANT_FORBIDDEN": _NOT_ALLOWED,
    "WRITE_NOT_ALLOWED": _NOT_ALLOWED,
    "UNAUTHENTICATED": _NOT_ALLOWED,
    "QUOTA_EXCEEDED": "Too much at once. Wait a little, then try again, with fewer calls.",
    "DEPENDENCY_UNAVAILABLE": _NOT_NOW,
    "HTTP_502": _NOT_NOW,
    "HTTP_503": _NOT_NOW,
    "HTTP_504": _NOT_NOW,
    "UNHANDLED_ERROR": _DEFECT,
    "HTTP_500": _DEFECT,
}
_OTHERWISE = "Read the message, change the call accordingly, and do not repeat it as it is."


def answered(code: str, message: str, details: Mapping[str, Any] | None = None) -> ToolFailure:
    """A failure that the server answered with, with the hint that fits its code."""
    told = {name: _as_number(value) for name, value in (details or {}).items()}
    count, hint = told.get("match_count"), _HINTS.get(code, _OTHERWISE)
    if isinstance(count, int) and code == "PATCH_MATCH_AMBIGUOUS":
        hint = (
            f"old_text is there {count} times: give occurrence (1 to {count}), or a longer old_text that is there once."
        )
    if isinstance(count, int) and code == "PATCH_OCCURRENCE_OUT_OF_RANGE":
        hint = f"Give an occurrence from 1 to {count}."
    return ToolFailure(code, message, hint, told)


def told(error: ApiError) -> ToolFailure:
    """What a model is told of an answer that is not success."""
    return answered(error.code, error.message, error.details)


def unknown_tool(name: str, existing: list[str]) -> ToolFailure:
    """A call of a tool that does not exist."""
    return ToolFailure("UNKNOWN_TOOL", f"there is no tool '{name}'", f"Call one of: {', '.join(existing)}.")


def _as_number(value: Any) -> Any:
    """Details of file errors are texts on the wire; a count is easier to use as a number."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value) else value
