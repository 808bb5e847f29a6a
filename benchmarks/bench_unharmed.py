"""`make bench-unharmed PROGRAMS=folder`: compare public programs with themselves under `trainwreck.watch()`.

Each program runs twice as it is and twice watched, up to its 24th update: `untouched.py` describes the run. Weights and
random numbers must be the same bit for bit. A program whose two plain runs differ cannot show that; the table says so.
The times are processor times of this process, so other programs on the machine change them little.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.bench_watch import chosen_programs, list_programs, run_program
from benchmarks.measure import ROOT, merge, publish, read_table, row_note, this_machine

PAGE = ROOT / "docs" / "watched.md"
HEADINGS = (
    "program", "updates", "weights and random numbers", "an update alone", "watched", "later updates", "memory",
)  # fmt: skip
_SLOW = 20.0  # milliseconds of an update
os.environ["PYTHONHASHSEED"] = "0"  # the order of a set decides what some programs train on
_RUNNER = Path(__file__).with_name("untouched.py")


def measure(folder: Path, kind: str) -> dict[str, Any]:
    """Run a program `plain` or `watched`, and return its result, `{}` if it has none."""
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch, "result.json")
        run_program(folder, [str(_RUNNER), str(result), kind])
        return json.loads(result.read_bytes()) if result.is_file() else {}


def compare(folder: Path) -> dict[str, Any]:
    """Return what four runs of a program say: whether its bits stay, and the ratios of times and of memory."""
    runs = [measure(folder, kind) for kind in ("plain", "watched", "plain", "watched")]
    if not all(runs):
        return {"updates": 0, "bits": "not run"}
    plain, seen = runs[::2], runs[1::2]
    if plain[0]["digest"] != plain[1]["digest"]:
        bits = "differ without watching"
    else:
        bits = "equal" if all(run["digest"] == plain[0]["digest"] for run in seen) else "DIFFER"
    found: dict[str, Any] = {"updates": seen[0]["updates"], "bits": bits}
    for name in ("seconds", "later", "memory"):
        has_all = all(run[name] for run in runs)
        found[name] = min(run[name] for run in seen) / min(run[name] for run in plain) if has_all else None
    found["step"] = min(run["seconds"] for run in plain) if found["seconds"] else 0
    return found


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} x"


@click.command()
@click.option("--programs", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", default="", help="names of programs, separated by spaces")
@click.option("--write", is_flag=True, help=f"write the table to {PAGE.relative_to(ROOT)}")
def main(programs: Path, only: str, *, write: bool) -> None:
    """Compare all programs, and print a table. The exit status is 1 if watching changed a program.

    With `--only`, the table keeps the rows of the other programs from the page.
    """
    new = []
    for program in chosen_programs(programs, only):
        name = program["name"]
        found = compare(programs / name)
        ratios = [_ratio(found.get(key)) for key in ("seconds", "later", "memory")]
        alone = f"{1000 * found['step']:.1f} ms" if found.get("step") else "-"
        new.append([name, str(found["updates"]), found["bits"], alone, *ratios])
        click.echo("  ".join(new[-1]), err=True)
    rows = merge(read_table("unharmed", PAGE), new, [one["name"] for one in list_programs()])
    note = f"{_summary(rows)} {row_note(new, rows)}".rstrip()
    publish("unharmed", HEADINGS, rows, this_machine(), write=write, note=note, page=PAGE)
    sys.exit(any(row[2] == "DIFFER" for row in rows))


def _summary(rows: Sequence[Sequence[str]]) -> str:
    equal, differ = (sum(row[2] == bits for row in rows) for bits in ("equal", "DIFFER"))
    words = [f"{len(rows)} programs: {equal} have the same bits, {differ} have others because of the watch"]
    slow = [row for row in rows if row[3] != "-" and float(row[3].split()[0]) >= _SLOW]
    for at, what in ((4, "time of a watched update"), (5, "time of a later one"), (6, "memory")):
        for group, kind in ((rows, "all"), (slow, f"updates of {_SLOW:.0f} ms or more")):
            ratios = [float(row[at].split()[0]) for row in group if row[at] != "-"]
            if ratios:
                words.append(f"median {what} ({kind}): {median(ratios):.2f} x")
    return "; ".join(words) + "."


if __name__ == "__main__":
    main()
