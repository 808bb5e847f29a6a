import pytest
import torch
from instrument_subjects import mini_subject, real_subject
from runs import CHANCE, MINI, edited

from harness.checks.activations import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_units_that_a_recipe_killed_are_found_and_a_healthy_network_answers() -> None:
    broken = measure(real_subject("huge_lr"))
    assert broken.outcome == "dead"
    assert max(layer.dead or 0.0 for layer in broken.after) > 0.9
    assert max(layer.dead or 0.0 for layer in broken.before) < 0.3
    healthy = measure(real_subject("huge_lr", healthy=True))
    assert healthy.outcome == "alive"
    assert [layer.kind for layer in healthy.after] == ["Flatten", "Linear", "ReLU", "Linear"]


@pytest.mark.parametrize(
    ("edits", "outcome"),
    [
        ((), "alive"),
        ((("nn.ReLU()", "nn.Tanh()"),), "alive"),
        ((("nn.ReLU()", "Large(), nn.Tanh()"),), "saturated"),
        ((("lr=0.05", "lr=1.0"), ("nn.ReLU()", "nn.Identity()")), "exploding"),
        ((("lr=0.05", "lr=1e30"),), "non-finite"),
    ],
)
def test_outcomes(edits: tuple[tuple[str, str], ...], outcome: str) -> None:
    large = "class Large(nn.Module):\n    def forward(self, x):\n        return 1000 * x\n\n\ndef build_model"
    measured = measure(mini_subject(edited(MINI, ("def build_model", large), *edits)))
    assert measured.outcome == outcome


def test_a_channel_is_dead_only_where_it_is_zero_at_every_place() -> None:
    convolution = edited(
        MINI,
        (
            "    return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n",
            "    first = nn.Conv2d(1, 4, 3)\n"
            "    with torch.no_grad():\n"
            "        first.bias[0], first.bias[1] = -100.0, 100.0\n"
            "    return nn.Sequential(first, nn.ReLU(), nn.Flatten(), nn.Linear(64, 10))\n",
        ),
    )
    relu = measure(mini_subject(convolution), steps=1).before[1]
    assert relu.dead == 0.25
    assert relu.saturated is None


def test_looking_changes_neither_the_network_nor_what_is_drawn_by_chance() -> None:
    subject = mini_subject(CHANCE)
    bench = subject.bench()
    batches = bench.batches()
    first = batch = next(batches)
    for _ in range(3):
        bench.step(*batch)
        batch = next(batches)
    with torch.no_grad():
        outputs = bench.model.train()(first[0])
    expected = measure(subject, steps=3).after
    assert expected[-1].mean == pytest.approx(float(outputs.mean()), abs=1e-6)


def test_the_evidence_has_both_tables() -> None:
    evidence = show(measure(mini_subject(), steps=2))
    assert [table.caption for table in evidence.tables] == ["Before the first step", "After 2 steps"]
    assert [row[1] for row in evidence.tables[0].rows] == ["Flatten", "Linear", "ReLU", "Linear"]
