"""The judgement of an attempt on the student's own machine, and the stored attempts."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import mistake, succeed
from helpers.made_up_runs import BROKEN, FIXED, make_workspace, read_lines

from harness.checks import Finding, load_check, mechanism_checks
from harness.errors import UserError
from harness.recipes.cases import case_of
from harness.recipes.catalogue import load_recipe
from harness.recipes.mysteries import load_hidden
from harness.recipes.recipe import Goal, Recipe, load_recipes
from harness.run.settings import RunSettings
from harness.student import goal
from harness.student.attempts import edit_of, find_attempt, keep_attempt, list_attempts, size_of
from harness.student.goal import GoalItem, OnThisMachine, describe_goal
from harness.submission.log_values import load_causes
from harness.workspace.workspace import Workspace, remove_workspace

OURS = load_recipe("huge_lr")
RECIPE = OURS.model_copy(
    update={
        "goal": Goal(format_version=1, level=1, checks=("learning_rate",), least_accuracy=0.77),
        "symptoms": tuple(symptom for symptom in OURS.symptoms if symptom.signal == "loss"),
    }
)
SETTINGS = RunSettings(seed=42, dataset="digits")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


def outcome(monkeypatch: pytest.MonkeyPatch, found: str) -> list[Any]:
    """Replace the outcome of every check, and compare no functions. Return the list of requested checks."""
    asked: list[Any] = []
    monkeypatch.setattr(goal, "programs_of", lambda recipe: None)

    def run_checks(source: str, settings: RunSettings, names: tuple[str, ...], **_: Any) -> dict[str, Finding]:
        asked.append((source, settings, names))
        known = {name: [one.id for one in load_check(name).every_outcome] for name in names}
        return {name: Finding(found if found in known[name] else sound_outcome(name), "", {}) for name in names}

    monkeypatch.setattr(goal, "run_checks", run_checks)
    return asked


def judge(recipe: Recipe, settings: RunSettings, log: Any, source: str) -> list[GoalItem]:
    """Judge as `make verify` does."""
    return goal.judge(recipe, settings, log, OnThisMachine(recipe, settings, source))


def records(*, loss: float = 0.1, accuracy: float | None = 0.95) -> list[Any]:
    steps: list[Any] = [{"step": n, "epoch": 0, "loss": loss, "lr": 0.1, "grad_norm": 1.0} for n in range(100)]
    return [*steps, {"epoch": 0, "val_loss": 0.2, "val_accuracy": accuracy}]


def test_a_run_that_looks_right_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = outcome(monkeypatch, "usual")
    found = judge(RECIPE, SETTINGS, records(), "source")
    assert all(item.reached for item in found)
    assert [item.says for item in found if item.by_check] == ["check learning-rate"]
    assert asked == [("source", SETTINGS, ("learning_rate",))]
    assert len(found) == len(RECIPE.symptoms) + 2


def test_a_cause_that_is_still_there_is_told_by_what_the_check_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, "too-large")
    last = judge(RECIPE, SETTINGS, records(), "source")[-1]
    assert not last.reached
    assert last.found.startswith("too-large: The rate is at least 1")


@pytest.mark.parametrize(
    ("log", "says", "found"),
    [
        (records(loss=float("nan")), "the loss is finite", "the last loss is NaN or infinite"),
        (records(loss=900.0), "a symptom in loss", " is "),
        (records(accuracy=0.1), "validation accuracy is at least 77%", "10.0%, about as good as random guesses"),
        (records(accuracy=0.6), "validation accuracy is at least 77%", "60.0%"),
        (records(accuracy=None), "validation accuracy is at least 77%", "the log does not contain it"),
    ],
)
def test_a_log_that_is_not_healthy_needs_no_check(
    log: list[Any], says: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = outcome(monkeypatch, "usual")
    missed = next(item for item in judge(RECIPE, SETTINGS, log, "source") if not item.reached)
    assert missed.says.startswith(says)
    assert found in missed.found
    assert asked == []


def test_the_accuracy_counts_that_the_harness_measures_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, "usual")
    log = records(accuracy=1.0)
    log[-1]["val_accuracy_eval_mode"] = 0.6
    missed = next(item for item in judge(RECIPE, SETTINGS, log, "source") if not item.reached)
    assert missed.found == "60.0%"


def test_of_a_mystery_no_verdict_tells_whether_something_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, "usual")
    broken = case_of("mystery-1-1", [RECIPE])
    healthy = next(case for n in range(1, 99) if (case := load_hidden(f"mystery-2-{n}")).is_healthy)
    for log, reached in ((records(accuracy=0.99), True), (records(accuracy=0.02), False)):
        log[-1]["val_loss"] = 0.01 if reached else 99.0
        settings = RunSettings(seed=42, dataset=healthy.dataset)
        said = [judge(case, one, log, "source") for case, one in ((broken, SETTINGS), (healthy, settings))]
        assert said[0] == said[1]
        expected = [("log", True), ("checks", True)] if reached else [("log", False)]
        assert [(item.says, item.reached) for item in said[0]] == expected


def test_a_mystery_says_how_many_checks_differ_and_names_them_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, "usual")
    told: list[GoalItem] = []

    class Examined(OnThisMachine):
        def outcomes(self, names: Sequence[str]) -> dict[str, str]:
            return {name: "too-large" if name == "learning_rate" else sound_outcome(name) for name in names}

    case = case_of("mystery-1-1", [RECIPE])
    found = goal.judge(case, SETTINGS, records(), Examined(case, SETTINGS, "source"), told.append)
    every = len(mechanism_checks(case.broken_source()))
    assert [(item.says, item.found) for item in found] == [("log", "healthy"), ("checks", f"1 of {every} differs")]
    assert found == told
    assert found[1].checks == ("learning_rate",)
    assert "learning" not in f"{found[1].says} {found[1].found} {found[1].short}"


def sound_outcome(check: str) -> str:
    return next(one.id for one in load_check(check).outcomes if one.sound)


def test_what_the_log_shows_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, "usual")
    told: list[GoalItem] = []
    before: list[int] = []

    class Examined(OnThisMachine):
        def outcomes(self, names: Sequence[str]) -> dict[str, str]:
            before.append(len(told))
            return dict.fromkeys(names, "usual")

    found = goal.judge(RECIPE, SETTINGS, records(), Examined(RECIPE, SETTINGS, "source"), told.append)
    assert before == [len(RECIPE.symptoms) + 1]
    assert found == told


def test_under_other_epochs_the_checks_judge_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, "usual")
    settings = RunSettings(seed=42, dataset="digits", epochs=1)
    assert [item.by_check for item in judge(RECIPE, settings, records(accuracy=0.1), "source")] == [True]


@pytest.mark.parametrize(
    ("find", "replace", "found"),
    [("lr=10.0", "lr=0.1", "yes"), ("lr=10.0", "lr=0.03", "yes"), ("lr=10.0", "lr=0.5", goal.UNLIKE_HEALTHY)],
)
def test_functions_are_compared_with_those_of_sound_programs(find: str, replace: str, found: str) -> None:
    source = OURS.broken_source().replace(find, replace)
    last = judge(OURS, SETTINGS, records(), source)[-1]
    assert (last.says, last.found) == (goal.AS_HEALTHY, found)
    assert last.reached == (found == "yes")


@pytest.mark.parametrize(
    ("says", "found", "by_check", "short"),
    [
        ("validation accuracy is at least 77%, as in a healthy run", "60.0%", False, "validation accuracy: 60.0%"),
        ("a symptom in loss", "max loss is 361", False, "max loss is 361"),
        (goal.AS_HEALTHY, goal.UNLIKE_HEALTHY, False, goal.UNLIKE_HEALTHY),
        ("check updates", "longer: it moves too far", True, "check updates finds longer"),
    ],
)
def test_a_missed_criterion_fits_into_a_line(says: str, found: str, by_check: bool, short: str) -> None:
    assert GoalItem(says=says, reached=False, found=found, by_check=by_check).short == short


def test_what_counts_as_fixed_is_said_before_without_the_name_of_a_check() -> None:
    said = " ".join(describe_goal(RECIPE, "digits"))
    assert "at least 77%" in said
    assert not any(symptom.says in said for symptom in RECIPE.symptoms)
    assert "learning" not in said


def test_a_kit_finds_the_symptoms_among_the_causes() -> None:
    for recipe in load_recipes()[0]:
        ours, cause = recipe.on(recipe.dataset), load_causes()[recipe.id]
        assert cause.symptoms(recipe.dataset) == ours.symptoms
        assert cause.on(recipe.dataset) == (*ours.symptoms, *ours.observations)


def test_each_other_text_is_an_attempt(workspace: Workspace) -> None:
    reached = GoalItem(says="it learns", reached=True, found="yes")
    missed = reached.model_copy(update={"reached": False})
    assert keep_attempt(workspace, [missed]).number == 1
    again = keep_attempt(workspace, [reached])
    assert (again.number, again.fixed) == (1, True)
    fixed = workspace.run_folder("fixed") / "experiment.py"
    fixed.write_text(FIXED + "# again\n")
    assert keep_attempt(workspace, []).number == 2
    assert [(one.number, one.fixed) for one in list_attempts(workspace)] == [(1, True), (2, False)]
    assert find_attempt(workspace, 2).source() == FIXED + "# again\n"
    assert find_attempt(workspace, 1).records() == read_lines(workspace, "fixed")
    with pytest.raises(UserError, match="has no attempt 3: choose one from 1 to 2"):
        find_attempt(workspace, 3)


def test_an_attempt_that_an_interrupt_left_half_done_is_made_again(workspace: Workspace) -> None:
    keep_attempt(workspace, [])
    (workspace.folder / "attempts" / "001" / "judged.json").write_text("{")
    assert list_attempts(workspace) == []
    assert keep_attempt(workspace, []).number == 1


def test_starting_over_moves_the_attempts_aside(workspace: Workspace, tmp_path: Path) -> None:
    keep_attempt(workspace, [])
    kept = remove_workspace(tmp_path, "huge_lr")
    assert (kept / "attempts" / "001" / "experiment.py").read_text() == FIXED


def test_history_shows_attempts_and_edits(workspace: Workspace, tmp_path: Path) -> None:
    work = ("--work", str(tmp_path))
    assert "No attempt yet: edit " in succeed("history", "huge_lr", *work, cwd=tmp_path)
    keep_attempt(workspace, [GoalItem(says="it learns", reached=True, found="yes")])
    assert "fixed" in succeed("history", "huge_lr", *work, cwd=tmp_path)
    page = (workspace.folder / "history.html").read_text()
    assert "attempt 1" in page
    assert all(html.escape(line) in page for line in edit_of(BROKEN, FIXED))
    said = succeed("history", "huge_lr", "--diff", "1", *work, cwd=tmp_path)
    changed = [line for line in edit_of(BROKEN, FIXED)[2:] if line[0] in "+-"]
    assert changed
    assert all(line in said for line in changed)
    assert "has no attempt 2" in mistake("history", "huge_lr", "--diff", "2", *work, cwd=tmp_path)
    assert size_of(edit_of("a\nb\n", "a\nc\nd\n")) == "+2 -1"
