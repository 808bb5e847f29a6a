import pytest
from instrument_subjects import mini_subject, real_subject
from runs import AMP, MINI, edited

from harness.checks.amp_off import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_what_mixed_precision_loses_is_found() -> None:
    broken = measure(real_subject("amp_no_scaling"), steps=12)
    assert broken.outcome == "better-without"
    assert broken.zeros(broken.records) > broken.zeros(broken.without) + 0.3


def test_mixed_precision_that_is_scaled_loses_nothing() -> None:
    healthy = measure(mini_subject(AMP), steps=15)
    assert healthy.outcome == "same"
    assert healthy.loss(healthy.records) == pytest.approx(healthy.loss(healthy.without), rel=0.05)
    assert healthy.records != healthy.without
    assert [row[0] for row in show(healthy).tables[0].rows] == ["as it is", "AMP off"]


def test_a_loss_that_overflows_in_float16_is_better_without() -> None:
    overflows = edited(AMP, ("F.cross_entropy(outputs, labels)", "F.cross_entropy(1e6 * outputs, labels)"))
    assert measure(mini_subject(overflows), steps=6).outcome == "better-without"


@pytest.mark.parametrize("source", [MINI, edited(AMP, ("AMP = True", "AMP = False"))], ids=["none", "off"])
def test_where_there_is_none_nothing_is_trained(source: str) -> None:
    measured = measure(mini_subject(source))
    assert (measured.outcome, measured.records) == ("no-autocast", [])
    assert show(measured).tables == ()
