"""The pipeline: a bad recipe affects only its own submissions, and one submission is in memory at a time."""

import weakref
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from helpers.honest_class import RECIPE, HonestClass
from helpers.sandbox_marks import needs_sandbox
from helpers.special_cases import special_cases

import grader.replay.replays as replays_module
from grader import judge as judge_module
from grader.intake.archive import Rejected
from grader.intake.folder import read_folder
from grader.intake.submission import Answer, Submission, parse_submission
from grader.judge import judge_files
from grader.progress import ProgressBar
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer
from grader.replay.replays import Replays, local_executor
from grader.replay.request import Request
from grader.sandbox import run_in_sandbox
from grader.score.rubric import load_weights
from grader.score.scoring import Score, ignored_flags, score_submission
from grader.score.verdict import SubmissionScore
from grader.score.work_limit import work_limit
from grader.session import Grading
from harness.errors import UserError
from harness.recipes.catalogue import SUITE, Catalogue


class Known(Replayer):
    """Returns replays from an earlier run. A request for any other replay is an error."""

    def __init__(self, known: Replays) -> None:
        self._known = known

    def replay(self, request: Request) -> Replay:
        return self._known.of(request) if self._known.has(request) else Replay(status="XX")


def graded(submissions: Path, cache: Path, replays: Replays | None = None) -> Mapping[str, Score]:
    """Grade a class with replays from the cache or from `replays`."""
    replayer = Replayer(run_in_sandbox, cache / "no data")
    replays = replays or Replays(local_executor(replayer, jobs=1), cache)
    found = judge_files(
        read_folder(submissions).files, Grading(replays, replayer, SUITE, cache, load_weights(), jobs=1), ProgressBar()
    )
    return {item.row.submission: item for item in found}


@pytest.fixture
def submissions(honest: HonestClass, tmp_path: Path) -> Path:
    """Return two honest submissions, and the special cases of the demo."""
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
    monkeypatch.setattr(judge_module, "self_test_problem", lambda recipe, *_: f"{recipe.id} repeats nothing.")
    for name, row in rows().items():
        if before[name].status == "rejected":
            assert row == before[name]
        else:
            assert (row.status, row.total) == ("not judged", None)
            assert "huge_lr repeats nothing." in row.reason
            assert row.provenance["tarball_sha256"] == before[name].provenance["tarball_sha256"]

    def broken(*_: object) -> None:
        raise UserError("exercises/huge_lr/recipe.toml is not a recipe.")

    monkeypatch.setattr(judge_module, "_check_dataset", broken)
    row = rows()["ada_huge_lr"]
    assert (row.status, row.student, row.recipe) == ("not judged", "ada", RECIPE)
    assert "is not a recipe" in row.reason


@needs_sandbox
def test_a_submission_that_takes_too_long_to_compare_waits_and_the_others_do_not(
    honest: HonestClass, submissions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(submission: Submission, *rest: object, **more: object) -> Score:
        while submission.name == "ada_huge_lr":
            pass
        return score_submission(submission, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(judge_module, "score_submission", score)
    monkeypatch.setattr(judge_module, "work_limit", partial(work_limit, 5.0))
    found = graded(submissions, honest.remember(tmp_path / "cache"))
    row = found["ada_huge_lr"].row
    assert (row.status, row.total, row.student) == ("not judged", None, "ada")
    assert "instructor has to decide" in row.reason
    assert found["bob_huge_lr"].row.status == "graded"


def test_few_submissions_wait_in_memory_and_each_is_read_once(
    honest: HonestClass, submissions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    were_read: list[weakref.ref[Submission]] = []
    most_alive = 0

    def read(name: str, data: bytes, catalogue: Catalogue) -> Submission | Answer:
        nonlocal most_alive
        found = parse_submission(name, data, catalogue)
        if isinstance(found, Submission):
            were_read.append(weakref.ref(found))
            most_alive = max(most_alive, sum(one() is not None for one in were_read))
        return found

    known = Replays(local_executor(Replayer(run_in_sandbox, tmp_path), jobs=1), honest.remember(tmp_path / "cache"))
    monkeypatch.setattr(judge_module, "parse_submission", read)
    monkeypatch.setattr(replays_module, "_QUEUED", 2)
    monkeypatch.setattr(replays_module, "_WAITING", 1)
    found = graded(submissions, tmp_path, Replays(local_executor(Known(known), jobs=1), tmp_path / "new"))
    assert found["ada_huge_lr"].row.status == found["bob_huge_lr"].row.status == "graded"
    assert len(were_read) == sum(score.row.status != "rejected" for score in found.values()) > 4
    assert most_alive <= 3  # two wait, and one is being judged


def test_one_submission_of_each_exercise_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    def read(name: str, data: bytes, catalogue: Catalogue) -> Submission | Answer:
        order.append(name)
        raise Rejected("damaged archive", "It is empty.")

    monkeypatch.setattr(judge_module, "parse_submission", read)
    for student in ("ada", "bob", "cleo"):
        for exercise in ("huge_lr", "a3"):
            (tmp_path / f"{student}_{exercise}.tar.gz").write_bytes(b"")
    graded(tmp_path, tmp_path / "cache")
    assert order == ["ada_a3", "ada_huge_lr", "bob_a3", "cleo_a3", "bob_huge_lr", "cleo_huge_lr"]


def test_a_flag_names_the_files_that_were_ignored() -> None:
    [flag] = ignored_flags([f"file {number}" for number in range(12)])
    assert flag.message.endswith("a submission: " + ", ".join(f"file {n}" for n in range(10)) + " and 2 more.")
