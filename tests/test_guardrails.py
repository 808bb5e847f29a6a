import math
from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import get_total_norm

from harness.errors import UserError
from harness.run.batches import deterministic_minibatches
from harness.run.guardrails import Finding, Guardrails, GuardrailStop
from harness.run.metrics_log import format_record, parse_record

Record = dict[str, Any]


def record(
    step: int, loss: object = 1.0, grad_norm: object = 1.0, var: object = 0.1, steps: int = 1
) -> Record:
    last = {"mean": 0.0, "var": var}
    return {
        "step": step,
        "epoch": 0,
        "loss": loss,
        "grad_norm": grad_norm,
        "optimizer_steps": steps,
        "activations": {"first": {"mean": 0.0, "var": 1.0}, "last": last},
    }


def found(records: list[Record], mode: Literal["off", "warn", "strict"] = "warn") -> list[tuple[int, str]]:
    guardrails = Guardrails(mode)
    guardrails.replay(records)
    return [(finding.step, finding.level) for finding in guardrails.findings]


# --- real trainings -------------------------------------------------------------------------------------


def train(
    build_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
    seed: int,
    *,
    epochs: int = 12,
    clear: bool = True,
) -> list[Record]:
    """Train an MLP on ten noisy prototypes of 100 pixels; noise keeps the last hard examples coming."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(640) % 10
    inputs = (torch.rand(10, 100, generator=rng)[labels] + 0.7 * torch.randn(640, 100, generator=rng)).clamp(
        0, 1
    )
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = build_optimizer(model)
    records: list[Record] = []
    for _ in range(epochs):
        for x, y in deterministic_minibatches(inputs, labels, 32, rng, drop_last=True):
            if clear:
                optimizer.zero_grad()
            outputs = model(x)
            loss = F.cross_entropy(outputs, y)
            torch.autograd.backward(loss)
            optimizer.step()
            var = outputs.detach().var(correction=0).item()
            norm = get_total_norm([p.grad for p in model.parameters() if p.grad is not None]).item()
            records.append(record(len(records), loss.item(), norm, var))
    return records


def momentum(learning_rate: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)


def adam(learning_rate: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.Adam(model.parameters(), lr=learning_rate)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("build_optimizer", [momentum(0.1), momentum(0.01), adam(1e-3), adam(1e-2)])
def test_healthy_trainings_raise_nothing(
    build_optimizer: Callable[[nn.Module], torch.optim.Optimizer], seed: int
) -> None:
    records = train(build_optimizer, seed)
    assert records[-1]["loss"] < 0.5 * records[0]["loss"]  # it is a healthy one
    assert found(records) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("build_optimizer", [momentum(10.0), momentum(100.0), adam(1.0)])
def test_a_huge_learning_rate_is_found_within_twenty_steps(
    build_optimizer: Callable[[nn.Module], torch.optim.Optimizer], seed: int
) -> None:
    findings = found(train(build_optimizer, seed, epochs=2))
    assert findings
    assert findings[0][0] < 20


@pytest.mark.parametrize("seed", range(4))
def test_gradients_that_are_never_cleared_are_found(seed: int) -> None:
    assert found(train(momentum(0.1), seed, clear=False))


def test_a_run_that_overflows_stops_in_strict_mode_at_its_first_non_finite_loss() -> None:
    records = train(momentum(1e25), 0, epochs=1)
    first = next(r["step"] for r in records if not math.isfinite(r["loss"]))
    with pytest.raises(GuardrailStop, match=f"step {first}: the loss is (nan|inf)"):
        found(records, "strict")


# --- each rule ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, "NaN", "Infinity", "-Infinity"])
def test_a_loss_that_is_not_finite_is_hard_and_reported_once(loss: object) -> None:
    assert found([record(0), record(1, loss), record(2, loss), record(3)]) == [(1, "hard")]


@pytest.mark.parametrize(("norm", "says"), [(0.0, "every gradient is exactly 0"), (None, "no parameter has")])
def test_a_step_without_any_gradient_is_hard(norm: float | None, says: str) -> None:
    guardrails = Guardrails("warn")
    assert guardrails.check(record(0)) == []
    (finding,) = guardrails.check(record(1, grad_norm=norm))
    assert (finding.step, finding.level) == (1, "hard")
    assert says in finding.message
    assert guardrails.check(record(2, grad_norm=norm)) == []


def test_a_batch_that_a_scaler_skipped_or_a_perfect_fit_is_no_finding() -> None:
    assert found([record(0, grad_norm=None, steps=0), record(1, grad_norm=math.inf, steps=0)]) == []
    assert found([record(0, loss=0.0, grad_norm=0.0)]) == []


def test_a_loss_that_rises_is_soft_and_one_odd_batch_is_not() -> None:
    falling = [record(step, loss=2.0 * 0.8**step) for step in range(40)]
    assert found([*falling, record(40, loss=50.0), record(41, loss=50.0), record(42, loss=0.02)]) == []
    assert found(falling + [record(40 + step, loss=4.0) for step in range(5)]) == [(42, "soft")]
    # From 0.03 to 0.5 is a quarter of the first loss: a noisy end, not a divergence.
    assert found(falling + [record(40 + step, loss=0.5) for step in range(20)]) == []


def test_a_gradient_that_grows_is_soft_and_one_odd_batch_is_not() -> None:
    calm = [record(step) for step in range(30)]
    assert found([*calm, record(30, grad_norm=1e6), record(31, grad_norm=1e6), record(32)]) == []
    assert found(calm + [record(30 + step, grad_norm=11.0) for step in range(3)]) == [(32, "soft")]
    assert found(calm + [record(30 + step, grad_norm=9.0) for step in range(30)]) == []


def test_activations_that_grow_beyond_what_softmax_can_use_are_soft() -> None:
    calm = [record(step) for step in range(30)]
    assert found(calm + [record(30 + step, var=100.0) for step in range(30)]) == []
    assert found(calm + [record(30 + step, var=2e4) for step in range(3)]) == [(32, "soft")]
    # Targets in the thousands: large from the start, and not growing.
    assert found([record(step, var=2e6) for step in range(40)]) == []


def test_what_does_not_exist_is_passed_over() -> None:
    records = [record(step) | {"activations": {"first": None, "last": None}} for step in range(30)]
    assert found(records) == []
    assert found([{"step": 0, "loss": 1.0, "grad_norm": 1.0}]) == []


# --- modes, and resumed runs ----------------------------------------------------------------------------

TROUBLE = [
    *(record(step) for step in range(20)),
    *(record(20 + step, loss=100.0, grad_norm=1e3, var=1e6) for step in range(5)),
    record(25, loss=math.nan, grad_norm=None),
]


def test_off_reports_nothing_and_warn_reports_each_kind_once() -> None:
    assert found(TROUBLE, "off") == []
    assert found(TROUBLE + TROUBLE) == [(22, "soft")] * 3 + [(25, "hard")] * 2


def test_strict_stops_at_hard_findings_only_and_keeps_them() -> None:
    guardrails = Guardrails("strict")
    guardrails.replay(TROUBLE[:-1])
    assert [finding.level for finding in guardrails.findings] == ["soft"] * 3
    with pytest.raises(UserError, match=r"step 25: the loss is nan; the run was stopped.*--guardrails warn"):
        guardrails.check(TROUBLE[-1])
    assert guardrails.findings[3] == Finding(25, "hard", "the loss is nan")


@pytest.mark.parametrize("cut", range(len(TROUBLE) + 1))
def test_a_resumed_run_replayed_from_its_log_finds_the_same(cut: int) -> None:
    whole = Guardrails("warn")
    whole.replay(TROUBLE)
    epoch_record = {"epoch": 0, "val_loss": 1.0, "val_accuracy": None}
    log = [parse_record(format_record(line)) for line in [*TROUBLE[:cut], epoch_record]]
    resumed = Guardrails("warn")
    resumed.replay(log)
    resumed.replay(TROUBLE[cut:])
    assert resumed.findings == whole.findings


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match='choose "off", "warn" or "strict"'):
        Guardrails("loud")  # type: ignore[arg-type]


def test_a_good_start_may_get_worse_at_first_but_not_by_much() -> None:
    """The first losses of the healthy heat experiment, in units of the first: Adam overshoots, then learns."""
    healthy = [1.0, 25.0, 1.2, 5.4, 1.5, 3.7, 6.0, 2.2, 3.2, 2.7, 1.4, 3.0, 1.5, 1.9, 1.6, 1.5, 1.2, 1.0]
    assert found([record(step, loss) for step, loss in enumerate(healthy)]) == []
    assert found([record(step, 4 * loss if step else loss) for step, loss in enumerate(healthy)]) == [
        (5, "soft")
    ]


def test_an_explosion_right_after_the_first_batch_is_seen_in_the_variance() -> None:
    assert found([record(step, var=1e6 if step else 0.1) for step in range(8)]) == [(5, "soft")]
