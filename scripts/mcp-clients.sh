#!/usr/bin/env bash
# Talks to the MCP server with clients that others wrote: the official inspector, the official conformance suite, and an agent
# with the official Python client. Each of them over standard input and output and, but for the agent, over HTTP.
#   scripts/mcp-clients.sh            runs all of it
#   scripts/mcp-clients.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

# The conformance suite needs a newer Node than many systems have.
packages=(@modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16 node@22.22.0)
npm=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/mcp/npm
tests=crates/memtrove/tests/process/mcp/clients

fail() {
    echo "mcp-clients: $*" >&2
    exit 1
}

venv=$(scripts/venv.sh mcp/python mcp==2.3.0)
if [ "$(cat "$npm/installed" 2>/dev/null)" != "${packages[*]}" ]; then
    echo "mcp-clients: installing ${packages[*]} into $npm"
    rm -rf "$npm"
    mkdir -p "$npm"
    echo '{"private": true}' >"$npm/package.json"
    (cd "$npm" && npm install --no-audit --no-fund --loglevel=error "${packages[@]}") \
        || fail "npm cannot install ${packages[*]}"
    echo "${packages[*]}" >"$npm/installed"
fi
case ${1:-} in
    install) exit 0 ;;
    # Begun anew, beside a server.
    "") exec scripts/with-server.sh scripts/mcp-clients.sh talk ;;
    talk) ;;
    *) fail "say nothing, or install" ;;
esac

binary=$MEMTROVE_BIN
address=$MEMTROVE_URL/mcp
# They are settings to a server, and an editor passes on none.
unset MEMTROVE_BIN MEMTROVE_URL XDG_DATA_HOME
node=$npm/node_modules/node/bin/node

folder=$(mktemp -d)
bridge=
finish() {
    if [ -n "$bridge" ]; then
        kill "$bridge" 2>/dev/null || true
        wait "$bridge" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap finish EXIT
mkdir "$folder/home" "$folder/inspected"

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
    # The conformance suite wants a resource that it can list.
    inspect called "${at[@]}" --method tools/call --tool-name memory_write_file --tool-arg path=inspected.md --tool-arg content=Inspected
    expect called 'created inspected.md'
    inspect resources "${at[@]}" --method resources/list
    expect resources 'memtrove://files/inspected.md'
    echo "mcp-clients: the inspector works over $way"
done

# The conformance suite, which knows addresses only, and no credentials. Most of its scenarios want tools, resources and prompts of
# a server of its own; those are known not to pass ($tests/conformance-*.yml), and the others are named here: one that stops
# passing, or passes because there was nothing to check, fails the run.
conform() {
    local way=$1 url= passing all other
    passing=$(printf '%s\n' $2 | sort)
    shift 2
    mkfifo "$folder/leash-$way"
    python3 "$tests/bridge.py" "$@" <"$folder/leash-$way" >"$folder/bridge-$way" &
    bridge=$!
    exec 9>"$folder/leash-$way"
    for _ in $(seq 300); do
        url=$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$folder/bridge-$way") && break
        kill -0 "$bridge" 2>/dev/null || fail "the bridge to $way did not start"
        sleep 0.1
    done
    [ -n "$url" ] || fail "the bridge to $way printed no address"
    (cd "$folder" && timeout 120 "$node" "$npm/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$url/mcp" \
        --expected-failures "$OLDPWD/$tests/conformance-$way.yml" --output-dir "results-$way") >"$folder/conformance-$way" 2>&1 \
        || { tail -n 60 "$folder/conformance-$way" >&2; fail "the conformance suite found something over $way"; }
    exec 9>&-
    wait "$bridge" || fail "the bridge to $way failed"
    bridge=
    # Its summary has a line for each scenario, with how many checks there were.
    sed -n 's/^✓ \([^ :]*\): [1-9][0-9]* passed, 0 failed$/\1/p' "$folder/conformance-$way" | sort >"$folder/passed-$way"
    diff <(echo "$passing") "$folder/passed-$way" >&2 || fail "other scenarios pass over $way than are expected (<) to"
    grep -q '"memtrove://files/inspected.md"' "$folder/results-$way"/server-resources-list-*/checks.json \
        || fail "the conformance suite saw no resource over $way"
    all=$(grep -c '^[✓✗] [^ :]*: ' "$folder/conformance-$way")
    other=$(grep -c '^✗ [^ :]*: ' "$folder/conformance-$way")
    passing=$(wc -l <"$folder/passed-$way")
    echo "mcp-clients: $passing of $all scenarios of the conformance suite apply and pass over $way; $other do not apply, and" \
        "$((all - other - passing)) checked nothing"
}
passing="server-initialize ping tools-list resources-list"
conform http "$passing dns-rebinding-protection" http "$address" inspector
# Whether several streams are open at a time is up to the bridge, but each of them has its answer from the process.
conform stdio "$passing server-sse-multiple-streams" stdio env HOME="$folder/home" "$binary" mcp --data-dir "$folder/inspected/data" --user inspector

timeout 60 "$venv/bin/python" "$tests/agent.py" "$binary" "$folder/home" || fail "the agent failed"
echo "mcp-clients: all clients understand the server"
