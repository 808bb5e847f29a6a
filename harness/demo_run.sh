#!/usr/bin/env bash
# Usage: harness/demo_run.sh [SEED] [BREAK] [OPTION ...]
# Makes one run (by default seed 42 and break none, the healthy experiment), prints its result as one JSON object,
# and writes run_<BREAK>_<SEED>/ and run_<BREAK>_<SEED>.tgz with its .sha256 into the current folder. Two runs write
# equal bytes. Further options go to python -m harness.trainer, such as --guardrails strict.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,6s/^# //p' "$0"; exit ;; esac
seed=${1:-42}
break=${2:-none}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$(command -v "$python")" ] || { echo "There is no $python: run make exercises once, or name a Python with PYTHON=." >&2; exit 2; }
folder=run_${break}_${seed}
exec "$python" -P -m harness.trainer --seed "$seed" --break "$break" --out "$folder" --tarball "$folder.tgz" --json "${@:3}"
