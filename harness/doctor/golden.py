"""Write the golden table of expected digests, and compare this process with it.

With portable numerics (settings under which all processors should compute the same bytes), every machine must get the
digests in the table. `golden.json` contains one SHA-256 for each operation, and null for an operation whose results are
known to differ between processors. After you change an operation or the pinned version of torch, write the table again
with

    python -m harness.doctor.golden --write

Before you commit it, run `make test-portable`, which shows whether other processors agree.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from harness.canonical_setup import canonical_setup, in_portable_environment, run_environment
from harness.doctor.operations import DIFFERS, OPERATIONS

TABLE = Path(__file__).with_name("golden.json")


def compute_goldens(names: Iterable[str] = tuple(OPERATIONS)) -> dict[str, str]:
    """Compute these operations in this process and return {name: SHA-256 (hex) of the results}.

    All operations together take about 0.2 s. The state of the random generators does not change. Call `canonical_setup`
    first.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        return {name: _digest(name) for name in names}


def _digest(name: str) -> str:
    digest = hashlib.sha256()
    for tensor in OPERATIONS[name]():
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_table() -> dict[str, Any]:
    """Return the golden table with the keys `format_version`, `torch` (its version) and `digests`."""
    return json.loads(TABLE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def judge(digests: Mapping[str, str]) -> dict[str, str]:
    """Return "same" or "wrong" for each digest, or "differs" if processors need not agree."""
    golden = read_table()["digests"]
    return {
        name: "differs" if golden[name] is None else "same" if golden[name] == digest else "wrong"
        for name, digest in digests.items()
    }


def main() -> int:
    """Print as JSON how this process compares with the table or, with `--write`, write the table again."""
    if not in_portable_environment():
        words = [sys.executable, "-m", "harness.doctor.golden", *sys.argv[1:]]
        return subprocess.run(words, env=run_environment("portable"), check=False).returncode
    canonical_setup(0, numerics="portable")
    digests = compute_goldens()
    release = torch.__version__.partition("+")[0]
    if sys.argv[1:] != ["--write"]:
        cards = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        found = {"operations": judge(digests), "torch": release, "golden_torch": read_table()["torch"]}
        print(json.dumps({**found, "cuda": cards}))
        return 0
    kept = {name: None if name in DIFFERS else digest for name, digest in digests.items()}
    table = {"format_version": 1, "torch": release, "digests": kept}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {len(digests)} digests to {TABLE}. Next: make test-portable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
