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

suites=(acceptance agent attachments client files grpc mem0 memories changes encryption)

# What is about SQLite itself, and why. Everything else must pass on both engines alike.
only_sqlite=(
    "concurrency::a_second_process_on_the_same_data_folder_refuses_to_start|a folder has one owner; a database has many nodes"
    "jobs::reindex_leaves_a_folder_alone_that_a_server_uses|a folder has one owner; a database has many nodes"
    "a_rotation_does_not_say_that_traces_are_gone_while_somebody_reads|a reader keeps SQLite's log from being emptied"
)

# Chapters whose requests end before the store is asked, or that are about what the transport makes of its answer. They run on
# SQLite; `make test-backends` runs them on PostgreSQL too.
transport=(
    acceptance/{hosts,identity,limits,members,shell} agent/{guide,slots,tools,turn} files/{edits,envelope,http,identity,patches,paths}
    grpc/{fields,refusals,surface,transport,wire} mem0/{filters,hostile,refusals}
    memories/{boundaries,hostile,http,identifiers,instants,introspection,metadata,openspec_query}
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

# Of the whole workspace, as everything else is built: with `-p` cargo would compile dependencies again for other features.
status=0
for suite in "${suites[@]}"; do
    left_out=("${skips[@]}")
    for chapter in "${chapters[@]}"; do
        [ "${chapter%/*}" = "$suite" ] && left_out+=(--skip "${chapter#*/}::")
    done
    MEMTROVE_TEST_ENGINE=$engine cargo test --no-fail-fast --locked --workspace --test "$suite" -- "${left_out[@]}" "$@" || status=1
done
exit $status
