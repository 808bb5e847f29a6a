import math

import pytest
from instrument_subjects import mini_subject, real_subject
from runs import CHANCE, MINI, edited
from test_instruments_overfit import REGRESSION

from harness.checks.first_loss import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_a_first_loss_that_is_no_guess_is_found() -> None:
    broken = measure(real_subject("loss_sum"))
    assert broken.outcome == "high"
    assert broken.ratio == pytest.approx(64, rel=0.05)
    healthy = measure(real_subject("loss_sum", healthy=True))
    assert healthy.outcome == "chance"
    assert healthy.guess == math.log(10)


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (CHANCE, "chance"),
        (edited(MINI, ("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs, labels) / 10")), "low"),
        (
            edited(MINI, ("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs / 0, labels)")),
            "non-finite",
        ),
    ],
    ids=["chance", "low", "non-finite"],
)
def test_outcomes(source: str, outcome: str) -> None:
    assert measure(mini_subject(source)).outcome == outcome


def test_a_regression_is_held_against_the_variance_of_its_targets() -> None:
    measured = measure(mini_subject(REGRESSION))
    assert measured.classes is None
    assert "variance of the targets" in show(measured).figures
