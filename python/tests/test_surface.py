"""What the package offers, compared with what the server offers and with itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

import memloom
from memloom import _wire, models
from memloom._async import admin, attachments, changes, conversations, facts, files, knowledge, memories
from memloom.operations import OPERATIONS

PYTHON = pathlib.Path(__file__).resolve().parent.parent
ASYNC = PYTHON / "src" / "memloom" / "_async"

# Operations that no method is for, each with its reason.
LEFT_OUT = {
    "live": "for whoever runs the server; `ready` says more",
    "metrics": "for Prometheus, in its own format",
}


def called_operations() -> set[str]:
    """The names of operations that the client's methods mention."""
    names = set[str]()
    for source in ASYNC.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
                texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                if name in ("call", "json", "model", "open", "events", "download"):
                    names |= set(texts[:1])
    return names


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((PYTHON.parent / "openapi" / "memloom.json").read_text())
    return loaded


def offered_operations() -> dict[str, dict[str, Any]]:
    """The operations of the OpenAPI document, without those that imitate another product and have its clients."""
    found = {}
    for methods in document()["paths"].values():
        for method, operation in methods.items():
            if method in ("get", "put", "post", "patch", "delete") and "mem0" not in operation["tags"]:
                found[operation["operationId"]] = operation
    return found


def test_every_operation_has_a_method_and_every_method_an_operation() -> None:
    offered = offered_operations().keys()
    assert offered - called_operations() == LEFT_OUT.keys()
    assert called_operations() - offered == set()
    assert OPERATIONS.keys() == offered


def test_every_parameter_can_be_given() -> None:
    """What a route takes in its address is a parameter of some method; other spellings of the same are left out."""
    # Pages follow one spelling each; justifications go as a header; there is one format of streams.
    spellings = {"after", "afterEntryId", "before", "allForks", "lastEventId", "format", "cursor", "justification"}
    identifiers = {
        wire for model in (models.MemoryIdentifiers, models.KnowledgeIdentifiers) for wire in wire_names(model)
    }
    sources = "".join(source.read_text() for source in ASYNC.glob("*.py"))
    missing = [
        (name, parameter["name"])
        for name, operation in offered_operations().items()
        for parameter in operation.get("parameters", [])
        if parameter.get("in") == "query"
        and parameter["name"] not in spellings | identifiers
        and f'"{parameter["name"]}"' not in sources
    ]
    assert missing == []


def wire_names(model: type[_wire.Model]) -> list[str]:
    return [wire for wire, _ in _wire._members(model).values()]


def test_every_member_of_a_request_can_be_given() -> None:
    schemas = document()["components"]["schemas"]
    sources = "".join(source.read_text() for source in [*ASYNC.glob("*.py"), *ASYNC.parent.glob("[er]*.py")])
    missing = []
    for name, operation in offered_operations().items():
        for request in re.findall(r'schemas/(\w+Request)"', json.dumps(operation.get("requestBody", {}))):
            # Justifications go as a header; `after` is an older word for `afterCursor`.
            for member in schemas[request].get("properties", {}).keys() - {"justification", "after"}:
                if f"{member}=" not in sources and f'"{member}"' not in sources:
                    missing.append((name, member))
    assert missing == []


def test_what_is_generated_is_up_to_date() -> None:
    check = subprocess.run(
        [sys.executable, "scripts/generate.py", "--check"], cwd=PYTHON, capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stdout + check.stderr


TWINS = [
    (getattr(memloom, name), getattr(memloom, name.removeprefix("Async")))
    for name in memloom.__all__
    if name.startswith("Async")
]
GROUPS = [
    (value, getattr(sys.modules[module.__name__.replace("_async", "_sync")], name.removeprefix("Async")))
    for module in (admin, attachments, changes, conversations, facts, files, knowledge, memories)
    for name, value in vars(module).items()
    if name.startswith("Async") and inspect.isclass(value) and value.__module__ == module.__name__
]


@pytest.mark.parametrize(("waiting", "plain"), TWINS + GROUPS, ids=lambda one: one.__name__)
def test_both_halves_have_the_same_methods(waiting: type, plain: type) -> None:
    def signatures(kind: type) -> dict[str, str]:
        methods = inspect.getmembers(kind, inspect.isfunction)
        return {name: str(inspect.signature(method)) for name, method in methods if not name.startswith("__")}

    renamed = {
        name.replace("aclose", "close"): text.replace("Async", "").replace("_async", "_sync")
        for name, text in signatures(waiting).items()
    }
    assert renamed == signatures(plain)
    for name, method in inspect.getmembers(plain, inspect.isfunction):
        assert not inspect.iscoroutinefunction(method) and not inspect.isasyncgenfunction(method), name


def test_everything_public_says_what_it_is() -> None:
    for name in memloom.__all__:
        value = getattr(memloom, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


@pytest.mark.parametrize(
    "model",
    [value for value in vars(models).values() if inspect.isclass(value) and issubclass(value, _wire.Model)],
    ids=lambda model: model.__name__,
)
def test_models_survive_the_way_there_and_back(model: type[_wire.Model]) -> None:
    """Every member, with a value of its type, under its name on the wire."""
    wire = {name: example(hint, set()) for name, hint in _wire._members(model).values()} | {"newerMember": [1]}
    read = model.from_wire(wire)
    assert read.extra == {"newerMember": [1]}
    assert read.to_wire() == wire
    assert eval(repr(read), {**vars(models), "datetime": __import__("datetime")}) == read
    assert all(not isinstance(getattr(read, one.name), dataclasses.Field) for one in dataclasses.fields(read))


def example(hint: Any, inside: set[type]) -> Any:
    """A JSON value of a type."""
    import types
    import typing
    from datetime import datetime

    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return example(inner[0], inside)
    if origin is typing.Literal:
        return inner[0]
    if origin is list:
        return [example(inner[0], inside)]
    if origin is dict:
        return {"key": example(inner[1], inside)}
    if hint is datetime:
        return "2026-01-31T12:00:00.123456Z"
    if isinstance(hint, type) and issubclass(hint, _wire.Model):
        return {name: example(kind, inside | {hint}) for name, kind in _wire._members(hint).values()}
    plain: dict[Any, Any] = {str: "text", int: 7, float: 0.5, bool: True, Any: {"any": 1}}
    return plain[hint]
