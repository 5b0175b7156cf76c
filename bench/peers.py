#!/usr/bin/env python3
"""Search beside what people would pick instead, in one run: `make bench-peers`.

Memtrove over HTTP on the embedded engine and on PostgreSQL, chroma's server with the same texts and vectors, LangGraph's SqliteStore and
PostgresStore. All speak over loopback, on one connection that stays, with the same client that reads no more of an answer than it must.
They take turns (A B A B …) in several rounds; a figure is the median over the rounds. Peers are installed by the script.

  scripts/postgres.sh run python3 bench/peers.py --bin memtrove [--against OLD] [--only memories] [--full] [--write]
"""
import argparse, base64, contextlib, datetime, json, multiprocessing, os, pathlib, platform, socket, statistics, subprocess, sys
import tempfile, time, uuid

import packages

VENV = packages.need("peers", "chromadb==1.5.9", "langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2",
                     "langgraph-checkpoint-postgres==3.2.0", "sqlite-vec==0.1.9", "psycopg==3.3.9", "psycopg-binary==3.3.9",
                     "psycopg-pool==3.3.3", "httpx==0.28.1", "pysqlite3-binary==0.5.4.post2")
import numpy as np
import psycopg

import wire
from sentences import question, statement
from server import Server

sys.path.append(str(packages.ROOT / "python" / "src"))

PARTS = ("memories", "restart", "conversations", "owners", "langgraph")
SIZES = (1_000, 10_000, 19_500, 21_000, 100_000)
CONVERSATIONS = (50_000, 200_000)
FULL = 1_000_000
THRESHOLDS = (0, 0.3, 0.7)
ITEMS = (1_000, 10_000)
CLIENTS = 16
BULK = 250
QUESTIONS = 300
TOP = 10
DIMENSIONS = 256
AGENT = "X-API-Key: bench-agent"
# Goals and floors: the most that a search may take of chroma's time; milliseconds where there is no peer.
OF_CHROMA = {10_000: (0.25, 0.5), 100_000: (0.4, 0.7)}
MILLIS = {FULL: 8}
FIRST = {100_000: 50, FULL: 300}
AUTO = {50_000: 5, 200_000: 10, FULL: 40}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, help="the memtrove binary")
    parser.add_argument("--against", metavar="OLD", help="another memtrove binary, measured in turns with it")
    parser.add_argument("--engine", action="append", choices=["sqlite", "postgres"], help="may be repeated; both unless said otherwise")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be repeated")
    parser.add_argument("--sizes", help="of scopes of memories, e.g. 1000,10000")
    parser.add_argument("--chats", help="entries of users with conversations, e.g. 50000,200000")
    parser.add_argument("--full", action="store_true", help=f"also {FULL:,} entries: takes hours and 10 GB of disk")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the tables to bench/results/peers.md")
    options = parser.parse_args()
    options.only = options.only or PARTS
    full = (FULL,) if options.full else ()
    options.sizes = numbers(options.sizes) or SIZES + full
    options.chats = numbers(options.chats) or CONVERSATIONS + full
    options.postgres = os.environ.get("MEMTROVE_TEST_POSTGRES")
    options.engines = options.engine or ["sqlite", "postgres"]
    if "postgres" in options.engines and not options.postgres:
        raise SystemExit("no PostgreSQL: use scripts/postgres.sh run, or say --engine sqlite")
    options.builds = {"now": options.bin, **({"before": options.against} if options.against else {})}
    # The load before there is any of this.
    lines = head(options)
    if {"memories", "restart"} & set(options.only):
        lines += memories(options)
    if {"conversations", "owners"} & set(options.only):
        lines += conversations(options)
    if "langgraph" in options.only:
        lines += langgraph(options)
    text = "\n".join(lines) + "\n"
    print("\n" + text)
    if options.write:
        pathlib.Path(__file__).parent.joinpath("results", "peers.md").write_text(text)


def numbers(text):
    return tuple(int(number) for number in text.split(",")) if text else ()


def say(text):
    print(f"… {time.strftime('%H:%M:%S')} {text}", flush=True)


def head(options):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True).stdout.strip()
    build = pathlib.Path(options.bin).resolve().parent.name
    return [
        "# Search beside what people would pick instead", "",
        f"{now} · commit {commit} · {build} build · {os.cpu_count()} cores · Linux {platform.release().split('-')[0]} · load average {os.getloadavg()[0]:.1f}", "",
        "`make bench-peers`. Over HTTP on loopback, one connection that stays unless said otherwise, the ten best of a scope; chroma 1.5.9 has",
        "the same texts and the same vectors of 256 dimensions, its questions come with their vectors, and it knows no threshold.",
        f"Turns of {options.seconds:g} s, {options.rounds} rounds; each figure is the median of the rounds, each ratio that of the ratios in a round.",
        *(["*before* is an older build of ours in the same turns."] if options.against else []), "",
    ]


def median_of_turns(options, contestants, measure):
    """What each contestant's turns measured, by round."""
    figures = {name: [] for name in contestants}
    for number in range(options.rounds):
        # Each is first in some round.
        names = list(contestants)
        begin = number % len(names)
        for name in names[begin:] + names[:begin]:
            figures[name].append(measure(*contestants[name]))
    return figures


def ratio(these, those):
    return statistics.median(this / that for this, that in zip(these, those))


# ---- Memtrove


@contextlib.contextmanager
def node(options, build, engine):
    """A server on an engine of its own."""
    settings = {"MEMTROVE_MEMORIES__LIMITS__MAX_LIST_LIMIT": "1000"}
    if engine == "sqlite":
        with Server(options.builds[build], settings) as server:
            yield server
        return
    with database(options, f"peers_{build}") as url, Server(options.builds[build], {**settings, "MEMTROVE_STORE__URL": url}) as server:
        server.database = url
        yield server


@contextlib.contextmanager
def database(options, name):
    server = options.postgres.rsplit("/", 1)[0]
    with psycopg.connect(options.postgres, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.execute(f'CREATE DATABASE "{name}"')
    yield f"{server}/{name}?sslmode=disable"
    with psycopg.connect(options.postgres, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def ours(port, user, method, path, body=None):
    return wire.request(port, method, path, body, (f"Authorization: Bearer {user}", AGENT))


def scope(user):
    return {"layer": "user", "identifiers": {"userId": user}}


def add(server, user, texts):
    """Writes memories of a user by the bulk route."""
    at_once = 8 * BULK
    for begin in range(0, len(texts), at_once):
        part = [{"content": text, **scope(user)} for text in texts[begin:begin + at_once]]
        batches = [part[at:at + BULK] for at in range(0, len(part), BULK)]
        wire.crowd(server.port, [ours(server.port, user, "POST", "/v1/memories:bulkAdd", {"memories": batch}) for batch in batches], 4)
    listed = json.loads(wire.ask(server.port, ours(server.port, user, "POST", "/v1/memories:list", {**scope(user), "limit": 1})))
    assert listed["totalCount"] == len(texts), listed["totalCount"]


def vectors_of(server, user, texts):
    """The vectors that the server has for a user's memories, in the order of the texts."""
    row_of, found = {text: row for row, text in enumerate(texts)}, np.zeros((len(texts), DIMENSIONS), np.float32)
    connection, cursor, seen = wire.Connection(server.port), None, 0
    while True:
        body = {**scope(user), "limit": 1000, "includeEmbedding": True, **({"cursor": cursor} if cursor else {})}
        page = json.loads(wire.well(connection.ask(ours(server.port, user, "POST", "/v1/memories:list", body))))
        for memory in page["memories"]:
            found[row_of[memory["content"]]] = memory["embedding"]
            seen += 1
        cursor = page["nextCursor"]
        if not cursor:
            connection.close()
            assert seen == len(texts), (seen, len(texts))
            return found


def searches(server, user, threshold):
    return [ours(server.port, user, "POST", "/v1/memories:search", {
        "query": question(number), "layers": ["user"], "identifiers": {"userId": user}, "threshold": threshold, "limit": TOP})
        for number in range(QUESTIONS)]


# ---- chroma


class Chroma:
    """chroma's server, with a collection for each size."""

    ROOT = "/api/v2/tenants/default_tenant/databases/default_database/collections"

    def __init__(self):
        self.folder, self.ids = tempfile.TemporaryDirectory(prefix="memtrove-chroma-"), {}
        self.start()

    def start(self):
        began = time.monotonic()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [os.path.join(VENV, "bin", "chroma"), "run", "--host", "127.0.0.1", "--port", str(self.port), "--path", self.folder.name]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"})
        while True:
            try:
                wire.ask(self.port, wire.request(self.port, "GET", "/api/v2/heartbeat"))
                return time.monotonic() - began
            except OSError:
                if self.process.poll() is not None or time.monotonic() > began + 120:
                    raise SystemExit("chroma did not start")
                time.sleep(0.01)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()

    def fill(self, size, vectors, texts):
        body = {"name": f"size-{size}", "configuration": {"hnsw": {"space": "cosine"}}}
        made = json.loads(wire.ask(self.port, wire.request(self.port, "POST", self.ROOT, body)))
        self.ids[size] = made["id"]
        connection = wire.Connection(self.port)
        for begin in range(0, size, 2000):
            numbers = range(begin, min(begin + 2000, size))
            wire.well(connection.ask(wire.request(self.port, "POST", f"{self.ROOT}/{made['id']}/add", {
                "ids": [str(number) for number in numbers], "documents": [texts[number] for number in numbers],
                "metadatas": None, "embeddings": [base64.b64encode(vectors[number].tobytes()).decode() for number in numbers]})))
        connection.close()

    def searches(self, size, asked):
        return [wire.request(self.port, "POST", f"{self.ROOT}/{self.ids[size]}/query", {
            "query_embeddings": [[round(float(number), 7) for number in vector]], "n_results": TOP, "include": ["documents", "distances"]})
            for vector in asked]


# ---- memories


def memories(options):
    texts = [statement(number) for number in range(max(options.sizes))]
    questions = [question(number) for number in range(QUESTIONS)]
    with contextlib.ExitStack() as stack:
        chroma = stack.enter_context(Chroma())
        nodes = {(build, engine): stack.enter_context(node(options, build, engine))
                 for engine in options.engines for build in options.builds}
        for (build, engine), server in nodes.items():
            for size in options.sizes:
                say(f"{size:,} memories on {engine}, {build}")
                began = time.monotonic()
                add(server, f"bench-{size}", texts[:size])
                say(f"  {size / (time.monotonic() - began):,.0f} a second")
            if engine == "postgres":
                wait_for_indexes(server, sum(size > 20_000 for size in options.sizes))
        source = next(iter(nodes.values()))
        say("their vectors")
        vectors = vectors_of(source, f"bench-{max(options.sizes)}", texts)
        add(source, "questions", questions)
        asked = vectors_of(source, "questions", questions)
        for size in options.sizes:
            say(f"{size:,} texts in chroma")
            began = time.monotonic()
            chroma.fill(size, vectors, texts)
            say(f"  {size / (time.monotonic() - began):,.0f} a second")
        lines = []
        if "memories" in options.only:
            lines += search_memories(options, chroma, nodes, asked)
        if "restart" in options.only:
            lines += search_first(options, chroma, nodes, asked)
    return lines


def wait_for_indexes(server, expected):
    """PostgreSQL's indexes of large scopes are made in the background."""
    say(f"{expected} indexes of large scopes in the database")
    until = time.monotonic() + 900
    with psycopg.connect(server.database, autocommit=True) as database:
        while time.monotonic() < until:
            made, = database.execute("SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
                                     "WHERE a.amname = 'hnsw' AND i.indisvalid").fetchone()
            if made >= expected:
                return
            time.sleep(2)
    say("  not all were made: the nodes search those scopes in their own memory")


def search_memories(options, chroma, nodes, asked):
    rows, slow = [], {}
    for size in options.sizes:
        say(f"searching {size:,}")
        contestants = {"chroma": (chroma.port, chroma.searches(size, asked))}
        for (build, engine), server in nodes.items():
            for threshold in THRESHOLDS:
                contestants[build, engine, threshold] = (server.port, searches(server, f"bench-{size}", threshold))
        for port, requests in contestants.values():
            wire.one_after_the_other(port, requests, 0.3)
        took = median_of_turns(options, contestants, lambda port, requests:
                               wire.p50(wire.one_after_the_other(port, requests, options.seconds)))
        rates = median_of_turns(options, contestants, lambda port, requests:
                                wire.crowd(port, requests, CLIENTS, options.seconds * 0.6))
        peer = (took["chroma"], rates["chroma"])
        rows.append([f"{size:,}", "chroma", "–", str(TOP), f"{statistics.median(peer[0]):.2f}", "1", f"{statistics.median(peer[1]):,.0f}", "1"]
                    + (["–"] if options.against else []) + [""])
        for name in list(contestants)[1:]:
            build, engine, threshold = name
            port, requests = contestants[name]
            p50, of_peer, of_rate = statistics.median(took[name]), ratio(took[name], peer[0]), ratio(rates[name], peer[1])
            slow[build, engine, threshold, size] = p50
            row = [f"{size:,}", system(engine, build), f"{threshold:g}", f"{hits(port, requests):.1f}", f"{p50:.2f}", f"**{of_peer:.2f}**",
                   f"{statistics.median(rates[name]):,.0f}", f"**{of_rate:.2f}**"]
            if options.against:
                row.append(f"{ratio(took[name], took['before', engine, threshold]):.2f}" if build == "now" else "–")
            rows.append([*row, goal_of_search(size, p50, of_peer, of_rate) if build == "now" else ""])
    for row_of in [("now", engine, threshold) for engine in options.engines for threshold in THRESHOLDS]:
        if (*row_of, 19_500) in slow and (*row_of, 21_000) in slow:
            build, engine, threshold = row_of
            hump = slow[(*row_of, 19_500)] / slow[(*row_of, 21_000)]
            for row in rows:
                if row[:3] == ["19,500", system(engine, build), f"{threshold:g}"]:
                    row[-1] = met(f"{hump:.2f} × 21,000, ≤ 1.5", hump <= 1.5)
    heads = ["entries", "system", "threshold", "hits", "p50 ms", "× chroma's", f"a second, {CLIENTS} clients", "× chroma's"]
    heads += ["× before"] if options.against else []
    return ["## `POST /v1/memories:search`", "",
            "*Hits* is how many of ten a question finds. Less of chroma's time is better, more of its rate is.", "", *table([*heads, "goal"], rows, 2)]


def system(engine, build):
    name = {"sqlite": "Memtrove", "postgres": "Memtrove on PostgreSQL"}[engine]
    return name if build == "now" else f"{name}, before"


def met(goal, is_met):
    return f"{goal}: met" if is_met else f"{goal}: **missed**"


def goal_of_search(size, p50, of_peer, of_rate):
    if size in MILLIS:
        return met(f"≤ {MILLIS[size]} ms", p50 <= MILLIS[size])
    if size not in OF_CHROMA:
        return ""
    goal, floor = OF_CHROMA[size]
    verdicts = []
    for what, value in (("time", of_peer), ("rate", 1 / of_rate)):
        word = "met" if value <= goal else "above the floor" if value <= floor else "**missed**"
        bound = f"≤ {goal:g} ×" if what == "time" else f"≥ {1 / goal:g} ×"
        verdicts.append(f"{what} {bound}: {word}")
    return ", ".join(verdicts)


def hits(port, requests):
    connection = wire.Connection(port)
    found = [len(json.loads(wire.well(connection.ask(data)))["results"]) for data in requests[:50]]
    connection.close()
    return statistics.mean(found)


def search_first(options, chroma, nodes, asked):
    rows = []
    for size in (size for size in options.sizes if size in FIRST or size == max(options.sizes)):
        say(f"first search of {size:,} after a restart")
        started, first = {}, {}
        for _ in range(options.rounds):
            for name, server in [("chroma", chroma), *nodes.items()]:
                server.stop()
                began = server.start()
                requests = chroma.searches(size, asked[:2]) if name == "chroma" else searches(server, f"bench-{size}", 0.3)
                connection = wire.Connection(server.port)
                begin = time.perf_counter()
                wire.well(connection.ask(requests[0]))
                first.setdefault(name, []).append((time.perf_counter() - begin) * 1e3)
                started.setdefault(name, []).append(began * 1e3)
                connection.close()
        for name, took in first.items():
            millis, is_ours = statistics.median(took), name != "chroma"
            goal = met(f"≤ {FIRST[size]} ms", millis <= FIRST[size]) if is_ours and name[0] == "now" and size in FIRST else ""
            rows.append([f"{size:,}", system(name[1], name[0]) if is_ours else name, f"{statistics.median(started[name]):,.0f}", f"{millis:,.1f}", goal])
    if not rows:
        return []
    return ["## The first search after a restart", "", "Threshold 0.3. Milliseconds from the start of the process to where it answers, and of the search.", "",
            *table(["entries", "system", "start", "first search", "goal"], rows, 2)]


# ---- conversations


def conversations(options):
    users = {f"chat-{size}": size for size in options.chats}
    if options.full and "owners" in options.only:
        users[f"chat-{FULL}-too"] = FULL
    lines = []
    with contextlib.ExitStack() as stack:
        nodes = {build: stack.enter_context(node(options, build, "sqlite")) for build in options.builds}
        for build, server in nodes.items():
            for user, size in users.items():
                say(f"{size:,} entries of one user, {build}")
                began = time.monotonic()
                append(server, user, size)
                say(f"  {size / (time.monotonic() - began):,.0f} a second")
            append(server, "small", 20)
            began = time.monotonic()
            server.settle()
            say(f"  taken in {time.monotonic() - began:,.0f} s later")
        if "conversations" in options.only:
            lines += search_conversations(options, nodes)
        if "owners" in options.only:
            owners = sorted(users, key=users.get)[-2:]
            lines += owners_at_once(options, nodes, owners, [users[owner] for owner in owners])
    return lines


def conversation_of(user, number):
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{user} {number}")


def append(server, user, size):
    """A hundred entries to a conversation."""
    at_once = 20_000
    for begin in range(0, size, at_once):
        requests = []
        for number in range(begin, min(begin + at_once, size)):
            text = statement(number)
            body = {"contentType": "history", "content": [{"role": "AI" if number % 2 else "USER", "text": text}], "indexedContent": text}
            requests.append(ours(server.port, user, "POST", f"/v1/conversations/{conversation_of(user, number // 100)}/entries", body))
        wire.crowd(server.port, requests, CLIENTS)


def searches_of(server, user):
    return [ours(server.port, user, "POST", "/v1/conversations/search", {"query": question(number), "searchType": "auto", "limit": TOP})
            for number in range(QUESTIONS)]


def search_conversations(options, nodes):
    rows = []
    for size in options.chats:
        say(f"searching the conversations of a user with {size:,} entries")
        took, refused = {build: [] for build in nodes}, {build: [] for build in nodes}
        contestants = {build: (build, server.port, searches_of(server, f"chat-{size}")) for build, server in nodes.items()}

        def turn(build, port, requests):
            millis = wire.one_after_the_other(port, requests, options.seconds * 2, 5, refused[build])
            took[build] += millis
            return wire.p50(millis)

        for build, port, requests in contestants.values():
            read_all(port, requests[0])
            wire.one_after_the_other(port, requests, 0.3, 1, [])
        for build, medians in median_of_turns(options, contestants, turn).items():
            p50 = statistics.median(medians)
            goal = met(f"≤ {AUTO[size]} ms", p50 <= AUTO[size] and not refused[build]) if build == "now" and size in AUTO else ""
            rows.append([f"{size:,}", build, f"{p50:.2f}", f"{wire.at(took[build], 0.99):.2f}", f"{len(refused[build])} of {len(took[build]):,}", goal])
    return ["## `POST /v1/conversations/search`, `auto`", "", "One user with so many entries, a hundred to a conversation; embedded engine.", "",
            *table(["entries", "build", "p50 ms", "p99 ms", "refused", "goal"], rows, 2)]


def read_all(port, request):
    """Searches until everything is in memory: the first searches of a large user are answered with what could be read in time."""
    connection, until = wire.Connection(port), time.monotonic() + 120
    while b'"degraded":true' in connection.ask(request)[1] and time.monotonic() < until:
        time.sleep(0.5)
    connection.close()


def search_on(port, requests):
    """For as long as the server is there."""
    with contextlib.suppress(OSError):
        wire.one_after_the_other(port, requests, 1e9, refused=[])


def owners_at_once(options, nodes, owners, sizes):
    rows = []
    for build, server in nodes.items():
        say(f"two owners search at once, {build}")
        page = [ours(server.port, "small", "GET", f"/v1/conversations/{conversation_of('small', 0)}/entries?limit=10")]
        before = wire.one_after_the_other(server.port, page, 5)
        searching = [multiprocessing.Process(target=search_on, args=(server.port, searches_of(server, owner)), daemon=True) for owner in owners]
        for process in searching:
            process.start()
        time.sleep(1)
        refused = []
        during = wire.one_after_the_other(server.port, page, 10, 100, refused)
        end = server.stop(120)
        for process in searching:
            process.join(10)
            process.kill()
        calm, busy = wire.at(before, 0.99), wire.at(during, 0.99)
        goal = ", ".join([met(f"p99 {busy / calm:.1f} ×, ≤ 2", busy <= 2 * calm), met("end ≤ 5 s", end <= 5)]) if build == "now" else ""
        rows.append([build, f"{wire.p50(before):.2f} / {calm:.2f}", f"{wire.p50(during):.2f} / {busy:.2f}", str(len(refused)), f"{end:.2f}", goal])
    sizes = " and ".join(f"{size:,}" for size in sizes)
    return ["## Two owners search at once", "",
            f"Owners of {sizes} entries search their conversations (`auto`), one request after the other each. Another user reads a page of ten: p50 / p99",
            "in milliseconds before and meanwhile. Then the server is told to end (SIGTERM), while they search: seconds until it has.", "",
            *table(["build", "page before", "meanwhile", "refused", "end s", "goal"], rows, 1)]


# ---- LangGraph


def langgraph(options):
    # SqliteStore loads an extension, which not every Python's sqlite3 can.
    import pysqlite3
    sys.modules["sqlite3"] = pysqlite3
    from langgraph.store.base import PutOp
    from langgraph.store.postgres import PostgresStore
    from langgraph.store.sqlite import SqliteStore

    from memtrove.langgraph import MemtroveStore

    rows, texts, questions = [], [statement(number) for number in range(max(ITEMS))], [question(number) for number in range(QUESTIONS)]
    with contextlib.ExitStack() as stack:
        nodes = {build: stack.enter_context(node(options, build, "sqlite")) for build in options.builds}
        source = next(iter(nodes.values()))
        vector_of = {}
        for user, some in (("vectors", texts), ("questions", questions)):
            add(source, user, some)
            vector_of.update(zip(some, vectors_of(source, user, some).tolist()))
        # Vectors cost the peers nothing here. SqliteStore has a name of its own for the fields that are embedded.
        index = {"dims": DIMENSIONS, "embed": lambda texts: [vector_of[text] for text in texts], "fields": ["text"], "text_fields": ["text"]}
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="memtrove-langgraph-"))
        stores = {"SqliteStore": stack.enter_context(SqliteStore.from_conn_string(os.path.join(folder, "store.db"), index=index))}
        if options.postgres:
            url = stack.enter_context(database(options, "peers_langgraph"))
            stores["PostgresStore"] = stack.enter_context(PostgresStore.from_conn_string(url, index=index))
        for store in stores.values():
            store.setup()
        for build, server in nodes.items():
            name = "MemtroveStore" if build == "now" else "MemtroveStore, before"
            stores[name] = stack.enter_context(MemtroveStore(f"http://127.0.0.1:{server.port}", user_id="bench"))
        for size in ITEMS:
            put = {}
            for name, store in stores.items():
                say(f"{size:,} items in {name}")
                began = time.monotonic()
                for begin in range(0, size, 200):
                    store.batch([PutOp((f"items-{size}",), str(number), {"text": texts[number]}) for number in range(begin, min(begin + 200, size))])
                put[name] = size / (time.monotonic() - began)
            for what, queries in (("with a query", questions), ("without a query", [None])):
                contestants = {name: (store, size, queries) for name, store in stores.items()}
                took = median_of_turns(options, contestants, lambda store, size, queries: search_store(store, size, queries, options.seconds))
                for name, medians in took.items():
                    rate = ratio(took["SqliteStore"], medians)
                    goal = met("≥ 2 ×", rate >= 2) if name == "MemtroveStore" and size == 1_000 and queries[0] else ""
                    rows.append([f"{size:,}", what, name, f"{statistics.median(medians):.2f}", f"**{rate:.2f}**", f"{put[name]:,.0f}", goal])
    return ["## LangGraph's stores", "",
            "`search` of a namespace, the ten best, in one thread: milliseconds at p50, and the rate beside SqliteStore's. All stores but ours run in the",
            "caller's process or next to it and are given the vectors of texts for nothing. *Puts* are batches of 200.", "",
            *table(["items", "search", "store", "p50 ms", "× SqliteStore's rate", "puts a second", "goal"], rows, 3)]


def search_store(store, size, queries, seconds):
    took, end = [], time.perf_counter() + seconds
    store.search((f"items-{size}",), query=queries[0], limit=TOP)
    while time.perf_counter() < end or len(took) < 5:
        query = queries[len(took) % len(queries)]
        began = time.perf_counter()
        found = store.search((f"items-{size}",), query=query, limit=TOP)
        took.append((time.perf_counter() - began) * 1e3)
        assert len(found) == TOP, found
    return wire.p50(took)


def table(heads, rows, texts):
    """A table whose first columns are texts, and the last."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * texts + "--:|" * (len(heads) - texts - 1) + "---|"]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


if __name__ == "__main__":
    main()
