#!/usr/bin/env bash
# Runs the suites that speak HTTP again, with every server on a PostgreSQL database of its own. Without a server that
# MEMLOOM_TEST_POSTGRES names, the tests start one. Further arguments are for the test runner: names to run only.
set -euo pipefail
cd "$(dirname "$0")/.."

suites=(acceptance attachments files grpc mem0 memories changes encryption)

# What is about SQLite itself, and why. Everything else must pass on both engines alike.
only_sqlite=(
    "concurrency::a_second_process_on_the_same_data_folder_refuses_to_start|a folder has one owner; a database has many nodes"
    "jobs::reindex_leaves_a_folder_alone_that_a_server_uses|a folder has one owner; a database has many nodes"
    "a_rotation_does_not_say_that_traces_are_gone_while_somebody_reads|a reader keeps SQLite's log from being emptied"
)

skips=()
echo "not run on PostgreSQL:"
for line in "${only_sqlite[@]}"; do
    name=${line%%|*}
    grep -rqF "fn ${name##*::}()" crates/memloom/tests || { echo "test-postgres: there is no test $name any more" >&2; exit 1; }
    echo "  $name: ${line#*|}"
    skips+=(--skip "$name")
done

tests=()
for suite in "${suites[@]}"; do
    tests+=(--test "$suite")
done
# Not with nextest, which runs every test in a process of its own: here the tests of a chapter share a server and its
# database, and making those is what takes the time.
MEMLOOM_TEST_ENGINE=postgres exec cargo test --no-fail-fast --locked -p memloom "${tests[@]}" -- "${skips[@]}" "$@"
