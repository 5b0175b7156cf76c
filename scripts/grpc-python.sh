#!/usr/bin/env bash
# Talks to a freshly started debug server with gRPC clients that Python generates on the spot: one from proto/, one from a
# contract that was written down independently of it. Both must be the same on the wire, and go through every call with every
# field. Then come docs/grpc.md and docs/recorder.md.
#   scripts/grpc-python.sh            runs all of it
#   scripts/grpc-python.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=(grpcio==1.85.1 grpcio-tools==1.85.1 grpcio-status==1.85.1 protobuf==7.36.2 buf-bin==1.75.0)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/memloom
venv=$cache/grpc
tests=crates/memloom/tests/grpc/python

fail() {
    echo "grpc-python: $*" >&2
    exit 1
}

install() {
    [ "$(cat "$venv/installed" 2>/dev/null)" = "${requirements[*]}" ] && return
    echo "grpc-python: installing ${requirements[*]} into $venv"
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

python() {
    "$venv/bin/python" "$@"
}
generate() {
    local from=$1 contract=$2 name=$3
    mkdir "$folder/$name"
    python -m grpc_tools.protoc --proto_path "$from" --python_out "$folder/$name" --grpc_python_out "$folder/$name" \
        --descriptor_set_out "$folder/$name/descriptors" "$contract" || fail "protoc cannot read $contract"
}
generate proto memory/v1/memory_service.proto ours
generate "$tests" reference.proto reference
python "$tests/compare.py" "$folder/ours/descriptors" "$folder/reference/descriptors" \
    || fail "proto/ is not what clients were made from"

(cd "$folder" && MEMLOOM_SERVER__LISTEN=127.0.0.1:0 MEMLOOM_SERVER__DATA_DIR=$folder/data MEMLOOM_RECORDER__MAX_BYTES=1MiB \
    exec "$binary" serve) >"$folder/log" 2>&1 &
server=$!
address=
for _ in $(seq 200); do
    address=$(grep -om1 '127\.0\.0\.1:[0-9]*' "$folder/log") && break
    kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; fail "the server did not start"; }
    sleep 0.1
done
[ -n "$address" ] || { cat "$folder/log" >&2; fail "the server printed no address"; }

through() {
    local name=$1 module=$2
    PYTHONPATH=$folder/$name timeout 60 "$venv/bin/python" "$tests/scenarios.py" "$address" "$module" && return
    grep -E ' (WARN|ERROR) ' "$folder/log" | tail -n 20 >&2 || true
    fail "the client that was made from $name failed (warnings of the server above)"
}
through ours memory.v1.memory_service
through reference reference

kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; fail "the server died"; }
! grep -q panicked "$folder/log" || { cat "$folder/log" >&2; fail "the server panicked"; }

# The guides, which bring a server of their own.
PATH=$venv/bin:$PATH TOUR_PYTHON=$venv/bin/python PYTHONPATH=$folder/ours python3 scripts/tour.py docs/grpc.md docs/recorder.md
echo "grpc-python: all clients understand the server"
