"""`make bench-unharmed PROGRAMS=folder`: compare public programs with themselves under `trainwreck.watch()`.

Each program runs twice as it is and twice watched, up to its 24th update: `untouched.py` describes the run. Weights and
random numbers must be the same bit for bit. A program whose two plain runs differ cannot show that; the table says so.
The times are processor times of this process, so other programs on the machine change them little.
"""

import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.bench_watch import run_program
from benchmarks.measure import ROOT, BenchmarkError, publish, this_machine

PAGE = ROOT / "docs" / "watched.md"
HEADINGS = ("program", "updates", "weights and random numbers", "time of a watched update", "later updates", "memory")
_SLOW = 0.02  # seconds of an update
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
    """Compare all programs, and print a table. The exit status is 1 if watching changed a program."""
    rows, results = [], []
    for program in json.loads((Path(__file__).parent / "programs.json").read_bytes()):
        name = program["name"]
        if only and name not in only.split():
            continue
        if not (programs / name / "run.json").is_file():
            raise BenchmarkError(f"{programs} has no program {name}.")
        found = compare(programs / name)
        results.append(found)
        ratios = [_ratio(found.get(key)) for key in ("seconds", "later", "memory")]
        rows.append([name, str(found["updates"]), found["bits"], *ratios])
        click.echo("  ".join(rows[-1]) + f"  {1000 * found.get('step', 0):.1f} ms", err=True)
    note = _summary(results)
    publish("unharmed", HEADINGS, rows, this_machine(), write=write, note=note, page=PAGE)
    sys.exit(any(found["bits"] == "DIFFER" for found in results))


def _summary(results: list[dict[str, Any]]) -> str:
    equal, differ = (sum(one["bits"] == name for one in results) for name in ("equal", "DIFFER"))
    words = [f"{len(results)} programs: {equal} have the same bits, {differ} have others because of the watch"]
    slow = [one for one in results if one.get("step", 0) >= _SLOW]
    for key, what in (("seconds", "time of a watched update"), ("later", "time of a later one"), ("memory", "memory")):
        for group, kind in ((results, "all"), (slow, f"updates of {_SLOW * 1000:.0f} ms or more")):
            ratios = [one[key] for one in group if one.get(key) is not None]
            if ratios:
                words.append(f"median {what} ({kind}): {median(ratios):.2f} x")
    return "; ".join(words) + "."


if __name__ == "__main__":
    main()
