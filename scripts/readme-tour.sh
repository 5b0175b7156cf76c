#!/usr/bin/env bash
# Runs the README's "A five-minute tour" as a reader would; tour.py says how.
set -euo pipefail
exec python3 "$(dirname "$0")/tour.py" --section "A five-minute tour" README.md
