import math

import pytest
from instrument_subjects import mini_subject, real_subject
from runs import AMP, MINI, edited, train_step

from harness.checks.gradients import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")

CLEARED = (
    "    optimizer.zero_grad()\n"
    "    loss = compute_loss(model(inputs), labels)\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
)


def test_what_is_left_over_from_earlier_steps_is_found_and_a_fresh_gradient_is_not() -> None:
    broken = measure(real_subject("missing_zero_grad"))
    assert broken.outcome == "stale"
    assert broken.stale > 1
    assert min(layer.cosine for layer in broken.layers) < 0.99
    healthy = measure(real_subject("missing_zero_grad", healthy=True))
    assert (healthy.outcome, healthy.stale) == ("fresh", 0.0)
    assert all(layer.cosine == pytest.approx(1.0, abs=1e-6) for layer in healthy.layers)
    assert all(1e-5 < layer.moved < 1.0 for layer in healthy.layers)
    assert all(layer.quantiles == sorted(layer.quantiles) for layer in healthy.layers)


def test_entries_lost_in_float16_are_told_from_entries_that_are_zero() -> None:
    broken = measure(real_subject("amp_no_scaling"), steps=12)
    assert broken.outcome == "underflow"
    assert broken.excess_zeros > 0.3


def test_a_gradient_that_blows_up_is_told() -> None:
    broken = measure(real_subject("huge_lr"))
    assert broken.outcome == "exploding"
    assert max(broken.norms) > 100 * broken.norms[0]


# A layer that lets through next to nothing of the gradient.
FAINT = edited(
    MINI,
    ("nn.Linear(16, 10)", "nn.Linear(16, 16), Faint(), nn.Linear(16, 10)"),
    (
        "def build_model",
        "class Faint(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return 1e-6 * x + (1 - 1e-6) * x.detach()\n\n\n"
        "def build_model",
    ),
)


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (MINI, "fresh"),
        (AMP, "fresh"),
        (train_step(CLEARED.replace("    loss.backward()\n", "")), "none"),
        (train_step(CLEARED.replace("loss.backward", "(loss / 0).backward")), "non-finite"),
        (FAINT, "vanishing"),
        (edited(MINI, ("nn.Linear(36, 16)", "nn.Linear(36, 16), nn.BatchNorm1d(16)")), "fresh"),
    ],
    ids=["healthy", "scaled", "none", "non-finite", "vanishing", "a bias before a batch norm"],
)
def test_outcomes(source: str, outcome: str) -> None:
    assert measure(mini_subject(source)).outcome == outcome


def test_a_scaled_gradient_is_shown_as_the_optimizer_uses_it() -> None:
    plain = edited(AMP, ("AMP = True", "AMP = False"))
    for scaled, unscaled in zip(
        measure(mini_subject(AMP)).layers, measure(mini_subject(plain)).layers, strict=True
    ):
        assert scaled.norm == pytest.approx(unscaled.norm, rel=0.05)


def test_an_accumulated_gradient_is_no_stale_one() -> None:
    accumulated = train_step(
        "    for part, own in zip(inputs.split(4), labels.split(4)):\n"
        "        (compute_loss(model(part), own) / 2).backward()\n"
        "    loss = compute_loss(model(inputs), labels).detach()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
    )
    assert measure(mini_subject(accumulated)).outcome == "fresh"


def test_the_evidence_has_a_row_for_each_parameter_and_a_point_for_each_step() -> None:
    evidence = show(measure(mini_subject(), steps=7))
    assert len(evidence.tables[0].rows) == 4
    assert all(len(row) == len(evidence.tables[0].columns) for row in evidence.tables[0].rows)
    assert [len(line.points) for plot in evidence.plots for line in plot.lines] == [7, 7]
    assert all(
        math.isfinite(y or 0.0) for plot in evidence.plots for line in plot.lines for _, y in line.points
    )
