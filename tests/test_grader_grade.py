"""The pipeline: a bad recipe costs its own submissions only."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from honest_class import RECIPE, HonestClass
from sandbox_marks import needs_sandbox
from special_cases import special_cases

import grader.grade as grade_module
from grader.grade import grade
from grader.intake.handed_in import read_folder
from grader.intake.submission import Submission
from grader.replay.replayer import Replayer
from grader.replay.replays import Replays, local_executor
from grader.report.text import Progress
from grader.sandbox import run_in_sandbox
from grader.score.scoring import Score, ignored_flags
from grader.score.verdict import SubmissionScore, load_weights
from grader.session import Grading
from harness.errors import UserError


def graded(submissions: Path, cache: Path) -> Mapping[str, Score]:
    """Grade a class whose replays are in the cache."""
    replayer = Replayer(run_in_sandbox, cache / "no data")
    replays = Replays(local_executor(replayer, jobs=1), cache)
    found = grade(read_folder(submissions).files, Grading(replays, replayer, cache, load_weights(), jobs=1), Progress())
    names = [item.row.submission for item in found]
    assert names == sorted(names)
    return dict(zip(names, found, strict=True))


@pytest.fixture
def submissions(honest: HonestClass, tmp_path: Path) -> Path:
    """Two honest submissions, and the special cases of the demo."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    good = honest.tarball("reference")
    files = {"ada_huge_lr": good, "bob_huge_lr": honest.tarball("masked"), **special_cases(good)}
    for name, data in files.items():
        (folder / f"{name}.tar.gz").write_bytes(data)
    return folder


@needs_sandbox
def test_a_recipe_that_cannot_be_graded_costs_its_own_submissions_only(
    honest: HonestClass, submissions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = honest.remember(tmp_path / "cache")

    def rows() -> dict[str, SubmissionScore]:
        return {name: item.row for name, item in graded(submissions, cache).items()}

    before = rows()
    monkeypatch.setattr(grade_module, "canary_problem", lambda recipe, *_: f"{recipe} repeats nothing.")
    for name, row in rows().items():
        if before[name].status == "rejected":
            assert row == before[name]
        else:
            assert (row.status, row.total) == ("not judged", None)
            assert "huge_lr repeats nothing." in row.reason
            assert row.provenance["tarball_sha256"] == before[name].provenance["tarball_sha256"]

    def broken(submission: Submission) -> None:
        raise UserError("exercises/huge_lr/recipe.toml is not a recipe.")

    monkeypatch.setattr(grade_module, "_check_dataset", broken)
    row = rows()["ada_huge_lr"]
    assert (row.status, row.student, row.recipe) == ("not judged", "ada", RECIPE)
    assert "is not a recipe" in row.reason


def test_a_flag_names_the_files_that_were_ignored() -> None:
    [flag] = ignored_flags([f"file {number}" for number in range(12)])
    assert flag.message.endswith("were ignored: " + ", ".join(f"file {n}" for n in range(10)) + " and 2 more.")
