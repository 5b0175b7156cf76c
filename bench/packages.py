"""Python packages that a script needs beyond the standard library."""
import os, pathlib, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def need(name, *packages):
    """Goes on in an environment that has these packages; scripts/venv.sh makes it the first time. Answers where it is."""
    made = subprocess.run([ROOT / "scripts" / "venv.sh", name, *packages], stdout=subprocess.PIPE, text=True)
    if made.returncode:
        raise SystemExit(f"the environment {name} cannot be made")
    venv = made.stdout.strip()
    if os.path.realpath(sys.prefix) != os.path.realpath(venv):
        python = os.path.join(venv, "bin", "python")
        os.execv(python, [python, *sys.argv])
    return venv
