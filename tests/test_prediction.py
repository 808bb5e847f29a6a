"""Predictions: asked before the run, stored unchanged, in the manifest, and the subject of an oral question."""

import json
import math
from pathlib import Path

import pytest
from helpers.commands import mistake, succeed
from helpers.courses import COURSE, write_course
from helpers.grading import evidence
from helpers.made_up_runs import make_workspace

from grader.course.course import read_course
from grader.course.kit import assignment_files
from grader.score.oral import oral_card
from harness.errors import UserError
from harness.recipes.recipe import experiment_source
from harness.run.experiment import load_experiment
from harness.run.options import RunOptions
from harness.student.exercise import make_workspace as make_empty
from harness.student.prediction import QUESTIONS, compare_half_rate, course_of, seal, with_half_rate
from harness.submission.archive import Manifest, build_submission
from harness.workspace.progress import Prediction, progress_of

SAID = {"loss": "falls", "half_rate": "lower", "check": "learning-rate", "why": "It is  too large."}
WORDS = ("--loss", "falls", "--half-rate", "lower", "--check", "learning-rate", "--why", "It is too large.")


@pytest.mark.parametrize(
    ("losses", "answer"),
    [
        ([2.0, 1.0, 0.5, 0.4], "falls"),
        ([2.0, 1.9, 1.5, 1.4], "falls-little"),
        ([2.0, 9.0, 1.95], "stays"),
        ([2.0, 1.0, 2.2], "rises"),
        ([2.0, math.nan], "no-number"),
        ([math.inf, 1.0], "no-number"),
    ],
)
def test_the_course_of_a_loss_is_one_of_the_answers(losses: list[float], answer: str) -> None:
    assert course_of(losses) == answer
    assert answer in QUESTIONS["loss"][1]


@pytest.mark.parametrize(
    ("whole", "halved", "answer"),
    [
        (1.0, 1.05, "same"),
        (1.0, 0.85, "lower"),
        (1.0, 1.2, "higher"),
        (math.nan, 5.0, "lower"),
        (5.0, math.inf, "higher"),
        (math.nan, math.nan, "same"),
    ],
)
def test_the_run_with_half_the_rate_is_compared_at_its_end(whole: float, halved: float, answer: str) -> None:
    assert compare_half_rate(whole, halved) == answer


def test_half_the_rate_holds_at_each_step_and_no_longer(tmp_path: Path) -> None:
    experiment = load_experiment(tmp_path / "x.py", with_half_rate(experiment_source("digits_mlp")))
    model = experiment.build_model()
    optimizer = experiment.build_optimizer(model)
    weight = next(model.parameters())
    before = weight.detach().clone()
    weight.grad = weight.detach() * 0 + 1
    optimizer.step()
    assert (before - weight.detach()).flatten()[0].item() == pytest.approx(0.05, abs=1e-6)
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_prediction_comes_before_the_run_and_stays(tmp_path: Path) -> None:
    workspace, _ = make_empty("huge_lr", tmp_path, RunOptions())
    for wrong in ({"loss": "maybe"}, {"check": "learning-rat"}, {"why": " "}, {"why": "x" * 301}):
        with pytest.raises(UserError):
            seal(workspace, SAID | wrong)
    seal(workspace, SAID)
    kept = progress_of(workspace.folder).prediction
    assert kept == Prediction(loss="falls", half_rate="lower", check="learning_rate", why="It is too large.")
    with pytest.raises(UserError, match="You cannot change a prediction"):
        seal(workspace, SAID)
    finished = make_workspace(tmp_path / "done")
    with pytest.raises(UserError, match="already exists: you can predict only before the run"):
        seal(finished, SAID)
    manifest = json.loads(build_submission(finished, "ada")["manifest.json"])
    assert "prediction" not in manifest
    assert Manifest.model_validate({**manifest, "prediction": kept.model_dump()}).prediction == kept


def test_the_commands_ask_first_and_tell_after_the_run(tmp_path: Path) -> None:
    there = {"cwd": tmp_path}
    assert "add --half-rate, --check, --why" in mistake("predict", "broadcast_loss", *WORDS[:2], **there)
    assert "You predicted" in succeed("predict", "broadcast_loss", *WORDS, **there)
    shown = succeed("exercise", "broadcast_loss", **there)
    assert "✗ Compared with the first loss, the mean" in shown or "✓ Compared with the first loss" in shown
    assert "With half the learning rate, the mean loss" in shown
    assert (tmp_path / "work/broadcast_loss/runs/half_rate/metrics.log").is_file()
    assert "You cannot change a prediction" in mistake("predict", "broadcast_loss", *WORDS, **there)


def test_a_kit_says_whether_to_predict(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path, COURSE.replace("opens", "predict = true\nopens", 1)))
    one, two = (assignment_files(course, course.find(week)) for week in ("week-1", "week-2"))
    assert b"predict = true" in one["exercises/a1/recipe.toml"]
    assert b"predict" not in two["exercises/b1/recipe.toml"]
    assert b"make predict" in one["README.md"] and b"make predict" in one["Makefile"]
    assert b"make predict" not in two["README.md"] + two["Makefile"].partition(b".PHONY")[0]


def test_the_oral_card_asks_about_the_prediction() -> None:
    said = Prediction(loss="falls", half_rate="same", check="none", why="It looks <fine>.")
    first, *_ = oral_card(evidence("broadcast_loss", prediction=said))
    assert "the mean training loss over the last quarter of the steps is less than half of it" in first.asks
    assert '"It looks <fine>."' in first.asks
    assert first.answer.startswith("Compared with the first loss, the mean training loss")
    assert "Checks that find the fault: " in first.answer
    strange = said.model_copy(update={"loss": "flies"})
    assert "Before the run" not in oral_card(evidence("broadcast_loss", prediction=strange))[0].asks
