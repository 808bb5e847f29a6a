"""Mechanism probes: they call an experiment's functions on inputs of our choice to see whether the cause is gone."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.checks.loss_gradient import loss_gradient, mean_cross_entropy
from harness.checks.mechanisms import (
    batch_pairing,
    evaluation_mode,
    evaluation_repeats,
    gradient_underflow,
    learning_rate,
    stale_gradient,
)
from harness.checks.workbench import Bench
from harness.recipe import Probe
from harness.run.experiment import Experiment, TensorData

__all__ = ["Bench", "ProbeResult", "mean_cross_entropy", "run_probe"]


@dataclass(frozen=True)
class ProbeResult:
    """What a probe measured, and whether that stays below its bound (a NaN does not)."""

    probe: Probe
    value: float
    passed: bool


def run_probe(probe: Probe, experiment: Experiment, data: TensorData, seed: int) -> ProbeResult:
    """Measure one mechanism of an experiment. Raises `UserError` for what the experiment does wrong meanwhile."""
    value = _PROBES[probe.kind](Bench(experiment, data, seed))
    return ProbeResult(probe, value, value < probe.below)


_PROBES: dict[str, Callable[[Bench], float]] = {
    "batch_pairing": batch_pairing,
    "learning_rate": learning_rate,
    "stale_gradient": stale_gradient,
    "loss_gradient": loss_gradient,
    "gradient_underflow": gradient_underflow,
    "evaluation_mode": evaluation_mode,
    "evaluation_repeats": evaluation_repeats,
}
