"""One request: who is calling, how often it is tried, and what its failures are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from memtrove._options import AsyncHeaderProvider, Options, header
from memtrove._pool import AsyncPool
from memtrove._sse import EventDecoder, ServerEvent
from memtrove._wire import Model, decode, dumps, query_text
from memtrove.errors import ApiError, DecodeError, InvalidInputError, TransportError, api_error
from memtrove.models import Fact, KnowledgeEntry, Memory
from memtrove.operations import OPERATIONS
from memtrove.retry import RETRIED_STATUS, retry_after
from memtrove.scope import segment

M = TypeVar("M", bound=Model)

STREAM_TIMEOUT = httpx.Timeout(30.0, read=60.0, pool=None)
"""A quiet stream says that it lives every 15 seconds."""

STORE = "the object store"
"""Where downloads may lead."""

LONG = frozenset(
    {
        "apply_retention",
        "cancel_response",
        "consolidate_memories",
        "decay_memories",
        "evict",
        "forget_user",
        "forget_user_by_id",
    }
)
"""What answers when it is done, however long that takes. Whoever stopped waiting would not know what became of it."""


class AsyncTransport:
    """Sends the requests of all groups of a client."""

    def __init__(self, options: Options, pool: AsyncPool, header_provider: AsyncHeaderProvider | None) -> None:
        self._options = options
        self._pool = pool
        self._header_provider = header_provider

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options.shown()!r})"

    async def aclose(self) -> None:
        """Closes connections, unless they are the caller's."""
        await self._pool.aclose()

    async def call(
        self,
        operation: str,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        files: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        service_id: str | None = None,
        retry: bool = False,
    ) -> httpx.Response:
        """The answer of success; raises what went wrong otherwise.

        `path` holds ids, or parts of an address under names that begin with `raw_`. What changes something is tried
        once, unless it carries an idempotency key and `retry` says that it may be repeated.
        """
        if retry and idempotency_key is None:
            raise InvalidInputError("retry needs an idempotency_key: without one a change may happen twice")
        reads = OPERATIONS[operation].reads
        timeout = _patient(self._pool.timeout) if operation in LONG else None
        attempt = 0
        while True:
            request = await self._request(
                operation,
                path,
                query,
                body,
                headers,
                files,
                idempotency_key=idempotency_key,
                service_id=service_id,
                timeout=timeout,
            )
            try:
                response = await self._send(request)
                if response.is_success or response.status_code in (304, 307):
                    return response
                raise _failure(response)
            except (ApiError, TransportError) as error:
                if not (reads or retry):
                    raise
                await self._pause(error, attempt)
            attempt += 1

    async def json(self, operation: str, **request: Any) -> Any:
        """The JSON value of the answer."""
        return _json(await self.call(operation, **request))

    async def model(self, operation: str, kind: type[M], member: str | None = None, **request: Any) -> M:
        """The answer as a model, or the one member of it that matters; with its ETag, if it can carry one."""
        return self.read(await self.call(operation, **request), kind, member)

    def read(self, response: httpx.Response, kind: type[M], member: str | None = None) -> M:
        """What an answer says, as `model` gives it."""
        value = _json(response)
        if member is not None:
            value = value.get(member) if isinstance(value, dict) else None
        found: M = decode(kind, value)
        _tag(found, response.headers.get("etag"))
        return found

    async def get_elsewhere(self, url: str, headers: Mapping[str, str]) -> httpx.Response:
        """Reads what the server points at, at another place, which must not learn who is calling.

        Not even from an `http_client` that authenticates by itself.
        """
        async with self.open_elsewhere(url, headers, timeout=self._pool.timeout) as response:
            await response.aread()
            return response

    @asynccontextmanager
    async def open_elsewhere(
        self, url: str, headers: Mapping[str, str] | None = None, *, timeout: httpx.Timeout = STREAM_TIMEOUT
    ) -> AsyncGenerator[httpx.Response]:
        """The same, whose body is still to be read."""
        attempt = 0
        while True:
            request = httpx.Request("GET", url, headers=dict(headers or {}), extensions=_timeout(timeout))
            try:
                response = await self._head_elsewhere(request)
                break
            except (ApiError, TransportError) as error:
                await self._pause(error, attempt)
            attempt += 1
        try:
            yield response
        except httpx.HTTPError as error:
            raise _transport(error, STORE) from error
        finally:
            await response.aclose()

    async def _head_elsewhere(self, request: httpx.Request) -> httpx.Response:
        http = self._pool.http()
        try:
            response = await http.send(request, stream=True, auth=None, follow_redirects=False)
            if response.is_success or response.status_code == 304:
                return response
            try:
                await response.aread()
                raise _failure(response)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise _transport(error, STORE) from error

    @asynccontextmanager
    async def open(self, operation: str, *, retry: bool = False, **request: Any) -> AsyncGenerator[httpx.Response]:
        """An answer whose body is still to be read. With `retry` its head is asked for again as that of any reading."""
        attempt = 0
        while True:
            try:
                response = await self._head(operation, **request)
                break
            except (ApiError, TransportError) as error:
                if not retry:
                    raise
                await self._pause(error, attempt)
            attempt += 1
        try:
            yield response
        except httpx.HTTPError as error:
            raise _transport(error, self._options.shown()) from error
        finally:
            await response.aclose()

    async def _pause(self, error: ApiError | TransportError, attempt: int) -> None:
        """Waits until a reading is to be repeated; raises its error where it is not."""
        policy = self._options.retry
        if attempt >= policy.max_retries or not _passes(error):
            raise error
        await asyncio.sleep(policy.delay(attempt, error.retry_after if isinstance(error, ApiError) else None))

    async def _head(self, operation: str, **request: Any) -> httpx.Response:
        """The answer of success, whose body is still to be read; raises what went wrong otherwise."""
        sent = await self._request(operation, timeout=STREAM_TIMEOUT, **request)
        response = await self._send(sent, stream=True)
        if response.is_success or response.status_code in (304, 307):
            return response
        try:
            await response.aread()
            raise _failure(response)
        except httpx.HTTPError as error:
            raise _transport(error, self._options.shown()) from error
        finally:
            await response.aclose()

    async def events(
        self,
        operation: str,
        *,
        last_event_id: str | None = None,
        end: str | None = None,
        resume: bool = True,
        **request: Any,
    ) -> AsyncGenerator[ServerEvent]:
        """The events of a stream. If it breaks off it is taken up again behind the last one, unless `resume` is false.

        It ends when the server has nothing to tell (204), after the event named `end`, or when retries are used up.
        """
        policy, failures = self._options.retry, 0
        headers = {"Accept": "text/event-stream", **(request.pop("headers", None) or {})}
        while True:
            decoder = EventDecoder(self._options.max_event_bytes)
            decoder.last_id = last_event_id
            wait: float | None = None
            try:
                async with self.open(
                    operation, headers={**headers, "Last-Event-ID": last_event_id}, **request
                ) as response:
                    if response.status_code == 204:
                        return
                    async for chunk in response.aiter_bytes():
                        # A stream may be quiet for hours; that it says so is enough.
                        failures = 0
                        for event in decoder.feed(chunk):
                            last_event_id = event.id
                            yield event
                            if event.event == end:
                                return
                        last_event_id = decoder.last_id
                if not resume:
                    return
            except (ApiError, TransportError) as error:
                if not resume or failures >= policy.max_retries or not _passes(error):
                    raise
                wait = policy.delay(failures, error.retry_after if isinstance(error, ApiError) else None)
            failures += 1
            if failures > policy.max_retries:
                raise TransportError(f"the stream of {self._options.shown()} keeps ending before it is complete")
            await asyncio.sleep(policy.delay(failures - 1) if wait is None else wait)

    async def _request(
        self,
        operation: str,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        files: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        service_id: str | None = None,
        timeout: httpx.Timeout | None = None,
    ) -> httpx.Request:
        """One attempt of a call. Headers are asked for each time, because tokens run out."""
        method, template, reads = OPERATIONS[operation]
        address = template
        for name, value in (path or {}).items():
            raw = name.startswith("raw_")
            address = address.replace(f"{{{name.removeprefix('raw_')}}}", value if raw else segment(value))
        sent = self._options.headers() | {name: value for name, value in (headers or {}).items() if value is not None}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if idempotency_key is not None:
            sent["Idempotency-Key"] = idempotency_key
        service = service_id or self._options.service_id
        if service and not reads:
            sent["X-Service-Id"] = service
        if self._header_provider is not None:
            taken = {name.lower() for name in sent}
            given = await self._header_provider()
            trimmed = {name.strip(): value.strip() for name, value in given.items()}
            sent |= {name: value for name, value in trimmed.items() if name and value and name.lower() not in taken}
        try:
            return self._pool.http().build_request(
                method,
                self._options.base_url + address,
                params=_parameters(query),
                content=None if body is None else dumps(body),
                files=files,
                headers=[header(name, value) for name, value in sent.items()],
                timeout=self._pool.timeout if timeout is None else timeout,
            )
        except httpx.InvalidURL as error:
            raise InvalidInputError(f"the address cannot be used: {error}") from None
        except UnicodeEncodeError:
            raise InvalidInputError("the address would have a character that cannot be sent") from None

    async def _send(self, request: httpx.Request, stream: bool = False) -> httpx.Response:
        if self._options.on_request is not None:
            self._options.on_request(request)
        http = self._pool.http()
        try:
            if stream:
                response = await http.send(request, stream=True, follow_redirects=False)
            else:
                async with self._pool.turn():
                    response = await http.send(request, follow_redirects=False)
        except httpx.LocalProtocolError as error:
            # Its text shows what cannot be sent, which may be a credential.
            if str(error).startswith("Illegal header"):
                raise InvalidInputError("the request has a header that cannot be sent") from None
            raise _transport(httpx.LocalProtocolError(""), self._options.shown()) from None
        except httpx.HTTPError as error:
            raise _transport(error, self._options.shown()) from error
        except RuntimeError as error:
            # So says httpx of a client that was closed, and asyncio of one that belongs to a loop that has ended.
            if type(error) is not RuntimeError:
                raise
            raise InvalidInputError(f"nothing can be sent with this client: {error}") from error
        if self._options.on_response is not None:
            self._options.on_response(response)
        return response


def _parameters(query: Mapping[str, Any] | None) -> httpx.QueryParams:
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in (query or {}).items():
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs.extend((name, query_text(one)) for one in values if one is not None)
    return httpx.QueryParams(pairs)


def _timeout(timeout: httpx.Timeout) -> dict[str, Any]:
    return {"timeout": timeout.as_dict()}


def _patient(timeout: httpx.Timeout) -> httpx.Timeout:
    """The same, but waits for an answer as long as it takes."""
    return httpx.Timeout(connect=timeout.connect, read=None, write=timeout.write, pool=timeout.pool)


def _json(response: httpx.Response) -> Any:
    try:
        return json.loads(response.content)
    except ValueError:
        request = response.headers.get("x-request-id", "none")
        raise DecodeError(f"the answer {response.status_code} is not JSON (request {request})") from None


def _tag(found: Model, etag: str | None) -> None:
    """Gives the one thing that was answered with the ETag of the answer."""
    for one in (found, *(getattr(found, name, None) for name in ("memory", "fact", "entry"))):
        if isinstance(one, (Memory, Fact, KnowledgeEntry)):
            one.etag = etag


def _failure(response: httpx.Response) -> ApiError:
    return api_error(
        response.status_code,
        response.reason_phrase,
        response.text,
        response.headers.get("x-request-id"),
        retry_after(response.headers.get("retry-after")),
    )


def _transport(error: httpx.HTTPError, where: str) -> TransportError:
    # Not the text of the error alone: for a timeout it is empty.
    what = str(error) or type(error).__name__
    advice = "; is a server running there? `memtrove` starts one" if isinstance(error, httpx.ConnectError) else ""
    return TransportError(f"{where} did not answer: {what}{advice}")


def _passes(error: ApiError | TransportError) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, TransportError) or error.status in RETRIED_STATUS
