"""`solutions/`: every recipe has the whole of it, every file is what it says, and the reference fix heals."""

import math
from pathlib import Path

import pytest

from grader.score.solutions import SOLUTIONS, Recovery, load_solution, load_texts
from harness.errors import UserError
from harness.recipe import load_recipe, recipe_ids
from harness.submission.student_report import parse_report

RECIPES = recipe_ids()
SOLUTION = 'format_version = 1\nkey_signals = ["loss"]\n[[recovery]]\nsignal = "loss"\nbelow = 1.0\n'


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_model_report_is_whole(recipe: str) -> None:
    report = parse_report((SOLUTIONS / recipe / "report.md").read_text(encoding="utf-8"))
    report.require_length("report.md")
    solution = load_solution(recipe)
    found = load_recipe(recipe)
    assert report.layer == found.area
    assert report.snippets == 1
    broken = [evidence for evidence in report.evidence if evidence.run == "broken"]
    assert all(solution.is_key_signal(evidence.signal) for evidence in broken)
    assert any(
        recovery.shown_by(evidence.signal, float(evidence.value))
        for evidence in report.evidence
        for recovery in solution.recoveries_on(found.dataset)
        if evidence.run == "fixed"
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_number_of_the_broken_run_shows_no_recovery(recipe: str) -> None:
    report = parse_report((SOLUTIONS / recipe / "report.md").read_text(encoding="utf-8"))
    recoveries = load_solution(recipe).recoveries_on(load_recipe(recipe).dataset)
    shown = [
        (evidence.signal, evidence.value)
        for evidence in report.evidence
        for recovery in recoveries
        if evidence.run == "broken" and recovery.shown_by(evidence.signal, float(evidence.value))
    ]
    assert shown == []


def test_a_recovery_is_above_or_below_its_bound_and_covers_the_parts_of_a_signal() -> None:
    below = Recovery(signal="grad_mean", below=1.0)
    assert below.shown_by("grad_mean.1.weight", 0.5)
    assert not below.shown_by("grad_mean.1.weight", 1.0)
    assert not below.shown_by("grad_meanwhile", 0.5)
    assert not below.shown_by("grad_mean", math.nan)
    band = Recovery(signal="loss", above=1.0, below=2.0)
    assert [band.shown_by("loss", value) for value in (0.5, 1.5, 2.5)] == [False, True, False]


def test_a_recovery_of_one_data_set_is_not_asked_on_another(tmp_path: Path) -> None:
    text = SOLUTION + '[[recovery]]\nsignal = "val_loss"\nbelow = 1.0\ndataset = "mnist"\n'
    solution = load_solution("x", write(tmp_path, "solution.toml", text))
    assert [item.signal for item in solution.recoveries_on("digits")] == ["loss"]
    assert [item.signal for item in solution.recoveries_on("mnist")] == ["loss", "val_loss"]


def write(folder: Path, name: str, text: str) -> Path:
    (folder / "x").mkdir()
    (folder / "x" / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SOLUTION.replace('"loss"]', '"los"]'), "there is no signal 'los'"),
        (SOLUTION.replace("below = 1.0", ""), "a recovery needs"),
        (SOLUTION + "colour = 1\n", "colour"),
        (SOLUTION.replace("version = 1", "version = 2"), "format_version"),
        ("format_version = ", "is not TOML"),
    ],
)
def test_a_wrong_solution_is_refused_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        load_solution("x", write(tmp_path, "solution.toml", text))
    assert "solution.toml" in str(error.value)


def test_a_missing_file_is_a_users_mistake(tmp_path: Path) -> None:
    for load in (load_solution, load_texts):
        with pytest.raises(UserError, match="There is no"):
            load("nothing", tmp_path)
