"""The golden table: the digest that each operation must give in portable numerics on every machine.

`golden.json` holds one SHA-256 for each entry of `harness.doctor.operations.OPERATIONS`, and null for operations that
are known to differ between processors. After a change of an entry, or of the pinned torch, make the table again with

    python -m harness.doctor.golden --write

and run `python -m harness.doctor.portable_check`, which shows whether other processors agree, before you commit it.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.canonical_setup import canonical_setup, in_portable_environment, run_environment
from harness.doctor.operations import DIFFERS, OPERATIONS

TABLE = Path(__file__).with_name("golden.json")


@dataclass(frozen=True)
class Comparison:
    """The operations that agree with the golden table, those that do not, and those known to differ anyway."""

    same: tuple[str, ...]
    wrong: tuple[str, ...]
    differs: tuple[str, ...]

    @property
    def portable(self) -> bool:
        """Whether every operation that can agree does."""
        return not self.wrong


def compute_goldens(names: Iterable[str] = tuple(OPERATIONS)) -> dict[str, str]:
    """Return the SHA-256 (hex) of what each named operation gives in this process.

    The whole table takes about 0.2 s. The caller's state does not change, random numbers included. The numerics
    are the caller's, so call `canonical_setup` first. Raises `KeyError` for an unknown name.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        return {name: _digest(name) for name in names}


def _digest(name: str) -> str:
    digest = hashlib.sha256()
    for tensor in OPERATIONS[name]():
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_table() -> dict[str, Any]:
    """Return the repository's table: `format_version`, `torch`, and `digests` (null: known to differ)."""
    return json.loads(TABLE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def compare(digests: Mapping[str, str], table: Mapping[str, str | None] | None = None) -> Comparison:
    """Compare digests, of all operations or some, with the golden ones. An unknown name counts as wrong."""
    golden = read_table()["digests"] if table is None else table
    differs = tuple(name for name in digests if name in golden and golden[name] is None)
    same = tuple(name for name in digests if golden.get(name) == digests[name])
    return Comparison(same, tuple(name for name in digests if name not in {*differs, *same}), differs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print this machine's digests and its libraries as one JSON object, or write the table again."""
    parser = argparse.ArgumentParser(prog="python -m harness.doctor.golden", description=main.__doc__)
    parser.add_argument("--write", action="store_true", help=f"write the digests to {TABLE.name}")
    options = parser.parse_args(arguments)
    if not in_portable_environment():
        words = [sys.executable, "-m", "harness.doctor.golden", *(["--write"] if options.write else [])]
        return subprocess.run(words, env=run_environment("portable"), check=False).returncode
    canonical_setup(0, numerics="portable")
    digests = compute_goldens()
    if not options.write:
        cards = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        print(json.dumps({"digests": digests, "torch": str(torch.__version__), "cuda": cards}))
        return 0
    table = {
        "format_version": 1,
        "torch": torch.__version__.partition("+")[0],
        "digests": {name: None if name in DIFFERS else digest for name, digest in digests.items()},
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {len(digests)} digests to {TABLE}. Next: python -m harness.doctor.portable_check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
