import pytest
from instrument_subjects import mini_subject, real_subject
from runs import MINI, edited

from harness.checks.lr_find import FIRST, measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_a_rate_beyond_where_the_loss_rises_is_found_and_a_healthy_one_lies_within() -> None:
    broken, healthy = (measure(real_subject("huge_lr", healthy=healthy)) for healthy in (False, True))
    # The same network and data: the same curve, and another mark in it.
    assert broken.losses == healthy.losses
    assert (broken.outcome, broken.used) == ("above", 10.0)
    assert (healthy.outcome, healthy.used) == ("within", 0.1)
    assert 0.3 < healthy.used / healthy.suggested < 10
    assert healthy.suggested < healthy.limit < broken.used


def test_labels_that_tell_nothing_suggest_no_rate() -> None:
    measured = measure(real_subject("label_permute"))
    assert measured.outcome == "flat"
    evidence = show(measured)
    assert evidence.figures["suggested"] is None
    assert [words.partition(":")[0] for _, words in evidence.plots[0].marks] == ["used"]


WARM_UP = "    return warmup_cosine(optimizer, warmup_steps=5, total_steps=total_steps)\n"


@pytest.mark.parametrize(
    ("edit", "outcome", "used"),
    [(("lr=0.05", "lr=1e-7"), "below", 1e-7), (("    return None\n", WARM_UP), "within", 0.05)],
)
def test_the_rate_is_the_highest_of_the_schedule(edit: tuple[str, str], outcome: str, used: float) -> None:
    measured = measure(mini_subject(edited(MINI, edit)))
    assert (measured.outcome, measured.used) == (outcome, used)
    assert measured.rates[0] == FIRST
    ratios = [after / before for before, after in zip(measured.rates, measured.rates[1:], strict=False)]
    assert max(ratios) == pytest.approx(min(ratios))


def test_it_ends_where_the_loss_is_no_number() -> None:
    overflows = edited(MINI, ("F.cross_entropy(outputs, labels)", "outputs.pow(2).exp().mean()"))
    measured = measure(mini_subject(overflows))
    assert len(measured.smooth) == len(measured.losses) - 1 or measured.smooth[-1] > 4 * min(measured.smooth)
    assert len(measured.rates) < 97
