#!/usr/bin/env python3
"""Runs the shell and Python blocks of documents as a reader would.

    tour.py DOCUMENT...

A freshly started debug server in local mode serves all of them, one after the other, as somebody reads who goes on where the
one before has ended. The ```sh blocks of a document run in order, in one shell, in a folder of its own, and its ```python
blocks between them in one interpreter: that of $TOUR_PYTHON, which has the package, or this one. The user's data folder is
the server's. 127.0.0.1:7077 is that server; where a document says another port, a free one is used.

A block right after one of them, with nothing in between, shows what comes out, and that is what must come out:
  ```json  the last JSON printed. Members and texts must agree; ids and dates in texts may differ, and fractions by a tenth.
           An empty {} or [] leaves that part open, a text … too, and a list may be longer than shown. If it shows an
           error, the last command of the block must fail.
  ```text  all lines that are printed but empty ones. Ids and dates may differ, … is anything, and a line … any lines.
A block that prints a status or passes over a failure must show what comes out: nothing else would judge it.
Blocks in other languages are not run: ```console is for what names machines and programs that only the reader has.
"""

import json, os, pathlib, re, signal, socket, subprocess, sys, tempfile, time

SECONDS = 60
# What blocks may be written in; another word would be a block that nobody runs.
LANGUAGES = {"sh", "python", "json", "text", "console", "toml", "yaml", "ini", "sql", "js", "mermaid"}
UNJUDGED = re.compile(r"http_code|\|\| (?:true|echo)")
FRACTION = 0.1
ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost):(\d{4,5})")
# What differs from run to run: ids and hashes, dates and other numbers that are parts of something. Small ones that stand
# alone (a status, a count) are meant. And what the document leaves out.
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
FREE = re.compile(
    rf"(?P<uuid>{UUID})|(?P<hex>\b(?=[0-9a-f]*\d)[0-9a-f]{{8,}}\b)|(?P<count>(?<![\w.-])(?<!\d:)\d{{1,3}}(?![\w:-]))"
    r"|(?P<number>\d+)|(?P<rest>…)"
)

# `curl` fails on an error status, which documents need not spell out; whoever prints the status judges it.
PREAMBLE = r"""set -euo pipefail
shopt -s inherit_errexit
curl() {
    local argument
    for argument in "$@"; do
        [[ $argument =~ ^(--fail|--fail-with-body|-[a-zA-Z]*f[a-zA-Z]*|.*%\{http_code\}.*)$ ]] && { command curl "$@"; return; }
    done
    command curl --fail-with-body --show-error "$@"
}
"""

# Runs the blocks whose numbers it is told, one after the other, in one namespace, and says of each how it ended.
INTERPRETER = r"""
import contextlib, sys, traceback
namespace = {"__name__": "__main__"}
for number in map(int, sys.stdin):
    with open(f"out-{number}", "w") as out, open(f"err-{number}", "w") as err:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                with open(f"block-{number}.py") as block:
                    exec(compile(block.read(), f"block {number + 1}", "exec"), namespace)
                ended = "well"
            except BaseException:
                traceback.print_exc()
                ended = "badly"
    print(ended, flush=True)
"""


def blocks(text):
    """The fenced blocks of the document: (language, text, whether it follows the one before)."""
    found, language, lines, follows = [], None, [], False
    for line in text.splitlines():
        fence = re.match(r"\s*(?:```|~~~)(\S*)", line)
        if language is not None:
            if fence and not fence[1]:
                found.append((language, "\n".join(lines) + "\n", follows))
                language, lines, follows = None, [], True
            else:
                lines.append(line)
        elif fence:
            language = fence[1]
            if language not in LANGUAGES:
                raise ValueError(f"a block is written in '{language}', which nobody runs: one of {sorted(LANGUAGES)}")
        elif line.strip():
            follows = False
    if language is not None:
        raise ValueError("the last block has no end")
    return found


def steps(found):
    """Every block that runs: its language, its text, and the language and text of what it promises, if anything."""
    for block, after in zip(found, found[1:] + [(None, None, False)]):
        if block[0] in ("sh", "python"):
            yield *block[:2], after[:2] if after[2] and after[0] in ("json", "text") else (None, None)


def pattern(shown):
    """What a shown text may be in reality."""
    parts, end = [], 0
    for free in FREE.finditer(shown):
        parts.append(re.escape(shown[end : free.start()]))
        parts.append({"uuid": UUID, "hex": "[0-9a-f]+", "count": free[0], "number": r"\d+", "rest": ".*"}[free.lastgroup])
        end = free.end()
    return re.compile("".join(parts) + re.escape(shown[end:]), re.S)


def last_json(text):
    """The last JSON document that starts a line of the output."""
    found, decoder, position = None, json.JSONDecoder(), 0
    while match := re.compile(r"^\s*(?=[\[{])", re.M).search(text, position):
        try:
            found, position = decoder.raw_decode(text, match.end())
        except ValueError:
            position = match.end() + 1
    return found


def differences(shown, actual, path="$"):
    """Where what came back is not what is shown."""
    differs = [f"{path} is shown as {json.dumps(shown)[:80]} and is {json.dumps(actual)[:80]}"]
    if shown in ({}, [], "…"):
        return []
    if type(shown) is not type(actual):
        return differs
    if isinstance(shown, dict):
        missing = [f"{path}.{key} is shown and did not come back" for key in shown.keys() - actual.keys()]
        extra = [f"{path}.{key} came back and is not shown" for key in actual.keys() - shown.keys()]
        inner = [d for key in shown.keys() & actual.keys() for d in differences(shown[key], actual[key], f"{path}.{key}")]
        return sorted(missing + extra) + sorted(inner)
    if isinstance(shown, list):
        if len(actual) < len(shown):
            return differs
        pairs = enumerate(zip(shown, actual))
        return [d for i, (one, other) in pairs for d in differences(one, other, f"{path}[{i}]")]
    if isinstance(shown, str):
        return [] if pattern(shown).fullmatch(actual) else differs
    near = isinstance(shown, float) and abs(shown - actual) <= FRACTION
    return [] if near or shown == actual else differs


def problems(language, shown, output):
    """What is wrong with the output of a block."""
    if language == "json":
        try:
            expected = json.loads(shown)
        except ValueError as error:
            return [f"the answer shown after it is not JSON: {error}"]
        answer = last_json(output)
        return ["it printed no JSON"] if answer is None else differences(expected, answer)
    return [] if shown is None else different_lines(shown, output)


def different_lines(shown, output):
    """Where what was printed is not what is shown."""
    lines = lambda text: [line.strip() for line in text.splitlines() if line.strip()]
    shown, printed = lines(shown), lines(output)
    agrees = lambda i, j: pattern(shown[i]).fullmatch(printed[j])
    # How far into what was printed the lines shown so far may reach: a line … takes any number.
    reached = {0}
    for i, line in enumerate(shown):
        if line == "…":
            reached = set(range(min(reached), len(printed) + 1))
            continue
        further = {j + 1 for j in reached if j < len(printed) and agrees(i, j)}
        if not further:
            return [f"it did not print, or not in this place: {line}"]
        reached = further
    return [] if len(printed) in reached else [f"it printed more than is shown: {printed[max(reached)]}"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_server(folder, environment, port):
    """A server that answers."""
    log = folder / "server.log"
    command = ["memtrove", "serve", "--listen", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log.open("w"), stderr=subprocess.STDOUT)
    deadline = time.monotonic() + SECONDS
    while f":{port}" not in log.read_text():
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            sys.exit(f"tour: the server did not start:\n{log.read_text()}")
        time.sleep(0.02)
    return server


def run(todo, folder, environment, url):
    """Runs the blocks until one fails; each leaves its output in a file, and another file when it came to its end."""
    script = PREAMBLE
    if any(language == "python" for language, _, _ in todo):
        (folder / "interpreter.py").write_text(INTERPRETER)
        script += f"coproc interpreter {{ cd {folder} && MEMTROVE_URL={url} exec {environment['TOUR_PYTHON']} interpreter.py; }}\n"
    for number, (language, text, (shown_as, shown)) in enumerate(todo):
        if language == "python":
            (folder / f"block-{number}.py").write_text(text)
            script += f"echo {number} >&${{interpreter[1]}}; read -r ended <&${{interpreter[0]}}; [ $ended = well ]\n"
        else:
            refused = shown_as == "json" and '"error"' in shown
            # In a shell of its own, which ends with the first command that fails: that must be the last one.
            body = f"set +e\n( set -e\n{text}\n)\nrefused=$?\nset -e\n[ $refused != 0 ]" if refused else text
            script += f"{{\n{body}\n}} >{folder}/out-{number} 2>{folder}/err-{number}\n"
        script += f"echo >{folder}/done-{number}\n"
    shell = subprocess.Popen(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        shell.wait(SECONDS)
    except subprocess.TimeoutExpired:
        print(f"tour: it did not end within {SECONDS} seconds")
    finally:
        # What the document started in the background ends with it.
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shell.wait()


def tour(document, folder, environment, port):
    """Whether everything came out as the document says."""
    try:
        todo = list(steps(blocks(pathlib.Path(document).read_text())))
    except ValueError as error:
        sys.exit(f"tour: {document}: {error}")
    if not todo:
        sys.exit(f"tour: {document} has no block that runs")
    for _, text, (_, shown) in todo:
        if shown is None and UNJUDGED.search(text):
            sys.exit(f"tour: {document}: a block must show what it prints, because nothing else would judge it:\n{text}")
    ports = {7077: port}
    for _, text, _ in todo:
        ports |= {int(other): free_port() for other in ADDRESS.findall(text) if int(other) not in ports}
    moved = lambda text: ADDRESS.sub(lambda address: f"127.0.0.1:{ports[int(address[1])]}", text)
    todo = [(language, moved(text), promised) for language, text, promised in todo]
    run(todo, folder, environment | {"TMPDIR": str(folder)}, f"http://127.0.0.1:{port}")
    return report(document, todo, folder)


def report(document, todo, folder):
    """Prints how the blocks did; whether all of them did well."""

    def read(name):
        return (folder / name).read_text() if (folder / name).exists() else ""

    for number, (_, text, (language, shown)) in enumerate(todo):
        output, complaints = read(f"out-{number}"), read(f"err-{number}")
        wrong = problems(language, shown, output) if read(f"done-{number}") else ["it failed"]
        if wrong:
            print(f"{document}, block {number + 1} of {len(todo)}:\n{text}\n" + "\n".join(f"  {one}" for one in wrong))
            print(f"Its output:\n{output}{complaints}")
            print(f"tour: {document}: {number} passed, 1 failed (stopped there, of {len(todo)})")
            return False
    print(f"tour: {document}: {len(todo)} passed, 0 failed")
    return True


def main():
    documents = sys.argv[1:]
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    target = os.environ.get("CARGO_TARGET_DIR") or f"{cache}/memtrove/target"
    binary = pathlib.Path(os.environ.get("MEMTROVE_BIN") or f"{target}/debug/memtrove").resolve()
    if not os.access(binary, os.X_OK):
        sys.exit(f"tour: there is no {binary}; run cargo build first")
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMTROVE_")}
    environment["PATH"] = f"{binary.parent}:{environment['PATH']}"
    environment["TOUR_PYTHON"] = os.environ.get("TOUR_PYTHON") or sys.executable
    with tempfile.TemporaryDirectory(prefix="memtrove-tour-") as name:
        environment["XDG_DATA_HOME"] = name
        port = free_port()
        server = start_server(pathlib.Path(name), environment, port)
        try:
            folders = [pathlib.Path(tempfile.mkdtemp(dir=name)) for _ in documents]
            passed = [tour(document, folder, environment, port) for document, folder in zip(documents, folders)]
            log = (pathlib.Path(name) / "server.log").read_text()
            if server.poll() is not None or "panicked" in log:
                sys.exit(f"tour: the server died or panicked:\n{log}")
        finally:
            server.terminate()
            server.wait()
    sys.exit(0 if all(passed) else 1)


main()
