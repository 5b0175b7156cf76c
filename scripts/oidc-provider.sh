#!/usr/bin/env bash
# A real OpenID Connect provider for tests.
#   scripts/oidc-provider.sh install      installs it; run again, it only looks
#   scripts/oidc-provider.sh start PORT   serves on 127.0.0.1:PORT and prints `ready <issuer>`;
#                                         with --leash only for as long as its standard input is open
set -euo pipefail
here=$(cd "$(dirname "$0")/../crates/memtrove-server/tests/oidc" && pwd)
packages=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/npm/oidc-provider

fail() {
    echo "oidc-provider: $*" >&2
    exit 1
}

install() {
    for program in node npm; do
        command -v "$program" >/dev/null || fail "$program is missing; install Node.js 20 or later"
    done
    mkdir -p "$packages"
    # Tests that run at the same time must not install at the same time.
    exec 9>"$packages/.lock"
    flock 9
    if ! cmp -s "$here/package-lock.json" "$packages/installed"; then
        echo "oidc-provider: installing into $packages" >&2
        cp "$here/package.json" "$here/package-lock.json" "$packages/"
        npm ci --prefix "$packages" --no-audit --no-fund --loglevel=error >&2 || fail "npm cannot install oidc-provider"
        cp "$here/package-lock.json" "$packages/installed"
    fi
    exec 9>&-
}

case ${1:-} in
install) install ;;
start)
    [ -n "${2:-}" ] || fail "say which port: $0 start PORT"
    install
    OIDC_PACKAGES=$packages exec node "$here/provider.mjs" "${@:2}"
    ;;
*) fail "say install, or start PORT" ;;
esac
