"""Compare autograd's gradient with finite differences, in float64.

For a few entries of each parameter, the check computes central differences of the loss with a step of 1e-6, at the
weights after two steps of the run. If they differ from autograd's gradient, something is detached or a backward pass is
wrong. Dropout drops the same units in each forward pass, and autocast is off.

If a ReLU or a maximum switches within the step, the loss has a kink there, and autograd gives the slope on one side of
the kink. The check leaves such entries out. This check does not see what the optimizer does with the gradient; use
`harness updates` for that.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject, Trial
from harness.errors import UserError

# figure                             | healthy | broken | bound       | source
# error of finite differences / loss | 1e-10   |        | PASSES 1e-6 | rounding in float64
#
# The bound applies to the relative distance of the two gradients. If a gradient is shorter than the rounding error of
# its finite differences, both gradients count as equal.
EPS = 1e-6
PASSES = 1e-6
CLOSER = 8  # a step this many times smaller shows whether there is a kink within the step
EXAMPLES = 16
# For each parameter, compare this many entries with the largest gradients, and as many random entries.
LARGEST = 5

STEPS = 2


class _NotInFloat64(Exception):
    """The experiment sets a dtype itself, and in this dtype finite differences are too inexact to compare."""


def measure(subject: Subject) -> Finding:
    """Compare autograd's gradient with finite differences for every parameter, after two steps."""
    subject.trial()  # raises errors that have nothing to do with float64
    try:
        rows = tuple(_compare(subject.trial(verify=True)))
    except (UserError, _NotInFloat64) as error:
        return Finding("not-in-float64", str(error).splitlines()[0], {"passes below": PASSES})
    distances = [row[3] for row in rows]
    worst = max(distances, default=None)
    columns = "parameter", "entries", "at a kink", "distance"
    caption = "Relative distance of autograd from finite differences"
    return Finding(
        "passes" if all(distance < PASSES for distance in distances) else "differs",
        f"relative error {short(worst)} of autograd",
        {"autograd, worst": worst, "passes below": PASSES},
        tables=(Table(caption, columns, rows),),
    )


def _compare(trial: Trial) -> Iterator[tuple[str, int, int, float]]:
    """Yield for each parameter: its name, the numbers of compared and skipped entries, and the relative distance."""
    model = trial.model.train()
    batches = trial.batches(STEPS + 1)
    for inputs, labels in itertools.islice(batches, STEPS):
        trial.step(_to_double(inputs), _to_double(labels))
    inputs, labels = map(_to_double, next(batches))
    chance = torch.get_rng_state()

    def loss() -> Tensor:
        torch.set_rng_state(chance)
        return trial.experiment.compute_loss(model(inputs), labels)

    named = {name: p for name, p in model.named_parameters() if p.requires_grad and p.numel()}
    graph = loss()
    if graph.dtype != torch.float64:
        raise _NotInFloat64(f"the loss is {graph.dtype} although the inputs are float64")
    found = torch.autograd.grad(graph, list(named.values()), materialize_grads=True)
    rng = torch.Generator().manual_seed(0)
    for (name, parameter), gradient in zip(named.items(), found, strict=True):
        entries = _entries(gradient, rng)
        floor = _rounding_bound(graph.item(), len(entries))
        analytic = gradient.flatten()[entries]
        numeric, smooth = _finite_differences(parameter, entries, loss, analytic, floor)
        length = max(float(analytic[smooth].norm()), float(numeric[smooth].norm()), floor)
        distance = float((analytic - numeric)[smooth].norm()) / length
        yield name, int(smooth.sum()), int((~smooth).sum()), distance


def _to_double(part: Tensor) -> Tensor:
    """Return the first examples, as float64 if they are floating-point numbers."""
    return part[:EXAMPLES].double() if part.is_floating_point() else part[:EXAMPLES]


def _entries(gradient: Tensor, rng: torch.Generator) -> list[int]:
    flat = gradient.detach().flatten().abs()
    largest = flat.topk(min(LARGEST, len(flat))).indices.tolist()
    return list(dict.fromkeys([*largest, *torch.randint(len(flat), (LARGEST,), generator=rng).tolist()]))


@torch.no_grad()
def _finite_differences(
    parameter: nn.Parameter, entries: list[int], loss: Callable[[], Tensor], analytic: Tensor, floor: float
) -> tuple[Tensor, Tensor]:
    """Return the central differences at some entries of a parameter, and a mask of the entries without a kink."""
    flat = parameter.view(-1)
    here = float(loss())

    def sides(entry: int, eps: float) -> tuple[float, float]:
        before = flat[entry].item()
        flat[entry] = before + eps
        above = float(loss())
        flat[entry] = before - eps
        below = float(loss())
        flat[entry] = before
        return (here - below) / eps, (above - here) / eps

    wide = [sides(entry, EPS) for entry in entries]
    numeric = torch.tensor(wide, dtype=torch.float64).mean(dim=1)
    resolved = PASSES * max(float(numeric.norm()), floor) / len(entries) ** 0.5
    smooth = torch.ones(len(entries), dtype=torch.bool)
    for place in (numeric - analytic).abs().gt(resolved).nonzero().flatten().tolist():
        slopes = (*wide[place], *sides(entries[place], EPS / CLOSER))
        smooth[place] = min(abs(slope - float(analytic[place])) for slope in slopes) > resolved
    return numeric, smooth


def _rounding_bound(loss: float, entries: int) -> float:
    """Return the gradient length at which rounding errors of the loss alone cause a distance of `PASSES`."""
    rounding = 8 * torch.finfo(torch.float64).eps * max(abs(loss), 1e-30) * math.sqrt(entries)
    return rounding / (2 * EPS) / PASSES
