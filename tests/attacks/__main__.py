"""`make redteam`: every attack alone in a class of its own, then all of them in one class, and what became of them."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attacks.attack import Attack, Family
from attacks.catalogue import ALL, chosen
from attacks.judge import attack_faults, class_faults, known_points, row_of
from attacks.lab import Lab, Scored, make_lab, score_class
from attacks.views import class_view_faults, view_faults
from grader.replay.replayer import ENGINES, Engine
from grader.sandbox import sandbox_problem
from harness.run.provenance import usable_cores

OTHERS = ("loss_sum",)


@dataclass(frozen=True)
class Result:
    """What became of one attack: the grader's verdict in words, what went wrong, and how long its own class took."""

    attack: Attack
    given: str
    faults: tuple[str, ...]
    seconds: float | None


def main() -> int:
    """Run the attacks that were asked for; 1 where one did not hold, 2 for wrong use."""
    asked = _arguments()
    # Bound to it: in other threads, commands that are tried put something else in its place for a while.
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160)
    try:
        attacks = chosen(asked.only, asked.family)
    except LookupError as error:
        console.print(str(error), markup=False)
        return 2
    if (problem := sandbox_problem()) is not None:
        console.print(problem, markup=False)
        return 2
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="red-team-") as name:
        lab = make_lab(Path(name), others=OTHERS, jobs=asked.jobs, engine=asked.engine)
        console.print(
            f"{len(lab.honest)} honest submissions, {len(attacks)} attacks, engine {asked.engine}",
            highlight=False,
        )
        results: list[Result] = []
        in_one: list[Result] = []
        if not asked.together:
            with ThreadPoolExecutor(asked.jobs) as pool:
                for result in pool.map(lambda attack: alone(lab, attack, engine=asked.engine), attacks):
                    results.append(result)
                    _say(console, result)
        faults: list[str] = []
        if asked.together or len(attacks) > 1:
            in_one, faults = together(lab, attacks, jobs=asked.jobs, engine=asked.engine)
            faults += [f"{result.attack.id}: {fault}" for result in in_one for fault in result.faults]
    results = results or in_one
    _table(console, results)
    for fault in faults:
        console.print(f"all together: {fault}", markup=False, highlight=False, style="red")
    held = sum(not result.faults for result in results)
    where = "in one class" if asked.together else "alone"
    console.print(
        f"{held} of {len(results)} attacks held {where}, {len(faults)} faults with all of them in one class;"
        f" {sum(attack.slow for attack in attacks)} ended at a limit of time;"
        f" {time.monotonic() - start:.0f} s.",
        highlight=False,
        style="bold",
    )
    return 0 if held == len(results) and not faults else 1


def alone(lab: Lab, attack: Attack, *, engine: Engine) -> Result:
    """Score one attack beside the honest submissions, whose replays are remembered, and judge all that is seen."""
    scored = score_class(lab, attack.id, [attack], memory=lab.alone.memory, jobs=1, engine=engine)
    faults = [*class_faults(lab, scored)]
    if scored.rows():
        faults += [*attack_faults(attack, lab, scored), *view_faults(attack, scored)]
        faults += class_view_faults(scored, lab.folder / attack.id / "exports")
    result = Result(attack, _given(attack, scored), tuple(faults), scored.seconds)
    shutil.rmtree(lab.folder / attack.id)
    return result


def together(
    lab: Lab, attacks: Sequence[Attack], *, jobs: int, engine: Engine
) -> tuple[list[Result], list[str]]:
    """Score all attacks beside the honest submissions, everything replayed anew.

    Returns what became of each, and what went wrong with the class.
    """
    scored = score_class(lab, "together", attacks, memory=None, jobs=jobs, engine=engine)
    faults = list(class_faults(lab, scored))
    if scored.rows():
        faults += class_view_faults(scored, lab.folder / "together" / "exports")
    results = []
    for attack in attacks:
        own = (*attack_faults(attack, lab, scored), *view_faults(attack, scored))
        results.append(Result(attack, _given(attack, scored), own, None))
    return results, faults


def _given(attack: Attack, scored: Scored) -> str:
    row = row_of(attack, scored)
    if row is None:
        return "nothing"
    if row["status"] == "rejected":
        return "rejected"
    return f"{row['status']}, {known_points(row):g} ({known_points(row, 'fix'):g} for the fix)"


def _say(console: Console, result: Result) -> None:
    line = Text(
        "held    " if not result.faults else "FAILED  ", style="green" if not result.faults else "red"
    )
    line.append(f"{result.attack.id}  {result.given}  {_seconds(result)} s", style="default")
    console.print(line)
    for fault in result.faults:
        console.print(Text(f"        {fault}"))


def _table(console: Console, results: Sequence[Result]) -> None:
    table = Table("attack", "family", "what it does", "expected", "given", "s", "held")
    for result in results:
        attack = result.attack
        expected = " or ".join(attack.expected.status)
        if attack.expected.status != ("rejected",):
            expected += f", at most {attack.expected.gains_over}"
        words = (attack.id, attack.family, attack.says, expected, result.given, _seconds(result))
        held = Text("no", style="bold red") if result.faults else Text("yes", style="green")
        table.add_row(*(Text(_fit(word)) for word in words), held)
    console.print(table)


def _seconds(result: Result) -> str:
    return "" if result.seconds is None else f"{result.seconds:.1f}"


def _fit(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make redteam", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="this attack alone; repeatable"
    )
    parser.add_argument("--family", choices=get_args(Family), help="the attacks of one family")
    parser.add_argument("--together", action="store_true", help="all in one class, none alone")
    parser.add_argument(
        "--jobs", type=int, default=usable_cores(), help=f"classes side by side, of {len(ALL)}"
    )
    parser.add_argument(
        "--sandbox",
        dest="engine",
        choices=ENGINES,
        default="warm",
        help="as of `grader score` (default: warm)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
