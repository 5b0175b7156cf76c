#!/usr/bin/env python3
"""How well a conversation's turns are found again: LoCoMo through the HTTP API.

Each session of a dialogue becomes a conversation, each turn an entry whose indexedContent is "[date] Speaker: text". Then
every question is asked through /v1/conversations/search, and the turns it brings back are compared with those that hold
the answer. No language model is involved anywhere.

  bench/recall.py --data locomo10.json --scorer retrieval.py --bin memtrove [--model DIR] [--plot docs/recall.svg]

The data set (Maharana et al. 2024, CC BY-NC 4.0) is published by its authors as snap-research/LoCoMo; it is not part of
this repository. The scorer is the evidence-retrieval benchmark that holds the metrics and the reference rows.
"""
import argparse, concurrent.futures, importlib.util, json, os, re, subprocess, sys, tempfile, time, urllib.request

# What others reach on the same questions, as published with the scorer.
REFERENCE = [
    ("BM25, stemmed (what a search library gives)", "50.1", "57.6", "64.8", "64.1", "43.9"),
    ("MiniLM alone (a typical vector memory)", "22.2", "31.1", "40.3", "35.4", "19.4"),
    ("BM25 + MiniLM by rank fusion (a typical hybrid)", "37.3", "47.7", "60.0", "54.0", "31.5"),
    ("reference recipe, lexical", "64.1", "72.2", "78.4", "78.8", "57.6"),
    ("reference recipe, static", "67.7", "76.9", "84.3", "83.7", "60.2"),
    ("reference recipe, MiniLM", "70.8", "79.1", "85.6", "85.6", "62.2"),
]
GOALS = {"static": {"R@10": 77, "R@20": 85}, "local": {"R@10": 80, "hit@10": 87, "nDCG@10": 63}}
SHOWN = ("R@5", "R@10", "R@20", "R@50", "hit@10", "MRR", "nDCG@10")


class Server:
    """A server on an empty folder, until the end of the block."""

    def __init__(self, binary, settings):
        self.folder = tempfile.TemporaryDirectory(prefix="memtrove-recall-")
        env = {**os.environ, "MEMTROVE_SERVER__LISTEN": "127.0.0.1:0",
               "MEMTROVE_SERVER__DATA_DIR": os.path.join(self.folder.name, "data"), **settings}
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen([binary, "serve"], env=env, stdout=self.log, stderr=self.log,
                                        cwd=self.folder.name)
        deadline = time.time() + 30
        while True:
            text = open(self.log.name).read()
            if found := re.search(r"http://127\.0\.0\.1:\d+", text):
                self.url = found.group()
                return
            if self.process.poll() is not None or time.time() > deadline:
                sys.exit(f"the server did not start:\n{text}")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def call(self, user, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {
            "Authorization": f"Bearer {user}", "X-API-Key": "reader", "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def metric(self, name):
        with urllib.request.urlopen(self.url + "/metrics") as answer:
            found = re.search(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)$", answer.read().decode(), re.M)
        return float(found.group(1)) if found else None


def ingest(server, dialogue, scorer):
    """Writes a dialogue; answers which turn each entry is."""
    import uuid
    turn_of = {}
    for session in sorted({turn.session for turn in dialogue.turns}):
        conversation = str(uuid.uuid4())
        for turn in (turn for turn in dialogue.turns if turn.session == session):
            text = scorer.body(turn)
            entry = server.call(dialogue.id, f"/v1/conversations/{conversation}/entries", {
                "contentType": "history", "content": [{"role": "USER", "text": text or "…"}],
                "indexedContent": f"[{turn.date}] {turn.speaker}: {text}"})
            turn_of[entry["id"]] = turn.id
    return turn_of


def ask(server, dialogue, turn_of, latencies):
    rankings = {}
    for question in dialogue.questions:
        started = time.perf_counter()
        answer = server.call(dialogue.id, "/v1/conversations/search", {
            "query": question.text[:1000], "searchType": "auto", "limit": 50, "includeEntry": False,
            "groupByConversation": False})
        latencies.append((time.perf_counter() - started) * 1e3)
        rankings[question.qid] = [turn_of[hit["entryId"]] for hit in answer["data"] if hit["entryId"] in turn_of]
    return rankings


def measure(name, options, scorer, dialogues):
    settings = {"lexical": {"MEMTROVE_EMBEDDING__PROVIDER": "none"}, "static": {},
                "local": {"MEMTROVE_EMBEDDING__PROVIDER": "local",
                          "MEMTROVE_EMBEDDING__LOCAL__DIRECTORY": os.path.abspath(options.model or "")}}[name]
    with Server(os.path.abspath(options.bin), settings) as server:
        started = time.time()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            turns = list(pool.map(lambda dialogue: ingest(server, dialogue, scorer), dialogues))
        print(f"{name}: {sum(map(len, turns)):,} turns written in {time.time() - started:.0f} s", flush=True)
        while (waiting := server.metric("memory_embedding_waiting")) or 0 > 0:
            print(f"{name}: {waiting:.0f} vectors to be made", flush=True)
            time.sleep(2)
        latencies, rankings = [], {}
        for dialogue, turn_of in zip(dialogues, turns):
            rankings.update(ask(server, dialogue, turn_of, latencies))
    latencies.sort()
    halves = {"all": dialogues, "odd": dialogues[1::2], "even": dialogues[0::2]}
    scores = {half: scorer.evaluate(part, rankings) for half, part in halves.items()}
    return scores, latencies[len(latencies) // 2], latencies[int(len(latencies) * 0.99)]


def plot(path, rows):
    """Recall against latency, one point per system, as a picture without a library."""
    width, height, left, bottom = 640, 360, 60, 50
    longest = max(p50 for _, _, p50 in rows) * 1.25
    x = lambda ms: left + (width - left - 160) * ms / longest
    y = lambda recall: height - bottom - (height - bottom - 30) * (recall - 40) / 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           f'font-size="13"><rect width="{width}" height="{height}" fill="white"/>']
    for recall in range(40, 91, 10):
        out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(recall):.0f}" y2="{y(recall):.0f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{y(recall) + 4:.0f}" text-anchor="end">{recall}</text>')
    for label, recall in (("typical hybrid (rank fusion)", 47.7), ("a search library (BM25)", 57.6)):
        out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(recall):.0f}" y2="{y(recall):.0f}" stroke="#a33" '
                   f'stroke-dasharray="4 4"/><text x="{width - 24}" y="{y(recall) - 5:.0f}" text-anchor="end" '
                   f'fill="#a33">{label}: {recall}</text>')
    for name, recall, p50 in rows:
        out.append(f'<circle cx="{x(p50):.0f}" cy="{y(recall):.0f}" r="5" fill="#26c"/>'
                   f'<text x="{x(p50) + 10:.0f}" y="{y(recall) + 4:.0f}">{name}: {recall:.1f} in {p50:.1f} ms</text>')
    out.append(f'<line x1="{left}" x2="{width - 20}" y1="{height - bottom}" y2="{height - bottom}" stroke="black"/>'
               f'<text x="{(width + left) / 2:.0f}" y="{height - 15}" text-anchor="middle">median latency of a search over '
               f'HTTP, ms</text><text x="15" y="20">recall@10, %</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", required=True, help="locomo10.json")
    parser.add_argument("--scorer", required=True, help="retrieval.py, which holds the metrics")
    parser.add_argument("--bin", required=True, help="the memtrove binary")
    parser.add_argument("--model", help="a directory with all-MiniLM-L6-v2, to measure `local` too")
    parser.add_argument("--only", action="append", choices=["lexical", "static", "local"])
    parser.add_argument("--plot", help="writes a picture here")
    parser.add_argument("--results", default="bench/results/recall.md")
    options = parser.parse_args()
    spec = importlib.util.spec_from_file_location("scorer", options.scorer)
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    dialogues, _ = scorer.load(options.data)
    names = options.only or ["lexical", "static"] + (["local"] if options.model else [])
    lines = ["# Finding evidence in dialogue", "",
             "`make bench-recall`: LoCoMo's questions through `/v1/conversations/search`; adversarial questions apart. Weights were",
             "chosen on the dialogues with odd index (from 0).", "",
             "| system | " + " | ".join(SHOWN) + " | adv. R@10 | p50 ms | p99 ms |",
             "|---" + "|--:" * (len(SHOWN) + 3) + "|"]
    for name, r5, r10, r20, hit, ndcg in REFERENCE:
        lines.append(f"| {name} | {r5} | {r10} | {r20} | – | {hit} | – | {ndcg} | – | – | – |")
    points, missed = [], []
    for name in names:
        scores, p50, p99 = measure(name, options, scorer, dialogues)
        for half, score in scores.items():
            row, adversarial = score["all"], score.get("adversarial", {}).get("R@10", float("nan"))
            shown = " | ".join(f"{100 * row[metric]:.1f}" for metric in SHOWN)
            latency = f"{p50:.1f} | {p99:.1f}" if half == "all" else "– | –"
            lines.append(f"| **Memtrove, {name}**, {half} | {shown} | {100 * adversarial:.1f} | {latency} |")
        overall = scores["all"]["all"]
        points.append((f"Memtrove, {name}", 100 * overall["R@10"], p50))
        for metric, goal in GOALS.get(name, {}).items():
            if 100 * overall[metric] < goal:
                missed.append(f"{name}: {metric} is {100 * overall[metric]:.1f}, the goal is {goal}")
    table = "\n".join(lines) + "\n"
    print("\n" + table)
    os.makedirs(os.path.dirname(options.results) or ".", exist_ok=True)
    with open(options.results, "w") as file:
        file.write(table)
    if options.plot:
        plot(options.plot, points)
    for goal in missed:
        print(f"missed: {goal}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
