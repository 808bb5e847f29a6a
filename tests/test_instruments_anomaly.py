from pathlib import Path

import pytest
from instrument_subjects import mini_subject, real_subject
from runs import AMP, MINI, edited

from harness.checks.anomaly import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")

LOSS = "    return F.cross_entropy(outputs, labels)\n"
LAYER = edited(
    MINI,
    ("nn.Linear(16, 10)", "nn.Linear(16, 10), Exponential()"),
    (
        "def build_model",
        "class Exponential(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return (1000 * x.abs()).exp()\n\n\n"
        "def build_model",
    ),
)


def test_a_run_that_blows_up_without_overflow_is_told_from_a_healthy_one() -> None:
    broken = measure(real_subject("huge_lr"))
    assert (broken.outcome, broken.failed_at, len(broken.records)) == ("grows", None, 100)
    assert "the greatest loss is 6306, at step 2" in show(broken).said
    healthy = measure(real_subject("huge_lr", healthy=True))
    assert (healthy.outcome, healthy.origin) == ("finite", None)


@pytest.mark.parametrize(
    ("source", "phase", "operation", "where", "line"),
    [
        (LAYER, "forward", "exp", "4 (Exponential)", "in forward"),
        (edited(MINI, (LOSS, "    return -outputs.relu().log().mean()\n")),
         "forward", "log", "outside any layer", "in compute_loss"),
        (edited(MINI, (LOSS, LOSS.rstrip() + " + (outputs - outputs).pow(2).sum().sqrt()\n")),
         "backward", "div", "SqrtBackward0", "in train_step"),
        (edited(MINI, ("lr=0.05, momentum=0.9", "lr=1e3, weight_decay=1e38")),
         "update", "add_", "the optimizer's step", "in train_step"),
    ],
    ids=["layer", "loss", "backward", "update"],
)  # fmt: skip
def test_the_first_operation_is_named(source: str, phase: str, operation: str, where: str, line: str) -> None:
    measured = measure(mini_subject(source))
    assert (measured.outcome, measured.failed_at) == ("non-finite", 0)
    origin = measured.origin
    assert origin is not None
    assert (origin.phase, origin.operation, origin.where) == (phase, operation, where)
    assert line in origin.line
    assert origin.fresh
    assert f"step 0, {phase}: {operation}" in show(measured).said


def test_pytorchs_own_detection_is_shown_too() -> None:
    measured = measure(mini_subject(LAYER))
    assert "LogSoftmaxBackward0" in measured.detected


def test_a_later_step_is_found_from_the_state_before_it() -> None:
    later = edited(MINI, ("lr=0.05", "lr=1e20"))
    measured = measure(mini_subject(later))
    assert measured.failed_at is not None
    assert measured.failed_at > 0
    assert len(measured.records) == measured.failed_at + 1
    assert measured.origin is not None
    assert measured.origin.largest > 1e30


def test_a_scaler_that_looks_for_its_factor_is_no_failure() -> None:
    assert measure(mini_subject(edited(AMP, ("init_scale=256.0", "init_scale=2.0**30")))).outcome == "finite"


def test_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    measure(mini_subject(LAYER))
    assert list(tmp_path.iterdir()) == []
