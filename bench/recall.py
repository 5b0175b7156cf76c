#!/usr/bin/env python3
"""How well what was written is found again, through the HTTP API, beside what others find: `make bench-recall`.

LoCoMo asks questions about dialogues and names the turns that hold the answer; MADial-Bench has dialogues and names the memories that
belong to them. The route *memories* has one memory for each of these, of one user for each dialogue (or bank), and asks
/v1/memories:search; the route *conversations* has LoCoMo's sessions as conversations and asks /v1/conversations/search. BM25, MiniLM
and their rank fusion come from the scorer's own parts over the same texts in the same run. No language model is involved anywhere.

  bench/recall.py --bin memtrove --scorer retrieval.py --data locomo10.json --madial DIR --model DIR [--against OLD]

LoCoMo (Maharana et al. 2024, CC BY-NC 4.0) is published by its authors as snap-research/LoCoMo, MADial-Bench (MIT) as
hejunqing/MADial-Bench; neither is part of this repository. The scorer is the evidence-retrieval benchmark that holds the metrics.
"""
import argparse, concurrent.futures, datetime, importlib.util, json, os, pathlib, platform, re, subprocess, sys, time, uuid

import packages

packages.need("recall", "numpy==2.4.6", "tokenizers==0.23.3", "PyStemmer==3.1.0")
import numpy as np

from server import Caller, Server

METRICS = ("R@5", "R@10", "MRR")
MORE = ("R@20", "R@50", "hit@10", "nDCG@10")
MODELS = ("words", "static", "local")
ROUTES = ("memories", "conversations")
WRITERS = 4
DEPTH = 50
ROUNDS = 1000
# Per cent, by set, route and model. The metric of the first goal of a set decides what hurts it.
GOALS = {
    ("LoCoMo", "memories", "static"): ("R@10", 66.0),
    ("LoCoMo", "conversations", "static"): ("R@10", 80.5),
    ("MADial, English", "memories", "static"): ("R@10", 67.0),
    ("MADial, English", "memories", "local"): ("R@10", 73.0),
    ("MADial, Chinese", "memories", "static"): ("R@5", 42.0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, help="the memtrove binary")
    parser.add_argument("--scorer", required=True, help="retrieval.py, which holds the metrics")
    parser.add_argument("--data", help="locomo10.json")
    parser.add_argument("--madial", help="the directory with MADial-Bench-en-dialogue.json and its like")
    parser.add_argument("--model", help="a directory with all-MiniLM-L6-v2, to measure `local` and MiniLM too")
    parser.add_argument("--against", metavar="OLD", help="another memtrove binary: says what is better or worse than there")
    parser.add_argument("--only", action="append", choices=MODELS, help="may be repeated")
    parser.add_argument("--route", action="append", choices=ROUTES, help="may be repeated")
    parser.add_argument("--plot", help="writes a picture of the route conversations on LoCoMo here")
    parser.add_argument("--results", default="bench/results/recall.md")
    options = parser.parse_args()
    options.load = os.getloadavg()[0]
    scorer = load_scorer(options.scorer)
    models = options.only or [model for model in MODELS if model != "local" or options.model]
    encode = None
    if options.model:
        import minilm
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "memtrove", "recall-vectors")
        encode = scorer.cached(minilm.encoder(options.model), "minilm", str(cache))
    sets = []
    if options.data:
        sets.append(DataSet("LoCoMo", scorer, scorer.load(options.data)[0], scorer.Analyzer(), options.route or ROUTES))
    if options.madial:
        for language, name in (("en", "MADial, English"), ("zh", "MADial, Chinese")):
            analyzer = scorer.Analyzer() if language == "en" else bigrams
            sets.append(DataSet(name, scorer, [load_madial(scorer, options.madial, language)], analyzer, ("memories",)))
    if not sets:
        parser.error("say --data, --madial or both")
    rows = []
    for data in sets:
        say(f"{data.name}: what others find")
        rows += [Row(data, None, system, rankings) for system, rankings in data.peers(encode)]
        for model in models:
            found = ask_all(options.bin, data, model, options)
            before = ask_all(options.against, data, model, options) if options.against else {}
            rows += [Row(data, route, model, *asked, before.get(route)) for route, asked in found.items()]
    text = report(options, sets, rows)
    print("\n" + text)
    pathlib.Path(options.results).write_text(text)
    if options.plot and (points := [row for row in rows if row.data.name == "LoCoMo" and row.route == "conversations"]):
        plot(options.plot, [row for row in rows if row.data.name == "LoCoMo"], points)
    bad = [f"missed: {row.what()}: {row.goal_text()}" for row in rows if row.goal() and not row.meets_goal()]
    bad += [f"hurts: {row.what()}" for row in rows if row.hurts()]
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


def say(text):
    print(f"… {text}", flush=True)


# ---- what is asked


class DataSet:
    """Questions about dialogues or banks of memories, each of which is one user's."""

    def __init__(self, name, scorer, dialogues, analyzer, routes):
        self.name, self.scorer, self.dialogues, self.analyzer, self.routes = name, scorer, dialogues, analyzer, routes
        self.questions = [question for dialogue in dialogues for question in dialogue.questions
                          if question.category != scorer.ADVERSARIAL]

    def content(self, turn):
        """What is written of a turn. Items of a bank have no speaker."""
        text = self.scorer.body(turn)
        return f"[{turn.date}] {turn.speaker}: {text}" if turn.speaker else text

    def evaluate(self, rankings, dialogues=None):
        return self.scorer.evaluate(dialogues or self.dialogues, rankings)

    def by_question(self, rankings):
        """One row of METRICS for each question, in order."""
        scored = []
        for dialogue in self.dialogues:
            session_of = {turn.id: turn.session for turn in dialogue.turns}
            for question in dialogue.questions:
                if question.category != self.scorer.ADVERSARIAL:
                    score = self.scorer.score_question(question.evidence, rankings.get(question.qid, []), session_of)
                    scored.append([score[metric] for metric in METRICS])
        return np.array(scored)

    def peers(self, encode):
        """What others find, with the scorer's parts: rankings by question, and by the name of the system."""
        scorer, found = self.scorer, {}
        for dialogue in self.dialogues:
            whole = scorer.BM25(scorer.render(dialogue, "plain", cut=False)[0], self.analyzer)
            texts, owner = scorer.render(dialogue, "plain")
            pieces = scorer.BM25(texts, self.analyzer, k1=0.9, b=0.4)
            dated, dated_owner = scorer.render(dialogue, "dated")
            written = scorer.BM25(dated, self.analyzer, k1=0.9, b=0.4)
            if encode:
                vectors, asked = encode(texts), encode([question.text for question in dialogue.questions])
            for number, question in enumerate(dialogue.questions):
                lists = {"BM25": whole.scores(question.text)}
                if dialogue.turns[0].speaker:
                    # The others have the bare turns; Memtrove is given their dates and speakers too.
                    lists["BM25 with dates and speakers"] = scorer.best_piece(written.scores(question.text), dated_owner)
                if encode:
                    dense = scorer.best_piece(vectors @ asked[number], owner)
                    lists["MiniLM"] = dense
                    lists["BM25 and MiniLM by rank fusion"] = scorer.rrf([scorer.best_piece(pieces.scores(question.text), owner), dense])
                for system, scores in lists.items():
                    best = scorer.order(scores)[:DEPTH]
                    found.setdefault(system, {})[question.qid] = [dialogue.turns[turn].id for turn in best]
        return found.items()


def load_scorer(path):
    spec = importlib.util.spec_from_file_location("scorer", path)
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    return scorer


def load_madial(scorer, directory, language):
    """The bank as the turns of one dialogue, and a question for each of the set's dialogues: what was said up to its first test turn."""
    def lines(kind):
        with open(os.path.join(directory, f"MADial-Bench-{language}-{kind}.json"), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]

    bank = {id: memory for line in lines("memory") for id, memory in line.items()}
    turns = [scorer.Turn(id, number, 0, "", memory["time"], memory["event"]) for number, (id, memory) in enumerate(bank.items())]
    questions = []
    for number, dialogue in enumerate(lines("dialogue")):
        said = "".join(dialogue["dialogue"][1:dialogue["test-turn"][0]])
        said = re.sub(r'[<>"“”]', "", said).strip()
        questions.append(scorer.Question(f"{language}:{number}", said, "dialogue", [str(id) for id in dialogue["relevant-id"]]))
    return scorer.Conversation(f"madial-{language}", turns, questions)


def bigrams(text):
    """Words of a script without spaces, as search engines make them: two characters each; other words as they are."""
    words = []
    for run in re.findall(r"[\u3400-\u9fff]+|[a-z0-9]+", text.lower()):
        words += [run] if run.isascii() or len(run) == 1 else [run[at:at + 2] for at in range(len(run) - 1)]
    return words


# ---- what Memtrove finds


def ask_all(binary, data, model, options):
    """By route: rankings by question, and milliseconds of every question in order."""
    settings = {"words": {"MEMTROVE_EMBEDDING__PROVIDER": "none"}, "static": {},
                "local": {"MEMTROVE_EMBEDDING__PROVIDER": "local",
                          "MEMTROVE_EMBEDDING__LOCAL__DIRECTORY": os.path.abspath(options.model or "")}}[model]
    write = {"memories": write_memories, "conversations": write_conversations}
    ask = {"memories": ask_memories, "conversations": ask_conversations}
    found = {}
    for route in data.routes:
        say(f"{data.name}, {route}, {model}")
        with Server(binary, settings) as server:
            with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
                turns = list(pool.map(lambda dialogue: write[route](server, data, dialogue), data.dialogues))
            server.settle()
            rankings, took = {}, []
            for dialogue, turn_of in zip(data.dialogues, turns):
                caller = Caller(server, dialogue.id, "reader")
                for question in dialogue.questions:
                    began = time.perf_counter()
                    hits = ask[route](caller, dialogue, question)
                    took.append((time.perf_counter() - began) * 1e3)
                    rankings[question.qid] = [turn_of[hit] for hit in hits if hit in turn_of]
        found[route] = rankings, sorted(took)
    return found


def write_memories(server, data, dialogue):
    """One memory for each turn; answers which turn each is."""
    caller, turn_of = Caller(server, dialogue.id, "reader"), {}
    for turn in dialogue.turns:
        answer = caller.call("POST", "/v1/memories", {
            "content": data.content(turn) or "…", "layer": "user", "identifiers": {"userId": dialogue.id}})
        turn_of[answer["memory"]["id"]] = turn.id
    return turn_of


def ask_memories(caller, dialogue, question):
    answer = caller.call("POST", "/v1/memories:search", {
        "query": question.text, "layers": ["user"], "identifiers": {"userId": dialogue.id}, "threshold": 0, "ranking": "score",
        "limit": DEPTH, "dedupe": False})
    return [hit["memory"]["id"] for hit in answer["results"]]


def write_conversations(server, data, dialogue):
    """A conversation for each session; answers which turn each entry is."""
    caller, turn_of = Caller(server, dialogue.id, "reader"), {}
    for session in sorted({turn.session for turn in dialogue.turns}):
        conversation = str(uuid.uuid4())
        for turn in (turn for turn in dialogue.turns if turn.session == session):
            entry = caller.call("POST", f"/v1/conversations/{conversation}/entries", {
                "contentType": "history", "content": [{"role": "USER", "text": data.scorer.body(turn) or "…"}],
                "indexedContent": data.content(turn)})
            turn_of[entry["id"]] = turn.id
    return turn_of


def ask_conversations(caller, dialogue, question):
    answer = caller.call("POST", "/v1/conversations/search", {
        "query": question.text[:1000], "searchType": "auto", "limit": DEPTH, "includeEntry": False, "groupByConversation": False})
    return [hit["entryId"] for hit in answer["data"]]


# ---- what came of it


class Row:
    """One system on one set."""

    def __init__(self, data, route, model, rankings, took=None, before=None):
        self.data, self.route, self.model, self.took, self.rankings = data, route, model, took, rankings
        self.scores = data.evaluate(rankings)
        self.change = None
        if before:
            self.change = difference(data.by_question(rankings), data.by_question(before[0]))

    def what(self):
        return f"{self.data.name}, {self.route}, {self.model}" if self.route else self.model

    def percent(self, metric):
        return 100 * self.scores["all"][metric]

    def goal(self):
        return GOALS.get((self.data.name, self.route, self.model))

    def goal_text(self):
        if not self.goal():
            return ""
        metric, least = self.goal()
        if self.meets_goal():
            return f"{metric} ≥ {least:g}: met"
        return f"{metric} ≥ {least:g}: **{self.percent(metric) - least:+.1f}**"

    def meets_goal(self):
        metric, least = self.goal()
        return self.percent(metric) >= least

    def hurts(self):
        if self.change is None:
            return False
        decides = next((goal[0] for (name, *_), goal in GOALS.items() if name == self.data.name), "R@10")
        return self.change[METRICS.index(decides)][2] < 0


def difference(now, before):
    """For each of METRICS the difference of the means in points, and its interval (95 %, bootstrap over questions)."""
    each, dice = 100 * (now - before), np.random.default_rng(1)
    drawn = np.array([each[dice.integers(0, len(each), len(each))].mean(0) for _ in range(ROUNDS)])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return list(zip(each.mean(0), low, high))


def report(options, sets, rows):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True).stdout.strip()
    build = pathlib.Path(options.bin).resolve().parent.name
    lines = [
        "# Finding again what was written", "",
        f"{now} · commit {commit} · {build} build · {os.cpu_count()} cores · Linux {platform.release().split('-')[0]} · load average {options.load:.1f}", "",
        "`make bench-recall`: `/v1/memories:search` and `/v1/conversations/search`, with words alone (`none`), the bundled model (`static`)",
        "and MiniLM (`local`). BM25 stems English words; Chinese is cut into pairs of characters. BM25, MiniLM and rank fusion are made",
        "of the scorer's parts in the same run. Per cent; latency is that of one search over HTTP, milliseconds.", "",
    ]
    for data in sets:
        mine = [row for row in rows if row.data is data]
        halves = len(data.dialogues) > 1
        heads = ["route", "system", *METRICS, *MORE] + (["odd", "even", "adv. R@10"] if halves else []) + ["p50", "p99", "goal"]
        lines += [f"## {data.name}", ""]
        asked = f"{len(data.questions):,} questions about {sum(len(dialogue.turns) for dialogue in data.dialogues):,} texts."
        if halves:
            asked += " *odd* and *even* are R@10 of the dialogues with such an index (from 0); adversarial questions are apart."
        lines += [asked, "", "| " + " | ".join(heads) + " |", "|---|---" + "|--:" * (len(heads) - 3) + "|---|"]
        for row in mine:
            cells = [row.route or "–", f"**Memtrove, {row.model}**" if row.route else row.model]
            cells += [f"{row.percent(metric):.1f}" for metric in METRICS + MORE]
            if halves:
                parts = (data.dialogues[1::2], data.dialogues[0::2])
                cells += [f"{100 * data.evaluate(row.rankings, part)['all']['R@10']:.1f}" for part in parts]
                cells.append(f"{100 * row.scores.get(data.scorer.ADVERSARIAL, {}).get('R@10', float('nan')):.1f}")
            took = row.took
            cells += [f"{took[len(took) // 2]:.1f}", f"{took[int(len(took) * 0.99)]:.1f}"] if took else ["–", "–"]
            lines.append("| " + " | ".join([*cells, row.goal_text()]) + " |")
        lines.append("")
    if options.against:
        lines += [
            "## Against the older build", "",
            f"Points more or less than there, and the interval of that ({ROUNDS:,} rounds of a paired bootstrap over questions, 95 %).",
            "*Hurts* is an interval below 0 in the metric that the set's goal is about.", "",
            "| set | route | model | " + " | ".join(METRICS) + " | |", "|---|---|---" + "|--:" * len(METRICS) + "|---|",
        ]
        for row in rows:
            if row.change is not None:
                cells = [f"{mean:+.1f} ({low:+.1f} – {high:+.1f})" for mean, low, high in row.change]
                lines.append(f"| {row.data.name} | {row.route} | {row.model} | " + " | ".join(cells) + f" | {'**hurts**' if row.hurts() else ''} |")
        lines.append("")
    return "\n".join(lines)


def plot(path, rows, points):
    """Recall against latency, one point per model, as a picture without a library."""
    width, height, left, bottom = 640, 360, 60, 50
    p50 = lambda row: row.took[len(row.took) // 2]
    longest = max(map(p50, points)) * 1.25
    x = lambda ms: left + (width - left - 160) * ms / longest
    y = lambda recall: height - bottom - (height - bottom - 30) * (recall - 30) / 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           f'font-size="13"><rect width="{width}" height="{height}" fill="white"/>']
    for recall in range(30, 91, 10):
        out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(recall):.0f}" y2="{y(recall):.0f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{y(recall) + 4:.0f}" text-anchor="end">{recall}</text>')
    for row in rows:
        if not row.route:
            recall = row.percent("R@10")
            out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(recall):.0f}" y2="{y(recall):.0f}" stroke="#a33" '
                       f'stroke-dasharray="4 4"/><text x="{width - 24}" y="{y(recall) - 5:.0f}" text-anchor="end" '
                       f'fill="#a33">{row.model}: {recall:.1f}</text>')
    for row in points:
        recall = row.percent("R@10")
        out.append(f'<circle cx="{x(p50(row)):.0f}" cy="{y(recall):.0f}" r="5" fill="#26c"/>'
                   f'<text x="{x(p50(row)) + 10:.0f}" y="{y(recall) + 4:.0f}">Memtrove, {row.model}: {recall:.1f} in {p50(row):.1f} ms</text>')
    out.append(f'<line x1="{left}" x2="{width - 20}" y1="{height - bottom}" y2="{height - bottom}" stroke="black"/>'
               f'<text x="{(width + left) / 2:.0f}" y="{height - 15}" text-anchor="middle">median latency of a search over '
               f'HTTP, ms</text><text x="15" y="20">recall@10, %</text></svg>')
    pathlib.Path(path).write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
