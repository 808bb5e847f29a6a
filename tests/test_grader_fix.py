import dataclasses

import pytest
from helpers.grading import behaviour, checks, comparison, evidence, replay, replay_with
from helpers.mini_experiments import edited

from grader.replay.replay import CheckResult, Evaluation, Replay, SplitFigures
from grader.replay.request import Request, Role
from grader.score.evidence import Evidence
from grader.score.fix import further_requests, judge_fix
from grader.score.measurements import measurements
from grader.score.verdict import RubricItem
from grader.selfcheck.runs import request_of
from grader.syntax.plain_edit import Suspicion
from harness.recipes.catalogue import load_recipe
from harness.run.settings import RunSettings

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"
OWN = RunSettings(seed=42, dataset="digits")
BROKEN = load_recipe(RECIPE).broken_source()
OTHER = edited(BROKEN, ("lr=10.0", "lr=0.05"))


def correct(of: Evidence) -> RubricItem:
    return judge_fix(of)[0]


def test_the_reference_fix_is_known_by_its_program() -> None:
    found = correct(evidence(RECIPE))
    assert (found.outcome, found.points) == ("passed", 12)
    assert "the same as the reference fix" in found.reason


def test_the_untouched_experiment_earns_nothing() -> None:
    checks = judge_fix(evidence(RECIPE, BROKEN))
    assert [check.points for check in checks] == [0, 0]


def test_another_sound_fix_is_judged_by_evaluator_symptoms_and_checks() -> None:
    found = correct(evidence(RECIPE, OTHER))
    assert (found.outcome, found.points) == ("passed", 12)
    assert "behaves as in a correct program" in found.reason
    names = [item.name for item in measurements(evidence(RECIPE, OTHER))]
    assert any("held-out" in name for name in names)
    assert any(name.startswith("symptom") for name in names)
    assert any(name.startswith("check") for name in names)


def changed(fixed: Replay, **changes: object) -> Replay:
    """Return the replay of a fix that is not the reference fix, with other values."""
    return fixed.model_copy(update={"checkpoint_sha256": "0" * 64, **changes})


def found_by(name: str, outcome: str = "", problem: str = "") -> dict[str, tuple[Replay, Replay]]:
    """Return the checks of a fix, one of them with another outcome, and the reference's checks."""
    sound = checks(RECIPE, BROKEN.replace("lr=10.0", "lr=0.1"))
    others = tuple(result for result in sound.checks if result.check != name)
    changed = sound.model_copy(update={"checks": (*others, CheckResult(check=name, outcome=outcome, problem=problem))})
    return {"checks": (changed, sound)}


TOO_LARGE = found_by("learning_rate", outcome="too-large")


@pytest.mark.parametrize(
    ("name", "outcome", "points"),
    [
        ("learning_rate", "too-large", 4),
        ("learning_rate", "no such outcome", 4),
        ("learning_rate", "usual", 12),
        # This check does not find the break, but it is sound for the reference fix.
        ("modes", "unrepeatable", 4),
    ],
)
def test_a_check_that_is_not_sound_is_a_masked_cause(name: str, outcome: str, points: float) -> None:
    assert correct(evidence(RECIPE, OTHER, **found_by(name, outcome=outcome))).points == points


def test_a_check_that_cannot_be_made_waits_for_the_instructor() -> None:
    found = correct(evidence(RECIPE, OTHER, **found_by("loss_form", problem="line 51: 64 labels are wanted")))
    assert (found.outcome, "line 51: 64 labels" in found.reason) == ("could not judge", True)
    ended = (Replay(status="TO", message="it used up its time"), checks(RECIPE, OTHER))
    assert correct(evidence(RECIPE, OTHER, checks=ended)).points is None


@pytest.mark.parametrize(("accuracy", "points"), [(0.5, 4), (0.2, 4), (0.11, 0), ("NaN", 0)])
def test_a_network_that_is_not_healthy_earns_points_only_if_it_has_learnt(accuracy: float | str, points: float) -> None:
    fixed = replay(RECIPE, OTHER)
    assert fixed.evaluation is not None
    assert fixed.evaluation.heldout is not None
    heldout = fixed.evaluation.heldout.model_copy(update={"accuracy": accuracy})
    ill = changed(fixed, evaluation=fixed.evaluation.model_copy(update={"heldout": heldout}))
    assert correct(evidence(RECIPE, OTHER, fixed=ill)).points == points
    assert correct(evidence(RECIPE, OTHER, fixed=ill, **TOO_LARGE)).points == 0
    misfit = changed(fixed, evaluation=Evaluation(problem="it has 6 tensors"))
    assert correct(evidence(RECIPE, OTHER, fixed=misfit)).points == 0


def test_another_network_is_not_judged_by_an_evaluator_that_does_not_know_it() -> None:
    source = edited(OTHER, ("nn.ReLU()", "nn.Tanh()"))
    found = correct(evidence(RECIPE, source))
    assert (found.outcome, found.points) == ("could not judge", None)
    assert "another network" in found.reason
    # Other settings do not excuse faults.
    assert correct(evidence(RECIPE, source, **TOO_LARGE)).points in (0, 4)


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


@pytest.mark.parametrize(("status", "points"), [("RE", 0), ("TO", 0), ("ML", 0), ("SG", 0), ("OL", 0), ("XX", None)])
def test_a_replay_that_failed_is_a_zero_only_if_it_is_the_students(status: str, points: float | None) -> None:
    fixed = Replay.model_validate({"status": status, "message": "line 51, in train_step"})
    found = evidence(RECIPE, OTHER, fixed=fixed)
    assert correct(found).points == points
    assert measurements(found) == ()


def test_a_symptom_that_the_reference_shows_too_is_excused() -> None:
    """For example, after few epochs a healthy run of another recipe has not recovered either."""
    late = evidence(RECIPE, OTHER)
    strict = late.recipe.symptoms[0].model_copy(update={"above": 0.0})
    recipe = late.recipe.model_copy(update={"symptoms": (strict,)})
    assert correct(dataclasses.replace(late, recipe=recipe)).points == 12


def test_a_masked_cause_does_not_wait_for_a_line_that_could_not_be_checked() -> None:
    suspicion = (Suspicion(line=1, message="line 1 is odd"),)
    assert correct(evidence(RECIPE, OTHER, suspicions=suspicion, **TOO_LARGE)).points == 4


@pytest.mark.parametrize(("recipe", "batch"), [("loss_sum", 1), ("label_permute", 1), ("missing_zero_grad", 10**5)])
def test_settings_under_which_nothing_fails_are_replaced_by_the_recipes_own(recipe: str, batch: int) -> None:
    """A sum over one example is a mean, one label has no order, and a gradient after the last step has no effect."""
    loaded = load_recipe(recipe)
    own = RunSettings(seed=loaded.seed, dataset=loaded.dataset)
    chosen = dataclasses.replace(own, batch_size=batch, epochs=1, max_steps=60)
    touched = edited(loaded.broken_source(), ("lr=0.", "lr=0.00"))
    sources: dict[Role, str] = {
        "broken": loaded.broken_source(),
        "reference": loaded.healthy_source(),
        "fixed": touched,
    }
    requests = {role: request_of(loaded, source, chosen, trusted=role != "fixed") for role, source in sources.items()}
    replays: dict[Role, Replay] = {role: replay_with(loaded, one.source, chosen) for role, one in requests.items()}
    further = further_requests(requests, replays)
    assert {role: (one.settings, one.source) for role, one in further.items()} == {
        f"own {role}": (own, source) for role, source in sources.items()
    }
    replays |= {role: replay_with(loaded, one.source, one.settings) for role, one in further.items()}
    rest = further_requests({**requests, **further}, replays)
    assert all(one.kind == "behaviour" and one.settings.batch_size == 64 for one in rest.values())
    made = evidence(recipe, touched, settings=chosen, own=further and replays)
    assert not correct(made).points


def test_equal_bytes_are_not_enough_and_right_behaviour_needs_no_checks() -> None:
    requests: dict[Role, Request] = {
        "broken": request_of(load_recipe(RECIPE), BROKEN, OWN),
        "reference": request_of(load_recipe(RECIPE), OTHER, OWN),
        "fixed": request_of(load_recipe(RECIPE), OTHER, OWN, trusted=False),
    }
    replays: dict[Role, Replay] = {role: replay(RECIPE, one.source) for role, one in requests.items()}
    wanted = further_requests(requests, replays)
    assert wanted.keys() == {"fixed behaviour", "reference behaviour", f"broken behaviour {RECIPE}"}
    measured = {role: behaviour(RECIPE, one.source) for role, one in wanted.items()}
    assert further_requests({**requests, **wanted}, {**replays, **measured}) == {}


def test_a_fix_that_a_run_does_not_show_is_told_by_its_behaviour() -> None:
    unseen = replay(RECIPE, BROKEN)  # as if the run did not use the edit
    assert "fixes nothing" in correct(evidence(RECIPE, OTHER, fixed=unseen, comparison=None)).reason
    assert "fixes nothing" not in correct(evidence(RECIPE, OTHER, fixed=unseen)).reason


def test_a_resumed_run_proves_more_than_the_entries_of_its_checkpoint() -> None:
    def with_results(**results: str) -> tuple[Replay, Replay]:
        own, reference = (
            made.model_copy(
                update={"checks": tuple(CheckResult(check=name, outcome=one) for name, one in outcomes.items())}
            )
            for made, outcomes in zip(
                [checks(RECIPE, OTHER)] * 2, (results, {"saving": "sound", "resume": "continues"}), strict=True
            )
        )
        return own, reference

    def judged(**results: str) -> dict[str, bool]:
        made = measurements(evidence(RECIPE, OTHER, checks=with_results(**results)))
        return {one.name: one.good for one in made if one.name.startswith("check ")}

    assert judged(saving="schedule-missing", resume="continues") == {"check resume": True}
    assert judged(saving="schedule-missing", resume="departs") == {"check saving": False, "check resume": False}


# Both ends of the range, a number near it, and a number outside.
@pytest.mark.parametrize(("rate", "points"), [("0.02", 12), ("0.2", 12), ("0.01", None), ("0.0005", 4)])
def test_a_number_is_right_within_its_range(rate: str, points: float | None) -> None:
    found = correct(evidence(RECIPE, edited(BROKEN, ("lr=10.0", f"lr={rate}")), checks=None))
    assert found.points == points, found.reason


def test_a_fault_that_another_part_of_the_program_makes_up_for_waits() -> None:
    lower = "    optimizer.param_groups[0]['lr'] = 0.1\n    optimizer.step()\n"
    found = correct(evidence(RECIPE, edited(BROKEN, ("    optimizer.step()\n", lower)), checks=None))
    assert found.points is None
    assert "update rule" in found.reason


def test_right_data_in_another_order_need_no_evaluator() -> None:
    """The evaluator prepares its examples like the reference fix, so it cannot judge other correct data."""
    fixed = replay(RECIPE, OTHER)
    assert fixed.evaluation is not None
    figures = SplitFigures(loss=9.0, accuracy=0.1)
    misfit = changed(fixed, evaluation=fixed.evaluation.model_copy(update={"heldout": figures}))
    right = comparison(RECIPE, edited(BROKEN, ("lr=10.0", "lr=0.1")))
    assert right is not None
    assert right.is_right
    for other_data, points in ((True, 12), (False, 0)):
        one = dataclasses.replace(right, other_data=other_data)
        assert correct(evidence(RECIPE, OTHER, fixed=misfit, comparison=one)).points == points


@pytest.mark.slow
def test_a_feature_that_is_switched_off_is_a_masked_cause() -> None:
    recipe = "forgotten_eval"
    source = edited(load_recipe(recipe).healthy_source(), ("nn.Dropout(0.6)", "nn.Dropout(0.0)"))
    found = correct(evidence(recipe, source, checks=None))
    assert (found.points, "dropout" in found.reason) == (4, True), found.reason


def test_one_of_two_causes_earns_half() -> None:
    fixed, left = (comparison(RECIPE, edited(BROKEN, ("lr=10.0", f"lr={rate}"))) for rate in ("0.1", "5.0"))
    assert fixed is not None
    assert left is not None
    two = dataclasses.replace(fixed, causes=(*fixed.causes, *left.causes))
    found = correct(evidence(RECIPE, OTHER, comparison=two))
    assert (found.outcome, found.points) == ("failed", 6)
