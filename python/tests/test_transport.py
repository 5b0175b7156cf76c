from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import httpx
import pytest

from conftest import Blocking
from fake import HANG_UP, Answer, Fake, fake
from memtrove import (
    ApiError,
    AsyncMemtrove,
    AsyncMemtroveClient,
    DecodeError,
    InvalidInputError,
    Memtrove,
    MemtroveClient,
    RetryPolicy,
    Scope,
    TransportError,
    __version__,
)
from memtrove.errors import api_error
from memtrove.retry import retry_after

QUICK = RetryPolicy(max_retries=3, base_delay=0.0, max_delay=0.001)
ME = {"user_id": "u"}
OK = b'{"status": "ok"}'
Make = Callable[..., MemtroveClient]


@pytest.fixture
def make(half: str, loop: asyncio.AbstractEventLoop | None) -> Iterator[Make]:
    """Makes clients of any server."""
    made: list[Any] = []

    def make(server: Fake, **options: Any) -> MemtroveClient:
        options = {"retry": QUICK, **options}
        if loop is None:
            client: Any = MemtroveClient(server.url, **options)
        else:
            if provider := options.get("header_provider"):
                options["header_provider"] = waiting(provider)
            client = Blocking(AsyncMemtroveClient(server.url, **options), loop)
        made.append(client)
        return cast(MemtroveClient, client)

    yield make
    for client in made:
        client.close() if loop is None else client.aclose()


def waiting(provider: Callable[[], Mapping[str, str]]) -> Any:
    async def provide() -> Mapping[str, str]:
        return provider()

    return provide


def page() -> Answer:
    return Answer(body=b'{"memories": [], "nextCursor": null, "totalCount": 0}')


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_readings_are_repeated_until_they_succeed(make: Make, status: int) -> None:
    with fake(Answer(status), HANG_UP, Answer(status), page()) as server:
        assert make(server).memories.list(layer="user", identifiers=ME).total_count == 0
        assert len(server.asked) == 4


def test_searches_are_readings_although_they_are_sent_by_post(make: Make) -> None:
    with fake(Answer(503), Answer(body=b'{"facts": [], "nextCursor": null, "totalCount": 0}')) as server:
        make(server).facts.query(identifiers=ME)
        assert [asked.method for asked in server.asked] == ["POST", "POST"]


def test_attempts_are_one_more_than_retries(make: Make) -> None:
    with fake(Answer(503, b"{}")) as server:
        with pytest.raises(ApiError) as failed:
            make(server).memories.list(layer="user", identifiers=ME)
        assert failed.value.status == 503 and len(server.asked) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 422, 500, 501])
def test_other_answers_are_final(make: Make, status: int) -> None:
    with fake(Answer(status)) as server:
        with pytest.raises(ApiError) as failed:
            make(server).memories.list(layer="user", identifiers=ME)
        assert failed.value.status == status and failed.value.code == f"HTTP_{status}" and len(server.asked) == 1


@pytest.mark.parametrize("trouble", [Answer(503), HANG_UP])
def test_changes_are_tried_once(make: Make, trouble: Answer | str) -> None:
    with fake(trouble) as server:
        with pytest.raises((ApiError, TransportError)):
            make(server).memories.add("x", layer="user", identifiers=ME, idempotency_key="k")
        assert len(server.asked) == 1


def test_changes_are_repeated_with_a_key_by_who_wants_it(make: Make) -> None:
    with fake(Answer(503), HANG_UP, Answer(202, b"")) as server:
        from memtrove import EventDigest

        event = EventDigest(event_id="e", tenant_id="t", user_id="u", digest="d")
        make(server).events.write(Scope("t", "u"), event, idempotency_key="k-1", retry=True)
        assert [asked.headers["idempotency-key"] for asked in server.asked] == ["k-1"] * 3
        assert len({asked.body for asked in server.asked}) == 1
        with pytest.raises(InvalidInputError):
            make(server).events.write(Scope("t", "u"), event, retry=True)


def test_nobody_there_is_a_transport_error(make: Make) -> None:
    with fake(page()) as server:
        pass
    with pytest.raises(TransportError, match="did not answer"):
        make(server).memories.list(layer="user", identifiers=ME)


def test_silence_is_a_transport_error(make: Make) -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        silent = Fake(f"http://127.0.0.1:{listener.getsockname()[1]}", [])
        with pytest.raises(TransportError):
            make(silent, timeout=0.2, retry=RetryPolicy(max_retries=0)).health()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"memories": 7}', b'{"memories": [{}], "totalCount": 1}'])
def test_success_that_makes_no_sense_is_a_decode_error(make: Make, body: bytes) -> None:
    with fake(Answer(body=body)) as server:
        with pytest.raises(DecodeError):
            make(server).memories.list(layer="user", identifiers=ME)
        assert len(server.asked) == 1


def test_unknown_members_and_words_do_no_harm(make: Make) -> None:
    change = {"sequence": 1, "at": "2026-01-31T12:00:00.123456789+02:00", "kind": "x", "new": {"a": 1}}
    with fake(Answer(body=json.dumps({"changes": [change], "oldest": 1, "next_after": None}).encode())) as server:
        told = make(server).changes.list().changes[0]
    assert told.extra == {"new": {"a": 1}} and told.at.isoformat() == "2026-01-31T12:00:00.123456+02:00"
    assert told.user is None


def test_every_request_says_who_is_calling(make: Make) -> None:
    with fake(page()) as server:
        client = make(server, token="t", api_key="k", user_id="Zoë", tenant_id="acme", service_id="svc")
        client.memories.list(layer="user", identifiers=ME)
        headers = server.asked[0].headers
        assert (
            headers["authorization"] == "Bearer t" and headers["x-api-key"] == "k" and headers["x-tenant-id"] == "acme"
        )
        assert headers["x-user-id"].encode("latin-1").decode() == "Zoë"
        assert "x-service-id" not in headers
        with pytest.raises(DecodeError):
            client.lifecycle.forget_user(Scope("t", "u"))
        assert server.asked[1].headers["x-service-id"] == "svc"


def test_a_header_provider_is_asked_for_each_attempt_and_overrides_nothing(make: Make) -> None:
    count = 0

    def provide() -> dict[str, str]:
        nonlocal count
        count += 1
        return {" X-Trace ": f" {count} ", " x-api-key ": "other", "X-Blank": " ", "": "x"}

    with fake(Answer(503), page()) as server:
        make(server, api_key="mine", header_provider=provide).memories.list(layer="user", identifiers=ME)
        assert [asked.headers["x-trace"] for asked in server.asked] == ["1", "2"]
        assert all(asked.headers["x-api-key"] == "mine" and "x-blank" not in asked.headers for asked in server.asked)


@pytest.mark.parametrize("headers", [{"X-Größe": "1"}, {"X-Half": "\ud800"}])
def test_headers_that_cannot_be_sent_are_refused(make: Make, headers: dict[str, str]) -> None:
    with fake(page()) as server:
        with pytest.raises(InvalidInputError, match="cannot be sent"):
            make(server, header_provider=lambda: headers).memories.list(layer="user", identifiers=ME)
        assert server.asked == []


def test_hooks_see_every_attempt(make: Make) -> None:
    sent: list[str] = []
    got: list[int] = []
    with fake(Answer(503), page()) as server:
        client = make(
            server,
            on_request=lambda request: sent.append(request.method),
            on_response=lambda response: got.append(response.status_code),
        )
        client.memories.list(layer="user", identifiers=ME)
    assert sent == ["GET", "GET"] and got == [503, 200]


def test_redirects_to_the_object_store_carry_no_credentials(make: Make) -> None:
    with (
        fake(Answer(200, b"bytes", {"ETag": '"e"'})) as store,
        fake(Answer(307, b"", {"Location": f"{store.url}/signed?x=1"})) as server,
    ):
        client = make(server, token="secret-token", api_key="secret-key", user_id="u")
        found = client.attachments.download("0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10", start=0, end=5)
        assert found is not None and found.data == b"bytes"
        assert b"".join(client.attachments.stream("0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10")) == b"bytes"
        assert [asked.path for asked in store.asked] == ["/signed?x=1"] * 2
        assert store.asked[0].headers["range"] == "bytes=0-4"
        for asked in store.asked:
            assert not {"authorization", "x-api-key", "x-user-id"} & asked.headers.keys()


def test_a_client_that_authenticates_by_itself_does_not_do_so_at_the_object_store(
    make: Make, loop: asyncio.AbstractEventLoop | None
) -> None:
    kind: Any = httpx.Client if loop is None else httpx.AsyncClient
    http = kind(auth=("name", "secret"), follow_redirects=True)
    elsewhere = Answer(302, b"", {"Location": "http://127.0.0.1:9/"})
    with (
        fake(Answer(200, b"bytes"), Answer(200, b"bytes"), elsewhere) as store,
        fake(Answer(307, b"", {"Location": f"{store.url}/signed"})) as server,
    ):
        client = make(server, http_client=http)
        assert (found := client.attachments.download("a")) is not None and found.data == b"bytes"
        assert b"".join(client.attachments.stream("a")) == b"bytes"
        # Nor is it sent on to somewhere else.
        with pytest.raises(ApiError):
            client.attachments.download("a")
        assert all("authorization" in asked.headers for asked in server.asked)
        assert len(store.asked) == 3 and not any("authorization" in asked.headers for asked in store.asked)
    http.close() if loop is None else loop.run_until_complete(http.aclose())


def test_the_object_store_is_asked_again_as_well(make: Make) -> None:
    with (
        fake(Answer(503), HANG_UP, Answer(200, b"bytes")) as store,
        fake(Answer(307, b"", {"Location": f"{store.url}/signed"})) as server,
    ):
        assert (found := make(server).attachments.download("a")) is not None and found.data == b"bytes"
        assert (len(store.asked), len(server.asked)) == (3, 1)
    with fake(Answer(403)) as store, fake(Answer(307, b"", {"Location": f"{store.url}/signed"})) as server:
        with pytest.raises(ApiError):
            list(make(server).attachments.stream("a"))
        assert len(store.asked) == 1


def test_a_stream_of_bytes_is_asked_for_again_until_it_begins(make: Make) -> None:
    with fake(Answer(503), HANG_UP, Answer(200, b"bytes")) as server:
        assert b"".join(make(server).attachments.stream("a")) == b"bytes"
        assert len(server.asked) == 3
    with fake(Answer(503)) as server:
        with pytest.raises(ApiError):
            list(make(server).attachments.stream("a"))
        assert len(server.asked) == 4


def test_what_takes_long_is_waited_for(make: Make) -> None:
    """Everything that answers only when it is done; whoever stops waiting does not know what became of it."""
    waits: dict[str, float | None] = {}

    def note(request: httpx.Request) -> None:
        waits[f"{request.method} {request.url.path}"] = request.extensions["timeout"]["read"]

    with fake(Answer(200, b"null")) as server:
        client, mine = make(server, timeout=7, on_request=note), Scope("t", "u")
        calls: list[Callable[[], object]] = [
            lambda: client.lifecycle.forget_user(mine),
            lambda: client.lifecycle.forget_user_by_id("u"),
            lambda: client.lifecycle.apply_retention(mine, events_days=1, audit_days=1, snapshots_days=1),
            lambda: client.memories.decay(),
            lambda: client.memories.consolidate(layer="user", identifiers=ME),
            lambda: client.admin.evict(retention_period="P1D", resource_types=["conversations"]),
            lambda: client.conversations.cancel_response("c"),
        ]
        for call in calls:
            with contextlib.suppress(DecodeError):
                call()
        assert len(waits) == len(calls) and set(waits.values()) == {None}, waits
        with contextlib.suppress(DecodeError):
            client.health()
        assert waits["GET /v1/health"] == 7


def sse(*events: str) -> Answer:
    return Answer(200, "".join(events).encode(), {"Content-Type": "text/event-stream"}, whole=False)


def test_a_replay_that_breaks_off_goes_on_where_it_was(make: Make) -> None:
    first = sse(
        'id: r:4\ndata: {"content":"Take"}\n\n', 'id: r:9\r\ndata: {"content":" tram"}\r\n\r\n', "id: r:99\ndata: {"
    )
    rest = sse(
        ": alive\n\n", 'id: r:12\ndata: {"content":" 28"}\n\n', 'id: r:end\nevent: end\ndata: {"status":"success"}\n\n'
    )
    with fake(first, Answer(503), HANG_UP, rest) as server:
        events = list(make(server).conversations.replay("0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10"))
        assert "".join(event.content for event in events) == "Take tram 28"
        assert events[-1].status == "success"
        assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "r:9", "r:9", "r:9"]


def test_a_replay_that_never_ends_is_given_up(make: Make) -> None:
    with fake(sse('id: r:4\ndata: {"content":"x"}\n\n'), HANG_UP) as server:
        with pytest.raises(TransportError):
            list(make(server).conversations.replay("0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10"))
        assert len(server.asked) == 4


@pytest.mark.parametrize(
    "text", ["x" * 999, "data: " + "x" * 999 + "\n", "data: " + "x" * 999 + "\r", "data:\n" * 199, "data\n" * 199]
)
def test_an_event_that_never_ends_ends_the_stream(make: Make, text: str) -> None:
    endless = Answer(200, text.encode(), {"Content-Type": "text/event-stream"}, whole=False, forever=True)
    with fake(endless) as server:
        stream = make(server, max_event_bytes=1 << 20).conversations.replay("0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10")
        with pytest.raises(DecodeError, match=r"longer than 1048576 bytes \(max_event_bytes\)"):
            list(stream)
        assert len(server.asked) == 1, "it would come again"


def test_a_quiet_stream_is_not_given_up(make: Make) -> None:
    """Whoever is in between ends quiet connections; as long as they live, that is no failure."""
    quiet = [sse(": alive\n\n")] * 12
    with fake(*quiet, sse("event: end\ndata: {}\n\n")) as server:
        assert [one.event for one in make(server).conversations.replay("c")] == ["end"]
        assert len(server.asked) == 13
    with fake(sse()) as server:
        with pytest.raises(TransportError):
            list(make(server).conversations.replay("c"))
        assert len(server.asked) == 4


def test_the_feed_says_where_it_begins_and_goes_on_from_there(make: Make) -> None:
    change = json.dumps(
        {"sequence": 8, "at": "2026-01-31T12:00:00Z", "kind": "x", "user": None, "resource": None, "version": None}
    )
    with fake(
        sse("id: 7\n\n"), sse('event: gap\ndata: {"oldest":8}\n\n', f"id: 8\nevent: x\ndata: {change}\n\n")
    ) as server:
        stream = make(server).changes.stream()
        assert next(stream).oldest == 8
        told = next(stream).change
        assert told is not None and told.sequence == 8
        assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "7"]
        stream.close()


def test_an_eviction_that_fails_says_so(make: Make) -> None:
    with fake(sse('data: {"progress":0}\n\n', 'event: error\ndata: {"error":"no disk"}\n\n')) as server:
        from memtrove import MemtroveError

        with pytest.raises(MemtroveError, match="no disk"):
            list(make(server).admin.evict_with_progress(retention_period="P1D", resource_types=["conversations"]))
        assert len(server.asked) == 1 and server.asked[0].path.endswith("async=true")


def test_delays_grow_and_have_bounds() -> None:
    policy = RetryPolicy()
    assert (policy.max_retries, policy.base_delay, policy.max_delay) == (3, 0.2, 2.0)
    for retry, least in [(0, 0.2), (1, 0.4), (2, 0.8)]:
        assert all(least <= policy.delay(retry) <= least + 0.1 for _ in range(50))
    assert policy.delay(4) == policy.delay(400) == 2.0
    assert policy.delay(0, retry_after=7) == 7 and policy.delay(0, retry_after=3600) == 30
    assert policy.delay(2, retry_after=0) == 0 and policy.delay(2, retry_after=0.1) == 0.1


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("3") == 3 and retry_after(None) is None and retry_after("soon") is None
    assert retry_after("-1") == 0 and retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert (retry_after("Wed, 21 Oct 2115 07:28:00 GMT") or 0) > 30


@pytest.mark.parametrize(
    ("text", "code", "message", "details"),
    [
        ('{"error":{"code":"A","message":"m","request_id":"r","details":{"x":1}}}', "A", "m", {"x": 1}),
        ('{"error":{"code":4,"name":"B","message":"m","details":{}},"request_id":"r"}', "B", "m", {}),
        (
            '{"error":"Not found","code":"not_found","details":{"resource":"c","id":"7"}}',
            "not_found",
            "Not found: c 7",
            None,
        ),
        ('{"error":"Conflict","code":"c","details":{"message":"why"}}', "c", "Conflict: why", None),
        (
            '{"error":"search_type_unavailable","message":"m","availableTypes":["auto"]}',
            "search_type_unavailable",
            "m",
            None,
        ),
        ("", "HTTP_418", "I'm a Teapot", {}),
        ("plain words", "HTTP_418", "plain words", {}),
        ('{"error":7}', "HTTP_418", '{"error":7}', {}),
        ("[]", "HTTP_418", "[]", {}),
    ],
)
def test_errors_of_every_shape(text: str, code: str, message: str, details: object) -> None:
    error = api_error(418, "I'm a Teapot", text, "r", None)
    assert (error.code, error.message, error.request_id) == (code, message, "r")
    assert details is None or error.details == details
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.details == error.details


def test_long_answers_are_cut() -> None:
    error = api_error(500, "", "x" * 5000, None, None)
    assert len(error.raw_body) == 1024 and len(error.message) == 1024


def test_credentials_are_in_no_repr(make: Make) -> None:
    with fake(HANG_UP) as server:
        url = server.url.replace("http://", "http://name:hidden-word@")
        made: list[Any] = [
            MemtroveClient(url, token="secret-token", api_key="secret-key"),
            AsyncMemtroveClient(url, token="secret-token", api_key="secret-key"),
            Memtrove("u", url=url, token="secret-token"),
            AsyncMemtrove("u", url=url, api_key="secret-key"),
        ]
        with pytest.raises(TransportError) as failed:
            made[0].memories.list(layer="user", identifiers=ME)
        shown = [repr(one) for one in made] + [repr(made[0].memories), repr(made[0]._options), str(failed.value)]
    for text in shown:
        assert "secret" not in text and "hidden-word" not in text, text


@pytest.mark.parametrize("url", ["", "127.0.0.1:7077", "ftp://x", "http://"])
def test_an_address_must_be_one(url: str) -> None:
    if url:
        with pytest.raises(InvalidInputError):
            MemtroveClient(url)


def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMTROVE_URL", raising=False)
    assert repr(MemtroveClient()) == "MemtroveClient('http://127.0.0.1:7077')"
    monkeypatch.setenv("MEMTROVE_URL", "https://memory.example.org/base/")
    assert repr(MemtroveClient()) == "MemtroveClient('https://memory.example.org/base')"


def test_what_json_cannot_say_is_refused(make: Make) -> None:
    with fake(page()) as server:
        client = make(server)
        for metadata in ({"x": float("nan")}, {"x": {1, 2}}, {"x": "\ud800"}):
            with pytest.raises(InvalidInputError):
                client.memories.add("x", layer="user", identifiers=ME, metadata=metadata)
        with pytest.raises(InvalidInputError):
            make(server, user_id="a\r\nX-API-Key: b").memories.list(layer="user", identifiers=ME)
        assert server.asked == []


def test_an_adapter_lets_go_of_loops_that_have_ended() -> None:
    from memtrove._connection import Connection

    async def use(connection: Connection) -> None:
        assert connection.async_client() is connection.async_client()
        await connection.async_client().health()

    with fake(Answer(200, OK, whole=False)) as server:
        connection = Connection(None, None, {"url": server.url})
        for _ in range(5):
            asyncio.run(use(connection))
        assert len(connection._own_async) == 1


def test_threads_share_the_client_that_is_made_after_a_close(monkeypatch: pytest.MonkeyPatch) -> None:
    import memtrove._connection

    connection = memtrove._connection.Connection(None, None, {"url": "http://127.0.0.1:9"})
    connection.close()
    both = threading.Barrier(2)

    def together(**settings: Any) -> MemtroveClient:
        both.wait(10)
        return MemtroveClient(**settings)

    monkeypatch.setattr(memtrove._connection, "MemtroveClient", together)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: connection.client(), range(2))
    assert one is other is connection.client()
    connection.close()


def test_a_forked_process_has_connections_of_its_own(
    make: Make, loop: asyncio.AbstractEventLoop | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> Any:
        [one] = pool._own.values()
        return one if loop is None else one[1]

    with fake(Answer(200, OK)) as server:
        client = make(server)
        pool: Any = client._transport._pool
        client.health()
        parents = opened()
        monkeypatch.setattr("os.getpid", lambda: -1)
        client.health()
        own = opened()
        assert own is not parents and len({asked.port for asked in server.asked}) == 2
        # Those of the parent are not closed: it goes on using them.
        assert not parents.is_closed
        monkeypatch.undo()
        for http in (parents, own):
            http.close() if loop is None else loop.run_until_complete(http.aclose())


def test_an_http_client_is_not_used_in_a_forked_process(
    make: Make, loop: asyncio.AbstractEventLoop | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = httpx.Client if loop is None else httpx.AsyncClient
    http = kind()
    with fake(Answer(200, OK)) as server:
        client = make(server, http_client=http)
        client.health()
        with monkeypatch.context() as patched:
            patched.setattr("os.getpid", lambda: -1)
            with pytest.raises(InvalidInputError, match="forked"):
                client.health()
        http.close() if loop is None else loop.run_until_complete(http.aclose())
        with pytest.raises(InvalidInputError, match="closed"):
            client.health()
        assert len(server.asked) == 1


FORK = """
import os, sys
from memtrove import MemtroveClient

client = MemtroveClient(sys.argv[1])
client.health()
for _ in range(3):
    child = os.fork()
    if child == 0:
        client.health()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
client.health()
"""


def test_forked_processes_share_no_connection() -> None:
    with fake(Answer(200, OK)) as server:
        command = [sys.executable, "-c", FORK, server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        ports = [asked.port for asked in server.asked]
    # The parent goes on with the one it has.
    assert len(ports) == 5 and len(set(ports)) == 4 and ports[0] == ports[-1]


def test_a_thousand_calls_at_once_take_turns(url: str, user: str) -> None:
    async def many() -> int:
        async with AsyncMemtroveClient(url, token=user, timeout=httpx.Timeout(30, pool=0.2)) as client:
            answers = await asyncio.gather(*(client.health() for _ in range(1500)))
            return sum(one.status == "ok" for one in answers)

    assert asyncio.run(many()) == 1500


@pytest.mark.parametrize("secret", ["sk-live-1 ", " sk-live-1", "sk-live-1\n", "sk-live\x01-1", "sk-live-1\t"])
def test_a_credential_that_cannot_be_sent_is_not_shown(make: Make, secret: str) -> None:
    with fake(page()) as server:
        options: list[dict[str, Any]] = [{"token": secret}, {"api_key": secret}]
        for option in options:
            with pytest.raises(InvalidInputError, match=r"the header (Authorization|X-API-Key)") as told:
                make(server, **option)
            assert "sk-live" not in str(told.value)
        with pytest.raises(InvalidInputError) as told:
            make(server, header_provider=lambda: {"X Secret": "sk-live-1"}).memories.list(layer="user", identifiers=ME)
        assert "sk-live" not in str(told.value) and server.asked == []


def test_only_a_header_that_cannot_be_sent_is_the_callers_mistake(loop: asyncio.AbstractEventLoop | None) -> None:
    def calls(text: str) -> tuple[Exception, int]:
        made: list[httpx.Request] = []

        def refuse(request: httpx.Request) -> httpx.Response:
            made.append(request)
            raise httpx.LocalProtocolError(text)

        transport = httpx.MockTransport(refuse)
        with pytest.raises((InvalidInputError, TransportError)) as told:
            if loop is None:
                MemtroveClient(http_client=httpx.Client(transport=transport), token="t", retry=QUICK).health()
            else:
                http = httpx.AsyncClient(transport=transport)
                loop.run_until_complete(AsyncMemtroveClient(http_client=http, token="t", retry=QUICK).health())
        assert "sk-live" not in "".join(traceback.format_exception(told.value))
        return told.value, len(made)

    error, made = calls("Illegal header value b'sk-live-1 '")
    assert isinstance(error, InvalidInputError) and made == 1
    error, made = calls("Too little data for declared Content-Length: sk-live-1")
    assert isinstance(error, TransportError) and made == 4
    assert str(error).endswith("did not answer: LocalProtocolError")


def test_a_closed_client_says_so(make: Make, loop: asyncio.AbstractEventLoop | None) -> None:
    with fake(Answer(200, OK)) as server:
        client: Any = make(server)
        client.health()
        client.close() if loop is None else client.aclose()
        with pytest.raises(InvalidInputError, match="closed"):
            client.health()


def test_a_client_may_be_awaited_in_one_event_loop_after_another() -> None:
    with fake(Answer(200, OK, whole=False)) as server:
        client = AsyncMemtroveClient(server.url)
        for _ in range(3):
            assert asyncio.run(client.health()).status == "ok"
        assert len(client._transport._pool._own) == 1


def test_a_page_of_a_proxy_is_no_answer(make: Make) -> None:
    with fake(Answer(200, b"<html>")) as server:
        for call in (
            lambda: make(server).files.get_if_changed(Scope("t", "u"), "a.md", "e"),
            lambda: make(server).memories.get_if_changed("m", "e"),
        ):
            with pytest.raises(DecodeError):
                call()


def test_what_is_said_twice_is_refused(loop: asyncio.AbstractEventLoop | None, make: Make) -> None:
    kind: Any = httpx.Client if loop is None else httpx.AsyncClient
    http = kind()
    with fake(Answer(200, OK)) as server, pytest.raises(InvalidInputError, match="timeout"):
        make(server, timeout=1, http_client=http)
    http.close() if loop is None else loop.run_until_complete(http.aclose())


def test_a_timeout_may_be_anything_that_httpx_takes(make: Make) -> None:
    waits: list[object] = []

    def note(request: httpx.Request) -> None:
        waits.append(request.extensions["timeout"]["read"])

    with fake(Answer(200, OK)) as server:
        for timeout in (3, None, httpx.Timeout(5, read=9)):
            make(server, timeout=timeout, on_request=note).health()
        make(server, on_request=note).health()
    assert waits == [3, None, 9, 30]


def test_the_environment_says_who_is_calling(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMTROVE_TOKEN", "jwt")
    monkeypatch.setenv("MEMTROVE_API_KEY", "key")
    with fake(Answer(200, OK)) as server:
        for options in ({}, {"api_key": "own"}, {"header_provider": lambda: {"Authorization": "Bearer theirs"}}):
            make(server, **options).health()
        who = [(one.headers.get("authorization"), one.headers.get("x-api-key")) for one in server.asked]
    assert who == [("Bearer jwt", "key"), (None, "own"), ("Bearer theirs", None)]


def test_the_server_is_told_the_version(make: Make) -> None:
    with fake(Answer(200, OK)) as server:
        make(server).health()
        assert server.asked[0].headers["user-agent"] == f"memtrove-client/{__version__}"


def test_half_a_character_is_refused(make: Make) -> None:
    with fake(page()) as server:
        for call in (
            lambda: make(server).memories.get("\ud800"),
            lambda: make(server).memories.list(layer="user", identifiers={"user_id": "\ud800"}),
            lambda: make(server).files.get(Scope("t", "u"), "\ud800"),
        ):
            with pytest.raises(InvalidInputError):
                call()
        assert server.asked == []


def test_a_time_without_a_zone_is_refused(make: Make) -> None:
    from datetime import datetime

    with fake(page()) as server, pytest.raises(InvalidInputError, match="time zone"):
        make(server).memories.list(layer="user", identifiers=ME, to=datetime(2026, 1, 1))
