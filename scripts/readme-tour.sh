#!/usr/bin/env bash
# Runs the README's "A five-minute tour" as a reader would: every ```sh block, in order, in one shell, against a
# freshly started debug server. A ```json block right after one shows the answer of its last command: the keys must be
# those that really came back, and an empty {} or [] leaves that part open. Blocks in other languages are not run.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${MEMLOOM_BIN:-${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/memloom/target}/debug/memloom}
[ -x "$binary" ] || { echo "readme-tour: there is no $binary; run cargo build first" >&2; exit 1; }

folder=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap finish EXIT

# The README's own address if nobody has it, else any.
listen=127.0.0.1:7077
(exec 3<>/dev/tcp/127.0.0.1/7077) 2>/dev/null && listen=127.0.0.1:0
(cd "$folder" && MEMLOOM_SERVER__LISTEN=$listen MEMLOOM_SERVER__DATA_DIR=$folder/data exec "$binary" serve) \
    >"$folder/log" 2>&1 &
server=$!
address=
for _ in $(seq 200); do
    address=$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$folder/log") && break
    kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; echo "readme-tour: the server did not start" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { cat "$folder/log" >&2; echo "readme-tour: the server printed no address" >&2; exit 1; }

PATH=$(dirname "$(realpath "$binary")"):$PATH python3 - README.md "${address#http://}" "$folder" <<'PYTHON'
import json, pathlib, re, subprocess, sys

readme, address, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
HEADING = "A five-minute tour"


def tour_blocks(text):
    """The fenced blocks of the section as (language, text), in order."""
    blocks, language, lines, level = [], None, [], None
    for line in text.splitlines():
        fence = re.match(r"\s*```(\w*)", line)
        if language is not None:
            if fence and not fence[1]:
                if level:
                    blocks.append((language, "\n".join(lines) + "\n"))
                language, lines = None, []
            else:
                lines.append(line)
        elif fence:
            language = fence[1]
        elif heading := re.match(r"(#+)\s+(.*?)\s*$", line):
            if level and len(heading[1]) <= level:
                break
            if heading[2] == HEADING:
                level = len(heading[1])
    return blocks


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
    """Where the keys of the two differ; values are free, and so is the length of a list."""
    if isinstance(shown, dict) and shown:
        if not isinstance(actual, dict):
            return [f"{path} is shown as an object and is {json.dumps(actual)[:80]}"]
        missing = [f"{path}.{key} is shown and did not come back" for key in shown.keys() - actual.keys()]
        extra = [f"{path}.{key} came back and is not shown" for key in actual.keys() - shown.keys()]
        inner = [d for key in shown.keys() & actual.keys() for d in differences(shown[key], actual[key], f"{path}.{key}")]
        return sorted(missing + extra) + inner
    if isinstance(shown, list) and shown:
        if not isinstance(actual, list) or not actual:
            return [f"{path} is shown as a list with items and is {json.dumps(actual)[:80]}"]
        pairs = zip(shown, actual)
        return [d for i, (one, other) in enumerate(pairs) for d in differences(one, other, f"{path}[{i}]")]
    return []


blocks = tour_blocks(pathlib.Path(readme).read_text())
steps = [
    (text, blocks[i + 1][1] if blocks[i + 1 : i + 2] and blocks[i + 1][0] == "json" else None)
    for i, (language, text) in enumerate(blocks)
    if language == "sh"
]
if not steps:
    sys.exit(f'readme-tour: {readme} has no ```sh block under the heading "{HEADING}"')

# Every block runs in this one shell, its output in a file of its own. `curl` fails on an error status, which the
# README need not spell out.
script = """set -euo pipefail
curl() {
    local argument
    for argument in "$@"; do
        [[ $argument =~ ^(--fail|--fail-with-body|-[a-zA-Z]*f[a-zA-Z]*)$ ]] && { command curl "$@"; return; }
    done
    command curl --fail-with-body --show-error "$@"
}
"""
for number, (text, _) in enumerate(steps):
    text = re.sub(r"(127\.0\.0\.1|localhost):7077", address, text)
    script += f"{{\n{text}\n}} >{folder}/out-{number} 2>{folder}/err-{number}\necho >{folder}/done-{number}\n"
subprocess.run(["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL)

passed = 0
for number, (text, shown) in enumerate(steps):
    read = lambda kind: (folder / f"{kind}-{number}").read_text() if (folder / f"{kind}-{number}").exists() else ""
    problems = []
    if not (folder / f"done-{number}").exists():
        problems.append("it failed")
    elif shown is not None:
        try:
            expected = json.loads(shown)
        except ValueError as error:
            problems.append(f"the answer shown after it is not JSON: {error}")
        else:
            answer = last_json(read("out"))
            problems += ["it printed no JSON"] if answer is None else differences(expected, answer)
    if problems:
        print(f"Block {number + 1}:\n{text}\n" + "\n".join(f"  {problem}" for problem in problems))
        print(f"Its output:\n{read('out')}{read('err')}")
        print(f"readme-tour: {passed} passed, 1 failed (stopped there, of {len(steps)})")
        sys.exit(1)
    passed += 1
print(f"readme-tour: {passed} passed, 0 failed")
PYTHON
