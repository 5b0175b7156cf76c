"""A LangGraph store whose items are kept by Memtrove."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig

from memtrove._async.client import AsyncMemtroveClient
from memtrove._connection import Connection
from memtrove._options import credentials
from memtrove._sync.client import MemtroveClient
from memtrove.errors import ApiError, InvalidInputError, TransportError
from memtrove.langgraph import plans
from memtrove.langgraph.items import WHOLE, ttl_seconds
from memtrove.langgraph.plans import GONE, Call, Plan, Scope
from memtrove.operations import OPERATIONS
from memtrove.retry import RETRIED_STATUS, RetryPolicy

T = TypeVar("T")

CALLS_AT_ONCE = 8
"""Requests of one batch that are on their way at the same time."""

AGENT = "langgraph"
"""Who is calling, where nothing else was said; a server in local mode believes it."""

NEEDED = {
    "agent": ("agent_id", "user_id"),
    "user": ("user_id",),
    "session": ("user_id", "session_id"),
    "project": ("project_id",),
    "team": ("team_id",),
    "org": ("org_id",),
    "company": ("company_id",),
}
"""The identifiers that each layer needs."""

WIRE_NAMES = {
    "agent_id": "agentId",
    "user_id": "userId",
    "session_id": "sessionId",
    "project_id": "projectId",
    "team_id": "teamId",
    "org_id": "orgId",
    "company_id": "companyId",
}


class MemtroveStore(BaseStore):
    """Long-term memory for a graph: `graph = builder.compile(store=MemtroveStore(user_id="dana"))`.

    The identifiers say whose memory it is, and no namespace leads out of it: `user_id` alone is the memory of a user,
    with an `agent_id` that of an agent with this user, with a `session_id` that of a conversation, `project_id` that of
    a project. `layer` says which, where more identifiers are given. Calls may come from any thread and any event loop.
    Close it, or use it in a `with` or an `async with`.

    Every item is found by its meaning unless it is put with `index=False`; the server embeds, so `index` is
    `{"fields": […]}` at most. Lifetimes are exact: an item whose time is over is gone for every read.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        project_id: str | None = None,
        team_id: str | None = None,
        org_id: str | None = None,
        company_id: str | None = None,
        layer: str | None = None,
        token: str | None = None,
        api_key: str | None = None,
        tenant_id: str | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        client: MemtroveClient | None = None,
        async_client: AsyncMemtroveClient | None = None,
    ) -> None:
        super().__init__()
        identifiers = {
            "user_id": user_id,
            "agent_id": agent_id,
            "session_id": session_id,
            "project_id": project_id,
            "team_id": team_id,
            "org_id": org_id,
            "company_id": company_id,
        }
        self._scope = _scope(layer, {name: value for name, value in identifiers.items() if value})
        self._fields = _fields(index)
        self.ttl_config = ttl
        ttl_seconds((ttl or {}).get("default_ttl"))
        if client is None and async_client is None:
            token, api_key = credentials(token, api_key, user_id)
            if token is None and api_key is None:
                api_key = AGENT
        settings = {"url": url, "token": token, "api_key": api_key, "tenant_id": tenant_id}
        self._connection = Connection(client, async_client, settings)

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in self._scope.identifiers.items())
        return f"{type(self).__name__}(layer={self._scope.layer!r}, {named})"

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries out operations: reads first, then of all puts of one key the last."""
        return self._carry_out(plans.batch(self._scope, self._fields, ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, awaited."""
        if self._connection.only_waits:
            return await asyncio.to_thread(self.batch, list(ops))
        return await self._acarry_out(plans.batch(self._scope, self._fields, ops))

    def close(self) -> None:
        """Closes connections, unless they are those of a client that was given."""
        self._connection.close()

    async def aclose(self) -> None:
        """The same for the connections of this event loop too."""
        await self._connection.aclose()

    def __enter__(self) -> MemtroveStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> MemtroveStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _carry_out(self, plan: Plan[T]) -> T:
        try:
            calls = next(plan)
            while True:
                calls = plan.send(self._make_all(calls))
        except StopIteration as done:
            result: T = done.value
            return result

    async def _acarry_out(self, plan: Plan[T]) -> T:
        try:
            calls = next(plan)
            while True:
                calls = plan.send(await self._amake_all(calls))
        except StopIteration as done:
            result: T = done.value
            return result

    def _make_all(self, calls: list[Call]) -> list[Any]:
        if len(calls) == 1:
            return [self._make(calls[0])]
        with ThreadPoolExecutor(min(CALLS_AT_ONCE, len(calls))) as pool:
            return list(pool.map(self._make, calls))

    async def _amake_all(self, calls: list[Call]) -> list[Any]:
        room = asyncio.Semaphore(CALLS_AT_ONCE)

        async def make(call: Call) -> Any:
            async with room:
                return await self._amake(call)

        # All of them end before one that failed is told of: nothing of a batch goes on behind the caller's back.
        answers = await asyncio.gather(*map(make, calls), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers

    def _make(self, call: Call) -> Any:
        transport = self._connection.client()._transport
        attempts = _Attempts(call, transport._options.retry)
        while True:
            try:
                return transport.json(call.operation, path=call.path, body=call.body)
            except (ApiError, TransportError) as error:
                wait = attempts.after(error)
            if wait is None:
                return attempts.answer
            time.sleep(wait)

    async def _amake(self, call: Call) -> Any:
        transport = self._connection.async_client()._transport
        attempts = _Attempts(call, transport._options.retry)
        while True:
            try:
                return await transport.json(call.operation, path=call.path, body=call.body)
            except (ApiError, TransportError) as error:
                wait = attempts.after(error)
            if wait is None:
                return attempts.answer
            await asyncio.sleep(wait)


class _Attempts:
    """What follows when a call fails.

    Everything a store does may be done twice without harm, so it needs no idempotency keys, for which the server would
    keep every answer for a day.
    """

    def __init__(self, call: Call, policy: RetryPolicy) -> None:
        self._call = call
        self._policy = policy
        self._made = 0
        # Reads are repeated by the client.
        self._most = 0 if OPERATIONS[call.operation].reads else policy.max_retries
        self.answer: Any = None
        """Instead of one, where none is needed."""

    def after(self, error: ApiError | TransportError) -> float | None:
        """Seconds until the next attempt, or `None` if none is needed; raises the error if none will do."""
        if self._call.optional:
            return None
        if isinstance(error, ApiError):
            if self._call.overtaken and (error.is_conflict or error.is_not_found):
                self.answer = GONE if error.is_not_found else None
                return None
            if error.status not in RETRIED_STATUS:
                raise error
        if self._made >= self._most:
            raise error
        self._made += 1
        return self._policy.delay(self._made - 1, error.retry_after if isinstance(error, ApiError) else None)


def _scope(layer: str | None, given: dict[str, str]) -> Scope:
    if layer is None:
        layers = [one for one, needed in NEEDED.items() if set(needed) == set(given)]
        if not layers:
            raise InvalidInputError("whose memory is it? Give a user_id, or other identifiers and the layer")
        [layer] = layers
    if layer not in NEEDED:
        raise InvalidInputError(f"no layer is called {layer!r}; there are {', '.join(NEEDED)}")
    missing = [name for name in NEEDED[layer] if name not in given]
    if missing:
        raise InvalidInputError(f"the layer {layer!r} needs {' and '.join(missing)}")
    return Scope(layer, {WIRE_NAMES[name]: value for name, value in given.items()})


def _fields(index: IndexConfig | None) -> list[str]:
    unused = [name for name in index or {} if name != "fields"]
    if unused:
        raise InvalidInputError(f"the server embeds; of an index only its fields can be said, not {', '.join(unused)}")
    return list((index or {}).get("fields") or [WHOLE])
