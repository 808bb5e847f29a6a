"""`make bench-watch PROGRAMS=folder`: watch public training programs, and list what the checks say about them.

`programs.json` names the programs: the address and commit, the kind of task and the command. The folder, made by
`python -m benchmarks.programs`, has each program in a folder of its name, with a file `run.json` that gives the
command, the working folder `cwd`, variables `env` and the interpreter `python`. Their data are replaced from outside by
`stand_ins`, so that each program runs unchanged on small data. The programs are not part of this repository.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import click

from benchmarks.measure import ROOT, BenchmarkError, merge, publish, read_table, row_note, this_machine

PAGE = ROOT / "docs" / "watched.md"
HEADINGS = ("program", "kind of task", "updates", "alarms", "advice", "seconds")
_SECONDS = 600


def watch_program(folder: Path, edited: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Watch a copy of a program, and return the JSON result of the command with its `seconds` and its exit `status`.

    `edited` gives other texts for some of its files. The seconds are processor time of the command and its children, so
    that other programs on the machine change them little.
    """
    begun = _processor_seconds()
    output, status = run_program(folder, ["-m", "trainwreck", "--json"], edited)
    found: dict[str, Any] = json.loads(output.splitlines()[-1]) if output.strip() else {"steps": 0, "findings": []}
    return {**found, "seconds": _processor_seconds() - begun, "status": status}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_program(
    folder: Path, words: Sequence[str], edited: Mapping[str, str] = MappingProxyType({})
) -> tuple[bytes, int | None]:
    """Run Python with these words and the command of a program, in a copy of its folder.

    `edited` gives other texts for some of its files. Return the output, empty if the time is over, and the exit status.
    """
    run = json.loads((folder / "run.json").read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(folder, Path(scratch, folder.name)))
        for name, text in edited.items():
            (copy / name).write_text(text, encoding="utf-8")
        environment = {**os.environ, **run["env"]}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
        with subprocess.Popen(
            [run["python"], *words, *run["command"]],
            cwd=copy / run["cwd"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                output = b""
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        return output, process.returncode


def chosen_programs(folder: Path, only: str) -> list[dict[str, Any]]:
    """Return the entries of `programs.json`: all, or those whose names, separated by spaces, are in `only`.

    Raises `BenchmarkError` if the folder lacks one of them.
    """
    chosen = [one for one in list_programs() if not only or one["name"] in only.split()]
    for program in chosen:
        if not (folder / program["name"] / "run.json").is_file():
            raise BenchmarkError(f"{folder} has no program {program['name']}.")
    return chosen


def list_programs() -> list[dict[str, Any]]:
    """Return all entries of `programs.json`."""
    listed: list[dict[str, Any]] = json.loads((Path(__file__).parent / "programs.json").read_bytes())
    return listed


def row_of(program: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Return the cells of a program."""
    names = {
        level: ", ".join(
            dict.fromkeys(f"{one['check']}/{one['outcome']}" for one in found["findings"] if one["level"] == level)
        )
        for level in ("alarm", "advice")
    }
    kind, updates = program["kind"], str(found["steps"])
    return [program["name"], kind, updates, names["alarm"], names["advice"], f"{found['seconds']:.0f}"]


@click.command()
@click.option("--programs", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", default="", help="names of programs, separated by spaces")
@click.option("--write", is_flag=True, help=f"write the table to {PAGE.relative_to(ROOT)}")
def main(programs: Path, only: str, *, write: bool) -> None:
    """Watch all programs, and print a table. The exit status is 1 if a check raised an alarm.

    With `--only`, the table keeps the rows of the other programs from the page.
    """
    new = []
    for program in chosen_programs(programs, only):
        new.append(row_of(program, watch_program(programs / program["name"])))
        click.echo("  ".join(new[-1]), err=True)
    rows = merge(read_table("programs", PAGE), new, [one["name"] for one in list_programs()])
    alarms, advised = (sum(bool(row[at]) for row in rows) for at in (3, 4))
    watched, seconds = sum(row[2] != "0" for row in rows), median(float(row[5]) for row in rows)
    note = (
        f"{watched} of {len(rows)} programs were watched: {alarms} with an alarm, {advised} with advice."
        f" The command takes {seconds:.0f} s of processor time (median). {row_note(new, rows)}"
    ).rstrip()
    publish("programs", HEADINGS, rows, this_machine(), write=write, note=note, page=PAGE)
    sys.exit(1 if alarms else 0)


if __name__ == "__main__":
    main()
