"""Slots: files that an agent knows by a name, and what may be done to them. Nothing here calls the server."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from memtrove.edits import PatchOp
from memtrove.errors import InvalidInputError
from memtrove.scope import file_path


@dataclass(frozen=True)
class SlotRules:
    """What may be written into a slot. An empty list or `None` allows everything.

    Paths are JSON pointers into the content (`/preferences`); one without a leading `/` gets one.
    """

    allowed_paths: Sequence[str] = ()
    """What patches may change, with everything below. `*` is any one name."""
    required_content_paths: Sequence[str] = ()
    """What a replacement must have, and not as null."""
    max_content_chars: int | None = None
    """The most characters of a replacement's content, as compact JSON."""
    max_array_items: int | None = None
    """The most items of any list in a replacement, however deep."""

    def check_patch(self, ops: Sequence[PatchOp]) -> None:
        """Refuses operations outside of what is allowed."""
        if not self.allowed_paths:
            return
        for index, op in enumerate(ops):
            for path in _written(op):
                if not self._allows(path):
                    allowed = ", ".join(f"/content{_pointer(rule)}" for rule in self.allowed_paths)
                    raise InvalidInputError(
                        f"operation {index} may not change '{path}': allowed is what lies under {allowed}"
                    )

    def check_content(self, content: Mapping[str, Any]) -> None:
        """Refuses a content that breaks the rules."""
        chars = len(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
        if self.max_content_chars is not None and chars > self.max_content_chars:
            raise InvalidInputError(f"the content has {chars} characters; at most {self.max_content_chars} are allowed")
        for path in self.required_content_paths:
            if _found(content, _tokens(_pointer(path))) is None:
                raise InvalidInputError(f"the content lacks '{path}'")
        longest = _longest_list(content)
        if self.max_array_items is not None and longest > self.max_array_items:
            raise InvalidInputError(
                f"a list in the content has {longest} items; at most {self.max_array_items} are allowed"
            )

    def _allows(self, path: str) -> bool:
        if path != "/content" and not path.startswith("/content/"):
            return False
        target = _tokens(path.removeprefix("/content"))
        return any(_covers(_tokens(_pointer(rule)), target) for rule in self.allowed_paths)


@dataclass(frozen=True)
class SlotPolicy:
    """A slot: a name for a file, which is at `path` or where the variables of `path_template` say."""

    slot_id: str
    """Its name."""
    path: str | None = None
    """Where the file always is …"""
    path_template: str | None = None
    """… or where variables decide: `projects/{project}.md`. A variable stands for one name, without `/`."""
    load_by_default: bool = False
    """Whether every turn has it."""
    rules: SlotRules = field(default_factory=SlotRules)
    """What may be written."""

    def __post_init__(self) -> None:
        if self.path is not None and self.path_template is not None:
            raise InvalidInputError(f"slot '{self.slot_id}' has both path and path_template: keep one")
        if self.path is None and self.path_template is None:
            raise InvalidInputError(f"slot '{self.slot_id}' has neither path nor path_template")

    def resolve(self, variables: Mapping[str, str] | None = None) -> str:
        """The path of the file."""
        with self._named():
            return file_path(self.path if self.path is not None else _fill(self.path_template or "", variables or {}))

    def check_patch(self, ops: Sequence[PatchOp]) -> None:
        """Refuses operations that the rules do not allow, and none at all."""
        with self._named():
            if not ops:
                raise InvalidInputError("there is no operation: give at least one")
            self.rules.check_patch(ops)

    def check_content(self, content: Mapping[str, Any]) -> None:
        """Refuses a content that breaks the rules."""
        with self._named():
            self.rules.check_content(content)

    @contextmanager
    def _named(self) -> Generator[None]:
        """Says which slot it is that something is wrong with."""
        try:
            yield
        except InvalidInputError as error:
            raise InvalidInputError(f"slot '{self.slot_id}': {error}") from None


@dataclass(frozen=True)
class MemoryPolicy:
    """The slots of an agent."""

    policy_id: str = "none"
    """Its name."""
    slots: Sequence[SlotPolicy] = ()
    """The slots, in the order in which they matter."""

    def __post_init__(self) -> None:
        seen = set[str]()
        for slot in self.slots:
            if not slot.slot_id.strip():
                raise InvalidInputError("a slot has a blank slot_id: name it")
            if slot.slot_id in seen:
                raise InvalidInputError(f"there are two slots '{slot.slot_id}': rename one")
            seen.add(slot.slot_id)

    def slot(self, slot_id: str) -> SlotPolicy:
        """One of them."""
        for slot in self.slots:
            if slot.slot_id == slot_id:
                return slot
        known = ", ".join(slot.slot_id for slot in self.slots)
        raise InvalidInputError(f"there is no slot '{slot_id}'; the policy has: {known}")

    @classmethod
    def from_json(cls, text: str) -> MemoryPolicy:
        """Reads `{"policy_id", "slots": [{"slot_id", "path" | "path_template", "load_by_default", "patch_rules"}]}`.

        What else is there is refused: a rule that is misspelled would allow everything.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"the memory policy cannot be read: {error}") from None
        policy = _members(value, {"policy_id": _text, "slots": _slots}, "the policy", required={"policy_id"})
        return cls(**policy)

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> MemoryPolicy:
        """Reads a policy from a file."""
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"the memory policy {os.fspath(path)} cannot be read: {error}") from None
        return cls.from_json(text)


def _members(
    value: Any, known: Mapping[str, Callable[[Any, str], Any]], at: str, required: Set[str] = frozenset()
) -> dict[str, Any]:
    """The members of an object of a policy file, each read as what it is."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"the memory policy cannot be read: {at} is not an object")
    for name in value:
        if name not in known:
            raise InvalidInputError(
                f"the memory policy cannot be read: {at} has '{name}', which is none of {', '.join(known)}"
            )
    for name in known:
        if name in required and name not in value:
            raise InvalidInputError(f"the memory policy cannot be read: {at} has no '{name}'")
    return {name: known[name](inner, f"'{name}' of {at}") for name, inner in value.items()}


def _is(value: Any, right: bool, at: str, what: str) -> Any:
    if not right:
        raise InvalidInputError(f"the memory policy cannot be read: {at} is not {what}")
    return value


def _text(value: Any, at: str) -> Any:
    return _is(value, isinstance(value, str), at, "a text")


def _maybe_text(value: Any, at: str) -> Any:
    return _is(value, value is None or isinstance(value, str), at, "a text")


def _flag(value: Any, at: str) -> Any:
    return _is(value, isinstance(value, bool), at, "true or false")


def _texts(value: Any, at: str) -> Any:
    return _is(value, isinstance(value, list) and all(isinstance(one, str) for one in value), at, "a list of texts")


def _maybe_count(value: Any, at: str) -> Any:
    counts = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return _is(value, value is None or counts, at, "a number that is not negative")


def _rules(value: Any, at: str) -> SlotRules:
    known = {
        "allowed_paths": _texts,
        "required_content_paths": _texts,
        "max_content_chars": _maybe_count,
        "max_array_items": _maybe_count,
    }
    return SlotRules() if value is None else SlotRules(**_members(value, known, at))


def _slots(value: Any, at: str) -> list[SlotPolicy]:
    known = {
        "slot_id": _text,
        "path": _maybe_text,
        "path_template": _maybe_text,
        "load_by_default": _flag,
        "patch_rules": _rules,
    }
    slots = []
    for index, one in enumerate(_is(value, isinstance(value, list), at, "a list")):
        slot = _members(one, known, f"slot {index}", required={"slot_id"})
        rules = {"rules": slot.pop("patch_rules")} if "patch_rules" in slot else {}
        slots.append(SlotPolicy(**slot, **rules))
    return slots


def _fill(template: str, variables: Mapping[str, str]) -> str:
    """Puts variables into a template. A value may not change where it leads, so it is one name without a slash."""
    filled, rest = "", template
    while "{" in rest:
        before, _, after = rest.partition("{")
        name, closed, rest = after.partition("}")
        if not closed:
            raise InvalidInputError(f"the path template '{template}' has a '{{' without a '}}'")
        value = variables.get(name, "")
        if not value.strip():
            raise InvalidInputError(f"the template variable '{name}' is missing: give it a value")
        if "/" in value or "\\" in value:
            raise InvalidInputError(f"the template variable '{name}' has a slash: give it one name")
        filled += before + value
    return filled + rest


def _written(op: PatchOp) -> Sequence[str]:
    """What an operation writes. Copying changes nothing where it copies from, and testing nothing at all."""
    if op.op == "test":
        return []
    return [op.from_ or "", op.path] if op.op == "move" else [op.path]


def _pointer(rule: str) -> str:
    """A rule as a pointer. `/` alone is all of the content, as nothing is."""
    if rule in ("", "/"):
        return ""
    return rule if rule.startswith("/") else f"/{rule}"


def _tokens(pointer: str) -> list[str]:
    """The names along a pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _covers(rule: Sequence[str], target: Sequence[str]) -> bool:
    return len(rule) <= len(target) and all(one in ("*", other) for one, other in zip(rule, target, strict=False))


def _found(value: Any, tokens: Sequence[str]) -> Any:
    """What is there; `None` where nothing is, or null."""
    for token in tokens:
        if isinstance(value, Mapping):
            value = value.get(token)
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", token) and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value


def _longest_list(value: Any) -> int:
    if isinstance(value, Mapping):
        return max((_longest_list(inner) for inner in value.values()), default=0)
    if isinstance(value, list):
        return max([len(value), *(_longest_list(inner) for inner in value)])
    return 0
