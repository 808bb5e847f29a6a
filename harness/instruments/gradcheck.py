"""The gradient against finite differences in float64: as autograd computes it, and as the optimizer gets to use it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from harness.errors import UserError
from harness.instruments.evidence import Evidence, Table, short
from harness.instruments.subject import Subject
from harness.workbench import Bench

EPS = 1e-6
PASSES = 1e-6
EXAMPLES = 16
# Of each parameter: the entries with the largest gradients, and as many by chance.
LARGEST = 5

Outcome = Literal["passes", "differs", "used-differs", "not-in-float64"]


@dataclass(frozen=True)
class ParameterCheck:
    """Relative distances from the finite differences over the entries that were looked at, and the least resolved.

    `used` is None where no optimizer used a gradient of this parameter.
    """

    name: str
    entries: int
    autograd: float
    used: float | None


@dataclass(frozen=True)
class Gradcheck:
    """All parameters that require a gradient; `problem` says why there are none."""

    parameters: tuple[ParameterCheck, ...]
    loss: float
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


def measure(subject: Subject) -> Gradcheck:
    """Compare, at the weights after the first step, three gradients of the second one's loss.

    Central differences with a step of 1e-6 in float64 have an error of about 1e-10 of the loss; below what that lets
    them resolve, two gradients count as equal. Dropout draws the same units each time, and autocast is off.
    """
    try:
        bench = subject.bench(subject.experiment(verify=True), verify=True)
        batches = ((x[:EXAMPLES], y[:EXAMPLES]) for x, y in bench.batches())
        bench.step(*next(batches))
        return _compare(bench, *next(batches))
    except UserError as error:
        return Gradcheck((), math.nan, str(error).splitlines()[0])


def _compare(bench: Bench, inputs: Tensor, labels: Tensor) -> Gradcheck:
    model = bench.model.train()
    named = {name: p for name, p in model.named_parameters() if p.requires_grad and p.numel()}
    weights = {name: p.detach().clone() for name, p in named.items()}
    state = torch.get_rng_state()
    used = _used_gradients(bench, named, inputs, labels)
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(weights[name])

    def loss() -> Tensor:
        torch.set_rng_state(state)
        return bench.experiment.compute_loss(model(inputs), labels)

    graph = loss()
    value = graph.item()
    found = torch.autograd.grad(graph, list(named.values()), allow_unused=True)
    autograd = {
        name: torch.zeros_like(p) if gradient is None else gradient
        for (name, p), gradient in zip(named.items(), found, strict=True)
    }
    rng = torch.Generator().manual_seed(0)
    checks = []
    for name, parameter in named.items():
        entries = _entries(autograd[name], rng)
        numeric = _finite_differences(parameter, entries, loss)
        floor = _unresolved(value, len(entries))
        own = used.get(name)
        checks.append(
            ParameterCheck(
                name=name,
                entries=len(entries),
                autograd=_distance(autograd[name].flatten()[entries], numeric, floor),
                used=None if own is None else _distance(own.flatten()[entries], numeric, floor),
            )
        )
    return Gradcheck(tuple(checks), value)


def _used_gradients(
    bench: Bench, named: dict[str, nn.Parameter], inputs: Tensor, labels: Tensor
) -> dict[str, Tensor]:
    used: dict[str, Tensor] = {}

    def look(optimizer: torch.optim.Optimizer, *_: object) -> None:
        scale = getattr(optimizer, "grad_scale", None)
        for name, parameter in named.items():
            if parameter.grad is not None and name not in used:
                used[name] = parameter.grad.detach() / (1.0 if scale is None else scale)

    handle = register_optimizer_step_pre_hook(look)
    try:
        bench.step(inputs, labels)
    finally:
        handle.remove()
    return used


def _entries(gradient: Tensor, rng: torch.Generator) -> list[int]:
    flat = gradient.detach().flatten().abs()
    largest = flat.topk(min(LARGEST, len(flat))).indices.tolist()
    return list(dict.fromkeys([*largest, *torch.randint(len(flat), (LARGEST,), generator=rng).tolist()]))


@torch.no_grad()
def _finite_differences(parameter: nn.Parameter, entries: list[int], loss: Callable[[], Tensor]) -> Tensor:
    flat, slopes = parameter.view(-1), []
    for entry in entries:
        before = flat[entry].item()
        flat[entry] = before + EPS
        above = float(loss())
        flat[entry] = before - EPS
        below = float(loss())
        flat[entry] = before
        slopes.append((above - below) / (2 * EPS))
    return torch.tensor(slopes, dtype=torch.float64)


def _unresolved(loss: float, entries: int) -> float:
    """Return the length of a gradient below which rounding of the loss alone makes a distance of `PASSES`."""
    rounding = 8 * torch.finfo(torch.float64).eps * max(abs(loss), 1e-30) * math.sqrt(entries)
    return rounding / (2 * EPS) / PASSES


def _distance(gradient: Tensor, numeric: Tensor, floor: float) -> float:
    length = max(float(gradient.double().norm()), float(numeric.norm()), floor)
    return float((gradient.double() - numeric).norm()) / length


def show(measured: Gradcheck) -> Evidence:
    """Return the table by parameter."""
    worst = max((p.autograd for p in measured.parameters), default=None)
    worst_used = max((p.used for p in measured.parameters if p.used is not None), default=None)
    said = f"relative error {short(worst)} of autograd, {short(worst_used)} of what the optimizer used"
    return Evidence(
        what=f"the second step of the run on {EXAMPLES} examples, in float64, eps {EPS:g}",
        outcome=measured.outcome,
        said=measured.problem or said,
        figures={"autograd, worst": worst, "used, worst": worst_used, "passes below": PASSES},
        tables=(
            Table(
                caption="Relative distance from finite differences",
                columns=("parameter", "entries", "autograd", "used by the optimizer"),
                rows=tuple((p.name, p.entries, p.autograd, p.used) for p in measured.parameters),
            ),
        )
        if measured.parameters
        else (),
    )
