"""Slots: files that an agent knows by a name, and what may be done to them. Nothing here calls the server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memloom.edits import PatchOp
from memloom.errors import InvalidInputError
from memloom.scope import file_path

_VARIABLE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class SlotRules:
    """What is checked before a slot is changed. An empty list or `None` checks nothing."""

    allowed_paths: Sequence[str] = ()
    """Where operations may change something: JSON pointers below the content, with all that is below them."""
    required_content_paths: Sequence[str] = ()
    """What a new content must have: JSON pointers below the content."""
    max_content_chars: int | None = None
    """How large a new content may be, as compact JSON."""
    max_array_items: int | None = None
    """How many items every array of a new content may have."""


@dataclass(frozen=True)
class SlotPolicy:
    """A file under a name."""

    slot_id: str
    """The name."""
    path: str | None = None
    """Where the file is …"""
    path_template: str | None = None
    """… or where, with variables in braces: `projects/{project_id}.md`."""
    load_by_default: bool = False
    """Whether every turn begins with it."""
    rules: SlotRules = field(default_factory=SlotRules)
    """What is checked."""

    def __post_init__(self) -> None:
        if self.path and self.path_template:
            raise InvalidInputError(f"the slot {self.slot_id!r} has both a path and a path_template; keep one")

    def resolve(self, variables: Mapping[str, str] | None = None) -> str:
        """The path of the file."""
        if self.path:
            return file_path(self.path)
        if not self.path_template:
            raise InvalidInputError(f"the slot {self.slot_id!r} has neither a path nor a path_template")

        def value(found: re.Match[str]) -> str:
            given = (variables or {}).get(found[1], "")
            if not given.strip():
                raise InvalidInputError(f"the slot {self.slot_id!r} needs a value for {{{found[1]}}}")
            if "/" in given or "\\" in given:
                raise InvalidInputError(f"the value {given!r} of {{{found[1]}}} must not have a slash: it is one name")
            return given

        return file_path(_VARIABLE.sub(value, self.path_template))

    def check_patch(self, ops: Sequence[PatchOp]) -> None:
        """Refuses operations outside of what the rules allow."""
        allowed = [_tokens(path) for path in self.rules.allowed_paths]
        if not allowed:
            return
        for op in ops:
            # Moving takes something away from where it was; copying and testing only look there.
            touched = [op.path, *([op.from_] if op.op == "move" and op.from_ else [])]
            for path in touched:
                tokens = _tokens(path)
                inside = tokens[1:] if tokens[:1] == ["content"] else None
                if inside is None or not any(inside[: len(prefix)] == prefix for prefix in allowed):
                    raise InvalidInputError(f"the slot {self.slot_id!r} does not allow changes at {path}")

    def check_content(self, content: Mapping[str, Any]) -> None:
        """Refuses a content that breaks the rules."""
        rules = self.rules
        chars = len(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
        if rules.max_content_chars is not None and chars > rules.max_content_chars:
            raise InvalidInputError(
                f"the content has {chars} characters; {self.slot_id!r} has {rules.max_content_chars}"
            )
        for path in rules.required_content_paths:
            if not _has(content, _tokens(path)):
                raise InvalidInputError(f"the content of the slot {self.slot_id!r} must have {path}")
        longest = _longest_array(content)
        if rules.max_array_items is not None and longest > rules.max_array_items:
            raise InvalidInputError(
                f"an array of the content has {longest} items; the slot {self.slot_id!r} takes {rules.max_array_items}"
            )


@dataclass(frozen=True)
class MemoryPolicy:
    """The slots of an agent."""

    policy_id: str = "none"
    """Its name."""
    slots: Sequence[SlotPolicy] = ()
    """The slots, in the order in which they matter."""

    def __post_init__(self) -> None:
        ids = [slot.slot_id for slot in self.slots]
        twice = [slot_id for slot_id in ids if ids.count(slot_id) > 1]
        if twice:
            raise InvalidInputError(f"the slot {twice[0]!r} is there twice")

    def slot(self, slot_id: str) -> SlotPolicy:
        """One of them."""
        for slot in self.slots:
            if slot.slot_id == slot_id:
                return slot
        known = ", ".join(slot.slot_id for slot in self.slots) or "none"
        raise InvalidInputError(f"the policy {self.policy_id!r} has no slot {slot_id!r}; it has {known}")

    @classmethod
    def from_json(cls, text: str) -> MemoryPolicy:
        """Reads `{"policy_id", "slots": [{"slot_id", "path" | "path_template", "load_by_default", "patch_rules"}]}`."""
        try:
            value = json.loads(text)
            slots = [
                SlotPolicy(
                    slot_id=slot["slot_id"],
                    path=slot.get("path"),
                    path_template=slot.get("path_template"),
                    load_by_default=slot.get("load_by_default", False),
                    rules=SlotRules(**(slot.get("patch_rules") or {})),
                )
                for slot in value.get("slots", [])
            ]
            return cls(value["policy_id"], slots)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"this is not a policy: {error}") from None

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> MemoryPolicy:
        """Reads a policy from a file."""
        with open(path, encoding="utf-8") as file:
            return cls.from_json(file.read())


def _tokens(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.strip("/").split("/") if pointer.strip("/")]


def _has(value: Any, tokens: Sequence[str]) -> bool:
    for token in tokens:
        if isinstance(value, Mapping) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            return False
    return True


def _longest_array(value: Any) -> int:
    if isinstance(value, Mapping):
        return max((_longest_array(inner) for inner in value.values()), default=0)
    if isinstance(value, list):
        return max([len(value), *(_longest_array(inner) for inner in value)])
    return 0
