#!/usr/bin/env bash
# Runs every shell block of the guides, after those of the README, as a reader would; tour.py says how.
set -euo pipefail
exec python3 "$(dirname "$0")/tour.py" README.md docs/{files,memories,changes,conversations,encryption,recorder,attachments}.md
