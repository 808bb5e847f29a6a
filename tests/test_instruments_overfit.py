import math

import pytest
from instrument_subjects import mini_subject, real_subject
from runs import AMP, CHANCE, MINI, edited

from harness.checks.overfit import BLOW_UP, MOST_STEPS, STEPS, TARGET, measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")

REGRESSION = edited(
    MINI,
    ("return train, (data.validation.images.float() / 255, data.validation.labels)",
     "return tuple((x, x.flatten(1)) for x, _ in"
     " (train, (data.validation.images.float() / 255, data.validation.labels)))"),
    ("nn.ReLU(), nn.Linear(16, 10)", "nn.Tanh(), nn.Linear(16, 36)"),
    ("F.cross_entropy(outputs, labels)", "F.mse_loss(outputs, labels)"),
    ("SGD(model.parameters(), lr=0.05, momentum=0.9)", "Adam(model.parameters(), lr=0.02)"),
)  # fmt: skip


def test_a_healthy_network_learns_a_batch_and_one_that_has_a_floor_does_not() -> None:
    healthy = measure(real_subject("double_softmax", healthy=True))
    assert healthy.outcome == "reaches"
    assert healthy.reached_at is not None
    assert healthy.reached_at < 60
    assert healthy.losses[-1] <= TARGET < healthy.losses[-2]
    broken = measure(real_subject("double_softmax"))
    assert (broken.outcome, broken.reached_at, len(broken.losses)) == ("stalls", None, 120)
    assert min(broken.losses) > 1.46


def test_whoever_is_slow_gets_more_steps_while_the_loss_falls() -> None:
    slow = edited(MINI, ("lr=0.05, momentum=0.9", "lr=0.2"))
    measured = measure(mini_subject(slow))
    assert measured.outcome == "reaches"
    assert measured.reached_at is not None
    assert STEPS < measured.reached_at == len(measured.losses) - 1 < MOST_STEPS
    assert [record["step"] for record in measured.records] == list(range(len(measured.losses)))
    slower = measure(mini_subject(slow.replace("lr=0.2", "lr=0.1")))
    assert (slower.outcome, len(slower.losses)) == ("stalls", MOST_STEPS)
    told = measure(mini_subject(slow), steps=STEPS)
    assert (told.outcome, len(told.losses)) == ("stalls", STEPS)


def test_steps_that_are_far_too_long_are_told_from_a_loss_that_stays() -> None:
    broken = measure(real_subject("huge_lr"))
    assert broken.outcome == "diverges"
    assert max(broken.losses) > BLOW_UP * broken.losses[0]


def test_what_keeps_the_loss_up_on_purpose_is_off() -> None:
    decayed = edited(CHANCE, ("momentum=0.9", "momentum=0.9, weight_decay=1.0"))
    measured = measure(mini_subject(decayed), steps=200)
    assert measured.outcome == "reaches"
    assert measured.examples == 8


def test_a_number_that_is_none_diverges() -> None:
    measured = measure(mini_subject(edited(MINI, ("lr=0.05", "lr=1e30"))))
    assert measured.outcome == "diverges"
    assert not math.isfinite(measured.losses[-1])
    assert show(measured).figures["lowest loss"] == pytest.approx(2.3, abs=0.2)


def test_a_regression_has_a_target_in_its_own_unit() -> None:
    measured = measure(mini_subject(REGRESSION), steps=200)
    assert measured.outcome == "reaches"
    assert 0.001 < measured.target < 0.1
    assert measured.reached_at


def test_the_evidence_is_the_curve_of_its_own_optimizer() -> None:
    evidence = show(measure(mini_subject(AMP), steps=5, examples=3))
    assert evidence.outcome == "stalls"
    assert "the first 3 examples, 5 steps" in evidence.what
    curve, level = evidence.plots[0].lines
    assert [x for x, _ in curve.points] == [0, 1, 2, 3, 4]
    assert {y for _, y in level.points} == {TARGET}
    assert evidence.figures["reached at step"] is None
