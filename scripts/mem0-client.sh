#!/usr/bin/env bash
# Talks to a freshly started debug server with mem0's own client, unmodified, sync and async, and by the routes of the server
# that mem0 publishes. Then come the programs of docs/mem0.md.
#   scripts/mem0-client.sh            runs all of it
#   scripts/mem0-client.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$(scripts/venv.sh mem0 mem0ai==2.2.1)
tests=crates/memtrove/tests/mem0/python
[ "${1:-}" != install ] || exit 0

fail() {
    echo "mem0-client: $*" >&2
    exit 1
}
[ $# = 0 ] || fail "say nothing, or install"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Its client tells its makers of every call unless it is told not to, and keeps a folder of its own.
export MEM0_TELEMETRY=False MEM0_DIR=$folder/mem0
scripts/with-server.sh timeout 120 "$venv/bin/python" "$tests/client.py" || fail "the client failed"

# The guide, which brings a server of its own.
TOUR_PYTHON=$venv/bin/python python3 scripts/tour.py docs/mem0.md
echo "mem0-client: mem0's client understands the server"
