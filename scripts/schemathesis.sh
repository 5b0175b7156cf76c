#!/usr/bin/env bash
# Fuzzes a freshly started debug server with requests generated from its own OpenAPI document. Every answer must have a
# status, a media type and a body that the document promises. The seed is fixed, so a failure comes back when it is run
# again.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${MEMLOOM_BIN:-${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/memloom/target}/debug/memloom}
schemathesis=${XDG_CACHE_HOME:-$HOME/.cache}/memloom/venv/bin/schemathesis
[ -x "$binary" ] || { echo "schemathesis: there is no $binary; run cargo build first" >&2; exit 1; }
[ -x "$schemathesis" ] || { echo "schemathesis: there is no $schemathesis; run scripts/test-deps.sh first" >&2; exit 1; }

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
    address=$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$folder/log") && break
    kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; echo "schemathesis: the server did not start" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { cat "$folder/log" >&2; echo "schemathesis: the server printed no address" >&2; exit 1; }

# 501 is the documented answer of parts that are not configured here; where it is not documented,
# status_code_conformance still refuses it.
cat >"$folder/schemathesis.toml" <<'TOML'
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "501"]
TOML

fuzz() {
    local who=$1 examples=$2
    shift 2
    echo "==> schemathesis as $who"
    "$schemathesis" --config-file "$folder/schemathesis.toml" run "$address/openapi.json" \
        --header "Authorization: Bearer $who" --header "X-API-Key: fuzz-agent" \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
        --max-examples "$examples" --seed 20260131 --workers 1 --generation-database none \
        --request-timeout 10 --suppress-health-check all --continue-on-failure --no-color "$@" && return
    tail -n 20 "$folder/log" >&2
    echo "schemathesis: the answers to $who differ from the document (the log of the server ends above)" >&2
    exit 1
}

fuzz fuzz 15
fuzz admin 15 --include-path-regex '^/v1/(admin/|conversations/(index|unindexed)$)'
kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; echo "schemathesis: the server died" >&2; exit 1; }
echo "schemathesis: both passes conform to the document"
