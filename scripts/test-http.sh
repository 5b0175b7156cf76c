#!/usr/bin/env bash
# Runs the suites that speak HTTP, with every server on one engine. On PostgreSQL each has a database of its own; without a
# server that MEMTROVE_TEST_POSTGRES names, the tests start one.
#   scripts/test-http.sh sqlite|postgres [NAME...]    all of them, or the tests whose names contain one of these
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

engine=${1:-}
shift || true
skips=()
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
        echo "usage: scripts/test-http.sh sqlite|postgres [NAME...], or scripts/test-http.sh filter" >&2
        exit 2
        ;;
esac

tests=()
for suite in "${suites[@]}"; do
    tests+=(--test "$suite")
done
# Of the whole workspace, as everything else is built: with `-p` cargo would compile dependencies again for other features.
MEMTROVE_TEST_ENGINE=$engine exec cargo test --no-fail-fast --locked --workspace "${tests[@]}" -- "${skips[@]}" "$@"
