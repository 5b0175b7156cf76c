#!/usr/bin/env bash
# Makes a Python environment of its own in the cache, with these packages; run again, it only looks.
#   scripts/venv.sh NAME PACKAGE==VERSION...    prints where it is
set -euo pipefail

name=$1
shift
venv=${XDG_CACHE_HOME:-$HOME/.cache}/memtrove/$name
if [ "$(cat "$venv/installed" 2>/dev/null)" != "$*" ]; then
    echo "venv: installing $* into $venv" >&2
    rm -rf "$venv"
    # Without pip of its own: Debian leaves that part of venv to another package, and the system's pip can fill it too.
    python3 -m venv --without-pip "$venv" || { echo "venv: cannot create a Python environment in $venv" >&2; exit 1; }
    python3 -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check "$@" >&2 \
        || { echo "venv: pip cannot install $*" >&2; exit 1; }
    echo "$*" >"$venv/installed"
fi
echo "$venv"
