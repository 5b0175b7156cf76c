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

import memtrove
from memtrove import _wire, models
from memtrove._async import admin, attachments, changes, conversations, facts, files, knowledge, memories
from memtrove.operations import OPERATIONS

PYTHON = pathlib.Path(__file__).resolve().parent.parent
ASYNC = PYTHON / "src" / "memtrove" / "_async"

# Operations that no method is for, each with its reason.
LEFT_OUT = {
    "live": "for whoever runs the server; `ready` says more",
    "metrics": "for Prometheus, in its own format",
}


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: pathlib.Path) -> list[Function]:
    """The functions of a module; those that are inside of others belong to them."""
    tree = ast.parse(source.read_text())
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return [node for body in bodies for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def called(function: Function) -> list[tuple[str, ast.Call]]:
    """What a function calls, by the last part of its name."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = [
        (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) for node in calls
    ]
    return list(zip(names, calls, strict=True))


def named_operations(function: Function) -> set[str]:
    """The operations that a function names."""
    ways = ("call", "json", "model", "open", "events", "download")
    firsts = [
        [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)][:1]
        for name, call in called(function)
        if name in ways
    ]
    return {name for first in firsts for name in first}


def said_for() -> dict[str, set[str]]:
    """What goes to each operation: the texts and the names of arguments in the functions that name it.

    That is also what is in functions of the module that such a function calls, and in `to_wire` of what it sends.
    """
    wires = {
        node.name: {text for inner in functions_of(node) for text in words(inner)}
        for source in (ASYNC.parent / "edits.py", ASYNC.parent / "replay.py")
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    wires |= {name: set(wire_names(model)) for name, model in vars(models).items() if is_model(model)}
    found: dict[str, set[str]] = {}
    for source in ASYNC.glob("*.py"):
        known = {function.name: function for function in functions(source)}
        for function in functions(source):
            for operation in named_operations(function):
                helpers = {name for name, _ in called(function) if name.startswith("_")} & known.keys()
                parts = [function, *(known[name] for name in helpers)]
                sent = {one.id for one in ast.walk(function.args) if isinstance(one, ast.Name)} & wires.keys()
                found.setdefault(operation, set()).update(
                    *(words(part) for part in parts), *(wires[name] for name in sent)
                )
    return found


def functions_of(node: ast.ClassDef) -> list[Function]:
    return [one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]


def words(function: Function) -> set[str]:
    """The texts and the names of arguments of calls in a function; not those of the function itself."""
    texts = {one.value for one in ast.walk(function) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return texts | {word.arg for _, call in called(function) for word in call.keywords if word.arg}


def is_model(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, _wire.Model)


def called_operations() -> set[str]:
    """The names of operations that the client's methods mention."""
    return {name for source in ASYNC.glob("*.py") for one in functions(source) for name in named_operations(one)}


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((PYTHON.parent / "openapi" / "memtrove.json").read_text())
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
    # What the server is, at its root, is in no document.
    offered = offered_operations().keys() | {"status"}
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
    said = said_for()
    missing = [
        (name, parameter["name"])
        for name, operation in offered_operations().items()
        for parameter in operation.get("parameters", [])
        if parameter.get("in") == "query"
        and parameter["name"] not in spellings | identifiers
        and parameter["name"] not in said.get(name, ())
        and name not in LEFT_OUT
    ]
    assert missing == []


# Members of requests that no method sends, each with its reason.
NOT_SENT = {
    ("delete_knowledge", "options"): "`hard_delete`, which goes into the address",
    ("sync_entries", "indexedContent"): "for the transcript, which is not synced",
}


def wire_names(model: type[_wire.Model]) -> list[str]:
    return [wire for wire, _ in _wire._members(model).values()]


def test_every_member_of_a_request_can_be_given() -> None:
    schemas = document()["components"]["schemas"]
    said = said_for()
    missing = []
    for name, operation in offered_operations().items():
        for request in re.findall(r'schemas/(\w+Request)"', json.dumps(operation.get("requestBody", {}))):
            # Justifications go as a header; `after` is an older word for `afterCursor`.
            for member in schemas[request].get("properties", {}).keys() - {"justification", "after"}:
                if member not in said.get(name, ()) and (name, member) not in NOT_SENT:
                    missing.append((name, member))
    assert missing == []


def test_what_is_generated_is_up_to_date() -> None:
    pytest.importorskip("ruff")
    check = subprocess.run(
        [sys.executable, "scripts/generate.py", "--check"], cwd=PYTHON, capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stdout + check.stderr


def test_the_tests_run_without_pytest_xdist() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "--collect-only"]
    done = subprocess.run([*command, "tests/test_readme.py"], cwd=PYTHON, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("module", "needed"), [("langgraph", "langgraph"), ("langchain", "langchain_core")])
def test_an_adapter_without_what_it_needs_says_what_to_install(module: str, needed: str) -> None:
    program = f"import sys; sys.modules['{needed}'] = None; import memtrove; import memtrove.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert f"install memtrove[{module}]" in done.stderr, done.stderr


def test_the_licence_goes_along() -> None:
    assert (PYTHON / "LICENSE").read_bytes() == (PYTHON.parent / "LICENSE").read_bytes()
    assert 'license-files = ["LICENSE"]' in (PYTHON / "pyproject.toml").read_text()


TWINS = [
    (getattr(memtrove, name), getattr(memtrove, name.removeprefix("Async")))
    for name in memtrove.__all__
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
    for name in memtrove.__all__:
        value = getattr(memtrove, name)
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
