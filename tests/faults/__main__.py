"""`make faults`: cause every fault, send SIGKILL at a hundred random moments, and print results and failures."""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from faults.cases import FAULTS, Fault
from faults.kills import play_kills
from faults.lab import Absent, Lab, Place, make_lab
from grader.sandbox import sandbox_problem


def main(words: list[str]) -> int:
    """Run the chosen faults and print the results. Return 0 if all held, 1 if one did not, 2 without a sandbox."""
    parser = argparse.ArgumentParser(prog="python -m faults")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="this fault alone; repeatable")
    parser.add_argument("--kills", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    asked = parser.parse_args(words)
    if problem := sandbox_problem():
        print(problem)
        return 2

    def play(lab: Lab, place: Place) -> str:
        return play_kills(lab, place, kills=asked.kills, seed=asked.seed)

    killed = Fault("killed", f"SIGKILL at {asked.kills} random moments: the same bytes.", play, in_suite=False)
    faults = [fault for fault in (*FAULTS, killed) if not asked.only or fault.id in asked.only]
    if unknown := set(asked.only) - {fault.id for fault in faults}:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        print("making a small class, and scoring it undisturbed", flush=True)
        lab = make_lab(Path(folder))
        held = [outcome(fault, lab) for fault in faults]
    count = {word: held.count(word) for word in ("held", "FAILED", "not tried")}
    said = ", ".join(f"{number} {word}" for word, number in count.items())
    print(f"{said}; {time.monotonic() - began:.0f} s")
    return int(count["FAILED"] > 0)


def outcome(fault: Fault, lab: Lab) -> str:
    """Cause one fault, and print the result. Return whether it `held`, `FAILED` or was `not tried` here."""
    try:
        word, seen = "held", fault.play(lab, lab.place(fault.id))
    except Absent as reason:
        word, seen = "not tried", str(reason)
    except Exception:
        word, seen = "FAILED", traceback.format_exc()
    print(f"{word}  {fault.id}: {fault.says}\n        {seen}", flush=True)
    return word


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
