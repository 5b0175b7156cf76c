#!/usr/bin/env python3
"""What a request costs PostgreSQL as data grows: `make bench-scaling`.

For each size a database is made by `memtrove serve`, filled by seed.sql, and asked over HTTP. The plans are those of the
server's own statements, as the database logs them (auto_explain), so that nothing here repeats a statement. Writes the figures
and the plans to a Markdown file, and with --plot the growth as a picture.
"""
import argparse, http.client, json, math, os, pathlib, re, statistics, subprocess, tempfile, time

HERE = pathlib.Path(__file__).parent
PAGE = 50
# Enough for a connection to have settled on a plan that serves all parameters; the second half counts.
ROUNDS = 14
# A transaction's frame, and what a request sets off that is done after its answer.
APART = re.compile(r"set_config|pg_advisory|pg_notify|meanings|FROM texts_waiting|FROM texts t LEFT JOIN|SET changes = changes|"
                   r"WITH moved|FROM changes_outbox")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, help="the memtrove binary")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="entries")
    parser.add_argument("--results", default="bench/results/scaling.md")
    parser.add_argument("--plot", help="writes a picture here")
    options = parser.parse_args()
    server = os.environ["MEMTROVE_TEST_POSTGRES"].rsplit("/", 1)[0]
    log = pathlib.Path(os.environ["MEMTROVE_POSTGRES_DIR"], "cluster", "log")
    sizes = [int(size) for size in options.sizes.split(",")]
    measured = {size: measure(options.bin, server, log, size) for size in sizes}
    pathlib.Path(options.results).write_text(report(measured))
    if options.plot:
        pathlib.Path(options.plot).write_text(picture(measured))


def measure(binary, server, log, size):
    name = f"scaling_{size}"
    url = f"{server}/{name}"
    psql(f"{server}/postgres", f"CREATE DATABASE {name}")
    with Node(binary, url) as node:
        write_models(node)
    say(f"{size:,} entries: filling")
    began = time.monotonic()
    subprocess.run(["psql", "-X", "-q", "-v", f"n={size}", "-f", HERE / "seed.sql", url], check=True)
    say(f"{size:,} entries: filled in {time.monotonic() - began:.0f} s")
    with Node(binary, url) as node:
        begin = log.stat().st_size
        time.sleep(5)
        idle = {plan["sql"] for plan in plans_since(log, begin)}
        requests = {title: ask(node, log, idle, title, requests) for title, requests in questions(url).items()}
    return {"requests": requests, "tables": tables(url)}


def write_models(node):
    """One of each thing that seed.sql makes more of."""
    chat = "00000000-0000-7000-8000-000000000000"
    node.ask("POST", f"/v1/conversations/{chat}/entries", "model", said("the first words"))
    for layer, identifiers in [("user", {"userId": "model"}), ("project", {"projectId": "model"})]:
        memory = {"content": "Dana prefers window seats", "layer": layer, "identifiers": identifiers}
        node.ask("POST", "/v1/memories", "model", memory)
    time.sleep(3)  # Until the background has numbered it and taken it in.


def said(text):
    return {"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]}


def questions(url):
    """What is asked: for each title one request for each round."""
    long, owner = psql(url, "SELECT id, owner_user_id FROM conversations WHERE owner_user_id = 'user-long'").split("|")
    middle = psql(url, f"SELECT id FROM entries WHERE conversation_id = '{long}' AND channel = 1 AND ord >= "
                       f"(SELECT MAX(ord) / 2 FROM entries WHERE conversation_id = '{long}') ORDER BY ord LIMIT 1")
    # People with a conversation of some length, and two of its words.
    rows = psql(url, "SELECT c.id, c.owner_user_id, (SELECT convert_from(t.text, 'UTF8') FROM texts t WHERE "
                     "t.id IN (SELECT e.id FROM entries e WHERE e.group_id = c.group_id AND e.channel = 1) LIMIT 1) "
                     "FROM conversations c JOIN groups g ON g.id = c.group_id WHERE g.next_ord BETWEEN 20 AND 100 "
                     f"AND c.owner_user_id <> 'user-long' ORDER BY md5(CAST(c.id AS TEXT)) LIMIT {ROUNDS}")
    people = [row.split("|") for row in rows.splitlines()]
    queries = [" ".join(sorted(set(text.split()))[6:8]) for _, _, text in people]
    newest = int(psql(url, "SELECT MAX(sequence) FROM changes"))
    entries = f"/v1/conversations/{long}/entries?limit={PAGE}"
    always = lambda *request: [request] * ROUNDS
    return {
        "page of the long conversation, oldest": always("GET", entries, owner),
        "page of the long conversation, newest": always("GET", entries + "&tail=true", owner),
        "page of the long conversation, middle": always("GET", f"{entries}&after={middle}", owner),
        "page of an ordinary conversation": [
            ("GET", f"/v1/conversations/{chat}/entries?limit={PAGE}&tail=true", user) for chat, user, _ in people],
        "latest memory of a client": always("GET", entries + "&channel=memory&epoch=latest", owner),
        "list of conversations": [("GET", "/v1/conversations", user) for _, user, _ in people],
        "append": [("POST", f"/v1/conversations/{chat}/entries", user, said("one more")) for chat, user, _ in people],
        "append to the long conversation": always("POST", f"/v1/conversations/{long}/entries", owner, said("one more")),
        "search for two words": [
            ("POST", "/v1/conversations/search", user, {"query": query, "searchType": "fulltext"})
            for (_, user, _), query in zip(people, queries)],
        "page of the change feed": [
            ("GET", f"/v1/changes?limit=100&after={newest * part // ROUNDS}", None) for part in range(ROUNDS)],
        "list of a user's memories": always("GET", "/v1/memories?layer=user&userId=model", "model"),
        "list of a project's memories": always("GET", "/v1/memories?layer=project&projectId=model", "model"),
        "admin's list of conversations": always("GET", "/v1/admin/conversations", None),
    }


def ask(node, log, idle, title, requests):
    """Sends the requests; medians over the second half of what their statements touched and took."""
    say(f"  {title}")
    found = {}
    for number, request in enumerate(requests):
        begin = log.stat().st_size
        node.ask(*request)
        time.sleep(0.1)  # What is written to the log last may come after the answer.
        if number >= len(requests) // 2:
            for plan in plans_since(log, begin):
                if plan["sql"] not in idle and not APART.search(plan["sql"]):
                    found.setdefault(plan["sql"], []).append(plan)
    counted = len(requests) - len(requests) // 2
    return [
        {
            "sql": sql,
            "times": len(plans) / counted,
            "pages": statistics.median(plan["pages"] for plan in plans),
            "millis": statistics.median(plan["millis"] for plan in plans),
            "plan": plans[-1]["plan"],
        }
        for sql, plans in found.items()
        # What came with fewer than half of the requests is the background's.
        if 2 * len(plans) > counted
    ]


def plans_since(log, begin):
    with log.open("rb") as file:
        file.seek(begin)
        text = file.read().decode()
    found = []
    for match in re.finditer(r"duration: [\d.]+ ms  plan:\n((?:\t.*\n)+)", text):
        lines = [line[1:] for line in match.group(1).splitlines()]
        first = next(number for number, line in enumerate(lines) if "(cost=" in line)
        sql = " ".join(" ".join(lines[:first]).removeprefix("Query Text: ").split())
        plan = lines[first:]
        pages, millis = cost(plan)
        found.append({"sql": re.sub(r" Query Parameters: .*", "", sql), "plan": "\n".join(plan), "pages": pages, "millis": millis})
    return found


def cost(plan):
    """Pages and milliseconds of a plan. Its first node has everything but the writing parts of WITH, which count for themselves."""
    begins = [0] + [number + 1 for number, line in enumerate(plan) if line.strip().startswith("CTE ")]
    pages, millis = 0, 0.0
    for begin in begins:
        if took := re.search(r"actual time=[\d.]+\.\.([\d.]+)", plan[begin]):
            millis += float(took.group(1))
        buffers = next((line for line in plan[begin + 1 :] if line.strip().startswith(("Buffers:", "->"))), "")
        pages += sum(int(number) for number in re.findall(r"\b(?:hit|read)=(\d+)", buffers))
    return pages, millis


def tables(url):
    rows = psql(url, "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class WHERE relkind = 'r' "
                     "AND relnamespace = CAST('public' AS regnamespace) AND pg_total_relation_size(oid) > 1000000 "
                     "ORDER BY pg_total_relation_size(oid) DESC")
    return {name: (int(table), int(indexes)) for name, table, indexes in (row.split("|") for row in rows.splitlines())}


class Node:
    """A server on a database, until the end of the block. One connection reads and one writes."""

    def __init__(self, binary, url):
        self.folder = tempfile.TemporaryDirectory(prefix="memtrove-scaling-")
        env = {**os.environ, "MEMTROVE_SERVER__LISTEN": "127.0.0.1:0", "MEMTROVE_STORE__CONNECTIONS": "2",
               "MEMTROVE_SERVER__DATA_DIR": os.path.join(self.folder.name, "data"), "MEMTROVE_ROLES__ADMIN__CLIENTS": '["admin"]'}
        output = open(os.path.join(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen([binary, "serve", "--store", url], cwd=self.folder.name, env=env, stdout=output,
                                        stderr=output)
        deadline = time.time() + 30
        while True:
            text = open(output.name).read()
            if found := re.search(r"http://127\.0\.0\.1:(\d+)\s", text):
                self.port = int(found.group(1))
                return
            if self.process.poll() is not None or time.time() > deadline:
                raise SystemExit(f"the server did not start:\n{text}")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, method, path, user, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"X-API-Key": "agent" if user else "admin", "Content-Type": "application/json"}
        if user:
            headers["Authorization"] = f"Bearer {user}"
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path} was answered {answer.status} {text[:300]}")


def psql(url, sql):
    run = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"psql: {run.stderr}\n{sql}")
    return run.stdout.strip()


def say(what):
    print(what, flush=True)


def total(statements, what):
    return sum(statement[what] * statement["times"] for statement in statements)


def report(measured):
    largest = measured[max(measured)]
    heads = [f"{size:,}" for size in measured]
    out = ["# What requests cost PostgreSQL as data grows", "",
           "`make bench-scaling`: pages of 8 KiB that the statements of a request touch, wherever they lie, and milliseconds inside",
           "the database with everything in memory; medians. A transaction's frame and what is done after the answer are not in it.", "",
           "| request | statements | " + " | ".join(f"pages at {head}" for head in heads) + " | "
           + " | ".join(f"ms at {head}" for head in heads) + " |",
           "|---|--:|" + "--:|" * (2 * len(heads))]
    for title, statements in largest["requests"].items():
        all_sizes = [one["requests"][title] for one in measured.values()]
        pages = " | ".join(f"{total(one, 'pages'):,.0f}" for one in all_sizes)
        millis = " | ".join(f"{total(one, 'millis'):.2f}" for one in all_sizes)
        out.append(f"| {title} | {sum(s['times'] for s in statements):.0f} | {pages} | {millis} |")
    out += ["", "Megabytes of tables and of their indexes:", "", "| table | " + " | ".join(f"at {head}" for head in heads) + " |",
            "|---|" + "--:|" * len(heads)]
    for table in largest["tables"]:
        sizes = [one["tables"].get(table) for one in measured.values()]
        cells = [f"{size[0] / 1e6:.0f} + {size[1] / 1e6:.0f}" if size else "< 1" for size in sizes]
        out.append(f"| `{table}` | " + " | ".join(cells) + " |")
    out += ["", f"## The plans at {max(measured):,} entries", ""]
    for title, statements in largest["requests"].items():
        out += [f"### {title[0].upper()}{title[1:]}", ""]
        for statement in statements:
            out += ["```sql", statement["sql"], "```", "```text", statement["plan"], "```", ""]
    return "\n".join(out).rstrip() + "\n"


def picture(measured):
    width, height, left, right, bottom = 760, 420, 60, 290, 45
    sizes = list(measured)
    low, high = math.log10(min(sizes)), math.log10(max(sizes))
    x = lambda size: left + (math.log10(size) - low) / max(high - low, 1e-9) * (width - left - right)
    y = lambda pages: height - bottom - math.log10(max(pages, 1)) / 6 * (height - bottom - 20)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -14 {width + 16} {height + 14}" font-family="sans-serif" '
           f'font-size="12"><rect x="-16" y="-14" width="{width + 16}" height="{height + 14}" fill="white"/>']
    for power in range(7):
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(10 ** power):.0f}" y2="{y(10 ** power):.0f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{y(10 ** power) + 4:.0f}" text-anchor="end">{10 ** power:,}</text>')
    for size in sizes:
        out.append(f'<text x="{x(size):.0f}" y="{height - bottom + 18}" text-anchor="middle">{size:,}</text>')
    lines = [(title, [total(one["requests"][title], "pages") for one in measured.values()]) for title in measured[sizes[-1]]["requests"]]
    labels = height
    for title, pages in sorted(lines, key=lambda line: line[1][-1]):
        grows = pages[-1] > 2 * pages[0]
        colour = "#a33" if grows else "#26c"
        points = " ".join(f"{x(size):.0f},{y(page):.0f}" for size, page in zip(sizes, pages))
        labels = min(labels - 15, y(pages[-1]) + 4)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
                   f'<text x="{width - right + 8}" y="{labels:.0f}" fill="{colour}">{title}: {pages[-1]:,.0f}</text>')
    out.append(f'<text x="{(width - right + left) / 2:.0f}" y="{height - 8}" text-anchor="middle">entries</text>'
               '<text x="-8" y="2">pages touched by a request</text></svg>')
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
