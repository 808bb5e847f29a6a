"""Hands variants in as students do, and remembers the tarballs: what was handed in once need not be run again."""

import hashlib
import json
import shutil
from pathlib import Path

from pydantic import Base64Bytes

from grader import examples
from grader.examples import true_report
from grader.machine import machine_state
from grader.score import Model
from grader.solutions import SOLUTIONS
from grader.store import Store
from harness.errors import UserError
from harness.exercise import Asked, verify_exercise
from harness.handin.submission import submit
from harness.metrics_log import batch_records, read_metrics_log
from harness.provenance import harness_hash
from harness.recipe import load_recipe


class HandedIn(Model):
    """The tarball that a student's commands made."""

    tarball: Base64Bytes


class Submissions:
    """Example submissions, remembered in a folder under all that decides about their bytes; with `fresh`, made anew.

    A student's own commands make each: workspace, both runs, report, tarball, every run in a process of its own.
    """

    def __init__(self, memory: Path, *, fresh: bool) -> None:
        self._store = Store(memory / "handed-in", HandedIn)
        self._fresh = fresh

    def known(self, recipe_id: str, student: str, source: str, out: Path) -> Path | None:
        """Return the remembered tarball, laid into the folder `out`, or None where there is none."""
        kept = None if self._fresh else self._store.get(_key(recipe_id, student, source))
        if kept is None:
            return None
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{student}_{recipe_id}.tar.gz"
        path.write_bytes(kept.tarball)
        return path

    def make(self, recipe_id: str, student: str, source: str, template: Path, work: Path, out: Path) -> Path:
        """Return the tarball of a student with this experiment.

        `template` is a `work` folder in which the broken run was made; `work` is gone afterwards. Raises `UserError`
        where the experiment does not run.
        """
        shutil.copytree(template / recipe_id, work / recipe_id)
        (work / recipe_id / "experiment.py").write_text(source, encoding="utf-8")
        workspace = verify_exercise(recipe_id, work, Asked(), bar=False)
        text = report_on(recipe_id, workspace.run_folder("fixed"))
        workspace.report.write_text(text, encoding="utf-8")
        path = submit(workspace, student, out).path
        self._store.put(_key(recipe_id, student, source), HandedIn.model_construct(tarball=path.read_bytes()))
        shutil.rmtree(work)
        return path


def report_on(recipe_id: str, fixed_run: Path) -> str:
    """Return the model report with what this fixed run's log holds.

    A run of fewer batches or epochs lacks what the model report cites: its first loss is cited then.
    """
    try:
        return true_report(recipe_id, fixed_run)
    except UserError:
        text = (SOLUTIONS / recipe_id / "report.md").read_text(encoding="utf-8")
        loss = batch_records(read_metrics_log(fixed_run / "metrics.log"))[0]["loss"]
        first = f"  - {{run: fixed, signal: loss, step: 0, value: {loss:.6g}}}"
        front, end, body = text.removeprefix("---\n").partition("---\n")
        kept = [line for line in front.splitlines() if "run: fixed" not in line]
        return "---\n" + "\n".join([*kept, first, ""]) + end + body


def _key(recipe_id: str, student: str, source: str) -> str:
    recipe = load_recipe(recipe_id)
    parts = {
        "student": student,
        "source": source,
        "recipe": recipe.model_dump_json(),
        "broken": recipe.broken_source(),
        "report": (SOLUTIONS / recipe_id / "report.md").read_text(encoding="utf-8"),
        "made by": Path(__file__).read_text(encoding="utf-8")
        + Path(examples.__file__).read_text(encoding="utf-8"),
        "harness": harness_hash(),
        "machine": machine_state(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
