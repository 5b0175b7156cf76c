#!/usr/bin/env bash
# A real peer for Azure Blob Storage in tests: Azurite, in memory, on a free port of the loopback interface.
#   scripts/azurite.sh install        installs it; run again, it only looks
#   scripts/azurite.sh start          starts a server, or finds the one that runs, and prints the url of its container
#   scripts/azurite.sh stop           ends the server
#   scripts/azurite.sh run COMMAND    runs a command beside a server of its own, with the url in MEMTROVE_TEST_AZURE
# The account and its key are those that Azurite is known by. One server belongs to one directory: MEMTROVE_AZURITE_DIR, or
# one that all runs of a user share. A server that nobody asked for in a quarter of an hour stops itself, unless the command
# that `run` started it for is still there.
set -euo pipefail
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")

package=azurite@3.35.0
container=memtrove
name=azurite
owned_by=MEMTROVE_AZURITE_DIR
told_by=MEMTROVE_TEST_AZURE
installed=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/npm/azurite
directory=${MEMTROVE_AZURITE_DIR:-${TMPDIR:-/tmp}/memtrove-azurite-$(id -u)}
. "$(dirname "$self")/test-server.sh"

install() {
    for program in node npm; do
        command -v "$program" >/dev/null || fail "$program is missing; install Node.js 20 or later"
    done
    mkdir -p "$installed"
    # Tests that run at the same time must not install at the same time.
    exec 8>"$installed/.lock"
    flock 8
    if [ "$(cat "$installed/installed" 2>/dev/null)" != "$package" ]; then
        echo "azurite: installing $package into $installed" >&2
        npm install --prefix "$installed" --no-audit --no-fund --loglevel=error "$package" >&2 || fail "npm cannot install $package"
        echo "$package" >"$installed/installed"
    fi
    exec 8>&-
}

runs() {
    [ -e "$directory/pid" ] && kill -0 "$(cat "$directory/pid")" 2>/dev/null
}

launch() {
    local port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    echo "http://127.0.0.1:$port/devstoreaccount1/$container" >"$directory/url"
    setsid node "$installed/node_modules/azurite/dist/src/blob/main.js" --inMemoryPersistence --blobHost 127.0.0.1 \
        --blobPort "$port" --skipApiVersionCheck --disableTelemetry --silent </dev/null >"$directory/log" 2>&1 9>&- &
    echo $! >"$directory/pid"
}

make_container() {
    python3 - "$(cat "$directory/url")" <<'PY' 2>/dev/null
import base64, email.utils, hmac, sys, urllib.parse, urllib.request
url = urllib.parse.urlsplit(sys.argv[1])
key = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
at, version = email.utils.formatdate(usegmt=True), "2021-08-06"
signed = "PUT" + "\n" * 12 + f"x-ms-date:{at}\nx-ms-version:{version}\n/devstoreaccount1{url.path}\nrestype:container"
signature = base64.b64encode(hmac.new(key, signed.encode(), "sha256").digest()).decode()
request = urllib.request.Request(sys.argv[1] + "?restype=container", method="PUT", headers={
    "x-ms-date": at, "x-ms-version": version, "Content-Length": "0",
    "Authorization": f"SharedKey devstoreaccount1:{signature}"})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5)
PY
}

start() {
    install
    mkdir -p "$directory"
    [ -O "$directory" ] || fail "$directory belongs to somebody else"
    # Tests that run at the same time share one server, and one of them starts it.
    exec 9>"$directory/lock"
    flock 9
    touch "$directory/used"
    if ! runs || [ ! -e "$directory/started" ]; then
        end
        # Another process may take a free port first.
        for attempt in 1 2 3; do
            launch
            for _ in $(seq 300); do
                runs || break
                ! make_container || { touch "$directory/started"; break 2; }
                sleep 0.1
            done
            end
            [ "$attempt" -lt 3 ] || { tail -n 20 "$directory/log" >&2; fail "the server does not start"; }
        done
        keep_watch
    fi
    exec 9>&-
    cat "$directory/url"
}

end() {
    if runs; then
        kill -KILL "$(cat "$directory/pid")"
        while runs; do sleep 0.05; done
    fi
    rm -f "$directory/started" "$directory/pid"
}

stop() {
    [ -d "$directory" ] || return 0
    exec 9>"$directory/lock"
    flock 9
    end
    # The folder itself stays: the lock is in it, and somebody may be waiting for that.
    rm -f "$directory/url" "$directory/used"
    exec 9>&-
}

is_used() {
    [ -n "$(find "$directory/used" -newermt "-$idle_seconds seconds" 2>/dev/null)" ]
}

case ${1:-} in
install) install ;;
start) start ;;
stop) stop ;;
run)
    shift
    run "$@"
    ;;
watch) watch "${2:-}" ;;
*) fail "say install, start, stop, or run COMMAND" ;;
esac
