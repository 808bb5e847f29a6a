import math
from typing import Any

import pytest
from helpers.recorded_logs import log_bytes

from harness.run.guardrails import Guardrails
from harness.run.metrics_log import Record, batch_records, parse_log


def record(step: int, loss: float = 1.0, grad_norm: float | None = 1.0, var: float = 0.1, **more: Any) -> Record:
    activations = {"first": {"mean": 0.0, "var": 1.0}, "last": {"mean": 0.0, "var": var}}
    found = {"step": step, "loss": loss, "grad_norm": grad_norm, "activations": activations}
    return {**found, "optimizer_steps": 1, **more}


def found(records: list[Record]) -> list[tuple[int, str]]:
    guardrails = Guardrails()
    return [(finding.step, finding.level) for record in records for finding in guardrails.check(record)]


def recorded(name: str) -> list[Record]:
    """Return the batch records of a real run: of a recipe's broken experiment, or of a healthy experiment."""
    return batch_records(parse_log(log_bytes(name).decode(), name))


@pytest.mark.parametrize("experiment", ["digits_mlp", "digits_heat", "shapes_cnn"])
def test_healthy_runs_raise_nothing(experiment: str) -> None:
    assert found(recorded(experiment)) == []


def test_a_huge_learning_rate_is_found_within_twenty_steps() -> None:
    assert found(recorded("huge_lr"))[0][0] < 20


LOW = [record(step, loss=2.0 * 0.8**step) for step in range(40)]
CALM = [record(step) for step in range(30)]
# The first losses of the healthy heat experiment, relative to the first: Adam overshoots, then learns.
OVERSHOOT = [1.0, 25.0, 1.2, 5.4, 1.5, 3.7, 6.0, 2.2, 3.2, 2.7, 1.4, 3.0, 1.5, 1.9, 1.6, 1.5, 1.2, 1.0]
RULES: dict[str, tuple[list[Record], list[tuple[int, str]]]] = {
    "NaN once": ([record(0), record(1, math.nan), record(2, math.nan), record(3)], [(1, "hard")]),
    "infinite": ([record(0), record(1, -math.inf)], [(1, "hard")]),
    "zero gradient": ([record(0), record(1, grad_norm=0.0), record(2, grad_norm=0.0)], [(1, "hard")]),
    "no gradient": ([record(0), record(1, grad_norm=None)], [(1, "hard")]),
    "step skipped by a scaler": ([record(0, grad_norm=math.inf, optimizer_steps=0)], []),
    "perfect fit": ([record(0, loss=0.0, grad_norm=0.0)], []),
    "two odd losses": ([*LOW, record(40, 50.0), record(41, 50.0), record(42, 0.02)], []),
    "loss rises": (LOW + [record(40 + step, 4.0) for step in range(5)], [(42, "soft")]),
    "loss stays below a quarter of the first": (LOW + [record(40 + step, 0.5) for step in range(20)], []),
    "good start gets worse": ([record(step, loss) for step, loss in enumerate(OVERSHOOT)], []),
    "good start gets much worse": (
        [record(step, 4 * loss if step else loss) for step, loss in enumerate(OVERSHOOT)],
        [(5, "soft")],
    ),
    "no activations": ([record(step, activations={"first": None, "last": None}) for step in range(30)], []),
}


@pytest.mark.parametrize("name", RULES)
def test_each_rule(name: str) -> None:
    records, expected = RULES[name]
    assert found(records) == expected


def test_each_kind_is_said_once() -> None:
    rising = [record(20 + step, loss=100.0) for step in range(5)]
    trouble = [*CALM[:20], *rising, record(25, loss=math.nan, grad_norm=None)]
    assert found(trouble + trouble) == [(22, "soft"), (25, "hard"), (25, "hard")]
