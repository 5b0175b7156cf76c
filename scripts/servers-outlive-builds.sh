#!/usr/bin/env bash
# A server under `run` lives as long as its command, however long that does not use it: a cold build before the tests may
# take longer than an idle server waits. And it is gone afterwards, even if the command was killed.
set -euo pipefail
cd "$(dirname "$0")"

fail() {
    echo "servers-outlive-builds: $*" >&2
    exit 1
}

# Each is idle for three times as long as it may be.
export MEMTROVE_TEST_IDLE=2
outlives() {
    local name=$1 variable=$2 address outlived
    outlived=$(mktemp)
    # shellcheck disable=SC2016
    "./$name.sh" run bash -c '
        sleep 6
        address=${!0#*://} address=${address#*@} address=${address%%/*}
        echo "$address" >"$1"
        exec 3<>"/dev/tcp/${address%:*}/${address#*:}"' "$variable" "$outlived" \
        || fail "$name.sh run: the server was gone before its command"
    address=$(cat "$outlived")
    rm -f "$outlived"
    ! (exec 3<>"/dev/tcp/${address%:*}/${address#*:}") 2>/dev/null || fail "$name.sh run: the server outlived its command"
}

# All at once, because they mostly wait.
waiting=()
for server in postgres:MEMTROVE_TEST_POSTGRES seaweedfs:MEMTROVE_TEST_S3 azurite:MEMTROVE_TEST_AZURE; do
    outlives "${server%:*}" "${server#*:}" &
    waiting+=($!)
done
status=0
for one in "${waiting[@]}"; do
    wait "$one" || status=1
done
[ $status = 0 ] || exit 1
echo "servers-outlive-builds: each server lived as long as its command"
