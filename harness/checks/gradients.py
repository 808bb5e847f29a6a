"""The gradients that the optimizer uses: size, spread by layer, what they move, and whether they are fresh."""

import copy
import math
from dataclasses import dataclass
from statistics import median
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from harness.checks.evidence import Evidence, Line, Plot, Table, short
from harness.checks.loss_gradient import fresh_gradients
from harness.checks.mechanisms import float32_zero_fraction
from harness.checks.subject import Subject
from harness.checks.workbench import Bench, worst
from harness.run.activations import QUANTILES, as_lists, quantiles_on_device
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder

STEPS = 20
# The bounds of the exercises' own probes: a fresh gradient is one to the bit, and float16 that is scaled loses next
# to nothing (healthy: 0.01 at most).
STALE = 1e-6
UNDERFLOW = 0.1
# The greatest norm over the first one. Healthy: at most 10 (a regression whose last layer begins at zero; 4 for the
# classifiers); runs whose loss blows up: 140 and more.
EXPLODING = 30.0
# Between the layers' root mean squares, least over greatest, of matrices alone: a bias before a batch norm has no
# gradient at all. Healthy: 0.06 at least.
VANISHING = 1e-3

Outcome = Literal["fresh", "none", "non-finite", "stale", "underflow", "exploding", "vanishing"]


@dataclass(frozen=True)
class LayerGradient:
    """The gradient of one parameter at the last step, as the optimizer used it.

    `is_matrix`: a weight of two or more dimensions, no bias and no scale of a norm. `quantiles` are of its absolute
    entries at 1, 10, 50, 90 and 99 %; `moved` is the length of the update over that of the weights; `cosine` that
    between this gradient and what the backward pass of the batch alone computed.
    """

    name: str
    is_matrix: bool
    norm: float
    entries: int
    quantiles: list[float]
    zeros: float
    moved: float
    cosine: float


@dataclass(frozen=True)
class Gradients:
    """The records of the steps, the layers at the last one, and how many more zeros there are than in float32."""

    records: list[Record]
    layers: tuple[LayerGradient, ...]
    excess_zeros: float

    @property
    def stale(self) -> float:
        """The largest relative distance of a used gradient from a fresh one."""
        return worst([record["stale_grad_ratio"] for record in self.records])

    @property
    def norms(self) -> list[float]:
        """The norm at every step, NaN where there was no gradient."""
        norms = (record["grad_norm"] for record in self.records)
        return [math.nan if norm is None else norm for norm in norms]

    @property
    def outcome(self) -> Outcome:
        """What came of it; the first that applies."""
        if not any(record["grad_norm"] for record in self.records):
            return "none"
        if not all(map(math.isfinite, self.norms)):
            return "non-finite"
        if not self.stale <= STALE:
            return "stale"
        if self.excess_zeros > UNDERFLOW:
            return "underflow"
        if max(self.norms) > EXPLODING * self.norms[0]:
            return "exploding"
        sizes = [layer.norm / layer.entries**0.5 for layer in self.layers if layer.is_matrix]
        return "vanishing" if sizes and min(sizes) < VANISHING * max(sizes) else "fresh"


def measure(subject: Subject, *, steps: int = STEPS) -> Gradients:
    """Make the first steps of the run: look closely at the last, compare zeros with float32 in the second half."""
    bench = subject.bench()
    records: list[Record] = []
    excess = []
    layers: tuple[LayerGradient, ...] = ()
    with Recorder(bench.model) as recorder:
        for index, (inputs, labels) in zip(range(steps), bench.batches(), strict=False):
            reference = copy.deepcopy(bench.model).train()
            if index == steps - 1:
                layers = _layers_of_step(bench, inputs, labels)
                record = recorder.end_batch(torch.tensor(0.0))
            else:
                record = recorder.end_batch(bench.step(inputs, labels))
            records.append({"step": index, **record})
            if index >= steps // 2:
                state = torch.get_rng_state()
                zeros = float32_zero_fraction(bench.experiment, reference, inputs, labels)
                torch.set_rng_state(state)
                excess.append((record["grad_zero_fraction"] or 0.0) - zeros)
    return Gradients(records, layers, median(excess))


def _layers_of_step(bench: Bench, inputs: Tensor, labels: Tensor) -> tuple[LayerGradient, ...]:
    """Make one step and look at every gradient at the moment when the optimizer uses it."""
    named = dict(bench.model.named_parameters())
    before = {name: tensor.detach().clone() for name, tensor in named.items()}
    used: dict[str, Tensor] = {}

    def look(optimizer: torch.optim.Optimizer, *_: object) -> None:
        scale = getattr(optimizer, "grad_scale", None)
        for name, tensor in named.items():
            if tensor.grad is not None:
                used[name] = tensor.grad.detach() / (1.0 if scale is None else scale)

    handle = register_optimizer_step_pre_hook(look)
    try:
        with fresh_gradients(bench.model) as fresh:
            bench.step(inputs, labels)
    finally:
        handle.remove()
    quantiles = as_lists(
        {name: quantiles_on_device(g.abs(), QUANTILES) for name, g in used.items() if g.numel()}
    )
    return tuple(
        LayerGradient(
            name=name,
            is_matrix=gradient.ndim > 1,
            norm=float(gradient.double().norm()),
            entries=gradient.numel(),
            quantiles=quantiles[name],
            zeros=float((gradient == 0).double().mean()),
            moved=_share(named[name].detach().double() - before[name].double(), before[name].double()),
            cosine=_cosine(gradient.double(), fresh.get(name)),
        )
        for name, gradient in used.items()
        if gradient.numel()
    )


def _share(part: Tensor, whole: Tensor) -> float:
    length = float(whole.norm())
    return float(part.norm()) / length if length else float("nan")


def _cosine(used: Tensor, fresh: Tensor | None) -> float:
    if fresh is None:
        return float("nan")
    return float(nn.functional.cosine_similarity(used.flatten(), fresh.double().flatten(), dim=0, eps=0.0))


def show(measured: Gradients) -> Evidence:
    """Return the table of the last step and the curves."""
    records = measured.records
    zeros = median(record["grad_zero_fraction"] or 0.0 for record in records)
    return Evidence(
        what=f"the first {len(records)} steps of the run; the layers at step {len(records) - 1}",
        outcome=measured.outcome,
        said=(
            f"norm {short(measured.norms[0])} at first, {short(worst(measured.norms))} at most;"
            f" distance from a fresh one {short(measured.stale)}; zeros {short(zeros)}"
        ),
        figures={
            "first norm": measured.norms[0],
            "greatest norm": worst(measured.norms),
            "distance from a fresh gradient, greatest": measured.stale,
            "zero entries, median": zeros,
            "zero entries beyond those in float32": measured.excess_zeros,
        },
        tables=(
            Table(
                caption="Absolute entries by parameter, as the optimizer used them",
                columns=(
                    "parameter", "norm", "1 %", "10 %", "50 %", "90 %", "99 %", "zeros", "update/weight",
                    "cosine with a fresh one",
                ),
                rows=tuple(
                    (x.name, x.norm, *x.quantiles, x.zeros, x.moved, x.cosine) for x in measured.layers
                ),
            ),
        ),
        plots=(
            Plot(
                title="Norm of the gradient",
                x_label="step",
                y_label="2-norm",
                lines=(Line(label="used", points=tuple(enumerate(measured.norms))),),
                scale="log",
            ),
            Plot(
                title="Distance from a fresh gradient",
                x_label="step",
                y_label="relative distance",
                lines=(Line(label="used", points=tuple((r["step"], r["stale_grad_ratio"]) for r in records)),),
            ),
        ),
    )  # fmt: skip
