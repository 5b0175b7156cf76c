"""The tools that a model is given, and how its calls are read. Nothing here calls the server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memloom.errors import ApiError, InvalidInputError
from memloom.models import TextEdit

_PATH = {"type": "string", "minLength": 1, "maxLength": 1024}
_REASON = {"type": "string", "maxLength": 256}


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it is for, and the JSON Schema of its arguments."""

    name: str
    """The name."""
    description: str
    """What it is for, as the model reads it."""
    parameters: dict[str, Any]
    """The schema."""


def tools() -> list[Tool]:
    """The five tools."""
    return copy.deepcopy(_TOOLS)


def openai_chat_tools() -> list[dict[str, Any]]:
    """For OpenAI's Chat Completions, and those that speak like it."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools()
    ]


def openai_responses_tools() -> list[dict[str, Any]]:
    """For OpenAI's Responses. Not `strict`: that would make every argument required."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        for tool in tools()
    ]


def anthropic_tools() -> list[dict[str, Any]]:
    """For Anthropic's Messages."""
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools()]


def mcp_tools() -> list[dict[str, Any]]:
    """For an MCP server's `tools/list`."""
    return [{"name": tool.name, "description": tool.description, "inputSchema": tool.parameters} for tool in tools()]


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": required} if required else schema


_EDIT = _object(
    ["old_text", "new_text"],
    old_text={"type": "string", "minLength": 1, "description": "Text that is in the file now, exactly."},
    new_text={"type": "string", "description": "What replaces it; empty deletes."},
    occurrence={
        "type": ["integer", "null"],
        "minimum": 1,
        "description": "Which match, counted from 1; needed only if there are several.",
    },
)

_TOOLS = [
    Tool(
        "memory_recall",
        "Search earlier events and return the best matching digests.",
        _object(
            ["query"],
            query={
                "type": "string",
                "minLength": 1,
                "maxLength": 2000,
                "description": "What to look for, in plain words.",
            },
            top_k={"type": "integer", "minimum": 1, "maximum": 20, "default": 8},
        ),
    ),
    Tool(
        "memory_list_files",
        "List memory files, optionally only those whose path starts with a prefix.",
        _object(
            [],
            prefix={"type": ["string", "null"], "maxLength": 1024, "description": "For example projects/"},
            limit={"type": "integer", "minimum": 1, "maximum": 200, "default": 100},
        ),
    ),
    Tool(
        "memory_load_file",
        "Return the full text of one memory file.",
        _object(["path"], path={**_PATH, "description": "For example profile.md"}),
    ),
    Tool(
        "memory_patch_file",
        "Change parts of a memory file by exact text replacement. All edits succeed or none does.",
        _object(
            ["path", "edits"],
            path=_PATH,
            edits={"type": "array", "minItems": 1, "maxItems": 100, "items": _EDIT},
            reason=_REASON,
        ),
    ),
    Tool(
        "memory_write_file",
        "Create a memory file or replace its whole text.",
        _object(
            ["path", "content"],
            path=_PATH,
            content={"type": "string", "description": "The complete new text, usually Markdown."},
            reason=_REASON,
        ),
    ),
]


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """A text that must be given."""
    value = arguments.get(name)
    if isinstance(value, str):
        return value
    raise InvalidInputError(f"{name} must be a text")


def number_argument(arguments: Mapping[str, Any], names: tuple[str, ...], least: int, most: int, default: int) -> int:
    """A number under one of its names. Models are bad at limits: what is out of range is brought into it."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip().lstrip("-").isdigit():
            value = int(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
            return int(max(least, min(most, value)))
    return default


def edits_argument(arguments: Mapping[str, Any]) -> list[TextEdit]:
    """The edits of a patch: a list, or one beside the path."""
    given = arguments.get("edits")
    if given is None and "old_text" in arguments:
        given = [arguments]
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list) or not given:
        raise InvalidInputError("edits must be a list of {old_text, new_text}, with at least one")
    return [_edit(one) for one in given]


def _edit(value: Any) -> TextEdit:
    if not isinstance(value, Mapping):
        raise InvalidInputError("an edit must be an object with old_text and new_text")
    occurrence = value.get("occurrence")
    if occurrence is not None:
        occurrence = number_argument(value, ("occurrence",), 1, 2**31, 1)
    return TextEdit(
        old_text=text_argument(value, "old_text"), new_text=text_argument(value, "new_text"), occurrence=occurrence
    )


_HINTS = {
    "DOCUMENT_NOT_FOUND": "There is no such file. Call memory_list_files, or create it with memory_write_file.",
    "PATCH_MATCH_NOT_FOUND": "The text is not in the file. Call memory_load_file and copy old_text exactly.",
    "PATCH_MATCH_AMBIGUOUS": "The text is there {match_count} times. Give occurrence (from 1), or a longer old_text.",
    "PATCH_OCCURRENCE_OUT_OF_RANGE": "There are fewer matches than that. Load the file and count again.",
    "PATCH_TEXT_NOT_FOUND": "This file has no text to edit. Replace it with memory_write_file.",
    "PATCH_TOO_LARGE": "These are too many edits at once. Send at most 100.",
    "DOCUMENT_SIZE_EXCEEDED": "The file would be too large. Keep it shorter, or split it into several files.",
    "INVALID_PATH": "This path cannot be used. Use names with single slashes, such as projects/alpha.md.",
    "ETAG_MISMATCH": "The file is being changed by others. Load it again and repeat your change.",
    "QUOTA_EXCEEDED": "The limit is reached for now. Go on without memory and try again later.",
}


def error_for_model(error: ApiError) -> dict[str, Any]:
    """An answer that is not success, as something the model can act on. A defect of the server is told as it is."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    match_count = error.details.get("match_count")
    if isinstance(match_count, str) and match_count.isdigit():
        match_count = int(match_count)
    if match_count is not None:
        told["match_count"] = match_count
    if error.status >= 500:
        hint = "The memory is not available right now. Go on without it, and try again later."
    else:
        hint = _HINTS.get(error.code, "Read the message, change the arguments, and call the tool again.")
    told["hint"] = hint.format(match_count="several" if match_count is None else match_count)
    return {"error": told}


def invalid_for_model(message: str) -> dict[str, Any]:
    """Arguments that cannot be used."""
    hint = "Change the arguments as the tool describes them, and call it again."
    return {"error": {"code": "INVALID_ARGUMENTS", "message": message, "hint": hint}}
