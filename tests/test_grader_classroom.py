"""A class is the same whoever takes it in, scores it and makes its pages: this process, or a crew of others."""

import multiprocessing
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from grader.written.answers.room import Answers
from honest_class import HonestClass
from sandbox_marks import needs_sandbox

from grader.classroom import Classroom, scores_of
from grader.course.demo import special_cases
from grader.crew import Crew
from grader.desk import Desk
from grader.intake.answer import Answer
from grader.intake.submission import submission_name
from grader.plan import Plan
from grader.replay.local_executor import LocalExecutor
from grader.replay.memory.kinds import CANARIES
from grader.replay.replayer import Replayer
from grader.replay.replays import Replays
from grader.report.progress import Silent
from grader.report.write import write_reports
from grader.sandbox import run_in_sandbox
from grader.score.canaries import CanaryFailed
from grader.score.exhibits import Exhibits
from grader.score.verdict import Criterion, SubmissionScore
from grader.score.weights import Weights, load_weights
from grader.spool import open_spool

FATAL = "fatal_huge_lr"


class FatalDesk(Desk):
    """Ends its process at one submission, as a fault of the interpreter would."""

    def take(self, path: Path) -> Plan | Answer | SubmissionScore:
        if submission_name(path) == FATAL:
            os._exit(1)
        return super().take(path)


class FatalWeights(dict[Criterion, Mapping[str, float]]):
    """Ends the process of a crew that looks at it."""

    def __getitem__(self, criterion: Criterion) -> Mapping[str, float]:
        if multiprocessing.parent_process() is not None:
            os._exit(1)
        return super().__getitem__(criterion)


def reports(
    submissions: Path,
    memory: Path,
    out: Path,
    crew: Crew,
    desk: type[Desk] = Desk,
    weights: Weights | None = None,
) -> dict[str, bytes]:
    """Score a class, and return all its reports."""
    replayer = Replayer(run_in_sandbox, out)
    replays = Replays(LocalExecutor(replayer, jobs=2), memory, fresh=False)
    answers = Answers(replayer, memory, jobs=2, trusted_submissions=False)
    with open_spool(out.parent / f"{out.name}-spool") as spool, crew:
        room = Classroom(replays, answers, desk(spool, memory, weights or load_weights()), crew)
        scores = scores_of(room.score(sorted(submissions.iterdir()), Silent()), {})
        shown = {row.submission: spool.exhibits(row.submission) for row in scores.submissions}
        exhibits = {name: Exhibits.model_validate_json(data) for name, data in shown.items() if data}
        write_reports(scores, exhibits, out)
    assert not (out.parent / f"{out.name}-spool").exists()
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@pytest.mark.slow
@needs_sandbox
def test_a_crew_gives_the_same_bytes_and_an_ended_process_costs_one_submission(
    honest: HonestClass, tmp_path: Path
) -> None:
    submissions = tmp_path / "submissions"
    submissions.mkdir()
    good = honest.tarball("reference")
    names = {student: honest.tarball(kind) for kind, student in (("reference", "ada"), ("masked", "bob"))}
    for name, data in {
        **{f"{name}_huge_lr": data for name, data in names.items()},
        **special_cases(good),
    }.items():
        (submissions / f"{name}.tar.gz").write_bytes(data)
    for memory in ("one", "two", "three"):
        honest.remember(tmp_path / memory)
    here = reports(submissions, tmp_path / "one", tmp_path / "here", Crew(1))
    assert reports(submissions, tmp_path / "two", tmp_path / "crew", Crew(2, worth=0, look=0)) == here
    # Once more, with all rows remembered, over the pages that are there.
    assert reports(submissions, tmp_path / "two", tmp_path / "crew", Crew(2, worth=0, look=0)) == here
    (submissions / f"{FATAL}.tar.gz").write_bytes(good)
    found = reports(submissions, tmp_path / "three", tmp_path / "fatal", Crew(2, worth=0, look=0), FatalDesk)
    assert "ended, twice" in found[f"{FATAL}.html"].decode()
    pages = {name for name in here if name.endswith(".html")} - {"index.html"}
    assert {name: found[name] for name in pages} == {name: here[name] for name in pages}


@pytest.mark.slow
@needs_sandbox
def test_nothing_is_scored_where_a_process_ends_at_the_canaries(honest: HonestClass, tmp_path: Path) -> None:
    submissions = tmp_path / "submissions"
    submissions.mkdir()
    for student in ("ada", "bob"):
        (submissions / f"{student}_huge_lr.tar.gz").write_bytes(honest.tarball("reference"))
    shutil.rmtree(honest.remember(tmp_path / "memory") / CANARIES.folder)
    weights = FatalWeights(load_weights())
    with pytest.raises(CanaryFailed, match="canaries of huge_lr ended, twice"):
        reports(submissions, tmp_path / "memory", tmp_path / "out", Crew(2, worth=0, look=0), weights=weights)
    assert not (tmp_path / "out").exists()
