#!/usr/bin/env bash
# Checks the Python package: how it is written (ruff, mypy), that its generated half is up to date, what it does against a
# freshly started debug server (pytest), and that what is built of it can be installed and used.
#   scripts/python-package.sh            runs all of it
#   scripts/python-package.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove
venv=$(scripts/venv.sh python httpx==0.28.1 hatchling==1.33.0 mypy==2.4.1 pytest==9.2.0 pytest-xdist==3.8.0 ruff==0.17.4 \
    langgraph==1.2.20 langchain-core==1.7.2)
# Whoever uses this environment, the guides too, has the package as it is in this folder.
link=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/memtrove.pth
if [ "$(cat "$link" 2>/dev/null)" != "$PWD/python/src" ]; then
    # By a rename, because others may be starting a Python just now.
    echo "$PWD/python/src" >"$link.$$"
    mv "$link.$$" "$link"
fi
[ "${1:-}" != install ] || exit 0

fail() {
    echo "python-package: $*" >&2
    exit 1
}

binary=$(realpath -m "${MEMTROVE_BIN:-${CARGO_TARGET_DIR:-$cache/target}/debug/memtrove}")
[ -x "$binary" ] || fail "there is no $binary; run cargo build first"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PYTHONDONTWRITEBYTECODE=1 RUFF_CACHE_DIR=$folder/ruff

cd python
"$venv/bin/ruff" format --check --quiet . || fail "run ruff format in python/"
"$venv/bin/ruff" check --quiet . || fail "ruff has something to say"
"$venv/bin/mypy" --cache-dir "$cache/mypy" --no-error-summary || fail "mypy has something to say"
MEMTROVE_BIN=$binary timeout 600 "$venv/bin/python" -m pytest -n 2 -p no:cacheprovider || fail "tests failed"

# The wheel, in an environment that knows nothing of this folder. What it depends on is borrowed, so that no network is needed.
"$venv/bin/python" -m hatchling build -t wheel -d "$folder/wheel" >/dev/null 2>"$folder/log" || { cat "$folder/log" >&2; fail "no wheel"; }
python3 -m venv --without-pip "$folder/fresh"
python3 -m pip --python "$folder/fresh/bin/python" install --quiet --disable-pip-version-check --no-index --no-deps \
    "$folder"/wheel/*.whl || fail "the wheel cannot be installed"
# What its extras ask for is what the adapters are tested with.
python3 -m pip --python "$venv/bin/python" install --dry-run --quiet --disable-pip-version-check --no-index \
    "$(echo "$folder"/wheel/*.whl)[langgraph,langchain]" || fail "the extras ask for something else than the tests have"
"$folder/fresh/bin/python" - "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'PYTHON'
import importlib.metadata, pathlib, sys

needed = [one for one in importlib.metadata.requires("memtrove") if "extra ==" not in one]
assert len(needed) == 1 and needed[0].startswith("httpx"), needed
sys.path.append(sys.argv[1])
import memtrove

where = pathlib.Path(memtrove.__file__).parent
assert where.is_relative_to(sys.prefix), where
assert (where / "py.typed").exists() and (where / "_sync" / "client.py").exists()
import memtrove.langchain, memtrove.langgraph

assert memtrove.Memtrove("alice").notes and memtrove.tools()
PYTHON
echo "python-package: the package is well"
