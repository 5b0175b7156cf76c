#!/usr/bin/env bash
# Talks to a freshly started debug server with mem0's own client, unmodified, sync and async, and by the routes of the server
# that mem0 publishes. Then come the programs of docs/mem0.md.
#   scripts/mem0-client.sh            runs all of it
#   scripts/mem0-client.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=(mem0ai==2.2.1)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/memloom
venv=$cache/mem0
tests=crates/memloom/tests/mem0/python

fail() {
    echo "mem0-client: $*" >&2
    exit 1
}

install() {
    [ "$(cat "$venv/installed" 2>/dev/null)" = "${requirements[*]}" ] && return
    echo "mem0-client: installing ${requirements[*]} into $venv"
    rm -rf "$venv"
    # Without pip of its own: Debian leaves that part of venv to another package, and the system's pip can fill it too.
    python3 -m venv --without-pip "$venv" || fail "cannot create a Python environment in $venv"
    python3 -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check "${requirements[@]}" \
        || fail "pip cannot install ${requirements[*]}"
    echo "${requirements[*]}" >"$venv/installed"
}

install
[ "${1:-}" != install ] || exit 0
[ $# = 0 ] || fail "say nothing, or install"

binary=${MEMLOOM_BIN:-${CARGO_TARGET_DIR:-$cache/target}/debug/memloom}
[ -x "$binary" ] || fail "there is no $binary; run cargo build first"

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

(cd "$folder" && MEMLOOM_SERVER__LISTEN=127.0.0.1:0 MEMLOOM_SERVER__DATA_DIR=$folder/data exec "$binary" serve) \
    >"$folder/log" 2>&1 &
server=$!
address=
for _ in $(seq 200); do
    address=$(grep -om1 '127\.0\.0\.1:[0-9]*' "$folder/log") && break
    kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; fail "the server did not start"; }
    sleep 0.1
done
[ -n "$address" ] || { cat "$folder/log" >&2; fail "the server printed no address"; }

# Its client tells its makers of every call unless it is told not to, and keeps a folder of its own.
python() {
    MEM0_TELEMETRY=False MEM0_DIR=$folder/mem0 timeout 120 "$venv/bin/python" "$@"
}
python "$tests/client.py" "http://$address" || {
    grep -E ' (WARN|ERROR) ' "$folder/log" | tail -n 20 >&2 || true
    fail "the client failed (warnings of the server above)"
}

# The programs of the guide, one after the other, against this server.
sed -n '/^```python$/,/^```$/p' docs/mem0.md | sed '/^```/d; s/127\.0\.0\.1:7077/'"$address"'/' >"$folder/guide.py"
[ -s "$folder/guide.py" ] || fail "docs/mem0.md has no program"
python "$folder/guide.py" >"$folder/guide.out" || fail "the programs of docs/mem0.md failed"
grep -q 'Rex' "$folder/guide.out" || { cat "$folder/guide.out" >&2; fail "the programs of docs/mem0.md print something else"; }
kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; fail "the server died"; }
! grep -q panicked "$folder/log" || { cat "$folder/log" >&2; fail "the server panicked"; }
echo "mem0-client: mem0's client understands the server"
