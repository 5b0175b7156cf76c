#!/usr/bin/env bash
# Runs the shell and Python blocks of the README and of the guides, as a reader would who goes through all of them; tour.py
# says how. The change feed comes first, because it is shown from its first number. Those that need programs of their own are
# run by grpc-python.sh and mem0-client.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

TOUR_PYTHON=${XDG_CACHE_HOME:-$HOME/.cache}/memloom/python/bin/python \
    exec python3 scripts/tour.py docs/changes.md README.md docs/{files,memories,conversations,encryption,attachments,backup,configuration,operations,import,mcp,python,langgraph}.md
