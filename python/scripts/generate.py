#!/usr/bin/env python3
"""Makes the parts of the package that nobody should write by hand.

    generate.py            writes them
    generate.py --check    says what would change, and fails if anything would

- `memtrove/models.py` and `memtrove/operations.py` come from `openapi/memtrove.json`: what the server answers with, and
  which operations there are.
- `memtrove/_sync/` comes from `memtrove/_async/`: the same code without waiting. Only the asynchronous half is written.
"""

import difflib
import json
import keyword
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from typing import Any

PYTHON = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = PYTHON / "src" / "memtrove"
DOCUMENT = PYTHON.parent / "openapi" / "memtrove.json"
MARK = "# Made by scripts/generate.py. Do not edit."

Schema = dict[str, Any]
REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')

# Operations that change nothing although they are POST: they may be repeated like any reading.
READS = {
    "admin_search_conversations",
    "assemble_context",
    "filter_memories",
    "query_facts",
    "query_knowledge",
    "reconstruct_version",
    "search_conversations",
    "search_events",
    "search_memories",
}

# Members of these are told apart by being given or not, so they are written by hand in `edits.py`.
BY_HAND = {"PatchOp"}

# Answers that come with an `ETag` header, which the model carries along.
TAGGED = {"Memory", "Fact", "KnowledgeEntry"}

# Times that belong to whoever wrote them. Read as a `datetime` and written again they would be other texts: without
# nanoseconds, in another zone; and a leap second is none at all.
AS_WRITTEN = {("Envelope", "created_at"), ("EventDigest", "timestamp")}

# Generic pages, under the names that people would give them.
PAGES = {
    "EntriesPage_AdminEntry": ("AdminEntryPage", "AdminEntry"),
    "EntriesPage_Entry": ("EntryPage", "Entry"),
    "Page_AdminAttachmentSummary": ("AdminAttachmentPage", "AdminAttachmentSummary"),
    "Page_AdminConversationSummary": ("AdminConversationPage", "AdminConversationSummary"),
    "Page_ConversationForkSummary": ("ForkPage", "ConversationForkSummary"),
    "Page_ConversationMembership": ("MembershipPage", "ConversationMembership"),
    "Page_ConversationSummary": ("ConversationPage", "ConversationSummary"),
    "Page_OwnershipTransfer": ("TransferPage", "OwnershipTransfer"),
    "SearchPage_AdminEntry": ("AdminSearchPage", "AdminSearchResult"),
    "SearchPage_Entry": ("SearchPage", "SearchResult"),
    "Page_UnindexedEntry": ("UnindexedPage", "UnindexedEntry"),
}

# Generic items of such pages.
RESULTS = {"SearchResult_AdminEntry", "SearchResult_Entry"}


def snake(name: str) -> str:
    """The Python name of a member."""
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def is_model(name: str) -> bool:
    """Whether a schema becomes a class: not what is sent as a whole, nor errors, wrappers and events of streams."""
    sent = name.endswith("Request") and name != "AddMemoryRequest"
    told = name.endswith(("ErrorBody", "ErrorDetail", "UnavailableBody")) or name in ("ErrorDetails", "FieldViolation")
    wrapper = name.startswith(("One", "Page_", "EntriesPage_"))
    stream = name in ("ResponseEvent", "ChangeEvent", "KnowledgeEvent", "ProgressEvent", "AttachmentForm")
    return not (sent or told or wrapper or stream or name in BY_HAND)


def left_out(operation: Schema) -> bool:
    """Whether an operation is somebody else's interface, which has clients of its own."""
    return "mem0" in operation.get("tags", [])


def reachable(document: Schema) -> set[str]:
    """The schemas that the operations speak of, directly or through others."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    open_, found = set[str](), set[str]()
    for methods in document["paths"].values():
        for operation in methods.values():
            if isinstance(operation, dict) and not left_out(operation):
                open_ |= set(REFERENCE.findall(json.dumps(operation)))
    while open_:
        name = open_.pop()
        found.add(name)
        # Pages repeat what they hold instead of referring to it.
        held = {PAGES[name][1], "AdminEntry", "Entry"} if name in PAGES else set[str]()
        open_ |= held & schemas.keys() - found
        open_ |= set(REFERENCE.findall(json.dumps(schemas[name]))) - found
    return found


def python_type(schema: Any) -> str:
    """The type of a member, without whether it may be absent."""
    if not isinstance(schema, dict):
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "oneOf" in schema:
        variants = [one for one in schema["oneOf"] if one.get("type") != "null"]
        return " | ".join(dict.fromkeys(python_type(one) for one in variants))
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
    if kinds == ["array"]:
        return f"list[{python_type(schema.get('items'))}]"
    if kinds == ["object"]:
        return f"dict[str, {python_type(schema.get('additionalProperties'))}]"
    if kinds == ["string"]:
        return "datetime" if schema.get("format") == "date-time" else "str"
    plain = {"integer": "int", "number": "float", "boolean": "bool"}
    return plain[kinds[0]] if len(kinds) == 1 and kinds[0] in plain else "Any"


def nullable(schema: Any) -> bool:
    """Whether a member may be null."""
    if not isinstance(schema, dict):
        return False
    variants = schema.get("oneOf", [])
    return "null" in schema.get("type", []) or any(one.get("type") == "null" for one in variants)


def described(schema: Any) -> str:
    """What a member is, on one line."""
    if not isinstance(schema, dict):
        return ""
    text = schema.get("description") or next((described(one) for one in schema.get("oneOf", []) if described(one)), "")
    return " ".join(text.split())


def members(schema: Schema, schemas: dict[str, Schema]) -> tuple[dict[str, Any], set[str]]:
    """The members of an object, those of its parts included, and which of them are always there."""
    properties: dict[str, Any] = {}
    required: set[str] = set(schema.get("required", []))
    for part in schema.get("allOf", []):
        part = schemas[part["$ref"].rsplit("/", 1)[-1]] if "$ref" in part else part
        more, also = members(part, schemas)
        properties |= more
        required |= also
    return properties | schema.get("properties", {}), required


def doc(text: str, indent: str = "    ") -> str:
    """A docstring."""
    text = " ".join(text.replace("[`", "`").replace("`]", "`").split()) or "What the server answers with."
    text = text if text.endswith((".", "!", "?", "…")) else f"{text}."
    lines = textwrap.wrap(text, 108, break_long_words=False)
    return f'{indent}"""{lines[0]}"""' if len(lines) == 1 else f'{indent}"""' + f"\n{indent}".join([*lines, '"""'])


def class_of(name: str, schema: Schema, schemas: dict[str, Schema]) -> str:
    """One dataclass."""
    properties, required = members(schema, schemas)
    lines, names = [], {}
    for wire in sorted(properties, key=lambda wire: wire not in required or nullable(properties[wire])):
        member, kind, optional = snake(wire), python_type(properties[wire]), nullable(properties[wire])
        kind = "str" if (name, wire) in AS_WRITTEN else kind
        kind = f"{kind} | None" if (optional or wire not in required) and kind != "Any" else kind
        # What is only sent may also be given as the JSON object it becomes.
        kind = kind.replace("MemoryMetadata", "MemoryMetadata | dict[str, Any]") if name == "NewMemory" else kind
        default = "" if wire in required and not optional else " = None"
        names[member] = wire
        lines.append(f"    {member}: {kind}{default}")
        if about := described(properties[wire]):
            lines.append(doc(about))
    if name in TAGGED:
        lines.append("    etag: str | None = field(default=None, compare=False)")
        lines.append(doc("The `ETag` it was answered with; none where it came with others."))
    changed = {member: wire for member, wire in names.items() if member != wire}
    table = "{" + ", ".join(f'"{member}": "{wire}"' for member, wire in changed.items()) + "}"
    head = f"@dataclass(kw_only=True, repr=False)\nclass {name}(Model):\n{doc(described(schema))}\n\n"
    return head + (f"    _wire_names: ClassVar[dict[str, str]] = {table}\n\n" if changed else "") + "\n".join(lines)


def models(document: Schema) -> str:
    """The module of models."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    words, classes, unions, wanted, spoken = [], [], [], {}, reachable(document)
    for name, schema in schemas.items():
        if name not in spoken:
            continue
        if name in PAGES:
            page, item = PAGES[name]
            inline = schema["properties"]["data"]["items"]
            if item not in schemas:
                inline = schemas[inline["$ref"].rsplit("/", 1)[1]] if "$ref" in inline else inline
                admin = item.startswith("Admin")
                inline["properties"]["entry"] = {
                    "$ref": "AdminEntry" if admin else "Entry",
                    "description": "The entry.",
                }
                inline.setdefault("description", "An entry that a search found.")
                wanted[item] = inline
            schema["properties"]["data"]["items"] = {"$ref": item}
            schema.setdefault("description", "A page.")
            wanted[page] = schema
        elif is_model(name) and name not in RESULTS:
            wanted[name] = schema
    for name, schema in sorted(wanted.items()):
        if "enum" in schema:
            values = ", ".join(f'"{value}"' for value in schema["enum"])
            words.append(f"{name}: TypeAlias = Literal[{values}]\n{doc(described(schema), '')}")
        elif "oneOf" in schema:
            unions.append(f"{name}: TypeAlias = {python_type(schema)}\n{doc(described(schema), '')}")
        else:
            classes.append(class_of("NewMemory" if name == "AddMemoryRequest" else name, schema, schemas))
    text = "\n\n\n".join([*words, *classes, *unions])
    head = f'''{MARK}
"""What the server answers with, and what goes into requests as a part of them.

Members that this version does not know are kept in `extra`, and sent back with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

from memtrove._wire import Model

'''
    return head + text + "\n"


def operations(document: Schema) -> str:
    """The module of operations."""
    # Where the server says what it is; it is no part of its interface.
    rows = [("status", "GET", "/", True)]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "put", "post", "patch", "delete") and not left_out(operation):
                name = operation["operationId"]
                rows.append((name, method.upper(), path, method == "get" or name in READS))
    table = "\n".join(
        f'    "{name}": Operation("{method}", "{path}", reads={reads}),' for name, method, path, reads in sorted(rows)
    )
    return f'''{MARK}
"""Every operation of the server, by its name in the OpenAPI document."""

from typing import NamedTuple


class Operation(NamedTuple):
    """How an operation is called."""

    method: str
    """The HTTP method."""
    path: str
    """The path, with its parameters in braces."""
    reads: bool
    """Whether it changes nothing, so that it may be repeated after a failure."""


OPERATIONS: dict[str, Operation] = {{
{table}
}}
'''


# What the synchronous half calls things; the longer ones first.
WORDS = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r", Awaitable\b|\bAwaitable, ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bmemtrove\._async\b", "memtrove._sync"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\baiter_(raw|bytes|lines)\b", r"iter_\1"),
    (r"\ba(close|read)\b", r"\1"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basynchronous\b", "synchronous"),
]


def without_waiting(text: str) -> str:
    """The synchronous twin of an asynchronous module."""
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return f"{MARK}\n{text}"


def formatted(made: dict[pathlib.Path, str]) -> dict[pathlib.Path, str]:
    """As ruff writes them: in a copy of the package's layout, all at once."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(PYTHON / "pyproject.toml", folder)
        copies = {path: folder / path.relative_to(PYTHON) for path in made}
        for path, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(made[path])
        for command in (["check", "--fix-only", "--quiet", "--select", "I,UP"], ["format", "--quiet"]):
            subprocess.run([sys.executable, "-m", "ruff", *command, "--no-cache", "."], check=True, cwd=folder)
        return {path: copy.read_text() for path, copy in copies.items()}


def main() -> None:
    """Writes, or compares."""
    document = json.loads(DOCUMENT.read_text())
    made = {PACKAGE / "operations.py": operations(document), PACKAGE / "models.py": models(document)}
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        made[PACKAGE / "_sync" / source.name] = without_waiting(source.read_text())
    stale = [path for path in (PACKAGE / "_sync").glob("*.py") if path not in made]
    for path, text in formatted(made).items():
        old = path.read_text() if path.exists() else ""
        if old != text and "--check" in sys.argv:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), str(path), "made"))
            stale.append(path)
        elif old != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(PYTHON)}")
    if "--check" in sys.argv:
        sys.exit(f"run scripts/generate.py: {', '.join(path.name for path in stale)}" if stale else 0)
    for path in stale:
        path.unlink()


if __name__ == "__main__":
    main()
