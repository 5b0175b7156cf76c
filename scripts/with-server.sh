#!/usr/bin/env bash
# Runs a command beside a freshly started debug server, which is gone afterwards, and with it what it stored.
#   scripts/with-server.sh [MEMTROVE_SETTING=VALUE...] COMMAND [ARGUMENT...]
# The command finds the server at $MEMTROVE_URL. It has failed, too, if the server died or panicked meanwhile.
set -euo pipefail

binary=$(realpath -m "${MEMTROVE_BIN:-${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/target}/debug/memtrove}")
[ -x "$binary" ] || { echo "with-server: there is no $binary; run cargo build first" >&2; exit 1; }
# Whoever runs this may have a server and settings of their own, which must neither be used nor harmed.
for variable in $(compgen -e MEMTROVE_ || true); do unset "$variable"; done
settings=()
while [[ ${1:-} == MEMTROVE_*=* ]]; do
    settings+=("$1")
    shift
done

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

fail() {
    cat "$folder/log" >&2
    echo "with-server: $*" >&2
    exit 1
}

(cd "$folder" && exec env "${settings[@]}" "$binary" serve --listen 127.0.0.1:0 --data-dir "$folder/data") \
    >"$folder/log" 2>&1 &
server=$!
address=
for _ in $(seq 300); do
    address=$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$folder/log") && break
    kill -0 "$server" 2>/dev/null || fail "the server did not start"
    sleep 0.1
done
[ -n "$address" ] || fail "the server printed no address"

status=0
MEMTROVE_BIN=$binary MEMTROVE_URL=$address "$@" || status=$?
[ $status = 0 ] || grep -E ' (WARN|ERROR) ' "$folder/log" | tail -n 20 >&2 || true
kill -0 "$server" 2>/dev/null || fail "the server died"
! grep -q panicked "$folder/log" || fail "the server panicked"
exit $status
