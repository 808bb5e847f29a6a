"""`make faults`: every fault, and SIGKILL at a hundred random moments; the table, and one line of figures."""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from faults import damage, disks, graders, kills
from faults.fault import Absent, Fault, Outcome
from faults.kills import play_kills
from faults.lab import Lab, make_lab
from grader.report.text import clipped
from grader.sandbox import sandbox_problem

FAULTS: tuple[Fault, ...] = (*disks.FAULTS, *damage.FAULTS, *kills.FAULTS, *graders.FAULTS)


def main(words: list[str]) -> int:
    """Do what is asked for and show it; 0 where everything held, 1 where something did not, 2 without a sandbox."""
    parser = argparse.ArgumentParser(prog="python -m faults")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="this fault alone; repeatable"
    )
    parser.add_argument("--kills", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    asked = parser.parse_args(words)
    console = Console(stderr=True)
    if problem := sandbox_problem():
        console.print(problem, markup=False)
        return 2
    killed = Fault(
        "killed",
        f"SIGKILL at {asked.kills} random moments, and started again",
        "the same bytes, no replay repeated, nothing left running",
        lambda lab, place: play_kills(lab, place, kills=asked.kills, seed=asked.seed),
    )
    faults = [fault for fault in (*FAULTS, killed) if not asked.only or fault.id in asked.only]
    if unknown := set(asked.only) - {fault.id for fault in faults}:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        console.print("making a small class, and scoring it undisturbed")
        lab = make_lab(Path(folder))
        outcomes = [_played(fault, lab, console) for fault in faults]
    _show(outcomes, time.monotonic() - began)
    return int(any(outcome.held == "NO" for outcome in outcomes))


def _played(fault: Fault, lab: Lab, console: Console) -> Outcome:
    began = time.monotonic()
    try:
        outcome = Outcome(fault, "yes", fault.play(lab, lab.place(fault.id)))
    except Absent as reason:
        outcome = Outcome(fault, "not tried", str(reason))
    except Exception as error:
        console.print(traceback.format_exc(), markup=False, highlight=False)
        outcome = Outcome(fault, "NO", f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - began
    console.print(f"{fault.id}: held: {outcome.held} ({seconds:.0f} s)", markup=False, highlight=False)
    return outcome


def _show(outcomes: list[Outcome], seconds: float) -> None:
    table = Table(
        title="What befalls the grader, and what comes of it", title_justify="left", show_lines=True
    )
    for heading in ("fault", "what is done", "expected", "seen", "held"):
        table.add_column(heading)
    for outcome in outcomes:
        fault = outcome.fault
        table.add_row(
            fault.id, fault.says, fault.expected, escape(clipped(outcome.seen, 400)), outcome.held,
            style="red" if outcome.held == "NO" else None,
        )  # fmt: skip
    console = Console()
    console.print(table)
    count = {held: sum(outcome.held == held for outcome in outcomes) for held in ("yes", "NO", "not tried")}
    console.print(
        f"{len(outcomes)} faults: {count['yes']} held, {count['NO']} did not, {count['not tried']} could not be tried"
        f" here; {seconds:.0f} s",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
