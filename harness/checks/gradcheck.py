"""The gradient against finite differences in float64: as autograd computes it, and as the optimizer gets to use it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from harness.checks.evidence import Evidence, Table, short
from harness.checks.loss_gradient import MOST_ACCUMULATED
from harness.checks.subject import Subject
from harness.checks.workbench import Bench
from harness.errors import UserError

EPS = 1e-6
PASSES = 1e-6
EXAMPLES = 16
# Of each parameter: the entries with the largest gradients, and as many by chance.
LARGEST = 5

Outcome = Literal["passes", "differs", "used-differs", "not-in-float64"]


@dataclass(frozen=True)
class ParameterCheck:
    """What two comparisons found, as relative distances: autograd's gradient and finite differences, over `entries`
    entries; and what the optimizer used and autograd's gradient, after a common factor.

    `kinks` counts the entries left out since finite differences have no answer there. `used` is None where no optimizer
    used a gradient of this parameter.
    """

    name: str
    entries: int
    kinks: int
    autograd: float
    used: float | None


@dataclass(frozen=True)
class Gradcheck:
    """All parameters that require a gradient; `problem` says why there are none."""

    parameters: tuple[ParameterCheck, ...]
    problem: str = ""

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if self.problem:
            return "not-in-float64"
        if not all(parameter.autograd < PASSES for parameter in self.parameters):
            return "differs"
        used = [parameter.used for parameter in self.parameters if parameter.used is not None]
        return "passes" if all(distance < PASSES for distance in used) else "used-differs"


@dataclass(frozen=True)
class _Batch:
    """A batch, and the state of chance when the step on it began."""

    inputs: Tensor
    labels: Tensor
    chance: Tensor


def measure(subject: Subject) -> Gradcheck:
    """Compare three gradients at the weights before the optimizer's second step.

    Central differences with a step of 1e-6 in float64 have an error of about 1e-10 of the loss; below what that lets
    them resolve, two gradients count as equal. Where a ReLU or a maximum changes its mind within the step they have
    another error for every step: such entries are left out. What the optimizer uses is compared with autograd's sum
    over the batches since its first step, up to one factor for each parameter: clipping to a norm and accumulating are
    no error. Dropout draws the same units each time, and autocast is off.
    """
    try:
        bench = subject.bench(subject.experiment(verify=True), verify=True)
        return _compare(bench)
    except UserError as error:
        return Gradcheck((), str(error).splitlines()[0])


def _compare(bench: Bench) -> Gradcheck:
    model = bench.model.train()
    named = {name: p for name, p in model.named_parameters() if p.requires_grad and p.numel()}
    used, batches, weights = _second_update(bench, named)
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(weights[name])

    def loss(batch: _Batch) -> Tensor:
        torch.set_rng_state(batch.chance)
        return bench.experiment.compute_loss(model(batch.inputs), batch.labels)

    value, autograd = 0.0, {}
    expected = {name: torch.zeros_like(p) for name, p in named.items()}
    for batch in batches:
        graph = loss(batch)
        value = graph.item()
        found = torch.autograd.grad(graph, list(named.values()), allow_unused=True)
        for (name, p), gradient in zip(named.items(), found, strict=True):
            autograd[name] = torch.zeros_like(p) if gradient is None else gradient
            expected[name] += autograd[name]
    rng = torch.Generator().manual_seed(0)
    checks = []
    for name, parameter in named.items():
        entries = _entries(autograd[name], rng)
        floor = _unresolved(value, len(entries))
        analytic = autograd[name].flatten()[entries]
        numeric, smooth = _finite_differences(parameter, entries, lambda: loss(batches[-1]), analytic, floor)
        checks.append(
            ParameterCheck(
                name=name,
                entries=int(smooth.sum()),
                kinks=int((~smooth).sum()),
                autograd=_distance(analytic[smooth], numeric[smooth], floor),
                used=_off_direction(used[name], expected[name], floor) if name in used else None,
            )
        )
    return Gradcheck(tuple(checks))


def _second_update(
    bench: Bench, named: dict[str, nn.Parameter]
) -> tuple[dict[str, Tensor], list[_Batch], dict[str, Tensor]]:
    """Return what the optimizer's second step used, the batches since its first one, and the weights before it.

    Where it does not step twice in time, nothing was used, and the batch is the last one.
    """
    used: dict[str, Tensor] = {}

    def look(optimizer: torch.optim.Optimizer, *_: object) -> None:
        scale = getattr(optimizer, "grad_scale", None)
        for name, parameter in named.items():
            if parameter.grad is not None and name not in used:
                used[name] = parameter.grad.detach() / (1.0 if scale is None else scale)

    updates, batches = 0, []
    handle = register_optimizer_step_pre_hook(look)
    try:
        for (x, y), _ in zip(bench.batches(), range(2 * MOST_ACCUMULATED), strict=False):
            weights = {name: p.detach().clone() for name, p in named.items()}
            batches.append(_Batch(x[:EXAMPLES], y[:EXAMPLES], torch.get_rng_state()))
            bench.step(batches[-1].inputs, batches[-1].labels)
            if used:
                updates += 1
                if updates == 2:
                    return used, batches, weights
                used.clear()
                batches.clear()
    finally:
        handle.remove()
    return {}, batches[-1:], weights


def _entries(gradient: Tensor, rng: torch.Generator) -> list[int]:
    flat = gradient.detach().flatten().abs()
    largest = flat.topk(min(LARGEST, len(flat))).indices.tolist()
    return list(dict.fromkeys([*largest, *torch.randint(len(flat), (LARGEST,), generator=rng).tolist()]))


@torch.no_grad()
def _finite_differences(
    parameter: nn.Parameter, entries: list[int], loss: Callable[[], Tensor], analytic: Tensor, floor: float
) -> tuple[Tensor, Tensor]:
    """Return the slopes at the entries, and which of them are slopes at all.

    Where a slope is not what autograd says and another one over half the step, a kink lies within the step. A whole
    parameter of kinks is none: there the loss is rough, and autograd has to answer for it.
    """
    flat = parameter.view(-1)

    def slope(entry: int, eps: float) -> float:
        before = flat[entry].item()
        flat[entry] = before + eps
        above = float(loss())
        flat[entry] = before - eps
        below = float(loss())
        flat[entry] = before
        return (above - below) / (2 * eps)

    numeric = torch.tensor([slope(entry, EPS) for entry in entries], dtype=torch.float64)
    resolved = PASSES * max(float(numeric.norm()), floor) / len(entries) ** 0.5
    smooth = torch.ones(len(entries), dtype=torch.bool)
    for place in (numeric - analytic).abs().gt(resolved).nonzero().flatten().tolist():
        smooth[place] = abs(slope(entries[place], EPS / 2) - float(numeric[place])) <= resolved
    return numeric, smooth if smooth.float().mean() > 0.5 else torch.ones_like(smooth)


def _unresolved(loss: float, entries: int) -> float:
    """Return the length of a gradient below which rounding of the loss alone makes a distance of `PASSES`."""
    rounding = 8 * torch.finfo(torch.float64).eps * max(abs(loss), 1e-30) * math.sqrt(entries)
    return rounding / (2 * EPS) / PASSES


def _distance(gradient: Tensor, numeric: Tensor, floor: float) -> float:
    length = max(float(gradient.double().norm()), float(numeric.norm()), floor)
    return float((gradient.double() - numeric).norm()) / length


def _off_direction(used: Tensor, expected: Tensor, floor: float) -> float:
    """Return the relative distance of a gradient from the nearest positive multiple of another."""
    square = float(expected.square().sum())
    factor = max(float((used * expected).sum()) / square, 0.0) if square else 0.0
    return float((used - factor * expected).norm()) / max(float(used.norm()), floor)


def show(measured: Gradcheck) -> Evidence:
    """Return the table by parameter."""
    worst = max((p.autograd for p in measured.parameters), default=None)
    worst_used = max((p.used for p in measured.parameters if p.used is not None), default=None)
    said = f"relative error {short(worst)} of autograd, {short(worst_used)} of what the optimizer used"
    return Evidence(
        what=f"the second update of the run on {EXAMPLES} examples a batch, in float64, eps {EPS:g}",
        outcome=measured.outcome,
        said=measured.problem or said,
        figures={"autograd, worst": worst, "used, worst": worst_used, "passes below": PASSES},
        tables=(
            Table(
                caption="Relative distance of autograd from finite differences, and of what was used from autograd",
                columns=("parameter", "entries", "at a kink", "autograd", "used by the optimizer"),
                rows=tuple((p.name, p.entries, p.kinks, p.autograd, p.used) for p in measured.parameters),
            ),
        )
        if measured.parameters
        else (),
    )
