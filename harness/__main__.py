"""`python -m harness` is the `harness` command."""

import sys

if not sys.flags.safe_path:
    sys.path.pop(0)  # the current folder: a file called random.py there must not replace Python's own

from harness.cli import main

main()
