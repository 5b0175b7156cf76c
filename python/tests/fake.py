"""A server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HANG_UP = "hang up"
"""As an answer: closes the connection without one."""


@dataclass
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    whole: bool = True
    """Whether it says how long it is; if not, it ends where the connection ends."""
    forever: bool = False
    """Whether the body is repeated for as long as somebody reads it."""


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    port: int
    """Of the connection."""


@dataclass
class Fake:
    url: str
    asked: list[Asked]


@contextlib.contextmanager
def fake(*answers: Answer | str) -> Iterator[Fake]:
    """Gives these answers one after the other, and the last one from then on."""
    asked: list[Asked] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                given = answers[min(len(asked), len(answers) - 1)]
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked.append(Asked(self.command, self.path, headers, body, self.client_address[1]))
            if isinstance(given, str):
                self.close_connection = True
                return
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            if given.whole:
                self.send_header("Content-Length", str(len(given.body)))
            else:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(given.body)
            with contextlib.suppress(ConnectionError):
                while given.forever:
                    self.wfile.write(given.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Fake(f"http://127.0.0.1:{server.server_address[1]}", asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
