"""The tools that a model is given, in the shape that each vendor wants. Nothing here calls the server."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

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

    @property
    def only_reads(self) -> bool:
        """Whether it leaves everything as it is."""
        return self.name not in ("memory_patch_file", "memory_write_file")


def tools() -> list[Tool]:
    """The five tools."""
    return copy.deepcopy(_TOOLS)


def openai_chat_tools(*, strict: bool = False) -> list[dict[str, Any]]:
    """For OpenAI's Chat Completions, and those that speak like it.

    With `strict` the model is held to the schema. Then every argument is required, and those that may be missing may
    be null.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": _strict(tool.parameters) if strict else tool.parameters,
                **({"strict": True} if strict else {}),
            },
        }
        for tool in tools()
    ]


def openai_responses_tools(*, strict: bool = False) -> list[dict[str, Any]]:
    """For OpenAI's Responses; `strict` as for Chat Completions. Here it is what is not said, so it is said."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": _strict(tool.parameters) if strict else tool.parameters,
            "strict": strict,
        }
        for tool in tools()
    ]


def anthropic_tools() -> list[dict[str, Any]]:
    """For Anthropic's Messages."""
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools()]


def mcp_tools() -> list[dict[str, Any]]:
    """For an MCP server's `tools/list`."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.parameters,
            "annotations": {"readOnlyHint": tool.only_reads, "openWorldHint": False},
        }
        for tool in tools()
    ]


# What strict schemas cannot say. It is checked when a call is read anyway, and numbers are brought into their range.
_NOT_IN_STRICT_SCHEMAS = ("minLength", "maxLength", "default")


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in which every property is required and those that were optional may be null."""
    strict = {word: value for word, value in schema.items() if word not in _NOT_IN_STRICT_SCHEMAS}
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    if "properties" in schema:
        required = schema.get("required", [])
        properties = {name: _strict(one) for name, one in schema["properties"].items()}
        strict["properties"] = {name: one if name in required else _nullable(one) for name, one in properties.items()}
        strict["required"] = [*properties]
    return strict


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, or null."""
    kind = schema.get("type")
    return {**schema, "type": [kind, "null"]} if isinstance(kind, str) else schema


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
