"""Inside the sandbox, with the student's code: call a derivation with the inputs of every case, count its operations.

`../input/job.json` names the problem, the file and the cases; `../input/answer.txt` is the student's, and
`../input/cases.npz` holds the inputs as `<case>/<name>`. What each case returned goes to `out/<case>/<name>` as bytes
of float64, and shapes, sentences and counts to `out/report.json`. Whether anything of it is right is found elsewhere:
no gradient is in here but what the answer makes. Exit 3 for a fault of ours.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from harness.written.derivation import PROBLEMS
from harness.written.derivation.performance import Performance, load_answer, perform
from harness.written.derivation.problem import WrongForm

# Resolved before an answer can change the folder.
INPUT = Path("../input").resolve()
OUT = Path("out").resolve()


def told(case: str, done: Performance) -> dict[str, Any]:
    """Write the arrays of one case, and return what else is to be said of it."""
    (OUT / case).mkdir(parents=True)
    for name, array in done.outputs.items():
        (OUT / case / name).write_bytes(array.astype("<f8").tobytes())
    return {
        "shapes": {name: list(array.shape) for name, array in done.outputs.items()},
        "problems": done.problems,
        "steps": done.steps,
        "changed": list(done.changed),
        "evaluations": done.evaluations,
    }


def main() -> int:
    """Call every case of the job."""
    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    problem, file = PROBLEMS[job["problem"]], job["file"]
    with np.load(INPUT / "cases.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    OUT.mkdir(exist_ok=True)
    report: dict[str, Any] = {"problem": "", "cases": {}}
    try:
        answer = load_answer((INPUT / "answer.txt").read_bytes().decode("utf-8"), file, problem)
        for case in job["cases"]:
            inputs = {name: arrays[f"{case}/{name}"] for name in problem.inputs}
            report["cases"][case] = told(case, perform(problem, answer, inputs, file))
    except WrongForm as error:
        report["problem"] = str(error)
    except Exception:
        traceback.print_exc()
        return 3
    (OUT / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
