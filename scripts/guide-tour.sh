#!/usr/bin/env bash
# Runs every shell block of the guides as a reader would; tour.py says how.
set -euo pipefail
exec python3 "$(dirname "$0")/tour.py" docs/{files,encryption,changes,conversations}.md
