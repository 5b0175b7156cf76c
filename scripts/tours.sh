#!/usr/bin/env bash
# Runs the shell and Python blocks of the README and of the guides, as a reader would who goes through all of them; tour.py
# says how. Then the examples of the Rust client. The change feed comes first, because it is shown from its first number.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove
guides=(docs/changes.md README.md docs/{files,memories,conversations,encryption,attachments,backup,configuration,operations,import,mcp,python,langgraph}.md)
# Those that need programs of their own: grpc-python.sh and mem0-client.sh run them.
elsewhere=(docs/{grpc,recorder,mem0}.md)
beside_postgres=(docs/postgresql.md)

for document in $(grep -lE '^```(sh|python)$' README.md docs/*.md); do
    [[ " ${guides[*]} ${elsewhere[*]} ${beside_postgres[*]} " == *" $document "* ]] || { echo "tours: nobody runs the blocks of $document" >&2; exit 1; }
done
TOUR_PYTHON=$cache/python/bin/python python3 scripts/tour.py "${guides[@]}"
# Beside a server of its own, in which it makes roles and databases.
scripts/postgres.sh run bash -c 'port=${MEMTROVE_TEST_POSTGRES##*:}
    PGHOST=127.0.0.1 PGPORT=${port%%/*} PGUSER=postgres exec python3 scripts/tour.py "$@"' tour "${beside_postgres[@]}"

for example in crates/memtrove-client/examples/*.rs; do
    name=$(basename "$example" .rs)
    scripts/with-server.sh timeout 60 "${CARGO_TARGET_DIR:-$cache/target}/debug/examples/$name" || { echo "tours: the example $name failed" >&2; exit 1; }
done
