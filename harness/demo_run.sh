#!/usr/bin/env bash
# Usage: harness/demo_run.sh [SEED] [BREAK]
# Makes one run, prints its result as one JSON object, and leaves run_<BREAK>_<SEED>/ and, of the same files,
# run_<BREAK>_<SEED>.tgz with its .sha256 in the current folder. Two runs leave equal bytes.
set -euo pipefail
seed=${1:-42}
break=${2:-huge_lr}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$(command -v "$python")" ] || { echo "There is no $python: run make exercises once, or name a Python with PYTHON=." >&2; exit 2; }
folder=run_${break}_${seed}
exec "$python" -m harness.trainer --seed "$seed" --break "$break" --out "$folder" --tarball "$folder.tgz" --json
