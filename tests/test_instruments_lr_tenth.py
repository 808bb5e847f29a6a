import pytest
from instrument_subjects import mini_subject, real_subject
from runs import MINI, edited

from harness.checks.lr_tenth import FACTORS, measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_shorter_steps_help_where_steps_are_too_long_and_nowhere_else() -> None:
    broken = measure(real_subject("huge_lr"))
    assert broken.outcome == "better"
    assert broken.level(0.01) < 0.1 * broken.level(1.0)
    healthy = measure(real_subject("huge_lr", healthy=True))
    assert healthy.outcome == "no-better"
    assert broken.losses[0.01] == healthy.losses[1.0]


def test_labels_that_tell_nothing_are_learnt_at_no_rate() -> None:
    assert measure(real_subject("label_permute")).outcome == "no-better"


def test_the_schedule_follows_the_rate() -> None:
    warm = edited(
        MINI,
        (
            "    return None\n",
            "    return warmup_cosine(optimizer, warmup_steps=5, total_steps=total_steps)\n",
        ),
    )
    measured = measure(mini_subject(warm), steps=6)
    assert measured.rates == [0.05]
    drops = [measured.losses[factor][0] - measured.losses[factor][-1] for factor in FACTORS]
    assert drops[0] > drops[1] > drops[2]


def test_a_loss_that_is_no_number_counts_as_infinite() -> None:
    measured = measure(mini_subject(edited(MINI, ("lr=0.05", "lr=1e30"))), steps=12)
    assert measured.level(1.0) == float("inf")
    evidence = show(measured)
    assert [line.label for line in evidence.plots[0].lines] == ["its own rate", "a tenth", "a hundredth"]
