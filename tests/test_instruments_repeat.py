import pytest
from instrument_subjects import mini_subject, real_subject
from runs import CHANCE, MINI, edited

from harness.checks.repeat import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_a_run_that_draws_from_its_seed_repeats() -> None:
    assert measure(mini_subject(CHANCE)).outcome == "same"
    assert measure(real_subject("huge_lr"), steps=3).outcome == "same"


def test_chance_outside_the_seed_is_found_where_it_first_shows() -> None:
    entropy = edited(
        MINI,
        (
            "    return inputs, labels\n",
            "    return inputs + random.SystemRandom().random() / 1000, labels\n",
        ),
    )
    measured = measure(mini_subject(entropy))
    assert measured.outcome == "differs"
    assert measured.difference is not None
    assert (measured.difference.place, measured.difference.quantity) == ("step 0", "loss")
    assert "step 0, loss" in show(measured).said


def test_weights_that_differ_unseen_are_found() -> None:
    hidden = edited(
        MINI,
        ("    return loss\n", "    model[3].extra.fill_(random.SystemRandom().random())\n    return loss\n"),
        (
            "    return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n",
            "    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n"
            "    model[3].register_buffer('extra', torch.zeros(1))\n"
            "    return model\n",
        ),
    )
    measured = measure(mini_subject(hidden), steps=2)
    assert (measured.difference, measured.same_checkpoint, measured.outcome) == (None, False, "differs")
