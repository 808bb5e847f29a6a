"""`make redteam`: score every attack alone, then all attacks in one class, and print the results."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

from attacks.attack import Attack, Family
from attacks.catalogue import chosen
from attacks.judge import UNFIT, attack_faults, class_faults, known_points, row_of
from attacks.lab import Lab, Scored, make_lab, score_class
from attacks.score_scripts import SCRIPT_RECIPE
from grader.replay.replayer import ENGINES, Engine
from grader.sandbox import sandbox_problem
from harness.canonical_setup import usable_cores

OTHERS = ("loss_sum",)


def main() -> int:
    """Run the chosen attacks. Return 0 if the grader resisted all of them, 1 if not, and 2 for wrong usage."""
    asked = _arguments()
    try:
        attacks = chosen(asked.only, asked.family)
        if problem := sandbox_problem():
            raise LookupError(problem)
    except LookupError as error:
        print(error.args[0])
        return 2
    start = time.monotonic()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="red-team-") as name:
        with_script = any(attack.recipe == SCRIPT_RECIPE for attack in attacks)
        lab = make_lab(Path(name), others=OTHERS, jobs=asked.jobs, engine=asked.engine, with_script=with_script)
        print(f"{len(lab.honest)} honest submissions, {len(attacks)} attacks, engine {asked.engine}", flush=True)
        if not asked.together:
            with ThreadPoolExecutor(asked.jobs) as pool:
                failed += sum(pool.map(lambda attack: not _alone(lab, attack, asked.engine), attacks))
        if asked.together or len(attacks) > 1:
            failed += _together(lab, attacks, asked.jobs, asked.engine)
    print(f"{failed or 'none'} of {len(attacks)} attacks failed; {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


def _alone(lab: Lab, attack: Attack, engine: Engine) -> bool:
    """Score one attack together with the honest submissions. Return whether the grader resisted.

    The replays of the honest submissions are cached.
    """
    scored = score_class(lab, attack.id, [attack], memory=lab.alone.memory, jobs=1, engine=engine)
    faults = [*class_faults(lab, scored), *attack_faults(attack, lab, scored)]
    given = _given(attack, scored)
    shutil.rmtree(lab.folder / attack.id)
    return _say(attack.id, given, scored.seconds, faults)


def _together(lab: Lab, attacks: Sequence[Attack], jobs: int, engine: Engine) -> int:
    """Score all attacks together with the honest submissions, without cached replays. Return the number of problems."""
    scored = score_class(lab, "together", attacks, memory=None, jobs=jobs, engine=engine)
    faults = list(class_faults(lab, scored))
    for attack in attacks:
        faults += [f"{attack.id}, {_given(attack, scored)}: {one}" for one in attack_faults(attack, lab, scored)]
    _say("all together", f"{len(attacks)} attacks in one class", scored.seconds, faults)
    return len(faults)


def _given(attack: Attack, scored: Scored) -> str:
    row = row_of(attack, scored)
    if row is None or row["status"] == "rejected":
        return "no row" if row is None else "rejected"
    return f"{row['status']}, {known_points(row):g} points, {known_points(row, 'fix'):g} of them for the fix"


def _say(what: str, given: str, seconds: float, faults: Sequence[str]) -> bool:
    lines = [f"{'FAILED' if faults else 'held  '}  {what}: {given}; {seconds:.1f} s", *faults]
    print(UNFIT.sub("?", "\n        ".join(lines)), flush=True)
    return not faults


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make redteam", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="this attack alone; repeatable")
    parser.add_argument("--family", choices=get_args(Family), help="the attacks of one family")
    parser.add_argument("--together", action="store_true", help="all in one class, none alone")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="classes side by side")
    parser.add_argument("--sandbox", dest="engine", choices=ENGINES, default="warm", help="as of `grader score`")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
