"""The server that is measured, on an empty folder and a free port of the loopback interface, and a caller with one connection."""
import http.client, json, os, re, signal, socket, subprocess, tempfile, time


class Server:
    """A server, until the end of the block. Settings are those of the environment, e.g. MEMTROVE_STORE__URL."""

    def __init__(self, binary, settings=None):
        self.folder = tempfile.TemporaryDirectory(prefix="memtrove-bench-")
        # What whoever measures has set for a server of their own must not change what is measured.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMTROVE_")}
        self.environment = {**kept, "MEMTROVE_SERVER__LISTEN": "127.0.0.1:0",
                            "MEMTROVE_SERVER__DATA_DIR": os.path.join(self.folder.name, "data"), **(settings or {})}
        self.binary = os.path.abspath(binary)
        self.start()

    def start(self):
        """Starts it, the first time or once more; seconds until it answers."""
        began = time.monotonic()
        self.log = open(os.path.join(self.folder.name, "log"), "w")
        self.process = subprocess.Popen([self.binary, "serve"], cwd=self.folder.name, env=self.environment, stdout=self.log, stderr=self.log)
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)\s", self.said())):
            if self.process.poll() is not None or time.monotonic() > began + 120:
                raise SystemExit(f"the server did not start:\n{self.said()}")
            time.sleep(0.002)
        self.port = int(found.group(1))
        return time.monotonic() - began

    def said(self):
        with open(self.log.name) as log:
            return log.read()

    def stop(self, most=60):
        """Asks it to end; seconds until it did. After so many it is ended."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(most)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        return time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.folder.cleanup()

    def rss(self):
        """MiB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) / 1024

    def metric(self, name, label=""):
        """The sum of a metric's samples whose labels contain this; 0 where there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        samples = re.findall(rf"^{name}(?:{{([^}}]*)}})? ([0-9.e+-]+)$", text, re.M)
        return sum(float(value) for labels, value in samples if label in labels)

    def settle(self, say=None):
        """Waits until the background has taken in what was written and given it the vectors it should have."""
        done, since = None, time.monotonic()
        while True:
            now = (self.metric("memory_store_operation_seconds_count", 'operation="take_in_texts"'),
                   self.metric("memory_embedding_waiting"))
            if now != done:
                done, since = now, time.monotonic()
                if say:
                    say(f"{now[0]:,.0f} batches of texts taken in, {now[1]:,.0f} vectors to be made")
            elif now[1] == 0 and time.monotonic() > since + 4:
                return
            time.sleep(1)


class Caller:
    """Somebody with a connection of their own."""

    def __init__(self, server, user, key=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {"Authorization": f"Bearer {user}", "Content-Type": "application/json"}
        if key:
            self.headers["X-API-Key"] = key
        self.text = b""

    def ask(self, method, path, body=None):
        """The status; 0 where the connection was closed instead."""
        try:
            self.connection.request(method, path, json.dumps(body) if body else None, self.headers)
            answer = self.connection.getresponse()
            self.text = answer.read()
            return answer.status
        except (http.client.HTTPException, OSError) as error:
            self.connection.close()
            self.text = str(error).encode()
            return 0

    def call(self, method, path, body=None):
        """What is answered, which has to be well."""
        status = self.ask(method, path, body)
        if not 200 <= status < 300:
            raise SystemExit(f"{method} {path}: {status} {self.text.decode()[:500]}")
        return json.loads(self.text)

    def create(self):
        if self.ask("POST", "/v1/conversations", {"title": "measured"}) != 201:
            raise SystemExit(f"no conversation: {self.text}")
        return json.loads(self.text)["id"]
