"""The tools that a model is given, and how its calls are read. Nothing here calls the server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memloom.errors import ApiError
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


# What a tool takes, in a line that a model can copy from.
_TAKES = {
    "memory_recall": 'memory_recall takes {"query": "plain words", "top_k": 8}; top_k (1 to 20) is optional.',
    "memory_list_files": 'memory_list_files takes {"prefix": "projects/", "limit": 100}; both are optional.',
    "memory_load_file": 'memory_load_file takes {"path": "profile.md"}.',
    "memory_patch_file": (
        'memory_patch_file takes {"path": "profile.md", "edits": [{"old_text": "as it is", "new_text": "as it should'
        ' be", "occurrence": 1}], "reason": "why"}; occurrence and reason are optional.'
    ),
    "memory_write_file": (
        'memory_write_file takes {"path": "profile.md", "content": "the whole text", "reason": "why"}; reason is'
        " optional."
    ),
}


class BadArguments(Exception):
    """A call whose arguments are not what the tool takes; the message says why."""


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """A text that must be given."""
    value = arguments.get(name)
    if isinstance(value, str):
        return value
    raise BadArguments(f"'{name}' is missing" if value is None else f"'{name}' must be a text")


def number_argument(arguments: Mapping[str, Any], names: tuple[str, ...], least: int, most: int, default: int) -> int:
    """A number under one of its names. Models are bad at limits: what is out of range is brought into it."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip().lstrip("-").isdigit():
            value = int(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
            return int(max(least, min(most, value)))
        if value is not None:
            raise BadArguments(f"'{name}' must be a number")
    return default


def edits_argument(arguments: Mapping[str, Any]) -> list[TextEdit]:
    """The edits of a patch: a list, or one beside the path."""
    given = arguments.get("edits")
    if given is None and "old_text" in arguments:
        given = [arguments]
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list) or not given:
        raise BadArguments("'edits' must be a list with at least one edit")
    return [_edit(one) for one in given]


def _edit(value: Any) -> TextEdit:
    if not isinstance(value, Mapping):
        raise BadArguments("an edit must be an object with old_text and new_text")
    old, new = text_argument(value, "old_text"), text_argument(value, "new_text")
    if not old:
        raise BadArguments("'old_text' is empty")
    occurrence = value.get("occurrence")
    if occurrence is not None:
        occurrence = number_argument(value, ("occurrence",), 1, 2**31, 1)
    return TextEdit(old_text=old, new_text=new, occurrence=occurrence)


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


def error_for_model(error: ApiError) -> dict[str, Any]:
    """An answer that is not success, as something the model can act on: code, message, hint, and the details."""
    # Details of files are texts on the wire; a count is easier to use as a number.
    details = {
        name: int(value) if isinstance(value, str) and value.isdigit() else value
        for name, value in error.details.items()
    }
    count, hint = details.get("match_count"), _HINTS.get(error.code, _OTHERWISE)
    if isinstance(count, int) and error.code == "PATCH_MATCH_AMBIGUOUS":
        hint = (
            f"old_text is there {count} times: give occurrence (1 to {count}), or a longer old_text that is there once."
        )
    if isinstance(count, int) and error.code == "PATCH_OCCURRENCE_OUT_OF_RANGE":
        hint = f"Give an occurrence from 1 to {count}."
    return {"error": {**details, "code": error.code, "message": error.message, "hint": hint}}


def bad_path_for_model(message: str) -> dict[str, Any]:
    """A path that is refused before it is sent."""
    return {"error": {"code": "INVALID_PATH", "message": message, "hint": _HINTS["INVALID_PATH"]}}


def bad_arguments_for_model(name: str, message: str) -> dict[str, Any]:
    """Arguments that the tool does not take; the hint says what it takes."""
    return {"error": {"code": "INVALID_ARGUMENTS", "message": message, "hint": _TAKES[name]}}


def unknown_tool_for_model(name: str) -> dict[str, Any]:
    """A tool that does not exist."""
    hint = f"Call one of: {', '.join(_TAKES)}."
    return {"error": {"code": "UNKNOWN_TOOL", "message": f"there is no tool '{name}'", "hint": hint}}
