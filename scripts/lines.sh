#!/usr/bin/env bash
# Counts the lines of Rust per crate: what is built, and what tests it. Inline tests (they stand last in a file), files called
# tests and the testkit count as tests. `scripts/lines.sh COMMIT` counts that commit.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    git archive "$1" | tar -x -C "$tree"
    cd "$tree"
fi

count() {
    xargs -0 -x -s 1500000 awk '
        FNR == 1 {
            split(FILENAME, part, "/")
            crate = part[1] == "crates" ? part[2] : part[1]
            test = crate ~ /-testkit$/ || FILENAME ~ /\/tests(\/|\.rs$)/
        }
        # `mod tests;` only names a file of its own.
        marked && /^(pub(\([a-z]+\))? )?mod [a-z_]+ \{/ { test = 1 }
        { marked = /^#\[cfg\(test\)\]$/; lines[crate, test]++; crates[crate] }
        END { for (crate in crates) print crate, lines[crate, 0] + 0, lines[crate, 1] + 0 }'
}

find crates bench -name '*.rs' -print0 | count | sort | awk '
    BEGIN { printf "%-20s %8s %8s\n", "", "src", "tests" }
    { printf "%-20s %8d %8d\n", $1, $2, $3; src += $2; tests += $3 }
    END { printf "%-20s %8d %8d\n", "all", src, tests }'
