"""Inside the sandbox, with the student's code: call a derivation with the inputs of every case.

`../input/job.json` names the problem, the file and the cases, `../input/answer.txt` is the student's code, and
`../input/cases.npz` holds the inputs as `<case>/<name>`. The outputs go to `out/<case>/<name>` as bytes of float64, and
their shapes, messages and instruction counts to `out/report.json`. The right outputs are not in here. Exit 3 is our
fault.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from harness.written.derivation import PROBLEMS, WrongForm
from harness.written.derivation_call import Called, call_answer, load_answer

# Resolved before an answer can change the folder.
INPUT = Path("../input").resolve()
OUT = Path("out").resolve()


def write_case(case: str, called: Called) -> dict[str, Any]:
    """Write the arrays of one case, and return the rest of its report."""
    (OUT / case).mkdir(parents=True)
    for name, array in called.outputs.items():
        (OUT / case / name).write_bytes(array.astype("<f8").tobytes())
    return {
        "shapes": {name: list(array.shape) for name, array in called.outputs.items()},
        "problems": called.problems,
        "steps": called.steps,
        "changed": called.changed,
    }


def main() -> int:
    """Call the answer with every case of the job."""
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
            report["cases"][case] = write_case(case, call_answer(problem, answer, inputs, file))
    except WrongForm as error:
        report["problem"] = str(error)
    except Exception:
        traceback.print_exc()
        return 3
    (OUT / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
