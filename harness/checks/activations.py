"""What every layer puts out, at the start and after some steps: mean, spread, and units that have stopped to answer."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from harness.checks.evidence import Evidence, Table, short
from harness.checks.subject import Subject
from harness.run.activations import QUANTILES, ActivationRecorder
from harness.run.guardrails import VARIANCE_FLOOR, VARIANCE_RISE

STEPS = 20
# Of a layer's units. Healthy: at most 0.3 dead after 20 steps; runs that blew up or learn nothing: 0.73 and more.
DEAD = 0.5
SATURATED = 0.5

# Bounded outputs, and the bounds: nearer than a hundredth of their distance, the derivative is all but gone.
_BOUNDS: dict[type[nn.Module], tuple[float, float]] = {
    nn.Sigmoid: (0.0, 1.0),
    nn.Hardsigmoid: (0.0, 1.0),
    nn.Softmax: (0.0, 1.0),
    nn.Tanh: (-1.0, 1.0),
    nn.Hardtanh: (-1.0, 1.0),
    nn.Softsign: (-1.0, 1.0),
}
_RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Threshold)

Outcome = Literal["alive", "dead", "saturated", "exploding", "non-finite"]


@dataclass(frozen=True)
class LayerActivation:
    """One layer's output over one batch.

    `dead` is the share of a rectifier's units that are zero for every example, `saturated` the share of a bounded
    function's entries within a hundredth of a bound; None for other layers. `quantiles` at 1, 10, 50, 90 and 99 %.
    """

    name: str
    kind: str
    mean: float
    variance: float
    quantiles: list[float]
    dead: float | None
    saturated: float | None


@dataclass(frozen=True)
class Activations:
    """The layers before the first step and after the last, on the same batch, in training mode."""

    before: tuple[LayerActivation, ...]
    after: tuple[LayerActivation, ...]
    steps: int

    @property
    def outcome(self) -> Outcome:
        """What came of it; the first that applies."""
        if not all(math.isfinite(layer.variance) for layer in (*self.before, *self.after)):
            return "non-finite"
        if max((layer.dead or 0.0 for layer in self.after), default=0.0) > DEAD:
            return "dead"
        if max((layer.saturated or 0.0 for layer in self.after), default=0.0) > SATURATED:
            return "saturated"
        rise = self.after[-1].variance > VARIANCE_RISE * self.before[-1].variance
        return "exploding" if rise and self.after[-1].variance > VARIANCE_FLOOR else "alive"


def measure(subject: Subject, *, steps: int = STEPS) -> Activations:
    """Look at the first batch before the first step of the run, and at the same batch after some steps."""
    bench = subject.bench()
    batches = bench.batches()
    first = next(batches)
    before = _layers(bench.model, first[0])
    batch = first
    for _ in range(steps):
        bench.step(*batch)
        batch = next(batches)
    return Activations(before, _layers(bench.model, first[0]), steps)


@torch.no_grad()
def _layers(model: nn.Module, inputs: Tensor) -> tuple[LayerActivation, ...]:
    """Look at a copy of the network: batch norm takes in what it sees, and the run goes on."""
    model = copy.deepcopy(model).train()
    state = torch.get_rng_state()
    shares: dict[str, tuple[float | None, float | None]] = {}
    modules = dict(model.named_modules())
    handles = [
        module.register_forward_hook(_look(shares, name or type(module).__name__))
        for name, module in modules.items()
        if next(module.children(), None) is None
    ]
    with ActivationRecorder(model, QUANTILES) as recorder:
        model(inputs)
    for handle in handles:
        handle.remove()
    torch.set_rng_state(state)
    quantiles = recorder.quantiles()
    return tuple(
        LayerActivation(
            name=name,
            kind=type(modules.get(name, model)).__name__,
            mean=found["mean"],
            variance=found["var"],
            quantiles=quantiles[name],
            dead=shares[name][0],
            saturated=shares[name][1],
        )
        for name, found in recorder.statistics().items()
    )


def _look(shares: dict[str, tuple[float | None, float | None]], name: str) -> Callable[..., None]:
    def look(module: nn.Module, inputs: object, output: object) -> None:
        if not isinstance(output, Tensor):
            shares[name] = (None, None)
            return
        dead = saturated = None
        if isinstance(module, _RECTIFIERS) and output.dim() > 1:
            # A unit is a feature, or a channel at any place of the image.
            units = output.flatten(2).amax(dim=2) if output.dim() > 2 else output
            dead = float((units.amax(dim=0) == 0).double().mean())
        bounds = _BOUNDS.get(type(module))
        if bounds is not None:
            low, high = bounds
            margin = 0.01 * (high - low)
            saturated = float(((output < low + margin) | (output > high - margin)).double().mean())
        shares[name] = (dead, saturated)

    return look


def show(measured: Activations) -> Evidence:
    """Return the two tables."""
    last = measured.after[-1]
    dead = max((x.dead for x in measured.after if x.dead is not None), default=None)
    return Evidence(
        what=f"the first batch in training mode, before the first step and after {measured.steps}",
        outcome=measured.outcome,
        said=(
            f"dead units {short(dead)}, variance of the output {short(measured.before[-1].variance)},"
            f" then {short(last.variance)}"
        ),
        figures={
            "dead units, worst layer": dead,
            "saturated entries, worst layer": max(
                (x.saturated for x in measured.after if x.saturated is not None), default=None
            ),
            "variance of the output, before": measured.before[-1].variance,
            "variance of the output, after": last.variance,
        },
        tables=(
            _table("Before the first step", measured.before),
            _table(f"After {measured.steps} steps", measured.after),
        ),
    )


def _table(caption: str, layers: tuple[LayerActivation, ...]) -> Table:
    return Table(
        caption=caption,
        columns=(
            "layer", "kind", "mean", "variance", "1 %", "10 %", "50 %", "90 %", "99 %", "dead", "saturated",
        ),
        rows=tuple(
            (x.name, x.kind, x.mean, x.variance, *x.quantiles, x.dead, x.saturated) for x in layers
        ),
    )  # fmt: skip
