#!/usr/bin/env bash
# Runs the suites that speak HTTP, with every server on one engine. On PostgreSQL each has a database of its own; without a
# server that MEMTROVE_TEST_POSTGRES names, the tests start one.
#   scripts/test-http.sh sqlite|postgres [NAME...]    all of them, or the tests whose names contain one of these
#   scripts/test-http.sh postgres-differs             those that another engine could fail
#   scripts/test-http.sh filter                       a filter for nextest that leaves these suites out
#
# Not with nextest, which runs every test in a process of its own: here the tests of a chapter share a server, and starting
# those is what takes the time.
set -euo pipefail
cd "$(dirname "$0")/.."

suites=(memories files acceptance attachments changes grpc client mem0 agent encryption)

# What is about SQLite itself, and why. Everything else must pass on both engines alike.
only_sqlite=(
    "concurrency::a_second_process_on_the_same_data_folder_refuses_to_start|a folder has one owner; a database has many nodes"
    "jobs::reindex_leaves_a_folder_alone_that_a_server_uses|a folder has one owner; a database has many nodes"
    "a_rotation_does_not_say_that_traces_are_gone_while_somebody_reads|a reader keeps SQLite's log from being emptied"
    "kept_index::searches_find_the_same_after_a_restart|indexes are kept in files beside a database of SQLite"
    "kept_index::searches_find_the_same_after_a_restart_encrypted|indexes are kept in files beside a database of SQLite"
    "kept_index::a_damaged_file_is_made_anew|indexes are kept in files beside a database of SQLite"
    "kept_index::an_older_copy_of_the_database_refuses_a_newer_file|indexes are kept in files beside a database of SQLite"
    "kept_index::what_is_deleted_or_forgotten_takes_its_file_with_it|indexes are kept in files beside a database of SQLite"
    "kept_index::a_file_that_comes_back_after_a_removal_is_not_taken_for_the_scopes|indexes are kept in files beside a database of SQLite"
)

# Chapters that no other engine could fail without failing others, too. They run on SQLite; `make test-backends` runs them on
# PostgreSQL too.
transport=(
    # Requests that end before the store is asked, and what the transport makes of its answer.
    acceptance/{hosts,identity,limits,members,shell} files/{http,identity,patches,paths}
    grpc/{fields,identity,refusals,surface,transport,wire} mem0/{filters,principals,refusals}
    memories/{checks,http,identifiers,introspection,metadata,openspec_query,principals,settings}
    # What another server answers, and what becomes of that before anything is stored.
    attachments/sources memories/embedding_provider
    # Forms, ranges, signed addresses and gRPC around the same rows: attachments/{access,admin,deleting,linking} look at those.
    attachments/{calls,reading,signed,uploading}
    # A program over the routes of files: files/{assembly,concurrency,etags,listing,removing} ask those.
    agent/{files,guide,memory_tool,session,slots,tools,turn}
    # A program over all routes, which are asked one by one elsewhere; what it does when many change one file stays.
    client/{every_operation,examples,guide,streams}
    # One service behind two transports: what both do to a store is asked over REST.
    grpc/{parity,walk}
    # Other words for operations that memories/{adding,bulk,searching,updating} ask for.
    mem0/published memories/{openspec,openspec_batch}
)

engine=${1:-}
shift || true
skips=() chapters=()
if [ "$engine" = postgres-differs ]; then
    engine=postgres chapters=("${transport[@]}")
    echo "left to SQLite and to make test-backends: ${transport[*]}"
    for chapter in "${transport[@]}"; do
        [ -f "crates/memtrove/tests/$chapter.rs" ] || { echo "test-http: there is no chapter $chapter any more" >&2; exit 1; }
    done
fi
case $engine in
    filter)
        IFS='|'
        echo "not (package(=memtrove) and kind(test) and binary(/^(${suites[*]})\$/))"
        exit
        ;;
    sqlite) ;;
    postgres)
        echo "not run on PostgreSQL:"
        for line in "${only_sqlite[@]}"; do
            name=${line%%|*}
            grep -rqF "fn ${name##*::}()" crates/memtrove/tests || { echo "test-http: there is no test $name any more" >&2; exit 1; }
            echo "  $name: ${line#*|}"
            skips+=(--skip "$name")
        done
        ;;
    *)
        echo "usage: scripts/test-http.sh sqlite|postgres [NAME...], scripts/test-http.sh postgres-differs, or scripts/test-http.sh filter" >&2
        exit 2
        ;;
esac

# Of the whole workspace, as everything else is built: with `-p` cargo would compile dependencies again for other features. Once
# for all of them: cargo takes seconds to see that nothing has changed.
folder=$(mktemp -d)
declare -A program running=()
trap 'kill "${!running[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
cargo test --workspace --locked --no-run --message-format=json-render-diagnostics "${suites[@]/#/--test=}" >"$folder/built"
while read -r suite path; do
    program[$suite]=$path
done < <(python3 -c '
import json, sys
for built in map(json.loads, sys.stdin):
    if built.get("executable") and built["target"]["kind"] == ["test"]:
        print(built["target"]["name"], built["executable"])' <"$folder/built")

# Waits for one of those that run, and shows what it said.
status=0
reap() {
    local pid ended=0
    wait -n -p pid || ended=$?
    echo "==> ${running[$pid]} on $engine"
    cat "$folder/${running[$pid]}"
    [ $ended = 0 ] || { status=1; echo "test-http: ${running[$pid]} failed on $engine"; }
    unset "running[$pid]"
}

# Two at a time, the longest first: in each there are tests that wait.
export MEMTROVE_TEST_ENGINE=$engine
cd crates/memtrove
for suite in "${suites[@]}"; do
    left_out=("${skips[@]}")
    for chapter in "${chapters[@]}"; do
        [ "${chapter%/*}" = "$suite" ] && left_out+=(--skip "${chapter#*/}::")
    done
    [ ${#running[@]} -lt 2 ] || reap
    "${program[$suite]}" "${left_out[@]}" "$@" >"$folder/$suite" 2>&1 &
    running[$!]=$suite
done
while [ ${#running[@]} -gt 0 ]; do
    reap
done
exit $status
