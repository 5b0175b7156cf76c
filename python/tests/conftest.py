"""A server for the tests, and both halves of the client behind one face."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import pathlib
import re
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from memtrove import AsyncMemtroveClient, MemtroveClient, Scope
from memtrove._async.transport import AsyncTransport
from memtrove._sync.transport import Transport
from memtrove.operations import OPERATIONS

SECONDS = 60

# Operations that no test of the suite calls, each with its reason.
UNCALLED = {
    "live": "for whoever runs the server, not for its clients",
    "metrics": "for whoever runs the server, not for its clients",
}

CALLED: set[str] = set()


def binary() -> pathlib.Path:
    """The server under test."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    target = os.environ.get("CARGO_TARGET_DIR") or f"{cache}/memtrove/target"
    found = pathlib.Path(os.environ.get("MEMTROVE_BIN") or f"{target}/debug/memtrove").resolve()
    if not os.access(found, os.X_OK):
        pytest.exit(f"there is no {found}; run cargo build first, or set MEMTROVE_BIN", returncode=2)
    return found


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The address of a server in local mode, with data of its own."""
    with tempfile.TemporaryDirectory(prefix="memtrove-python-") as name:
        folder = pathlib.Path(name)
        log = folder / "log"
        command = [str(binary()), "serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MEMTROVE_")}
        with log.open("w") as output:
            server = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + SECONDS
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
                assert server.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield found[0]
            assert server.poll() is None, f"the server died:\n{log.read_text()}"
            assert "panicked" not in log.read_text()
        finally:
            server.terminate()
            server.wait(SECONDS)


@pytest.fixture
def user() -> str:
    """Somebody whom no other test knows."""
    return f"user-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def scope(user: str) -> Scope:
    return Scope("default", user)


class Blocking:
    """An asynchronous object that can be used like its synchronous twin, so that one test is for both."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if callable(value) and not isinstance(value, type):
            return lambda *args, **kwargs: self._wait(value(*args, **kwargs))
        return Blocking(value, self._loop) if type(value).__module__.startswith("memtrove._async") else value

    def _wait(self, value: Any) -> Any:
        if inspect.isasyncgen(value):
            return self._each(value)
        if inspect.isawaitable(value):
            return self._loop.run_until_complete(cast(Any, value))
        return Blocking(value, self._loop) if type(value).__module__.startswith("memtrove._async") else value

    def _each(self, generator: Any) -> Iterator[Any]:
        try:
            while True:
                with contextlib.suppress(StopAsyncIteration):
                    yield self._loop.run_until_complete(anext(generator))
                    continue
                return
        finally:
            self._loop.run_until_complete(generator.aclose())


Connect = Callable[..., MemtroveClient]


@pytest.fixture(params=["sync", "async"])
def half(request: pytest.FixtureRequest) -> str:
    return cast(str, request.param)


@pytest.fixture
def loop(half: str) -> Iterator[asyncio.AbstractEventLoop | None]:
    made = asyncio.new_event_loop() if half == "async" else None
    yield made
    if made is not None:
        made.run_until_complete(made.shutdown_asyncgens())
        made.close()


@pytest.fixture
def connect(url: str, half: str, loop: asyncio.AbstractEventLoop | None) -> Iterator[Connect]:
    """Makes clients of the half under test, and closes them."""
    made: list[Any] = []

    def connect(**options: Any) -> MemtroveClient:
        if loop is None:
            client: Any = MemtroveClient(**{"url": url, **options})
        else:
            client = Blocking(AsyncMemtroveClient(**{"url": url, **options}), loop)
        made.append(client)
        return cast(MemtroveClient, client)

    yield connect
    for client in made:
        client.close() if loop is None else client.aclose()


@pytest.fixture
def alice(connect: Connect, user: str) -> MemtroveClient:
    """A user, with a token."""
    return connect(token=user)


@pytest.fixture
def agent(connect: Connect, user: str) -> MemtroveClient:
    """A service that works for the user."""
    return connect(api_key="planner", user_id=user)


@pytest.fixture
def admin(connect: Connect) -> MemtroveClient:
    return connect(token="admin")


@pytest.fixture(scope="session", autouse=True)
def recorded() -> Iterator[None]:
    """Notes which operations are called."""
    halves: list[Any] = [AsyncTransport, Transport]
    originals = [half._request for half in halves]
    for half, original in zip(halves, originals, strict=True):

        def request(self: Any, operation: str, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            CALLED.add(operation)
            return _original(self, operation, *args, **kwargs)

        half._request = request
    yield
    for half, original in zip(halves, originals, strict=True):
        half._request = original


# Only there with pytest-xdist.
@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """With several workers: takes together what each of them called."""
    CALLED.update(getattr(node, "workeroutput", {}).get("called", ()))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """The whole suite must have called every operation; a part of it need not."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["called"] = sorted(CALLED)
        return
    option = session.config.option
    whole = not (option.keyword or option.markexpr or option.file_or_dir or getattr(option, "lf", False))
    missing = sorted(OPERATIONS.keys() - CALLED - UNCALLED.keys())
    if whole and not option.collectonly and exitstatus == 0 and missing:
        print(f"\nno test calls {', '.join(missing)}")
        session.exitstatus = 1
