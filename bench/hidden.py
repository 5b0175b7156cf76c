#!/usr/bin/env python3
"""What others can tell by time of memories that they may not see: `make bench-hidden`.

One server on loopback, two tenants with the same hundred memories of one project. In one of them somebody else hides memories in that
project. The same request goes to both tenants in turns, so that whatever else the machine does meets both; reported is the ratio of
the medians with its confidence interval (95 %, bootstrap over pairs of requests). A ratio whose interval has 1 in it tells nothing.
"""
import argparse, datetime, http.client, json, os, pathlib, platform, random, re, statistics, subprocess, time

from server import Caller, Server

TENANTS = ("beside", "alone")
COUNTS = (1, 100, 10_000)
# The stream keeps a thousand events; beyond that it says `reset`, which the guide names.
STREAMED = (1, 100, 900)
SEEN = 100
RESAMPLES = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, help="the memtrove binary")
    parser.add_argument("--rounds", type=int, default=2000, help="how often each request is made in each tenant")
    parser.add_argument("--write", action="store_true", help="write the table to bench/results/hidden.md")
    options = parser.parse_args()
    rows = []
    for policy in ("private", "restricted"):
        for count in sorted({*COUNTS, *STREAMED}):
            print(f"… {count:,} {policy}", flush=True)
            with Server(options.bin) as server:
                for operation, took in measure(server, policy, count, options.rounds):
                    rows.append((policy, count, operation, took))
    text = report(rows, options)
    print(text)
    if options.write:
        pathlib.Path(__file__).parent.joinpath("results", "hidden.md").write_text(text)


def measure(server, policy, count, rounds):
    """The operations, each with milliseconds by tenant."""
    me = {tenant: caller(server, "victim", tenant) for tenant in TENANTS}
    ids, markers = {}, {}
    for tenant in TENANTS:
        add(me[tenant], [memory(f"Dana prefers seat {n}") for n in range(SEEN)])
        ids[tenant] = add(me[tenant], [memory("Dana prefers the aisle")])[0]
        with Stream(server, tenant) as stream:
            add(me[tenant], [memory("the first mark")])
            markers[tenant] = stream.id_of("the first mark")
    access = {"policy": policy, **({"approvedUsers": ["nobody"]} if policy == "restricted" else {})}
    other = caller(server, "mallory", "beside")
    for begin in range(0, count, 100):
        hidden = [f"Dana hides seat {n}" for n in range(begin, min(begin + 100, count))]
        add(other, [{**memory(content), "accessPolicy": access} for content in hidden])
    for tenant in TENANTS:
        add(me[tenant], [memory("the second mark")])

    query = {"query": "which seat?", "threshold": 0, "layers": ["project"], "identifiers": {"projectId": "p"}}
    listed = {"layer": "project", "identifiers": {"projectId": "p"}, "limit": 50}

    def resumed(tenant):
        with Stream(server, tenant, markers[tenant]) as stream:
            stream.id_of("the second mark")

    operations = {}
    # First, because the stream keeps its events for five minutes.
    if count in STREAMED:
        operations["stream, resumed"] = resumed
    if count in COUNTS:
        operations["search"] = lambda tenant: ask(me[tenant], "POST", "/v1/memories:search", query)
        operations["list"] = lambda tenant: ask(me[tenant], "POST", "/v1/memories:list", listed)
        operations["get"] = lambda tenant: ask(me[tenant], "GET", f"/v1/memories/{ids[tenant]}")
    for name, operation in operations.items():
        took = {tenant: [] for tenant in TENANTS}
        for number in range(rounds + 20):
            # Each is first as often as the other.
            for tenant in TENANTS if number % 2 else reversed(TENANTS):
                began = time.perf_counter()
                operation(tenant)
                took[tenant].append((time.perf_counter() - began) * 1000)
        yield name, {tenant: millis[20:] for tenant, millis in took.items()}


def caller(server, user, tenant):
    made = Caller(server, user)
    made.headers |= headers(user, tenant)
    return made


def headers(user, tenant):
    return {"Authorization": f"Bearer {user}", "X-API-Key": "measuring", "X-Tenant-Id": tenant}


def memory(content):
    return {"content": content, "layer": "project", "identifiers": {"projectId": "p"}}


def ask(who, method, path, body=None):
    if not 200 <= who.ask(method, path, body) < 300:
        raise SystemExit(f"{method} {path}: {who.text}")
    return json.loads(who.text)


def add(who, memories):
    answer = ask(who, "POST", "/v1/memories:bulkAdd", {"memories": memories})
    return re.findall(r'"id":\s*"([0-9a-f-]{36})"', json.dumps(answer))


class Stream:
    """The changes of the project."""

    def __init__(self, server, tenant, after=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        more = {"Last-Event-ID": after} if after else {}
        self.connection.request("GET", "/openspec/v1/knowledge/stream?project_id=p", headers=headers("victim", tenant) | more)
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise SystemExit(f"no stream: {self.answer.status} {self.answer.read()}")

    def id_of(self, content):
        """Reads up to the event that says this."""
        last = None
        while line := self.answer.readline().decode():
            if line.startswith("id:"):
                last = line.removeprefix("id:").strip()
            if line.startswith("event: reset"):
                raise SystemExit("the stream cannot be resumed: it took too long")
            if content in line:
                return last
        raise SystemExit("the stream ended")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def interval(beside, alone):
    """The ratio of the medians, and between which it is."""
    dice, pairs = random.Random(1), list(zip(beside, alone))
    ratios = []
    for _ in range(RESAMPLES):
        drawn = dice.choices(pairs, k=len(pairs))
        ratios.append(statistics.median(a for a, _ in drawn) / statistics.median(b for _, b in drawn))
    ratios.sort()
    ratio = statistics.median(beside) / statistics.median(alone)
    return ratio, ratios[int(RESAMPLES * 0.025)], ratios[int(RESAMPLES * 0.975)]


def report(rows, options):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True).stdout.strip()
    build = pathlib.Path(options.bin).resolve().parent.name
    lines = [
        "# What hidden memories tell by time", "",
        f"{now} · commit {commit} · {build} build · {os.cpu_count()} cores · Linux {platform.release().split('-')[0]} · load average {os.getloadavg()[0]:.1f}", "",
        f"A project of {SEEN + 3} memories that the caller sees, in a tenant where somebody else hides memories in that project and in one",
        f"where nobody does: the same request to both in turns, {options.rounds:,} times. Microseconds at p50, and the ratio of the medians with its",
        "95 % confidence interval. An interval with 1 in it tells nothing.", "",
        "| hidden | request | beside none | beside them | ratio | 95 % |", "|---|---|--:|--:|--:|---|",
    ]
    for policy, count, operation, took in rows:
        beside, alone = took["beside"], took["alone"]
        ratio, low, high = interval(beside, alone)
        medians = [f"{statistics.median(millis) * 1000:,.0f}" for millis in (alone, beside)]
        lines.append(f"| {count:,} {policy} | {operation} | {medians[0]} | {medians[1]} | {ratio:.3f} | {low:.3f} – {high:.3f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
