import dataclasses
from typing import Any

import pytest
from grading import evidence, replay, replay_with
from mini_experiments import edited

from grader.replay.replay import CheckResult, Evaluation, Replay
from grader.score.belief import same_bytes
from grader.score.evidence import Evidence
from grader.score.fix import judge_fix
from grader.score.measured import measurements
from grader.score.verdict import Check
from grader.syntax.plain_edit import Suspicion
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"
BROKEN = load_recipe(RECIPE).broken_source()
OTHER = edited(BROKEN, ("lr=10.0", "lr=0.05"))


def correct(of: Evidence) -> Check:
    return judge_fix(of)[0]


def test_the_reference_fix_is_known_by_its_bytes_alone() -> None:
    found = correct(evidence(RECIPE))
    assert (found.outcome, found.points) == ("passed", 12)
    assert "byte for byte" in found.reason


def test_the_untouched_experiment_earns_nothing() -> None:
    checks = judge_fix(evidence(RECIPE, BROKEN))
    assert [check.points for check in checks] == [0, 0]


def test_another_sound_fix_is_judged_by_evaluator_symptoms_and_checks() -> None:
    found = correct(evidence(RECIPE, OTHER))
    assert (found.outcome, found.points) == ("passed", 12)
    assert "trusted evaluator" in found.reason
    names = [item.name for item in measurements(evidence(RECIPE, OTHER))]
    assert any("held-out" in name for name in names)
    assert any(name.startswith("symptom") for name in names)
    assert any(name.startswith("check") for name in names)


def changed(fixed: Replay, **changes: object) -> Replay:
    """The replay of a fix that is not the reference's, with other figures."""
    return fixed.model_copy(update={"checkpoint_sha256": "0" * 64, **changes})


def too_large(of: Replay) -> Replay:
    return changed(of, checks=(CheckResult(check="learning_rate", outcome="too-large"),))


@pytest.mark.parametrize(
    ("outcome", "points"), [("too-large", 4), ("no such outcome", 4), ("usual", 12), (None, 4)]
)
def test_a_check_that_is_not_sound_or_not_made_is_a_masked_cause(outcome: str | None, points: float) -> None:
    checks = (CheckResult(check="learning_rate", outcome=outcome),) if outcome else ()
    fixed = changed(replay(RECIPE, OTHER), checks=checks)
    assert correct(evidence(RECIPE, OTHER, fixed=fixed)).points == points


@pytest.mark.parametrize(("accuracy", "points"), [(0.5, 4), (0.2, 4), (0.11, 0), ("NaN", 0)])
def test_a_network_that_is_not_healthy_earns_points_only_if_it_has_learnt(
    accuracy: float | str, points: float
) -> None:
    fixed = replay(RECIPE, OTHER)
    assert fixed.evaluation is not None
    assert fixed.evaluation.heldout is not None
    heldout = fixed.evaluation.heldout.model_copy(update={"accuracy": accuracy})
    ill = changed(fixed, evaluation=fixed.evaluation.model_copy(update={"heldout": heldout}))
    assert correct(evidence(RECIPE, OTHER, fixed=ill)).points == points
    assert correct(evidence(RECIPE, OTHER, fixed=too_large(ill))).points == 0
    misfit = changed(fixed, evaluation=Evaluation(problem="it has 6 tensors"))
    assert correct(evidence(RECIPE, OTHER, fixed=misfit)).points == 0


def test_another_network_is_not_judged_by_an_evaluator_that_does_not_know_it() -> None:
    source = edited(OTHER, ("nn.ReLU()", "nn.Tanh()"))
    found = correct(evidence(RECIPE, source))
    assert (found.outcome, found.points) == ("could not judge", None)
    assert "another network" in found.reason
    # What is wrong whatever the network stays wrong.
    assert correct(evidence(RECIPE, source, fixed=too_large(replay(RECIPE, source)))).points in (0, 4)


def test_a_log_that_says_more_than_the_evaluator_finds_is_no_correct_fix() -> None:
    fixed = replay(RECIPE, OTHER)
    *first, last = fixed.log.splitlines(keepends=True)
    accuracy = fixed.records()[-1]["val_accuracy"]
    lie = "".join(first) + last.replace(f'"val_accuracy": {accuracy}', '"val_accuracy": 0.999')
    assert lie != fixed.log
    assert correct(evidence(RECIPE, OTHER, fixed=changed(fixed, log=lie))).points == 4


def test_suspicious_code_waits_for_the_instructor_unless_the_bytes_tell() -> None:
    suspicion = (Suspicion(line=1, message="line 1 imports sys"),)
    checks = judge_fix(evidence(RECIPE, OTHER, suspicions=suspicion))
    assert [check.outcome for check in checks] == ["could not judge", "could not judge"]
    assert [check.points for check in checks] == [None, None]
    assert "line 1 imports sys" in checks[0].reason
    assert correct(evidence(RECIPE, suspicions=suspicion)).points == 12


@pytest.mark.parametrize(
    ("status", "points"), [("RE", 0), ("TO", 0), ("ML", 0), ("SG", 0), ("OL", 0), ("XX", None)]
)
def test_a_replay_that_failed_is_a_zero_only_if_it_is_the_students(status: str, points: float | None) -> None:
    fixed = Replay.model_validate({"status": status, "message": "line 51, in train_step"})
    found = evidence(RECIPE, OTHER, fixed=fixed)
    assert correct(found).points == points
    assert measurements(found) == ()


def test_a_symptom_that_the_reference_shows_too_is_excused() -> None:
    """With few epochs, say, a healthy run of another recipe has not recovered yet either."""
    late = evidence(RECIPE, OTHER)
    strict = late.recipe.symptoms[0].model_copy(update={"above": 0.0})
    recipe = late.recipe.model_copy(update={"symptoms": (strict,)})
    assert correct(dataclasses.replace(late, recipe=recipe)).points == 12


def test_a_masked_cause_earns_nothing_by_a_log_that_its_code_may_have_made_up() -> None:
    masked = too_large(replay(RECIPE, OTHER))
    suspicion = (Suspicion(line=1, message="line 1 is odd"),)
    assert correct(evidence(RECIPE, OTHER, fixed=masked, suspicions=suspicion)).points is None


@pytest.mark.parametrize(
    ("recipe", "batch"), [("loss_sum", 1), ("label_permute", 1), ("missing_zero_grad", 10**5)]
)
def test_settings_under_which_nothing_fails_prove_no_fix(recipe: str, batch: int) -> None:
    """A sum of one is a mean, one label has no order, and a gradient that stays after the last step does no harm."""
    loaded = load_recipe(recipe)
    settings = RunSettings(seed=loaded.seed, dataset=loaded.dataset, batch_size=batch, epochs=1, max_steps=60)
    sources = (
        loaded.broken_source(),
        loaded.healthy_source(),
        edited(loaded.broken_source(), ("lr=0.", "lr=0.00")),
    )
    broken, reference, touched = (replay_with(recipe, source, settings) for source in sources)
    for source, fixed in ((sources[0], broken), (sources[2], touched)):
        runs: dict[str, Any] = {"broken": broken, "fixed": fixed, "reference": reference}
        found = correct(dataclasses.replace(evidence(recipe), source=source, settings=settings, **runs))
        assert not found.points, found.reason
    if recipe == "missing_zero_grad":
        assert same_bytes(broken, reference)


def test_what_shows_no_symptom_where_the_broken_run_shows_none_is_not_masked() -> None:
    quiet = replay(RECIPE, OTHER)
    broken = quiet.model_copy(update={"log_sha256": "1" * 64})
    found = correct(evidence(RECIPE, OTHER, broken=broken, fixed=too_large(quiet)))
    assert found.points == 0
    assert "shows no symptom either" in found.reason


def test_a_learning_rate_is_held_against_its_bound_in_every_step() -> None:
    """A check sees the first steps of a run, and an experiment may behave well only in those."""
    fixed = replay(RECIPE, OTHER)
    *first, last = fixed.log.splitlines(keepends=True)
    steps = "".join(first).rpartition('"lr": 0.05')
    late = changed(fixed, log=f'{steps[0]}"lr": 10.0{steps[2]}{last}')
    found = correct(evidence(RECIPE, OTHER, fixed=late))
    assert found.points == 4
    assert "largest lr in the log" in found.reason
