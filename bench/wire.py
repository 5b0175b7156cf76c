"""Requests as bytes, over connections that stay, read no further than to find where an answer ends: a client that costs little, and
the same for every server."""
import json, selectors, socket, statistics, time


def request(port, method, path, body=None, headers=()):
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers]
    data = b"" if body is None else json.dumps(body).encode()
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode() + data


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(300)
        self.received = b""

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """What has come by now; the answer's status and body once it is whole."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionError("the server closed the connection")
        self.received += part
        head = self.received.find(b"\r\n\r\n")
        if head < 0:
            return None
        fields = self.received[:head].lower()
        at = fields.find(b"\r\ncontent-length:")
        if at < 0:
            raise ValueError(f"an answer without a length: {fields[:200]}")
        length = int(fields[at + 17:].split(b"\r\n", 1)[0])
        if len(self.received) < head + 4 + length:
            return None
        status, body = int(fields[9:12]), self.received[head + 4:]
        self.received = b""
        return status, body

    def ask(self, data):
        self.send(data)
        while (answer := self.receive()) is None:
            pass
        return answer


def well(answer):
    status, body = answer
    if not 200 <= status < 300:
        raise SystemExit(f"{status}: {body[:500].decode(errors='replace')}")
    return body


def ask(port, data):
    """One request on a connection of its own."""
    connection = Connection(port)
    try:
        return well(connection.ask(data))
    finally:
        connection.close()


def one_after_the_other(port, requests, seconds, least=15, refused=None):
    """Milliseconds of each request, as many as fit, on one connection. Where a list is given, what was refused is added to it."""
    connection, took = Connection(port), []
    # Connections have to be made, and threads to wake.
    connection.ask(requests[0])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < least:
        data = requests[len(took) % len(requests)]
        began = time.perf_counter()
        answer = connection.ask(data)
        took.append((time.perf_counter() - began) * 1e3)
        if refused is None or 200 <= answer[0] < 300:
            well(answer)
        else:
            refused.append(answer[0])
    connection.close()
    return took


def crowd(port, requests, clients, seconds=None):
    """Answers a second to so many clients, each with one request under way. Without seconds each request is sent once."""
    selector, sent, answered = selectors.DefaultSelector(), 0, 0
    began = time.perf_counter()
    end = began + (seconds or 1e9)

    def send(connection):
        nonlocal sent
        if (seconds or sent < len(requests)) and time.perf_counter() < end:
            connection.send(requests[sent % len(requests)])
            sent += 1
        else:
            selector.unregister(connection.socket)
            connection.close()

    for _ in range(clients):
        connection = Connection(port)
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        send(connection)
    while selector.get_map():
        for key, _ in selector.select():
            answer = key.data.receive()
            if answer is not None:
                well(answer)
                answered += 1
                send(key.data)
    return answered / (time.perf_counter() - began)


def at(took, quantile):
    ordered = sorted(took)
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))]


def p50(took):
    return statistics.median(took)
