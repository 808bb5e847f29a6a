import math
from typing import Any

import pytest
from recorded_logs import log_bytes

from harness.errors import UserError
from harness.recipe import EXPERIMENTS
from harness.run.guardrails import Guardrails
from harness.run.metrics_log import Record, batch_records, log_lines, parse_log
from harness.run.settings import GuardrailMode


def record(
    step: int, loss: float = 1.0, grad_norm: float | None = 1.0, var: float = 0.1, **more: Any
) -> Record:
    activations = {"first": {"mean": 0.0, "var": 1.0}, "last": {"mean": 0.0, "var": var}}
    found = {"step": step, "loss": loss, "grad_norm": grad_norm, "activations": activations}
    return {**found, "optimizer_steps": 1, **more}


def found(records: list[Record], mode: GuardrailMode = "warn") -> list[tuple[int, str]]:
    guardrails = Guardrails(mode)
    return [(finding.step, finding.level) for record in records for finding in guardrails.check(record)]


def recorded(name: str) -> list[Record]:
    """Return the batches of a real run: of a recipe's broken experiment, or of a healthy one."""
    return batch_records(parse_log(log_lines(log_bytes(name).decode()), name))


@pytest.mark.parametrize("experiment", [path.stem for path in EXPERIMENTS.glob("[!_]*.py")])
def test_healthy_runs_raise_nothing(experiment: str) -> None:
    assert found(recorded(experiment)) == []


def test_a_huge_learning_rate_is_found_within_twenty_steps() -> None:
    assert found(recorded("huge_lr"))[0][0] < 20


LOW = [record(step, loss=2.0 * 0.8**step) for step in range(40)]
CALM = [record(step) for step in range(30)]
# The first losses of the healthy heat experiment, in units of the first: Adam overshoots, then learns.
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
    "two odd gradients": ([*CALM, *(record(30 + step, grad_norm=1e6) for step in range(2)), record(32)], []),
    "gradient grows": (CALM + [record(30 + step, grad_norm=11.0) for step in range(3)], [(32, "soft")]),
    "gradient grows a little": (CALM + [record(30 + step, grad_norm=9.0) for step in range(30)], []),
    "output grows": (CALM + [record(30 + step, var=2e4) for step in range(3)], [(32, "soft")]),
    "output grows a little": (CALM + [record(30 + step, var=100.0) for step in range(30)], []),
    "output is large from the start": ([record(step, var=2e6) for step in range(40)], []),
    "explosion after the first batch": (
        [record(step, var=1e6 if step else 0.1) for step in range(8)],
        [(5, "soft")],
    ),
    "no activations": ([record(step, activations={"first": None, "last": None}) for step in range(30)], []),
}


@pytest.mark.parametrize("name", RULES)
def test_each_rule(name: str) -> None:
    records, expected = RULES[name]
    assert found(records) == expected


TROUBLE = [
    *(record(step) for step in range(20)),
    *(record(20 + step, loss=100.0, grad_norm=1e3, var=1e6) for step in range(5)),
    record(25, loss=math.nan, grad_norm=None),
]


def test_modes() -> None:
    assert found(TROUBLE, "off") == []
    assert found(TROUBLE + TROUBLE) == [(22, "soft")] * 3 + [(25, "hard")] * 2
    assert found(TROUBLE[:-1], "strict") == [(22, "soft")] * 3
    with pytest.raises(UserError, match=r"step 25: the loss is nan; the run was stopped.*--guardrails warn"):
        found(TROUBLE, "strict")
