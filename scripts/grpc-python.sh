#!/usr/bin/env bash
# Talks to a freshly started debug server with gRPC clients that Python generates on the spot: one from proto/, one from a
# contract that was written down independently of it. Both must be the same on the wire, and go through every call with every
# field. Then come docs/grpc.md and docs/recorder.md.
#   scripts/grpc-python.sh            runs all of it
#   scripts/grpc-python.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$(scripts/venv.sh grpc grpcio==1.85.1 grpcio-tools==1.85.1 grpcio-status==1.85.1 protobuf==7.36.2 buf-bin==1.75.0)
tests=crates/memtrove/tests/grpc/python
[ "${1:-}" != install ] || exit 0

fail() {
    echo "grpc-python: $*" >&2
    exit 1
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
generate() {
    local from=$1 contract=$2 name=$3
    mkdir "$folder/$name"
    "$venv/bin/python" -m grpc_tools.protoc --proto_path "$from" --python_out "$folder/$name" \
        --grpc_python_out "$folder/$name" --descriptor_set_out "$folder/$name/descriptors" "$contract" \
        || fail "protoc cannot read $contract"
}
generate proto memory/v1/memory_service.proto ours
generate "$tests" reference.proto reference
"$venv/bin/python" "$tests/compare.py" "$folder/ours/descriptors" "$folder/reference/descriptors" \
    || fail "proto/ is not what clients were made from"

through() {
    local name=$1 module=$2
    PYTHONPATH=$folder/$name scripts/with-server.sh MEMTROVE_RECORDER__MAX_BYTES=1MiB \
        timeout 60 "$venv/bin/python" "$tests/scenarios.py" "$module" || fail "the client that was made from $name failed"
}
through ours memory.v1.memory_service
through reference reference

# The guides, which bring a server of their own.
PATH=$venv/bin:$PATH TOUR_PYTHON=$venv/bin/python PYTHONPATH=$folder/ours python3 scripts/tour.py docs/grpc.md docs/recorder.md
echo "grpc-python: all clients understand the server"
