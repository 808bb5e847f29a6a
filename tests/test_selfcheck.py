"""`grader selfcheck`: its parts with invented values, and the whole command on a recipe that later fails."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.sandbox_marks import needs_sandbox

from grader.cli import cli
from grader.replay.replay import Replay
from grader.score.verdict import RubricItem, full, lost, open_item
from grader.selfcheck import seeds as trips
from grader.selfcheck.calibration import Calibration, Quantity, calibration_page, calibration_path, load_calibration
from grader.selfcheck.command import SelfcheckOptions, run_selfcheck
from grader.selfcheck.fixes import problem_of
from grader.selfcheck.guide import field_guide, interview_cards, matrix, parts_of
from grader.selfcheck.new_recipe import propose, recipe_toml
from grader.selfcheck.seeds import MeasuredOutcomes, SeedRuns, band_of, entry, problems_of, quantity_of, sound_edits
from harness.checks.core.outcomes import outcomes_of, trips_of
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import KnownFix, Verdict
from harness.recipes.recipe import EXERCISES, SOLUTIONS, Recipe, load_recipes
from harness.run.symptoms import judge_symptom
from harness.written.exercise import load_exercise

RECIPE = load_recipe("huge_lr")
MIXED = {"overfit": "reaches", "first_loss": "high"}
SOUND = {"overfit": "reaches", "first_loss": "chance"}
UNSOUND = {"overfit": "diverges", "first_loss": "high"}


def replayed(loss: float, accuracy: float = 0.95, digest: str = "a") -> Replay:
    """Return a replay with two records."""
    layers = {place: {"mean": 0.0, "var": 1.0} for place in ("first", "last")}
    batch = {"step": 0, "epoch": 0, "loss": loss, "lr": 0.1, "grad_mean": {"0.weight": 0.1}, "activations": layers}
    epoch = {"epoch": 0, "val_loss": 1.0, "val_accuracy": accuracy}
    log = "".join(json.dumps(record) + "\n" for record in (batch, epoch))
    return Replay(status="OK", log=log, log_sha256=digest, checkpoint_sha256=digest)


def seed_runs(broken: Replay, healthy: Replay, again: Replay | None = None) -> SeedRuns:
    return SeedRuns(RECIPE, "digits", {100: (broken, again or broken)}, {100: (healthy, healthy)})


BROKEN, HEALTHY = replayed(1e4, 0.1), replayed(2.3)


@pytest.mark.parametrize(
    ("broken", "healthy", "expected"),
    [
        ([UNSOUND, UNSOUND], [SOUND], UNSOUND),
        ([UNSOUND, {**UNSOUND, "overfit": "stalls"}], [SOUND], {"first_loss": "high"}),
        ([UNSOUND, SOUND], [SOUND], {}),
        ([UNSOUND], [SOUND, {**SOUND, "first_loss": "high"}], {"overfit": "diverges"}),
        ([SOUND], [SOUND], {}),
        ([UNSOUND, {"overfit": "diverges"}], [SOUND], UNSOUND),
        ([UNSOUND, {"overfit": "stalls"}], [SOUND], {"first_loss": "high"}),
    ],
    ids=["tripped", "seeds differ", "one seed sound", "healthy unsound", "sound", "one check again", "it differs"],
)
def test_a_break_trips_what_all_seeds_agree_on(
    broken: list[dict[str, str]], healthy: list[dict[str, str]], expected: dict[str, str]
) -> None:
    found = trips.summarize_outcomes(broken, healthy)
    assert found.trips == expected
    assert found.alarms == (["first_loss"] if healthy[-1] != SOUND else [])


def test_what_was_measured_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    trips.measured_path("mine", tmp_path).write_text(trips.measured_toml(trips.summarize_outcomes([MIXED], [SOUND])))
    assert trips_of("mine", tmp_path) == {"first_loss": "high"}
    assert outcomes_of("mine", tmp_path) == MIXED


def test_recipes_are_told_apart_by_a_check_else_by_a_symptom() -> None:
    one, other = seed_runs(BROKEN, HEALTHY), seed_runs(HEALTHY, HEALTHY)
    assert trips.differences(
        one, one, MeasuredOutcomes(UNSOUND, {}), MeasuredOutcomes({"overfit": "diverges"}, {})
    ) == ["first_loss"]
    alike = MeasuredOutcomes(UNSOUND, {}), MeasuredOutcomes(UNSOUND, {})
    assert trips.differences(one, other, *alike) == ["max loss", "last val_accuracy"]
    assert trips.differences(one, one, *alike) == []
    sound = (
        MeasuredOutcomes(UNSOUND, {"data": "sound", "decay": "slight"}),
        MeasuredOutcomes(UNSOUND, {"decay": "no-decay"}),
    )
    assert trips.differences(one, one, *sound) == ["decay, sound"]


def test_a_run_that_is_not_as_declared_is_named() -> None:
    assert list(problems_of(seed_runs(BROKEN, HEALTHY))) == []
    wrong = list(problems_of(seed_runs(HEALTHY, BROKEN, again=replayed(2.3, digest="b"))))
    names = [problem.partition(": ")[0].rpartition(", ")[2] for problem in wrong]
    assert names == ["broken run"] * 3 + ["healthy run"] * 2
    assert "a second run gives different bytes" in wrong[0]
    failed = Replay(status="RE", message="it raised")
    assert next(problems_of(seed_runs(failed, HEALTHY))).endswith("broken run: it raised")
    found = quantity_of(seed_runs(BROKEN, HEALTHY), RECIPE.symptoms[0])
    assert found.row() == ("digits", "max loss, 0 to 20", "> 50", "1e+04 to 1e+04", "2.3 to 2.3")


CORRECT, MINIMAL = ("correct", "", 12.0), ("minimal", "", 8.0)
JUDGED: dict[str, tuple[RubricItem, RubricItem]] = {
    "right": (full(*CORRECT, ""), full(*MINIMAL, "")),
    "overreaching": (full(*CORRECT, ""), lost(*MINIMAL, "", "", points=2.0)),
    "masked": (lost(*CORRECT, "", "", points=4.0), lost(*MINIMAL, "", "")),
    "open": (open_item(*CORRECT, ""), open_item(*MINIMAL, "")),
}


@pytest.mark.parametrize(
    ("verdict", "agrees"),
    [
        ("full", {"right"}),
        ("overreach", {"overreaching", "open"}),
        ("masking", {"masked", "open"}),
        ("wrong", {"masked"}),
        ("sound", {"masked", "right", "overreaching", "open"}),
    ],
)
def test_a_known_fix_gets_the_points_of_its_verdict(verdict: Verdict, agrees: set[str]) -> None:
    fix = KnownFix(RECIPE, "mine", verdict, "")
    assert {name for name, checks in JUDGED.items() if problem_of(fix, checks) == ""} == agrees


def test_a_band_is_measured_on_the_network_that_the_evaluator_builds() -> None:
    """Weights of a network with another activation fit the evaluator's network, but their metric is meaningless."""
    edits = sound_edits(load_recipe("amp_no_scaling"))
    assert any("lr=0.002" in text for text in edits)
    assert not any("nn.Tanh" in text or "Linear(48" in text for text in edits)


def test_a_band_is_the_largest_distance_of_anything_sound_rounded_up() -> None:
    accuracy = band_of("e", "d", [0.95, 0.93], [(0.95, 0.911)], by_accuracy=True)
    assert (accuracy.accuracy_below, accuracy.loss_times, accuracy.reference) == (0.04, None, (0.93, 0.95))
    assert band_of("e", "d", [1.0, 1.0], [(1.0, 1.0)], by_accuracy=True).accuracy_below == 0.01
    loss = band_of("e", "d", [1e-8, 3e-8], [(1e-8, 2e-8)], by_accuracy=False)
    assert (loss.accuracy_below, loss.loss_times) == (None, 3.0)
    assert entry(loss).endswith("loss_times = 3.0\nreference = [1e-08, 3e-08]\n")
    likelihood = band_of("e", "d", [-0.7, -0.6], [(-0.7, -0.45)], by_accuracy=False)
    assert (likelihood.loss_times, likelihood.loss_above) == (None, 0.25)
    assert [likelihood.limit(value) for value in (-0.7, 0.0)] == [pytest.approx(-0.45), 0.25]
    with pytest.raises(ValueError, match="non-finite"):
        band_of("e", "d", [0.9], [(0.9, float("nan"))], by_accuracy=True)


@needs_sandbox
@pytest.mark.slow
def test_one_recipe_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """First everything agrees. Then a wrong threshold, a wrong trip and an unusable neighbour are each reported."""
    exercises, solutions = tmp_path / "exercises", tmp_path / "solutions"
    shutil.copytree(EXERCISES / RECIPE.id, exercises / RECIPE.id)
    shutil.copytree(SOLUTIONS / RECIPE.id, solutions / RECIPE.id)
    monkeypatch.setenv("TRAINWRECK_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path / "replays"))
    options = SelfcheckOptions(seeds=1, jobs=2, exercises=exercises, solutions=solutions)
    assert run_selfcheck(options) == 0
    assert "Disagreements: 0." in capsys.readouterr().out
    (exercises / "unusable").mkdir()
    (exercises / "unusable" / "recipe.toml").write_text("format_version = 2\n")
    recipe = exercises / RECIPE.id / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("above  = 50.0", "above  = 1e30"))
    trips.measured_path(RECIPE.id, solutions).write_text(
        trips.measured_toml(trips.summarize_outcomes([UNSOUND], [SOUND]))
    )
    assert run_selfcheck(options) == 1
    out = capsys.readouterr().out
    assert "seed 100, broken run: max loss is" in out
    assert "measured.toml contains" in out
    assert "unusable/recipe.toml cannot be used: title: this key is missing" in out


# --- calibration ---


def test_a_calibration_is_read_back_as_it_was_measured(tmp_path: Path) -> None:
    spans = {"broken": (-math.inf, 4.073e4), "healthy": (0.0, 1.16e-9)}
    quantities = (
        Quantity(data="digits", quantity="max loss, 0 to 20", present_if="> 50", **spans),
        Quantity(data="digits", quantity="last lr", present_if="", broken=(0.1, 0.1)),
    )
    edits: dict[Verdict, tuple[str, ...]] = {"full": ("reference", "rate 0.02"), "sound": ("a_long_name",) * 30}
    found = Calibration(seeds=5, quantities=quantities, left_out=("adam",), wrong=('a | "b" \\ c',), edits=edits)
    path = calibration_path("huge_lr", tmp_path)
    assert load_calibration("huge_lr", tmp_path) is None
    path.parent.mkdir()
    path.write_text(found.toml())
    assert load_calibration("huge_lr", tmp_path) == found
    assert max(map(len, path.read_text().splitlines())) <= 130
    page = calibration_page([RECIPE], {"huge_lr": UNSOUND}, {"huge_lr": UNSOUND}, {"huge_lr": found})
    assert "| digits | max loss, 0 to 20 | > 50 | -inf to 4.073e+04 | 0 to 1.16e-09 |" in page
    assert "| digits | last lr |  | 0.1 to 0.1 | - |" in page
    assert (
        "\nThe grader judges 32 known edits as expected."
        " These edits are left out, because the break has changed the same code: adam.\n" in page
    )
    assert '\n- **wrong:** a \\| "b" \\ c\n' in page


def test_the_page_of_calibration_says_what_tells_two_recipes_apart() -> None:
    recipes = [load_recipe(name) for name in ("huge_lr", "loss_sum", "adam_l2")]
    ids = [recipe.id for recipe in recipes]
    trips = dict(zip(ids, (UNSOUND, {"overfit": "diverges"}, {"overfit": "diverges"}), strict=True))
    outcomes = dict(zip(ids, (UNSOUND, SOUND, {**SOUND, "first_loss": "low"}), strict=True))
    page = calibration_page(recipes, trips, outcomes, {})
    assert page.count("Not measured yet: `grader selfcheck --only ") == 3
    assert "| huge_lr | loss_sum | first_loss |" in page and "| loss_sum | adam_l2 | first_loss, sound |" in page
    assert "distinguish 2 of 3 pairs" in page
    assert "| loss_sum | adam_l2 | the log |" in calibration_page(recipes, trips, dict.fromkeys(ids, SOUND), {})


@pytest.mark.parametrize("recipe", load_recipes()[0], ids=lambda recipe: recipe.id)
def test_what_was_measured_of_each_recipe_is_what_it_declares(recipe: Recipe) -> None:
    """After a change of a bound or a symptom, the recipe must be measured again."""
    found = load_calibration(recipe.id)
    assert found is not None and found.seeds >= 5 and found.wrong == ()
    assert found.edits["full"][0] == "reference"
    declared = recipe.on(recipe.dataset)
    measured = [one for one in found.quantities if one.data == recipe.dataset]
    for symptom, one in zip((*declared.symptoms, *declared.observations), measured, strict=True):
        assert one.quantity.startswith(f"{symptom.reduce} {symptom.signal}")
        low = -math.inf if symptom.above is None else symptom.above
        high = math.inf if symptom.below is None else symptom.below
        assert one.broken is not None and one.healthy is not None
        assert low <= one.broken[0] and one.broken[1] <= high
        inside = low < one.healthy[0] and one.healthy[1] < high
        outside = one.healthy[1] <= low or high <= one.healthy[0]
        assert outside if symptom in declared.symptoms else inside


# --- new recipes ---


def logs(*values: float) -> list[list[dict[str, float]]]:
    """Return the records of runs that differ only in their loss."""
    return [[{"step": 0, "epoch": 0, "loss": value, "lr": 0.1}] for value in values]


@pytest.mark.parametrize(
    ("broken", "healthy", "bounds"),
    [
        ((100.0, 400.0), (1.0, 4.0), (20.0, None)),
        ((0.1, 0.2), (2.0, 3.0), (None, 0.6)),
        ((math.inf, math.inf), (2.0, 3.0), (30.0, None)),
        ((50.0, 60.0), (0.0, 0.0), (0.5, None)),
        ((2.0, 3.0), (2.5, 4.0), None),
        ((2.1, 2.2), (2.0, 2.0), None),
        ((math.nan, 5.0), (1.0, 1.0), None),
    ],
    ids=["above", "below", "infinite", "from zero", "overlap", "too close", "not a number"],
)
def test_a_threshold_lies_in_the_gap(
    broken: tuple[float, ...], healthy: tuple[float, ...], bounds: tuple[float | None, float | None] | None
) -> None:
    proposals = [item for item in propose(logs(*broken), logs(*healthy)) if item.reduce != "max"]
    assert [(item.above, item.below) for item in proposals] == ([] if bounds is None else [bounds])
    for symptom in proposals:
        assert all(judge_symptom(records, symptom).present for records in logs(*broken))
        assert not any(judge_symptom(records, symptom).present for records in logs(*healthy))


def test_a_written_recipe_is_read_back_once_its_gaps_are_filled(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "PROMPT.md").write_text("x")
    (folder / "recipe.toml").write_text(recipe_toml(RECIPE))
    assert load_recipe("mine", tmp_path) == RECIPE.model_copy(update={"id": "mine", "goal": None})
    draft = RECIPE.model_copy(update={"hints": ("...",) * 3, "cause": "..."})
    (folder / "recipe.toml").write_text(recipe_toml(draft))
    with pytest.raises(UserError, match=r"cause: still \.\.\.: write it; hints #1: "):
        load_exercise("mine", tmp_path)


NEW = ("--experiment", "digits_mlp", "--find")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("selfcheck", "--only", "hugelr"), r"did you mean huge_lr\?"),
        (("selfcheck", "--seeds", "1", "--write"), "needs --seeds 5"),
        (("new-recipe", "huge_lr", *NEW, "x", "--replace", "b"), "already an exercise huge_lr"),
        (("new-recipe", "Mine!", *NEW, "x", "--replace", "b"), "cannot be an id"),
        (("new-recipe", "mine", *NEW, "x", *NEW, "y", "--replace", "b"), "Every --find needs one --replace"),
        (("new-recipe", "mine", *NEW, "nowhere", "--replace", "b"), "applied to digits_mlp: .*occurs 0 times"),
        (("new-recipe", "mine", *NEW, "lr=0.1", "--replace", "lr="), "digits_mlp: line 30 is not Python"),
        (("new-recipe", "mine", *NEW, "lr=0.1", "--replace", "lr=0.1"), "changes nothing"),
        (("new-recipe", "mine", *NEW, "x", "--replace", "b", "--dataset", "zzz"), "There is no data set zzz: choose"),
    ],
)
@needs_sandbox
def test_a_mistake_in_the_command_is_named(given: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, given)
    assert isinstance(result.exception, UserError)
    assert re.search(message, str(result.exception))


def test_the_guides_tell_of_every_recipe_whatever_was_measured() -> None:
    recipes, _ = load_recipes()
    for page in (
        field_guide(recipes, {}),
        interview_cards(recipes),
        matrix(recipes, {"huge_lr": {"overfit": "diverges"}}, {}),
    ):
        assert all(recipe.id in page for recipe in recipes)
    guide = field_guide(recipes, {"huge_lr": {"overfit": "diverges", "learning_rate": "too-large"}})
    assert "`overfit` says `diverges`, `learning-rate` says `too-large`." in guide
    drawn = matrix(recipes, {"huge_lr": {"overfit": "diverges"}}, {"huge_lr": {"learning_rate": "too-large"}})
    assert "| huge_lr | first | ○ |" in drawn and "| loss_sum | no |" in drawn and "for 1 of" in drawn
    parts = {"Cause", "Why it looks so", "Fix", "What masks it", "Interview question"}
    assert all(parts <= parts_of(recipe).keys() for recipe in recipes)
