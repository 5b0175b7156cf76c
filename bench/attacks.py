#!/usr/bin/env python3
"""What callers that stall cost others, and the server's memory meanwhile: `make bench-attacks`.

Each attack has a server of its own on loopback. While it lasts, another caller appends an entry and reads a page of ten on a
connection of its own, again and again. Only the standard library is used: of HTTP/2 the script says what an attacker would say.
"""
import argparse, datetime, json, os, pathlib, platform, resource, socket, struct, subprocess, threading, time, urllib.parse

from server import Caller, Server

MIB = 1024 * 1024
# What bodies and answers have together, pages while they are made, caches, and 10,000 connections.
MOST_MIB = 1024
LISTED = "/v1/conversations/{}/entries?limit=200"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, help="the memtrove binary")
    parser.add_argument("--write", action="store_true", help="write the table to bench/results/attacks.md")
    parser.add_argument("--quick", action="store_true", help="shorter and smaller: shows that it works, measures nothing")
    parser.add_argument("--only", action="append", help="an attack by a part of its name; may be repeated")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle = min(1000 if options.quick else 10_000, hard - 1000)
    seconds = 5 if options.quick else 15
    attacks = {
        "bodies of 256 MiB in all announced on one HTTP/2 connection, a byte of each sent": (announced_http2, seconds),
        "bodies of 256 MiB in all announced over HTTP/1.1, a byte of each sent": (announced_http1, seconds),
        "40 bodies of 20 MB over HTTP/1.1, 15 MB of each sent": (half_sent, seconds),
        "60 pages of 30 MB asked for over HTTP/1.1 and not read": (unread_http1, seconds),
        "60 pages of 30 MB asked for on one HTTP/2 connection without a window": (unread_http2, seconds),
        "60 knowledge queries of 10 MB on one HTTP/2 connection without a window": (unread_queries, seconds),
        "gRPC calls without a credential that send messages without end": (endless_messages, seconds),
        f"{idle:,} idle connections": (lambda server: idle_connections(server, idle), seconds),
        "mixed load of 8 callers": (mixed_load, 10 if options.quick else 60),
    }
    rows = []
    for name, (attack, seconds) in attacks.items():
        if not options.only or any(part in name for part in options.only):
            rows.append(measure(options.bin, name, attack, seconds, 3 if options.quick else 45))
            print(rows[-1].line(), flush=True)
    text = report(rows)
    print("\n" + text)
    if options.write:
        pathlib.Path(__file__).parent.joinpath("results", "attacks.md").write_text(text)
    failed = [row.name for row in rows if row.during.failures]
    large = [row.name for row in rows if max(row.rss) > MOST_MIB]
    if failed or large:
        raise SystemExit(f"others were refused during {failed}; more than {MOST_MIB:,} MiB were taken during {large}")


class Row:
    def __init__(self, name, before, during, after, rss, note):
        self.name, self.before, self.during, self.after, self.rss, self.note = name, before, during, after, rss, note

    def line(self):
        cells = [self.name]
        cells += [f"{calls.at(0.5):.1f} / {calls.at(0.99):.1f}" for calls in (self.before, self.during, self.after)]
        cells += [str(self.during.failures)] + [f"{mib:,.0f}" for mib in self.rss] + [self.note]
        return "| " + " | ".join(cells) + " |"


def measure(binary, name, attack, seconds, rest):
    """Before, during and after an attack. After is when the server has given up whoever stalls."""
    print(f"… {name}", flush=True)
    with Target(binary) as server:
        server.prepare()
        before = observe(server, min(seconds, 5))
        rss = [server.rss()]
        with Peak(server) as peak:
            held = attack(server)
            during = observe(server, seconds)
            note = held.note()
        rss.append(peak.mib)
        if isinstance(held, Load):
            held.end()
        else:
            time.sleep(rest)
        after = observe(server, min(seconds, 5))
        rss.append(server.rss())
        held.end()
        return Row(name, before, during, after, rss, note)


class Calls:
    def __init__(self):
        self.millis, self.failures = [], 0

    def at(self, quantile):
        ordered = sorted(self.millis) or [float("nan")]
        return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))]


def observe(server, seconds):
    """Another caller: an append and a small page in turns."""
    calls, caller = Calls(), Caller(server, "victim")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for method, path, body in (("POST", server.small, said("hello")), ("GET", server.small + "?limit=10", None)):
            began = time.monotonic()
            status = caller.ask(method, path, body)
            calls.millis.append((time.monotonic() - began) * 1000)
            calls.failures += not 200 <= status < 300
        time.sleep(0.005)
    return calls


# ---- attacks: each returns what it holds open


class Held:
    """Connections that are kept open until the end of the measurement."""

    def __init__(self, sockets, say=lambda: ""):
        self.sockets, self.note = sockets, say

    def end(self):
        for connection in self.sockets:
            connection.close()


# The largest bodies there may be, and smaller ones for what they leave: together as much as there is room for.
ANNOUNCED = [20 * MIB] * 12 + [16 * MIB] + [8 * MIB >> n for n in range(18)]


def announced_http2(server):
    connection = Http2(server)
    for length in ANNOUNCED:
        connection.request("POST", server.small, {"content-length": str(length), "content-type": "application/json"}, b" ")
    return Held([connection.socket])


def announced_http1(server):
    return Held([server.begin("POST", server.small, length, b" ") for length in ANNOUNCED])


def half_sent(server):
    sockets = [server.begin("POST", server.small, 20_000_000, b"") for _ in range(40)]
    for connection in sockets:
        connection.settimeout(10)
        try:
            for _ in range(15):
                connection.sendall(b" " * 1_000_000)
        except OSError:
            pass  # It was refused.
    return Held(sockets, lambda: f"{answered(sockets, b' 503 ')} refused with 503")


def unread_http1(server):
    sockets = []
    for _ in range(60):
        connection = server.connect(buffer=16 * 1024)
        connection.sendall(server.head("GET", LISTED.format(server.large), "mallory"))
        sockets.append(connection)
    return Held(sockets, lambda: f"{answered(sockets, b' 200 ')} pages held, {answered(sockets, b' 503 ')} refused with 503")


def unread_http2(server):
    connection = Http2(server, window=0)
    for _ in range(60):
        connection.request("GET", LISTED.format(server.large), {}, None)
    return Held([connection.socket], lambda: f"{connection.served} pages held, {connection.refused} refused with 503")


def unread_queries(server):
    attacker = Caller(server, "mallory")
    scope = {"layer": "user", "identifiers": {"userId": "mallory"}}
    for number in range(100):
        if attacker.ask("POST", "/v1/memories", {"content": f"seat {number} " + "x" * 99_000, **scope}) != 201:
            raise SystemExit(f"no memory: {attacker.text}")
    query = urllib.parse.quote(json.dumps({"query": "seat", "options": {"limit": 100, "threshold": 0}}))
    connection = Http2(server, window=0)
    for _ in range(60):
        connection.request("GET", f"/openspec/v1/knowledge/stream?type=query&user_id=mallory&query={query}", {}, None)
    return Held([connection.socket], lambda: f"{connection.served} held, {connection.refused} refused with 503")


def endless_messages(server):
    """Valid messages of 16 KiB, one after the other, on a call that has one."""
    connections = [Http2(server) for _ in range(4)]
    message = frame(0, 0, 1, b"\0" + (16_379).to_bytes(4, "big") + bytes(16_379))

    def send(connection):
        headers = {"content-type": "application/grpc", "te": "trailers"}
        connection.request("POST", "/memory.v1.SystemService/GetHealth", headers, b"")
        try:
            # Windows are not looked at: whoever breaks them is cut off, which is an answer too.
            for _ in range(64 * 64):
                connection.send(message)
        except OSError:
            pass

    for connection in connections:
        threading.Thread(target=send, args=(connection,), daemon=True).start()
    return Held([connection.socket for connection in connections])


def idle_connections(server, count):
    sockets, head = [], server.head("GET", "/health/live", None)
    for _ in range(count):
        connection = server.connect()
        connection.sendall(head)
        sockets.append(connection)
    alive = sum(connection.recv(65536).startswith(b"HTTP/1.1 200") for connection in sockets)
    return Held(sockets, lambda: f"{alive:,} of {count:,} were served")


class Load:
    """Callers that do as they please for as long as it lasts."""

    def __init__(self, server):
        self.ended, self.calls, self.failures = threading.Event(), 0, 0
        self.threads = [threading.Thread(target=self.run, args=(server, f"load-{n}")) for n in range(8)]
        for thread in self.threads:
            thread.start()

    def run(self, server, name):
        caller = Caller(server, name)
        entries = f"/v1/conversations/{caller.create()}/entries"
        memory = {"content": "Dana prefers window seats", "layer": "user", "identifiers": {"userId": name}}
        turn = 0
        while not self.ended.is_set():
            turn += 1
            for method, path, body in (
                ("POST", entries, said(f"turn {turn} " + "words " * 50)),
                ("GET", entries + "?limit=20", None),
                ("POST", "/v1/memories", {**memory, "content": f"Dana prefers seat {turn}"}),
                ("POST", "/v1/memories:search", {"query": "seats", "layers": ["user"], "identifiers": {"userId": name}}),
                ("POST", "/v1/conversations/search", {"query": "words"}),
            ):
                status = caller.ask(method, path, body)
                self.calls += 1
                self.failures += not 200 <= status < 300

    def note(self):
        return f"{self.calls:,} requests, {self.failures} of them not 2xx"

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def mixed_load(server):
    return Load(server)


def answered(sockets, status):
    """How many were answered so; nothing is read from any."""
    count = 0
    for connection in sockets:
        connection.setblocking(False)
        try:
            count += status in connection.recv(64, socket.MSG_PEEK)
        except OSError:
            pass
    return count


# ---- the server and those who talk to it


def said(text):
    return {"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]}


class Target(Server):
    """The server, and sockets to it that say what an attacker would say."""

    def prepare(self):
        """A conversation of the victim's, and one of the attacker's with a page of 30 MB."""
        self.small = f"/v1/conversations/{Caller(self, 'victim').create()}/entries"
        attacker = Caller(self, "mallory")
        self.large = attacker.create()
        for _ in range(30):
            if attacker.ask("POST", f"/v1/conversations/{self.large}/entries", said("x" * 1_000_000)) != 201:
                raise SystemExit("the large page cannot be made")

    def connect(self, buffer=None):
        connection = socket.socket()
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def head(self, method, path, user, more=""):
        credential = f"Authorization: Bearer {user}\r\n" if user else ""
        return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{credential}{more}\r\n".encode()

    def begin(self, method, path, announced, sent):
        connection = self.connect()
        more = f"Content-Type: application/json\r\nContent-Length: {announced}\r\n"
        connection.sendall(self.head(method, path, "mallory", more) + sent)
        return connection


class Peak:
    """The most memory the server had, looked at 20 times a second."""

    def __init__(self, server):
        self.server, self.mib, self.ended = server, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended.wait(0.05):
            self.mib = max(self.mib, self.server.rss())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class Http2:
    """As much of HTTP/2 as it takes to ask and not to listen. Windows of what is received are never opened."""

    def __init__(self, server, window=65_535):
        self.socket, self.stream, self.authority = server.connect(), 1, f"127.0.0.1:{server.port}"
        self.served, self.refused, self.lock = 0, 0, threading.Lock()
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HIHI", 1, 0, 4, window)))
        threading.Thread(target=self.listen, daemon=True).start()

    def send(self, data):
        with self.lock:
            self.socket.sendall(data)

    def request(self, method, path, headers, body):
        fields = {":method": method, ":scheme": "http", ":authority": self.authority, ":path": path,
                  "authorization": "Bearer mallory", **headers}
        # Literal fields that are not remembered, without Huffman's code: the simplest there is.
        block = b"".join(b"\0" + text(name) + text(value) for name, value in fields.items())
        ends = 0 if body is not None else 1
        data = frame(1, 4 | ends, self.stream, block)
        if body:
            data += frame(0, 0, self.stream, body)
        self.send(data)
        self.stream += 2

    def listen(self):
        """Acknowledges settings and pings, as a client must to stay."""
        received = self.socket.makefile("rb")
        try:
            while len(head := received.read(9)) == 9:
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                payload = received.read(length)
                if kind in (4, 6) and not flags & 1:
                    self.send(frame(kind, 1, 0, payload if kind == 6 else b""))
                # 200 has a number in everybody's table. Without a table of what was said before, 503 is said each time: plain, or in
                # Huffman's code.
                self.served += kind == 1 and payload[:1] == b"\x88"
                self.refused += kind == 1 and (b"503" in payload[:8] or b"\x6c\x0c\xff" in payload[:8])
        except OSError:
            pass


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def text(value):
    """A length in seven bits, or in more, and the bytes."""
    data = value.encode()
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest, encoded = len(data) - 127, [127]
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    return bytes(encoded + [rest]) + data


def report(rows):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [
        "# Memtrove under attack", "",
        f"{now} · commit {commit} · {os.cpu_count()} cores · Linux {platform.release().split('-')[0]} · load average {os.getloadavg()[0]:.1f}", "",
        "Each attack has a server of its own. *Others* is a caller that appends an entry and reads a page of ten, in turns, on one",
        "connection: milliseconds at p50 / p99 before the attack, during it and after the server gave the attacker up. *Refused* is how",
        "many of its requests were not answered 2xx. Memory is the server's, in MiB; during an attack the highest of 20 looks a second.", "",
        "| attack | others before | during | after | refused | MiB before | during | after | |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    lines += [row.line() for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
