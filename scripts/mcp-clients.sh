#!/usr/bin/env bash
# Talks to the MCP server with clients that others wrote: the official inspector, the official conformance suite, and an agent
# with the official Python client. Each of them over standard input and output and, but for the agent, over HTTP.
#   scripts/mcp-clients.sh            runs all of it
#   scripts/mcp-clients.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

# The conformance suite needs a newer Node than many systems have.
packages=(@modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16 node@22.22.0)
requirements=(mcp==2.3.0)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/memloom
npm=$cache/mcp/npm
venv=$cache/mcp/python
tests=crates/memloom/tests/mcp/clients

fail() {
    echo "mcp-clients: $*" >&2
    exit 1
}

install() {
    if [ "$(cat "$npm/installed" 2>/dev/null)" != "${packages[*]}" ]; then
        echo "mcp-clients: installing ${packages[*]} into $npm"
        rm -rf "$npm"
        mkdir -p "$npm"
        echo '{"private": true}' >"$npm/package.json"
        (cd "$npm" && npm install --no-audit --no-fund --loglevel=error "${packages[@]}") \
            || fail "npm cannot install ${packages[*]}"
        echo "${packages[*]}" >"$npm/installed"
    fi
    if [ "$(cat "$venv/installed" 2>/dev/null)" != "${requirements[*]}" ]; then
        echo "mcp-clients: installing ${requirements[*]} into $venv"
        rm -rf "$venv"
        # Without pip of its own: Debian leaves that part of venv to another package, and the system's pip can fill it too.
        python3 -m venv --without-pip "$venv" || fail "cannot create a Python environment in $venv"
        python3 -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check "${requirements[@]}" \
            || fail "pip cannot install ${requirements[*]}"
        echo "${requirements[*]}" >"$venv/installed"
    fi
}

install
[ "${1:-}" != install ] || exit 0
[ $# = 0 ] || fail "say nothing, or install"

binary=${MEMLOOM_BIN:-${CARGO_TARGET_DIR:-$cache/target}/debug/memloom}
[ -x "$binary" ] || fail "there is no $binary; run cargo build first"
binary=$(realpath "$binary")
node=$npm/node_modules/node/bin/node

folder=$(mktemp -d)
server=
bridge=
finish() {
    for process in $bridge $server; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap finish EXIT
mkdir "$folder/home" "$folder/inspected"
# A user's own settings must not change what this tests.
for variable in $(compgen -e MEMLOOM_ || true); do unset "$variable"; done

# The address that a process prints first, into a file.
address_in() {
    local file=$1 process=$2
    for _ in $(seq 300); do
        grep -om1 'http://127\.0\.0\.1:[0-9]*' "$file" && return
        kill -0 "$process" 2>/dev/null || { cat "$file" >&2; fail "a process did not start"; }
        sleep 0.1
    done
    fail "a process printed no address"
}

(cd "$folder" && exec "$binary" serve --listen 127.0.0.1:0 --data-dir "$folder/data") >"$folder/log" 2>&1 &
server=$!
address=$(address_in "$folder/log" "$server")/mcp

# The inspector, as a person would use it.
inspect() {
    local out=$1
    shift
    HOME=$folder/inspected timeout 60 "$node" "$npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" --cli "$@" \
        >"$folder/$out" 2>"$folder/inspector.err" || { cat "$folder/inspector.err" "$folder/$out" >&2; fail "the inspector failed: $*"; }
}
expect() {
    grep -q -- "$2" "$folder/$1" || { cat "$folder/$1" >&2; fail "the inspector did not show $2"; }
}
for way in stdio http; do
    if [ $way = stdio ]; then
        at=("$binary" mcp --data-dir "$folder/inspected/data" --user inspector)
    else
        at=("$address" --transport http --header "Authorization: Bearer inspector")
    fi
    inspect tools "${at[@]}" --method tools/list
    expect tools '"name": "remember"'
    inspect called "${at[@]}" --method tools/call --tool-name memory_write_file --tool-arg path=a.md --tool-arg content=Inspected
    expect called 'created a.md'
    inspect resources "${at[@]}" --method resources/list
    expect resources 'memloom://files/a.md'
    echo "mcp-clients: the inspector works over $way"
done

# The conformance suite, which knows addresses only, and no credentials.
conform() {
    local way=$1
    shift
    mkfifo "$folder/leash-$way"
    python3 "$tests/bridge.py" "$@" <"$folder/leash-$way" >"$folder/bridge-$way" &
    bridge=$!
    exec 9>"$folder/leash-$way"
    local url
    url=$(address_in "$folder/bridge-$way" "$bridge")/mcp
    (cd "$folder" && timeout 120 "$node" "$npm/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$url" \
        --expected-failures "$OLDPWD/$tests/conformance-$way.yml") >"$folder/conformance-$way" 2>&1 \
        || { tail -n 60 "$folder/conformance-$way" >&2; fail "the conformance suite found something over $way"; }
    exec 9>&-
    wait "$bridge" || fail "the bridge to $way failed"
    bridge=
    echo "mcp-clients: $(grep -c '✓' "$folder/conformance-$way") checks of the conformance suite hold over $way"
}
conform http http "$address" conformance
conform stdio stdio env HOME="$folder/home" USER=conformance "$binary" mcp

timeout 60 "$venv/bin/python" "$tests/agent.py" "$binary" "$folder/home" || fail "the agent failed"

kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; fail "the server died"; }
! grep -q panicked "$folder/log" || { cat "$folder/log" >&2; fail "the server panicked"; }
echo "mcp-clients: all clients understand the server"
