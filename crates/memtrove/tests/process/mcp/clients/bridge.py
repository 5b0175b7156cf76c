"""Lets a client that only knows addresses, and no credentials, test a server.

    bridge.py http <address of /mcp> <user>     passes requests on, with the credentials of a user
    bridge.py stdio <command> [argument ...]    starts the command for each session, and passes messages on line by line

Prints its own address and serves until its standard input ends.
"""

import http.client
import http.server
import itertools
import json
import subprocess
import sys
import threading
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        try:
            self.end_headers()
            self.wfile.write(body)
        except BrokenPipeError:
            # Whoever asked has what it wanted to know, and went.
            self.close_connection = True

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))


def http_handler(address, user):
    target = urllib.parse.urlsplit(address)

    class Passing(Handler):
        def handle_any(self):
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
            body = self.body()
            connection.putrequest(self.command, target.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "content-length", "accept-encoding", "transfer-encoding"):
                    connection.putheader(name, value)
            connection.putheader("Authorization", f"Bearer {user}")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            kept = [
                (name, value)
                for name, value in response.getheaders()
                if name.lower() not in ("connection", "content-length", "transfer-encoding", "date", "server")
            ]
            self.answer(response.status, response.read(), kept)
            connection.close()

        do_GET = do_POST = do_DELETE = handle_any

    return Passing


class Session:
    """A process, and who waits for which of its answers."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.waiting = {}
        self.lock = threading.Lock()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            waiting = self.waiting.pop(json.dumps(json.loads(line).get("id")), None)
            if waiting:
                waiting.append(line)
                waiting[0].set()

    def say(self, body):
        with self.lock:
            self.process.stdin.write(body.replace(b"\n", b" ") + b"\n")
            self.process.stdin.flush()

    def ask(self, message, body):
        waiting = [threading.Event()]
        self.waiting[json.dumps(message["id"])] = waiting
        self.say(body)
        if not waiting[0].wait(60):
            raise TimeoutError(f"no answer to {message}")
        return waiting[1]

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def stdio_handler(command, sessions):
    numbers = itertools.count(1)

    class Starting(Handler):
        def do_POST(self):
            body = self.body()
            message = json.loads(body)
            headers = [("Content-Type", "application/json")]
            if message.get("method") == "initialize":
                number = str(next(numbers))
                sessions[number] = Session(command)
                headers.append(("Mcp-Session-Id", number))
            else:
                number = self.headers.get("Mcp-Session-Id")
            session = sessions.get(number)
            if session is None:
                self.answer(404)
            elif "id" in message and "method" in message:
                self.answer(200, session.ask(message, body), headers)
            else:
                session.say(body)
                self.answer(202)

        def do_GET(self):
            self.answer(405)

        def do_DELETE(self):
            session = sessions.pop(self.headers.get("Mcp-Session-Id"), None)
            if session:
                session.end()
            self.answer(200 if session else 404)

    return Starting


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Whoever breaks a connection off has no more to ask.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main(kind, *arguments):
    sessions = {}
    handler = http_handler(*arguments) if kind == "http" else stdio_handler(list(arguments), sessions)
    server = Server(("127.0.0.1", 0), handler)
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    for session in list(sessions.values()):
        session.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
