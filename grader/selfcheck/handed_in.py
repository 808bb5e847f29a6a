"""Hands variants in as students do, and remembers the tarballs: what was handed in once need not be run again."""

import hashlib
import json
import shutil
from pathlib import Path

from pydantic import Base64Bytes

from grader.course import examples
from grader.course.examples import example_submission
from grader.replay.cache import Cache
from grader.replay.provenance import machine_state
from grader.score import reference_report
from grader.score.verdict import Model
from harness.recipe import load_recipe
from harness.run.provenance import harness_hash


class HandedIn(Model):
    """The tarball that a student's commands made."""

    tarball: Base64Bytes


class Submissions:
    """Example submissions, remembered in a folder under all that decides about their bytes; with `fresh`, made anew.

    A student's own commands make each: workspace, both runs, report, tarball, every run in a process of its own.
    """

    def __init__(self, memory: Path, *, fresh: bool) -> None:
        self._store = Cache(memory / "handed-in", HandedIn)
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
        path = example_submission(recipe_id, student, source, template, work, out)
        self._store.put(_key(recipe_id, student, source), HandedIn.model_construct(tarball=path.read_bytes()))
        shutil.rmtree(work)
        return path


def _key(recipe_id: str, student: str, source: str) -> str:
    recipe = load_recipe(recipe_id)
    parts = {
        "student": student,
        "source": source,
        "recipe": recipe.model_dump_json(),
        "broken": recipe.broken_source(),
        "made by": Path(__file__).read_text(encoding="utf-8")
        + Path(examples.__file__).read_text(encoding="utf-8")
        + Path(reference_report.__file__).read_text(encoding="utf-8"),
        "harness": harness_hash(),
        "machine": machine_state(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
