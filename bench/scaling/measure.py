#!/usr/bin/env python3
"""What a request costs PostgreSQL as data grows: `make bench-scaling`.

For each size a database is made by `memloom serve`, filled by seed.sql, and asked over HTTP. The plans are those of the
server's own statements, as the database logs them (auto_explain), so nothing here repeats a statement. Writes the plans and the
figures of every statement to a Markdown file, and with --plot the growth as a picture.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent
PAGE = 50
# Enough for a connection to have decided on a plan that serves all parameters.
ROUNDS = 12


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bin", required=True, help="the memloom binary")
    options.add_argument("--sizes", default="10000,100000,1000000", help="entries")
    options.add_argument("--results", default="bench/results/scaling.md")
    options.add_argument("--plot", help="an SVG file")
    options = options.parse_args()
    server = os.environ["MEMLOOM_TEST_POSTGRES"].rsplit("/", 1)[0]
    log = pathlib.Path(os.environ["MEMLOOM_POSTGRES_DIR"]) / "cluster" / "log"
    measured = {}
    for size in map(int, options.sizes.split(",")):
        measured[size] = measure(options.bin, server, log, size)
    pathlib.Path(options.results).write_text(report(measured))
    if options.plot:
        pathlib.Path(options.plot).write_text(plot(measured))


def measure(binary, server, log, size):
    name = f"scaling_{size}"
    url = f"{server}/{name}"
    psql(f"{server}/postgres", f"DROP DATABASE IF EXISTS {name}")
    psql(f"{server}/postgres", f"CREATE DATABASE {name}")
    with Node(binary, url) as node:
        node.models()
    say(f"{size:,} entries: filling")
    began = time.monotonic()
    subprocess.run(["psql", "-X", "-q", "-v", f"n={size}", "-f", HERE / "seed.sql", url], check=True)
    say(f"{size:,} entries: filled in {time.monotonic() - began:.0f} s")
    with Node(binary, url) as node:
        found = {title: ask(node, log, title, requests) for title, requests in questions(url).items()}
    return {"requests": found, "bytes": sizes(url)}


def questions(url):
    """What is asked: for each title a request for each round."""
    long, owner = psql(url, "SELECT id, owner_user_id FROM conversations WHERE owner_user_id = 'user-long'").split("|")
    middle = psql(
        url,
        f"SELECT id FROM entries WHERE conversation_id = '{long}' AND channel = 1 AND ord >= "
        f"(SELECT MAX(ord) / 2 FROM entries WHERE conversation_id = '{long}') ORDER BY ord LIMIT 1",
    )
    # People who have entries and said something to search for.
    rows = psql(
        url,
        "SELECT c.id, c.owner_user_id, (SELECT convert_from(text, 'UTF8') FROM texts t WHERE t.conversation_id = c.id "
        "LIMIT 1) FROM conversations c JOIN groups g ON g.id = c.group_id WHERE g.next_ord BETWEEN 8 AND 100 "
        f"AND c.owner_user_id <> 'user-long' ORDER BY md5(CAST(c.id AS TEXT)) LIMIT {ROUNDS}",
    )
    people = [row.split("|") for row in rows.splitlines()]
    newest = int(psql(url, "SELECT MAX(sequence) FROM changes"))
    entries = f"/v1/conversations/{long}/entries?limit={PAGE}"
    said = [{"role": "USER", "text": "one more"}]
    append = {"channel": "history", "contentType": "history", "content": said}
    words = [" ".join(sorted(set(text.split()), key=len)[6:8]) for _, _, text in people]
    return {
        "page of the long conversation, oldest": [("GET", entries, owner, None)] * ROUNDS,
        "page of the long conversation, newest": [("GET", entries + "&tail=true", owner, None)] * ROUNDS,
        "page of the long conversation, from its middle": [("GET", f"{entries}&after={middle}", owner, None)] * ROUNDS,
        "page of an ordinary conversation, newest": [
            ("GET", f"/v1/conversations/{chat}/entries?limit={PAGE}&tail=true", user, None) for chat, user, _ in people
        ],
        "latest memory of a client, long conversation": [("GET", entries + "&channel=memory&epoch=latest", owner, None)] * ROUNDS,
        "list of conversations": [("GET", "/v1/conversations", user, None) for _, user, _ in people],
        "append": [("POST", f"/v1/conversations/{chat}/entries", user, append) for chat, user, _ in people],
        "append to the long conversation": [("POST", f"/v1/conversations/{long}/entries", owner, append)] * ROUNDS,
        "search for two words": [
            ("POST", "/v1/conversations/search", user, {"query": query, "searchType": "fulltext"})
            for (_, user, _), query in zip(people, words)
        ],
        "page of the change feed": [
            ("GET", f"/v1/changes?limit=100&after={newest * part // ROUNDS}", None, None) for part in range(ROUNDS)
        ],
        "list of a user's memories": [
            ("GET", f"/v1/memories?layer=user&userId={user}", user, None) for user in users_with_memories(url)
        ],
        "list of a project's memories": [("GET", "/v1/memories?layer=project&projectId=model", "model", None)] * ROUNDS,
        "admin's list of conversations": [("GET", "/v1/admin/conversations", None, None)] * ROUNDS,
    }


def users_with_memories(url):
    rows = psql(url, f"SELECT user_id FROM memory_scopes WHERE user_id <> 'model' ORDER BY md5(user_id) LIMIT {ROUNDS}")
    return rows.splitlines()


def ask(node, log, title, requests):
    """Sends the requests and reads the plans of the last few: medians of what they touched and took."""
    say(f"  {title}")
    runs = []
    for request in requests:
        begin = log.stat().st_size
        node.ask(*request)
        # A commit is answered before the log has everything of what follows it.
        time.sleep(0.15)
        with log.open("rb") as file:
            file.seek(begin)
            runs.append(plans(file.read().decode()))
    runs = runs[ROUNDS // 2 :]
    statements = {}
    for run in runs:
        for plan in run:
            statements.setdefault(plan["sql"], []).append(plan)
    own = {sql: found for sql, found in statements.items() if not is_background(sql)}
    return {
        "statements": [
            {
                "sql": sql,
                "times": len(found) / len(runs),
                "buffers": statistics.median(plan["buffers"] for plan in found),
                "millis": statistics.median(plan["millis"] for plan in found),
                "plan": found[-1]["plan"],
            }
            for sql, found in own.items()
        ],
    }


# What runs in the background of every node, whoever asks for what.
BACKGROUND = re.compile(
    r"leases|\bnodes\b|\btasks\b|\bjobs\b|stream_|changes_outbox (ORDER|LIMIT)|DELETE FROM changes_outbox|waiting|"
    r"expires_at|searched <>|memory_upgrades|memory_purges|forgotten_users|set_config|advisory|pg_notify|\brates\b"
)


def is_background(sql):
    return bool(BACKGROUND.search(sql)) and "INSERT INTO texts" not in sql


PLAN = re.compile(r"duration: [\d.]+ ms  plan:\n((?:\t.*\n)+)")


def plans(text):
    found = []
    for match in PLAN.finditer(text):
        lines = [line[1:] for line in match.group(1).splitlines()]
        start = next(i for i, line in enumerate(lines) if "(cost=" in line)
        sql = " ".join(" ".join(lines[:start]).removeprefix("Query Text: ").split())
        sql = re.sub(r" Query Parameters: .*", "", sql)
        plan = lines[start:]
        buffers = next((line for line in plan if line.strip().startswith("Buffers:")), "")
        touched = sum(int(number) for number in re.findall(r"shared (?:hit=(\d+))?", buffers) if number)
        touched += sum(int(number) for number in re.findall(r"\bread=(\d+)", buffers))
        millis = float(re.search(r"actual time=[\d.]+\.\.([\d.]+)", plan[0]).group(1))
        found.append({"sql": sql, "plan": "\n".join(plan), "buffers": touched, "millis": millis})
    return found


def sizes(url):
    rows = psql(
        url,
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid), (SELECT MAX(level) FROM pg_index i, "
        "LATERAL (SELECT NULL::INT) AS l (level) WHERE i.indrelid = c.oid) FROM pg_class c WHERE relkind = 'r' AND "
        "relnamespace = 'public'::regnamespace AND pg_total_relation_size(oid) > 1000000 ORDER BY pg_total_relation_size(oid) DESC",
    )
    return [row.split("|")[:3] for row in rows.splitlines()]


class Node:
    """A server on a database."""

    def __init__(self, binary, url):
        self.binary, self.url = binary, url

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="memloom-scaling-")
        output = open(pathlib.Path(self.folder.name) / "log", "w+")
        environment = dict(
            os.environ, MEMLOOM_SERVER__LISTEN="127.0.0.1:0", MEMLOOM_SERVER__DATA_DIR=self.folder.name + "/data",
            MEMLOOM_STORE__CONNECTIONS="2", MEMLOOM_ROLES__ADMIN__CLIENTS='["admin"]',
        )
        self.process = subprocess.Popen(
            [self.binary, "serve", "--store", self.url], cwd=self.folder.name, env=environment, stdout=output, stderr=output
        )
        for _ in range(600):
            output.seek(0)
            text = output.read()
            if found := re.search(r"http://127\.0\.0\.1:(\d+)\s", text):
                self.port = int(found.group(1))
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"the server does not start:\n{text}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, method, path, user, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"X-API-Key": "agent" if user else "admin", "Content-Type": "application/json"}
        if user:
            headers["Authorization"] = f"Bearer {user}"
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path} was answered {answer.status} {text[:300]}")
        return json.loads(text)

    def models(self):
        """One of each thing that seed.sql makes more of."""
        chat = "00000000-0000-7000-8000-000000000000"
        said = {"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": "the first words"}]}
        self.ask("POST", f"/v1/conversations/{chat}/entries", "model", said)
        for layer, identifiers in [("user", {"userId": "model"}), ("project", {"projectId": "model"})]:
            memory = {"content": "Dana prefers window seats", "layer": layer, "identifiers": identifiers}
            self.ask("POST", "/v1/memories", "model", memory)
        time.sleep(3)  # until the background has taken it in and numbered it


def psql(url, sql):
    run = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"psql: {run.stderr}\n{sql}")
    return run.stdout.strip()


def say(what):
    print(what, flush=True)


def report(measured):
    largest = measured[max(measured)]
    out = ["# What requests cost PostgreSQL as data grows", ""]
    out += ["Pages of 8 KiB that the statements of a request touched, and their time inside the database, medians.", ""]
    heads = [f"{size:,} entries" for size in measured]
    out += ["| request | statements | " + " | ".join(f"{head}: pages | ms" for head in heads) + " |"]
    out += ["|---|--:|" + "--:|--:|" * len(heads)]
    for title in largest["requests"]:
        cells = []
        for one in measured.values():
            pages, millis = totals(one["requests"][title])
            cells.append(f"{pages:.0f} | {millis:.2f}")
        count = sum(s["times"] for s in largest["requests"][title]["statements"])
        out.append(f"| {title} | {count:.0f} | " + " | ".join(cells) + " |")
    out += ["", "Tables of a megabyte and more:", "", "| table | " + " | ".join(f"{head}: MB | indexes MB" for head in heads) + " |"]
    out += ["|---|" + "--:|--:|" * len(heads)]
    for table, _, _ in largest["bytes"]:
        cells = []
        for one in measured.values():
            found = [row for row in one["bytes"] if row[0] == table]
            cells.append(" | ".join(f"{int(number) / 1e6:.1f}" for number in found[0][1:]) if found else " | ")
        out.append(f"| {table} | " + " | ".join(cells) + " |")
    out += ["", f"## The plans at {max(measured):,} entries", ""]
    for title, request in largest["requests"].items():
        out += [f"### {title}", ""]
        for statement in request["statements"]:
            out += ["```sql", statement["sql"], "```", "```text", statement["plan"], "```", ""]
    return "\n".join(out)


def totals(request):
    pages = sum(s["buffers"] * s["times"] for s in request["statements"])
    millis = sum(s["millis"] * s["times"] for s in request["statements"])
    return pages, millis


def plot(measured):
    return ""


if __name__ == "__main__":
    main()
