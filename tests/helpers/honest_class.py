"""Honest submissions of one recipe and their replays, made once for all test processes of a session."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.course.examples import broken_workspace, example_submission
from grader.intake.folder import read_folder
from grader.judge import judge_files
from grader.progress import ProgressBar
from grader.replay.replayer import Replayer
from grader.replay.replays import Replays, local_executor
from grader.replay.request import Request
from grader.sandbox import run_in_sandbox
from grader.score.rubric import load_weights
from grader.session import Grading, lock_folder
from harness.recipes.catalogue import SUITE, load_recipe
from harness.recipes.known_edits import known_fixes

RECIPE = "huge_lr"
MASKED_VARIANT = "clip_gradients"
# The students by submission: the correct fix, a fix that masks the symptom, the unchanged broken experiment, and an
# edit that fixes nothing.
STUDENTS = {"reference": "ada", "masked": "bob", "untouched": "cem", "wrong": "eli"}


@dataclass(frozen=True)
class HonestClass:
    """A folder with the template (a `work` folder with the broken run), the submissions, and the cached replays."""

    folder: Path

    @property
    def template(self) -> Path:
        """The `work` folder that contains the broken run."""
        return self.folder / "template"

    @property
    def tarballs(self) -> dict[str, bytes]:
        """The submissions by file name."""
        return {path.name: path.read_bytes() for path in sorted((self.folder / "submissions").iterdir())}

    def tarball(self, what: str) -> bytes:
        """Return one submission by its kind, a key of `STUDENTS`."""
        return self.tarballs[f"{STUDENTS[what]}_{RECIPE}.tar.gz"]

    def remember(self, memory: Path, *, without: Iterable[Request] = ()) -> Path:
        """Copy the cached replays of recipes and submissions into a new folder, except the replays in `without`."""
        left_out = shutil.ignore_patterns(*(f"{request.key}.json" for request in without))
        return shutil.copytree(self.folder / "replays", memory, ignore=left_out)


def make_submissions(template: Path, work: Path, *, others: Sequence[str] = (), jobs: int) -> dict[str, bytes]:
    """Make the honest submissions, and one correct fix of each recipe in `others`. Return them by file name.

    `template` becomes a `work` folder with the broken run of each recipe.
    """
    broken = load_recipe(RECIPE).broken_source()
    clipped = next(fix for fix in known_fixes(load_recipe(RECIPE))[0] if fix.id == MASKED_VARIANT)
    sources = {
        STUDENTS["reference"]: (RECIPE, load_recipe(RECIPE).healthy_source()),
        STUDENTS["masked"]: (RECIPE, clipped.source),
        STUDENTS["untouched"]: (RECIPE, broken),
        STUDENTS["wrong"]: (RECIPE, broken.replace("lr=10.0", "lr=9.0")),
        **{f"dan{number}": (other, load_recipe(other).healthy_source()) for number, other in enumerate(others)},
    }

    def made(student: str) -> Path:
        recipe, source = sources[student]
        knows = student in (STUDENTS["untouched"], STUDENTS["wrong"])
        report = right_diagnosis if knows else None
        return example_submission(recipe, student, source, template, work / student, work / "out", report=report)

    def right_diagnosis(text: str) -> str:
        # This student knows the cause and fixes nothing. No attack may earn more for the fix or the logs.
        right = (work / STUDENTS["reference"] / RECIPE / "report.md").read_text(encoding="utf-8")
        return f"---{right.split('---')[1]}---{text.split('---', 2)[2]}"

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(broken_workspace, recipe, template) for recipe in (RECIPE, *others)]:
            done.result()
        first = made(STUDENTS["reference"])
        rest = [student for student in sources if student != STUDENTS["reference"]]
        return {path.name: path.read_bytes() for path in (first, *pool.map(made, rest))}


def shared_class(factory: pytest.TempPathFactory) -> HonestClass:
    """Return the class of this session. The first test process makes it, and the others wait."""
    own = factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = root / "honest-class"
    with lock_folder(root, wait=True):
        if not folder.exists():
            partial = factory.mktemp("honest-class")
            _make(partial)
            partial.rename(folder)
    return HonestClass(folder)


def _make(folder: Path) -> None:
    submissions = make_submissions(folder / "template", folder / "work", jobs=2)
    shutil.rmtree(folder / "work")
    (folder / "submissions").mkdir()
    _write(folder / "submissions", submissions)
    memory = folder / "replays"
    replayer = Replayer(run_in_sandbox, folder / "no data")
    replays = Replays(local_executor(replayer, jobs=2), memory)
    grading = Grading(replays, replayer, SUITE, memory, load_weights(), jobs=2)
    scores = judge_files(read_folder(folder / "submissions").files, grading, ProgressBar())
    assert [score.row.status for score in scores] == ["graded"] * len(STUDENTS)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)
