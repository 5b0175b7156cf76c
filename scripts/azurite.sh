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

launch() {
    local port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    echo "http://127.0.0.1:$port/devstoreaccount1/$container" >"$directory/url"
    setsid node "$installed/node_modules/azurite/dist/src/blob/main.js" --inMemoryPersistence --blobHost 127.0.0.1 \
        --blobPort "$port" --skipApiVersionCheck --disableTelemetry --silent </dev/null >"$directory/log" 2>&1 9>&- &
    echo $! >"$directory/pid"
}

# Makes its container, too.
answers() {
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

obey "$@"
