"""The golden table: the digest that each operation must give in portable numerics on every machine.

`golden.json` holds one SHA-256 for each entry of `harness.doctor.golden_operations.OPERATIONS`, and null for those
known to differ between processors. After a change of an entry, or of the pinned torch, make it anew with

    python -m harness.doctor.golden --write

and check with `python -m harness.doctor.portable_check` that other processors agree before it is committed.
"""

import argparse
import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.doctor.golden_operations import DIFFERS, OPERATIONS, SENTINELS
from harness.run.environment import Numerics, run_environment
from harness.run.numerics import canonical_setup, in_portable_environment

TABLE = Path(__file__).with_name("golden.json")
_FORMAT_VERSION = 1


@dataclass(frozen=True)
class Comparison:
    """Which operations agree with the golden table, which do not, and which are known to differ anyway."""

    same: tuple[str, ...]
    wrong: tuple[str, ...]
    differs: tuple[str, ...]

    @property
    def portable(self) -> bool:
        """Whether every operation that can agree does."""
        return not self.wrong


def compute_goldens(names: Iterable[str] = tuple(OPERATIONS)) -> dict[str, str]:
    """Return the SHA-256 (hex) of what each named operation gives here and now, by its name.

    The whole table takes about 0.2 s. Nothing of the caller's state is changed, random numbers included;
    numerics are the caller's own, so call `canonical_setup` first. Raises `KeyError` for an unknown name.
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


def platform_class(numerics: Numerics, device: str) -> dict[str, Any]:
    """Return what decides whether another machine's run must have the same bytes (see
    `harness.doctor.platform_class.same_class`).

    `golden` is true or false for portable numerics on the processor: whether the sentinels of the golden
    table, at least one for each setting that portable numerics consist of, come out right in this very
    process (20 ms; `harness doctor` recomputes the whole table). It is null where no table applies: native
    numerics, a CUDA card, another release of torch.

    On the processor `torch` is the release alone. "+cpu" and "+cu130" name the CUDA libraries packed with it,
    which such a run never calls; the golden digests tell whether the numbers agree. On a card it is in full,
    and `device` is the card's name.
    """
    on_card = device.startswith("cuda")
    release = torch.__version__.partition("+")[0]
    golden = None
    if numerics == "portable" and not on_card and release == read_table()["torch"]:
        golden = compare(compute_goldens(SENTINELS)).portable
    return {
        "architecture": architecture(),
        "numerics": numerics,
        "device": torch.cuda.get_device_name(torch.device(device)) if on_card else "cpu",
        "torch": str(torch.__version__) if on_card else release,
        "golden": golden,
    }


def architecture() -> str:
    """Return this machine's instruction set, by one name on every system: x86_64 or aarch64, say."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def _write(digests: Mapping[str, str]) -> None:
    table = {
        "format_version": _FORMAT_VERSION,
        "torch": torch.__version__.partition("+")[0],
        "digests": {name: None if name in DIFFERS else digest for name, digest in digests.items()},
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print this machine's digests and its libraries as one JSON object, or write the table anew."""
    parser = argparse.ArgumentParser(prog="python -m harness.doctor.golden", description=main.__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the digests into {TABLE.name}")
    options = parser.parse_args(arguments)
    if not in_portable_environment():
        words = [sys.executable, "-m", "harness.doctor.golden", *(["--write"] if options.write else [])]
        return subprocess.run(words, env=run_environment("portable"), check=False).returncode
    canonical_setup(0, numerics="portable")
    digests = compute_goldens()
    if options.write:
        _write(digests)
        print(f"Wrote {len(digests)} digests to {TABLE}. Next: python -m harness.doctor.portable_check")
    else:
        print(json.dumps({"digests": digests, "torch": str(torch.__version__), "cuda": _cards()}))
    return 0


def _cards() -> list[str]:
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


if __name__ == "__main__":
    sys.exit(main())
