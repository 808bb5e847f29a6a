import dataclasses

import pytest
from grading import evidence, replay
from runs import edited

from grader.evidence import Evidence
from grader.exhibits import Number
from grader.replay import Evaluation, ProbeFigure, Replay
from grader.rubric.fix import judge_fix, measurements
from grader.score import Check
from grader.syntax.plain_code import Suspicion
from harness.recipe import load_recipe

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


def test_another_sound_fix_is_judged_by_evaluator_symptoms_and_probes() -> None:
    found = correct(evidence(RECIPE, OTHER))
    assert (found.outcome, found.points) == ("passed", 12)
    assert "trusted evaluator" in found.reason
    names = [item.name for item in measurements(evidence(RECIPE, OTHER))]
    assert any("held-out" in name for name in names)
    assert any(name.startswith("symptom") for name in names)
    assert any(name.startswith("probe") for name in names)


def changed(fixed: Replay, **changes: object) -> Replay:
    """The replay of a fix that is not the reference's, with other figures."""
    return fixed.model_copy(update={"checkpoint_sha256": "0" * 64, **changes})


@pytest.mark.parametrize(
    ("value", "points"),
    [(1.0, 4), ("NaN", 4), ("Infinity", 4), (0.999, 12)],
)
def test_a_probe_that_fails_is_a_masked_cause(value: Number, points: float) -> None:
    fixed = changed(replay(RECIPE, OTHER), probes=(ProbeFigure(kind="learning_rate", value=value),))
    assert correct(evidence(RECIPE, OTHER, fixed=fixed)).points == points


def test_a_probe_that_measured_nothing_has_not_passed() -> None:
    assert correct(evidence(RECIPE, OTHER, fixed=changed(replay(RECIPE, OTHER), probes=()))).points == 4


@pytest.mark.parametrize("accuracy", [0.5, "NaN", None])
def test_a_network_that_is_not_healthy_is_no_correct_fix(accuracy: float | str | None) -> None:
    fixed = replay(RECIPE, OTHER)
    assert fixed.evaluation is not None
    assert fixed.evaluation.heldout is not None
    heldout = fixed.evaluation.heldout.model_copy(update={"accuracy": accuracy})
    ill = changed(fixed, evaluation=fixed.evaluation.model_copy(update={"heldout": heldout}))
    assert correct(evidence(RECIPE, OTHER, fixed=ill)).points == 4
    both = changed(ill, probes=(ProbeFigure(kind="learning_rate", value=1.0),))
    assert correct(evidence(RECIPE, OTHER, fixed=both)).points == 0


def test_weights_that_do_not_fit_are_no_correct_fix() -> None:
    fixed = changed(replay(RECIPE, OTHER), evaluation=Evaluation(problem="it has 6 tensors"))
    found = correct(evidence(RECIPE, OTHER, fixed=fixed))
    assert found.points == 4
    assert "it has 6 tensors" in found.reason


def test_another_network_is_not_judged_by_an_evaluator_that_does_not_know_it() -> None:
    source = edited(OTHER, ("nn.ReLU()", "nn.Tanh()"))
    found = correct(evidence(RECIPE, source))
    assert (found.outcome, found.points) == ("could not judge", None)
    assert "another network" in found.reason
    # What is wrong whatever the network stays wrong.
    probes = (ProbeFigure(kind="learning_rate", value=10.0),)
    assert correct(evidence(RECIPE, source, fixed=changed(replay(RECIPE, source), probes=probes))).points in (
        0,
        4,
    )


def test_a_log_that_says_more_than_the_evaluator_finds_is_no_correct_fix() -> None:
    fixed = replay(RECIPE, OTHER)
    *first, last = fixed.log.splitlines(keepends=True)
    accuracy = fixed.records()[-1]["val_accuracy"]
    lie = "".join(first) + last.replace(f'"val_accuracy": {accuracy}', '"val_accuracy": 0.999')
    assert lie != fixed.log
    assert correct(evidence(RECIPE, OTHER, fixed=changed(fixed, log=lie))).points == 4


def test_suspicious_code_waits_for_the_instructor_unless_the_bytes_tell() -> None:
    suspicion = (Suspicion(line=1, code="import", message="line 1 imports sys"),)
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
